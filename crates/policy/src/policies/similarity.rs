//! similarity: max-perf, but similar programs share alike.

use super::cfs;
use super::support::rounds;
use super::support::seats;
use super::support::share_policy::{self, ShareRule};
use super::support::shares::{self, Base, Contest};
use super::support::speedup;
use crate::{ParamInfo, PolicyInfo};

/// The registry's row.
pub static INFO: PolicyInfo = PolicyInfo {
    name: "similarity",
    summary: "Kim & Huh's similarity: the fast cores go to those who gain most, but similar programs share alike",
    source: "Kim and Huh: Exploring the Design Space of Fair Scheduling Supports for Asymmetric Multicore Systems, \
IEEE TC 67(8), 2018; the authors' tool",
    documentation: "\
**Purpose.** Throughput without the arbitrariness of `max-perf`, where a speed-up that is a little less can mean never to see \
a fast core.

**When to use.** Where throughput counts, but programs that gain about the same are to be treated the same. It needs \
speed-ups. Not where unfairness counts: who clearly gains less never sees a fast core.

**Algorithm.** Shares as in `max-perf`. Then, in the order of speed-ups, the first thread that has more than its share under \
`max-fair`, and those after it whose speed-ups are less by at most `similarity`, get their mean share; and so on with the \
rest. How shares become places: see `max-perf`.

**Constants.** Those of `max-perf`. The paper's tool has no default for `similarity`; 0.1 is ours.

**Example.** 2 fast and 2 slow cores, speed-ups 3.0, 2.1, 2.1, 2.1: under `max-perf` f = 1, 1, 0, 0, here 1, 0.333, 0.333, \
0.333.

**Limits.** No guarantee for anybody: who gains clearly less never sees a fast core. More threads than cores: see `max-fair`.",
    params: &[
        ParamInfo::number("similarity", 0.1, 0.0, 10.0, "speed-ups that differ by so much share alike (ours)"),
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
        let rule = Similarity { similarity: params.number("similarity") };
        share_policy::build(params, Base::new(params), rule)
    },
};

/// Shares of similarity.
struct Similarity {
    similarity: f64,
}

impl ShareRule for Similarity {
    fn shares(&self, contest: &Contest) -> Vec<f64> {
        let mut shares = contest.max_perf();
        contest.share_alike(&mut shares, self.similarity);
        shares
    }
}
