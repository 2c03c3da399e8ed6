//! What is simulated and how, and what a simulation writes down.

use ampsched_model::{Machine, Ns, Workload};
use ampsched_policy::Sched;

use super::Options;
use super::timers::NEVER;
use super::watch::Watch;
use crate::{Counts, SimError, Trace};

/// What is simulated and how; it never changes.
pub(super) struct Setup {
    pub machine: Machine,
    pub workload_name: String,
    pub policy_name: String,
    pub options: Options,
    stop_ns: Ns,
}

impl Setup {
    /// A workload on a machine under a policy.
    pub fn new(
        machine: &Machine,
        workload: &Workload,
        policy_name: &str,
        options: &Options,
    ) -> Self {
        Self {
            machine: machine.clone(),
            workload_name: workload.name.clone(),
            policy_name: policy_name.to_owned(),
            stop_ns: options.until_ns.unwrap_or(NEVER).min(options.limit_ns).min(NEVER - 1),
            options: options.clone(),
        }
    }

    /// Nothing happens after this time.
    #[inline]
    pub fn stop_ns(&self) -> Ns {
        self.stop_ns
    }

    /// The error of a policy that does what it may not.
    pub fn bad_policy(&self, what: String) -> Box<SimError> {
        Box::new(SimError::BadPolicy { policy: self.policy_name.clone(), what })
    }
}

/// What a simulation writes down as it goes.
pub(super) struct Record<'t> {
    pub counts: Counts,
    /// None: nobody watches.
    pub watch: Option<Watch<'t>>,
}

impl<'t> Record<'t> {
    /// Nothing yet.
    pub fn new(trace: Option<&'t mut dyn Trace>, sched: &Sched) -> Self {
        let watch = trace.map(|trace| Watch::new(trace, sched));
        Self { counts: Counts::default(), watch }
    }
}
