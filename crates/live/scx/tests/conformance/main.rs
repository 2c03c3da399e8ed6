//! The interpreter in C decides as the one in Rust, whatever happens.

mod both;
mod host;
#[path = "../subjects/mod.rs"]
mod subjects;

use ampsched_model::Draw;
use ampsched_policy::{
    Balance, LoadBand, LoadTracking, Needs, Part, REGISTRY, Rules, Slot, Steal, TABLE, Topology,
    Wire, build_policy, words_in_use,
};
use ampsched_scx::{layout, lower, native};

use crate::host::Host;
#[cfg(feature = "bpf")]
use crate::host::THREADS_MAX;
use crate::subjects::{
    random_rules, topologies, topology, topology_of, traces, tracking_of, try_policies,
    try_random_rules,
};

/// Random events per trace.
const STEPS: usize = 200;

fn replay(
    what: &str,
    topology: Topology,
    rules: ampsched_policy::Rules,
    lowered: layout::Rules,
    tracking: Option<LoadTracking>,
    seed: u64,
) -> Host {
    let mut host = Host::new(topology, rules, lowered, tracking, seed);
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| host.run(STEPS)));
    assert!(
        outcome.is_ok(),
        "{what} with seed {seed} differs after {} operations",
        host.both.trace.len()
    );
    host
}

#[test]
fn layouts_agree() {
    use std::mem::offset_of;

    use layout::{
        Call, Core, Domain, Group, Operation, Queue, Rules, Sched, Thread, TrackedCore,
        TrackedThread,
    };
    let ours = [
        size_of::<Rules>(),
        size_of::<u64>() * <ampsched_policy::Steal as Wire>::LEN,
        size_of::<u64>() * <ampsched_policy::Balance as Wire>::LEN,
        size_of::<Thread>(),
        offset_of!(Thread, state),
        offset_of!(Thread, run_ns),
        offset_of!(Thread, generation),
        size_of::<TrackedThread>(),
        size_of::<TrackedCore>(),
        size_of::<Domain>(),
        size_of::<Core>(),
        size_of::<Queue>(),
        offset_of!(Queue, newcomer),
        size_of::<Call>(),
        offset_of!(Call, started),
        size_of::<Sched>(),
        offset_of!(Sched, idle),
        offset_of!(Sched, cores),
        offset_of!(Sched, queues),
        size_of::<Sched>(),
        size_of::<Operation>(),
        offset_of!(Operation, value),
        size_of::<Group>(),
    ];
    assert_eq!(native::layout(), ours.map(|number| number as u64));
}

/// Linux refuses atomic instructions in an arena on arm64 without LSE (`bpf_jit_supports_insn`), as on Cortex-A57.
/// Locks and the counts of tasks and of lost latencies are elsewhere, and `platform.h` has some for ordinary programs.
#[test]
fn the_state_in_the_arena_needs_no_atomic_instructions() {
    fn sources(folder: &std::path::Path, found: &mut Vec<(std::path::PathBuf, String)>) {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                sources(&entry.path(), found);
            } else {
                found.push((entry.path(), std::fs::read_to_string(entry.path()).unwrap()));
            }
        }
    }
    let mut found = Vec::new();
    sources(std::path::Path::new("bpf"), &mut found);
    assert!(found.len() > 20, "these are not all of them: {found:?}");
    for (path, text) in found.into_iter().filter(|(path, _)| {
        let outside = ["latency.h", "lock.h", "platform.h", "record.h", "slots.h"];
        !outside.iter().any(|name| path.ends_with(name))
    }) {
        let atomic =
            ["__sync_", "__atomic_", "_Atomic"].into_iter().find(|word| text.contains(word));
        assert_eq!(atomic, None, "{}", path.display());
    }
}

#[test]
fn every_policy_with_rules_decides_the_same() {
    // Policies that differ in their slow plane only have equal rules. What the slow plane needs does not matter here.
    let count = try_policies(traces(1000), |name, topology, rules, lowered, tracking, seed| {
        replay(name, topology, rules, lowered, tracking, seed);
    });
    assert!(count >= 9, "only {count} sets of rules were compared");
}

/// A machine with so many cores of two kinds, in clusters of eight.
fn large(cores: usize) -> Topology {
    let clusters: Vec<(u8, usize)> =
        (0..cores.div_ceil(8)).map(|at| ((at % 2) as u8, 8.min(cores - 8 * at))).collect();
    topology(&clusters)
}

