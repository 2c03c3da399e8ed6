//! How the threads of a group are started: together, again and again, or one whenever another one has ended.

use std::collections::HashMap;

use super::items::Code;
use super::node::{Node, Step, Sym};
use crate::Recording;

/// Least threads that are started one by one, each when another one has ended.
const LATER_MIN: usize = 3;

/// How threads are started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// With the program, or by one step.
    Once,
    /// So many at a time, when those before have ended.
    Rounds,
    /// So many at first, then one whenever another one has ended.
    Window,
    /// In some other way.
    Mixed,
}

/// Threads of a group that are there at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Team {
    pub way: Way,
    /// Threads that are started together; of `Mixed`: all.
    pub size: usize,
}

impl Team {
    /// Whether its size may be another one.
    pub fn is_free(self) -> bool {
        self.way != Way::Mixed && self.size > 1
    }

    /// Whether `index` tells its threads apart.
    pub fn has_index(self) -> bool {
        matches!(self.way, Way::Once | Way::Rounds)
    }
}

/// The team of a set of equal threads (places in `codes`), and the set in the order in which they were started.
pub(super) fn team(
    set: &[usize],
    recording: &Recording,
    codes: &[Code],
    of_thread: &HashMap<u32, usize>,
) -> (Team, Vec<Vec<usize>>) {
    let group = of_thread[&codes[set[0]].thread];
    let mixed = (Team { way: Way::Mixed, size: set.len() }, vec![set.to_vec()]);
    let place_of: HashMap<u32, usize> =
        set.iter().map(|place| (codes[*place].thread, *place)).collect();
    let child = |step: &Step| match step.sym {
        Sym::Fork(child) if of_thread.get(&child) == Some(&group) => place_of.get(&child).copied(),
        _ => None,
    };
    let mut starters: Vec<Option<u32>> = set.iter().map(|place| codes[*place].parent).collect();
    starters.sort_unstable();
    starters.dedup();
    let parents: Vec<&Code> =
        codes.iter().filter(|code| starters.contains(&Some(code.thread))).collect();
    if parents.is_empty() {
        let way = if starters.len() == 1 { Way::Once } else { Way::Mixed };
        return (Team { way, ..mixed.0 }, mixed.1);
    }
    let mut runs: Vec<Vec<usize>> = Vec::new();
    let mut are_apart = true;
    for parent in &parents {
        let steps = parent.steps.chunk_by(|one, two| child(one).is_some() == child(two).is_some());
        let own = steps.map(|run| run.iter().filter_map(child).collect::<Vec<usize>>());
        let own: Vec<Vec<usize>> = own.filter(|run| !run.is_empty()).collect();
        are_apart &= own.windows(2).all(|pair| ends_before(&pair[0], &pair[1], recording, codes));
        runs.extend(own);
    }
    if runs.iter().map(Vec::len).sum::<usize>() != set.len() {
        return mixed;
    }
    let size = runs[0].len();
    let is_even = runs.iter().all(|run| run.len() == size);
    match (runs.len(), &parents[..]) {
        (1, _) => (Team { way: Way::Once, size }, runs),
        _ if is_even && size > 1 && are_apart => (Team { way: Way::Rounds, size }, runs),
        (_, [parent]) if is_window(&runs, &parent.steps, &|step| child(step).is_some()) => {
            (Team { way: Way::Window, size }, runs)
        }
        _ => mixed,
    }
}

/// Whether all of some threads have ended when the first of the others begins.
fn ends_before(some: &[usize], others: &[usize], recording: &Recording, codes: &[Code]) -> bool {
    let events = |place: &usize| &recording.threads[codes[*place].thread as usize].events;
    let ends = some.iter().filter_map(|place| events(place).last()).map(|event| event.at_ns);
    let begins = others.iter().filter_map(|place| events(place).first()).map(|event| event.at_ns);
    ends.max() <= begins.min()
}

/// Whether some threads are started together, and then each further one behind a wait for an end.
fn is_window(runs: &[Vec<usize>], steps: &[Step], is_start: &dyn Fn(&Step) -> bool) -> bool {
    let (first, later) = (runs[0].len(), &runs[1..]);
    let begin = steps.iter().position(is_start).map_or(steps.len(), |at| at + first);
    let pairs = steps[begin..].chunks(2).take(later.len());
    let is_pair = |pair: &[Step]| match pair {
        [wait, start] => matches!(wait.sym, Sym::SemWait(_)) && is_start(start),
        _ => false,
    };
    first > 1
        && later.len() >= LATER_MIN
        && later.iter().all(|run| run.len() == 1)
        && pairs.clone().count() == later.len()
        && pairs.clone().all(is_pair)
}

/// Whether a loop starts a thread of that group in each of so many rounds.
pub(super) fn is_refilled(nodes: &[Node], group: u32, rounds: usize) -> bool {
    nodes.iter().any(|node| refills(node, group) == Some(rounds as f64))
}

/// The rounds of a loop that starts one thread of that group in each.
pub(super) fn refills(node: &Node, group: u32) -> Option<f64> {
    let Node::Loop { counts, body } = node else { return None };
    let starts = |node: &Node| matches!(node, Node::Step(step) if step.sym == Sym::Fork(group) && step.times == 1);
    let [count] = counts[..] else { return None };
    body.iter().any(starts).then_some(count)
}
