//! Clusters that one regulator supplies: each runs at the highest voltage that any of them asks for.
//!
//! Dynamic power grows with the square of the voltage at the same frequency (C V^2 f), and leakage follows the voltage
//! ([`ampsched_model::Leakage`]). A meter keeps the factor of its cluster's dynamic power, which is 1 without a rail.
//! If the machine says so, the uncores of its clusters also have one clock, the highest of theirs.

use ampsched_model::{ClusterId, Machine};

use super::Site;

/// The clusters of a rail, and what they make of it.
#[derive(Clone, Debug)]
pub(super) struct Rail {
    pub clusters: Vec<ClusterId>,
    pub level: Level,
    shares_clock: bool,
}

/// Voltage and clock: of a rail the highest that its clusters ask for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Level {
    pub volt: f64,
    mhz: f64,
}

impl Level {
    /// What a cluster asks for at an operating point.
    pub fn of(site: Site, cluster: ClusterId, opp: usize) -> Level {
        let mhz = site.machine.clusters[cluster.index()].opps[opp].mhz;
        Level { volt: site.power(cluster).points[opp].volt, mhz: f64::from(mhz) }
    }

    /// The higher voltage and the higher clock.
    pub fn max(self, other: Level) -> Level {
        Level { volt: self.volt.max(other.volt), mhz: self.mhz.max(other.mhz) }
    }
}

impl Rail {
    /// The rail of a machine; none if at least two clusters that share one are not there.
    pub fn of(machine: &Machine) -> Option<Rail> {
        let is_on = |name: &String| machine.board.shared_rail.contains(name);
        let clusters: Vec<ClusterId> = (0..machine.clusters.len())
            .filter(|&cluster| is_on(&machine.clusters[cluster].name))
            .map(ClusterId::from)
            .collect();
        let (level, shares_clock) = (Level { volt: 0.0, mhz: 0.0 }, machine.board.shared_clock);
        (clusters.len() > 1).then_some(Rail { clusters, level, shares_clock })
    }

    /// Sets it to what the clusters ask for now. Returns whether that changes what others draw.
    pub fn adjust(&mut self, site: Site) -> bool {
        let level = self.would_have(site, |cluster| site.speeds.opp(cluster));
        let was = std::mem::replace(&mut self.level, level);
        was.volt != level.volt || (self.shares_clock && was.mhz != level.mhz)
    }

    /// What it would have with its clusters at other operating points.
    pub fn would_have(&self, site: Site, opp_of: impl Fn(ClusterId) -> usize) -> Level {
        let asked = |&cluster: &ClusterId| Level::of(site, cluster, opp_of(cluster));
        self.clusters.iter().map(asked).fold(Level { volt: 0.0, mhz: 0.0 }, Level::max)
    }

    /// Factors of a cluster's dynamic power and of that of its uncore at an operating point, if the rail has a level.
    pub fn factors(&self, site: Site, cluster: ClusterId, opp: usize, level: Level) -> (f64, f64) {
        let own = Level::of(site, cluster, opp);
        let dynamic = (level.volt / own.volt).powi(2);
        (dynamic, if self.shares_clock { dynamic * level.mhz / own.mhz } else { dynamic })
    }

    /// Whether it supplies a cluster.
    pub fn supplies(&self, cluster: ClusterId) -> bool {
        self.clusters.contains(&cluster)
    }
}
