//! A device that serves so many requests at once, in the order in which they came (G/G/c, first come first served), and
//! takes a time for each beside its service.

use super::setup::{Cluster, Setup, compute, costs, machine, thread, us};
use super::{Case, TIE, Verdict, any_policy};

/// Of one thread: pairs of work and service, in ns.
type Rounds = Vec<(u64, u64)>;

/// When each thread has ended; none if it depends on who comes first of two who ask at once.
fn schedule(threads: &[Rounds], depth: u64, latency: u64) -> Option<Vec<u64>> {
    let mut servers = vec![0_u64; depth as usize];
    let mut place = vec![0; threads.len()];
    // When each asks next.
    let mut asks: Vec<u64> = threads.iter().map(|rounds| rounds[0].0).collect();
    let mut ends = vec![0; threads.len()];
    loop {
        let still = |thread: &usize| place[*thread] < threads[*thread].len();
        let Some(first) = (0..threads.len()).filter(still).min_by_key(|&thread| asks[thread])
        else {
            return Some(ends);
        };
        let ties = (0..threads.len()).filter(still).filter(|&other| asks[other] == asks[first]);
        if ties.count() > 1 {
            return None;
        }
        // The server that is free first. Who asks later has what is free later: services begin in order.
        let server = servers.iter_mut().min()?;
        *server = asks[first].max(*server) + threads[first][place[first]].1;
        let back = *server + latency;
        place[first] += 1;
        ends[first] = back;
        if let Some((work, _)) = threads[first].get(place[first]) {
            asks[first] = back + work;
        }
    }
}

/// Each thread has a core of its own.
pub fn run(case: &mut Case) -> Verdict {
    let dice = &mut case.dice;
    let (mut threads, depth, latency) = loop {
        let count = dice.whole(1..=6);
        let longest = dice.whole(10..=3_000_000);
        let threads: Vec<Rounds> = (0..count)
            .map(|_| {
                let rounds = dice.whole(1..=6);
                (0..rounds).map(|_| (dice.whole(1..=longest), dice.whole(1..=longest))).collect()
            })
            .collect();
        let (depth, latency) = (dice.whole(1..=3), dice.whole(0..=1) * dice.whole(1..=longest));
        if schedule(&threads, depth, latency).is_some() {
            break (threads, depth, latency);
        }
    };
    let policy = any_policy(dice, 0);
    let mut program = format!("[devices.d]\ndepth = {depth}\nlatency_us = {}\n", us(latency));
    for (number, rounds) in threads.iter().enumerate() {
        let step = |(work, service): &(u64, u64)| {
            format!("{}, {{ io_us = {}, device = \"d\" }}", compute(*work), us(*service))
        };
        let body: Vec<String> = rounds.iter().map(step).collect();
        program += &thread(&format!("t{number}"), &format!("cores = [{number}]"), &body);
    }
    let machine = machine(&[Cluster::new(threads.len() as u64, 1000)], &costs(&[]));
    let outcome = case.simulate(&Setup::new(machine, program, policy))?;
    let (work, service) = threads[0][0];
    threads[0][0] = (case.bend("work", work, 1), case.bend("service", service, 1));
    let (depth, latency) = (case.bend("depth", depth, 1), case.bend("latency", latency, 1));
    let expected = schedule(&threads, depth, latency).ok_or(TIE)?;
    case.each_thread("end", &outcome, |thread| thread.end_ns, &expected)
}
