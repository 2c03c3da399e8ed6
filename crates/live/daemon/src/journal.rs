//! What has been touched, and what it was before: one JSON object per line, written before each touch.
//!
//! The file is not synchronised with a disk: it has to survive the process, not the computer, which forgets all
//! that is touched here when it starts anew.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ampsched_computer::{CgroupVersion, ThreadKey};
use ampsched_model::InputError;
use serde::{Deserialize, Serialize};

/// Something that is about to be touched for the first time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Touch {
    /// A thread's CPUs and nice value.
    Thread {
        /// Its process.
        pid: i32,
        /// Its number.
        tid: i32,
        /// When it started, in clock ticks since boot.
        start_ticks: u64,
        /// The CPUs that it could use.
        cpus: String,
        /// Its nice value.
        nice: i32,
    },
    /// A set of CPUs that threads of a process get; new threads inherit it.
    GivenCpus {
        /// The process.
        pid: i32,
        /// The CPUs.
        cpus: String,
    },
    /// A nice value that threads of a process get; new threads inherit it.
    GivenNice {
        /// The process.
        pid: i32,
        /// The nice value.
        nice: i32,
    },
    /// A cgroup that is made to freeze threads.
    Cgroup {
        /// Of which interface.
        v1: bool,
        /// Its folder.
        folder: PathBuf,
    },
    /// A thread (version 1) or process (version 2) that goes to the frozen cgroup.
    Moved {
        /// Of which interface.
        v1: bool,
        /// Its number.
        tid: i32,
        /// When it started, in clock ticks since boot.
        start_ticks: u64,
        /// The folder of the cgroup in which it was.
        from: PathBuf,
    },
    /// A process that is stopped by SIGSTOP.
    Stopped {
        /// The process.
        pid: i32,
        /// When it started, in clock ticks since boot.
        start_ticks: u64,
    },
    /// An instance of tracing that is made.
    Tracing {
        /// Its folder.
        folder: PathBuf,
    },
    /// A file of cpufreq.
    Clock {
        /// The file.
        file: PathBuf,
        /// What it said.
        text: String,
    },
}

impl Touch {
    /// The touch of a thread.
    pub fn moved(version: CgroupVersion, key: ThreadKey, from: PathBuf) -> Self {
        let v1 = version == CgroupVersion::V1;
        Self::Moved { v1, tid: key.tid, start_ticks: key.start_ticks, from }
    }
}

/// The open journal of a running session.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Starts an empty one. Errors: the file exists already or cannot be made.
    pub fn create(path: &Path) -> Result<Self, InputError> {
        let file = File::options().append(true).create_new(true).open(path);
        let file = file.map_err(|error| wrong(path, &error))?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Writes an entry; afterwards it can be touched.
    pub fn write(&mut self, touch: &Touch) -> io::Result<()> {
        let mut line = serde_json::to_string(touch)?;
        line.push('\n');
        self.file.write_all(line.as_bytes())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads a file; none if there is none. An unfinished last line, of a process that was killed while it wrote, is left out:
    /// what it names has not been touched.
    ///
    /// Errors: the file cannot be read, or a finished line is not an entry.
    pub fn read(path: &Path) -> Result<Option<Vec<Touch>>, InputError> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(wrong(path, &error)),
        };
        let finished = text.rfind('\n').map_or("", |end| &text[..end]);
        let entry = |(number, line): (usize, &str)| {
            serde_json::from_str(line).map_err(|error| wrong(path, &error).at_line(number + 1))
        };
        finished.lines().enumerate().map(entry).collect::<Result<_, _>>().map(Some)
    }
}

fn wrong(path: &Path, error: &dyn std::error::Error) -> InputError {
    InputError::new(path.display().to_string(), "", error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_half_a_line_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        assert_eq!(Journal::read(&path).unwrap(), None);
        let mut journal = Journal::create(&path).unwrap();
        let first = Touch::Stopped { pid: 7, start_ticks: 9 };
        journal.write(&first).unwrap();
        journal.file.write_all(b"{\"stopped\":{\"pid\":8").unwrap();
        assert_eq!(Journal::read(&path).unwrap(), Some(vec![first]));
        let error = Journal::create(&path).unwrap_err().to_string();
        assert!(error.contains("File exists"), "{error}");
    }

    #[test]
    fn a_broken_line_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        fs::write(&path, "{\"stopped\":{\"pid\":8,\"start_ticks\":1}}\nrubbish\n").unwrap();
        let error = Journal::read(&path).unwrap_err().to_string();
        assert!(error.contains("journal:2: "), "{error}");
    }
}
