use super::*;
use crate::{Event, Kind};

/// The ticks of these tests are ns.
struct File(Vec<u8>);

impl File {
    fn new(process: u32, thread: u32, identity: u64, begin: u64) -> Self {
        let mut file = Self(vec![0; 1024]);
        file.0[..8].copy_from_slice(&(u64::from(process) | u64::from(thread) << 32).to_ne_bytes());
        file.put(0, b"AMPRAW2\n");
        file.put(8, &process.to_ne_bytes());
        file.put(12, &thread.to_ne_bytes());
        file.put(16, &(100 + process).to_ne_bytes());
        file.put(32, &identity.to_ne_bytes());
        for (at, number) in
            [(72, begin), (80, begin), (88, begin + 10_000_000), (96, begin + 10_000_000)]
        {
            file.put(at, &number.to_ne_bytes());
        }
        file.put(136, &1u32.to_ne_bytes());
        file.put(144, b"worker");
        file
    }

    /// Puts something into the head.
    fn put(&mut self, at: usize, bytes: &[u8]) {
        let at = at + 64;
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn creator(mut self, number: u32) -> Self {
        self.put(24, &(number + 1).to_ne_bytes());
        self
    }

    fn costs(mut self, fast: u64, slow: u64) -> Self {
        self.put(48, &fast.to_ne_bytes());
        self.put(56, &slow.to_ne_bytes());
        self
    }

    /// An event without a reading.
    fn fast(mut self, kind: u8, flags: u8, ticks: u64, object: u32) -> Self {
        let head = u64::from(kind) | u64::from(flags) << 8 | ticks << 16;
        self.0.extend(head.to_ne_bytes());
        self.0.extend(object.to_ne_bytes());
        self.0.extend(0u32.to_ne_bytes());
        self
    }

    /// An event with a reading, on core 3.
    fn slow(self, kind: u8, flags: u8, ticks: u64, object: u32, cpu_ns: u64) -> Self {
        let mut file = self.fast(kind, flags | 2, ticks, object);
        file.0.extend(cpu_ns.to_ne_bytes());
        file.0.extend(3u64.to_ne_bytes());
        file
    }

    /// A later chunk of a process's first thread.
    fn later(sequence: u32) -> Self {
        let mut file = Self(vec![0; 64]);
        file.0[8..12].copy_from_slice(&sequence.to_ne_bytes());
        file
    }
}

const CONTROL: &[u8] = b"AMPRAW2\n\0\0\0\0\0\0\0\0";

fn events_of(files: Vec<File>) -> Vec<u8> {
    let mut events = Vec::new();
    for file in files {
        events.extend(file.0);
        events.resize(events.len().next_multiple_of(65536), 0);
    }
    events
}

fn read(files: Vec<File>) -> Recording {
    from_raw("parts", Info::default(), CONTROL, &events_of(files), Whole::default()).unwrap()
}

fn started(file: File) -> File {
    file.slow(1, 0, 0, 0, 500)
}

#[test]
fn ticks_are_cpu_time_until_a_reading_says_otherwise() {
    let file = started(File::new(0, 0, 1, 1000))
        .fast(5, 0, 10_000, 7)
        .slow(7, 8, 50_000, 7, 500 + 10_000 + 20_000)
        .fast(5, 0, 3_000, 7)
        .slow(2, 0, 1_000, 0, 500 + 34_000);
    let found = read(vec![file]);
    let events = &found.threads[0].events;
    let cpu: Vec<u64> = events.iter().map(|event| event.cpu_ns).collect();
    assert_eq!(cpu, [0, 10_000, 20_000, 3_000, 1_000]);
    let preempted: Vec<bool> = events.iter().map(|event| event.is_preempted).collect();
    assert_eq!(preempted, [false, false, true, false, false]);
    assert_eq!((events[2].at_ns, events[2].core, events[2].wait_ns), (60_000, 3, 0));
    assert_eq!(found.info.wall_ns, 64_000);
    assert_eq!(found.threads[0].name, "worker");
}

#[test]
fn time_without_a_core_inside_a_call_is_waiting() {
    let file = started(File::new(0, 0, 1, 0)).slow(66, 0, 5_000, 0, 500 + 4_000).slow(
        29,
        4,
        100_000,
        0,
        500 + 6_000,
    );
    let found = read(vec![file]);
    let sleep = found.threads[0].events[1];
    assert_eq!((sleep.kind, sleep.is_blocked), (Kind::Sleep, true));
    assert_eq!((sleep.cpu_ns, sleep.wait_ns), (6_000, 98_000));
    assert!(sleep.is_preempted, "before the call");
    assert_eq!(found.threads[0].events[2].kind, Kind::Exit, "added");
    assert!(found.info.unknown.iter().any(|text| text.contains("by themselves: 1")));
}

#[test]
fn the_recorders_own_time_is_nobodys() {
    let file = started(File::new(0, 0, 1, 0).costs(100, 300))
        .fast(5, 0, 1_300, 7)
        .fast(7, 0, 1_100, 7)
        .slow(66, 0, 2_100, 0, 500 + 4_500)
        .slow(67, 0, 90_000, 0, 500 + 94_500)
        .fast(5, 0, 700, 7);
    let found = read(vec![file]);
    let cpu: Vec<u64> = found.threads[0].events.iter().map(|event| event.cpu_ns).collect();
    assert_eq!(cpu, [0, 1_000, 1_000, 2_000 + 400, 0]);
    assert!(found.info.slowdown.unwrap() > 1.0);
}

#[test]
fn threads_and_processes_find_each_other() {
    let hash = ((77u64.wrapping_mul(0x9e37_79b9_7f4a_7c15)) >> 32) as u32 | 1;
    let main = started(File::new(0, 0, 1, 0))
        .fast(3, 0, 10, 1)
        .fast(4, 4, 100, hash)
        .fast(64, 0, 10, 101)
        .fast(65, 4, 10, 101)
        .fast(65, 4, 10, 999)
        .slow(2, 0, 10, 0, 600);
    let worker = started(File::new(0, 1, 77, 20).creator(0)).slow(2, 0, 10, 0, 510);
    let child = started(File::new(1, 0, 1, 115)).slow(2, 0, 3, 0, 510);
    let found = read(vec![child, worker, main]);
    let told = |thread: usize| -> Vec<_> {
        let events = &found.threads[thread].events;
        events.iter().map(|event| (event.kind, event.object, event.aux)).collect()
    };
    let main = told(0);
    assert_eq!(main[1..3], [(Kind::Create, 1, 0), (Kind::Join, 1, 0)]);
    assert_eq!(main[3..], [(Kind::Create, 2, 0), (Kind::Join, 2, 0), (Kind::Exit, 0, 0)]);
    assert_eq!((told(1)[0].2, told(2)[0].2), (1, 1), "creators");
    assert_eq!(found.threads[2].process, 1);
}

#[test]
fn a_program_that_executes_another_one_goes_on() {
    let before = started(File::new(0, 0, 1, 0)).fast(10, 0, 50, 9);
    let mut after = started(File::new(0, 1, 1, 200)).slow(2, 0, 10, 0, 600);
    after.put(28, &1u32.to_ne_bytes());
    let found = read(vec![before, after]);
    let kinds: Vec<Kind> = found.threads[0].events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [Kind::Start, Kind::Signal, Kind::Exit]);
    assert_eq!(found.threads.len(), 1);
}

