//! What the sessions of this computer have for themselves, so that no two schedule the same processes.
//!
//! Each session has a file in a folder in which every user may make files, and locks the byte whose number is that of
//! a process before it schedules that process. Then it asks for the same byte of the files of others: of two that
//! take the same process at the same time, at least one sees the other. The locks are the kernel's (`fcntl`, of the
//! open file). Anybody can ask for them and nobody else can take them away, and as the guardian has the same open
//! file, they last until session and guardian have ended: until all is put back.
//!
//! A lock counts only if its owner may schedule the process: root, the process's own user, or the asking user. So
//! nobody keeps others from scheduling their programs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use ampsched_computer::{Proc, Root, ThreadKey, ThreadStat, boot_id};
use ampsched_model::InputError;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use tempfile::{Builder, NamedTempFile};

/// Where files of sessions are: the first in which one can be made, and all are looked through. Services with a
/// `/tmp` of their own still have the first.
const FOLDERS: [&str; 2] = ["/dev/shm", "/tmp"];
/// How their names begin.
const NAME: &str = "ampsched-session-";
/// Greatest length of their text, in bytes (ours): several times that of a path.
const TEXT_MAX: u64 = 16 * 1024;
/// The byte that is locked from the beginning.
const ALIVE: i64 = 0;
/// The byte of the clocks of all clusters, beyond all numbers of processes.
const CLOCKS: i64 = 1 << 32;

/// What a session has for itself.
#[derive(Debug)]
pub struct Claims {
    file: NamedTempFile,
    own: i32,
    taken: BTreeMap<i32, ThreadKey>,
}

/// What a session says in its file.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    boot: Option<String>,
    /// Within which its number, and those of the bytes, are meant.
    pid_namespace: Option<PathBuf>,
    /// Its process.
    pid: i32,
    /// Its journal.
    journal: PathBuf,
}

/// The file of another session.
#[derive(Debug)]
struct Other {
    file: File,
    path: PathBuf,
    user: u32,
    registration: Registration,
}

/// A process that another session has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Taken {
    /// The other session's process.
    pub by: i32,
    /// The other session's user.
    pub user: u32,
}

impl Taken {
    /// Whose it is, in words.
    pub fn words(&self) -> String {
        format!("the session of process {} (user {})", self.by, self.user)
    }
}

impl Claims {
    /// Makes a session known to others; it has nothing yet. `journal`: where it will be.
    ///
    /// # Errors
    ///
    /// There is no folder for that.
    pub fn join(own: ThreadKey, journal: &Path) -> Result<Self, InputError> {
        let mut errors = Vec::new();
        for folder in FOLDERS {
            match Self::join_in(Path::new(folder), own, journal) {
                Ok(claims) => return Ok(claims),
                Err(error) => errors.push(format!("{folder}: {error}")),
            }
        }
        let hint = "there other sessions see which processes this one schedules";
        Err(InputError::new("sessions", "", errors.join("; ")).with_hint(hint))
    }

    fn join_in(folder: &Path, own: ThreadKey, journal: &Path) -> io::Result<Self> {
        let registration = Registration {
            boot: boot_id(&Root::default()),
            pid_namespace: pid_namespace(),
            pid: own.tid,
            journal: std::path::absolute(journal)?,
        };
        loop {
            let mut file = Builder::new().prefix(NAME).tempfile_in(folder)?;
            let is_locked = set_lock(file.as_file(), libc::F_WRLCK, ALIVE, 1)?;
            // Another session may have taken it for one that a session has left.
            if !is_locked || file.as_file().metadata()?.nlink() == 0 {
                continue;
            }
            file.as_file().set_permissions(Permissions::from_mode(0o644))?;
            file.write_all(serde_json::to_string(&registration)?.as_bytes())?;
            return Ok(Self { file, own: own.tid, taken: BTreeMap::new() });
        }
    }

    /// The open file, with which another process has the same claims.
    pub fn share(&self) -> io::Result<File> {
        self.file.as_file().try_clone()
    }

    /// Takes the processes of some threads, but those that other sessions have: these are returned, with whose they
    /// are.
    pub fn take(
        &mut self,
        proc: &Proc,
        threads: &[ThreadStat],
    ) -> io::Result<BTreeMap<i32, Taken>> {
        self.take_while(proc, threads, || {})
    }

