//! Sessions whose disk is full, whose folder others want to write, whose threads others schedule, whose guardian is
//! stopped: nothing is lost and nobody lets himself in.

mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::process::Signal;
use support::{COUNTER, Session, Tree, call, files, is_root, kill, restore, until};
use tempfile::TempDir;

/// A file system in memory with few pages, which only root can mount.
struct SmallDisk {
    folder: TempDir,
}

impl SmallDisk {
    fn new(pages: usize) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let size = std::ffi::CString::new(format!("size={}k,mode=700", pages * 4)).unwrap();
        let flags = MountFlags::NODEV | MountFlags::NOSUID;
        match mount("tmpfs", folder.path(), "tmpfs", flags, Some(size.as_c_str())) {
            Ok(()) => Some(Self { folder }),
            Err(error) => {
                eprintln!("SKIPPED: no tmpfs can be mounted: {error}");
                None
            }
        }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn fill(&self) {
        let mut file = fs::File::create(self.path().join("filler")).unwrap();
        while std::io::Write::write_all(&mut file, &[7; 512]).is_ok() {}
    }

    fn empty(&self) {
        fs::remove_file(self.path().join("filler")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = unmount(self.path(), UnmountFlags::DETACH);
    }
}

/// A folder, a tree with so many counters, and a session that has bound them.
fn bound(counters: usize) -> Option<(TempDir, Tree, Session)> {
    let folder = tempfile::tempdir().unwrap();
    let tree = Tree::with_counters(counters);
    let session = Session::start(folder.path(), &tree, &["--quiet"])?;
    until("counters are bound", || tree.bound() >= counters);
    Some((folder, tree, session))
}

/// Kills a session with its guardian, so that nobody is left who puts back. What they had claimed is free then.
fn kill_with_guardian(session: Session) {
    kill(session.pid(), Signal::STOP);
    let guardian = session.guardian().unwrap();
    kill(guardian, Signal::KILL);
    until("it has ended", || state_of(guardian).is_none_or(|state| state == 'Z'));
    kill(session.pid(), Signal::KILL);
    drop(session);
}

/// What a process is at: `S` sleeps, `T` has been stopped.
fn state_of(pid: i32) -> Option<char> {
    ampsched_computer::Proc::default().process(pid).ok().map(|stat| stat.state)
}

/// A session whose disk was full for a while, in which processes were started; they are below the tree.
fn after_a_full_disk() -> Option<(SmallDisk, Tree, Session)> {
    let disk = SmallDisk::new(6)?;
    let mut tree = Tree::with_counters(2);
    let session = Session::start(disk.path(), &tree, &["--quiet"])?;
    until("counters are bound", || tree.bound() >= 2);
    disk.fill();
    tree.tell(&"sleep 600 &".repeat(90));
    until("they sleep", || tree.pids().len() == 93);
    // Some looks, each of which tries.
    std::thread::sleep(Duration::from_millis(1500));
    disk.empty();
    // Newer ones may have lower numbers: the kernel begins anew when it has given the greatest.
    let older = tree.pids();
    tree.tell(&COUNTER.repeat(2));
    let is_bound = |pid: &&i32| support::cpus_of(**pid).len() == 1;
    until("newer ones are bound, too", || {
        let pids = tree.pids();
        pids.iter().filter(|pid| !older.contains(pid)).filter(is_bound).count() == 2
    });
    Some((disk, tree, session))
}

#[test]
fn h01_a_disk_that_was_full_loses_nothing_at_the_end() {
    let Some((disk, tree, session)) = after_a_full_disk() else { return };
    let (code, said) = session.stop();
    assert!(tree.is_untouched(), "{said}");
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(files(disk.path(), "journal"), Vec::<String>::new());
}

#[test]
fn h01_a_disk_that_was_full_loses_nothing_for_the_guardian() {
    let Some((disk, tree, session)) = after_a_full_disk() else { return };
    kill(session.pid(), Signal::KILL);
    until("all is as it was", || tree.is_untouched());
    until("nothing is left", || files(disk.path(), "journal").is_empty());
}

/// What another session has left: one journal that is no journal, and one of a session that was killed with its
/// guardian.
#[test]
fn h01_one_bad_journal_never_blocks_the_others() {
    let Some((folder, tree, session)) = bound(2) else { return };
    kill_with_guardian(session);
    for name in ["journal-ampsched-live-1", "journal-ampsched-live-99999999"] {
        fs::write(folder.path().join(name), "rubbish\nmore rubbish").unwrap();
    }
    fs::create_dir(folder.path().join("journal-ampsched-live-2")).unwrap();
    let (code, said) = restore(folder.path());
    assert!(tree.is_untouched(), "{said}");
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("journal-ampsched-live-1: ") && said.contains("live-2: "), "{said}");
}

