//! Errors as Python exceptions.

use ampsched_model::Budget;
use ampsched_policy::PolicyError;
use ampsched_sim::{JobError, SimError};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::{PyErr, PyResult, pyfunction};

pyo3::create_exception!(
    ampsched._core,
    InputError,
    PyValueError,
    "An input that cannot be used. Its text is one line that names the place, the value, what is allowed, and a hint."
);

/// Whatever is wrong with a file, a name or a value.
pub fn input(error: &impl ToString) -> PyErr {
    InputError::new_err(error.to_string())
}

/// A simulation that could not go on. An internal error of the engine is no fault of the input.
pub fn simulation(workload: &str, error: &SimError) -> PyErr {
    match error {
        SimError::Invariant { .. } => {
            PyRuntimeError::new_err(format!("workload {workload}: {error}"))
        }
        _ => InputError::new_err(format!("workload {workload}: {error}")),
    }
}

/// A failed job of a batch.
pub fn job(workload: &str, error: &JobError) -> PyErr {
    match error {
        JobError::Policy(error) => policy(error),
        JobError::Simulation(error) => simulation(workload, error),
    }
}

/// A policy that cannot be built.
pub fn policy(error: &PolicyError) -> PyErr {
    input(error)
}

/// Refuses a file of so many bytes that would become so many in memory.
#[pyfunction]
pub fn check_memory(file: &str, file_bytes: usize, wanted_bytes: usize) -> PyResult<()> {
    Budget::of(file_bytes).take::<u8>(file, wanted_bytes).map_err(|error| input(&error))
}
