//! DTPM: frequencies within the power that the predicted temperature allows.

mod ladder;
mod plant;

use ampsched_model::{CoreId, CoreSet, Ns, ThreadId};

use self::ladder::Order;
use self::plant::{Levels, Plant, clusters, levels_of};
use super::cfs::{self, CfsRules};
use super::support::window::PerThread;
use crate::{
    Change, Event, Events, Needs, ParamInfo, Params, Plan, Policy, PolicyInfo, Rules, Topology,
    View,
};

/// The registry's row.
pub static INFO: PolicyInfo = PolicyInfo {
    name: "dtpm",
    summary: "dynamic thermal and power management: frequencies that keep the predicted temperature below a limit",
    source: "Bhat, Singla, Unver and Ogras, IEEE TVLSI 26, 2018 (from a summary; what it leaves open is a reconstruction)",
    documentation: "\
**Purpose.** No temperature above a limit, at the least loss of speed. It sits above the governors: what they ask for is granted unless it would become too hot.

**When to use.** Where a machine gets too hot, together with a governor. It reads sensors and limits clocks: \
`--energy`, and a machine whose power and heat are described (Exynos 5422). Not for speed or fairness: threads are \
scheduled as by `cfs`.

**Algorithm.** Every `interval_ms`: the power of a cluster is alpha C V^2 f for each busy core, plus leakage by voltage and temperature, plus the uncore's; alpha C is estimated anew from each \
reading of the power sensor, (P - P_leakage - P_uncore) / (V^2 f x busy cores). A thermal network, T' = A T + B P, is kept in step with the temperature sensors and predicts all temperatures at the end of `horizon_ms` \
for the frequencies that the governors ask for (the highest, if there are none). The power budget of a node is P_B = (Tmax - A T) / B. While the power exceeds a budget, one cluster is lowered by one operating point: the one that loses least, busy cores x change of 1 / f (GSA), or \
with `order=1` the fastest first (CCA, the older form). If all are at their lowest and it is still too hot, the hottest core is put to sleep and its threads go elsewhere, one per interval; the last one to sleep returns when the prediction at the lowest frequencies allows it. \
CFS schedules.

**Constants.** `t_max_c` = 69: HFEE's script of this policy. `horizon_ms` = 1000: the paper. `interval_ms` = 100 is ours. V, leakage and the network come from the machine's description: they stand for what the authors identify off line. Until a power sensor has told, a core switches what the energy model says.

**Example.** One node, A = 0.9994, B = 0.875 K/W, Tmax = 69: at 60 degrees the budget is (69 - 59.964) / 0.875 = 10.33 W, at 68 it is 1.19 W, at 69.1 it is negative: the lowest frequency.

**Limits.** It needs `--energy` and a machine with power and heat described (Exynos 5422); on others it is CFS. What threads do next is not predicted, and a power sensor tells of the past (270 ms on the Exynos 5422): sudden loads exceed the limit for a moment. Leakage is taken at the limit and a \
slowed core as busier in proportion, so predictions err on the cool side. Sleeping is idling without threads: leakage stays. HFEE's comparison with DTPM cannot be repeated: its script writes a frequency that has no meaning.",
    params: &[
        ParamInfo::number("t_max_c", 69.0, 0.0, 150.0, "temperature limit (HFEE's script)"),
        ParamInfo::number("horizon_ms", 1000.0, 1.0, 100_000.0, "how far ahead it predicts (Bhat et al.: 1 s)"),
        ParamInfo::number("interval_ms", 100.0, 1.0, 10_000.0, "time between looks (ours)"),
        ParamInfo::choice("order", 0, &["cheapest first", "fastest first"], "who is slowed down first (Bhat et al.)"),
        cfs::LATENCY,
        cfs::MIN_GRANULARITY,
        cfs::WAKEUP_GRANULARITY,
    ],
    build: |params| Box::new(Dtpm::new(params)),
};

/// DTPM.
struct Dtpm {
    cfs: CfsRules,
    max_c: f64,
    interval_ns: Ns,
    horizon_ns: Ns,
    order: Order,
    plant: Option<Plant>,
    /// The limit of each cluster that holds now, as an operating point.
    limits: Levels,
    /// Cores that sleep, the last one to fall asleep last.
    asleep: Vec<CoreId>,
    /// Counts changes of `asleep`; and the one that each thread knows.
    change: u32,
    known: PerThread<u32>,
}

impl Dtpm {
    fn new(params: &Params) -> Self {
        Self {
            cfs: CfsRules::new(params),
            max_c: params.number("t_max_c"),
            interval_ns: params.ms("interval_ms"),
            horizon_ns: params.ms("horizon_ms"),
            order: Order::numbered(params.number("order")),
            plant: None,
            limits: Levels::new(),
            asleep: Vec::new(),
            change: 0,
            known: PerThread::default(),
        }
    }

