//! What DTPM knows of the board: temperatures, how much each cluster switches, and what comes of it.

use ampsched_model::{ClusterId, CoreId, Ns, ThermalNetwork};

use super::super::support::busy::Busy;
use crate::{Board, ClusterInfo, FactorKind, StaticPower, Topology, View};

/// Least mean number of busy cores from which a power reading tells what a busy core switches (ours: below,
/// rounding of sensors weighs more).
const BUSY_MIN: f64 = 0.1;

/// Integrals over time of what a cluster's power is made of.
#[derive(Clone, Copy, Debug, Default)]
struct Integrals {
    /// V^2 f times the number of busy cores, in MHz V^2 ns.
    switched: f64,
    /// Power that does not depend on what runs, leakage and the uncore's, in pJ.
    still_pj: f64,
}

/// What is known of a cluster beyond what was identified off line.
#[derive(Clone, Debug)]
struct Load {
    /// Switched capacitance times activity of one busy core, in mW / (MHz V^2).
    capacitance: f64,
    /// Up to the last look.
    integrals: Integrals,
    /// When the power sensor took the last sample that was read, and the integrals then.
    read_ns: Ns,
    read: Integrals,
}

impl Load {
    /// A new sample of the power sensor: alpha C = (P - P_still) / (V^2 f x busy cores), means over the
    /// sensor's period. `least` is the least mean of V^2 f x busy cores that tells anything.
    fn read(&mut self, power_mw: f64, at_ns: Ns, then: Integrals, least: f64) {
        let window_ns = (at_ns - std::mem::replace(&mut self.read_ns, at_ns)) as f64;
        let before = std::mem::replace(&mut self.read, then);
        let switched = (then.switched - before.switched) / window_ns;
        if switched >= least {
            let still_mw = (then.still_pj - before.still_pj) / window_ns;
            self.capacitance = (power_mw - still_mw).max(0.0) / switched;
        }
    }
}

/// Temperatures that are predicted for the end of the horizon, split by their cause.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    /// Temperature of each node without the power, in degrees Celsius.
    pub free_c: Vec<f64>,
    /// What the power adds, in K.
    pub rise_k: Vec<f64>,
    /// The power, in mW.
    pub power_mw: f64,
}

impl Forecast {
    /// The greatest power in mW, distributed alike, with which no node ends above a temperature:
    /// P_B = (Tmax - A T) / B. Not positive if the temperature is exceeded even without any power.
    pub fn budget_mw(&self, max_c: f64) -> f64 {
        let shares = self.free_c.iter().zip(&self.rise_k).map(|(free_c, rise_k)| {
            let left_k = max_c - free_c;
            if *rise_k > 0.0 { left_k / rise_k } else { left_k.signum() * f64::INFINITY }
        });
        let share = shares.fold(f64::INFINITY, f64::min);
        if share.is_finite() { share * self.power_mw } else { share }
    }

    /// Whether the power is within its budget.
    pub fn is_safe(&self, max_c: f64) -> bool {
        self.power_mw <= self.budget_mw(max_c)
    }
}

/// An operating point of each cluster, by index.
pub type Levels = Vec<usize>;

/// The model of the board, kept in step with its sensors.
pub struct Plant {
    board: Board,
    /// The network over the whole horizon.
    horizon: ThermalNetwork,
    temperatures_c: Vec<f64>,
    loads: Vec<Load>,
    busy: Busy,
    /// Share of the last interval in which each core was busy.
    shares: Vec<f64>,
    seen_ns: Ns,
}

impl Plant {
    /// A cold board; none if its power and heat are not known.
    pub fn new(topology: &Topology, interval_ns: Ns, horizon_ns: Ns) -> Option<Self> {
        let board = topology.board()?;
        let clusters = topology.clusters().iter().zip(&board.power);
        let loads = clusters.map(|(cluster, power)| Load {
            capacitance: believed_capacitance(cluster, power),
            integrals: Integrals::default(),
            read_ns: 0,
            read: Integrals::default(),
        });
        Some(Self {
            horizon: board.heat.clone().with_period(horizon_ns),
            temperatures_c: board.heat.cold_c(),
            loads: loads.collect(),
            busy: Busy::default(),
            shares: vec![0.0; topology.core_count()],
            seen_ns: 0,
            board: Board { heat: board.heat.clone().with_period(interval_ns), ..board.clone() },
        })
    }

