//! Blame of real threads on this kernel. Where tracing cannot be used the test says SKIPPED and passes.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ampsched_live_factors::FutexTrace;

const TRACEFS: &str = "/sys/kernel/tracing";
/// Set for the test that runs itself where tracefs is mounted.
const MOUNTED: &str = "AMPSCHED_TEST_TRACEFS";

fn is_mounted() -> bool {
    Path::new(TRACEFS).join("instances").is_dir()
}

/// Runs the test again in a mount namespace of its own with tracefs mounted; whether that could be done.
fn runs_in_own_namespace(test: &str) -> bool {
    if std::env::var_os(MOUNTED).is_some() {
        return false;
    }
    let script = format!("mount -t tracefs tracefs {TRACEFS} || exit 99; exec \"$@\"");
    let own = std::env::current_exe().unwrap();
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &script, "sh"]).arg(own).args(["--exact", test]);
    let Ok(status) = command.env(MOUNTED, "1").status() else { return false };
    if matches!(status.code(), Some(1 | 99)) && !is_mounted() {
        // No permission; a failure of the test itself is code 101.
        return false;
    }
    assert!(status.success(), "it failed where tracefs is mounted");
    true
}

fn tid() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// Whether a thread of this process sleeps.
fn sleeps(tid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('S'))
}

#[test]
fn a_holder_is_blamed_for_the_waiting() {
    if !is_mounted() {
        if !runs_in_own_namespace("a_holder_is_blamed_for_the_waiting") {
            eprintln!("SKIPPED: tracefs is not mounted and cannot be mounted here");
        }
        return;
    }
    let name = format!("ampsched-test-{}", std::process::id());
    let folder = FutexTrace::folder(Path::new(TRACEFS), &name);
    let mut trace = match FutexTrace::start(folder.clone()) {
        Ok(trace) => trace,
        Err(error) => {
            eprintln!("SKIPPED: this process may not trace: {error}");
            return;
        }
    };
    let lock = Arc::new(Mutex::new(()));
    let (tell, told) = channel();
    let (release, released) = channel::<()>();
    let holder = std::thread::spawn({
        let (lock, tell) = (lock.clone(), tell.clone());
        move || {
            let held = lock.lock().unwrap();
            tell.send(tid()).unwrap();
            released.recv().unwrap();
            drop(held);
        }
    });
    let holder_tid = told.recv().unwrap();
    trace.follow(holder_tid).unwrap();
    let (go, gone) = channel::<()>();
    let is_about_to_lock = Arc::new(AtomicBool::new(false));
    let waiter = std::thread::spawn({
        let is_about_to_lock = is_about_to_lock.clone();
        move || {
            tell.send(tid()).unwrap();
            gone.recv().unwrap();
            is_about_to_lock.store(true, Ordering::SeqCst);
            drop(lock.lock().unwrap());
        }
    });
    let waiter_tid = told.recv().unwrap();
    trace.follow(waiter_tid).unwrap();
    go.send(()).unwrap();
    while !(is_about_to_lock.load(Ordering::SeqCst) && sleeps(waiter_tid)) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let waits = Duration::from_millis(20);
    std::thread::sleep(waits);
    release.send(()).unwrap();
    holder.join().unwrap();
    waiter.join().unwrap();
    let blame_ns = trace.take().unwrap();
    let holders_ns = blame_ns.get(&holder_tid).copied().unwrap_or(0);
    assert!(u128::from(holders_ns) >= waits.as_nanos(), "{blame_ns:?}");
    assert!(!blame_ns.contains_key(&waiter_tid), "{blame_ns:?}");
    drop(trace);
    std::fs::remove_dir(&folder).expect("nobody reads there any more");
}
