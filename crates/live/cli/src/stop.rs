//! `ampsched-live stop`.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use ampsched_live_session::{END_POLICY, FolderSettings, RunDir, print};
use ampsched_model::InputError;
use rustix::process::{Pid, kill_process};

/// How long a session may take to put everything back before `stop` gives up waiting (ours).
const TIMEOUT: Duration = Duration::from_secs(10);

/// Asks the running session to stop and waits until it has; its command goes on without a policy.
pub fn stop(settings: &FolderSettings) -> Result<ExitCode, InputError> {
    let folder = RunDir::new(settings);
    let Some(status) = folder.status()? else { return Err(nobody(&folder)) };
    let pid = Pid::from_raw(status.pid).expect("a session has a process");
    kill_process(pid, END_POLICY).map_err(|error| folder.wrong(&error))?;
    let started = Instant::now();
    while folder.status()?.is_some() {
        if started.elapsed() > TIMEOUT {
            let message = format!("process {} does not stop", status.pid);
            return Err(InputError::new("stop", "", message));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    print(&format!("stopped: {} (process {})\n", status.policy, status.pid))?;
    Ok(ExitCode::SUCCESS)
}

/// The error that there is no session.
pub fn nobody(folder: &RunDir) -> InputError {
    InputError::new(folder.path().display().to_string(), "", "no session runs")
        .with_hint("start one with 'ampsched-live run'")
}
