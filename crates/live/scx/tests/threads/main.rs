//! The C code that the kernel's CPUs call at once (`bpf/calls.h`), called by as many threads under ThreadSanitizer: no
//! two touch the same without a lock, no task is lost, and in the end the books are right. What they have decided, the
//! interpreter in Rust decides, too.

#[path = "../subjects/mod.rs"]
mod subjects;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use ampsched_model::Draw;
use ampsched_policy::{LoadTracking, PELT_UNIT_NS, Rules, Topology};
use ampsched_scx::record::{Kind, Record};
use ampsched_scx::replay::{Replay, Tally};
use ampsched_scx::{layout, lower};

use crate::subjects::{traces, try_policies, try_random_rules};

/// Tasks per machine.
const TASKS: &str = "24";
/// How long each set of rules is tried, in ms.
const MS: &str = "20";
/// What looks without a lock, and decides nothing (`bpf/lock.h`): what ThreadSanitizer sees there is meant.
const LOOKS: [&str; 21] = [
    "has_slept",
    "choose_core",
    "where_to",
    "lock_thread",
    "lock_thread_and_core",
    "place",
    "pick_elsewhere",
    "is_core_free",
    "any_queue_waits",
    "collect_kicks",
    "has_no_work",
    "note_arrival",
    "is_uneven",
    "sort_targets",
    "sort_sources",
    "candidate",
    "lightest_waiting",
    "find_move",
    "find_swap",
    "is_overutilised",
    "idles_in_vain",
];

struct Program {
    folder: PathBuf,
}

impl Program {
    /// Compiles `kernel.c`, with ThreadSanitizer or, faster, without.
    fn new(name: &str, is_watched: bool) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let status = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".into()))
            .args(["-std=gnu11", "-O1", "-g", "-pthread", "-Wall", "-Wextra", "-Werror"])
            .args(is_watched.then_some("-fsanitize=thread"))
            .args(["-Ibpf", "tests/threads/kernel.c", "-o"])
            .arg(folder.join("kernel"))
            .status()
            .unwrap();
        assert!(status.success(), "the test's C program does not compile: {status}");
        let suppressed: String = LOOKS.iter().map(|name| format!("race:^{name}$\n")).collect();
        std::fs::write(folder.join("looks"), suppressed).unwrap();
        Self { folder }
    }

    /// Runs it. Returns what it has recorded.
    fn run(&self, what: &str, state: &layout::Sched, seed: u64) -> Recording {
        let path = self.folder.join("state");
        // SAFETY: a state as bytes.
        #[allow(unsafe_code)]
        let bytes = unsafe {
            std::slice::from_raw_parts((&raw const *state).cast::<u8>(), size_of_val(state))
        };
        std::fs::write(&path, bytes).unwrap();
        let suppressions = self.folder.join("looks");
        let options = format!(
            "suppressions={} halt_on_error=0 exitcode=0 history_size=7",
            suppressions.display()
        );
        let output = Command::new(self.folder.join("kernel"))
            .arg(&path)
            .args([TASKS, MS, &seed.to_string()])
            .arg(self.folder.join("recording"))
            .env("TSAN_OPTIONS", options)
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "seed {seed} of {what}: {}\n{told}", output.status);
        if let Some(race) = races(&told).next() {
            panic!("seed {seed} of {what}: {race}");
        }
        Recording::read(&self.folder.join("recording"))
    }
}

/// What a run has recorded, and the books in the end.
struct Recording {
    records: Vec<Record>,
    state: Box<layout::Sched>,
    threads: Vec<layout::Thread>,
}

impl Recording {
    fn read(path: &Path) -> Self {
        let bytes = std::fs::read(path).unwrap();
        let count = u64::from_ne_bytes(bytes[..8].try_into().unwrap()) as usize;
        let state_at = 8 + count * size_of::<Record>();
        let threads_at = state_at + size_of::<layout::Sched>();
        // SAFETY: whole ones, of which every pattern of bits is one.
        #[allow(unsafe_code)]
        unsafe {
            let all = |at: usize| bytes[at..].as_ptr();
            let read = |at, index| all(at).cast::<Record>().add(index).read_unaligned();
            let records = (0..count).map(|index| read(8, index)).collect();
            let state = Box::new(all(state_at).cast::<layout::Sched>().read_unaligned());
            let read = |index| all(threads_at).cast::<layout::Thread>().add(index).read_unaligned();
            let threads = (0..state.thread_count as usize).map(read).collect();
            Self { records, state, threads }
        }
    }

    /// Has the interpreter in Rust decide the same.
    fn explain(
        &self,
        topology: Topology,
        rules: Rules,
        tracking: Option<LoadTracking>,
    ) -> Result<Tally, String> {
        let mut replay = Replay::new(topology, rules, tracking);
        replay.run(&self.records).map_err(|error| error.to_string())?;
        if self.state.records_lost == 0 {
            replay.compare(&self.state, &self.threads)?;
        }
        Ok(replay.tally().clone())
    }
}

