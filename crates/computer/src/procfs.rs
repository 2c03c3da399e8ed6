//! Threads as `/proc` shows them (proc(5)).

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use ampsched_model::Ns;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::root::trimmed;
use crate::{Root, parse_cpus};

/// A thread that cannot be mistaken for a later one with the same number. A process is meant by its first thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ThreadKey {
    /// Number of the thread.
    pub tid: i32,
    /// When it started, in clock ticks since boot.
    pub start_ticks: u64,
}

/// What `/proc/PID/task/TID/stat` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadStat {
    /// Which thread.
    pub key: ThreadKey,
    /// Its process.
    pub pid: i32,
    /// Its name; what is no UTF-8 of it is U+FFFD.
    pub name: String,
    /// Its state as one letter: `R` runs or waits for a CPU, `S` and `D` wait for something else.
    pub state: char,
    /// The parent of its process.
    pub parent: i32,
    /// Its process group: what a shell calls a job.
    pub group: i32,
    /// The CPU on which it runs, waits or last ran.
    pub cpu: usize,
    /// Its nice value.
    pub nice: i32,
    /// CPU time, in clock ticks.
    pub cpu_ticks: u64,
}

/// Length of a clock tick of `/proc` (USER_HZ is 100 on all of Linux's architectures that have unequal cores).
const CLOCK_TICK_NS: Ns = 10_000_000;

impl ThreadStat {
    /// Reads a line; none if it has another form. A thread's name may be any bytes, also brackets and ends of lines.
    fn parse(pid: i32, line: &[u8]) -> Option<Self> {
        let line = String::from_utf8_lossy(line);
        let (head, rest) = line.rsplit_once(')')?;
        let (tid, name) = head.split_once('(')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        // Fields are counted from 1 in proc(5); the third is the first behind the name.
        let field = |number: usize| fields.get(number - 3).copied();
        let number = |position: usize| field(position)?.parse::<u64>().ok();
        Some(Self {
            key: ThreadKey { tid: tid.trim().parse().ok()?, start_ticks: number(22)? },
            pid,
            name: name.to_owned(),
            state: field(3)?.chars().next()?,
            parent: field(4)?.parse().ok()?,
            group: field(5)?.parse().ok()?,
            cpu: number(39)? as usize,
            nice: field(19)?.parse().ok()?,
            cpu_ticks: number(14)?.checked_add(number(15)?)?,
        })
    }

    /// Whether it has ended and only its parent has not noticed yet.
    pub fn is_dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }

    /// CPU time in ns, exact to a clock tick.
    pub fn cpu_ns(&self) -> Ns {
        self.cpu_ticks.saturating_mul(CLOCK_TICK_NS)
    }
}

/// What tells this start of the computer from all others, since which threads are numbered and times counted.
///
/// # Errors
///
/// The kernel does not say.
pub fn boot_id(root: &Root) -> io::Result<String> {
    let name = "/proc/sys/kernel/random/boot_id";
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", root.name(name)));
    root.bytes(name).map(|bytes| trimmed(&bytes)).map_err(named)
}

/// `/proc`.
#[derive(Clone, Debug, Default)]
pub struct Proc {
    root: Root,
}

impl Proc {
    /// Below a root.
    pub fn new(root: Root) -> Self {
        Self { root }
    }

    /// A thread.
    ///
    /// # Errors
    ///
    /// It does not exist (any more), as [`is_gone`] says, or that cannot be told.
    pub fn stat(&self, pid: i32, tid: i32) -> io::Result<ThreadStat> {
        self.read_stat(pid, &format!("/proc/{pid}/task/{tid}/stat"))
    }

    /// A thread whose process is not known, which is said to be itself. Errors: as for [`stat`](Self::stat).
    pub fn task(&self, tid: i32) -> io::Result<ThreadStat> {
        self.read_stat(tid, &format!("/proc/{tid}/stat"))
    }

    /// A process's first thread. Errors: as for [`stat`](Self::stat).
    pub fn process(&self, pid: i32) -> io::Result<ThreadStat> {
        self.stat(pid, pid)
    }

    /// Whether a thread has ended, or another one has its number. If that cannot be told, it has not.
    pub fn has_ended(&self, key: ThreadKey) -> bool {
        match self.task(key.tid) {
            Ok(stat) => stat.key != key,
            Err(error) => is_gone(&error),
        }
    }

    fn read_stat(&self, pid: i32, name: &str) -> io::Result<ThreadStat> {
        let line = self.root.bytes(name)?;
        let wrong = || io::Error::new(ErrorKind::InvalidData, format!("{name}: another form"));
        ThreadStat::parse(pid, &line).ok_or_else(wrong)
    }

    /// Time that a thread has run and that it has waited for a CPU, in ns; none if the kernel does not
    /// count it (`CONFIG_SCHED_INFO`).
    pub fn run_and_wait_ns(&self, pid: i32, tid: i32) -> Option<(Ns, Ns)> {
        let text = self.root.text(&format!("/proc/{pid}/task/{tid}/schedstat"))?;
        let mut fields = text.split_whitespace().map(|field| field.parse().ok());
        Some((fields.next()??, fields.next()??))
    }

