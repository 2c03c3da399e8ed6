//! Putting back what sessions have left behind that are gone with their guardians.
//!
//! Each back end restores from its own journals only; the name of a journal says which program that is.

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use ampsched_model::InputError;

use crate::guardian::{GUARD, beside};
use crate::run_dir::Left;
use crate::{Backend, FolderSettings, PutBack, RunDir};

/// Puts back what any session has left behind; whether everything could be, and how many journals there were.
fn journals<B: Backend>(folder: &RunDir) -> Result<(bool, usize), InputError> {
    let restored = folder.left()?.into_iter().map(|left| restore_one::<B>(&left));
    // All are tried before an error is told.
    let restored: Vec<Result<bool, InputError>> = restored.collect();
    let count = restored.len();
    let done: Vec<bool> = restored.into_iter().collect::<Result<_, _>>()?;
    Ok((done.into_iter().all(|is_done| is_done), count))
}

/// Puts back what one journal names; whether everything could be.
fn restore_one<B: Backend>(left: &Left) -> Result<bool, InputError> {
    match left.program == B::PROGRAM {
        true => Ok(B::restore(&left.journal)?.is_none_or(|put_back| report::<B>(&put_back))),
        false => by_other(&left.program, &left.journal),
    }
}

/// Lets another program restore from its journal; whether it could. A guardian whose standard input has ended does that.
fn by_other(program: &str, journal: &Path) -> Result<bool, InputError> {
    let path = beside(program);
    let status = Command::new(&path).arg(GUARD).arg(journal).stdin(Stdio::null()).status();
    let wrong = |error: std::io::Error| {
        InputError::new(path.display().to_string(), "", format!("cannot be run: {error}"))
            .with_hint(format!("it puts back what {} names", journal.display()))
    };
    Ok(status.map_err(wrong)?.success())
}

/// Says what has been put back, and what not; whether everything was.
pub fn report<B: Backend>(put_back: &PutBack) -> bool {
    eprintln!("{}: put back: {}", B::PROGRAM, put_back.what);
    for failure in &put_back.failures {
        eprintln!("{}: not put back: {failure}", B::PROGRAM);
    }
    put_back.failures.is_empty()
}

/// What a new session does first. It goes on if something cannot be put back, which is said.
pub fn remains<B: Backend>(folder: &RunDir) {
    if let Err(error) = journals::<B>(folder) {
        eprintln!("{}: not put back: {error}", B::PROGRAM);
    }
}

/// Puts back what sessions have left behind that are gone with their guardians.
///
/// # Errors
///
/// A session runs, or a journal cannot be read.
pub fn restore<B: Backend>(settings: &FolderSettings) -> Result<ExitCode, InputError> {
    let folder = RunDir::new(settings);
    if let Some(status) = folder.status()? {
        let message = format!("a session runs (process {})", status.pid);
        return Err(InputError::new(folder.path().display().to_string(), "", message)
            .with_hint("'ampsched-live stop' puts back what it has touched"));
    }
    let (is_done, count) = journals::<B>(&folder)?;
    if count == 0 {
        println!("nothing to put back");
    }
    Ok(if is_done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
