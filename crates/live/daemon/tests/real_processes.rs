//! Freezing and restoring real processes of this computer.
//!
//! Where cgroups cannot be used, tests of them say SKIPPED and pass.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use ampsched_computer::{
    Capabilities, CgroupVersion, Delegation, Proc, Root, ThreadKey, format_cpus, parse_cpus,
};
use ampsched_live_daemon::{Freezer, Journal, Touch, restore, restore_file};

/// A process that counts for ever, with a low priority so that it disturbs little.
struct Counter {
    child: Child,
}

impl Counter {
    fn new() -> Self {
        let mut command = Command::new("nice");
        command.args(["-n", "10", "sh", "-c", "while :; do :; done"]);
        let counter = Self { child: command.spawn().unwrap() };
        until("it counts", || Proc::default().process(counter.pid()).unwrap().name == "sh");
        counter
    }

    fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    fn key(&self) -> ThreadKey {
        Proc::default().process(self.pid()).unwrap().key
    }

    fn cpus(&self) -> BTreeSet<usize> {
        Proc::default().cpus_allowed(self.pid(), self.pid()).unwrap()
    }

    /// Whether it gets on within a while in which it certainly would, if it may.
    fn gets_on(&self) -> bool {
        let run_ns = || Proc::default().run_and_wait_ns(self.pid(), self.pid()).unwrap().0;
        let before_ns = run_ns();
        let started = Instant::now();
        while started.elapsed() < Duration::from_millis(300) {
            if run_ns() > before_ns + 1_000_000 {
                return true;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for something that must come.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(30), "it never came true that {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A folder of a cgroup hierarchy in which this test may make others, and where that hierarchy is mounted.
fn place(version: CgroupVersion) -> Option<(Delegation, String)> {
    let found = Capabilities::detect(&Root::default());
    let (mount, controller) = match version {
        CgroupVersion::V1 => (found.cgroup_v1.get("freezer")?.clone(), "freezer"),
        CgroupVersion::V2 => (found.cgroup_v2?, ""),
    };
    let own = Proc::default().own_cgroups();
    let path = own.iter().find(|(names, _)| names.split(',').any(|name| name == controller))?.1;
    let above = format!("{mount}{}", path.trim_end_matches('/'));
    let folder = format!("{above}/ampsched-test-{}-{version:?}", std::process::id());
    fs::create_dir(&folder).ok()?;
    Some((Delegation { version, folder }, mount))
}

fn check_freezer(mut freezer: Freezer, folder: &Path) {
    let counter = Counter::new();
    let path = folder.join("journal");
    let mut journal = Journal::create(&path).unwrap();
    assert!(counter.gets_on());
    let before = Proc::default().cgroups(counter.pid());
    for _ in 0..2 {
        freezer.hold(counter.key(), &mut journal).unwrap();
        assert!(freezer.is_held(counter.key()), "{}", freezer.name());
        // On another core a signal arrives, and time that has run is counted, a little later.
        until(&format!("{} holds", freezer.name()), || !counter.gets_on());
        freezer.release(counter.key()).unwrap();
        assert!(!freezer.is_held(counter.key()) && counter.gets_on(), "{}", freezer.name());
    }
    freezer.hold(counter.key(), &mut journal).unwrap();
    let restored = restore_file(&path).unwrap().unwrap();
    assert_eq!((restored.released, restored.failures.len()), (1, 0), "{restored:?}");
    assert!(counter.gets_on());
    assert_eq!(Proc::default().cgroups(counter.pid()), before, "it is where it was");
    assert_eq!(restore_file(&path).unwrap(), None, "there is nothing to do twice");
}

fn check_cgroup(version: CgroupVersion) {
    let Some((delegation, mount)) = place(version) else {
        eprintln!("SKIPPED: no cgroup {version:?} can be made here, so its freezer is not tested");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let freezer = Freezer::new(Some((&delegation, &mount)), &Root::default());
    assert_eq!(freezer.holds_threads(), version == CgroupVersion::V1);
    check_freezer(freezer, folder.path());
    fs::remove_dir(&delegation.folder).expect("the frozen cgroup below it is gone");
}

#[test]
fn version_1_freezes_and_lets_go() {
    check_cgroup(CgroupVersion::V1);
}

#[test]
fn version_2_freezes_and_lets_go() {
    check_cgroup(CgroupVersion::V2);
}

#[test]
fn sigstop_stands_in() {
    let folder = tempfile::tempdir().unwrap();
    check_freezer(Freezer::new(None, &Root::default()), folder.path());
}

/// The touch of a thread of this moment.
fn touched(counter: &Counter) -> Touch {
    let stat = Proc::default().process(counter.pid()).unwrap();
    Touch::Thread {
        pid: stat.pid,
        tid: stat.key.tid,
        start_ticks: stat.key.start_ticks,
        cpus: format_cpus(counter.cpus()),
        nice: stat.nice,
    }
}

fn run(program: &str, arguments: &[&str]) {
    let done = Command::new(program).args(arguments).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn cpus_and_nice_values_are_put_back() {
    let counter = Counter::new();
    let (touch, cpus, pid) = (touched(&counter), counter.cpus(), counter.pid().to_string());
    let first = cpus.first().unwrap().to_string();
    run("taskset", &["-p", "-c", &first, &pid]);
    run("renice", &["-n", "15", "-p", &pid]);
    let restored = restore(&[touch]);
    let nice = Proc::default().process(counter.pid()).unwrap().nice;
    let may_raise = Capabilities::detect(&Root::default()).holds("CAP_SYS_NICE");
    assert_eq!(counter.cpus(), cpus);
    assert_eq!(nice, if may_raise { 10 } else { 15 }, "{:?}", restored.failures);
    assert_eq!(restored.failures.is_empty(), may_raise);
}

#[test]
fn a_later_thread_with_the_same_number_is_left_alone() {
    let counter = Counter::new();
    let Touch::Thread { pid, tid, start_ticks, nice, .. } = touched(&counter) else { panic!() };
    let earlier = Touch::Thread { pid, tid, start_ticks: start_ticks - 1, cpus: "0".into(), nice };
    let cpus = counter.cpus();
    let restored = restore(&[earlier, Touch::Stopped { pid, start_ticks: start_ticks - 1 }]);
    assert_eq!((restored.threads, restored.released, restored.failures.len()), (0, 0, 0));
    assert_eq!(counter.cpus(), cpus);
}

#[test]
fn threads_that_inherited_what_was_given_are_found() {
    let cpus = Proc::default().cpus_allowed(std::process::id() as i32, std::process::id() as i32);
    let cpus = cpus.unwrap();
    if cpus.len() < 2 {
        eprintln!("SKIPPED: this test may use one CPU only, so no set differs from another");
        return;
    }
    let first = cpus.first().unwrap().to_string();
    let mut command = Command::new("sh");
    // A shell with a child that nobody has looked at: both are bound.
    let script = format!("taskset -p -c {first} $$ >/dev/null; sleep 600 & echo; wait");
    let mut shell = command
        .args(["-c", &script])
        .stdout(std::process::Stdio::piped())
        .process_group_leader()
        .spawn()
        .unwrap();
    let pid = shell.id() as i32;
    let mut line = [0];
    std::io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut line).unwrap();
    let proc = Proc::default();
    until("it has a child", || !proc.children(pid).is_empty());
    let child = proc.children(pid)[0];
    let bound = parse_cpus("", "", &first).unwrap();
    assert_eq!(proc.cpus_allowed(child, child).unwrap(), bound);
    let key = proc.process(pid).unwrap().key;
    let touches = [
        Touch::Thread {
            pid,
            tid: key.tid,
            start_ticks: key.start_ticks,
            cpus: format_cpus(cpus.iter().copied()),
            nice: 0,
        },
        Touch::GivenCpus { pid, cpus: first },
    ];
    let restored = restore(&touches);
    assert_eq!((restored.threads, restored.failures.len()), (2, 0), "{restored:?}");
    assert_eq!(proc.cpus_allowed(child, child).unwrap(), cpus);
    run("kill", &[&child.to_string()]);
    let _ = shell.wait();
}

/// A process group of its own, so that nothing reaches the test's.
trait Leader {
    fn process_group_leader(&mut self) -> &mut Self;
}

impl Leader for Command {
    fn process_group_leader(&mut self) -> &mut Self {
        std::os::unix::process::CommandExt::process_group(self, 0)
    }
}
