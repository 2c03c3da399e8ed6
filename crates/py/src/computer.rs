//! This computer.

use std::collections::BTreeSet;
use std::path::PathBuf;

use ampsched_computer::{ByHand, CoreKind as Inner, Root, detect_cores};
use pyo3::prelude::*;

use crate::error::input;
use crate::interrupt::no_thread;

/// Cores of this computer that are alike.
#[pyclass(frozen, eq, hash, module = "ampsched._core")]
#[derive(PartialEq, Eq, Hash)]
pub struct CoreKind {
    inner: Inner,
}

#[pymethods]
impl CoreKind {
    #[new]
    #[pyo3(signature = (name, core_type, cpus, mhz=None, pmu=None))]
    fn new(
        name: String,
        core_type: String,
        cpus: Vec<usize>,
        mhz: Option<u32>,
        pmu: Option<u32>,
    ) -> Self {
        Self { inner: Inner { name, core_type, cpus, mhz, pmu } }
    }

    /// Core type and place among the kinds, such as `cortex-a53-0`.
    #[getter]
    fn name(&self) -> &str {
        &self.inner.name
    }

    /// The nearest shipped core type.
    #[getter]
    fn core_type(&self) -> &str {
        &self.inner.core_type
    }

    /// Whether Linux says which core it is; otherwise the core type is a stand-in.
    #[getter]
    fn is_known(&self) -> bool {
        self.inner.is_known()
    }

    /// Its CPUs, ascending.
    #[getter]
    fn cpus(&self) -> Vec<usize> {
        self.inner.cpus.clone()
    }

    /// Highest frequency, or else the present one, if Linux tells it.
    #[getter]
    fn mhz(&self) -> Option<u32> {
        self.inner.mhz
    }

    /// Type number of their PMU for perf_event_open; None for the only one.
    #[getter]
    fn pmu(&self) -> Option<u32> {
        self.inner.pmu
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.inner)
    }
}

/// The kinds of some CPUs: core type, PMU, capacity and highest frequency tell them apart; the first CPU's comes first.
/// `root` is the folder that stands for `/`.
#[pyfunction]
#[pyo3(signature = (cpus, root=PathBuf::from("/")))]
pub fn core_kinds(cpus: BTreeSet<usize>, root: PathBuf) -> PyResult<Vec<CoreKind>> {
    let kinds = ampsched_computer::core_kinds(&Root::new(root), &cpus);
    let kinds = kinds.map_err(|error| input(&error))?;
    Ok(kinds.into_iter().map(|inner| CoreKind { inner }).collect())
}

/// From the return of the call that wakes a thread on an idle CPU until that thread runs, in ns, here and now.
/// Errors: no thread can be had.
#[pyfunction]
pub fn wakeup_ns(py: Python<'_>) -> PyResult<u64> {
    py.detach(ampsched_computer::wakeup_ns).map_err(|_| no_thread())
}

/// Reads a list of CPUs such as `0-3,8`, in ascending order; `source` says in errors where it stands.
#[pyfunction]
pub fn parse_cpus(source: &str, text: &str) -> PyResult<Vec<usize>> {
    let cpus = ampsched_computer::parse_cpus(source, "", text);
    cpus.map(|cpus| cpus.into_iter().collect()).map_err(|error| input(&error))
}

/// Writes a list of CPUs as Linux does.
#[pyfunction]
pub fn format_cpus(cpus: Vec<usize>) -> String {
    ampsched_computer::format_cpus(cpus)
}

/// CPUs, class (0 is the slowest), frequencies in MHz, speed relative to the fastest class, and power in mW by MHz.
type Domain = (Vec<usize>, u8, Vec<u32>, Option<f64>, Vec<(u32, f64)>);

/// CPUs of one class that share a clock, in the order of their first CPU, and from what their classes are known.
/// `root` is the folder that stands for `/`.
#[pyfunction]
#[pyo3(signature = (root=PathBuf::from("/")))]
pub fn core_domains(root: PathBuf) -> PyResult<(Vec<Domain>, String)> {
    let found = detect_cores(&Root::new(root), &ByHand::default());
    let (cores, evidence) = found.map_err(|error| input(&error))?;
    let domain = |domain: &ampsched_computer::Domain| {
        let power = domain.power.iter().map(|point| (point.mhz, point.power_mw)).collect();
        let freqs_mhz = domain.freqs_mhz.clone();
        (domain.cpus.clone(), domain.class, freqs_mhz, domain.relative_speed, power)
    };
    Ok((cores.domains().iter().map(domain).collect(), evidence.to_string()))
}
