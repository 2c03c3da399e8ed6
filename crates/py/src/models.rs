//! Models that predict speed-ups.

use std::collections::HashMap;
use std::sync::Arc;

use ampsched_predict::{Models as PredictModels, Origin, Predictor, counter_cv as noise_cv};
use pyo3::prelude::*;

use crate::catalog::Machine;
use crate::error::input;
use crate::interrupt::interruptible;

/// The models of a file.
#[pyclass(frozen, module = "ampsched._core")]
pub struct Models {
    /// The models.
    pub inner: Arc<PredictModels>,
}

#[pymethods]
impl Models {
    /// Reads a model file; `file` is its path for messages.
    #[staticmethod]
    fn parse(py: Python<'_>, file: String, text: String) -> PyResult<Self> {
        let read = interruptible(py, move |_| PredictModels::parse(&file, &text))?;
        let models = read.map_err(|error| input(&error))?;
        Ok(Self { inner: Arc::new(models) })
    }

    /// Name.
    #[getter]
    fn name(&self) -> &str {
        &self.inner.name
    }

    /// Whether all its models are for cores of a stated type.
    #[getter]
    fn is_specific(&self) -> bool {
        self.inner.models.iter().all(|model| model.core_type.is_some())
    }

    /// Whether there is a model for the cores of each cluster of a machine.
    fn known(&self, machine: &Machine) -> Vec<bool> {
        let known = |cluster: &ampsched_model::Cluster| {
            self.inner.for_core(&cluster.core_type, f64::from(cluster.max_mhz())).is_some()
        };
        machine.inner.clusters.iter().map(known).collect()
    }

    /// What the model for a core predicts from counts on it, given by name: speed-up, how far outside of the training
    /// range, whether it comes from the model. None without a model for that core.
    fn speedup(
        &self,
        core_type: &str,
        mhz: f64,
        counts: HashMap<String, f64>,
    ) -> Option<(f64, f64, bool)> {
        let model = self.inner.for_core(core_type, mhz)?;
        let (names, values): (Vec<&str>, Vec<f64>) =
            counts.iter().map(|(name, value)| (name.as_str(), *value)).unzip();
        let prediction = Predictor::new(model, &names).predict(&values);
        Some((prediction.speedup, prediction.outside, prediction.origin == Origin::Model))
    }

    /// Predicts with the model of that number for each row of counts, which are given in the order of `names`; a
    /// missing count is NaN. Rows: speed-up, how far outside of the training range, whether it comes from the model.
    fn predict(
        &self,
        model: usize,
        names: Vec<String>,
        counts: Vec<Vec<f64>>,
    ) -> PyResult<Vec<(f64, f64, bool)>> {
        let Some(model) = self.inner.models.get(model) else {
            return Err(pyo3::exceptions::PyIndexError::new_err(format!("no model {model}")));
        };
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let predictor = Predictor::new(model, &names);
        let predict = |row: &Vec<f64>| {
            let prediction = predictor.predict(row);
            (prediction.speedup, prediction.outside, prediction.origin == Origin::Model)
        };
        Ok(counts.iter().map(predict).collect())
    }
}

/// Coefficient of variation of a count that runs in a share of the time.
#[pyfunction]
pub fn counter_cv(base_cv: f64, running_share: f64) -> f64 {
    noise_cv(base_cv, running_share)
}