    /// The same, while something happens between its two steps, of which no other order will do.
    fn take_while(
        &mut self,
        proc: &Proc,
        threads: &[ThreadStat],
        meanwhile: impl FnOnce(),
    ) -> io::Result<BTreeMap<i32, Taken>> {
        let pids: BTreeSet<i32> = threads.iter().map(|stat| stat.pid).collect();
        self.let_go(proc, &pids)?;
        let new: Vec<i32> = pids.into_iter().filter(|pid| !self.taken.contains_key(pid)).collect();
        let mut refused = BTreeMap::new();
        if new.is_empty() {
            return Ok(refused);
        }
        for &pid in &new {
            set_lock(self.file.as_file(), libc::F_WRLCK, pid.into(), 1)?;
        }
        meanwhile();
        let others = self.others();
        for pid in new {
            match (self.holder(proc, &others, pid)?, proc.process(pid)) {
                (None, Some(stat)) => drop(self.taken.insert(pid, stat.key)),
                (holder, _) => {
                    set_lock(self.file.as_file(), libc::F_UNLCK, pid.into(), 1)?;
                    refused.extend(holder.map(|holder| (pid, holder)));
                }
            }
        }
        Ok(refused)
    }

    /// Takes all that runs here; returns a process that another session has, and whose it is.
    pub fn take_everything(&mut self, proc: &Proc) -> io::Result<Option<(i32, Taken)>> {
        set_lock(self.file.as_file(), libc::F_WRLCK, 1, CLOCKS - 1)?;
        let others = self.others();
        let pids = Root::default().names("/proc").into_iter().filter_map(|name| name.parse().ok());
        for pid in pids {
            if let Some(holder) = self.holder(proc, &others, pid)? {
                return Ok(Some((pid, holder)));
            }
        }
        Ok(None)
    }

    /// Takes the clocks of all clusters, or says who has them.
    pub fn take_clocks(&mut self) -> io::Result<Option<Taken>> {
        set_lock(self.file.as_file(), libc::F_WRLCK, CLOCKS, 1)?;
        let own_user = rustix::process::geteuid().as_raw();
        for other in self.others() {
            if (other.user == 0 || other.user == own_user) && other.has(CLOCKS)? {
                return Ok(Some(other.taken()));
            }
        }
        Ok(None)
    }

    /// Who schedules this session itself: it, or whoever has started it, or it is below what another session has
    /// started.
    pub fn scheduled_by(&self, proc: &Proc) -> io::Result<Option<Taken>> {
        let (others, parent) = (self.others(), proc.process(self.own).map(|stat| stat.parent));
        for pid in [Some(self.own), parent].into_iter().flatten() {
            if let Some(holder) = self.holder(proc, &others, pid)? {
                return Ok(Some(holder));
            }
        }
        Ok(None)
    }

    /// Journals of one's own sessions that are gone with their guardians. Files of those that have left none are
    /// removed.
    pub fn left_journals(&self) -> Vec<PathBuf> {
        let own_user = rustix::process::geteuid().as_raw();
        let own = self.files().filter(|other| other.user == own_user);
        let left = own.filter_map(|other| {
            // The process that removes it has its lock, which a session wants that has just made it.
            let file = open(&other.path, true).ok()?;
            if !set_lock(&file, libc::F_WRLCK, ALIVE, 1).ok()? {
                return None;
            }
            if !other.registration.is_of_here() || !other.registration.journal.exists() {
                let _ = fs::remove_file(&other.path);
                return None;
            }
            Some(other.registration.journal)
        });
        left.collect()
    }

    /// Forgets processes that have ended, whose numbers others may get.
    fn let_go(&mut self, proc: &Proc, still: &BTreeSet<i32>) -> io::Result<()> {
        let has_ended = |(pid, key): (&i32, &ThreadKey)| {
            let is_same = || proc.process(*pid).is_some_and(|stat| stat.key == *key);
            (!still.contains(pid) && !is_same()).then_some(*pid)
        };
        let ended: Vec<i32> = self.taken.iter().filter_map(has_ended).collect();
        for pid in ended {
            set_lock(self.file.as_file(), libc::F_UNLCK, pid.into(), 1)?;
            self.taken.remove(&pid);
        }
        Ok(())
    }

