//! Equal progress: fast cores for those who are furthest behind.

use super::cfs;
use super::support::claims::Bids;
use super::support::progress::Slowdowns;
use super::support::ranking::{Place, Ranking};
use super::support::seat_policy::{SeatPolicy, SeatRule};
use super::support::seats;
use super::support::speedup::{self, Speedups};
use crate::{Needs, ParamInfo, Params, PolicyInfo, View};

/// The registry's row.
pub static INFO: PolicyInfo = PolicyInfo {
    name: "equal-progress",
    summary: "equal-progress scheduling: the fast cores go to the threads with the greatest slowdown so far",
    source: "Van Craeynest, Akram, Heirman, Jaleel, Eeckhout: Fairness-aware scheduling, PACT 2013. Details reconstructed",
    documentation: "\
**Purpose.** All threads should be slowed down equally, compared with running alone on a fast core.

**When to use.** Where all threads are to be slowed down alike, and simply. It needs speed-ups. Not for programs \
whose threads wait for each other (`colab`), nor where throughput alone counts (`max-perf`).

**Algorithm.** A thread's slowdown so far is S = T / (T_fast + T_slow / R): the time in which it ran or waited for a core, over the time that a \
fast core would have needed for the same work. R is its speed-up; if that changes, each stretch of time counts with the value that held \
then. Every 10 ms the N_FC runnable threads with the greatest S get a fast core each; the others share the slow ones under CFS. A \
thread on a slow core takes the place of one on a fast core only if its S is 2 % greater.

**Constants.** The text of the paper was not at hand: the formula and the two modes (this one and `guaranteed-fairness`) are a reconstruction from \
how others describe it. `tick_ms` = 10 and `hysteresis` = 0.02 are ours, and so is that waiting for a core counts: the paper has as many threads as \
cores. Speed-ups are read every 200 ms, as in Prop-SP.

**Example.** After 100 ms, with one fast core: A has had 60 ms on the fast core and R = 2, S = 100 / 80 = 1.25; B 20 ms and R = 3, S = 2.14; C 40 ms and R = \
1.2, S = 1.11. B gets the fast core.

**Limits.** Equal progress of threads is not equal progress of programs: a thread that others wait for is treated like any other. Waste is accepted: a \
thread that gains little may hold a fast core to catch up. Unknown speed-ups count 1.",
    params: &[
        speedup::SAMPLE,
        speedup::STATIC,
        HYSTERESIS,
        seats::TICK,
        cfs::LATENCY,
        cfs::MIN_GRANULARITY,
        cfs::WAKEUP_GRANULARITY,
    ],
    build: |params| Box::new(SeatPolicy::new(params, EqualProgress::new(params))),
};

/// What keeps a thread on its fast core.
const HYSTERESIS: ParamInfo = ParamInfo::number(
    "hysteresis",
    0.02,
    0.0,
    10.0,
    "how much greater a newcomer's slowdown must be (ours)",
);

/// Those who are furthest behind.
struct EqualProgress {
    hysteresis: f64,
    speedups: Speedups,
    slowdowns: Slowdowns,
    ranking: Ranking,
}

impl EqualProgress {
    fn new(params: &Params) -> Self {
        Self {
            hysteresis: params.number("hysteresis"),
            speedups: Speedups::new(params),
            slowdowns: Slowdowns::default(),
            ranking: Ranking::default(),
        }
    }
}

impl SeatRule for EqualProgress {
    type Claim = Place;

    fn needs(&self) -> Needs {
        self.speedups.needs()
    }

    fn claims(&mut self, view: &View, fast_cores: usize) -> Bids<Place> {
        self.speedups.update(view);
        self.slowdowns.update(view, &mut self.speedups);
        self.ranking.claims(self.slowdowns.of_runnable(view), self.hysteresis, fast_cores)
    }
}

#[cfg(test)]
mod tests {
    use ampsched_model::ThreadId;

    use crate::testing::{PolicyHost, build};

    /// Slowdowns after some epochs on one fast core and a slow one for each other thread.
    fn slowdowns(speedups: &[f64], epochs: usize) -> Vec<f64> {
        let clusters = [(1, 1), (0, speedups.len() - 1)];
        let mut host = PolicyHost::new(&clusters, build("equal-progress", &[]));
        let threads: Vec<ThreadId> = speedups.iter().map(|&s| host.add(Some(s))).collect();
        for _ in 0..epochs {
            host.run_epoch();
        }
        let slowdown = |(&thread, speedup): (&ThreadId, &f64)| {
            let stats = host.sched.stats(thread);
            let alone = stats.run_ns[1] as f64 + stats.run_ns[0] as f64 / speedup;
            host.now_ns as f64 / alone
        };
        threads.iter().zip(speedups).map(slowdown).collect()
    }

    #[test]
    fn slowdowns_become_equal() {
        // F = (R / S - 1) / (R - 1) of the fast core each makes 1 in total: S = 5.75 / 3.75.
        for slowdown in slowdowns(&[2.0, 3.0, 1.8], 1000) {
            assert!((slowdown * 3.75 / 5.75 - 1.0).abs() < 0.03, "{slowdown}");
        }
    }

    #[test]
    fn who_is_never_far_behind_never_gets_a_fast_core() {
        // Always on a slow core the last is slowed down by 1.1, the others by more.
        let all = slowdowns(&[3.0, 3.0, 1.1], 1000);
        assert!((all[2] - 1.1).abs() < 0.01 && all[0] > 1.3 && all[1] > 1.3, "{all:?}");
    }

    #[test]
    fn a_small_lead_changes_nothing() {
        let turns = |hysteresis| {
            let policy = build("equal-progress", &[("hysteresis", hysteresis)]);
            let mut host = PolicyHost::new(&[(1, 1), (0, 1)], policy);
            host.add(Some(2.0));
            host.add(Some(2.0));
            let holders: Vec<ThreadId> = (0..100)
                .map(|_| {
                    host.run_epoch();
                    host.on_fast()[0]
                })
                .collect();
            holders.chunk_by(|a, b| a == b).count()
        };
        assert_eq!(turns(0.0), 100);
        assert!(turns(0.02) < 40, "{}", turns(0.02));
    }
}
