use ampsched_model::{AppId, CoreId, ThreadId};

use crate::testing::{PolicyHost, build};
use crate::{Change, EnqueueKind, Pick, Prefer, RunState};

const MS: u64 = 1_000_000;
const BIG_2_LITTLE_2: &[(u8, usize)] = &[(1, 2), (0, 2)];

fn host(params: &[(&str, f64)]) -> PolicyHost {
    PolicyHost::new(BIG_2_LITTLE_2, build("colab", params))
}

/// Threads by speed-up and blame in ms.
fn populate<const N: usize>(host: &mut PolicyHost, threads: [(f64, u64); N]) -> [ThreadId; N] {
    threads.map(|(speedup, blame_ms)| host.add_blamed(speedup, blame_ms * MS))
}

fn preferences(host: &PolicyHost, threads: &[ThreadId]) -> Vec<Prefer> {
    threads.iter().map(|&thread| host.sched.plan(thread).prefer).collect()
}

const VECTOR: [(f64, u64); 4] = [(3.0, 50), (3.0, 0), (1.2, 50), (1.2, 0)];

#[test]
fn labels_of_the_vector() {
    let mut host = host(&[]);
    let threads = populate(&mut host, VECTOR);
    host.epoch();
    assert_eq!(
        preferences(&host, &threads),
        [Prefer::Big, Prefer::Big, Prefer::Any, Prefer::Little]
    );
}

#[test]
fn labels_of_figure_1() {
    let mut host = PolicyHost::new(&[(1, 1), (0, 1)], build("colab", &[]));
    // alpha 1, gamma, beta 1, alpha 2, beta 2.
    let threads = populate(&mut host, [(3.0, 20), (3.0, 0), (1.2, 20), (1.2, 0), (1.2, 0)]);
    host.epoch();
    assert_eq!(
        preferences(&host, &threads),
        [Prefer::Big, Prefer::Big, Prefer::Any, Prefer::Little, Prefer::Little]
    );
}

#[test]
fn labels_need_two_windows_to_change() {
    let mut host = host(&[]);
    let threads = populate(&mut host, VECTOR);
    host.epoch();
    host.factors[threads[3].index()].speedup.value = 3.0;
    host.epoch();
    assert_eq!(preferences(&host, &threads)[3], Prefer::Little);
    host.epoch();
    assert_eq!(preferences(&host, &threads)[3], Prefer::Big);
}

#[test]
fn thresholds_are_parameters() {
    // Mean 2, sigma 0.866: high from 2.433 or 2.866, low up to 1.567 or 1.134.
    let speedups = [(3.0, 0), (1.15, 0), (2.5, 0), (1.35, 0)];
    let labels = |params: &[(&str, f64)]| {
        let mut host = host(params);
        let threads = populate(&mut host, speedups);
        host.epoch();
        preferences(&host, &threads)
    };
    assert_eq!(labels(&[]), [Prefer::Big, Prefer::Little, Prefer::Big, Prefer::Little]);
    let narrow = [("high_sigma", 1.2), ("low_sigma", 1.05)];
    assert_eq!(labels(&narrow), [Prefer::Big, Prefer::Little, Prefer::Any, Prefer::Any]);
    assert_eq!(labels(&[("min_cv", 0.9)]), [Prefer::Any; 4]);
}

#[test]
fn rank_is_decayed_blame() {
    let mut host = host(&[]);
    let threads = populate(&mut host, VECTOR);
    host.epoch();
    assert_eq!(host.sched.plan(threads[0]).rank, 50_000);
    host.epoch();
    assert_eq!(host.sched.plan(threads[0]).rank, 45_000);
    host.sched.blame(threads[0], 10 * MS);
    host.epoch();
    assert_eq!(host.sched.plan(threads[0]).rank, 50_500);
}

#[test]
fn raw_blame_is_the_sum() {
    let mut host = host(&[("raw", 1.0)]);
    let threads = populate(&mut host, VECTOR);
    for _ in 0..5 {
        host.epoch();
    }
    host.sched.blame(threads[0], 10 * MS);
    host.epoch();
    assert_eq!(host.sched.plan(threads[0]).rank, 60_000);
}