#[test]
fn a_file_that_is_cut_off_anywhere_is_read_up_to_there() {
    let whole = started(File::new(0, 0, 1, 0)).fast(5, 0, 10, 7).slow(7, 0, 10, 7, 600).0;
    for length in 0..whole.len() {
        match from_raw("parts", Info::default(), CONTROL, &whole[..length], Whole::default()) {
            Ok(found) => assert!(found.events() <= 4),
            Err(error) => assert!(error.to_string().starts_with("parts: no thread was recorded")),
        }
    }
}

#[test]
fn what_is_no_recording_is_named() {
    let error = |control: &[u8]| {
        from_raw("parts", Info::default(), control, &[], Whole::default()).unwrap_err().to_string()
    };
    assert_eq!(error(&[1; 5000]), "parts/control: is no file of a recorder");
    assert_eq!(error(b"AMP"), "parts/control: is no file of a recorder");
    let other = error(b"AMPRAW1\n\0\0\0\0\0\0\0\0");
    assert!(other.starts_with("parts/control: is of version 1, known is 2"), "{other}");
    assert!(error(CONTROL).contains("--system"));
}

/// 34.2: chunks are taken as threads need them, so those of several threads are mixed.
#[test]
fn h34_02_chunks_are_put_in_order() {
    let first = started(File::new(0, 0, 1, 0)).fast(5, 0, 10, 7);
    let (second, third) = (File::later(1).fast(7, 0, 2, 7), File::later(2).fast(2, 0, 3, 0));
    let other = started(File::new(0, 1, 2, 5)).fast(2, 0, 10, 0);
    let found = read(vec![third, other, second, first]);
    let kinds: Vec<Kind> = found.threads[0].events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [Kind::Start, Kind::Create, Kind::Lock, Kind::Unlock, Kind::Exit]);
    assert_eq!(found.threads.len(), 2);
}

