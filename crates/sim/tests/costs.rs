//! What ticks, wake-ups and slow cores cost, where a machine says so.

mod common;

use ampsched_model::Costs;
use common::{Host, ns};

/// Two instructions per ns at 2000 MHz: 10 ms.
const HOG: &str = "[[threads]]\nname='hog'\nbody=[{compute=20e6,profile='unit'}]";
const TWO_HOGS: &str = "[[threads]]\nname='hog'\ncount=2\nbody=[{compute=20e6,profile='unit'}]";
/// One thread lets the other go ten times, each time after 1 ms of work.
const TURNS: &str = "[semaphores.ready]\n\
    [[threads]]\nname='one'\nbody=[{loop=10,body=[{compute=2e6,profile='unit'},{sem_post='ready'}]}]\n\
    [[threads]]\nname='other'\nbody=[{loop=10,body=[{sem_wait='ready'}]}]";

fn turnaround_ns(host: &Host, program: &str, policy: &str) -> u64 {
    host.try_run(program, policy).unwrap_or_else(|error| panic!("{error}")).apps[0].turnaround_ns
}

#[test]
fn turns_end_at_ticks() {
    let mut host = Host::symmetric(1);
    // Slices of 3 ms under CFS: the first needs three of them and 1 ms, after three of the other.
    let exact = host.try_run(TWO_HOGS, "cfs").unwrap();
    host.machine.costs.tick_ns = Some(4_000_000);
    let ticking = host.try_run(TWO_HOGS, "cfs").unwrap();
    let first_ns = |outcome: &ampsched_sim::Outcome| {
        outcome.threads.iter().map(|thread| thread.end_ns).min().unwrap()
    };
    assert_eq!(first_ns(&exact), ns(19.0));
    // With turns of 4 ms: 2 of them, and 2 ms after two of the other.
    assert_eq!(first_ns(&ticking), ns(18.0));
}

#[test]
fn a_tick_takes_its_share_of_a_core() {
    let mut host = Host::symmetric(1);
    host.machine.costs =
        Costs { tick_ns: Some(1_000_000), tick_cost_ns: 100_000, ..Costs::default() };
    let took_ns = turnaround_ns(&host, HOG, "cfs");
    assert!(took_ns.abs_diff(ns(10.0 / 0.9)) < 10, "{took_ns}");
}

#[test]
fn waking_takes_time_of_the_waker_before_its_next_step() {
    let mut host = Host::symmetric(2);
    assert_eq!(turnaround_ns(&host, TURNS, "cfs"), ns(10.0));
    host.machine.costs.wake_ns = 50_000;
    let outcome = host.try_run(TURNS, "cfs").unwrap();
    // The last is woken when the waker has ended its work, and costs it time, too.
    assert_eq!(outcome.threads[0].end_ns, ns(10.5));
    assert_eq!(outcome.threads[1].end_ns, ns(10.45));
}

#[test]
fn a_slow_core_wakes_up_later() {
    let mut host = Host::unequal(1, 1, 2.0);
    host.machine.costs.wakeup_latency_ns = 1_000;
    host.machine.clusters[1].costs = Some(Costs { wakeup_latency_ns: 9_000, ..Costs::default() });
    let sleeper = |core: usize| {
        format!(
            "[[threads]]\nname='s'\ncores=[{core}]\nbody=[{{sleep_us=1000}},{{compute=20e6,profile='unit'}}]"
        )
    };
    // It begins, too.
    assert_eq!(turnaround_ns(&host, &sleeper(0), "cfs"), ns(11.0) + 2 * 1_000);
    assert_eq!(turnaround_ns(&host, &sleeper(1), "cfs"), ns(21.0) + 2 * 9_000);
}

#[test]
fn a_cluster_has_costs_of_its_own() {
    let mut host = Host::unequal(1, 1, 2.0);
    host.machine.costs.context_switch_ns = 1_000;
    host.machine.clusters[1].costs = Some(Costs { context_switch_ns: 7_000, ..Costs::default() });
    let pinned = |core: usize| HOG.replace("body", &format!("cores=[{core}]\nbody"));
    assert_eq!(turnaround_ns(&host, &pinned(0), "cfs"), ns(10.0) + 1_000);
    assert_eq!(turnaround_ns(&host, &pinned(1), "cfs"), ns(20.0) + 7_000);
    assert_eq!(host.machine.dearest_switch_ns(), 7_000);
}

#[test]
fn starting_threads_takes_time_of_the_parent() {
    let program = "[[threads]]\nname='main'\nbody=[{fork='child',times=3},{join=true}]\n\
        [[threads]]\nname='child'\ncount=0\nbody=[{compute=2e6,profile='unit'}]";
    let mut host = Host::symmetric(4);
    host.machine.costs.fork_ns = 100_000;
    let outcome = host.try_run(program, "cfs").unwrap();
    let ends_ns: Vec<u64> = outcome.threads[1..].iter().map(|thread| thread.end_ns).collect();
    assert_eq!(ends_ns, [ns(1.0), ns(1.1), ns(1.2)]);
}
