//! The thermal network of one machine: exact steps, steady state, time constants.

use std::ops::Range;

use super::eigen::{Matrix, matrix, symmetric};
use super::runaway::node_without_steady_state;
use super::{HeatSource, Thermal, ThermalLink};
use crate::{Cluster, ClusterId, CoreId, InputError, Machine, Ns, Sensor};

/// A thermal network with a node for everything that has a temperature of its own.
///
/// `C dT/dt = P - G (T - T_ambient)` with positive capacities C and a symmetric G has a solution in
/// closed form while the powers P are constant; [`ThermalNetwork::advance`] is that solution, not an
/// approximation, so no step is too long, and temperatures are physical: from the ambient's temperature
/// on none falls below it or rises above where it will settle.
#[derive(Clone, Debug, PartialEq)]
pub struct ThermalNetwork {
    names: Vec<String>,
    core_nodes: Vec<usize>,
    uncore_nodes: Vec<usize>,
    sensors: Vec<(usize, Sensor)>,
    background_mw: Vec<f64>,
    ambient_c: f64,
    period_ns: Ns,
    modes: Modes,
    /// The solution over one period.
    step: Step,
}

/// The network in the coordinates in which its parts do not influence each other.
#[derive(Clone, Debug, PartialEq)]
struct Modes {
    /// Decay rates in 1/s, all positive.
    rates: Vec<f64>,
    /// Node temperatures by modes: `C^(-1/2) Q`.
    to_nodes: Matrix,
    /// Heat capacities in J/K.
    capacities: Vec<f64>,
}

/// Temperatures above ambient after a step: `decay * before + gain_k_per_mw * power_mw`; column after column, so that
/// all rows of a column are computed side by side.
#[derive(Clone, Debug, PartialEq)]
struct Step {
    decay: Vec<f64>,
    gain_k_per_mw: Vec<f64>,
}

impl ThermalNetwork {
    /// The network of a machine.
    ///
    /// The machine may be one derived from the described one (other core order, only some clusters):
    /// nodes of clusters that it does not have are left out.
    ///
    /// # Errors
    /// A cluster without a node, nodes from which no heat can flow to the ambient, and leakage that alone
    /// heats the machine without end.
    pub fn new(thermal: &Thermal, machine: &Machine) -> Result<Self, InputError> {
        let layout = Layout::of(thermal, machine)?;
        let modes = Modes::of(&layout);
        let step = modes.step(seconds(thermal.period_ns));
        let network = Self {
            names: layout.names,
            core_nodes: layout.core_nodes,
            uncore_nodes: layout.uncore_nodes,
            sensors: layout.sensors,
            background_mw: layout.background_mw,
            ambient_c: thermal.ambient_c,
            period_ns: thermal.period_ns,
            modes,
            step,
        };
        match node_without_steady_state(&network, machine) {
            None => Ok(network),
            Some(node) => {
                let name = &network.names[node];
                let message = format!("leakage alone heats node {name:?} without end");
                Err(error(machine, message).with_hint("check static_mw, static_kelvin and k_per_w"))
            }
        }
    }

    /// The same network with another time between two steps.
    #[must_use]
    pub fn with_period(self, period_ns: Ns) -> Self {
        let step = self.modes.step(seconds(period_ns));
        Self { period_ns, step, ..self }
    }

    /// Names of the nodes, in the order of temperatures and powers; `big-core.2` is the node of the
    /// third core of a cluster.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The node that each core heats.
    #[inline]
    pub fn core_nodes(&self) -> &[usize] {
        &self.core_nodes
    }

    /// The node that each cluster's uncore heats.
    #[inline]
    pub fn uncore_nodes(&self) -> &[usize] {
        &self.uncore_nodes
    }

    /// The node that a core heats.
    #[inline]
    pub fn core_node(&self, core: CoreId) -> usize {
        self.core_nodes[core.index()]
    }

    /// The node that a cluster's uncore heats.
    #[inline]
    pub fn uncore_node(&self, cluster: ClusterId) -> usize {
        self.uncore_nodes[cluster.index()]
    }

    /// The sensors: node and properties, in the order of the file, one core's after the other's.
    pub fn sensors(&self) -> &[(usize, Sensor)] {
        &self.sensors
    }

    /// Time between two steps.
    pub fn period_ns(&self) -> Ns {
        self.period_ns
    }

    /// Temperatures of a machine that has been off for long.
    pub fn cold_c(&self) -> Vec<f64> {
        vec![self.ambient_c; self.names.len()]
    }

