//! Every decision of a simulation that is watched has a reason, and watching changes nothing.

mod common;

use std::fmt::Write;
use std::path::Path;

use ampsched_model::{ClusterId, CoreId, Ns, ThreadId};
use ampsched_policy::{DecidedBy, REGISTRY, Reason, RunState, build_policy};
use ampsched_sim::{
    Decision, Explanation, NoExplanation, Options, Outcome, Question, Trace, TraceThread, TurnEnd,
    explain, simulate, simulate_with,
};
use common::{Host, shipped_catalog, workload};

/// Counts decisions, and complains of those without a reason.
#[derive(Default)]
struct Reasons {
    about: Option<ThreadId>,
    runs: u64,
    stops: u64,
    interruptions: u64,
    moved: u64,
    planned: u64,
    passed: u64,
}

impl Trace for Reasons {
    fn asks_about(&self) -> Option<ThreadId> {
        self.about
    }

    fn thread(&mut self, _thread: TraceThread) {}

    fn run(&mut self, core: CoreId, thread: ThreadId, why: Option<&Reason>, at_ns: Ns) {
        let why = why.unwrap_or_else(|| panic!("{thread:?} runs on {core:?} at {at_ns}"));
        let by = why.by;
        let picks = matches!(by, DecidedBy::Order | DecidedBy::Steal(_) | DecidedBy::Hook);
        assert!(picks, "{why:?}");
        self.runs += 1;
    }

    fn stop(&mut self, core: CoreId, thread: ThreadId, end: TurnEnd, at_ns: Ns) {
        let why = end.why.unwrap_or_else(|| panic!("{thread:?} leaves {core:?} at {at_ns}"));
        let by_program = why.by == DecidedBy::Program;
        let leaves = matches!(end.state, RunState::Blocked | RunState::Exited);
        assert!(by_program || !leaves, "{why:?} makes it {:?}", end.state);
        self.stops += 1;
    }

    fn wake(&mut self, _waker: Option<ThreadId>, _woken: ThreadId, _: Option<CoreId>, _at_ns: Ns) {}

    fn decided(&mut self, thread: ThreadId, decision: Decision, why: Option<&Reason>, at_ns: Ns) {
        let by = why.map(|why| why.by);
        let complain = || panic!("{decision:?} of {thread:?} at {at_ns}: {why:?}");
        let (count, expected) = match decision {
            Decision::Placed(_) => {
                (None, matches!(by, Some(DecidedBy::Allocator | DecidedBy::Hook)))
            }
            Decision::Moved { .. } => (Some(&mut self.moved), by == Some(DecidedBy::Balance)),
            Decision::Interrupts { yes, .. } => (
                yes.then_some(&mut self.interruptions),
                matches!(by, Some(DecidedBy::Preempt | DecidedBy::Hook)),
            ),
            Decision::Planned(words) => {
                assert!(!words.is_empty());
                (Some(&mut self.planned), by == Some(DecidedBy::Plan))
            }
            Decision::Held => (None, true),
            Decision::Ended => (None, by == Some(DecidedBy::Program)),
            Decision::PassedOver(_) => {
                assert_eq!(self.about, Some(thread));
                (Some(&mut self.passed), why.is_some())
            }
        };
        if !expected {
            complain();
        }
        if let Some(count) = count {
            *count += 1;
        }
    }

    fn frequency(&mut self, _cluster: ClusterId, _mhz: u32, _at_ns: Ns) {}
    fn queue_len(&mut self, _core: CoreId, _len: usize, _at_ns: Ns) {}
}

fn short() -> Options {
    Options { until_ns: Some(400_000_000), check: false, ..Options::default() }
}

