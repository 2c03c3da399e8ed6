//! What mutexes with conditions are used for: barriers, gates, queues.

use std::collections::HashMap;

use super::Level;
use super::acts::{Act, Acts};
use super::node::Sym;
use super::objects::{Objects, What};
use super::queues;
use super::visits::{Visit, Visits};
use crate::{Kind, Recording};

/// Visits by thread.
pub(super) type ByThread<'a> = Vec<(u32, Vec<&'a Visit>)>;

/// Recognises what it can; the rest keeps its meaning.
pub(super) fn recognise(
    recording: &Recording,
    visits: &Visits,
    acts: &mut Acts,
    objects: &mut Objects,
    level: Level,
) {
    barriers(recording, acts, objects);
    for (mutex, all) in visits.by_mutex.iter().enumerate() {
        let has_waits = all.iter().any(|visit| !visit.waits.is_empty());
        if !has_waits || barrier(all, acts, objects) || level > Level::Full {
            continue;
        }
        let is_queue = queues::recognise(all, acts, objects);
        if !is_queue {
            for condition in visits.conditions_of(mutex as u32) {
                gate(condition, all, acts, objects);
            }
        }
    }
}

/// Groups visits by thread.
pub(super) fn by_thread<'a>(visits: impl Iterator<Item = &'a Visit>) -> ByThread<'a> {
    let mut found: ByThread<'a> = Vec::new();
    for visit in visits {
        match found.last_mut() {
            Some((thread, list)) if *thread == visit.thread => list.push(visit),
            _ => found.push((visit.thread, vec![visit])),
        }
    }
    found
}

/// A barrier: in each round nobody goes before all have come.
fn is_barrier(threads: &ByThread) -> bool {
    let rounds = threads.first().map_or(0, |(_, list)| list.len());
    let is_even = threads.len() >= 2 && threads.iter().all(|(_, list)| list.len() == rounds);
    is_even
        && (0..rounds).all(|round| {
            let last = threads.iter().map(|(_, list)| list[round].start_ns).max();
            let first = threads.iter().map(|(_, list)| list[round].end_ns).min();
            let is_waited = |(_, list): &(u32, Vec<&Visit>)| !list[round].waits.is_empty();
            last <= first && (threads.iter().any(is_waited) || list_spun(threads, round))
        })
}

fn list_spun(threads: &ByThread, round: usize) -> bool {
    threads.iter().any(|(_, list)| list[round].has_spun)
}

fn barrier(all: &[Visit], acts: &mut Acts, objects: &mut Objects) -> bool {
    let threads = by_thread(all.iter());
    if is_barrier(&threads) {
        make_barrier(&threads, acts, objects);
        return true;
    }
    let is_arrival = |visit: &&Visit| !visit.waits.is_empty() || !visit.broadcasts.is_empty();
    let threads = by_thread(all.iter().filter(is_arrival));
    let is_found = is_barrier(&threads);
    if is_found {
        make_barrier(&threads, acts, objects);
    }
    is_found
}

fn make_barrier(threads: &ByThread, acts: &mut Acts, objects: &mut Objects) {
    let rounds = threads[0].1.len();
    let was = format!("mutex and condition, {rounds} rounds of {} threads", threads.len());
    let object = objects.add(What::Barrier, was);
    for (thread, list) in threads {
        for visit in list {
            acts.replace(*thread, visit.first, visit.last, Some(Sym::Barrier(object)));
            // Whoever spins takes the mutex again and again.
            if visit.has_spun {
                let idle = &mut acts.is_idle[*thread as usize];
                idle[visit.first as usize + 1..=visit.last as usize].fill(true);
            }
        }
    }
}

/// A gate: one thread broadcasts, others pass once for each broadcast.
fn gate(condition: u32, all: &[Visit], acts: &mut Acts, objects: &mut Objects) {
    let threads = by_thread(all.iter());
    let opens = |visit: &&&Visit| {
        visit.broadcasts.contains(&condition) || visit.signals.contains(&condition)
    };
    let waits = |visit: &&Visit| visit.waits.contains(&condition);
    let (openers, waiters): (Vec<_>, Vec<_>) =
        threads.iter().partition(|(_, list)| list.iter().any(|visit| opens(&visit)));
    let waiters: Vec<_> = waiters.into_iter().filter(|(_, list)| list.iter().any(waits)).collect();
    let [(opener, opener_visits)] = openers[..] else { return };
    let openings: Vec<&Visit> = opener_visits.iter().filter(opens).copied().collect();
    let Some(passes) = passes(&openings, &waiters) else { return };
    if waiters.len() > 1 && !meet_at_a_barrier(&waiters, acts) {
        return;
    }
    let fan = waiters.len() as u32;
    let was = format!("condition, {} times by one thread for {fan}", openings.len());
    let gate = objects.add(What::Semaphore { initial: 0, fan }, was);
    for visit in openings {
        acts.replace(*opener, visit.first, visit.last, Some(Sym::SemPost(gate)));
    }
    for ((thread, _), passes) in waiters.iter().zip(passes) {
        for visit in passes {
            acts.replace(*thread, visit.first, visit.last, Some(Sym::SemWait(gate)));
        }
    }
}