    /// Temperatures after one period in which each node was heated by a constant power, on top of its
    /// background power. The fast way: a multiplication by two matrices computed beforehand.
    pub fn step(&self, before_c: &[f64], power_mw: &[f64]) -> Vec<f64> {
        let mut after_c = self.cold_c();
        self.step_into(before_c, power_mw, &mut after_c);
        after_c
    }

    /// [`ThermalNetwork::step`] without memory of its own.
    #[inline]
    pub fn step_into(&self, before_c: &[f64], power_mw: &[f64], after_c: &mut [f64]) {
        self.apply(&self.step, before_c, power_mw, after_c);
    }

    /// Temperatures after any time in which each node was heated by a constant power, on top of its
    /// background power.
    pub fn advance(&self, before_c: &[f64], power_mw: &[f64], time_ns: Ns) -> Vec<f64> {
        let mut after_c = self.cold_c();
        self.apply(&self.modes.step(seconds(time_ns)), before_c, power_mw, &mut after_c);
        after_c
    }

    /// Temperatures that constant powers lead to in the end.
    pub fn steady_c(&self, power_mw: &[f64]) -> Vec<f64> {
        let mut after_c = self.cold_c();
        self.apply(&self.modes.step(f64::INFINITY), &self.cold_c(), power_mw, &mut after_c);
        after_c
    }

    /// Time constants in s, the longest first.
    pub fn time_constants_s(&self) -> Vec<f64> {
        let mut times: Vec<f64> = self.modes.rates.iter().map(|rate| 1.0 / rate).collect();
        times.sort_by(|a, b| b.total_cmp(a));
        times
    }

    #[inline]
    fn apply(&self, step: &Step, before_c: &[f64], power_mw: &[f64], after_c: &mut [f64]) {
        let size = self.names.len();
        assert_eq!(before_c.len(), size, "a temperature for each node");
        assert_eq!(power_mw.len(), size, "a power for each node");
        assert_eq!(after_c.len(), size, "room for each node");
        after_c.fill(self.ambient_c);
        for node in 0..size {
            let (above_k, heat_mw) =
                (before_c[node] - self.ambient_c, power_mw[node] + self.background_mw[node]);
            let column = node * size..(node + 1) * size;
            let (decay, gain) = (&step.decay[column.clone()], &step.gain_k_per_mw[column]);
            for ((value, decay), gain) in after_c.iter_mut().zip(decay).zip(gain) {
                *value += decay * above_k + gain * heat_mw;
            }
        }
    }
}

impl Modes {
    /// Diagonalises `C^(-1/2) G C^(-1/2)`, which is symmetric and positive definite.
    fn of(layout: &Layout) -> Modes {
        let capacities = layout.capacities.clone();
        let size = capacities.len();
        let scaled = matrix(size, |row, column| {
            layout.conductances[row][column] / (capacities[row] * capacities[column]).sqrt()
        });
        let (rates, vectors) = symmetric(scaled);
        let to_nodes = matrix(size, |row, mode| vectors[row][mode] / capacities[row].sqrt());
        Modes { rates, to_nodes, capacities }
    }

    /// The solution over a time, possibly infinite.
    fn step(&self, time_s: f64) -> Step {
        let size = self.capacities.len();
        let at = |row: usize, column: usize, of_rate: &dyn Fn(f64) -> f64| -> f64 {
            let (rows, columns) = (&self.to_nodes[row], &self.to_nodes[column]);
            let modes = rows.iter().zip(columns).zip(&self.rates);
            modes.map(|((a, b), rate)| a * b * of_rate(*rate)).sum()
        };
        let left = |rate: f64| (-rate * time_s).exp();
        let gained = |rate: f64| -(-rate * time_s).exp_m1() / rate / 1000.0;
        Step {
            decay: columns(size, |row, column| at(row, column, &left) * self.capacities[column]),
            gain_k_per_mw: columns(size, |row, column| at(row, column, &gained)),
        }
    }
}

/// The square matrix of that size with a function's values of row and column, column after column.
fn columns(size: usize, value: impl Fn(usize, usize) -> f64) -> Vec<f64> {
    matrix(size, |column, row| value(row, column)).concat()
}

