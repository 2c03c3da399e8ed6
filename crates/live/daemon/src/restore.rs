//! Putting back what was touched. It can be done twice, and by any process that has the journal.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::PathBuf;

use ampsched_computer::{Capabilities, CgroupVersion, Proc, Root, ThreadKey, ThreadStat};
use ampsched_live_factors::FutexTrace;
use ampsched_live_session::PutBack;

use crate::freezer::{cgroup_path, members, set_frozen};
use crate::system::{cpus_of, has_ended, is_there, set_cpus, set_nice, set_stopped, write};
use crate::touch::{Cpus, Group, OwnGroup, Touch};

/// What has been put back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Threads that have their CPUs and nice value again.
    pub threads: usize,
    /// Threads and processes that may run again.
    pub released: usize,
    /// Limits of clocks that are again what they were.
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

/// Puts everything back: clocks, then frozen and stopped threads, then CPUs and nice values. Files are looked for
/// below the root, where the kernel has them; none is made.
pub fn restore(touches: &[Touch], root: &Root) -> Restored {
    let (mut restored, system) = (Restored::default(), System::below(root));
    for touch in touches.iter().rev() {
        system.restore_clock(touch, &mut restored);
        system.remove_tracing(touch, &mut restored);
    }
    // Who was moved from several places goes back to the last; afterwards it is not held any more.
    for touch in touches.iter().rev() {
        system.release(touch, &own_groups(touches), &mut restored);
    }
    for touch in touches.iter().rev() {
        system.remove_cgroup(touch, &mut restored);
    }
    Threads::of(touches).restore(&system.proc, &mut restored);
    restored
}

