//! What is simulated and how, and what a simulation writes down.

use ampsched_model::{App, Machine, Ns, SchedClass, Workload};
use ampsched_policy::{Needs, Order, QueueScope, Rules, Sched, WEIGHT_IDLE, nice_to_weight};

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
        // A power limit acts whether anybody looks at energies or not.
        let energy = options.energy || machine.board.limit.is_some();
        Self {
            machine: machine.clone(),
            workload_name: workload.name.clone(),
            policy_name: policy_name.to_owned(),
            stop_ns: options.until_ns.unwrap_or(NEVER).min(options.limit_ns).min(NEVER - 1),
            options: Options { energy, ..options.clone() },
        }
    }

    /// Nothing happens after this time.
    #[inline]
    pub fn stop_ns(&self) -> Ns {
        self.stop_ns
    }

    /// What it takes at least to switch a core to another thread.
    fn switch_ns(&self) -> Ns {
        self.machine.dearest_switch_ns() + self.options.overhead.decision_ns
    }

    /// What a turn costs at least under rules: the switch, and bringing the thread to where its turn is if by design
    /// that may be another core each time.
    fn turn_cost_ns(&self, rules: &Rules) -> Ns {
        let move_ns = match rules.turns_reach() {
            QueueScope::PerCore => 0,
            QueueScope::PerCluster => self.machine.migration_within_ns(),
            QueueScope::Global => self.machine.dearest_migration_ns(),
        };
        self.switch_ns() + move_ns
    }

    /// Refuses an application some of whose threads' turns would be over before they have begun to work.
    pub fn check_app(&self, app: &App, sched: &Sched) -> Result<(), SimError> {
        let nice = i32::from(app.nice) + i32::from(app.program.greatest_nice());
        let is_idle = app.program.classes().any(|class| class == SchedClass::Idle);
        let weight = if is_idle { WEIGHT_IDLE } else { nice_to_weight(nice) };
        self.check_turns(weight, sched)
    }

    /// Refuses a weight of threads whose turns would be over before they have begun to work.
    pub fn check_turns(&self, weight: u32, sched: &Sched) -> Result<(), SimError> {
        let (rules, topology) = (sched.rules(), sched.topology());
        let turn_ns = rules.turn_ns(topology, weight);
        if !matches!(rules.order, Order::Rounds { .. }) {
            return self.check_slice(rules, turn_ns);
        }
        let cost_ns = self.turn_cost_ns(rules);
        if turn_ns > cost_ns {
            return Ok(());
        }
        let policy = self.policy_name.clone();
        Err(SimError::RoundTooShort { policy, turn_ns, weight, cost_ns })
    }

    /// Refuses a slice that is over before its thread has begun to work.
    pub fn check_slice(&self, rules: &Rules, slice_ns: Ns) -> Result<(), SimError> {
        let cost_ns = self.turn_cost_ns(rules);
        if slice_ns > cost_ns {
            return Ok(());
        }
        let (policy, moves) = (self.policy_name.clone(), cost_ns > self.switch_ns());
        Err(SimError::SliceTooShort { policy, slice_ns, cost_ns, moves })
    }

    /// Refuses epochs whose work takes the first core from one to the next.
    pub fn check_epoch(&self, needs: &Needs) -> Result<(), SimError> {
        let cost_ns = self.options.overhead.epoch_ns;
        match needs.epoch_ns {
            Some(epoch_ns) if cost_ns >= epoch_ns => {
                Err(SimError::EpochTooShort { policy: self.policy_name.clone(), epoch_ns, cost_ns })
            }
            _ => Ok(()),
        }
    }

    /// Refuses a program that cannot end, unless something ends the simulation.
    pub fn check_end(&self, app: &App) -> Result<(), SimError> {
        match app.program.endless_thread().filter(|_| self.options.until_ns.is_none()) {
            Some(thread) => Err(SimError::Endless { thread: format!("{}/{thread}", app.name) }),
            None => Ok(()),
        }
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
