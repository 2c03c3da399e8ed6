//! Queues made of a mutex and conditions.

use std::collections::HashMap;

use super::acts::Acts;
use super::monitors::{ByThread, by_thread};
use super::node::Sym;
use super::objects::{Objects, What};
use super::visits::Visit;

/// The capacity of a queue whose producers never waited.
const UNBOUNDED: u32 = 1 << 20;

/// Threads that put in, and threads that take out.
struct Sides<'a> {
    producers: ByThread<'a>,
    consumers: ByThread<'a>,
    /// The condition that there is something.
    filled: u32,
}

/// Recognises a queue behind a mutex.
pub(super) fn recognise(all: &[Visit], acts: &mut Acts, objects: &mut Objects) -> bool {
    let Some(sides) = sides(all) else { return false };
    let Some((closing, ending)) = ends(&sides) else { return false };
    let pushes = without_last(&sides.producers, &closing);
    let pops = without_last(&sides.consumers, &ending);
    let (pushed, popped) = (pushes.len(), pops.len());
    // Items that are taken by the batch, or put in by the batch, are counted as the batches of whom takes.
    let all_pass = |(_, list): &(u32, Vec<&Visit>)| list.len() * 10 >= pushed * 9;
    let is_gate = sides.consumers.len() > 1 && sides.consumers.iter().all(all_pass);
    if popped == 0 || pushed == 0 || is_gate {
        return false;
    }
    let waits = |visit: &Visit| visit.waits.iter().any(|one| *one != sides.filled);
    let has_waited = pushes.iter().any(|visit| waits(visit));
    let capacity = if has_waited { fullest(&pushes, &pops) } else { UNBOUNDED };
    let was = format!("mutex and conditions, {pushed} put in, {popped} taken out");
    let queue = objects.add(What::Queue { capacity }, was);
    if pushed != popped {
        objects.note(format!(
            "A queue has {pushed} pushes but {popped} takes: an item stands for what is taken or put in at once."
        ));
    }
    mark(&sides.producers, &closing, acts, Sym::Push(queue), Sym::Close(queue));
    mark(&sides.consumers, &ending, acts, Sym::Pop(queue), Sym::PopEnd(queue));
    true
}

/// Who puts in and who takes out: consumers wait for a condition that only producers signal.
fn sides(all: &[Visit]) -> Option<Sides<'_>> {
    let threads = by_thread(all.iter());
    let mut conditions: Vec<u32> = all.iter().flat_map(|visit| visit.waits.clone()).collect();
    conditions.sort_unstable();
    conditions.dedup();
    let found = conditions.iter().filter_map(|filled| {
        let signals =
            |visit: &Visit| visit.signals.contains(filled) || visit.broadcasts.contains(filled);
        let waits = |visit: &&Visit| visit.waits.contains(filled);
        // Consumers may tell each other the end, with their last visit, or with the one that took the last item.
        let puts_in = |(_, list): &(u32, Vec<&Visit>)| {
            let (last, others) = list.split_last().expect("a thread has visits");
            let signalled = others.iter().filter(|visit| signals(visit)).count();
            signalled * 4 >= others.len() && signalled > 0
                || (others.is_empty() && last.signals.contains(filled))
        };
        let (mut producers, others): (ByThread, ByThread) =
            threads.iter().cloned().partition(|thread| puts_in(thread));
        let (idle, others) = only_close(&producers, others, *filled);
        producers.extend(idle);
        producers.sort_by_key(|(thread, _)| *thread);
        let is_producer_only = producers.iter().all(|(_, list)| !list.iter().any(waits));
        let has_consumer = others.iter().any(|(_, list)| list.iter().any(waits));
        // Producers signal when they put in, so often; a rare signal is a message of another kind.
        let count = |side: &ByThread| side.iter().map(|(_, list)| list.len()).sum::<usize>();
        let put_in = producers.iter().flat_map(|(_, list)| list);
        let signalled = put_in.filter(|visit| signals(visit)).count();
        let is_often = signalled * 4 >= count(&producers);
        let is_right = is_producer_only && has_consumer && is_often && !producers.is_empty();
        let balance = count(&producers).abs_diff(count(&others));
        is_right.then_some((balance, Sides { producers, consumers: others, filled: *filled }))
    });
    // Of the two conditions of a bounded queue the one whose signallers come first makes items.
    let first_ns = |sides: &Sides| {
        let firsts = sides.producers.iter().filter_map(|(_, list)| list.first());
        firsts.map(|visit| visit.end_ns).min()
    };
    let mut found: Vec<_> = found.collect();
    found.sort_by_key(|(balance, sides)| (first_change_ns(sides), first_ns(sides), *balance));
    found.into_iter().map(|(_, sides)| sides).next()
}

