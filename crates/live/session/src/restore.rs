//! Putting back what a session has touched, from its journal: at its end, by its guardian, or by a later session.
//!
//! Each back end restores from its own journals only; the name of a journal says which program that is.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use ampsched_computer::{Proc, ThreadKey};
use ampsched_model::InputError;

use crate::guardian::{GUARD, beside};
use crate::journal::{Held, JournalFile};
use crate::place::Relation;
use crate::run_dir::{Left, program_of};
use crate::{Backend, FolderSettings, PutBack, RunDir, Session, print, tell};

/// How the names of all programs begin that run policies.
const PROGRAMS: &str = "ampsched-live";
/// Exit code when something could not be put back.
const NOT_PUT_BACK: u8 = 4;

/// Puts back what a journal names, and removes it unless something failed that may succeed later. What is odd about the
/// journal is said, and every intact entry counts.
pub fn put_back<B: Backend>(held: &Held) -> PutBack {
    let path = held.place().path().display().to_string();
    let contents = match held.read::<B::Touch>() {
        Ok(contents) => contents,
        Err(error) => return PutBack { failures: vec![error.to_string()], ..PutBack::default() },
    };
    if contents.unfinished > 0 {
        let bytes = contents.unfinished;
        let what = "an unfinished record at the end";
        tell(B::PROGRAM, format_args!("{path}: {what} ({bytes} bytes) names nothing touched"));
    }
    let mut restored = match contents.relation {
        Relation::Here => B::put_back(&contents.entries),
        Relation::Past => PutBack {
            what: "nothing: the computer was started anew".to_owned(),
            ..PutBack::default()
        },
        Relation::Elsewhere(why) => {
            PutBack { failures: vec![format!("{path}: {why}")], ..PutBack::default() }
        }
    };
    if restored.failures.is_empty() {
        let removed =
            if contents.lost.is_empty() { held.remove() } else { set_aside(held, &mut restored) };
        restored.failures.extend(removed.err().map(|error| format!("{path}: {error}")));
    }
    restored.failures.extend(contents.lost.iter().map(|lost| format!("{path}: {lost}")));
    restored
}

/// What is lost stays lost: the journal is kept for people only.
fn set_aside(held: &Held, restored: &mut PutBack) -> io::Result<()> {
    let path = held.set_aside()?;
    restored.what += &format!(", and the journal is kept as {}", path.display());
    Ok(())
}

/// Says what has been put back, and what not.
pub fn report<B: Backend>(restored: &PutBack) {
    if !restored.what.is_empty() {
        tell(B::PROGRAM, format_args!("put back: {}", restored.what));
    }
    for failure in &restored.failures {
        tell(B::PROGRAM, format_args!("not put back: {failure}"));
    }
}

/// The exit code of a command that only restores.
pub fn exit_code(restored: &PutBack) -> ExitCode {
    if restored.failures.is_empty() { ExitCode::SUCCESS } else { not_put_back() }
}

/// The exit code when something could not be put back.
pub fn not_put_back() -> ExitCode {
    ExitCode::from(NOT_PUT_BACK)
}

/// Puts back what sessions have left behind, and says what could not be; whether everything could.
fn journals<B: Backend>(left: &[Left]) -> bool {
    let mut is_done = true;
    // None stands in the way of the others.
    for left in left {
        let done = match left.program == B::PROGRAM {
            true => own::<B>(&left.journal),
            false => by_other(&left.program, &left.journal),
        };
        is_done &= done.unwrap_or_else(|error| {
            tell(B::PROGRAM, format_args!("not put back: {error}"));
            false
        });
    }
    is_done
}

/// Puts back what a journal of this program names; whether everything could be.
fn own<B: Backend>(journal: &JournalFile) -> Result<bool, InputError> {
    let Some(held) = journal.hold()? else { return Ok(true) };
    let restored = put_back::<B>(&held);
    report::<B>(&restored);
    Ok(restored.failures.is_empty())
}

/// Lets another program restore from its journal; whether it could. A guardian whose standard input has ended does
/// that.
fn by_other(program: &str, journal: &JournalFile) -> Result<bool, InputError> {
    let (path, journal) = (beside(program), journal.path());
    if !program.starts_with(PROGRAMS) {
        let message = format!("{program} is no program that runs policies");
        return Err(InputError::new(journal.display().to_string(), "", message));
    }
    let status = Command::new(&path).arg(GUARD).arg(&journal).stdin(Stdio::null()).status();
    let wrong = |error: std::io::Error| {
        InputError::new(path.display().to_string(), "", format!("cannot be run: {error}"))
            .with_hint(format!("it puts back what {} names", journal.display()))
    };
    Ok(status.map_err(wrong)?.success())
}

/// What a new session does first. It goes on if something cannot be put back, which is said.
pub fn remains<B: Backend>(left: &[Left]) {
    journals::<B>(left);
}

/// Puts back what one's own sessions have left in other folders of processes that are about to be scheduled: what
/// they are now would count as what they were before.
pub fn remains_elsewhere<B: Backend>(journals: &[PathBuf], session: &mut Session) {
    let found = session.in_scope(&Proc::default()).unwrap_or_default();
    let threads: BTreeSet<ThreadKey> = found.iter().map(|stat| stat.key).collect();
    for journal in journals {
        let done = own_if::<B>(journal, |touches| B::concerns(touches, &threads));
        if let Err(error) = done {
            tell(B::PROGRAM, format_args!("not put back: {error}"));
        }
    }
}

/// Puts back what a journal of this program names if that concerns it.
fn own_if<B: Backend>(
    journal: &Path,
    concerns: impl FnOnce(&[B::Touch]) -> bool,
) -> Result<(), InputError> {
    let name = journal.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if program_of(name) != Some(B::PROGRAM) {
        return Ok(());
    }
    let place = JournalFile::at(journal)?;
    let Some(held) = place.map(|place| place.hold()).transpose()?.flatten() else { return Ok(()) };
    let contents = held.read::<B::Touch>()?;
    if contents.relation == Relation::Here && concerns(&contents.entries) {
        report::<B>(&put_back::<B>(&held));
    }
    Ok(())
}

/// Puts back what sessions have left behind that are gone with their guardians.
///
/// # Errors
///
/// A session runs, or others can write in the folder.
pub fn restore<B: Backend>(settings: &FolderSettings) -> Result<ExitCode, InputError> {
    let folder = RunDir::new(settings);
    let left = match folder.lock_if_there()? {
        Some(lock) => lock.left()?,
        None => Vec::new(),
    };
    if left.is_empty() {
        print("nothing to put back\n")?;
    }
    Ok(if journals::<B>(&left) { ExitCode::SUCCESS } else { not_put_back() })
}
