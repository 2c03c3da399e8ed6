use proptest::prelude::*;

use super::*;
use crate::model::{IO_OTHER, IO_READ, IO_STORAGE};

const MS: u64 = 1_000_000;
/// The library's time 0 is that much later than the kernel's.
const LATER_NS: u64 = 3 * MS;

fn worked(kind: Kind, at_ns: u64, cpu_ns: u64) -> Event {
    Event::new(kind, at_ns, cpu_ns)
}

fn about(object: u32, aux: u32, event: Event) -> Event {
    Event { object, aux, ..event }
}

fn waited(kind: Kind, at_ns: u64, cpu_ns: u64, wait_ns: u64) -> Event {
    Event { wait_ns, is_blocked: true, ..worked(kind, at_ns, cpu_ns) }
}

fn by(waker: u32, wait: Event) -> Event {
    Event { aux: Wake::Thread(waker).to_aux(), ..wait }
}

/// Of the library, or of the kernel with the same numbers of threads.
fn clocked(threads: Vec<(u32, Vec<Event>)>, of_kernel: bool) -> Clocked {
    let (tids, threads): (Vec<u32>, Vec<Thread>) = threads
        .into_iter()
        .map(|(tid, events)| {
            let later = |event: Event| Event { at_ns: event.at_ns + LATER_NS, ..event };
            let events =
                events.into_iter().map(|event| if of_kernel { later(event) } else { event });
            (tid, Thread { events: events.collect(), process: tid / 10, ..Thread::default() })
        })
        .unzip();
    let origin_ns = if of_kernel { 50 * MS } else { 50 * MS + LATER_NS };
    let recording = Recording { threads, ..Recording::default() };
    Clocked { recording, tids, origin_ns }
}

fn start(at_ns: u64) -> Event {
    worked(Kind::Start, at_ns, 0)
}

fn exit(at_ns: u64, cpu_ns: u64) -> Event {
    worked(Kind::Exit, at_ns, cpu_ns)
}

/// Thread 11 waits from 2 to 6 ms for thread 12, which works meanwhile.
fn told_by_kernel() -> Clocked {
    let waits = vec![
        start(0),
        by(1, waited(Kind::Block, 6 * MS + 10_000, 2 * MS, 4 * MS)),
        exit(9 * MS, 3 * MS - 10_000),
    ];
    let works =
        vec![start(0), about(0, 0, worked(Kind::Wake, 6 * MS, 6 * MS)), exit(8 * MS, 2 * MS)];
    clocked(vec![(11, waits), (12, works)], true)
}

fn kinds(thread: &Thread) -> Vec<Kind> {
    thread.events.iter().map(|event| event.kind).collect()
}

#[test]
fn a_wait_that_no_call_shows_is_added_and_tied() {
    let library = clocked(
        vec![
            (11, vec![start(0), exit(9 * MS, 5 * MS)]),
            (12, vec![start(0), exit(8 * MS, 8 * MS)]),
        ],
        false,
    );
    let found = merge(library, told_by_kernel());
    let [waits, works] = &found.threads[..] else { panic!("{:?}", found.threads) };
    assert_eq!(kinds(waits), [Kind::Start, Kind::Block, Kind::Exit]);
    assert_eq!(kinds(works), [Kind::Start, Kind::Wake, Kind::Exit]);
    let block = waits.events[1];
    assert_eq!(Wake::from_aux(block.aux), Wake::Thread(1));
    assert_eq!(
        (block.at_ns, block.wait_ns, block.cpu_ns),
        (6 * MS + 10_000, 4 * MS, 2 * MS + 4_008)
    );
    assert_eq!((works.events[1].at_ns, works.events[1].cpu_ns), (6 * MS, 6 * MS));
    assert_eq!((waits.cpu_ns(), works.cpu_ns()), (5 * MS, 8 * MS), "as much as before");
    let merged = found.info.merged.unwrap();
    assert_eq!((merged.tied, merged.added, merged.threads), (0, 1, 0));
    let paths = crate::laws(&found, &[1.0, 10.0]).paths;
    // Thread 12 up to its wake-up, then the rest of thread 11.
    assert_eq!([paths[0].ns(), 10.0 * paths[1].ns()].map(|ns| ns as u64 / MS), [8, 8]);
}

#[test]
fn input_of_unknown_origin_is_tied_and_known_objects_stay() {
    let calls = |kind, object, aux| {
        let wait = about(object, aux, waited(kind, 6 * MS + 20_000, 2 * MS, 4 * MS));
        clocked(
            vec![
                (11, vec![start(0), wait, exit(9 * MS, 3 * MS)]),
                (
                    12,
                    vec![
                        start(0),
                        worked(Kind::Unlock, 6 * MS - 500, 6 * MS),
                        exit(8 * MS, 2 * MS),
                    ],
                ),
            ],
            false,
        )
    };
    let found = merge(calls(Kind::Io, 0, IO_READ), told_by_kernel());
    let wait = found.threads[0].events[1];
    assert_eq!((wait.kind, Wake::from_aux(wait.aux)), (Kind::Block, Wake::Thread(1)));
    assert_eq!((wait.at_ns, wait.wait_ns, wait.cpu_ns), (6 * MS + 20_000, 4 * MS, 2 * MS));
    assert_eq!(found.info.merged.unwrap().tied, 1);

    let mut library = calls(Kind::Lock, 7, 0);
    library.recording.threads[1].events[1].object = 7;
    let before = library.recording.threads.clone();
    let found = merge(library, told_by_kernel());
    assert_eq!(found.threads, before);
    assert_eq!(found.info.merged.unwrap().agreed, 1);

    let found = merge(calls(Kind::Lock, 7, 0), told_by_kernel());
    assert_eq!(found.info.merged.unwrap().disagreed, 1);
    assert!(found.info.unknown[0].contains("name different threads as the cause: 1 of 1"));
}