#[test]
fn an_epoch_without_news_changes_nothing() {
    let mut host = host(&[("raw", 1.0)]);
    populate(&mut host, VECTOR);
    // Two ranks and three preferences; speeds were known from the start.
    assert_eq!(host.epoch(), 5);
    assert_eq!(host.epoch(), 0);
}

#[test]
fn a_new_thread_is_judged_by_the_last_window() {
    let mut host = host(&[]);
    populate(&mut host, VECTOR);
    let before = host.add(Some(3.0));
    assert_eq!(host.sched.plan(before).prefer, Prefer::Any);
    assert_eq!(host.sched.plan(before).speed[..2], [1024, 3072]);
    host.epoch();
    let threads = [Some(3.0), Some(2.2), Some(1.2), None].map(|speedup| host.add(speedup));
    assert_eq!(
        preferences(&host, &threads),
        [Prefer::Big, Prefer::Any, Prefer::Little, Prefer::Any]
    );
}

#[test]
fn the_allocator_goes_round_in_the_labelled_class() {
    let mut host = host(&[]);
    let threads = populate(&mut host, VECTOR);
    host.epoch();
    let place =
        |host: &PolicyHost, thread: usize| host.sched.place_by_rules(threads[thread], 0).index();
    let big: Vec<usize> = [0, 1, 0].map(|thread| place(&host, thread)).into();
    assert_eq!(big, [0, 1, 0]);
    let little: Vec<usize> = [3, 3, 3].map(|thread| place(&host, thread)).into();
    assert_eq!(little, [2, 3, 2]);
}

/// Takes a waiting thread out of its queue and puts it into another core's.
fn move_to(host: &mut PolicyHost, thread: ThreadId, core: usize) {
    host.sched.dequeue(thread);
    host.sched.enqueue(thread, core.into(), EnqueueKind::Requeue, host.now_ns);
}

fn run_on(host: &mut PolicyHost, thread: ThreadId, core: usize) {
    move_to(host, thread, core);
    host.sched.start(core.into(), thread, host.now_ns);
}

fn pick(host: &PolicyHost, core: usize) -> Pick {
    host.sched.pick_by_rules(core.into(), host.now_ns)
}

const IDLE: Pick = Pick::Idle { recheck_ns: None };

/// Keeps a core busy with a thread that cannot leave, so that others may take what waits there.
fn occupy(host: &mut PolicyHost, core: usize) {
    let here = [CoreId::from(core)].into_iter().collect();
    let thread = host.sched.add(AppId(0), 1024, Some(&here));
    host.sched.enqueue(thread, core.into(), EnqueueKind::Fork, host.now_ns);
    host.sched.start(core.into(), thread, host.now_ns);
}

/// One thread in the queues of core 0, 1 and 2 each, and one that runs on little core 3.
fn one_everywhere(params: &[(&str, f64)]) -> (PolicyHost, [ThreadId; 4]) {
    let mut host = host(params);
    // Less blame the nearer to core 0, so that the order is not by blame.
    let threads = populate(&mut host, [(2.0, 0), (2.0, 1), (2.0, 2), (2.0, 3)]);
    host.epoch();
    for (core, &thread) in threads[..3].iter().enumerate() {
        move_to(&mut host, thread, core);
    }
    run_on(&mut host, threads[3], 3);
    occupy(&mut host, 1);
    occupy(&mut host, 2);
    host.now_ns += 2 * MS;
    (host, threads)
}

fn exit(host: &mut PolicyHost, thread: ThreadId) {
    host.sched.dequeue(thread);
    host.sched.apply(thread, &Change::Rank(0));
}

#[test]
fn a_big_core_takes_own_then_cluster_then_others_then_running() {
    let (mut host, threads) = one_everywhere(&[]);
    for &thread in &threads[..3] {
        assert_eq!(pick(&host, 0), Pick::Run(thread));
        exit(&mut host, thread);
    }
    assert_eq!(pick(&host, 0), Pick::Pull(threads[3]));
    host.sched.stop(CoreId(3), RunState::Blocked, host.now_ns);
    assert_eq!(pick(&host, 0), IDLE);
}

