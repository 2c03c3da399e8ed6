use super::*;

/// Programs of one thread each on two fast and two slow cores.
fn contest(speedups: &[f64], base: Base) -> Contest {
    let programs: Vec<(f64, usize)> = speedups.iter().map(|&speedup| (speedup, 1)).collect();
    Contest::new(&programs, 2, 2, base)
}

fn rounded(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| (value * 1e3).round() / 1e3).collect()
}

/// Shares, relative performance, its mean, minimum and uniformity.
type Row = ([f64; 4], [f64; 4], f64, f64, f64);

#[track_caller]
fn check(speedups: &[f64], shares: impl Fn(&Contest) -> Vec<f64>, row: Row) {
    let contest = contest(speedups, Base::FairShare);
    let shares = shares(&contest);
    let relative: Vec<f64> = (0..4).map(|i| contest.relative(i, shares[i])).collect();
    assert_eq!(rounded(&shares), row.0, "shares");
    assert_eq!(rounded(&relative), row.1, "relative performance");
    let mean = relative.iter().sum::<f64>() / 4.0;
    let minimum = relative.iter().copied().fold(f64::MAX, f64::min);
    for (ours, expected) in [(mean, row.2), (minimum, row.3), (contest.uniformity(&shares), row.4)]
    {
        assert!((ours - expected).abs() < 6e-5, "{ours} {expected}");
    }
}

const W2: &[f64] = &[3.4, 3.4, 2.3, 2.3];
const W6: &[f64] = &[2.5, 2.1, 1.6, 1.2];
const W9: &[f64] = &[2.9, 2.5, 2.1, 1.2];

fn uniform(contest: &Contest, target: f64) -> Vec<f64> {
    let mut shares = contest.max_perf();
    contest.make_uniform(&mut shares, target);
    shares
}

// All rows: computed from the definitions of Kim & Huh, with speed-ups of Prop-SP's workloads.

#[test]
fn the_fastest_get_all_under_max_perf() {
    let shares = [1.0, 1.0, 0.0, 0.0];
    check(W2, Contest::max_perf, (shares, [1.545, 1.545, 0.606, 0.606], 1.0758, 0.6061, 0.5634));
    check(W6, Contest::max_perf, (shares, [1.429, 1.355, 0.769, 0.909], 1.1154, 0.7692, 0.7473));
}

#[test]
fn a_minimum_is_kept_and_the_rest_goes_to_the_fastest() {
    let at = |target: f64| move |contest: &Contest| contest.min_fair(target);
    let row = ([1.0, 0.508, 0.246, 0.246], [1.545, 1.008, 0.8, 0.8], 1.0385, 0.8, 0.7065);
    check(W2, at(0.8), row);
    let row = ([0.846, 0.408, 0.373, 0.373], [1.377, 0.9, 0.9, 0.9], 1.0192, 0.9, 0.7974);
    check(W2, at(0.9), row);
    let row = ([0.569, 0.482, 0.475, 0.475], [1.075, 0.98, 0.98, 0.98], 1.0038, 0.98, 0.9589);
    check(W2, at(0.98), row);
    let row = ([1.0, 0.933, 0.067, 0.0], [1.429, 1.308, 0.8, 0.909], 1.1113, 0.8, 0.7632);
    check(W6, at(0.8), row);
    let row = ([1.0, 0.717, 0.283, 0.0], [1.429, 1.154, 0.9, 0.909], 1.0979, 0.9, 0.8029);
    check(W6, at(0.9), row);
    let row = ([1.0, 0.782, 0.218, 0.0], [1.487, 1.242, 0.8, 0.909], 1.1095, 0.8, 0.7548);
    check(W9, at(0.8), row);
}

#[test]
fn uniformity_mixes_speed_with_fairness() {
    let row = ([0.72, 0.72, 0.28, 0.28], [1.24, 1.24, 0.827, 0.827], 1.0333, 0.8267, 0.8);
    check(W2, |contest| uniform(contest, 0.8), row);
    let row = ([0.68, 0.68, 0.32, 0.32], [1.154, 1.128, 0.917, 0.967], 1.0416, 0.9169, 0.9026);
    check(W6, |contest| uniform(contest, 0.9), row);
    let contest = contest(W2, Base::FairShare);
    assert_eq!(uniform(&contest, 0.5), contest.max_perf(), "nothing to do");
    assert_eq!(rounded(&uniform(&contest, 1.0)), [0.5; 4]);
}

