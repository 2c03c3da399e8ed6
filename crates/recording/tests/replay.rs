//! Replays of recordings that are written here event by event, executed by the engine.

mod common;

use ampsched_model::{ObjectKind, Op};
use ampsched_recording::{Event, Kind, Options, Recording, Sharing, Thread, Wake, replay};
use ampsched_sim::SimError;
use common::{Script, catalog, profile, recording, replayed, run_on};
use proptest::prelude::*;

/// How long it takes under `cfs` on a machine without costs, in ms.
fn makespan_ms(recording: &Recording, machine: &str) -> f64 {
    let mut machine = catalog().machine(machine).unwrap();
    machine.costs = Default::default();
    run_on(&machine, &replayed(recording), "cfs").unwrap().makespan_ns as f64 / 1e6
}

use Kind::{
    Barrier, Block, Broadcast, CondWait, CondWake, Create, Exit, Join, Lock, OmpBegin, OmpEnd,
    OmpFork, OmpJoin, SemPost, SemWait, Signal, Sleep, Start, Unlock,
};

const M: u32 = 100;
const C: u32 = 200;

#[test]
fn threads_start_when_they_are_created_and_are_waited_for() {
    let main = Script::default()
        .at(0, 0, Start, 0, 0)
        .at(10, 10, Create, 1, 0)
        .at(40, 0, Join, 1, 0)
        .waited(30)
        .at(45, 5, Exit, 0, 0);
    let child = Script::default().at(10, 0, Start, 0, 1).at(40, 30, Exit, 0, 0);
    let ms = makespan_ms(&recording(vec![main, child]), "sym-2");
    assert!((ms - 45.0).abs() < 0.01, "{ms}");
}

#[test]
fn what_is_done_before_the_first_event_begins_before_it() {
    // Loading took 20 ms, which is the first event's work.
    let main = Script::default().at(25, 20, Start, 0, 0).at(40, 15, Exit, 0, 0);
    let ms = makespan_ms(&recording(vec![main]), "sym-2");
    assert!((ms - 40.0).abs() < 0.01, "{ms}");
}

#[test]
fn a_wait_lasts_as_long_as_its_cause_takes_not_as_long_as_it_took() {
    // The recorded producer was slowed down: 20 ms of work took 60.
    let main = Script::default()
        .at(0, 0, Start, 0, 0)
        .at(0, 0, Create, 1, 0)
        .at(60, 20, SemPost, M, 0)
        .at(61, 0, Exit, 0, 0);
    let other = Script::default()
        .at(0, 0, Start, 0, 1)
        .at(60, 0, SemWait, M, 0)
        .waited(60)
        .at(70, 10, Exit, 0, 0);
    let ms = makespan_ms(&recording(vec![main, other]), "sym-2");
    assert!((ms - 30.0).abs() < 0.01, "{ms}");
}

/// A producer of items and a consumer that was slower, so it never waited but at the first.
fn pipeline(items: u64) -> Recording {
    let mut producer = Script::default().at(0, 0, Start, 0, 0).at(0, 0, Create, 1, 0);
    let mut consumer = Script::default().at(0, 0, Start, 0, 1).at(0, 0, Lock, M, 0);
    for item in 0..items {
        let at = 10 * (item + 1);
        producer = producer.at(at, 10, Lock, M, 0).at(at, 0, Signal, C, 0).at(at, 0, Unlock, M, 0);
        let at = 11 + 20 * item;
        if item == 0 {
            consumer = consumer.at(0, 0, CondWait, C, M).at(at, 0, CondWake, C, 0).waited(11);
        } else {
            consumer = consumer.at(at, 20, Lock, M, 0);
        }
        consumer = consumer.at(at, 0, Unlock, M, 0);
    }
    let end = 11 + 20 * items;
    let consumer = consumer.at(end, 20, Exit, 0, 0);
    let producer = producer.at(end, 0, Join, 1, 0).at(end, 0, Exit, 0, 0);
    recording(vec![producer, consumer])
}