/// 34.2: no destructor of the recorder's own tells that a thread's data is gone.
#[test]
fn h34_02_what_destructors_do_after_the_end_is_before_it() {
    let mut file = started(File::new(0, 0, 1, 0)).slow(2, 0, 10, 0, 510).fast(5, 0, 20, 7);
    file.put(132, &1u32.to_ne_bytes());
    let found = read(vec![file]);
    let told: Vec<_> =
        found.threads[0].events.iter().map(|event| (event.kind, event.cpu_ns)).collect();
    assert_eq!(told, [(Kind::Start, 0), (Kind::Lock, 30), (Kind::Exit, 0)]);
    assert!(!found.info.unknown.iter().any(|text| text.contains("by themselves")));
}

#[test]
fn random_bytes_behind_a_head_do_no_harm() {
    let mut file = started(File::new(0, 0, 1, 0));
    let mut state = 1u64;
    for _ in 0..4000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        file.0.push((state >> 56) as u8);
    }
    read(vec![file]);
}

#[test]
fn a_core_that_is_lost_while_an_event_is_noted_counts_for_nothing() {
    let file =
        started(File::new(0, 0, 1, 0)).fast(5, 0, 4_005_000, 7).slow(7, 0, 1_000, 7, 500 + 6_000);
    let found = read(vec![file]);
    let cpu: Vec<u64> = found.threads[0].events.iter().map(|event| event.cpu_ns).collect();
    assert_eq!(cpu, [0, 6_000, 0, 0], "4 ms without a core");
}

/// What an event costs is a mean.
#[test]
fn what_an_event_has_less_than_the_recorder_takes_is_owed_by_the_next_ones() {
    let cpu_ns = |file: File| -> Vec<u64> {
        read(vec![file]).threads[0].events[1..].iter().map(|event| event.cpu_ns).collect()
    };
    let start = || started(File::new(0, 0, 1, 0).costs(100, 300));
    let close =
        start().fast(5, 0, 1_300, 7).fast(7, 0, 60, 7).fast(5, 0, 160, 7).fast(7, 0, 105, 7);
    assert_eq!(cpu_ns(close)[..4], [1_000, 0, 20, 5]);
    // No more than 16 events' time: a mean that is too high takes no work of whole loops.
    let many = (0..100).fold(start().fast(5, 0, 1_300, 7), |file, _| file.fast(7, 0, 10, 7));
    assert_eq!(cpu_ns(many.fast(5, 0, 5_000, 7))[101], 5_000 - 100 - 1_600);
    // What was taken back from the last event is not owed as well.
    let lost = start().fast(5, 0, 4_005_000, 7).slow(7, 0, 1_000, 7, 500 + 6_000);
    assert_eq!(cpu_ns(lost.fast(5, 0, 2_000, 7))[..3], [5_700, 0, 2_000 - 300 - 100]);
}

