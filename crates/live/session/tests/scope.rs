//! Which threads a session schedules, on the system that runs the test.

use std::fs;
use std::process::{Child, Command, Stdio};

use std::path::Path;

use ampsched_computer::{Proc, Root};
use ampsched_live_session::Scope;
use tempfile::TempDir;

/// A shell with a child that sleeps until its input ends.
struct Family {
    shell: Child,
}

impl Family {
    fn new() -> Self {
        let script = "sleep 600 & echo started; read line; kill $!; wait";
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = command.spawn().unwrap();
        let mut started = [0; 8];
        std::io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut started).unwrap();
        // The child exists; it is a copy of the shell until it has become what it runs.
        let family = Self { shell };
        let proc = Proc::default();
        let sleep = proc.children(family.pid()).unwrap()[0];
        while proc.process(sleep).unwrap().name != "sleep" {
            std::thread::yield_now();
        }
        family
    }

    fn pid(&self) -> i32 {
        self.shell.id() as i32
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        self.shell.wait().unwrap();
    }
}

fn found_names(scope: &mut Scope) -> Vec<String> {
    let found = scope.find(&Root::default(), &Proc::default());
    let mut names: Vec<String> = found.into_iter().map(|stat| stat.name).collect();
    names.sort();
    names
}

#[test]
fn a_tree_is_a_process_and_what_is_below() {
    let family = Family::new();
    let proc = Proc::default();
    let mut scope = Scope::trees(&proc, &[family.pid()]).unwrap();
    assert_eq!(found_names(&mut scope), ["sh", "sleep"]);
    let mut below = Scope::Below { parent: family.pid() };
    assert_eq!(found_names(&mut below), ["sleep"]);
    let sleep = proc.children(family.pid()).unwrap()[0];
    // For a moment a process that executes a program has no command line.
    while proc.command(sleep).is_empty() {
        std::thread::yield_now();
    }
    assert_eq!(proc.command(sleep), ["sleep", "600"]);
}

#[test]
fn a_process_that_does_not_exist_is_named() {
    let error = Scope::trees(&Proc::default(), &[i32::MAX]).unwrap_err();
    assert_eq!(error.to_string(), "--pid: there is no process 2147483647");
    let error = Scope::cgroup(&Root::default(), Path::new("/tmp")).unwrap_err().to_string();
    assert!(error.starts_with("--cgroup: /tmp is not a cgroup"), "{error}");
}

#[test]
fn a_cgroup_holds_the_processes_of_those_below() {
    let own = std::process::id().to_string();
    let folder = TempDir::new().unwrap();
    for (name, pids) in [("g", ""), ("g/deep", own.as_str())] {
        fs::create_dir_all(folder.path().join(name)).unwrap();
        fs::write(folder.path().join(name).join("cgroup.procs"), pids).unwrap();
    }
    let root = Root::new(folder.path());
    let mut scope = Scope::cgroup(&root, Path::new("/g")).unwrap();
    let found = scope.find(&root, &Proc::default());
    assert!(found.iter().any(|stat| stat.key.tid.to_string() == own));
}
