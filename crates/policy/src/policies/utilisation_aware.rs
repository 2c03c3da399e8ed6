//! Utilisation-aware scheduling: the slowest cluster and frequency that satisfy what threads use.

mod order;
mod packing;

use ampsched_model::{ClusterId, CoreSet, Ns};

use self::order::Order;
use self::packing::Packing;
use super::cfs::{self, CfsRules};
use super::support::window::PerThread;
use crate::{
    Change, LoadTracking, Needs, ParamInfo, Params, Plan, Policy, PolicyInfo, Rules, Topology, View,
};

/// The registry's row.
pub static INFO: PolicyInfo = PolicyInfo {
    name: "utilisation-aware",
    summary: "each thread on the slowest cluster that has room for what it uses, at the lowest frequency that satisfies all",
    source: "the utilisation-aware scheduler (DATE 2014) as HFEE, IEEE TC 2020, describes it in its related work; a reconstruction",
    documentation: "\
**Purpose.** Energy saved without counters or power models: utilisation tells what a thread needs.

**When to use.** For little energy under light loads, where there are neither counters nor power models. It needs \
tracked load and sets clocks. Not for busy programs: one on a slow core takes hundreds of ms to be recognised.

**Algorithm.** Every `epoch_ms`, the live threads in the order of their utilisation (PELT, in units of the fastest core at its highest frequency), the greatest first: each is reckoned to the slowest cluster that has a core with room \
for it, on the core that has the most room there; if it fits nowhere, to the core of the fastest cluster that has the most room. A core has room up to `target` of its capacity. \
Threads may run on the cores of their cluster, where CFS decides. Each cluster gets the lowest frequency at which its fullest core is used to at most `target`; one without threads its lowest.

**Constants.** The description names no constants. `target` = 0.8: the margin of Linux's schedutil and EAS (a quarter more than used). `epoch_ms` = 10: about the time in which utilisation moves by a fifth. Both are ours.

**Example.** Capacities 400 and 1024; threads that use 500, 200 and 200: the first fits only on a fast core; the others share the slow cluster, one per core, which needs 200 / 0.8 = 250 of its 400.

**Limits.** A reconstruction from a one-sentence description; it is not compared with the paper's figures. Utilisation says what a thread got, not what it wants: one that is held up by a slow core at a low frequency takes hundreds of ms to be recognised. The policy sets frequencies \
itself: governors have no say.",
    params: &[
        ParamInfo::number("target", 0.8, 0.1, 1.0, "share of a core's capacity that may be used (ours)"),
        ParamInfo::number("epoch_ms", 10.0, 0.1, 10_000.0, "time between looks (ours)"),
        cfs::LATENCY,
        cfs::MIN_GRANULARITY,
        cfs::WAKEUP_GRANULARITY,
    ],
    build: |params| Box::new(UtilisationAware::new(params)),
};

/// Utilisation-aware scheduling.
struct UtilisationAware {
    cfs: CfsRules,
    target: f64,
    epoch_ns: Ns,
    order: Order,
    places: PerThread<Option<ClusterId>>,
}

impl UtilisationAware {
    fn new(params: &Params) -> Self {
        Self {
            cfs: CfsRules::new(params),
            target: params.number("target"),
            epoch_ns: params.ms("epoch_ms"),
            order: Order::default(),
            places: PerThread::default(),
        }
    }
}

impl Policy for UtilisationAware {
    fn needs(&self) -> Needs {
        Needs {
            load_tracking: Some(LoadTracking::ByWork),
            epoch_ns: Some(self.epoch_ns),
            frequencies: true,
            ..Needs::default()
        }
    }

    fn rules(&self, topology: &Topology) -> Rules {
        self.cfs.on(topology)
    }

    fn knows_siblings(&self) -> bool {
        false
    }

    fn epoch(&mut self, view: &View, plan: &mut Plan) {
        let topology = view.topology();
        self.order.update(view);
        let (mut packing, places) = (Packing::new(topology, self.target), &mut self.places);
        for (util, alike) in self.order.runs() {
            let mut rest = alike.iter();
            let allows = |core| view.user_allows(alike[0].thread(), core);
            packing.add_run(util, alike.len(), allows, |count, cluster| {
                for entry in rest.by_ref().take(count) {
                    if places.slot(entry.thread()).replace(cluster) != Some(cluster) {
                        let cores = topology.clusters()[cluster.index()].cores.iter();
                        let cores: CoreSet = cores.copied().collect();
                        plan.set(entry.thread(), Change::Affinity(cores));
                    }
                }
            });
        }
        for cluster in (0..topology.clusters().len()).map(ClusterId::from) {
            let mhz = packing.mhz(cluster).filter(|&mhz| mhz != view.frequency_mhz(cluster));
            if let Some(mhz) = mhz {
                plan.set_frequency(cluster, mhz);
            }
        }
    }
}