#[test]
fn many_cores_decide_the_same() {
    for seed in 0..traces(60) {
        let topology = large([65, 128, 300, 512][seed as usize % 4]);
        let rules = random_rules(&mut Draw::new(seed).child(1));
        match lower::rules("random", &Needs::default(), &rules, &topology) {
            Ok(lowered) => {
                replay(&format!("{rules:?}"), topology, rules, lowered, tracking_of(seed), seed);
            }
            Err(refused) => assert!(refused.to_string().contains("16 clusters"), "{refused}"),
        }
    }
}

#[test]
fn random_rules_decide_the_same() {
    try_random_rules(traces(2000), |name, topology, rules, lowered, tracking, seed| {
        replay(name, topology, rules, lowered, tracking, seed);
    });
}

#[test]
fn what_a_kernel_cannot_do_is_refused_by_name() {
    let refused: Vec<(&str, String)> = REGISTRY
        .iter()
        .filter_map(|info| {
            let policy = build_policy(info.name, &[]).unwrap();
            let topology = &topologies()[0];
            let why = lower::unsupported(&policy.needs(), &policy.rules(topology), topology);
            (!why.is_empty()).then(|| (info.name, why.join("; ")))
        })
        .collect();
    // Of clocks, and of counters below, there are none here.
    let clocks = "it sets the clocks of clusters";
    let retired = "it reads retired instructions, which are not counted here";
    let stalls = "it reads stall counters, which are not counted here";
    let expected = [
        ("bias", stalls.to_owned()),
        ("dtpm", clocks.to_owned()),
        ("hfee", format!("{clocks}; {retired}")),
        ("hfee-as-published", format!("{clocks}; {retired}")),
        ("hpm", format!("{clocks}; {retired}")),
        ("iks", clocks.to_owned()),
        ("linux", "it is the kernel's own fair class".to_owned()),
        ("pie", stalls.to_owned()),
        ("smart-balance", retired.to_owned()),
        ("utilisation-aware", clocks.to_owned()),
        ("wash-orig", retired.to_owned()),
    ];
    assert_eq!(refused, expected);
}

/// Words that the interpreter does not execute itself: the host in the kernel does, or the state that the loader makes.
const EXECUTED_ELSEWHERE: [(&str, &str); 3] = [
    ("queues", "the loader assigns cores to queues"),
    ("kick_idle", "the host tells idle cores"),
    ("period_ns", "the host balances when it is due"),
];

/// The names of the words of Rules on the wire, in order.
fn wire_names() -> Vec<String> {
    fn expand<T: Wire>(out: &mut Vec<String>) {
        let mut slots = Vec::new();
        T::fields(&mut slots);
        for slot in slots {
            match slot {
                Slot::Scalar(name) => out.push(name.to_owned()),
                Slot::Array(name, count) => out.extend(std::iter::repeat_n(name.to_owned(), count)),
                Slot::Struct(_, "load_band") => expand::<LoadBand>(out),
                Slot::Struct(..) => expand::<Balance>(out),
                Slot::Structs(_, _, count) => (0..count).for_each(|_| expand::<Steal>(out)),
            }
        }
    }
    let mut names = Vec::new();
    expand::<Rules>(&mut names);
    names
}

/// Whether the interpreter in C, given one other word, does what the rules do not say, for some trace.
fn some_trace_notices(names: &[String], at: usize) -> bool {
    let length = names.iter().position(|name| name == "length_ns").expect("rounds have a length");
    let rules_of = |seed: u64| random_rules(&mut Draw::new(seed).child(1));
    (0..traces(1500)).any(|seed| {
        let (rules, topology) = (rules_of(seed), topology_of(seed));
        let lowered = lower::rules("random", &Needs::default(), &rules, &topology).unwrap();
        let other = (seed + 1..seed + 20).find_map(|other| {
            let other =
                lower::rules("other", &Needs::default(), &rules_of(other), &topology).unwrap();
            (other[at] != lowered[at]).then_some(other[at])
        });
        let Some(other) = other else { return false };
        let mut changed = lowered;
        changed[at] = other;
        // With rounds instead of another order their length counts, by which C divides.
        changed[length] = changed[length].max(1_000_000);
        let mut host = Host::new(topology, rules, changed, tracking_of(seed), seed);
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| host.run(STEPS))).is_err()
    })
}

