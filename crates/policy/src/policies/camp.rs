//! CAMP: fast cores by classes of utility.

use super::cfs;
use super::support::claims::Bids;
use super::support::rotation::{self, Rotation, Turn};
use super::support::seat_policy::{SeatPolicy, SeatRule};
use super::support::seats;
use super::support::speedup::{self, ActiveApp, Sharing, Speedups};
use super::support::window::PerThread;
use crate::{Needs, ParamInfo, Params, PolicyInfo, View};

/// The registry's row.
pub static INFO: PolicyInfo = PolicyInfo {
    name: "camp",
    summary: "CAMP: three classes of utility; the highest class shares the fast cores in turn",
    source: "Saez, Fedorova, Koufaty, Prieto: CAMP, ACM TOCS 30 (2012); Saez et al., EuroSys 2010. Details reconstructed",
    documentation: "\
**Purpose.** Fast cores for threads that gain from them, counting both kinds of gain: from a fast core's instruction-level \
parallelism and from a quick sequential phase of a parallel program.

**When to use.** For throughput where parallel programs have quick sequential phases that are worth a fast core. It \
needs speed-ups. Not where every program has to get on: `prop-sp` gives everybody a part.

**Algorithm.** The utility factor of a thread with speed-up SF in an application with N runnable threads is SF if N = 1, else \
1 + (SF - 1) / (floor((N - 1) / N_FC) + 1)^2 or, with `eurosys`, 1 + (SF - 1) / max(1, N - (N_FC - 1))^2. It is *low* below one \
threshold, *high* from another, else *medium*. The only runnable thread of an application that has more, a sequential phase, is high in any \
case (`boost`). The high class has the fast cores, then the medium, then the low one; within the class that does not fit, threads take turns \
of 200 ms, those with least fast time first. All others share the slow cores under CFS. Speed-ups are read every 200 ms, classes \
and fast cores are assigned every 10 ms, so changes of the number of runnable threads count at once.

**Constants.** The text of the papers was not at hand: the classes, the boost and the first form of the utility factor are stated by Prop-SP \
(Euro-Par 2014 workshops, section 3.2, as the speed-up of an application); the second form and all numbers are a reconstruction. \
`low` = 1.1; high from 1 + `high_share` (0.5) x (greatest speed-up - 1), the greatest seen so far unless \
`speedup_max` states it; a thread changes its class when it is `hysteresis` = 0.05 beyond the threshold; `rotate_ms` = 200 and `tick_ms` = 10 as in `rr-amp`.

**Example.** 2 fast and 2 slow cores, single threads with speed-ups 3, 2.5, 2.2 and 1.2: the first three are high (from 2.0) and have a fast core \
two thirds of the time; the last has none.

**Limits.** Unfair by design, as `hsp`: a low class never sees a fast core while higher ones want it. Threads above the threshold count alike, \
however much they gain. Unknown speed-ups count 1.",
    params: &[
        speedup::SAMPLE,
        speedup::STATIC,
        ParamInfo::flag("eurosys", false, "the utility factor's first form (EuroSys 2010)"),
        ParamInfo::flag("boost", true, "sequential phases of parallel programs are of the high class"),
        ParamInfo::number("low", 1.1, 1.0, 100.0, "utility factor below which a thread is low (ours)"),
        ParamInfo::number("high_share", 0.5, 0.0, 1.0, "part of the greatest net speed-up from which a thread is high (ours)"),
        ParamInfo::number("speedup_max", 0.0, 0.0, 100.0, "greatest speed-up on the machine; 0 = the greatest seen so far"),
        ParamInfo::number("hysteresis", 0.05, 0.0, 10.0, "how far beyond a threshold a thread changes its class (ours)"),
        rotation::ROTATE,
        seats::TICK,
        cfs::LATENCY,
        cfs::MIN_GRANULARITY,
        cfs::WAKEUP_GRANULARITY,
    ],
    build: |params| Box::new(SeatPolicy::new(params, Camp::new(params))),
};

