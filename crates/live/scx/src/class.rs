//! Threads in the kernel's extensible class: who is put there, and how they get back, whoever is killed.
//!
//! A session that schedules chosen threads puts them into the class SCHED_EXT, which all that they start inherit. Without a scheduler the
//! kernel runs them like all others; but the next scheduler would get them. As the kernel has one such scheduler at a time, all threads of
//! the class but those that were there before are the session's: to put them back, a file with exceptions is enough.
#![allow(unsafe_code)] // System calls that no crate here wraps.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ampsched_computer::{Proc, ThreadKey, ThreadStat};
use ampsched_model::InputError;
use serde::{Deserialize, Serialize};

/// `SCHED_EXT`, include/uapi/linux/sched.h.
const EXT: i32 = 7;
/// A flag beside the class, same file.
const RESET_ON_FORK: i32 = libc::SCHED_RESET_ON_FORK;
/// How often threads are looked for that were started while others were put back (ours; the second pass hardly ever finds any).
const PASSES_MAX: usize = 20;

/// The class of a thread (0: of the calling one), with its flag.
fn class_of(tid: i32) -> io::Result<i32> {
    // SAFETY: reads nothing of ours.
    match unsafe { libc::sched_getscheduler(tid) } {
        class @ 0.. => Ok(class),
        _ => Err(io::Error::last_os_error()),
    }
}

fn set_class(tid: i32, class: i32) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: reads the parameters.
    match unsafe { libc::sched_setscheduler(tid, class, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Puts the calling thread into the extensible class.
///
/// # Errors
///
/// The kernel has none, or the thread may not be changed.
pub fn choose_own() -> io::Result<()> {
    set_class(0, EXT)
}

/// A thread whose class was not the default one, or that belongs to the extensible class anyway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Exception {
    tid: i32,
    /// When it started, in clock ticks since boot.
    start_ticks: u64,
    class: i32,
}

/// The threads that a session has put into the class.
#[derive(Debug)]
pub struct Chosen {
    path: PathBuf,
    file: File,
}

impl Chosen {
    /// Nobody yet; threads that are in the class already are not the session's.
    ///
    /// # Errors
    ///
    /// The file exists already or cannot be made.
    pub fn create(path: &Path) -> Result<Self, InputError> {
        let file = File::options().append(true).create_new(true).open(path);
        let file = file.map_err(|error| wrong(path, &error))?;
        let mut chosen = Self { path: path.to_owned(), file };
        for stat in members(&Proc::default()) {
            chosen.except(stat.key, EXT).map_err(|error| wrong(path, &error))?;
        }
        Ok(chosen)
    }

    /// Puts a thread there unless it is already, or is of a class with fixed priorities or deadlines.
    ///
    /// # Errors
    ///
    /// It has ended, or may not be changed.
    pub fn take_in(&mut self, stat: &ThreadStat) -> io::Result<()> {
        let class = class_of(stat.key.tid)?;
        match class & !RESET_ON_FORK {
            libc::SCHED_OTHER | libc::SCHED_BATCH | libc::SCHED_IDLE => {}
            _ => return Ok(()),
        }
        if class != libc::SCHED_OTHER {
            self.except(stat.key, class)?;
        }
        set_class(stat.key.tid, EXT)
    }

    fn except(&mut self, key: ThreadKey, class: i32) -> io::Result<()> {
        let exception = Exception { tid: key.tid, start_ticks: key.start_ticks, class };
        let mut line = serde_json::to_string(&exception)?;
        line.push('\n');
        self.file.write_all(line.as_bytes())
    }

    /// Puts all back; returns how many.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn finish(self) -> Result<usize, InputError> {
        restore(&self.path)
    }
}

