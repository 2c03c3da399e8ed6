//! Barriers: those that the program asks for, and those made of a mutex and a condition.

use std::collections::HashMap;

use super::acts::{Act, Acts};
use super::monitors::{ByThread, by_thread};
use super::node::Sym;
use super::objects::{Objects, What};
use super::visits::Visit;
use crate::{Kind, Recording};

/// Least share of threads and rounds in which a thread is seen at a barrier that only its broadcasts tell.
const SEEN_SHARE_MIN: f64 = 0.9;
/// Least rounds of such a barrier.
const ROUNDS_MIN: usize = 8;

/// Parts of the visits, of which each has threads of its own and a time of its own.
fn one_after_the_other(all: &[Visit]) -> Vec<Vec<Visit>> {
    let threads = by_thread(all.iter());
    let mut spans: Vec<(u64, u64, usize)> = Vec::new();
    for (place, (_, list)) in threads.iter().enumerate() {
        spans.push((list[0].start_ns, list[list.len() - 1].end_ns, place));
    }
    spans.sort_unstable();
    let mut parts: Vec<(u64, Vec<usize>)> = Vec::new();
    for (start_ns, end_ns, place) in spans {
        match parts.last_mut().filter(|(until_ns, _)| start_ns <= *until_ns) {
            Some((until_ns, places)) => {
                *until_ns = end_ns.max(*until_ns);
                places.push(place);
            }
            None => parts.push((end_ns, vec![place])),
        }
    }
    let visits = |mut places: Vec<usize>| {
        places.sort_unstable();
        let lists = places.into_iter().flat_map(|place| threads[place].1.iter());
        lists.map(|visit| (*visit).clone()).collect()
    };
    parts.into_iter().map(|(_, places)| visits(places)).collect()
}

/// Visits that a thread goes on with by trying are one.
fn merged(all: &[Visit]) -> Vec<Visit> {
    let mut found: Vec<Visit> = Vec::with_capacity(all.len());
    for visit in all {
        match found.last_mut().filter(|last| visit.is_again && last.thread == visit.thread) {
            Some(last) => {
                last.last = visit.last;
                last.end_ns = visit.end_ns;
                last.is_again = true;
                last.waits.extend(&visit.waits);
                last.signals.extend(&visit.signals);
                last.broadcasts.extend(&visit.broadcasts);
            }
            None => found.push(Visit { is_again: false, ..visit.clone() }),
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
            last <= first && (threads.iter().any(is_waited) || has_spun(threads, round))
        })
}

fn has_spun(threads: &ByThread, round: usize) -> bool {
    threads.iter().any(|(_, list)| list[round].is_again)
}

/// Recognises a barrier made of a mutex and conditions.
pub(super) fn of_monitor(
    recording: &Recording,
    all: &[Visit],
    acts: &mut Acts,
    objects: &mut Objects,
) -> bool {
    let parts = one_after_the_other(all);
    if parts.len() > 1 && parts.iter().all(|part| part.iter().any(|visit| !visit.waits.is_empty()))
    {
        // An object may lie where another one lay before.
        let each = parts.iter().map(|part| of_monitor(recording, part, acts, objects));
        return each.collect::<Vec<bool>>().into_iter().all(|is_one| is_one);
    }
    let merged = merged(all);
    let threads = by_thread(merged.iter());
    if is_barrier(&threads) {
        make_barrier(recording, &threads, acts, objects);
        return true;
    }
    let is_arrival = |visit: &&Visit| !visit.waits.is_empty() || !visit.broadcasts.is_empty();
    let threads = by_thread(merged.iter().filter(is_arrival));
    if is_barrier(&threads) {
        make_barrier(recording, &threads, acts, objects);
        return true;
    }
    by_broadcasts(recording, all, acts, objects)
}

fn make_barrier(recording: &Recording, threads: &ByThread, acts: &mut Acts, objects: &mut Objects) {
    let rounds = threads[0].1.len();
    let was = format!("mutex and condition, {rounds} rounds of {} threads", threads.len());
    let object = objects.add(What::Barrier, was);
    for (thread, list) in threads {
        for visit in list {
            acts.replace(*thread, visit.first, visit.last, Some(Sym::Barrier(object)));
        }
    }
    idle_spins(recording, threads, acts);
}

/// A barrier of which some visits were not recorded: all threads wait and broadcast, and at each broadcast, or each
/// second one (all have come, all have gone), nearly all of them are there.
fn by_broadcasts(
    recording: &Recording,
    all: &[Visit],
    acts: &mut Acts,
    objects: &mut Objects,
) -> bool {
    let threads = by_thread(all.iter());
    let does_both = |(_, list): &(u32, Vec<&Visit>)| {
        list.iter().any(|visit| !visit.waits.is_empty())
            && list.iter().any(|visit| !visit.broadcasts.is_empty())
    };
    if threads.len() < 2 || !threads.iter().all(does_both) {
        return false;
    }
    let mut times: Vec<u64> = Vec::new();
    for visit in all.iter().filter(|visit| !visit.broadcasts.is_empty()) {
        let events = &recording.threads[visit.thread as usize].events;
        let inside = &events[visit.first as usize..=visit.last as usize];
        let broadcasts = inside.iter().filter(|event| event.kind == Kind::Broadcast);
        times.extend(broadcasts.map(|event| event.at_ns));
    }
    times.sort_unstable();
    for step in [1, 2] {
        let rounds: Vec<u64> = times.iter().step_by(step).copied().collect();
        let seen: usize = threads.iter().map(|(_, list)| seen(list, &rounds)).sum();
        let is_seen = seen as f64 >= SEEN_SHARE_MIN * (rounds.len() * threads.len()) as f64;
        if is_seen && rounds.len() >= ROUNDS_MIN {
            place_rounds(recording, &threads, &rounds, acts, objects);
            return true;
        }
    }
    false
}

