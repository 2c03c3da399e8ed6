//! Energy-aware scheduling of mainline Linux.

use ampsched_model::{CoreId, ThreadId};

use super::cfs::{self, CfsRules};
use crate::sched::fits;
use crate::{
    BalanceWhen, ClusterInfo, Hooks, LoadFilter, LoadTracking, Needs, ParamInfo, Params, Policy,
    PolicyInfo, Rules, RunState, Steal, StealFrom, Topology, View,
};

/// The registry's row.
pub static INFO: PolicyInfo = PolicyInfo {
    name: "eas",
    summary: "Linux's energy-aware scheduling: a waking thread goes where it costs the least energy",
    source: "Linux 5.0 to 6.6 kernel/sched/fair.c (find_energy_efficient_cpu), include/linux/energy_model.h (em_cpu_energy)",
    documentation: "\
**Purpose.** The least energy at full performance, as long as no core is short of capacity. Run it with `--governor schedutil`, whose choice it predicts.

**Algorithm.** Utilisation (PELT) is the share of time that a thread or core would be busy on the fastest core at its highest frequency, x 1024. When a thread wakes up and no core is over-utilised: in each \
cluster, the core with the most capacity to spare of those where it fits is a candidate, and its previous core, if it fits there. A utilisation fits if 1.25 x utilisation is below the core's capacity. The energy of a cluster is the power x the sum of its cores' utilisations / the capacity at the \
lowest operating point whose capacity is at least 1.25 x the greatest of them. The thread goes to the candidate that adds the least energy; from a previous core where it fits only if that saves more than `hysteresis` of the energy of all with the thread there. Meanwhile nothing is \
stolen or balanced. Otherwise, and for new threads, CFS decides, and an idle core takes a thread that uses more than 4 / 5 of the capacity of the slower core on which it runs (misfit), the heaviest first.

**Constants.** 1.25: `fits_capacity` and `map_util_perf`. `hysteresis` = 1 / 16: kernels up to 6.2; later ones take any saving (`hysteresis=0`). Capacities and powers: the machine's `energy_model`; if it has none, from its power model.

**Example.** Little cores (capacity, power) (170, 50) (341, 150) (512, 300), big ones (341, 400) (768, 1000) (1024, 1700); utilisations 400, 100 and 600, 500; a thread of 200 that ran on the last core. It costs 117.19 on the \
second little core and 725.91 where it was: it goes to the little one, as 608.72 is more than (725.91 + 1725.26) / 16 = 153.20.

**Limits.** Without an energy model (a machine whose power is not known) Linux does not switch it on: then it is CFS. Utilisation clamps, thermal pressure and latency hints are left out; whether a core is over-utilised is looked up \
exactly instead of at ticks.",
    params: &[
        ParamInfo::number(
            "hysteresis",
            0.0625,
            0.0,
            1.0,
            "least saving for leaving a core, as a share of all energy (1 / 16 up to Linux 6.2)",
        ),
        cfs::LATENCY,
        cfs::MIN_GRANULARITY,
        cfs::WAKEUP_GRANULARITY,
    ],
    build: |params| Box::new(Eas::new(params)),
};

/// Energy-aware scheduling.
struct Eas {
    cfs: CfsRules,
    hysteresis: f64,
}

/// The clusters and what is used of them, without a thread for which a core is sought.
struct Estimate<'a> {
    clusters: &'a [ClusterInfo],
    /// Utilisation of each core without the thread.
    utils: &'a [u32],
    /// Of the thread.
    util: u32,
}

