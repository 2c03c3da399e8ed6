//! How a simulation is run.

use std::num::NonZeroU32;
use std::sync::Arc;

use ampsched_model::{Noise, Ns};

use crate::{AloneFacts, FactorSource, GovernorSpec, Interrupt};

/// How a simulation is run.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Seed of all random amounts.
    pub seed: u64,
    /// Where policies get speed-ups from.
    pub factors: FactorSource,
    /// Where policies get from what each application does alone.
    pub alone: AloneFacts,
    /// Stop at this time, whatever still runs.
    pub until_ns: Option<Ns>,
    /// Start applications that have ended anew, and stop when each has ended at least so often
    /// (Prop-SP, Euro-Par 2014 workshops, section 4); if absent, each runs once.
    pub repetitions: Option<NonZeroU32>,
    /// What the policy's own work costs.
    pub overhead: Overhead,
    /// Who sets the frequencies; clusters without a governor stay at their highest. From the first time that
    /// the policy sets a cluster's frequency itself, that cluster has no governor any more.
    pub governors: Vec<GovernorSpec>,
    /// What the system does beside the programs; none: nothing.
    pub noise: Option<Arc<Noise>>,
    /// Account for power, energy and heat.
    pub energy: bool,
    /// Fail if the workload has not ended by then.
    pub limit_ns: Ns,
    /// Check the engine's invariants after every event (slow); always on in debug builds.
    pub check: bool,
    /// Who may end it before that.
    pub interrupt: Interrupt,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 1,
            factors: FactorSource::Oracle,
            alone: AloneFacts::default(),
            overhead: Overhead::default(),
            governors: Vec::new(),
            until_ns: None,
            repetitions: None,
            noise: None,
            energy: false,
            limit_ns: 100_000_000_000_000,
            check: cfg!(debug_assertions),
            interrupt: Interrupt::default(),
        }
    }
}

/// Time that the policy itself takes from the programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overhead {
    /// Charged to a core whenever it is given a thread.
    pub decision_ns: Ns,
    /// Charged to the first core whenever the slow plane looks at the system: to the thread that runs
    /// there; nothing if the core is idle.
    pub epoch_ns: Ns,
}
