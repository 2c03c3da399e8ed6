//! What a system does beside the programs.

use std::sync::Arc;

use ampsched_model::{Noise as ModelNoise, parse_noise};
use pyo3::prelude::*;

use crate::error::input;

/// The sources of a noise file.
#[pyclass(frozen, module = "ampsched._core")]
pub struct NoiseSources {
    /// The sources.
    pub inner: Arc<ModelNoise>,
}

#[pymethods]
impl NoiseSources {
    /// Reads a noise file; `file` is its path for messages.
    #[staticmethod]
    fn parse(file: &str, text: &str) -> PyResult<Self> {
        let noise = parse_noise(file, text).map_err(|error| input(&error))?;
        Ok(Self { inner: Arc::new(noise) })
    }

    /// One line for listings.
    #[getter]
    fn description(&self) -> &str {
        &self.inner.description
    }

    /// Name, kind, core or none for each, and mean pause and duration in ns of each source.
    #[getter]
    fn sources(&self) -> Vec<(String, &'static str, Option<u16>, f64, f64)> {
        let row = |source: &ampsched_model::NoiseSource| {
            let means = (source.pause.mean, source.duration.mean);
            (source.name.to_string(), source.kind.word(), source.core, means.0, means.1)
        };
        self.inner.sources.iter().map(row).collect()
    }
}
