use ampsched_model::{AppId, ThreadId};

use crate::testing::{PolicyHost, build, topology};
use crate::{Change, Factor, FactorKind, Prefer, Slice, StealFrom};

const DEMAND: f64 = 1.0;
const GAIN: f64 = 2.0;
const TURNS: f64 = 3.0;
const ROAMING: f64 = 4.0;
const PERIODS: f64 = 5.0;
const PULL: f64 = 6.0;

/// Programs, each with a number of threads of a speed-up, on fast and slow cores.
fn host(
    cores: (usize, usize),
    programs: &[(usize, f64)],
    without: f64,
) -> (PolicyHost, Vec<ThreadId>) {
    let policy = build("abreast", &[("without", without)]);
    let mut host = PolicyHost::new(&[(1, cores.0), (0, cores.1)], policy);
    let mut threads = Vec::new();
    for (app, &(count, speedup)) in (0..).zip(programs) {
        threads.extend((0..count).map(|_| host.add_to(AppId(app), Some(speedup))));
    }
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
        assert!((share - expected).abs() < 0.025, "{share} {expected}");
    }
}

#[test]
fn programs_alike_share_alike() {
    let (mut host, threads) = host((1, 1), &[(1, 2.0), (1, 2.0)], 0.0);
    run(&mut host, 5000);
    check_shares(&host, &threads, &[0.5, 0.5]);
}

/// (S of B / S of A)^5 = 3, as A's only thread carries it: (1 + x) / 2 = 3^(1/5) (1 / 2 + (1 - x) / 6).
#[test]
fn the_fewer_threads_a_program_has_the_more_each_counts() {
    let programs = [(1, 2.0), (3, 2.0)];
    let (mut with, threads) = host((1, 3), &programs, 0.0);
    run(&mut with, 5000);
    check_shares(&with, &threads, &[0.467, 0.178, 0.178, 0.178]);
    let (mut without, threads) = host((1, 3), &programs, DEMAND);
    run(&mut without, 5000);
    check_shares(&without, &threads, &[0.25; 4]);
}

/// Where all are slowed down alike: (1 - 1 / 3) S^5 of the one is (1 - 1 / 1.5) S^5 of the other, that is, speeds
/// (1 + 2 x) / 3 and 1 - x / 3 are as 2^(1/5) and 1.
#[test]
fn who_gains_more_gets_more() {
    let programs = [(1, 3.0), (1, 1.5)];
    let (mut with, threads) = host((1, 1), &programs, 0.0);
    run(&mut with, 5000);
    check_shares(&with, &threads, &[0.780, 0.220]);
    let (mut without, threads) = host((1, 1), &programs, GAIN);
    run(&mut without, 5000);
    check_shares(&without, &threads, &[0.667, 0.333]);
}

/// (1 + x) / 2 = 2^(1/5) (2 - x) / 2.
#[test]
fn twice_the_weight_is_twice_the_claim() {
    let (mut host, threads) = host((1, 1), &[(1, 2.0), (1, 2.0)], 0.0);
    host.sched.apply(threads[0], &Change::Weight(2048));
    run(&mut host, 5000);
    check_shares(&host, &threads, &[0.604, 0.396]);
}

#[test]
fn threads_of_a_program_take_turns() {
    let (mut with, threads) = host((1, 2), &[(3, 2.0)], 0.0);
    run(&mut with, 3000);
    check_shares(&with, &threads, &[1.0 / 3.0; 3]);
    let (mut without, threads) = host((1, 2), &[(3, 2.0)], TURNS);
    run(&mut without, 3000);
    check_shares(&without, &threads, &[1.0, 0.0, 0.0]);
}

#[test]
fn unknown_speedups_count_alike() {
    let mut host = PolicyHost::new(&[(1, 1), (0, 1)], build("abreast", &[("without", TURNS)]));
    let threads = [0, 1].map(|app| host.add_to(AppId(app), None));
    run(&mut host, 2000);
    check_shares(&host, &threads, &[0.5, 0.5]);
}

