//! Threads in the kernel's extensible class: which are put there, and how they get back, whichever process is killed.
//!
//! A session that schedules chosen threads puts them into the class SCHED_EXT, which all that they start inherit.
//! Without a scheduler the kernel runs them like all others; but the next scheduler would get them. As the kernel has
//! one such scheduler at a time, all threads of the class but those that were there before are the session's: to put
//! them back, a journal of the exceptions is enough.
#![allow(unsafe_code)] // System calls that no crate here wraps.

use std::collections::BTreeMap;
use std::io;

use ampsched_computer::{Proc, Root, ThreadKey, ThreadStat, is_gone};
use ampsched_live_session::{ClockTouch, Journal, PutBack};
use serde::{Deserialize, Serialize};

/// `SCHED_EXT`, include/uapi/linux/sched.h.
const EXT: i32 = 7;
/// A flag beside the class, same file.
const RESET_ON_FORK: i32 = libc::SCHED_RESET_ON_FORK;
/// How often threads are looked for that were started while others were put back (ours; the second pass hardly ever
/// finds any).
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

/// What a session touches by choosing threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Touch {
    /// From now on threads are put into the class. Without it nobody of the class is the session's.
    Choosing,
    /// A thread whose class was not the default one, or that belongs to the extensible class anyway.
    Exception {
        /// Which.
        thread: ThreadKey,
        /// Its class, with its flag.
        class: i32,
    },
    /// A limit of a clock.
    Clock(ClockTouch),
}

impl From<ClockTouch> for Touch {
    fn from(touch: ClockTouch) -> Self {
        Self::Clock(touch)
    }
}

/// The threads that a session has put into the class.
#[derive(Debug)]
pub struct Chosen;

impl Chosen {
    /// Nobody yet; threads that are in the class already are not the session's.
    ///
    /// # Errors
    ///
    /// The journal cannot be written.
    pub fn begin(journal: &mut Journal<Touch>) -> io::Result<Self> {
        let (members, wrong) = members(&Proc::default());
        wrong.map_or(Ok(()), Err)?;
        for stat in members {
            journal.write(&Touch::Exception { thread: stat.key, class: EXT })?;
        }
        journal.write(&Touch::Choosing)?;
        Ok(Self)
    }

    /// Puts a thread there unless it is already, or is of a class with fixed priorities or deadlines. It is written to
    /// the journal who is an exception.
    ///
    /// # Errors
    ///
    /// It has ended, or may not be changed, or the journal cannot be written.
    pub fn take_in(&self, stat: &ThreadStat, journal: &mut Journal<Touch>) -> io::Result<()> {
        let class = class_of(stat.key.tid)?;
        match class & !RESET_ON_FORK {
            libc::SCHED_OTHER | libc::SCHED_BATCH | libc::SCHED_IDLE => {}
            _ => return Ok(()),
        }
        if class != libc::SCHED_OTHER {
            journal.write(&Touch::Exception { thread: stat.key, class })?;
        }
        set_class(stat.key.tid, EXT)
    }
}

/// All threads of the extensible class, and why there may be others: of which that cannot be told.
fn members(proc: &Proc) -> (Vec<ThreadStat>, Option<io::Error>) {
    let (mut found, mut wrong) = (Vec::new(), None);
    let mut noted = |error: io::Error| {
        if !is_gone(&error) {
            wrong = Some(error);
        }
    };
    for pid in proc.processes().map_err(&mut noted).unwrap_or_default() {
        for tid in proc.threads(pid).map_err(&mut noted).unwrap_or_default() {
            let is_ours = |class| class & !RESET_ON_FORK == EXT;
            if class_of(tid).map_err(&mut noted).is_ok_and(is_ours) {
                found.extend(proc.stat(pid, tid).map_err(&mut noted));
            }
        }
    }
    found.retain(|stat| !stat.is_dead());
    (found, wrong)
}

/// Puts all threads back that a session has put into the class.
pub fn put_back(touches: &[Touch]) -> PutBack {
    let is_choosing = touches.contains(&Touch::Choosing);
    let (exceptions, proc) = (exceptions(touches), Proc::default());
    // Those that cannot be put back, by their numbers: the next pass may still succeed.
    let (mut count, mut failures) = (0, BTreeMap::new());
    for _ in 0..if is_choosing { PASSES_MAX } else { 0 } {
        let mut done = 0;
        failures.clear();
        let (members, wrong) = members(&proc);
        failures.extend(wrong.map(|error| (0, format!("scheduling classes: {error}"))));
        for stat in members {
            let class = class_before(&exceptions, &stat);
            if class & !RESET_ON_FORK == EXT {
                continue;
            }
            match set_class(stat.key.tid, class) {
                Ok(()) => done += 1,
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) => {
                    let what = format!("scheduling class of thread {}: {error}", stat.key.tid);
                    failures.insert(stat.key.tid, what);
                }
            }
        }
        count += done;
        if done == 0 {
            break;
        }
    }
    let what = format!("scheduling class of {count} threads");
    PutBack { what, failures: failures.into_values().collect() }
}

