//! Finds loops in sequences of steps.

use super::node::{Node, Step, Sym, merge_all};

/// Longest body that is looked for.
const PERIOD_MAX: usize = 64;
/// Most loops inside each other.
const DEPTH_MAX: usize = 4;
/// Most passes over a sequence.
const PASSES_MAX: usize = 6;
/// Steps at a barrier whose works differ by more than this factor are not the same.
const WORK_FACTOR: f64 = 2.5;
/// The same for waits and posts of semaphores.
const WAKE_FACTOR: f64 = 16.0;

/// How alike steps must be.
#[derive(Clone, Copy)]
pub(super) struct Likeness {
    /// Work of a step (ns per execution) below which its amount does not matter.
    pub small_ns: f64,
    /// Whether amounts matter at all.
    pub by_work: bool,
}

/// A shorter sequence that does the same with loops, nested up to a depth.
pub(super) fn fold(mut nodes: Vec<Node>, likeness: Likeness) -> Vec<Node> {
    for _ in 0..PASSES_MAX {
        let before = nodes.len();
        nodes = pass(nodes, likeness);
        if nodes.len() == before {
            break;
        }
    }
    nodes
}

fn pass(nodes: Vec<Node>, likeness: Likeness) -> Vec<Node> {
    let mut plan = Vec::new();
    let mut at = 0;
    while at < nodes.len() {
        let (period, rounds) = best(&nodes[at..], likeness);
        plan.push((period, rounds));
        at += period * rounds;
    }
    let mut rest = nodes.into_iter();
    let mut found = Vec::new();
    for (period, rounds) in plan {
        if rounds == 1 {
            found.extend(rest.by_ref().take(period));
            continue;
        }
        let mut body: Vec<Node> = rest.by_ref().take(period).collect();
        for _ in 1..rounds {
            let more = rest.by_ref().take(period).collect();
            merge_all(&mut body, more);
        }
        let is_flat = body.iter().all(|node| depth(node) + 1 < DEPTH_MAX);
        let body = if period > 2 && is_flat { fold(body, likeness) } else { body };
        found.push(flat(rounds as f64, body));
    }
    found
}

/// The period and the number of rounds that shorten the sequence most at its begin.
fn best(nodes: &[Node], likeness: Likeness) -> (usize, usize) {
    let mut best = (1, 1);
    let mut most = 1;
    for period in 1..=PERIOD_MAX.min(nodes.len() / 2) {
        let mut same = 0;
        while period + same < nodes.len() && alike(&nodes[same], &nodes[period + same], likeness) {
            same += 1;
        }
        let rounds = 1 + same / period;
        if nodes[..period].iter().any(|node| depth(node) >= DEPTH_MAX) {
            break;
        }
        let saved = (rounds - 1) * period;
        if rounds > 1 && saved > most {
            most = saved;
            best = (period, rounds);
        }
    }
    best
}

/// A loop; one whose body is nothing but a loop is one with more rounds.
fn flat(rounds: f64, mut body: Vec<Node>) -> Node {
    if let [Node::Loop { counts, .. }] = &body[..] {
        let first = counts[0];
        if counts.iter().all(|count| *count == first) {
            if let Some(Node::Loop { body, .. }) = body.pop() {
                return Node::Loop { counts: vec![rounds * first], body };
            }
        }
    }
    Node::Loop { counts: vec![rounds], body }
}

fn depth(node: &Node) -> usize {
    match node {
        Node::Step(_) => 0,
        Node::Loop { body, .. } => 1 + body.iter().map(depth).max().unwrap_or(0),
    }
}

fn alike(one: &Node, two: &Node, likeness: Likeness) -> bool {
    one.is_like(two) && (!likeness.by_work || have_like_work(one, two, likeness))
}

fn have_like_work(one: &Node, two: &Node, likeness: Likeness) -> bool {
    match (one, two) {
        (Node::Step(a), Node::Step(b)) => {
            let factor = match a.sym {
                Sym::Barrier(_) => WORK_FACTOR,
                Sym::SemWait(_) | Sym::SemPost(_) => WAKE_FACTOR,
                _ => return true,
            };
            let own = |step: &Step| step.own_work() / step.samples.len() as f64;
            let mean = |step: &Step| step.hint.unwrap_or_else(|| own(step));
            let (least, most) = (mean(a).min(mean(b)), mean(a).max(mean(b)));
            most <= likeness.small_ns || most <= factor * least
        }
        (Node::Loop { body: a, .. }, Node::Loop { body: b, .. }) => {
            a.iter().zip(b).all(|(a, b)| have_like_work(a, b, likeness))
        }
        _ => true,
    }
}
