//! A loop whose iterations are handed out (self-scheduling: Polychronopoulos and Kuck, IEEE ToC 36, 1987): who is free
//! takes the next few, until none is left.

use super::setup::{Cluster, Setup, compute, costs, machine, thread};
use super::{Case, TIE, Verdict, any_policy};

/// A worker: what it does before the loop, and how long it takes for an iteration.
#[derive(Clone, Copy, Debug)]
struct Worker {
    before: u64,
    each: u64,
}

/// When each worker has ended; none if it depends on which of two takes iterations first.
fn schedule(workers: &[Worker], total: u64, chunk: u64) -> Option<Vec<u64>> {
    let mut free: Vec<u64> = workers.iter().map(|worker| worker.before).collect();
    let mut left = total;
    while left > 0 {
        let at = *free.iter().min()?;
        let mut first = (0..free.len()).filter(|&worker| free[worker] == at);
        let (worker, None) = (first.next()?, first.next()) else { return None };
        let taken = chunk.min(left);
        left -= taken;
        free[worker] += taken * workers[worker].each;
    }
    Some(free)
}

/// Each worker has a core of its own, faster or slower.
pub fn run(case: &mut Case) -> Verdict {
    let dice = &mut case.dice;
    let (mhz, mut workers, total, chunk) = loop {
        let mhz: Vec<u64> = (0..dice.whole(1..=6)).map(|_| *dice.of(&[500, 1000, 2000])).collect();
        let work = 2 * dice.whole(1..=400_000);
        let longest = dice.whole(1..=4_000_000);
        let worker =
            |mhz: &u64| Worker { before: 2 * dice.whole(1..=longest), each: work * 1000 / mhz };
        let workers: Vec<Worker> = mhz.iter().map(worker).collect();
        let (total, chunk) = (dice.whole(1..=60), dice.whole(1..=8));
        if schedule(&workers, total, chunk).is_some() {
            break (mhz, workers, total, chunk);
        }
    };
    let policy = any_policy(dice, 0);
    let mut program = format!("[pools.p]\ntotal = {total}\nchunk = {chunk}\n");
    for (number, (worker, mhz)) in workers.iter().zip(&mhz).enumerate() {
        let iteration = compute(worker.each * mhz / 1000);
        let body = [
            compute(worker.before * mhz / 1000),
            format!("{{ dynamic = \"p\", body = [{iteration}] }}"),
        ];
        program += &thread(&format!("t{number}"), &format!("cores = [{number}]"), &body);
    }
    let clusters: Vec<Cluster> = mhz.iter().map(|&mhz| Cluster::new(1, mhz)).collect();
    let machine = machine(&clusters, &costs(&[]));
    let outcome = case.simulate(&Setup::new(machine, program, policy))?;
    workers[0].before = case.bend("work before", workers[0].before, 1);
    workers[0].each = case.bend("iteration", workers[0].each, 1);
    let (total, chunk) = (case.bend("total", total, 1), case.bend("chunk", chunk, 1));
    let expected = schedule(&workers, total, chunk).ok_or(TIE)?;
    case.each_thread("end", &outcome, |thread| thread.end_ns, &expected)
}
