//! Replays of work that is handed out while it is done.

mod common;

use ampsched_recording::{Event, Info, Kind, Options, Recording, Sharing, Thread, replay};
use common::{catalog, profile, run_on};
use proptest::prelude::*;

const MS: u64 = 1_000_000;

/// An event: when in ms, work before it in ms, kind, object, wait in ms.
type Row = (u64, u64, Kind, u32, u64);

/// The recording of threads by their processes.
fn recording(threads: &[(u32, Vec<Row>)]) -> Recording {
    let event = |&(at_ms, work_ms, kind, object, wait_ms): &Row| Event {
        object,
        wait_ns: wait_ms * MS,
        ..Event::new(kind, at_ms * MS, work_ms * MS)
    };
    let thread = |(process, rows): &(u32, Vec<Row>)| Thread {
        process: *process,
        events: rows.iter().map(event).collect(),
        ..Thread::default()
    };
    let info = Info { name: "p".to_owned(), ..Info::default() };
    Recording { info, threads: threads.iter().map(thread).collect(), is_cut_off: false }
}

/// How long it takes on so many times as fast cores without costs, in ms.
fn makespan_ms(recording: &Recording, cores: &str, speed: f64, sharing: Sharing) -> f64 {
    let mut machine = catalog().machine(cores).unwrap();
    machine.costs = Default::default();
    let options = Options { profile: profile(), speed, sharing, ..Options::default() };
    let makespan_ns = run_on(&machine, &replay(recording, &options), "cfs").unwrap().makespan_ns;
    (makespan_ns as f64 / 1e4).round() / 1e2
}

use Kind::{
    Create, Exit, Join, Lock, OmpBegin, OmpChunk, OmpEnd, OmpFork, OmpJoin, Sleep, Start, Unlock,
};

/// A region of two threads that take chunks of 10 ms; what the worker does behind its last one is given.
fn region(first: u64, second: u64, behind: &[Row]) -> Recording {
    let chunks = |count: u64, at_ms: u64| {
        (0..count).map(move |number| {
            (at_ms + 10 * number, if number == 0 { 0 } else { 10 }, OmpChunk, 0, 0)
        })
    };
    let end_ms = 10 * first.max(second);
    let mut main = vec![
        (0, 0, Start, 0, 0),
        (0, 0, Create, 1, 0),
        (0, 0, OmpFork, 1, 0),
        (0, 0, OmpBegin, 1, 0),
    ];
    main.extend(chunks(first, 0));
    main.push((10 * first, if first > 0 { 10 } else { 0 }, OmpEnd, 1, 0));
    main.push((end_ms, 0, OmpJoin, 1, end_ms - 10 * first));
    main.push((end_ms, 0, Exit, 0, 0));
    let mut worker = vec![(0, 0, Start, 0, 0), (0, 0, OmpBegin, 1, 0)];
    worker.extend(chunks(second, 0));
    worker.extend(behind);
    worker.push((10 * second, if second > 0 && behind.is_empty() { 10 } else { 0 }, OmpEnd, 1, 0));
    worker.push((10 * second, 0, Exit, 0, 0));
    recording(&[(0, main), (0, worker)])
}

#[test]
fn h35_5_who_is_free_takes_the_next_chunk() {
    let uneven = region(6, 2, &[]);
    assert_eq!(makespan_ms(&uneven, "sym-2", 1.0, Sharing::None), 60.0);
    assert_eq!(makespan_ms(&uneven, "sym-2", 1.0, Sharing::HandedOut), 40.0);
    // A thread that got none could have got some.
    let idle = region(8, 0, &[]);
    assert_eq!(makespan_ms(&idle, "sym-2", 1.0, Sharing::None), 80.0);
    assert_eq!(makespan_ms(&idle, "sym-2", 1.0, Sharing::HandedOut), 40.0);
}

