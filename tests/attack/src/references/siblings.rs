//! Two threads of one core: while both are busy, each has the stated part of its speed.

use super::setup::{Cluster, Setup, compute, costs, machine, thread, us};
use super::{Case, Verdict, any_policy};

/// Of one thread: pairs of work and the sleep behind it, in ns.
type Steps = Vec<(u64, u64)>;

/// A thread on its way.
#[derive(Clone, Copy, Debug)]
struct State {
    place: usize,
    /// Work that is left, in ns at full speed; none: it sleeps or has ended.
    left: Option<f64>,
    /// When its sleep is over.
    wakes: f64,
    end: f64,
}

/// When both have ended, and how often a speed may have changed until then.
fn schedule(both: &[Steps; 2], part: f64) -> ([f64; 2], u64) {
    let mut states = both.each_ref().map(|steps| State {
        place: 0,
        left: Some(steps[0].0 as f64),
        wakes: f64::INFINITY,
        end: 0.0,
    });
    let (mut now, mut changes) = (0.0, 0);
    loop {
        let is_shared = states.iter().all(|state| state.left.is_some());
        let speed = if is_shared { part } else { 1.0 };
        let dues = states.map(|state| state.left.map_or(state.wakes, |left| now + left / speed));
        let due = dues[0].min(dues[1]);
        if due == f64::INFINITY {
            return (states.map(|state| state.end), changes);
        }
        for (state, steps) in states.iter_mut().zip(both) {
            let Some(left) = &mut state.left else {
                if state.wakes <= due {
                    (state.left, state.wakes) = (Some(steps[state.place].0 as f64), f64::INFINITY);
                    changes += 1;
                }
                continue;
            };
            *left -= (due - now) * speed;
            if *left < 1e-6 {
                let sleep = steps[state.place].1 as f64;
                state.place += 1;
                state.wakes = if state.place < steps.len() { due + sleep } else { f64::INFINITY };
                (state.left, state.end) = (None, due);
                changes += 1;
            }
        }
        now = due;
    }
}

/// Two cores of two threads. A tolerance of 4 ns for each change of speed: what was done up to then is rounded down to
/// whole instructions of 1 ns, what is left is rounded up, at half the speed or more, for both threads.
pub fn run(case: &mut Case) -> Verdict {
    let dice = &mut case.dice;
    let part = dice.whole(50..=95);
    let longest = dice.whole(1000..=2_000_000);
    let mut steps = || -> Steps {
        let count = dice.whole(1..=5);
        (0..count).map(|_| (dice.whole(1..=longest), dice.whole(1..=longest))).collect()
    };
    let mut cores = [[steps(), steps()], [steps(), steps()]];
    let policy = any_policy(dice, 0);
    let program: String = (cores.iter().flatten().enumerate())
        .map(|(number, steps)| {
            let last = steps.len() - 1;
            let step = |(place, (work, sleep)): (usize, &(u64, u64))| match place == last {
                true => compute(*work),
                false => format!("{}, {{ sleep_us = {} }}", compute(*work), us(*sleep)),
            };
            let body: Vec<String> = steps.iter().enumerate().map(step).collect();
            thread(&format!("t{number}"), &format!("cores = [{number}]"), &body)
        })
        .collect();
    let more = format!("threads_per_core = 2\nsmt_speed = {}\n", part as f64 / 100.0);
    let machine = machine(&[Cluster { more, ..Cluster::new(4, 1000) }], &costs(&[]));
    let outcome = case.simulate(&Setup::new(machine, program, policy))?;
    let told = case.bend("part", part, 5) as f64 / 100.0;
    cores[0][0][0].0 = case.bend("work", cores[0][0][0].0, 100_000);
    cores[1][0][0].1 = case.bend("sleep", cores[1][0][0].1, 1_000_000);
    for (both, found) in cores.iter().zip(outcome.threads.chunks(2)) {
        let (ends, changes) = schedule(both, told);
        for (thread, end) in found.iter().zip(ends) {
            let what = format!("end of {}", thread.name);
            case.near(&what, thread.end_ns as f64, end, 4.0 * changes as f64)?;
        }
    }
    Ok(())
}
