//! How fast a policy takes the kinds of core to be that knows nothing of single threads' speed-ups.

use ampsched_model::MAX_CLASSES;

use super::class_speeds;
use crate::plan::to_fixed;
use crate::{ClusterInfo, ParamInfo, SPEED_ONE, Topology};

/// The rating of the fastest cores.
pub const RATING: ParamInfo = ParamInfo::number(
    "rating",
    0.0,
    0.0,
    60.0,
    "speed of the fastest cores relative to the slowest; 0 = ratio of their highest frequencies (ours)",
);

/// Ratings of the classes for [`crate::Rules::rating`], from the value of [`RATING`]; classes between a stated
/// one and the slowest are interpolated geometrically.
pub fn ratings(rating: f64, topology: &Topology) -> [u16; MAX_CLASSES] {
    if rating > 0.0 {
        return class_speeds(rating, topology.class_count()).map(to_fixed);
    }
    let mhz = |class: usize| {
        let of_class = topology.clusters().iter().filter(|cluster| cluster.class.index() == class);
        of_class.filter_map(ClusterInfo::max_mhz).max().map_or(1.0, f64::from)
    };
    let mut ratings = [SPEED_ONE; MAX_CLASSES];
    for (class, rating) in ratings.iter_mut().enumerate().take(topology.class_count()) {
        *rating = to_fixed(mhz(class) / mhz(0));
    }
    ratings
}

#[cfg(test)]
mod tests {
    use ampsched_model::ClassId;

    use super::*;

    fn topology(mhz: &[&[u32]]) -> Topology {
        let cluster = |(class, mhz): (usize, &&[u32])| ClusterInfo {
            shares_l2: false,
            class: ClassId::from(class),
            cores: vec![class.into()],
            freqs_mhz: mhz.to_vec(),
            design: None,
            energy_model: Vec::new(),
        };
        Topology::from_clusters(mhz.iter().enumerate().map(cluster).collect())
    }

    #[test]
    fn without_a_statement_frequencies_count() {
        let three = topology(&[&[300, 1000], &[600, 1500], &[2600]]);
        assert_eq!(ratings(0.0, &three), [1024, 1536, 2662, 1024]);
        assert_eq!(ratings(0.0, &topology(&[&[1000]])), [1024; MAX_CLASSES]);
    }

    #[test]
    fn a_statement_counts_for_the_fastest_class() {
        let three = topology(&[&[1000], &[1000], &[1000]]);
        assert_eq!(ratings(4.0, &three), [1024, 2048, 4096, 1024]);
        assert_eq!(ratings(4.0, &topology(&[&[1000]])), [1024; MAX_CLASSES]);
    }
}
