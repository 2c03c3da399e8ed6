//! Samples of every form that is imported, and what a recording says of each.
//!
//! `tests/samples/NAME` was recorded by the tool itself, of `tests/samples/prog.c`; `NAME.expected` is what is found in
//! it. With `BLESS=1` in the environment the expectations are written.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use ampsched_model::SchedClass;
use ampsched_recording::import::{Options, import};
use ampsched_recording::{Event, Kind, Recording, Wake, read};
use proptest::prelude::*;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples")
}

fn sample(name: &str, options: &Options) -> Recording {
    let bytes = std::fs::read(folder().join(name)).unwrap();
    import(name, &bytes, options).unwrap()
}

fn of_prog() -> Options {
    Options { commands: vec!["prog".to_owned()], speeds: vec![1.0, 0.5], ..Options::default() }
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

fn event(event: &Event) -> String {
    let mut line = format!("{:>9.1} core {} {}", us(event.at_ns), event.core, event.kind.word());
    match event.kind {
        Kind::Create | Kind::Wake | Kind::Join => write!(line, " thread {}", event.object).unwrap(),
        Kind::Start if event.aux > 0 => write!(line, " by thread {}", event.aux - 1).unwrap(),
        Kind::Block => write!(line, " until {:?}", Wake::from_aux(event.aux)).unwrap(),
        _ => {}
    }
    write!(
        line,
        ", cpu {:.1}, work {:.1}, wait {:.1}",
        us(event.cpu_ns),
        us(event.work_ns),
        us(event.wait_ns)
    )
    .unwrap();
    line + if event.is_preempted { ", preempted" } else { "" }
}

fn summary(recording: &Recording) -> String {
    let info = &recording.info;
    let mut text = format!("{} by {}, kernel {:?}\n", info.name, info.recorder, info.kernel);
    let (blocked, known) = recording.blocked_ns();
    writeln!(text, "wall {:.1} us, CPU {:.1} us", us(info.wall_ns), us(recording.cpu_ns()))
        .unwrap();
    writeln!(
        text,
        "blocked {:.1} us, cause known {:.1} us, lost {}",
        us(blocked),
        us(known),
        info.lost_events
    )
    .unwrap();
    for line in &info.unknown {
        writeln!(text, "unknown: {line}").unwrap();
    }
    for group in &info.groups {
        writeln!(text, "{group:?}").unwrap();
    }
    for (index, thread) in recording.threads.iter().enumerate() {
        writeln!(text, "thread {index} {} of process {}", thread.name, thread.process).unwrap();
        if !thread.asks.is_none() {
            writeln!(text, "  asks: {:?}, {:?}", thread.scheduled(), thread.asks).unwrap();
        }
        let count = thread.events.len();
        for (place, found) in thread.events.iter().enumerate() {
            if place < 12 || place + 8 >= count {
                writeln!(text, "  {}", event(found)).unwrap();
            }
        }
    }
    text
}

fn check(name: &str, options: &Options) -> Recording {
    let recording = sample(name, options);
    let expected = folder().join(format!("{name}.expected"));
    let found = summary(&recording);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&expected, &found).unwrap();
    }
    assert_eq!(found, std::fs::read_to_string(expected).unwrap(), "{name}");
    let again = read("again", &recording.to_bytes()).unwrap();
    assert_eq!(again, recording, "{name}: what is written is read");
    recording
}

/// How often each thread was woken by another one of the program: the same in all forms.
fn wakes(recording: &Recording) -> Vec<usize> {
    let is_wake = |event: &&Event| {
        matches!(Wake::from_aux(event.aux), Wake::Thread(_)) && event.kind == Kind::Block
    };
    recording.threads.iter().map(|thread| thread.events.iter().filter(is_wake).count()).collect()
}

#[test]
fn traces_of_one_run_tell_the_same_in_every_form() {
    let recordings: Vec<Recording> = [
        "ftrace.txt",
        "report.txt",
        "report-l.txt",
        "trace-6.dat",
        "trace-7.dat",
        "report-R.txt",
        "atrace.ctrace",
    ]
    .map(|name| check(name, &of_prog()))
    .into();
    for recording in &recordings[1..] {
        assert_eq!(recording.threads.len(), recordings[0].threads.len());
        assert_eq!(wakes(recording), wakes(&recordings[0]));
        let (one, other) = (recording.cpu_ns() as f64, recordings[0].cpu_ns() as f64);
        assert!((one / other - 1.0).abs() < 0.01, "{one} {other}");
    }
    assert_eq!(recordings[3].threads, recordings[4].threads, "binary forms have the same events");
}

