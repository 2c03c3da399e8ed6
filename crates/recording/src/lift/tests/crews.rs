//! Recordings of threads that share work in ways that only the jobs tell.

use super::synthetic::{Script, pipeline_with};
use crate::{Kind, Recording, Thread, Wake};

const DONE: u32 = 50;
const RESULTS: u32 = 60;

/// The first thread hands jobs of 2 to 3 ms to whoever is free, by a condition of each worker, and waits if nobody is.
/// `meets`: all threads meet at a barrier before.
pub fn handed_out(workers: usize, jobs: usize, meets: bool) -> Recording {
    let mut script = Script::new(workers + 1);
    if meets {
        script.barrier(0);
    }
    for job in 0..jobs {
        let worker = (1..=workers).min_by_key(|one| script.clock(*one)).unwrap_or(1);
        let free_ns = script.clock(worker);
        if free_ns > script.clock(0) {
            script.add(0, Kind::Lock, RESULTS, 0);
            script.add(0, Kind::CondWait, DONE, 0);
            script.wait(0, Kind::CondWake, DONE, free_ns + 10);
            script.add(0, Kind::Unlock, RESULTS, 0);
        }
        hand_over(&mut script, worker, 2_000_000 + 250_000 * (job as u64 % 5));
    }
    script.end()
}

/// The first thread hands a job to a worker by the worker's own condition; the worker then says that it is done.
fn hand_over(script: &mut Script, worker: usize, work_ns: u64) {
    let own = worker as u32;
    script.add(0, Kind::Lock, 100 + own, 20_000);
    script.add(0, Kind::Signal, 200 + own, 10);
    script.add(0, Kind::Unlock, 100 + own, 0);
    let given_ns = script.clock(0).max(script.clock(worker));
    script.add(worker, Kind::Lock, 100 + own, 0);
    script.add(worker, Kind::CondWait, 200 + own, 0);
    script.wait(worker, Kind::CondWake, 200 + own, given_ns + 10);
    script.add(worker, Kind::Unlock, 100 + own, 0);
    script.add(worker, Kind::Lock, RESULTS, work_ns);
    script.add(worker, Kind::Signal, DONE, 0);
    script.add(worker, Kind::Unlock, RESULTS, 0);
}

/// The first thread hands out 7 or 8 jobs, waits until they are done, and so on.
pub fn handed_out_by_rounds(workers: usize, rounds: usize) -> Recording {
    let mut script = Script::new(workers + 1);
    for round in 0..rounds {
        for _ in 0..7 + round % 2 {
            let worker = (1..=workers).min_by_key(|one| script.clock(*one)).unwrap_or(1);
            hand_over(&mut script, worker, 2_000_000);
        }
        let done_ns = (1..=workers).map(|worker| script.clock(worker)).max().unwrap_or(0);
        script.add(0, Kind::Lock, RESULTS, 0);
        script.add(0, Kind::CondWait, DONE, 0);
        script.wait(0, Kind::CondWake, DONE, done_ns + 10);
        script.add(0, Kind::Unlock, RESULTS, 0);
    }
    script.end()
}

/// Threads take blocks: each is read, packed and written, with one lock before, between and after; the last is short.
/// The first thread waits for some of them.
pub fn blocks(workers: usize, count: usize) -> Recording {
    let mut script = Script::new(workers + 1);
    let mut ends_ns = Vec::new();
    for block in 0..count {
        let worker = (1..=workers).min_by_key(|one| script.clock(*one)).unwrap_or(1);
        let us = if block + 1 == count { 15_000 } else { 60_000 };
        for part_us in [4_000, us, 2_000] {
            script.add(worker, Kind::Lock, RESULTS, 1_000 * part_us);
            script.add(worker, Kind::Unlock, RESULTS, 0);
        }
        if block % 2 == 1 {
            script.add(worker, Kind::Signal, DONE, 0);
            ends_ns.push(script.clock(worker));
        }
    }
    ends_ns.sort_unstable();
    for end_ns in ends_ns {
        script.add(0, Kind::Lock, RESULTS, 0);
        script.add(0, Kind::CondWait, DONE, 0);
        script.wait(0, Kind::CondWake, DONE, end_ns + 10);
        script.add(0, Kind::Unlock, RESULTS, 0);
    }
    script.end()
}

const REQUESTS: u32 = 900;
const ANSWERS: u32 = 901;

/// The first thread writes jobs of 2 to 3 ms into a pipe, from which processes take them, and reads what they answer
/// from another one. Each message has a head, which is read by itself.
pub fn taken_from_a_pipe(workers: usize, jobs: usize) -> Recording {
    let mut script = Script::new(workers + 1);
    let bytes = |script: &mut Script, thread, kind, (object, count), at_ns| {
        match kind {
            Kind::Read => script.wait(thread, kind, object, at_ns),
            _ => script.add(thread, kind, object, 0),
        }
        script.last(thread).aux = count;
    };
    for _ in 0..jobs {
        script.add(0, Kind::Yield, 0, 10_000);
        bytes(&mut script, 0, Kind::Write, (REQUESTS, 20), 0);
    }
    let given_ns = script.clock(0);
    let mut answers = Vec::new();
    for job in 0..jobs {
        let worker = (1..=workers).min_by_key(|one| script.clock(*one)).unwrap_or(1);
        bytes(&mut script, worker, Kind::Read, (REQUESTS, 4), given_ns + 10);
        bytes(&mut script, worker, Kind::Read, (REQUESTS, 16), 0);
        script.add(worker, Kind::Yield, 0, 2_000_000 + 250_000 * (job as u64 % 5));
        bytes(&mut script, worker, Kind::Write, (ANSWERS, 20), 0);
        answers.push(script.clock(worker));
    }
    answers.sort_unstable();
    for answered_ns in answers {
        bytes(&mut script, 0, Kind::Read, (ANSWERS, 20), answered_ns + 10);
    }
    let mut recording = script.end();
    for (process, thread) in (0..).zip(&mut recording.threads) {
        thread.process = process;
    }
    recording
}

