//! What cannot be read is not gone: names that are no UTF-8, too few file descriptors, other namespaces.

mod support;

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ampsched_computer::Proc;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::process::Signal;
use support::{PROGRAM, Session, Tree, call, files, is_root, kill, restore, two_cpus, until};
use tempfile::TempDir;

/// A name that the kernel has cut inside a letter, one that is no UTF-8 at all, and one that looks like a state.
const NAMES: [&str; 3] = [r"\320", r"a\377b", r") R 1 (\377"];

/// A session of a policy for a tree, which binds or holds; none if there are not two CPUs.
fn session(folder: &Path, policy: &str, tree: &Tree) -> Option<Session> {
    let (big, little) = two_cpus()?;
    let mut command = Command::new(PROGRAM);
    command.args(["run", "--backend=daemon", "--degrade", "--ratio=2", "--quiet"]);
    command.args([format!("--policy={policy}"), format!("--big={big}")]);
    command.args([format!("--little={little}"), format!("--pid={}", tree.pid())]);
    command.arg("--run-dir").arg(folder).stderr(Stdio::piped());
    Some(Session::of(&mut command, folder))
}

/// A tree whose counters give themselves names; on SIGUSR1 they do so if `late`.
fn named(late: bool) -> Tree {
    let mut tree = Tree::new();
    for name in NAMES {
        let rename = format!("printf '{name}' >/proc/$$/comm");
        let begin = if late { format!("trap \"{rename}\" USR1") } else { rename };
        let script = format!("{begin}; while :; do :; done");
        let quoted = script.replace('\'', r"'\''");
        tree.tell(&format!("nice -n 19 sh -c '{quoted}' &"));
    }
    until("they are there", || tree.pids().len() == NAMES.len() + 1);
    if late {
        // A signal that came before would end them.
        until("they heed the signal", || tree.pids().into_iter().skip(1).all(catches_usr1));
    } else {
        until("they have names", || bytes_of_names(&tree).iter().all(|name| !name.is_ascii()));
    }
    tree
}

/// Whether a process has a handler for SIGUSR1 (`SigCgt` of proc_pid_status(5)).
fn catches_usr1(pid: i32) -> bool {
    let status = fs::read(format!("/proc/{pid}/status")).unwrap();
    let status = String::from_utf8_lossy(&status);
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    let mask = u64::from_str_radix(mask.trim(), 16).unwrap();
    mask & 1 << (Signal::USR1.as_raw() - 1) != 0
}

fn bytes_of_names(tree: &Tree) -> Vec<Vec<u8>> {
    let names = tree.pids().into_iter().skip(1);
    names.map(|pid| fs::read(format!("/proc/{pid}/comm")).unwrap()).collect()
}

/// Kills a session with its guardian, so that nobody is left who puts back.
fn kill_with_guardian(session: Session) {
    kill(session.pid(), Signal::STOP);
    let guardian = session.guardian().unwrap();
    kill(guardian, Signal::KILL);
    let state = || Proc::default().process(guardian).ok().map(|stat| stat.state);
    until("it has ended", || state().is_none_or(|state| state == 'Z'));
    kill(session.pid(), Signal::KILL);
    drop(session);
}

/// What a session has left that was killed with its guardian, while all of its tree was bound.
fn left_bound() -> Option<(TempDir, Tree)> {
    let folder = tempfile::tempdir().unwrap();
    let tree = Tree::with_counters(3);
    let session = session(folder.path(), "hsp", &tree)?;
    until("they are bound", || tree.bound() >= 3);
    kill_with_guardian(session);
    Some((folder, tree))
}

#[test]
fn h34_01_names_that_are_no_utf_8_are_scheduled_and_put_back() {
    let tree = named(false);
    let folder = tempfile::tempdir().unwrap();
    let Some(session) = session(folder.path(), "hsp", &tree) else { return };
    until("they are bound", || tree.bound() >= NAMES.len());
    let (code, said) = session.stop();
    assert_eq!((code, tree.is_untouched()), (Some(0), true), "{said}");
}

#[test]
fn h34_01_who_takes_such_a_name_later_is_put_back_by_the_guardian_too() {
    let tree = named(true);
    let folder = tempfile::tempdir().unwrap();
    let Some(session) = session(folder.path(), "hsp", &tree) else { return };
    until("they are bound", || tree.bound() >= NAMES.len());
    kill(session.pid(), Signal::STOP);
    for pid in tree.pids().into_iter().skip(1) {
        kill(pid, Signal::USR1);
    }
    until("they have names", || bytes_of_names(&tree).iter().all(|name| !name.is_ascii()));
    kill(session.pid(), Signal::KILL);
    until("all is as it was", || tree.is_untouched());
}

