//! Which back end runs a policy, or why none does.

use ampsched_live_driver::{Backend, Choices, Demand, demands, runnable_policies};
use ampsched_live_session::{Means, Setup};
use ampsched_model::InputError;

/// The means of running a policy and what it lacks then. Errors: something essential is missing and the settings do not
/// put up with that; the error says what would work.
pub fn choose(setup: &Setup) -> Result<(Backend, Vec<Demand>), InputError> {
    let is_whole = |lacks: &[Demand]| !lacks.iter().any(|demand| demand.is_essential);
    let (wanted, scx) = (setup.settings.backend, lacks(setup, Backend::Scx));
    if wanted != Means::Daemon && is_whole(&scx) {
        return Ok((Backend::Scx, scx));
    }
    if wanted == Means::Scx {
        return Err(refuse(setup, "in the kernel", &scx, "--backend daemon"));
    }
    let daemon = lacks(setup, Backend::Daemon);
    if is_whole(&daemon) || setup.settings.degrade {
        return Ok((Backend::Daemon, daemon));
    }
    let kernel = match scx.first() {
        Some(first) => {
            format!("the back end in the kernel, which {} ({})", first.what, first.instead)
        }
        None => "--backend scx".to_owned(),
    };
    let remedy = format!("--degrade to run it without these; {kernel}");
    Err(refuse(setup, "by the daemon", &daemon, &remedy))
}

fn lacks(setup: &Setup, backend: Backend) -> Vec<Demand> {
    let (policy, topology) = (setup.policy.policy.as_ref(), setup.cores.topology());
    demands(backend, policy, topology, &setup.capabilities, choices(setup))
}

fn choices(setup: &Setup) -> Choices {
    Choices { dvfs: setup.settings.allow_dvfs, dilation: setup.dilation }
}

fn refuse(setup: &Setup, means: &str, lacks: &[Demand], first_remedy: &str) -> InputError {
    let essential = lacks.iter().filter(|demand| demand.is_essential);
    let list: Vec<String> =
        essential.map(|demand| format!("it {} (here: {})", demand.what, demand.instead)).collect();
    let (topology, capabilities) = (setup.cores.topology(), &setup.capabilities);
    let others = runnable_policies(Backend::Daemon, topology, capabilities, choices(setup));
    let message = format!("cannot be run {means} as it is written: {}", list.join("; "));
    let hint = format!(
        "what would work: {first_remedy}; or a policy that the daemon can run here: {}",
        others.join(", ")
    );
    InputError::new("policy", &setup.policy.name, message).with_hint(hint)
}
