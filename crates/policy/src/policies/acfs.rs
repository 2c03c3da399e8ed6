//! ACFS: CFS for unequal cores, equal progress instead of equal time.

use super::cfs;
use super::support::claims::{Bids, Low};
use super::support::seat_policy::{SeatPolicy, SeatRule};
use super::support::seats;
use super::support::speedup::{self, Speedups};
use super::support::usage::{Meter, Usage};
use super::support::window::PerThread;
use crate::{Needs, ParamInfo, Params, PolicyInfo, View};

/// The registry's row.
pub static INFO: PolicyInfo = PolicyInfo {
    name: "acfs",
    summary: "ACFS: threads that are ahead in progress change places with those that are behind",
    source: "Saez, Pousa, Castro, Chaver, Prieto-Matias: Towards completely fair scheduling on asymmetric single-ISA \
multicore processors, JPDC 102, 2017, and SAC 2015 (reconstruction from the abstracts)",
    documentation: "\
**Purpose.** What CFS does for time, for progress: all threads are slowed down alike, in proportion to their weights.

**When to use.** Where all threads are to be slowed down alike, in the simulator or in a kernel. It needs speed-ups; \
where there are none it shares the time on fast cores evenly. Not where throughput alone counts (`hsp`, `max-perf`).

**Algorithm.** A reconstruction: the papers' abstracts state the goal, not the algorithm. Each thread has a counter of \
progress in time on a fast core. Time on a fast core counts fully, on a slow core divided by the thread's speed-up, both \
divided by its weight. Every 10 ms the thread on a fast core that is furthest ahead changes places with the one on a slow \
core that is furthest behind, if they are more than 20 ms apart; then the next two, and so on. On slow cores CFS decides. A \
new thread begins with the least progress of the others; one that was blocked is at most two gaps behind that.

**Constants.** `gap_ms` = 20 and `tick_ms` = 10 are ours. Speed-ups are read every 200 ms, as in Prop-SP of the same authors.

**Example.** 2 fast and 2 slow cores, speed-ups 3.4, 3.4, 2.3, 2.3: on fast cores 55.5, 55.5, 44.5 and 44.5 % of the time, \
all slowed down 1.457 times.

**Limits.** Throughput is no concern. While a thread's speed-up is unknown its time on slow cores counts nothing (ours): so \
it soon gets a fast core and can be observed, and where speed-ups are never known all get the same time on fast cores.",
    params: &[
        ParamInfo::number("gap_ms", 20.0, 0.0, 10_000.0, "difference in progress, in time on a fast core, that is left alone (ours)"),
        speedup::SAMPLE,
        speedup::STATIC,
        seats::TICK,
        cfs::LATENCY,
        cfs::MIN_GRANULARITY,
        cfs::WAKEUP_GRANULARITY,
    ],
    build: |params| Box::new(SeatPolicy::new(params, Acfs::new(params))),
};

/// How many gaps a woken thread may be behind the others: more than one, so that it gets a fast core.
const GAPS_OWED: f64 = 2.0;

/// Those whose progress is least.
struct Acfs {
    gap_ns: f64,
    speedups: Speedups,
    meter: Meter,
    threads: PerThread<Progress>,
}

/// How far a thread has come.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    /// In ns on a fast core x 1024 / weight.
    done_ns: f64,
    /// Whether it was there at the last tick.
    is_known: bool,
    /// Whether it came back from being blocked since then.
    has_slept: bool,
}

impl Acfs {
    fn new(params: &Params) -> Self {
        Self {
            gap_ns: params.number("gap_ms") * 1e6,
            speedups: Speedups::new(params),
            meter: Meter::default(),
            threads: PerThread::default(),
        }
    }

    /// Counts what has been done since the last tick.
    fn advance(&mut self, view: &View) {
        let mut least_ns = f64::INFINITY;
        // Who has slept has got no further.
        let recent = view.recent();
        for &thread in recent.iter() {
            let usage = self.meter.since_last(view, thread);
            let weight = f64::from(view.plan(thread).weight) / 1024.0;
            let speedup = self.speedups.known(thread);
            let progress = self.threads.slot(thread);
            progress.done_ns += on_fast_core_ns(usage, speedup) / weight;
            progress.has_slept = usage.blocked_ns > 0;
            if progress.is_known && !progress.has_slept && view.state(thread).is_runnable() {
                least_ns = least_ns.min(progress.done_ns);
            }
        }
        if least_ns.is_finite() {
            self.catch_up(view, least_ns);
        }
        for &thread in recent.iter() {
            self.threads.slot(thread).is_known = true;
        }
    }

    /// Nobody is owed what others did while it was not there: new threads begin with the least progress
    /// of those who were, woken ones with a little less, so that they soon get a fast core.
    fn catch_up(&mut self, view: &View, least_ns: f64) {
        for thread in view.runnable() {
            let progress = self.threads.slot(thread);
            let floor_ns = match (progress.is_known, progress.has_slept) {
                (false, _) => least_ns,
                (true, true) => least_ns - GAPS_OWED * self.gap_ns,
                (true, false) => continue,
            };
            progress.done_ns = progress.done_ns.max(floor_ns);
        }
    }
}

/// Progress that a usage means, in time on a fast core.
fn on_fast_core_ns(usage: Usage, speedup: Option<f64>) -> f64 {
    usage.fast_ns as f64 + speedup.map_or(0.0, |speedup| usage.slow_ns as f64 / speedup)
}

impl SeatRule for Acfs {
    type Claim = Low;

    fn needs(&self) -> Needs {
        self.speedups.needs()
    }

    fn claims(&mut self, view: &View, _fast_cores: usize) -> Bids<Low> {
        self.speedups.update(view);
        self.advance(view);
        let threads = &mut self.threads;
        seats::least_first(view, self.gap_ns, |thread| threads.slot(thread).done_ns)
    }
}

#[cfg(test)]
mod tests;
