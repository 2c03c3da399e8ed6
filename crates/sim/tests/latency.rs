//! Wake-up latencies and periods, worked out by hand.

mod common;

use ampsched_sim::{Outcome, Periods, ThreadOutcome};
use common::{Host, ns};

/// So many ms of work at 2 instructions per ns.
fn work(ms: f64) -> String {
    format!("{{compute={}, profile='unit'}}", ms * 2e6)
}

fn of<'a>(outcome: &'a Outcome, name: &str) -> &'a ThreadOutcome {
    outcome.threads.iter().find(|thread| thread.name == name).unwrap()
}

fn periods<'a>(outcome: &'a Outcome, name: &str) -> &'a Periods {
    of(outcome, name).periods.as_ref().unwrap()
}

/// Whether a percentile is a time in ms, or at most 0.8 % more.
fn is_about(told_ns: i64, ms: f64) -> bool {
    let exact_ns = (ms * 1e6) as i64;
    told_ns >= exact_ns && told_ns - exact_ns <= exact_ns.abs() / 128
}

/// `low` sleeps from 0 to 2 ms while `high` has the only core from 1 to 6 ms; it runs from 6 to 7, sleeps to 8, runs.
/// `late` waits for the core from its start on, which is no wake-up.
#[test]
fn latency_is_the_time_from_a_wakeup_to_a_core() {
    let program = format!(
        "[[threads]]\nname='low'\nclass='fifo'\npriority=10\nbody=[{{sleep_us=2000}},{},{{sleep_us=1000}},{}]\n\
         [[threads]]\nname='high'\nclass='fifo'\npriority=20\nstart_us=1000\nbody=[{}]\n\
         [[threads]]\nname='late'\nstart_us=3000\nbody=[{}]",
        work(1.0),
        work(1.0),
        work(5.0),
        work(1.0)
    );
    for policy in ["cfs", "eevdf", "linux"] {
        let outcome = Host::symmetric(1).run(&program, policy);
        let low = &of(&outcome, "low").latency;
        assert_eq!((low.count, low.p50_ns, low.max_ns), (2, 0, ns(4.0)), "{policy}");
        assert_eq!((low.p99_ns, &low.counts), (ns(4.0), &vec![1, 1]), "{policy}");
        assert_eq!(of(&outcome, "late").latency.count, 0, "{policy}");
        assert!(of(&outcome, "late").ready_ns >= ns(4.0), "{policy}");
        assert_eq!((&outcome.apps[0].latency, &outcome.latency), (low, low), "{policy}");
    }
}

/// A thread that is taken off its core, and waits, has not been woken.
#[test]
fn waiting_after_an_interruption_is_no_latency() {
    let hog = |name: &str| format!("[[threads]]\nname='{name}'\nbody=[{}]\n", work(50.0));
    let outcome = Host::symmetric(1).run(&(hog("one") + &hog("two")), "rr");
    assert!(of(&outcome, "one").involuntary > 0);
    assert_eq!(outcome.latency.count, 0);
}

fn frames(mode: &str) -> Outcome {
    let timer = format!("{{timer_us=10000,timer='t',mode='{mode}'}}");
    let works = [2.0, 12.0, 3.0].map(|ms| format!("{timer},{}", work(ms))).join(",");
    let program = format!("[timers.t]\n[[threads]]\nname='a'\nbody=[{works},{timer}]");
    Host::symmetric(1).run(&program, "cfs")
}

/// Expiries at 10 and 20 ms; the second round ends at 32, 2 ms too late. Of the third one, an absolute timer says that
/// it has begun at 30, a relative one that it begins at 32.
#[test]
fn periods_begin_and_are_due_when_their_timer_says() {
    for (mode, response_ms, slack_ms) in [("absolute", 5.0, 5.0), ("relative", 3.0, 7.0)] {
        let outcome = frames(mode);
        let told = periods(&outcome, "a");
        assert_eq!((told.count, told.missed, told.slack_min_ns), (3, 1, -2_000_000), "{mode}");
        assert!(is_about(told.slack_p50_ns, slack_ms), "{mode}: {told:?}");
        assert_eq!((told.response.count, told.response.max_ns), (3, ns(12.0)), "{mode}");
        assert!(is_about(told.response.p50_ns as i64, response_ms), "{mode}: {told:?}");
        // The rounds end at 12, 32 and 35 ms.
        assert_eq!((told.frame.count, told.frame.max_ns), (2, ns(20.0)), "{mode}");
        assert!(is_about(told.frame.p50_ns as i64, 3.0), "{mode}: {told:?}");
        assert_eq!(outcome.apps[0].periods.as_ref(), Some(told), "{mode}");
    }
}

/// 2 ms of each 10 ms are in time. 8 ms with a budget of 5 end in the next period: 3 ms after the deadline at 30 ms.
#[test]
fn a_deadline_thread_misses_its_deadline_if_its_budget_is_too_small() {
    let program = format!(
        "[[threads]]\nname='dl'\nclass='deadline'\nruntime_us=5000\nperiod_us=10000\n\
         body=[{},{{sleep_us=18000}},{},{{sleep_us=1000}}]",
        work(2.0),
        work(8.0)
    );
    let outcome = Host::symmetric(1).run(&program, "cfs");
    let told = periods(&outcome, "dl");
    assert_eq!((told.count, told.missed, told.slack_min_ns), (3, 1, -3_000_000), "{told:?}");
    assert_eq!(told.response.max_ns, ns(13.0));
}

/// What is overdue when a run is stopped is missed, though nobody knows how late it would have been.
#[test]
fn work_that_is_overdue_at_the_end_is_missed() {
    let program = format!(
        "duration_ms=25\n[timers.t]\n[[threads]]\nname='a'\nbody=[{{timer_us=10000,timer='t'}},{}]",
        work(100.0)
    );
    let outcome = Host::symmetric(1).run(&program, "cfs");
    let told = periods(&outcome, "a");
    assert_eq!((told.count, told.missed, told.response.count), (1, 1, 0));
    assert_eq!(told.slack_min_ns, -5_000_000);
}

/// The slowest class comes first, and all time of a thread is in one of them.
#[test]
fn results_name_classes_and_say_how_long_each_was_used() {
    let program = format!("[[threads]]\nname='a'\ncount=3\nbody=[{}]", work(10.0));
    let outcome = Host::unequal(1, 2, 2.0).run(&program, "cfs");
    let names: Vec<&str> = outcome.classes.iter().map(|class| class.name.as_str()).collect();
    assert_eq!(names, ["little", "big"]);
    for (index, class) in outcome.classes.iter().enumerate() {
        let used_ns: u64 = outcome.threads.iter().map(|thread| thread.class_ns[index]).sum();
        assert_eq!(class.busy_ns, used_ns, "{}", class.name);
    }
    for core in &outcome.cores {
        assert_eq!(core.residency.iter().map(|&(_, ns)| ns).sum::<u64>(), core.busy_ns);
    }
}
