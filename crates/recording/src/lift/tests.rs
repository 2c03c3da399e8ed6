//! Recordings of known programs, and what becomes of them.

mod crews;
mod fidelity;
mod stages;
mod synthetic;
mod teams;

use proptest::prelude::*;

use super::*;
use crate::TYPICAL_PROFILE;
use crate::{Event, Info, Kind, Recording, Thread};
use synthetic::Script;

fn lifted(recording: &Recording) -> Lifted {
    lift(recording, &Options::default())
}

/// The work of the text is that of the recording, in all and by group, within 1 %.
fn assert_work(lifted: &Lifted) {
    let report = &lifted.report;
    assert!(report.work_error().abs() < 0.01, "{}\n{}", report.work_error(), lifted.toml);
    for group in report.groups.iter().filter(|group| group.recorded_ns > 1e5) {
        let error = group.lifted_ns / group.recorded_ns - 1.0;
        assert!(error.abs() < 0.01, "{}: {error}\n{}", group.name, lifted.toml);
    }
}

fn kinds<'a>(lifted: &'a Lifted, kind: &str) -> Vec<&'a str> {
    let objects = lifted.report.objects.iter().filter(|object| object.kind == kind);
    objects.map(|object| object.was.as_str()).collect()
}

fn has(lifted: &Lifted, text: &str) {
    assert!(lifted.toml.contains(text), "no {text}\n{}", lifted.toml);
}

#[test]
fn barriers_make_a_loop_of_shares() {
    let recording = synthetic::barriers(4, 10, Script::barrier);
    let lifted = lifted(&recording);
    assert_eq!(lifted.report.level, "full");
    has(&lifted, "n = 4");
    has(&lifted, "{ fork = \"worker\", times = \"n - 1\" }");
    has(&lifted, "{ loop = \"ceil(10 * scale)\", body = [");
    has(&lifted, "{ run_us = \"4000 / n\", profile = \"recorded\" },");
    assert_eq!(kinds(&lifted, "barrier"), ["barrier"]);
    assert_work(&lifted);
}

#[test]
fn a_mutex_and_a_condition_are_a_barrier() {
    let recording = synthetic::barriers(4, 10, Script::monitor_barrier);
    let lifted = lifted(&recording);
    assert_eq!(kinds(&lifted, "barrier"), ["mutex and condition, 10 rounds of 4 threads"]);
    has(&lifted, "{ loop = \"ceil(10 * scale)\", body = [");
    assert_eq!(lifted.report.literal_steps_share, 0.0);
    assert_work(&lifted);
}

#[test]
fn each_thread_can_do_as_much_as_recorded() {
    let recording = synthetic::barriers(4, 10, Script::barrier);
    let options = Options { scaling: Scaling::PerThread, ..Options::default() };
    let lifted = lift(&recording, &options);
    has(&lifted, "{ run_us = 1000, profile = \"recorded\" },");
    assert_work(&lifted);
}

#[test]
fn a_bounded_queue_keeps_items_and_capacity() {
    let recording = synthetic::pipeline(3, 60);
    let lifted = lifted(&recording);
    assert_eq!(kinds(&lifted, "queue"), ["mutex and conditions, 60 put in, 60 taken out"]);
    has(&lifted, "capacity = 4\n");
    has(&lifted, "{ loop = \"ceil(60 * scale)\", body = [");
    has(&lifted, "{ each = \"queue1\", body = [");
    has(&lifted, "{ close = \"queue1\" },");
    has(&lifted, "times = \"n\"");
    assert_work(&lifted);
}

#[test]
fn numbers_drawn_under_a_mutex_are_a_pool() {
    let recording = synthetic::pool(4, 50);
    let lifted = lifted(&recording);
    assert_eq!(kinds(&lifted, "pool"), ["mutex: a number is drawn, 1 times 50 pieces"]);
    has(&lifted, "total = \"ceil(50 * scale)\"");
    has(&lifted, "{ dynamic = \"pool1\", body = [");
    assert!(kinds(&lifted, "mutex").is_empty(), "{}", lifted.toml);
    assert_work(&lifted);
}

