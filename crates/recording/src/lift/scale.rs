//! What other numbers of threads and other sizes of the input change.

use std::collections::{HashMap, HashSet};

use super::groups::{Group, Groups};
use super::node::{Node, Step, Sym};
use super::teams::Way;
use super::{Options, Scaling, phases};

/// A loop of fewer rounds is no matter of the size of the input.
pub(super) const SCALED_ROUNDS_MIN: f64 = 3.0;

/// Loops with less of the work are no matter of the size of the input.
const LOOPED_SHARE_MIN: f64 = 0.3;

/// Of a smaller share of the work that n concerns, it is told.
const N_SHARE_MIN: f64 = 0.5;

/// What the parameter `scale` multiplies.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Scale {
    /// Items of queues and pools.
    Items,
    /// Rounds of outermost loops.
    Rounds,
    /// Works.
    Work,
}

/// What `scale` multiplies in this program.
pub(super) fn scale(groups: &Groups) -> Scale {
    let mut has_items = false;
    for node in groups.list.iter().flat_map(|group| &group.nodes) {
        node.each_step(&mut |step| {
            has_items |= matches!(step.sym, Sym::Each(_) | Sym::Dynamic(_));
        });
    }
    // Whoever meets others must do so in the same rounds.
    let mut loops = groups.list.iter().map(long_loops).filter(|(_, meets)| *meets);
    let first = loops.next();
    let is_same = first.as_ref().is_some_and(|first| loops.all(|other| other == *first));
    let has_rounds = first.is_some_and(|(loops, _)| is_same && !loops.is_empty())
        && looped_share(groups) >= LOOPED_SHARE_MIN;
    match (has_items, has_rounds) {
        (true, _) => Scale::Items,
        (_, true) => Scale::Rounds,
        _ => Scale::Work,
    }
}

/// Share of the work that is done in outermost loops with many rounds.
fn looped_share(groups: &Groups) -> f64 {
    let nodes = || groups.list.iter().flat_map(|group| &group.nodes);
    let is_looped = |node: &&Node| matches!(node, Node::Loop { counts, .. } if is_long(counts));
    let all: f64 = nodes().map(Node::own_work).sum();
    nodes().filter(is_looped).map(Node::own_work).sum::<f64>() / all.max(1.0)
}

/// Outermost loops with many rounds: rounds and what is met in each; and whether the group meets others at all.
fn long_loops(group: &Group) -> (Vec<(f64, Vec<u32>)>, bool) {
    let mut meets = false;
    let mut loops = Vec::new();
    let members = group.members.len();
    let nodes = group.nodes.iter().cloned();
    for node in nodes.flat_map(|node| phases::cut(node, members, group.work_ns)) {
        let mut objects = Vec::new();
        node.each_step(&mut |step| match step.sym {
            Sym::Barrier(one) | Sym::SemWait(one) | Sym::SemPost(one) => objects.push(one),
            _ => {}
        });
        meets |= !objects.is_empty();
        if let Node::Loop { counts, .. } = &node {
            if is_long(counts) {
                loops.push((counts[0], objects));
            }
        }
    }
    (loops, meets)
}

fn is_long(counts: &[f64]) -> bool {
    counts.iter().all(|count| *count >= SCALED_ROUNDS_MIN && Some(count) == counts.first())
}

/// What is assumed of other numbers of threads and sizes, a sentence each.
pub(super) fn assumptions(groups: &Groups, options: &Options, scale: Scale) -> Vec<String> {
    let mut notes = Vec::new();
    if groups.n > 1 {
        let n = groups.n;
        let (windows, teams): (Vec<&Group>, Vec<&Group>) = groups
            .list
            .iter()
            .filter(|group| group.is_n)
            .partition(|group| group.team.way == Way::Window);
        if !windows.is_empty() {
            notes.push(format!("n = {n}: so many threads are there at a time; each does as much as in the recording."));
        }
        if !teams.is_empty() {
            notes.push(match options.scaling {
                Scaling::FixedTotal => format!(
                    "n = {n}: what each of n threads does outside of items is divided by n, items stay as long as they \
                     are."
                ),
                Scaling::PerThread => {
                    format!("n = {n}: each of n threads does as much as in the recording.")
                }
            });
        }
        let work = |groups: &mut dyn Iterator<Item = &Group>| {
            groups.map(|group| group.work_ns).sum::<f64>()
        };
        let share = work(&mut groups.list.iter().filter(|group| group.is_n))
            / work(&mut groups.list.iter()).max(1.0);
        if share < N_SHARE_MIN {
            notes.push(format!(
                "The threads whose number is n do {:.0} % of the work.",
                100.0 * share
            ));
        }
    }
    notes.push(match scale {
        Scale::Items => "scale multiplies the number of items of queues and pools.".to_owned(),
        Scale::Rounds => "scale multiplies the rounds of outermost loops.".to_owned(),
        Scale::Work => "scale multiplies the work of threads.".to_owned(),
    });
    notes
}

/// Whether a loop puts items into queues and waits for nothing else.
pub(super) fn makes_items(node: &Node) -> bool {
    let (mut pushes, mut meets) = (false, false);
    node.each_step(&mut |step| {
        pushes |= matches!(step.sym, Sym::Push(_));
        meets |= matches!(step.sym, Sym::Barrier(_) | Sym::SemWait(_));
    });
    pushes && !meets
}

/// Semaphores that are posted once for each item of a queue or a pool, and by nobody else.
pub(super) fn posted_by_items(groups: &Groups) -> HashSet<u32> {
    let mut inside: HashMap<u32, usize> = HashMap::new();
    let mut all: HashMap<u32, usize> = HashMap::new();
    for node in groups.list.iter().flat_map(|group| &group.nodes) {
        node.each_step(&mut |step| {
            if let Sym::SemPost(one) = step.sym {
                *all.entry(one).or_default() += 1;
            }
            if !matches!(step.sym, Sym::Each(_) | Sym::Dynamic(_)) {
                return;
            }
            for node in &step.body {
                if let Node::Step(Step { sym: Sym::SemPost(one), .. }) = node {
                    *inside.entry(*one).or_default() += 1;
                }
            }
        });
    }
    inside
        .into_iter()
        .filter(|(one, count)| all.get(one) == Some(count))
        .map(|(one, _)| one)
        .collect()
}

/// Groups whose number is n, by the semaphores that they wait for or post, but for what they do for each item.
pub(super) fn answers(groups: &Groups) -> HashMap<Sym, Vec<usize>> {
    let mut found: HashMap<Sym, Vec<usize>> = HashMap::new();
    for (number, group) in groups.list.iter().enumerate().filter(|(_, group)| group.is_n) {
        let mut syms = HashSet::new();
        outer_syms(&group.nodes, &mut syms);
        syms.into_iter().for_each(|sym| found.entry(sym).or_default().push(number));
    }
    found
}

fn outer_syms(nodes: &[Node], syms: &mut HashSet<Sym>) {
    for node in nodes {
        match node {
            Node::Step(step) => {
                syms.insert(step.sym);
            }
            Node::Loop { body, .. } => outer_syms(body, syms),
        }
    }
}