#[test]
fn strictly_a_big_core_pulls_before_it_takes_waiting_threads_of_little_cores() {
    let (mut host, threads) = one_everywhere(&[("strict", 1.0)]);
    exit(&mut host, threads[0]);
    exit(&mut host, threads[1]);
    assert_eq!(pick(&host, 0), Pick::Pull(threads[3]));
    host.sched.stop(CoreId(3), RunState::Blocked, host.now_ns);
    assert_eq!(pick(&host, 0), IDLE);
}

#[test]
fn a_little_core_never_pulls() {
    let mut host = host(&[]);
    let [thread] = populate(&mut host, [(2.0, 0)]);
    run_on(&mut host, thread, 2);
    host.now_ns += 10 * MS;
    assert_eq!(pick(&host, 3), IDLE);
}

#[test]
fn an_idle_little_core_takes_waiting_threads_after_a_tick() {
    let mut host = host(&[]);
    let [thread] = populate(&mut host, [(2.0, 0)]);
    occupy(&mut host, 0);
    move_to(&mut host, thread, 0);
    assert_eq!(pick(&host, 2), Pick::Idle { recheck_ns: Some(MS) });
    host.now_ns = MS;
    assert_eq!(pick(&host, 2), Pick::Run(thread));
    host.sched.apply(thread, &Change::Prefer(Prefer::Big));
    assert_eq!(pick(&host, 2), IDLE);
}

#[test]
fn little_steal_can_be_switched_off() {
    for params in [[("little_steal", 0.0)], [("strict", 1.0)]] {
        let mut host = host(&params);
        let [thread] = populate(&mut host, [(2.0, 0)]);
        occupy(&mut host, 0);
        move_to(&mut host, thread, 0);
        host.now_ns = 10 * MS;
        assert_eq!(pick(&host, 2), IDLE);
        assert_eq!(pick(&host, 0), Pick::Run(thread));
    }
}

#[test]
fn a_pull_must_gain_five_percent() {
    for (speedup, pulled) in [(1.04, false), (1.06, true)] {
        let mut host = host(&[]);
        let [thread] = populate(&mut host, [(speedup, 0)]);
        run_on(&mut host, thread, 2);
        host.now_ns = 5 * MS;
        let expected = if pulled { Pick::Pull(thread) } else { IDLE };
        assert_eq!(pick(&host, 0), expected, "{speedup}");
    }
}

#[test]
fn a_pull_waits_until_the_thread_has_settled() {
    let mut host = host(&[]);
    let [thread] = populate(&mut host, [(2.0, 0)]);
    move_to(&mut host, thread, 3);
    host.run_alone(thread, 7 * MS, 1);
    run_on(&mut host, thread, 3);
    assert_eq!(pick(&host, 0), Pick::Pull(thread), "it has been there from its start");
    host.sched.stop(CoreId(3), RunState::Ready, host.now_ns);
    host.sched.enqueue(thread, CoreId(2), EnqueueKind::Requeue, host.now_ns);
    host.sched.start(CoreId(2), thread, host.now_ns);
    assert_eq!(pick(&host, 0), Pick::Idle { recheck_ns: Some(8 * MS) });
    host.now_ns = 8 * MS;
    assert_eq!(pick(&host, 0), Pick::Pull(thread));
}

#[test]
fn the_most_blamed_is_pulled() {
    let mut host = host(&[]);
    let threads = populate(&mut host, [(2.0, 1), (2.0, 5)]);
    host.epoch();
    run_on(&mut host, threads[0], 2);
    run_on(&mut host, threads[1], 3);
    host.now_ns += 2 * MS;
    assert_eq!(pick(&host, 1), Pick::Pull(threads[1]));
}

/// Two threads in the queue of core 0: blamed and `ahead_ns` ahead of the other, and not blamed.
fn blamed_ahead(params: &[(&str, f64)], ahead_ns: u64) -> (PolicyHost, [ThreadId; 2]) {
    let mut host = host(params);
    let threads = populate(&mut host, [(1.0, 9), (1.0, 0)]);
    host.epoch();
    for thread in threads {
        move_to(&mut host, thread, 0);
    }
    host.run_alone(threads[0], ahead_ns, 1);
    (host, threads)
}

