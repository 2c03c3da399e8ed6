//! Freezing and restoring real processes of this computer.
//!
//! Where cgroups cannot be used, tests of them say SKIPPED and pass.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use ampsched_computer::{
    Capabilities, CgroupVersion, Delegation, Mounts, Place, Proc, Root, ThreadKey, below,
    format_cpus, parse_cpus,
};
use ampsched_live_daemon::{
    Cpus, Freezer, Group, OwnGroup, Restored, Touch, members, outstanding, restore,
};
use ampsched_live_session::{ClockTouch, JournalFile, Limit};
use rustix::process::{Pid, Signal, kill_process};

/// The lowest priority that there is.
const NICE_MAX: i32 = 19;

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
        assert!(started.elapsed() < Duration::from_secs(300), "it never came true that {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A folder of a cgroup hierarchy in which this test may make others, and where that hierarchy is mounted.
fn place(version: CgroupVersion) -> Option<(Delegation, Place)> {
    let mount = Mounts::read(&Root::default()).unwrap().freezer(version)?.clone();
    let controller = if version == CgroupVersion::V1 { "freezer" } else { "" };
    let own = Proc::default().own_cgroups().unwrap();
    let path = own.iter().find(|(names, _)| names.split(',').any(|name| name == controller))?.1;
    let name = format!("ampsched-test-{}-{version:?}", std::process::id());
    let folder = below(&mount, path).join(name);
    fs::create_dir(&folder).ok()?;
    Some((Delegation { version, folder: folder.into() }, mount))
}

fn check_freezer(mut freezer: Freezer, folder: &Path) {
    let counter = Counter::new();
    let place = JournalFile::at(&folder.join("journal")).unwrap().unwrap();
    let (held, mut journal) = place.create().unwrap();
    until("it gets on", || counter.gets_on());
    let before = Proc::default().cgroups(counter.pid()).unwrap();
    for _ in 0..2 {
        freezer.hold(counter.key(), &mut journal).unwrap();
        assert!(freezer.is_held(counter.key()), "{}", freezer.name());
        // On another core a signal arrives, and time that has run is counted, a little later.
        until(&format!("{} holds", freezer.name()), || !counter.gets_on());
        freezer.release(counter.key()).unwrap();
        assert!(!freezer.is_held(counter.key()), "{}", freezer.name());
        until(&format!("{} lets go", freezer.name()), || counter.gets_on());
    }
    freezer.hold(counter.key(), &mut journal).unwrap();
    let touches = held.read().unwrap().entries;
    let restored = restore_all(&touches);
    assert_eq!((restored.released, restored.failures.len()), (1, 0), "{restored:?}");
    until("it gets on", || counter.gets_on());
    assert_eq!(Proc::default().cgroups(counter.pid()).unwrap(), before, "it is where it was");
    assert!(restore_all(&touches).failures.is_empty(), "twice does no harm");
    until("it gets on", || counter.gets_on());
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

/// A counter in a cgroup that is gone while it is held back.
fn check_vanished_cgroup(version: CgroupVersion) {
    let Some((delegation, mount)) = place(version) else {
        eprintln!(
            "SKIPPED: no cgroup {version:?} can be made here, so that one vanishes is not tested"
        );
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let place = JournalFile::at(&folder.path().join("journal")).unwrap().unwrap();
    let (held, mut journal) = place.create().unwrap();
    let counter = Counter::new();
    let above = format!("{}-above", delegation.folder);
    let origin = format!("{above}/origin");
    fs::create_dir_all(&origin).unwrap();
    let list = members(version, Path::new(&origin));
    fs::write(list, counter.pid().to_string()).unwrap();
    let mut freezer = Freezer::new(Some((&delegation, &mount)), &Root::default());
    freezer.hold(counter.key(), &mut journal).unwrap();
    until("it is held", || !counter.gets_on());
    until("its cgroup can be removed", || fs::remove_dir(&origin).is_ok());
    let went_on = freezer.release(counter.key()).unwrap().expect("it cannot go where it was");
    assert_eq!((went_on.gone, went_on.now), (origin.into(), above.clone().into()));
    assert!(!freezer.is_held(counter.key()));
    until("it gets on", || counter.gets_on());
    let members = fs::read_to_string(members(version, Path::new(&above))).unwrap();
    assert!(members.lines().any(|line| line == counter.pid().to_string()), "{members}");
    drop(counter);
    assert!(restore_all(&held.read().unwrap().entries).failures.is_empty());
    until("the test's cgroups are empty", || fs::remove_dir(&above).is_ok());
    fs::remove_dir(&delegation.folder).unwrap();
}

#[test]
fn m05_who_is_held_goes_on_when_its_cgroup_of_version_1_is_gone() {
    check_vanished_cgroup(CgroupVersion::V1);
}

#[test]
fn m05_who_is_held_goes_on_when_its_cgroup_of_version_2_is_gone() {
    check_vanished_cgroup(CgroupVersion::V2);
}

/// A counter that others move from cgroup to cgroup while it is held back now and then: to one where it has never been,
/// and to one where it has been.
fn check_moved_by_others(version: CgroupVersion) {
    for moves in [&[0, 1][..], &[0, 1, 0]] {
        check_moves(version, moves);
    }
}

fn check_moves(version: CgroupVersion, moves: &[usize]) {
    let Some((delegation, mount)) = place(version) else {
        eprintln!("SKIPPED: no cgroup {version:?} can be made here, so nobody is moved");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let place = JournalFile::at(&folder.path().join("journal")).unwrap().unwrap();
    let (held, mut journal) = place.create().unwrap();
    let counter = Counter::new();
    let mut freezer = Freezer::new(Some((&delegation, &mount)), &Root::default());
    let groups = ["a", "b"].map(|name| format!("{}/{name}", delegation.folder));
    let list = |group: usize| members(version, Path::new(&groups[group]));
    for group in &groups {
        fs::create_dir(group).unwrap();
    }
    let pid = counter.pid().to_string();
    for &group in moves {
        freezer.release(counter.key()).unwrap();
        fs::write(list(group), &pid).unwrap();
        freezer.hold(counter.key(), &mut journal).unwrap();
    }
    let touches: Vec<Touch> = held.read().unwrap().entries;
    let restored = restore_all(&touches);
    assert_eq!((restored.released, restored.failures.len()), (1, 0), "{restored:?}");
    let last = *moves.last().expect("it is moved");
    let there = fs::read_to_string(list(last)).unwrap();
    assert!(there.lines().any(|line| line == pid), "it is not where it was last: {touches:?}");
    drop(counter);
    for group in &groups {
        until("the test's cgroups are empty", || fs::remove_dir(group).is_ok());
    }
    fs::remove_dir(&delegation.folder).unwrap();
}

#[test]
fn low_who_was_held_goes_back_to_its_last_cgroup_of_version_1() {
    check_moved_by_others(CgroupVersion::V1);
}

#[test]
fn low_who_was_held_goes_back_to_its_last_cgroup_of_version_2() {
    check_moved_by_others(CgroupVersion::V2);
}

#[test]
fn sigstop_stands_in() {
    let folder = tempfile::tempdir().unwrap();
    check_freezer(Freezer::new(None, &Root::default()), folder.path());
}

/// The touch of the only thread of a process, which had these CPUs.
fn touched(process: ThreadKey, cpus: BTreeSet<usize>) -> Touch {
    let nice = Proc::default().process(process.tid).unwrap().nice;
    Touch::Thread { process, thread: process, cpus: listed(cpus), nice }
}

fn listed(cpus: BTreeSet<usize>) -> Cpus {
    Cpus::try_from(format_cpus(cpus)).unwrap()
}

fn restore_all(touches: &[Touch]) -> Restored {
    restore(touches, &Root::default())
}

fn run(program: &str, arguments: &[&str]) {
    let done = Command::new(program).args(arguments).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn cpus_and_nice_values_are_put_back() {
    let counter = Counter::new();
    let (cpus, pid) = (counter.cpus(), counter.pid().to_string());
    let touch = touched(counter.key(), counter.cpus());
    let first = cpus.first().unwrap().to_string();
    let nice = || Proc::default().process(counter.pid()).unwrap().nice;
    let before = nice();
    let may_raise = Capabilities::detect(&Root::default()).holds("CAP_SYS_NICE");
    // The test itself may run with any nice value, and nobody goes beyond 19.
    let given = if before < NICE_MAX { NICE_MAX } else { before - i32::from(may_raise) };
    run("taskset", &["-p", "-c", &first, &pid]);
    run("renice", &["-n", &given.to_string(), "-p", &pid]);
    assert_eq!(nice(), given);
    let key = counter.key();
    let given_cpus = Touch::GivenCpus { process: key, cpus: first_cpu() };
    let restored =
        restore_all(&[touch, given_cpus, Touch::GivenNice { process: key, nice: given }]);
    assert_eq!(counter.cpus(), cpus);
    let can_be_put_back = may_raise || given == before;
    assert_eq!(nice(), if can_be_put_back { before } else { given }, "{:?}", restored.failures);
    assert_eq!(restored.failures.is_empty(), can_be_put_back);
}

/// `nice prog` and `taskset prog` are looked at before they have begun to be what they want.
#[test]
fn low_what_a_thread_has_changed_itself_stays() {
    let counter = Counter::new();
    let (process, pid) = (counter.key(), counter.pid().to_string());
    let touch = touched(process, counter.cpus());
    let nice = || Proc::default().process(counter.pid()).unwrap().nice;
    let before = nice();
    run("renice", &["-n", "19", "-p", &pid]);
    run("taskset", &["-p", "-c", first_cpu().text(), &pid]);
    let given_nice = Touch::GivenNice { process, nice: if before == 18 { 17 } else { 18 } };
    for touches in [vec![touch.clone()], vec![touch, given_nice]] {
        let restored = restore_all(&touches);
        assert_eq!((restored.threads, restored.failures.len()), (0, 0), "{restored:?}");
        assert_eq!((nice(), counter.cpus()), (19, first_cpu().set()));
    }
}

/// A thread of before that had the number that one has now.
fn earlier(key: ThreadKey) -> ThreadKey {
    ThreadKey { start_ticks: key.start_ticks - 1, ..key }
}

#[test]
fn m07_a_later_thread_with_the_same_number_is_left_alone() {
    let counter = Counter::new();
    let (now, before) = (counter.key(), earlier(counter.key()));
    let touch = |process, thread| Touch::Thread { process, thread, cpus: first_cpu(), nice: 0 };
    let cpus = counter.cpus();
    let stopped = Touch::Stopped { process: before };
    let restored = restore_all(&[touch(before, before), touch(now, before), stopped]);
    assert_eq!((restored.threads, restored.released, restored.failures.len()), (0, 0, 0));
    assert_eq!(counter.cpus(), cpus);
}

fn first_cpu() -> Cpus {
    let own = std::process::id() as i32;
    let cpus = Proc::default().cpus_allowed(own, own).unwrap();
    listed(cpus.into_iter().take(1).collect())
}

#[test]
fn m07_the_sweep_leaves_a_later_process_with_the_same_number_alone() {
    let counter = Counter::new();
    let before = earlier(counter.key());
    run("taskset", &["-p", "-c", first_cpu().text(), &counter.pid().to_string()]);
    let bound = counter.cpus();
    // It looks as if it had inherited what the earlier one was given.
    let own = std::process::id() as i32;
    let all = Proc::default().cpus_allowed(own, own).unwrap();
    let touches = [
        Touch::Thread { process: before, thread: before, cpus: listed(all), nice: 0 },
        Touch::GivenCpus { process: before, cpus: first_cpu() },
        Touch::GivenNice {
            process: before,
            nice: Proc::default().process(counter.pid()).unwrap().nice,
        },
    ];
    let restored = restore_all(&touches);
    assert_eq!((restored.threads, restored.failures.len()), (0, 0), "{restored:?}");
    assert_eq!(counter.cpus(), bound);
}

#[test]
fn low_only_what_has_ended_does_not_matter() {
    let counter = Counter::new();
    let (process, gone) = (counter.key(), earlier(counter.key()));
    let thread = |process, thread| Touch::Thread { process, thread, cpus: first_cpu(), nice: 0 };
    let given = |process| Touch::GivenCpus { process, cpus: first_cpu() };
    let inherited = |cpus: &str| Touch::GivenCpus {
        process: gone,
        cpus: Cpus::try_from(cpus.to_owned()).unwrap(),
    };
    let version = CgroupVersion::V1;
    let from = Group::try_from(PathBuf::from("/a")).unwrap();
    let moved = |thread| Touch::Moved { version, thread, from: from.clone() };
    let own = Group::try_from(PathBuf::from("/ampsched-held-1")).unwrap();
    let group = OwnGroup::try_from(own).unwrap();
    let kept = [
        // What the first known thread of a process had is what those had that nobody has looked at.
        thread(process, gone),
        thread(process, process),
        given(process),
        Touch::GivenNice { process, nice: 3 },
        // Others may have inherited it.
        inherited("7"),
        moved(process),
        Touch::Stopped { process },
        Touch::Cgroup { version, group, hierarchy: None },
        Touch::Clock(ClockTouch { policy: 0, limit: Limit::Least, khz: 1 }),
    ];
    let left_out = [
        thread(gone, gone),
        thread(process, gone),
        given(gone),
        Touch::GivenNice { process: gone, nice: 3 },
        moved(gone),
        Touch::Stopped { process: gone },
    ];
    let all = [&kept[..], &left_out].concat();
    assert_eq!(outstanding(all, &Proc::default()), kept);
}

#[test]
fn low_what_is_no_cgroup_of_a_session_is_refused_and_not_a_panic() {
    for group in ["/", "/..", "/user.slice"] {
        let text = format!("{{\"cgroup\":{{\"version\":\"v2\",\"group\":\"{group}\"}}}}");
        assert!(serde_json::from_str::<Touch>(&text).is_err(), "{group}");
    }
    let group = Group::try_from(PathBuf::from("/ampsched-held-1")).unwrap();
    let group = OwnGroup::try_from(group).unwrap();
    for version in [CgroupVersion::V1, CgroupVersion::V2] {
        // It does not exist, directly below the root of its hierarchy.
        let touch = Touch::Cgroup { version, group: group.clone(), hierarchy: None };
        let restored = restore_all(&[touch]);
        match Mounts::read(&Root::default()).unwrap().freezer(version) {
            Some(_) => assert_eq!(restored, Restored::default()),
            None => assert!(restored.failures[0].contains("is mounted here"), "{restored:?}"),
        }
    }
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
    until("it has a child", || !proc.children(pid).unwrap().is_empty());
    let child = proc.children(pid).unwrap()[0];
    let bound = parse_cpus("", "", &first).unwrap();
    assert_eq!(proc.cpus_allowed(child, child).unwrap(), bound);
    let key = proc.process(pid).unwrap().key;
    let touches =
        [touched(key, cpus.clone()), Touch::GivenCpus { process: key, cpus: listed(bound) }];
    let restored = restore_all(&touches);
    assert_eq!((restored.threads, restored.failures.len()), (2, 0), "{restored:?}");
    assert_eq!(proc.cpus_allowed(child, child).unwrap(), cpus);
    kill_process(Pid::from_raw(child).unwrap(), Signal::TERM).unwrap();
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
