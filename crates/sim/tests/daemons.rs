//! Daemon threads: a program is over when its other threads have ended, and they end with it wherever they are.

mod common;

use std::sync::Arc;

use ampsched_model::{Program, Workload};
use ampsched_policy::{REGISTRY, build_policy};
use ampsched_sim::{Limits, Outcome, simulate};
use common::{Host, ns, workload, workload_with};

/// A thread that works 10 ms and sleeps 1 ms in all.
const MAIN: &str = "[[threads]]\nname='main'\n\
    body=[{loop=10,body=[{run_us=1e3,profile='unit'},{sleep_us=100}]}]\n";

fn daemon(name: &str, count: u32, keys: &str, body: &str) -> String {
    format!("[[threads]]\nname='{name}'\ncount={count}\ndaemon=true\n{keys}body=[{body}]\n")
}

fn watchdog(us: u32) -> String {
    daemon("watchdog", 1, "", &format!("{{loop='forever',body=[{{sleep_us={us}}},{RUN}]}}"))
}

const RUN: &str = "{run_us=100,profile='unit'}";

/// Daemon threads that sleep, run, wait for a core and wait in each kind of object when `MAIN` ends.
fn everywhere() -> String {
    let objects = "[mutexes.m]\n[mutexes.n]\n[conditions.c]\n[semaphores.s]\n[barriers.b]\n[devices.d]\n[timers.t]\n\
        [queues.empty]\ncapacity=1\n[queues.full]\ncapacity=1\n[pools.p]\ntotal=1000000\n\
        [regions.r]\ngraph='graph.csv'\nworkers=2\n";
    let late = "{sleep_us=1e9},{signal='c'},{sem_post='s'},{barrier='b'},{resume='suspended'},\
        {push='empty'},{close='empty'},{each='full',body=[{yield=true}]},{tasks='r',profile='unit'}";
    let forever = |body: &str| format!("{{loop='forever',body=[{body}]}}");
    let threads = [
        daemon("late", 1, "", late),
        daemon("sleeper", 1, "", &forever(&format!("{{sleep_us=700}},{RUN}"))),
        daemon("hog", 3, "", &forever(RUN)),
        daemon("low", 1, "nice=5\n", &forever(RUN)),
        daemon("owner", 1, "", "{lock='m'},{sleep_us=1e9},{unlock='m'}"),
        daemon("wants", 2, "", "{lock='m'},{unlock='m'}"),
        daemon("told", 1, "", "{lock='n'},{wait='c',mutex='n'},{unlock='n'}"),
        daemon("takes", 2, "", "{sem_wait='s'}"),
        daemon("meets", 1, "", "{barrier='b'}"),
        daemon("pops", 2, "", "{each='empty',body=[{yield=true}]}"),
        daemon("pushes", 1, "", "{push='full'},{push='full'},{close='full'}"),
        daemon("reads", 2, "", "{io_us=1e9,device='d'}"),
        daemon("ticks", 1, "", &forever(&format!("{{timer_us=900,timer='t'}},{RUN}"))),
        daemon("suspended", 1, "", "{suspend=true}"),
        daemon("draws", 1, "", &format!("{{dynamic='p',body=[{RUN}]}}")),
        daemon("tasks", 1, "", "{tasks='r',profile='unit'}"),
        daemon(
            "urgent",
            1,
            "class='fifo'\npriority=1\n",
            &forever("{sleep_us=800},{run_us=10,profile='unit'}"),
        ),
    ];
    format!("{objects}{MAIN}{}", threads.concat())
}

/// Times of threads add up, and none goes on when its program has ended.
fn assert_ended(outcome: &Outcome, policy: &str) {
    for thread in &outcome.threads {
        let lived_ns = thread.end_ns - thread.start_ns;
        let times_ns = thread.run_ns() + thread.ready_ns + thread.blocked_ns;
        assert_eq!(times_ns, lived_ns, "{} under {policy}", thread.name);
    }
    for (index, app) in outcome.apps.iter().enumerate() {
        let of_app = outcome.threads.iter().filter(|thread| usize::from(thread.app) == index);
        let ended = of_app.filter(|thread| (thread.repetition as usize) < app.completions_ns.len());
        let daemons = ended.clone().filter(|thread| thread.name != "main");
        let mains: Vec<u64> =
            ended.filter(|thread| thread.name == "main").map(|t| t.end_ns).collect();
        for daemon in daemons {
            let end_ns = mains[daemon.repetition as usize];
            let is_endless = ["sleeper", "hog", "low", "ticks", "urgent"]
                .contains(&daemon.name.split('.').next().unwrap());
            let fits = daemon.end_ns == end_ns || (daemon.end_ns < end_ns && !is_endless);
            assert!(fits, "{} under {policy}", daemon.name);
        }
    }
}

#[test]
fn h35_2_a_program_ends_with_its_last_thread_that_is_no_daemon() {
    let host = Host::symmetric(2);
    let outcome = host.run(&format!("{MAIN}{}", watchdog(50_000)), "cfs");
    assert_eq!(outcome.makespan_ns, ns(11.0));
    assert_eq!(outcome.apps[0].turnaround_ns, ns(11.0));
    // What it has done counts.
    let outcome = host.run(&format!("{MAIN}{}", watchdog(900)), "cfs");
    assert_eq!(outcome.makespan_ns, ns(11.0));
    assert_eq!(outcome.threads[1].run_ns(), ns(1.1));
    assert_eq!(outcome.threads[1].end_ns, ns(11.0));
}

