//! A thread with a period (Liu and Layland, J. ACM 20, 1973: work that is released every P must end before the next
//! release). It waits for a timer, works, and waits again. An absolute timer expires every P from its first use; a
//! relative one that has expired before the thread waits for it begins anew from then (rt-app's `mode`).

use super::setup::{Cluster, Setup, compute, costs, machine, thread, us};
use super::{Case, Verdict, any_policy};

/// What is told of a thread's periods.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    end: u64,
    missed: u64,
    slack_min: i64,
    response_max: u64,
    frame_max: u64,
    /// Whether the last wait was for a time to come.
    in_time: bool,
}

fn schedule(first: u64, works: &[u64], period: u64, is_absolute: bool) -> Told {
    let mut told = Told { slack_min: i64::MAX, ..Told::default() };
    let (mut now, mut release) = (first, first + period);
    let mut before = None;
    for work in works {
        // A relative timer that is late begins anew.
        if !is_absolute && release < now {
            release = now;
        }
        now = now.max(release) + work;
        let slack = (release + period) as i64 - now as i64;
        told.missed += u64::from(slack < 0);
        told.slack_min = told.slack_min.min(slack);
        told.response_max = told.response_max.max(now - release);
        if let Some(before) = before.replace(now) {
            told.frame_max = told.frame_max.max(now - before);
        }
        release += period;
    }
    told.in_time = release >= now;
    told.end = now.max(release);
    told
}

/// Several threads, each with a core of its own; the last waits are for times to come, so that all periods have ended.
pub fn run(case: &mut Case) -> Verdict {
    let dice = &mut case.dice;
    let count = dice.whole(1..=3);
    let (mut program, mut all) = ("[timers.t]\n".to_owned(), Vec::new());
    while (all.len() as u64) < count {
        let (period, is_absolute) = (dice.whole(10..=4_000_000), dice.once_in(2));
        let (periods, first) = (dice.whole(1..=12), dice.whole(1..=3_000_000));
        let most = period * dice.whole(30..=160) / 100;
        // Some work ends just when it is due.
        let mut work = |_| if dice.once_in(6) { period } else { dice.whole(1..=most) };
        let works: Vec<u64> = (0..periods).map(&mut work).collect();
        if !schedule(first, &works, period, is_absolute).in_time {
            continue;
        }
        let mode = if is_absolute { "absolute" } else { "relative" };
        let wait = format!("{{ timer_us = {}, timer = \"t\", mode = \"{mode}\" }}", us(period));
        let mut body = vec![compute(first), wait.clone()];
        works.iter().for_each(|work| body.extend([compute(*work), wait.clone()]));
        let number = all.len();
        program += &thread(&format!("t{number}"), &format!("cores = [{number}]"), &body);
        all.push((first, works, period, is_absolute));
    }
    let policy = any_policy(dice, 0);
    let machine = machine(&[Cluster::new(count, 1000)], &costs(&[]));
    let outcome = case.simulate(&Setup::new(machine, program, policy))?;
    for (thread, (first, mut works, period, is_absolute)) in outcome.threads.iter().zip(all) {
        works[0] = case.bend("work", works[0], 1);
        let first = case.bend("first work", first, 1);
        let is_absolute = is_absolute ^ case.is_bent("mode");
        let told = schedule(first, &works, case.bend("period", period, 1), is_absolute);
        let periods = thread.periods.as_ref().ok_or("a thread without periods")?;
        let name = &thread.name;
        case.equal(&format!("end of {name}"), thread.end_ns, told.end)?;
        case.equal(&format!("periods of {name}"), periods.count, works.len() as u64)?;
        case.equal(&format!("missed by {name}"), periods.missed, told.missed)?;
        case.equal(&format!("least slack of {name}"), periods.slack_min_ns, told.slack_min)?;
        case.equal(&format!("response of {name}"), periods.response.max_ns, told.response_max)?;
        case.equal(&format!("frame of {name}"), periods.frame.max_ns, told.frame_max)?;
    }
    Ok(())
}
