//! Programs made of recordings.

use std::sync::Arc;

use ampsched_recording::lift as lifting;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::interrupt::interruptible;
use crate::recording::Recording;

/// Makes a program of a recording: its text, and the report as JSON.
#[pyfunction]
#[pyo3(signature = (recording, level = "full", name = String::new(), like = ampsched_recording::TYPICAL_PROFILE.to_owned(),
    speedup = None, per_thread = false, is_fixed = false, literal = Vec::new()))]
#[allow(clippy::too_many_arguments)] // one call, from ampsched.recording.lift
pub fn lift(
    py: Python<'_>,
    recording: &Recording,
    level: &str,
    name: String,
    like: String,
    speedup: Option<f64>,
    per_thread: bool,
    is_fixed: bool,
    literal: Vec<u32>,
) -> PyResult<(String, String)> {
    let level = lifting::Level::ALL.into_iter().find(|one| one.word() == level);
    let level = level.ok_or_else(|| PyValueError::new_err("level"))?;
    let scaling = match per_thread {
        true => lifting::Scaling::PerThread,
        false => lifting::Scaling::FixedTotal,
    };
    let options = lifting::Options { name, like, speedup, scaling, level, is_fixed, literal };
    let inner = Arc::clone(&recording.inner);
    let lifted = interruptible(py, move |_| lifting::lift(&inner, &options))?;
    let report = serde_json::to_string(&lifted.report).expect("numbers and texts become JSON");
    Ok((lifted.toml, report))
}
