//! Cluster switching: all threads on one cluster at a time.

use ampsched_model::{ClusterId, CoreSet, Ns, ThreadId};

use super::cfs::{self, CfsRules};
use super::support::busy::Busy;
use crate::{
    Change, Event, Events, Needs, ParamInfo, Params, Plan, Policy, PolicyInfo, Rules, Topology,
    View,
};

/// The registry's row.
pub static INFO: PolicyInfo = PolicyInfo {
    name: "cluster-switching",
    summary: "one cluster at a time: all threads move to the next faster one when it is busy, back when it is not",
    source: "Chronaki et al., JPDC 2018, section 2 (cluster switching); thresholds and period are a reconstruction",
    documentation: "\
**Purpose.** The first way to use big.LITTLE chips: the operating system sees one cluster and treats it as an ordinary processor.

**When to use.** To compare with the first big.LITTLE chips, under a governor that sets the clocks. It needs only \
how busy cores are. Not for speed: half of the cores idle; `iks` and `gts` use more of them.

**Algorithm.** The clusters are ordered by speed; exactly one is active, at first the slowest. Every `window_ms`, if the busiest core of the active cluster was busy for more than `high` of the window, all \
threads go to the next faster cluster; if it was busy for less than `low`, to the next slower one. Within the cluster CFS decides. Frequencies are left to the governors.

**Constants.** The paper names no thresholds. `high` = 0.8: up-threshold of the early ondemand governors. `low` = 0.3: below `high` by more than the ratio of the clusters' speeds, so that it does not swing. `window_ms` = 10: a sampling \
period of ondemand. All three are ours.

**Example.** 2 little and 2 big cores, one endless thread: it runs on a little core for 10 ms, then on a big one.

**Limits.** Half of the cores are never used; one busy thread moves all. A switch costs what the machine's migrations cost; powering a cluster up takes no time here, and the cores of the other cluster idle instead of being off. Threads \
that their program keeps away from a cluster do not follow.",
    params: &[
        ParamInfo::number("high", 0.8, 0.0, 1.0, "busy share above which the next faster cluster takes over (ours)"),
        ParamInfo::number("low", 0.3, 0.0, 1.0, "busy share below which the next slower one does (ours)"),
        ParamInfo::number("window_ms", 10.0, 0.1, 10_000.0, "time between looks (ours)"),
        cfs::LATENCY,
        cfs::MIN_GRANULARITY,
        cfs::WAKEUP_GRANULARITY,
    ],
    build: |params| Box::new(ClusterSwitching::new(params)),
};

/// Cluster switching.
struct ClusterSwitching {
    cfs: CfsRules,
    high: f64,
    low: f64,
    window_ns: Ns,
    busy: Busy,
    /// Position of the active cluster, slowest first.
    active: usize,
}

impl ClusterSwitching {
    fn new(params: &Params) -> Self {
        Self {
            cfs: CfsRules::new(params),
            high: params.number("high"),
            low: params.number("low"),
            window_ns: params.ms("window_ms"),
            busy: Busy::default(),
            active: 0,
        }
    }

    fn keep_on_active(&self, topology: &Topology, plan: &mut Plan, thread: ThreadId) {
        let cluster = by_speed(topology)[self.active];
        let cores: CoreSet = topology.clusters()[cluster.index()].cores.iter().copied().collect();
        plan.set(thread, Change::Affinity(cores));
    }
}

/// The clusters, slowest first; of equal ones the one that comes first.
fn by_speed(topology: &Topology) -> Vec<ClusterId> {
    let mut clusters: Vec<ClusterId> =
        (0..topology.clusters().len()).map(ClusterId::from).collect();
    clusters.sort_by_key(|cluster| topology.clusters()[cluster.index()].class);
    clusters
}

impl Policy for ClusterSwitching {
    fn needs(&self) -> Needs {
        Needs {
            epoch_ns: Some(self.window_ns),
            events: Events { lifecycle: true, ..Events::default() },
            ..Needs::default()
        }
    }

    fn rules(&self, topology: &Topology) -> Rules {
        self.cfs.on(topology)
    }

    fn on_event(&mut self, view: &View, event: Event, plan: &mut Plan) {
        if let Event::Added(thread) = event {
            self.keep_on_active(view.topology(), plan, thread);
        }
    }

    fn knows_siblings(&self) -> bool {
        false
    }

    fn epoch(&mut self, view: &View, plan: &mut Plan) {
        let topology = view.topology();
        let clusters = by_speed(topology);
        let usage = self.busy.look(view);
        let cores = &topology.clusters()[clusters[self.active].index()].cores;
        let busiest = cores.iter().map(|core| usage[core.index()]).fold(0.0, f64::max);
        let next = if busiest > self.high {
            (self.active + 1).min(clusters.len() - 1)
        } else if busiest < self.low {
            self.active.saturating_sub(1)
        } else {
            self.active
        };
        if std::mem::replace(&mut self.active, next) != next {
            for thread in view.threads() {
                self.keep_on_active(topology, plan, thread);
            }
        }
    }
}
