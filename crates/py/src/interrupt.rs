//! Signals while no Python code runs: Ctrl-C must end what is computed here.
//!
//! Python handles signals on its main thread only, and only between its own instructions. So the thread that was called
//! looks for them while another one computes.

use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use ampsched_sim::Interrupt;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// How often signals are looked for.
pub const LOOK: Duration = Duration::from_millis(20);
/// How long interrupted work has to end, before nobody waits for it any more.
const GRACE: Duration = Duration::from_millis(100);
/// As much as a main thread has, in bytes.
const STACK: usize = 8 << 20;

/// Does work that needs no interpreter without its lock, and returns what it returns.
///
/// If a signal's handler raises (by default that of SIGINT does: `KeyboardInterrupt`), that exception is the result:
/// the work's `Interrupt` says so, and work that does not look there is left to end for itself.
///
/// Errors: what a handler raises; no thread can be had. Panics: as the work does.
pub fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(Interrupt) -> T + Send + 'static,
) -> PyResult<T> {
    let is_wanted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&is_wanted);
    let interrupt = Interrupt::new(move || flag.load(Ordering::Relaxed));
    // Nothing is sent: the end is that the sender is gone, whether the work returns or panics.
    let (working, mut ended) = channel::<()>();
    let run = move || {
        let _working: Sender<()> = working;
        work(interrupt)
    };
    let worker = thread::Builder::new().stack_size(STACK).spawn(run).map_err(|_| no_thread())?;
    while !py.detach(|| has_ended(&mut ended, LOOK)) {
        if let Err(raised) = py.check_signals() {
            is_wanted.store(true, Ordering::Relaxed);
            py.detach(|| has_ended(&mut ended, GRACE));
            return Err(raised);
        }
    }
    py.detach(|| worker.join()).map_or_else(|panic| panic::resume_unwind(panic), Ok)
}

/// What Python raises where no thread can be had, so that callers know one error.
pub fn no_thread() -> PyErr {
    PyRuntimeError::new_err("can't start new thread")
}

/// Waits for the end of the work, but not longer than that.
fn has_ended(end: &mut Receiver<()>, within: Duration) -> bool {
    end.recv_timeout(within) == Err(RecvTimeoutError::Disconnected)
}
