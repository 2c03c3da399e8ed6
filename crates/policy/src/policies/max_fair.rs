//! max-fair: as equal as can be.

use super::cfs;
use super::support::rounds;
use super::support::seats;
use super::support::share_policy::{self, ShareRule};
use super::support::shares::{self, Base, Contest};
use super::support::speedup;
use crate::PolicyInfo;

/// The registry's row.
pub static INFO: PolicyInfo = PolicyInfo {
    name: "max-fair",
    summary: "Kim & Huh's max-fair: the same performance relative to a base for all threads",
    source: "Kim and Huh: Exploring the Design Space of Fair Scheduling Supports for Asymmetric Multicore Systems, \
IEEE TC 67(8), 2018; the authors' tool",
    documentation: "\
**Purpose.** The greatest minimum fairness: the least of the threads' performance, relative to a base, is as high as can be.

**When to use.** As a first choice where speed-ups are known and both mean slowdown and fairness count. It needs \
speed-ups. Not where throughput alone counts (`max-perf`), nor for programs that may not use all cores.

**Algorithm.** A thread with speed-up e and a share f of fast-core time performs 1 + (e - 1) f. The bases: `base` = 0, an \
equal share of the fast cores (F0); 1, always a fast core; 2, never one. All threads get the share with which their \
performance relative to the base is the same: f = F0; f in proportion to e / (e - 1), shifted; f in proportion to 1 / (e - \
1). Shares stay within 0 and 1. How shares become places: see `max-perf`.

**Constants.** Those of `max-perf`; base: the tool's default.

**Example.** 2 fast and 2 slow cores, speed-ups 3.4, 3.4, 2.3, 2.3: f = 0.5 each; with `base` = 1 f = 0.555, 0.555, 0.445, \
0.445, slowdowns 1.457 all; with `base` = 2 f = 0.351, 0.351, 0.649, 0.649, performance 1.843 all.

**Limits.** The paper has no more threads than cores. With more, one thread has each fast core and the others share the slow \
ones, so a fast core is worth e times the threads per slow core (ours); a fair share is then what equal time on all cores \
gives. Threads that gain nothing get no time on fast cores with bases 1 and 2 while others want it. Where they do not divide \
evenly among the slow cores, as three on two, a thread can stay alone on one for long; the others then miss their part. \
Weights (nice) count on slow cores only. A program whose threads may not use all cores cannot always be given its share.",
    params: &[
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
    build: |params| share_policy::build(params, Base::new(params), MaxFair),
};

/// Shares of max-fair.
struct MaxFair;

impl ShareRule for MaxFair {
    fn shares(&self, contest: &Contest) -> Vec<f64> {
        contest.max_fair()
    }
}
