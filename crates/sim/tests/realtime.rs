//! Classes above the policy's: who runs when, and what the fair threads are left.

mod common;

use ampsched_model::{ClusterId, CoreId, ThreadId};
use ampsched_policy::{REGISTRY, Reason, build_policy};
use ampsched_sim::{
    Decision, Outcome, SimError, ThreadOutcome, Trace, TraceThread, TurnEnd, simulate_with,
};
use common::{Host, ns, workload};

/// So many ms of work at 2 instructions per ns.
fn work(ms: f64) -> String {
    format!("{{compute={}, profile='unit'}}", ms * 2e6)
}

fn thread(name: &str, keys: &str, body: &str) -> String {
    format!("[[threads]]\nname='{name}'\n{keys}\nbody=[{body}]\n")
}

fn hog(name: &str, keys: &str, ms: f64) -> String {
    thread(name, keys, &work(ms))
}

fn of<'a>(outcome: &'a Outcome, name: &str) -> &'a ThreadOutcome {
    outcome.threads.iter().find(|thread| thread.name == name).unwrap()
}

fn ends_ms(outcome: &Outcome, names: &[&str]) -> Vec<f64> {
    names.iter().map(|name| of(outcome, name).end_ns as f64 / 1e6).collect()
}

fn run(cores: usize, program: &str, policy: &str) -> Outcome {
    Host::symmetric(cores).run(program, policy)
}

fn error(cores: usize, program: &str) -> String {
    Host::symmetric(cores).try_run(program, "cfs").unwrap_err().to_string()
}

#[test]
fn the_highest_priority_runs_until_it_waits() {
    let program = hog("low", "class='fifo'\npriority=10", 5.0)
        + &hog("high", "class='fifo'\npriority=20\nstart_us=2000", 5.0)
        + &hog("fair", "", 5.0)
        + &hog("equal", "class='fifo'\npriority=10", 1.0);
    for policy in ["cfs", "eevdf", "rr"] {
        let outcome = run(1, &program, policy);
        // 2 ms of low, all of high, the rest of low, which stays ahead of its equal.
        let ends = ends_ms(&outcome, &["high", "low", "equal", "fair"]);
        assert_eq!(ends, [7.0, 10.0, 11.0, 16.0], "{policy}");
        assert_eq!(of(&outcome, "low").involuntary, 1);
    }
}

#[test]
fn round_robin_takes_turns_of_100_ms_within_a_priority() {
    let keys = "class='rr'\npriority=5";
    let program = hog("one", keys, 250.0) + &hog("two", keys, 150.0);
    let outcome = run(1, &program, "cfs");
    assert_eq!(ends_ms(&outcome, &["one", "two"]), [400.0, 350.0]);
    assert_eq!(of(&outcome, "one").switches, 3);
}

/// sched(7): a preempted round-robin thread completes the unexpired portion of its quantum.
#[test]
fn an_interrupted_quantum_is_completed() {
    let keys = "class='rr'\npriority=5";
    let program = hog("one", keys, 120.0)
        + &hog("two", keys, 120.0)
        + &hog("high", "class='fifo'\npriority=6\nstart_us=30000", 10.0);
    let outcome = run(1, &program, "cfs");
    // one to 30, high to 40, one to 110, two to 210, one to 230, two to 250.
    assert_eq!(ends_ms(&outcome, &["high", "one", "two"]), [40.0, 230.0, 250.0]);
}

#[test]
fn the_earliest_deadline_comes_first_and_before_all_priorities() {
    let late = "class='deadline'\nruntime_us=10000\nperiod_us=100000";
    let soon = "class='deadline'\nruntime_us=10000\nperiod_us=50000\nstart_us=2000";
    let program = hog("late", late, 5.0)
        + &hog("soon", soon, 4.0)
        + &hog("fifo", "class='fifo'\npriority=99", 3.0)
        + &hog("fair", "", 2.0);
    let outcome = run(1, &program, "eevdf");
    assert_eq!(ends_ms(&outcome, &["soon", "late", "fifo", "fair"]), [6.0, 9.0, 12.0, 14.0]);
}

#[test]
fn a_deadline_thread_gets_its_runtime_in_each_period() {
    let program = hog("dl", "class='deadline'\nruntime_us=10000\nperiod_us=40000", 35.0)
        + &hog("fair", "", 100.0);
    for policy in ["cfs", "colab"] {
        let outcome = run(1, &program, policy);
        // 10 ms at 0, 40, 80, and 5 ms at 120.
        assert_eq!(ends_ms(&outcome, &["dl", "fair"]), [125.0, 135.0], "{policy}");
        assert_eq!(of(&outcome, "dl").involuntary, 3);
    }
}