    /// Whose a process is: the session that has locked it, or has started it or one of its ancestors.
    fn holder(&self, proc: &Proc, others: &[Other], pid: i32) -> io::Result<Option<Taken>> {
        let users = [Some(0), Some(rustix::process::geteuid().as_raw()), proc.user(pid)];
        let above = self.ancestors(proc, pid);
        for other in others.iter().filter(|other| users.contains(&Some(other.user))) {
            if above.contains(&other.registration.pid) || other.has(pid.into())? {
                return Ok(Some(other.taken()));
            }
        }
        Ok(None)
    }

    /// A process and those above it, below this session if it is there.
    fn ancestors(&self, proc: &Proc, pid: i32) -> BTreeSet<i32> {
        let (mut above, mut next) = (BTreeSet::new(), Some(pid));
        while let Some(pid) = next.filter(|pid| *pid > 1 && above.insert(*pid)) {
            let parent = proc.process(pid).map(|stat| stat.parent);
            next = parent.filter(|parent| *parent != self.own);
        }
        above
    }

    /// The other sessions that are there.
    fn others(&self) -> Vec<Other> {
        let is_alive =
            |other: &Other| other.registration.is_of_here() && other.has(ALIVE).unwrap_or(true);
        self.files().filter(is_alive).collect()
    }

    /// The files of other sessions, also of those that are gone.
    fn files(&self) -> impl Iterator<Item = Other> {
        let own = self.file.path().to_owned();
        let entries =
            FOLDERS.into_iter().flat_map(|folder| fs::read_dir(folder).into_iter().flatten());
        let paths = entries.filter_map(|entry| {
            let entry = entry.ok()?;
            entry.file_name().to_str()?.starts_with(NAME).then(|| entry.path())
        });
        paths.filter(move |path| *path != own).filter_map(|path| Other::read(path).ok())
    }
}

impl Registration {
    /// Whether its numbers mean the same here and now.
    fn is_of_here(&self) -> bool {
        self.boot == boot_id(&Root::default()) && self.pid_namespace == pid_namespace()
    }
}

impl Other {
    fn read(path: PathBuf) -> io::Result<Self> {
        let file = open(&path, false)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut text = String::new();
        (&file).take(TEXT_MAX).read_to_string(&mut text)?;
        Ok(Self { registration: serde_json::from_str(&text)?, file, path, user: metadata.uid() })
    }

    /// Whether it has locked a byte.
    fn has(&self, byte: i64) -> io::Result<bool> {
        let mut lock = lock(libc::F_WRLCK, byte, 1);
        fcntl(&self.file, FcntlArg::F_OFD_GETLK(&mut lock))?;
        Ok(lock.l_type != libc::F_UNLCK as libc::c_short)
    }

    fn taken(&self) -> Taken {
        Taken { by: self.registration.pid, user: self.user }
    }
}

/// Opens a file in a folder where anybody may have put anything.
fn open(path: &Path, to_lock: bool) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    File::options().read(true).write(to_lock).custom_flags(flags.bits() as i32).open(path)
}

fn pid_namespace() -> Option<PathBuf> {
    fs::read_link("/proc/self/ns/pid").ok()
}

fn lock(kind: i32, first: i64, count: i64) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: first,
        l_len: count,
        l_pid: 0,
    }
}

/// Locks or unlocks bytes of an open file; false if another one has one of them.
fn set_lock(file: &File, kind: i32, first: i64, count: i64) -> io::Result<bool> {
    match fcntl(file, FcntlArg::F_OFD_SETLK(&lock(kind, first, count))) {
        Ok(_) => Ok(true),
        Err(Errno::EAGAIN | Errno::EACCES) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A session whose process is none that runs.
    fn session(tid: i32) -> Claims {
        let own = ThreadKey { tid, start_ticks: 0 };
        Claims::join(own, Path::new("/nowhere/journal")).unwrap()
    }

    #[test]
    fn m06_of_two_sessions_that_begin_at_once_one_has_a_process() {
        let proc = Proc::default();
        let wanted = [proc.process(std::process::id() as i32).unwrap()];
        let (mut first, mut second) = (session(i32::MAX), session(i32::MAX - 1));
        let mut refused = BTreeMap::new();
        let taken = first.take_while(&proc, &wanted, || {
            refused = second.take(&proc, &wanted).unwrap();
        });
        assert_eq!(taken.unwrap(), BTreeMap::new());
        let user = rustix::process::geteuid().as_raw();
        let by_first = BTreeMap::from([(wanted[0].pid, Taken { by: i32::MAX, user })]);
        assert_eq!((refused, second.taken.len()), (by_first, 0));
    }
}
