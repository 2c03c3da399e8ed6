//! How much of a core switches, by what it runs.

use crate::{CoreParams, Profile, counters};

/// Activity of a core: `stalled + (1 - stalled) * slots + l2 * waiting`.
///
/// `slots` is the share of issue slots that do work, `waiting` the share of cycles in which an access to
/// the L2 is under way. Activity 1 is a core that uses every issue slot and never leaves its L1 caches.
/// Why this form, and how well it fits, is in `docs/explanation/power-model.md`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ActivityLaw {
    /// Activity of a core that issues nothing and waits for nothing.
    pub stalled: f64,
    /// What accesses to the L2 add if one is always under way.
    pub l2: f64,
}

impl Default for ActivityLaw {
    /// Activity 1, whatever runs: all that a machine without measurements by program can say.
    fn default() -> Self {
        Self { stalled: 1.0, l2: 0.0 }
    }
}

impl ActivityLaw {
    /// Activity of a profile on a core at a frequency in MHz.
    ///
    /// Valid for what the parsers accept, and a positive frequency. Pure, but it evaluates the core
    /// model: a caller keeps the results by (cluster, operating point, profile).
    pub fn of(&self, profile: &Profile, core: &CoreParams, mhz: f64) -> f64 {
        let rates = counters(profile, core, mhz);
        let slots = rates.ipc * profile.uops_per_instruction / core.width;
        let l2_accesses_per_cycle = rates.ipc * rates.l2_access_pki / 1000.0;
        self.at(slots, l2_accesses_per_cycle, core)
    }

    /// Activity of a core that uses a share of its issue slots and accesses its L2 so often per cycle.
    ///
    /// Accesses that come at random times and take S cycles each leave `e^(-S rate)` of the cycles
    /// without one (the busy share of an M/G/infinity queue).
    pub fn at(&self, slots: f64, l2_accesses_per_cycle: f64, core: &CoreParams) -> f64 {
        let waiting = -(-l2_accesses_per_cycle * core.l2_cycles).exp_m1();
        self.stalled + (1.0 - self.stalled) * slots.min(1.0) + self.l2 * waiting
    }
}
