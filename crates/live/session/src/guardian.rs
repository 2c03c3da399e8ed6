//! The guardian: a small process that outlives this one and puts everything back.
//!
//! Its standard input is a pipe whose other end only the guarded process has. When that process ends, however it
//! ends, the kernel closes the pipe; the guardian reads the end of it and restores from the journal.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;

use ampsched_computer::Proc;
use ampsched_model::InputError;
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use signal_hook::consts::SIGHUP;

use crate::claims;
use crate::command::ended;
use crate::journal::JournalFile;
use crate::restore::{exit_code, put_back, report};
use crate::run::failed;
use crate::{Backend, stopped};

/// The subcommand of every program that runs policies by which it becomes a guardian: `PROGRAM guardian JOURNAL`.
pub const GUARD: &str = "guardian";

/// The guardian of this process.
#[derive(Debug)]
pub struct Guardian {
    program: PathBuf,
    journal: PathBuf,
    /// What tells other sessions what this one schedules; the guardian keeps it, too.
    claims: Option<File>,
    child: Child,
}

impl Guardian {
    /// Starts it, in a process group of its own, so that what a terminal sends to this one's group does not reach it.
    /// It keeps `claims` open.
    pub fn start(journal: &Path, claims: Option<File>) -> io::Result<Self> {
        let program = std::env::current_exe()?;
        let child = spawn(&program, journal, claims.as_ref())?;
        Ok(Self { program, journal: journal.to_owned(), claims, child })
    }

    /// Its process.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Starts another one if it has ended, and lets it go on if it has been stopped; returns whether there is another.
    pub fn renew(&mut self, proc: &Proc) -> io::Result<bool> {
        if ended(self.child.try_wait())?.is_some() {
            self.child = spawn(&self.program, &self.journal, self.claims.as_ref())?;
            return Ok(true);
        }
        let is_stopped = proc.process(self.pid()).is_ok_and(|stat| stat.state == 'T');
        if let Some(pid) = Pid::from_raw(self.pid()).filter(|_| is_stopped) {
            kill_process(pid, Signal::CONT)?;
        }
        Ok(false)
    }

    /// Ends it: there is nothing left that it could do.
    pub fn dismiss(mut self) {
        // Not by the end of its input, which one that is stopped does not read.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(program: &Path, journal: &Path, claims: Option<&File>) -> io::Result<Child> {
    let mut command = Command::new(program);
    // It writes nothing to its standard output, which is a way to keep a file open.
    let claims = claims.map(File::try_clone).transpose()?.map_or_else(Stdio::null, Stdio::from);
    command.arg(GUARD).arg(journal).stdin(Stdio::piped()).stdout(claims);
    command.process_group(0).spawn()
}

/// What a guardian does: waits for the end of its standard input, then restores. If its session is stopped for too
/// long, it restores, too.
///
/// # Errors
///
/// The journal cannot be read.
pub fn keep_watch<B: Backend>(journal: &Path) -> Result<ExitCode, InputError> {
    // One that is stopped when its session ends is let go on. The kernel does so by itself, with a SIGHUP before, but
    // not where what takes over orphans is of the same terminal session, as in a container.
    let let_go_on = set_parent_process_death_signal(Some(Signal::CONT));
    let_go_on.map_err(|error| failed("signals", &error))?;
    let hung_up = signal_hook::flag::register(SIGHUP, Arc::default());
    hung_up.map_err(|error| failed("signals", &error))?;
    stopped::wait_for_end::<B>(journal);
    let place = JournalFile::at(journal)?;
    let held = place.map(|place| place.hold()).transpose()?.flatten();
    let restored = held.as_ref().map(put_back::<B>).unwrap_or_default();
    report::<B>(&restored);
    if restored.failures.is_empty() {
        claims::forget_shared(std::io::stdout());
    }
    Ok(exit_code(&restored))
}

/// A program that runs policies, beside this one.
pub fn beside(program: &str) -> PathBuf {
    std::env::current_exe().unwrap_or_default().with_file_name(program)
}