#[test]
fn rounds_of_tasks_are_a_queue_and_a_latch() {
    let recording = synthetic::task_rounds(3, 5, 12);
    let lifted = lifted(&recording);
    assert_eq!(kinds(&lifted, "queue"), ["mutex and conditions, 60 put in, 60 taken out"]);
    let latch = "mutex and condition, 5 times 12 threads or tasks";
    assert_eq!(kinds(&lifted, "semaphore"), [latch], "{}", lifted.toml);
    has(&lifted, "{ loop = 5, body = [");
    has(&lifted, "{ loop = \"ceil(12 * scale)\", body = [");
    assert_eq!(lifted.report.literal_steps_share, 0.0);
    assert_work(&lifted);
}

#[test]
fn parallel_regions_leave_active_waiting_out() {
    let recording = synthetic::regions(3, 6);
    let lifted = lifted(&recording);
    assert_eq!(kinds(&lifted, "barrier"), ["begin and end of parallel regions"]);
    has(&lifted, "n = 3");
    assert!(lifted.report.idle_ns > 0.0);
    assert_work(&lifted);
}

#[test]
fn what_the_kernel_tells_stays_literal() {
    let recording = synthetic::ping_pong(20);
    let lifted = lifted(&recording);
    assert_eq!(kinds(&lifted, "semaphore").len(), 2);
    assert!(lifted.report.literal_steps_share > 0.9);
    has(&lifted, "{ sem_post = ");
    assert_work(&lifted);
}

#[test]
fn jobs_handed_out_by_conditions_of_each_thread_are_a_queue() {
    let lifted = lifted(&crews::handed_out(3, 40, false));
    assert_eq!(lifted.report.level, "jobs");
    assert_eq!(kinds(&lifted, "queue"), ["40 jobs of 3 threads"], "{}", lifted.toml);
    has(&lifted, "{ fork = \"worker\", times = \"n\" }");
    has(&lifted, "{ each = \"queue1\", body = [");
    // The first thread goes on when one more is done, and has waited for all in the end.
    let waits = ["jobs done, 37 waited for before others", "jobs done, 40 waited for"];
    assert_eq!(kinds(&lifted, "semaphore"), waits, "{}", lifted.toml);
    has(&lifted, "initial = \"max(0, n - 3) * 1\"");
    // Each thread's own mutex is nothing between threads of which any may take a job.
    assert_eq!(kinds(&lifted, "mutex").len(), 1, "{}", lifted.toml);
    assert_eq!(lifted.report.literal_share, 0.0);
    assert_work(&lifted);
}

/// Numbers of jobs were drawn at random where they differed, so somebody might wait for more than were handed out.
#[test]
fn h35_5_as_many_jobs_are_handed_out_as_were() {
    let lifted = lifted(&crews::handed_out_by_rounds(2, 12));
    assert_eq!(kinds(&lifted, "queue"), ["90 jobs of 2 threads"], "{}", lifted.toml);
    assert!(!lifted.toml.contains("low ="), "{}", lifted.toml);
    assert_work(&lifted);
}

/// What is done before and after a block is packed was a job of its own, as both together were a tenth of one; and two
/// blocks at a time were as alike as single ones, by the last one.
#[test]
fn h35_5_what_is_short_between_two_jobs_is_no_job() {
    let lifted =
        super::lift_shared(&crews::blocks(3, 10), &Options::default()).expect("they take blocks");
    assert_eq!(lifted.report.jobs, [4, 3, 3], "{}", lifted.toml);
    assert_work(&lifted);
}

#[test]
fn h35_5_only_work_that_several_threads_take_is_shared() {
    let shared = |recording| super::lift_shared(&recording, &Options::default()).is_some();
    assert!(shared(crews::handed_out(3, 40, false)));
    assert!(shared(synthetic::pipeline(3, 60)), "pipeline");
    assert!(!shared(synthetic::pipeline(1, 60)), "a single one takes");
    assert!(!shared(synthetic::barriers(4, 10, Script::barrier)), "each has its own");
    assert!(!shared(synthetic::cells(4, 3)), "they only exclude each other");
    assert!(!shared(synthetic::ping_pong(20)), "they wake each other");
}