#[test]
fn consumers_never_overtake_producers() {
    let found = pipeline(10);
    let ms = makespan_ms(&found, "sym-2");
    assert!((ms - 210.0).abs() < 0.01, "{ms}");
    // Were the producer slower than in the recording, the consumer would wait for each item.
    let mut slow = found.clone();
    for event in &mut slow.threads[0].events {
        event.work_ns *= 4;
    }
    let ms = makespan_ms(&slow, "sym-2");
    assert!((ms - 420.0).abs() < 0.01, "{ms}");
    let notes = replayed(&found).notes;
    assert_eq!(notes, ["conditions are replayed as 1 queue"]);
}

/// Threads that meet at a barrier made of a mutex and a condition, in rounds; another one is the last each time.
fn homemade_barrier(threads: u32, rounds: u32) -> Recording {
    let scripts = (0..threads).map(|thread| {
        let mut script = Script::default().at(0, 0, Start, 0, 0);
        for round in 0..rounds {
            let last = round % threads == thread;
            let (begin, end) = (u64::from(20 * round), u64::from(20 * (round + 1)));
            let work = if last { 19 } else { 1 + u64::from(thread) };
            script = script.at(begin + work, work, Lock, M, 0);
            script = match last {
                true => script.at(end, 0, Broadcast, C, 0),
                false => script.at(begin + work, 0, CondWait, C, M).at(end, 0, CondWake, C, 0),
            };
            script = script.at(end, 0, Unlock, M, 0);
        }
        script.at(u64::from(20 * rounds), 0, Exit, 0, 0)
    });
    recording(scripts.collect())
}

#[test]
fn barriers_of_mutex_and_condition_are_recognised() {
    let found = homemade_barrier(4, 6);
    let replay = replayed(&found);
    assert_eq!(replay.notes, ["conditions are replayed as 1 barrier"]);
    let barriers = replay
        .program
        .objects
        .iter()
        .filter(|o| matches!(o.kind, ObjectKind::Barrier { parties: 4 }));
    assert_eq!(barriers.count(), 1);
    let ms = makespan_ms(&found, "sym-4");
    assert!((ms - 6.0 * 19.0).abs() < 0.01, "{ms}");
}

#[test]
fn balanced_work_ends_on_all_cores_at_once() {
    // Each round 19 ms of one thread and 2 to 4 of the others: 28 on four cores.
    let found = homemade_barrier(4, 4);
    let options = Options { profile: profile(), sharing: Sharing::ALL[2], ..Options::default() };
    let balanced = replay(&found, &options);
    let total_ms = found.cpu_ns() as f64 / 1e6;
    assert!((balanced.shared_ns / 1e6 - total_ms).abs() < 1e-6, "{}", balanced.shared_ns);
    let mut machine = catalog().machine("sym-4").unwrap();
    machine.costs = Default::default();
    let ms = run_on(&machine, &balanced, "cfs").unwrap().makespan_ns as f64 / 1e6;
    // Pieces are a 128th of a round.
    assert!(ms >= total_ms / 4.0 - 0.01 && ms < total_ms / 4.0 * 1.05, "{ms} of {total_ms}");
}

#[test]
fn a_flag_is_waited_for_and_a_timeout_slept() {
    let main = Script::default()
        .at(0, 0, Start, 0, 0)
        .at(0, 0, Create, 1, 0)
        .at(0, 0, Lock, M, 0)
        .at(0, 0, CondWait, C, M)
        .at(15, 0, CondWake, C, 1)
        .waited(15)
        .at(15, 0, CondWait, C, M)
        .at(40, 0, CondWake, C, 0)
        .waited(25)
        .at(40, 0, Unlock, M, 0)
        .at(41, 1, Exit, 0, 0);
    let other = Script::default()
        .at(0, 0, Start, 0, 1)
        .at(40, 30, Lock, M, 0)
        .at(40, 0, Signal, C, 0)
        .at(40, 0, Unlock, M, 0)
        .at(40, 0, Exit, 0, 0);
    let ms = makespan_ms(&recording(vec![main, other]), "sym-2");
    assert!((ms - 31.0).abs() < 0.01, "{ms}");
}