/// The visits of each waiter that pass the gate: one per opening and not before it.
fn passes<'a>(
    openings: &[&Visit],
    waiters: &[&(u32, Vec<&'a Visit>)],
) -> Option<Vec<Vec<&'a Visit>>> {
    let of = |list: &Vec<&'a Visit>| -> Option<Vec<&'a Visit>> {
        let mut excess = list.len().checked_sub(openings.len())?;
        let first_ns = openings.first()?.end_ns;
        let mut kept = Vec::new();
        for visit in list {
            if excess > 0 && visit.waits.is_empty() && visit.end_ns < first_ns {
                excess -= 1;
            } else {
                kept.push(*visit);
            }
        }
        let is_after = |(pass, open): (&&Visit, &&Visit)| pass.end_ns >= open.start_ns;
        let is_right = kept.len() == openings.len() && kept.iter().zip(openings).all(is_after);
        is_right.then_some(kept)
    };
    let found: Option<Vec<_>> = waiters.iter().map(|(_, list)| of(list)).collect();
    found.filter(|found| !found.is_empty())
}

/// Whether all of these threads arrive at one barrier.
fn meet_at_a_barrier(waiters: &[&(u32, Vec<&Visit>)], acts: &Acts) -> bool {
    let barriers = |thread: u32| {
        let mut counts: HashMap<u32, usize> = HashMap::new();
        for act in &acts.acts[thread as usize] {
            if let Act::Sym(Sym::Barrier(barrier)) = act {
                *counts.entry(*barrier).or_default() += 1;
            }
        }
        counts
    };
    let first = barriers(waiters[0].0);
    let others: Vec<_> = waiters[1..].iter().map(|(thread, _)| barriers(*thread)).collect();
    let rounds = waiters[0].1.len();
    first.iter().any(|(barrier, count)| {
        *count + 2 >= rounds && others.iter().all(|other| other.get(barrier) == Some(count))
    })
}

/// Barriers that the program asks for: as they are, if all of their threads come equally often.
fn barriers(recording: &Recording, acts: &mut Acts, objects: &mut Objects) {
    let mut arrivals: HashMap<u32, Vec<(u32, u32, u64)>> = HashMap::new();
    let mut regions: HashMap<u32, Vec<(u32, u32, u64)>> = HashMap::new();
    for (thread, recorded) in (0..).zip(&recording.threads) {
        for (at, event) in (0..).zip(&recorded.events) {
            let arrival = (thread, at, event.at_ns.saturating_sub(event.wait_ns));
            match acts.acts[thread as usize][at as usize] {
                Act::Sym(Sym::Barrier(region)) => regions.entry(region).or_default().push(arrival),
                _ if event.kind == Kind::Barrier => {
                    arrivals.entry(event.object).or_default().push(arrival);
                }
                _ => {}
            }
        }
    }
    let mut hashes: Vec<_> = arrivals.keys().copied().collect();
    hashes.sort_unstable();
    for hash in hashes {
        let list = &arrivals[&hash];
        if is_even(list) {
            let object = objects.add(What::Barrier, "barrier");
            for (thread, at, _) in list {
                acts.acts[*thread as usize][*at as usize] = Act::Sym(Sym::Barrier(object));
            }
        } else {
            uneven(list, parties(recording, hash), acts, objects);
        }
    }
    for (_, list) in regions.into_iter().filter(|(_, list)| !is_even(list)) {
        uneven(&list, 0, acts, objects);
    }
}

fn is_even(arrivals: &[(u32, u32, u64)]) -> bool {
    let mut counts: HashMap<u32, usize> = HashMap::new();
    arrivals.iter().for_each(|(thread, _, _)| *counts.entry(*thread).or_default() += 1);
    let first = counts.values().next();
    counts.len() >= 2 && counts.values().all(|count| Some(count) == first)
}

fn parties(recording: &Recording, hash: u32) -> usize {
    let events = recording.threads.iter().flat_map(|thread| &thread.events);
    let mut makers = events.filter(|event| event.kind == Kind::BarrierInit && event.object == hash);
    makers.next().map_or(0, |event| event.aux as usize)
}

/// Not all come equally often: the last one of each round wakes the others.
fn uneven(arrivals: &[(u32, u32, u64)], parties: usize, acts: &mut Acts, objects: &mut Objects) {
    for (thread, at, _) in arrivals {
        acts.acts[*thread as usize][*at as usize] = Act::None;
    }
    if parties < 2 {
        objects.note("A barrier at which threads come unequally often is left out.");
        return;
    }
    let mut sorted = arrivals.to_vec();
    sorted.sort_by_key(|(thread, at, at_ns)| (*at_ns, *thread, *at));
    for round in sorted.chunks_exact(parties) {
        let (last, last_at, _) = round[parties - 1];
        for (thread, at, _) in round.iter().filter(|(thread, _, _)| *thread != last) {
            let semaphore = objects.pair(last, *thread);
            acts.acts[*thread as usize][*at as usize] = Act::Sym(Sym::SemWait(semaphore));
            acts.behind(last, last_at, Sym::SemPost(semaphore));
        }
    }
}