/// How much a thread is worth a fast core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Utility {
    Low,
    Medium,
    High,
}

/// Where the classes begin.
#[derive(Clone, Copy, Debug)]
struct Thresholds {
    medium: f64,
    high: f64,
    hysteresis: f64,
}

impl Thresholds {
    /// The class of a utility factor, for a thread that was in class `before`.
    fn class(self, factor: f64, before: Option<Utility>) -> Utility {
        let reaches = |class: Utility, threshold: f64| {
            let margin = match before {
                None => 0.0,
                Some(before) if before >= class => -self.hysteresis,
                Some(_) => self.hysteresis,
            };
            factor >= threshold + margin
        };
        if reaches(Utility::High, self.high) {
            Utility::High
        } else if reaches(Utility::Medium, self.medium) {
            Utility::Medium
        } else {
            Utility::Low
        }
    }
}

/// Those of the highest class, in turn.
struct Camp {
    sharing: Sharing,
    boost: bool,
    low: f64,
    high_share: f64,
    /// Greatest speed-up: stated, or seen so far.
    speedup_max: f64,
    stated: bool,
    hysteresis: f64,
    speedups: Speedups,
    classes: PerThread<Option<Utility>>,
    rotation: Rotation,
}

impl Camp {
    fn new(params: &Params) -> Self {
        let speedup_max = params.number("speedup_max");
        let eurosys = params.flag("eurosys");
        Self {
            sharing: if eurosys { Sharing::LastFastCore } else { Sharing::BusyFastCores },
            boost: params.flag("boost"),
            low: params.number("low"),
            high_share: params.number("high_share"),
            speedup_max: speedup_max.max(1.0),
            stated: speedup_max > 0.0,
            hysteresis: params.number("hysteresis"),
            speedups: Speedups::new(params),
            classes: PerThread::default(),
            rotation: Rotation::new(params),
        }
    }

    fn thresholds(&mut self, view: &View) -> Thresholds {
        if !self.stated {
            for thread in view.runnable() {
                self.speedup_max = self.speedup_max.max(self.speedups.of(thread));
            }
        }
        let high = 1.0 + self.high_share * (self.speedup_max - 1.0);
        Thresholds { medium: self.low, high: high.max(self.low), hysteresis: self.hysteresis }
    }

    /// Puts all runnable threads into classes.
    fn classify(&mut self, view: &View, fast_cores: usize) {
        let thresholds = self.thresholds(view);
        for app in ActiveApp::all(view, &mut self.speedups) {
            let count = app.threads.len();
            let sequential = count == 1 && view.live_in(app.app) > 1;
            for thread in app.threads {
                let speedup = self.speedups.of(thread);
                let factor = self.sharing.app_speedup(speedup, count, fast_cores);
                let class = self.classes.slot(thread);
                *class = Some(match self.boost && sequential {
                    true => Utility::High,
                    false => thresholds.class(factor, *class),
                });
            }
        }
    }
}

impl SeatRule for Camp {
    type Claim = Turn<Option<Utility>>;

    fn needs(&self) -> Needs {
        self.speedups.needs()
    }

    fn claims(&mut self, view: &View, fast_cores: usize) -> Bids<Self::Claim> {
        self.speedups.update(view);
        self.classify(view, fast_cores);
        let classes = &mut self.classes;
        self.rotation.claims(view, |thread| *classes.slot(thread))
    }
}

#[cfg(test)]
mod tests {
    use ampsched_model::{AppId, Ns, ThreadId};

    use super::*;
    use crate::RunState;
    use crate::testing::{PolicyHost, build};

    const MS: Ns = 1_000_000;

    fn host(params: &[(&str, f64)], speedups: &[(u16, f64)]) -> (PolicyHost, Vec<ThreadId>) {
        let mut host = PolicyHost::new(&[(1, 2), (0, 2)], build("camp", params));
        let add = |&(app, speedup): &(u16, f64)| host.add_to(AppId(app), Some(speedup));
        let threads = speedups.iter().map(add).collect();
        (host, threads)
    }