/// A word that C does not execute, or that the traces do not exercise, would go unnoticed otherwise.
#[test]
fn every_word_on_the_wire_makes_a_difference() {
    let names = wire_names();
    assert_eq!(names.len(), <Rules as Wire>::LEN);
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let mut noticed = std::collections::BTreeMap::new();
    for (at, name) in names.iter().enumerate() {
        let known = noticed.entry(name).or_insert(false);
        *known = *known
            || EXECUTED_ELSEWHERE.iter().any(|(elsewhere, _)| elsewhere == name)
            || some_trace_notices(&names, at);
    }
    std::panic::set_hook(hook);
    let unnoticed: Vec<_> = noticed.into_iter().filter(|(_, known)| !known).collect();
    assert!(unnoticed.is_empty(), "no trace notices another value of {unnoticed:?}");
}

#[test]
fn every_word_that_a_kernel_executes_is_drawn() {
    let mut drawn = std::collections::BTreeSet::new();
    for seed in 0..traces(2000) {
        let rules = random_rules(&mut Draw::new(seed).child(1));
        for word in words_in_use(&Needs::default(), &rules) {
            drawn.insert(std::ptr::from_ref(word) as usize);
        }
    }
    let groups = TABLE.iter().filter(|(part, _)| *part == Part::Rules).map(|(_, group)| group());
    // Their values are words themselves.
    let holders = [
        "queues",
        "order",
        "allocator",
        "steal",
        "slice",
        "charge",
        "preempt",
        "balance",
        "balance_when",
        "from",
        "who",
        "load",
    ];
    let missing: Vec<String> = groups
        .flat_map(|group| group.words.iter().map(move |word| (group.name, word)))
        .filter(|(_, word)| word.facts.kernel.is_exact() && !holders.contains(&word.name))
        .filter(|(_, word)| !drawn.contains(&(std::ptr::from_ref(*word) as usize)))
        .map(|(group, word)| format!("{group}.{}", word.name))
        .collect();
    assert!(missing.is_empty(), "never drawn: {missing:?}");
}

/// A trace of what happens under random rules.
fn random_trace(seed: u64) -> Host {
    let rules = random_rules(&mut Draw::new(seed).child(1));
    let topology = topology_of(seed);
    let lowered = lower::rules("random", &Needs::default(), &rules, &topology).unwrap();
    replay(&format!("{rules:?}"), topology, rules, lowered, tracking_of(seed), seed)
}

fn assert_same_answers(answers: &[layout::Operation], host: &Host, seed: u64) {
    for (index, (ours, theirs)) in host.both.trace.iter().zip(answers).enumerate() {
        assert_eq!(format!("{theirs:?}"), format!("{ours:?}"), "operation {index} of seed {seed}");
    }
}

#[test]
fn a_trace_has_the_same_answers_all_at_once() {
    for seed in 0..traces(100) {
        let host = random_trace(seed);
        let mut operations = host.both.trace.clone();
        native::Native::new(&host.both.before).operate(&mut operations);
        assert_same_answers(&operations, &host, seed);
    }
}

/// A trace once more in the kernel's BPF machine.
#[cfg(feature = "bpf")]
fn replay_in_kernel(host: &Host, seed: u64) {
    let loaded = ampsched_scx::kernel::Replay::load(&host.both.before);
    let mut kernel = loaded.expect("the kernel has BPF arenas, and we are root");
    let mut operations = host.both.trace.clone();
    kernel.operate(&mut operations).unwrap();
    assert_same_answers(&operations, host, seed);
}

/// The same in the kernel's BPF machine. Needs root. Of random rules only those that need no tracked load: all that the
/// interpreter does is one program here, which with some of the others is too much for the verifier.
#[cfg(feature = "bpf")]
#[test]
fn the_kernel_s_bpf_machine_decides_the_same() {
    let _lock = arena();
    try_policies(traces(2), |name, topology, rules, lowered, tracking, seed| {
        replay_in_kernel(&replay(name, topology, rules, lowered, tracking, seed), seed);
    });
    try_random_rules(traces(16), |name, topology, rules, lowered, _, seed| {
        let words = words_in_use(&Needs::default(), &rules);
        if !words.iter().any(|word| word.facts.reads_load) {
            replay_in_kernel(&replay(name, topology, rules, lowered, None, seed), seed);
        }
    });
}