#[test]
fn a_wait_for_input_ends_with_its_wake_up_and_not_with_a_core() {
    let library = |kind| {
        let wait = about(0, 0, waited(kind, 7 * MS, MS, 5 * MS));
        clocked(vec![(11, vec![start(0), wait, exit(9 * MS, 2 * MS)])], false)
    };
    let disk = |kind, aux| {
        let wait = about(0, aux, waited(kind, 7 * MS - 5_000, MS, 2 * MS));
        clocked(vec![(11, vec![start(0), wait, exit(9 * MS, 2 * MS)])], true)
    };
    let of_disk = merge(library(Kind::Io), disk(Kind::Io, IO_STORAGE)).threads[0].events[1];
    assert_eq!((of_disk.kind, of_disk.aux, of_disk.wait_ns), (Kind::Io, IO_STORAGE, 2 * MS));
    let timer = disk(Kind::Block, Wake::Timer.to_aux());
    let slept = merge(library(Kind::Sleep), timer.clone()).threads[0].events[1];
    assert_eq!((slept.kind, slept.aux, slept.wait_ns), (Kind::Sleep, 0, 2 * MS));
    // Until a time: how long depends on when it began.
    let mut until = library(Kind::Sleep);
    until.recording.threads[0].events[1].aux = 1;
    assert_eq!(merge(until, timer).threads[0].events[1].wait_ns, 5 * MS);
}

#[test]
fn a_child_without_the_library_is_there_and_waited_for() {
    let wait = about(0, IO_OTHER, waited(Kind::Io, 6 * MS, 2 * MS, 4 * MS));
    let mut library = clocked(vec![(11, vec![start(0), wait, exit(9 * MS, 3 * MS)])], false);
    let parent = vec![
        start(0),
        about(1, 0, worked(Kind::Create, MS, MS)),
        about(1, 0, waited(Kind::Join, 6 * MS, MS, 4 * MS)),
        exit(9 * MS, 3 * MS),
    ];
    let child = vec![about(0, 1, start(MS)), exit(5 * MS, 4 * MS)];
    let kernel = clocked(vec![(11, parent), (21, child)], true);
    assert_eq!(see_ends(&mut library, &kernel), 4 * MS);
    let found = merge(library, kernel);
    assert_eq!(kinds(&found.threads[0]), [Kind::Start, Kind::Create, Kind::Join, Kind::Exit]);
    let events = &found.threads[0].events;
    assert_eq!((events[1].object, events[1].cpu_ns, events[2].object), (1, MS, 1));
    assert_eq!((found.threads[1].process, found.threads[1].events[0].aux), (2, 1));
    assert!(found.info.unknown[0].contains("did not load the library: 1 threads"));
}

#[test]
fn a_killed_thread_ends_where_the_kernel_saw_it_and_not_earlier() {
    let end = about(0, EXIT_BY_PROCESS, exit(MS, MS));
    let mut library = clocked(vec![(11, vec![start(0), end]), (12, vec![start(0), end])], false);
    let kernel = told_by_kernel();
    assert_eq!(see_ends(&mut library, &kernel), 0);
    let found = merge(library, kernel);
    assert_eq!(kinds(&found.threads[0]), [Kind::Start, Kind::Block, Kind::Exit]);
    let ends =
        found.threads.iter().map(|thread| (thread.begin_ns(), thread.events.last().unwrap()));
    let ends: Vec<_> = ends.map(|(_, end)| end.at_ns / MS).collect();
    assert_eq!(ends, [9, 8]);
    assert_eq!(found.threads.iter().map(Thread::cpu_ns).sum::<u64>(), 13 * MS - 10_000);
    assert_eq!(found.info.wall_ns, 9 * MS);

    // The end of its process has ended the wait, too, which nobody was to end.
    let late = about(0, EXIT_BY_PROCESS, exit(6 * MS + 30_000, 2 * MS));
    let library = clocked(vec![(11, vec![start(0), late]), (12, vec![start(0), end])], false);
    let mut kernel = told_by_kernel();
    kernel.recording.info.lost_events = 5;
    kernel.recording.threads[0].name = "GC Thread#0".to_owned();
    kernel.recording.threads[0].events[2].at_ns = LATER_NS + 6 * MS + 30_000;
    let found = merge(library, kernel);
    assert_eq!(kinds(&found.threads[0]), [Kind::Start, Kind::Exit]);
    assert_eq!(found.threads[0].name, "GC Thread#0");
    assert!(found.info.unknown[0].ends_with("it has lost events: 5."));
}

