//! How fast work can get done at best.

use ampsched_model::{Cluster, Machine, Profile, Program, machine_speed_ips};

use super::Work;

/// The least time that a unit of each kind of work of a program takes on each cluster. Kinds are the profiles of the
/// program, then CPU time.
pub(super) struct Speeds {
    /// By kind and cluster, in ns.
    ns_per_unit: Vec<Vec<f64>>,
    /// Instructions per ns on the kind of core that work stated in time refers to, by profile.
    reference: Vec<f64>,
}

impl Speeds {
    /// Of the profiles of a program.
    pub fn new(machine: &Machine, program: &Program) -> Self {
        let profiles = &program.profiles;
        let rate = |profile: &Profile, cluster: &Cluster, mhz: u32| {
            machine_speed_ips(profile, machine, cluster, f64::from(mhz)) / 1e9
        };
        // A memory-bound profile may be as fast at a lower frequency: of all points the best.
        let best = |profile: &Profile, cluster: &Cluster| {
            let opps = &cluster.opps[..=cluster.highest_opp()];
            let rates = opps.iter().map(|opp| rate(profile, cluster, opp.mhz));
            1.0 / rates.fold(0.0, f64::max)
        };
        let of_profile = |profile: &Profile| {
            machine.clusters.iter().map(|cluster| best(profile, cluster)).collect()
        };
        let mut ns_per_unit: Vec<Vec<f64>> = profiles.iter().map(of_profile).collect();
        ns_per_unit.push(vec![1.0; machine.clusters.len()]);
        let kind = machine.calibrated(&program.calibration);
        let reference =
            profiles.iter().map(|profile| rate(profile, kind, kind.max_mhz())).collect();
        Self { ns_per_unit, reference }
    }

    /// Kinds of work.
    pub fn kinds(&self) -> usize {
        self.ns_per_unit.len()
    }

    /// The kind of CPU time.
    pub fn cpu_time(&self) -> usize {
        self.ns_per_unit.len() - 1
    }

    /// Instructions of work that is stated as time on the reference core.
    pub fn instructions(&self, profile: usize, reference_ns: f64) -> f64 {
        reference_ns * self.reference[profile]
    }

    /// ns per unit of a kind, by cluster.
    pub fn ns_per_unit(&self, kind: usize) -> &[f64] {
        &self.ns_per_unit[kind]
    }

    /// ns per unit of a kind on the best of some clusters.
    pub fn best_ns(&self, kind: usize, may_use: &[bool]) -> f64 {
        let usable = self.ns_per_unit[kind].iter().zip(may_use).filter(|(_, may)| **may);
        usable.map(|(ns, _)| *ns).fold(f64::INFINITY, f64::min)
    }

    /// No work.
    pub fn nothing(&self) -> Work {
        vec![0.0; self.kinds()]
    }
}