#[test]
fn perf_tells_the_same_as_text_and_as_file() {
    let text = check("perf-script.txt", &of_prog());
    let file = check("perf.data", &of_prog());
    assert_eq!(text.threads.len(), file.threads.len());
    let (one, other) = (text.cpu_ns() as f64, file.cpu_ns() as f64);
    assert!((one / other - 1.0).abs() < 0.05, "{one} {other}");
}

#[test]
fn perfetto_tells_the_same_one_by_one_and_compact() {
    let recordings = ["perfetto.pftrace", "perfetto-compact.pftrace", "bugreport.zip"]
        .map(|name| check(name, &Options::default()));
    assert_eq!(recordings[0].threads, recordings[1].threads);
    assert_eq!(recordings[2].threads, recordings[1].threads);
}

#[test]
fn threads_keep_what_stands_beside_a_trace_and_what_its_events_tell() {
    let side = std::fs::read(folder().join("cgroups.side")).unwrap();
    let cgroups = ("cgroups.side".to_owned(), String::from_utf8(side).unwrap());
    let found = check("cgroups.txt", &Options { cgroups, ..Options::default() });
    let asks = |name: &str| {
        let of_name = found.threads.iter().find(|thread| thread.name == name).unwrap();
        let group =
            of_name.asks.group.map(|group| found.info.groups[usize::from(group)].path.as_str());
        (of_name.asks.cpus_text(), of_name.asks.uclamp_min, of_name.asks.uclamp_max, group)
    };
    let text = |text: &str| text.to_owned();
    assert_eq!(asks("game"), (text(""), Some(102), None, Some("/top-app")), "boosted");
    assert_eq!(asks("render"), (text("4-7"), Some(100), None, Some("/top-app")), "its own mask");
    assert_eq!(asks("sync"), (text("0-3"), None, None, Some("/background")));
    assert_eq!(asks("moved"), (text("0-3"), None, None, Some("/background")), "moved there");
    assert_eq!(asks("heavy"), (text("0-3"), None, Some(300), None), "told by events");
    let of_class = |name: &str| {
        let of_name = found.threads.iter().find(|thread| thread.name == name);
        of_name.map(|thread| thread.scheduled().1)
    };
    assert_eq!(of_class("render"), Some(SchedClass::RoundRobin { priority: 2 }));
    assert_eq!(of_class("audio"), Some(SchedClass::Fifo { priority: 99 }), "a deadline's");
    // A thread that began in the trace is where its creator is.
    let games: Vec<_> = found.threads.iter().filter(|thread| thread.name == "game").collect();
    assert_eq!(games[0].asks, games[1].asks);
    let unknown = found.info.unknown.join("\n");
    for named in [
        "2 times that a thread was moved between control groups",
        "1 threads ran on CPUs that they may not use",
        "SchedTune's boost does beside clamps: that of 2 threads",
        "runtime and period of 1 threads with deadlines",
        "schedtune.prefer_idle for 2 threads",
        "cpu.uclamp.latency_sensitive for 3 threads",
        "CPU 6 from 100.013 s to 100.016 s, CPU 5 from 100.014 s to the end; replays have all cores",
    ] {
        assert!(unknown.contains(named), "{named}: {unknown}");
    }
    let untold = "control groups, sets of CPUs and clamps (uclamp) of threads: no event tells them";
    assert!(!unknown.contains(untold));
    let alone = sample("cgroups.txt", &Options::default());
    assert!(alone.info.unknown.join("\n").contains("2 moves between control groups"));
    assert!(alone.info.groups.is_empty());
}

#[test]
fn columns_of_numpy_are_read_with_what_stands_beside_them() {
    let beside = std::fs::read_to_string(folder().join("fft.json")).unwrap();
    let recording = check("fft.npz.zst", &Options { beside, ..Options::default() });
    let joins = recording.threads[0].events.iter().filter(|event| event.kind == Kind::Join);
    assert!(joins.count() >= 3);
}