    /// Share of the last interval in which each core was busy.
    pub fn shares(&self) -> &[f64] {
        &self.shares
    }

    /// An interval is over: reads the counters and sensors.
    pub fn look(&mut self, view: &View) {
        let now_ns = view.now_ns();
        self.shares = self.busy.look(view);
        let elapsed_ns = now_ns - std::mem::replace(&mut self.seen_ns, now_ns);
        let levels = levels_of(view.topology(), |cluster| view.frequency_mhz(cluster));
        for cluster in clusters(view.topology()) {
            self.look_at(view, cluster, levels[cluster.index()], elapsed_ns);
        }
        let power_mw = self.powers(view, &levels, None);
        self.temperatures_c = self.board.heat.step(&self.temperatures_c, &power_mw);
        self.correct(view);
    }

    /// Learns what a cluster's cores switch. Frequencies are taken to have been the present ones for the whole
    /// interval; a governor may have changed them meanwhile.
    fn look_at(&mut self, view: &View, cluster: ClusterId, level: usize, elapsed_ns: Ns) {
        let still_mw = self.still_mw(view.topology(), cluster, level);
        let square_mhz = self.square_mhz(view.topology(), cluster, level);
        let cores = &view.topology().clusters()[cluster.index()].cores;
        let busy_cores: f64 = cores.iter().map(|core| self.shares[core.index()]).sum();
        let load = &mut self.loads[cluster.index()];
        let until = |ns: Ns, from: Integrals| Integrals {
            switched: from.switched + square_mhz * busy_cores * ns as f64,
            still_pj: from.still_pj + still_mw * ns as f64,
        };
        let before = load.integrals;
        load.integrals = until(elapsed_ns, before);
        let power = view.power_mw(cluster);
        if power.kind != FactorKind::Missing && power.at_ns > load.read_ns {
            let into_ns = (power.at_ns + elapsed_ns).saturating_sub(view.now_ns());
            load.read(power.value, power.at_ns, until(into_ns, before), BUSY_MIN * square_mhz);
        }
    }

    /// Temperatures that operating points lead to by the end of the horizon; `also` counts as busy.
    pub fn forecast(
        &self,
        view: &View,
        levels: &Levels,
        max_c: f64,
        also: Option<CoreId>,
    ) -> Forecast {
        let power_mw = self.powers(view, levels, Some((max_c, also)));
        let advance = |power_mw: &[f64]| self.horizon.step(&self.temperatures_c, power_mw);
        let free_c = advance(&vec![0.0; power_mw.len()]);
        let rise_k = advance(&power_mw).iter().zip(&free_c).map(|(end, free)| end - free).collect();
        Forecast { free_c, rise_k, power_mw: power_mw.iter().sum() }
    }

    /// Of some cores the one that is predicted to be hottest, the first of equals.
    pub fn hottest(
        &self,
        forecast: &Forecast,
        cores: impl Iterator<Item = CoreId>,
    ) -> Option<CoreId> {
        let end_c = |core: &CoreId| {
            let node = self.board.heat.core_node(*core);
            forecast.free_c[node] + forecast.rise_k[node]
        };
        // Of equal ones the first: `max_by` takes the last.
        cores.max_by(|a, b| end_c(a).total_cmp(&end_c(b)).then(b.cmp(a)))
    }