#[test]
fn who_sleeps_until_a_time_catches_up() {
    let thread = |work_ms: u64| {
        Script::default()
            .at(0, 0, Start, 0, 0)
            .at(10, 0, Sleep, 0, 1)
            .waited(10)
            .at(20, work_ms, Sleep, 0, 1)
            .waited(6)
            .at(30, work_ms, Sleep, 0, 1)
            .waited(6)
            .at(34, work_ms, Exit, 0, 0)
    };
    for (work_ms, expected_ms) in [(4, 34.0), (8, 38.0), (12, 46.0)] {
        let ms = makespan_ms(&recording(vec![thread(work_ms)]), "sym-2");
        assert!((ms - expected_ms).abs() < 0.01, "{work_ms}: {ms}");
    }
}

/// 35.2: Python's `time.sleep` chooses the time at the call, so that work between two of them lasts.
#[test]
fn h35_2_who_sleeps_from_the_call_on_is_late_by_its_work() {
    let thread = |work_ms: u64| {
        Script::default()
            .at(0, 0, Start, 0, 0)
            .at(20, 0, Sleep, 0, 1)
            .waited(20)
            .at(45, 5 * work_ms, Sleep, 0, 1)
            .waited(20)
            .at(74, 9 * work_ms, Sleep, 0, 1)
            .waited(20)
            .at(74, 0, Exit, 0, 0)
    };
    for (work_ms, expected_ms) in [(1, 74.0), (3, 102.0)] {
        let ms = makespan_ms(&recording(vec![thread(work_ms)]), "sym-2");
        assert!((ms - expected_ms).abs() < 0.01, "{work_ms}: {ms}");
    }
}

/// 35.2: whether a timer keeps a period is known from its setting, not from how regular its ends are: a busy computer
/// makes them late, and the work between them may always be as much.
#[test]
fn h35_2_a_timer_with_a_period_keeps_it() {
    const TIMER: u32 = 14;
    let thread = |how: u32, work_ms: u64| {
        let first = Script::default().at(0, 0, Start, 0, 0).at(100, 0, Sleep, TIMER, how);
        [201, 300, 401]
            .iter()
            .fold(first.waited(100), |script, end_ms| {
                script.at(*end_ms, work_ms, Sleep, TIMER, how).waited(60)
            })
            .at(401, 0, Exit, 0, 0)
    };
    for (how, expected_ms) in [(2, 401.0), (1, 520.0), (0, 520.0)] {
        let ms = makespan_ms(&recording(vec![thread(how, 80)]), "sym-2");
        assert!((ms - expected_ms).abs() < 0.01, "{how}: {ms}");
    }
}

#[test]
fn real_barriers_regions_and_the_kernels_wakes_are_replayed() {
    let arrive = |work: u64| {
        Script::default().at(0, 0, Start, 0, 0).at(30, work, Barrier, M, 0).at(31, 1, Exit, 0, 0)
    };
    let ms = makespan_ms(&recording(vec![arrive(30), arrive(10)]), "sym-2");
    assert!((ms - 31.0).abs() < 0.01, "{ms}");

    let main = Script::default()
        .at(0, 0, Start, 0, 0)
        .at(5, 5, OmpFork, 7, 0)
        .at(5, 0, Create, 1, 0)
        .at(5, 0, OmpBegin, 7, 0)
        .at(15, 10, OmpEnd, 7, 0)
        .at(25, 0, OmpJoin, 7, 0)
        .at(26, 1, Exit, 0, 0);
    // What the worker did between its start and its share is spinning.
    let worker = Script::default()
        .at(5, 0, Start, 0, 1)
        .at(5, 99, OmpBegin, 7, 0)
        .at(25, 20, OmpEnd, 7, 0)
        .at(26, 0, Exit, 0, 0);
    let ms = makespan_ms(&recording(vec![main, worker]), "sym-2");
    assert!((ms - 26.0).abs() < 0.01, "{ms}");

    let waker =
        Script::default().at(0, 0, Start, 0, 0).at(50, 30, Kind::Wake, 1, 0).at(50, 0, Exit, 0, 0);
    let woken = Script::default()
        .at(0, 0, Start, 0, 0)
        .at(50, 0, Block, 0, Wake::Thread(0).to_aux())
        .waited(50)
        .at(60, 0, Block, 0, Wake::Timer.to_aux())
        .waited(10)
        .at(61, 1, Sleep, 0, 0)
        .at(61, 0, Exit, 0, 0);
    let ms = makespan_ms(&recording(vec![waker, woken]), "sym-2");
    assert!((ms - 41.0).abs() < 0.01, "{ms}");
}

