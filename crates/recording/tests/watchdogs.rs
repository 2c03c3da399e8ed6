//! Threads that only watch (35.2): they are replayed until their process ends, and no other threads are.

mod common;

use ampsched_policy::REGISTRY;
use ampsched_recording::{Kind, Options, Recording, Wake, replay};
use common::{Script, catalog, profile, recording, replayed, run_on};

use Kind::{
    Block, CondWait, CondWake, Create, Exit, FutexWait, Io, Join, Lock, SemPost, SemWait, Sleep,
    Start, Unlock,
};

const M: u32 = 100;
const C: u32 = 200;
const NOTE: &str = "1 thread only watches: it ends with its program";

/// Works for one second, in pieces of 100 ms, and joins the second thread or leaves it to the end of the process.
fn main_thread(joins: bool) -> Script {
    let main = Script::default().at(0, 0, Start, 0, 0).at(0, 0, Create, 1, 0);
    let main = (1..=10).fold(main, |main, piece| main.at(100 * piece, 100, Kind::Yield, 0, 0));
    match joins {
        true => main.at(1010, 0, Join, 1, 0).waited(10).at(1010, 0, Exit, 0, 0),
        false => main.at(1000, 0, Exit, 0, 0),
    }
}

/// Waits of 20 ms with a little work, as `step` writes them, until the process ends.
fn watchdog(step: impl Fn(Script, u64) -> Script) -> Script {
    let thread = (0..49).fold(Script::default().at(0, 0, Start, 0, 1), |script, round| {
        let mut script = step(script, 20 * (round + 1));
        script.events.last_mut().unwrap().work_ns = 100_000;
        script
    });
    let last_ms = thread.events.last().unwrap().at_ns / 1_000_000;
    thread.at(last_ms, 0, Exit, 0, 0)
}

fn sleeping() -> Script {
    watchdog(|script, at| script.at(at, 0, Sleep, 0, 0).waited(20))
}

/// How long it takes on cores that are so many times as fast, in ms.
fn took_ms(recording: &Recording, speed: f64) -> f64 {
    let options = Options { profile: profile(), speed, ..Options::default() };
    let mut machine = catalog().machine("sym-2").unwrap();
    machine.costs = Default::default();
    let outcome = run_on(&machine, &replay(recording, &options), "cfs").unwrap();
    outcome.makespan_ns as f64 / 1e6
}

fn assert_watches(recording: &Recording) {
    let replay = replayed(recording);
    assert_eq!(replay.program.flaw(), None);
    assert!(replay.notes.iter().any(|note| note == NOTE), "{:?}", replay.notes);
    assert!(replay.program.threads[1].is_daemon && !replay.program.threads[0].is_daemon);
    assert!((took_ms(recording, 1.0) - 1000.0).abs() < 1.0);
    assert!((took_ms(recording, 20.0) - 50.0).abs() < 1.0);
    assert!((took_ms(recording, 0.1) - 10_000.0).abs() < 10.0);
}

fn assert_does_not_watch(recording: &Recording) {
    let replay = replayed(recording);
    assert!(!replay.notes.iter().any(|note| note.contains("watch")), "{:?}", replay.notes);
    assert!(replay.program.threads.iter().all(|thread| !thread.is_daemon));
}

#[test]
fn h35_2_every_kind_of_sleep_in_a_loop_is_replayed_until_the_end() {
    let lock = |script: Script, at: u64| script.at(at, 0, Lock, M, 0);
    let waits = |script: Script, at: u64| {
        let script = lock(script, at - 20).at(at - 20, 0, CondWait, C, M);
        script.at(at, 0, CondWake, C, 1).waited(20).at(at, 0, Unlock, M, 0)
    };
    let timer = Wake::Timer.to_aux();
    let kinds: [&dyn Fn(Script, u64) -> Script; 5] = [
        &|script, at| script.at(at, 0, Sleep, 0, 0).waited(20),
        &|script, at| script.at(at, 0, Sleep, 0, 1).waited(20),
        &|script, at| script.at(at, 0, FutexWait, 7, 110).waited(20),
        &|script, at| script.at(at, 0, Block, 0, timer).waited(20),
        &waits,
    ];
    for step in kinds {
        assert_watches(&recording(vec![main_thread(false), watchdog(step)]));
    }
}

/// As the thread of a JVM that looks every 250 ms whether it may give locks back: a short program sees one look.
#[test]
fn h35_2_it_may_have_slept_once_if_its_process_has_ended_it() {
    let thread = |ended_by_process: u32| {
        Script::default()
            .at(0, 0, Start, 0, 1)
            .at(900, 0, CondWake, C, 1)
            .waited(900)
            .at(1000, 0, Exit, 0, ended_by_process)
            .cpu_us(1)
    };
    assert_watches(&recording(vec![main_thread(false), thread(1)]));
    assert_does_not_watch(&recording(vec![main_thread(false), thread(0)]));
}

