//! The limit of a workload on a machine, and the best schedule of a small one.

use ampsched_sim::{Effort, Limits, Objective, OptimumError, optimum as sim_optimum};
use pyo3::prelude::*;
use serde_json::json;

use crate::error;
use crate::interrupt::interruptible;
use crate::run::Job;

/// Bounds of a job's workload on its machine, under any policy, as JSON. `alone_ns`: time of each application alone.
#[pyfunction]
pub fn limit(py: Python<'_>, job: &Job, alone_ns: Vec<f64>) -> String {
    let job = job.inner.clone();
    py.detach(move || {
        let limits = Limits::new(&job.machine, &job.workload, &job.options);
        let apps = 0..alone_ns.len();
        json!({
            "h_antt": limits.h_antt(&alone_ns),
            "h_stp": limits.h_stp(&alone_ns),
            "makespan_ns": limits.makespan_ns(),
            "turnaround_ns": apps.map(|app| limits.turnaround_ns(app)).collect::<Vec<f64>>(),
        })
        .to_string()
    })
}

/// The best schedule of a job's workload that a search finds, as JSON. What a signal's handler raises ends it.
#[pyfunction]
pub fn optimum(
    py: Python<'_>,
    job: &Job,
    alone_ns: Vec<f64>,
    objective: &str,
    quantum_ns: u64,
    simulations: u32,
    tolerance: f64,
) -> PyResult<String> {
    let Some(objective) = Objective::parse(objective) else {
        return Err(error::input(&format!(
            "objective \"{objective}\" is not h_antt, h_stp or makespan"
        )));
    };
    let effort = Effort { objective, quantum_ns, simulations, tolerance };
    let job = job.inner.clone();
    interruptible(py, move |interrupt| {
        let options = ampsched_sim::Options { interrupt, ..job.options.clone() };
        let found = sim_optimum(&job.machine, &job.workload, &options, &alone_ns, effort);
        found.map(|found| json!(found).to_string()).map_err(|error| match error {
            OptimumError::Unfit(what) => {
                error::input(&format!("workload {}: {what}", job.workload.name))
            }
            OptimumError::Simulation(error) => error::simulation(&job.workload.name, &error),
        })
    })?
}
