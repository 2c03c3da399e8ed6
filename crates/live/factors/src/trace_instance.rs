//! A trace instance of one's own (Documentation/trace/ftrace.rst): futex calls and wake-ups of some threads.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use ampsched_model::Ns;
use rustix::fs::OFlags;

use crate::Blame;

/// The events that tell who waits for whom.
const EVENTS: [&str; 3] =
    ["syscalls/sys_enter_futex", "syscalls/sys_exit_futex", "sched/sched_waking"];

/// Buffer per CPU in KiB (ours): some 40,000 events, 100 ms of a program that does nothing but lock.
const BUFFER_KIB: u32 = 4096;

/// Follows the futex calls of threads and of all that they start.
#[derive(Debug)]
pub struct FutexTrace {
    folder: PathBuf,
    pipe: File,
    /// What was read last and is not a whole line yet.
    rest: Vec<u8>,
    blame: Blame,
}

impl FutexTrace {
    /// Where an instance of that name is, below the folder of tracefs.
    pub fn folder(tracefs: &Path, name: &str) -> PathBuf {
        tracefs.join("instances").join(name)
    }

    /// Makes the instance; nobody is followed yet. Errors: the kernel lacks an event, or this process may not.
    pub fn start(folder: PathBuf) -> io::Result<Self> {
        fs::create_dir(&folder)?;
        let started = Self::configure(&folder);
        if started.is_err() {
            let _ = fs::remove_dir(&folder);
        }
        let pipe = started?;
        Ok(Self { folder, pipe, rest: Vec::new(), blame: Blame::default() })
    }

    fn configure(folder: &Path) -> io::Result<File> {
        let write = |name: &str, text: &str| fs::write(folder.join(name), text);
        write("trace_clock", "mono")?;
        write("buffer_size_kb", &BUFFER_KIB.to_string())?;
        write("options/event-fork", "1")?;
        // Nobody has that number; without any, everybody would be followed.
        write("set_event_pid", "0")?;
        for event in EVENTS {
            write(&format!("events/{event}/enable"), "1")?;
        }
        let flags = OFlags::NONBLOCK.bits() as i32;
        OpenOptions::new().read(true).custom_flags(flags).open(folder.join("trace_pipe"))
    }

    /// Follows one more thread.
    pub fn follow(&mut self, tid: i32) -> io::Result<()> {
        let mut file = OpenOptions::new().append(true).open(self.folder.join("set_event_pid"))?;
        file.write_all(format!("{tid}\n").as_bytes())
    }

    /// How long others have waited for each thread since the last time, in ns.
    pub fn take(&mut self) -> io::Result<BTreeMap<i32, Ns>> {
        let mut bytes = [0; 1 << 16];
        loop {
            match self.pipe.read(&mut bytes) {
                Ok(0) => break,
                Ok(count) => self.rest.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let end = self.rest.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        for line in String::from_utf8_lossy(&self.rest[..end]).lines() {
            self.blame.read(line);
        }
        self.rest.drain(..end);
        Ok(self.blame.take())
    }

    /// Events that the kernel had no room for.
    pub fn lost(&self) -> u64 {
        self.blame.lost()
    }
}
