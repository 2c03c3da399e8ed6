//! min-fair as HFEE's authors scripted it.

use super::cfs;
use super::support::seats;
use super::support::share_policy::{self, ShareRule};
use super::support::shares::{Base, Contest};
use super::support::speedup;
use crate::{ParamInfo, PolicyInfo};

/// The registry's row.
pub static INFO: PolicyInfo = PolicyInfo {
    name: "min-fair-hfee",
    summary: "min-fair as scripted by HFEE's authors for their comparison: shares in steps of 3 %, slots of 1.5 %",
    source: "the scripts that accompany HFEE (IEEE TC 2020), after Kim and Huh (IEEE TC 2018)",
    documentation: "\
**Purpose.** What HFEE was compared with; `min-fair` is the original.

**When to use.** To repeat HFEE's comparison with Min-Fair. It needs speed-ups. Not for anything else: `min-fair` is \
the original.

**Algorithm.** Each thread gets the first of the shares 3 %, 6 %, ... 99 % of fast-core time with which its performance \
relative to a fair share exceeds the target; what is left goes to those who gain most, who also give back what is missing. A \
round has 66 slots; a thread's shares are whole slots of 1.5 %, cut off. How shares become places: see `max-perf`.

**Constants.** Target 0.98, steps, slots: the scripts. How long a slot lasts they leave to the speed of the shell; a \
`round_ms` of 66 ticks of 10 ms is ours. They measure speed-ups at the beginning of each round on both kinds of core, so \
there is no least slice.

**Example.** 2 fast and 2 slow cores, speed-ups 3.4, 3.4, 2.3, 2.3: shares 0.53, 0.51, 0.48, 0.48, which are 35, 34, 32 and \
32 of 66 slots.

**Limits.** The scripts know 2 fast and 2 slow cores and four programs only; here any number. Not copied: that they put all \
programs on fast cores first and then all on slow ones (the slots on slow cores are reset to 0 while three or more programs \
run).",
    params: &[
        ParamInfo::number("target", 0.98, 0.0, 1.0, "performance relative to a fair share to exceed (HFEE's scripts: 0.98)"),
        ParamInfo::number("round_ms", 660.0, 0.1, 100_000.0, "round of 66 slots (ours)"),
        ParamInfo::number("min_slice_ms", 0.0, 0.0, 100_000.0, "least part of a round on either kind of core while speed-ups are observed or unknown (HFEE's scripts: none)"),
        share_policy::SAMPLE,
        speedup::STATIC,
        seats::TICK,
        cfs::LATENCY,
        cfs::MIN_GRANULARITY,
        cfs::WAKEUP_GRANULARITY,
    ],
    build: |params| {
        let rule = MinFairHfee { target: params.number("target") };
        share_policy::build(params, Base::FairShare, rule)
    },
};

/// Steps of shares in per cent.
const STEP_PERCENT: usize = 3;
/// Part of a round that a slot counts for.
const SLOT_SHARE: f64 = 0.015;
/// Slots of a round.
const SLOTS: f64 = 66.0;

/// Shares of HFEE's min-fair.
struct MinFairHfee {
    target: f64,
}

impl MinFairHfee {
    /// Shares before they are cut to slots.
    fn steps(&self, contest: &Contest) -> Vec<f64> {
        let step = |program: usize| {
            let steps =
                (STEP_PERCENT..100).step_by(STEP_PERCENT).map(|percent| percent as f64 / 100.0);
            let last = steps.clone().next_back().unwrap_or(1.0);
            let mut enough = steps.filter(|&share| contest.relative(program, share) > self.target);
            enough.next().unwrap_or(last)
        };
        let mut shares: Vec<f64> = (0..contest.count()).map(step).collect();
        contest.hand_out(&mut shares);
        shares
    }
}

impl ShareRule for MinFairHfee {
    fn shares(&self, contest: &Contest) -> Vec<f64> {
        self.steps(contest).iter().map(|share| (share / SLOT_SHARE).floor() / SLOTS).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shares and slots of programs of one thread each on two fast and two slow cores.
    fn of(speedups: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let programs: Vec<(f64, usize)> = speedups.iter().map(|&speedup| (speedup, 1)).collect();
        let contest = Contest::new(&programs, 2, 2, Base::FairShare);
        let rule = MinFairHfee { target: 0.98 };
        let steps = rule.steps(&contest).iter().map(|share| (share * 1e6).round() / 1e6).collect();
        (steps, rule.shares(&contest).iter().map(|share| (share * SLOTS).round()).collect())
    }

    /// Computed with the scripts' helper, there in the order 1.22, 0.9, 1.22, 1.66.
    #[test]
    fn shares_are_those_of_the_helper() {
        let (shares, slots) = of(&[1.66, 1.22, 1.22, 0.9]);
        assert_eq!(shares, [1.0, 0.55, 0.42, 0.03]);
        assert_eq!(slots, [66.0, 36.0, 28.0, 2.0]);
        let (shares, slots) = of(&[3.4, 3.4, 2.3, 2.3]);
        assert_eq!(shares, [0.53, 0.51, 0.48, 0.48]);
        assert_eq!(slots, [35.0, 34.0, 32.0, 32.0]);
    }
}