#[test]
fn h01_a_damaged_tail_is_cut_and_said() {
    let Some((folder, tree, session)) = bound(2) else { return };
    kill_with_guardian(session);
    let [name] = &files(folder.path(), "journal")[..] else { panic!("there is one journal") };
    let journal = folder.path().join(name);
    let mut text = fs::read(&journal).unwrap();
    text.extend(b"0badc0de {\"thread\":{\"pi");
    fs::write(&journal, text).unwrap();
    let (code, said) = restore(folder.path());
    assert!(tree.is_untouched(), "{said}");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("an unfinished record"), "{said}");
    assert!(!journal.exists());
}

/// A journal of the form that let it name any file.
fn forge(folder: &Path, target: &Path) {
    let line = format!("{{\"clock\":{{\"file\":\"{}\",\"text\":\"forged\"}}}}\n", target.display());
    let journal = folder.join("journal-ampsched-live-4711");
    fs::write(&journal, line).unwrap();
    let nobody = 65534;
    std::os::unix::fs::chown(&journal, Some(nobody), Some(nobody)).unwrap();
}

#[test]
fn h02_a_forged_journal_in_a_folder_that_others_can_write_is_refused() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    let secret = folder.path().join("secret");
    fs::write(&secret, "root's").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    forge(folder.path(), &secret);
    let (code, said) = restore(folder.path());
    assert_eq!(fs::read_to_string(&secret).unwrap(), "root's");
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("others can write") && said.contains("chmod go-w"), "{said}");
    let tree = Tree::with_counters(1);
    let Some(mut session) = support::session_of(folder.path(), &tree, &[]) else { return };
    let (code, said) = call(&mut session);
    assert_eq!(
        (code, fs::read_to_string(&secret).unwrap().as_str()),
        (Some(2), "root's"),
        "{said}"
    );
}

#[test]
fn h02_a_forged_journal_in_one_s_own_folder_is_refused() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    fs::write(&secret, "root's").unwrap();
    forge(folder.path(), &secret);
    let (code, said) = restore(folder.path());
    assert_eq!(fs::read_to_string(&secret).unwrap(), "root's");
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("belongs to user 65534"), "{said}");
}

#[test]
fn h02_links_in_the_folder_are_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let target = outside.path().join("target");
    let tree = Tree::with_counters(1);
    for name in ["lock", "status.new"] {
        fs::write(&target, "mine").unwrap();
        symlink(&target, folder.path().join(name)).unwrap();
        let Some(session) = Session::start(folder.path(), &tree, &["--quiet"]) else { return };
        // It has either begun and told its status, or is refused.
        let mut session = session;
        until("it decides", || {
            !session.files("status.json").is_empty() || session.child.try_wait().unwrap().is_some()
        });
        let (_, said) = session.stop();
        assert_eq!(fs::read_to_string(&target).unwrap(), "mine", "{name}: {said}");
        let _ = fs::remove_file(folder.path().join(name));
    }
    let link = outside.path().join("link");
    symlink(folder.path(), &link).unwrap();
    for folder in [link.clone(), link.join(".")] {
        let (code, said) = restore(&folder);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("is a link"), "{said}");
    }
}

#[test]
fn m10_a_stopped_guardian_does_not_hang_the_end() {
    let Some((_folder, tree, session)) = bound(2) else { return };
    let guardian = session.guardian().unwrap();
    kill(session.pid(), Signal::STOP);
    kill(guardian, Signal::STOP);
    kill(session.pid(), Signal::TERM);
    kill(session.pid(), Signal::CONT);
    let mut session = session;
    until("the session ends", || session.child.try_wait().unwrap().is_some());
    assert!(tree.is_untouched());
    let proc = ampsched_computer::Proc::default();
    assert!(proc.process(guardian).is_err(), "it is gone, too");
}

