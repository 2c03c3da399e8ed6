//! max-perf: the fast cores for those who gain most, in rounds.

use super::cfs;
use super::support::rounds;
use super::support::seats;
use super::support::share_policy::{self, ShareRule};
use super::support::shares::{Base, Contest};
use super::support::speedup;
use crate::PolicyInfo;

/// The registry's row.
pub static INFO: PolicyInfo = PolicyInfo {
    name: "max-perf",
    summary: "Kim & Huh's max-perf: the fast cores go to the threads that gain most",
    source: "Kim and Huh: Exploring the Design Space of Fair Scheduling Supports for Asymmetric Multicore Systems, \
IEEE TC 67(8), 2018; the authors' tool",
    documentation: "\
**Purpose.** The greatest throughput, and the end from which `similarity` and `uniformity` start.

**When to use.** Where throughput alone counts, and as the end from which `similarity` and `uniformity` start. It \
needs speed-ups. Not where every program has to get on.

**Algorithm.** Every program's threads get a share f of the fast cores: 1 for the N_FC threads with the greatest speed-up, 0 \
for the others; threads of one program share alike. A thread should spend f of the time in which it is runnable on fast \
cores. Every 10 ms those who are furthest behind their share get the fast cores; who has one gives way only to a thread that \
is behind by half a round more. The others share the slow cores under CFS. Shares follow the runnable threads at every tick \
and the speed-ups every 2 s.

**Constants.** Round 30 ms, speed-ups every 2 s: the authors' tool. While speed-ups are observed or unknown, every thread \
keeps at least 1.2 ms of a round on either kind of core, so that they stay known (the tool's least slice); those who have \
more give it in proportion. `tick_ms` = 10 is ours (the kernel of the paper looks at every tick of its clock).

**Example.** 2 fast and 2 slow cores, speed-ups 2.5, 2.1, 1.6, 1.2: f = 1, 1, 0, 0; performance relative to fair shares 1.43, \
1.35, 0.77, 0.91.

**Limits.** Unfair by design. Differs from `hsp`: a program's threads count by themselves and take turns, and speed-ups that \
are observed stay fresh. The paper has no more threads than cores; with more, see `max-fair`.",
    params: &[
        share_policy::SAMPLE,
        speedup::STATIC,
        rounds::ROUND,
        share_policy::MIN_SLICE,
        seats::TICK,
        cfs::LATENCY,
        cfs::MIN_GRANULARITY,
        cfs::WAKEUP_GRANULARITY,
    ],
    build: |params| share_policy::build(params, Base::FairShare, MaxPerf),
};

/// Shares of max-perf.
struct MaxPerf;

impl ShareRule for MaxPerf {
    fn shares(&self, contest: &Contest) -> Vec<f64> {
        contest.max_perf()
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{PolicyHost, build};

    #[test]
    fn those_who_gain_most_stay_on_the_fast_cores() {
        let mut host = PolicyHost::new(&[(1, 2), (0, 2)], build("max-perf", &[]));
        let threads = host.add_programs(&[1.2, 2.5, 1.6, 2.1]);
        for _ in 0..3 {
            host.run_epoch();
        }
        assert_eq!(host.on_fast(), [threads[1], threads[3]]);
        for _ in 0..200 {
            assert_eq!(host.run_epoch(), 0, "nothing changes");
        }
    }
}