#[test]
fn h35_5_what_is_done_with_a_lock_between_chunks_stays_where_it_was() {
    let locks = [(20, 10, Lock, 9, 0), (20, 0, Unlock, 9, 0), (20, 0, OmpChunk, 0, 0)];
    let found = region(6, 2, &locks);
    let literal_ms = makespan_ms(&found, "sym-2", 1.0, Sharing::None);
    assert_eq!(makespan_ms(&found, "sym-2", 1.0, Sharing::HandedOut), literal_ms);
}

#[test]
fn h35_5_tasks_behind_a_share_are_taken_by_all() {
    // Six tasks of 10 ms: all by the main thread, which waits for nobody.
    let mut main = vec![
        (0, 0, Start, 0, 0),
        (0, 0, Create, 1, 0),
        (0, 0, OmpFork, 1, 0),
        (0, 0, OmpBegin, 1, 0),
        (0, 0, OmpEnd, 1, 0),
        (0, 0, OmpChunk, 5, 0),
    ];
    main.extend((1..5).map(|number| (10 * number, 10, OmpChunk, 5, 0)));
    main.extend([(50, 10, OmpJoin, 1, 0), (50, 0, Exit, 0, 0)]);
    let worker = vec![
        (0, 0, Start, 0, 0),
        (0, 0, OmpBegin, 1, 0),
        (0, 0, OmpEnd, 1, 0),
        (0, 0, OmpChunk, 5, 0),
        (10, 10, OmpChunk, 5, 0),
        (50, 10, OmpBegin, 2, 40),
        (50, 0, OmpEnd, 2, 0),
        (50, 0, Exit, 0, 0),
    ];
    let found = recording(&[(0, main), (0, worker)]);
    assert_eq!(makespan_ms(&found, "sym-2", 1.0, Sharing::None), 50.0);
    // How long the worker's last one was is not known: 60 ms are seven tasks.
    assert_eq!(makespan_ms(&found, "sym-2", 1.0, Sharing::HandedOut), 34.29);
}

/// A program of so much work, then sleep.
fn program(process: u32, from_ms: u64, work_ms: u64, sleep_ms: u64) -> (u32, Vec<Row>) {
    let end_ms = from_ms + work_ms + sleep_ms;
    let mut rows = vec![(from_ms, 0, Start, 0, 0)];
    if sleep_ms > 0 {
        rows.push((end_ms, work_ms, Sleep, 0, sleep_ms));
    }
    rows.push((end_ms, if sleep_ms > 0 { 0 } else { work_ms }, Exit, 0, 0));
    (process, rows)
}

#[test]
fn h35_5_the_next_program_is_started_when_any_has_ended() {
    let main = vec![
        (0, 0, Start, 0, 0),
        (0, 0, Create, 1, 0),
        (0, 0, Create, 2, 0),
        (15, 0, Join, 2, 15),
        (15, 0, Create, 3, 0),
        (20, 0, Join, 1, 5),
        (45, 0, Join, 3, 25),
        (45, 0, Exit, 0, 0),
    ];
    let programs = [program(1, 0, 20, 0), program(2, 0, 10, 5), program(3, 15, 30, 0)];
    let found = recording(&[vec![(0, main)], programs.to_vec()].concat());
    for sharing in Sharing::ALL {
        assert_eq!(makespan_ms(&found, "sym-4", 1.0, sharing), 45.0);
    }
    // At ten times the speed the first one ends after 2 ms, the second one after 6.
    assert_eq!(makespan_ms(&found, "sym-4", 10.0, Sharing::None), 9.0);
    assert_eq!(makespan_ms(&found, "sym-4", 10.0, Sharing::HandedOut), 6.0);
}