#[test]
fn similar_programs_share_alike() {
    let at = |speedups: &[f64], similarity: f64| {
        let contest = contest(speedups, Base::FairShare);
        let mut shares = contest.max_perf();
        contest.share_alike(&mut shares, similarity);
        rounded(&shares)
    };
    let w7 = [3.0, 2.1, 2.1, 2.1];
    assert_eq!(at(&w7, 0.1), [1.0, 0.333, 0.333, 0.333]);
    assert_eq!(at(&w7, 0.91), [0.5; 4]);
    assert_eq!(at(W6, 0.1), [1.0, 1.0, 0.0, 0.0]);
    // The third has too little to begin a group.
    assert_eq!(at(W6, 0.51), [1.0, 1.0, 0.0, 0.0]);
    assert_eq!(at(W6, 0.91), [0.667, 0.667, 0.667, 0.0]);
}

/// With a fast core as base equal performance is equal slowdown: the shares of time with the least
/// unfairness for the workloads of Prop-SP's Table 1 (there by bisection of the slowdown).
#[test]
fn performance_relative_to_a_fast_core_is_made_equal() {
    let rows: &[(&[f64], [f64; 4])] = &[
        (&[3.4, 3.4, 1.2, 1.2], [0.809, 0.809, 0.191, 0.191]),
        (W2, [0.555, 0.555, 0.445, 0.445]),
        (&[2.3, 2.3, 1.9, 1.9], [0.544, 0.544, 0.456, 0.456]),
        (&[3.4, 3.4, 2.7, 2.7], [0.529, 0.529, 0.471, 0.471]),
        (&[3.4, 3.4, 3.4, 3.4], [0.5, 0.5, 0.5, 0.5]),
        (W6, [0.728, 0.688, 0.564, 0.020]),
        (&[3.0, 2.1, 2.1, 2.1], [0.585, 0.472, 0.472, 0.472]),
        (&[3.4, 3.0, 2.5, 2.1], [0.564, 0.538, 0.487, 0.412]),
        (W9, [0.701, 0.673, 0.626, 0.0]),
    ];
    for (speedups, shares) in rows {
        assert_eq!(rounded(&contest(speedups, Base::FastCore).max_fair()), shares, "{speedups:?}");
    }
}

/// By hand: f in proportion to 1 / (e - 1), at most 1.
#[test]
fn performance_relative_to_a_slow_core_is_made_equal() {
    let shares = |speedups: &[f64]| rounded(&contest(speedups, Base::SlowCore).max_fair());
    assert_eq!(shares(W2), [0.351, 0.351, 0.649, 0.649]);
    // 1 / 0.2 of 1/2 + 1/2 + 1 + 5 would be 1.43 of 2 cores; the others share what is left 1 : 1 : 2.
    assert_eq!(shares(&[3.0, 3.0, 2.0, 1.2]), [0.25, 0.25, 0.5, 1.0]);
}

#[test]
fn who_gains_nothing_gets_what_is_left() {
    for base in [Base::FastCore, Base::SlowCore] {
        assert_eq!(
            contest(&[3.0, 1.0, 1.0, 1.0], base).max_fair(),
            [1.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0]
        );
        assert_eq!(rounded(&contest(&[3.0, 3.0, 1.0, 1.0], base).max_fair()), [1.0, 1.0, 0.0, 0.0]);
    }
    assert_eq!(contest(&[1.0; 4], Base::FairShare).min_fair(1.0), [1.0, 1.0, 0.0, 0.0]);
}

#[test]
fn a_target_out_of_reach_gives_max_fair() {
    let contest = contest(W2, Base::FastCore);
    // The best is 0.686 (see above: 1 / 1.457).
    assert!(contest.min_fair(0.68)[0] > 0.56);
    assert_eq!(contest.min_fair(0.69), contest.max_fair());
}

#[test]
fn fewer_threads_than_cores_share_the_fast_ones_and_more_share_the_slow_ones() {
    let fair = |programs: &[(f64, usize)]| Contest::new(programs, 2, 2, Base::FairShare).max_fair();
    assert_eq!(fair(&[(3.0, 1)]), [1.0]);
    assert_eq!(rounded(&fair(&[(3.0, 1), (2.0, 2)])), [0.667, 0.667]);
    assert_eq!(fair(&[(3.0, 4), (2.0, 4)]), [0.25, 0.25]);
    // Eight threads: three to a slow core, so a thread with speed-up 2 is 6 times as fast on a fast core.
    let eight = Contest::new(&[(2.0, 8)], 2, 2, Base::SlowCore);
    assert!((eight.relative(0, 1.0) - 6.0).abs() < 1e-12);
    // Equal time on all cores: half a core each, half of it fast: 0.75 of a slow core's work, 1/3 without.
    assert!((eight.relative(0, 0.25) - 0.75 * 3.0).abs() < 1e-12);
}

