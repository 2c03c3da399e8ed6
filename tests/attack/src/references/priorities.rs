//! `SCHED_FIFO` and `SCHED_RR` (sched(7)): the highest priority runs; who comes joins the end of its priority's list;
//! who is interrupted goes to its head; a round-robin thread that has used its quantum of 100 ms up goes to its end if
//! another one of its priority waits, and what an interruption leaves of a quantum is kept. Others run when none of
//! these do.

use super::setup::{Cluster, Setup, compute, costs, machine, thread, us};
use super::{Case, Verdict, any_policy};

/// The kernel's quantum (`RR_TIMESLICE`).
const QUANTUM: u64 = 100_000_000;

#[derive(Clone, Copy, Debug)]
struct Job {
    arrival: u64,
    work: u64,
    /// 0: an ordinary thread.
    priority: u64,
    is_round_robin: bool,
}

/// When each ends; jobs are in the order of their arrival.
fn schedule(jobs: &[Job]) -> Vec<u64> {
    let mut left: Vec<u64> = jobs.iter().map(|job| job.work).collect();
    let mut quantum = vec![QUANTUM; jobs.len()];
    let mut ends = vec![0; jobs.len()];
    // Of one priority those before come first; the running one stays where it is.
    let mut ready: Vec<usize> = Vec::new();
    let (mut now, mut next) = (0, 0);
    loop {
        while next < jobs.len() && jobs[next].arrival <= now {
            ready.push(next);
            next += 1;
        }
        let arrival = jobs.get(next).map_or(u64::MAX, |job| job.arrival);
        // The first of the highest priority.
        let Some(&job) = ready.iter().rev().max_by_key(|&&job| jobs[job].priority) else {
            if next == jobs.len() {
                return ends;
            }
            now = arrival;
            continue;
        };
        let slice = if jobs[job].is_round_robin { quantum[job] } else { u64::MAX };
        let ran = left[job].min(slice).min(arrival - now);
        now += ran;
        left[job] -= ran;
        if left[job] == 0 {
            ends[job] = now;
            ready.retain(|&other| other != job);
        } else if jobs[job].is_round_robin {
            quantum[job] -= ran;
            if quantum[job] == 0 {
                quantum[job] = QUANTUM;
                ready.retain(|&other| other != job);
                ready.push(job);
            }
        }
    }
}

/// Works are whole microseconds, each later arrival has ns of its own. At most one ordinary thread, which never waits
/// for 950 ms (then it would get the core).
pub fn run(case: &mut Case) -> Verdict {
    let dice = &mut case.dice;
    let count = dice.whole(1..=7);
    let levels = dice.whole(1..=3);
    let most_us = 800_000 / count;
    let mut jobs: Vec<Job> = (0..count)
        .map(|number| Job {
            arrival: dice.whole(0..=1) * (dice.whole(1..=200_000) * 1000 + number + 1),
            work: 1000 * dice.whole(1..=most_us),
            priority: if number == 0 { dice.whole(0..=levels) } else { dice.whole(1..=levels) },
            is_round_robin: dice.once_in(2),
        })
        .collect();
    jobs.sort_by_key(|job| job.arrival);
    let base = dice.whole(0..=96);
    let program: String = (jobs.iter().enumerate())
        .map(|(number, job)| {
            let class = match (job.priority, job.is_round_robin) {
                (0, _) => String::new(),
                (level, false) => format!("class = \"fifo\"\npriority = {}\n", base + level),
                (level, true) => format!("class = \"rr\"\npriority = {}\n", base + level),
            };
            let keys = format!("{class}start_us = {}", us(job.arrival));
            thread(&format!("t{number}"), &keys, &[compute(job.work)])
        })
        .collect();
    let policy = any_policy(dice, 0);
    let machine = machine(&[Cluster::new(1, 1000)], &costs(&[]));
    let outcome = case.simulate(&Setup::new(machine, program, policy))?;
    let last = jobs.len() - 1;
    jobs[0].work = case.bend("work", jobs[0].work, 1000);
    jobs[last].arrival = case.bend("arrival", jobs[last].arrival, 1);
    jobs[last].priority = case.bend("priority", jobs[last].priority, 9);
    jobs[last].is_round_robin ^= case.is_bent("class");
    case.each_thread("end", &outcome, |thread| thread.end_ns, &schedule(&jobs))
}
