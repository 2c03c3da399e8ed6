//! What workers tell whoever schedules their threads: how long the chains of tasks are that begin with theirs.
//!
//! They write into a page of shared memory ([`path_page`]), without a system call, so that a policy of the operating
//! system that looks every few milliseconds sees who executes the longest chain.
#![allow(unsafe_code)]

use std::env;
use std::ffi::c_void;
use std::os::fd::OwnedFd;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::{AtomicU64, Ordering};

use ampsched_computer::path_page::{self, HEADER_WORDS, SLOT_WORDS};
use ampsched_task::WorkerId;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::Error;

/// A page with a slot for each worker.
pub struct PathPublisher {
    start: NonNull<AtomicU64>,
    words: usize,
    /// Who watches the process finds the page by this.
    _file: OwnedFd,
}

// SAFETY: the page is unmapped only when this is dropped, and all accesses to it are atomic.
unsafe impl Send for PathPublisher {}
// SAFETY: as above.
unsafe impl Sync for PathPublisher {}

impl PathPublisher {
    /// A page for workers with these threads if the environment asks for one.
    ///
    /// Errors: there is no memory or no file descriptor.
    pub fn if_asked(thread_ids: &[u32]) -> Result<Option<Self>, Error> {
        if env::var_os(path_page::TELL_PATHS).is_none_or(|asked| asked != "1") {
            return Ok(None);
        }
        let error = |error| Error::system("a page that tells paths of tasks", error, "");
        Self::new(thread_ids).map(Some).map_err(error)
    }

    fn new(thread_ids: &[u32]) -> Result<Self, Errno> {
        let bytes = path_page::bytes(thread_ids.len());
        let file = memfd_create(path_page::NAME, MemfdFlags::CLOEXEC)?;
        ftruncate(&file, bytes as u64)?;
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: the kernel chooses where, so nothing else is there.
        let start = unsafe { mmap(ptr::null_mut(), bytes, access, flags, &file, 0)? };
        let start = NonNull::new(start.cast()).ok_or(Errno::NOMEM)?;
        let publisher = Self { start, words: bytes / size_of::<AtomicU64>(), _file: file };
        for (slot, &thread_id) in
            publisher.words()[HEADER_WORDS..].chunks(SLOT_WORDS).zip(thread_ids)
        {
            slot[0].store(u64::from(thread_id), Ordering::Relaxed);
        }
        // Without the first word the rest counts for nothing.
        for (word, value) in publisher.words().iter().zip(path_page::header(thread_ids.len())).rev()
        {
            word.store(value, Ordering::Release);
        }
        Ok(publisher)
    }

    fn words(&self) -> &[AtomicU64] {
        // SAFETY: so many words are mapped, at a page's start and filled with zeros, until this is dropped.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.words) }
    }

    fn path(&self, worker: WorkerId) -> &AtomicU64 {
        &self.words()[HEADER_WORDS + worker.index() * SLOT_WORDS + 1]
    }

    /// What is told of a worker: time of its path in ns, 0 for none.
    pub fn path_ns(&self, worker: WorkerId) -> u64 {
        self.path(worker).load(Ordering::Relaxed)
    }

    /// Tells a worker's path.
    pub fn tell(&self, worker: WorkerId, path_ns: u64) {
        self.path(worker).store(path_ns, Ordering::Relaxed);
    }
}

impl Drop for PathPublisher {
    fn drop(&mut self) {
        let bytes = self.words * size_of::<AtomicU64>();
        // SAFETY: nobody has a reference into the page any more. If it fails the page stays, which harms nobody.
        let _ = unsafe { munmap(self.start.as_ptr().cast::<c_void>(), bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    #[test]
    fn others_read_what_is_told_by_the_descriptor() {
        let publisher = PathPublisher::new(&[70, 80, 90]).unwrap();
        publisher.tell(WorkerId(0), 5);
        publisher.tell(WorkerId(2), u64::MAX);
        assert_eq!([0, 1, 2].map(|worker| publisher.path_ns(WorkerId(worker))), [5, 0, u64::MAX]);
        let file = File::from(publisher._file.try_clone().unwrap());
        let read = || {
            let mut page = vec![0; path_page::bytes(3) + 1];
            let length = file.read_at(&mut page, 0).unwrap();
            assert_eq!(length, path_page::bytes(3));
            path_page::stated_paths(&page[..length]).collect::<Vec<_>>()
        };
        assert_eq!(read(), [(70, 5), (90, u64::MAX)]);
        publisher.tell(WorkerId(0), 0);
        assert_eq!(read(), [(90, u64::MAX)]);
    }
}
