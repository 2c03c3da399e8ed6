//! What can go wrong.

use std::io;

use ampsched_model::InputError;
use ampsched_policy::PolicyError;

/// Why the runtime cannot do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something given is wrong: a list of cores, a task graph.
    #[error(transparent)]
    Input(#[from] InputError),
    /// There is no such task policy, or one of its parameters is wrong.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The operating system has refused something.
    #[error("{what}: {source}{}", hint_of(.hint))]
    System {
        /// What was tried, on what.
        what: String,
        /// What it said.
        source: io::Error,
        /// What to do about it; empty if nothing is known.
        hint: &'static str,
    },
    /// The runtime's workers are threads of another process, which has forked this one.
    #[error(
        "the runtime is that of process {owner}, whose threads a forked child does not have (start a runtime in the \
         child)"
    )]
    Forked {
        /// Process that has started the runtime.
        owner: u32,
    },
    /// The work was cancelled.
    #[error("cancelled after {done} of {all} {unit}")]
    Cancelled {
        /// Tasks or iterations that were done.
        done: usize,
        /// Those that there were when it was cancelled.
        all: usize,
        /// `tasks` or `iterations`.
        unit: &'static str,
    },
    /// A policy that decides beforehand or divides levels cannot start tasks while they are being created.
    #[error(
        "task policy {policy} needs the whole graph (create the tasks in `graph`, not in `scope`)"
    )]
    WholeGraph {
        /// Name of the policy.
        policy: &'static str,
    },
    /// All workers are idle, and tasks are left: a fault of the policy.
    #[error("all workers idle after {ended} of {tasks} tasks; the policy hands out no more")]
    Stalled {
        /// Tasks that have ended.
        ended: usize,
        /// All tasks.
        tasks: usize,
    },
    /// The policy has handed out a task that waits for others or was handed out before: a fault of the policy.
    #[error("the policy handed out task {task}, which was not ready")]
    NotReady {
        /// Number of the task.
        task: u32,
    },
}

fn hint_of(hint: &str) -> String {
    if hint.is_empty() { String::new() } else { format!(" ({hint})") }
}

impl Error {
    /// An error of the operating system.
    pub(crate) fn system(
        what: impl Into<String>,
        source: impl Into<io::Error>,
        hint: &'static str,
    ) -> Self {
        Self::System { what: what.into(), source: source.into(), hint }
    }
}
