//! The table `[thermal]` of a machine file.

use std::ops::RangeInclusive;

use crate::limits::THERMAL_NODES_MAX;
use crate::reader::{Node, Spot, Table};
use crate::toml_power::{CELSIUS, PERIOD_MS, ms, sensor_keys, sensor_of};
use crate::{
    Cooling, HeatSource, InputError, Thermal, ThermalLink, ThermalNode, ThermalSensor, Trip,
};

/// How a link calls the surroundings.
const AMBIENT: &str = "ambient";
/// Heat capacities in J/K: from a grain of silicon to a bucket of water.
const J_PER_K: RangeInclusive<f64> = 1e-6..=1e5;
/// Thermal resistances in K/W.
const K_PER_W: RangeInclusive<f64> = 1e-4..=1e5;

/// Name and number of operating points of a cluster.
pub(crate) type ClusterSize<'a> = (&'a str, usize);

/// Reads the table; `clusters` are those of the machine.
pub(crate) fn thermal(
    node: &Node<'_>,
    clusters: &[ClusterSize<'_>],
) -> Result<Thermal, InputError> {
    let table = node.table(&[
        "ambient_c",
        "period_ms",
        "nodes",
        "links",
        "sensors",
        "throttle_period_ms",
        "trips",
    ])?;
    let nodes = nodes(&table, clusters)?;
    let links = each(&table, "links", |node| link(node, &nodes))?;
    let sensors = each(&table, "sensors", |node| sensor(node, &nodes))?;
    let trips = each(&table, "trips", |node| trip(node, clusters))?;
    let thermal = Thermal {
        ambient_c: table.number("ambient_c", CELSIUS)?,
        period_ns: ms(table.number("period_ms", PERIOD_MS)?),
        throttle_period_ns: ms(table.number_or("throttle_period_ms", 100.0, PERIOD_MS)?),
        nodes,
        links,
        sensors,
        trips,
    };
    check(&table, &thermal)?;
    Ok(thermal)
}

/// The elements of an optional list.
fn each<T>(
    table: &Table<'_>,
    key: &str,
    read: impl FnMut(&Node<'_>) -> Result<T, InputError>,
) -> Result<Vec<T>, InputError> {
    match table.get(key) {
        Some(node) => node.list()?.iter().map(read).collect(),
        None => Ok(Vec::new()),
    }
}

fn nodes(table: &Table<'_>, clusters: &[ClusterSize<'_>]) -> Result<Vec<ThermalNode>, InputError> {
    let list = table.require("nodes")?;
    let mut nodes: Vec<ThermalNode> = Vec::new();
    for node in list.list()? {
        let read = thermal_node(&node, clusters)?;
        let name = node.any_table()?.require("name")?.spot;
        if read.name == AMBIENT || nodes.iter().any(|known| known.name == read.name) {
            return Err(name.error(format!("a second node {:?}", read.name)));
        }
        if read.heat != HeatSource::Nothing && nodes.iter().any(|known| known.heat == read.heat) {
            return Err(name.error("a second node for the same heat"));
        }
        nodes.push(read);
    }
    if nodes.len() > THERMAL_NODES_MAX {
        let message = format!("{} nodes, at most {THERMAL_NODES_MAX} are allowed", nodes.len());
        return Err(list.spot.error(message));
    }
    for (cluster, _) in clusters {
        if !nodes.iter().any(|node| node.heat == HeatSource::Cluster((*cluster).to_owned())) {
            let error = list.spot.error(format!("cluster {cluster:?} has no node"));
            return Err(error.with_hint(format!("add one with cluster = {cluster:?}")));
        }
    }
    Ok(nodes)
}

fn thermal_node(node: &Node<'_>, clusters: &[ClusterSize<'_>]) -> Result<ThermalNode, InputError> {
    let table = node.table(&["name", "cores", "cluster", "j_per_k", "background_mw"])?;
    let named = |key| table.get(key).map(|node| cluster_name(&node, clusters)).transpose();
    let heat = match (named("cores")?, named("cluster")?) {
        (None, None) => HeatSource::Nothing,
        (Some(cores), None) => HeatSource::Cores(cores),
        (None, Some(cluster)) => HeatSource::Cluster(cluster),
        (Some(_), Some(_)) => {
            return Err(node.spot.error("has both cores and cluster, one of them is allowed"));
        }
    };
    Ok(ThermalNode {
        name: table.require("name")?.name()?.to_owned(),
        heat,
        j_per_k: table.number("j_per_k", J_PER_K)?,
        background_mw: table.number_or("background_mw", 0.0, 0.0..=1e6)?,
    })
}

