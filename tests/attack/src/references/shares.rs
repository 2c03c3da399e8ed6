//! Fair threads that always want a core get it in proportion to their weights. How far they may be off:
//!
//! * `cfs` serves the thread of the least virtual run time for a slice. New threads start up to one slice of their own
//!   behind (`START_DEBIT`), which is at most D = period x 1024 / weight of the first, and no slice is longer than that
//!   in virtual time; so virtual run times stay within D of each other, and each is within 2 D of its share.
//! * `eevdf` serves requests of length r: no thread is further off than r (Stoica and Abdel-Wahab, *Earliest Eligible
//!   Virtual Deadline First*, 1995, theorem 1). If the end of a request is noticed at ticks, turns are longer: only who
//!   is not ahead of its share begins one, so nobody is ahead by more than r and a tick, and as all are ahead and
//!   behind by the same together, nobody is behind by more than all others may be ahead.

use super::setup::{Cluster, Setup, compute, costs, machine, thread};
use super::{Case, Verdict};

/// Weights of nice -5 to 5 (kernel/sched/core.c, `sched_prio_to_weight`).
const WEIGHTS: [u64; 11] = [3121, 2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335];
/// Latency and least granularity of `cfs` on one core (kernel/sched/fair.c).
const LATENCY: u64 = 6_000_000;
const GRANULARITY: u64 = 750_000;

/// One to nine threads on a core for some hundred ms.
pub fn run(case: &mut Case) -> Verdict {
    let dice = &mut case.dice;
    let count = dice.whole(1..=9) as usize;
    let spread = dice.whole(0..=5);
    let nices: Vec<usize> =
        (0..count).map(|_| dice.whole(5 - spread..=5 + spread) as usize).collect();
    let weights: Vec<u64> = nices.iter().map(|&nice| WEIGHTS[nice]).collect();
    let until = dice.whole(300_000_000..=900_000_000);
    let hz = *dice.of(&[0, 250, 1000]);
    let request = dice.whole(1..=40) * 100_000;
    let is_cfs = dice.once_in(2);
    let program: String = (nices.iter().enumerate())
        .map(|(number, &nice)| {
            let keys = format!("nice = {}", nice as i64 - 5);
            thread(&format!("t{number}"), &keys, &[compute(1_000_000_000_000)])
        })
        .collect();
    let policy = match is_cfs {
        true => "cfs".to_owned(),
        false => format!("eevdf:hz={hz}:base_slice_ms={}", request as f64 / 1e6),
    };
    let mut setup = Setup::new(machine(&[Cluster::new(1, 1000)], &costs(&[])), program, &policy);
    setup.options.until_ns = Some(until);
    let outcome = case.simulate(&setup)?;
    let period = LATENCY.max(count as u64 * GRANULARITY);
    let tick = 1_000_000_000_u64.checked_div(hz).unwrap_or(0);
    let sum = case.bend("weights", weights.iter().sum(), 3000);
    for (thread, &weight) in outcome.threads.iter().zip(&weights) {
        let share = until as f64 * weight as f64 / sum as f64;
        let is_behind = (thread.run_ns() as f64) < share;
        let within = match (is_cfs, tick) {
            (true, _) => 2.0 * period as f64 * weight as f64 / weights[0] as f64,
            (false, 0) => request as f64,
            (false, _) if is_behind => ((count as u64 - 1) * (request + tick)) as f64,
            (false, _) => (request + tick) as f64,
        };
        case.near(
            &format!("time of thread {}", thread.name),
            thread.run_ns() as f64,
            share,
            within,
        )?;
    }
    // Somebody always runs.
    let all = outcome.threads.iter().map(|thread| thread.run_ns()).sum();
    let all_there_is = case.bend("time", until, 1);
    case.equal("time of all threads", all, all_there_is)
}
