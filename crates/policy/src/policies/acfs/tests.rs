use ampsched_model::{AppId, ThreadId};

use crate::testing::{PolicyHost, build};
use crate::{Change, EnqueueKind, RunState};

/// Prop-SP's Table 1: workloads and the parts of time on fast cores with which all are slowed down
/// alike, by SF / (1 + F (SF - 1)), or as nearly as can be.
const ALIKE: [([f64; 4], [f64; 4]); 4] = [
    ([3.4, 3.4, 1.2, 1.2], [0.809, 0.809, 0.191, 0.191]),
    ([3.4, 3.4, 2.3, 2.3], [0.555, 0.555, 0.445, 0.445]),
    ([2.5, 2.1, 1.6, 1.2], [0.728, 0.688, 0.564, 0.020]),
    ([2.9, 2.5, 2.1, 1.2], [0.701, 0.673, 0.626, 0.000]),
];

fn host(cores: (usize, usize), speedups: &[f64]) -> (PolicyHost, Vec<ThreadId>) {
    let mut host = PolicyHost::new(&[(1, cores.0), (0, cores.1)], build("acfs", &[]));
    let threads = host.add_programs(speedups);
    (host, threads)
}

fn run(host: &mut PolicyHost, epochs: usize) {
    for _ in 0..epochs {
        host.run_epoch();
    }
}

#[track_caller]
fn check_shares(host: &PolicyHost, threads: &[ThreadId], expected: &[f64]) {
    for (share, expected) in host.fast_shares(threads).into_iter().zip(expected) {
        assert!((share - expected).abs() < 0.01, "{share} {expected}");
    }
}

#[test]
fn all_are_slowed_down_alike() {
    for (speedups, expected) in ALIKE {
        let (mut host, threads) = host((2, 2), &speedups);
        run(&mut host, 1000);
        check_shares(&host, &threads, &expected);
    }
}

#[test]
fn twice_the_weight_is_twice_the_progress() {
    let (mut host, threads) = host((1, 1), &[2.0, 2.0]);
    host.sched.apply(threads[0], &Change::Weight(2048));
    run(&mut host, 1000);
    // All of the fast core makes 1 and 0.5.
    check_shares(&host, &threads, &[1.0, 0.0]);
}

#[test]
fn small_differences_are_left_alone() {
    let (mut host, _) = host((1, 1), &[2.0, 2.0]);
    // The gap grows by 5 ms per tick: at the fifth it is more than 20 ms.
    assert_eq!([0; 6].map(|_| host.run_epoch()), [2, 0, 0, 0, 2, 0]);
}

#[test]
fn nobody_is_owed_the_time_before_it_came() {
    let (mut host, mut threads) = host((1, 2), &[2.0, 2.0]);
    run(&mut host, 1000);
    threads.push(host.add_to(AppId(2), Some(2.0)));
    let before = host.fast_shares(&threads);
    run(&mut host, 1000);
    let after = host.fast_shares(&threads);
    // The fast core for a third of the 10 s that they are three.
    for (before, after) in before.iter().zip(&after) {
        let part = 2.0 * after - before;
        assert!((part - 0.333).abs() < 0.02, "{part}");
    }
}

#[test]
fn who_was_blocked_is_owed_little() {
    let (mut host, threads) = host((1, 2), &[2.0, 2.0, 2.0]);
    run(&mut host, 9);
    let core = host.sched.thread(threads[2]).core;
    host.sched.stop(core, RunState::Blocked, host.now_ns);
    run(&mut host, 1000);
    host.sched.enqueue(threads[2], core, EnqueueKind::Wake, host.now_ns);
    host.run_epoch();
    host.run_epoch();
    assert_eq!(host.on_fast(), threads[2..], "soon on the fast core");
    run(&mut host, 15);
    assert_ne!(host.on_fast(), threads[2..], "but not for the 10 s that it was away");
}

#[test]
fn unknown_threads_take_turns() {
    let mut host = PolicyHost::new(&[(1, 1), (0, 2)], build("acfs", &[]));
    let threads = [host.add(None), host.add(None), host.add(None)];
    run(&mut host, 1000);
    check_shares(&host, &threads, &[0.333; 3]);
}
