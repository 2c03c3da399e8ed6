//! Putting back what was touched. It can be done twice, and by any process that has the journal.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::PathBuf;

use ampsched_computer::{CgroupVersion, Mounts, Proc, Root, ThreadKey, ThreadStat, unless_gone};
use ampsched_live_factors::FutexTrace;
use ampsched_live_session::PutBack;

use crate::freezer::{cgroup_path, members, set_frozen};
use crate::system::{cpus_of, find, has_ended, set_cpus, set_nice, set_stopped, write};
use crate::touch::{Cpus, Group, Hierarchy, OwnGroup, Touch};

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
    /// What a step has come to; none if it has failed, which is listed, or what it concerns has ended.
    fn note<T>(&mut self, what: &str, result: io::Result<T>) -> Option<T> {
        match result {
            Ok(done) => Some(done),
            Err(error) => {
                if !has_ended(&error) {
                    self.failures.push(format!("{what}: {error}"));
                }
                None
            }
        }
    }
}

/// Puts everything back: clocks, then frozen and stopped threads, then CPUs and nice values. Files are looked for
/// below the root, where the kernel has them; none is made.
pub fn restore(touches: &[Touch], root: &Root) -> Restored {
    let (mut restored, system) = (Restored::default(), System::below(root, touches));
    for touch in touches.iter().rev() {
        system.restore_clock(touch, &mut restored);
        system.remove_tracing(touch, &mut restored);
    }
    // Who was moved from several places goes back to the last; afterwards it is not held any more.
    for touch in touches.iter().rev() {
        system.release(touch, &mut restored);
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
    let runs = |key: &ThreadKey| !proc.has_ended(*key);
    let (mut processes, mut cpus_given, mut nice_given) =
        (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    touches.retain(|touch| match touch {
        // What the first one had is what all those of its process had that nobody has looked at.
        Touch::Thread { process, thread, .. } => {
            runs(process) && (processes.insert(*process) || runs(thread))
        }
        Touch::GivenCpus { process, cpus } => cpus_given.insert(cpus.clone()) || runs(process),
        Touch::GivenNice { process, nice } => nice_given.insert(*nice) || runs(process),
        Touch::Stopped { process } => runs(process),
        Touch::Moved { thread, .. } => runs(thread),
        Touch::Cgroup { .. } | Touch::Tracing { .. } | Touch::Clock(_) => true,
    });
    touches
}

/// Where the kernel has what is put back.
struct System<'a> {
    root: Root,
    proc: Proc,
    /// What is mounted, or why that cannot be told.
    mounts: Result<Mounts, String>,
    /// The cgroups that the session has made.
    own: BTreeSet<(CgroupVersion, &'a Group)>,
    /// Where it has made them.
    hierarchies: BTreeMap<CgroupVersion, Hierarchy>,
}

impl<'a> System<'a> {
    fn below(root: &Root, touches: &'a [Touch]) -> Self {
        let mut system = Self {
            root: root.clone(),
            proc: Proc::new(root.clone()),
            mounts: Mounts::read(root).map_err(|error| error.to_string()),
            own: BTreeSet::new(),
            hierarchies: BTreeMap::new(),
        };
        for touch in touches {
            if let Touch::Cgroup { version, group, hierarchy } = touch {
                system.own.insert((*version, group.group()));
                system.hierarchies.extend(hierarchy.map(|hierarchy| (*version, hierarchy)));
            }
        }
        system
    }

    fn restore_clock(&self, touch: &Touch, restored: &mut Restored) {
        if let Touch::Clock(clock) = touch {
            let file = clock.file(&self.root).display().to_string();
            let done = restored.note(&file, clock.put_back(&self.root));
            restored.clocks += usize::from(done.is_some());
        }
    }

    fn remove_tracing(&self, touch: &Touch, restored: &mut Restored) {
        let Touch::Tracing { instance } = touch else { return };
        let done = self.mounts().and_then(|mounts| {
            let tracefs = mounts.point("tracefs");
            let tracefs = tracefs.ok_or_else(|| io::Error::other("no tracefs is mounted here"))?;
            let folder = FutexTrace::folder(&self.root.path(tracefs), instance.name());
            if folder.try_exists()? { fs::remove_dir(&folder) } else { Ok(()) }
        });
        restored.note(&format!("instance {} of tracing", instance.name()), done);
    }

    fn release(&self, touch: &Touch, restored: &mut Restored) {
        let (what, done) = match touch {
            Touch::Moved { version, thread, from } => {
                let what = format!("thread {}, back to {}", thread.tid, from.path().display());
                (what, self.move_back(*version, *thread, from))
            }
            Touch::Stopped { process } => {
                (format!("process {}", process.tid), self.let_go_on(*process))
            }
            _ => return,
        };
        let done = restored.note(&what, done);
        restored.released += usize::from(done == Some(true));
    }

    /// Moves a thread back that is held; whether it was. Who has been let go on, or moved by others, stays where it is.
    fn move_back(
        &self,
        version: CgroupVersion,
        thread: ThreadKey,
        from: &Group,
    ) -> io::Result<bool> {
        if find(&self.proc, thread)?.is_none() {
            return Ok(false);
        }
        let folder = from.folder(&self.hierarchy(version)?);
        let now = cgroup_path(&self.proc, version, thread.tid);
        let now = unless_gone(now)?.and_then(|path| Group::try_from(path).ok());
        let is_held = now.is_some_and(|now| self.own.contains(&(version, &now)));
        if !is_held || !folder.try_exists()? {
            return Ok(false);
        }
        write(&members(version, &folder), &thread.tid.to_string())?;
        Ok(true)
    }

    /// Lets a process go on that has been stopped; whether it is still there.
    fn let_go_on(&self, process: ThreadKey) -> io::Result<bool> {
        if find(&self.proc, process)?.is_none_or(|stat| stat.is_dead()) {
            return Ok(false);
        }
        set_stopped(process.tid, false)?;
        Ok(true)
    }

    /// Thaws a cgroup of the session's, moves the threads that are left to the one above it and removes it.
    fn remove_cgroup(&self, touch: &Touch, restored: &mut Restored) {
        let Touch::Cgroup { version, group, .. } = touch else { return };
        let what = format!("cgroup {}", group.group().path().display());
        let folder = self.own_folder(*version, group);
        let Some(Some(folder)) = restored.note(&what, folder) else { return };
        let above = folder.parent().expect("a cgroup of a session is below another");
        restored.note(&what, set_frozen(*version == CgroupVersion::V1, &folder, false));
        let left = fs::read_to_string(members(*version, &folder));
        for tid in restored.note(&what, left).unwrap_or_default().lines() {
            let done = write(&members(*version, above), tid);
            let what = format!("thread {tid}, to {}", above.display());
            restored.released += usize::from(restored.note(&what, done).is_some());
        }
        restored.note(&what, fs::remove_dir(&folder));
    }

    /// The folder of a cgroup that the session has made; none if it has been removed.
    fn own_folder(&self, version: CgroupVersion, group: &OwnGroup) -> io::Result<Option<PathBuf>> {
        let folder = group.group().folder(&self.hierarchy(version)?);
        Ok(folder.try_exists()?.then_some(folder))
    }

    fn mounts(&self) -> io::Result<&Mounts> {
        self.mounts.as_ref().map_err(|error| {
            io::Error::other(format!("what is mounted here cannot be read: {error}"))
        })
    }

    /// Where the hierarchy is mounted in which the session has made its cgroup. Errors: nowhere that this process sees.
    fn hierarchy(&self, version: CgroupVersion) -> io::Result<PathBuf> {
        let Some(point) = self.mounts()?.freezer(version) else {
            let message = format!("no cgroup freezer of version {version:?} is mounted here");
            return Err(io::Error::other(message));
        };
        let mount = self.root.path(point);
        let found = Hierarchy::at(&mount)?;
        match self.hierarchies.get(&version) {
            Some(meant) if *meant != found => {
                let message = format!("{} is not the session's hierarchy", mount.display());
                Err(io::Error::other(message))
            }
            _ => Ok(mount),
        }
    }
}

/// CPUs and nice value that a thread had.
#[derive(Clone)]
struct Before {
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
        let now = if self.cpus.is_empty() { Ok(None) } else { cpus_of(tid).map(Some) };
        let now = restored.note(&format!("CPUs of thread {tid}"), now);
        let is_told = now.is_some();
        let has_given_cpus = now.flatten().is_some_and(is_within);
        let has_given_nice = self.nice.contains(&stat.nice);
        if !has_given_cpus && !has_given_nice {
            return;
        }
        let of_cpus = if has_given_cpus { set_cpus(tid, &before.cpus.set()) } else { Ok(()) };
        let of_nice = if has_given_nice { set_nice(tid, before.nice) } else { Ok(()) };
        let what = format!("CPUs {} of thread {tid}", before.cpus.text());
        let has_cpus = restored.note(&what, of_cpus).is_some();
        let what = format!("nice value {} of thread {tid}", before.nice);
        let has_nice = restored.note(&what, of_nice).is_some();
        restored.threads += usize::from(is_told && has_cpus && has_nice);
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
                    let before = Before { cpus: cpus.clone(), nice: *nice };
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
            let stat = restored.note(&format!("thread {}", key.tid), find(proc, *key));
            if let Some(stat) = stat.flatten().filter(|stat| !stat.is_dead()) {
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
        let what = format!("threads of process {}", process.tid);
        // Another process may have its number by now.
        if restored.note(&what, find(proc, process)).flatten().is_none() {
            return;
        }
        let threads = restored.note(&what, unless_gone(proc.threads(process.tid)));
        for tid in threads.flatten().unwrap_or_default() {
            let stat = restored.note(&what, unless_gone(proc.stat(process.tid, tid)));
            let Some(stat) = stat.flatten() else { continue };
            if self.before.contains_key(&stat.key) {
                continue;
            }
            given.put_back(&stat, before, restored);
        }
        let what = format!("children of process {}", process.tid);
        for pid in restored.note(&what, proc.children(process.tid)).unwrap_or_default() {
            let child = restored.note(&what, unless_gone(proc.process(pid)));
            let Some(child) = child.flatten() else { continue };
            if !self.processes.contains_key(&child.key) {
                self.sweep(proc, given, child.key, before, restored);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h34_01_cpus_that_cannot_be_asked_for_are_not_put_back() {
        let own = Proc::default().process(std::process::id() as i32).unwrap();
        let cpus = Cpus::try_from("0".to_owned()).unwrap();
        let before = Before { cpus: cpus.clone(), nice: own.nice };
        let given =
            |cpus: &[Cpus]| Given { cpus: cpus.iter().cloned().collect(), ..Given::default() };
        let back = |tid: i32, given: &Given| {
            let stat = ThreadStat { key: ThreadKey { tid, ..own.key }, ..own.clone() };
            let mut restored = Restored::default();
            given.put_back(&stat, &before, &mut restored);
            (restored.threads, restored.failures)
        };
        // The kernel is not even asked for a thread of this number.
        let failures = vec!["CPUs of thread -1: not a thread".to_owned()];
        assert_eq!(back(-1, &given(std::slice::from_ref(&cpus))), (0, failures));
        assert_eq!(back(-1, &given(&[])), (0, Vec::new()), "no CPUs were given");
        assert_eq!(back(i32::MAX, &given(&[cpus])), (0, Vec::new()), "it has ended");
    }

    #[test]
    fn h34_01_what_cannot_be_read_is_not_put_back() {
        let folder = tempfile::tempdir().unwrap();
        let key = ThreadKey { tid: i32::MAX, start_ticks: 7 };
        let cpus = Cpus::try_from("0".to_owned()).unwrap();
        let from = Group::try_from(PathBuf::from("/a")).unwrap();
        let own = Group::try_from(PathBuf::from("/ampsched-held-7")).unwrap();
        let group = OwnGroup::try_from(own).unwrap();
        let version = CgroupVersion::V2;
        let of_threads = [
            Touch::Thread { process: key, thread: key, cpus: cpus.clone(), nice: 0 },
            Touch::GivenCpus { process: key, cpus },
            Touch::Moved { version, thread: key, from },
            Touch::Stopped { process: key },
        ];
        let instance = serde_json::from_str(r#"{"tracing":{"instance":"ampsched-7"}}"#).unwrap();
        let of_folders = [Touch::Cgroup { version, group, hierarchy: None }, instance];
        let root = Root::new(folder.path());
        assert_eq!(restore(&of_threads, &root), Restored::default(), "it has ended");
        assert_eq!(restore(&of_folders, &root).failures.len(), 2, "nothing says what is mounted");
        assert!(outstanding(of_threads[2..].to_vec(), &Proc::new(root.clone())).is_empty());
        // A folder cannot be read as a file, whoever tries.
        fs::create_dir_all(folder.path().join(format!("proc/{}/stat", key.tid))).unwrap();
        let restored = restore(&of_threads, &root);
        assert_eq!((restored.failures.len(), restored.threads), (4, 0), "{restored:?}");
        assert_eq!(outstanding(of_threads.to_vec(), &Proc::new(root)), of_threads);
    }
}
