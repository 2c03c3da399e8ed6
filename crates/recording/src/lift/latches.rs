//! Latches: a thread waits until others have come a number of times; the last one to come tells it.

use super::acts::Acts;
use super::monitors::by_thread;
use super::node::Sym;
use super::objects::{Objects, What};
use super::visits::Visit;

/// Recognises a latch behind a mutex: its visits post a semaphore, its waiter takes as many.
pub(super) fn recognise(all: &[Visit], acts: &mut Acts, objects: &mut Objects) -> bool {
    let threads = by_thread(all.iter());
    let waits = |visit: &&&Visit| !visit.waits.is_empty();
    let waiters = threads.iter().filter(|(_, list)| list.iter().any(|visit| waits(&visit)));
    let waiters: Vec<_> = waiters.collect();
    let [(waiter, own)] = waiters[..] else { return false };
    let others = threads.iter().filter(|(thread, _)| thread != waiter);
    let mut comers: Vec<&Visit> = others.flat_map(|(_, list)| list.iter().copied()).collect();
    comers.sort_by_key(|visit| (visit.end_ns, visit.thread));
    let waiting: Vec<&Visit> = own.iter().filter(waits).copied().collect();
    for passes in [waiting, own.clone()] {
        let Some(count) = comers_per_pass(&passes, &comers) else { continue };
        let was = format!("mutex and condition, {} times {count} threads or tasks", passes.len());
        let object = objects.add(What::Semaphore { initial: 0, fan: 1 }, was);
        for visit in &comers {
            acts.replace(visit.thread, visit.first, visit.last, Some(Sym::SemPost(object)));
        }
        for visit in passes {
            acts.replace(*waiter, visit.first, visit.last, Some(Sym::SemWait(object)));
            for _ in 1..count {
                acts.behind(*waiter, visit.last, Sym::SemWait(object));
            }
        }
        return true;
    }
    false
}

/// How many come before each pass, if it is always the same number, and the last of them tells it.
fn comers_per_pass(passes: &[&Visit], comers: &[&Visit]) -> Option<usize> {
    let mut rest = comers;
    let mut count = None;
    for pass in passes {
        let here = rest.partition_point(|visit| visit.end_ns <= pass.end_ns);
        let (come, later) = rest.split_at(here);
        rest = later;
        let tells = |visit: &&Visit| !visit.signals.is_empty() || !visit.broadcasts.is_empty();
        let is_told = pass.waits.is_empty() || come.last().is_some_and(tells);
        let first = *count.get_or_insert(come.len());
        // If each of several tells, they may be items that are taken one by one.
        let is_one_teller = come.iter().filter(|visit| tells(visit)).count() <= 1;
        if come.len() != first || first < 2 || !is_told || !is_one_teller {
            return None;
        }
    }
    count.filter(|_| rest.is_empty())
}
