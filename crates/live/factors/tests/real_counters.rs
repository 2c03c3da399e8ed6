//! Counters of real threads, on this kernel: software events, which every computer has, through the same code.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};

use ampsched_computer::CorePmu;
use ampsched_live_factors::{Counters, Encoding, Perf, Pmu, PmuPlan, Source, Survey};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// PERF_TYPE_SOFTWARE, and of it the time on a CPU, page faults and context switches (include/uapi/linux/perf_event.h).
const SOFTWARE: u32 = 1;
const TASK_CLOCK: u64 = 1;
const PAGE_FAULTS: u64 = 2;
const CONTEXT_SWITCHES: u64 = 3;

fn event(counter: &'static str, number: u64) -> Encoding {
    Encoding { counter, kind: SOFTWARE, config: [number, 0, 0] }
}

/// The kernel's software events as if they were those of a PMU, in two groups.
fn survey() -> Survey {
    let (name, events) = ("software".to_owned(), Vec::new());
    let core = CorePmu { name, kind: SOFTWARE, cpus: None };
    let pmu = Pmu { core, events };
    let groups = vec![
        vec![event("task_clock_ns", TASK_CLOCK), event("page_faults", PAGE_FAULTS)],
        vec![event("context_switches", CONTEXT_SWITCHES)],
    ];
    Survey { pmus: vec![PmuPlan { pmu, groups, lacks: Vec::new() }], reasons: Vec::new() }
}

/// Whether this kernel lets this process count at all; where it does not, the test says SKIPPED and passes.
fn may_count() -> bool {
    let opened = Perf.open(0, &[event("task_clock_ns", TASK_CLOCK)]);
    if let Err(error) = &opened {
        eprintln!("SKIPPED: perf_event_open: {error}");
    }
    opened.is_ok()
}

fn tid() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// Computes for that long of its own CPU time, in ns.
fn compute(ns: u64) {
    let own_ns = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    };
    let begun_ns = own_ns();
    while own_ns() < begun_ns + ns {}
}

fn count(counters: &mut Counters<Perf>, tid: i32, name: &str) -> f64 {
    let column = counters.names().iter().position(|known| *known == name).unwrap();
    counters.read(tid).unwrap().expect("it is followed")[0].counts[column]
}

#[test]
fn a_thread_is_counted_alone_and_until_its_end() {
    if !may_count() {
        return;
    }
    let (told, tells) = channel();
    let (goes_on, go_on) = channel::<()>();
    let worker = std::thread::spawn(move || {
        tells_of(&told);
        go_on.recv().unwrap();
        // What it starts is not counted.
        std::thread::spawn(|| compute(200_000_000)).join().unwrap();
        compute(50_000_000);
        // New memory, page by page.
        let pages = vec![1_u8; 4 << 20];
        assert_eq!(pages.iter().step_by(4096).map(|&byte| u32::from(byte)).sum::<u32>(), 1024);
    });
    let tid = tells.recv().unwrap();
    let mut counters = Counters::new(Perf, &survey());
    counters.follow(tid).unwrap();
    assert_eq!((counters.followed(), counters.waiting()), (1, 0));
    goes_on.send(()).unwrap();
    worker.join().unwrap();
    // It has ended, and what it has done is known.
    let (names, found) =
        (counters.names().to_vec(), counters.read(tid).unwrap().unwrap()[0].clone());
    let of = |name| found.counts[names.iter().position(|known| *known == name).unwrap()];
    let ran_ns = of("task_clock_ns");
    assert!((50e6..200e6).contains(&ran_ns), "{ran_ns} ns: itself only");
    assert!((0.9..1.1).contains(&(found.ran_ns / ran_ns)), "{} of {ran_ns} ns", found.ran_ns);
    assert!(of("page_faults") >= 1000.0, "{} page faults", of("page_faults"));
    counters.forget(tid);
    assert_eq!(counters.read(tid).unwrap(), None);
    assert!(counters.follow(tid).is_err(), "there is no such thread any more");
}

