//! Runs that are stopped: what threads wait for at that moment is accounted for as well.

mod common;

use ampsched_policy::REGISTRY;
use ampsched_sim::{Outcome, ThreadOutcome};
use common::{Host, ns};

const PROGRAM: &str = "[semaphores.s]\n\
    [[threads]]\nname='taker'\nbody=[{sem_wait='s'}, {run_us=1e3,profile='unit'}]\n\
    [[threads]]\nname='hog'\ncount=2\nbody=[{run_us=1e5,profile='unit'}, {sem_post='s'}]\n";

fn stopped_after(ms: f64, mut host: Host) -> Host {
    host.options.until_ns = Some(ns(ms));
    host
}

/// Running, ready, longest ready, blocked.
fn times(thread: &ThreadOutcome) -> [u64; 4] {
    let run_ns = thread.run_ns();
    [run_ns, thread.ready_ns, thread.ready_ns_max, thread.blocked_ns]
}

fn assert_adds_up(outcome: &Outcome) {
    for thread in &outcome.threads {
        let [run_ns, ready_ns, longest_ns, blocked_ns] = times(thread);
        let lived_ns = thread.end_ns - thread.start_ns;
        assert_eq!(
            run_ns + ready_ns + blocked_ns,
            lived_ns,
            "{} under {}",
            thread.name,
            outcome.policy
        );
        assert!(longest_ns <= ready_ns);
    }
}

#[test]
fn low_waits_that_are_open_when_a_run_is_stopped_are_counted() {
    let outcome = stopped_after(10.0, Host::symmetric(1)).run(PROGRAM, "rr:slice_ms=100");
    let all = ns(10.0);
    let [taker, first, second] = &outcome.threads[..] else { panic!("three threads") };
    assert_eq!(times(taker), [0, 0, 0, all]);
    assert_eq!(times(first), [all, 0, 0, 0]);
    assert_eq!(times(second), [0, all, all, 0]);
}

#[test]
fn low_the_longest_wait_may_be_the_one_that_is_open() {
    let outcome = stopped_after(10.0, Host::symmetric(1)).run(PROGRAM, "rr:slice_ms=4");
    let [_, first, second] = &outcome.threads[..] else { panic!("three threads") };
    assert_eq!(times(first), [ns(6.0), ns(4.0), ns(4.0), 0]);
    assert_eq!(times(second), [ns(4.0), ns(6.0), ns(4.0), 0]);
}

#[test]
fn low_times_of_stopped_runs_add_up_under_every_policy() {
    for info in REGISTRY {
        let host = stopped_after(33.3, Host::unequal(1, 2, 2.0));
        assert_adds_up(&host.run_mix(&[PROGRAM, PROGRAM], info.name));
    }
}

#[test]
fn low_who_is_not_waited_for_any_more_has_its_wait_counted() {
    let host = Host::symmetric(1).with_repetitions(2);
    let short = "[[threads]]\nname='a'\ncount=2\nbody=[{run_us=1e3,profile='unit'}]";
    let long = "[[threads]]\nname='b'\nbody=[{run_us=5e3,profile='unit'}]";
    assert_adds_up(&host.run_mix(&[short, long], "rr:slice_ms=3"));
}
