//! Energy models: the published table of a cluster, or one derived from its power.

use super::CoreState;
use crate::{Cluster, ClusterId, Machine, Profile, machine_speed_ips};

/// Capacity of the fastest core at its highest frequency, as in Linux.
const CAPACITY_MAX: f64 = 1024.0;

/// An entry of an energy model, as Linux keeps one for each performance domain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EnergyPoint {
    /// Frequency in MHz.
    pub mhz: u32,
    /// Work per time relative to the fastest core at its highest frequency, which has 1024.
    pub capacity: f64,
    /// Power of one busy core in mW.
    pub power_mw: f64,
}

impl Machine {
    /// The energy model of a cluster; `None` if its power is not known.
    ///
    /// This is the table of the machine's file. If there is none, capacity is the speed of `reference`
    /// (Linux takes Dhrystone's), and power what one core draws while it runs it, at the temperature for
    /// which leakage is stated.
    pub fn energy_model(
        &self,
        cluster: ClusterId,
        reference: &Profile,
    ) -> Option<Vec<EnergyPoint>> {
        let cluster = &self.clusters[cluster.index()];
        match cluster.power.energy_model.as_slice() {
            [] if !cluster.power.is_known() => None,
            [] => Some(self.derived_energy_model(cluster, reference)),
            published => Some(published.to_vec()),
        }
    }

    fn derived_energy_model(&self, cluster: &Cluster, reference: &Profile) -> Vec<EnergyPoint> {
        let speed = |cluster: &Cluster, mhz: u32| {
            machine_speed_ips(reference, self, cluster, f64::from(mhz))
        };
        let top = |cluster: &Cluster| speed(cluster, cluster.max_mhz());
        let fastest = self.clusters.iter().map(top).fold(0.0, f64::max);
        let point = |(index, opp): (usize, &crate::Opp)| {
            let power = &cluster.power;
            let activity = power.activity.of(reference, &cluster.params, f64::from(opp.mhz));
            let state = CoreState::Running { activity };
            EnergyPoint {
                mhz: opp.mhz,
                capacity: CAPACITY_MAX * speed(cluster, opp.mhz) / fastest,
                power_mw: power.core_power_mw(index, state, power.core_leakage.reference_c),
            }
        };
        cluster.opps.iter().enumerate().map(point).collect()
    }

    /// The first cluster of which power is not known; no energy can be told of a machine that has one.
    pub fn without_power(&self) -> Option<&Cluster> {
        self.clusters.iter().find(|cluster| !cluster.power.is_known())
    }
}
