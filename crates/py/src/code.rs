//! What the results of this build depend on, as digests of its sources (`build.rs`).

use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};

include!(concat!(env!("OUT_DIR"), "/code.rs"));

/// SHA-256 of the sources: all that simulations share, each policy's and each governor's own, by name.
#[pyfunction]
pub fn code_digests(py: Python<'_>) -> PyResult<(&str, Bound<'_, PyDict>, Bound<'_, PyDict>)> {
    let by_name = |rows: &[(&'static str, &'static str)]| rows.iter().copied().into_py_dict(py);
    Ok((ENGINE, by_name(POLICIES)?, by_name(GOVERNORS)?))
}
