//! Round robin (Silberschatz, Galvin, Gagne, *Operating System Concepts*, "CPU Scheduling"): one queue; who comes joins
//! its end; who has used a slice up does so, too, behind those who came meanwhile. A thread that is alone goes on, and
//! gives the core up to the next that comes once its slice is over. Putting another thread on the core takes time,
//! which is part of its slice.

use std::collections::VecDeque;

use super::setup::{Cluster, Setup, compute, costs, machine, thread, us};
use super::{Case, Verdict};

/// A thread that comes at a time and computes.
#[derive(Clone, Copy, Debug)]
struct Job {
    arrival: u64,
    work: u64,
}

/// When each ends, and how long it had the core; jobs are in the order of their arrival.
fn schedule(jobs: &[Job], slice: u64, switch: u64) -> Vec<(u64, u64)> {
    let mut left: Vec<u64> = jobs.iter().map(|job| job.work).collect();
    let mut told = vec![(0, 0); jobs.len()];
    let (mut queue, mut coming, mut now, mut last) = (VecDeque::new(), 0..jobs.len(), 0, None);
    let mut next = coming.next();
    loop {
        while let Some(job) = next.filter(|&job| jobs[job].arrival <= now) {
            queue.push_back(job);
            next = coming.next();
        }
        let Some(job) = queue.pop_front() else {
            let Some(job) = next else { return told };
            now = jobs[job].arrival;
            continue;
        };
        let delay = if last.replace(job) == Some(job) { 0 } else { switch };
        let done = now + delay + left[job];
        let somebody_waits = match (queue.is_empty(), next) {
            (false, _) => now,
            (true, Some(next)) => jobs[next].arrival,
            (true, None) => u64::MAX,
        };
        let end = (now + slice).max(somebody_waits).min(done);
        told[job].1 += end - now;
        left[job] -= (end - now).saturating_sub(delay);
        now = end;
        if end == done {
            told[job].0 = end;
            continue;
        }
        while let Some(other) = next.filter(|&other| jobs[other].arrival <= now) {
            queue.push_back(other);
            next = coming.next();
        }
        queue.push_back(job);
    }
}

/// Slices and works are whole microseconds, and each later arrival has ns of its own: turns never end when others come.
pub fn run(case: &mut Case) -> Verdict {
    let dice = &mut case.dice;
    let count = dice.whole(1..=8);
    let horizon_us = dice.whole(1..=20_000);
    let mut jobs: Vec<Job> = (0..count)
        .map(|number| {
            let late = dice.whole(0..=1) * (dice.whole(1..=horizon_us) * 1000 + number + 1);
            Job { arrival: late, work: 1000 * dice.whole(1..=6000) }
        })
        .collect();
    jobs.sort_by_key(|job| job.arrival);
    let slice_us = dice.whole(100..=4000);
    let switch = 1000 * dice.whole(0..=20) * dice.whole(0..=1);
    let mhz = *dice.of(&[1000, 2000, 4000]);
    let program: String = (jobs.iter().enumerate())
        .map(|(number, job)| {
            let keys = format!("start_us = {}", us(job.arrival));
            thread(&format!("t{number}"), &keys, &[compute(job.work * mhz / 1000)])
        })
        .collect();
    let machine = machine(&[Cluster::new(1, mhz)], &costs(&[("context_switch_ns", switch)]));
    let policy = format!("rr:slice_ms={}", slice_us as f64 / 1000.0);
    let outcome = case.simulate(&Setup::new(machine, program, &policy))?;
    let last = jobs.len() - 1;
    jobs[0].work = case.bend("work", jobs[0].work, 1000);
    jobs[last].arrival = case.bend("arrival", jobs[last].arrival, 1);
    let slice = case.bend("slice", 1000 * slice_us, 1000);
    let told = schedule(&jobs, slice, case.bend("switch", switch, 1000));
    let ends: Vec<u64> = told.iter().map(|job| job.0).collect();
    let runs: Vec<u64> = told.iter().map(|job| job.1).collect();
    case.each_thread("end", &outcome, |thread| thread.end_ns, &ends)?;
    case.each_thread("time on the core", &outcome, |thread| thread.run_ns(), &runs)
}