    #[test]
    fn classes_have_edges_that_hold_on() {
        use Utility::{High, Low, Medium};
        let thresholds = Thresholds { medium: 1.1, high: 2.0, hysteresis: 0.05 };
        let new = [1.09, 1.1, 1.99, 2.0].map(|factor| thresholds.class(factor, None));
        assert_eq!(new, [Low, Medium, Medium, High]);
        for (before, edges) in [
            (Low, [(1.149, Low), (1.151, Medium), (2.049, Medium), (2.051, High)]),
            (Medium, [(1.049, Low), (1.051, Medium), (2.049, Medium), (2.051, High)]),
            (High, [(1.049, Low), (1.051, Medium), (1.949, Medium), (1.951, High)]),
        ] {
            for (factor, class) in edges {
                assert_eq!(thresholds.class(factor, Some(before)), class, "{before:?} {factor}");
            }
        }
    }

    #[test]
    fn the_high_class_takes_turns() {
        let (mut host, threads) = host(&[], &[(0, 3.0), (1, 2.5), (2, 2.2), (3, 1.2)]);
        for _ in 0..600 {
            host.run_epoch();
        }
        let fast_ms = |thread| seats::fast_ns(host.sched.stats(thread)) / MS;
        for &thread in &threads[..3] {
            assert!(fast_ms(thread).abs_diff(4000) <= 210, "{}", fast_ms(thread));
        }
        assert!(fast_ms(threads[3]) <= 10, "{}", fast_ms(threads[3]));
    }

    #[test]
    fn the_medium_class_fills_up() {
        let (mut host, threads) = host(&[], &[(0, 1.05), (1, 1.5), (2, 3.0), (3, 1.05)]);
        for _ in 0..50 {
            host.run_epoch();
            assert_eq!(host.on_fast(), threads[1..3]);
        }
    }

    #[test]
    fn many_threads_lower_the_utility() {
        // Four threads that gain 3: 1 + 2 / 4 = 1.5, medium; in the first form 1 + 2 / 9 = 1.22.
        let threads = [(0, 3.0), (0, 3.0), (0, 3.0), (0, 3.0), (1, 2.1), (2, 1.4)];
        for (eurosys, fast) in [(0.0, [0, 4]), (1.0, [4, 5])] {
            // 1.22 is low and 1.4 is not.
            let params = [("eurosys", eurosys), ("low", 1.3)];
            let (mut host, threads) = host(&params, &threads);
            host.run_epoch();
            assert_eq!(host.on_fast(), fast.map(|index: usize| threads[index]), "{eurosys}");
        }
    }

    #[test]
    fn sequential_phases_are_boosted() {
        for (boost, fast) in [(1.0, [1, 2]), (0.0, [2, 3])] {
            let threads = [(0, 1.05), (0, 1.05), (1, 3.0), (2, 1.5)];
            let (mut host, threads) = host(&[("boost", boost)], &threads);
            host.run_epoch();
            assert_eq!(host.on_fast(), threads[2..], "two threads are no sequential phase");
            host.run(MS);
            let core = host.sched.thread(threads[0]).core;
            host.sched.stop(core, RunState::Blocked, host.now_ns);
            host.run_epoch();
            assert_eq!(host.on_fast(), fast.map(|index: usize| threads[index]), "boost {boost}");
        }
    }

    #[test]
    fn a_stated_maximum_moves_the_threshold() {
        // High from 1.4 instead of 2.0: the second thread shares with the first.
        for (speedup_max, alternates) in [(0.0, false), (1.8, true)] {
            let params = [("speedup_max", speedup_max)];
            let mut host = PolicyHost::new(&[(1, 1), (0, 1)], build("camp", &params));
            let threads = [(0, 3.0), (1, 1.5)].map(|(app, s)| host.add_to(AppId(app), Some(s)));
            for _ in 0..100 {
                host.run_epoch();
            }
            let fast_ms = seats::fast_ns(host.sched.stats(threads[1])) / MS;
            assert_eq!(fast_ms > 300, alternates, "{fast_ms}");
        }
    }
}
