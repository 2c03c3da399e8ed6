//! How much of a core switches, by what it runs.

use crate::{CoreParams, Profile, cycles_per_instruction};

/// Activity of a core: `stalled + issuing * u`, with u the share of issue slots that do work.
///
/// A core that only waits still clocks (`stalled`); what it issues comes on top. Activity 1 is that of
/// the workloads to which the cluster's dynamic power was fitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ActivityLaw {
    /// Activity of a core that issues nothing.
    pub stalled: f64,
    /// What full use of the issue width adds.
    pub issuing: f64,
}

impl Default for ActivityLaw {
    /// Activity 1, whatever runs: all that a machine without measurements per program can say.
    fn default() -> Self {
        Self { stalled: 1.0, issuing: 0.0 }
    }
}

impl ActivityLaw {
    /// Activity of a profile on a core at a frequency in MHz.
    ///
    /// Valid for what the parsers accept, and a positive frequency. Pure, but it evaluates the core
    /// model: a caller keeps the results by (cluster, operating point, profile).
    pub fn of(&self, profile: &Profile, core: &CoreParams, mhz: f64) -> f64 {
        let per_cycle = profile.uops_per_instruction / cycles_per_instruction(profile, core, mhz);
        self.stalled + self.issuing * (per_cycle / core.width).min(1.0)
    }
}
