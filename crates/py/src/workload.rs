//! Workloads.

use std::collections::BTreeMap;

use ampsched_model::{CoreId, Ns, SPIN_US_MAX, SPINNABLE, Workload as ModelWorkload};
use ampsched_task::{build_task_policy, parse_spec};
use pyo3::prelude::*;

use crate::catalog::Machine;
use crate::error::InputError;

/// Kind and number of the cores that have a clock, its lowest and highest frequency in kHz.
type HeldClockRow = (String, usize, Option<u32>, Option<u32>);

/// A workload.
#[pyclass(frozen, module = "ampsched._core")]
pub struct Workload {
    /// The workload.
    pub inner: ModelWorkload,
}

#[pymethods]
impl Workload {
    #[getter]
    fn name(&self) -> &str {
        &self.inner.name
    }

    #[getter]
    fn description(&self) -> &str {
        &self.inner.description
    }

    /// The same under another name.
    fn named(&self, name: String) -> Self {
        let mut inner = self.inner.clone();
        inner.name = name;
        Self { inner }
    }

    /// Applications: name, program, threads at its start.
    #[getter]
    fn apps(&self) -> Vec<(String, String, u32)> {
        let row = |app: &ampsched_model::App| {
            (app.name.clone(), app.program.name.clone(), app.program.initial_threads())
        };
        self.inner.apps.iter().map(row).collect()
    }

    /// The energy ratio that each application's program states, if it does.
    #[getter]
    fn energy_ratios(&self) -> Vec<Option<f64>> {
        self.inner.apps.iter().map(|app| app.program.energy_ratio).collect()
    }

    /// After how many ns each application's program stops where it is, if it does.
    #[getter]
    fn durations_ns(&self) -> Vec<Option<Ns>> {
        self.inner.apps.iter().map(|app| app.program.duration_ns).collect()
    }

    /// Of each application that was traced the clocks of the traced machine, in the order of its clusters: kind and
    /// number of the cores, lowest and highest frequency in kHz, where known.
    fn held_clocks(&self) -> Vec<Vec<HeldClockRow>> {
        let row =
            |it: &ampsched_model::HeldClock| (it.kind.clone(), it.cores, it.min_khz, it.max_khz);
        let apps = self.inner.apps.iter().map(|app| &app.program.held_clocks);
        apps.map(|clocks| clocks.iter().map(row).collect()).collect()
    }

    /// Whether a program says by number which cores it may use.
    #[getter]
    fn names_cores(&self) -> bool {
        self.inner.names_cores()
    }

    /// The workload for a machine that numbers the cores of `machine` in another order: named cores stay the same
    /// cores.
    fn renumbered(&self, machine: &Machine, to: &Machine) -> Workload {
        Workload { inner: self.inner.renumbered(&machine.inner, &to.inner) }
    }

    /// The same applications, each stopped at a time in ns if it has not ended by then; all start before.
    fn stopped_at(&self, at_ns: Ns) -> PyResult<Workload> {
        if let Some(late) = self.inner.apps.iter().find(|app| app.start_ns >= at_ns) {
            let (name, start_ms) = (&late.name, late.start_ns as f64 / 1e6);
            let message = format!("starts at {start_ms} ms, when everything has been stopped");
            return Err(InputError::new_err(format!("program {name} {message}")));
        }
        Ok(Workload { inner: self.inner.stopped_at(at_ns) })
    }

    /// The workload of one of its applications alone, started at once.
    fn alone(&self, app: usize) -> PyResult<Workload> {
        if app >= self.inner.apps.len() {
            return Err(pyo3::exceptions::PyIndexError::new_err(format!("no application {app}")));
        }
        Ok(Workload { inner: self.inner.alone(app) })
    }

    /// The same applications, each started so many ns later: a number for each application.
    fn starting_later(&self, by_ns: Vec<Ns>) -> PyResult<Workload> {
        if by_ns.len() != self.inner.apps.len() {
            let message = format!("{} delays are needed", self.inner.apps.len());
            return Err(pyo3::exceptions::PyValueError::new_err(message));
        }
        Ok(Workload { inner: self.inner.starting_later(&by_ns) })
    }

    /// The same applications with as many times as much work in each step: a factor for each application.
    fn with_work(&self, factors: Vec<f64>) -> PyResult<Workload> {
        let apps = self.inner.apps.len();
        let are_sane = factors.iter().all(|factor| (1e-9..=1e9).contains(factor));
        if factors.len() != apps || !are_sane {
            let message = format!("{apps} factors from 1e-9 to 1e9 are needed");
            return Err(pyo3::exceptions::PyValueError::new_err(message));
        }
        Ok(Workload { inner: self.inner.with_work(&factors) })
    }

    /// The same applications with threads that spin before they block: CPU time in us by kind of object.
    fn spinning(&self, spin_us: BTreeMap<String, f64>) -> PyResult<Workload> {
        let mut kinds = Vec::with_capacity(spin_us.len());
        for (kind, us) in &spin_us {
            if !SPINNABLE.contains(&kind.as_str()) || !(0.0..=SPIN_US_MAX).contains(us) {
                let known = SPINNABLE.join(", ");
                let message = format!(
                    "threads cannot spin {us} us at a {kind:?}; 0 to {SPIN_US_MAX:e} us at: {known}"
                );
                return Err(pyo3::exceptions::PyValueError::new_err(message));
            }
            kinds.push((kind.as_str(), (us * 1000.0).round() as Ns));
        }
        Ok(Workload { inner: self.inner.spinning(&kinds) })
    }

    /// The same applications with other stated ratios of speeds: what exceeds 1 is so many times as much.
    fn with_net_ratios(&self, factor: f64) -> PyResult<Workload> {
        if !(0.0..=10.0).contains(&factor) {
            let message = format!("a factor of ratios from 0 to 10 is needed, not {factor}");
            return Err(pyo3::exceptions::PyValueError::new_err(message));
        }
        Ok(Workload { inner: self.inner.with_net_ratios(factor) })
    }

    /// The same applications on these cores of a machine only, as under taskset.
    fn on_cores(&self, machine: &Machine, cores: Vec<usize>) -> Workload {
        let cores = cores.into_iter().map(CoreId::from).collect();
        Workload { inner: self.inner.on_cores(&machine.inner, &cores) }
    }

    /// The same applications whose regions are worked on under another task policy, such as `cats:steal=1`.
    fn with_task_policy(&self, policy: &str) -> PyResult<Workload> {
        let known = parse_spec(policy).and_then(|(name, params)| {
            build_task_policy(name, &params).map_err(|error| error.to_string())
        });
        known.map_err(pyo3::exceptions::PyValueError::new_err)?;
        Ok(Workload { inner: self.inner.with_task_policy(policy) })
    }

    /// The same applications in another order, by their numbers.
    fn reordered(&self, order: Vec<usize>) -> PyResult<Workload> {
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if !sorted.into_iter().eq(0..self.inner.apps.len()) {
            let message = "an order names every application once";
            return Err(pyo3::exceptions::PyValueError::new_err(message));
        }
        Ok(Workload { inner: self.inner.reordered(&order) })
    }

    /// Everything that a simulation reads of it, as text: equal texts behave equally.
    fn content(&self) -> String {
        format!("{:?}", self.inner.apps)
    }

    fn __repr__(&self) -> String {
        format!("<Workload {}>", self.inner.name)
    }
}
