//! Migration between queues, stealing, balancing.

use ampsched_model::{CoreId, CoreSet, ThreadId};

use super::host::{Host, MS, rules};
use crate::{Balance, Change, Pick, Prefer, Rules, Steal, StealFrom};

const BALANCE: Balance = Balance {
    period_ns: 4 * MS,
    rotate_period_ns: 64 * MS,
    tolerance_percent: 25,
    within_kind: false,
    min_resident_ns: 0,
    by_preference: false,
};

fn loads(host: &Host) -> Vec<u64> {
    let cores = host.sched.topology().cores();
    cores.map(|core| host.sched.queue(core).load / 1024).collect()
}

#[test]
fn virtual_run_time_moves_relative_to_the_queue() {
    let mut host = Host::new("cfs", &[(0, 2)]);
    // The two queues have come to different virtual times.
    for (core, ran_ns) in [(0, 30 * MS), (1, 500 * MS)] {
        let thread = host.fork_on(core, 1024);
        host.start(core, thread);
        host.advance(ran_ns);
        host.block(core);
    }
    let threads = [0, 0].map(|core| host.fork_on(core, 1024));
    host.start(0, threads[0]);
    host.advance(5 * MS);
    host.requeue(0);
    let floor = |host: &Host, core: usize| host.sched.queue(core.into()).min_vruntime;
    let above = host.vruntime(threads[0]) - floor(&host, 0);
    assert!(above > 0);
    // By balancing, by stealing, and back.
    host.move_to(1, threads[0]);
    assert_eq!(host.vruntime(threads[0]) - floor(&host, 1), above);
    host.start(0, threads[0]);
    assert_eq!(host.vruntime(threads[0]) - floor(&host, 0), above);
}

#[test]
fn an_idle_core_takes_one_from_the_most_loaded_queue() {
    let mut host = Host::new("cfs", &[(1, 2), (0, 2)]);
    for core in [1, 2, 3] {
        host.fork_on(core, 1024);
        host.dispatch(core);
    }
    let near = host.fork_on(1, 1024);
    host.fork_on(2, 1024);
    let far = host.fork_on(3, 4096);
    assert_eq!(host.pick(0), Pick::Run(near), "its own cluster first");
    host.start(0, near);
    host.block(0);
    assert_eq!(host.pick(0), Pick::Run(far));
}

#[test]
fn stealing_respects_affinity_and_preference() {
    let clusters = &[(1, 1), (0, 1)];
    let steal =
        vec![Steal { except: Some(Prefer::Little), ..Steal::any(StealFrom::OtherClusters) }];
    let mut host = Host::with(Rules { steal, ..rules("cfs", &[], clusters) }, clusters);
    host.fork_on(1, 1024);
    host.dispatch(1);
    let threads = [1, 1, 1].map(|core| host.fork_on(core, 1024));
    host.sched.apply(threads[0], &Change::Affinity([CoreId(1)].into_iter().collect()));
    host.sched.apply(threads[1], &Change::Prefer(Prefer::Little));
    assert_eq!(host.pick(0), Pick::Run(threads[2]));
    host.start(0, threads[2]);
    host.block(0);
    assert_eq!(host.pick(0), Pick::Idle { recheck_ns: None });
}

#[test]
fn pulling_respects_affinity_and_preference() {
    let clusters = &[(1, 1), (0, 2)];
    let pull = Steal { except: Some(Prefer::Little), ..Steal::any(StealFrom::RunningOnSlower) };
    let mut host = Host::with(Rules { steal: vec![pull], ..rules("cfs", &[], clusters) }, clusters);
    let threads = [1, 2].map(|core| host.fork_on(core, 1024));
    host.start(1, threads[0]);
    host.start(2, threads[1]);
    assert_eq!(host.pick(0), Pick::Pull(threads[0]));
    host.sched.apply(threads[0], &Change::Prefer(Prefer::Little));
    assert_eq!(host.pick(0), Pick::Pull(threads[1]));
    host.sched.apply(threads[1], &Change::Affinity([CoreId(2)].into_iter().collect()));
    assert_eq!(host.pick(0), Pick::Idle { recheck_ns: None });
}

#[test]
fn a_core_looks_again_when_it_has_idled_long_enough() {
    let clusters = &[(0, 2)];
    let step = |min_idle_ns| Steal { min_idle_ns, ..Steal::any(StealFrom::OwnCluster) };
    let steal = vec![step(5 * MS), step(3 * MS)];
    let mut host = Host::with(Rules { steal, ..rules("cfs", &[], clusters) }, clusters);
    host.fork_on(1, 1024);
    host.dispatch(1);
    let thread = host.fork_on(1, 1024);
    assert_eq!(host.pick(0), Pick::Idle { recheck_ns: Some(3 * MS) });
    host.now_ns = 3 * MS;
    assert_eq!(host.pick(0), Pick::Run(thread));
}

#[test]
fn balancing_evens_loads_out() {
    let mut host = Host::new("cfs", &[(0, 4)]);
    for _ in 0..8 {
        host.fork_on(0, 1024);
    }
    host.dispatch(0);
    host.sched.balance(BALANCE, MS);
    // As many moves as cores at a time.
    assert_eq!(loads(&host), [4, 2, 1, 1]);
    host.sched.balance(BALANCE, MS);
    assert_eq!(loads(&host), [2, 2, 2, 2]);
    assert!(host.sched.balance(BALANCE, MS).is_empty());
}

#[test]
fn balancing_stops_where_a_move_would_only_swap_the_imbalance() {
    let mut host = Host::new("cfs", &[(0, 2)]);
    for core in [0, 0, 1] {
        host.fork_on(core, 1024);
    }
    assert!(host.sched.balance(BALANCE, MS).is_empty());
    host.fork_on(0, 512);
    assert_eq!(host.sched.balance(BALANCE, MS).len(), 1);
}

