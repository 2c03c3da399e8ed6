//! Threads that meet after every round: each round takes as long as the longest of them, and who came earlier goes on
//! later by the time that an idle core takes to wake up.

use super::setup::{Cluster, Setup, compute, costs, machine, thread};
use super::{Case, TIE, Verdict, any_policy};

/// When each thread ends and for how long it was blocked; none if it depends on which of two came last.
fn schedule(rounds: &[Vec<u64>], wakeup: u64) -> Option<Vec<(u64, u64)>> {
    let mut told = vec![(wakeup, 0); rounds[0].len()];
    for round in rounds {
        let arrivals: Vec<u64> = told.iter().zip(round).map(|(told, work)| told.0 + work).collect();
        let last = arrivals.iter().copied().max()?;
        if wakeup > 0 && arrivals.iter().filter(|&&arrival| arrival == last).count() > 1 {
            return None;
        }
        for (told, arrival) in told.iter_mut().zip(arrivals) {
            let is_last = arrival == last;
            *told = (if is_last { last } else { last + wakeup }, told.1 + last - arrival);
        }
    }
    Some(told)
}

/// Each thread has a core of its own, faster or slower.
pub fn run(case: &mut Case) -> Verdict {
    let dice = &mut case.dice;
    let (mut rounds, wakeup) = loop {
        let (threads, count) = (dice.whole(1..=6), dice.whole(1..=8));
        let longest = dice.whole(1..=1_000_000);
        let rounds: Vec<Vec<u64>> = (0..count)
            .map(|_| (0..threads).map(|_| 4 * dice.whole(1..=longest)).collect())
            .collect();
        let wakeup = dice.whole(0..=1) * dice.whole(1..=9999);
        if schedule(&rounds, wakeup).is_some() {
            break (rounds, wakeup);
        }
    };
    let mhz: Vec<u64> = rounds[0].iter().map(|_| *dice.of(&[500, 1000, 2000])).collect();
    let policy = any_policy(dice, wakeup);
    let mut program = "[barriers.b]\n".to_owned();
    for (number, mhz) in mhz.iter().enumerate() {
        let step = |round: &Vec<u64>| {
            format!("{}, {{ barrier = \"b\" }}", compute(round[number] * mhz / 1000))
        };
        let body: Vec<String> = rounds.iter().map(step).collect();
        program += &thread(&format!("t{number}"), &format!("cores = [{number}]"), &body);
    }
    let clusters: Vec<Cluster> = mhz.iter().map(|&mhz| Cluster::new(1, mhz)).collect();
    let machine = machine(&clusters, &costs(&[("wakeup_latency_ns", wakeup)]));
    let outcome = case.simulate(&Setup::new(machine, program, policy))?;
    rounds[0][0] = case.bend("work", rounds[0][0], 1);
    let wakeup = case.bend("wake-up", wakeup, 1);
    let expected = schedule(&rounds, wakeup).ok_or(TIE)?;
    let ends: Vec<u64> = expected.iter().map(|told| told.0).collect();
    let waits: Vec<u64> = expected.iter().map(|told| told.1).collect();
    case.each_thread("end", &outcome, |thread| thread.end_ns, &ends)?;
    case.each_thread("time blocked", &outcome, |thread| thread.blocked_ns, &waits)
}