#[test]
fn h35_2_it_may_be_told_to_end_and_be_joined() {
    let mut told = sleeping();
    told.events.pop();
    let told = told.at(1010, 0, SemWait, 9, 0).waited(30).at(1010, 0, Exit, 0, 0);
    assert_watches(&recording(vec![main_thread(true), told]));
}

#[test]
fn h35_2_it_may_take_a_lock_of_others_for_a_moment() {
    // As a thread of Python takes the lock of the interpreter.
    let step = |script: Script, at: u64| {
        let script = script.at(at, 0, Sleep, 0, 0).waited(20);
        let script = script.at(at, 0, SemWait, M, 0).waited(0);
        script.at(at, 0, SemPost, M, 0)
    };
    let mut main =
        Script::default().at(0, 0, Start, 0, 0).at(0, 0, Create, 1, 0).at(0, 0, SemWait, M, 0);
    for round in 1..=50 {
        main = main.at(20 * round, 20, SemPost, M, 0).at(20 * round, 0, SemWait, M, 0);
    }
    let main = main.at(1000, 0, Exit, 0, 0);
    assert_watches(&recording(vec![main, watchdog(step)]));
}

#[test]
fn h35_2_who_has_a_part_in_the_program_is_no_watchdog() {
    let wakes =
        |script: Script, at: u64| script.at(at, 0, Sleep, 0, 0).waited(20).at(at, 0, SemPost, M, 0);
    let waits = (1..=49)
        .fold(Script::default().at(0, 0, Start, 0, 0).at(0, 0, Create, 1, 0), |main, round| {
            main.at(20 * round, 10, SemWait, M, 0).waited(10)
        });
    // It sets the pace, whether the other one waits for it or has enough to do.
    assert_does_not_watch(&recording(vec![waits.at(990, 0, Exit, 0, 0), watchdog(wakes)]));
    let busy = (1..=49)
        .fold(Script::default().at(0, 0, Start, 0, 0).at(0, 0, Create, 1, 0), |main, round| {
            main.at(20 * round, 20, SemWait, M, 0)
        });
    assert_does_not_watch(&recording(vec![busy.at(990, 0, Exit, 0, 0), watchdog(wakes)]));
    // It works: 13 % of all.
    let mut works = sleeping();
    works
        .events
        .iter_mut()
        .filter(|event| event.kind == Sleep)
        .for_each(|event| event.work_ns = 3_000_000);
    assert_does_not_watch(&recording(vec![main_thread(false), works]));
    // It sleeps with a lock that the other one takes.
    let holds = |script: Script, at: u64| {
        let script = script.at(at - 20, 0, Lock, M, 0).at(at, 0, Sleep, 0, 0).waited(20);
        script.at(at, 0, Unlock, M, 0)
    };
    let main = main_thread(false).at(1000, 0, Lock, M, 0).at(1000, 0, Unlock, M, 0);
    assert_does_not_watch(&recording(vec![main, watchdog(holds)]));
    // It waits for a device, for others, or reads.
    for (kind, aux) in [(Io, 0), (Block, Wake::Outside.to_aux()), (SemWait, 0)] {
        let reads = watchdog(|script, at| script.at(at, 0, kind, 3, aux).waited(20));
        assert_does_not_watch(&recording(vec![main_thread(false), reads]));
    }
}

#[test]
fn h35_2_who_ends_before_its_process_is_no_watchdog() {
    let mut early = sleeping();
    early.events.truncate(30);
    assert_does_not_watch(&recording(vec![main_thread(false), early.at(600, 0, Exit, 0, 0)]));
    // The program lasts as long as it: main waits for most of the time.
    let main = Script::default()
        .at(0, 0, Start, 0, 0)
        .at(0, 0, Create, 1, 0)
        .at(985, 100, Join, 1, 0)
        .waited(885)
        .at(985, 0, Exit, 0, 0);
    let mut counts = sleeping();
    counts.events.pop();
    assert_does_not_watch(&recording(vec![main, counts.at(985, 5, Exit, 0, 0)]));
    // One sleep may be what it was for; if the process's end has cut the next one off, it was not.
    let once = |work| {
        let script = Script::default().at(0, 0, Start, 0, 1).at(950, 0, Sleep, 0, 0).waited(950);
        recording(vec![main_thread(false), script.at(950 + work, work, Exit, 0, 0)])
    };
    assert_does_not_watch(&once(1));
    assert_watches(&once(0));
    // It is all that there is.
    assert_does_not_watch(&recording(vec![sleeping()]));
}

