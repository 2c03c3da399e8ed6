//! Holding threads back: a frozen cgroup of either version, or SIGSTOP.
//!
//! One cgroup is always frozen; a thread that is moved there stops, and runs on when it leaves (Linux,
//! kernel/cgroup/legacy_freezer.c and freezer.c). Version 1 takes single threads. Version 2 and SIGSTOP take
//! processes, which are held while all their threads are wanted held.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ampsched_computer::{CgroupVersion, Delegation, Proc, Root, ThreadKey, below};
use ampsched_live_session::Journal;

use crate::system;
use crate::touch::{Group, Hierarchy, OwnGroup, Touch};

/// Means of holding threads back.
#[derive(Debug)]
pub struct Freezer {
    means: Means,
    proc: Proc,
    /// Where those that are held were before; nowhere for SIGSTOP.
    held: BTreeMap<ThreadKey, Option<PathBuf>>,
    /// Those of them that are to go on and could not yet.
    due: BTreeSet<ThreadKey>,
    /// What the journal says last of each.
    written: BTreeMap<ThreadKey, Option<PathBuf>>,
}

/// Who was held back goes on in another cgroup than before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WentOn {
    /// Where it was, which is gone.
    pub gone: PathBuf,
    /// The nearest cgroup above that took it, or the session's.
    pub now: PathBuf,
}

#[derive(Debug)]
enum Means {
    /// The frozen cgroup and where its hierarchy is mounted.
    Cgroup {
        version: CgroupVersion,
        folder: PathBuf,
        mount: PathBuf,
        is_made: bool,
    },
    Stop,
}

