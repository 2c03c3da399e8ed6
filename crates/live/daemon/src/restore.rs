//! Putting back what was touched. It can be done twice, and by whoever has the journal.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use ampsched_computer::{CgroupVersion, Proc, ThreadKey, parse_cpus};
use ampsched_live_session::PutBack;
use ampsched_model::InputError;
use rustix::fs::{FlockOperation, flock};
use serde::Serialize;

use crate::freezer::{members, set_frozen};
use crate::journal::{Journal, Touch};
use crate::system::{cpus_of, has_ended, is_there, set_cpus, set_nice, set_stopped, write};

/// What has been put back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Restored {
    /// Threads that have their CPUs and nice value again.
    pub threads: usize,
    /// Threads and processes that may run again.
    pub released: usize,
    /// Files of cpufreq that say again what they said.
    pub clocks: usize,
    /// What could not be put back, and why.
    pub failures: Vec<String>,
}

impl From<Restored> for PutBack {
    fn from(restored: Restored) -> Self {
        let Restored { threads, released, clocks, failures } = restored;
        let what = format!(
            "CPUs and nice values of {threads} threads, {released} let go on, {clocks} settings of clocks"
        );
        Self { what, failures }
    }
}

impl Restored {
    fn note(&mut self, what: &str, result: io::Result<()>) -> bool {
        match result {
            Ok(()) => true,
            Err(error) if has_ended(&error) => false,
            Err(error) => {
                self.failures.push(format!("{what}: {error}"));
                false
            }
        }
    }
}

/// Puts everything back that a journal's file names, and removes it if nothing failed; none if there is no file,
/// or somebody else has just done it.
///
/// Errors: the file cannot be read.
pub fn restore_file(path: &Path) -> Result<Option<Restored>, InputError> {
    // One at a time: a guardian, the next session and the user may all want to.
    let Ok(file) = File::open(path) else { return Ok(None) };
    let locked = flock(&file, FlockOperation::LockExclusive);
    let wrong =
        |error: io::Error| InputError::new(path.display().to_string(), "", error.to_string());
    locked.map_err(|error| wrong(error.into()))?;
    if file.metadata().map_err(wrong)?.nlink() == 0 {
        return Ok(None);
    }
    let Some(touches) = Journal::read(path)? else { return Ok(None) };
    let mut restored = restore(&touches);
    if restored.failures.is_empty() {
        let removed = fs::remove_file(path);
        restored.note(&path.display().to_string(), removed);
    }
    Ok(Some(restored))
}

/// Puts everything back: clocks, then frozen and stopped threads, then CPUs and nice values.
pub fn restore(touches: &[Touch]) -> Restored {
    let mut restored = Restored::default();
    for touch in touches.iter().rev() {
        restore_clock(touch, &mut restored);
        remove_tracing(touch, &mut restored);
    }
    // Who was moved from several places goes back to the last.
    for touch in touches {
        release(touch, &mut restored);
    }
    for touch in touches.iter().rev() {
        remove_cgroup(touch, &mut restored);
    }
    Threads::of(touches).restore(&mut restored);
    restored
}

fn restore_clock(touch: &Touch, restored: &mut Restored) {
    if let Touch::Clock { file, text } = touch {
        let done = write(file, text);
        restored.clocks += usize::from(restored.note(&file.display().to_string(), done));
    }
}

fn remove_tracing(touch: &Touch, restored: &mut Restored) {
    if let Touch::Tracing { folder } = touch
        && folder.exists()
    {
        let removed = fs::remove_dir(folder);
        restored.note(&folder.display().to_string(), removed);
    }
}

fn release(touch: &Touch, restored: &mut Restored) {
    let proc = Proc::default();
    match touch {
        Touch::Moved { v1, tid, start_ticks, from } => {
            let key = ThreadKey { tid: *tid, start_ticks: *start_ticks };
            if proc.task(*tid).is_none_or(|stat| stat.key != key) || !from.exists() {
                return;
            }
            let done = write(&members(version(*v1), from), &tid.to_string());
            let what = format!("thread {tid}, back to {}", from.display());
            restored.released += usize::from(restored.note(&what, done));
        }
        Touch::Stopped { pid, start_ticks } => {
            let key = ThreadKey { tid: *pid, start_ticks: *start_ticks };
            if is_there(&proc, *pid, key) {
                let done = set_stopped(*pid, false);
                restored.released += usize::from(restored.note(&format!("process {pid}"), done));
            }
        }
        _ => {}
    }
}