/// The budget is time of the fastest core: on one of half its speed it lasts twice as long.
#[test]
fn budgets_last_longer_on_little_cores() {
    let keys = "class='deadline'\nruntime_us=10000\nperiod_us=40000";
    let mut host = Host::unequal(1, 1, 2.0);
    host.options.limit_ns = ns(1000.0);
    // The big core belongs to a thread with an earlier deadline.
    let first = "class='deadline'\nruntime_us=39000\nperiod_us=39000";
    let program = hog("first", first, 200.0) + &hog("dl", keys, 10.0);
    let outcome = host.run(&program, "cfs");
    // 10 ms of work take 20 ms there, which is the budget of 10 ms.
    assert_eq!(ends_ms(&outcome, &["dl"]), [20.0]);
    assert_eq!(of(&outcome, "dl").little_ns(), ns(20.0));
}

#[test]
fn the_most_urgent_threads_run_on_the_cores_that_they_may_use() {
    let fifo = |priority| format!("class='fifo'\npriority={priority}");
    let program = hog("a", &fifo(30), 10.0)
        + &hog("b", &fifo(20), 10.0)
        + &hog("c", &format!("{}\ncores=[1]\nstart_us=1000", fifo(25)), 4.0)
        + &hog("fair", "", 10.0);
    let outcome = run(2, &program, "cfs");
    // c takes b's place for 4 ms.
    assert_eq!(ends_ms(&outcome, &["c", "a", "b"]), [5.0, 10.0, 14.0]);
    assert_eq!(of(&outcome, "fair").end_ns, ns(20.0));
}

/// A thread that loses its core to a more urgent one goes to where somebody less urgent runs.
#[test]
fn who_is_interrupted_is_pushed_on() {
    let program = hog("first", "class='fifo'\npriority=20", 10.0)
        + &hog("fair", "start_us=500", 10.0)
        + &hog("second", "class='fifo'\npriority=30\ncores=[0]\nstart_us=1000", 10.0);
    let outcome = run(2, &program, "cfs");
    assert_eq!(ends_ms(&outcome, &["first", "second", "fair"]), [10.0, 11.0, 19.5]);
    assert_eq!(of(&outcome, "first").migrations, 1);
}

/// A thread that asks for a whole core (the default of real-time threads) goes to a big one, even from a fair thread.
#[test]
fn real_time_threads_prefer_cores_that_suit_them() {
    let host = Host::unequal(1, 1, 2.0);
    let fair = hog("fair", "cores=[0]", 10.0);
    let rt = "class='fifo'\npriority=1\nstart_us=1000";
    let outcome = host.run(&(fair.clone() + &hog("rt", rt, 4.0)), "cfs");
    assert_eq!(ends_ms(&outcome, &["rt", "fair"]), [5.0, 14.0]);
    let modest = host.run(&(fair + &hog("rt", &format!("{rt}\nuclamp_min=0"), 4.0)), "cfs");
    assert_eq!(ends_ms(&modest, &["rt", "fair"]), [9.0, 10.0]);
}

#[test]
fn a_fair_thread_goes_to_the_core_that_is_left() {
    let program = hog("rt", "class='fifo'\npriority=1\nstart_us=1000", 20.0)
        + &thread("fair", "count=2", &work(10.0));
    for info in REGISTRY {
        if info.name == "pinned" {
            continue;
        }
        let outcome = run(2, &program, info.name);
        assert_eq!(of(&outcome, "rt").end_ns, ns(21.0), "{}", info.name);
        assert_eq!(of(&outcome, "rt").ready_ns, 0, "{}", info.name);
    }
    let outcome = run(2, &program, "cfs");
    assert_eq!(outcome.makespan_ns, ns(21.0));
}

/// 50 ms of each second, at the last moment.
#[test]
fn fair_threads_get_a_twentieth_beside_a_real_time_hog() {
    let mut host = Host::symmetric(1);
    host.options.until_ns = Some(ns(10_000.0));
    let program =
        thread(
            "rt",
            "class='fifo'\npriority=50",
            "{loop='forever', body=[{occupy_us=5000, profile='unit'}]}",
        ) + &thread("fair", "", "{loop='forever', body=[{occupy_us=5000, profile='unit'}]}");
    for policy in ["cfs", "eevdf"] {
        let outcome = host.run(&program, policy);
        assert_eq!(of(&outcome, "fair").big_ns(), ns(500.0), "{policy}");
        assert_eq!(of(&outcome, "fair").ready_ns_max, ns(950.0), "{policy}");
    }
}

