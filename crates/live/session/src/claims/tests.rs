//! Sessions that want the same processes, and what others have put beside their files.

use super::*;

/// A session whose process is none that runs.
fn session(tid: i32) -> Claims {
    let own = ThreadKey { tid, start_ticks: 0 };
    Claims::join(own, Path::new("/nowhere/journal")).unwrap()
}

#[test]
fn m06_of_two_sessions_that_begin_at_once_one_has_a_process() {
    let proc = Proc::default();
    let wanted = [proc.process(std::process::id() as i32).unwrap()];
    let (mut first, mut second) = (session(i32::MAX), session(i32::MAX - 1));
    let mut refused = BTreeMap::new();
    let taken = first.take_while(&proc, &wanted, || {
        refused = second.take(&proc, &wanted).unwrap();
    });
    assert_eq!(taken.unwrap(), BTreeMap::new());
    let user = rustix::process::geteuid().as_raw();
    let by_first = BTreeMap::from([(wanted[0].pid, Taken { by: i32::MAX, user })]);
    assert_eq!((refused, second.taken.len()), (by_first, 0));
}
#[test]
fn h34_03_only_files_of_those_who_may_schedule_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let own = rustix::process::geteuid().as_raw();
    let place = |name: &str| folder.path().join(format!("{NAME}{name}"));
    fs::write(place("file"), "rubbish").unwrap();
    fs::write(folder.path().join("file"), "another name").unwrap();
    fs::create_dir(place("folder")).unwrap();
    std::os::unix::fs::symlink(place("file"), place("link")).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, place("pipe"), rustix::fs::FileType::Fifo, mode, 0)
        .unwrap();
    let found = |user: u32| files_in(folder.path(), &BTreeSet::from([user]));
    assert_eq!(found(own).into_iter().map(|other| other.path).collect::<Vec<_>>(), [place("file")]);
    assert_eq!(found(own + 1).len(), 0, "it is not theirs");
}

#[test]
fn h34_03_of_anybody_else_few_files_are_read_and_of_one_s_own_all() {
    let folder = tempfile::tempdir().unwrap();
    let (own, nobody) = (rustix::process::geteuid(), 65534);
    for user in if own.is_root() { vec![0, nobody] } else { vec![own.as_raw()] } {
        for number in 0..=FILES_MAX {
            let path = folder.path().join(format!("{NAME}{user}-{number}"));
            fs::write(&path, "").unwrap();
            std::os::unix::fs::chown(path, Some(user), None).unwrap();
        }
        let expected = FILES_MAX + usize::from(user != nobody);
        assert_eq!(files_in(folder.path(), &BTreeSet::from([user])).len(), expected);
    }
}

#[test]
fn h34_what_is_no_session_s_file_leaves_nothing() {
    let here = |journal: &str| Registration {
        place: Place::here().unwrap(),
        mount_namespace: mount_namespace(),
        pid: 7,
        journal: journal.into(),
    };
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal-ampsched-live-7.7");
    let name = journal.to_str().unwrap();
    assert!(matches!(here("/etc/passwd").left(), Left::Nothing), "a forgery");
    assert!(matches!(here(name).left(), Left::Nothing), "it has been put back");
    let elsewhere = Registration { mount_namespace: None, ..here(name) };
    assert!(matches!(elsewhere.left(), Left::Unknown), "it may be seen there");
    let elsewhere = |field: &str| {
        let mut value = serde_json::to_value(here(name)).unwrap();
        value[field] = "another".into();
        serde_json::from_value::<Registration>(value).unwrap().left()
    };
    assert!(matches!(elsewhere("boot"), Left::Nothing));
    assert!(matches!(elsewhere("pid_namespace"), Left::Unknown));
    fs::write(&journal, "").unwrap();
    assert!(matches!(here(name).left(), Left::Journal(_)));
}
