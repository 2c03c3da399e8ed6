//! Simulations: one with or without a trace, or many at once.

use std::io::{self, Write};
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use ampsched_model::Ns;
use ampsched_policy::{Policy, build_policy};
use ampsched_sim::{
    AloneFacts as SimAloneFacts, FactorSource as SimFactorSource, GovernorSpec, Interrupt,
    Job as SimJob, JobError, NoExplanation, Options, Outcome, Overhead, PerfettoTrace, Predicted,
    Question as SimQuestion, Trace, Turns as SimTurns,
};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Serialize;

use crate::catalog::Machine;
use crate::error;
use crate::interrupt::interruptible;
use crate::models::Models;
use crate::noise::NoiseSources;
use crate::workload::Workload;

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

    /// What the models of a file predict from performance counters that err with a coefficient of variation and are
    /// read every `stale_ns` at most.
    #[staticmethod]
    fn predicted(models: &Models, counter_cv: f64, stale_ns: Ns) -> Self {
        let models = models.inner.clone();
        Self { inner: SimFactorSource::Predicted(Predicted { models, counter_cv, stale_ns }) }
    }

    /// The same for every thread.
    #[staticmethod]
    fn constant(value: f64) -> Self {
        Self { inner: SimFactorSource::Constant(value) }
    }

    /// What threads have shown on both kinds of core, looked at every `interval_ns`.
    #[staticmethod]
    fn sampled(interval_ns: Ns) -> Self {
        Self { inner: SimFactorSource::Sampled { interval_ns } }
    }

    /// Nothing is known.
    #[staticmethod]
    fn missing() -> Self {
        Self { inner: SimFactorSource::Missing }
    }
}

/// What each application does alone, as some policies want to know. All jobs that are given one must have the same
/// machine, workload and settings: it is computed once for them.
#[pyclass(frozen, module = "ampsched._core")]
pub struct AloneFacts(SimAloneFacts);

#[pymethods]
impl AloneFacts {
    #[new]
    fn new() -> Self {
        Self(SimAloneFacts::shared())
    }
}

/// Cluster or none for all others, name and parameters of a governor.
type Governor = (Option<String>, String, Vec<(String, f64)>);

/// One simulation to run.
#[pyclass(frozen, module = "ampsched._core")]
pub struct Job {
    /// The job; its policy may be a label only.
    pub inner: SimJob,
}

#[pymethods]
impl Job {
    #[new]
    #[pyo3(signature = (
        machine, workload, policy, params, *, seed, factors, alone, overhead_ns, governors, noise, energy, until_ns,
        repetitions, limit_ns, check
    ))]
    #[allow(clippy::too_many_arguments)] // all by keyword in Python
    fn new(
        machine: &Machine,
        workload: &Workload,
        policy: String,
        params: Vec<(String, f64)>,
        seed: u64,
        factors: &FactorSource,
        alone: &AloneFacts,
        overhead_ns: (Ns, Ns),
        governors: Vec<Governor>,
        noise: Option<&NoiseSources>,
        energy: bool,
        until_ns: Option<Ns>,
        repetitions: Option<NonZeroU32>,
        limit_ns: Ns,
        check: bool,
    ) -> Self {
        let factors = factors.inner.clone();
        let overhead = Overhead { decision_ns: overhead_ns.0, epoch_ns: overhead_ns.1 };
        let spec = |(cluster, name, params)| GovernorSpec { cluster, name, params };
        let governors = governors.into_iter().map(spec).collect();
        let options = Options {
            seed,
            factors,
            alone: alone.0.clone(),
            overhead,
            governors,
            noise: noise.map(|noise| noise.inner.clone()),
            energy,
            until_ns,
            repetitions,
            limit_ns,
            check,
            interrupt: Interrupt::default(),
        };
        let (machine, workload) = (machine.inner.clone(), workload.inner.clone());
        Self { inner: SimJob { machine, workload, policy, params, options } }
    }
}