/// What of a journal still has to be put back: all but what concerns threads and processes that have ended. What a
/// process was given others may have inherited.
pub fn outstanding(mut touches: Vec<Touch>, proc: &Proc) -> Vec<Touch> {
    let is_same =
        |key: &ThreadKey, stat: Option<ThreadStat>| stat.is_some_and(|stat| stat.key == *key);
    let runs = |key: &ThreadKey| is_same(key, proc.task(key.tid));
    let process_runs = |key: &ThreadKey| is_same(key, proc.process(key.tid));
    let (mut processes, mut cpus_given, mut nice_given) =
        (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    touches.retain(|touch| match touch {
        // What the first one had is what all those of its process had that nobody has looked at.
        Touch::Thread { process, thread, .. } => {
            process_runs(process) && (processes.insert(*process) || runs(thread))
        }
        Touch::GivenCpus { process, cpus } => {
            cpus_given.insert(cpus.clone()) || process_runs(process)
        }
        Touch::GivenNice { process, nice } => nice_given.insert(*nice) || process_runs(process),
        Touch::Stopped { process } => process_runs(process),
        Touch::Moved { thread, .. } => runs(thread),
        Touch::Cgroup { .. } | Touch::Tracing { .. } | Touch::Clock(_) => true,
    });
    touches
}

/// The cgroups that the session has made.
fn own_groups(touches: &[Touch]) -> BTreeSet<(CgroupVersion, &Group)> {
    let group = |touch| match touch {
        &Touch::Cgroup { version, ref group } => Some((version, group.group())),
        _ => None,
    };
    touches.iter().filter_map(group).collect()
}

/// Where the kernel has what is put back.
struct System {
    root: Root,
    proc: Proc,
    capabilities: Capabilities,
}

impl System {
    fn below(root: &Root) -> Self {
        let capabilities = Capabilities::detect(root);
        Self { root: root.clone(), proc: Proc::new(root.clone()), capabilities }
    }

    fn restore_clock(&self, touch: &Touch, restored: &mut Restored) {
        if let Touch::Clock(clock) = touch {
            let file = clock.file(&self.root).display().to_string();
            restored.clocks += usize::from(restored.note(&file, clock.put_back(&self.root)));
        }
    }

    fn remove_tracing(&self, touch: &Touch, restored: &mut Restored) {
        if let (Touch::Tracing { instance }, Some(tracefs)) = (touch, &self.capabilities.tracefs) {
            let folder = FutexTrace::folder(&self.root.path(tracefs), instance.name());
            if folder.exists() {
                restored.note(&folder.display().to_string(), fs::remove_dir(&folder));
            }
        }
    }

    fn release(
        &self,
        touch: &Touch,
        own: &BTreeSet<(CgroupVersion, &Group)>,
        restored: &mut Restored,
    ) {
        match touch {
            Touch::Moved { version, thread, from } => {
                let is_meant = self.proc.task(thread.tid).is_some_and(|stat| stat.key == *thread);
                let now = cgroup_path(&self.proc, *version, thread.tid);
                let now = now.and_then(|path| Group::try_from(path).ok());
                let is_held = now.is_some_and(|now| own.contains(&(*version, &now)));
                let Some(from) = self.folder(*version, from).filter(|from| from.exists()) else {
                    return;
                };
                // Who has been let go on, or moved by others, stays where it is.
                if !is_meant || !is_held {
                    return;
                }
                let done = write(&members(*version, &from), &thread.tid.to_string());
                let what = format!("thread {}, back to {}", thread.tid, from.display());
                restored.released += usize::from(restored.note(&what, done));
            }
            Touch::Stopped { process } if is_there(&self.proc, process.tid, *process) => {
                let done = set_stopped(process.tid, false);
                let what = format!("process {}", process.tid);
                restored.released += usize::from(restored.note(&what, done));
            }
            _ => {}
        }
    }

    /// Thaws a cgroup of the session's, moves the threads that are left to the one above it and removes it.
    fn remove_cgroup(&self, touch: &Touch, restored: &mut Restored) {
        let Touch::Cgroup { version, group } = touch else { return };
        let Some(folder) = self.own_folder(*version, group).filter(|folder| folder.exists()) else {
            return;
        };
        let above = folder.parent().expect("a cgroup of a session is below another");
        let thawed = set_frozen(*version == CgroupVersion::V1, &folder, false);
        restored.note(&folder.display().to_string(), thawed);
        let left = fs::read_to_string(members(*version, &folder));
        let left = left.unwrap_or_else(|error| {
            restored.note(&folder.display().to_string(), Err(error));
            String::new()
        });
        for tid in left.lines() {
            let done = write(&members(*version, above), tid);
            let what = format!("thread {tid}, to {}", above.display());
            restored.released += usize::from(restored.note(&what, done));
        }
        restored.note(&folder.display().to_string(), fs::remove_dir(&folder));
    }

    fn own_folder(&self, version: CgroupVersion, group: &OwnGroup) -> Option<PathBuf> {
        self.folder(version, group.group())
    }

    /// The folder of a cgroup; none if its hierarchy is not mounted.
    fn folder(&self, version: CgroupVersion, group: &Group) -> Option<PathBuf> {
        let mount = match version {
            CgroupVersion::V1 => self.capabilities.cgroup_v1.get("freezer"),
            CgroupVersion::V2 => self.capabilities.cgroup_v2.as_ref(),
        };
        Some(group.folder(&self.root.path(mount?)))
    }
}

/// CPUs and nice value that a thread had.
#[derive(Clone)]
struct Before {
    process: ThreadKey,
    cpus: Cpus,
    nice: i32,
}

/// What threads were given instead.
#[derive(Default)]
struct Given {
    cpus: BTreeSet<Cpus>,
    nice: BTreeSet<i32>,
}

impl Given {
    /// Puts back what of this a thread has; what the thread, or another process, has changed since stays.
    fn put_back(&self, stat: &ThreadStat, before: &Before, restored: &mut Restored) {
        let tid = stat.key.tid;
        // The kernel itself leaves out CPUs that a cgroup forbids.
        let is_within =
            |now: BTreeSet<usize>| self.cpus.iter().any(|given| now.is_subset(&given.set()));
        let has_given_cpus = cpus_of(tid).is_ok_and(is_within);
        let has_given_nice = self.nice.contains(&stat.nice);
        if !has_given_cpus && !has_given_nice {
            return;
        }
        let of_cpus = if has_given_cpus { set_cpus(tid, &before.cpus.set()) } else { Ok(()) };
        let of_nice = if has_given_nice { set_nice(tid, before.nice) } else { Ok(()) };
        let what = format!("CPUs {} of thread {tid}", before.cpus.text());
        let has_cpus = restored.note(&what, of_cpus);
        let what = format!("nice value {} of thread {tid}", before.nice);
        let has_nice = restored.note(&what, of_nice);
        restored.threads += usize::from(has_cpus && has_nice);
    }
}

/// CPUs and nice values before, and what was given instead.
#[derive(Default)]
struct Threads {
    before: BTreeMap<ThreadKey, Before>,
    /// What the first thread of each process had that is known: what its other threads had, too.
    processes: BTreeMap<ThreadKey, Before>,
    given: BTreeMap<ThreadKey, Given>,
    given_to_any: Given,
}

impl Threads {
    fn of(touches: &[Touch]) -> Self {
        let mut threads = Self::default();
        for touch in touches {
            match touch {
                Touch::Thread { process, thread, cpus, nice } => {
                    let before = Before { process: *process, cpus: cpus.clone(), nice: *nice };
                    threads.before.entry(*thread).or_insert(before.clone());
                    threads.processes.entry(*process).or_insert(before);
                }
                Touch::GivenCpus { process, cpus } => {
                    threads.given.entry(*process).or_default().cpus.insert(cpus.clone());
                    threads.given_to_any.cpus.insert(cpus.clone());
                }
                Touch::GivenNice { process, nice } => {
                    threads.given.entry(*process).or_default().nice.insert(*nice);
                    threads.given_to_any.nice.insert(*nice);
                }
                _ => {}
            }
        }
        threads
    }

    fn restore(&self, proc: &Proc, restored: &mut Restored) {
        for (key, before) in &self.before {
            let stat = proc.stat(before.process.tid, key.tid);
            if let Some(stat) = stat.filter(|stat| stat.key == *key && !stat.is_dead()) {
                // It may have inherited what another process was given.
                self.given_to_any.put_back(&stat, before, restored);
            }
        }
        for (process, before) in &self.processes {
            if let Some(given) = self.given.get(process) {
                self.sweep(proc, given, *process, before, restored);
            }
        }
    }

    /// Threads that nobody has looked at since they were started and that have inherited what a process was given:
    /// those of the process, and of its children.
    fn sweep(
        &self,
        proc: &Proc,
        given: &Given,
        process: ThreadKey,
        before: &Before,
        restored: &mut Restored,
    ) {
        let is_meant = |process: &ThreadKey| {
            proc.process(process.tid).is_some_and(|stat| stat.key == *process)
        };
        // Another process may have its number by now.
        if !is_meant(&process) {
            return;
        }
        for tid in proc.threads(process.tid) {
            let Some(stat) = proc.stat(process.tid, tid) else { continue };
            if self.before.contains_key(&stat.key) {
                continue;
            }
            given.put_back(&stat, before, restored);
        }
        let children = proc.children(process.tid).into_iter().filter_map(|pid| proc.process(pid));
        for child in children.filter(|child| !self.processes.contains_key(&child.key)) {
            self.sweep(proc, given, child.key, before, restored);
        }
    }
}
