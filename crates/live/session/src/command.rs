//! The command that is run and scheduled, and the orphans that it leaves.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::time::Duration;

use ampsched_computer::Proc;
use ampsched_model::InputError;
use rustix::process::{Pid, WaitOptions, setpriority_process, waitpid};

use crate::Backend;
use crate::signals::Signals;

/// Starts a command, if there is one, so that a back end schedules it.
pub fn start(words: &[String], backend: &impl Backend) -> Result<Option<Child>, InputError> {
    let Some((program, words)) = words.split_first() else { return Ok(None) };
    let mut command = Command::new(program);
    command.args(words);
    backend.prepare(&mut command)?;
    let wrong = |error| InputError::new(program, "", format!("cannot be run: {error}"));
    command.spawn().map(Some).map_err(wrong)
}

/// The exit code of a command as shells give it: 128 + the signal that ended it.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// The exit code of a session whose command has `ended`, or has not because the session was stopped before: then that goes on
/// without a policy, and is waited for, unless a signal asks once more to stop.
pub fn wait_for(
    mut child: Option<Child>,
    mut ended: Option<ExitStatus>,
    signals: &mut Signals,
) -> Result<ExitCode, InputError> {
    let stops = signals.stops();
    while let (None, Some(running)) = (ended, &mut child) {
        ended = running
            .try_wait()
            .map_err(|error| InputError::new("command", "", error.to_string()))?;
        if signals.stops() > stops {
            break;
        }
        if ended.is_none() {
            signals.sleep(Duration::from_secs(1));
        }
    }
    Ok(ended.map_or(ExitCode::SUCCESS, |status| ExitCode::from(exit_code(status))))
}

/// Nice value of a session, if it may have it: it works little, and its decisions are worth less the later they come (ours).
const OWN_NICE: i32 = -10;

/// Puts the session before others, once its command has been started and has a nice value of its own.
pub fn prefer_own() {
    // Without the privilege it stays as it is.
    let _ = setpriority_process(None, OWN_NICE);
}

/// Takes note of the ends of orphans, but leaves the ends of `own` children to whoever started them.
pub fn bury_orphans(proc: &Proc, own: &[i32]) {
    for pid in proc.children(std::process::id() as i32) {
        let is_orphan = !own.contains(&pid) && proc.process(pid).is_some_and(|stat| stat.is_dead());
        if let Some(pid) = Pid::from_raw(pid).filter(|_| is_orphan) {
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}