/// Puts clocks back; returns how many limits, and what could not be put back, and why.
pub fn put_clocks_back(touches: &[Touch], root: &Root) -> (usize, Vec<String>) {
    let (mut count, mut failures) = (0, Vec::new());
    for touch in touches.iter().rev() {
        let Touch::Clock(clock) = touch else { continue };
        match clock.put_back(root) {
            Ok(()) => count += 1,
            Err(error) => failures.push(format!("{}: {error}", clock.file(root).display())),
        }
    }
    (count, failures)
}

/// What of a journal still has to be put back: all but exceptions that have ended.
pub fn outstanding(mut touches: Vec<Touch>, proc: &Proc) -> Vec<Touch> {
    touches.retain(|touch| match touch {
        Touch::Choosing | Touch::Clock(_) => true,
        Touch::Exception { thread, .. } => !proc.has_ended(*thread),
    });
    touches
}

/// The classes of exceptions, by the numbers of their threads.
fn exceptions(touches: &[Touch]) -> BTreeMap<i32, (ThreadKey, i32)> {
    let exception = |touch: &Touch| match *touch {
        Touch::Exception { thread, class } => Some((thread.tid, (thread, class))),
        Touch::Choosing | Touch::Clock(_) => None,
    };
    touches.iter().filter_map(exception).collect()
}

/// What a thread was, or what it would be if those that started it had not been touched.
fn class_before(exceptions: &BTreeMap<i32, (ThreadKey, i32)>, stat: &ThreadStat) -> i32 {
    let own = exceptions.get(&stat.key.tid);
    if let Some((_, class)) = own.filter(|(thread, _)| *thread == stat.key) {
        return *class;
    }
    let inherited = [stat.pid, stat.parent].iter().find_map(|pid| exceptions.get(pid));
    inherited
        .filter(|(thread, _)| thread.start_ticks <= stat.key.start_ticks)
        .filter(|(_, class)| class & RESET_ON_FORK == 0)
        .map_or(libc::SCHED_OTHER, |(_, class)| *class)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use ampsched_live_session::Limit;

    use super::*;

    fn stat(tid: i32, pid: i32, parent: i32) -> ThreadStat {
        let key = ThreadKey { tid, start_ticks: 50 };
        let name = String::new();
        ThreadStat { key, pid, name, state: 'S', parent, group: 1, cpu: 0, nice: 0, cpu_ticks: 0 }
    }

    fn excepted(rows: &[(i32, u64, i32)]) -> BTreeMap<i32, (ThreadKey, i32)> {
        let touch = |&(tid, start_ticks, class)| {
            let thread = ThreadKey { tid, start_ticks };
            Touch::Exception { thread, class }
        };
        exceptions(&rows.iter().map(touch).collect::<Vec<_>>())
    }

    #[test]
    fn threads_get_their_own_class_back_or_that_of_who_started_them() {
        let known = excepted(&[
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
    fn clocks_are_put_back_the_greatest_first() {
        let folder = std::env::temp_dir().join(format!("ampsched-clocks-{}", std::process::id()));
        let root = Root::new(&folder);
        let touch = |limit, khz| ClockTouch { policy: 3, limit, khz };
        let touches = [touch(Limit::Least, 200_000), touch(Limit::Greatest, 2_000_000)];
        let files = touches.map(|touch| touch.file(&root));
        fs::create_dir_all(files[0].parent().unwrap()).unwrap();
        fs::write(&files[1], "1\n").unwrap();
        let (count, failures) = put_clocks_back(&touches.map(Touch::from), &root);
        let greatest = fs::read_to_string(&files[1]).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!((count, greatest.as_str()), (1, "2000000"));
        assert_eq!(failures.len(), 1, "one of them is not there any more: {failures:?}");
        assert!(failures[0].contains("scaling_min_freq"), "{failures:?}");
    }

    #[test]
    fn without_having_chosen_nobody_is_put_back() {
        let thread = ThreadKey { tid: 1, start_ticks: 1 };
        let put_back = put_back(&[Touch::Exception { thread, class: EXT }]);
        assert_eq!(put_back.what, "scheduling class of 0 threads");
        assert!(put_back.failures.is_empty());
    }
}
