//! Utilisation-aware scheduling: the slowest cluster and frequency that satisfy what threads use.

use std::cmp::Reverse;

use ampsched_model::{ClusterId, CoreId, CoreSet, Ns, ThreadId};

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
    places: PerThread<Option<ClusterId>>,
}

/// Which thread is reckoned to which cluster, and how full cores are then.
struct Packing<'a> {
    topology: &'a Topology,
    target: f64,
    /// Utilisation reckoned to each core.
    used: Vec<u32>,
}

impl<'a> Packing<'a> {
    fn new(topology: &'a Topology, target: f64) -> Self {
        Self { topology, target, used: vec![0; topology.core_count()] }
    }

    /// What a core may still take: its capacity's share, less what it has.
    fn room(&self, core: CoreId) -> f64 {
        let capacity = f64::from(self.topology.core(core).capacity);
        self.target * capacity - f64::from(self.used[core.index()])
    }

    /// Reckons a thread to a core.
    fn add(&mut self, util: u32, allows: impl Fn(CoreId) -> bool) -> ClusterId {
        let class = |core: CoreId| self.topology.core(core).class;
        let cores = || self.topology.cores().filter(|&core| allows(core));
        let fitting = cores().filter(|&core| self.room(core) >= f64::from(util));
        let slowest = fitting.map(class).min().or(cores().map(class).max());
        let of_class = cores().filter(|&core| Some(class(core)) == slowest);
        // Of equal ones the first: `max_by` takes the last.
        let by_room =
            |a: &CoreId, b: &CoreId| self.room(*a).total_cmp(&self.room(*b)).then(b.cmp(a));
        let core = of_class.max_by(by_room).expect("an affinity set is never empty");
        self.used[core.index()] += util;
        self.topology.core(core).cluster
    }

    /// The lowest frequency of a cluster at which its fullest core is used to at most the target; none if its
    /// frequencies are not known.
    fn mhz(&self, cluster: ClusterId) -> Option<u32> {
        let cluster = &self.topology.clusters()[cluster.index()];
        let fullest = cluster.cores.iter().map(|core| self.used[core.index()]).max().unwrap_or(0);
        let max_mhz = cluster.max_mhz()?;
        let share = f64::from(fullest) / (self.target * f64::from(cluster.capacity()));
        let wanted = share * f64::from(max_mhz);
        let enough = cluster.freqs_mhz.iter().copied().find(|&mhz| f64::from(mhz) >= wanted);
        Some(enough.unwrap_or(max_mhz))
    }
}

impl UtilisationAware {
    fn new(params: &Params) -> Self {
        Self {
            cfs: CfsRules::new(params),
            target: params.number("target"),
            epoch_ns: params.ms("epoch_ms"),
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

    fn epoch(&mut self, view: &View, plan: &mut Plan) {
        let topology = view.topology();
        let mut threads: Vec<(u32, ThreadId)> =
            view.threads().map(|thread| (view.util(thread), thread)).collect();
        threads.sort_by_key(|&(util, thread)| (Reverse(util), thread));
        let mut packing = Packing::new(topology, self.target);
        for (util, thread) in threads {
            let cluster = packing.add(util, |core| view.user_allows(thread, core));
            if self.places.slot(thread).replace(cluster) != Some(cluster) {
                let cores = topology.clusters()[cluster.index()].cores.iter();
                let cores: CoreSet = cores.copied().collect();
                plan.set(thread, Change::Affinity(cores));
            }
        }
        for cluster in (0..topology.clusters().len()).map(ClusterId::from) {
            let mhz = packing.mhz(cluster).filter(|&mhz| mhz != view.frequency_mhz(cluster));
            if let Some(mhz) = mhz {
                plan.set_frequency(cluster, mhz);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ampsched_model::{ClassId, EnergyPoint};

    use super::*;
    use crate::ClusterInfo;

    fn topology() -> Topology {
        let cluster = |class: u8, cores: [u16; 2], capacity| ClusterInfo {
            class: ClassId(class),
            cores: cores.map(CoreId).to_vec(),
            freqs_mhz: vec![250, 500, 750, 1000],
            design: None,
            energy_model: vec![EnergyPoint { mhz: 1000, capacity, power_mw: 0.0 }],
        };
        Topology::from_clusters(vec![cluster(0, [0, 1], 400.0), cluster(1, [2, 3], 1024.0)])
    }

    #[test]
    fn threads_are_packed_onto_the_slowest_cluster_with_room() {
        let topology = topology();
        let mut packing = Packing::new(&topology, 0.8);
        let places = [500, 200, 200, 200, 900].map(|util| packing.add(util, |_| true).0);
        // 320 fit on each slow core: one thread of 200; the fourth and the fifth go up.
        assert_eq!(places, [1, 0, 0, 1, 1]);
        assert_eq!(packing.used, [200, 200, 500, 1100]);
        // 200 / 320 of 1000 MHz is 625; more than full is the highest.
        assert_eq!([0, 1].map(|index| packing.mhz(ClusterId(index))), [Some(750), Some(1000)]);
        assert_eq!(Packing::new(&topology, 0.8).mhz(ClusterId(1)), Some(250));
    }

    #[test]
    fn the_programs_own_affinity_comes_first() {
        let topology = topology();
        let mut packing = Packing::new(&topology, 0.8);
        assert_eq!(packing.add(10, |core| core.0 == 3), ClusterId(1));
        assert_eq!(packing.used, [0, 0, 0, 10]);
    }
}
