//! What mutexes with conditions are used for: barriers, gates, queues.

use std::collections::HashMap;

use super::Level;
use super::acts::{Act, Acts};
use super::barriers;
use super::latches;
use super::node::Sym;
use super::objects::{Objects, What};
use super::queues;
use super::visits::{Visit, Visits};
use crate::Recording;

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
    barriers::asked_for(recording, acts, objects);
    for (mutex, all) in visits.by_mutex.iter().enumerate() {
        let has_waits = all.iter().any(|visit| !visit.waits.is_empty());
        // Two threads that wait for each other hand something over; those who take jobs may seem to meet so.
        let may_meet = level != Level::Jobs || by_thread(all.iter()).len() > 2;
        let is_barrier =
            has_waits && may_meet && barriers::of_monitor(recording, all, acts, objects);
        if !has_waits || is_barrier || level > Level::Full {
            continue;
        }
        let conditions = visits.conditions_of(mutex as u32);
        let mut is_found = false;
        for condition in &conditions {
            is_found |= gate(*condition, 2, all, acts, objects);
        }
        let is_latch = !is_found && latches::recognise(all, acts, objects);
        if is_found || is_latch || queues::recognise(all, acts, objects) {
            continue;
        }
        for condition in conditions {
            gate(condition, 1, all, acts, objects);
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

/// A gate: one thread broadcasts, at least `least` others pass once for each broadcast.
fn gate(
    condition: u32,
    least: usize,
    all: &[Visit],
    acts: &mut Acts,
    objects: &mut Objects,
) -> bool {
    let threads = by_thread(all.iter());
    let opens = |visit: &&&Visit| {
        visit.broadcasts.contains(&condition) || visit.signals.contains(&condition)
    };
    let waits = |visit: &&Visit| visit.waits.contains(&condition);
    let (openers, waiters): (Vec<_>, Vec<_>) =
        threads.iter().partition(|(_, list)| list.iter().any(|visit| opens(&visit)));
    let waiters: Vec<_> = waiters.into_iter().filter(|(_, list)| list.iter().any(waits)).collect();
    let [(opener, opener_visits)] = openers[..] else { return false };
    let openings: Vec<&Visit> = opener_visits.iter().filter(opens).copied().collect();
    let Some(passes) = passes(&openings, &waiters) else { return false };
    if waiters.len() < least
        || (waiters.len() > 1 && !meet_at_a_barrier(&waiters, openings.len(), acts))
    {
        return false;
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
    true
}

/// The visits of each waiter that pass the gate: between two openings one that waits, or the first one.
fn passes<'a>(
    openings: &[&Visit],
    waiters: &[&(u32, Vec<&'a Visit>)],
) -> Option<Vec<Vec<&'a Visit>>> {
    let of = |list: &Vec<&'a Visit>| -> Option<Vec<&'a Visit>> {
        let ends = openings.iter().skip(1).map(|open| open.start_ns).chain([u64::MAX]);
        let pass = |(open, next_ns): (&&Visit, u64)| {
            let begin = list.partition_point(|visit| visit.end_ns < open.start_ns);
            let end = list.partition_point(|visit| visit.end_ns < next_ns);
            let window = list.get(begin..end)?;
            let waiting = window.iter().find(|visit| !visit.waits.is_empty());
            waiting.or(window.first()).copied()
        };
        let passes: Option<Vec<&Visit>> = openings.iter().zip(ends).map(pass).collect();
        let waits = |visit: &&&Visit| !visit.waits.is_empty();
        let all = list.iter().filter(waits).count();
        passes.filter(|passes| passes.iter().filter(waits).count() == all)
    };
    let found: Option<Vec<_>> = waiters.iter().map(|(_, list)| of(list)).collect();
    found.filter(|found| !found.is_empty())
}

/// Whether all of these threads arrive at one barrier.
fn meet_at_a_barrier(waiters: &[&(u32, Vec<&Visit>)], rounds: usize, acts: &Acts) -> bool {
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
    first.iter().any(|(barrier, count)| {
        *count + 2 >= rounds && others.iter().all(|other| other.get(barrier) == Some(count))
    })
}