#[test]
fn a_thread_that_runs_when_its_process_ends_has_worked_until_then() {
    let mut file = started(File::new(0, 0, 1, 1000)).fast(5, 0, 1_000, 7);
    file.put(160, &1_000_000u64.to_ne_bytes());
    file.put(168, &700_500u64.to_ne_bytes());
    let found = read(vec![file]);
    let end = found.threads[0].events[2];
    assert_eq!((end.kind, end.cpu_ns, end.at_ns), (Kind::Exit, 699_000, 999_000));
}

#[test]
fn what_was_before_and_after_the_recorder_belongs_to_the_ends() {
    let thread = || {
        let events = vec![Event::new(Kind::Start, 0, 0), Event::new(Kind::Exit, 1000, 900)];
        let thread = crate::Thread { events, ..crate::Thread::default() };
        let info = Info { wall_ns: 1000, ..Info::default() };
        Recording { info, threads: vec![thread], is_cut_off: false }
    };
    let mut found = thread();
    add_ends(&mut found, 200, Whole { took_ns: 1300, cpu_ns: 1500 });
    let events = &found.threads[0].events;
    // 100 of the 400 ns of CPU time that were not recorded had room after the end.
    assert_eq!((events[0].at_ns, events[0].cpu_ns), (200, 200));
    assert_eq!((events[1].at_ns, events[1].cpu_ns), (1300, 1000));
    assert_eq!(found.info.wall_ns, 1300);
    let mut same = thread();
    add_ends(&mut same, 0, Whole::default());
    assert_eq!(same, thread());
}

#[test]
fn h35_5_children_are_loaded_and_end_where_they_do() {
    let file = |process, startup_us: u32| {
        let mut file = started(File::new(process, 0, 1, 1_000 * u64::from(process)));
        file.put(140, &startup_us.to_ne_bytes());
        file
    };
    // The very first program is loaded before the recording begins.
    let found = read(vec![file(0, 70), file(1, 50)]);
    let starts: Vec<u64> = found.threads.iter().map(|thread| thread.events[0].cpu_ns).collect();
    assert_eq!(starts, [70_000, 50_000]);
    let mut threads = [(0, 1_000), (1, 300), (2, 600)].map(|(process, end_ns)| {
        let events = vec![Event::new(Kind::Start, 0, 0), Event::new(Kind::Exit, end_ns, 10)];
        crate::Thread { events, process, ..crate::Thread::default() }
    });
    for (child, at_ns) in [(1, 320), (2, 900)] {
        let join = Event { object: child, ..Event::new(Kind::Join, at_ns, 0) };
        threads[0].events.insert(child as usize, join);
    }
    // A third each, as far as there is time until they are seen to end.
    assert_eq!(end_children(&mut threads, 300), 20 + 100);
    let ends = threads.map(|thread| thread.events.last().map(|end| (end.at_ns, end.cpu_ns)));
    assert_eq!(ends, [Some((1_000, 10)), Some((320, 30)), Some((700, 110))]);
}

#[test]
fn an_end_that_was_taken_back_is_no_event_and_its_time_goes_on() {
    let file = started(File::new(0, 0, 1, 0))
        .fast(22, 4, 1_000, 7)
        .fast(66, 0, 2_000, 7)
        .slow(35, 4, 9_000_000, 7, 500 + 3_400)
        .fast(23, 0, 600, 7);
    let found = read(vec![file]);
    let told = |event: &Event| (event.kind, event.cpu_ns, event.wait_ns);
    let events: Vec<_> = found.threads[0].events.iter().skip(1).take(3).map(told).collect();
    assert_eq!(
        events,
        [(Kind::OmpBegin, 1_000, 0), (Kind::OmpChunk, 2_400, 8_999_600), (Kind::OmpEnd, 600, 0)]
    );
}

/// A process with this parent.
fn child(process: u32, parent: u32, begin: u64) -> File {
    let mut file = File::new(process, 0, 1, begin);
    file.put(20, &(100 + parent).to_ne_bytes());
    started(file)
}

const IO: u8 = 32;
const WAITED: u8 = 4;

impl File {
    /// The last event's detail, if no reading follows it.
    fn detail(mut self, aux: u32) -> Self {
        let at = self.0.len() - 4;
        self.0[at..].copy_from_slice(&aux.to_ne_bytes());
        self
    }