    /// The operating points at which nothing becomes too hot, from some on downwards.
    ///
    /// Err: it becomes too hot even at the lowest; then the core that will be hottest of those awake.
    fn lower(&self, plant: &Plant, view: &View, from: &Levels) -> Result<Levels, Option<CoreId>> {
        let topology = view.topology();
        let busy = |cores: &[CoreId]| -> f64 {
            cores.iter().map(|core| plant.shares()[core.index()]).sum()
        };
        let busy_cores: Vec<f64> =
            topology.clusters().iter().map(|cluster| busy(&cluster.cores)).collect();
        let mut levels = from.clone();
        loop {
            let forecast = plant.forecast(view, &levels, self.max_c, None);
            if forecast.is_safe(self.max_c) {
                return Ok(levels);
            }
            match self.order.next(topology, &levels, &busy_cores) {
                Some(cluster) => levels[cluster] -= 1,
                None => {
                    let awake = topology.cores().filter(|core| !self.asleep.contains(core));
                    return Err(plant.hottest(&forecast, awake));
                }
            }
        }
    }

    /// Puts a core to sleep, unless it is the last one awake.
    fn sleep(&mut self, core: Option<CoreId>, cores: usize) {
        if let Some(core) = core.filter(|_| self.asleep.len() + 1 < cores) {
            self.asleep.push(core);
            self.change += 1;
        }
    }

    /// Lets the last core that fell asleep return if it can be busy at the lowest frequencies.
    fn wake(&mut self, plant: &Plant, view: &View) {
        let Some(&core) = self.asleep.last() else { return };
        let lowest = vec![0; self.limits.len()];
        if plant.forecast(view, &lowest, self.max_c, Some(core)).is_safe(self.max_c) {
            self.asleep.pop();
            self.change += 1;
        }
    }

    fn limit(&mut self, view: &View, plan: &mut Plan, wanted: &Levels, allowed: &Levels) {
        for cluster in clusters(view.topology()) {
            let freqs_mhz = &view.topology().clusters()[cluster.index()].freqs_mhz;
            let (wanted, allowed) = (wanted[cluster.index()], allowed[cluster.index()]);
            let limit = if allowed < wanted { allowed } else { freqs_mhz.len() - 1 };
            if std::mem::replace(&mut self.limits[cluster.index()], limit) != limit {
                plan.limit_frequency(cluster, freqs_mhz[limit]);
            }
        }
    }

    /// Tells a thread which cores are awake.
    fn tell(&mut self, view: &View, plan: &mut Plan, thread: ThreadId) {
        if std::mem::replace(self.known.slot(thread), self.change) != self.change {
            let awake = |core: &CoreId| !self.asleep.contains(core);
            let cores: CoreSet = view.topology().cores().filter(awake).collect();
            plan.set(thread, Change::Affinity(cores));
        }
    }
}

impl Policy for Dtpm {
    fn needs(&self) -> Needs {
        Needs {
            epoch_ns: Some(self.interval_ns),
            frequencies: true,
            sensors: true,
            events: Events { lifecycle: true, ..Events::default() },
            ..Needs::default()
        }
    }

    fn rules(&self, topology: &Topology) -> Rules {
        self.cfs.on(topology)
    }

    fn caveat(&self, topology: &Topology, sensors: bool) -> Option<String> {
        let reason = match (topology.board(), sensors) {
            (None, _) => "power and heat of the machine are not known",
            (_, false) => "without energy accounting no sensor tells it anything",
            (Some(_), true) => return None,
        };
        Some(format!("{reason}: it keeps to no limit"))
    }

    fn on_event(&mut self, view: &View, event: Event, plan: &mut Plan) {
        if let Event::Added(thread) = event {
            self.tell(view, plan, thread);
        }
    }

    fn epoch(&mut self, view: &View, plan: &mut Plan) {
        let topology = view.topology();
        let plant = self.plant.take();
        let Some(mut plant) =
            plant.or_else(|| Plant::new(topology, self.interval_ns, self.horizon_ns))
        else {
            return;
        };
        if self.limits.is_empty() {
            self.limits = levels_of(topology, |_| u32::MAX);
        }
        plant.look(view);
        let wanted = levels_of(topology, |cluster| view.wanted_mhz(cluster));
        match self.lower(&plant, view, &wanted) {
            Ok(allowed) => {
                self.limit(view, plan, &wanted, &allowed);
                self.wake(&plant, view);
            }
            Err(hottest) => {
                self.limit(view, plan, &wanted, &vec![0; wanted.len()]);
                self.sleep(hottest, topology.core_count());
            }
        }
        for thread in view.threads() {
            self.tell(view, plan, thread);
        }
        self.plant = Some(plant);
    }
}

#[cfg(test)]
mod tests;