#[test]
fn m10_a_stopped_guardian_is_let_go_on() {
    let Some((_folder, _tree, session)) = bound(2) else { return };
    let guardian = session.guardian().unwrap();
    kill(guardian, Signal::STOP);
    until("it goes on", || state_of(guardian) == Some('S'));
}

#[test]
fn m06_two_sessions_in_two_folders_see_each_other() {
    let Some((_folder, tree, first)) = bound(2) else { return };
    let other = tempfile::tempdir().unwrap();
    let (code, said) = call(&mut support::session_of(other.path(), &tree, &[]).unwrap());
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains(&format!("session of process {}", first.pid())), "{said}");
    assert_eq!(files(other.path(), "journal"), Vec::<String>::new());
    let (code, said) = first.stop();
    assert_eq!(code, Some(0), "{said}");
    assert!(tree.is_untouched());
    let second = Session::start(other.path(), &tree, &["--quiet"]).unwrap();
    until("afterwards another can", || tree.bound() >= 2);
    assert_eq!(second.stop().0, Some(0));
    assert!(tree.is_untouched());
}

#[test]
fn m06_a_part_of_what_another_session_schedules_is_seen() {
    let Some((_folder, tree, first)) = bound(2) else { return };
    let other = tempfile::tempdir().unwrap();
    let child = tree.pids()[1];
    let (big, little) = support::two_cpus().unwrap();
    let mut second = std::process::Command::new(support::PROGRAM);
    second.args(["run", "--backend=daemon", "--policy=hsp", &format!("--pid={child}")]);
    second.args([format!("--big={big}"), format!("--little={little}")]);
    let (code, said) = call(second.arg("--run-dir").arg(other.path()));
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains(&format!("session of process {}", first.pid())), "{said}");
}

#[test]
fn m06_the_guardian_keeps_the_claims() {
    let Some((_folder, _tree, session)) = bound(1) else { return };
    let guardian = session.guardian().unwrap();
    let kept = fs::read_link(format!("/proc/{guardian}/fd/1")).unwrap();
    let name = kept.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("ampsched-session-") && kept.exists(), "{name}");
}

/// Whether a process has something to do when a signal comes (proc_pid_status(5)).
fn catches(pid: i32, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(caught.trim(), 16).unwrap() >> (signal.as_raw() - 1) & 1 == 1
}

/// The kernel sends SIGHUP and SIGCONT to whoever is stopped when the parent of its process group ends, but not if it
/// then belongs to one of the same terminal session, such as the first process of a container.
#[test]
fn m10_a_stopped_guardian_puts_back_when_its_session_is_killed() {
    let Some((_folder, tree, session)) = bound(2) else { return };
    kill(session.pid(), Signal::STOP);
    let guardian = session.guardian().unwrap();
    until("it has begun to listen", || catches(guardian, Signal::HUP));
    kill(guardian, Signal::HUP);
    kill(guardian, Signal::STOP);
    until("it has stopped", || state_of(guardian) == Some('T'));
    kill(session.pid(), Signal::KILL);
    until("all is as it was", || tree.is_untouched());
}

#[test]
fn m06_what_a_killed_session_has_left_elsewhere_is_put_back_first() {
    let Some((folder, tree, first)) = bound(2) else { return };
    let other = tempfile::tempdir().unwrap();
    kill_with_guardian(first);
    assert!(!tree.is_untouched());
    let second = Session::start(other.path(), &tree, &[]).unwrap();
    until("it schedules them", || !second.files("status.json").is_empty());
    let (code, said) = second.stop();
    assert_eq!(code, Some(0), "{said}");
    assert!(tree.is_untouched(), "what they were when it began is not what they were: {said}");
    assert_eq!(files(folder.path(), "journal"), Vec::<String>::new());
}