#[test]
fn who_has_no_fast_core_and_has_slept_lately_may_wake_up_anywhere() {
    let kinds = |without| {
        // Who gains nothing has no fast core.
        let (mut host, threads) = host((1, 2), &[(1, 2.0), (1, 2.0), (1, 1.0)], without);
        let sleeper = threads[2];
        run(&mut host, 60); // 240 ms: nobody is new any more.
        host.run(1);
        host.block(sleeper);
        run(&mut host, 1);
        host.wake(sleeper);
        run(&mut host, 2);
        let kinds = threads.iter().map(|&it| host.view().plan(it).prefer).collect::<Vec<_>>();
        run(&mut host, 60);
        (kinds, host.view().plan(sleeper).prefer)
    };
    let (lately, later) = kinds(0.0);
    assert!(lately.contains(&Prefer::Big) && lately.contains(&Prefer::Little), "{lately:?}");
    assert_eq!(lately[2], Prefer::Any);
    assert_ne!(later, Prefer::Any);
    assert!(!kinds(ROAMING).0.contains(&Prefer::Any));
}

#[test]
fn periods_are_as_short_as_on_one_core_unless_that_is_left_out() {
    let period_ns = |without| {
        let rules = build("abreast", &[("without", without)]).rules(&topology(&[(1, 4), (0, 4)]));
        match rules.slice {
            Slice::LatencyShare { latency_ns, .. } => latency_ns,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(period_ns(0.0), 6_000_000);
    assert_eq!(period_ns(PERIODS), 24_000_000);
}

#[test]
fn a_fast_core_that_idles_pulls_unless_that_is_left_out() {
    let pulls = |without| {
        let rules = build("abreast", &[("without", without)]).rules(&topology(&[(1, 1), (0, 1)]));
        rules.steal.iter().any(|step| step.from == StealFrom::RunningOnSlower)
    };
    assert!(pulls(0.0));
    assert!(!pulls(PULL));
}

#[test]
fn equal_cores_are_left_alone() {
    let mut host = PolicyHost::new(&[(0, 2)], build("abreast", &[]));
    host.add_programs(&[1.0, 1.0, 1.0]);
    assert_eq!(host.run_epoch(), 0);
}

/// Alike but for their lengths: A is half over, B has hardly begun.
#[test]
fn the_shorter_program_comes_first_if_lengths_are_known() {
    let first = |lengths| {
        let mut host =
            PolicyHost::new(&[(1, 1), (0, 1)], build("abreast", &[("lengths", lengths)]));
        let threads = host.add_programs(&[2.0, 2.0]);
        for (index, work_ns) in [0.4e9, 4e9].into_iter().enumerate() {
            host.factors[index].work_ns =
                Factor { value: work_ns, kind: FactorKind::Measured, at_ns: 0 };
        }
        run(&mut host, 50);
        host.fast_shares(&threads)[0]
    };
    assert!(first(1.0) > 0.95, "{}", first(1.0));
    assert!((first(0.0) - 0.5).abs() < 0.1, "{}", first(0.0));
}

/// Of a program's threads, the one whose tasks have the longest chain behind them, if a runtime tells.
#[test]
fn the_longest_path_comes_first_if_paths_are_told() {
    let shares = |lengths| {
        let mut host =
            PolicyHost::new(&[(1, 1), (0, 2)], build("abreast", &[("lengths", lengths)]));
        let threads: Vec<ThreadId> = (0..3).map(|_| host.add_to(AppId(0), Some(2.0))).collect();
        for (index, path_ns) in [1e6, 9e6, 2e6].into_iter().enumerate() {
            host.factors[index].path_ns =
                Factor { value: path_ns, kind: FactorKind::Measured, at_ns: 0 };
        }
        run(&mut host, 500);
        host.fast_shares(&threads)
    };
    assert!(shares(1.0)[1] > 0.9, "{:?}", shares(1.0));
    assert!((shares(0.0)[1] - 1.0 / 3.0).abs() < 0.05, "{:?}", shares(0.0));
}
