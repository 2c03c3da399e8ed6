//! Ties that all can be kept: nothing waits for what comes later, nor in a circle for what comes at the same time.

use std::collections::{BTreeMap, BTreeSet};

use super::Place;
use crate::Recording;

type Tie = (Place, Place);

/// The ties, from what comes first to what waits for it, without those that can't be kept.
///
/// Clocks of cores may differ a little: what seems to wait for something later waits for nothing. Where clocks are
/// coarse, as in a virtual machine, what ends a wait may seem to be in turn what the wait has ended.
pub(crate) fn in_order(recording: &Recording, ties: Vec<Tie>) -> Vec<Tie> {
    let at_ns =
        |place: &Place| recording.threads[place.thread as usize].events[place.event as usize].at_ns;
    let mut kept = Vec::with_capacity(ties.len());
    let mut at_once: BTreeMap<u64, Vec<Tie>> = BTreeMap::new();
    for tie in ties {
        let (from_ns, to_ns) = (at_ns(&tie.0), at_ns(&tie.1));
        if from_ns < to_ns {
            kept.push(tie);
        } else if from_ns == to_ns {
            at_once.entry(to_ns).or_default().push(tie);
        }
    }
    kept.extend(at_once.into_values().flat_map(without_circles));
    kept
}

/// Ties of one time, without some by which places would wait for one another in a circle. Goes through the places as
/// their threads would; where none can go on, the first one no longer waits.
fn without_circles(ties: Vec<Tie>) -> Vec<Tie> {
    let places: BTreeSet<Place> = ties.iter().flat_map(|(from, to)| [*from, *to]).collect();
    let mut waits: BTreeMap<Place, BTreeSet<Place>> = BTreeMap::new();
    let mut waiters: BTreeMap<Place, Vec<Place>> = BTreeMap::new();
    for (from, to) in ties {
        if waits.entry(to).or_default().insert(from) {
            waiters.entry(from).or_default().push(to);
        }
    }
    let mut kept = Vec::new();
    // The next place of each thread, those first that need not wait.
    let next_of = |thread: u32, event: u32| {
        places.range(Place { thread, event }..).next().copied().filter(|next| next.thread == thread)
    };
    let is_free = |place: &Place, waits: &BTreeMap<Place, BTreeSet<Place>>| {
        waits.get(place).is_none_or(BTreeSet::is_empty)
    };
    let threads: BTreeSet<u32> = places.iter().map(|place| place.thread).collect();
    let fronts = threads.into_iter().filter_map(|thread| next_of(thread, 0));
    let (mut free, mut held): (BTreeSet<Place>, BTreeSet<Place>) =
        fronts.partition(|place| is_free(place, &waits));
    while let Some(place) = free.pop_first().or_else(|| held.pop_first()) {
        waits.remove(&place);
        for waiter in waiters.remove(&place).unwrap_or_default() {
            let Some(left) = waits.get_mut(&waiter) else { continue };
            left.remove(&place);
            kept.push((place, waiter));
            if left.is_empty() && held.remove(&waiter) {
                free.insert(waiter);
            }
        }
        if let Some(next) = next_of(place.thread, place.event + 1) {
            let group = if is_free(&next, &waits) { &mut free } else { &mut held };
            group.insert(next);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(thread: u32, event: u32) -> Place {
        Place { thread, event }
    }

    #[test]
    fn a_circle_of_one_time_is_opened_and_all_else_is_kept() {
        let (a, b, c) = (place(0, 3), place(1, 5), place(2, 0));
        let free = vec![(a, b), (b, c), (place(2, 1), place(0, 4))];
        let mut kept = without_circles(free.clone());
        kept.sort_unstable();
        assert_eq!(kept, free);
        // By way of the order within a thread: a waits for what comes behind what waits for it.
        let circle = vec![(place(1, 6), a), (a, b)];
        assert_eq!(without_circles(circle), [(a, b)]);
        let of_three = without_circles(vec![(a, b), (b, c), (c, a)]);
        assert_eq!(of_three, [(a, b), (b, c)]);
    }
}
