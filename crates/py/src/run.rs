//! Simulations: one with or without a trace, or many at once.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ampsched_model::Ns;
use ampsched_policy::{Policy, build_policy};
use ampsched_sim::{
    FactorSource as SimFactorSource, Job as SimJob, Options, Outcome, PerfettoTrace,
};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use crate::catalog::{Machine, Workload};
use crate::error;

/// How often a waiting interpreter looks for signals such as Ctrl-C.
const SIGNAL_PERIOD: Duration = Duration::from_millis(100);

/// Where policies learn speed-ups from.
#[pyclass(frozen, module = "ampsched._core")]
#[derive(Clone)]
pub struct FactorSource {
    inner: SimFactorSource,
}

#[pymethods]
impl FactorSource {
    /// The truth.
    #[staticmethod]
    fn oracle() -> Self {
        Self { inner: SimFactorSource::Oracle }
    }

    /// The truth as it was up to `stale_ns` ago, times a log-normal error of coefficient of variation `cv`.
    #[staticmethod]
    fn noisy(cv: f64, stale_ns: Ns) -> Self {
        Self { inner: SimFactorSource::Noisy { cv, stale_ns } }
    }

    /// The same for every thread.
    #[staticmethod]
    fn constant(value: f64) -> Self {
        Self { inner: SimFactorSource::Constant(value) }
    }

    /// Nothing is known.
    #[staticmethod]
    fn missing() -> Self {
        Self { inner: SimFactorSource::Missing }
    }
}

/// One simulation to run.
#[pyclass(frozen, module = "ampsched._core")]
pub struct Job {
    /// The job; its policy may be a label only.
    pub inner: SimJob,
}

#[pymethods]
impl Job {
    #[new]
    #[pyo3(signature = (machine, workload, policy, params, *, seed, factors, until_ns, limit_ns, check))]
    #[allow(clippy::too_many_arguments)] // all by keyword in Python
    fn new(
        machine: &Machine,
        workload: &Workload,
        policy: String,
        params: Vec<(String, f64)>,
        seed: u64,
        factors: &FactorSource,
        until_ns: Option<Ns>,
        limit_ns: Ns,
        check: bool,
    ) -> Self {
        let options = Options { seed, factors: factors.inner, until_ns, limit_ns, check };
        let (machine, workload) = (machine.inner.clone(), workload.inner.clone());
        Self { inner: SimJob { machine, workload, policy, params, options } }
    }
}

/// Runs one job and returns its outcome as JSON; writes a Perfetto trace to `trace` if given.
#[pyfunction]
#[pyo3(signature = (job, trace=None))]
pub fn simulate(py: Python<'_>, job: &Job, trace: Option<PathBuf>) -> PyResult<String> {
    let inner = &job.inner;
    let policy =
        build_policy(&inner.policy, &inner.params).map_err(|error| error::policy(&error))?;
    py.detach(|| run_one(inner, policy, trace.as_deref()))
}

/// Runs one job with a policy that is built already.
pub fn run_one(job: &SimJob, policy: Box<dyn Policy>, trace: Option<&Path>) -> PyResult<String> {
    let SimJob { machine, workload, policy: name, options, .. } = job;
    let fails = |error| error::simulation(&workload.name, &error);
    let Some(path) = trace else {
        let outcome =
            ampsched_sim::simulate(machine, workload, name, policy, options).map_err(fails)?;
        return Ok(json(&outcome));
    };
    let refuses =
        |error: std::io::Error| PyOSError::new_err(format!("{}: {error}", path.display()));
    let mut sink =
        PerfettoTrace::new(File::create(path).map_err(refuses)?, machine).map_err(refuses)?;
    let result =
        ampsched_sim::simulate_with(machine, workload, name, policy, options, Some(&mut sink));
    // What was recorded until an error shows how it came about.
    sink.finish().map_err(refuses)?;
    Ok(json(&result.map_err(fails)?))
}

fn json(outcome: &Outcome) -> String {
    serde_json::to_string(outcome).expect("an outcome has only text keys and finite numbers")
}

/// Runs jobs on up to `threads` processors (0: all), without the interpreter lock. Returns, in the order
/// of the jobs, each one's outcome as JSON or its exception.
///
/// `progress` is called in the calling thread with the number of each finished job. If it raises, or a signal
/// arrives, the running batch is completed before the exception goes on.
#[pyfunction]
pub fn run_batch(
    py: Python<'_>,
    jobs: Vec<Py<Job>>,
    threads: usize,
    progress: Bound<'_, PyAny>,
) -> PyResult<Vec<Py<PyAny>>> {
    let inner: Vec<SimJob> = jobs.iter().map(|job| job.get().inner.clone()).collect();
    let (sender, receiver) = channel();
    let receiver = Mutex::new(receiver);
    let mut interrupted = None;
    let results = std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let done = move |number| {
                // The receiver lives until all senders are gone, so this cannot fail.
                let _ = sender.send(number);
            };
            ampsched_sim::run_batch(&inner, threads, &done)
        });
        loop {
            let news = match py.detach(|| wait(&receiver)) {
                Ok(number) => progress.call1((number,)).map(drop),
                Err(RecvTimeoutError::Timeout) => py.check_signals(),
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if interrupted.is_none() {
                interrupted = news.err();
            }
        }
        py.detach(|| worker.join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    if let Some(error) = interrupted {
        return Err(error);
    }
    inner
        .iter()
        .zip(results)
        .map(|(job, result)| match result {
            Ok(outcome) => Ok(json(&outcome).into_pyobject(py)?.into_any().unbind()),
            Err(error) => Ok(error::job(&job.workload.name, &error).into_value(py).into_any()),
        })
        .collect()
}

/// The next finished job; the mutex only lets the receiver cross into code without the interpreter lock.
fn wait(receiver: &Mutex<Receiver<usize>>) -> Result<usize, RecvTimeoutError> {
    receiver.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(SIGNAL_PERIOD)
}
