//! WASH as COLAB describes and compares with it.

use ampsched_model::{CoreSet, Ns, ThreadId};

use super::cfs::{self, CfsRules};
use super::colab;
use super::support::known_speedup;
use super::support::labels::Spread;
use super::support::window::{Activity, PerThread, Windows, keep_after};
use crate::{Change, Needs, ParamInfo, Params, Plan, Policy, PolicyInfo, Rules, Topology, View};

/// The registry's row.
pub static INFO: PolicyInfo = PolicyInfo {
    name: "wash",
    summary: "threads with high speed-up or much blame are bound to the big cores; CFS does the rest",
    source: "Jibaja et al.: WASH, CGO 2016, as described by COLAB (CGO 2020), sections 2 and 5",
    documentation: "\
**Purpose.** Accelerate critical threads and those that gain most from a big core, by affinity alone. It is the state of the art \
that COLAB compares with.

**When to use.** To see what affinities alone can do, and as what COLAB compares with. It needs speed-ups and blame: \
who waits for whom. Not where many threads are critical or gain much: they crowd the big cores while little ones \
idle.

**Algorithm.** CFS selects. Every 10 ms, over the threads that were runnable in the window, the speed-up s and the blame b (time \
that others have waited for the thread) are scored: z(s) + z(b) with z(x) = (x - mean) / sigma, 0 if sigma is 0. A thread is \
bound to the big cores if its score exceeds 0.5, or s or b is at least mean + 0.5 sigma; the others may use all cores. If no more \
threads were runnable than there are big cores, all are bound to them.

**Constants.** COLAB says that both kinds of thread go to big cores by one mixed ranking, and prints no formula: the scores, 0.5 \
(`sigma`) and the period of 10 ms (COLAB's own) are ours. Blame is weighted x 0.9 per 10 ms, as for `colab`, so that the two see \
the same. CFS's constants are those of `cfs`.

**Example.** Speed-up and blame: a (3, 50 ms), b (3, 0), c (1.2, 50 ms), d (1.2, 0): scores 2, 0, 0, -2. a, b and c are bound to \
the big cores (b and c by the second condition), d roams.

**Limits.** It controls neither who is chosen nor for how long, so few big cores are overloaded by critical and core-sensitive \
threads at once while little cores idle.",
    params: &[
        ParamInfo::number(
            "sigma",
            0.5,
            0.0,
            5.0,
            "score, and standard deviations above the mean, from which a thread is bound (ours)",
        ),
        colab::DECAY,
        colab::RAW,
        colab::EPOCH,
        cfs::LATENCY,
        cfs::MIN_GRANULARITY,
        cfs::WAKEUP_GRANULARITY,
    ],
    build: |params| Box::new(Wash::new(params)),
};

/// WASH by scores.
pub struct Wash {
    cfs: CfsRules,
    sigma: f64,
    keep: f64,
    epoch_ns: Ns,
    blame: Windows,
    activity: Activity,
    bound: Bound,
}

impl Wash {
    fn new(params: &Params) -> Self {
        let epoch_ns = params.ms("epoch_ms");
        let decay = if params.flag("raw") { 1.0 } else { params.number("decay") };
        Self {
            cfs: CfsRules::new(params),
            sigma: params.number("sigma"),
            keep: keep_after(epoch_ns, decay, colab::DECAY_PERIOD_NS),
            epoch_ns,
            blame: Windows::default(),
            activity: Activity::default(),
            bound: Bound::default(),
        }
    }

    /// Whether a thread that stands like that among the others goes to the big cores.
    fn is_chosen(&self, speedup_z: f64, blame_z: f64) -> bool {
        // Where all values are alike, z is 0 and nobody stands out, whatever the threshold.
        let stands_out = |z: f64| z != 0.0 && z >= self.sigma - ROUNDING;
        speedup_z + blame_z > self.sigma || stands_out(speedup_z) || stands_out(blame_z)
    }
}

/// Slack in comparing scores, so that a score of exactly the threshold counts on every machine.
const ROUNDING: f64 = 1e-9;

impl Policy for Wash {
    fn needs(&self) -> Needs {
        Needs { speedup: true, blame: true, epoch_ns: Some(self.epoch_ns), ..Needs::default() }
    }

    fn rules(&self, topology: &Topology) -> Rules {
        self.cfs.on(topology)
    }

    fn epoch(&mut self, view: &View, plan: &mut Plan) {
        let recent = view.recent();
        let active = self.activity.end_window_of(view, &recent);
        self.blame.update(view, &recent, self.keep, |thread| view.factors(thread).blame_ns.or(0.0));
        if view.topology().class_count() == 1 {
            return;
        }
        let all_fit = active.len() <= view.topology().big_seats(active.len());
        let speedups: Vec<f64> =
            active.iter().map(|&t| known_speedup(view, t).unwrap_or(1.0)).collect();
        let blames: Vec<f64> = active.iter().map(|&t| self.blame.value(t)).collect();
        let (speedup, blame) = (Spread::of(&speedups), Spread::of(&blames));
        for (index, &thread) in active.iter().enumerate() {
            let chosen = self.is_chosen(speedup.z(speedups[index]), blame.z(blames[index]));
            self.bound.set(view, plan, thread, all_fit || chosen);
        }
    }
}

/// Which threads are bound to the big cores.
#[derive(Clone, Debug, Default)]
pub struct Bound {
    bound: PerThread<bool>,
}

impl Bound {
    /// Binds a thread to the big cores or lets it use all; plans a change only if it is one.
    pub fn set(&mut self, view: &View, plan: &mut Plan, thread: ThreadId, bind: bool) {
        let was_bound = std::mem::replace(self.bound.slot(thread), bind);
        if was_bound == bind {
            return;
        }
        let topology = view.topology();
        let cores: CoreSet =
            if bind { topology.big_cores().collect() } else { topology.cores().collect() };
        plan.set(thread, Change::Affinity(cores));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{PolicyHost, build};

    const MS: u64 = 1_000_000;

    /// Who may use only big cores, which come first.
    fn bound(host: &PolicyHost, threads: &[ThreadId], first_little: usize) -> Vec<bool> {
        threads.iter().map(|&t| !host.sched.allows(t, first_little.into())).collect()
    }

    #[test]
    fn high_speedup_and_blame_both_go_to_big_cores() {
        let mut host = PolicyHost::new(&[(1, 2), (0, 2)], build("wash", &[]));
        let threads = [(3.0, 50), (3.0, 0), (1.2, 50), (1.2, 0)]
            .map(|(speedup, blame_ms)| host.add_blamed(speedup, blame_ms * MS));
        host.epoch();
        assert_eq!(bound(&host, &threads, 2), [true, true, true, false]);
    }

    #[test]
    fn a_little_of_both_is_enough() {
        let mut host = PolicyHost::new(&[(1, 1), (0, 2)], build("wash", &[]));
        // Means 2 and 40, deviations 0.87 and 36: the first has 0.46 + 0.44, the second 0.46 + 0.28.
        let threads = [(2.4, 56), (2.4, 50), (3.2, 0), (1.0, 0), (1.0, 94)]
            .map(|(speedup, blame_ms)| host.add_blamed(speedup, blame_ms * MS));
        host.epoch();
        assert_eq!(bound(&host, &threads, 1), [true, true, true, false, true]);
        let mut host = PolicyHost::new(&[(1, 1), (0, 2)], build("wash", &[]));
        let threads = [(2.4, 40), (2.4, 36), (3.2, 0), (1.0, 0), (1.0, 124)]
            .map(|(speedup, blame_ms)| host.add_blamed(speedup, blame_ms * MS));
        host.epoch();
        // 0.46 + 0 and 0.46 - 0.09.
        assert_eq!(bound(&host, &threads, 1), [false, false, true, false, true]);
    }

    #[test]
    fn all_are_bound_if_they_fit() {
        let mut host = PolicyHost::new(&[(1, 4), (0, 4)], build("wash", &[]));
        let threads = [3.0, 3.0, 1.2, 1.2].map(|speedup| host.add_blamed(speedup, 0));
        host.epoch();
        assert_eq!(bound(&host, &threads, 4), [true; 4]);
    }

    #[test]
    fn equal_threads_roam() {
        let mut host = PolicyHost::new(&[(1, 2), (0, 2)], build("wash", &[("sigma", 0.0)]));
        let threads = [2.0; 5].map(|speedup| host.add_blamed(speedup, 0));
        host.epoch();
        assert_eq!(bound(&host, &threads, 2), [false; 5]);
    }

    #[test]
    fn blame_fades_and_frees() {
        let mut host = PolicyHost::new(&[(1, 1), (0, 2)], build("wash", &[]));
        let threads = [0, 1, 50].map(|blame_ms| host.add_blamed(1.2, blame_ms * MS));
        host.epoch();
        assert_eq!(bound(&host, &threads, 1), [false, false, true]);
        for _ in 0..50 {
            host.sched.blame(threads[1], 2 * MS);
            host.epoch();
        }
        assert_eq!(bound(&host, &threads, 1), [false, true, false]);
        let mut raw = PolicyHost::new(&[(1, 1), (0, 2)], build("wash", &[("raw", 1.0)]));
        let threads = [0, 1, 200].map(|blame_ms| raw.add_blamed(1.2, blame_ms * MS));
        for _ in 0..50 {
            raw.sched.blame(threads[1], 2 * MS);
            raw.epoch();
        }
        assert_eq!(bound(&raw, &threads, 1), [false, false, true]);
    }

    #[test]
    fn an_epoch_without_news_changes_nothing() {
        let mut host = PolicyHost::new(&[(1, 2), (0, 2)], build("wash", &[]));
        for speedup in [3.0, 3.0, 1.2, 1.2] {
            host.add_blamed(speedup, 0);
        }
        assert_eq!(host.epoch(), 2);
        assert_eq!(host.epoch(), 0);
    }
}