/// Nodes and conductances with a row for each core's node.
struct Layout {
    /// The rows that belong to each node of the file.
    rows: Vec<(String, Range<usize>)>,
    names: Vec<String>,
    capacities: Vec<f64>,
    background_mw: Vec<f64>,
    core_nodes: Vec<usize>,
    uncore_nodes: Vec<usize>,
    sensors: Vec<(usize, Sensor)>,
    /// In W/K: minus the conductance between two nodes; on the diagonal the sum of a node's.
    conductances: Matrix,
}

impl Layout {
    fn of(thermal: &Thermal, machine: &Machine) -> Result<Layout, InputError> {
        if let Some(node) = thermal.cut_off(|node| node.heat.nodes(machine) > 0) {
            let message = format!("no link leads from node {:?} to the ambient", node.name);
            return Err(error(machine, message));
        }
        let mut layout = Layout::nodes(thermal, machine);
        layout.heat(thermal, machine)?;
        layout.connect(thermal);
        for sensor in &thermal.sensors {
            let rows = layout.rows_of(&sensor.node);
            layout.sensors.extend(rows.map(|row| (row, sensor.sensor)));
        }
        Ok(layout)
    }

    fn nodes(thermal: &Thermal, machine: &Machine) -> Layout {
        let (mut rows, mut names) = (Vec::new(), Vec::new());
        let (mut capacities, mut background_mw) = (Vec::new(), Vec::new());
        for node in &thermal.nodes {
            let (first, count) = (names.len(), node.heat.nodes(machine));
            rows.push((node.name.clone(), first..first + count));
            names.extend((0..count).map(|index| match node.heat {
                HeatSource::Cores(_) => format!("{}.{index}", node.name),
                _ => node.name.clone(),
            }));
            capacities.resize(first + count, node.j_per_k);
            background_mw.resize(first + count, node.background_mw);
        }
        Layout {
            conductances: matrix(names.len(), |_, _| 0.0),
            rows,
            names,
            capacities,
            background_mw,
            core_nodes: vec![0; machine.cores()],
            uncore_nodes: Vec::new(),
            sensors: Vec::new(),
        }
    }

    /// The rows of a node of the file: none if the machine has not the cluster.
    fn rows_of(&self, name: &str) -> Range<usize> {
        let found = self.rows.iter().find(|(known, _)| known == name);
        found.map_or(0..0, |(_, rows)| rows.clone())
    }

    /// Finds out which node each core and each uncore heats.
    fn heat(&mut self, thermal: &Thermal, machine: &Machine) -> Result<(), InputError> {
        for cluster in &machine.clusters {
            let first_row = |wanted: HeatSource| {
                let node = thermal.nodes.iter().find(|node| node.heat == wanted)?;
                Some(self.rows_of(&node.name).start)
            };
            let shared = first_row(HeatSource::Cluster(cluster.name.clone()))
                .ok_or_else(|| error(machine, format!("cluster {:?} has no node", cluster.name)))?;
            let own = first_row(HeatSource::Cores(cluster.name.clone()));
            for (index, core) in cluster.cores.iter().enumerate() {
                self.core_nodes[core.index()] = own.map_or(shared, |own| own + index);
            }
            self.uncore_nodes.push(shared);
        }
        Ok(())
    }

    /// Fills in the conductances.
    fn connect(&mut self, thermal: &Thermal) {
        for ThermalLink { from, to, k_per_w } in &thermal.links {
            let conductance = 1.0 / k_per_w;
            for a in self.rows_of(from) {
                let Some(to) = to else {
                    self.conductances[a][a] += conductance;
                    continue;
                };
                for b in self.rows_of(to) {
                    self.conductances[a][a] += conductance;
                    self.conductances[b][b] += conductance;
                    self.conductances[a][b] -= conductance;
                    self.conductances[b][a] -= conductance;
                }
            }
        }
    }
}

impl HeatSource {
    /// How many nodes of a machine it stands for.
    fn nodes(&self, machine: &Machine) -> usize {
        let cluster = |name: &String| -> Option<&Cluster> {
            machine.clusters.iter().find(|cluster| cluster.name == *name)
        };
        match self {
            HeatSource::Cores(name) => cluster(name).map_or(0, |cluster| cluster.cores.len()),
            HeatSource::Cluster(name) => usize::from(cluster(name).is_some()),
            HeatSource::Nothing => 1,
        }
    }
}

fn seconds(time_ns: Ns) -> f64 {
    time_ns as f64 / 1e9
}

fn error(machine: &Machine, message: String) -> InputError {
    InputError::new(machine.name.clone(), "thermal", message)
}
