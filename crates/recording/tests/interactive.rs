//! Interactive programs: marks, periods, and replays tied to the clock.

mod common;

use std::fmt::Write as _;

use ampsched_model::Op;
use ampsched_recording::import::{Options, import};
use ampsched_recording::{Options as ReplayOptions, Recording, interactive, replay};
use ampsched_sim::Outcome;
use common::{Script, catalog, profile, recording, replayed, run_on};

const PERIOD_US: u64 = 16_667;
const FRAMES: u64 = 60;
/// This frame's main thread works for 12 ms, and its render thread until 18 ms after vsync.
const LATE: u64 = 30;

/// A line of the kernel's text at a time in us; `h` tells an interrupt.
fn line(
    text: &mut String,
    (thread, tid, cpu): (&str, u32, u32),
    flags: &str,
    us: u64,
    event: &str,
) {
    let (seconds, us) = (us / 1_000_000, us % 1_000_000);
    let process = if tid == 0 { "-----".to_owned() } else { "   10".to_owned() };
    writeln!(text, "{thread}-{tid} ({process}) [{cpu:03}] {flags} {seconds}.{us:06}: {event}")
        .unwrap();
}

fn switch((from, from_tid): (&str, u32), state: &str, (to, to_tid): (&str, u32)) -> String {
    format!(
        "sched_switch: prev_comm={from} prev_pid={from_tid} prev_prio=120 prev_state={state} ==> next_comm={to} \
         next_pid={to_tid} next_prio=120"
    )
}

fn waking((name, tid): (&str, u32)) -> String {
    format!("sched_waking: comm={name} pid={tid} prio=120 target_cpu=000")
}

/// An app at 60 Hz: an interrupt wakes its main thread at vsync, which works for 4 ms and wakes the render thread after
/// 3, which works for 5.
fn app(marked: bool) -> String {
    let (idle, ui, render) = (("<idle>", 0), ("app", 10), ("RenderThread", 11));
    let mut text = String::new();
    for frame in 0..FRAMES {
        let at = 1_000 + frame * PERIOD_US;
        let is_late = frame == LATE;
        let (wakes, sleeps, ends) =
            if is_late { (11_000, 12_000, 18_000) } else { (3_000, 4_000, 8_000) };
        let mut of_frame: Vec<(u64, String)> = Vec::new();
        let mut tell = |who: (&str, u32), cpu: u32, flags: &str, us: u64, event: &str| {
            let mut text = String::new();
            line(&mut text, (who.0, who.1, cpu), flags, at + us, event);
            of_frame.push((us, text));
        };
        tell(idle, 0, "d.h2.", 0, &waking(ui));
        tell(idle, 0, "d..2.", 100, &switch(idle, "R", ui));
        if marked {
            tell(
                ui,
                0,
                ".....",
                150,
                &format!("tracing_mark_write: B|10|Choreographer#doFrame {frame}"),
            );
            tell(ui, 0, ".....", 200, "tracing_mark_write: B|10|input");
            tell(ui, 0, ".....", 300, "tracing_mark_write: E|10");
            tell(ui, 0, ".....", sleeps - 50, "tracing_mark_write: E|10");
            tell(
                render,
                1,
                ".....",
                wakes + 150,
                &format!("tracing_mark_write: B|10|DrawFrames {frame}"),
            );
            tell(render, 1, ".....", ends - 50, "tracing_mark_write: E|10");
        }
        tell(ui, 0, "d..2.", wakes, &waking(render));
        tell(idle, 1, "d..2.", wakes + 100, &switch(idle, "R", render));
        tell(ui, 0, "d..2.", sleeps, &switch(ui, "S", idle));
        tell(render, 1, "d..2.", ends, &switch(render, "S", idle));
        of_frame.sort();
        text.extend(of_frame.into_iter().map(|(_, text)| text));
    }
    text
}

fn imported(text: &str) -> Recording {
    import("app", text.as_bytes(), &Options::default()).unwrap()
}

/// The replay at a speed, on two equal cores without costs.
fn run(recording: &Recording, speed: f64) -> Outcome {
    let mut machine = catalog().machine("sym-2").unwrap();
    machine.costs = Default::default();
    let options = ReplayOptions { profile: profile(), speed, ..ReplayOptions::default() };
    run_on(&machine, &replay(recording, &options), "cfs").unwrap()
}