    /// The last event's detail.
    fn aux(mut self, aux: u32) -> Self {
        // Behind it stands its reading.
        let at = self.0.len() - 20;
        self.0[at..at + 4].copy_from_slice(&aux.to_ne_bytes());
        self
    }
}

fn of_thread(found: &Recording, thread: usize) -> Vec<(Kind, u32, u64, u64)> {
    let events = found.threads[thread].events.iter();
    events.map(|event| (event.kind, event.object, event.at_ns, event.cpu_ns)).collect()
}

#[test]
fn h35_1_children_of_vfork_are_created_by_who_waits_for_them() {
    // It works for 40,000 ns, then waits from 40,000 to 300,000 for its child, which was recorded from 50,000 on.
    let parent = started(File::new(0, 0, 1, 0)).slow(65, WAITED, 300_000, 101, 500 + 40_000).slow(
        2,
        0,
        5_000,
        0,
        500 + 45_000,
    );
    let child = child(1, 0, 50_000).slow(2, 0, 200_000, 0, 500 + 200_000);
    let found = read(vec![parent, child]);
    assert_eq!(
        of_thread(&found, 0),
        [
            (Kind::Start, 0, 0, 0),
            (Kind::Create, 1, 40_000, 40_000),
            (Kind::Join, 1, 300_000, 0),
            (Kind::Exit, 0, 305_000, 5_000)
        ]
    );
    assert_eq!(found.threads[1].events[0].aux, 1, "it knows its creator");
}

#[test]
fn h35_1_a_child_that_begins_while_its_creator_works_divides_that_work() {
    let parent = started(File::new(0, 0, 1, 0)).slow(2, 0, 100_000, 0, 500 + 100_000);
    let child = child(1, 0, 30_000).slow(2, 0, 10_000, 0, 500 + 10_000);
    let found = read(vec![parent, child]);
    let events = of_thread(&found, 0);
    assert_eq!(events[1], (Kind::Create, 1, 30_000, 30_000));
    assert_eq!(events[2], (Kind::Exit, 0, 100_000, 70_000));
}

#[test]
fn h35_1_waits_that_the_end_of_a_child_has_ended_wait_for_it() {
    let waits = |aux, later: u64| {
        let parent = started(File::new(0, 0, 1, 0))
            .slow(IO, WAITED, 300_000 + later, 7, 500 + 40_000)
            .aux(aux);
        let child = child(1, 0, 20_000).slow(2, 0, 230_000, 0, 500 + 200_000);
        let found = read(vec![parent, child]);
        found.threads[0].events.iter().find(|event| event.wait_ns > 0).unwrap().kind
    };
    assert_eq!(waits(4, 0), Kind::Join);
    assert_eq!(waits(0, 0), Kind::Io, "nothing says so");
    assert_eq!(waits(4, 200_000_000), Kind::Io, "too late");
}

#[test]
fn h35_1_who_creates_and_is_recorded_creates_once() {
    let parent = started(File::new(0, 0, 1, 0)).fast(64, 0, 10_000, 101);
    let child = child(1, 0, 30_000).slow(2, 0, 10_000, 0, 500 + 10_000);
    let found = read(vec![parent, child]);
    let created = found.threads[0].events.iter().filter(|event| event.kind == Kind::Create);
    assert_eq!(created.count(), 1);
}

const POLL: u8 = 2;

/// Details of events by kind and object.
fn details(found: &Recording, thread: usize, kinds: &[Kind]) -> Vec<(Kind, u32, u32)> {
    let events = found.threads[thread].events.iter();
    let told = events.map(|event| (event.kind, event.object, event.aux));
    told.filter(|(kind, ..)| kinds.contains(kind)).collect()
}

const FLOWS: [Kind; 4] = [Kind::Read, Kind::Write, Kind::Io, Kind::FutexWait];