    /// Power of each node. With a limit, as a forecast needs it: leakage is that at the limit, or at the present
    /// temperature if that is higher, and whoever is slowed down is busy for longer.
    fn powers(
        &self,
        view: &View,
        levels: &Levels,
        ahead: Option<(f64, Option<CoreId>)>,
    ) -> Vec<f64> {
        let (topology, heat) = (view.topology(), &self.board.heat);
        let mut power_mw = vec![0.0; self.temperatures_c.len()];
        let celsius = |node: usize| match ahead {
            None => self.temperatures_c[node],
            Some((max_c, _)) => self.temperatures_c[node].max(max_c),
        };
        for cluster in clusters(topology) {
            let (info, power) =
                (&topology.clusters()[cluster.index()], &self.board.power[cluster.index()]);
            let level = levels[cluster.index()];
            let (volt, node) = (power.volts[level], heat.uncore_node(cluster));
            power_mw[node] +=
                power.uncore_mw[level] + power.uncore_leakage.power_mw(volt, celsius(node));
            let full_mw =
                self.loads[cluster.index()].capacitance * self.square_mhz(topology, cluster, level);
            let slower = f64::from(view.frequency_mhz(cluster)) / f64::from(info.freqs_mhz[level]);
            for &core in &info.cores {
                let share = match ahead {
                    None => self.shares[core.index()],
                    Some((_, Some(also))) if also == core => 1.0,
                    Some(_) => (self.shares[core.index()] * slower.max(1.0)).min(1.0),
                };
                let node = heat.core_node(core);
                power_mw[node] +=
                    share * full_mw + power.core_leakage.power_mw(volt, celsius(node));
            }
        }
        power_mw
    }

    /// Shifts all temperatures so that the hottest modelled one is the hottest that sensors show.
    fn correct(&mut self, view: &View) {
        let (topology, heat) = (view.topology(), &self.board.heat);
        let (mut shown_c, mut modelled_c) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
        for cluster in clusters(topology) {
            let reading = view.temperature_c(cluster);
            if reading.kind == FactorKind::Missing {
                continue;
            }
            shown_c = shown_c.max(reading.value);
            for &core in &topology.clusters()[cluster.index()].cores {
                modelled_c = modelled_c.max(self.temperatures_c[heat.core_node(core)]);
            }
        }
        if shown_c.is_finite() {
            let shift_k = shown_c - modelled_c;
            self.temperatures_c.iter_mut().for_each(|celsius| *celsius += shift_k);
        }
    }

    /// V^2 f of a cluster at an operating point, in MHz V^2.
    fn square_mhz(&self, topology: &Topology, cluster: ClusterId, level: usize) -> f64 {
        let volt = self.board.power[cluster.index()].volts[level];
        square_mhz(&topology.clusters()[cluster.index()], volt, level)
    }

    /// Power of a cluster that does not depend on what runs, at its present temperature.
    fn still_mw(&self, topology: &Topology, cluster: ClusterId, level: usize) -> f64 {
        let (heat, power) = (&self.board.heat, &self.board.power[cluster.index()]);
        let volt = power.volts[level];
        let leakage = |core: &CoreId| {
            power.core_leakage.power_mw(volt, self.temperatures_c[heat.core_node(*core)])
        };
        let cores: f64 = topology.clusters()[cluster.index()].cores.iter().map(leakage).sum();
        let shared_c = self.temperatures_c[heat.uncore_node(cluster)];
        cores + power.uncore_mw[level] + power.uncore_leakage.power_mw(volt, shared_c)
    }
}

fn square_mhz(cluster: &ClusterInfo, volt: f64, level: usize) -> f64 {
    volt * volt * f64::from(cluster.freqs_mhz[level])
}

/// What a busy core switches before a sensor has told: as the energy model has it, leakage included.
fn believed_capacitance(cluster: &ClusterInfo, power: &StaticPower) -> f64 {
    let top = cluster.freqs_mhz.len() - 1;
    let power_mw = cluster.energy_model.last().map_or(0.0, |point| point.power_mw);
    power_mw / square_mhz(cluster, power.volts[top], top)
}

/// All clusters of a machine.
pub fn clusters(topology: &Topology) -> impl Iterator<Item = ClusterId> + use<> {
    (0..topology.clusters().len()).map(ClusterId::from)
}

/// The operating point of each cluster with a frequency, or the next higher one.
pub fn levels_of(topology: &Topology, mhz: impl Fn(ClusterId) -> u32) -> Levels {
    let level = |cluster: ClusterId| {
        let freqs_mhz = &topology.clusters()[cluster.index()].freqs_mhz;
        freqs_mhz.partition_point(|&each| each < mhz(cluster)).min(freqs_mhz.len() - 1)
    };
    clusters(topology).map(level).collect()
}