/// All threads of the extensible class.
fn members(proc: &Proc) -> Vec<ThreadStat> {
    let pids = fs::read_dir("/proc").into_iter().flatten();
    let pids = pids.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let threads = pids.flat_map(|pid| proc.threads(pid).into_iter().map(move |tid| (pid, tid)));
    let is_ours =
        |&(_, tid): &(i32, i32)| class_of(tid).is_ok_and(|class| class & !RESET_ON_FORK == EXT);
    threads
        .filter(is_ours)
        .filter_map(|(pid, tid)| proc.stat(pid, tid))
        .filter(|stat| !stat.is_dead())
        .collect()
}

/// Puts all threads back that a session has put into the class, and removes its file; returns how many. Nothing to do if there is no file.
///
/// # Errors
///
/// The file cannot be read.
pub fn restore(path: &Path) -> Result<usize, InputError> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(wrong(path, &error)),
    };
    // An unfinished last line names a thread that has not been touched.
    let exceptions: BTreeMap<i32, Exception> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .map(|exception: Exception| (exception.tid, exception))
        .collect();
    let (proc, mut count) = (Proc::default(), 0);
    for _ in 0..PASSES_MAX {
        let mut left = 0;
        for stat in members(&proc) {
            let class = class_before(&exceptions, &stat);
            if class & !RESET_ON_FORK != EXT && set_class(stat.key.tid, class).is_ok() {
                left += 1;
            }
        }
        count += left;
        if left == 0 {
            break;
        }
    }
    let _ = fs::remove_file(path);
    Ok(count)
}

/// What a thread was, or what it would be if those that started it had not been touched.
fn class_before(exceptions: &BTreeMap<i32, Exception>, stat: &ThreadStat) -> i32 {
    if let Some(own) = exceptions.get(&stat.key.tid)
        && own.start_ticks == stat.key.start_ticks
    {
        return own.class;
    }
    let inherited = [stat.pid, stat.parent].iter().find_map(|pid| exceptions.get(pid));
    inherited
        .filter(|exception| exception.start_ticks <= stat.key.start_ticks)
        .filter(|exception| exception.class & RESET_ON_FORK == 0)
        .map_or(libc::SCHED_OTHER, |exception| exception.class)
}

fn wrong(path: &Path, error: &dyn std::error::Error) -> InputError {
    InputError::new(path.display().to_string(), "", error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(tid: i32, pid: i32, parent: i32) -> ThreadStat {
        let key = ThreadKey { tid, start_ticks: 50 };
        let name = String::new();
        ThreadStat { key, pid, name, state: 'S', parent, group: 1, cpu: 0, nice: 0, cpu_ticks: 0 }
    }

    fn exceptions(rows: &[(i32, u64, i32)]) -> BTreeMap<i32, Exception> {
        rows.iter()
            .map(|&(tid, start_ticks, class)| (tid, Exception { tid, start_ticks, class }))
            .collect()
    }

    #[test]
    fn threads_get_their_own_class_back_or_that_of_who_started_them() {
        let known = exceptions(&[
            (7, 50, libc::SCHED_BATCH),
            (8, 40, libc::SCHED_IDLE),
            (9, 50, EXT),
            (10, 40, libc::SCHED_BATCH | RESET_ON_FORK),
            (11, 60, libc::SCHED_BATCH),
        ]);
        let before = |tid, pid, parent| class_before(&known, &stat(tid, pid, parent));
        assert_eq!(before(7, 7, 1), libc::SCHED_BATCH);
        assert_eq!(before(70, 7, 1), libc::SCHED_BATCH, "another thread of its process");
        assert_eq!(before(71, 71, 8), libc::SCHED_IDLE, "a child");
        assert_eq!(before(72, 72, 1), libc::SCHED_OTHER);
        assert_eq!(before(9, 9, 1), EXT, "it was there before");
        assert_eq!(before(73, 73, 10), libc::SCHED_OTHER, "children of those do not inherit");
        assert_eq!(before(11, 11, 1), libc::SCHED_OTHER, "a later thread with the same number");
    }

    #[test]
    fn without_a_file_there_is_nothing_to_put_back() {
        assert_eq!(restore(Path::new("/nonexistent/classes")).unwrap(), 0);
    }
}
