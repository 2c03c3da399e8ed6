//! The body that the works on all items of a queue or a pool have in common.

use std::collections::HashMap;

use super::fold::{Likeness, fold};
use super::node::{Node, Step, Sym};

/// One body for all items, each of which may do its steps in another number.
pub(super) fn of_items(items: Vec<Vec<Step>>) -> Vec<Node> {
    let Some(first) = items.first() else { return Vec::new() };
    let syms: Vec<Sym> = first.iter().map(|step| step.sym).collect();
    let is_same = |item: &Vec<Step>| {
        item.len() == syms.len() && item.iter().zip(&syms).all(|(step, sym)| step.sym == *sym)
    };
    let nodes = if items.iter().all(is_same) { zipped(items) } else { counted(items) };
    fold(with_bodies(nodes), Likeness { small_ns: 0.0, by_work: false })
}

/// Gives steps over items the body of these items.
pub(super) fn with_bodies(nodes: Vec<Node>) -> Vec<Node> {
    let finish = |node| match node {
        Node::Step(mut step) => {
            let items = std::mem::take(&mut step.items);
            step.pieces += items.len();
            step.body = of_items(items);
            Node::Step(step)
        }
        Node::Loop { counts, body } => Node::Loop { counts, body: with_bodies(body) },
    };
    nodes.into_iter().map(finish).collect()
}

/// Gives steps over items their bodies. Groups that take from one queue or pool have one body for it, as nobody knows
/// who will take which item.
pub(super) fn finish(groups: Vec<Vec<Node>>) -> Vec<Vec<Node>> {
    let mut users: HashMap<Sym, Vec<usize>> = HashMap::new();
    for nodes in &groups {
        let mut own: HashMap<Sym, usize> = HashMap::new();
        nodes.iter().for_each(|node| {
            node.each_step(&mut |step| {
                if matches!(step.sym, Sym::Each(_) | Sym::Dynamic(_)) {
                    *own.entry(step.sym).or_default() += 1;
                }
            });
        });
        own.into_iter().for_each(|(sym, count)| users.entry(sym).or_default().push(count));
    }
    let mut pooled: HashMap<(Sym, usize), Vec<Vec<Step>>> = HashMap::new();
    let mut groups = groups;
    for nodes in &mut groups {
        let mut place = HashMap::new();
        each_user(nodes, &mut |step| {
            if let Some(key) = key(step.sym, &users, &mut place) {
                step.pieces += step.items.len();
                pooled.entry(key).or_default().append(&mut step.items);
            }
        });
    }
    let bodies: HashMap<(Sym, usize), (usize, Vec<Node>)> =
        pooled.into_iter().map(|(key, items)| (key, (items.len(), of_items(items)))).collect();
    let mut found: Vec<Vec<Node>> = groups.into_iter().map(with_bodies).collect();
    for nodes in &mut found {
        let mut place = HashMap::new();
        each_user(nodes, &mut |step| {
            let found = key(step.sym, &users, &mut place).and_then(|key| bodies.get(&key));
            if let Some((pieces, body)) = found {
                step.body = body.clone();
                step.common = Some(*pieces);
            }
        });
    }
    found
}

/// Which body a step shares with other groups: the one at its place, if all groups have as many.
fn key(
    sym: Sym,
    users: &HashMap<Sym, Vec<usize>>,
    place: &mut HashMap<Sym, usize>,
) -> Option<(Sym, usize)> {
    let counts = users.get(&sym).filter(|counts| counts.len() > 1)?;
    let number = place.entry(sym).or_default();
    *number += 1;
    let is_even = counts.iter().all(|count| *count == counts[0]);
    Some((sym, if is_even { *number } else { 0 }))
}

/// Calls `visit` with each outer step over items.
fn each_user(nodes: &mut [Node], visit: &mut dyn FnMut(&mut Step)) {
    for node in nodes {
        match node {
            Node::Step(step) if matches!(step.sym, Sym::Each(_) | Sym::Dynamic(_)) => visit(step),
            Node::Step(_) => {}
            Node::Loop { body, .. } => each_user(body, visit),
        }
    }
}

fn zipped(items: Vec<Vec<Step>>) -> Vec<Node> {
    let mut all = items.into_iter();
    let mut found: Vec<Step> = all.next().unwrap_or_default();
    for item in all {
        for (step, more) in found.iter_mut().zip(item) {
            step.merge(more);
        }
    }
    found.into_iter().map(Node::Step).collect()
}

/// Each step in a loop whose number of rounds is that of its executions per item.
fn counted(items: Vec<Vec<Step>>) -> Vec<Node> {
    let number = items.len();
    // Step, executions per item, sum of places for the order.
    let mut found: Vec<(Step, Vec<f64>, f64)> = Vec::new();
    for (index, item) in items.into_iter().enumerate() {
        let length = item.len() as f64;
        for (place, step) in item.into_iter().enumerate() {
            let place = place as f64 / length;
            match found.iter_mut().find(|(one, _, _)| one.sym == step.sym) {
                Some((one, counts, places)) => {
                    counts[index] += 1.0;
                    *places += place;
                    one.merge(step);
                }
                None => {
                    let mut counts = vec![0.0; number];
                    counts[index] = 1.0;
                    found.push((step, counts, place));
                }
            }
        }
    }
    let mean = |(_, counts, places): &(Step, Vec<f64>, f64)| places / counts.iter().sum::<f64>();
    found.sort_by(|one, two| mean(one).total_cmp(&mean(two)));
    let node = |(step, counts, _): (Step, Vec<f64>, f64)| {
        if counts.iter().all(|count| *count == 1.0) {
            Node::Step(step)
        } else {
            Node::Loop { counts, body: vec![Node::Step(step)] }
        }
    };
    found.into_iter().map(node).collect()
}