impl Freezer {
    /// Below a cgroup, or by SIGSTOP if there is none. `mount`: where that cgroup's hierarchy is mounted.
    pub fn new(place: Option<(&Delegation, &Path)>, root: &Root) -> Self {
        let means = match place {
            Some((delegation, mount)) => Means::Cgroup {
                version: delegation.version,
                folder: root.path(&delegation.folder).join(OwnGroup::name()),
                mount: root.path(mount),
                is_made: false,
            },
            None => Means::Stop,
        };
        Self {
            means,
            proc: Proc::new(root.clone()),
            held: BTreeMap::new(),
            due: BTreeSet::new(),
            written: BTreeMap::new(),
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
    pub fn hold(&mut self, key: ThreadKey, journal: &mut Journal<Touch>) -> io::Result<()> {
        let from = match &mut self.means {
            Means::Stop => None,
            Means::Cgroup { version, folder, mount, is_made } => {
                if !*is_made {
                    make(*version, mount, folder, journal)?;
                    *is_made = true;
                }
                Some(below(mount, &cgroup_path(&self.proc, *version, key.tid)?))
            }
        };
        if self.written.get(&key) != Some(&from) {
            journal.write(&match (&self.means, &from) {
                (Means::Cgroup { version, mount, .. }, Some(from)) => {
                    let from = group_of(mount, from)?;
                    Touch::Moved { version: *version, thread: key, from }
                }
                _ => Touch::Stopped { process: key },
            })?;
            self.written.insert(key, from.clone());
        }
        match &mut self.means {
            Means::Stop => system::set_stopped(key.tid, true)?,
            Means::Cgroup { version, folder, is_made, .. } => {
                let entered = enter(*version, folder, key.tid);
                // If it has been removed, it is made anew for the next thread.
                *is_made = folder.exists();
                entered?;
            }
        }
        self.due.remove(&key);
        self.held.insert(key, from);
        Ok(())
    }

    /// Lets a thread that was held back go on, where it was before if that is still there.
    ///
    /// # Errors
    ///
    /// It cannot go on; it counts as held, and [`retry`](Self::retry) tries again.
    pub fn release(&mut self, key: ThreadKey) -> io::Result<Option<WentOn>> {
        let Some(from) = self.held.get(&key) else { return Ok(None) };
        self.due.insert(key);
        let released = match (&self.means, from) {
            (Means::Cgroup { version, folder, mount, .. }, Some(from)) => {
                let above = folder.parent().expect("a cgroup of ours is below another");
                go_back(*version, from, mount, above, key.tid)
            }
            _ => system::set_stopped(key.tid, false).map(|()| None),
        };
        match released {
            Err(error) if !system::has_ended(&error) => Err(error),
            done => {
                self.let_go(key);
                Ok(done.unwrap_or_default())
            }
        }
    }

    /// It is to be held back still, or again, whether or not it could go on when it should.
    pub fn keep(&mut self, key: ThreadKey) {
        self.due.remove(&key);
    }

    /// Lets those go on who could not when they should.
    pub fn retry(&mut self) -> Vec<io::Result<Option<WentOn>>> {
        let due: Vec<ThreadKey> = self.due.iter().copied().collect();
        due.into_iter().map(|key| self.release(key)).collect()
    }

    /// A thread has ended.
    pub fn forget(&mut self, key: ThreadKey) {
        self.let_go(key);
        self.written.remove(&key);
    }

    fn let_go(&mut self, key: ThreadKey) {
        self.held.remove(&key);
        self.due.remove(&key);
    }
}

/// Sends a thread back to a cgroup; if that is gone, to the nearest one above it that takes it, or to `own`.
fn go_back(
    version: CgroupVersion,
    from: &Path,
    mount: &Path,
    own: &Path,
    tid: i32,
) -> io::Result<Option<WentOn>> {
    let Err(error) = enter(version, from, tid) else { return Ok(None) };
    if from.exists() || system::has_ended(&error) {
        return Err(error);
    }
    // Version 2 refuses processes beside cgroups that share out controllers.
    let above = from.ancestors().skip(1).take_while(|folder| folder.starts_with(mount));
    let now = above.chain([own]).find(|folder| enter(version, folder, tid).is_ok());
    let went_on = |now: &Path| WentOn { gone: from.to_owned(), now: now.to_owned() };
    now.map(went_on).map(Some).ok_or(error)
}

/// Makes a thread (version 1) or process (version 2) a member of a cgroup. The error that there is no such cgroup is
/// told apart from those of threads that have ended.
fn enter(version: CgroupVersion, folder: &Path, tid: i32) -> io::Result<()> {
    let entered = system::write(&members(version, folder), &tid.to_string());
    entered.map_err(|error| at(folder, error))
}

/// An error of a cgroup with its name, which nobody can take for that of a thread that has ended.
fn at(folder: &Path, error: io::Error) -> io::Error {
    match system::has_ended(&error) {
        true => error,
        false => io::Error::other(format!("{}: {error}", folder.display())),
    }
}

fn make(
    version: CgroupVersion,
    mount: &Path,
    folder: &Path,
    journal: &mut Journal<Touch>,
) -> io::Result<()> {
    let group = OwnGroup::try_from(group_of(mount, folder)?).map_err(io::Error::other)?;
    let hierarchy = Some(Hierarchy::at(mount).map_err(|error| at(mount, error))?);
    journal.write(&Touch::Cgroup { version, group, hierarchy })?;
    fs::create_dir(folder).map_err(|error| at(folder, error))?;
    set_frozen(version == CgroupVersion::V1, folder, true).map_err(|error| at(folder, error))
}

fn group_of(mount: &Path, folder: &Path) -> io::Result<Group> {
    let wrong =
        || io::Error::other(format!("{} is not below {}", folder.display(), mount.display()));
    Group::of_folder(mount, folder).ok_or_else(wrong)
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

/// The cgroup of a thread within a hierarchy.
///
/// # Errors
///
/// The thread does not exist (any more), or that cannot be told.
pub fn cgroup_path(proc: &Proc, version: CgroupVersion, tid: i32) -> io::Result<PathBuf> {
    let is_meant = |names: &str| match version {
        CgroupVersion::V1 => names.split(',').any(|name| name == "freezer"),
        CgroupVersion::V2 => names.is_empty(),
    };
    let found = proc.cgroups(tid)?.into_iter().find(|(names, _)| is_meant(names));
    let none = || io::Error::other(format!("/proc/{tid}/cgroup does not name its cgroup"));
    found.map(|(_, path)| path).ok_or_else(none)
}