fn tells_of(told: &std::sync::mpsc::Sender<i32>) {
    told.send(tid()).unwrap();
}

#[test]
fn a_reading_is_of_the_time_since_the_last_one() {
    if !may_count() {
        return;
    }
    let mut counters = Counters::new(Perf, &survey());
    counters.follow(tid()).unwrap();
    compute(20_000_000);
    let first_ns = count(&mut counters, tid(), "task_clock_ns");
    // Within a tenth: the kernel's clock of a thread and that of its counters are two.
    assert!(first_ns >= 18e6, "{first_ns} ns");
    compute(5_000_000);
    let second_ns = count(&mut counters, tid(), "task_clock_ns");
    assert!((4.5e6..first_ns).contains(&second_ns), "{second_ns} ns after {first_ns}");
}

#[test]
fn events_are_tried_out_on_a_cpu() {
    if !may_count() {
        return;
    }
    let clock = event("task_clock_ns", TASK_CLOCK);
    let cpus = rustix::thread::sched_getaffinity(None).unwrap();
    let cpu = (0..1024).find(|&cpu| cpus.is_set(cpu)).unwrap();
    assert!(Perf.try_out(cpu, &[clock, event("page_faults", PAGE_FAULTS)]).unwrap());
    // No kernel has an event of that number.
    let unknown = event("cycles", 4711);
    assert!(Perf.try_out(cpu, &[unknown]).is_err());
    assert!(Perf.try_out(cpu, &[clock, unknown]).is_err());
    assert_eq!(rustix::thread::sched_getaffinity(None).unwrap(), cpus, "nobody else was moved");
}

/// Set for tests that run themselves in a process of their own: what it shall do there.
const ROLE: &str = "AMPSCHED_TEST_ROLE";

fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

fn again(test: &str, role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "--nocapture", test]).env(ROLE, role).current_dir("/");
    command
}

#[test]
fn the_limit_of_files_is_raised_and_then_kept() {
    if !may_count() {
        return;
    }
    let Some(_) = role() else {
        let output = again("the_limit_of_files_is_raised_and_then_kept", "few").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        return;
    };
    setrlimit(Resource::Nofile, Rlimit { current: Some(100), maximum: Some(160) }).unwrap();
    let (told, tells) = channel();
    let stop = Arc::new(Barrier::new(41));
    let threads: Vec<_> = (0..40)
        .map(|_| {
            let (told, stop) = (told.clone(), Arc::clone(&stop));
            std::thread::spawn(move || {
                tells_of(&told);
                stop.wait();
            })
        })
        .collect();
    let mut counters = Counters::new(Perf, &survey());
    let tids: Vec<i32> = tells.iter().take(40).collect();
    for &tid in &tids {
        counters.follow(tid).unwrap();
    }
    assert_eq!(getrlimit(Resource::Nofile).current, Some(160));
    // Three files each, and 64 are left for others.
    assert_eq!((counters.followed(), counters.waiting()), (32, 8));
    assert!(std::fs::File::open("/proc/self/stat").is_ok());
    // Who goes makes place.
    counters.forget(tids[0]);
    assert_eq!((counters.followed(), counters.waiting()), (32, 7));
    stop.wait();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn threads_of_others_are_refused() {
    /// Whoever `nobody` is on Linux.
    const NOBODY: u32 = 65534;
    if let Some(tid) = role() {
        let mut counters = Counters::new(Perf, &survey());
        let error = counters.follow(tid.parse().unwrap()).unwrap_err();
        eprintln!("refused: {:?}", error.kind());
        return;
    }
    if !may_count() || !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root can be somebody else");
        return;
    }
    let mut command = again("threads_of_others_are_refused", &tid().to_string());
    match command.uid(NOBODY).gid(NOBODY).output() {
        Err(error) => eprintln!("SKIPPED: {error}: nobody cannot run this test"),
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(
                output.status.success() && text.contains("refused: PermissionDenied"),
                "{text}"
            );
        }
    }
}