#[test]
fn h35_5_processes_that_take_from_one_pipe_are_a_pool() {
    let recording = crews::taken_from_a_pipe(3, 40);
    let options = Options::default();
    let lifted = super::lift_shared(&recording, &options).expect("they take jobs");
    assert_eq!(kinds(&lifted, "queue"), ["40 jobs of 3 threads"], "{}", lifted.toml);
    assert!(!lifted.toml.contains("sleep_us"), "{}", lifted.toml);
    assert_work(&lifted);
    // One process has nobody to share with.
    assert!(super::lift_shared(&crews::taken_from_a_pipe(1, 40), &options).is_none());
}

#[test]
fn h35_5_who_reads_waits_for_who_writes() {
    let lifted = lifted(&crews::taken_from_a_pipe(1, 40));
    assert!(!lifted.toml.contains("sleep_us"), "{}", lifted.toml);
    has(&lifted, "{ sem_wait = ");
    assert_work(&lifted);
}

#[test]
fn h35_5_work_that_threads_steal_is_divided() {
    let lifted =
        super::lift_shared(&crews::steals(), &Options::default()).expect("they share work");
    assert_eq!(lifted.report.jobs, [40, 60], "{}", lifted.toml);
    assert_work(&lifted);
}

#[test]
fn h35_5_the_thread_that_starts_others_may_take_as_they_do() {
    // A kernel tells who woke whom, or threads that yield in between look for work.
    for recording in [crews::starts_and_takes(), crews::yields_and_takes()] {
        let lifted = super::lift_shared(&recording, &Options::default()).expect("they share work");
        // The last one does what the first one did from then on.
        assert_eq!(lifted.report.jobs, [60, 50, 40], "{}", lifted.toml);
        assert_work(&lifted);
    }
}

#[test]
fn h35_5_one_of_a_pool_may_come_to_many_locks() {
    let mut recording = crews::handed_out(3, 40, false);
    let first = &mut recording.threads[1].events;
    let at_ns = first[0].at_ns;
    let lock = |kind| Event { object: 900, ..Event::new(kind, at_ns, 0) };
    first.splice(1..1, [lock(Kind::Lock), lock(Kind::Unlock)].repeat(500));
    let lifted = super::lift_shared(&recording, &Options::default()).expect("they take jobs");
    assert_eq!(kinds(&lifted, "queue"), ["40 jobs of 3 threads"], "{}", lifted.toml);
}

#[test]
fn threads_that_take_jobs_may_meet_before() {
    let lifted = lifted(&crews::handed_out(3, 40, true));
    assert_eq!(kinds(&lifted, "queue"), ["40 jobs of 3 threads"], "{}", lifted.toml);
    assert!(kinds(&lifted, "barrier").is_empty(), "{}", lifted.toml);
    has(&lifted, "{ fork = \"worker\", times = \"n\" }");
    assert_work(&lifted);
}

#[test]
fn a_thread_that_is_started_during_an_item_is_started_before_the_items() {
    let lifted = lifted(&crews::starts_while_it_takes());
    let fork = lifted.toml.find("{ fork = \"stage3\" }").expect("it starts the third thread");
    let each = lifted.toml.find("{ each = ").expect("it takes items");
    assert!(fork < each, "{}", lifted.toml);
    assert!(lifted.report.work_error().abs() < 0.01, "{}", lifted.toml);
}

#[test]
fn programs_started_one_after_the_other_are_jobs() {
    let lifted = lifted(&crews::programs(3, 24));
    assert_eq!(lifted.report.level, "jobs", "{}", lifted.toml);
    assert_eq!(kinds(&lifted, "queue"), ["24 jobs of 3 threads"], "{}", lifted.toml);
    has(&lifted, "n = 3");
    assert_work(&lifted);
}

#[test]
fn a_thread_that_goes_on_has_not_been_waited_for() {
    let lifted = lifted(&crews::names_another_one());
    let join = lifted.toml.find("{ join = true }").expect("it waits in the end");
    let wait = lifted.toml.find("{ sem_wait = ").expect("it is woken");
    assert!(wait < join, "{}", lifted.toml);
    assert_work(&lifted);
}