#[test]
fn locks_that_are_held_while_waiting_keep_their_order() {
    // Thread 0 holds the mutex while it waits for thread 1, which had it before.
    let holder = Script::default()
        .at(0, 0, Start, 0, 0)
        .at(0, 0, Create, 1, 0)
        .at(20, 1, Lock, M, 0)
        .at(50, 0, SemWait, C, 0)
        .waited(30)
        .at(50, 0, Unlock, M, 0)
        .at(50, 0, Exit, 0, 0);
    let other = Script::default()
        .at(0, 0, Start, 0, 1)
        .at(10, 10, Lock, M, 0)
        .at(11, 1, Unlock, M, 0)
        .at(50, 19, SemPost, C, 0)
        .at(50, 0, Exit, 0, 0);
    let found = recording(vec![holder, other]);
    let replay = replayed(&found);
    assert!(replay.notes[0].contains("keep the recorded order"), "{:?}", replay.notes);
    assert!(!replay.program.code.iter().any(|op| matches!(op, Op::Lock(_))));
    let ms = makespan_ms(&found, "sym-2");
    assert!((ms - 30.0).abs() < 0.01, "{ms}");
}

/// Events of a few threads in a random order of time, as only a damaged file says it.
fn any_recording() -> impl Strategy<Value = Recording> {
    let event = (0..4usize, 0..Kind::ALL.len(), 0..6u32, 0..6u32, 0..3u64, 0..3u64);
    proptest::collection::vec(event, 0..120).prop_map(|steps| {
        let mut life = Life::new(4);
        for (thread, kind, object, aux, work, wait) in steps {
            life.event(thread, Kind::ALL[kind], object, aux, work, wait);
        }
        life.recording
    })
}

/// What a program of a few threads could have done: locks, conditions, semaphores and barriers by their rules.
fn possible_recording() -> impl Strategy<Value = Recording> {
    let step = (0..4usize, 0..10u32, 0..3u32, 0..4u64);
    proptest::collection::vec(step, 0..200).prop_map(|steps| {
        let mut life = Life::new(4);
        for (thread, action, object, work) in steps {
            life.step(thread, action, object, work);
        }
        life.end();
        life.recording
    })
}

/// Threads that live by the rules, and the recording of it.
struct Life {
    recording: Recording,
    at_ns: u64,
    /// By mutex.
    holders: [Option<usize>; 3],
    /// By thread: the condition that it waits for with which mutex, and since when.
    waits: Vec<Option<(u32, u32, u64)>>,
    semaphores: [u32; 3],
}

impl Life {
    fn new(threads: usize) -> Self {
        let recording =
            Recording { threads: vec![Thread::default(); threads], ..Recording::default() };
        let (holders, semaphores) = ([None; 3], [0; 3]);
        Self { recording, at_ns: 0, holders, waits: vec![None; threads], semaphores }
    }

    fn event(&mut self, thread: usize, kind: Kind, object: u32, aux: u32, work: u64, wait: u64) {
        self.at_ns += 10_000 * (work + wait) + 1;
        let event = Event::new(kind, self.at_ns, work * 10_000);
        let (is_blocked, wait_ns) = (wait > 0, wait * 10_000);
        let events = &mut self.recording.threads[thread].events;
        events.push(Event { is_blocked, object, aux, wait_ns, ..event });
    }

    fn holds(&self, thread: usize) -> Option<u32> {
        (0..3).find(|mutex| self.holders[*mutex as usize] == Some(thread))
    }