#[test]
fn a_server_is_not_needed_where_fair_threads_run_anyway() {
    let mut host = Host::symmetric(1);
    host.options.until_ns = Some(ns(5_000.0));
    let body = "{loop='forever', body=[{occupy_us=8000, profile='unit'}, {sleep_us=2000}]}";
    let program = thread("rt", "class='fifo'\npriority=50", body)
        + &thread("fair", "", "{loop='forever', body=[{occupy_us=5000, profile='unit'}]}");
    let outcome = host.run(&program, "cfs");
    assert_eq!(of(&outcome, "fair").big_ns(), ns(1000.0));
    assert_eq!(of(&outcome, "rt").ready_ns, 0);
}

#[test]
fn threads_change_their_class() {
    let body = format!(
        "{}, {{set_class='fifo', priority=5}}, {}, {{set_class='fair'}}, {}",
        work(2.0),
        work(6.0),
        work(2.0)
    );
    let program = thread("one", "", &body) + &hog("other", "", 10.0);
    for policy in ["cfs", "eevdf", "colab", "wash", "eas"] {
        let outcome = run(1, &program, policy);
        let one = of(&outcome, "one");
        assert_eq!(one.big_ns(), ns(10.0), "{policy}");
        assert_eq!(outcome.makespan_ns, ns(20.0), "{policy}");
    }
}

#[test]
fn a_new_thread_may_be_above_first_and_fair_later() {
    let body = format!("{}, {{set_class='batch'}}, {}", work(3.0), work(3.0));
    let program = thread("one", "class='rr'\npriority=1", &body) + &hog("other", "", 9.0);
    for info in REGISTRY {
        let outcome = run(2, &program, info.name);
        assert_eq!(of(&outcome, "one").instructions, 12_000_000, "{}", info.name);
    }
}

#[test]
fn a_deadline_thread_that_yields_waits_for_its_next_period() {
    let body = format!("{}, {{yield=true}}, {}", work(3.0), work(3.0));
    let program = thread("dl", "class='deadline'\nruntime_us=10000\nperiod_us=40000", &body);
    assert_eq!(ends_ms(&run(1, &program, "cfs"), &["dl"]), [43.0]);
}

#[test]
fn admission_is_that_of_linux() {
    let keys = |runtime: u32| format!("class='deadline'\nruntime_us={runtime}\nperiod_us=100000");
    assert!(Host::symmetric(1).try_run(&hog("dl", &keys(95_000), 1.0), "cfs").is_ok());
    let refused = error(1, &hog("dl", &keys(95_001), 1.0));
    assert!(
        refused.starts_with("thread p/dl: deadline threads would reserve 0.950 cores"),
        "{refused}"
    );
    assert!(Host::symmetric(2).try_run(&hog("dl", &keys(100_000), 1.0), "cfs").is_ok());
    let bound = error(2, &hog("dl", &format!("{}\ncores=[0]", keys(1000)), 1.0));
    assert!(bound.contains("has to be allowed all cores"), "{bound}");
    let body = format!("{{set_cores=[0]}}, {}", work(1.0));
    assert!(matches!(
        Host::symmetric(2).try_run(&thread("dl", &keys(1000), &body), "cfs"),
        Err(SimError::BoundDeadline { .. })
    ));
    // What has ended is free again.
    let two = hog("dl", &keys(60_000), 10.0)
        + &hog("dl2", &format!("{}\nstart_us=20000", keys(60_000)), 10.0);
    assert!(Host::symmetric(1).try_run(&two, "cfs").is_ok());
}

#[test]
fn locks_of_real_time_threads_are_those_of_others() {
    let locked = |ms| format!("{{lock='m'}}, {}, {{unlock='m'}}", work(ms));
    let program = String::from("[mutexes.m]\n")
        + &thread("low", "", &locked(10.0))
        + &thread("high", "class='fifo'\npriority=9\nstart_us=1000", &locked(5.0))
        + &hog("mid", "class='fifo'\npriority=5\nstart_us=2000", 50.0);
    let outcome = run(1, &program, "cfs");
    // Priority inversion: high waits for low, which waits for mid.
    assert_eq!(ends_ms(&outcome, &["mid", "high"]), [52.0, 65.0]);
}