#[test]
fn waiting_for_others_is_sleep_and_waiting_for_the_end_nothing() {
    let lifted = lifted(&crews::waits_for_signals());
    has(&lifted, "{ sleep_us = 200 }");
    assert!(!lifted.toml.contains("io_us"), "{}", lifted.toml);
    let note = "Waits that are nearly as long as the recording are left out.";
    assert!(lifted.report.notes.iter().any(|one| one == note), "{:?}", lifted.report.notes);
}

#[test]
fn wake_ups_by_the_last_one_are_a_barrier() {
    let recording = synthetic::woken_barriers(4, 12);
    let lifted = lifted(&recording);
    assert_eq!(kinds(&lifted, "barrier"), ["wake-ups, 12 rounds of 4 threads"], "{}", lifted.toml);
    has(&lifted, "times = \"n\"");
    assert_eq!(lifted.report.literal_steps_share, 0.0);
    assert_work(&lifted);
}

#[test]
fn mutexes_that_are_used_alike_are_an_array() {
    let recording = synthetic::cells(4, 64);
    let lifted = lifted(&recording);
    assert_eq!(kinds(&lifted, "mutexes"), ["64 mutexes"]);
    has(&lifted, "count = 64");
    assert_work(&lifted);
}

#[test]
fn an_empty_recording_makes_a_program() {
    let lifted = lifted(&Recording::default());
    assert_eq!(lifted.report.level, "work");
    assert_eq!(lifted.report.recorded_ns, 0.0);
}

fn event() -> impl Strategy<Value = Event> {
    let small = 0..6u32;
    let fields = (0..Kind::ALL.len(), any::<bool>(), small.clone(), small);
    (fields, 0..3_000u64, 0..50_000u64, 0..20_000u64).prop_map(
        |((kind, is_blocked, object, aux), at_ns, work_ns, wait_ns)| Event {
            is_blocked,
            object,
            aux,
            wait_ns,
            ..Event::new(Kind::ALL[kind], at_ns, work_ns)
        },
    )
}

fn anything() -> impl Strategy<Value = Recording> {
    let thread = (proptest::collection::vec(event(), 1..60), 0..3u32);
    let thread = thread.prop_map(|(mut events, process)| {
        // Times go on by what each event took.
        let mut at_ns = 0;
        for event in &mut events {
            at_ns += event.at_ns;
            event.at_ns = at_ns;
        }
        Thread { name: "t".to_owned(), process, events, ..Thread::default() }
    });
    proptest::collection::vec(thread, 1..6).prop_map(|threads| {
        let info = Info { name: "p \"x\"".to_owned(), ..Info::default() };
        Recording { info, threads, is_cut_off: true }
    })
}

proptest! {
    #[test]
    fn any_events_make_a_program(recording in anything()) {
        for level in Level::ALL {
            let lifted = lift(&recording, &Options { level, ..Options::default() });
            let problem = expected::works(&lifted.toml, TYPICAL_PROFILE).err();
            prop_assert!(problem.is_none(), "{}\n{}", problem.unwrap(), lifted.toml);
            if lifted.report.level == "work" {
                // Amounts below a nanosecond are left out.
                let report = &lifted.report;
                let error_ns = (report.lifted_ns - report.recorded_ns).abs();
                prop_assert!(error_ns < 0.01 * report.recorded_ns + 100.0, "{}", lifted.toml);
            }
        }
    }
}

#[test]
fn h35_2_threads_that_only_watch_become_daemon_threads() {
    let mut script = Script::new(1);
    let watchdog = script.start(0);
    for _ in 0..20 {
        script.add(0, Kind::Yield, 0, 50_000_000);
    }
    for _ in 0..49 {
        let until_ns = script.clock(watchdog) + 20_000_000;
        script.add(watchdog, Kind::Yield, 0, 10_000);
        script.wait(watchdog, Kind::Sleep, 0, until_ns);
    }
    let lifted = lifted(&script.end());
    has(&lifted, "daemon = true");
    has(&lifted, "{ loop = \"forever\", body = [");
    assert_eq!(lifted.toml.matches("daemon").count(), 1, "{}", lifted.toml);
    assert_work(&lifted);
}