/// Reports of ThreadSanitizer; without those of which it has forgotten who came first, who may be one that looks.
fn races(told: &str) -> impl Iterator<Item = &str> {
    told.split("==================\n")
        .filter(|report| report.contains("WARNING: ThreadSanitizer"))
        .filter(|report| !report.contains("[failed to restore the stack]"))
}

fn track(state: &mut layout::Sched, topology: &Topology, tracking: Option<LoadTracking>) {
    if let Some(how) = tracking {
        lower::track_load(state, how, topology, PELT_UNIT_NS);
    }
}

/// Lets CPUs act by some rules, and explains what they have decided.
fn act_and_explain(
    program: &Program,
    name: &str,
    (topology, rules, lowered): (Topology, Rules, layout::Rules),
    tracking: Option<LoadTracking>,
    seed: u64,
) -> (Recording, Tally) {
    let mut state = lower::state(lowered, &rules, &topology, 64);
    track(&mut state, &topology, tracking);
    let recording = program.run(name, &state, seed);
    let explained = recording.explain(topology, rules, tracking);
    let tally = explained.unwrap_or_else(|why| panic!("seed {seed} of {name}: {why}"));
    assert!(tally.records.values().sum::<u64>() > 100, "{tally:?}");
    println!("{name}, seed {seed}: {tally:?}");
    (recording, tally)
}

#[test]
fn cpus_at_once_decide_as_one_after_the_other() {
    let program = Program::new("policies", true);
    let count = try_policies(traces(1), |name, topology, rules, lowered, tracking, seed| {
        act_and_explain(&program, name, (topology, rules, lowered), tracking, seed);
    });
    assert!(count >= 9, "only {count} sets of rules were tried");
}

#[test]
fn cpus_at_once_decide_as_one_after_the_other_by_random_rules() {
    let program = Program::new("random", true);
    try_random_rules(traces(7), |name, topology, rules, lowered, tracking, seed| {
        act_and_explain(&program, name, (topology, rules, lowered), tracking, seed);
    });
}

#[test]
fn cpus_at_full_speed_decide_as_one_after_the_other() {
    let program = Program::new("fast", false);
    try_policies(traces(1), |name, topology, rules, lowered, tracking, seed| {
        act_and_explain(&program, name, (topology, rules, lowered), tracking, seed);
    });
    try_random_rules(traces(10), |name, topology, rules, lowered, tracking, seed| {
        act_and_explain(&program, name, (topology, rules, lowered), tracking, seed);
    });
}

/// A record of another answer.
fn tampered(record: Record) -> Record {
    let (flag, thread, value) = (record.flag(), record.thread(), record.value);
    match record.kind().unwrap() {
        Kind::First => record.with(flag, thread ^ 1, value),
        Kind::Elsewhere => record.with(flag ^ 1, thread, value),
        Kind::Preempts
        | Kind::Take
        | Kind::Pull
        | Kind::Move
        | Kind::Change
        | Kind::UserAffinity => record.with(flag ^ 1, thread, value),
        _ => record.with(flag, thread, value ^ 1),
    }
}

/// Of these, another flag or value is always an error.
const COMPARED: [Kind; 14] = [
    Kind::Enqueue,
    Kind::Start,
    Kind::Charge,
    Kind::Stop,
    Kind::Leave,
    Kind::UserAffinity,
    Kind::Change,
    Kind::First,
    Kind::Preempts,
    Kind::Expiry,
    Kind::Take,
    Kind::Move,
    Kind::Place,
    Kind::Elsewhere,
];

#[test]
fn another_answer_than_the_recorded_one_is_noticed() {
    let program = Program::new("tampered", false);
    let mut noticed = BTreeMap::new();
    try_policies(1, |name, topology, rules, lowered, tracking, seed| {
        let given = (topology.clone(), rules.clone(), lowered);
        let (mut recording, _) = act_and_explain(&program, name, given, tracking, seed);
        let mut draw = Draw::new(seed);
        for kind in COMPARED {
            let of_kind = recording.records.iter().enumerate();
            let of_kind: Vec<usize> = of_kind
                .filter_map(|(index, record)| (record.kind() == Some(kind)).then_some(index))
                .collect();
            for _ in 0..of_kind.len().min(3) {
                let index = of_kind[draw.bits() as usize % of_kind.len()];
                let before = recording.records[index];
                recording.records[index] = tampered(before);
                let replayed = recording.explain(topology.clone(), rules.clone(), tracking);
                recording.records[index] = before;
                let (tried, all) = noticed.entry(kind).or_insert((0, 0));
                (*tried, *all) = (*tried + 1, *all + u64::from(replayed.is_err()));
            }
        }
    });
    println!("{noticed:?}");
    for (kind, (tried, noticed)) in noticed {
        // Some looks are not compared, as something changed meanwhile.
        let least = if kind.looks() { tried / 3 } else { tried };
        assert!(noticed >= least, "{kind:?}: {noticed} of {tried}");
    }
}
