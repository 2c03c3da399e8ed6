//! Which threads a policy schedules.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ampsched_computer::{Proc, Root, ThreadKey, ThreadStat, is_gone};
use ampsched_model::InputError;

use crate::ScopeSettings;

/// Where the threads are looked for.
#[derive(Clone, Debug)]
pub enum Scope {
    /// The descendants of a process.
    Below {
        /// The process; not scheduled itself.
        parent: i32,
    },
    /// Processes and their descendants, also those whose parents end meanwhile.
    Trees {
        /// First processes that were found, at the start or later.
        roots: BTreeSet<ThreadKey>,
    },
    /// The processes of a cgroup and of those below it.
    Cgroup {
        /// Its folder, as an absolute name.
        folder: PathBuf,
    },
}

impl Scope {
    /// The threads that settings mean; none: all that run here. Errors: they mean no thread, or one that is not there.
    pub fn of(settings: &ScopeSettings, root: &Root) -> Result<Option<Self>, InputError> {
        if let Some(folder) = &settings.cgroup {
            return Self::cgroup(root, Path::new(folder)).map(Some);
        }
        if !settings.pid.is_empty() {
            return Self::trees(&Proc::new(root.clone()), &settings.pid).map(Some);
        }
        if settings.everything {
            return Ok(None);
        }
        if settings.command.is_empty() {
            return Err(InputError::new("run", "", "nothing to schedule")
                .with_hint("give a command behind --, or --pid, --cgroup or --everything"));
        }
        Ok(Some(Self::Below { parent: std::process::id() as i32 }))
    }

    /// Some processes and their descendants. Errors: one does not exist.
    pub fn trees(proc: &Proc, pids: &[i32]) -> Result<Self, InputError> {
        let wrong = |pid, error| {
            let message = match is_gone(&error) {
                true => format!("there is no process {pid}"),
                false => format!("process {pid} cannot be looked at: {error}"),
            };
            InputError::new("--pid", "", message)
        };
        let root = |&pid: &i32| Ok(proc.process(pid).map_err(|error| wrong(pid, error))?.key);
        Ok(Self::Trees { roots: pids.iter().map(root).collect::<Result<_, InputError>>()? })
    }

    /// A cgroup by its folder. Errors: it is not one.
    pub fn cgroup(root: &Root, folder: &Path) -> Result<Self, InputError> {
        if root.has(folder.join("cgroup.procs")) {
            return Ok(Self::Cgroup { folder: folder.to_owned() });
        }
        Err(InputError::new("--cgroup", "", format!("{} is not a cgroup", folder.display()))
            .with_hint("a folder with a file cgroup.procs, such as /sys/fs/cgroup/user.slice"))
    }

    /// The threads that belong to it now, in ascending order of process and thread. Those that cannot be looked at now
    /// may be among the next that are found.
    pub fn find(&mut self, root: &Root, proc: &Proc) -> Vec<ThreadStat> {
        self.find_while(root, proc, || {})
    }

    /// The same, while something happens after it has seen which of the processes are still there.
    fn find_while(
        &mut self,
        root: &Root,
        proc: &Proc,
        meanwhile: impl FnOnce(),
    ) -> Vec<ThreadStat> {
        let pids = match self {
            Self::Below { parent } => descendants(proc, children(proc, *parent)),
            Self::Trees { roots } => {
                roots.retain(|key| !proc.has_ended(*key));
                let known: BTreeSet<i32> = roots.iter().map(|key| key.tid).collect();
                let found = descendants(proc, known.iter().copied().collect());
                meanwhile();
                // A parent may end before the next look; its children stay. Others may have got numbers of known ones.
                let new = found.difference(&known);
                roots.extend(new.filter_map(|&pid| Some(proc.process(pid).ok()?.key)));
                found
            }
            Self::Cgroup { folder } => cgroup_processes(root, folder),
        };
        let threads_of = |pid: i32| {
            let threads = proc.threads(pid).unwrap_or_default();
            threads.into_iter().map(move |tid| (pid, tid))
        };
        let threads = pids.into_iter().flat_map(threads_of);
        let stats = threads.filter_map(|(pid, tid)| proc.stat(pid, tid).ok());
        let mut found: Vec<ThreadStat> = stats.filter(|stat| !stat.is_dead()).collect();
        if let Self::Trees { roots } = self {
            // Who is still there now was there when its threads were read.
            let meant = roots.iter().filter(|key| is_there(proc, key));
            let meant: BTreeSet<i32> = meant.map(|key| key.tid).collect();
            found.retain(|stat| meant.contains(&stat.pid));
        }
        found
    }
}

/// Whether a process has not ended, or not been waited for, and no later one has its number.
fn is_there(proc: &Proc, key: &ThreadKey) -> bool {
    proc.process(key.tid).is_ok_and(|stat| stat.key == *key)
}

fn children(proc: &Proc, pid: i32) -> Vec<i32> {
    proc.children(pid).unwrap_or_default()
}

/// Some processes and everything below them.
fn descendants(proc: &Proc, first: Vec<i32>) -> BTreeSet<i32> {
    let (mut found, mut open) = (BTreeSet::new(), first);
    while let Some(pid) = open.pop() {
        if found.insert(pid) {
            open.extend(children(proc, pid));
        }
    }
    found
}

fn cgroup_processes(root: &Root, folder: &Path) -> BTreeSet<i32> {
    let list = root.bytes(folder.join("cgroup.procs")).unwrap_or_default();
    let list = String::from_utf8_lossy(&list);
    let mut pids: BTreeSet<i32> =
        list.lines().filter_map(|line| line.trim().parse().ok()).collect();
    for name in root.entries(folder).unwrap_or_default() {
        let below = folder.join(name);
        if root.path(&below).is_dir() {
            pids.extend(cgroup_processes(root, &below));
        }
    }
    pids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_gets_the_number_of_a_root_during_a_look_is_none_of_its_tree() {
        let folder = tempfile::tempdir().unwrap();
        let starts = |pid: i32, ticks: u64| {
            let task = folder.path().join(format!("proc/{pid}/task/{pid}"));
            std::fs::create_dir_all(&task).unwrap();
            let rest = "S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0";
            let stat = format!("{pid} (x) {rest} {ticks}{}", " 0".repeat(30));
            std::fs::write(task.join("stat"), &stat).unwrap();
            std::fs::write(folder.path().join(format!("proc/{pid}/stat")), stat).unwrap();
            std::fs::write(task.join("children"), "").unwrap();
        };
        starts(7, 100);
        starts(8, 100);
        let root = Root::new(folder.path());
        let proc = Proc::new(root.clone());
        let mut scope = Scope::trees(&proc, &[7, 8]).unwrap();
        let pids = |found: Vec<ThreadStat>| found.iter().map(|stat| stat.pid).collect::<Vec<_>>();
        assert_eq!(pids(scope.find(&root, &proc)), [7, 8]);
        let reused = scope.find_while(&root, &proc, || starts(7, 101));
        assert_eq!(pids(reused), [8], "it has the number only");
        assert_eq!(pids(scope.find(&root, &proc)), [8], "nor is it later");
    }
}
