use std::os::fd::OwnedFd;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ampsched_computer::path_page::{self, SLOTS_MAX};
use rustix::fs::{CWD, ftruncate, mkfifoat};
use rustix::io::pwrite;

use super::*;

/// Every test is a process with pages, and all are the same one.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn own() -> i32 {
    std::process::id() as i32
}

fn memfd(words: &[u64]) -> OwnedFd {
    let file = memfd_create(path_page::NAME, MemfdFlags::CLOEXEC).unwrap();
    write(&file, 0, words);
    file
}

fn write(file: &OwnedFd, first: u64, words: &[u64]) {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    assert_eq!(pwrite(file, &bytes, 8 * first).unwrap(), bytes.len());
}

/// A page with a slot for each thread.
fn page_of(slots: &[(u64, u64)]) -> OwnedFd {
    let words = slots.iter().flat_map(|&(tid, path_ns)| [tid, path_ns]);
    let words: Vec<u64> = path_page::header(slots.len()).into_iter().chain(words).collect();
    memfd(&words)
}

#[test]
fn what_a_process_tells_is_read_anew_at_each_look() {
    let _alone = alone();
    let mut paths = Paths::new().unwrap();
    let page = page_of(&[(11, 500), (12, 0)]);
    let look =
        |paths: &mut Paths, now_ns| [11, 12, 13].map(|tid| paths.path_ns(own(), tid, now_ns));
    assert_eq!(look(&mut paths, 0), [Some(500), None, None]);
    write(&page, 3, &[700, 12, 900]);
    assert_eq!(look(&mut paths, 0), [Some(500), None, None], "one look, one reading");
    assert_eq!(look(&mut paths, 4_000_000), [Some(700), Some(900), None]);
    assert_eq!(paths.path_ns(1, 11, 4_000_000), None, "what one process says of another's thread");
    ftruncate(&page, 20).unwrap();
    assert_eq!(look(&mut paths, 8_000_000), [None; 3], "its end is gone");
}

#[test]
fn a_runtime_that_starts_later_is_found() {
    let _alone = alone();
    let mut paths = Paths::new().unwrap();
    assert_eq!(paths.path_ns(own(), 21, 0), None);
    let _pages = (page_of(&[(21, 500)]), page_of(&[(22, 600)]));
    assert_eq!(paths.path_ns(own(), 21, SEARCH_NS - 1), None);
    assert_eq!(paths.path_ns(own(), 21, SEARCH_NS), Some(500));
    assert_eq!(paths.path_ns(own(), 22, SEARCH_NS), Some(600), "a second runtime");
}

#[test]
fn a_process_that_has_ended_is_forgotten() {
    let _alone = alone();
    let mut sleeper = Command::new("sleep");
    let mut sleeper = sleeper.arg("60").stdin(page_of(&[(61, 500)])).spawn().unwrap();
    let (pid, mut paths) = (sleeper.id() as i32, Paths::new().unwrap());
    assert_eq!(paths.path_ns(pid, 61, 0), Some(500));
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert_eq!(paths.path_ns(pid, 61, SEARCH_NS), None);
    // No process has this number.
    assert_eq!(paths.path_ns(i32::MAX, 61, 2 * SEARCH_NS), None);
    assert_eq!(paths.processes.keys().copied().collect::<Vec<_>>(), [i32::MAX]);
}

#[test]
fn nonsense_tells_nothing() {
    let _alone = alone();
    let [magic, version] = path_page::header(1);
    let huge = path_page::header(SLOTS_MAX + 1);
    let all = [
        &[][..],
        &[magic],
        &[magic ^ 1, version, 31, 500],
        &[magic, version + 1, 31, 500],
        &[magic, version, 31],
        &[huge[0], huge[1], 31, 500],
        &[magic, u64::MAX, 31, 500],
        // Room for all but one.
        &[magic, path_page::header(2)[1], 31, 500],
    ];
    for words in all {
        let _page = memfd(words);
        assert_eq!(Paths::new().unwrap().path_ns(own(), 31, 0), None, "{words:x?}");
    }
    let _page = memfd(&[magic, version, 31, 500]);
    assert_eq!(Paths::new().unwrap().path_ns(own(), 31, 0), Some(500));
}

#[test]
fn a_process_has_a_few_pages_at_most_and_all_have_a_limit() {
    let _alone = alone();
    let pages: Vec<OwnedFd> = (41..51).map(|tid| page_of(&[(tid, 500)])).collect();
    let mut paths = Paths::new().unwrap();
    let told =
        |paths: &mut Paths| (41..51).filter(|&tid| paths.path_ns(own(), tid, 0).is_some()).count();
    assert_eq!(told(&mut paths), PAGES_MAX);
    let mut paths = Paths::new().unwrap();
    let page = || page(Path::new(&format!("/proc/self/fd/{}", pages[0].as_raw_fd())), paths.device);
    let hoard = (0..ALL_PAGES_MAX - 1).map(|_| page().unwrap().unwrap()).collect();
    let hoarder = Process { pages: hoard, read_ns: Some(0), ..Process::default() };
    paths.processes.insert(1, hoarder);
    assert_eq!(told(&mut paths), 1);
}

#[test]
fn what_is_no_memfd_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let (pipe, file) = (folder.path().join("pipe"), folder.path().join("file"));
    mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
    let words: Vec<u64> = path_page::header(1).into_iter().chain([51, 500]).collect();
    fs::write(&file, words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>())
        .unwrap();
    let device = Paths::new().unwrap().device;
    // Opening the pipe would wait for a writer for ever.
    assert!(page(&pipe, device).unwrap().is_none());
    assert!(page(&file, device).unwrap().is_none());
}