#[test]
fn who_goes_on_before_the_end_of_what_it_joins_waits_for_its_last_word() {
    let library = clocked(vec![(11, vec![start(0), exit(9 * MS, 5 * MS)])], false);
    let parent = vec![
        start(0),
        about(1, 0, worked(Kind::Create, MS, MS)),
        about(1, 0, waited(Kind::Join, 6 * MS, MS, 4 * MS)),
        exit(9 * MS, 3 * MS),
    ];
    let wake = about(0, 0, worked(Kind::Wake, 6 * MS - 9_000, 4 * MS));
    let child = vec![about(0, 1, start(MS)), wake, exit(6 * MS + 9_000, 18_000)];
    let found = merge(library, clocked(vec![(11, parent), (21, child)], true));
    let wait = found.threads[0].events[2];
    assert_eq!((wait.kind, Wake::from_aux(wait.aux)), (Kind::Block, Wake::Thread(1)));
    assert_eq!(kinds(&found.threads[1]), [Kind::Start, Kind::Wake, Kind::Exit]);
}

#[test]
fn numbers_that_are_used_again_are_told_apart_by_time() {
    let library = clocked(vec![(11, vec![start(20 * MS), exit(29 * MS, 5 * MS)])], false);
    let of = |from_ms: u64| vec![start(from_ms * MS), exit((from_ms + 9) * MS, 5 * MS)];
    let kernel = clocked(vec![(11, of(0)), (11, of(19)), (11, of(40))], true);
    let twins = twins(
        &library.recording.threads,
        &library.tids,
        &shifted(kernel.recording.threads, kernel.origin_ns, library.origin_ns),
        &kernel.tids,
    );
    assert_eq!(twins, [Some(1)]);
}

prop_compose! {
    /// What each of three threads has done: of the library, or of the kernel.
    fn run(of_kernel: bool)(
        threads in proptest::collection::vec(
            proptest::collection::vec((1..2_000_000_u64, 0..9_u8, 0..3_u32, 1..100_u64), 0..20), 0..4),
    ) -> Clocked {
        let count = threads.len() as u32;
        let thread = |(index, steps): (u32, Vec<(u64, u8, u32, u64)>)| {
            let mut events = vec![start(0)];
            let mut now_ns = 0;
            for (ns, kind, other, percent) in steps {
                now_ns += ns;
                let other = other % count;
                let wait_ns = ns * percent / 100;
                let wait = |kind| waited(kind, now_ns, ns - wait_ns, wait_ns);
                events.push(match (kind, of_kernel) {
                    (0 | 1, true) => by(other, wait(Kind::Block)),
                    (2, true) => about(0, IO_STORAGE, wait(Kind::Io)),
                    (3, true) => about(0, Wake::Outside.to_aux(), wait(Kind::Block)),
                    (4, true) => about(other, 0, wait(Kind::Join)),
                    (_, true) => about(other, 0, worked(Kind::Wake, now_ns, ns)),
                    (0, false) => wait(Kind::Io),
                    (1, false) => wait(Kind::Sleep),
                    (2, false) => about(9, 0, wait(Kind::Lock)),
                    (3, false) => about(8, 0, wait(Kind::FutexWait)),
                    (4, false) => about(8, 1, worked(Kind::FutexWake, now_ns, ns)),
                    (_, false) => about(9, 0, worked(Kind::Unlock, now_ns, ns)),
                });
            }
            events.push(exit(now_ns + 1, 0));
            (11 + index, events)
        };
        clocked((0..).zip(threads).map(thread).collect(), of_kernel)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn a_kernel_that_tells_nothing_changes_nothing(library in run(false)) {
        let before = library.recording.clone();
        prop_assert_eq!(merge(library, Clocked::default()), before);
    }

    #[test]
    fn no_wait_ends_before_its_cause_and_no_work_is_lost(library in run(false), kernel in run(true)) {
        let before = library.recording.threads.clone();
        let found = merge(library, kernel).threads;
        for (thread, before) in found.iter().zip(&before) {
            prop_assert_eq!((thread.cpu_ns(), thread.work_ns()), (before.cpu_ns(), before.work_ns()));
            prop_assert_eq!(thread.events[0].kind, Kind::Start);
            prop_assert_eq!(thread.events.last().map(|last| last.kind), Some(Kind::Exit));
        }
        for (index, thread) in (0u32..).zip(&found) {
            prop_assert!(thread.events.is_sorted_by_key(|event| event.at_ns));
            for event in &thread.events {
                let is_cause = |cause: &Event| {
                    cause.kind == Kind::Wake && cause.object == index && cause.at_ns <= event.at_ns
                };
                match (event.kind, Wake::from_aux(event.aux)) {
                    (Kind::Block, Wake::Thread(waker)) => {
                        prop_assert!(found[waker as usize].events.iter().any(is_cause));
                    }
                    (Kind::Join, _) => {
                        prop_assert!(found[event.object as usize].ends_by(event.at_ns));
                    }
                    _ => {}
                }
            }
        }
    }
}
