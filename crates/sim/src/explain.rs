//! What happened to one thread of a simulation around one moment, and why.

use ampsched_model::{Machine, Workload};
use ampsched_policy::Policy;
use ampsched_trace::{ExplainError, Explainer, Explanation, Question};

use crate::{Options, SimError, simulate_with};

/// Why nothing can be explained.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NoExplanation {
    /// The simulation could not go on.
    #[error(transparent)]
    Simulation(#[from] SimError),
    /// The simulation does not answer the question.
    #[error(transparent)]
    Question(#[from] ExplainError),
}

/// Runs a workload on a machine under a policy until the question can be answered, and answers it.
///
/// Errors: see [`NoExplanation`].
pub fn explain(
    machine: &Machine,
    workload: &Workload,
    policy_name: &str,
    policy: Box<dyn Policy>,
    options: &Options,
    question: Question,
) -> Result<Explanation, NoExplanation> {
    let until_ns = options.until_ns.map_or(question.end_ns(), |ns| ns.min(question.end_ns()));
    let options = Options { until_ns: Some(until_ns), ..options.clone() };
    let mut explainer = Explainer::new(question, machine.into());
    let outcome =
        simulate_with(machine, workload, policy_name, policy, &options, Some(&mut explainer))?;
    Ok(explainer.finish(outcome.makespan_ns)?)
}
