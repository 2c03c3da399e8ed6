//! The few system calls, each on a thread that must still be the one that is meant.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use ampsched_computer::{Proc, ThreadKey, ThreadStat, is_gone, unless_gone};
use rustix::process::{Pid, Signal, kill_process, setpriority_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

fn pid(number: i32) -> io::Result<Pid> {
    let pid = if number > 0 { Pid::from_raw(number) } else { None };
    pid.ok_or_else(|| io::Error::other("not a thread"))
}

/// A thread if it is (still) the one that is meant; none if it has ended, or another one has its number.
///
/// # Errors
///
/// That cannot be told.
pub fn find(proc: &Proc, key: ThreadKey) -> io::Result<Option<ThreadStat>> {
    let found = match unless_gone(proc.task(key.tid))? {
        Some(stat) => Some(stat),
        None if cpus_of(key.tid).is_err_and(|error| is_gone(&error)) => None,
        // Another one has just got its number, or `/proc` hides threads of others (its option `hidepid`).
        None => Some(proc.task(key.tid).map_err(|error| match is_gone(&error) {
            true => io::Error::other("/proc does not show it"),
            false => error,
        })?),
    };
    Ok(found.filter(|stat| stat.key == key))
}

/// The CPUs that a thread may use.
pub fn cpus_of(tid: i32) -> io::Result<BTreeSet<usize>> {
    let set = sched_getaffinity(Some(pid(tid)?))?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

/// Lets a thread use only some CPUs.
pub fn set_cpus(tid: i32, cpus: &BTreeSet<usize>) -> io::Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus.iter().filter(|&&cpu| cpu < CpuSet::MAX_CPU) {
        set.set(cpu);
    }
    Ok(sched_setaffinity(Some(pid(tid)?), &set)?)
}

/// Sets a thread's nice value (Linux applies it to the thread, not to its process).
pub fn set_nice(tid: i32, nice: i32) -> io::Result<()> {
    Ok(setpriority_process(Some(pid(tid)?), nice)?)
}

/// Stops a process or lets it go on.
pub fn set_stopped(process: i32, stopped: bool) -> io::Result<()> {
    let signal = if stopped { Signal::STOP } else { Signal::CONT };
    Ok(kill_process(pid(process)?, signal)?)
}

/// Writes a control file, which must be there.
pub fn write(file: &Path, text: &str) -> io::Result<()> {
    File::options().write(true).truncate(true).open(file)?.write_all(text.as_bytes())
}

/// Whether an error says that a thread has ended meanwhile, which is nobody's fault.
pub fn has_ended(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}