#[test]
fn balancing_tolerates_a_quarter() {
    let imbalance = |light: u32| {
        let mut host = Host::new("cfs", &[(0, 2)]);
        for core in [0, 0, 0, 0, 1, 1, 1, 1] {
            host.fork_on(core, 1024);
        }
        // Core 0 has 4096 + 4 x light, core 1 has 4096.
        for _ in 0..4 {
            host.fork_on(0, light);
        }
        host.sched.balance(BALANCE, MS).len()
    };
    assert_eq!(imbalance(250), 0);
    assert!(imbalance(260) > 0);
}

#[test]
fn kinds_can_be_balanced_each_by_itself() {
    let mut host = Host::new("cfs", &[(1, 2), (0, 2)]);
    for core in [0, 0, 0, 0, 1, 1, 2, 2] {
        host.fork_on(core, 1024);
    }
    host.sched.balance(Balance { within_kind: true, ..BALANCE }, MS);
    assert_eq!(loads(&host), [3, 3, 1, 1]);
    assert!(!host.sched.balance(BALANCE, MS).is_empty(), "together they are not balanced");
}

#[test]
fn threads_that_prefer_the_other_kind_go_there_first() {
    for (by_preference, moved) in [(false, [1, 2]), (true, [2, 3])] {
        let mut host = Host::new("cfs", &[(1, 1), (0, 1)]);
        let threads = [1; 4].map(|core| host.fork_on(core, 1024));
        host.start(1, threads[0]);
        let preferences = [Prefer::Any, Prefer::Little, Prefer::Any, Prefer::Big];
        for (&thread, preference) in threads.iter().zip(preferences) {
            host.sched.apply(thread, &Change::Prefer(preference));
        }
        host.sched.balance(Balance { by_preference, ..BALANCE }, MS);
        let on_big: Vec<usize> = (0..4).filter(|&i| host.core_of(threads[i]) == 0).collect();
        assert_eq!(on_big, moved, "{by_preference}");
    }
    // Among cores of one kind preferences do not matter; the last one may have to go against its own.
    let mut host = Host::new("cfs", &[(1, 2)]);
    let threads = [0; 3].map(|core| host.fork_on(core, 1024));
    host.start(0, threads[0]);
    host.sched.apply(threads[2], &Change::Prefer(Prefer::Big));
    host.sched.balance(Balance { by_preference: true, ..BALANCE }, MS);
    assert_eq!(host.core_of(threads[1]), 1);
}

#[test]
fn balancing_leaves_the_running_and_the_bound_alone() {
    let mut host = Host::new("cfs", &[(0, 2)]);
    let threads = [0, 0, 0].map(|core| host.fork_on(core, 1024));
    host.start(0, threads[0]);
    let here: CoreSet = [CoreId(0)].into_iter().collect();
    host.sched.apply(threads[1], &Change::Affinity(here));
    assert_eq!(host.sched.balance(BALANCE, MS), [CoreId(1)]);
    let places: Vec<usize> = threads.iter().map(|&thread| host.core_of(thread)).collect();
    assert_eq!(places, [0, 0, 1]);
}

#[test]
fn a_bound_thread_does_not_keep_others_from_being_balanced() {
    let mut host = Host::new("cfs", &[(0, 3)]);
    let bound: Vec<ThreadId> = (0..4).map(|_| host.fork_on(0, 1024)).collect();
    for &thread in &bound {
        host.sched.apply(thread, &Change::Affinity([CoreId(0)].into_iter().collect()));
    }
    for _ in 0..3 {
        host.fork_on(1, 1024);
    }
    host.sched.balance(BALANCE, MS);
    assert_eq!(loads(&host), [4, 2, 1]);
}

#[test]
fn an_imbalance_of_one_thread_is_passed_on_once_per_rotation() {
    let mut host = Host::new("cfs", &[(0, 2)]);
    for core in [0, 0, 1] {
        host.fork_on(core, 1024);
    }
    host.dispatch(0);
    host.dispatch(1);
    assert!(host.sched.balance(BALANCE, 60 * MS).is_empty());
    assert_eq!(host.sched.balance(BALANCE, 64 * MS), [CoreId(1)]);
    assert_eq!(loads(&host), [1, 2]);
    // The newcomer waits and is not sent back; once it runs, the other one's turn has come.
    assert!(host.sched.balance(BALANCE, 128 * MS).is_empty());
    host.now_ns = 128 * MS;
    let resident = host.sched.core(CoreId(1)).running.expect("core 1 runs a thread");
    let newcomer = host.sched.queued(CoreId(1))[0];
    host.requeue(1);
    host.start(1, newcomer);
    assert_eq!(host.sched.balance(BALANCE, 132 * MS), [CoreId(0)]);
    assert_eq!(host.core_of(resident), 0);
}

/// Linux moves nothing if `nr_running` is at most 1.
#[test]
fn the_only_thread_of_a_core_that_is_about_to_run_it_stays() {
    for policy in ["cfs", "eevdf", "colab", "wash"] {
        let mut host = Host::new(policy, &[(1, 2), (0, 2)]);
        let thread = host.fork_on(0, 1024);
        assert_eq!(host.sched.balance(BALANCE, 64 * MS), [], "{policy}");
        for other in [1, 2, 3] {
            assert_eq!(host.pick(other), Pick::Idle { recheck_ns: None }, "{policy}");
        }
        assert_eq!(host.pick(0), Pick::Run(thread), "{policy}");
    }
}
