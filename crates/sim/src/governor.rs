//! Which governor sets the frequencies of which cluster.

use ampsched_model::{Cluster, Machine, suggest};

use crate::SimError;

/// A governor by name, with parameters, for one cluster or for all others.
#[derive(Clone, Debug, PartialEq)]
pub struct GovernorSpec {
    /// The cluster's name; none: every cluster for which there is no other.
    pub cluster: Option<String>,
    /// Name in the registry of governors.
    pub name: String,
    /// Its parameters; those not named keep their defaults.
    pub params: Vec<(String, f64)>,
}

/// Whether nobody can set its frequency; one whose bounds leave it one may have a governor, to no effect.
fn has_one_clock(cluster: &Cluster) -> bool {
    cluster.opps.len() == 1 && cluster.bounds.is_none()
}

/// The governor of each cluster of a machine; none: its frequency stays at the highest.
///
/// Errors: a governor for a cluster that the machine does not have, two for the same, or one that finds no
/// cluster with more than one frequency.
pub(crate) fn by_cluster<'a>(
    specs: &'a [GovernorSpec],
    machine: &Machine,
) -> Result<Vec<Option<&'a GovernorSpec>>, SimError> {
    let bad = |what: String| SimError::BadGovernor { what };
    for (index, spec) in specs.iter().enumerate() {
        let name = spec.cluster.as_deref();
        if specs[..index].iter().any(|other| other.cluster == spec.cluster) {
            let whose = name.map_or("all clusters".into(), |name| format!("cluster {name}"));
            return Err(bad(format!("two governors are given for {whose}")));
        }
        let names = || machine.clusters.iter().map(|cluster| cluster.name.as_str());
        if let Some(name) = name.filter(|&name| !names().any(|known| known == name)) {
            let hint = suggest(name, names());
            let machine = &machine.name;
            return Err(bad(format!(
                "governor {}: machine {machine} has no cluster \"{name}\" ({hint})",
                spec.name
            )));
        }
    }
    for spec in specs {
        let meant =
            |cluster: &&Cluster| spec.cluster.as_ref().is_none_or(|name| *name == cluster.name);
        let mut clusters = machine.clusters.iter().filter(meant);
        if let Some(cluster) = clusters.clone().next().filter(|_| clusters.all(has_one_clock)) {
            let (machine, name, mhz) = (&machine.name, &cluster.name, cluster.max_mhz());
            return Err(bad(format!(
                "governor {}: machine {machine}, cluster {name}: {mhz} MHz is the only frequency, nothing to govern (give it operating points: opps = [...])",
                spec.name
            )));
        }
    }
    let find = |name: Option<&str>| specs.iter().find(|spec| spec.cluster.as_deref() == name);
    let of = |cluster: &Cluster| find(Some(&cluster.name)).or_else(|| find(None));
    Ok(machine.clusters.iter().map(of).collect())
}
