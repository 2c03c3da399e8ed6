//! A trace in the simulator's form of what something else has run, such as a kernel.

use ampsched_model::{ClusterId, CoreId, Ns, ThreadId};
use ampsched_policy::RunState;
use ampsched_trace::{PerfettoTrace, SystemIds, Trace, TraceThread, TurnEnd};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::catalog::Machine;
use crate::run::PyFile;

/// Writes a trace. Threads are introduced before anything else is said of them; times in ns never decrease.
#[pyclass(module = "ampsched._core")]
pub struct TraceWriter {
    trace: Option<PerfettoTrace<PyFile>>,
}

#[pymethods]
impl TraceWriter {
    /// Starts a trace of a run on a machine in a binary file.
    #[new]
    fn new(file: Py<PyAny>, machine: &Machine) -> PyResult<Self> {
        let trace = PerfettoTrace::new(PyFile(file), &(&machine.inner).into())?;
        Ok(Self { trace: Some(trace) })
    }

    /// Introduces a thread of an application, both numbered from 0, with its process's and its own number in the
    /// system.
    fn thread(
        &mut self,
        thread: u32,
        app: usize,
        app_name: &str,
        name: &str,
        ids: (i32, i32),
    ) -> PyResult<()> {
        let (id, ids) = (ThreadId(thread), Some(SystemIds { pid: ids.0, tid: ids.1 }));
        self.open()?.thread(TraceThread { id, app, app_name, name, ids });
        Ok(())
    }

    /// A thread is put on a core, on which nobody is.
    fn run(&mut self, core: u16, thread: u32, at_ns: Ns) -> PyResult<()> {
        self.open()?.run(CoreId(core), ThreadId(thread), None, at_ns);
        Ok(())
    }

    /// A thread is taken off a core and sleeps, or is ready to go on.
    fn stop(&mut self, core: u16, thread: u32, sleeps: bool, at_ns: Ns) -> PyResult<()> {
        let state = if sleeps { RunState::Blocked } else { RunState::Ready };
        let end = TurnEnd { instructions: None, state, why: None };
        self.open()?.stop(CoreId(core), ThreadId(thread), end, at_ns);
        Ok(())
    }

    /// A thread, or something else, has made another one runnable, which goes to a core.
    fn wake(&mut self, waker: Option<u32>, woken: u32, core: u16, at_ns: Ns) -> PyResult<()> {
        let (waker, core) = (waker.map(ThreadId), Some(CoreId(core)));
        self.open()?.wake(waker, ThreadId(woken), core, at_ns);
        Ok(())
    }

    /// So many threads wait for a core.
    fn waiting(&mut self, core: u16, threads: usize, at_ns: Ns) -> PyResult<()> {
        self.open()?.queue_len(CoreId(core), threads, at_ns);
        Ok(())
    }

    /// A cluster runs at another frequency from now on.
    fn frequency(&mut self, cluster: u8, mhz: u32, at_ns: Ns) -> PyResult<()> {
        self.open()?.frequency(ClusterId(cluster), mhz, at_ns);
        Ok(())
    }

    /// Ends what still runs and completes the file; nothing can be written any more.
    fn finish(&mut self) -> PyResult<()> {
        let trace = self.trace.take().ok_or_else(closed)?;
        Ok(trace.finish()?)
    }
}

impl TraceWriter {
    fn open(&mut self) -> PyResult<&mut PerfettoTrace<PyFile>> {
        self.trace.as_mut().ok_or_else(closed)
    }
}

fn closed() -> PyErr {
    PyValueError::new_err("the trace is finished")
}
