//! Threads as `/proc` shows them (proc(5)).

use std::collections::{BTreeMap, BTreeSet};

use ampsched_model::Ns;
use serde::{Deserialize, Serialize};

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
    /// Its name.
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
    /// Reads a line; none if it has another form.
    fn parse(pid: i32, line: &str) -> Option<Self> {
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
            cpu_ticks: number(14)? + number(15)?,
        })
    }

    /// Whether it has ended and only its parent has not noticed yet.
    pub fn is_dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }

    /// CPU time in ns, exact to a clock tick.
    pub fn cpu_ns(&self) -> Ns {
        self.cpu_ticks * CLOCK_TICK_NS
    }
}

/// What tells this start of the computer from all others, since which threads are numbered and times counted; none if
/// the kernel does not say.
pub fn boot_id(root: &Root) -> Option<String> {
    root.text("/proc/sys/kernel/random/boot_id")
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

    /// A thread; none if it does not exist (any more).
    pub fn stat(&self, pid: i32, tid: i32) -> Option<ThreadStat> {
        let text = self.root.text(&format!("/proc/{pid}/task/{tid}/stat"))?;
        ThreadStat::parse(pid, &text)
    }

    /// A thread whose process is not known; none if it does not exist (any more). Its process is said to be itself.
    pub fn task(&self, tid: i32) -> Option<ThreadStat> {
        ThreadStat::parse(tid, &self.root.text(&format!("/proc/{tid}/stat"))?)
    }

    /// A process's first thread; none if it does not exist (any more).
    pub fn process(&self, pid: i32) -> Option<ThreadStat> {
        self.stat(pid, pid)
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

    /// The user as whom a process acts; none if it does not exist (any more).
    pub fn user(&self, pid: i32) -> Option<u32> {
        let text = self.root.text(&format!("/proc/{pid}/status"))?;
        // Real, effective, saved and file system's user.
        let users = text.lines().find_map(|line| line.strip_prefix("Uid:"))?;
        users.split_whitespace().nth(1)?.parse().ok()
    }

    /// The threads of a process.
    pub fn threads(&self, pid: i32) -> Vec<i32> {
        numbers(self.root.names(&format!("/proc/{pid}/task")))
    }

    /// Command line of a process, its arguments apart; empty for kernel threads.
    pub fn command(&self, pid: i32) -> Vec<String> {
        let text = self.root.text(&format!("/proc/{pid}/cmdline")).unwrap_or_default();
        text.split('\0').filter(|part| !part.is_empty()).map(str::to_owned).collect()
    }

    /// A process's children.
    pub fn children(&self, pid: i32) -> Vec<i32> {
        let mut children = Vec::new();
        for tid in self.threads(pid) {
            match self.root.text(&format!("/proc/{pid}/task/{tid}/children")) {
                Some(list) => children.extend(list.split_whitespace().flat_map(str::parse::<i32>)),
                // Without CONFIG_PROC_CHILDREN all processes have to be asked for their parents.
                None if self.threads(pid).contains(&tid) => return self.children_by_search(pid),
                None => {}
            }
        }
        children
    }

    fn children_by_search(&self, pid: i32) -> Vec<i32> {
        let all = numbers(self.root.names("/proc")).into_iter();
        all.filter(|&child| self.process(child).is_some_and(|stat| stat.parent == pid)).collect()
    }

    /// The cgroup of a process in each hierarchy: controllers (empty for version 2) and path.
    pub fn cgroups(&self, pid: i32) -> BTreeMap<String, String> {
        self.read_cgroups(&pid.to_string())
    }

    /// The same for this process.
    pub fn own_cgroups(&self) -> BTreeMap<String, String> {
        self.read_cgroups("self")
    }

    fn read_cgroups(&self, pid: &str) -> BTreeMap<String, String> {
        let text = self.root.text(&format!("/proc/{pid}/cgroup")).unwrap_or_default();
        let row = |line: &str| {
            let mut parts = line.splitn(3, ':').skip(1);
            Some((parts.next()?.to_owned(), parts.next()?.to_owned()))
        };
        text.lines().filter_map(row).collect()
    }
}

fn numbers(names: Vec<String>) -> Vec<i32> {
    let mut numbers: Vec<i32> = names.iter().filter_map(|name| name.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "17027 (a b) c) R 17022 17000 6839 0 -1 4194304 101 0 0 0 70 30 0 0 25 5 1 0 1175345 \
        3133440 407 18446744073709551615 1 1 1 1 1 0 0 0 0 0 0 0 17 3 0 0 0 0 0";

    #[test]
    fn names_with_brackets_do_not_confuse_it() {
        let stat = ThreadStat::parse(17000, LINE).unwrap();
        assert_eq!(stat.key, ThreadKey { tid: 17027, start_ticks: 1_175_345 });
        assert_eq!((stat.name.as_str(), stat.state), ("a b) c", 'R'));
        assert_eq!((stat.parent, stat.group, stat.cpu, stat.nice), (17022, 17000, 3, 5));
        assert_eq!(stat.cpu_ns(), 1_000_000_000);
        assert!(!stat.is_dead());
    }

    #[test]
    fn half_a_line_is_nobody() {
        assert_eq!(ThreadStat::parse(1, "17027 (a b) R 1 2"), None);
        assert_eq!(ThreadStat::parse(1, ""), None);
    }

    #[test]
    fn this_process_is_found() {
        let (proc, own) = (Proc::default(), std::process::id() as i32);
        let stat = proc.process(own).unwrap();
        assert!(proc.threads(own).contains(&own));
        assert!(proc.children(stat.parent).contains(&own), "also among its parent's children");
        assert!(proc.children_by_search(stat.parent).contains(&own));
        assert!(!proc.cpus_allowed(own, own).unwrap().is_empty());
        assert_eq!(proc.process(i32::MAX), None);
        assert!(proc.threads(i32::MAX).is_empty());
    }
}