/// What somebody wants to know of one thread around one moment: the thread's number or `app/thread`.
#[pyclass(frozen, module = "ampsched._core", from_py_object)]
#[derive(Clone)]
pub struct Question {
    inner: SimQuestion,
}

#[pymethods]
impl Question {
    #[new]
    fn new(thread: String, at_ns: Ns, window_ns: Ns) -> Self {
        Self { inner: SimQuestion { thread, at_ns, window_ns } }
    }
}

/// Asks for all turns of threads on cores.
#[pyclass(frozen, module = "ampsched._core", from_py_object)]
#[derive(Clone)]
pub struct Turns;

#[pymethods]
impl Turns {
    #[new]
    fn new() -> Self {
        Self
    }
}

/// Asks for the outcome as a comparison keeps it: without the histograms of single threads.
#[pyclass(frozen, module = "ampsched._core", from_py_object)]
#[derive(Clone)]
pub struct Compared;

#[pymethods]
impl Compared {
    #[new]
    fn new() -> Self {
        Self
    }
}

/// Asks for the outcome as a sweep keeps it: programs and totals, without threads, cores and histograms.
#[pyclass(frozen, module = "ampsched._core", from_py_object)]
#[derive(Clone)]
pub struct Summed;

#[pymethods]
impl Summed {
    #[new]
    fn new() -> Self {
        Self
    }
}

/// What is kept of an outcome.
#[derive(FromPyObject)]
pub enum Kept {
    /// What a comparison keeps.
    Compared(Compared),
    /// What a sweep keeps.
    Summed(Summed),
}

impl Kept {
    /// It as JSON.
    fn of(&self, outcome: Outcome) -> String {
        json(&match self {
            Self::Compared(_) => outcome.without_thread_histograms(),
            Self::Summed(_) => outcome.summed(),
        })
    }
}

/// What a run is for besides its outcome.
#[derive(FromPyObject)]
pub enum Purpose {
    /// A part of the outcome.
    Keep(Kept),
    /// The answer to a question, instead of the outcome.
    Answer(Question),
    /// The outcome, and all turns.
    Draw(Turns),
    /// A Perfetto trace into a binary file.
    Trace(Py<PyAny>),
}

/// Runs one job and returns its outcome as JSON; if `purpose` is a question, the answer; if it is turns, a pair of the
/// outcome and the turns; if it is a part of the outcome, that. A binary file gets a Perfetto trace. What a signal's
/// handler raises ends it.
#[pyfunction]
#[pyo3(signature = (job, purpose=None))]
pub fn simulate(py: Python<'_>, job: &Job, purpose: Option<Purpose>) -> PyResult<String> {
    let job = job.inner.clone();
    interruptible(py, move |interrupt| {
        let policy =
            build_policy(&job.policy, &job.params).map_err(|error| error::policy(&error))?;
        run_one(job, policy, purpose, interrupt)
    })?
}

