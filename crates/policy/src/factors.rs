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

factors! {
    /// What is known of a thread. What the policy's needs do not name is missing, wherever it runs.
    pub struct Factors as "factors" {
        /// Speed on the fastest class / speed on the slowest class, at their current frequencies; >= ~1.
        speedup: Factor, needs speedup
        /// The same over the whole program, measured beforehand; 1 for a program that computes nothing.
        offline_speedup: Factor, needs offline_speedup
        /// Instructions per s alone on a core of the fastest class at its highest frequency, measured
        /// beforehand over the whole program.
        alone_ips: Factor, needs alone
        /// (Instructions per joule on the fastest class) / (the same on the slowest), both at their highest
        /// frequencies, measured beforehand over the whole program.
        energy_ratio: Factor, needs alone
        /// Time in ns for which all threads of its program together run, alone on cores of the fastest class at their
        /// highest frequency, from its start to its end; measured beforehand.
        work_ns: Factor, needs work
        /// Time in ns of the longest chain of tasks that begins with the one that the thread executes (its bottom
        /// level), each alone on a core of the fastest class; told by the runtime of its program, if that executes a
        /// graph.
        path_ns: Factor, needs paths
        /// Time in ns that other threads have waited for this one, accumulated since its start.
        blame_ns: Factor, needs blame
        /// Mean power in mW while it ran, since the policy last looked; missing unless energy is accounted for.
        power_mw: Factor, needs power
        /// Stalls on the core where it runs or last ran; none before it has run.
        stalls: Option<Stalls>, needs stalls
    }
}
