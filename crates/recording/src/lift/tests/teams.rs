//! Recordings of threads that are started again and again, and of threads that share work unevenly.

use super::synthetic::Script;
use crate::{Kind, Recording};

/// A thread waits for the end of another one.
pub fn join(script: &mut Script, waiter: usize, child: usize) {
    let end_ns = script.clock(child) + 10;
    script.wait(waiter, Kind::Join, child as u32, end_ns);
}

/// A thread starts others that do so much each, and waits for all of them.
fn batch(script: &mut Script, starter: usize, works: &[u64]) {
    let children: Vec<usize> = works.iter().map(|_| script.start(starter)).collect();
    for (child, work_ns) in children.iter().zip(works) {
        script.add(*child, Kind::Yield, 0, *work_ns);
    }
    children.iter().for_each(|child| join(script, starter, *child));
}

/// The first thread starts a crew for each batch, as `std::async` in a loop does.
pub fn batches(batches: &[Vec<u64>]) -> Recording {
    let mut script = Script::new(1);
    for works in batches {
        script.add(0, Kind::Yield, 0, 300_000);
        batch(&mut script, 0, works);
    }
    script.end()
}

/// Threads of a pipeline take turns; each starts a crew of its own for each of its batches.
pub fn batches_of_a_pipeline(stages: usize, batches: &[Vec<u64>]) -> Recording {
    let mut script = Script::new(stages + 1);
    let mut free_ns = 0;
    for (number, works) in batches.iter().enumerate() {
        let stage = 1 + number % stages;
        script.add(stage, Kind::Yield, 0, 200_000);
        script.add(stage, Kind::Lock, 1, 0);
        if free_ns > script.clock(stage) {
            script.add(stage, Kind::CondWait, 2, 0);
            script.wait(stage, Kind::CondWake, 2, free_ns + 10);
        }
        script.add(stage, Kind::Unlock, 1, 0);
        batch(&mut script, stage, works);
        script.add(stage, Kind::Lock, 1, 0);
        script.add(stage, Kind::Broadcast, 2, 0);
        free_ns = script.clock(stage);
        script.add(stage, Kind::Unlock, 1, 0);
    }
    script.end()
}

/// So many threads at a time: a further one is started when the oldest has ended.
pub fn window(size: usize, works: &[u64]) -> Recording {
    window_with(size, works, |_| 0)
}

/// The same; before each start the first thread does something.
pub fn window_with(size: usize, works: &[u64], before: impl Fn(usize) -> u64) -> Recording {
    let mut script = Script::new(1);
    let mut running = Vec::new();
    for (task, work_ns) in works.iter().enumerate() {
        script.add(0, Kind::Yield, 0, before(task));
        if running.len() == size {
            let oldest = running.remove(0);
            join(&mut script, 0, oldest);
        }
        let child = script.start(0);
        script.add(child, Kind::Yield, 0, *work_ns);
        running.push(child);
    }
    running.into_iter().for_each(|child| join(&mut script, 0, child));
    script.end()
}

/// Threads that take a mutex that all share so often, for a moment.
pub fn visits(threads: usize, visits: usize) -> Recording {
    let mut script = Script::new(threads + 1);
    for _ in 0..visits {
        for thread in 1..=threads {
            script.add(thread, Kind::Lock, 1, 400_000);
            script.add(thread, Kind::Unlock, 1, 30);
        }
    }
    script.end()
}

/// Threads that do so much each and never meet.
pub fn uneven(works: &[u64]) -> Recording {
    let mut script = Script::new(1);
    batch(&mut script, 0, works);
    script.end()
}

/// Threads draw pieces under a mutex; the first one as well, when it has worked for so long.
pub fn pool_with_main(threads: usize, busy_ns: u64, works: &[u64]) -> Recording {
    let mut script = Script::new(threads + 1);
    script.add(0, Kind::Yield, 0, busy_ns);
    for work_ns in works {
        let free = (0..=threads).min_by_key(|thread| script.clock(*thread)).unwrap_or(0);
        script.add(free, Kind::Lock, 1, 0);
        script.add(free, Kind::Unlock, 1, 30);
        script.add(free, Kind::Yield, 0, *work_ns);
    }
    for thread in 0..=threads {
        script.add(thread, Kind::Lock, 1, 0);
        script.add(thread, Kind::Unlock, 1, 30);
    }
    script.end()
}

/// Threads that meet at a barrier in each round, each with work of its own.
pub fn rounds(threads: usize, works: &[u64]) -> Recording {
    let mut script = Script::new(threads);
    for (round, works) in works.chunks_exact(threads).enumerate() {
        for (thread, work_ns) in works.iter().enumerate() {
            script.add(thread, Kind::Yield, 0, *work_ns);
        }
        script.barrier(round);
    }
    script.end()
}
