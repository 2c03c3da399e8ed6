//! Speed on a cluster of a machine, with the ratio that a workload may state instead of the model's.

use super::speed_ips;
use crate::{Cluster, Machine, Profile};

/// Below this a predicted ratio says nothing about which clusters are slow.
const RATIO_FLOOR: f64 = 1.01;

/// Instructions per second of a profile on a cluster of a machine at a frequency in MHz.
///
/// Without `Profile::measured_ratio` this is [`speed_ips`]. With it, the slowest class at its highest
/// frequency runs at the speed of the fastest class at its highest frequency divided by that ratio;
/// other frequencies keep the model's shape. A class in between takes that part of the correction
/// which its predicted ratio has of the slowest one's, on a logarithmic scale.
///
/// Cost: up to four evaluations of the model; a caller with many threads keeps the results by
/// (profile, cluster, frequency). On a machine that was made by leaving out the fastest kind of core
/// the ratio is that to the kind left out ([`Machine::reference`]).
pub fn machine_speed_ips(profile: &Profile, machine: &Machine, cluster: &Cluster, mhz: f64) -> f64 {
    let modelled = speed_ips(profile, &cluster.params, mhz);
    match profile.measured_ratio {
        Some(measured) => modelled * correction(profile, machine, cluster, measured),
        None => modelled,
    }
}

/// Factor on the model's speed that makes the slowest class as slow as measured.
fn correction(profile: &Profile, machine: &Machine, cluster: &Cluster, measured: f64) -> f64 {
    let (slowest, fastest) = (machine.bottom(), machine.fastest());
    if slowest.class == fastest.class || cluster.class == fastest.class {
        return 1.0;
    }
    let top_ips = top_speed_ips(profile, fastest);
    let predicted = top_ips / top_speed_ips(profile, slowest);
    let here = top_ips / top_speed_ips(profile, cluster);
    let part = if cluster.class == slowest.class {
        1.0
    } else if predicted > RATIO_FLOOR {
        (here.ln() / predicted.ln()).clamp(0.0, 1.0)
    } else {
        // The model sees no difference between the classes; their order is what is left.
        let classes = f64::from(fastest.class.0) - f64::from(slowest.class.0);
        (f64::from(fastest.class.0) - f64::from(cluster.class.0)) / classes
    };
    (predicted / measured).powf(part)
}

/// Speed at the highest frequency of a cluster.
fn top_speed_ips(profile: &Profile, cluster: &Cluster) -> f64 {
    speed_ips(profile, &cluster.params, f64::from(cluster.max_mhz()))
}