#[test]
fn blame_decides_within_the_fair_window_only() {
    // 4 cores: latency 18 ms.
    let (host, threads) = blamed_ahead(&[], 17 * MS);
    assert_eq!(pick(&host, 0), Pick::Run(threads[0]));
    let (host, threads) = blamed_ahead(&[], 19 * MS);
    assert_eq!(pick(&host, 0), Pick::Run(threads[1]));
    let (host, threads) = blamed_ahead(&[("fair_window_latencies", 2.0)], 19 * MS);
    assert_eq!(pick(&host, 0), Pick::Run(threads[0]));
    let (host, threads) = blamed_ahead(&[("fair_window_latencies", 0.0)], 1000 * MS);
    assert_eq!(pick(&host, 0), Pick::Run(threads[0]));
}

#[test]
fn equal_blame_is_served_in_order_of_arrival() {
    let mut host = host(&[]);
    let threads = populate(&mut host, [(1.0, 0), (1.0, 0)]);
    move_to(&mut host, threads[1], 0);
    move_to(&mut host, threads[0], 0);
    assert_eq!(pick(&host, 0), Pick::Run(threads[1]));
}

#[test]
fn periodic_balancing_stays_if_asked_for() {
    let balance = |params: &[(&str, f64)]| host(params).sched.rules().balance.is_some();
    assert!(!balance(&[]));
    assert!(balance(&[("balance", 1.0)]));
}

/// What a speed-up of 3 does to slice and charge on core 0 (big) and 2 (little) with two threads.
fn slice_and_charge(name: &str, params: &[(&str, f64)], core: usize) -> (u64, u64) {
    let mut host = PolicyHost::new(BIG_2_LITTLE_2, build(name, params));
    let threads = populate(&mut host, [(3.0, 0), (3.0, 0)]);
    for thread in threads {
        move_to(&mut host, thread, core);
    }
    let slice_ns = host.sched.slice_by_rules(threads[0], core.into());
    let before = host.sched.thread(threads[0]).vruntime;
    host.run_alone(threads[0], MS, 1);
    (slice_ns, host.sched.thread(threads[0]).vruntime - before)
}

#[test]
fn progress_is_charged_and_slices_are_shorter_on_big_cores() {
    assert_eq!(slice_and_charge("colab", &[], 0), (3 * MS, 3 * MS));
    assert_eq!(slice_and_charge("colab", &[], 2), (9 * MS, MS));
}

#[test]
fn literally_and_in_the_ablation_time_is_charged() {
    for core in [0, 2] {
        assert_eq!(slice_and_charge("colab", &[("literal", 1.0)], core), (9 * MS, MS));
        assert_eq!(slice_and_charge("colab-collaboration-only", &[], core), (9 * MS, MS));
    }
}

#[test]
fn literally_the_thread_on_the_big_core_is_preempted_less() {
    // The running thread is 6 ms ahead; the granularity is 3 ms; 6 / 3 = 2.
    for (params, preempts) in [(vec![], true), (vec![("literal", 1.0)], false)] {
        let mut host = host(&params);
        let threads = populate(&mut host, [(3.0, 0), (3.0, 0)]);
        for thread in threads {
            move_to(&mut host, thread, 0);
        }
        host.sched.start(CoreId(0), threads[0], 0);
        let ahead_ns = if params.is_empty() { 2 * MS } else { 6 * MS };
        host.sched.charge(CoreId(0), ahead_ns, 1);
        let (running, woken) = (threads[0], threads[1]);
        assert_eq!(host.sched.preempts_by_rules(woken, running, CoreId(0)), preempts, "{params:?}");
    }
}

#[test]
fn on_equal_cores_nobody_is_labelled() {
    let mut host = PolicyHost::new(&[(0, 4)], build("colab", &[]));
    let threads = [1.0; 4].map(|speedup| host.add_blamed(speedup, 3 * MS));
    host.epoch();
    assert_eq!(preferences(&host, &threads), [Prefer::Any; 4]);
}