#[test]
fn h35_2_watchdogs_of_several_processes_end_with_theirs() {
    // The child works for 300 ms and is waited for; the parent goes on for 700 ms.
    let main = Script::default()
        .at(0, 0, Start, 0, 0)
        .at(0, 0, Create, 1, 0)
        .at(0, 0, Create, 2, 0)
        .at(300, 0, Join, 2, 0)
        .waited(300)
        .at(1000, 700, Exit, 0, 0);
    let child =
        Script::default().at(0, 0, Start, 0, 1).at(0, 0, Create, 3, 0).at(300, 300, Exit, 0, 0);
    let mut childs = sleeping();
    childs.events.truncate(15);
    let mut found = recording(vec![main, sleeping(), child, childs.at(280, 0, Exit, 0, 0)]);
    (found.threads[2].process, found.threads[3].process) = (1, 1);
    let replay = replayed(&found);
    assert_eq!(replay.program.flaw(), None);
    assert!(
        replay.notes.iter().any(|note| note == "2 threads only watch: they end with their program")
    );
    for info in REGISTRY {
        let machine = catalog().machine("sym-4").unwrap();
        let outcome = run_on(&machine, &replay, info.name).unwrap();
        let end_ms = |index: usize| outcome.threads[index].end_ns as f64 / 1e6;
        assert!((outcome.makespan_ns as f64 / 1e6 - 1000.0).abs() < 20.0, "{}", info.name);
        let named = |name: &str| {
            outcome.threads.iter().position(|thread| thread.name.starts_with(name)).unwrap()
        };
        assert_eq!(end_ms(named("t3")), end_ms(named("t2")), "{}", info.name);
        assert_eq!(end_ms(named("t1")), end_ms(named("t0")), "{}", info.name);
    }
    assert!((took_ms(&found, 20.0) - 50.0).abs() < 1.0);
}

#[test]
fn h35_2_a_policy_gains_as_much_as_without() {
    let workers = |watchdogs: u32| {
        let mut main = Script::default().at(0, 0, Start, 0, 0);
        for thread in 1..=3 + watchdogs {
            main = main.at(0, 0, Create, thread, 0);
        }
        for worker in 1..=3 {
            main = main.at(1000, 0, Join, worker, 0);
        }
        let work = |ms: u64| Script::default().at(0, 0, Start, 0, 1).at(ms, ms, Exit, 0, 0);
        let mut threads = vec![main.at(1000, 0, Exit, 0, 0), work(760), work(880), work(1000)];
        threads.extend((0..watchdogs).map(|_| sleeping()));
        recording(threads)
    };
    let machine = catalog().machine("2B2S").unwrap();
    let gain = |recording: &Recording, policy: &str| {
        let ns = |policy: &str| {
            run_on(&machine, &replayed(recording), policy).unwrap().makespan_ns as f64
        };
        100.0 * (1.0 - ns(policy) / ns("cfs"))
    };
    assert!(gain(&workers(0), "acfs") > 20.0);
    for policy in ["acfs", "wash", "colab", "linux"] {
        let (with, without) = (gain(&workers(1), policy), gain(&workers(0), policy));
        assert!((with - without).abs() < 1.0, "{policy}: {with} {without}");
    }
}

#[test]
fn h35_2_a_wait_in_parts_is_ended_by_what_ends_the_last_one() {
    let main = Script::default()
        .at(0, 0, Start, 0, 0)
        .at(0, 0, Create, 1, 0)
        .at(100, 100, Lock, M, 0)
        .at(100, 0, Kind::Signal, C, 0)
        .at(100, 0, Unlock, M, 0)
        .at(110, 0, Join, 1, 0)
        .waited(10)
        .at(110, 0, Exit, 0, 0);
    let mut waits = Script::default().at(0, 0, Start, 0, 1).at(0, 0, Lock, M, 0);
    for part in 0..19 {
        waits = waits.at(5 * part, 0, CondWait, C, M).at(5 * part + 5, 0, CondWake, C, 1).waited(5);
    }
    let waits = waits.at(95, 0, CondWait, C, M).at(100, 0, CondWake, C, 0).waited(5);
    let waits = waits.at(100, 0, Unlock, M, 0).at(110, 10, Exit, 0, 0);
    let found = recording(vec![main, waits]);
    assert!((took_ms(&found, 1.0) - 110.0).abs() < 0.1);
    assert!((took_ms(&found, 20.0) - 5.5).abs() < 0.1);
    assert!((took_ms(&found, 0.1) - 1100.0).abs() < 1.0);
}