#[test]
fn what_is_wrong_is_said() {
    let error =
        |bytes: &[u8], options: &Options| import("x", bytes, options).unwrap_err().to_string();
    let none = Options::default();
    assert!(error(b"", &none).starts_with("x: is no trace of a form that is read"));
    assert!(error(b"PERFILE2", &none).starts_with("x: is damaged"));
    assert!(error(b"\x17\x08\x44tracing9\0\0\x08\0\x10\0\0", &none).contains("is of version 9"));
    let bytes = std::fs::read(folder().join("ftrace.txt")).unwrap();
    let other = Options { commands: vec!["nobody".to_owned()], ..Options::default() };
    assert!(error(&bytes, &other).starts_with("x: has no thread of nobody (it has "));
    let slow = Options { speeds: vec![1.0], ..Options::default() };
    assert!(error(&bytes, &slow).starts_with("x: speeds: 1 speeds for 2 cores"));
    let negative = Options { speeds: vec![1.0, -1.0], ..Options::default() };
    assert!(error(&bytes, &negative).starts_with("x: speeds: -1 is no speed of a core"));
}

/// How bytes are changed.
#[derive(Clone, Debug)]
enum Change {
    Flip(prop::sample::Index, u8),
    Number(prop::sample::Index, u32),
    Cut(prop::sample::Index),
    Repeat(prop::sample::Index, prop::sample::Index),
    Remove(prop::sample::Index, u8),
}

fn change() -> impl Strategy<Value = Change> {
    let at = any::<prop::sample::Index>;
    let number = prop_oneof![
        Just(0),
        Just(1),
        Just(u32::MAX),
        Just(1 << 31),
        Just(0x7fff_ffff),
        any::<u32>()
    ];
    prop_oneof![
        4 => (at(), 0..8_u8).prop_map(|(place, bit)| Change::Flip(place, bit)),
        4 => (at(), number).prop_map(|(place, number)| Change::Number(place, number)),
        1 => at().prop_map(Change::Cut),
        1 => (at(), at()).prop_map(|(from, to)| Change::Repeat(from, to)),
        1 => (at(), any::<u8>()).prop_map(|(place, count)| Change::Remove(place, count)),
    ]
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    if bytes.is_empty() {
        return;
    }
    let length = bytes.len();
    match change {
        Change::Flip(place, bit) => bytes[place.index(length)] ^= 1 << bit,
        Change::Number(place, number) => {
            let at = place.index(length);
            for (byte, new) in bytes[at..].iter_mut().zip(number.to_le_bytes()) {
                *byte = new;
            }
        }
        Change::Cut(place) => bytes.truncate(place.index(length)),
        Change::Repeat(from, to) => {
            let (from, to) = (from.index(length), to.index(length));
            let part = bytes[from..length.min(from + 300)].to_vec();
            bytes.splice(to..to, part);
        }
        Change::Remove(place, count) => {
            let at = place.index(length);
            bytes.drain(at..length.min(at + usize::from(*count)));
        }
    }
}

const SAMPLES: [&str; 13] = [
    "perfetto.pftrace",
    "perfetto-compact.pftrace",
    "ftrace.txt",
    "report.txt",
    "report-l.txt",
    "report-R.txt",
    "bugreport.zip",
    "atrace.ctrace",
    "trace-6.dat",
    "trace-7.dat",
    "perf-script.txt",
    "perf.data",
    "fft.npz.zst",
];

/// `CASES` in the environment: more of them.
fn config() -> ProptestConfig {
    let cases = std::env::var("CASES").map_or(400, |cases| cases.parse().unwrap());
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn changed_files_are_refused_or_become_recordings(
        name in prop::sample::select(&SAMPLES[..]), changes in prop::collection::vec(change(), 1..12),
    ) {
        let mut bytes = std::fs::read(folder().join(name)).unwrap();
        changes.iter().for_each(|change| apply(&mut bytes, change));
        match import("x", &bytes, &Options::default()) {
            Ok(recording) => {
                let again = read("again", &recording.to_bytes()).unwrap();
                prop_assert_eq!(again.events(), recording.events());
                let count = recording.threads.len() as u32;
                for event in recording.threads.iter().flat_map(|thread| &thread.events) {
                    let is_of_thread = matches!(event.kind, Kind::Wake | Kind::Create | Kind::Join);
                    prop_assert!(!is_of_thread || event.object < count || name.starts_with("fft"));
                }
            }
            Err(error) => prop_assert!(error.to_string().starts_with("x: "), "{}", error),
        }
    }
}

