//! Work at the clock of the moment, priorities and reasons of blocks, in small made traces.

use std::fmt::Write;

use ampsched_model::SchedClass;
use ampsched_recording::import::{Domain, Options, Window, import};
use ampsched_recording::{Kind, Recording, Wake, read, replay};

/// One line of ftrace: what happened on a core at a time in ms, in whose turn.
type Line<'a> = (f64, u16, u32, &'a str, String);

fn switch(at_ms: f64, core: u16, from: (u32, i32), state: &str, to: (u32, i32)) -> Line<'static> {
    let fields = format!(
        "prev_comm=t{} prev_pid={} prev_prio={} prev_state={state} ==> next_comm=t{} next_pid={} next_prio={}",
        from.0, from.0, from.1, to.0, to.0, to.1
    );
    (at_ms, core, from.0, "sched_switch", fields)
}

fn clock(at_ms: f64, core: u16, khz: u32) -> Line<'static> {
    (at_ms, 0, 0, "cpu_frequency", format!("state={khz} cpu_id={core}"))
}

fn trace(lines: &[Line<'_>]) -> String {
    let mut text = String::new();
    for (at_ms, core, tid, event, fields) in lines {
        let at_s = 1.0 + at_ms / 1e3;
        writeln!(text, "t{tid}-{tid} [{core:03}] d..2 {at_s:.6}: {event}: {fields}").unwrap();
    }
    text
}

fn imported(lines: &[Line<'_>], options: &Options) -> Recording {
    import("trace.txt", trace(lines).as_bytes(), options).unwrap()
}

/// Thread 7 runs on core 1 from 0 to 10 ms and sleeps then.
fn one_thread(clocks: &[Line<'static>]) -> Vec<Line<'static>> {
    let ends = [switch(0.0, 1, (0, 120), "R", (7, 120)), switch(10.0, 1, (7, 120), "S", (0, 120))];
    let mut lines = [clocks, &ends].concat();
    lines.sort_by(|one, other| one.0.total_cmp(&other.0));
    lines
}

fn of_machine() -> Options {
    let domain = |cores: &[u16], max_mhz| Domain { cores: cores.to_vec(), min_mhz: 500.0, max_mhz };
    Options {
        speeds: vec![0.5, 1.0, 1.0],
        domains: vec![domain(&[0], 1000.0), domain(&[1, 2], 2000.0)],
        ..Options::default()
    }
}

fn work_ms(recording: &Recording) -> f64 {
    recording.threads[0].work_ns() as f64 / 1e6
}

fn has(recording: &Recording, text: &str) -> bool {
    recording.info.unknown.iter().any(|line| line == text)
}

#[test]
fn work_is_cpu_time_at_the_clock_of_the_moment() {
    let lines = one_thread(&[clock(0.0, 1, 1_000_000), clock(4.0, 1, 250_000)]);
    let found = imported(&lines, &Options::default());
    assert_eq!(found.threads[0].cpu_ns(), 10_000_000);
    // Full speed is the highest clock of the trace.
    assert_eq!(work_ms(&found), 4.0 + 6.0 / 4.0);
    assert!(has(
        &found,
        "highest clocks of the machine: those of the trace count as such (core 1 1000 MHz); --machine states them"
    ));
    assert!(has(&found, "the clock of core 0: it counts as the highest"));
    // The same on a machine whose highest clock is 2 GHz.
    assert_eq!(work_ms(&imported(&lines, &of_machine())), (4.0 + 6.0 / 4.0) / 2.0);
}

#[test]
fn a_clock_before_its_first_change_is_the_mean_of_what_follows() {
    let lines = one_thread(&[clock(2.0, 1, 1_000_000), clock(6.0, 1, 500_000)]);
    let found = imported(&lines, &Options::default());
    assert_eq!(work_ms(&found), 2.0 * 0.75 + 4.0 + 4.0 / 2.0);
    assert!(has(
        &found,
        "the clock of core 1 in the first 2.0 ms: taken for its mean from there on, 750 MHz"
    ));
}

#[test]
fn cores_of_a_cluster_that_tell_nothing_have_its_clock() {
    let lines = one_thread(&[clock(0.0, 2, 500_000), clock(5.0, 2, 2_000_000)]);
    let found = imported(&lines, &of_machine());
    assert_eq!(work_ms(&found), 5.0 / 4.0 + 5.0);
    assert!(has(&found, "the clock of core 0: it counts as the highest"));
    // If both tell theirs, each has its own.
    let lines = one_thread(&[clock(0.0, 2, 500_000), clock(0.0, 1, 1_000_000)]);
    assert_eq!(work_ms(&imported(&lines, &of_machine())), 5.0);
}

#[test]
fn without_clocks_the_largest_error_is_named() {
    let found = imported(&one_thread(&[]), &of_machine());
    assert_eq!(work_ms(&found), 10.0);
    let text = "clocks of the cores (cpu_frequency): work is that at the highest, up to 4.0 times too much";
    assert!(has(&found, text));
    assert!(has(&found, "what 1 cores of the machine did: no event names them"));
    assert!(!has(&imported(&one_thread(&[]), &Options::default()), text));
}

#[test]
fn clocks_above_the_machine_and_too_many_cores_are_named() {
    let found = imported(&one_thread(&[clock(0.0, 1, 2_500_000)]), &of_machine());
    assert_eq!(work_ms(&found), 12.5);
    assert!(has(&found, "why cores 1-2 had clocks above the machine's highest"));
    let text = trace(&one_thread(&[clock(0.0, 7, 1_000_000)]));
    let error = import("trace.txt", text.as_bytes(), &of_machine()).unwrap_err().to_string();
    assert!(error.starts_with("trace.txt: has 8 cores, the machine 3"), "{error}");
}

#[test]
fn priorities_are_kept_and_replayed() {
    let lines = [
        switch(0.0, 0, (0, 120), "R", (7, 130)),
        switch(1.0, 1, (0, 120), "R", (8, 49)),
        // A mutex has lent 7 the priority of 8 for a moment.
        (2.0, 1, 8, "sched_pi_setprio", "comm=t7 pid=7 oldprio=130 newprio=49".to_owned()),
        switch(2.0, 1, (8, 49), "S", (9, 120)),
        (3.0, 0, 7, "sched_pi_setprio", "comm=t7 pid=7 oldprio=49 newprio=130".to_owned()),
        switch(9.0, 0, (7, 130), "S", (0, 120)),
        switch(9.0, 1, (9, 120), "S", (0, 120)),
    ];
    let found = imported(&lines, &Options::default());
    let prios: Vec<Option<u8>> = found.threads.iter().map(|thread| thread.prio).collect();
    assert_eq!(prios, [Some(130), Some(49), None]);
    assert!(has(&found, "1 threads had several priorities: each has that of most of its CPU time"));
    let text = "whether 1 real-time threads take turns (SCHED_RR): they count as SCHED_FIFO";
    assert!(has(&found, text));
    let found = read("r.ampr", &found.to_bytes()).unwrap();
    let specs = replay(&found, &ampsched_recording::Options::default()).program.threads;
    let scheduled: Vec<_> = specs.iter().map(|spec| (spec.nice, spec.attrs.class)).collect();
    let fifo = SchedClass::Fifo { priority: 50 };
    assert_eq!(scheduled, [(10, SchedClass::Fair), (0, fifo), (0, SchedClass::Fair)]);
}

#[test]
fn a_file_with_a_priority_that_no_kernel_has_is_an_error() {
    let mut found = imported(&one_thread(&[]), &Options::default());
    found.threads[0].prio = Some(140);
    let error = read("r.ampr", &found.to_bytes()).unwrap_err().to_string();
    assert!(error.contains("a priority of 140; the greatest is 139"), "{error}");
}

#[test]
fn the_kernel_tells_which_blocks_are_of_a_device() {
    let woken = |reason: Option<u8>| {
        let mut lines = one_thread(&[]);
        lines[1].4 = lines[1].4.replace("prev_state=S", "prev_state=D");
        let reason = reason
            .map(|is| (19.0, 0, 0, "sched_blocked_reason", format!("pid=7 iowait={is} caller=x")));
        lines.extend(reason);
        let waking = "comm=t7 pid=7 prio=120 target_cpu=001".to_owned();
        lines.push((20.0, 0, 0, "sched_waking", waking));
        lines.push(switch(20.0, 1, (0, 120), "R", (7, 120)));
        lines.push(switch(21.0, 1, (7, 120), "S", (0, 120)));
        let found = imported(&lines, &Options::default());
        let event = found.threads[0].events.iter().find(|event| event.wait_ns > 0).copied();
        event.map(|event| (event.kind, Wake::from_aux(event.aux), event.wait_ns / 1_000_000))
    };
    let (storage, outside) = (Wake::from_aux(5), Wake::Outside);
    assert_eq!(woken(None), Some((Kind::Io, storage, 10)));
    assert_eq!(woken(Some(1)), Some((Kind::Io, storage, 10)));
    assert_eq!(woken(Some(0)), Some((Kind::Block, outside, 10)));
}

fn limits(at_ms: f64, core: u16, min_khz: u32, max_khz: u32) -> Line<'static> {
    (at_ms, 0, 0, "cpu_frequency_limits", format!("min={min_khz} max={max_khz} cpu_id={core}"))
}

#[test]
fn of_several_limits_those_of_most_of_the_time_are_kept() {
    let told = [limits(1.0, 2, 500, 900), limits(4.0, 1, 600, 800), limits(9.0, 2, 500, 900)];
    let found = imported(&one_thread(&told), &of_machine());
    let [other, own] = found.info.clocks.as_slice() else { panic!("two clocks") };
    assert_eq!((other.limits, other.seen_khz), (None, None));
    let held = own.limits.unwrap();
    assert_eq!((held.min_khz, held.max_khz), (600, 800));
    // 4 to 9 of 10 ms; for the first one nobody knows.
    assert!((held.share - 0.5).abs() < 1e-9, "{}", held.share);
    let found = read("r.ampr", &found.to_bytes()).unwrap();
    let program = replay(&found, &ampsched_recording::Options::default()).program;
    let bounds: Vec<_> =
        program.held_clocks.iter().map(|it| (it.cores, it.min_khz, it.max_khz)).collect();
    assert_eq!(bounds, [(1, None, None), (2, Some(600), Some(800))]);
    // Without the machine nobody knows which cores have one clock.
    assert!(imported(&one_thread(&told), &Options::default()).info.clocks.is_empty());
    assert!(imported(&one_thread(&[]), &of_machine()).info.clocks.is_empty());
    // A window counts from its begin on.
    let window = Window { since_ns: 1_008_500_000, until_ns: None, threads: vec![(7, 7)] };
    let found = imported(&one_thread(&told), &Options { window: Some(window), ..of_machine() });
    assert_eq!(found.info.clocks[1].limits.map(|it| (it.min_khz, it.max_khz)), Some((500, 900)));
}