    /// The CPUs that a thread may use; none if it does not exist (any more).
    pub fn cpus_allowed(&self, pid: i32, tid: i32) -> Option<BTreeSet<usize>> {
        let text = self.root.text(&format!("/proc/{pid}/task/{tid}/status"))?;
        let list = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        parse_cpus("/proc", "", list).ok()
    }

    /// The user as whom a process acts. Errors: as for [`stat`](Self::stat).
    pub fn user(&self, pid: i32) -> io::Result<u32> {
        let name = format!("/proc/{pid}/status");
        let text = String::from_utf8_lossy(&self.root.bytes(&name)?).into_owned();
        // Real, effective, saved and file system's user.
        let users = text.lines().find_map(|line| line.strip_prefix("Uid:"));
        let user = users.and_then(|users| users.split_whitespace().nth(1)?.parse().ok());
        user.ok_or_else(|| io::Error::new(ErrorKind::InvalidData, format!("{name}: another form")))
    }

    /// The threads of a process. Errors: as for [`stat`](Self::stat).
    pub fn threads(&self, pid: i32) -> io::Result<Vec<i32>> {
        self.numbers(format!("/proc/{pid}/task"))
    }

    /// All processes. Errors: they cannot be read.
    pub fn processes(&self) -> io::Result<Vec<i32>> {
        self.numbers("/proc")
    }

    /// Command line of a process, its arguments apart; empty for kernel threads, and if it cannot be read. What is no
    /// UTF-8 is U+FFFD.
    pub fn command(&self, pid: i32) -> Vec<String> {
        let text = self.root.text(&format!("/proc/{pid}/cmdline")).unwrap_or_default();
        text.split('\0').filter(|part| !part.is_empty()).map(str::to_owned).collect()
    }

    /// A process's children; none if it has ended.
    ///
    /// # Errors
    ///
    /// They cannot be told.
    pub fn children(&self, pid: i32) -> io::Result<Vec<i32>> {
        let threads = || unless_gone(self.threads(pid)).map(Option::unwrap_or_default);
        let mut children = Vec::new();
        for tid in threads()? {
            let list = self.root.bytes(format!("/proc/{pid}/task/{tid}/children"));
            match unless_gone(list)? {
                Some(list) => {
                    let list = String::from_utf8_lossy(&list);
                    children.extend(list.split_whitespace().flat_map(str::parse::<i32>));
                }
                // Without CONFIG_PROC_CHILDREN all processes have to be asked for their parents.
                None if threads()?.contains(&tid) => return self.children_by_search(pid),
                None => {}
            }
        }
        Ok(children)
    }

    fn children_by_search(&self, pid: i32) -> io::Result<Vec<i32>> {
        let mut children = Vec::new();
        for child in self.processes()? {
            let stat = unless_gone(self.process(child))?;
            children.extend(stat.filter(|stat| stat.parent == pid).map(|_| child));
        }
        Ok(children)
    }

    /// The cgroup of a process in each hierarchy: controllers (empty for version 2) and path. Errors: as for
    /// [`stat`](Self::stat).
    pub fn cgroups(&self, pid: i32) -> io::Result<BTreeMap<String, PathBuf>> {
        self.read_cgroups(&pid.to_string())
    }

    /// The same for this process.
    pub fn own_cgroups(&self) -> io::Result<BTreeMap<String, PathBuf>> {
        self.read_cgroups("self")
    }

    fn read_cgroups(&self, pid: &str) -> io::Result<BTreeMap<String, PathBuf>> {
        let bytes = self.root.bytes(format!("/proc/{pid}/cgroup"))?;
        let row = |line: &[u8]| {
            let mut parts = line.splitn(3, |&byte| byte == b':').skip(1);
            let names = String::from_utf8_lossy(parts.next()?).into_owned();
            Some((names, OsString::from_vec(parts.next()?.to_owned()).into()))
        };
        Ok(bytes.split(|&byte| byte == b'\n').filter_map(row).collect())
    }

    /// The numbers among the names in a folder, in ascending order.
    fn numbers(&self, folder: impl AsRef<Path>) -> io::Result<Vec<i32>> {
        let names = self.root.entries(folder)?.into_iter();
        let mut numbers: Vec<i32> = names.filter_map(|name| name.to_str()?.parse().ok()).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }
}

/// Whether an error says that there is no such thread, process or file. All others say that it cannot be told.
pub fn is_gone(error: &io::Error) -> bool {
    let gone = [Errno::NOENT, Errno::SRCH].map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|number| gone.contains(&number))
}