/// A trace of a million switches and wake-ups between two threads.
fn long_trace() -> String {
    let mut text = String::new();
    for turn in 0..333_334_u64 {
        let (from, to) = (100 + turn % 2, 100 + (turn + 1) % 2);
        let (seconds, micros) = (turn / 100_000, turn * 10 % 1_000_000);
        let head = format!("  ping-{from} (  100) [000] d..2. {seconds}.{micros:06}: ");
        writeln!(text, "{head}sched_waking: comm=ping pid={to} prio=120 target_cpu=000").unwrap();
        writeln!(text, "{head}sys_futex(uaddr: 0x7f00{turn:04x}, op: 0x80, val: 0, utime: 0)")
            .unwrap();
        writeln!(
            text,
            "{head}sched_switch: prev_comm=ping prev_pid={from} prev_prio=120 prev_state=S ==> next_comm=ping \
             next_pid={to} next_prio=120"
        )
        .unwrap();
    }
    text
}

#[test]
fn a_million_events_take_a_few_seconds() {
    let text = long_trace();
    let begin = std::time::Instant::now();
    let recording = import("x", text.as_bytes(), &Options::default()).unwrap();
    let took_s = begin.elapsed().as_secs_f64();
    eprintln!("{} events in {took_s:.2} s", recording.events());
    assert_eq!(recording.threads.len(), 2);
    // Reading that looks back over all events for each takes hours.
    assert!(took_s < 300.0, "{took_s} s");
}

/// Lines of a switch of core 0 or 1 at a time in us.
fn switch(at_us: u64, core: u32, from: &str, state: &str, to: &str) -> String {
    let side = |thread: &str| format!("t{thread}:{thread} [120]");
    let (from_side, to_side) = (side(from), side(to));
    format!(
        "t{from} {from} [{core:03}] 1.{at_us:06}: sched:sched_switch: {from_side} {state} ==> {to_side}\n"
    )
}

fn of_text(text: &str, speeds: &[f64]) -> Recording {
    let options = Options { speeds: speeds.to_vec(), ..Options::default() };
    import("x", text.as_bytes(), &options).unwrap()
}

#[test]
fn work_is_summed_over_slices_on_cores_of_several_speeds() {
    let text = [
        switch(0, 0, "0", "R", "7"),
        switch(100, 0, "7", "R", "0"),
        switch(150, 1, "0", "R", "7"),
        switch(350, 1, "7", "R", "0"),
        switch(360, 0, "0", "R", "7"),
        switch(361, 0, "7", "S", "0"),
        switch(900, 1, "0", "R", "7"),
        switch(1000, 1, "7", "X", "0"),
    ];
    let recording = of_text(&text.concat(), &[2.0, 0.5]);
    let events = &recording.threads[0].events;
    let block = events.iter().find(|event| event.kind == Kind::Block).unwrap();
    assert_eq!((block.cpu_ns, block.work_ns, block.wait_ns), (301_000, 101_000 + 50_000, 539_000));
    assert_eq!(Wake::from_aux(block.aux), Wake::Unknown);
    assert!(block.is_preempted);
    let exit = events.last().unwrap();
    assert_eq!((exit.kind, exit.cpu_ns, exit.work_ns), (Kind::Exit, 100_000, 25_000));
}

