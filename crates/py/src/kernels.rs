//! Calibration kernels.

use ampsched_kernels::{KERNELS, Kernel as Inner};
use pyo3::prelude::*;

use crate::error::InputError;

/// Names of the kernels and what they do.
#[pyfunction]
pub fn kernels() -> Vec<(&'static str, &'static str)> {
    KERNELS.iter().map(|kernel| (kernel.name, kernel.help)).collect()
}

/// A kernel, ready to run on the calling thread.
#[pyclass(module = "ampsched._core")]
pub struct Kernel {
    inner: Inner,
}

#[pymethods]
impl Kernel {
    #[new]
    fn new(name: &str) -> PyResult<Self> {
        let kernel = Inner::new(name).map(|inner| Self { inner });
        kernel.ok_or_else(|| InputError::new_err(format!("unknown kernel \"{name}\"")))
    }

    /// Does so many rounds and returns a check sum.
    fn run(&mut self, py: Python<'_>, rounds: u64) -> u64 {
        py.detach(|| self.inner.run(rounds))
    }
}