#[test]
fn m06_a_user_does_not_keep_root_from_scheduling_what_is_not_his() {
    if !is_root() {
        return;
    }
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let tree = Tree::with_counters(1);
    let nobody = 65534;
    std::os::unix::fs::chown(folders[0].path(), Some(nobody), Some(nobody)).unwrap();
    let Some(mut command) = support::session_of(folders[0].path(), &tree, &["--quiet"]) else {
        return;
    };
    std::os::unix::process::CommandExt::uid(&mut command, nobody);
    let mut of_nobody = Session::of(&mut command, folders[0].path());
    until("it begins", || !of_nobody.files("status.json").is_empty());
    assert_eq!(tree.bound(), 0, "it may not");
    let second = Session::start(folders[1].path(), &tree, &["--quiet"]).unwrap();
    until("root may", || tree.bound() >= 1);
    assert_eq!(second.stop().0, Some(0));
    assert!(of_nobody.child.try_wait().unwrap().is_none());
}

#[test]
fn low_a_journal_names_hardly_more_than_what_there_is() {
    let Some((folder, mut tree, session)) = bound(1) else { return };
    let looked_at = || {
        let status = fs::read_to_string(folder.path().join("status.json")).unwrap_or_default();
        status.matches("\"tid\":").count()
    };
    let length = || {
        let [name] = &session.files("journal")[..] else { panic!("there is one journal") };
        fs::metadata(folder.path().join(name)).unwrap().len()
    };
    let mut of_one_round = 0;
    for round in 0..5 {
        tree.tell(&"sleep 600 & all=\"$all $!\";".repeat(120));
        until("all are known", || looked_at() >= 122);
        if round == 0 {
            of_one_round = length();
        }
        tree.tell("kill $all; wait $all; all=");
        until("they have ended", || looked_at() < 122);
    }
    // Twice what mattered last, what it may grow by in any case, and what one look adds before it is shortened.
    let limit = 2 * of_one_round + 16 * 1024 + of_one_round;
    assert!(limit < 5 * of_one_round, "a journal that is never shortened would pass");
    assert!(length() <= limit, "{} of at most {limit} bytes", length());
    kill_with_guardian(session);
    assert_eq!(restore(folder.path()).0, Some(0));
    assert!(tree.is_untouched());
}

#[test]
fn low_a_session_whose_folder_is_removed_puts_back_and_ends() {
    let Some((folder, tree, mut session)) = bound(2) else { return };
    until("it is removed", || fs::remove_dir_all(folder.path()).is_ok());
    until("the session ends", || session.child.try_wait().unwrap().is_some());
    assert!(tree.is_untouched());
    let (code, said) = session.stop();
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("somebody has removed the session's journal"), "{said}");
}

/// The files by which a session's process is known to others.
fn registrations(pid: i32) -> Vec<std::path::PathBuf> {
    let entries = ["/dev/shm", "/tmp"].into_iter().flat_map(|folder| fs::read_dir(folder).unwrap());
    let paths = entries.map(|entry| entry.unwrap().path());
    let is_meant = |path: &std::path::PathBuf| {
        path.to_string_lossy().contains("/ampsched-session-")
            && fs::read_to_string(path).is_ok_and(|text| text.contains(&format!("\"pid\":{pid},")))
    };
    paths.filter(is_meant).collect()
}

#[test]
fn h34_a_guardian_removes_the_file_of_its_session() {
    let Some((_folder, tree, session)) = bound(1) else { return };
    let (pid, guardian) = (session.pid(), session.guardian().unwrap());
    assert_eq!(registrations(pid).len(), 1);
    kill(pid, Signal::KILL);
    until("it has put back", || tree.is_untouched());
    until("it has ended", || state_of(guardian).is_none_or(|state| state == 'Z'));
    assert_eq!(registrations(pid), Vec::<std::path::PathBuf>::new());
}

#[test]
fn h34_empty_and_forged_files_of_sessions_are_removed_by_the_next() {
    let forged = |text: &str| {
        let file =
            tempfile::Builder::new().prefix("ampsched-session-").tempfile_in("/tmp").unwrap();
        fs::write(file.path(), text).unwrap();
        file
    };
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap();
    let session = format!(
        "{{\"boot\":\"{}\",\"pid_namespace\":\"{}\",\"pid\":1,\"journal\":\"/etc/passwd\"}}",
        boot.trim(),
        namespace.display()
    );
    let files = ["", "rubbish", &session].map(forged);
    let Some((_folder, _tree, session)) = bound(1) else { return };
    for file in &files {
        assert!(!file.path().exists(), "{}", file.path().display());
    }
    drop(session);
}