impl Estimate<'_> {
    /// Energy of a cluster per time, in mW, with the thread on a core or elsewhere (`em_cpu_energy`).
    fn energy(&self, cluster: &ClusterInfo, with: Option<CoreId>) -> f64 {
        let util = |core: &CoreId| {
            let added = if with == Some(*core) { self.util } else { 0 };
            (self.utils[core.index()] + added).min(cluster.capacity())
        };
        let utils = cluster.cores.iter().map(util);
        let (max, sum) = (utils.clone().max().unwrap_or(0), utils.sum::<u32>());
        let wanted = f64::from(max + max / 4);
        let enough = cluster.energy_model.iter().find(|point| point.capacity >= wanted);
        let point = enough.or(cluster.energy_model.last()).expect("there is an energy model");
        point.power_mw * f64::from(sum) / point.capacity
    }

    /// What the thread adds to the energy on a core where it fits; none where it does not.
    fn added(&self, cluster: &ClusterInfo, core: CoreId) -> Option<f64> {
        fits(self.utils[core.index()] + self.util, cluster.capacity())
            .then(|| self.energy(cluster, Some(core)) - self.energy(cluster, None))
    }

    /// The core of a cluster with the most capacity to spare of those where the thread may run and fits.
    fn roomiest(&self, cluster: &ClusterInfo, allows: &impl Fn(CoreId) -> bool) -> Option<CoreId> {
        let cores = cluster.cores.iter().copied().filter(|&core| {
            allows(core) && fits(self.utils[core.index()] + self.util, cluster.capacity())
        });
        cores.min_by_key(|core| self.utils[core.index()])
    }

    /// The core to which the thread goes; none if it fits nowhere.
    fn choose(
        &self,
        previous: CoreId,
        allows: &impl Fn(CoreId) -> bool,
        hysteresis: f64,
    ) -> Option<CoreId> {
        let mut best: Option<(f64, CoreId)> = None;
        let (mut stay, mut total) = (None, 0.0);
        for cluster in self.clusters {
            total += self.energy(cluster, None);
            if cluster.cores.contains(&previous) && allows(previous) {
                stay = self.added(cluster, previous);
            }
            let Some(core) = self.roomiest(cluster, allows) else { continue };
            let Some(added) = self.added(cluster, core) else { continue };
            if best.is_none_or(|(least, _)| added < least) {
                best = Some((added, core));
            }
        }
        let (added, core) = best?;
        match stay {
            Some(stay) if stay - added <= (stay + total) * hysteresis => Some(previous),
            _ => Some(core),
        }
    }
}

impl Eas {
    fn new(params: &Params) -> Self {
        Self { cfs: CfsRules::new(params), hysteresis: params.number("hysteresis") }
    }

    /// The core for a thread that wakes up; none if CFS is to decide.
    fn cheapest(&self, view: &View, thread: ThreadId) -> Option<CoreId> {
        let topology = view.topology();
        if view.state(thread) == RunState::New || !has_energy_model(topology) {
            return None;
        }
        if topology.cores().any(|core| view.is_overutilised(core)) {
            return None;
        }
        let previous = view.core(thread);
        let allows = |core| view.may_run(thread, core);
        let util = view.util(thread);
        if util == 0 {
            return allows(previous).then_some(previous);
        }
        let cores = topology.cores();
        let utils: Vec<u32> = cores.map(|core| view.core_util_without(core, thread)).collect();
        let estimate = Estimate { clusters: topology.clusters(), utils: &utils, util };
        let chosen = estimate.choose(previous, &allows, self.hysteresis);
        chosen.or_else(|| allows(previous).then_some(previous))
    }
}

fn has_energy_model(topology: &Topology) -> bool {
    topology.clusters().iter().all(ClusterInfo::has_energy_model)
}

impl Policy for Eas {
    fn needs(&self) -> Needs {
        Needs {
            load_tracking: Some(LoadTracking::ByWork),
            hooks: Hooks { place: true, ..Hooks::default() },
            ..Needs::default()
        }
    }

    fn rules(&self, topology: &Topology) -> Rules {
        let mut rules = self.cfs.on(topology);
        if has_energy_model(topology) {
            rules.balance_when = BalanceWhen::OverUtilised;
            let misfit = Steal::any(StealFrom::RunningOnSlower);
            rules.steal.push(Steal { load: LoadFilter::Misfit, ..misfit });
        }
        rules
    }

    fn caveat(&self, topology: &Topology, _sensors: bool) -> Option<String> {
        let reason = "the machine has no energy model (no power is known of its clusters)";
        (!has_energy_model(topology)).then(|| format!("{reason}: it schedules as cfs does"))
    }

