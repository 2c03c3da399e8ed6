//! Leaves out semaphores that hardly make anybody wait, between threads that meet at a barrier anyway.

use std::collections::{HashMap, HashSet};

use super::acts::{Act, Acts};
use super::node::Sym;
use super::objects::{Objects, What};
use crate::Recording;

/// Most of the threads' time that waiting at all such semaphores may take.
const WAIT_SHARE_MAX: f64 = 0.05;

/// Who uses a semaphore, and how long waiting at it took.
#[derive(Default)]
struct Use {
    threads: HashSet<u32>,
    wait_ns: u64,
}

/// Leaves them out: threads that differ only by them become equal.
pub(super) fn drop_if_it_unites(recording: &Recording, acts: &mut Acts, objects: &mut Objects) {
    let (uses, barriers) = survey(recording, acts);
    let is_semaphore =
        |object: u32| matches!(objects.list[object as usize].what, What::Semaphore { fan: 1, .. });
    let first_ns = recording.threads.iter().filter_map(|thread| thread.events.first());
    let first_ns = first_ns.map(|event| event.at_ns).min().unwrap_or(0);
    let last_ns = recording.threads.iter().filter_map(|thread| thread.events.last());
    let wall_ns = last_ns.map(|event| event.at_ns).max().unwrap_or(0).saturating_sub(first_ns);
    let meets = |one: &Use| barriers.values().any(|users| one.threads.is_subset(users));
    let minor: HashMap<u32, &Use> = uses
        .iter()
        .filter(|(object, one)| is_semaphore(**object) && meets(one))
        .map(|(object, one)| (*object, one))
        .collect();
    let threads: HashSet<u32> = minor.values().flat_map(|one| one.threads.clone()).collect();
    let wait_ns = minor.values().map(|one| one.wait_ns).fold(0, u64::saturating_add);
    let share = wait_ns as f64 / (wall_ns as f64 * threads.len() as f64).max(1.0);
    if minor.is_empty() {
        return;
    }
    let percent = share * 100.0;
    let count = minor.len();
    if share > WAIT_SHARE_MAX {
        objects.note(format!(
            "{count} semaphores of threads that meet at a barrier stay: {percent:.1} % of their time is waiting."
        ));
        return;
    }
    let is_out =
        |sym: &Sym| matches!(sym, Sym::SemWait(one) | Sym::SemPost(one) if minor.contains_key(one));
    for list in &mut acts.acts {
        for act in list.iter_mut().filter(|act| matches!(act, Act::Sym(sym) if is_out(sym))) {
            *act = Act::None;
        }
    }
    acts.extra.iter_mut().for_each(|list| list.retain(|(_, sym)| !is_out(sym)));
    objects.note(format!(
        "{count} semaphores of threads that meet at a barrier are left out: {percent:.1} % of their time is waiting."
    ));
}

/// Users of semaphores and of barriers.
fn survey(recording: &Recording, acts: &Acts) -> (HashMap<u32, Use>, HashMap<u32, HashSet<u32>>) {
    let mut uses: HashMap<u32, Use> = HashMap::new();
    let mut barriers: HashMap<u32, HashSet<u32>> = HashMap::new();
    for (thread, recorded) in recording.threads.iter().enumerate() {
        for (at, event) in recorded.events.iter().enumerate() {
            match acts.sym(thread, at) {
                Some(Sym::SemWait(one)) => {
                    let one = uses.entry(one).or_default();
                    one.threads.insert(thread as u32);
                    one.wait_ns += event.wait_ns;
                }
                Some(Sym::SemPost(one)) => {
                    uses.entry(one).or_default().threads.insert(thread as u32);
                }
                Some(Sym::Barrier(one)) => {
                    barriers.entry(one).or_default().insert(thread as u32);
                }
                _ => {}
            }
        }
        for (_, sym) in &acts.extra[thread] {
            if let Sym::SemPost(one) = sym {
                uses.entry(*one).or_default().threads.insert(thread as u32);
            }
        }
    }
    (uses, barriers)
}