/// Runs one job with a policy that is built already.
pub fn run_one(
    job: SimJob,
    policy: Box<dyn Policy>,
    purpose: Option<Purpose>,
    interrupt: Interrupt,
) -> PyResult<String> {
    let SimJob { machine, workload, policy: name, options, .. } = &job;
    let options = &Options { interrupt, ..options.clone() };
    let fails = |error| error::simulation(&workload.name, &error);
    match purpose {
        None => {
            let outcome = ampsched_sim::simulate(machine, workload, name, policy, options);
            Ok(json(&outcome.map_err(fails)?))
        }
        Some(Purpose::Keep(kept)) => {
            let outcome = ampsched_sim::simulate(machine, workload, name, policy, options);
            Ok(kept.of(outcome.map_err(fails)?))
        }
        Some(Purpose::Answer(question)) => {
            let question = question.inner;
            let answer = ampsched_sim::explain(machine, workload, name, policy, options, question);
            let answer = answer.map_err(|error| match error {
                NoExplanation::Simulation(error) => fails(error),
                NoExplanation::Question(error) => error::input(&error),
            })?;
            Ok(json(&answer))
        }
        Some(Purpose::Draw(_)) => {
            let mut turns = SimTurns::default();
            let watch: Option<&mut dyn Trace> = Some(&mut turns);
            let outcome =
                ampsched_sim::simulate_with(machine, workload, name, policy, options, watch)
                    .map_err(fails)?;
            turns.finish(outcome.makespan_ns);
            Ok(json(&(outcome, turns)))
        }
        Some(Purpose::Trace(file)) => {
            let mut sink = PerfettoTrace::new(PyFile(file), &machine.into())?;
            let result = ampsched_sim::simulate_with(
                machine,
                workload,
                name,
                policy,
                options,
                Some(&mut sink),
            );
            // What was recorded until an error shows how it came about.
            sink.finish()?;
            Ok(json(&result.map_err(fails)?))
        }
    }
}

/// A binary file of Python's as a writer: only Python opens files.
pub struct PyFile(pub Py<PyAny>);

impl Write for PyFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Python::attach(|py| {
            self.0.call_method1(py, "write", (PyBytes::new(py, bytes),)).map(drop)
        })?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Python::attach(|py| self.0.call_method0(py, "flush").map(drop))?;
        Ok(())
    }
}

fn json(result: &impl Serialize) -> String {
    serde_json::to_string(result).expect("a result has only text keys and finite numbers")
}

/// Runs jobs on up to `threads` processors (0, or more than there are: all), without the interpreter lock. Returns, in
/// the order of the jobs, what is kept of each one's outcome as JSON, or its exception.
///
/// `progress` is called with the number of each finished job, from any thread, one call at a time. If it raises, or a
/// signal's handler does, that ends all jobs.
#[pyfunction]
pub fn run_batch(
    py: Python<'_>,
    jobs: Vec<Py<Job>>,
    threads: usize,
    progress: Py<PyAny>,
    kept: Kept,
) -> PyResult<Vec<Py<PyAny>>> {
    let inner: Vec<SimJob> = jobs.iter().map(|job| job.get().inner.clone()).collect();
    let processors = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let threads = if threads == 0 { processors } else { threads.min(processors) };
    let names: Vec<String> = inner.iter().map(|job| job.workload.name.clone()).collect();
    let results =
        interruptible(py, move |interrupt| run_all(inner, threads, &progress, &interrupt))??;
    names
        .iter()
        .zip(results)
        .map(|(workload, result)| match result {
            Ok(outcome) => Ok(kept.of(outcome).into_pyobject(py)?.into_any().unbind()),
            Err(error) => Ok(error::job(workload, &error).into_value(py).into_any()),
        })
        .collect()
}

/// Runs jobs until all are done, `progress` raises, or somebody interrupts.
fn run_all(
    mut jobs: Vec<SimJob>,
    threads: usize,
    progress: &Py<PyAny>,
    interrupt: &Interrupt,
) -> PyResult<Vec<Result<Outcome, JobError>>> {
    let failure: Arc<OnceLock<PyErr>> = Arc::default();
    let (failed, outside) = (Arc::clone(&failure), interrupt.clone());
    let interrupt = Interrupt::new(move || failed.get().is_some() || outside.is_wanted());
    for job in &mut jobs {
        job.options.interrupt = interrupt.clone();
    }
    let turn = Mutex::new(());
    let step = |number: usize| {
        let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
        if !interrupt.is_wanted() {
            if let Err(raised) = Python::attach(|py| progress.call1(py, (number,))) {
                failure.get_or_init(|| raised);
            }
        }
    };
    let results = ampsched_sim::run_batch(&jobs, threads, &step);
    match failure.get() {
        Some(raised) => Err(Python::attach(|py| raised.clone_ref(py))),
        None => Ok(results),
    }
}
