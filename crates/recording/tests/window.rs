//! Windows onto programs that ran before: threads without begin and end, and waits that were under way (35.1).

use ampsched_recording::import::{Options, Window, import};
use ampsched_recording::{Kind, Recording, Wake, replay};

const MS: u64 = 1_000_000;

/// A line of ftrace's text. `at`: ms since the window's begin, which is at 1 s.
fn line(who: &str, core: u16, at_ms: f64, event: &str) -> String {
    format!("{who} [{core:03}] d..2. {:.6}: {event}\n", 1.0 + at_ms / 1e3)
}

fn switch(core: u16, at_ms: f64, from: (&str, u32), state: &str, to: (&str, u32)) -> String {
    let event = format!(
        "sched_switch: prev_comm={} prev_pid={} prev_prio=120 prev_state={state} ==> next_comm={} next_pid={} \
         next_prio=120",
        from.0, from.1, to.0, to.1
    );
    line(&format!("{}-{}", from.0, from.1), core, at_ms, &event)
}

fn waking(core: u16, at_ms: f64, by: (&str, u32), woken: (&str, u32)) -> String {
    let event =
        format!("sched_waking: comm={} pid={} prio=120 target_cpu={core:03}", woken.0, woken.1);
    line(&format!("{}-{}", by.0, by.1), core, at_ms, &event)
}

const IDLE: (&str, u32) = ("swapper", 0);
const CLIENT: (&str, u32) = ("client", 50);
const MAIN: (&str, u32) = ("main", 100);
const WORKER: (&str, u32) = ("worker", 101);
const BUSY: (&str, u32) = ("busy", 102);
const READY: (&str, u32) = ("ready", 104);
const THREADS: [(u32, u32); 5] = [(100, 100), (101, 100), (102, 100), (103, 100), (104, 100)];

fn trace() -> String {
    [
        waking(0, 0.5, CLIENT, MAIN),
        switch(0, 0.6, CLIENT, "S", MAIN),
        waking(0, 1.0, MAIN, WORKER),
        switch(1, 1.1, IDLE, "R", WORKER),
        switch(2, 2.0, BUSY, "S", READY),
        switch(1, 3.0, WORKER, "S", IDLE),
        switch(2, 4.0, READY, "S", IDLE),
    ]
    .concat()
}

fn window(threads: &[(u32, u32)], until_ms: Option<u64>) -> Recording {
    let since_ns = 1000 * MS;
    let window = Window {
        since_ns,
        until_ns: until_ms.map(|ms| since_ns + ms * MS),
        threads: threads.to_vec(),
    };
    let options = Options {
        pids: vec![100],
        name: "served".to_owned(),
        window: Some(window),
        ..Options::default()
    };
    import("trace", trace().as_bytes(), &options).unwrap()
}

fn near(found_ns: u64, ms: f64) -> bool {
    (found_ns as f64 / 1e6 - ms).abs() < 0.01
}

#[test]
fn threads_that_were_there_begin_with_the_window() {
    let found = window(&THREADS, Some(10));
    assert_eq!(found.info.name, "served");
    assert_eq!(found.info.window_ns, Some(10 * MS));
    assert!(!found.is_cut_off);
    let names: Vec<&str> = found.threads.iter().map(|thread| thread.name.as_str()).collect();
    assert_eq!(names, ["main", "worker", "busy", "ready"], "who did nothing is left out");
    for thread in &found.threads {
        assert_eq!((thread.events[0].kind, thread.events[0].at_ns), (Kind::Start, 0));
        assert_eq!(thread.process, 0);
    }
    let idle = "what those threads wait for that did not run meanwhile: 1";
    assert!(found.info.unknown.iter().any(|line| line == idle), "{:?}", found.info.unknown);
}

#[test]
fn waits_under_way_have_the_rest_of_their_length_and_who_ended_them() {
    let found = window(&THREADS, Some(10));
    let block = |thread: usize| &found.threads[thread].events[1];
    assert!(near(block(0).wait_ns, 0.5), "{:?}", block(0));
    assert_eq!((block(0).kind, Wake::from_aux(block(0).aux)), (Kind::Block, Wake::Outside));
    assert!(near(block(1).wait_ns, 1.0), "{:?}", block(1));
    assert_eq!((block(1).kind, Wake::from_aux(block(1).aux)), (Kind::Block, Wake::Thread(0)));
    let blocks = |thread: usize| {
        found.threads[thread].events.iter().filter(|event| event.kind == Kind::Block).count()
    };
    assert_eq!((blocks(2), blocks(3)), (0, 0), "one ran, the other one was ready");
}

#[test]
fn who_runs_at_the_edges_has_run_up_to_them() {
    let found = window(&THREADS, Some(10));
    let cpu_ms: Vec<f64> =
        found.threads.iter().map(|thread| thread.cpu_ns() as f64 / 1e6).collect();
    for (found, expected) in cpu_ms.iter().zip([9.4, 1.9, 2.0, 2.0]) {
        assert!((found - expected).abs() < 0.01, "{cpu_ms:?}");
    }
    assert_eq!(found.info.wall_ns, 10 * MS);
    // Of a recorder that was killed nobody knows the end.
    let killed = window(&THREADS, None);
    assert!(near(killed.info.wall_ns, 4.0));
    assert_eq!(killed.info.window_ns, Some(killed.info.wall_ns));
}

#[test]
fn a_replay_begins_all_of_them_at_once() {
    let program = replay(&window(&THREADS, Some(10)), &Default::default()).program;
    assert!(program.threads.iter().all(|thread| thread.count == 1 && thread.start_ns == 0));
}

#[test]
fn a_window_in_which_nothing_ran_is_empty() {
    let since_ns = 1000 * MS;
    let window = Window { since_ns, until_ns: Some(since_ns + 10 * MS), threads: vec![(200, 200)] };
    let options = Options { pids: vec![200], window: Some(window), ..Options::default() };
    let found = import("trace", trace().as_bytes(), &options).unwrap();
    assert!(found.threads.is_empty());
}

#[test]
fn a_number_that_was_free_again_is_another_thread() {
    // 101 has ended before the first event, and the main thread's new thread has got its number.
    let fork = line(
        "main-100",
        0,
        0.7,
        "sched_process_fork: comm=main pid=100 child_comm=main child_pid=101",
    );
    let text = trace().replacen(&waking(0, 1.0, MAIN, WORKER), &fork, 1);
    let since_ns = 1000 * MS;
    let window = Window { since_ns, until_ns: Some(since_ns + 10 * MS), threads: THREADS.to_vec() };
    let options = Options { pids: vec![100], window: Some(window), ..Options::default() };
    let found = import("trace", text.as_bytes(), &options).unwrap();
    let worker = found.threads.iter().find(|thread| thread.name == "worker").unwrap();
    assert!(near(worker.events[0].at_ns, 1.1), "{:?}", worker.events[0]);
    assert!(worker.events[0].aux > 0, "it was created");
}
