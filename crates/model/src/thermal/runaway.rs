//! Thermal runaway: leakage that heats the chip so much that it leaks ever more.

use super::ThermalNetwork;
use crate::{ClusterId, Machine};

/// What leakage alone heats by more than this would never settle, or never work.
const RISE_MAX_K: f64 = 200.0;
/// Temperature changes below this count as settled.
const SETTLED_K: f64 = 1e-6;
/// Rounds after which temperatures that neither settle nor pass the limit are taken as settled.
const ROUNDS_MAX: usize = 100_000;

/// The node that leakage alone, at the highest voltages, heats without end, if there is one.
///
/// Each round takes the steady state of the power that the last round's temperatures leak. The rounds
/// start without leakage and only ever rise, so they settle at the lowest stable state if there is one.
pub(super) fn node_without_steady_state(
    network: &ThermalNetwork,
    machine: &Machine,
) -> Option<usize> {
    let start_c = network.steady_c(&vec![0.0; network.names().len()]);
    let mut temperatures_c = start_c.clone();
    for _ in 0..ROUNDS_MAX {
        let next_c = network.steady_c(&leakage_mw(network, machine, &temperatures_c));
        let (hottest, rise_k) = largest_rise(&start_c, &next_c);
        if rise_k > RISE_MAX_K {
            return Some(hottest);
        }
        let (_, change_k) = largest_rise(&temperatures_c, &next_c);
        if change_k < SETTLED_K {
            return None;
        }
        temperatures_c = next_c;
    }
    None
}

/// The node whose temperature has risen most, and by how much.
fn largest_rise(before_c: &[f64], after_c: &[f64]) -> (usize, f64) {
    let rises = before_c.iter().zip(after_c).map(|(before, after)| after - before);
    rises.enumerate().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0))
}

/// Leakage by node at the highest operating points.
fn leakage_mw(network: &ThermalNetwork, machine: &Machine, temperatures_c: &[f64]) -> Vec<f64> {
    let mut heat_mw = vec![0.0; temperatures_c.len()];
    for (index, cluster) in machine.clusters.iter().enumerate() {
        let volt = cluster.opps.last().map_or(0.0, |opp| opp.volt);
        let node = network.uncore_node(ClusterId::from(index));
        heat_mw[node] += cluster.power.uncore_leakage.power_mw(volt, temperatures_c[node]);
        for core in &cluster.cores {
            let node = network.core_node(*core);
            heat_mw[node] += cluster.power.core_leakage.power_mw(volt, temperatures_c[node]);
        }
    }
    heat_mw
}
