//! The folder of a running session: its lock, its journal and what it tells about itself.
//!
//! A folder has one session at a time; the kernel takes the lock away from a session that ends, however it ends.

use std::fs::{self, DirBuilder, File};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use ampsched_computer::{Proc, ThreadKey};
use ampsched_live_daemon::{Restored, Status, restore_file};
use ampsched_model::InputError;
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};

use crate::args::FolderArgs;
use crate::command::kernel_program;

const STATUS: &str = "status.json";
const JOURNAL: &str = "journal-";
const CLASSES: &str = "classes-";

/// How long a session may take to put everything back before `stop` gives up waiting (ours).
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// The folder of sessions.
#[derive(Clone, Debug)]
pub struct RunDir {
    path: PathBuf,
}

/// Held while a session runs.
pub struct Lock {
    _file: File,
}

impl RunDir {
    /// As given, or where the user's sessions are by default.
    pub fn new(args: &FolderArgs) -> Self {
        let user = rustix::process::getuid();
        let by_default = || match (user.is_root(), std::env::var_os("XDG_RUNTIME_DIR")) {
            (true, _) => PathBuf::from("/run/ampsched"),
            (false, Some(folder)) => PathBuf::from(folder).join("ampsched"),
            (false, None) => std::env::temp_dir().join(format!("ampsched-{}", user.as_raw())),
        };
        Self { path: args.run_dir.clone().unwrap_or_else(by_default) }
    }

    /// Takes the folder for a session. Errors: it cannot be made, or another session runs.
    pub fn lock(&self) -> Result<Lock, InputError> {
        self.make()?;
        let file = File::create(self.path.join("lock")).map_err(|error| self.wrong(&error))?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            let who = self
                .status()?
                .map_or_else(String::new, |status| format!(" (process {})", status.pid));
            let message = format!("another session runs{who}");
            return Err(InputError::new(self.path.display().to_string(), "", message).with_hint(
                "stop it with 'ampsched-live stop', or give this one its own --run-dir",
            ));
        }
        Ok(Lock { _file: file })
    }

    /// Makes the folder for nobody else: whoever could write a journal could have anything written.
    fn make(&self) -> Result<(), InputError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.path);
        made.map_err(|error| self.wrong(&error))?;
        self.check_owner()
    }

    fn check_owner(&self) -> Result<(), InputError> {
        let owner = fs::metadata(&self.path).map_err(|error| self.wrong(&error))?.uid();
        if owner == rustix::process::getuid().as_raw() {
            return Ok(());
        }
        let message = format!("the folder belongs to user {owner}");
        Err(InputError::new(self.path.display().to_string(), "", message)
            .with_hint("give a folder of your own with --run-dir"))
    }

    /// The journal of this process's session.
    pub fn journal(&self) -> PathBuf {
        self.path.join(format!("{JOURNAL}{}", std::process::id()))
    }

    /// Where this process's session in the kernel notes whose scheduling class it has changed.
    pub fn classes(&self) -> PathBuf {
        self.path.join(format!("{CLASSES}{}", std::process::id()))
    }

    /// Such notes of sessions that are gone.
    pub fn left_classes(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let is_such =
            |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(CLASSES);
        entries.filter(is_such).map(|entry| entry.path()).collect()
    }

    /// Writes what a session tells about itself; readers see the old or the new text.
    pub fn write_status(&self, status: &Status) -> std::io::Result<()> {
        let new = self.path.join("status.new");
        fs::write(&new, serde_json::to_string(status)?)?;
        fs::rename(new, self.path.join(STATUS))
    }

    /// What the running session tells about itself; none if none runs.
    pub fn status(&self) -> Result<Option<Status>, InputError> {
        let text = match fs::read_to_string(self.path.join(STATUS)) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.wrong(&error)),
        };
        let status: Status = serde_json::from_str(&text).map_err(|error| self.wrong(&error))?;
        let key = ThreadKey { tid: status.pid, start_ticks: status.start_ticks };
        let process = Proc::default().process(status.pid);
        let runs = process.is_some_and(|stat| stat.key == key && !stat.is_dead());
        Ok(runs.then_some(status))
    }

    /// Forgets the status of a session that has ended.
    pub fn clear_status(&self) {
        let _ = fs::remove_file(self.path.join(STATUS));
    }

    /// Puts back what sessions have left behind that are gone with their guardians.
    pub fn restore_remains(&self) -> Result<Vec<Restored>, InputError> {
        let Ok(entries) = fs::read_dir(&self.path) else { return Ok(Vec::new()) };
        self.check_owner()?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let journals = names.filter(|name| name.starts_with(JOURNAL));
        let mut restored = Vec::new();
        for name in journals {
            restored.extend(restore_file(&self.path.join(name))?);
        }
        Ok(restored)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn wrong(&self, error: &dyn std::error::Error) -> InputError {
        let hint = "give a folder that you may write with --run-dir";
        InputError::new(self.path.display().to_string(), "", error.to_string()).with_hint(hint)
    }
}

/// Says what has been put back, and what not.
pub fn report(restored: &Restored) {
    eprintln!(
        "ampsched-live: put back: CPUs and nice values of {} threads, {} let go on, {} settings of clocks",
        restored.threads, restored.released, restored.clocks
    );
    for failure in &restored.failures {
        eprintln!("ampsched-live: not put back: {failure}");
    }
}

/// `ampsched-live stop`.
pub fn stop(args: &FolderArgs) -> Result<ExitCode, InputError> {
    let folder = RunDir::new(args);
    let Some(status) = folder.status()? else { return Err(nobody(&folder)) };
    let pid = Pid::from_raw(status.pid).expect("a session has a process");
    kill_process(pid, Signal::TERM).map_err(|error| folder.wrong(&error))?;
    let started = Instant::now();
    while folder.status()?.is_some() {
        if started.elapsed() > STOP_TIMEOUT {
            let message = format!("process {} does not stop", status.pid);
            return Err(InputError::new("stop", "", message));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    println!("stopped: {} (process {})", status.policy, status.pid);
    Ok(ExitCode::SUCCESS)
}

/// The error that there is no session.
pub fn nobody(folder: &RunDir) -> InputError {
    InputError::new(folder.path().display().to_string(), "", "no session runs")
        .with_hint("start one with 'ampsched-live run'")
}

/// `ampsched-live restore`.
pub fn restore_remains(args: &FolderArgs) -> Result<ExitCode, InputError> {
    let folder = RunDir::new(args);
    if let Some(status) = folder.status()? {
        let message = format!("a session runs (process {})", status.pid);
        return Err(InputError::new(folder.path().display().to_string(), "", message)
            .with_hint("'ampsched-live stop' puts back what it has touched"));
    }
    let all = folder.restore_remains()?;
    all.iter().for_each(report);
    let in_kernel = !folder.left_classes().is_empty();
    if all.is_empty() && !in_kernel {
        println!("nothing to put back");
    }
    let mut failed = all.iter().any(|restored| !restored.failures.is_empty());
    if in_kernel {
        failed |= !restore_classes(&folder)?;
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Lets the program for the kernel put scheduling classes back; whether it could.
fn restore_classes(folder: &RunDir) -> Result<bool, InputError> {
    let program = kernel_program();
    let mut command = Command::new(&program);
    let done = command.arg("restore").arg("--run-dir").arg(folder.path()).status();
    let wrong = |error: std::io::Error| {
        InputError::new(program.display().to_string(), "", format!("cannot be run: {error}"))
            .with_hint("it puts scheduling classes back")
    };
    Ok(done.map_err(wrong)?.success())
}
