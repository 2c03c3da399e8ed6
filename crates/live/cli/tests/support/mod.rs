//! What tests of whole sessions share: trees of processes, sessions for them, waiting.
#![allow(dead_code)] // Not all of it is used by each.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::time::{Duration, Instant};

use ampsched_computer::Proc;
use rustix::process::{Pid, Signal, kill_process};

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_ampsched-live");

/// The first two CPUs that this test may use; none if it may use one only.
pub fn two_cpus() -> Option<(usize, usize)> {
    let cpus: Vec<usize> = own_cpus().into_iter().collect();
    let pair = cpus.get(..2).map(|pair| (pair[0], pair[1]));
    if pair.is_none() {
        eprintln!("SKIPPED: this test may use one CPU only, so there are no two classes of cores");
    }
    pair
}

/// The CPUs that this test may use.
pub fn own_cpus() -> BTreeSet<usize> {
    let own = std::process::id() as i32;
    Proc::default().cpus_allowed(own, own).unwrap()
}

/// Whether this test is root, which it says if not.
pub fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("SKIPPED: this test has to be root");
    }
    is_root
}

/// Waits for something that must come.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(300), "it never came true that {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn kill(pid: i32, signal: Signal) {
    let _ = kill_process(Pid::from_raw(pid).unwrap(), signal);
}

/// A shell, in a group of its own, that executes what it is told and ends with all below it.
pub struct Tree {
    shell: Child,
    input: Option<ChildStdin>,
}

/// A command that counts for ever, with a low priority so that it disturbs little.
pub const COUNTER: &str = "nice -n 19 sh -c 'while :; do :; done' &";

impl Tree {
    pub fn new() -> Self {
        let mut command = Command::new("sh");
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut shell = command.stdin(Stdio::piped()).spawn().unwrap();
        let input = shell.stdin.take();
        Self { shell, input }
    }

    pub fn with_counters(count: usize) -> Self {
        let mut tree = Self::new();
        tree.tell(&COUNTER.repeat(count));
        until("they count", || tree.pids().len() == count + 1);
        tree
    }

    pub fn tell(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    pub fn pid(&self) -> i32 {
        self.shell.id() as i32
    }

    /// All processes.
    pub fn pids(&self) -> Vec<i32> {
        let mut pids = vec![self.pid()];
        pids.extend(Proc::default().children(self.pid()).unwrap_or_default());
        pids
    }

    /// How many processes may use exactly one CPU.
    pub fn bound(&self) -> usize {
        self.pids().iter().filter(|&&pid| cpus_of(pid).len() == 1).count()
    }

    /// Whether all may use the CPUs that this test may use, and none is held.
    pub fn is_untouched(&self) -> bool {
        let own = own_cpus();
        self.pids().iter().all(|&pid| cpus_of(pid) == own)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        for pid in self.pids().into_iter().skip(1) {
            kill(pid, Signal::KILL);
        }
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

/// The CPUs that a process may use; none if it has ended.
pub fn cpus_of(pid: i32) -> BTreeSet<usize> {
    Proc::default().cpus_allowed(pid, pid).unwrap_or_default()
}

/// A session of a policy that binds, for a tree.
pub struct Session {
    pub child: Child,
    folder: PathBuf,
}

/// The command of such a session. None: there are not two CPUs.
pub fn session_of(folder: &Path, tree: &Tree, more: &[&str]) -> Option<Command> {
    let (big, little) = two_cpus()?;
    let mut command = Command::new(PROGRAM);
    command.args(["run", "--backend=daemon", "--policy=hsp", "--ratio=2"]);
    command.args([format!("--big={big}"), format!("--little={little}")]);
    command.arg(format!("--pid={}", tree.pid())).args(more).arg("--run-dir").arg(folder);
    command.stderr(Stdio::piped());
    Some(command)
}

impl Session {
    pub fn start(folder: &Path, tree: &Tree, more: &[&str]) -> Option<Self> {
        Some(Self::of(&mut session_of(folder, tree, more)?, folder))
    }

    /// A session of a command.
    pub fn of(command: &mut Command, folder: &Path) -> Self {
        Self { child: command.spawn().unwrap(), folder: folder.to_owned() }
    }

    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    pub fn guardian(&self) -> Option<i32> {
        let proc = Proc::default();
        let is_guardian =
            |pid: &i32| proc.command(*pid).get(1).is_some_and(|word| word == "guardian");
        proc.children(self.pid()).unwrap_or_default().into_iter().find(is_guardian)
    }

    /// Stops it: exit code and what it has said.
    pub fn stop(mut self) -> (Option<i32>, String) {
        kill(self.pid(), Signal::USR1);
        let mut said = String::new();
        std::io::Read::read_to_string(self.child.stderr.as_mut().unwrap(), &mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }

    /// Files of its folder whose names begin like this.
    pub fn files(&self, start: &str) -> Vec<String> {
        files(&self.folder, start)
    }
}

/// Files of a folder whose names begin like this.
pub fn files(folder: &Path, start: &str) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(start)).collect()
}

impl Drop for Session {
    /// Ends it, also if a test that failed has left it stopped.
    fn drop(&mut self) {
        kill(self.pid(), Signal::TERM);
        kill(self.pid(), Signal::CONT);
        let started = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if started.elapsed() > Duration::from_secs(60) {
                let _ = self.child.kill();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// The program with arguments: exit code and what it has said.
pub fn call(command: &mut Command) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = command.output().unwrap();
    (status.code(), String::from_utf8_lossy(&stderr).into_owned())
}

/// `ampsched-live restore` for a folder.
pub fn restore(folder: &Path) -> (Option<i32>, String) {
    call(Command::new(PROGRAM).arg("restore").arg("--run-dir").arg(folder))
}
