//! The folder of a running session: its lock, its journal and what it tells about itself.
//!
//! A folder has one session at a time; the kernel takes the lock away from a session that ends, however it ends.

use std::fs::{self, DirBuilder, File};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use ampsched_computer::{Proc, ThreadKey};
use ampsched_model::InputError;
use rustix::fs::{FlockOperation, flock};

use crate::{FolderSettings, Status};

const STATUS: &str = "status.json";
/// How names of journals begin; the program and its process number follow.
const JOURNAL: &str = "journal-";

/// The folder of sessions.
#[derive(Clone, Debug)]
pub struct RunDir {
    path: PathBuf,
}

/// A journal that a session has left behind.
pub(crate) struct Left {
    /// The file.
    pub journal: PathBuf,
    /// The program that restores from it.
    pub program: String,
}

/// Held while a session runs.
pub struct Lock {
    _file: File,
}

impl RunDir {
    /// As given, or where the user's sessions are by default.
    pub fn new(settings: &FolderSettings) -> Self {
        let user = rustix::process::getuid();
        let by_default = || match (user.is_root(), std::env::var_os("XDG_RUNTIME_DIR")) {
            (true, _) => PathBuf::from("/run/ampsched"),
            (false, Some(folder)) => PathBuf::from(folder).join("ampsched"),
            (false, None) => std::env::temp_dir().join(format!("ampsched-{}", user.as_raw())),
        };
        Self { path: settings.run_dir.clone().unwrap_or_else(by_default) }
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

    /// The journal of this process's session. Its name says which program restores from it.
    pub fn journal(&self, program: &str) -> PathBuf {
        self.path.join(format!("{JOURNAL}{program}-{}", std::process::id()))
    }

    /// Journals of sessions that are gone. Errors: the folder is somebody else's.
    pub(crate) fn left(&self) -> Result<Vec<Left>, InputError> {
        let Ok(entries) = fs::read_dir(&self.path) else { return Ok(Vec::new()) };
        self.check_owner()?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let journal = |name: String| {
            let (program, _) = name.strip_prefix(JOURNAL)?.rsplit_once('-')?;
            Some(Left { journal: self.path.join(&name), program: program.to_owned() })
        };
        Ok(names.filter_map(journal).collect())
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

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// An error of the system about the folder.
    pub fn wrong(&self, error: &dyn std::error::Error) -> InputError {
        let hint = "give a folder that you may write with --run-dir";
        InputError::new(self.path.display().to_string(), "", error.to_string()).with_hint(hint)
    }
}
