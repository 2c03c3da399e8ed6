//! What is known about a thread apart from its run time: each value with its origin and age.

use ampsched_model::{ClassId, Ns, StallCounters};

/// Where a factor comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FactorKind {
    /// Not known.
    #[default]
    Missing,
    /// Computed by a model from counters.
    Predicted,
    /// Observed.
    Measured,
    /// Known exactly (simulation only).
    Oracle,
}

/// A value, its origin and when it was true.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Factor {
    /// The value; meaningless if missing.
    pub value: f64,
    /// Its origin.
    pub kind: FactorKind,
    /// When it was obtained.
    pub at_ns: Ns,
}

impl Factor {
    /// The value, or `default` if it is missing.
    #[inline]
    pub fn or(&self, default: f64) -> f64 {
        if self.kind == FactorKind::Missing { default } else { self.value }
    }
}

/// What the counters of a core show of a thread that runs, or last ran, on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stalls {
    /// Class of that core.
    pub class: ClassId,
    /// The counters.
    pub counters: StallCounters,
    /// When they were read.
    pub at_ns: Ns,
}

/// The factors of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Factors {
    /// Speed on the fastest class / speed on the slowest class, at their current frequencies; >= ~1.
    pub speedup: Factor,
    /// The same over the whole program, measured beforehand; 1 for a program that computes nothing.
    pub offline_speedup: Factor,
    /// Instructions per s alone on a core of the fastest class at its highest frequency, measured
    /// beforehand over the whole program.
    pub alone_ips: Factor,
    /// Time in ns that other threads have waited for this one, accumulated since its start.
    pub blame_ns: Factor,
    /// Share of time that the thread wanted to run, 0..=1.
    pub utilisation: Factor,
    /// Mean power in mW while it ran, since the policy last looked; missing unless
    /// [`crate::Needs::power`] asks for it and energy is accounted for.
    pub power_mw: Factor,
    /// (Instructions per joule on the fastest class) / (the same on the slowest), both at their highest
    /// frequencies, measured beforehand over the whole program.
    pub energy_ratio: Factor,
    /// Stalls on the core where it runs or last ran; none before it has run.
    pub stalls: Option<Stalls>,
}
