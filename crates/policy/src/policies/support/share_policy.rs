//! The frame of Kim & Huh's policies (IEEE TC 2018): they differ only in how shares follow from
//! speed-ups.

use super::claims::{Bids, Low};
use super::rounds::{Rounds, Share};
use super::seat_policy::{SeatPolicy, SeatRule};
use super::shares::{Base, Contest};
use super::speedup::{ActiveApp, Speedups};
use crate::{Needs, ParamInfo, Params, Policy, View};

/// How often speed-ups are read.
pub const SAMPLE: ParamInfo = ParamInfo::number(
    "sample_ms",
    2000.0,
    0.1,
    100_000.0,
    "period at which speed-ups are read (Kim & Huh: 2 s)",
);

/// What keeps speed-ups known.
pub const MIN_SLICE: ParamInfo = ParamInfo::number(
    "min_slice_ms",
    1.2,
    0.0,
    10_000.0,
    "least part of a round on either kind of core while speed-ups are observed or unknown (Kim & Huh: 1.2 ms)",
);

/// Programs that share alike, for policies to which that is an addition.
pub const SIMILARITY: ParamInfo = ParamInfo::number(
    "similarity",
    0.0,
    0.0,
    10.0,
    "speed-ups that differ by so much share alike; 0: no (Kim & Huh: off)",
);

/// How shares follow from speed-ups.
pub trait ShareRule: Send {
    /// The part of its time that each program's threads should have on fast cores, 0..=1.
    fn shares(&self, contest: &Contest) -> Vec<f64>;
}

/// A policy that keeps programs at shares of fast-core time. With the parameters of CFS, [`super::seats::TICK`],
/// [`SAMPLE`], [`super::speedup::STATIC`], [`MIN_SLICE`] and [`super::rounds::ROUND`].
pub fn build(params: &Params, base: Base, rule: impl ShareRule + 'static) -> Box<dyn Policy> {
    let shares = Shares {
        base,
        least_share: params.number("min_slice_ms") / params.number("round_ms"),
        speedups: Speedups::new(params),
        rounds: Rounds::new(params.ms("round_ms")),
        rule,
    };
    Box::new(SeatPolicy::new(params, shares))
}

/// Those who are furthest behind their shares.
struct Shares<R> {
    base: Base,
    least_share: f64,
    speedups: Speedups,
    rounds: Rounds,
    rule: R,
}

impl<R: ShareRule> Shares<R> {
    /// Gives each runnable thread the share of its program.
    fn assign_shares(&mut self, view: &View, fast_cores: usize) {
        let depends_on_watching = self.speedups.depend_on_watching(view);
        let mut apps = ActiveApp::all(view, &mut self.speedups);
        if apps.is_empty() {
            return;
        }
        apps.sort_by(|a, b| b.speedup.total_cmp(&a.speedup).then(a.app.cmp(&b.app)));
        let programs: Vec<(f64, usize)> =
            apps.iter().map(|app| (app.speedup, app.threads.len())).collect();
        let slow_cores = view.topology().little_cores().count();
        let contest = Contest::new(&programs, fast_cores, slow_cores, self.base);
        let mut shares = self.rule.shares(&contest);
        if depends_on_watching {
            contest.keep_sampling(&mut shares, self.least_share);
        }
        for (program, app) in apps.iter().enumerate() {
            let share = Share { fast: shares[program], slow_worth: contest.slow_worth(program) };
            for &thread in &app.threads {
                self.rounds.set_share(thread, share);
            }
        }
    }
}

impl<R: ShareRule> SeatRule for Shares<R> {
    type Claim = Low;

    fn needs(&self) -> Needs {
        self.speedups.needs()
    }

    fn claims(&mut self, view: &View, fast_cores: usize) -> Bids<Low> {
        self.speedups.update(view);
        self.rounds.settle(view);
        self.assign_shares(view, fast_cores);
        self.rounds.claims(view)
    }
}

#[cfg(test)]
mod tests {
    use ampsched_model::ThreadId;

    use crate::FactorKind;
    use crate::testing::{PolicyHost, build};

    const SPEEDUPS: [f64; 4] = [1.2, 2.5, 1.6, 2.1];

    /// Parts of 10 s on two fast beside two slow cores.
    fn shares(policy: &str, params: &[(&str, f64)], kind: FactorKind) -> Vec<f64> {
        let mut host = PolicyHost::new(&[(1, 2), (0, 2)], build(policy, params));
        let threads = host.add_programs(&SPEEDUPS);
        for factors in &mut host.factors {
            factors.speedup.kind = kind;
        }
        for _ in 0..1000 {
            host.run_epoch();
        }
        host.fast_shares(&threads)
    }

    #[track_caller]
    fn check(shares: &[f64], expected: &[f64]) {
        for (share, expected) in shares.iter().zip(expected) {
            assert!((share - expected).abs() < 0.01, "{shares:?}");
        }
    }

    #[test]
    fn shares_become_time() {
        let fast_core = [("base", 1.0)];
        let shares_of = |policy| shares(policy, &fast_core, FactorKind::Oracle);
        check(&shares_of("max-fair"), &[0.020, 0.728, 0.564, 0.688]);
        // 55 % of 0, 1, 0, 1 and 45 % of those.
        check(&shares_of("uniformity"), &[0.009, 0.878, 0.254, 0.860]);
    }

    #[test]
    fn constraints_are_combined() {
        let shares_of = |policy, params: &[_]| shares(policy, params, FactorKind::Oracle);
        let alike = [0.0, 0.667, 0.667, 0.667];
        check(&shares_of("similarity", &[("similarity", 0.91)]), &alike);
        check(&shares_of("min-fair", &[("target", 0.8), ("similarity", 0.91)]), &alike);
        check(&shares_of("uniformity", &[("target", 0.7), ("similarity", 0.91)]), &alike);
        let minimum = [0.0, 1.0, 0.283, 0.717];
        check(&shares_of("min-fair", &[("target", 0.9)]), &minimum);
        check(&shares_of("uniformity", &[("target", 0.75), ("min_fair", 0.9)]), &minimum);
    }

    #[test]
    fn observed_and_unknown_threads_keep_running_on_both_kinds_of_core() {
        let shares_if = |kind| shares("max-perf", &[], kind);
        check(&shares_if(FactorKind::Oracle), &[0.0, 1.0, 0.0, 1.0]);
        check(&shares_if(FactorKind::Measured), &[0.04, 0.96, 0.04, 0.96]);
        // All count the same, so the first get most.
        check(&shares_if(FactorKind::Missing), &[0.96, 0.96, 0.04, 0.04]);
    }

    #[test]
    fn threads_of_a_program_take_turns() {
        let mut host = PolicyHost::new(&[(1, 1), (0, 2)], build("max-perf", &[]));
        let app = ampsched_model::AppId(0);
        let threads: Vec<ThreadId> = (0..3).map(|_| host.add_to(app, Some(2.0))).collect();
        for _ in 0..1000 {
            host.run_epoch();
        }
        check(&host.fast_shares(&threads), &[0.333; 3]);
    }

    #[test]
    fn equal_cores_are_left_alone() {
        let mut host = PolicyHost::new(&[(0, 2)], build("min-fair", &[]));
        host.add_programs(&[1.0, 1.0, 1.0]);
        assert_eq!(host.run_epoch(), 0);
    }
}
