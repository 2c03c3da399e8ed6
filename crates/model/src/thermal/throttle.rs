//! Throttling by trip points, as Linux's step-wise governor does it.

use super::{Cooling, Thermal, Trip};
use crate::{ClusterId, Machine};

/// Which operating points a machine's kernel allows for the heat.
///
/// At each look, a trip point whose temperature is reached goes one step further, from its first step
/// to its last; one whose temperature has fallen below its hysteresis goes one step back. The trip point
/// that has gone furthest counts (Linux, `gov_step_wise.c`: trend and polling are simplified to this).
#[derive(Clone, Debug)]
pub struct Throttle {
    trips: Vec<Trip>,
    /// Name and number of operating points of each cluster.
    clusters: Vec<(String, usize)>,
    /// Steps that each trip point has gone beyond its first ones; `None` while it does not act.
    gone: Vec<Option<usize>>,
}

impl Throttle {
    /// No trip point acts yet.
    pub fn new(thermal: &Thermal, machine: &Machine) -> Self {
        let clusters = machine.clusters.iter();
        let clusters = clusters.map(|cluster| (cluster.name.clone(), cluster.opps.len())).collect();
        Self { trips: thermal.trips.clone(), clusters, gone: vec![None; thermal.trips.len()] }
    }

    /// Takes a look: the hottest of all sensor readings in degrees Celsius. Returns whether a cluster's
    /// [`Throttle::highest_opp`] has changed.
    pub fn look(&mut self, hottest_c: f64) -> bool {
        let before = self.highest_opps();
        for (trip, gone) in self.trips.iter().zip(&mut self.gone) {
            if hottest_c >= trip.celsius {
                let last = trip.cooling.iter().map(Cooling::range).max().unwrap_or(0);
                *gone = Some(gone.map_or(0, |gone| (gone + 1).min(last)));
            } else if hottest_c < trip.celsius - trip.hysteresis_c {
                *gone = gone.and_then(|gone| gone.checked_sub(1));
            }
        }
        before != self.highest_opps()
    }

    /// Whether a trip point acts.
    #[inline]
    pub fn is_acting(&self) -> bool {
        self.gone.iter().any(Option::is_some)
    }

    /// The highest operating point that a cluster may use, as an index.
    pub fn highest_opp(&self, cluster: ClusterId) -> usize {
        let (name, opps) = &self.clusters[cluster.index()];
        let steps = self.trips.iter().zip(&self.gone).filter_map(|(trip, gone)| {
            let cooling = trip.cooling.iter().find(|cooling| cooling.cluster == *name)?;
            gone.map(|gone| (cooling.first_step + gone).min(cooling.last_step))
        });
        (opps - 1).saturating_sub(steps.max().unwrap_or(0))
    }

    fn highest_opps(&self) -> Vec<usize> {
        (0..self.clusters.len()).map(|cluster| self.highest_opp(ClusterId::from(cluster))).collect()
    }
}

impl Cooling {
    /// Steps from the first to the last.
    fn range(&self) -> usize {
        self.last_step - self.first_step
    }
}
