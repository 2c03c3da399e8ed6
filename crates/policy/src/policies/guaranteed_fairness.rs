//! Guaranteed fairness: throughput as long as fairness permits.

use super::support::claims::Bids;
use super::support::progress::Slowdowns;
use super::support::ranking::{Place, Ranking};
use super::support::seat_policy::{SeatPolicy, SeatRule};
use super::support::seats;
use super::support::speedup::{self, Sharing, Speedups, app_gains};
use super::{cfs, hsp};
use crate::{Needs, ParamInfo, Params, PolicyInfo, View};

/// The registry's row.
pub static INFO: PolicyInfo = PolicyInfo {
    name: "guaranteed-fairness",
    summary: "the fast cores for those who gain most while fairness is above a target, else for those furthest behind",
    source: "Van Craeynest, Akram, Heirman, Jaleel, Eeckhout: Fairness-aware scheduling, PACT 2013. Details reconstructed",
    documentation: "\
**Purpose.** As much throughput as a stated degree of fairness allows.

**When to use.** Where a degree of fairness is given (`target`) and what is left may go to throughput. It needs \
speed-ups. Not for fairness within a short time: the target holds on average since the threads' start.

**Algorithm.** Every 10 ms fairness = 1 - standard deviation / mean of the slowdowns so far of all threads (those of `equal-progress`). While it is \
at least `target`, threads are ranked as `hsp` does, by the speed-up of their application; else as `equal-progress` does, by their \
slowdown. The first N_FC have a fast core each, the others share the slow ones under CFS.

**Constants.** The text of the paper was not at hand; this is a reconstruction. `target` = 0.9, `tick_ms` = 10 are ours; a newcomer's speed-up must \
be 5 % (`hysteresis`), its slowdown 2 % (`lead`) greater than that of the thread that it replaces, as in the two policies. The standard deviation is \
that of the population.

**Example.** 1 fast and 1 slow core, speed-ups 3 and 1.5. At first the first thread has the fast core and the other falls behind: slowdowns 1 and \
1.5, fairness 0.8. Below 0.9 the second one gets the fast core until fairness is 0.9 again.

**Limits.** Those of both policies. The target is met on average since the start of the threads, not within a short time, and not if even equal \
progress cannot meet it.",
    params: &[
        speedup::SAMPLE,
        speedup::STATIC,
        speedup::EVEN,
        ParamInfo::number("target", 0.9, 0.0, 1.0, "fairness from which throughput counts (ours)"),
        hsp::HYSTERESIS,
        ParamInfo::number("lead", 0.02, 0.0, 10.0, "how much greater a newcomer's slowdown must be (ours)"),
        seats::TICK,
        cfs::LATENCY,
        cfs::MIN_GRANULARITY,
        cfs::WAKEUP_GRANULARITY,
    ],
    build: |params| Box::new(SeatPolicy::new(params, GuaranteedFairness::new(params))),
};

/// Those who gain most or those who are furthest behind, by how fair it has been.
struct GuaranteedFairness {
    target: f64,
    hysteresis: f64,
    lead: f64,
    sharing: Sharing,
    speedups: Speedups,
    slowdowns: Slowdowns,
    ranking: Ranking,
}

impl GuaranteedFairness {
    fn new(params: &Params) -> Self {
        Self {
            target: params.number("target"),
            hysteresis: params.number("hysteresis"),
            lead: params.number("lead"),
            sharing: Sharing::new(params),
            speedups: Speedups::new(params),
            slowdowns: Slowdowns::default(),
            ranking: Ranking::default(),
        }
    }
}

impl SeatRule for GuaranteedFairness {
    type Claim = Place;

    fn needs(&self) -> Needs {
        self.speedups.needs()
    }

    fn claims(&mut self, view: &View, fast_cores: usize) -> Bids<Place> {
        self.speedups.update(view);
        self.slowdowns.update(view, &mut self.speedups);
        let (values, hysteresis) = if self.slowdowns.fairness(view) >= self.target {
            (app_gains(view, &mut self.speedups, self.sharing, fast_cores), self.hysteresis)
        } else {
            (self.slowdowns.of_runnable(view), self.lead)
        };
        self.ranking.claims(values, hysteresis, fast_cores)
    }
}

#[cfg(test)]
mod tests {
    use ampsched_model::{AppId, ThreadId};

    use super::*;
    use crate::policies::support::labels::Spread;
    use crate::testing::{PolicyHost, build};

    const SPEEDUPS: [f64; 4] = [3.4, 2.6, 2.1, 1.5];

    /// Fairness and aggregate speed-up after 20 s on 2 fast and 2 slow cores.
    fn outcome(policy: &str, params: &[(&str, f64)]) -> (f64, f64) {
        let mut host = PolicyHost::new(&[(1, 2), (0, 2)], build(policy, params));
        let apps = (0..).map(AppId).zip(SPEEDUPS);
        let threads: Vec<ThreadId> = apps.map(|(app, s)| host.add_to(app, Some(s))).collect();
        for _ in 0..2000 {
            host.run_epoch();
        }
        let share =
            |thread: ThreadId| seats::fast_ns(host.sched.stats(thread)) as f64 / host.now_ns as f64;
        let speeds: Vec<f64> =
            threads.iter().zip(SPEEDUPS).map(|(&t, s)| 1.0 + share(t) * (s - 1.0)).collect();
        let slowdowns: Vec<f64> = speeds.iter().zip(SPEEDUPS).map(|(v, s)| s / v).collect();
        let spread = Spread::of(&slowdowns);
        (1.0 - spread.sigma / spread.mean, speeds.iter().map(|speed| speed - 1.0).sum())
    }

    #[test]
    fn throughput_grows_as_the_target_falls_and_the_target_is_met() {
        let mut last = 0.0;
        for target in [0.95, 0.9, 0.8, 0.7] {
            let (fairness, gain) = outcome("guaranteed-fairness", &[("target", target)]);
            assert!(fairness >= target - 0.005, "{target}: {fairness}");
            assert!(fairness <= target + 0.02, "{target}: {fairness}");
            assert!(gain > last, "{target}: {gain} {last}");
            last = gain;
        }
    }

    #[test]
    fn the_ends_are_the_two_policies() {
        assert_eq!(outcome("guaranteed-fairness", &[("target", 0.0)]), outcome("hsp", &[]));
        assert_eq!(
            outcome("guaranteed-fairness", &[("target", 1.0)]),
            outcome("equal-progress", &[])
        );
    }
}
