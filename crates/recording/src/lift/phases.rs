//! Cuts loops whose rounds become longer or shorter into loops of like rounds.

use super::node::{Node, Step, Sym};

/// A loop of rounds that spread less is not cut.
const CV_MIN: f64 = 0.08;
/// Most parts of a loop.
const PARTS_MAX: usize = 24;
/// A cut must take away this share of the squared deviations.
const GAIN_MIN: f64 = 0.4;
/// Loops with less of the group's work stay whole.
const SHARE_MIN: f64 = 0.02;

/// The loop, or the loops that it is cut into. `members`: threads of the group.
pub(super) fn cut(node: Node, members: usize, group_work: f64) -> Vec<Node> {
    let Node::Loop { counts, body } = node else { return vec![node] };
    let Some(works) = rounds(&counts, &body, members, group_work) else {
        return vec![Node::Loop { counts, body }];
    };
    let mut ends = Vec::new();
    bisect(&works, 0, &mut ends);
    ends.sort_unstable();
    ends.push(works.len());
    let mut begin = 0;
    let part = |end: usize| {
        let from = std::mem::replace(&mut begin, end);
        let counts = vec![(end - from) as f64];
        let body = body.iter().map(|node| slice(node, from * members, end * members)).collect();
        Node::Loop { counts, body }
    };
    ends.into_iter().map(part).collect()
}

/// Work of each round, if the loop can be cut.
fn rounds(counts: &[f64], body: &[Node], members: usize, group_work: f64) -> Option<Vec<f64>> {
    let [count] = counts else { return None };
    let count = *count as usize;
    let mut works = vec![0.0; count];
    let mut has_barrier = false;
    for node in body {
        let Node::Step(step) = node else { return None };
        if step.samples.len() != count * members || step.pieces > 0 {
            return None;
        }
        has_barrier |= matches!(step.sym, Sym::Barrier(_));
        for (at, sample) in step.samples.iter().enumerate() {
            works[at / members] += sample.segment.total();
        }
    }
    let is_much = works.iter().sum::<f64>() >= SHARE_MIN * group_work;
    (has_barrier && is_much && count > 3).then_some(works)
}

/// Finds the places where cuts help most.
fn bisect(works: &[f64], offset: usize, ends: &mut Vec<usize>) {
    let count = works.len();
    let sum: f64 = works.iter().sum();
    let squares: f64 = works.iter().map(|work| work * work).sum();
    let all = squares - sum * sum / count as f64;
    let is_even = all <= (CV_MIN * sum / count as f64).powi(2) * count as f64;
    if count < 4 || ends.len() + 1 >= PARTS_MAX || is_even {
        return;
    }
    let (mut left, mut left_squares) = (0.0, 0.0);
    let mut best = (all, 0);
    for at in 1..count {
        left += works[at - 1];
        left_squares += works[at - 1] * works[at - 1];
        let (right, right_squares) = (sum - left, squares - left_squares);
        let rest = left_squares - left * left / at as f64 + right_squares
            - right * right / (count - at) as f64;
        if rest < best.0 {
            best = (rest, at);
        }
    }
    let (rest, at) = best;
    if at == 0 || rest > (1.0 - GAIN_MIN) * all {
        return;
    }
    ends.push(offset + at);
    bisect(&works[..at], offset, ends);
    bisect(&works[at..], offset + at, ends);
}

fn slice(node: &Node, from: usize, to: usize) -> Node {
    match node {
        Node::Step(step) => {
            let samples = step.samples[from..to].to_vec();
            Node::Step(Step { samples, ..step.clone() })
        }
        Node::Loop { .. } => node.clone(),
    }
}
