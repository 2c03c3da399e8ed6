//! Heat: temperatures, which follow from power once per thermal period, sensors and throttling.

use ampsched_model::{ClusterId, CoreId, Draw, Machine, Ns, ThermalNetwork, Throttle};
use ampsched_policy::{Factor, FactorKind};

use super::Meters;
use crate::SimError;

/// Temperatures and what follows from them.
pub(super) struct Heat {
    network: ThermalNetwork,
    throttle: Throttle,
    throttle_period_ns: Ns,
    throttle_due_ns: Ns,
    temperatures_c: Vec<f64>,
    /// Those before the last step.
    before_c: Vec<f64>,
    /// Mean power of each node in the last period.
    power_mw: Vec<f64>,
    hottest_c: f64,
    stepped_ns: Ns,
}

impl Heat {
    /// A cold board; none if the machine's file does not tell how it heats up.
    ///
    /// Errors: a network that cannot be, see [`ThermalNetwork::new`].
    pub fn new(machine: &Machine) -> Result<Option<Self>, SimError> {
        let Some(thermal) = &machine.thermal else { return Ok(None) };
        let network = ThermalNetwork::new(thermal, machine).map_err(|error| {
            SimError::BadMachine { machine: machine.name.clone(), what: error.to_string() }
        })?;
        Ok(Some(Self {
            power_mw: vec![0.0; network.cold_c().len()],
            temperatures_c: network.cold_c(),
            before_c: network.cold_c(),
            hottest_c: thermal.ambient_c,
            throttle: Throttle::new(thermal, machine),
            throttle_period_ns: thermal.throttle_period_ns,
            throttle_due_ns: thermal.throttle_period_ns,
            stepped_ns: 0,
            network,
        }))
    }

    #[inline]
    pub fn core_c(&self, core: CoreId) -> f64 {
        self.temperatures_c[self.network.core_node(core)]
    }

    #[inline]
    pub fn uncore_c(&self, cluster: ClusterId) -> f64 {
        self.temperatures_c[self.network.uncore_node(cluster)]
    }

    /// Highest temperature of any node so far.
    pub fn hottest_c(&self) -> f64 {
        self.hottest_c
    }

    /// Whether it allows a cluster less than the highest of some operating points.
    pub fn caps(&self, cluster: ClusterId, opps: usize) -> bool {
        self.throttle.highest_opp(cluster) + 1 < opps
    }

    /// What the sensors of a node show now: the hottest.
    fn shown_c(&self, node: usize, seed: u64, now_ns: Ns) -> Option<f64> {
        let sensors = self.network.sensors().iter().enumerate();
        let of_node = sensors.filter(|(_, (at, _))| *at == node);
        let shown = of_node.filter_map(|(number, (at, sensor))| {
            let sample = sensor.sample(now_ns)?;
            let random = Draw::new(seed).child(SENSORS).child(number as u64);
            Some(sensor.reading(self.temperatures_c[*at], sample, &random))
        });
        shown.max_by(f64::total_cmp)
    }
}

impl Meters {
    /// How often temperatures are computed; never if nothing is known of heat.
    pub fn thermal_period_ns(&self) -> Option<Ns> {
        Some(self.heat.as_ref()?.network.period_ns())
    }

    /// Settles all meters; temperatures follow what has been used since the last time. Returns whether they run away.
    pub(super) fn heat_up(&mut self, now_ns: Ns) -> bool {
        let Some(heat) = self.heat.as_mut() else { return false };
        let per_ns = 1.0 / (now_ns - heat.stepped_ns) as f64;
        let power_mw = &mut heat.power_mw;
        power_mw.fill(0.0);
        for (meter, &node) in self.clusters.iter_mut().zip(heat.network.uncore_nodes()) {
            meter.settle(now_ns);
            power_mw[node] += (meter.uncore_pj - meter.stepped_pj) * per_ns;
            meter.stepped_pj = meter.uncore_pj;
        }
        // Cores that share a node mostly follow one another: their sum stays in a register.
        let (mut heated, mut sum_mw) = (0, 0.0);
        for (meter, &node) in self.cores.iter_mut().zip(heat.network.core_nodes()) {
            meter.settle(&mut self.thread_pj, now_ns);
            if node != heated {
                power_mw[heated] += sum_mw;
                (heated, sum_mw) = (node, 0.0);
            }
            let pj = meter.running_pj + meter.idle_pj;
            sum_mw += (pj - meter.stepped_pj) * per_ns;
            meter.stepped_pj = pj;
        }
        power_mw[heated] += sum_mw;
        std::mem::swap(&mut heat.temperatures_c, &mut heat.before_c);
        heat.network.step_into(&heat.before_c, power_mw, &mut heat.temperatures_c);
        heat.stepped_ns = now_ns;
        let hottest_c = heat.temperatures_c.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        heat.hottest_c = heat.hottest_c.max(hottest_c);
        hottest_c > RUNAWAY_C
    }

    /// What the hottest temperature sensor of a cluster with some cores shows now.
    pub(super) fn shown_c(
        &self,
        cluster: ClusterId,
        cores: &[CoreId],
        seed: u64,
        now_ns: Ns,
    ) -> Option<Factor> {
        let heat = self.heat.as_ref()?;
        let cores = cores.iter().map(|&core| heat.network.core_node(core));
        let nodes = cores.chain([heat.network.uncore_node(cluster)]);
        let shown = nodes.filter_map(|node| heat.shown_c(node, seed, now_ns));
        let value = shown.max_by(f64::total_cmp)?;
        Some(Factor { value, kind: FactorKind::Measured, at_ns: now_ns })
    }

    /// Looks whether it is too hot, if it is time to. Returns whether heat may now allow a cluster something else than
    /// all or than before.
    pub(super) fn check_heat(&mut self, now_ns: Ns) -> bool {
        let Some(heat) = self.heat.as_mut() else { return false };
        if now_ns < heat.throttle_due_ns {
            return heat.throttle.is_acting();
        }
        heat.throttle_due_ns = now_ns + heat.throttle_period_ns;
        let sensors = heat.network.sensors();
        let shown = sensors.iter().map(|(node, _)| heat.temperatures_c[*node]);
        heat.throttle.look(shown.fold(f64::NEG_INFINITY, f64::max));
        true
    }

    /// The highest of some operating points that heat allows a cluster now; if that is not the highest of all, the past
    /// period counts as throttled.
    pub(super) fn cap(&mut self, cluster: ClusterId, opps: usize, period_ns: Ns) -> Option<usize> {
        let cap = self.heat.as_ref()?.throttle.highest_opp(cluster);
        if cap + 1 < opps {
            self.clusters[cluster.index()].throttled_ns += period_ns;
        }
        Some(cap)
    }
}

/// Temperature in degrees Celsius above which nothing settles any more: far beyond what leakage laws hold for and
/// silicon survives (ours; growth is exponential there, so its value hardly matters).
const RUNAWAY_C: f64 = 1000.0;

/// Stream of random numbers, apart from those of programs (which begin with a letter's code).
const SENSORS: u64 = 1 << 40;
