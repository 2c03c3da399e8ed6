//! Which back end runs a policy, or why none does.

use ampsched_computer::{Capabilities, CoreMap};
use ampsched_live_host::{Backend, Demand, demands, runnable_policies};
use ampsched_model::InputError;
use ampsched_policy::Policy;

use crate::args::BackendArg;

/// What is wanted, on which system.
pub struct Question<'a> {
    /// The policy's name.
    pub name: &'a str,
    /// The policy.
    pub policy: &'a dyn Policy,
    /// The machine.
    pub cores: &'a CoreMap,
    /// What the kernel offers.
    pub capabilities: &'a Capabilities,
    /// Whether clocks may be set.
    pub allow_dvfs: bool,
}

impl Question<'_> {
    fn lacks(&self, backend: Backend) -> Vec<Demand> {
        let topology = self.cores.topology();
        demands(backend, self.policy, topology, self.capabilities, self.allow_dvfs)
    }

    /// The means of running it and what it lacks then. Errors: something essential is missing and `degrade`
    /// is not given; the error says what would work.
    pub fn answer(
        &self,
        wanted: BackendArg,
        degrade: bool,
    ) -> Result<(Backend, Vec<Demand>), InputError> {
        let is_whole = |lacks: &[Demand]| !lacks.iter().any(|demand| demand.is_essential);
        let scx = self.lacks(Backend::Scx);
        if wanted != BackendArg::Daemon && is_whole(&scx) {
            return Ok((Backend::Scx, scx));
        }
        if wanted == BackendArg::Scx {
            return Err(self.refuse("in the kernel", &scx, "--backend daemon"));
        }
        let daemon = self.lacks(Backend::Daemon);
        if is_whole(&daemon) || degrade {
            return Ok((Backend::Daemon, daemon));
        }
        let kernel = match scx.first() {
            Some(first) => {
                format!("the back end in the kernel, which {} ({})", first.what, first.instead)
            }
            None => "--backend scx".to_owned(),
        };
        Err(self.refuse(
            "by the daemon",
            &daemon,
            &format!("--degrade to run it without these; {kernel}"),
        ))
    }

    fn refuse(&self, means: &str, lacks: &[Demand], first_remedy: &str) -> InputError {
        let essential = lacks.iter().filter(|demand| demand.is_essential);
        let list: Vec<String> = essential
            .map(|demand| format!("it {} (here: {})", demand.what, demand.instead))
            .collect();
        let topology = self.cores.topology();
        let others =
            runnable_policies(Backend::Daemon, topology, self.capabilities, self.allow_dvfs);
        let message = format!("cannot be run {means} as it is written: {}", list.join("; "));
        let hint = format!(
            "what would work: {first_remedy}; or a policy that the daemon can run here: {}",
            others.join(", ")
        );
        InputError::new("policy", self.name, message).with_hint(hint)
    }
}