    fn place(&mut self, view: &View, thread: ThreadId) -> CoreId {
        self.cheapest(view, thread).unwrap_or_else(|| view.by_rules_place(thread))
    }
}

#[cfg(test)]
mod tests {
    use ampsched_model::{ClassId, EnergyPoint};

    use super::*;

    fn cluster(class: u8, cores: [u16; 2], points: [(f64, f64); 3]) -> ClusterInfo {
        let point = |(capacity, power_mw)| EnergyPoint { mhz: 0, capacity, power_mw };
        ClusterInfo {
            class: ClassId(class),
            cores: cores.map(CoreId).to_vec(),
            freqs_mhz: vec![1, 2, 3],
            design: None,
            energy_model: points.map(point).to_vec(),
        }
    }

    fn clusters() -> [ClusterInfo; 2] {
        [
            cluster(0, [0, 1], [(170.0, 50.0), (341.0, 150.0), (512.0, 300.0)]),
            cluster(1, [2, 3], [(341.0, 400.0), (768.0, 1000.0), (1024.0, 1700.0)]),
        ]
    }

    fn hundredths(value: f64) -> f64 {
        (value * 100.0).round() / 100.0
    }

    #[test]
    fn energies_are_those_of_the_worked_example() {
        let clusters = clusters();
        let estimate = Estimate { clusters: &clusters, utils: &[400, 100, 600, 500], util: 200 };
        let base = [0, 1].map(|index| hundredths(estimate.energy(&clusters[index], None)));
        assert_eq!(base, [292.97, 1432.29]);
        assert_eq!(estimate.added(&clusters[0], CoreId(0)), None, "600 does not fit into 512");
        assert_eq!(hundredths(estimate.energy(&clusters[0], Some(CoreId(1)))), 410.16);
        assert_eq!(hundredths(estimate.added(&clusters[0], CoreId(1)).unwrap()), 117.19);
        assert_eq!(hundredths(estimate.energy(&clusters[1], Some(CoreId(3)))), 2158.20);
        assert_eq!(hundredths(estimate.added(&clusters[1], CoreId(3)).unwrap()), 725.91);
        assert_eq!(estimate.choose(CoreId(3), &|_| true, 1.0 / 16.0), Some(CoreId(1)));
    }

    #[test]
    fn a_small_saving_is_not_worth_a_migration() {
        let clusters = clusters();
        let estimate = Estimate { clusters: &clusters, utils: &[400, 100, 600, 500], util: 200 };
        let choose = |hysteresis| estimate.choose(CoreId(3), &|_| true, hysteresis);
        // 608.72 / 2451.17 = 0.2483.
        assert_eq!(choose(0.248), Some(CoreId(1)));
        assert_eq!(choose(0.249), Some(CoreId(3)));
        // Of equal cores the previous one, even if any saving counts.
        let even = Estimate { clusters: &clusters, utils: &[100, 100, 0, 0], util: 50 };
        assert_eq!(even.choose(CoreId(1), &|_| true, 0.0), Some(CoreId(1)));
    }

    #[test]
    fn only_cores_where_the_thread_fits_and_may_run_count() {
        let clusters = clusters();
        let estimate = Estimate { clusters: &clusters, utils: &[400, 100, 600, 500], util: 400 };
        // 500 of 512 is too much; 900 of 1024, too; 600 + 400 more so.
        assert_eq!(estimate.choose(CoreId(3), &|_| true, 0.0625), None);
        let estimate = Estimate { util: 200, ..estimate };
        assert_eq!(estimate.choose(CoreId(3), &|core| core.0 >= 2, 0.0625), Some(CoreId(3)));
        assert_eq!(estimate.choose(CoreId(0), &|_| true, 0.0625), Some(CoreId(1)), "it must leave");
        // 80 % and not a bit more: 409 x 1280 < 512 x 1024 <= 410 x 1280.
        let at = |util| {
            let estimate = Estimate { clusters: &clusters, utils: &[0; 4], util };
            estimate.added(&clusters[0], CoreId(0)).is_some()
        };
        assert_eq!([at(409), at(410)], [true, false]);
    }
}
