//! Which cluster DTPM slows down next.

use super::plant::Levels;
use crate::{ClusterInfo, Topology};

/// In which order clusters are slowed down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The one that loses least by the next step (GSA).
    Cheapest,
    /// The fastest one down to its lowest frequency, then the next (CCA).
    FastestFirst,
}

impl Order {
    /// The order of that number, as the parameter counts.
    pub fn numbered(number: f64) -> Self {
        if number == 0.0 { Order::Cheapest } else { Order::FastestFirst }
    }

    /// The cluster to slow down next, the first of equals; none if all are at their lowest frequencies.
    ///
    /// `busy_cores` holds the mean number of busy cores of each cluster.
    pub fn next(self, topology: &Topology, levels: &Levels, busy_cores: &[f64]) -> Option<usize> {
        let clusters = topology.clusters();
        let can_fall = (0..clusters.len()).filter(|&index| levels[index] > 0);
        match self {
            Order::Cheapest => {
                let loss = |index: &usize| {
                    busy_cores[*index] * added_us_per_cycle(&clusters[*index], levels[*index])
                };
                can_fall.min_by(|a, b| loss(a).total_cmp(&loss(b)))
            }
            Order::FastestFirst => {
                can_fall.min_by_key(|&index| std::cmp::Reverse(clusters[index].class))
            }
        }
    }
}

/// How much longer a cycle takes, in us, one operating point further down: the change of 1 / f.
fn added_us_per_cycle(cluster: &ClusterInfo, level: usize) -> f64 {
    let cycle_us = |level: usize| 1.0 / f64::from(cluster.freqs_mhz[level]);
    cycle_us(level - 1) - cycle_us(level)
}

#[cfg(test)]
mod tests {
    use ampsched_model::{ClassId, CoreId};

    use super::*;

    fn topology() -> Topology {
        let cluster = |class: u8, cores: [u16; 2], freqs_mhz: &[u32]| ClusterInfo {
            shares_l2: false,
            class: ClassId(class),
            cores: cores.map(CoreId).to_vec(),
            freqs_mhz: freqs_mhz.to_vec(),
            design: None,
            energy_model: Vec::new(),
        };
        Topology::from_clusters(vec![
            cluster(0, [0, 1], &[500, 1000]),
            cluster(1, [2, 3], &[500, 1000, 1500, 2000]),
        ])
    }

    /// The clusters in the order in which they are slowed down, to the end.
    fn falls(order: Order, busy_cores: [f64; 2]) -> Vec<usize> {
        let (topology, mut levels) = (topology(), vec![1, 3]);
        let mut falls = Vec::new();
        while let Some(index) = order.next(&topology, &levels, &busy_cores) {
            levels[index] -= 1;
            falls.push(index);
        }
        falls
    }

    #[test]
    fn the_cheapest_step_is_taken() {
        // In us per 1000 cycles: 1.0 for the little cluster; 0.167, 0.333, 1.0 for the big one.
        assert_eq!(falls(Order::Cheapest, [1.0, 1.0]), [1, 1, 0, 1]);
        assert_eq!(falls(Order::Cheapest, [1.0, 4.0]), [1, 0, 1, 1]);
        assert_eq!(
            falls(Order::Cheapest, [0.0, 1.0]),
            [0, 1, 1, 1],
            "nobody loses on an idle cluster"
        );
        assert_eq!(falls(Order::Cheapest, [0.0, 0.0]), [0, 1, 1, 1]);
    }

    #[test]
    fn the_fastest_falls_first() {
        assert_eq!(falls(Order::FastestFirst, [1.0, 1.0]), [1, 1, 1, 0]);
    }
}
