//! Which threads can stand for one another.

use super::super::acts::Acts;
use super::super::crews::Crew;
use super::super::objects::Objects;
use super::super::stages::one_stage;
use super::super::{Level, Options, lift_shared};
use super::crews;
use super::synthetic::{self, Script};
use crate::{Kind, Recording};
use proptest::prelude::*;

const TAKING: u32 = 1;
const QUEUE: u32 = 20;
const FILLED: u32 = 3;
const FREED: u32 = 4;
const ROWS: u32 = 1_000;

/// How threads of a wavefront come to their rows, and tell of them.
#[derive(Clone, Copy, Debug)]
struct Front {
    threads: usize,
    rows: usize,
    columns: usize,
    /// Who is free takes the next row; else each thread has every so manieth.
    takes: bool,
    /// Semaphores stand for mutexes and conditions.
    by_semaphores: bool,
    /// Rows use so many objects again and again.
    objects: u32,
}

const FRONT: Front =
    Front { threads: 4, rows: 24, columns: 12, takes: true, by_semaphores: false, objects: 24 };

/// Rows of blocks of which each waits for the row above to be two blocks ahead.
fn wavefront(front: Front) -> Recording {
    let mut script = Script::new(front.threads + 1);
    let mut above: Vec<u64> = Vec::new();
    for row in 0..front.rows {
        let free = (1..=front.threads).min_by_key(|thread| script.clock(*thread)).unwrap_or(1);
        let thread = if front.takes { free } else { 1 + row % front.threads };
        if front.takes {
            script.add(thread, Kind::Lock, TAKING, 0);
            script.add(thread, Kind::Unlock, TAKING, 0);
        }
        let object = |row: usize| ROWS + 2 * (row as u32 % front.objects);
        let mut done = Vec::new();
        for column in 0..front.columns {
            if row > 0 {
                let until_ns = above[(column + 1).min(front.columns - 1)];
                look(&mut script, thread, (object(row - 1), front.by_semaphores), until_ns);
            }
            let work_ns = 400_000 + 100_000 * ((row * 7 + column * 3) as u64 % 5);
            tell(&mut script, thread, (object(row), front.by_semaphores), work_ns);
            done.push(script.clock(thread));
        }
        above = done;
    }
    script.end()
}

/// A thread waits until it is told something at an object.
fn look(script: &mut Script, thread: usize, (object, by_semaphores): (u32, bool), until_ns: u64) {
    if by_semaphores {
        script.wait(thread, Kind::SemWait, object, until_ns);
        return;
    }
    script.add(thread, Kind::Lock, object, 0);
    if until_ns > script.clock(thread) {
        script.add(thread, Kind::CondWait, object + 1, 0);
        script.wait(thread, Kind::CondWake, object + 1, until_ns + 10);
    }
    script.add(thread, Kind::Unlock, object, 0);
}

/// A thread works and tells so at an object.
fn tell(script: &mut Script, thread: usize, (object, by_semaphores): (u32, bool), work_ns: u64) {
    if by_semaphores {
        script.add(thread, Kind::SemPost, object, work_ns);
        return;
    }
    script.add(thread, Kind::Lock, object, work_ns);
    script.add(thread, Kind::Broadcast, object + 1, 0);
    script.add(thread, Kind::Unlock, object, 0);
}

/// The first thread hands items to threads that filter them; the last thread takes what they have made.
/// `room`: so many of these may wait for it, or any number.
fn written(filters: usize, items: usize, room: Option<usize>) -> Recording {
    let mut script = Script::new(filters + 2);
    let writer = filters + 1;
    let mut taken: Vec<u64> = Vec::new();
    for item in 0..items {
        tell(&mut script, 0, (QUEUE, false), 100_000);
        let given_ns = script.clock(0);
        let filter = (1..=filters).min_by_key(|thread| script.clock(*thread)).unwrap_or(1);
        look(&mut script, filter, (QUEUE, false), given_ns);
        script.add(filter, Kind::Lock, ROWS, 2_000_000 + 500_000 * (item as u64 % 3));
        let free_ns = room.and_then(|room| item.checked_sub(room)).map_or(0, |item| taken[item]);
        if free_ns > script.clock(filter) {
            script.add(filter, Kind::CondWait, FREED, 0);
            script.wait(filter, Kind::CondWake, FREED, free_ns + 10);
        }
        script.add(filter, Kind::Signal, FILLED, 0);
        script.add(filter, Kind::Unlock, ROWS, 0);
        let made_ns = script.clock(filter);
        script.add(writer, Kind::Lock, ROWS, 0);
        if made_ns > script.clock(writer) {
            script.add(writer, Kind::CondWait, FILLED, 0);
            script.wait(writer, Kind::CondWake, FILLED, made_ns + 10);
        }
        script.add(writer, Kind::Signal, FREED, 0);
        script.add(writer, Kind::Unlock, ROWS, 0);
        taken.push(script.clock(writer));
        script.add(writer, Kind::Yield, 0, 1_800_000 / filters as u64);
    }
    script.end()
}

