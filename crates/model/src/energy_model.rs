//! What an energy-aware scheduler believes of a machine: capacities and energy models.

use crate::rtapp::run_loop;
use crate::{Cluster, CoreState, EnergyPoint, Machine, machine_speed_ips};

/// Capacity of the fastest core at its highest frequency (Linux, `SCHED_CAPACITY_SCALE`).
const FULL: f64 = 1024.0;

/// Temperature at which leakage counts for the energy model, in degrees Celsius: an estimate, warm but
/// not throttling. (Linux's tables have no temperature at all.)
const ASSUMED_C: f64 = 50.0;

/// The energy model of each cluster of a machine, one point per operating point.
///
/// A cluster's own table (`energy_model` in the machine's file) if all clusters have one. Else the
/// capacity is the one that all clusters state (`capacity`), in proportion to the frequency, or that of
/// rt-app's loop, which stays in the first cache as Dhrystone does, with which Linux's
/// `capacity-dmips-mhz` is measured; and the power that of a core that runs at activity 1. Powers are
/// 0 where nothing is known of a cluster's power.
pub fn energy_models(machine: &Machine) -> Vec<Vec<EnergyPoint>> {
    let tables = machine.clusters.iter().map(|cluster| &cluster.power.energy_model);
    if tables.clone().all(|table| !table.is_empty()) {
        return tables.cloned().collect();
    }
    let are_stated = machine.clusters.iter().all(|each| each.power.capacity_per_mhz.is_some());
    let speed = |machine: &Machine, cluster: &Cluster, mhz: u32| {
        let stated = cluster.power.capacity_per_mhz.filter(|_| are_stated);
        stated.map_or_else(|| loop_speed(machine, cluster, mhz), |per_mhz| per_mhz * f64::from(mhz))
    };
    let top = |cluster: &Cluster| speed(machine, cluster, cluster.max_mhz());
    let fastest = machine.clusters.iter().map(top).fold(0.0, f64::max);
    let model = |cluster: &Cluster| {
        let point = |(opp, mhz)| EnergyPoint {
            mhz,
            capacity: FULL * speed(machine, cluster, mhz) / fastest,
            power_mw: busy_power_mw(cluster, opp),
        };
        cluster.opps.iter().map(|opp| opp.mhz).enumerate().map(point).collect()
    };
    machine.clusters.iter().map(model).collect()
}

/// Instructions of rt-app's loop per second.
fn loop_speed(machine: &Machine, cluster: &Cluster, mhz: u32) -> f64 {
    machine_speed_ips(&run_loop(), machine, cluster, f64::from(mhz))
}

fn busy_power_mw(cluster: &Cluster, opp: usize) -> f64 {
    if !cluster.power.is_known() {
        return 0.0;
    }
    cluster.power.core_power_mw(opp, CoreState::Running { activity: 1.0 }, ASSUMED_C)
}