#[test]
fn events_that_do_not_fit_are_counted_and_said() {
    // Thread 7 leaves core 0 untold, and comes to core 1 while it would still be there.
    let text = [
        switch(0, 0, "0", "R", "7"),
        switch(100, 1, "0", "R", "7"),
        switch(200, 0, "8", "S", "0"),
        switch(300, 1, "7", "X", "0"),
    ];
    let recording = of_text(&text.concat(), &[]);
    let says = |word: &str| recording.info.unknown.iter().any(|line| line.contains(word));
    assert!(says("2 times where a thread was"), "{:?}", recording.info.unknown);
    let lost = "CPU:0 [LOST 12 EVENTS]\n";
    let head = "  a-7     (      7) [000] d..2. ";
    let line = |at: u64, from: &str, state: &str, to: &str| {
        format!(
            "{head}  1.{at:06}: sched_switch: prev_comm=a prev_pid={from} prev_prio=120 prev_state={state} ==> \
             next_comm=a next_pid={to} next_prio=120\n"
        )
    };
    let text = [line(0, "0", "R", "7"), lost.to_owned(), line(100, "7", "S", "0")].concat();
    assert_eq!(of_text(&text, &[]).info.lost_events, 12);
}

/// The sample of perf with its records compressed, as `perf record -z` writes them: one frame that never ends.
fn compressed_by_perf(file: &[u8]) -> Vec<u8> {
    let number = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap()) as usize;
    let (start, size) = (number(40), number(48));
    let packed = compress_to_vec(&file[start..start + size], CompressionLevel::Fastest);
    let mut records = Vec::new();
    for chunk in packed.chunks(60_000) {
        records.extend(81_u32.to_le_bytes());
        records.extend(0_u16.to_le_bytes());
        records.extend((chunk.len() as u16 + 8).to_le_bytes());
        records.extend(chunk);
    }
    let mut out = file.to_vec();
    out[40..48].copy_from_slice(&(file.len() as u64).to_le_bytes());
    out[48..56].copy_from_slice(&(records.len() as u64).to_le_bytes());
    out.extend(records);
    out.extend(&file[start + size..]);
    out
}

#[test]
fn compressed_records_of_perf_tell_the_same() {
    let file = std::fs::read(folder().join("perf.data")).unwrap();
    let packed = compressed_by_perf(&file);
    let found = import("x", &packed, &of_prog()).unwrap();
    assert_eq!(found, import("x", &file, &of_prog()).unwrap());
}

/// What has ended the blocks of thread 7, which is woken from outside of what was recorded.
fn ends_of_blocks(lines: &[String]) -> Vec<Wake> {
    let recording = of_text(&lines.concat(), &[]);
    let events = &recording.threads[0].events;
    events
        .iter()
        .filter(|event| event.kind == Kind::Block)
        .map(|event| Wake::from_aux(event.aux))
        .collect()
}

fn call_event(at_us: u64, event: &str, fields: &str) -> String {
    format!("t7 7 [000] 1.{at_us:06}: syscalls:sys_{event}: {fields}\n")
}

#[test]
fn only_the_block_in_a_call_whose_time_is_over_has_a_timer_as_its_end() {
    let asleep = [switch(10, 0, "7", "S", "0"), switch(3_000, 0, "0", "R", "7")];
    let end = [switch(9_000, 0, "7", "X", "0")];
    let around = |before: &[String], after: &[String]| {
        let begin = [switch(0, 0, "0", "R", "7")];
        ends_of_blocks(&[&begin, before, &asleep, after, &end].concat())
    };
    for call in ["nanosleep", "clock_nanosleep", "poll", "select", "epoll_wait", "epoll_pwait2"] {
        let enter = |at_us| call_event(at_us, &format!("enter_{call}"), "fd: 0x3");
        let exit = |at_us, result| call_event(at_us, &format!("exit_{call}"), result);
        // However long the way back from the wake-up takes.
        for late_us in [3_001, 3_101, 7_000] {
            let found = around(&[enter(5)], &[exit(late_us, "0x0")]);
            assert_eq!(found, [Wake::Timer], "{call} {late_us}");
        }
        // A call that did not wait says nothing of the wait before it.
        let found = around(&[enter(5)], &[exit(3_001, "0x1"), enter(3_002), exit(3_003, "0x0")]);
        assert_eq!(found, [Wake::Unknown], "{call}");
        // If no call was seen to begin, the end of one just behind a wait is its own.
        for (late_us, wake) in [(3_099, Wake::Timer), (3_101, Wake::Unknown)] {
            assert_eq!(around(&[], &[exit(late_us, "0x0")]), [wake], "{call} {late_us}");
        }
    }
}