fn version(v1: bool) -> CgroupVersion {
    if v1 { CgroupVersion::V1 } else { CgroupVersion::V2 }
}

/// Thaws a cgroup of ours, sends whoever is left to the one above it and removes it.
fn remove_cgroup(touch: &Touch, restored: &mut Restored) {
    let Touch::Cgroup { v1, folder } = touch else { return };
    if !folder.exists() {
        return;
    }
    let above = folder.parent().expect("a cgroup of ours is below another");
    let thawed = set_frozen(*v1, folder, false);
    restored.note(&folder.display().to_string(), thawed);
    let left = fs::read_to_string(members(version(*v1), folder)).unwrap_or_default();
    for tid in left.lines() {
        let done = write(&members(version(*v1), above), tid);
        restored.note(&format!("thread {tid}, to {}", above.display()), done);
    }
    let removed = fs::remove_dir(folder);
    restored.note(&folder.display().to_string(), removed);
}

/// CPUs and nice values before, and what was given instead.
#[derive(Default)]
struct Threads {
    /// Process, CPUs and nice value of each thread.
    before: BTreeMap<ThreadKey, (i32, String, i32)>,
    /// The first thread of each process that is known: what its other threads had, too.
    processes: BTreeMap<i32, ThreadKey>,
    given_cpus: BTreeMap<i32, BTreeSet<String>>,
    given_nice: BTreeMap<i32, BTreeSet<i32>>,
}

impl Threads {
    fn of(touches: &[Touch]) -> Self {
        let mut threads = Self::default();
        for touch in touches {
            match touch {
                Touch::Thread { pid, tid, start_ticks, cpus, nice } => {
                    let key = ThreadKey { tid: *tid, start_ticks: *start_ticks };
                    threads.before.entry(key).or_insert((*pid, cpus.clone(), *nice));
                    threads.processes.entry(*pid).or_insert(key);
                }
                Touch::GivenCpus { pid, cpus } => {
                    threads.given_cpus.entry(*pid).or_default().insert(cpus.clone());
                }
                Touch::GivenNice { pid, nice } => {
                    threads.given_nice.entry(*pid).or_default().insert(*nice);
                }
                _ => {}
            }
        }
        threads
    }

    fn restore(&self, restored: &mut Restored) {
        let proc = Proc::default();
        for (key, (pid, cpus, nice)) in &self.before {
            if is_there(&proc, *pid, *key) {
                self.put_back(key.tid, cpus, *nice, restored);
            }
        }
        for (&pid, first) in &self.processes {
            let (_, cpus, nice) = &self.before[first];
            self.sweep(&proc, pid, pid, (cpus, *nice), restored);
        }
    }

    fn put_back(&self, tid: i32, cpus: &str, nice: i32, restored: &mut Restored) {
        let set = parse_cpus("journal", "cpus", cpus).unwrap_or_default();
        let what = format!("CPUs {cpus} of thread {tid}");
        let has_cpus = restored.note(&what, set_cpus(tid, &set));
        let proc = Proc::default();
        let differs = proc.task(tid).is_some_and(|stat| stat.nice != nice);
        let nice_done = if differs { set_nice(tid, nice) } else { Ok(()) };
        let has_nice = restored.note(&format!("nice value {nice} of thread {tid}"), nice_done);
        restored.threads += usize::from(has_cpus && has_nice);
    }

    /// Threads that nobody has looked at since they were started and that have inherited what a process was given:
    /// those of the process, and of its children.
    fn sweep(
        &self,
        proc: &Proc,
        given_to: i32,
        pid: i32,
        before: (&str, i32),
        restored: &mut Restored,
    ) {
        for tid in proc.threads(pid) {
            let Some(stat) = proc.stat(pid, tid) else { continue };
            if self.before.contains_key(&stat.key) {
                continue;
            }
            let has_ours = cpus_of(tid).is_ok_and(|cpus| {
                let text = ampsched_computer::format_cpus(cpus);
                self.given_cpus.get(&given_to).is_some_and(|given| given.contains(&text))
            });
            let nice_ours =
                self.given_nice.get(&given_to).is_some_and(|given| given.contains(&stat.nice));
            if has_ours || nice_ours {
                let nice = if nice_ours { before.1 } else { stat.nice };
                self.put_back(tid, before.0, nice, restored);
            }
        }
        for child in proc.children(pid) {
            if !self.processes.contains_key(&child) {
                self.sweep(proc, given_to, child, before, restored);
            }
        }
    }
}