#[test]
fn what_a_policy_does_not_honour_is_said() {
    let program = String::from("[groups.'/a']\nweight=50\n")
        + &hog("one", "slice_us=5000\ngroup='/a'", 1.0)
        + &thread("two", "count=2\nuclamp_max=100\nclass='idle'", &work(1.0));
    let caveat = |policy| run(2, &program, policy).caveat.unwrap_or_default();
    let all = "the policy does not honour what threads ask for: a slice of their own (1 thread), \
               utilisation clamps (2 threads), a task group (1 thread)";
    assert_eq!(caveat("cfs"), all);
    assert_eq!(
        caveat("eevdf"),
        "the policy does not honour what threads ask for: utilisation clamps (2 threads), a task group (1 thread)"
    );
    assert!(caveat("rr").contains("class batch or idle (2 threads)"));
    assert_eq!(run(2, &hog("fair", "", 1.0), "cfs").caveat, None);
    let two = [hog("p", "", 1.0) + "[groups.'/a']\nweight=1\n", program.clone()];
    let mix = Host::symmetric(1).try_run_mix(&[&two[0], &two[1]], "cfs");
    assert!(matches!(mix, Err(SimError::GroupStatedTwice { .. })));
}

#[test]
fn idle_threads_weigh_3_and_interrupt_nobody() {
    let body = "{loop='forever', body=[{occupy_us=500, profile='unit'}]}";
    let mut host = Host::symmetric(1);
    host.options.until_ns = Some(ns(20_000.0));
    let program = thread("idle", "class='idle'\nnice=-20", body) + &thread("fair", "", body);
    let outcome = host.run(&program, "eevdf");
    let share = of(&outcome, "idle").big_ns() as f64 / 20e9;
    assert!((share - 3.0 / 1027.0).abs() < 0.002, "{share}");
}

#[test]
fn a_thread_that_becomes_idle_weighs_3_from_then_on() {
    let body = "{set_class='idle'}, {loop='forever', body=[{occupy_us=500, profile='unit'}]}";
    for policy in ["eevdf", "linux"] {
        let mut host = Host::symmetric(1);
        host.options.until_ns = Some(ns(20_000.0));
        let forever = "{loop='forever', body=[{occupy_us=500, profile='unit'}]}";
        let outcome = host.run(&(thread("idle", "", body) + &thread("fair", "", forever)), policy);
        let share = of(&outcome, "idle").big_ns() as f64 / 20e9;
        assert!((share - 3.0 / 1027.0).abs() < 0.002, "{policy}: {share}");
    }
}

#[test]
fn slices_of_threads_are_requests_under_eevdf() {
    let hogs = |keys: &str| hog("one", keys, 100.0) + &hog("two", keys, 100.0);
    let switches = |keys: &str| of(&run(1, &hogs(keys), "eevdf"), "one").switches;
    let (usual, long) = (switches(""), switches("slice_us=20000"));
    assert!(long <= 6 && usual > 3 * long, "{usual} {long}");
}

/// What a trace is told of why turns of one thread begin and end.
#[derive(Default)]
struct TurnReasons {
    fair: Option<ThreadId>,
    reasons: Vec<String>,
}

impl Trace for TurnReasons {
    fn thread(&mut self, thread: TraceThread) {
        if thread.name == "fair" {
            self.fair = Some(thread.id);
        }
    }

    fn run(&mut self, _: CoreId, thread: ThreadId, why: Option<&Reason>, _: u64) {
        if self.fair != Some(thread) {
            self.reasons.push(format!("runs: {}", why.map_or("", |why| why.because)));
        }
    }

    fn stop(&mut self, _: CoreId, thread: ThreadId, end: TurnEnd, _: u64) {
        let who = if self.fair == Some(thread) { "fair" } else { "above" };
        self.reasons.push(format!("{who} stops: {}", end.why.map_or("", |why| why.because)));
    }

    fn wake(&mut self, _: Option<ThreadId>, _: ThreadId, _: Option<CoreId>, _: u64) {}

    fn decided(&mut self, _: ThreadId, _: Decision, _: Option<&Reason>, _: u64) {}

    fn frequency(&mut self, _: ClusterId, _: u32, _: u64) {}

    fn queue_len(&mut self, _: CoreId, _: usize, _: u64) {}
}

#[test]
fn a_trace_says_why_threads_of_classes_above_run() {
    let program = hog("fair", "", 5.0) + &hog("rt", "class='fifo'\npriority=2\nstart_us=1000", 2.0);
    let mut seen = TurnReasons::default();
    let host = Host::symmetric(1);
    let policy = build_policy("cfs", &[]).unwrap();
    let workload = workload(&[&program]);
    simulate_with(&host.machine, &workload, "cfs", policy, &host.options, Some(&mut seen)).unwrap();
    let expected = [
        "fair stops: a thread of a class above the policy's takes the core",
        "runs: the most urgent thread of the classes above the policy's",
        "above stops: it has ended",
        "fair stops: it has ended",
    ];
    assert_eq!(seen.reasons, expected);
}
