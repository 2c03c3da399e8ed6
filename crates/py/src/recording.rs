//! Recordings of programs.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use ampsched_recording as recording;
use pyo3::prelude::*;

use crate::error::{InputError, input};
use crate::interrupt::interruptible;

/// Work of threads, causes, and critical paths.
type Laws =
    (Vec<Option<u64>>, Vec<(&'static str, u32, u32, u64)>, Vec<BTreeMap<&'static str, f64>>);

/// What a thread asks for: class, group, CPUs, least and greatest clamp.
type AskedRow = (&'static str, String, String, Option<u16>, Option<u16>);

/// A recorded run of a program.
#[pyclass(frozen, module = "ampsched._core")]
pub struct Recording {
    /// The recording.
    pub inner: Arc<recording::Recording>,
}

impl From<recording::Recording> for Recording {
    fn from(inner: recording::Recording) -> Self {
        Self { inner: Arc::new(inner) }
    }
}

#[pymethods]
impl Recording {
    /// The recording in the bytes of its file; `file` is its path for messages.
    #[staticmethod]
    fn read(py: Python<'_>, file: String, data: Vec<u8>) -> PyResult<Self> {
        let found = interruptible(py, move |_| recording::read(&file, &data))?;
        found.map(Self::from).map_err(|error| input(&error))
    }

    /// The bytes of its file.
    fn to_bytes(&self, py: Python<'_>) -> PyResult<Cow<'static, [u8]>> {
        let inner = Arc::clone(&self.inner);
        interruptible(py, move |_| Cow::Owned(inner.to_bytes()))
    }

    /// The same with something else known of it as a whole (JSON, as `info` tells it).
    fn with_info(&self, info: &str) -> PyResult<Self> {
        let mut changed = recording::Recording::clone(&self.inner);
        changed.info = serde_json::from_str(info)
            .map_err(|error| InputError::new_err(format!("info of a recording: {error}")))?;
        Ok(Self::from(changed))
    }

    /// What is known of it as a whole, as JSON.
    #[getter]
    fn info(&self) -> String {
        serde_json::to_string(&self.inner.info).expect("numbers and texts become JSON")
    }

    /// Per thread: name, process, events, CPU time in ns, blocked time in ns.
    #[getter]
    fn threads(&self) -> Vec<(String, u32, usize, u64, u64)> {
        let row = |thread: &recording::Thread| {
            let (cpu_ns, wait_ns) = (thread.cpu_ns(), thread.wait_ns());
            (thread.name.clone(), thread.process, thread.events.len(), cpu_ns, wait_ns)
        };
        self.inner.threads.iter().map(row).collect()
    }

    /// What each thread asks of a scheduler: its class, its group, its CPUs as a list, its least and greatest
    /// utilisation clamp; empty or none of what it does not ask for.
    #[getter]
    fn asks(&self) -> Vec<AskedRow> {
        let row = |thread: &recording::Thread| {
            let asks = &thread.asks;
            let group = asks.group.and_then(|group| self.inner.info.groups.get(group as usize));
            let path = group.map_or(String::new(), |group| group.path.clone());
            let class = thread.scheduled().1.name();
            (class, path, asks.cpus_text(), asks.uclamp_min, asks.uclamp_max)
        };
        self.inner.threads.iter().map(row).collect()
    }

    /// Number of events of each kind that occurs.
    #[getter]
    fn counts(&self) -> Vec<(&'static str, usize)> {
        let mut counts = [0; 256];
        for event in self.inner.threads.iter().flat_map(|thread| &thread.events) {
            counts[event.kind as usize] += 1;
        }
        let kinds = recording::Kind::ALL.iter().map(|kind| (kind.word(), counts[*kind as usize]));
        kinds.filter(|(_, count)| *count > 0).collect()
    }

    /// Work that several threads do up to a barrier or in a parallel region, in ns of the fastest core.
    #[getter]
    fn shared_ns(&self, py: Python<'_>) -> PyResult<f64> {
        let inner = Arc::clone(&self.inner);
        let sharing = recording::Sharing::Loops(ampsched_model::Schedule::Dynamic);
        let options = recording::Options { sharing, ..recording::Options::default() };
        interruptible(py, move |_| recording::replay(&inner, &options).shared_ns)
    }

    /// What every execution of its replay obeys: work of each thread in ns; who can do nothing before whom (how, cause,
    /// effect, work in ns); and the critical path at each speed, by what its time is, in ns.
    fn laws(&self, py: Python<'_>, speeds: Vec<f64>) -> PyResult<Laws> {
        let inner = Arc::clone(&self.inner);
        let found = interruptible(py, move |_| recording::laws(&inner, &speeds))?;
        let cause =
            |each: &recording::Cause| (each.bond.word(), each.cause, each.effect, each.work_ns);
        let path =
            |path: &recording::Path| path.parts().map(|(part, ns)| (part.word(), ns)).collect();
        let causes = found.causes.iter().map(cause).collect();
        Ok((found.work_ns, causes, found.paths.iter().map(path).collect()))
    }

    /// What is known of it as of an interactive program, as JSON; none if it is not one.
    fn interactive(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let inner = Arc::clone(&self.inner);
        let found = interruptible(py, move |_| recording::interactive(&inner))?;
        Ok(found.map(|found| serde_json::to_string(&found).expect("numbers and texts become JSON")))
    }

    /// Number of events of all threads.
    #[getter]
    fn events(&self) -> usize {
        self.inner.events()
    }

    /// CPU time of all threads, in ns.
    #[getter]
    fn cpu_ns(&self) -> u64 {
        self.inner.cpu_ns()
    }

    /// How often threads blocked.
    #[getter]
    fn blocks(&self) -> usize {
        self.inner.blocks()
    }

    /// Time that threads were blocked in ns: in all, and with a cause that is known.
    #[getter]
    fn blocked_ns(&self) -> (u64, u64) {
        self.inner.blocked_ns()
    }

    /// Whether it ends where the recorder was cut off.
    #[getter]
    fn is_cut_off(&self) -> bool {
        self.inner.is_cut_off
    }

    fn __repr__(&self) -> String {
        format!("<Recording {}>", self.inner.info.name)
    }
}
