//! Heat: temperatures, which follow from power once per thermal period, sensors and throttling.

use ampsched_model::{ClusterId, CoreId, Draw, Machine, Ns, ThermalNetwork, Throttle};
use ampsched_policy::{Factor, FactorKind};

use super::super::{Engine, Fallible, Happening};
use crate::SimError;

/// Temperatures and what follows from them.
pub(super) struct Heat {
    network: ThermalNetwork,
    throttle: Throttle,
    throttle_period_ns: Ns,
    throttle_due_ns: Ns,
    temperatures_c: Vec<f64>,
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
            temperatures_c: network.cold_c(),
            hottest_c: thermal.ambient_c,
            throttle: Throttle::new(thermal, machine),
            throttle_period_ns: thermal.throttle_period_ns,
            throttle_due_ns: thermal.throttle_period_ns,
            stepped_ns: 0,
            network,
        }))
    }

    pub fn core_c(&self, core: CoreId) -> f64 {
        self.temperatures_c[self.network.core_node(core)]
    }

    pub fn uncore_c(&self, cluster: ClusterId) -> f64 {
        self.temperatures_c[self.network.uncore_node(cluster)]
    }

    /// Highest temperature of any node so far.
    pub fn hottest_c(&self) -> f64 {
        self.hottest_c
    }
}

impl Engine<'_> {
    pub(super) fn thermal_period_ns(&self) -> Option<Ns> {
        let heat = self.energy.as_ref()?.heat.as_ref()?;
        Some(heat.network.period_ns())
    }

    /// A thermal period is over: temperatures, leakage, throttling, sensors.
    ///
    /// Errors: leakage and temperature drive each other up without end.
    pub(in crate::engine) fn thermal_step(&mut self) -> Fallible {
        self.settle_all();
        let now_ns = self.now_ns;
        let Some(energy) = self.energy.as_deref_mut() else { return Ok(()) };
        let Some(heat) = energy.heat.as_mut() else { return Ok(()) };
        let elapsed_ns = (now_ns - heat.stepped_ns) as f64;
        let mut power_mw = vec![0.0; heat.temperatures_c.len()];
        for (index, meter) in energy.cores.iter_mut().enumerate() {
            let pj = meter.running_pj + meter.idle_pj;
            power_mw[heat.network.core_node(CoreId::from(index))] +=
                (pj - meter.stepped_pj) / elapsed_ns;
            meter.stepped_pj = pj;
        }
        for (index, meter) in energy.clusters.iter_mut().enumerate() {
            power_mw[heat.network.uncore_node(ClusterId::from(index))] +=
                (meter.uncore_pj - meter.stepped_pj) / elapsed_ns;
            meter.stepped_pj = meter.uncore_pj;
        }
        heat.network.step(&mut heat.temperatures_c, &power_mw);
        heat.stepped_ns = now_ns;
        let hottest_c = heat.temperatures_c.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        heat.hottest_c = heat.hottest_c.max(hottest_c);
        if hottest_c > RUNAWAY_C {
            let machine = self.machine.name.clone();
            return Err(SimError::ThermalRunaway { machine, at_ns: now_ns }.into());
        }
        let period_ns = heat.network.period_ns();
        for cluster in (0..self.clocks.len()).map(ClusterId::from) {
            self.meter_cluster(cluster);
        }
        self.read_temperatures();
        self.throttle(period_ns);
        self.push(now_ns + period_ns, Happening::ThermalStep);
        Ok(())
    }

    /// What temperature sensors show now goes to the policy: per cluster the hottest.
    fn read_temperatures(&mut self) {
        let (now_ns, seed) = (self.now_ns, self.options.seed);
        let Some(heat) = self.energy.as_deref().and_then(|energy| energy.heat.as_ref()) else {
            return;
        };
        let read = |node: usize| {
            let sensors = heat.network.sensors().iter().enumerate();
            let of_node = sensors.filter(|(_, (at, _))| *at == node);
            let shown = of_node.filter_map(|(number, (at, sensor))| {
                let sample = sensor.sample(now_ns)?;
                let random = Draw::new(seed).child(SENSORS).child(number as u64);
                Some(sensor.reading(heat.temperatures_c[*at], sample, &random))
            });
            shown.max_by(f64::total_cmp)
        };
        let readings: Vec<Option<f64>> = self
            .machine
            .clusters
            .iter()
            .enumerate()
            .map(|(index, cluster)| {
                let cores = cluster.cores.iter().map(|&core| heat.network.core_node(core));
                let nodes = cores.chain([heat.network.uncore_node(ClusterId::from(index))]);
                nodes.filter_map(read).max_by(f64::total_cmp)
            })
            .collect();
        for (index, value) in readings.into_iter().enumerate() {
            if let Some(value) = value {
                let factor = Factor { value, kind: FactorKind::Measured, at_ns: now_ns };
                self.sched.set_temperature(ClusterId::from(index), factor);
            }
        }
    }

    /// Caps frequencies for the heat, and counts the time for which a cap holds.
    fn throttle(&mut self, period_ns: Ns) {
        let now_ns = self.now_ns;
        let Some(energy) = self.energy.as_deref_mut() else { return };
        let Some(heat) = energy.heat.as_mut() else { return };
        if now_ns >= heat.throttle_due_ns {
            heat.throttle_due_ns = now_ns + heat.throttle_period_ns;
            let sensors = heat.network.sensors();
            let shown = sensors.iter().map(|(node, _)| heat.temperatures_c[*node]);
            let hottest_c = shown.fold(f64::NEG_INFINITY, f64::max);
            heat.throttle.look(hottest_c);
        }
        let caps: Vec<usize> = (0..self.clocks.len())
            .map(|cluster| heat.throttle.highest_opp(ClusterId::from(cluster)))
            .collect();
        for (index, &cap) in caps.iter().enumerate() {
            if cap + 1 < self.machine.clusters[index].opps.len() {
                energy.clusters[index].throttled_ns += period_ns;
            }
        }
        for (index, cap) in caps.into_iter().enumerate() {
            self.cap_frequency(ClusterId::from(index), cap);
        }
    }
}

/// Temperature in degrees Celsius above which nothing settles any more: far beyond what leakage laws hold for and
/// silicon survives (ours; growth is exponential there, so its value hardly matters).
const RUNAWAY_C: f64 = 1000.0;

/// Stream of random numbers, apart from those of programs (which begin with a letter's code).
const SENSORS: u64 = 1 << 40;
