//! Heat: the thermal network of a board, its sensors, and how its kernel throttles.
//!
//! A network of heat capacities and conductances (RC network: Skadron et al., ACM TACO 1, 2004) with
//! one node for each core, cluster and the case, connected to an ambient of constant temperature.
//! [`Thermal`] is what a machine file says; [`ThermalNetwork`] is that for one machine, ready to step;
//! [`Throttle`] caps frequencies by what the sensors show.

mod eigen;
mod network;
mod runaway;
mod throttle;

pub use network::ThermalNetwork;
pub use throttle::Throttle;

use crate::{Ns, Sensor};

/// Heat of a machine: what its file's `[thermal]` says.
#[derive(Clone, Debug, PartialEq)]
pub struct Thermal {
    /// Temperature of the surroundings in degrees Celsius.
    pub ambient_c: f64,
    /// Time between two steps of a simulation.
    pub period_ns: Ns,
    /// Heat capacities.
    pub nodes: Vec<ThermalNode>,
    /// Conductances.
    pub links: Vec<ThermalLink>,
    /// Sensors that throttling looks at.
    pub sensors: Vec<ThermalSensor>,
    /// Time between two decisions of throttling.
    pub throttle_period_ns: Ns,
    /// Trip points; none if the machine never throttles.
    pub trips: Vec<Trip>,
}

impl Thermal {
    /// A node from which no heat can flow to the ambient through nodes that are `present`.
    pub(crate) fn cut_off(&self, present: impl Fn(&ThermalNode) -> bool) -> Option<&ThermalNode> {
        let nodes: Vec<&ThermalNode> = self.nodes.iter().filter(|node| present(node)).collect();
        let mut cooled: Vec<Option<&str>> = vec![None];
        let mut next = 0;
        while next < cooled.len() {
            let here = cooled[next];
            for node in &nodes {
                let name = Some(node.name.as_str());
                let is_linked = |link: &ThermalLink| {
                    let ends = (Some(link.from.as_str()), link.to.as_deref());
                    ends == (name, here) || ends == (here, name)
                };
                if !cooled.contains(&name) && self.links.iter().any(is_linked) {
                    cooled.push(name);
                }
            }
            next += 1;
        }
        nodes.into_iter().find(|node| !cooled.contains(&Some(node.name.as_str())))
    }
}

/// A heat capacity, or one for each core of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct ThermalNode {
    /// Name.
    pub name: String,
    /// What heats it.
    pub heat: HeatSource,
    /// Heat capacity in J/K; of each of them if there is one for each core.
    pub j_per_k: f64,
    /// Power that always heats it, such as that of a memory that is not simulated, in mW.
    pub background_mw: f64,
}

/// What heats a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeatSource {
    /// One node for each core of the cluster of that name, heated by it.
    Cores(String),
    /// What has no node of its own in the cluster of that name: its uncore, and its cores if there are
    /// no nodes for them.
    Cluster(String),
    /// Nothing but its neighbours and its background power.
    Nothing,
}

/// A conductance between two nodes, or between each core's node and another one.
#[derive(Clone, Debug, PartialEq)]
pub struct ThermalLink {
    /// Name of one node.
    pub from: String,
    /// Name of the other; `None` is the ambient.
    pub to: Option<String>,
    /// Thermal resistance in K/W.
    pub k_per_w: f64,
}

/// A temperature sensor, or one for each core of a cluster; its unit is degrees Celsius.
#[derive(Clone, Debug, PartialEq)]
pub struct ThermalSensor {
    /// Name.
    pub name: String,
    /// Name of the node, or nodes, whose temperature it shows.
    pub node: String,
    /// Resolution, noise and timing.
    pub sensor: Sensor,
}

/// A trip point: above it cores are slowed down step by step.
#[derive(Clone, Debug, PartialEq)]
pub struct Trip {
    /// Temperature in degrees Celsius from which on it acts.
    pub celsius: f64,
    /// How far below the temperature must fall until it lets go, in K.
    pub hysteresis_c: f64,
    /// Which clusters it slows down, and how far.
    pub cooling: Vec<Cooling>,
}

/// How far a trip point slows down a cluster, in operating points below the highest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cooling {
    /// Name of the cluster.
    pub cluster: String,
    /// Steps that the trip point takes at once.
    pub first_step: usize,
    /// Steps that it takes at most.
    pub last_step: usize,
}
