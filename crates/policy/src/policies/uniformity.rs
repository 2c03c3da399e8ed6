//! uniformity: as much throughput as a uniformity of performance allows.

use super::cfs;
use super::support::rounds;
use super::support::seats;
use super::support::share_policy::{self, ShareRule};
use super::support::shares::{self, Base, Contest};
use super::support::speedup;
use crate::{ParamInfo, PolicyInfo};

/// The registry's row.
pub static INFO: PolicyInfo = PolicyInfo {
    name: "uniformity",
    summary: "Kim & Huh's uniformity: throughput as high as a uniformity of performance allows",
    source: "Kim and Huh: Exploring the Design Space of Fair Scheduling Supports for Asymmetric Multicore Systems, \
IEEE TC 67(8), 2018; the authors' tool",
    documentation: "\
**Purpose.** Throughput under a constraint on fairness as a whole: uniformity, 1 - standard deviation / mean of the threads' \
performance relative to a base.

**When to use.** Where fairness is stated for all threads together (`target`) and what is left may go to throughput. \
It needs speed-ups. Not where the worst off counts: that is `min-fair`.

**Algorithm.** Start with the shares of `max-perf` or, with `min_fair` above 0, of `min-fair` with that target; with \
`similarity` above 0 similar programs then share alike. If their uniformity u is below the target U, mix in the shares of \
`max-fair`: of the start as many whole per cent as floor(100 (1 - U) / (1 - u)), then one per cent less and less, until U is \
reached. Bases: see `max-fair`; how shares become places: see `max-perf`.

**Constants.** Those of `max-perf`; steps of 1 %: the tool. The paper leaves the target to the user; 0.9 is ours.

**Example.** 2 fast and 2 slow cores, speed-ups 2.5, 2.1, 1.6, 1.2, target 0.9: 36 % of `max-perf`, f = 0.68, 0.68, 0.32, \
0.32; relative performance 1.15, 1.13, 0.92, 0.97, uniformity 0.903.

**Limits.** Uniformity says nothing about who is worst off. A target that even `max-fair` misses (bases 1 and 2) gives the \
shares of `max-fair`. More threads than cores: see `max-fair`.",
    params: &[
        ParamInfo::number("target", 0.9, 0.0, 1.0, "least uniformity (ours)"),
        ParamInfo::number("min_fair", 0.0, 0.0, 1.0, "least performance relative to the base; 0: none (Kim & Huh: off)"),
        share_policy::SIMILARITY,
        shares::BASE,
        share_policy::SAMPLE,
        speedup::STATIC,
        rounds::ROUND,
        share_policy::MIN_SLICE,
        seats::TICK,
        cfs::LATENCY,
        cfs::MIN_GRANULARITY,
        cfs::WAKEUP_GRANULARITY,
    ],
    build: |params| {
        let rule = Uniformity {
            target: params.number("target"),
            min_fair: params.number("min_fair"),
            similarity: params.number("similarity"),
        };
        share_policy::build(params, Base::new(params), rule)
    },
};

/// Shares of uniformity.
struct Uniformity {
    target: f64,
    min_fair: f64,
    similarity: f64,
}

impl ShareRule for Uniformity {
    fn shares(&self, contest: &Contest) -> Vec<f64> {
        let mut shares = match self.min_fair > 0.0 {
            true => contest.min_fair(self.min_fair),
            false => contest.max_perf(),
        };
        if self.similarity > 0.0 {
            contest.share_alike(&mut shares, self.similarity);
        }
        contest.make_uniform(&mut shares, self.target);
        shares
    }
}