#[test]
fn h35_5_what_had_ended_anyway_was_not_waited_for() {
    let main = vec![
        (0, 0, Start, 0, 0),
        (0, 0, Create, 1, 0),
        (0, 0, Create, 2, 0),
        (20, 0, Join, 1, 20),
        (20, 0, Join, 2, 0),
        (20, 0, Create, 3, 0),
        (20, 0, Create, 4, 0),
        (50, 0, Join, 3, 30),
        (50, 0, Join, 4, 0),
        (50, 0, Exit, 0, 0),
    ];
    let programs =
        [program(1, 0, 20, 0), program(2, 0, 10, 10), program(3, 20, 30, 0), program(4, 20, 30, 0)];
    let mut found = recording(&[vec![(0, main.clone())], programs.to_vec()].concat());
    // All of them together: nothing tells that one was started because another one had ended.
    assert_eq!(makespan_ms(&found, "sym-4", 10.0, Sharing::HandedOut), 14.0);
    // With a third one that goes on: it runs three at a time.
    found = recording(&[vec![(0, main)], programs.to_vec(), vec![program(5, 0, 60, 0)]].concat());
    let main = &mut found.threads[0].events;
    main.insert(1, Event { object: 5, ..Event::new(Create, 0, 0) });
    let join = Event { object: 5, wait_ns: 10 * MS, ..Event::new(Join, 60 * MS, 0) };
    main.insert(main.len() - 1, join);
    main.last_mut().unwrap().at_ns = 60 * MS;
    // Ends after 2, 6 and 11 ms: what is started after 2 and 5 takes 3 ms each.
    assert_eq!(makespan_ms(&found, "sym-4", 10.0, Sharing::None), 14.0);
    assert_eq!(makespan_ms(&found, "sym-4", 10.0, Sharing::HandedOut), 11.0);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    /// Whoever takes them, all chunks are done, at any speed, and never faster than cores can.
    #[test]
    fn h35_5_chunks_are_all_done(first in 0_u64..12, second in 0_u64..12, speed in 0.5_f64..20.0) {
        let found = region(first, second, &[]);
        let ms = makespan_ms(&found, "sym-2", speed, Sharing::HandedOut);
        let all_ms = 10.0 * (first + second) as f64 / speed;
        let chunk_ms = 10.0 / speed;
        prop_assert!(ms >= all_ms / 2.0 - 0.02, "{ms} of {all_ms}");
        prop_assert!(ms <= all_ms / 2.0 + chunk_ms + 0.02, "{ms} of {all_ms}");
    }
}

/// Any events, whose times go on by what each took; no two threads do something at the same time.
fn anything() -> impl Strategy<Value = Recording> {
    let kinds = proptest::sample::select(Kind::ALL);
    let event = (kinds, 0_u32..6, 0_u32..5, 0_u64..4, 0_u64..4).prop_map(
        |(kind, object, aux, work_ms, wait_ns)| Event {
            object,
            aux,
            wait_ns: wait_ns * MS,
            is_blocked: wait_ns > 0,
            ..Event::new(kind, (work_ms + wait_ns) * MS, work_ms * MS)
        },
    );
    let thread = (proptest::collection::vec(event, 1..40), 0_u32..3);
    proptest::collection::vec(thread, 2..7).prop_map(|threads| {
        let thread = |(number, (mut events, process)): (u64, (Vec<Event>, u32))| {
            let mut at_ns = number;
            for event in &mut events {
                at_ns += event.at_ns + 10;
                event.at_ns = at_ns;
            }
            Thread { process, events, ..Thread::default() }
        };
        let threads = (0..).zip(threads).map(thread).collect();
        let info = Info { name: "p".to_owned(), ..Info::default() };
        Recording { info, threads, is_cut_off: false }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    /// Whatever was recorded, nothing that is handed out anew keeps a replay from its end.
    #[test]
    fn h35_5_any_replay_comes_to_its_end(
        found in anything(),
        place in 2..Sharing::ALL.len(),
    ) {
        let machine = catalog().machine("2B2S").unwrap();
        let run = |sharing| {
            let options = Options { profile: profile(), sharing, ..Options::default() };
            run_on(&machine, &replay(&found, &options), "cfs")
        };
        // What is no recording of a program, such as a barrier with too few threads, may stop by itself.
        if run(Sharing::None).is_ok() {
            let outcomes = [run(Sharing::HandedOut), run(Sharing::ALL[place])];
            prop_assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
        }
    }
}
