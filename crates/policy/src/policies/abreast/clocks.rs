//! Clocks at which progress is worth its energy.
//!
//! E = p D is the energy of all that is done, D its time. A piece that takes a time t at power P changes E^e x D by
//! e P t / E + t / D of itself, that is, by t (e P / p + 1) / D. So each piece of work is done best at the clocks with
//! the least (e P / p + 1) / v, v being the speed.

use ampsched_model::{ClusterId, EnergyPoint, Ns};

use super::super::support::busy::Busy;
use crate::{ClusterInfo, Plan, View};

/// How often clocks are chosen.
const PERIOD_NS: Ns = 100_000_000;

/// Chooses the clocks of all clusters.
#[derive(Clone, Debug, Default)]
pub struct Clocks {
    at_ns: Ns,
    busy: Busy,
    /// Of cores that were busy, by the energy model.
    energy_mw_ns: f64,
    time_ns: f64,
}

impl Clocks {
    /// Limits clocks every 100 ms to what is best for as many busy cores as since the last time; nothing without an
    /// energy model of every cluster.
    ///
    /// `price` is e: by how many percent the time may grow for a percent less energy.
    pub fn limit(&mut self, view: &View, plan: &mut Plan, price: f64) {
        let since_ns = view.now_ns() - self.at_ns;
        let clusters = view.topology().clusters();
        if since_ns < PERIOD_NS || !are_known(clusters) {
            return;
        }
        self.at_ns = view.now_ns();
        let shares = self.busy.look(view);
        let load =
            |cluster: &ClusterInfo| cluster.cores.iter().map(|core| shares[core.index()]).sum();
        let loads: Vec<f64> = clusters.iter().map(load).collect();
        if loads.iter().all(|&load| load == 0.0) {
            return;
        }
        let models: Vec<&[EnergyPoint]> =
            clusters.iter().map(|cluster| &cluster.energy_model[..]).collect();
        self.energy_mw_ns += total(&models, &loads, &present(view, clusters)).0 * since_ns as f64;
        self.time_ns += since_ns as f64;
        let points = best(&models, &loads, price, self.energy_mw_ns / self.time_ns);
        for (index, (model, point)) in models.iter().zip(points).enumerate() {
            if loads[index] > 0.0 {
                plan.limit_frequency(ClusterId::from(index), model[point].mhz);
            }
        }
    }
}

/// Whether the energy of every cluster is known.
pub fn are_known(clusters: &[ClusterInfo]) -> bool {
    clusters.iter().all(ClusterInfo::has_energy_model)
}

/// The points of the energy models at which clusters are.
fn present(view: &View, clusters: &[ClusterInfo]) -> Vec<usize> {
    let point = |(index, cluster): (usize, &ClusterInfo)| {
        let mhz = view.frequency_mhz(ClusterId::from(index));
        let slower = cluster.energy_model.partition_point(|point| point.mhz < mhz);
        slower.min(cluster.energy_model.len() - 1)
    };
    clusters.iter().enumerate().map(point).collect()
}

/// Power in mW and speed of the busy cores.
fn total(models: &[&[EnergyPoint]], loads: &[f64], points: &[usize]) -> (f64, f64) {
    let each = models.iter().zip(loads).zip(points);
    each.fold((0.0, 0.0), |(power_mw, speed), ((model, load), &point)| {
        (power_mw + load * model[point].power_mw, speed + load * model[point].capacity)
    })
}

/// The points at which work costs least, found for one cluster after the other until none changes.
fn best(models: &[&[EnergyPoint]], loads: &[f64], price: f64, mean_mw: f64) -> Vec<usize> {
    let cost = |points: &[usize]| {
        let (power_mw, speed) = total(models, loads, points);
        (price * power_mw / mean_mw + 1.0) / speed
    };
    let mut points: Vec<usize> = models.iter().map(|model| model.len() - 1).collect();
    let mut least = cost(&points);
    loop {
        let before = least;
        for index in 0..models.len() {
            for point in 0..models[index].len() {
                let kept = std::mem::replace(&mut points[index], point);
                let found = cost(&points);
                if found < least {
                    least = found;
                } else {
                    points[index] = kept;
                }
            }
        }
        if least == before {
            return points;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn model(points: &[(f64, f64)]) -> Vec<EnergyPoint> {
        let numbered = (100..).step_by(100).zip(points);
        numbered
            .map(|(mhz, &(capacity, power_mw))| EnergyPoint { mhz, capacity, power_mw })
            .collect()
    }

    /// Costs at a price of 1 and a mean of 40 mW: 1.25 / 100, 2 / 200, 9 / 400.
    #[test]
    fn the_higher_the_price_the_lower_the_clock() {
        let model = model(&[(100.0, 10.0), (200.0, 40.0), (400.0, 320.0)]);
        let chosen = |price| best(&[&model], &[2.0], price, 80.0)[0];
        assert_eq!([0.0, 1.0, 10.0].map(chosen), [2, 1, 0]);
    }

    /// What others use makes haste worth while: (P + 1000) / v is least at the top.
    #[test]
    fn a_cluster_is_faster_beside_one_that_uses_much() {
        let small = model(&[(100.0, 10.0), (200.0, 40.0), (400.0, 320.0)]);
        let great = model(&[(100.0, 1000.0)]);
        let busy = |great_load| best(&[&small, &great], &[1.0, great_load], 1.0, 40.0)[0];
        assert_eq!([0.0, 10.0].map(busy), [1, 2]);
    }

    proptest! {
        #[test]
        fn no_change_of_one_cluster_is_better(
            powers in prop::collection::vec(prop::collection::vec(1.0..1000.0f64, 1..6), 1..4),
            loads in prop::collection::vec(0.1..4.0f64, 4),
            price in 0.0..3.0f64,
            mean_mw in 10.0..2000.0f64,
        ) {
            let models: Vec<Vec<EnergyPoint>> = powers
                .iter()
                .map(|powers| {
                    let points = (1..).zip(powers).map(|(step, &mw)| (100.0 * f64::from(step), mw));
                    model(&points.collect::<Vec<_>>())
                })
                .collect();
            let models: Vec<&[EnergyPoint]> = models.iter().map(|model| &model[..]).collect();
            let loads = &loads[..models.len()];
            let cost = |points: &[usize]| {
                let (power_mw, speed) = total(&models, loads, points);
                (price * power_mw / mean_mw + 1.0) / speed
            };
            let found = best(&models, loads, price, mean_mw);
            for index in 0..models.len() {
                for point in 0..models[index].len() {
                    let mut other = found.clone();
                    other[index] = point;
                    prop_assert!(cost(&found) <= cost(&other));
                }
            }
        }
    }
}