fn watched(workload: &str, policy: &str) -> (Outcome, Outcome, Reasons) {
    let catalog = shipped_catalog();
    let machine = catalog.machine("2B2S").unwrap();
    let workload = catalog.workload(workload).unwrap();
    let built = || build_policy(policy, &[]).unwrap();
    let plain = simulate(&machine, &workload, policy, built(), &short()).unwrap();
    let mut reasons = Reasons { about: Some(ThreadId(1)), ..Reasons::default() };
    let traced =
        simulate_with(&machine, &workload, policy, built(), &short(), Some(&mut reasons)).unwrap();
    (plain, traced, reasons)
}

#[test]
fn every_decision_of_every_policy_has_a_reason() {
    for info in REGISTRY {
        let (plain, traced, reasons) = watched("rand-4", info.name);
        assert_eq!(plain, traced, "{}: watching changes the run", info.name);
        assert_eq!(reasons.runs, traced.counts.dispatches, "{}", info.name);
        assert_eq!(reasons.interruptions, traced.counts.preemptions, "{}", info.name);
        assert!(reasons.stops > 0 && reasons.stops <= reasons.runs, "{}", info.name);
    }
}

#[test]
fn policies_show_what_is_theirs() {
    let (_, _, cfs) = watched("rand-9", "cfs");
    let counts = (cfs.moved, cfs.interruptions, cfs.passed);
    assert!(counts.0 > 0 && counts.1 > 0 && counts.2 > 0, "{counts:?}");
    assert_eq!(cfs.planned, 0);
    let (_, _, colab) = watched("rand-9", "colab");
    assert!(colab.planned > 0 && colab.passed > 0, "{} {}", colab.planned, colab.passed);
}

/// Two hogs and a thread that sleeps now and then, on one big and one little core.
const THREE: &str = "[[threads]]\nname='hog'\ncount=2\nbody=[{run_us=60e3,profile='unit'}]\n\
     [[threads]]\nname='nap'\nbody=[{loop=10,body=[{run_us=2e3,profile='unit'},{sleep_us=5e3}]}]";

fn answer(policy: &str, thread: &str, at_ms: u64) -> Result<Explanation, NoExplanation> {
    let host = Host::unequal(1, 1, 2.0);
    let question =
        Question { thread: thread.to_owned(), at_ns: at_ms * 1_000_000, window_ns: 4_000_000 };
    let built = build_policy(policy, &[]).unwrap();
    explain(&host.machine, &workload(&[THREE]), policy, built, &host.options, question)
}

/// Whole answers against committed ones. After an intended change:
/// `BLESS=1 cargo test -p ampsched-sim --test reasons`.
#[test]
fn answers_are_as_committed() {
    let mut text = String::new();
    for (policy, thread, at_ms) in [
        ("cfs", "p/nap", 10),
        ("eevdf", "p/hog.1", 20),
        ("rr", "p/nap", 30),
        ("colab", "p/hog.0", 25),
        ("gts", "p/nap", 15),
        ("a-dwrr", "p/hog.0", 40),
    ] {
        let answer = answer(policy, thread, at_ms).unwrap();
        writeln!(text, "# {policy}, {thread}, {at_ms} ms\n{}", answer.summary).unwrap();
        for told in answer.events {
            let at_ms = told.at_ns as f64 / 1e6;
            writeln!(text, "{at_ms:9.3} {}: {}", told.what, told.sentence).unwrap();
            if let Some(rule) = told.rule {
                writeln!(text, "          {rule} {:?}", told.values).unwrap();
            }
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/explain.txt");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let committed = std::fs::read_to_string(&path).expect("tests/golden/explain.txt exists");
    for (now, then) in text.lines().zip(committed.lines()) {
        assert_eq!(now, then, "answers changed; see the comment above");
    }
    assert_eq!(text.lines().count(), committed.lines().count());
}

#[test]
fn questions_without_an_answer_are_errors() {
    let error = answer("cfs", "p/nab", 10).unwrap_err().to_string();
    assert!(error.contains("did you mean \"p/nap\"?"), "{error}");
    let error = answer("cfs", "p/nap", 100_000).unwrap_err().to_string();
    assert!(error.starts_with("100000.000 ms is after the end of the run at "), "{error}");
}
