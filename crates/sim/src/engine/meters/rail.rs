//! Clusters that one regulator supplies: each runs at the highest voltage that any of them asks for.
//!
//! Dynamic power grows with the square of the voltage at the same frequency (C V^2 f), and leakage follows the voltage
//! ([`ampsched_model::Leakage`]). A meter keeps the factor of its cluster's dynamic power, which is 1 without a rail.

use ampsched_model::{ClusterId, Machine};

use super::Site;

/// The clusters of a rail, and its voltage.
#[derive(Clone, Debug)]
pub(super) struct Rail {
    pub clusters: Vec<ClusterId>,
    pub volt: f64,
}

impl Rail {
    /// The rail of a machine; none if at least two clusters that share one are not there.
    pub fn of(machine: &Machine) -> Option<Rail> {
        let is_on = |name: &String| machine.board.shared_rail.contains(name);
        let clusters: Vec<ClusterId> = (0..machine.clusters.len())
            .filter(|&cluster| is_on(&machine.clusters[cluster].name))
            .map(ClusterId::from)
            .collect();
        (clusters.len() > 1).then_some(Rail { clusters, volt: 0.0 })
    }

    /// Sets the voltage to what the clusters ask for now. Returns whether it is another one.
    pub fn adjust(&mut self, site: Site) -> bool {
        let asked =
            |&cluster: &ClusterId| site.power(cluster).points[site.speeds.opp(cluster)].volt;
        let volt = self.clusters.iter().map(asked).fold(0.0, f64::max);
        std::mem::replace(&mut self.volt, volt) != volt
    }

    /// Whether it supplies a cluster.
    pub fn supplies(&self, cluster: ClusterId) -> bool {
        self.clusters.contains(&cluster)
    }
}