/// Whichever opening of a file is the first that fails: whoever says that all is put back is right, and whoever does
/// not leaves the journal. A guardian has fewer files open than the user's command, so that its first failure is later.
#[test]
fn h34_01_with_few_file_descriptors_nothing_is_given_up() {
    let mut codes = Vec::new();
    for task in ["guardian \"$3\"/journal-*", "restore --run-dir \"$3\""] {
        let Some((folder, tree)) = left_bound() else { return };
        let script = format!("ulimit -n $1; exec \"$2\" {task}");
        for count in 3..24 {
            let mut command = Command::new("sh");
            command.args(["-c", &script, "sh", &count.to_string(), PROGRAM]).arg(folder.path());
            command.stdin(Stdio::null());
            let (code, said) = call(&mut command);
            codes.push(code);
            assert!(!said.contains("panicked"), "{count}: {said}");
            if code == Some(0) {
                assert!(tree.is_untouched(), "{count}: {said}");
                break;
            }
            assert_eq!(files(folder.path(), "journal").len(), 1, "{count}: {code:?} {said}");
        }
        assert_eq!(codes.last(), Some(&Some(0)), "with enough all is put back: {codes:?}");
    }
    assert!(codes.contains(&Some(4)), "with too few it is said: {codes:?}");
}

/// `restore` by a script in namespaces of its own; none if there can be none.
fn restore_in(namespaces: &[&str], script: &str, folder: &Path) -> Option<(Option<i32>, String)> {
    let in_them = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(namespaces).args(["sh", "-c", script, "sh", PROGRAM]).arg(folder);
        command
    };
    if !in_them("true").output().is_ok_and(|done| done.status.success()) {
        eprintln!("SKIPPED: there can be no namespaces {namespaces:?} here");
        return None;
    }
    Some(call(&mut in_them(&format!("{script} exec \"$1\" restore --run-dir \"$2\""))))
}

#[test]
fn h34_01_another_namespace_is_noticed() {
    if !is_root() {
        return;
    }
    let Some((folder, tree)) = left_bound() else { return };
    let hidden = "mount -t tmpfs none /proc &&";
    for (namespaces, script) in [
        (&["--pid", "--fork", "--mount-proc"][..], ""),
        (&["--pid", "--fork"], ""),
        (&["--cgroup"], ""),
        (&["--mount"], hidden),
    ] {
        let Some((code, said)) = restore_in(namespaces, script, folder.path()) else { continue };
        assert_eq!(code, Some(4), "{namespaces:?}: {said}");
        assert!(said.contains("not put back: "), "{namespaces:?}: {said}");
        assert_eq!(files(folder.path(), "journal").len(), 1, "{namespaces:?}: {said}");
    }
    // A mount namespace with the same /proc is no other place.
    match restore_in(&["--mount"], "", folder.path()) {
        Some((code, said)) => assert_eq!((code, tree.is_untouched()), (Some(0), true), "{said}"),
        None => assert_eq!(restore(folder.path()).0, Some(0)),
    }
    assert!(tree.is_untouched());
}

/// A file system that is mounted where the name is no UTF-8, as any user can by FUSE.
struct OddMount {
    folder: TempDir,
    name: OsString,
}

impl OddMount {
    fn new() -> Option<Self> {
        let (folder, name) = (tempfile::tempdir().unwrap(), OsString::from_vec(b"a \xff".to_vec()));
        fs::create_dir(folder.path().join(&name)).unwrap();
        let odd = Self { folder, name };
        match mount("tmpfs", odd.path(), "tmpfs", MountFlags::NODEV, None) {
            Ok(()) => Some(odd),
            Err(error) => {
                eprintln!("SKIPPED: no tmpfs can be mounted: {error}");
                None
            }
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join(&self.name)
    }
}

impl Drop for OddMount {
    fn drop(&mut self) {
        let _ = unmount(self.path(), UnmountFlags::DETACH);
    }
}

/// Whether a process is stopped or in a cgroup of a session.
fn is_held(pid: i32) -> bool {
    let proc = Proc::default();
    let is_own = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"ampsched-held-"))
    };
    proc.process(pid).is_ok_and(|stat| stat.state == 'T')
        || proc.cgroups(pid).unwrap_or_default().values().any(is_own)
}

#[test]
fn h34_01_a_mount_point_that_is_no_utf_8_leaves_nobody_frozen() {
    let Some(_odd) = OddMount::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    let tree = Tree::with_counters(4);
    let Some(session) = session(folder.path(), "hfee:epoch_ms=20", &tree) else { return };
    let held = || tree.pids().into_iter().filter(|&pid| is_held(pid)).count();
    // While the session is stopped nobody is let go on.
    until("some are held", || {
        kill(session.pid(), Signal::STOP);
        let state = || Proc::default().process(session.pid()).unwrap().state;
        until("it is stopped", || state() == 'T');
        let some = held() > 0;
        if !some {
            kill(session.pid(), Signal::CONT);
        }
        some
    });
    kill_with_guardian(session);
    assert!(held() > 0);
    let (code, said) = restore(folder.path());
    assert_eq!((code, held()), (Some(0), 0), "{said}");
    assert_eq!(files(folder.path(), "journal"), Vec::<String>::new());
}