/// What was found; none if it is gone.
///
/// # Errors
///
/// It cannot be told whether it is.
pub fn unless_gone<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "17027 (a b) c) R 17022 17000 6839 0 -1 4194304 101 0 0 0 70 30 0 0 25 5 1 0 1175345 \
        3133440 407 18446744073709551615 1 1 1 1 1 0 0 0 0 0 0 0 17 3 0 0 0 0 0";

    /// The line with another name.
    fn named(name: &[u8]) -> Vec<u8> {
        let (head, rest) = LINE.split_at(LINE.find("a b) c").unwrap());
        [head.as_bytes(), name, &rest.as_bytes()["a b) c".len()..]].concat()
    }

    #[test]
    fn h34_01_a_start_that_the_kernel_does_not_tell_is_an_error() {
        let error = boot_id(&Root::new("/nonexistent")).unwrap_err().to_string();
        assert!(error.contains("/nonexistent/proc/sys/kernel/random/boot_id"), "{error}");
        assert_eq!(boot_id(&Root::default()).unwrap().len(), 36);
    }

    #[test]
    fn times_beyond_all_numbers_are_no_times() {
        let parsed = |user: u64, system: u64| {
            let line = LINE.replace(" 70 30 ", &format!(" {user} {system} "));
            ThreadStat::parse(17000, line.as_bytes()).map(|found| found.cpu_ns())
        };
        assert_eq!(parsed(2, 3), Some(50_000_000));
        assert_eq!(parsed(u64::MAX, 3), None);
        assert_eq!(parsed(u64::MAX, 0), Some(Ns::MAX));
    }

    #[test]
    fn h34_01_a_thread_s_name_may_be_any_bytes() {
        let expected = ThreadStat::parse(17000, LINE.as_bytes()).unwrap();
        // Every byte alone, what the kernel cuts inside a letter, and what looks like the rest of the line.
        let bytes = (1..=u8::MAX).map(|byte| vec![byte]);
        let others =
            ["программа".as_bytes()[..15].to_vec(), b") R 1 (\n\xff".to_vec(), b"".to_vec()];
        for name in bytes.chain(others) {
            let stat = ThreadStat::parse(17000, &named(&name)).unwrap();
            assert_eq!(stat.name, String::from_utf8_lossy(&name));
            assert_eq!(ThreadStat { name: expected.name.clone(), ..stat }, expected);
        }
    }

    #[test]
    fn h34_01_only_what_does_not_exist_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let proc = Proc::new(Root::new(folder.path()));
        let of = |number: i32| (proc.process(number), proc.task(number));
        let key = ThreadKey { tid: 7, start_ticks: 1 };
        let (process, task) = of(7);
        assert!(is_gone(&process.unwrap_err()) && is_gone(&task.unwrap_err()));
        assert!(proc.has_ended(key) && proc.children(7).unwrap().is_empty());
        assert!(is_gone(&proc.threads(7).unwrap_err()) && is_gone(&proc.cgroups(7).unwrap_err()));
        // A folder in the place of each file cannot be read, whoever reads it.
        for name in ["stat", "cgroup", "task/7/stat", "task/7/children"] {
            std::fs::create_dir_all(folder.path().join("proc/7").join(name)).unwrap();
        }
        let (process, task) = of(7);
        assert!(!is_gone(&process.unwrap_err()) && !is_gone(&task.unwrap_err()));
        assert!(!proc.has_ended(key), "it cannot be told");
        assert!(
            !is_gone(&proc.children(7).unwrap_err()) && !is_gone(&proc.cgroups(7).unwrap_err())
        );
        std::fs::remove_dir(folder.path().join("proc/7/stat")).unwrap();
        std::fs::write(folder.path().join("proc/7/stat"), "half a line").unwrap();
        assert!(!is_gone(&proc.task(7).unwrap_err()) && !proc.has_ended(key));
        std::fs::write(folder.path().join("proc/7/stat"), LINE).unwrap();
        assert!(proc.has_ended(key), "another one has its number");
    }

    #[test]
    fn names_with_brackets_do_not_confuse_it() {
        let stat = ThreadStat::parse(17000, LINE.as_bytes()).unwrap();
        assert_eq!(stat.key, ThreadKey { tid: 17027, start_ticks: 1_175_345 });
        assert_eq!((stat.name.as_str(), stat.state), ("a b) c", 'R'));
        assert_eq!((stat.parent, stat.group, stat.cpu, stat.nice), (17022, 17000, 3, 5));
        assert_eq!(stat.cpu_ns(), 1_000_000_000);
        assert!(!stat.is_dead());
    }

    #[test]
    fn half_a_line_is_nobody() {
        assert_eq!(ThreadStat::parse(1, b"17027 (a b) R 1 2"), None);
        assert_eq!(ThreadStat::parse(1, b""), None);
    }

    #[test]
    fn this_process_is_found() {
        let (proc, own) = (Proc::default(), std::process::id() as i32);
        let stat = proc.process(own).unwrap();
        assert!(proc.threads(own).unwrap().contains(&own));
        assert!(
            proc.children(stat.parent).unwrap().contains(&own),
            "also among its parent's children"
        );
        assert!(proc.children_by_search(stat.parent).unwrap().contains(&own));
        assert!(!proc.cpus_allowed(own, own).unwrap().is_empty());
        assert!(is_gone(&proc.process(i32::MAX).unwrap_err()));
        assert!(is_gone(&proc.threads(i32::MAX).unwrap_err()));
    }
}
