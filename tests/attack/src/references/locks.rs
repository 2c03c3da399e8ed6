//! A mutex with a list of those who wait, in the order in which they came: who unlocks it wakes the first, who tries
//! again once its core has woken up, and joins the end of the list if somebody has been faster (a futex without
//! hand-over: Drepper, *Futexes Are Tricky*).

use std::collections::VecDeque;

use super::setup::{Cluster, Setup, compute, costs, machine, thread};
use super::{Case, TIE, Verdict, any_policy};

/// Of one thread: pairs of work outside and inside of the lock, in ns.
type Rounds = Vec<(u64, u64)>;

/// Of one thread: when it ends, for how long it was blocked.
type Told = (u64, u64);

/// None if it depends on which of two things that happen at once comes first.
fn schedule(threads: &[Rounds], wakeup: u64) -> Option<Vec<Told>> {
    let mut told: Vec<Told> = vec![(0, 0); threads.len()];
    let mut round = vec![0; threads.len()];
    let mut since = vec![0; threads.len()];
    let (mut owner, mut waiting) = (None, VecDeque::new());
    // What each does next, and when: try to lock, or (as the owner) unlock.
    let mut due: Vec<u64> = threads.iter().map(|rounds| wakeup + rounds[0].0).collect();
    loop {
        let now = *due.iter().min()?;
        if now == u64::MAX {
            return Some(told);
        }
        let mut at_once = (0..threads.len()).filter(|&thread| due[thread] == now);
        let (thread, None) = (at_once.next()?, at_once.next()) else { return None };
        let (_, inside) = threads[thread][round[thread]];
        if owner.is_none() {
            owner = Some(thread);
            due[thread] = now + inside;
        } else if owner != Some(thread) {
            waiting.push_back(thread);
            (since[thread], due[thread]) = (now, u64::MAX);
        } else {
            owner = None;
            if let Some(woken) = waiting.pop_front() {
                told[woken].1 += now - since[woken];
                due[woken] = now + wakeup;
                if wakeup == 0 {
                    owner = Some(woken);
                    due[woken] = now + threads[woken][round[woken]].1;
                }
            }
            round[thread] += 1;
            due[thread] = match threads[thread].get(round[thread]) {
                Some((outside, _)) => now + outside,
                None => u64::MAX,
            };
            told[thread].0 = now;
        }
    }
}

/// Each thread has a core of its own, faster or slower.
pub fn run(case: &mut Case) -> Verdict {
    let dice = &mut case.dice;
    let (mut threads, wakeup) = loop {
        let count = dice.whole(1..=6);
        let longest = dice.whole(100..=500_000);
        let threads: Vec<Rounds> = (0..count)
            .map(|_| {
                let rounds = dice.whole(1..=6);
                (0..rounds)
                    .map(|_| (4 * dice.whole(1..=longest), 4 * dice.whole(1..=longest)))
                    .collect()
            })
            .collect();
        let wakeup = dice.whole(0..=1) * dice.whole(1..=200_000);
        if schedule(&threads, wakeup).is_some() {
            break (threads, wakeup);
        }
    };
    let mhz: Vec<u64> = threads.iter().map(|_| *dice.of(&[500, 1000, 2000])).collect();
    let policy = any_policy(dice, wakeup);
    let mut program = "[mutexes.m]\n".to_owned();
    for (number, (rounds, mhz)) in threads.iter().zip(&mhz).enumerate() {
        let step = |(outside, inside): &(u64, u64)| {
            let (outside, inside) = (compute(outside * mhz / 1000), compute(inside * mhz / 1000));
            format!("{outside}, {{ lock = \"m\" }}, {inside}, {{ unlock = \"m\" }}")
        };
        let body: Vec<String> = rounds.iter().map(step).collect();
        program += &thread(&format!("t{number}"), &format!("cores = [{number}]"), &body);
    }
    let clusters: Vec<Cluster> = mhz.iter().map(|&mhz| Cluster::new(1, mhz)).collect();
    let machine = machine(&clusters, &costs(&[("wakeup_latency_ns", wakeup)]));
    let outcome = case.simulate(&Setup::new(machine, program, policy))?;
    let (outside, inside) = threads[0][0];
    threads[0][0] = (case.bend("outside", outside, 1), case.bend("inside", inside, 1));
    let wakeup = case.bend("wake-up", wakeup, 1);
    let expected = schedule(&threads, wakeup).ok_or(TIE)?;
    let ends: Vec<u64> = expected.iter().map(|told| told.0).collect();
    let waits: Vec<u64> = expected.iter().map(|told| told.1).collect();
    case.each_thread("end", &outcome, |thread| thread.end_ns, &ends)?;
    case.each_thread("time blocked", &outcome, |thread| thread.blocked_ns, &waits)
}