/// Two threads with long stretches of work, each of which ends a wait of the other.
pub fn steals() -> Recording {
    let mut script = Script::new(3);
    for (waker, waker_ns, woken, woken_ns) in
        [(1, 30_000_000, 2, 20_000_000), (2, 20_000_000, 1, 10_000_000)]
    {
        script.add(waker, Kind::FutexWake, 40 + woken as u32, waker_ns);
        script.last(waker).aux = 1;
        script.add(woken, Kind::Yield, 0, woken_ns);
        let wake_ns = script.clock(waker);
        script.wait(woken, Kind::FutexWait, 40 + woken as u32, wake_ns + 10);
    }
    script.add(2, Kind::Yield, 0, 20_000_000);
    script.end()
}

/// As Go's threads: the first one starts two others and then works as they do; they wake each other, as a kernel tells.
pub fn starts_and_takes() -> Recording {
    let mut script = Script::new(3);
    for (waker, waker_ns, woken, woken_ns) in
        [(0, 30_000_000, 1, 20_000_000), (1, 20_000_000, 0, 10_000_000)]
    {
        script.add(waker, Kind::Wake, woken as u32, waker_ns);
        script.add(woken, Kind::Yield, 0, woken_ns);
        let wake_ns = script.clock(waker);
        script.wait(woken, Kind::Block, 0, wake_ns + 10);
        script.last(woken).aux = Wake::Thread(waker as u32).to_aux();
    }
    script.add(1, Kind::Yield, 0, 20_000_000);
    script.add(2, Kind::Yield, 0, 50_000_000);
    script.end()
}

/// As TBB's threads: the first one starts two others and then works as they do, and takes a lock at its end; who finds
/// no work yields.
pub fn yields_and_takes() -> Recording {
    let mut script = Script::new(3);
    for (thread, parts) in [(0, [20, 10, 10]), (1, [30, 20, 10]), (2, [10, 20, 20])] {
        for part_ms in parts {
            script.add(thread, Kind::Yield, 0, part_ms * 1_000_000);
        }
    }
    script.add(0, Kind::Lock, 900, 0);
    script.add(0, Kind::Unlock, 900, 0);
    script.end()
}

/// A thread that takes items starts another one while it works on one.
pub fn starts_while_it_takes() -> Recording {
    pipeline_with(2, 40, |script, taker, item| {
        if item == 20 {
            let late = script.start(taker);
            script.add(late, Kind::Yield, 0, 3_000_000);
        }
    })
}

/// A program that starts others of 5 to 8 ms, so many at a time, as the kernel tells it.
pub fn programs(places: usize, count: usize) -> Recording {
    let mut script = Script::new(1);
    let mut running: Vec<(u64, usize)> = Vec::new();
    for number in 0..count {
        if running.len() == places {
            ended(&mut script, &mut running);
        }
        let program = script.start(0);
        script.add(program, Kind::Yield, 0, 5_000_000 + 1_000_000 * (number as u64 % 4));
        running.push((script.clock(program), program));
    }
    while !running.is_empty() {
        ended(&mut script, &mut running);
    }
    let mut recording = script.end();
    let process = |(number, thread): (usize, &mut Thread)| thread.process = number as u32;
    recording.threads.iter_mut().enumerate().for_each(process);
    recording
}

/// The first thread waits for the program that ends first.
fn ended(script: &mut Script, running: &mut Vec<(u64, usize)>) {
    running.sort_unstable();
    let (end_ns, program) = running.remove(0);
    script.wait(0, Kind::Block, 0, end_ns + 10);
    script.last(0).aux = Wake::Thread(program as u32).to_aux();
    script.add(0, Kind::Join, program as u32, 0);
}

/// A thread that works while another one waits for signals, and that polls.
pub fn waits_for_signals() -> Recording {
    let mut script = Script::new(2);
    for _ in 0..12 {
        script.add(0, Kind::Yield, 0, 5_000_000);
        let until_ns = script.clock(0) + 200_000;
        script.wait(0, Kind::Io, 5, until_ns);
        script.last(0).aux = 2;
    }
    let end_ns = script.clock(0);
    script.wait(1, Kind::Io, 6, end_ns);
    script.last(1).aux = 3;
    script.end()
}

/// A wait for one of two threads names the one that goes on, and wakes the first thread later.
pub fn names_another_one() -> Recording {
    let mut script = Script::new(3);
    script.add(2, Kind::Yield, 0, 1_000_000);
    let end_ns = script.clock(2);
    script.wait(0, Kind::Join, 1, end_ns);
    for (waker, woken) in [(0, 1), (1, 0)] {
        script.add(waker, Kind::Wake, woken as u32, 2_000_000);
        let wake_ns = script.clock(waker);
        script.wait(woken, Kind::Block, 0, wake_ns + 10);
        script.last(woken).aux = Wake::Thread(waker as u32).to_aux();
    }
    script.end()
}
