//! Holding threads back: a frozen cgroup of either version, or SIGSTOP.
//!
//! One cgroup is always frozen; whoever goes there stops, and runs on when it leaves (Linux,
//! kernel/cgroup/legacy_freezer.c and freezer.c). Version 1 takes single threads. Version 2 and SIGSTOP take
//! processes, which are held while all their threads are wanted held.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ampsched_computer::{CgroupVersion, Delegation, Proc, Root, ThreadKey};

use crate::journal::{Journal, Touch};
use crate::system;

/// Means of holding threads back.
#[derive(Debug)]
pub struct Freezer {
    means: Means,
    proc: Proc,
    /// Where those that are held were before; nowhere for SIGSTOP.
    held: BTreeMap<ThreadKey, Option<PathBuf>>,
    /// What the journal says already.
    written: BTreeSet<(ThreadKey, Option<PathBuf>)>,
}

#[derive(Debug)]
enum Means {
    /// The frozen cgroup and where its hierarchy is mounted.
    Cgroup {
        version: CgroupVersion,
        folder: PathBuf,
        mount: String,
        is_made: bool,
    },
    Stop,
}

impl Freezer {
    /// Below a cgroup, or by SIGSTOP if there is none. `mount`: where that cgroup's hierarchy is mounted.
    pub fn new(place: Option<(&Delegation, &str)>, root: &Root) -> Self {
        let means = match place {
            Some((delegation, mount)) => Means::Cgroup {
                version: delegation.version,
                folder: root
                    .path(&delegation.folder)
                    .join(format!("ampsched-held-{}", std::process::id())),
                mount: root.path(mount).display().to_string(),
                is_made: false,
            },
            None => Means::Stop,
        };
        Self {
            means,
            proc: Proc::new(root.clone()),
            held: BTreeMap::new(),
            written: BTreeSet::new(),
        }
    }

    /// Whether single threads can be held back, not only whole processes.
    pub fn holds_threads(&self) -> bool {
        matches!(self.means, Means::Cgroup { version: CgroupVersion::V1, .. })
    }

    /// What it is called in results.
    pub fn name(&self) -> &'static str {
        match self.means {
            Means::Cgroup { version: CgroupVersion::V1, .. } => "cgroup v1 freezer",
            Means::Cgroup { version: CgroupVersion::V2, .. } => "cgroup v2 freezer",
            Means::Stop => "SIGSTOP",
        }
    }

    /// Whether a thread (or process) is held back.
    pub fn is_held(&self, key: ThreadKey) -> bool {
        self.held.contains_key(&key)
    }

    /// Holds a thread (a process's first thread where only processes can be held) back.
    pub fn hold(&mut self, key: ThreadKey, journal: &mut Journal) -> io::Result<()> {
        let from = match &mut self.means {
            Means::Stop => None,
            Means::Cgroup { version, folder, mount, is_made } => {
                if !*is_made {
                    make(*version, folder, journal)?;
                    *is_made = true;
                }
                let from = cgroup_of(&self.proc, *version, mount, key.tid);
                Some(from.ok_or_else(|| io::Error::from(rustix::io::Errno::SRCH))?)
            }
        };
        if self.written.insert((key, from.clone())) {
            journal.write(&match (&self.means, &from) {
                (Means::Cgroup { version, .. }, Some(from)) => {
                    Touch::moved(*version, key, from.clone())
                }
                _ => Touch::Stopped { pid: key.tid, start_ticks: key.start_ticks },
            })?;
        }
        match &self.means {
            Means::Stop => system::set_stopped(key.tid, true)?,
            Means::Cgroup { version, folder, .. } => {
                system::write(&members(*version, folder), &key.tid.to_string())?;
            }
        }
        self.held.insert(key, from);
        Ok(())
    }

    /// Lets a thread that was held back go on.
    pub fn release(&mut self, key: ThreadKey) -> io::Result<()> {
        match (&self.means, self.held.remove(&key)) {
            (_, None) => Ok(()),
            (Means::Cgroup { version, .. }, Some(Some(from))) => {
                system::write(&members(*version, &from), &key.tid.to_string())
            }
            (_, Some(_)) => system::set_stopped(key.tid, false),
        }
    }

    /// A thread has ended.
    pub fn forget(&mut self, key: ThreadKey) {
        self.held.remove(&key);
    }
}

fn make(version: CgroupVersion, folder: &Path, journal: &mut Journal) -> io::Result<()> {
    let v1 = version == CgroupVersion::V1;
    journal.write(&Touch::Cgroup { v1, folder: folder.to_owned() })?;
    fs::create_dir(folder)?;
    set_frozen(v1, folder, true)
}

/// Freezes a cgroup or thaws it.
pub fn set_frozen(v1: bool, folder: &Path, frozen: bool) -> io::Result<()> {
    match (v1, frozen) {
        (true, true) => system::write(&folder.join("freezer.state"), "FROZEN"),
        (true, false) => system::write(&folder.join("freezer.state"), "THAWED"),
        (false, _) => system::write(&folder.join("cgroup.freeze"), if frozen { "1" } else { "0" }),
    }
}

/// The file that lists, and takes, the members of a cgroup.
pub fn members(version: CgroupVersion, folder: &Path) -> PathBuf {
    folder.join(if version == CgroupVersion::V1 { "tasks" } else { "cgroup.procs" })
}

fn cgroup_of(proc: &Proc, version: CgroupVersion, mount: &str, tid: i32) -> Option<PathBuf> {
    let cgroups = proc.cgroups(tid);
    let is_meant = |names: &str| match version {
        CgroupVersion::V1 => names.split(',').any(|name| name == "freezer"),
        CgroupVersion::V2 => names.is_empty(),
    };
    let path = cgroups.iter().find(|(names, _)| is_meant(names))?.1;
    Some(PathBuf::from(format!("{mount}{}", path.trim_end_matches('/'))))
}
