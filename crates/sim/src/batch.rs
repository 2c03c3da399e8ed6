//! Many simulations on several processors; results in the order of the jobs.

use ampsched_model::{Machine, Workload};
use ampsched_policy::{PolicyError, build_policy};
use rayon::prelude::*;

use crate::{Options, Outcome, SimError, simulate};

/// One simulation to run.
#[derive(Clone, Debug)]
pub struct Job {
    /// Machine.
    pub machine: Machine,
    /// Workload.
    pub workload: Workload,
    /// Policy, by its registry name.
    pub policy: String,
    /// Its parameters; those not named keep their defaults.
    pub params: Vec<(String, f64)>,
    /// How it is run.
    pub options: Options,
}

/// Why a job of a batch failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// The policy cannot be built.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The simulation failed.
    #[error(transparent)]
    Simulation(#[from] SimError),
}

impl Job {
    /// Runs it.
    pub fn run(&self) -> Result<Outcome, JobError> {
        let policy = build_policy(&self.policy, &self.params)?;
        Ok(simulate(&self.machine, &self.workload, &self.policy, policy, &self.options)?)
    }
}

/// Runs jobs on `threads` threads (0: one per processor), or as many as there are jobs, and calls `progress` with each
/// finished job's number.
///
/// The results do not depend on `threads`.
pub fn run_batch(
    jobs: &[Job],
    threads: usize,
    progress: &(dyn Fn(usize) + Sync),
) -> Vec<Result<Outcome, JobError>> {
    let run = |(number, job): (usize, &Job)| {
        let result = job.run();
        progress(number);
        result
    };
    match rayon::ThreadPoolBuilder::new().num_threads(threads.min(jobs.len())).build() {
        Ok(pool) => pool.install(|| jobs.par_iter().enumerate().map(run).collect()),
        // No threads to be had: the results are the same one after the other.
        Err(_) => jobs.iter().enumerate().map(run).collect(),
    }
}