fn link(node: &Node<'_>, nodes: &[ThermalNode]) -> Result<ThermalLink, InputError> {
    let table = node.table(&["from", "to", "k_per_w"])?;
    let (from, to) = (table.require("from")?, table.require("to")?);
    let from_name = node_name(&from, nodes)?;
    let to_name = if to.text()? == AMBIENT { None } else { Some(node_name(&to, nodes)?) };
    if to_name.as_ref() == Some(&from_name) {
        return Err(to.spot.error(format!("links {from_name:?} with itself")));
    }
    Ok(ThermalLink { from: from_name, to: to_name, k_per_w: table.number("k_per_w", K_PER_W)? })
}

fn sensor(node: &Node<'_>, nodes: &[ThermalNode]) -> Result<ThermalSensor, InputError> {
    let own = sensor_keys("c");
    let keys: Vec<&str> =
        ["name", "node"].into_iter().chain(own.iter().map(String::as_str)).collect();
    let table = node.table(&keys)?;
    Ok(ThermalSensor {
        name: table.require("name")?.name()?.to_owned(),
        node: node_name(&table.require("node")?, nodes)?,
        sensor: sensor_of(&table, "c")?,
    })
}

fn trip(node: &Node<'_>, clusters: &[ClusterSize<'_>]) -> Result<Trip, InputError> {
    let table = node.table(&["celsius", "hysteresis_c", "cooling"])?;
    let steps = table.require("cooling")?.any_table()?.members();
    Ok(Trip {
        celsius: table.number("celsius", CELSIUS)?,
        hysteresis_c: table.number_or("hysteresis_c", 0.0, 0.0..=100.0)?,
        cooling: steps
            .into_iter()
            .map(|(cluster, node)| cooling(cluster, &node, clusters))
            .collect::<Result<_, _>>()?,
    })
}

/// First and last step of a trip point for a cluster, such as `big = [3, 14]`.
fn cooling(
    name: &str,
    node: &Node<'_>,
    clusters: &[ClusterSize<'_>],
) -> Result<Cooling, InputError> {
    let (cluster, opps) = known_cluster(&node.spot, name, clusters)?;
    let list = node.list()?;
    let [first, last] = list.as_slice() else {
        return Err(node.spot.error("is not a list of two steps, such as [0, 2]"));
    };
    let first_step = first.whole(0..=opps as i64 - 1)?;
    let last_step = last.whole(first_step..=opps as i64 - 1)?;
    Ok(Cooling {
        cluster: cluster.to_owned(),
        first_step: first_step as usize,
        last_step: last_step as usize,
    })
}

fn cluster_name(node: &Node<'_>, clusters: &[ClusterSize<'_>]) -> Result<String, InputError> {
    known_cluster(&node.spot, node.text()?, clusters).map(|(name, _)| name.to_owned())
}

fn known_cluster<'a>(
    spot: &Spot,
    name: &str,
    clusters: &[ClusterSize<'a>],
) -> Result<ClusterSize<'a>, InputError> {
    let found = clusters.iter().find(|(known, _)| *known == name);
    found
        .copied()
        .ok_or_else(|| spot.unknown("cluster", name, clusters.iter().map(|(known, _)| *known)))
}

fn node_name(node: &Node<'_>, nodes: &[ThermalNode]) -> Result<String, InputError> {
    let name = node.text()?;
    let known = || nodes.iter().map(|node| node.name.as_str());
    if known().any(|known| known == name) {
        Ok(name.to_owned())
    } else {
        Err(node.spot.unknown("node", name, known()))
    }
}

/// What holds of the whole: heat can leave, and throttling has something to look at.
fn check(table: &Table<'_>, thermal: &Thermal) -> Result<(), InputError> {
    if let Some(node) = thermal.cut_off(|_| true) {
        let message =
            format!("no link leads from {:?} to the ambient, it would heat up for ever", node.name);
        return Err(table.require("nodes")?.spot.error(message));
    }
    if !thermal.trips.is_empty() && thermal.sensors.is_empty() {
        let error = table.require("trips")?.spot.error("there is no sensor to look at");
        return Err(error.with_hint("add sensors"));
    }
    Ok(())
}