/// Threads take jobs from a queue into which each job puts two more until there are as many as that.
/// `own`: who has nothing to do waits at an object of its own, else at the queue.
fn self_fed(threads: usize, jobs: usize, own: bool) -> Recording {
    let mut script = Script::new(threads + 1);
    tell(&mut script, 0, (QUEUE, false), 10_000);
    let mut ready = vec![script.clock(0)];
    let mut put = 1;
    while !ready.is_empty() {
        ready.sort_unstable();
        let ready_ns = ready.remove(0);
        let taker = (1..=threads).min_by_key(|thread| script.clock(*thread)).unwrap_or(1);
        let place = |thread: usize| if own { ROWS + 2 * thread as u32 } else { QUEUE };
        look(&mut script, taker, (place(taker), false), ready_ns);
        script.add(taker, Kind::Yield, 0, 1_000_000 + 300_000 * (put as u64 % 4));
        for _ in 0..2 {
            if put < jobs {
                put += 1;
                let further = 1 + ((put * 2_654_435_761) >> 9) % (threads - 1);
                let other = 1 + (taker - 1 + further) % threads;
                tell(&mut script, taker, (place(if own { other } else { 0 }), false), 100);
                ready.push(script.clock(taker));
            }
        }
    }
    script.end()
}

/// Which of the threads from the second one on can stand for one another.
fn alike(recording: &Recording) -> Option<Vec<u32>> {
    let acts = Acts::new(recording, &mut Objects::default(), Level::Jobs);
    let members = (1..recording.threads.len() as u32).collect();
    one_stage(recording, &acts, Crew { members, owner: 0 }).map(|crew| crew.members)
}

fn shared(recording: &Recording) -> Option<usize> {
    let found = lift_shared(recording, &Options::default())?;
    Some(found.report.jobs.iter().sum())
}

#[test]
fn who_waits_for_the_row_above_keeps_its_rows() {
    let fronts = [
        FRONT,
        Front { takes: false, ..FRONT },
        Front { by_semaphores: true, ..FRONT },
        Front { takes: false, by_semaphores: true, ..FRONT },
        // The next picture's rows take the same objects.
        Front { objects: 6, ..FRONT },
        Front { threads: 2, ..FRONT },
        Front { threads: 3, takes: false, ..FRONT },
    ];
    for front in fronts {
        let recording = wavefront(front);
        assert_eq!(alike(&recording), None, "{front:?}");
        assert_eq!(shared(&recording), None, "{front:?}");
    }
}

#[test]
fn who_takes_rows_that_wait_for_none_takes_jobs() {
    // The same without waits: the counter alone hands rows out.
    let mut recording = wavefront(FRONT);
    let is_own = |object: u32| object >= ROWS;
    for thread in &mut recording.threads {
        // What was worked before what is left out stays.
        let mut before_ns = 0;
        thread.events.retain_mut(|event| {
            before_ns += event.work_ns;
            event.work_ns = before_ns;
            let stays = !is_own(event.object);
            before_ns = if stays { 0 } else { before_ns };
            stays
        });
    }
    assert_eq!(alike(&recording), Some(vec![1, 2, 3, 4]));
}

#[test]
fn who_writes_what_others_have_made_takes_none_of_their_jobs() {
    for room in [None, Some(4), Some(1)] {
        let recording = written(4, 80, room);
        assert_eq!(alike(&recording), Some(vec![1, 2, 3, 4]), "{room:?}");
        assert_eq!(shared(&recording), Some(80), "{room:?}");
        // With one thread per stage there is nobody to take turns with.
        assert_eq!(alike(&written(1, 80, room)), None, "{room:?}");
    }
}

#[test]
fn queues_that_takers_fill_are_queues() {
    for own in [false, true] {
        let recording = self_fed(3, 90, own);
        assert_eq!(alike(&recording), Some(vec![1, 2, 3]), "{own}");
    }
    assert_eq!(alike(&synthetic::pool(4, 50)), Some(vec![1, 2, 3, 4]));
    assert_eq!(alike(&synthetic::task_rounds(3, 5, 12)), Some(vec![1, 2, 3]));
    assert_eq!(alike(&crews::handed_out(3, 40, false)), Some(vec![1, 2, 3]));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn no_wavefront_is_handed_out(
        threads in 2_usize..7,
        rows in 3_usize..6,
        columns in 8_usize..20,
        takes in any::<bool>(),
        by_semaphores in any::<bool>(),
        pictures in 1_u32..3,
    ) {
        let rows = rows * threads;
        let objects = (rows as u32 / pictures).max(2);
        let front = Front { threads, rows, columns, takes, by_semaphores, objects };
        prop_assert_eq!(alike(&wavefront(front)), None);
    }

    #[test]
    fn all_who_take_from_a_queue_take_turns(
        threads in 2_usize..7,
        jobs in 12_usize..30,
        own in any::<bool>(),
    ) {
        let all: Vec<u32> = (1..=threads as u32).collect();
        // Two that wake each other by objects of their own look like two that tell each other their progress.
        if !own || threads > 2 {
            prop_assert_eq!(alike(&self_fed(threads, jobs * threads, own)), Some(all.clone()));
        }
        prop_assert_eq!(alike(&synthetic::pool(threads, jobs * threads)), Some(all.clone()));
        prop_assert_eq!(alike(&crews::handed_out(threads, jobs * threads, false)), Some(all));
        let consumers = alike(&written(threads, 10 * threads, None));
        prop_assert_eq!(consumers, Some((1..=threads as u32).collect::<Vec<u32>>()));
    }
}