/// Parts threads that had nothing to put in from consumers. They came once: before all producers had gone, or as the
/// very last one, who tells the consumers.
fn only_close<'a>(
    producers: &ByThread<'a>,
    others: ByThread<'a>,
    filled: u32,
) -> (ByThread<'a>, ByThread<'a>) {
    let waits = |visit: &&Visit| visit.waits.contains(&filled);
    let lasts = producers.iter().filter_map(|(_, list)| list.last());
    let closed_ns = lasts.map(|visit| visit.end_ns).max().unwrap_or(0);
    let consumers = others.iter().filter(|(_, list)| list.iter().any(waits));
    let told = consumers.filter_map(|(_, list)| list.last());
    let told_ns = told.map(|visit| visit.end_ns).min().unwrap_or(0);
    let only_closes = |(_, list): &(u32, Vec<&Visit>)| {
        let tells = list[0].broadcasts.contains(&filled) && list[0].end_ns <= told_ns;
        list.len() == 1 && !list.iter().any(waits) && (list[0].end_ns < closed_ns || tells)
    };
    others.into_iter().partition(only_closes)
}

/// When the first consumer got something: after the first producer, if the sides are right.
fn first_change_ns(sides: &Sides) -> bool {
    let first = |side: &ByThread| {
        let ends = side.iter().filter_map(|(_, list)| list.first().map(|visit| visit.end_ns));
        ends.min()
    };
    first(&sides.producers) > first(&sides.consumers)
}

/// Threads whose last visit is no item: producers that close, consumers that are told the end.
fn ends(sides: &Sides) -> Option<(Vec<bool>, Vec<bool>)> {
    let count = |side: &ByThread| side.iter().map(|(_, list)| list.len()).sum::<usize>();
    let (pushes, pops) = (count(&sides.producers), count(&sides.consumers));
    let last_push_ns = sides.producers.iter().filter_map(|(_, list)| list.last());
    let last_push_ns = last_push_ns.map(|visit| visit.end_ns).max()?;
    let closes = |(_, list): &(u32, Vec<&Visit>)| {
        list.last().is_some_and(|visit| visit.broadcasts.contains(&sides.filled))
    };
    let told = |(_, list): &(u32, Vec<&Visit>)| {
        list.last().is_some_and(|visit| visit.end_ns >= last_push_ns)
    };
    let all = |side: &ByThread, is: bool| vec![is; side.len()];
    let hypotheses = [
        (all(&sides.producers, true), all(&sides.consumers, true)),
        (all(&sides.producers, false), all(&sides.consumers, true)),
        (sides.producers.iter().map(closes).collect(), all(&sides.consumers, true)),
        (sides.producers.iter().map(closes).collect(), sides.consumers.iter().map(told).collect()),
        (all(&sides.producers, false), all(&sides.consumers, false)),
    ];
    let number = |flags: &Vec<bool>| flags.iter().filter(|is| **is).count();
    let difference = |(closing, ending): &(Vec<bool>, Vec<bool>)| {
        (pushes - number(closing)).abs_diff(pops - number(ending))
    };
    hypotheses.into_iter().min_by_key(difference)
}

fn without_last<'a>(side: &ByThread<'a>, is_last_out: &[bool]) -> Vec<&'a Visit> {
    let lists = side
        .iter()
        .zip(is_last_out)
        .flat_map(|((_, list), is_out)| list[..list.len() - usize::from(*is_out)].iter().copied());
    lists.collect()
}

/// Most items that the queue held.
fn fullest(pushes: &[&Visit], pops: &[&Visit]) -> u32 {
    let mut changes: HashMap<u64, i64> = HashMap::new();
    pushes.iter().for_each(|visit| *changes.entry(visit.end_ns).or_default() += 1);
    pops.iter().for_each(|visit| *changes.entry(visit.end_ns).or_default() -= 1);
    let mut changes: Vec<_> = changes.into_iter().collect();
    changes.sort_unstable();
    let mut held = 0;
    let mut most = 1;
    for (_, change) in changes {
        held += change;
        most = most.max(held);
    }
    most.min(i64::from(UNBOUNDED)) as u32
}

fn mark(side: &ByThread, is_last_out: &[bool], acts: &mut Acts, sym: Sym, end: Sym) {
    for ((thread, list), is_out) in side.iter().zip(is_last_out) {
        for (at, visit) in list.iter().enumerate() {
            let is_end = *is_out && at + 1 == list.len();
            let sym = if is_end { end } else { sym };
            acts.replace(*thread, visit.first, visit.last, Some(sym));
        }
    }
}
