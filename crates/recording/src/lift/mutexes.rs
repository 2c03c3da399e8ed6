//! Which recorded mutexes are one in the program.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::acts::{Act, Acts};
use super::node::Sym;
use super::objects::{Objects, What};
use crate::Recording;

/// A mutex with at least this share of all locks stands for itself.
const HOT_SHARE: f64 = 0.05;

/// The mutex of the program for each recorded one; none if only one thread uses it.
pub(super) fn objects(
    recording: &Recording,
    acts: &Acts,
    objects: &mut Objects,
) -> HashMap<u32, Option<u32>> {
    let roles = roles(recording, acts);
    let mut users: HashMap<u32, (BTreeSet<u32>, usize)> = HashMap::new();
    for (thread, list) in (0..).zip(&acts.acts) {
        for act in list {
            if let Act::Enter(mutex) = act {
                let (threads, count) = users.entry(*mutex).or_default();
                threads.insert(thread);
                *count += 1;
            }
        }
    }
    let all: usize = users.values().map(|(_, count)| *count).sum();
    let mut found = HashMap::new();
    let mut arrays: BTreeMap<BTreeSet<usize>, Vec<u32>> = BTreeMap::new();
    let mut sorted: Vec<_> = users.into_iter().collect();
    sorted.sort_unstable();
    let mut private = 0;
    for (mutex, (threads, count)) in sorted {
        if threads.len() < 2 {
            found.insert(mutex, None);
            private += 1;
        } else if count as f64 >= HOT_SHARE * all as f64 {
            let object = objects.add(What::Mutex { members: 1 }, "mutex");
            found.insert(mutex, Some(object));
        } else {
            let key = threads.iter().map(|thread| roles[*thread as usize]).collect();
            arrays.entry(key).or_default().push(mutex);
        }
    }
    for members in arrays.into_values() {
        let count = members.len() as u32;
        let was = if count == 1 { "mutex".to_owned() } else { format!("{count} mutexes") };
        let object = objects.add(What::Mutex { members: count }, was);
        found.extend(members.into_iter().map(|mutex| (mutex, Some(object))));
    }
    if private > 0 {
        objects.note(format!("{private} mutexes that only one thread uses are left out."));
    }
    found
}

/// Threads with one creator that use the same objects have one role.
fn roles(recording: &Recording, acts: &Acts) -> Vec<usize> {
    let mut numbers: HashMap<(Option<u32>, Vec<Sym>), usize> = HashMap::new();
    let mut role = |thread: usize| {
        let own = acts.acts[thread].iter().filter_map(|act| match act {
            Act::Sym(Sym::Fork(_)) => Some(Sym::Fork(0)),
            Act::Sym(Sym::Join(_)) => Some(Sym::Join(0)),
            Act::Sym(sym) => Some(*sym),
            _ => None,
        });
        let used: HashSet<Sym> =
            own.chain(acts.extra[thread].iter().map(|(_, sym)| *sym)).collect();
        let mut used: Vec<Sym> = used.into_iter().collect();
        used.sort_by_key(|sym| format!("{sym:?}"));
        let next = numbers.len();
        *numbers.entry((acts.parent[thread], used)).or_insert(next)
    };
    (0..recording.threads.len()).map(&mut role).collect()
}