#[test]
fn threads_of_a_program_share_alike() {
    let contest = Contest::new(&[(3.0, 3), (2.0, 1)], 2, 2, Base::FairShare);
    assert_eq!(rounded(&contest.max_perf()), [0.667, 0.0]);
    // 0.8 x (1 + 0.5) - 1 = 0.2 for the second.
    assert_eq!(rounded(&contest.min_fair(0.8)), [0.6, 0.2]);
}

#[test]
fn enough_is_kept_for_sampling() {
    let sampling = |speedups: &[f64], least: f64| {
        let contest = contest(speedups, Base::FairShare);
        let mut shares = contest.max_perf();
        contest.keep_sampling(&mut shares, least);
        rounded(&shares)
    };
    assert_eq!(sampling(W2, 0.04), [0.96, 0.96, 0.04, 0.04]);
    assert_eq!(sampling(W2, 0.9), [0.5; 4]);
    // Three get 4 % more; the others give in proportion to what they have above 4 %.
    let contest =
        Contest::new(&[(3.0, 1), (2.0, 1), (1.5, 1), (1.4, 1), (1.3, 1)], 2, 3, Base::FairShare);
    let mut shares = vec![1.0, 0.9, 0.1, 0.0, 0.0];
    contest.keep_sampling(&mut shares, 0.04);
    // 0.96 + 0.9 + 0.1 + 0.04 + 0.04 is 0.04 too much, of 0.92 + 0.86 + 0.06.
    assert_eq!(rounded(&shares), [0.94, 0.881, 0.099, 0.04, 0.04]);
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    type Programs = Vec<(f64, usize)>;

    fn programs() -> impl Strategy<Value = Programs> {
        let speedup = prop_oneof![4 => 1.0f64..6.0, 1 => Just(1.0), 1 => 1.0f64..1.001];
        prop::collection::vec((speedup, 1usize..5), 1..12).prop_map(|mut programs| {
            programs.sort_by(|a, b| b.0.total_cmp(&a.0));
            programs
        })
    }

    fn base() -> impl Strategy<Value = Base> {
        prop_oneof![Just(Base::FairShare), Just(Base::FastCore), Just(Base::SlowCore)]
    }

    fn least(contest: &Contest, shares: &[f64]) -> f64 {
        let relative = (0..contest.count()).map(|i| contest.relative(i, shares[i]));
        relative.fold(f64::MAX, f64::min)
    }

    proptest! {
        #[test]
        fn shares_are_possible_and_keep_their_promises(
            programs in programs(), fast in 1usize..6, slow in 1usize..6, base in base(),
            target in 0.0f64..=1.0, similarity in 0.0f64..1.0, part in 0.0f64..0.2,
        ) {
            let contest = Contest::new(&programs, fast, slow, base);
            let fair = contest.max_fair();
            let min_fair = contest.min_fair(target);
            let mut alike = min_fair.clone();
            contest.share_alike(&mut alike, similarity);
            let mut uniform = contest.max_perf();
            contest.make_uniform(&mut uniform, target);
            let mut sampled = contest.max_perf();
            contest.keep_sampling(&mut sampled, part);
            for shares in [&contest.max_perf(), &fair, &min_fair, &alike, &uniform, &sampled] {
                prop_assert!(shares.iter().all(|share| (-1e-9..=1.0 + 1e-9).contains(share)), "{:?}", shares);
                let taken = contest.taken(shares);
                prop_assert!((taken - contest.fast_cores).abs() < 1e-6, "{} {:?}", taken, shares);
            }
            let best = least(&contest, &fair);
            let met = least(&contest, &min_fair) >= target.min(best) - 1e-9;
            prop_assert!(met, "{} of {} {}", least(&contest, &min_fair), target, best);
            let uniformity = contest.uniformity(&uniform);
            prop_assert!(uniformity >= target.min(contest.uniformity(&fair)) - 1e-6);
            let even = part.min(contest.fair_share).min(1.0 - contest.fair_share);
            prop_assert!(sampled.iter().all(|&share| share >= even - 1e-9 && share <= 1.0 - even + 1e-9));
        }

        /// The minimum of max-fair cannot be raised: whoever tries takes from one that is worst off.
        #[test]
        fn nothing_is_fairer_than_max_fair(
            programs in programs(), fast in 1usize..6, slow in 1usize..6, base in base(),
            other in prop::collection::vec(0.0f64..1.0, 12),
        ) {
            let contest = Contest::new(&programs, fast, slow, base);
            let mut shares = other[..programs.len()].to_vec();
            contest.hand_out(&mut shares);
            prop_assert!(least(&contest, &shares) <= least(&contest, &contest.max_fair()) + 1e-6);
        }
    }
}
