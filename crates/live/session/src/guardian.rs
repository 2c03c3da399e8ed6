//! The guardian: a small process that outlives this one and puts everything back.
//!
//! Its standard input is a pipe whose other end only the guarded process has. When that process ends, however it
//! ends, the kernel closes the pipe; the guardian reads the end of it and restores from the journal. After an orderly
//! end there is no journal any more and nothing to do.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use ampsched_model::InputError;

use crate::Backend;
use crate::restore::report;

/// The subcommand of every program that runs policies by which it becomes a guardian: `PROGRAM guardian JOURNAL`.
pub const GUARD: &str = "guardian";

/// The guardian of this process.
#[derive(Debug)]
pub struct Guardian {
    program: PathBuf,
    journal: PathBuf,
    child: Child,
}

impl Guardian {
    /// Starts it, in a process group of its own, so that what a terminal sends to this one's group does not reach it.
    pub fn start(journal: &Path) -> io::Result<Self> {
        let program = std::env::current_exe()?;
        let child = spawn(&program, journal)?;
        Ok(Self { program, journal: journal.to_owned(), child })
    }

    /// Its process.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Starts another one if it has ended; returns whether that was so.
    pub fn renew(&mut self) -> io::Result<bool> {
        if self.child.try_wait()?.is_none() {
            return Ok(false);
        }
        self.child = spawn(&self.program, &self.journal)?;
        Ok(true)
    }

    /// Lets it end, which it does at once if the journal is gone.
    pub fn dismiss(mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn spawn(program: &Path, journal: &Path) -> io::Result<Child> {
    let mut command = Command::new(program);
    command.arg(GUARD).arg(journal).stdin(Stdio::piped()).stdout(Stdio::null());
    command.process_group(0).spawn()
}

/// What a guardian does: waits for the end of its standard input, then restores.
///
/// # Errors
///
/// The journal cannot be read.
pub fn keep_watch<B: Backend>(journal: &Path) -> Result<ExitCode, InputError> {
    let mut rest = Vec::new();
    // Nothing is ever written; an error means that the other end is gone, too.
    let _ = io::stdin().read_to_end(&mut rest);
    let is_done = B::restore(journal)?.is_none_or(|put_back| report::<B>(&put_back));
    Ok(if is_done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A program that runs policies, beside this one.
pub fn beside(program: &str) -> PathBuf {
    std::env::current_exe().unwrap_or_default().with_file_name(program)
}
