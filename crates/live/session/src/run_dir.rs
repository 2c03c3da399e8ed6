//! The folder of a running session: its lock, its journal and what it tells about itself.
//!
//! A folder has one session at a time; the kernel takes the lock away from a session that ends, however it ends.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ampsched_computer::{Proc, ThreadKey, unless_gone};
use ampsched_model::InputError;
use rustix::fs::{FlockOperation, flock};

use crate::folder::{Folder, Owner};
use crate::journal::JournalFile;
use crate::{FolderSettings, Status};

const LOCK: &str = "lock";
const STATUS: &str = "status.json";
const NEW_STATUS: &str = "status.new";
/// How names of journals begin; the program, its process number and when that started follow.
const JOURNAL: &str = "journal-";

/// The folder of sessions.
#[derive(Clone, Debug)]
pub struct RunDir {
    path: PathBuf,
}

/// A journal that a session has left behind.
#[derive(Debug)]
pub(crate) struct Left {
    /// The file.
    pub journal: JournalFile,
    /// The program that restores from it.
    pub program: String,
}

/// The folder while a session has it, or while a process puts back what sessions have left there.
#[derive(Debug)]
pub struct Lock {
    folder: Arc<Folder>,
    _file: File,
}

/// The program that restores from a journal of that name; none if it is no journal's.
pub(crate) fn program_of(name: &str) -> Option<&str> {
    name.strip_prefix(JOURNAL)?.rsplit_once('-').map(|(program, _)| program)
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

    /// Takes the folder for a session, and makes it if there is none.
    ///
    /// # Errors
    ///
    /// It cannot be made, others can write in it, or another session runs.
    pub fn lock(&self) -> Result<Lock, InputError> {
        self.take(Folder::make(&self.path)?)
    }

    /// The same, but for a folder that is there; none if it is not.
    ///
    /// # Errors
    ///
    /// As for [`lock`](Self::lock).
    pub(crate) fn lock_if_there(&self) -> Result<Option<Lock>, InputError> {
        let folder = Folder::open(&self.path, Owner::Own)?;
        folder.map(|folder| self.take(folder)).transpose()
    }

    fn take(&self, folder: Folder) -> Result<Lock, InputError> {
        let wrong = |error| InputError { key: LOCK.to_owned(), ..folder.wrong(&error) };
        let file = folder.write(LOCK).map_err(wrong)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            let who = self
                .status()?
                .map_or_else(String::new, |status| format!(" (process {})", status.pid));
            let message = format!("another session runs{who}");
            return Err(InputError::new(self.path.display().to_string(), "", message).with_hint(
                "stop it with 'ampsched-live stop', or give this one its own --run-dir",
            ));
        }
        Ok(Lock { folder: Arc::new(folder), _file: file })
    }

    /// What the running session tells about itself; none if none runs.
    ///
    /// # Errors
    ///
    /// Others than its owner and root can write in the folder, or the status cannot be read.
    pub fn status(&self) -> Result<Option<Status>, InputError> {
        let Some(folder) = Folder::open(&self.path, Owner::OwnOrRoot)? else { return Ok(None) };
        let mut text = String::new();
        let read = folder.read(STATUS, Owner::OwnOrRoot);
        match read.and_then(|mut file| file.read_to_string(&mut text)) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.wrong(&error)),
        }
        let status: Status = serde_json::from_str(&text).map_err(|error| self.wrong(&error))?;
        let key = ThreadKey { tid: status.pid, start_ticks: status.start_ticks };
        let process = unless_gone(Proc::default().process(status.pid));
        let process = process.map_err(|error| self.wrong(&error))?;
        let runs = process.is_some_and(|stat| stat.key == key && !stat.is_dead());
        Ok(runs.then_some(status))
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

impl Lock {
    /// The journal of a process's session. Its name says which program restores from it.
    pub(crate) fn journal(&self, program: &str, session: ThreadKey) -> JournalFile {
        let name = format!("{JOURNAL}{program}-{}.{}", session.tid, session.start_ticks);
        JournalFile::new(Arc::clone(&self.folder), name)
    }

    /// Journals of sessions that are gone.
    ///
    /// # Errors
    ///
    /// The folder cannot be read.
    pub(crate) fn left(&self) -> Result<Vec<Left>, InputError> {
        let names = self.folder.names().map_err(|error| self.folder.wrong(&error))?;
        let journal = |name: String| {
            let program = program_of(&name)?.to_owned();
            Some(Left { journal: JournalFile::new(Arc::clone(&self.folder), name), program })
        };
        Ok(names.into_iter().filter_map(journal).collect())
    }

    /// Writes what a session tells about itself; readers see the old or the new text.
    ///
    /// # Errors
    ///
    /// It cannot be written; readers see the old text.
    pub fn write_status(&self, status: &Status) -> io::Result<()> {
        let text = serde_json::to_string(status)?;
        // What is there is of a session that has ended, or nobody's business.
        match self.folder.remove(NEW_STATUS) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let written = self.folder.create(NEW_STATUS, true)?.write_all(text.as_bytes());
        let renamed = written.and_then(|()| self.folder.rename(NEW_STATUS, STATUS));
        if renamed.is_err() {
            // A disk that is full gets its space back.
            let _ = self.folder.remove(NEW_STATUS);
        }
        renamed
    }

    /// Forgets the status of a session that has ended.
    pub fn clear_status(&self) {
        let _ = self.folder.remove(STATUS);
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}