/// Instructions at which the verifier looks at most for a policy (ours), in all programs together: loading is to take
/// 2 s at most on a core that executes 1000 million instructions per second, and each has cost up to 17,000 there
/// (`a-dwrr`, when it was 474,000 of them; fewer cost less each, as there are fewer paths to compare).
#[cfg(feature = "bpf")]
const LOOKED_AT_MAX: u32 = 117_000;
/// The same where cores have two threads (ours): none of those is as slow.
#[cfg(feature = "bpf")]
const LOOKED_AT_MAX_SMT: u32 = 130_000;

/// What the verifier of this kernel looks at grows with the rules of a policy, and with functions that it follows on
/// each path to them (`global_subprog` in bpf/platform.h). Needs root.
#[cfg(feature = "bpf")]
#[test]
fn the_kernel_s_verifier_accepts_every_policy() {
    let _lock = arena();
    let mut greatest = (0, String::new());
    let count = try_policies(1, |name, topology, rules, lowered, tracking, _| {
        let mut state = lower::state(lowered, &rules, &topology, THREADS_MAX);
        if let Some(how) = tracking {
            lower::track_load(&mut state, how, &topology, ampsched_policy::PELT_UNIT_NS);
        }
        let verify = |state: &layout::Sched| {
            ampsched_scx::kernel::verify(state).unwrap_or_else(|error| panic!("{name}: {error}"))
        };
        state.has_smt = 1;
        let with_smt: u32 = verify(&state).iter().map(|(_, count)| count).sum();
        assert!(with_smt <= LOOKED_AT_MAX_SMT, "{with_smt} instructions for {name} with SMT");
        state.has_smt = 0;
        let looked_at = verify(&state);
        state.records_max = 1;
        let recording: u32 = verify(&state).iter().map(|(_, count)| count).sum();
        let sum: u32 = looked_at.iter().map(|(_, count)| count).sum();
        println!(
            "{name}: {sum} instructions, {recording} if they record, {with_smt} with SMT, {looked_at:?}"
        );
        assert!(recording > sum, "what records is left out for {name}");
        greatest = greatest.clone().max((sum, name.to_owned()));
    });
    let (sum, name) = greatest;
    assert!(count >= 9, "only {count} sets of rules were tried");
    assert!((1000..=LOOKED_AT_MAX).contains(&sum), "{sum} instructions for {name}");
    println!("at most {sum} instructions, for {name}");
}

/// Memory for threads comes with tasks, also if several come at a time, and what runs outside the kernel sees it. Needs
/// root.
#[cfg(feature = "bpf")]
#[test]
fn memory_for_threads_comes_with_tasks() {
    let _lock = arena();
    let topology = topology(&[(1, 2), (0, 2)]);
    let rules = build_policy("rr", &[]).unwrap().rules(&topology);
    let lowered = lower::rules("rr", &Needs::default(), &rules, &topology).unwrap();
    let mut state = lower::state(lowered, &rules, &topology, 10_000);
    state.slots = ampsched_scx::table::slots_beside_state();
    let mut room = ampsched_scx::kernel::Room::load(&state).unwrap();
    assert!(room.slots() < 10, "{} slots from the start", room.slots());
    for tasks in [1, 200, 5_000] {
        assert!(room.make(4, tasks / 4 + 1));
        assert!((tasks..tasks + 500).contains(&room.slots()), "{} slots for {tasks}", room.slots());
        // The kernel's mark that the memory is there.
        assert_eq!(room.generation(room.slots() - 1), 1);
    }
    assert!(room.make(2, 10_000), "more tasks than threads are allowed");
    assert_eq!(room.slots(), 10_000);
    room.allow(1_000_000);
    assert!(!room.make(1, 1_000), "there is no more address space");
    assert!(room.slots() < 11_500, "{} slots", room.slots());
}

/// A process has one arena at a time.
#[cfg(feature = "bpf")]
fn arena() -> std::sync::MutexGuard<'static, ()> {
    static ARENA: std::sync::Mutex<()> = std::sync::Mutex::new(());
    ARENA.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
