//! Energy-aware scheduling of mainline Linux.

use super::cfs::{self, CfsRules};
use crate::{
    Allocator, BalanceWhen, ClusterInfo, LoadFilter, LoadTracking, Needs, ParamInfo, Params,
    Policy, PolicyInfo, Rules, Steal, StealFrom, Topology,
};

/// The registry's row.
pub static INFO: PolicyInfo = PolicyInfo {
    name: "eas",
    summary: "Linux's energy-aware scheduling: a waking thread goes where it costs the least energy",
    source: "Linux 5.0 to 6.6 kernel/sched/fair.c (find_energy_efficient_cpu), include/linux/energy_model.h (em_cpu_energy)",
    documentation: "\
**Purpose.** The least energy at full performance, as long as no core is short of capacity. Run it with `--governor schedutil`, whose choice it predicts.

**When to use.** For little energy on machines that are lightly loaded, with `--governor schedutil`. It needs an \
energy model of the machine and tracked load of threads. Not for busy machines: once a core is over-utilised CFS \
decides.

**Algorithm.** Utilisation (PELT) is the share of time that a thread or core would be busy on the fastest core at its highest frequency, x 1024. When a thread wakes up and no core is over-utilised: in each \
cluster, the core with the most capacity to spare of those where it fits is a candidate, and its previous core, if it fits there. A utilisation fits if 1.25 x utilisation is below the core's capacity, or if the thread's `uclamp_max` is at most the capacity; a core whose capacity is below the thread's `uclamp_min` is taken only where there is no other, the greatest then (clamps have no margin). The energy of a cluster is the power x the sum of its cores' utilisations / the capacity at the \
lowest operating point whose capacity is at least 1.25 x the greatest of them. The thread goes to the candidate that adds the least energy; from a previous core where it fits only if that saves more than `hysteresis` of the energy of all with the thread there. Meanwhile nothing is \
stolen or balanced. Otherwise, and for new threads, CFS decides, and an idle core takes a thread that uses more than 4 / 5 of the capacity of the slower core on which it runs (misfit), the heaviest first.

**Constants.** 1.25: `fits_capacity` and `map_util_perf`. `hysteresis` = 1 / 16: kernels up to 6.2; later ones take any saving (`hysteresis=0`). Capacities and powers: the machine's `energy_model`; if it has none, from its power model.

**Example.** Little cores (capacity, power) (170, 50) (341, 150) (512, 300), big ones (341, 400) (768, 1000) (1024, 1700); utilisations 400, 100 and 600, 500; a thread of 200 that ran on the last core. It costs 117.19 on the \
second little core and 725.91 where it was: it goes to the little one, as 608.72 is more than (725.91 + 1725.26) / 16 = 153.20.

**Limits.** Without an energy model (a machine whose power is not known), and where cores have two threads (SMT), Linux does not switch it on: then it is CFS. Thermal pressure and latency hints are left out; whether a core is over-utilised is looked up \
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
    /// In 1/1024.
    hysteresis: u32,
}

impl Eas {
    fn new(params: &Params) -> Self {
        let hysteresis = (1024.0 * params.number("hysteresis")).round() as u32;
        Self { cfs: CfsRules::new(params), hysteresis }
    }
}

fn has_energy_model(topology: &Topology) -> bool {
    topology.clusters().iter().all(ClusterInfo::has_energy_model)
}

/// Why energies are not compared on a machine; none if they are (topology.c 6.18, `sched_is_eas_possible`).
fn why_not(topology: &Topology) -> Option<&'static str> {
    if !has_energy_model(topology) {
        return Some("the machine has no energy model (no power is known of its clusters)");
    }
    topology.has_smt().then_some("cores have two threads (SMT), whose energy Linux does not tell")
}

impl Policy for Eas {
    fn needs(&self) -> Needs {
        Needs { load_tracking: Some(LoadTracking::ByWork), ..Needs::default() }
    }

    fn rules(&self, topology: &Topology) -> Rules {
        let mut rules = self.cfs.on(topology);
        if why_not(topology).is_none() {
            rules.allocator = Allocator::ByEnergy { hysteresis: self.hysteresis };
            rules.balance_when = BalanceWhen::OverUtilised;
            let misfit = Steal::any(StealFrom::RunningOnSlower);
            rules.steal.push(Steal { load: LoadFilter::Misfit, ..misfit });
        }
        rules
    }

    fn caveat(&self, topology: &Topology, _sensors: bool) -> Option<String> {
        why_not(topology).map(|reason| format!("{reason}: it schedules as cfs does"))
    }
}