/// Periods of all threads: how many there are, and how many are missed.
fn periods(outcome: &Outcome) -> (u64, u64) {
    let all = outcome.threads.iter().filter_map(|thread| thread.periods.as_ref());
    all.fold((0, 0), |sum, periods| (sum.0 + periods.count, sum.1 + periods.missed))
}

#[test]
fn frames_are_found_by_their_marks_and_counted_once() {
    let recording = imported(&app(true));
    assert!(recording.threads.iter().all(|thread| thread.process == recording.threads[0].process));
    let markers: Vec<(&str, usize)> = recording
        .info
        .frames
        .iter()
        .map(|frames| (frames.marker.as_str(), frames.spans.len()))
        .collect();
    assert_eq!(markers, [("Choreographer#doFrame", 60), ("DrawFrames", 60)]);
    let found = interactive(&recording).unwrap();
    let frames = found.frames.unwrap();
    assert!(frames.period_ns.abs_diff(PERIOD_US * 1000) < 10_000, "{frames:?}");
    // Since when the first one has been waited for is not in the trace.
    assert_eq!((frames.marked, frames.frames, frames.late), (true, 59, 1));
    assert_eq!(frames.threads, ["RenderThread"]);
    let [own] = &frames.by_thread[..] else { panic!("{frames:?}") };
    assert_eq!((own.frames, own.late), (59, 1));
    assert_eq!((frames.times.count, frames.times.max_ns), (59, own.longest_ns));
    assert!(frames.times.p95_ns < PERIOD_US * 1000 && own.longest_ns > PERIOD_US * 1000);
    assert_eq!(found.periods[0].name, "app");
}

#[test]
fn frames_without_marks_are_those_of_threads_with_a_period() {
    let recording = imported(&app(false));
    let found = interactive(&recording).unwrap();
    let frames = found.frames.unwrap();
    assert_eq!(
        (frames.marked, frames.frames, frames.late),
        (false, 58, 0),
        "the last one has no end"
    );
    assert_eq!(frames.threads, ["app"]);
    assert!(found.waiting > 0.5);
}

#[test]
fn faster_cores_do_not_shift_frames_and_slower_ones_make_them_late() {
    let recording = imported(&app(true));
    let recorded_ns = recording.info.wall_ns;
    let own = run(&recording, 1.0);
    assert_eq!(periods(&own), (59, 1));
    assert!(own.makespan_ns.abs_diff(recorded_ns) < 300_000, "{} {recorded_ns}", own.makespan_ns);
    let render = own.threads.iter().find(|thread| thread.name.starts_with("Render")).unwrap();
    // Woken at once: 3 ms of the main thread and 5 of its own, without 0.1 ms each until they got a core.
    let response = render.periods.as_ref().unwrap().response.clone();
    assert!((7_800_000..7_900_000).contains(&response.p50_ns), "{response:?}");
    let fast = run(&recording, 10.0);
    assert_eq!(periods(&fast), (59, 0));
    let last_vsync_ns = (FRAMES - 1) * PERIOD_US * 1000;
    assert!(fast.makespan_ns >= last_vsync_ns, "{} {last_vsync_ns}", fast.makespan_ns);
    // 3 ms of the main thread and 5 of the render thread become 17.1.
    let slow = run(&recording, 0.45);
    assert!(periods(&slow).1 >= 58, "{:?}", periods(&slow));
}

#[test]
fn what_is_not_interactive_keeps_its_waits() {
    use ampsched_recording::Kind::{Block, Exit, Start};
    // It works nearly always; now and then it waits for a device or a network, for 3 ms.
    let mut script = Script::default().at(0, 0, Start, 0, 0);
    let mut at = 0;
    for round in 1..=40 {
        let work = 20 + round * 7 % 23;
        at += work + 3;
        script = script.at(at, work, Block, 0, 1).waited(3);
    }
    let recording = recording(vec![script.at(at + 5, 5, Exit, 0, 0)]);
    assert_eq!(interactive(&recording), None);
    let ops = replayed(&recording).program.code;
    assert_eq!(ops.iter().filter(|op| matches!(op, Op::Sleep(_))).count(), 40);
    assert!(!ops.iter().any(|op| matches!(op, Op::SleepUntil { .. } | Op::Period { .. })));
}
