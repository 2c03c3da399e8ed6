//! Which threads balancing takes (`detach_tasks`, `can_migrate_task`).

use super::super::stats::{Busiest, Moves, When};
use super::*;

/// Core 1 takes from core 0, whose first thread runs.
fn pulled(rig: &mut Rig, moves: Moves, imbalance: u64) -> Vec<ThreadId> {
    let mut acts = Vec::new();
    let found = Busiest { group: 1, moves, imbalance };
    rig.fair.pull(&rig.sched, 1, 0, 0, When::Busy, found, &mut acts);
    let of = |act: Act| match act {
        Act::Move { thread, .. } => Some(thread),
        _ => None,
    };
    acts.into_iter().filter_map(of).collect()
}

/// Core 0 with so many threads, at 10 ms; the first one runs.
fn crowd(count: usize) -> (Rig, Vec<ThreadId>) {
    let mut rig = Rig::on(V6_18, equal(2));
    let threads = rig.start_all(count, 0);
    assert_eq!(rig.choose(0), Some(threads[0]));
    rig.pass(10 * MS);
    (rig, threads)
}

#[test]
fn load_is_taken_as_far_as_it_fits() {
    // migrate_load: threads of 1024 each. Of 2500, two are taken; the third is heavier than the 452 left.
    let (mut rig, threads) = crowd(5);
    assert_eq!(pulled(&mut rig, Moves::Load, 2500), threads[1..3]);
    // Of 1000 none, unless balancing has failed: 1024 >> 1 = 512.
    let (mut rig, threads) = crowd(5);
    assert_eq!(pulled(&mut rig, Moves::Load, 1000), []);
    rig.fair.domains.of_core[1][0].failures = 1;
    assert_eq!(pulled(&mut rig, Moves::Load, 1000), [threads[1]]);
}

#[test]
fn utilisation_is_taken_as_far_as_it_fits() {
    // migrate_util: `task_util_est`.
    let (mut rig, threads) = crowd(4);
    for (thread, util) in threads[1..].iter().zip([300, 200, 50]) {
        let now_ns = rig.now_ns;
        let pelt = &mut rig.of(*thread).pelt;
        *pelt = averages(util, 1);
        pelt.update(now_ns, crate::Activity::ASLEEP);
        rig.of(*thread).is_attached = false;
    }
    // 0.5^(10 / 33.5) of that is left after 10 ms: about 243, 162 and 40.
    assert_eq!(pulled(&mut rig, Moves::Util, 230), [threads[2], threads[3]]);
}

#[test]
fn threads_are_counted() {
    let (mut rig, threads) = crowd(4);
    assert_eq!(pulled(&mut rig, Moves::Threads, 2), threads[1..3]);
}

#[test]
fn what_was_looked_at_comes_last_the_next_time() {
    // `detach_tasks`: whoever is not taken goes to the other end of `cfs_tasks`, also if it may not move.
    let (mut rig, threads) = crowd(4);
    rig.of(threads[1]).charged_ns = rig.now_ns;
    assert_eq!(pulled(&mut rig, Moves::Threads, 1), [threads[2]]);
    rig.pass(MS);
    assert_eq!(pulled(&mut rig, Moves::Threads, 2), [threads[3], threads[1]]);
}

#[test]
fn sleepers_that_still_pay_move_only_as_load() {
    // `can_migrate_task`: sched_delayed and not migrate_load.
    let delayed = || {
        let (mut rig, threads) = crowd(2);
        rig.sleep(threads[0], 0);
        assert!(rig.of(threads[0]).is_delayed);
        assert_eq!(rig.choose(0), Some(threads[1]));
        rig.pass(MS);
        (rig, threads)
    };
    let (mut rig, _) = delayed();
    pulled(&mut rig, Moves::Threads, 1);
    assert_eq!((rig.counts(0), rig.counts(1)), ((2, 1), (0, 0)));
    let (mut rig, threads) = delayed();
    assert_eq!(pulled(&mut rig, Moves::Load, 2000), [], "its host need not know where it sleeps");
    assert_eq!((rig.counts(0), rig.counts(1)), ((1, 1), (1, 0)));
    assert!(rig.of(threads[0]).is_delayed);
}

#[test]
fn bound_threads_stay_and_slow_balancing_down() {
    // LBF_ALL_PINNED: the interval doubles to MAX_PINNED_INTERVAL, 512 ms.
    let mut rig = Rig::on(V6_18, equal(2));
    let threads = [0, 1, 2].map(|_| rig.add(0, Some(&[0])));
    for thread in threads {
        rig.enqueue(thread, 0, EnqueueKind::Fork);
    }
    rig.choose(0);
    rig.pass(10 * MS);
    rig.fair.settle_core(0);
    for _ in 0..20 {
        rig.fair.balance(&rig.sched, 1, 0, When::Idle, &mut Vec::new());
    }
    assert_eq!(rig.fair.domains.of_core[1][0].interval, 512);
    assert_eq!(rig.counts(0).0, 3);
}

#[test]
fn no_more_than_32_threads_are_looked_at() {
    // `sysctl_sched_nr_migrate`. The running one was stamped last, so 32 that wait are looked at.
    let (mut rig, threads) = crowd(40);
    assert_eq!(pulled(&mut rig, Moves::Threads, 100), threads[1..33]);
}
