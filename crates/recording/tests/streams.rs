//! Replays of reads and writes: who reads waits for who has written those bytes, who writes waits for room.

mod common;

use ampsched_recording::{Event, Info, Kind, Options, Recording, Thread, replay};
use common::{catalog, profile, replayed, run_on};
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const STREAM: u32 = 7;
const PIPE_BYTES: u32 = 65_536;

/// Events of one thread: when in ms, work before it in ms, kind, bytes, wait in ms.
type Script<'a> = &'a [(u64, u64, Kind, u32, u64)];

fn recording(threads: &[Script<'_>]) -> Recording {
    let event = |&(at_ms, work_ms, kind, aux, wait_ms): &(u64, u64, Kind, u32, u64)| Event {
        object: STREAM,
        aux,
        wait_ns: wait_ms * MS,
        ..Event::new(kind, at_ms * MS, work_ms * MS)
    };
    let thread = |script: &Script<'_>| Thread {
        events: script.iter().map(event).collect(),
        ..Thread::default()
    };
    let info = Info { name: "p".to_owned(), ..Info::default() };
    Recording { info, threads: threads.iter().map(thread).collect(), is_cut_off: false }
}

/// How long it takes on four equal cores without costs, in ms.
fn makespan_ms(recording: &Recording, speed: f64) -> f64 {
    let mut machine = catalog().machine("sym-4").unwrap();
    machine.costs = Default::default();
    let options = Options { profile: profile(), speed, ..Options::default() };
    let makespan_ns = run_on(&machine, &replay(recording, &options), "cfs").unwrap().makespan_ns;
    (makespan_ns as f64 / 1e3).round() / 1e3
}

use Kind::{Exit, Read, Start, Write};

#[test]
fn h35_1_a_reader_waits_for_the_bytes_and_not_for_their_time() {
    let recording = recording(&[
        &[
            (0, 0, Start, 0, 0),
            (40, 40, Write, 100, 0),
            (80, 40, Write, 100, 0),
            (80, 0, Exit, 0, 0),
        ],
        &[(0, 0, Start, 0, 0), (80, 0, Read, 150, 80), (90, 10, Exit, 0, 0)],
    ]);
    assert_eq!(makespan_ms(&recording, 1.0), 90.0);
    assert_eq!(makespan_ms(&recording, 10.0), 9.0);
    assert_eq!(makespan_ms(&recording, 0.5), 180.0);
}

#[test]
fn h35_1_only_something_must_be_there_for_a_poll() {
    let recording = recording(&[
        &[
            (0, 0, Start, 0, 0),
            (40, 40, Write, 100, 0),
            (80, 40, Write, 100, 0),
            (80, 0, Exit, 0, 0),
        ],
        &[(0, 0, Start, 0, 0), (40, 0, Read, 0, 40), (70, 30, Exit, 0, 0)],
    ]);
    assert_eq!(makespan_ms(&recording, 1.0), 80.0);
    let last = replayed(&recording).program.threads.len();
    assert_eq!(last, 2);
}

#[test]
fn h35_1_a_writer_waits_for_room_in_a_full_pipe() {
    // What was written without a wait is all that a pipe holds; the rest waits for the reader, who works 50 ms first.
    let recording = recording(&[
        &[
            (0, 0, Start, 0, 0),
            (10, 10, Write, PIPE_BYTES, 0),
            (20, 10, Write, PIPE_BYTES, 0),
            (50, 0, Write, 0, 30),
            (60, 10, Exit, 0, 0),
        ],
        &[
            (0, 0, Start, 0, 0),
            (50, 50, Read, PIPE_BYTES, 0),
            (60, 0, Read, PIPE_BYTES, 0),
            (60, 0, Exit, 0, 0),
        ],
    ]);
    assert_eq!(makespan_ms(&recording, 1.0), 60.0);
    assert_eq!(makespan_ms(&recording, 10.0), 6.0);
}

#[test]
fn h35_1_a_faster_writer_is_as_far_ahead_as_the_pipe_holds() {
    // In the recording the writer is slow and the pipe never full; on other machines it may be.
    let writes: Vec<_> = (1..=6).map(|step| (10 * step, 10, Write, PIPE_BYTES, 0)).collect();
    let reads: Vec<_> = (1..=6).map(|step| (10 * step + 5, 5, Read, PIPE_BYTES, 5)).collect();
    let ends = |mut script: Vec<_>, at_ms| {
        script.insert(0, (0, 0, Start, 0, 0));
        script.push((at_ms, 0, Exit, 0, 0));
        script
    };
    let recording = recording(&[&ends(writes, 60), &ends(reads, 65)]);
    let program = replayed(&recording).program;
    let waits = program.code.iter().filter(|op| matches!(op, ampsched_model::Op::SemWait(_)));
    // Six reads wait for their bytes, five writes for room.
    assert_eq!(waits.count(), 11);
}

#[test]
fn h35_1_what_was_there_before_has_ended_no_poll() {
    let recording = recording(&[
        &[(0, 0, Start, 0, 0), (1, 1, Write, 100, 0), (80, 1, Exit, 0, 0)],
        &[(0, 0, Start, 0, 0), (42, 2, Read, 0, 40), (42, 0, Read, 100, 0), (42, 0, Exit, 0, 0)],
    ]);
    assert_eq!(makespan_ms(&recording, 10.0), 40.2);
}

#[test]
fn h35_1_who_waits_although_there_seems_to_be_room_waits_for_the_reader() {
    let recording = recording(&[
        &[(0, 0, Start, 0, 0), (0, 0, Write, 500, 0), (50, 0, Write, 0, 50), (50, 0, Exit, 0, 0)],
        &[(0, 0, Start, 0, 0), (50, 50, Read, 100, 0), (50, 0, Exit, 0, 0)],
    ]);
    assert_eq!(makespan_ms(&recording, 1.0), 50.0);
    assert_eq!(makespan_ms(&recording, 10.0), 5.0);
}

#[test]
fn h35_1_a_wait_that_no_recorded_byte_has_ended_lasts_as_long() {
    let recording =
        recording(&[&[(0, 0, Start, 0, 0), (40, 0, Read, 5, 40), (50, 10, Exit, 0, 0)]]);
    assert_eq!(makespan_ms(&recording, 1.0), 50.0);
    assert_eq!(makespan_ms(&recording, 10.0), 41.0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Whatever is read and written, by any thread: a replay ends, and does all of the work.
    #[test]
    fn h35_1_any_reads_and_writes_end(
        steps in prop::collection::vec((0..3usize, 1..4u64, prop::bool::ANY, 0..90_000u32, 0..3u64), 1..60),
        speed in 0.1..20.0f64,
    ) {
        let mut threads = vec![vec![(0u64, 0u64, Start, 0u32, 0u64)]; 3];
        let mut now_ms = 0;
        for (thread, work_ms, is_read, bytes, wait_ms) in steps {
            now_ms += work_ms + wait_ms;
            let kind = if is_read { Read } else { Write };
            threads[thread].push((now_ms, work_ms, kind, bytes, wait_ms));
        }
        threads.iter_mut().for_each(|thread| thread.push((now_ms, 0, Exit, 0, 0)));
        let scripts: Vec<Script<'_>> = threads.iter().map(Vec::as_slice).collect();
        let recording = recording(&scripts);
        let work_ms = recording.cpu_ns() as f64 / 1e6;
        let took_ms = makespan_ms(&recording, speed);
        prop_assert!(took_ms >= work_ms / speed / 4.0 - 0.001, "{took_ms} ms for {work_ms} ms of work");
    }
}
