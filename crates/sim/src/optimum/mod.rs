//! The best schedule of a small workload, by search.
//!
//! The engine is the judge: a schedule is a script of choices, and whatever locks, barriers and costs make of it is
//! what they make of any policy. The search runs scripts depth first, each from the start, and leaves out what cannot
//! become better than the best one so far. The page `docs/explanation/limit-of-policies.md` says what is proven, and
//! for which schedules.

mod assign;
mod plane;
mod search;

use ampsched_model::{Machine, Ns, SchedClass, Workload};
use serde::Serialize;

use crate::bounds::{Limits, Remaining};
use crate::{Options, Outcome, SimError};

/// Threads of a workload whose optimum is looked for, at most.
pub const THREADS_MAX: u32 = 6;
/// Cores of its machine, at most.
pub const CORES_MAX: usize = 4;

/// What is to be as small, or as great, as possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objective {
    /// The mean of turnaround / time alone.
    HAntt,
    /// The sum of time alone / turnaround.
    HStp,
    /// The time of the last end.
    Makespan,
}

impl Objective {
    /// By its word.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "h_antt" => Some(Self::HAntt),
            "h_stp" => Some(Self::HStp),
            "makespan" => Some(Self::Makespan),
            _ => None,
        }
    }
}

/// How to search.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// What for.
    pub objective: Objective,
    /// Schedules may change at multiples of this time, and whenever a thread starts, wakes, waits or ends.
    pub quantum_ns: Ns,
    /// Simulations at most.
    pub simulations: u32,
    /// What need not be found: schedules that are better by less than this part.
    pub tolerance: f64,
}

/// A thread's stay on a core.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stay {
    /// Core.
    pub core: u32,
    /// Thread, as in [`Outcome::threads`].
    pub thread: u32,
    /// From.
    pub from_ns: Ns,
    /// Until.
    pub to_ns: Ns,
}

/// The best schedule found.
#[derive(Clone, Debug, Serialize)]
pub struct Optimum {
    /// The objective's value under it: H_ANTT, H_STP, or the makespan in ns.
    pub value: f64,
    /// The limit of that, whoever schedules.
    pub limit: f64,
    /// Whether no schedule that changes only when it may is better by more than the tolerance.
    pub proven: bool,
    /// Simulations that were run.
    pub simulations: u32,
    /// Choices that the best schedule makes.
    pub choices: usize,
    /// The run.
    pub outcome: Outcome,
    /// Who runs where and when, by time.
    pub timeline: Vec<Stay>,
}

/// Why there is no search.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptimumError {
    /// The workload or the machine is not one of those that can be searched.
    #[error("{0}")]
    Unfit(String),
    /// A simulation failed.
    #[error(transparent)]
    Simulation(#[from] SimError),
}

/// Looks for the best schedule of a workload on a machine.
///
/// `alone_ns`: time of each application alone, above 0. The result depends on nothing but the arguments.
///
/// # Errors
/// A workload that is too large or not fit for it; simulations that fail.
pub fn optimum(
    machine: &Machine,
    workload: &Workload,
    options: &Options,
    alone_ns: &[f64],
    effort: Effort,
) -> Result<Optimum, OptimumError> {
    let unfit = |what: String| Err(OptimumError::Unfit(what));
    if let Some(what) = too_large(machine, workload, options) {
        return unfit(what);
    }
    let limits = Limits::new(machine, workload, options);
    let Some(remaining) = Remaining::new(&limits) else {
        return unfit(
            "a program starts threads later, has daemon threads or never ends, so its work is not known beforehand"
                .to_owned(),
        );
    };
    let limit = match effort.objective {
        Objective::HAntt => limits.h_antt(alone_ns),
        Objective::HStp => limits.h_stp(alone_ns),
        Objective::Makespan => limits.makespan_ns(),
    };
    let search = search::Search::new(machine, workload, options, alone_ns, effort, remaining);
    Ok(search.run(limit)?)
}

fn too_large(machine: &Machine, workload: &Workload, options: &Options) -> Option<String> {
    let (threads, cores) = (workload.initial_threads(), machine.cores());
    let mut classes: Vec<u8> = machine.clusters.iter().map(|cluster| cluster.class.0).collect();
    classes.sort_unstable();
    classes.dedup();
    if threads > THREADS_MAX || cores > CORES_MAX {
        return Some(format!(
            "the optimum is looked for with at most {THREADS_MAX} threads on {CORES_MAX} cores, not {threads} on {cores}"
        ));
    }
    if classes.len() < machine.clusters.len() {
        return Some("clusters of the same class are not told apart".to_owned());
    }
    let above = |app: &ampsched_model::App| app.program.classes().any(SchedClass::is_above);
    if workload.apps.iter().any(above) {
        return Some("real-time threads are not the policy's".to_owned());
    }
    let other = [
        (options.repetitions.is_some(), "repeated programs"),
        (options.until_ns.is_some(), "runs that are stopped"),
        (options.noise.is_some(), "noise"),
        (!options.governors.is_empty(), "governors"),
        (machine.clusters.iter().any(|cluster| !cluster.turbo_mhz.is_empty()), "turbo"),
        (machine.board.limit.is_some(), "a power limit"),
    ];
    let found = other.into_iter().find(|(is_so, _)| *is_so);
    found.map(|(_, what)| format!("the optimum is not looked for with {what}"))
}
