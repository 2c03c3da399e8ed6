//! Long runs: who gets how much time.

use proptest::prelude::*;

use super::host::{Host, MS, rules};
use crate::{Change, nice_to_weight};

/// Shares of one core that threads of these weights get in 20 s, relative to what they are due.
fn relative_shares(policy: &str, nices: &[i32], ranks: &[u64]) -> Vec<f64> {
    let clusters = &[(0, 1)];
    let mut host = Host::with(rules(policy, &[], clusters), clusters);
    let weights: Vec<u32> = nices.iter().map(|&nice| nice_to_weight(nice)).collect();
    let threads: Vec<_> = weights.iter().map(|&weight| host.fork(weight)).collect();
    for (&thread, &rank) in threads.iter().zip(ranks) {
        host.sched.apply(thread, &Change::Rank(rank));
    }
    let end_ns = 20_000 * MS;
    host.run_until(end_ns);
    let sum: u32 = weights.iter().sum();
    let due = |weight: u32| end_ns as f64 * f64::from(weight) / f64::from(sum);
    threads.iter().zip(&weights).map(|(&t, &w)| host.run_ns(t) as f64 / due(w)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn time_is_shared_by_weight(nices in prop::collection::vec(-5..=5i32, 2..6)) {
        for policy in ["cfs", "eevdf"] {
            for share in relative_shares(policy, &nices, &[]) {
                prop_assert!((share - 1.0).abs() < 0.02, "{policy}: {share}");
            }
        }
    }

    #[test]
    fn rank_does_not_change_shares(ranks in prop::collection::vec(0..100u64, 2..6)) {
        for share in relative_shares("colab", &vec![0; ranks.len()], &ranks) {
            prop_assert!((share - 1.0).abs() < 0.02, "{share}");
        }
    }
}

#[test]
fn without_fair_window_the_lower_rank_starves() {
    let clusters = &[(0, 1)];
    let rules = rules("colab", &[("fair_window_latencies", 0.0)], clusters);
    let mut host = Host::with(rules, clusters);
    let threads = [host.fork(1024), host.fork(1024)];
    host.sched.apply(threads[1], &Change::Rank(1));
    host.run_until(1_000 * MS);
    assert_eq!(threads.map(|thread| host.run_ns(thread)), [0, 1_000 * MS]);
}

#[test]
fn equal_progress_means_less_time_on_the_big_core() {
    // Two threads of speed-ups 1 and 4 share a big core: each gets the same progress.
    let clusters = &[(1, 1), (0, 1)];
    let mut host = Host::with(rules("colab", &[], clusters), clusters);
    let threads = [0, 0].map(|core| host.fork_on(core, 1024));
    host.sched.apply(threads[1], &Change::Speed([1.0, 4.0, 1.0, 1.0]));
    let idle_little: ampsched_model::CoreSet = [0usize.into()].into_iter().collect();
    for thread in threads {
        host.sched.apply(thread, &Change::Affinity(idle_little.clone()));
    }
    host.run_until(10_000 * MS);
    let [slow, fast] = threads.map(|thread| host.run_ns(thread) as f64);
    assert!((slow / fast - 4.0).abs() < 0.08, "{slow} {fast}");
}