#[test]
fn h35_2_daemon_threads_end_wherever_they_are_under_every_policy() {
    let program = everywhere();
    for info in REGISTRY {
        for (big, little) in [(1, 1), (4, 4)] {
            let host = Host::unequal(big, little, 2.0).with_repetitions(2);
            let outcome = run_with_graph(&host, &[&program, MAIN], info.name);
            assert_ended(&outcome, info.name);
            assert!(outcome.threads.iter().any(|thread| thread.name == "sleeper"));
        }
    }
}

fn run_with_graph(host: &Host, programs: &[&str], policy: &str) -> Outcome {
    let workload = with_graph(programs);
    let policy_of = build_policy(policy, &[]).unwrap();
    simulate(&host.machine, &workload, policy, policy_of, &host.options)
        .unwrap_or_else(|error| panic!("{policy}: {error}"))
}

/// The region has a chain of tasks, so one of two workers waits.
fn with_graph(programs: &[&str]) -> Workload {
    workload_with(programs, "a,1,,\nb,1,,a\n")
}

#[test]
fn h35_2_joining_does_not_wait_for_daemon_threads() {
    let program = format!(
        "[[threads]]\nname='main'\nbody=[{{fork='watchdog'}},{{fork='worker',times=2}},{{join=true}},{RUN}]\n\
         [[threads]]\nname='worker'\ncount=0\nbody=[{{run_us=1e3,profile='unit'}}]\n\
         {}",
        daemon("watchdog", 0, "", "{loop='forever',body=[{sleep_us=300}]}")
    );
    assert_eq!(Host::symmetric(2).run(&program, "cfs").makespan_ns, ns(1.1));
}

#[test]
fn h35_2_a_daemon_thread_may_end_before() {
    let program = format!("{MAIN}{}", daemon("short", 1, "", RUN));
    let outcome = Host::symmetric(2).run(&program, "cfs");
    assert_eq!(outcome.makespan_ns, ns(11.0));
    assert_eq!(outcome.threads[1].end_ns, ns(0.1));
}

#[test]
fn h35_2_a_deadlock_beside_a_daemon_thread_is_reported() {
    let stuck = "[mutexes.m]\n[mutexes.n]\n\
        [[threads]]\nname='a'\nbody=[{lock='m'},{sleep_us=10},{lock='n'},{unlock='n'},{unlock='m'}]\n\
        [[threads]]\nname='b'\nbody=[{lock='n'},{sleep_us=10},{lock='m'},{unlock='m'},{unlock='n'}]\n";
    let program = format!("{stuck}{}", watchdog(1_000));
    let error = Host::symmetric(2).try_run(&program, "cfs").unwrap_err().to_string();
    assert!(error.contains("cycle: p/a waits for mutex \"p/n\" held by p/b"), "{error}");
    // One that wakes the others is no deadlock, however long that takes.
    let helped = format!(
        "[semaphores.s]\n[[threads]]\nname='main'\nbody=[{{loop=3,body=[{{sem_wait='s'}}]}}]\n{}{}",
        daemon(
            "helps",
            1,
            "",
            "{loop='forever',body=[{loop=90000,body=[{sleep_us=1}]},{sem_post='s'}]}"
        ),
        watchdog(1_000),
    );
    assert_eq!(Host::symmetric(2).run(&helped, "cfs").makespan_ns, ns(270.0));
}

/// A program of two processes: the second one's threads and daemon threads have these names.
fn of_two(program: &str, second: &[&str]) -> Workload {
    let mut workload = workload(&[program]);
    let mut program: Program = (*workload.apps[0].program).clone();
    for thread in &mut program.threads {
        thread.process = u32::from(second.contains(&thread.name.as_str()));
    }
    assert_eq!(program.flaw(), None);
    workload.apps[0].program = Arc::new(program);
    workload
}

#[test]
fn h35_2_daemon_threads_end_with_their_process() {
    let program = format!(
        "{MAIN}[[threads]]\nname='child'\nbody=[{{run_us=4e3,profile='unit'}}]\n{}{}{}",
        daemon(
            "of-child",
            1,
            "",
            "{loop='forever',body=[{sleep_us=300},{run_us=1,profile='unit'}]}"
        ),
        daemon("of-main", 1, "", "{loop='forever',body=[{sleep_us=300}]}"),
        daemon("never", 1, "start_us=5e3\n", "{loop='forever',body=[{sleep_us=300}]}"),
    );
    let workload = of_two(&program, &["child", "of-child", "never"]);
    for info in REGISTRY {
        let host = Host::symmetric(4);
        let policy = build_policy(info.name, &[]).unwrap();
        let outcome = simulate(&host.machine, &workload, info.name, policy, &host.options).unwrap();
        let end_ns = |name: &str| {
            let mut named = outcome.threads.iter().filter(|thread| thread.name == name);
            named.next().map(|thread| thread.end_ns)
        };
        assert!(end_ns("child") < end_ns("main"), "{}", info.name);
        assert_eq!(end_ns("of-child"), end_ns("child"), "{}", info.name);
        assert_eq!(end_ns("of-main"), end_ns("main"), "{}", info.name);
        assert_eq!(end_ns("never"), None, "{}", info.name);
    }
}

#[test]
fn h35_2_no_policy_beats_the_limit_with_daemon_threads() {
    let text = everywhere();
    let workload = with_graph(&[&text]);
    for (big, little) in [(1, 1), (2, 2)] {
        let host = Host::unequal(big, little, 2.0);
        let limit_ns = Limits::new(&host.machine, &workload, &host.options).makespan_ns();
        assert!(limit_ns >= ns(11.0) as f64 * 0.999, "{limit_ns}");
        for info in REGISTRY {
            let outcome = run_with_graph(&host, &[&text], info.name);
            assert!(outcome.makespan_ns as f64 >= limit_ns, "{}: {limit_ns}", info.name);
        }
    }
}
