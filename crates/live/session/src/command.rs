//! The command that is run and scheduled, and the orphans that it leaves.

use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use ampsched_computer::{Proc, path_page};
use ampsched_model::InputError;
use ampsched_policy::Needs;
use rustix::process::{
    Pid, Signal, WaitOptions, getpgrp, kill_process, setpriority_process, waitpid,
};
use rustix::termios::tcgetpgrp;

use crate::identity::keep_capabilities_from;
use crate::signals::{Asked, Signals};
use crate::{Backend, Identity, service, tell};

/// Starts a command, if there is one, so that a back end schedules it, as some other user if need be. If the policy
/// reads paths of tasks, the command's runtime is asked to tell them.
pub fn start(
    words: &[String],
    identity: Option<&Identity>,
    needs: &Needs,
    backend: &impl Backend,
) -> Result<Option<Child>, InputError> {
    let Some((program, words)) = words.split_first() else { return Ok(None) };
    let mut command = Command::new(program);
    command.args(words);
    if needs.paths {
        command.env(path_page::TELL_PATHS, "1");
    }
    service::keep_from(&mut command);
    // What the back end does to itself may take rights that are given up afterwards.
    backend.prepare(&mut command)?;
    keep_capabilities_from(&mut command);
    if let Some(identity) = identity {
        identity.give(&mut command);
    }
    let wrong = |error| InputError::new(program, "", format!("cannot be run: {error}"));
    command.spawn().map(Some).map_err(wrong)
}

/// The exit code of a command as shells give it: 128 + the signal that ended it.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().map(|code| u8::try_from(code).unwrap_or(u8::MAX));
    code.unwrap_or_else(|| exit_code_of(status.signal().unwrap_or(0)))
}

/// The exit code of a process that was ended by a signal, as shells give it.
fn exit_code_of(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

/// How long a session that is told to end waits for its command (ours): all is over in half a second.
const GRACE: Duration = Duration::from_millis(250);

/// The exit code of a session whose command has `ended`, or has not because the policy has been ended before: then that
/// goes on without, and is waited for. A signal that asks to end is passed on, and is the exit code, as shells give it.
pub fn wait_for(
    program: &str,
    mut child: Option<Child>,
    mut ended: Option<ExitStatus>,
    signals: &mut Signals,
) -> Result<ExitCode, InputError> {
    loop {
        if let Some(Asked::End(signal)) = signals.asked() {
            if let (None, Some(running)) = (ended, child) {
                end(program, running, signal, signals)?;
            }
            return Ok(ExitCode::from(exit_code_of(signal.as_raw())));
        }
        let (None, Some(running)) = (ended, &mut child) else {
            return Ok(ended.map_or(ExitCode::SUCCESS, |status| ExitCode::from(exit_code(status))));
        };
        ended = status_of(running)?;
        if ended.is_none() {
            signals.sleep(Duration::from_secs(1));
        }
    }
}

/// How a command has ended; none if it has not.
pub fn status_of(child: &mut Child) -> Result<Option<ExitStatus>, InputError> {
    let status = ended(child.try_wait());
    status.map_err(|error| InputError::new("command", "", error.to_string()))
}

/// What a look at a child has shown. One that a signal has interrupted shows nothing, and is repeated the next time.
pub fn ended(look: io::Result<Option<ExitStatus>>) -> io::Result<Option<ExitStatus>> {
    match look {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
        look => look,
    }
}

/// Passes a signal on to a command, and gives it a little time to end.
fn end(
    program: &str,
    mut child: Child,
    signal: Signal,
    signals: &mut Signals,
) -> Result<(), InputError> {
    if status_of(&mut child)?.is_some() {
        return Ok(());
    }
    if !terminal_has_sent(signal) {
        // It may have ended this moment.
        let _ = kill_process(Pid::from_child(&child), signal);
    }
    let asked = Instant::now();
    while status_of(&mut child)?.is_none() {
        match GRACE.checked_sub(asked.elapsed()) {
            Some(rest) => signals.sleep(rest),
            None => {
                tell(program, format_args!("process {} goes on without a policy", child.id()));
                break;
            }
        }
    }
    Ok(())
}

/// Whether a signal comes from the terminal's keyboard, which sends it to the whole group in the foreground: most
/// programs would take a second one for impatience. Nobody can tell who has sent it, but a session in the foreground
/// gets no other.
fn terminal_has_sent(signal: Signal) -> bool {
    let in_front = || tcgetpgrp(File::open("/dev/tty").ok()?).ok();
    signal == Signal::INT && in_front().is_some_and(|group| group == getpgrp())
}

/// Nice value of a session, if it may have it: it works little, and its decisions are worth less the later they come
/// (ours).
const OWN_NICE: i32 = -10;

/// Puts the session before others, once its command has been started and has a nice value of its own.
pub fn prefer_own() {
    // Without the privilege it stays as it is.
    let _ = setpriority_process(None, OWN_NICE);
}

/// Takes note of the ends of orphans, but leaves the ends of `own` children to the code that started them.
pub fn reap_orphans(proc: &Proc, own: &[i32]) {
    for pid in proc.children(std::process::id() as i32).unwrap_or_default() {
        let is_orphan = !own.contains(&pid) && proc.process(pid).is_ok_and(|stat| stat.is_dead());
        if let Some(pid) = Pid::from_raw(pid).filter(|_| is_orphan) {
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h34_a_look_that_is_interrupted_shows_nothing() {
        assert_eq!(ended(Err(io::ErrorKind::Interrupted.into())).unwrap(), None);
        let status = ExitStatus::from_raw(0);
        assert_eq!(ended(Ok(Some(status))).unwrap(), Some(status));
        assert!(ended(Err(io::ErrorKind::PermissionDenied.into())).is_err());
    }
}
