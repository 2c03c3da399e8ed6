//! COLAB: coordinated core allocation, thread selection and slices.

use ampsched_model::{Ns, ThreadId};

use super::cfs::{self, CfsRules};
use super::support::labels::{LabelRule, Limits, SpeedLabel, Spread, Steady};
use super::support::window::{Activity, PerThread, Windows, keep_after};
use super::support::{known_speedup, plan_speeds};
use crate::{
    Allocator, Change, Charge, Event, Events, Needs, Order, ParamInfo, Params, Plan, Policy,
    PolicyInfo, Prefer, Rules, SPEED_ONE, Steal, StealFrom, Topology, View, WakePreempt,
};

/// The registry's row.
pub static INFO: PolicyInfo = PolicyInfo {
    name: "colab",
    summary: "labels by speed-up and blame steer allocation, selection and slices together",
    source: "Yu, Petoumenos, Janjic, Leather, Thomson: COLAB, CGO 2020, sections 3 and 4, Algorithm 1",
    documentation: "\
**Purpose.** Many multi-threaded programs on a machine with big and little cores: threads that gain from a big core should get \
one, threads that others wait for should run first, and neither should push the other off.

**When to use.** For multi-threaded programs whose threads wait for each other, at locks and barriers and in \
pipelines. It needs speed-ups, given or predicted, and blame: who waits for whom. Not where speed-ups are unknown: \
there it is slower than `cfs` ([prediction](../reports/prediction/degradation.md)). Not for threads that never \
block: they keep the place that they got before they had a label.

**Algorithm.** Every 10 ms each thread's predicted speed-up s and its blame (time that others have waited for it) are looked at. \
s is *high* from mean + 0.5 sigma, *low* up to mean - 0.5 sigma, over the threads that were runnable in the window; *low block* \
is blame below the mean. A label changes after two windows in a row.\n\
Allocation, at start and wake-up: high goes to the next big core, low with low block to the next little core, anything else to \
the least loaded core, ties in turn.\n\
Selection: (1) the waiting thread with the most blame in the core's own queue, (2) in the queues of its cluster, (3) big cores: \
of the other clusters, (4) big cores: the running thread with the most blame of a little core is pulled over, if it gains 5 % \
and has been where it is for 1 ms. Ties: the thread that has waited longest. An idle little core takes a waiting thread from \
another cluster, unless labelled high, after 1 ms.\n\
Slices and fairness: run time on a big core counts s-fold and slices are s times shorter, so threads get equal progress; wake-up \
preemption is that of CFS on this scale.

**Constants.** Window 10 ms (stated). Ours, because the paper prints none: the label thresholds, two windows of steadiness, blame \
x 0.9 per 10 ms (`raw` = 1 keeps the paper's sum), step 3 and the little cores' step (Algorithm 1 has neither; `strict` = 1 \
removes both), no periodic balancing (the paper does not say that CFS's goes; `balance` = 1 keeps it), the conditions of \
step 4, least loaded instead of strict turns for unlabelled threads. `fair_window_latencies`: the most blamed thread is \
chosen among those at most one CFS latency of virtual time above the least; by the paper's text \
alone (0) a thread that blocks nobody waits until nobody with blame is runnable. The text says that virtual run time is divided by the \
speed-up in the preemption test, and that slices on big cores are shorter; dividing would favour the thread on the big core. \
`literal` = 1 does the division, in that test only, with plain CFS charging and slices. The paper's printed regression is not \
used: the speed-up is the host's factor. Between three or more classes of core s is interpolated geometrically; all but the \
slowest count as big. Blame is ranked as of the last window.

**Example.** Speed-up and blame: a (3, 50 ms), b (3, 0), c (1.2, 50 ms), d (1.2, 0). a and b go to big cores in turn, d to a \
little one, c to whichever core is least loaded; on a shared core a is chosen before b.

**Limits.** Labels follow the past 10 to 20 ms. A thread that never blocks is allocated only once, before it has a label. With \
many threads per core the labels matter little and migrations cost.",
    params: PARAMS,
    build: |params| Box::new(Colab::new(params)),
};

/// COLAB's own parameters and those of CFS.
const PARAMS: &[ParamInfo] = &[
    ParamInfo::flag(
        "literal",
        false,
        "divide virtual run time in the preemption test only (section 4.1's words)",
    ),
    ParamInfo::flag("strict", false, "Algorithm 1 as printed: no step 3, no little_steal"),
    LITTLE_STEAL,
    BALANCE,
    LITTLE_STEAL_IDLE,
    HIGH_SIGMA,
    LOW_SIGMA,
    MIN_CV,
    TERCILES,
    HYSTERESIS,
    DECAY,
    RAW,
    MIN_GAIN,
    MIN_RESIDENT,
    FAIR_WINDOW,
    EPOCH,
    cfs::LATENCY,
    cfs::MIN_GRANULARITY,
    cfs::WAKEUP_GRANULARITY,
];

/// Whether CFS's periodic balancing stays.
pub const BALANCE: ParamInfo = ParamInfo::flag(
    "balance",
    false,
    "CFS's periodic balancing stays; the paper does not say whether it does (ours: no)",
);

/// Whether idle little cores take waiting threads of big cores.
pub const LITTLE_STEAL: ParamInfo = ParamInfo::flag(
    "little_steal",
    true,
    "idle little cores take waiting threads that are not labelled high (ours)",
);

/// How long a little core idles before it does so.
pub const LITTLE_STEAL_IDLE: ParamInfo =
    ParamInfo::number("little_steal_idle_ms", 1.0, 0.0, 1000.0, "after so long: one tick (ours)");

/// Where the label `high` begins.
pub const HIGH_SIGMA: ParamInfo = ParamInfo::number(
    "high_sigma",
    0.5,
    0.0,
    5.0,
    "high speed-up from the mean plus this many standard deviations (ours)",
);

/// Where the label `low` begins.
pub const LOW_SIGMA: ParamInfo = ParamInfo::number(
    "low_sigma",
    0.5,
    0.0,
    5.0,
    "low speed-up up to the mean minus this many standard deviations (ours)",
);

/// Below which spread there are no labels.
pub const MIN_CV: ParamInfo = ParamInfo::number(
    "min_cv",
    0.03,
    0.0,
    10.0,
    "no speed-up labels if standard deviation / mean is less (ours)",
);

/// Labels by thirds.
pub const TERCILES: ParamInfo =
    ParamInfo::flag("terciles", false, "label the upper and the lower third instead");

/// Steadiness of labels.
pub const HYSTERESIS: ParamInfo = ParamInfo::number(
    "hysteresis_windows",
    2.0,
    1.0,
    1000.0,
    "windows in a row after which a label changes (ours)",
);

/// Memory of blame.
pub const DECAY: ParamInfo =
    ParamInfo::number("decay", 0.9, 0.0, 1.0, "blame that remains after 10 ms (ours)");

/// Blame without forgetting.
pub const RAW: ParamInfo =
    ParamInfo::flag("raw", false, "blame is summed up for ever, as the paper says");

/// Least gain of a pull.
pub const MIN_GAIN: ParamInfo = ParamInfo::number(
    "min_gain",
    1.05,
    0.0,
    60.0,
    "least speed-up of a running thread that a big core pulls (ours)",
);

/// Least stay before a pull.
pub const MIN_RESIDENT: ParamInfo = ParamInfo::number(
    "min_resident_ms",
    1.0,
    0.0,
    1000.0,
    "least time on its core of a running thread that a big core pulls (ours)",
);

/// Fairness of selection.
pub const FAIR_WINDOW: ParamInfo = ParamInfo::number(
    "fair_window_latencies",
    1.0,
    0.0,
    1e6,
    "selection is among threads so many CFS latencies above the least virtual run time; 0 = all (ours)",
);

/// Cadence of labelling.
pub const EPOCH: ParamInfo =
    ParamInfo::number("epoch_ms", 10.0, 0.1, 10_000.0, "labelling period (section 3: 10 ms)");

/// Period to which [`DECAY`] refers.
pub const DECAY_PERIOD_NS: Ns = 10_000_000;

/// A rank counts whole microseconds of blame, so that an old blame fades to nothing.
const NS_PER_RANK: f64 = 1000.0;

/// How run time on big cores is scaled by speed-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scaling {
    /// Charged as progress, with shorter slices.
    Progress,
    /// Virtual run time is divided in the preemption test only.
    Literal,
    /// Not at all.
    None,
}

/// COLAB.
pub struct Colab {
    cfs: CfsRules,
    scaling: Scaling,
    strict: bool,
    little_steal_idle_ns: Option<Ns>,
    balances: bool,
    labels: LabelRule,
    hysteresis_windows: u32,
    keep: f64,
    /// In 1/1024.
    min_gain: u16,
    min_resident_ns: Ns,
    fair_window_latencies: f64,
    epoch_ns: Ns,
    judged: PerThread<Judged>,
    blame: Windows,
    activity: Activity,
    /// Where labels began in the last window.
    limits: Option<Limits>,
}

/// What COLAB keeps of a thread.
#[derive(Clone, Debug, Default)]
struct Judged {
    /// Speed-up that the plan's speeds were computed from.
    speedup: Option<f64>,
    speed: Steady<SpeedLabel>,
    low_block: Steady<bool>,
}

impl Colab {
    fn new(params: &Params) -> Self {
        let scaling = if params.flag("literal") { Scaling::Literal } else { Scaling::Progress };
        Self::with(params, scaling, params.flag("strict"))
    }

    /// COLAB without the scaling of run time by speed-up; see the policy of that name.
    pub fn collaboration_only(params: &Params) -> Self {
        Self::with(params, Scaling::None, false)
    }

    fn with(params: &Params, scaling: Scaling, strict: bool) -> Self {
        let epoch_ns = params.ms("epoch_ms");
        let decay = if params.flag("raw") { 1.0 } else { params.number("decay") };
        Self {
            cfs: CfsRules::new(params),
            scaling,
            strict,
            little_steal_idle_ns: params
                .flag("little_steal")
                .then(|| params.ms("little_steal_idle_ms")),
            balances: params.flag("balance"),
            labels: LabelRule {
                high_sigma: params.number("high_sigma"),
                low_sigma: params.number("low_sigma"),
                min_cv: params.number("min_cv"),
                terciles: params.flag("terciles"),
            },
            hysteresis_windows: params.number("hysteresis_windows") as u32,
            keep: keep_after(epoch_ns, decay, DECAY_PERIOD_NS),
            min_gain: (params.number("min_gain") * f64::from(SPEED_ONE)).round() as u16,
            min_resident_ns: params.ms("min_resident_ms"),
            fair_window_latencies: params.number("fair_window_latencies"),
            epoch_ns,
            judged: PerThread::default(),
            blame: Windows::default(),
            activity: Activity::default(),
            limits: None,
        }
    }

    fn fair_window_ns(&self, topology: &Topology) -> Ns {
        if self.fair_window_latencies == 0.0 {
            return Ns::MAX;
        }
        (self.cfs.latency_ns(topology) as f64 * self.fair_window_latencies) as Ns
    }

    /// Thread selector: what a core tries after its own queue.
    fn steal(&self) -> Vec<Steal> {
        let big = |from| Steal { who: Prefer::Big, ..Steal::any(from) };
        let pull = Steal {
            min_gain: self.min_gain,
            min_resident_ns: self.min_resident_ns,
            ..big(StealFrom::RunningOnSlower)
        };
        let own_cluster = Steal::any(StealFrom::OwnCluster);
        if self.strict {
            return vec![own_cluster, pull];
        }
        let mut steps = vec![own_cluster, big(StealFrom::OtherClusters), pull];
        if let Some(min_idle_ns) = self.little_steal_idle_ns {
            steps.push(Steal {
                who: Prefer::Little,
                min_idle_ns,
                except: Some(Prefer::Big),
                ..Steal::any(StealFrom::OtherClusters)
            });
        }
        steps
    }

    /// Mean blame of the active threads.
    fn mean_blame(&mut self, active: &[ThreadId]) -> f64 {
        let blames: Vec<f64> = active.iter().map(|&thread| self.blame.value(thread)).collect();
        Spread::of(&blames).mean
    }

    fn update_limits(&mut self, view: &View, active: &[ThreadId]) -> Limits {
        let mut speedups: Vec<f64> =
            active.iter().filter_map(|&thread| known_speedup(view, thread)).collect();
        let limits = self.labels.limits(&mut speedups);
        self.limits = Some(limits);
        limits
    }

    fn label(&mut self, view: &View, plan: &mut Plan, thread: ThreadId, seen: (SpeedLabel, bool)) {
        let windows = self.hysteresis_windows;
        let judged = self.judged.slot(thread);
        let prefer = preference(
            judged.speed.update(seen.0, windows),
            judged.low_block.update(seen.1, windows),
        );
        if view.plan(thread).prefer != prefer {
            plan.set(thread, Change::Prefer(prefer));
        }
    }

    fn speeds(&mut self, view: &View, plan: &mut Plan, thread: ThreadId) {
        // Only then has it a rule that reads them.
        if self.scaling == Scaling::None && self.min_gain == 0 {
            return;
        }
        let speedup = known_speedup(view, thread);
        let judged = self.judged.slot(thread);
        if judged.speedup != speedup {
            judged.speedup = speedup;
            plan_speeds(view, plan, thread, speedup.unwrap_or(1.0));
        }
    }

    fn rank(&mut self, view: &View, plan: &mut Plan, thread: ThreadId) {
        let rank = (self.blame.value(thread) / NS_PER_RANK) as u64;
        if view.plan(thread).rank != rank {
            plan.set(thread, Change::Rank(rank));
        }
    }
}

impl Policy for Colab {
    fn needs(&self) -> Needs {
        Needs {
            speedup: true,
            blame: true,
            epoch_ns: Some(self.epoch_ns),
            events: Events { lifecycle: true, ..Events::default() },
            ..Needs::default()
        }
    }

    fn rules(&self, topology: &Topology) -> Rules {
        let base = self.cfs.on(topology);
        let preempt = match base.preempt {
            WakePreempt::VruntimeGap { granularity_ns } if self.scaling == Scaling::Literal => {
                WakePreempt::ScaledVruntimeGap { scaled_granularity_ns: granularity_ns }
            }
            other => other,
        };
        let by_progress = self.scaling == Scaling::Progress;
        Rules {
            order: Order::HighestRank { fair_window_ns: self.fair_window_ns(topology) },
            allocator: Allocator::RoundRobinInClass,
            steal: self.steal(),
            kick_idle: true,
            slice_by_speed: by_progress,
            charge: if by_progress { Charge::Progress } else { Charge::Time },
            preempt,
            balance: base.balance.filter(|_| self.balances),
            ..base
        }
    }

    fn epoch(&mut self, view: &View, plan: &mut Plan) {
        let recent = view.recent();
        let active = self.activity.end_window_of(view, &recent);
        let counter = |thread| view.factors(thread).blame_ns.or(0.0);
        let concerned = self.blame.update(view, &recent, self.keep, counter);
        let mean_blame = self.mean_blame(&active);
        let limits = self.update_limits(view, &active);
        for &thread in &active {
            let speed = known_speedup(view, thread).map_or(SpeedLabel::Normal, |s| limits.label(s));
            let blame = self.blame.value(thread);
            self.label(view, plan, thread, (speed, blame < mean_blame || blame == 0.0));
        }
        for thread in concerned {
            self.rank(view, plan, thread);
            self.speeds(view, plan, thread);
        }
    }

    /// A new thread is judged by the last window's limits; before the first window it has no label.
    fn on_event(&mut self, view: &View, event: Event, plan: &mut Plan) {
        let Event::Added(thread) = event else { return };
        let Some(speedup) = known_speedup(view, thread) else { return };
        self.speeds(view, plan, thread);
        if let Some(limits) = self.limits {
            self.label(view, plan, thread, (limits.label(speedup), true));
        }
    }
}

/// Where a thread with these labels is allocated.
fn preference(speed: SpeedLabel, low_block: bool) -> Prefer {
    match (speed, low_block) {
        (SpeedLabel::High, _) => Prefer::Big,
        (SpeedLabel::Low, true) => Prefer::Little,
        (SpeedLabel::Low, false) | (SpeedLabel::Normal, _) => Prefer::Any,
    }
}

#[cfg(test)]
mod tests;
