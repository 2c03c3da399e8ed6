use ampsched_model::AppId;

use super::*;
use crate::testing::{PolicyHost, build};

const MS: u64 = 1_000_000;

fn app(index: u16, threads: usize, speedup: f64, weight: f64) -> ActiveApp {
    let first = usize::from(index) * 100;
    let threads = (first..first + threads).map(ThreadId::from).collect();
    ActiveApp { app: AppId(index), threads, speedup, weight }
}

fn single(speedups: &[f64]) -> Vec<ActiveApp> {
    (0..).zip(speedups).map(|(index, &speedup)| app(index, 1, speedup, 1024.0)).collect()
}

fn shares(apps: &[ActiveApp], fast_cores: usize) -> Vec<f64> {
    let shares = fast_core_shares(apps, Sharing::BusyFastCores, fast_cores);
    shares.iter().map(|share| (share * 1e3).round() / 1e3).collect()
}

/// Prop-SP's Table 1, workloads W1, W4, W6 and W8.
#[test]
fn single_threads_share_in_proportion_to_their_net_speedup() {
    assert_eq!(shares(&single(&[3.4, 3.4, 1.2, 1.2]), 2), [0.923, 0.923, 0.077, 0.077]);
    assert_eq!(shares(&single(&[3.4, 3.4, 2.7, 2.7]), 2), [0.585, 0.585, 0.415, 0.415]);
    assert_eq!(shares(&single(&[2.5, 2.1, 1.6, 1.2]), 2), [0.882, 0.647, 0.353, 0.118]);
    assert_eq!(shares(&single(&[3.4, 3.0, 2.5, 2.1]), 2), [0.686, 0.571, 0.429, 0.314]);
}

#[test]
fn nobody_gets_more_than_its_threads_can_use() {
    // In proportion the first would get 1.5 cores.
    assert_eq!(shares(&single(&[4.0, 1.5, 1.25, 1.25]), 2), [1.0, 0.5, 0.25, 0.25]);
    let parallel = [app(0, 2, 3.0, 1024.0), app(1, 1, 1.0, 1024.0)];
    assert_eq!(shares(&parallel, 2), [2.0, 0.0]);
}

#[test]
fn priorities_multiply_and_equal_claims_share_evenly() {
    let apps = [app(0, 1, 2.0, 1024.0), app(1, 1, 2.0, 335.0), app(2, 1, 2.0, 335.0)];
    assert_eq!(shares(&apps, 1), [0.604, 0.198, 0.198]);
    assert_eq!(shares(&single(&[1.0, 1.0, 1.0, 1.0]), 2), [0.5; 4]);
}

fn policy(params: &[(&str, f64)]) -> PropSp {
    let mut values = Params::defaults(INFO.params);
    for (name, value) in params {
        values.set(name, *value);
    }
    PropSp::new(&values)
}

#[test]
fn credits_go_to_threads_one_after_the_other_or_evenly() {
    for (even, expected) in [(0.0, [400, 200, 0]), (1.0, [200, 200, 200])] {
        let mut policy = policy(&[("even", even)]);
        let app = app(0, 3, 2.0, 1024.0);
        policy.distribute(&app, 600e6, 400e6);
        let credits = [0, 1, 2].map(|i| policy.accounts.of(app.threads[i]) / MS as i64);
        assert_eq!(credits, expected);
    }
}

#[test]
fn periods_grow_with_many_swaps_and_shrink_with_few() {
    let mut period = policy(&[]).period;
    let lengths = [0, 17, 17, 17, 17, 100, 8, 0, 0, 0, 0, 0].map(|swaps| {
        period.swaps = swaps;
        let now_ns = period.start_ns + period.length_ns;
        period.begin(now_ns, 2);
        period.length_ns / MS
    });
    // 17 swaps in 400 ms on two cores are 21 per second and core, in 800 ms 10.6, in 1600 ms 5.3.
    assert_eq!(lengths, [400, 800, 1600, 1600, 1600, 3200, 1600, 800, 400, 200, 200, 200]);
}

/// One fast and two slow cores with three programs.
fn host(speedups: &[f64]) -> (PolicyHost, Vec<ThreadId>) {
    let mut host = PolicyHost::new(&[(1, 1), (0, 2)], build("prop-sp", &[]));
    let apps = (0..).map(AppId).zip(speedups);
    let threads = apps.map(|(app, &speedup)| host.add_to(app, Some(speedup))).collect();
    (host, threads)
}

#[test]
fn a_thread_without_credits_gives_way_to_the_one_with_most() {
    // Of 400 ms: 200, 120 and 80.
    let (mut host, threads) = host(&[2.0, 1.6, 1.4]);
    let holders: Vec<ThreadId> = (0..40)
        .map(|_| {
            host.run_epoch();
            host.on_fast()[0]
        })
        .collect();
    let times = |thread| holders.iter().filter(|&&holder| holder == thread).count();
    // The first has a fast core from the start, 10 ms before the first credits, and pays for it; when
    // all credits are used up, the last one stays.
    assert_eq!([0, 1, 2].map(|i| times(threads[i])), [19, 12, 9]);
    assert_eq!(holders.chunk_by(|a, b| a == b).count(), 3, "no needless swaps");
}

#[test]
fn without_credits_elsewhere_nothing_moves() {
    let (mut host, threads) = host(&[2.0, 1.0, 1.0]);
    for _ in 0..100 {
        host.run_epoch();
        assert_eq!(host.on_fast(), threads[..1]);
    }
}

#[test]
fn over_time_the_shares_are_the_credits() {
    let speedups = [2.5, 2.1, 1.6, 1.2];
    let mut host = PolicyHost::new(&[(1, 2), (0, 2)], build("prop-sp", &[]));
    let apps = (0..).map(AppId).zip(speedups);
    let threads: Vec<ThreadId> =
        apps.map(|(app, speedup)| host.add_to(app, Some(speedup))).collect();
    for _ in 0..4000 {
        host.run_epoch();
    }
    let share = |&thread: &ThreadId| {
        let fast_ns = seats::fast_ns(host.sched.stats(thread));
        (fast_ns as f64 / host.now_ns as f64 * 1e3).round() / 1e3
    };
    let expected = [0.882, 0.647, 0.353, 0.118];
    for (share, expected) in threads.iter().map(share).zip(expected) {
        assert!((share - expected).abs() < 0.01, "{share} {expected}");
    }
}

#[test]
fn debt_and_wealth_are_limited_to_a_period() {
    let mut accounts = Accounts::default();
    let [rich, poor] = [0, 1].map(|i: usize| ThreadId::from(i));
    accounts.award(rich, 900);
    accounts.award(poor, -700);
    accounts.expire(rich, 400);
    accounts.expire(poor, 400);
    assert_eq!([accounts.of(rich), accounts.of(poor)], [400, -400]);
    assert_eq!((accounts.awarded_ns, accounts.expired_ns), (200, 200));
    assert!(accounts.is_balanced());
}
