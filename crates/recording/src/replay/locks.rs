//! Which mutexes threads may compete for anew, and which keep the recorded order.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::Place;
use super::build::{Action, Plan};

/// Replaces by ties the mutexes that a thread holds while it waits for others, and those that are taken in different
/// orders: their acquisitions keep the recorded order. Mutexes of one thread only vanish.
pub(super) fn keep_order(plan: &mut Plan, notes: &mut Vec<String>) {
    let waits = plan.ties.iter().map(|(from, to)| (*to, Action::WaitFor { thread: from.thread }));
    let mut steps: Vec<(Place, Action)> = waits.chain(plan.actions.iter().copied()).collect();
    steps.sort_unstable();
    let mut kept: HashSet<u32> = HashSet::new();
    loop {
        let before = kept.len();
        let orders = walk(&steps, &mut kept);
        kept.extend(cyclic(&orders));
        if kept.len() == before {
            break;
        }
    }
    if kept.is_empty() {
        return;
    }
    let count = kept.len();
    let sequences = sequences(plan, &kept);
    for sequence in sequences.into_values() {
        for pair in sequence.windows(2) {
            plan.tie(pair[0].1, pair[1].0);
        }
    }
    notes.push(format!(
        "{count} mutexes that threads hold while they wait, or take in different orders, keep the recorded order"
    ));
}

/// Marks mutexes that are held across a wait, and tells which is taken while which is held.
fn walk(steps: &[(Place, Action)], kept: &mut HashSet<u32>) -> BTreeMap<u32, HashSet<u32>> {
    let mut orders: BTreeMap<u32, HashSet<u32>> = BTreeMap::new();
    let mut held: Vec<u32> = Vec::new();
    let mut thread = None;
    for (place, action) in steps {
        if thread != Some(place.thread) {
            held.clear();
            thread = Some(place.thread);
        }
        match *action {
            Action::Lock { mutex } => {
                if kept.contains(&mutex) {
                    kept.extend(&held);
                }
                for outer in &held {
                    orders.entry(*outer).or_default().insert(mutex);
                }
                held.push(mutex);
            }
            Action::Unlock { mutex } | Action::Release { mutex } => {
                held.retain(|other| *other != mutex);
            }
            Action::WaitFor { .. } | Action::Arrive { .. } | Action::ArriveAfter { .. } => {
                kept.extend(&held);
            }
            _ => {}
        }
    }
    orders
}

/// The mutexes that are part of, or between, cycles of "taken while held".
fn cyclic(orders: &BTreeMap<u32, HashSet<u32>>) -> Vec<u32> {
    let mut incoming: HashMap<u32, usize> = HashMap::new();
    for inner in orders.values().flatten() {
        *incoming.entry(*inner).or_default() += 1;
    }
    let mut free: Vec<u32> =
        orders.keys().filter(|outer| !incoming.contains_key(outer)).copied().collect();
    let mut left: BTreeMap<u32, &HashSet<u32>> = orders.iter().map(|(k, v)| (*k, v)).collect();
    while let Some(outer) = free.pop() {
        for inner in left.remove(&outer).into_iter().flatten() {
            let count = incoming.entry(*inner).or_default();
            *count -= 1;
            if *count == 0 {
                free.push(*inner);
            }
        }
    }
    left.into_keys().collect()
}

/// Takes the actions of these mutexes out. Returns each one's acquisitions in their recorded order: where it was taken,
/// and where it was released.
fn sequences(plan: &mut Plan, kept: &HashSet<u32>) -> BTreeMap<u32, Vec<(Place, Place)>> {
    let mut found: BTreeMap<u32, Vec<(u64, Place, Place)>> = BTreeMap::new();
    let mut open: HashMap<(u32, u32), Place> = HashMap::new();
    let times = std::mem::take(&mut plan.lock_times);
    plan.actions.retain(|(place, action)| match *action {
        Action::Lock { mutex } if kept.contains(&mutex) => {
            open.insert((place.thread, mutex), *place);
            false
        }
        Action::Unlock { mutex } | Action::Release { mutex } if kept.contains(&mutex) => {
            if let Some(lock) = open.remove(&(place.thread, mutex)) {
                let at_ns = times.get(&lock).copied().unwrap_or(0);
                found.entry(mutex).or_default().push((at_ns, lock, *place));
            }
            false
        }
        _ => true,
    });
    let in_order = |(mutex, mut acquisitions): (u32, Vec<(u64, Place, Place)>)| {
        acquisitions.sort_unstable();
        let places = acquisitions.into_iter().map(|(_, lock, unlock)| (lock, unlock));
        (mutex, places.collect())
    };
    found.into_iter().map(in_order).collect()
}
