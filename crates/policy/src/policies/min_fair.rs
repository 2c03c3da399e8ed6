//! min-fair: nobody falls below a target, and otherwise the greatest throughput.

use super::cfs;
use super::support::rounds;
use super::support::seats;
use super::support::share_policy::{self, ShareRule};
use super::support::shares::{self, Base, Contest};
use super::support::speedup;
use crate::{ParamInfo, PolicyInfo};

/// The registry's row.
pub static INFO: PolicyInfo = PolicyInfo {
    name: "min-fair",
    summary: "Kim & Huh's min-fair: throughput as high as a minimum of performance for each thread allows",
    source: "Kim and Huh: Exploring the Design Space of Fair Scheduling Supports for Asymmetric Multicore Systems, \
IEEE TC 67(8), 2018; the authors' tool",
    documentation: "\
**Purpose.** The greatest throughput under a constraint: no thread performs less than a target relative to a base.

**When to use.** Where each thread is promised a least performance (`target`) and what is left may go to throughput. \
It needs speed-ups. Not where they are poor: the promise is as good as they are.

**Algorithm.** Each thread gets the share of fast-core time with which it just meets the target, f = max(0, (target x base - \
1) / (e - 1)); what is left goes to those who gain most, up to f = 1. If the target cannot be met, shares are those of \
`max-fair`. With `similarity` above 0 programs with similar speed-ups then share alike, as in the policy of that name. Bases: \
see `max-fair`; how shares become places: see `max-perf`.

**Constants.** Those of `max-perf`. The paper leaves the target to the user; 0.9 is ours.

**Example.** 2 fast and 2 slow cores, speed-ups 2.5, 2.1, 1.6, 1.2, target 0.9: f = 1, 0.717, 0.283, 0; relative performance \
1.43, 1.15, 0.9, 0.91.

**Limits.** The target holds over some rounds, and as far as the speed-ups are right; the least slices for sampling are taken \
from others and can cost some per cent; so can a large `similarity`. With `base` = 2 (never a fast core) every thread meets \
any target. More threads than cores: see `max-fair`.",
    params: &[
        ParamInfo::number("target", 0.9, 0.0, 1.0, "least performance relative to the base (ours)"),
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
        let rule = MinFair {
            target: params.number("target"),
            similarity: params.number("similarity"),
        };
        share_policy::build(params, Base::new(params), rule)
    },
};

/// Shares of min-fair.
struct MinFair {
    target: f64,
    similarity: f64,
}

impl ShareRule for MinFair {
    fn shares(&self, contest: &Contest) -> Vec<f64> {
        let mut shares = contest.min_fair(self.target);
        if self.similarity > 0.0 {
            contest.share_alike(&mut shares, self.similarity);
        }
        shares
    }
}
