//! Calibration kernels.

use std::hint::black_box;
use std::time::Instant;

use ampsched_kernels::{KERNELS, Kernel as Inner};
use pyo3::prelude::*;

use crate::error::InputError;
use crate::interrupt::LOOK;

/// Rounds after which signals are looked for first: microseconds of the fastest kernel.
const FIRST_ROUNDS: u64 = 1024;

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

    /// Does so many rounds on this thread; signals are looked for in between.
    fn run(&mut self, py: Python<'_>, rounds: u64) -> PyResult<()> {
        let (mut left, mut part) = (rounds, FIRST_ROUNDS);
        while left > 0 {
            let (begin, done) = (Instant::now(), part.min(left));
            black_box(py.detach(|| self.inner.run(done)));
            left -= done;
            if begin.elapsed() < LOOK {
                part *= 2;
            }
            py.check_signals()?;
        }
        Ok(())
    }
}
