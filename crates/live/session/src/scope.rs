//! Which threads a policy schedules.

use std::collections::BTreeSet;

use ampsched_computer::{Proc, Root, ThreadKey, ThreadStat};
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
        folder: String,
    },
}

impl Scope {
    /// The threads that settings mean; none: all that run here. Errors: they mean nobody, or somebody who is not there.
    pub fn of(settings: &ScopeSettings, root: &Root) -> Result<Option<Self>, InputError> {
        if let Some(folder) = &settings.cgroup {
            return Self::cgroup(root, folder).map(Some);
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
        let root = |&pid: &i32| {
            let found = proc.process(pid).map(|stat| stat.key);
            found.ok_or_else(|| InputError::new("--pid", "", format!("there is no process {pid}")))
        };
        Ok(Self::Trees { roots: pids.iter().map(root).collect::<Result<_, _>>()? })
    }

    /// A cgroup by its folder. Errors: it is not one.
    pub fn cgroup(root: &Root, folder: &str) -> Result<Self, InputError> {
        if root.has(&format!("{folder}/cgroup.procs")) {
            return Ok(Self::Cgroup { folder: folder.trim_end_matches('/').to_owned() });
        }
        Err(InputError::new("--cgroup", "", format!("{folder} is not a cgroup"))
            .with_hint("a folder with a file cgroup.procs, such as /sys/fs/cgroup/user.slice"))
    }

    /// The threads that belong to it now, in ascending order of process and thread.
    pub fn find(&mut self, root: &Root, proc: &Proc) -> Vec<ThreadStat> {
        let pids = match self {
            Self::Below { parent } => descendants(proc, proc.children(*parent)),
            Self::Trees { roots } => {
                let is_there =
                    |key: &ThreadKey| proc.process(key.tid).is_some_and(|stat| stat.key == *key);
                roots.retain(is_there);
                let found = descendants(proc, roots.iter().map(|key| key.tid).collect());
                // A parent may end before the next look; its children stay.
                roots.extend(found.iter().filter_map(|&pid| Some(proc.process(pid)?.key)));
                found
            }
            Self::Cgroup { folder } => cgroup_processes(root, folder),
        };
        let threads_of = |pid: i32| proc.threads(pid).into_iter().map(move |tid| (pid, tid));
        let threads = pids.into_iter().flat_map(threads_of);
        let stats = threads.filter_map(|(pid, tid)| proc.stat(pid, tid));
        stats.filter(|stat| !stat.is_dead()).collect()
    }
}

/// Some processes and everything below them.
fn descendants(proc: &Proc, first: Vec<i32>) -> BTreeSet<i32> {
    let (mut found, mut open) = (BTreeSet::new(), first);
    while let Some(pid) = open.pop() {
        if found.insert(pid) {
            open.extend(proc.children(pid));
        }
    }
    found
}

fn cgroup_processes(root: &Root, folder: &str) -> BTreeSet<i32> {
    let list = root.text(&format!("{folder}/cgroup.procs")).unwrap_or_default();
    let mut pids: BTreeSet<i32> =
        list.lines().filter_map(|line| line.trim().parse().ok()).collect();
    for name in root.names(folder) {
        let below = format!("{folder}/{name}");
        if root.path(&below).is_dir() {
            pids.extend(cgroup_processes(root, &below));
        }
    }
    pids
}