#[test]
fn h35_1_both_ends_of_a_socket_are_one_stream() {
    let named = |first: u8, second: u8| {
        let one = started(File::new(0, 0, 1, 0)).fast(first, 0, 1_000, 30).detail(900);
        let one = one.fast(37, 0, 1_000, 30).detail(8).fast(2, 0, 1_000, 0);
        let other = started(File::new(1, 0, 1, 0)).fast(second, 0, 1_000, 50).detail(900);
        let other = other.slow(36, WAITED, 200_000, 50, 500 + 2_000).aux(8).fast(2, 0, 1_000, 0);
        let found = read(vec![one, other]);
        (details(&found, 0, &FLOWS), details(&found, 1, &FLOWS))
    };
    let tied = (vec![(Kind::Write, 50, 8)], vec![(Kind::Read, 50, 8)]);
    assert_eq!(named(69, 70), tied, "a client writes to its server");
    assert_eq!(named(70, 69), tied, "a server writes to its client");
    let alone = (vec![], vec![(Kind::Io, 50, 0)]);
    assert_eq!(named(69, 69), alone, "two clients are no pair");
}

#[test]
fn h35_1_what_was_read_before_it_was_written_is_from_outside() {
    let reader = |bytes| {
        let writer = started(File::new(0, 0, 1, 0)).fast(37, 0, 1_000, 6).detail(8);
        let reader = started(File::new(1, 0, 1, 0)).fast(36, 0, 50_000, 6).detail(bytes);
        details(&read(vec![writer, reader]), 1, &FLOWS)
    };
    assert_eq!(reader(8), [(Kind::Read, 6, 8)]);
    assert_eq!(reader(9), [], "it has not waited");
}

#[test]
fn h35_1_a_socket_with_one_recorded_end_is_no_stream() {
    const SOCKET: u32 = 12;
    let client = started(File::new(0, 0, 1, 0)).fast(37, 0, 1_000, SOCKET).detail(800);
    let client = client.slow(36, WAITED, 200_000, SOCKET, 500 + 2_000).aux(8).fast(2, 0, 1_000, 0);
    assert_eq!(details(&read(vec![client]), 0, &FLOWS), [(Kind::Io, SOCKET, 0)]);
}

#[test]
fn h35_1_a_poll_has_waited_for_what_is_read_next() {
    let poll = |aux: u32, between: u8, flags: u8| {
        let writer = started(File::new(0, 0, 1, 0)).fast(37, 0, 90_000, 6).detail(8);
        let reader = started(File::new(1, 0, 1, 0)).slow(IO, WAITED, 100_000, 0, 500).aux(aux);
        let reader = reader.slow(between, flags, 30_000, 3, 500).fast(36, 0, 1_000, 6).detail(8);
        details(&read(vec![writer, reader]), 1, &FLOWS)[0]
    };
    assert_eq!(poll(POLL.into(), 5, WAITED), (Kind::Read, 6, 0), "a lock between them");
    assert_eq!(poll(POLL.into(), 29, WAITED), (Kind::Io, 0, 2), "a sleep between them");
}

#[test]
fn h35_1_the_end_of_a_pipe_is_that_of_its_writer() {
    let end = |writer_ns: u64| {
        let writer = started(File::new(0, 0, 1, 0)).fast(37, 0, 1_000, 6).detail(8);
        let writer = writer.fast(2, 0, writer_ns, 0);
        let reader = started(File::new(1, 0, 1, 0)).fast(36, 0, 5_000, 6).detail(8);
        let reader = reader.slow(IO, WAITED, 200_000, 6, 500 + 5_000).aux(4);
        read(vec![writer, reader]).threads[1].events[2]
    };
    assert_eq!((end(150_000).kind, end(150_000).object), (Kind::Join, 0));
    assert_eq!(end(250_000).kind, Kind::Io, "it was closed before");
    assert_eq!(end(2_000).kind, Kind::Io, "its end was before the wait");
}

#[test]
fn h35_1_counters_and_connections_wait_for_who_adds() {
    let take = |added: u32| {
        let adds = started(File::new(0, 0, 1, 0)).fast(71, 0, 90_000, added);
        let takes = started(File::new(1, 0, 1, 0)).slow(72, WAITED, 100_000, 7, 500);
        details(&read(vec![adds, takes]), 1, &FLOWS)
    };
    assert_eq!(take(7), [(Kind::FutexWait, 7, 0)]);
    assert_eq!(take(8), [(Kind::Io, 7, 3)], "somebody outside");
}