    /// Does what is possible now; else nothing.
    fn step(&mut self, thread: usize, action: u32, object: u32, work: u64) {
        if self.waits[thread].is_some() {
            return;
        }
        let (mutex, condition, semaphore) = (M + object, C + object, 300 + object);
        let holder = self.holders[object as usize];
        match action {
            0..=2 if holder.is_none() => {
                self.holders[object as usize] = Some(thread);
                self.event(thread, Lock, mutex, 0, work, 0);
            }
            0..=4 if holder == Some(thread) => {
                self.event(thread, Unlock, mutex, 0, work, 0);
                self.holders[object as usize] = None;
            }
            5 => {
                let Some(held) = self.holds(thread) else { return };
                self.event(thread, CondWait, condition, M + held, work, 0);
                self.holders[held as usize] = None;
                self.waits[thread] = Some((condition, held, self.at_ns));
            }
            6 | 7 => {
                let kind = if action == 6 { Signal } else { Broadcast };
                self.event(thread, kind, condition, 0, work, 0);
                self.wake(condition, action == 7);
            }
            8 => {
                self.semaphores[object as usize] += 1;
                self.event(thread, SemPost, semaphore, 0, work, 0);
            }
            9 if self.semaphores[object as usize] > 0 => {
                self.semaphores[object as usize] -= 1;
                self.event(thread, SemWait, semaphore, 0, work, 0);
            }
            _ => {}
        }
    }

    /// Those whose mutex is free go on, one after the other; the others missed it.
    fn wake(&mut self, condition: u32, all: bool) {
        for thread in 0..self.waits.len() {
            let Some((waited, held, _)) = self.waits[thread] else { continue };
            if waited == condition && self.holders[held as usize].is_none() {
                self.waits[thread] = None;
                self.holders[held as usize] = Some(thread);
                self.event(thread, CondWake, condition, 0, 0, 0);
                if all {
                    self.event(thread, Unlock, M + held, 0, 1, 0);
                    self.holders[held as usize] = None;
                } else {
                    return;
                }
            }
        }
    }

    /// Nobody holds anything, and nobody waits any more.
    fn end(&mut self) {
        for mutex in 0..3 {
            if let Some(thread) = self.holders[mutex as usize].take() {
                self.event(thread, Unlock, M + mutex, 0, 0, 0);
            }
        }
        for condition in 0..3 {
            self.event(3, Broadcast, C + condition, 0, 0, 0);
            self.wake(C + condition, true);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 150, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn no_replay_of_what_a_program_can_do_deadlocks(recording in possible_recording()) {
        let replay = replayed(&recording);
        for machine in ["2B2S", "sym-2"] {
            let machine = catalog().machine(machine).unwrap();
            for policy in ["cfs", "rr"] {
                let outcome = run_on(&machine, &replay, policy);
                prop_assert!(outcome.is_ok(), "{policy}: {}", outcome.unwrap_err());
            }
        }
    }

    #[test]
    fn what_no_program_can_do_is_replayed_or_refused(recording in any_recording()) {
        let machine = catalog().machine("2B2S").unwrap();
        let outcome = run_on(&machine, &replayed(&recording), "cfs");
        let refused = matches!(&outcome, Err(SimError::Deadlock { .. }));
        prop_assert!(outcome.is_ok() || refused, "{}", outcome.unwrap_err());
    }
}

/// Found by a property: who ends a round of a barrier took another lock before it gave back that of the barrier, and so
/// waited for the thread that its arrival would have let go on.
#[test]
fn h35_who_takes_a_lock_before_it_arrives_makes_no_barrier() {
    let other = M + 1;
    let first = Script::default()
        .at(1, 0, Lock, other, 0)
        .at(3, 0, CondWait, C, other)
        .at(6, 0, CondWake, C, 0)
        .at(17, 10, Unlock, other, 0)
        .at(24, 0, Broadcast, C, 0);
    let second = Script::default()
        .at(4, 0, Lock, M, 0)
        .at(5, 0, Broadcast, C, 0)
        .at(18, 0, Lock, other, 0)
        .at(19, 0, CondWait, C, M)
        .at(25, 0, CondWake, C, 0)
        .at(36, 10, Unlock, M, 0)
        .at(38, 0, Unlock, other, 0);
    let ms = makespan_ms(&recording(vec![second, first]), "sym-2");
    assert!((20.0..40.0).contains(&ms), "{ms}");
}
