//! What the sessions of this computer have for themselves, so that no two schedule the same processes.
//!
//! Each session has a file in a folder in which every user may make files, and locks the byte whose number is that of
//! a process before it schedules that process. Then it asks for the same byte of the files of others: of two that
//! take the same process at the same time, at least one sees the other. The locks are the kernel's (`fcntl`, of the
//! open file). Anybody can ask for them and nobody else can take them away, and as the guardian has the same open
//! file, they last until session and guardian have ended: until all is put back.
//!
//! A lock counts only if its owner may schedule the process: root, the process's own user, or the asking user. So
//! nobody keeps others from scheduling their programs, and files of nobody else are read. Of each user's files some are
//! looked at, so that nobody's can take much time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use ampsched_computer::{Proc, ThreadKey, ThreadStat, is_gone, unless_gone};
use ampsched_model::InputError;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use tempfile::{Builder, NamedTempFile};

use crate::place::{Place, Relation};
use crate::run_dir::program_of;

/// Where files of sessions are: the first in which one can be made, and all are looked through. Services with a
/// `/tmp` of their own still have the first.
const FOLDERS: [&str; 2] = ["/dev/shm", "/tmp"];
/// How their names begin.
const NAME: &str = "ampsched-session-";
/// Greatest length of their text, in bytes (ours): several times that of a path.
const TEXT_MAX: u64 = 16 * 1024;
/// Files that are looked at of a user who is neither root nor this one (ours): many more than sessions at a time.
const FILES_MAX: usize = 64;
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
    /// Where its number, and those of the bytes, are meant.
    #[serde(flatten)]
    place: Place,
    /// Within which its journal's path is meant.
    #[serde(default)]
    mount_namespace: Option<PathBuf>,
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
    /// None if it says nothing, or something else.
    registration: Option<Registration>,
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
            place: Place::here()?,
            mount_namespace: mount_namespace(),
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
        let others = self.others(&users_of(proc, &new)?)?;
        for pid in new {
            match (self.holder(proc, &others, pid)?, unless_gone(proc.process(pid))?) {
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
        let pids = proc.processes()?;
        let others = self.others(&users_of(proc, &pids)?)?;
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
        for other in self.others(&trusted())? {
            if other.has(CLOCKS)? {
                return Ok(Some(other.taken()));
            }
        }
        Ok(None)
    }

    /// Who schedules this session itself: it, or whoever has started it, or it is below what another session has
    /// started.
    pub fn scheduled_by(&self, proc: &Proc) -> io::Result<Option<Taken>> {
        let pids = [self.own, proc.process(self.own)?.parent];
        let others = self.others(&users_of(proc, &pids)?)?;
        for pid in pids {
            if let Some(holder) = self.holder(proc, &others, pid)? {
                return Ok(Some(holder));
            }
        }
        Ok(None)
    }

    /// Journals of one's own sessions that are gone with their guardians. Files of those that have left none are
    /// removed, and files that are no session's.
    pub fn left_journals(&self) -> Vec<PathBuf> {
        let own = BTreeSet::from([rustix::process::geteuid().as_raw()]);
        let left = self.files(&own).into_iter().filter_map(|other| {
            // The process that removes it has its lock, which a session wants that has just made it.
            let file = open(&other.path, true).ok()?;
            if !set_lock(&file, libc::F_WRLCK, ALIVE, 1).ok()? {
                return None;
            }
            let left = other.registration.map_or(Left::Nothing, Registration::left);
            if matches!(left, Left::Nothing) {
                let _ = fs::remove_file(&other.path);
            }
            if let Left::Journal(journal) = left { Some(journal) } else { None }
        });
        left.collect()
    }

    /// Forgets processes that have ended, whose numbers others may get.
    fn let_go(&mut self, proc: &Proc, still: &BTreeSet<i32>) -> io::Result<()> {
        let has_ended = |(pid, key): (&i32, &ThreadKey)| {
            (!still.contains(pid) && proc.has_ended(*key)).then_some(*pid)
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
        let users = users_of(proc, &[pid])?;
        let above = self.ancestors(proc, pid)?;
        for other in others.iter().filter(|other| users.contains(&other.user)) {
            if other.pid().is_some_and(|pid| above.contains(&pid)) || other.has(pid.into())? {
                return Ok(Some(other.taken()));
            }
        }
        Ok(None)
    }

    /// A process and those above it, below this session if it is there.
    fn ancestors(&self, proc: &Proc, pid: i32) -> io::Result<BTreeSet<i32>> {
        let (mut above, mut next) = (BTreeSet::new(), Some(pid));
        while let Some(pid) = next.filter(|pid| *pid > 1 && above.insert(*pid)) {
            let parent = unless_gone(proc.process(pid))?.map(|stat| stat.parent);
            next = parent.filter(|parent| *parent != self.own);
        }
        Ok(above)
    }

    /// The sessions of some users that are there.
    fn others(&self, users: &BTreeSet<u32>) -> io::Result<Vec<Other>> {
        let here = Place::here()?;
        let is_alive = |other: &Other| {
            let registration = other.registration.as_ref();
            registration.is_some_and(|session| session.place.from(&here) == Relation::Here)
                && other.has(ALIVE).unwrap_or(true)
        };
        Ok(self.files(users).into_iter().filter(is_alive).collect())
    }

    /// The files of other sessions of some users, also of those that are gone.
    fn files(&self, users: &BTreeSet<u32>) -> Vec<Other> {
        let files = FOLDERS.iter().flat_map(|folder| files_in(Path::new(folder), users));
        files.filter(|other| other.path != self.file.path()).collect()
    }
}

/// The files of sessions of some users in a folder: of users who may be anybody, some.
fn files_in(folder: &Path, users: &BTreeSet<u32>) -> Vec<Other> {
    let (mut counts, trusted): (BTreeMap<u32, usize>, _) = (BTreeMap::new(), trusted());
    let paths = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let others = paths.filter(|path| is_session_name(path));
    let others = others.filter_map(|path| Other::open(path, users).ok());
    let mut is_one_of_few = |other: &Other| {
        let count = counts.entry(other.user).or_default();
        *count += 1;
        *count <= FILES_MAX || trusted.contains(&other.user)
    };
    others.filter(|other| is_one_of_few(other)).map(Other::read).collect()
}

/// Those whose sessions count for all processes: root and this user.
fn trusted() -> BTreeSet<u32> {
    BTreeSet::from([0, rustix::process::geteuid().as_raw()])
}

/// Those whose sessions may schedule some processes.
fn users_of(proc: &Proc, pids: &[i32]) -> io::Result<BTreeSet<u32>> {
    let mut users = trusted();
    for &pid in pids {
        users.extend(unless_gone(proc.user(pid))?);
    }
    Ok(users)
}

/// What a session that is gone has left.
enum Left {
    /// A journal.
    Journal(PathBuf),
    Nothing,
    /// What cannot be told here.
    Unknown,
}

impl Registration {
    fn left(self) -> Left {
        let name = self.journal.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Ok(here) = Place::here() else { return Left::Unknown };
        match self.place.from(&here) {
            Relation::Past => Left::Nothing,
            Relation::Elsewhere(_) => Left::Unknown,
            // It is somebody's forgery.
            Relation::Here if program_of(name).is_none() => Left::Nothing,
            Relation::Here => match self.journal.symlink_metadata() {
                // A folder that is not there may be there for the session.
                Err(error) if is_gone(&error) && self.mount_namespace == mount_namespace() => {
                    Left::Nothing
                }
                Err(error) if is_gone(&error) => Left::Unknown,
                _ => Left::Journal(self.journal),
            },
        }
    }
}

impl Other {
    /// A file of one of some users; nobody else's is read.
    fn open(path: PathBuf, users: &BTreeSet<u32>) -> io::Result<Self> {
        // Most that somebody else has put there is passed over without being opened.
        let is_meant = |found: &fs::Metadata| found.is_file() && users.contains(&found.uid());
        if !is_meant(&path.symlink_metadata()?) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let file = open(&path, false)?;
        let found = file.metadata()?;
        if !is_meant(&found) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(Self { file, path, user: found.uid(), registration: None })
    }

    fn read(mut self) -> Self {
        let mut text = Vec::new();
        if (&self.file).take(TEXT_MAX).read_to_end(&mut text).is_ok() {
            self.registration = serde_json::from_slice(&text).ok();
        }
        self
    }

    /// Its session's process.
    fn pid(&self) -> Option<i32> {
        self.registration.as_ref().map(|session| session.pid)
    }

    /// Whether it has locked a byte.
    fn has(&self, byte: i64) -> io::Result<bool> {
        let mut lock = lock(libc::F_WRLCK, byte, 1);
        fcntl(&self.file, FcntlArg::F_OFD_GETLK(&mut lock))?;
        Ok(lock.l_type != libc::F_UNLCK as libc::c_short)
    }

    fn taken(&self) -> Taken {
        Taken { by: self.pid().unwrap_or_default(), user: self.user }
    }
}

/// Removes the file of a session that is gone, which a guardian has open.
pub fn forget_shared(file: impl AsFd) {
    let path = fs::read_link(format!("/proc/self/fd/{}", file.as_fd().as_raw_fd()));
    let Some(path) = path.ok().filter(|path| is_session_name(path)) else { return };
    let is_in = |folder: &&str| path.parent() == Some(Path::new(folder));
    if FOLDERS.iter().any(is_in) {
        // Nobody else's is at its place: only its owner and root can exchange it.
        let _ = fs::remove_file(path);
    }
}

/// Whether a file is called like those of sessions.
fn is_session_name(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.as_encoded_bytes().starts_with(NAME.as_bytes())
}

/// Opens a file in a folder where anybody may have put anything.
fn open(path: &Path, to_lock: bool) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    File::options().read(true).write(to_lock).custom_flags(flags.bits() as i32).open(path)
}

fn mount_namespace() -> Option<PathBuf> {
    fs::read_link("/proc/self/ns/mnt").ok()
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
mod tests;
