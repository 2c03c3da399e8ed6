//! What task runtimes tell of the chains of tasks that begin with those that their threads execute.
//!
//! A runtime that is asked for it ([`path_page::TELL_PATHS`]) has a page in a memfd, which is found among the open
//! files of its process by its name. Whoever may read these may also trace the process, so nothing new is told. The
//! process is not trusted: what it has there may be anything, may change at any time, and must not make a session wait.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use ampsched_computer::path_page;
use ampsched_model::Ns;
use rustix::fs::{
    AtFlags, FileType, MemfdFlags, Mode, OFlags, StatxFlags, memfd_create, open, statx,
};

/// How often a process's pages are looked for: runtimes start and end (ours).
const SEARCH_NS: Ns = 1_000_000_000;
/// Open files of a process that are looked at, from the lowest number on (ours): links are read in about 1 us each.
const LINKS_MAX: usize = 1000;
/// Pages of a process that are read: it may have several runtimes (ours).
const PAGES_MAX: usize = 4;
/// Pages that are read altogether: each takes a file descriptor, of which there are often 1024 (ours).
const ALL_PAGES_MAX: usize = 256;

/// What runtimes tell of all threads of some processes.
pub struct Paths {
    /// Where the kernel keeps memfds.
    device: Device,
    processes: BTreeMap<i32, Process>,
}

/// Major and minor number.
type Device = (u32, u32);

#[derive(Default)]
struct Process {
    pages: Vec<Page>,
    /// By thread, as of the last reading.
    told: BTreeMap<i32, Ns>,
    searched_ns: Option<Ns>,
    read_ns: Option<Ns>,
}

struct Page {
    file: File,
    /// Room for all of it.
    bytes: Vec<u8>,
}

impl Paths {
    /// Nothing has been looked for yet.
    ///
    /// # Errors
    ///
    /// The kernel has no memfds.
    pub fn new() -> io::Result<Self> {
        let own = memfd_create(path_page::NAME, MemfdFlags::CLOEXEC)?;
        Ok(Self { device: stat(own)?.1, processes: BTreeMap::new() })
    }

    /// Time in ns of the longest chain of tasks that begins with the one that a thread of a process executes, if a
    /// runtime tells. Files are read once for all threads of a process at the same time.
    pub fn path_ns(&mut self, pid: i32, tid: i32, now_ns: Ns) -> Option<Ns> {
        if !self.processes.contains_key(&pid) {
            // Others may have ended.
            self.processes.retain(|_, process| process.is_recent(now_ns));
        }
        let others = self.processes.iter().filter(|(other, _)| **other != pid);
        let room = ALL_PAGES_MAX - others.map(|(_, other)| other.pages.len()).sum::<usize>();
        let process = self.processes.entry(pid).or_default();
        if process.searched_ns.is_none_or(|at_ns| now_ns >= at_ns + SEARCH_NS) {
            process.searched_ns = Some(now_ns);
            process.pages = pages(pid, self.device, room.min(PAGES_MAX));
        }
        if process.read_ns != Some(now_ns) {
            process.read_ns = Some(now_ns);
            process.read();
        }
        process.told.get(&tid).copied()
    }
}

impl Process {
    fn is_recent(&self, now_ns: Ns) -> bool {
        self.read_ns.is_some_and(|at_ns| now_ns < at_ns + SEARCH_NS)
    }

    fn read(&mut self) {
        self.told.clear();
        for page in &mut self.pages {
            let length = page.file.read_at(&mut page.bytes, 0).unwrap_or(0);
            self.told.extend(path_page::stated_paths(&page.bytes[..length]));
        }
    }
}

/// Some of a process's pages, up to a limit.
fn pages(pid: i32, device: Device, most: usize) -> Vec<Page> {
    // It may have ended, or be another user's.
    let links = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let links = links.take(LINKS_MAX).map(|link| link.path());
    let is_named =
        |link: &Path| fs::read_link(link).is_ok_and(|to| to.as_os_str() == path_page::LINK);
    let named = links.filter(|link| is_named(link)).take(most);
    named.filter_map(|link| page(&link, device).ok().flatten()).collect()
}

/// The page to which a link leads, if it is one. Somebody else's file system, or a pipe, may have a file of the same
/// name that makes whoever opens or reads it wait, so it is not opened before it is known to be a memfd.
fn page(link: &Path, device: Device) -> io::Result<Option<Page>> {
    let handle = open(link, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    if stat(&handle)? != (FileType::RegularFile, device) {
        return Ok(None);
    }
    let file = File::open(format!("/proc/self/fd/{}", handle.as_raw_fd()))?;
    let mut header = [0; path_page::HEADER_BYTES];
    let length = file.read_at(&mut header, 0)?;
    let page = |slots| Page { file, bytes: vec![0; path_page::bytes(slots)] };
    Ok(path_page::slots(&header[..length]).map(page))
}

/// What a file is and where, without asking the process that serves its file system.
fn stat(file: impl AsFd) -> io::Result<(FileType, Device)> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let stat = statx(file, "", flags, StatxFlags::TYPE)?;
    let kind = FileType::from_raw_mode(u32::from(stat.stx_mode));
    Ok((kind, (stat.stx_dev_major, stat.stx_dev_minor)))
}

#[cfg(test)]
mod tests;
