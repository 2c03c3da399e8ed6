//! What a running session leaves for others, whatever its means: the lock on its folder, its status, its trace.

use ampsched_computer::CoreMap;
use ampsched_live_driver::Decision;
use ampsched_model::{InputError, Ns};

use crate::live_trace::LiveTrace;
use crate::own::cpu_time;
use crate::{Backend, Lock, RecordSettings, RunDir, Session, tell};

/// How often the session's status is written (ours): twice as often as `status --watch` reads it.
const STATUS_NS: Ns = 500_000_000;
/// What part of one CPU's time writing the status takes at most (ours): it names every thread, so that of thousands it
/// is written more rarely.
const STATUS_PART: u32 = 400;

/// The record of a session.
pub struct Record {
    folder: Lock,
    program: &'static str,
    trace: Option<LiveTrace>,
    /// When the last step was that did more than others.
    told_ns: Option<Ns>,
    /// When the next status may be written.
    status_due_ns: Ns,
}

impl Record {
    /// Takes the folder and starts the trace.
    ///
    /// Errors: another session has the folder, or a file cannot be made.
    pub fn open(
        settings: &RecordSettings,
        program: &'static str,
        cores: &CoreMap,
    ) -> Result<Self, InputError> {
        let folder = RunDir::new(&settings.folder).lock()?;
        let trace =
            settings.trace.as_deref().map(|file| LiveTrace::new(file, cores)).transpose()?;
        Ok(Self { folder, program, trace, told_ns: None, status_due_ns: 0 })
    }

    /// The folder.
    pub fn folder(&self) -> &Lock {
        &self.folder
    }

    /// Writes what a step has seen and decided, and now and then the status. Returns whether it is time for what else
    /// is done now and then.
    pub fn step(
        &mut self,
        session: &Session,
        backend: &impl Backend,
        decisions: &[Decision],
        now_ns: Ns,
    ) -> bool {
        if let Some(trace) = &mut self.trace {
            trace.step(session, backend, decisions, now_ns);
        }
        if self.told_ns.is_some_and(|told_ns| now_ns < told_ns + STATUS_NS) {
            return false;
        }
        self.told_ns = Some(now_ns);
        if now_ns < self.status_due_ns {
            return true;
        }
        let begun = cpu_time();
        if let Err(error) = self.folder.write_status(&session.status(backend)) {
            tell(self.program, format_args!("{}: {error}", self.folder.path().display()));
        }
        let took = cpu_time().saturating_sub(begun);
        self.status_due_ns = now_ns + (took * STATUS_PART).as_nanos() as Ns;
        true
    }

    /// The session has ended. Errors: the trace cannot be completed.
    pub fn close(self) -> Result<(), InputError> {
        self.folder.clear_status();
        self.trace.map_or(Ok(()), LiveTrace::finish)
    }
}