/// The visit during which that happened.
fn during<'a>(list: &[&'a Visit], at_ns: u64) -> Option<&'a Visit> {
    let next = list.partition_point(|visit| visit.start_ns <= at_ns);
    let visit = list[..next].last()?;
    (visit.end_ns >= at_ns).then_some(*visit)
}

fn seen(list: &[&Visit], rounds: &[u64]) -> usize {
    let mut last = u32::MAX;
    let mut count = 0;
    for at_ns in rounds {
        // One visit is there in one round only.
        if let Some(visit) = during(list, *at_ns).filter(|visit| visit.first != last) {
            last = visit.first;
            count += 1;
        }
    }
    count
}

fn place_rounds(
    recording: &Recording,
    threads: &ByThread,
    rounds: &[u64],
    acts: &mut Acts,
    objects: &mut Objects,
) {
    let was = format!("mutex and condition, {} rounds of {} threads", rounds.len(), threads.len());
    let object = objects.add(What::Barrier, was);
    for (thread, list) in threads {
        let events = &recording.threads[*thread as usize].events;
        for visit in list {
            acts.replace(*thread, visit.first, visit.last, None);
        }
        for at_ns in rounds {
            let next = events.partition_point(|event| event.at_ns < *at_ns).min(events.len() - 1);
            let place = during(list, *at_ns).map_or(next as u32, |visit| visit.last);
            match &mut acts.acts[*thread as usize][place as usize] {
                act @ Act::None => *act = Act::Sym(Sym::Barrier(object)),
                _ => acts.behind(*thread, place, Sym::Barrier(object)),
            }
        }
    }
    idle_spins(recording, threads, acts);
}

/// Whoever spins takes the mutex, or tries to, again and again. A round of spinning is as long as the short ones of the
/// stretches before such a try; what is longer is work.
fn idle_spins(recording: &Recording, threads: &ByThread, acts: &mut Acts) {
    let mut stretches: [Vec<(u64, usize, usize)>; 2] = [Vec::new(), Vec::new()];
    for (thread, list) in threads {
        let thread = *thread as usize;
        let events = &recording.threads[thread].events;
        let mutex = events[list[0].first as usize].object;
        for at in 1..events.len() {
            let (one, next) = (&events[at - 1], &events[at]);
            let is_own = one.object == mutex && next.object == mutex;
            let is_try = next.kind == Kind::TryFail || (next.kind == Kind::Lock && next.aux == 2);
            if is_own && is_try && matches!(one.kind, Kind::TryFail | Kind::Unlock) {
                let after_failure = usize::from(one.kind == Kind::TryFail);
                stretches[after_failure].push((next.work_ns, thread, at));
            }
        }
    }
    for mut list in stretches {
        list.sort_unstable();
        let Some((round_ns, _, _)) = list.get(list.len() / 10).copied() else { continue };
        list.iter().for_each(|(_, thread, at)| acts.idle_ns[*thread][*at] = round_ns);
    }
}

/// Barriers that the program asks for: as they are, if all of their threads come equally often.
pub(super) fn asked_for(recording: &Recording, acts: &mut Acts, objects: &mut Objects) {
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
        for list in in_turn(&arrivals[&hash]) {
            if is_even(&list) {
                let object = objects.add(What::Barrier, "barrier");
                for (thread, at, _) in list {
                    acts.acts[thread as usize][at as usize] = Act::Sym(Sym::Barrier(object));
                }
            } else {
                uneven(&list, parties(recording, hash), acts, objects);
            }
        }
    }
    for (_, list) in regions.into_iter().filter(|(_, list)| !is_even(list)) {
        uneven(&list, 0, acts, objects);
    }
}

/// Arrivals (thread, event, ns) at barriers that lay at one place one after the other, each with threads of its own.
fn in_turn(arrivals: &[(u32, u32, u64)]) -> Vec<Vec<(u32, u32, u64)>> {
    let mut spans: HashMap<u32, (u64, u64)> = HashMap::new();
    for (thread, _, at_ns) in arrivals {
        let span = spans.entry(*thread).or_insert((*at_ns, *at_ns));
        *span = (span.0.min(*at_ns), span.1.max(*at_ns));
    }
    let mut sorted: Vec<_> = spans.into_iter().map(|(thread, span)| (span, thread)).collect();
    sorted.sort_unstable();
    let mut part_of: HashMap<u32, usize> = HashMap::new();
    let (mut part, mut until_ns) = (0, 0);
    for ((from_ns, to_ns), thread) in sorted {
        part += usize::from(!part_of.is_empty() && from_ns > until_ns);
        until_ns = until_ns.max(to_ns);
        part_of.insert(thread, part);
    }
    let mut found = vec![Vec::new(); part + 1];
    arrivals.iter().for_each(|arrival| found[part_of[&arrival.0]].push(*arrival));
    found
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
