//! How many threads there are: initial ones and forked ones, in all and at the same time.
//!
//! Barriers, pools and queues need these numbers. Forks form no cycle (checked before), so groups are
//! counted in an order in which every forking group comes before the groups that it forks.

use super::ast::{Group, GroupIndex, Repeat, Step, StepKind};
use super::flow::forked_by;
use crate::InputError;
use crate::expr::Scope;
use crate::limits::THREADS_MAX;
use crate::reader::plain;

/// A number of threads; `None` if it depends on chance or has no limit.
pub(crate) type Number = Option<u64>;

/// The threads of one group.
#[derive(Clone, Debug)]
pub(crate) struct GroupCount {
    /// Instances that start with the program.
    pub initial: u32,
    /// Thread specifications: one for all instances, or one for each if they differ.
    pub specs: u32,
    /// Whether instances differ.
    pub indexed: bool,
    /// What `count` means in the body.
    pub count: u32,
    /// Instances over the whole run.
    pub total: Number,
    /// Instances at the same time, as far as forks and joins tell.
    pub at_once: Number,
}

impl GroupCount {
    /// Whether some instance may be started.
    pub fn is_started(&self) -> bool {
        self.total != Some(0)
    }

    /// Values of `index` and `count` for a specification.
    pub fn instance(&self, spec: u32) -> Option<(u32, u32)> {
        Some((spec, self.count))
    }
}

/// A fork step as one instance of a forking thread executes it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Forked {
    group: GroupIndex,
    times: u64,
    /// Executions over the whole run.
    total: Number,
    /// Executions whose children live at the same time.
    at_once: Number,
}

/// Counts the threads of all groups.
pub(crate) fn count(
    groups: &[Group],
    params: &[(String, f64)],
) -> Result<Vec<GroupCount>, InputError> {
    let mut incoming: Vec<Vec<Forked>> = vec![Vec::new(); groups.len()];
    let mut counts: Vec<Option<GroupCount>> = vec![None; groups.len()];
    let mut initial_all = 0;
    for index in forkers_first(groups) {
        let group = &groups[index];
        let initial = group.count.whole(Scope { params, instance: None }, 0, THREADS_MAX)?;
        initial_all += initial;
        if initial_all > THREADS_MAX {
            let message =
                format!("{initial_all} threads at the start, at most {THREADS_MAX} are allowed");
            return Err(group.count.spot.error(message));
        }
        let (count, weights) = group_count(group, initial as u32, &incoming[index]);
        if !forked_by(group).is_empty() {
            pass_on(group, &count, &weights, params, &mut incoming)?;
        }
        counts[index] = Some(count);
    }
    Ok(counts.into_iter().flatten().collect())
}

/// Groups in an order in which a group comes before those that it forks.
fn forkers_first(groups: &[Group]) -> Vec<GroupIndex> {
    let forks: Vec<Vec<GroupIndex>> = groups.iter().map(forked_by).collect();
    let mut forkers = vec![0; groups.len()];
    forks.iter().flatten().for_each(|forked| forkers[*forked] += 1);
    let mut order: Vec<GroupIndex> =
        (0..groups.len()).filter(|group| forkers[*group] == 0).collect();
    let mut next = 0;
    while next < order.len() {
        for forked in &forks[order[next]] {
            forkers[*forked] -= 1;
            if forkers[*forked] == 0 {
                order.push(*forked);
            }
        }
        next += 1;
    }
    order
}

/// The count of a group, and of each specification (total, at once).
fn group_count(
    group: &Group,
    initial: u32,
    incoming: &[Forked],
) -> (GroupCount, Vec<(Number, Number)>) {
    let times_max = incoming.iter().map(|forked| forked.times).max().unwrap_or(0) as u32;
    let indexed = group.is_indexed();
    let specs = if indexed { initial.max(times_max) } else { 1 };
    let weights: Vec<(Number, Number)> = (0..specs)
        .map(|spec| {
            let own = if indexed { u64::from(spec < initial) } else { u64::from(initial) };
            incoming.iter().fold((Some(own), Some(own)), |(total, at_once), forked| {
                let times =
                    if indexed { u64::from(u64::from(spec) < forked.times) } else { forked.times };
                (
                    add(total, multiply(forked.total, Some(times))),
                    add(at_once, multiply(forked.at_once, Some(times))),
                )
            })
        })
        .collect();
    let count = GroupCount {
        initial,
        specs,
        indexed,
        count: if initial > 0 { initial } else { times_max },
        total: weights.iter().try_fold(0u64, |sum, weight| add(Some(sum), weight.0)),
        at_once: weights.iter().try_fold(0u64, |sum, weight| add(Some(sum), weight.1)),
    };
    (count, weights)
}

/// Adds the forks of every instance of a group to the groups that it forks.
fn pass_on(
    group: &Group,
    count: &GroupCount,
    weights: &[(Number, Number)],
    params: &[(String, f64)],
    incoming: &mut [Vec<Forked>],
) -> Result<(), InputError> {
    for (spec, weight) in weights.iter().enumerate() {
        let mut walk = Walk {
            scope: Scope { params, instance: count.instance(spec as u32) },
            segments: vec![Vec::new()],
        };
        walk.body(&group.body, Some(1), Some(1))?;
        for forked in walk.merged() {
            let (total, at_once) =
                (multiply(forked.total, weight.0), multiply(forked.at_once, weight.1));
            incoming[forked.group].push(Forked { total, at_once, ..forked });
        }
    }
    Ok(())
}

/// Follows the body of one instance and notes its forks, apart for each stretch between two joins.
struct Walk<'a> {
    scope: Scope<'a>,
    segments: Vec<Vec<Forked>>,
}

impl Walk<'_> {
    fn body(&mut self, body: &[Step], total: Number, at_once: Number) -> Result<(), InputError> {
        for step in body {
            match &step.kind {
                StepKind::Join => self.segments.push(Vec::new()),
                StepKind::Fork { group, times } => {
                    let times = times.whole(self.scope, 0, THREADS_MAX)? as u64;
                    let forked = Forked { group: *group, times, total, at_once };
                    self.segments.last_mut().expect("there is a first segment").push(forked);
                }
                _ if has(step.body(), &|kind| matches!(kind, StepKind::Fork { .. })) => {
                    self.repeated(step, total, at_once)?;
                }
                _ if has(step.body(), &|kind| matches!(kind, StepKind::Join)) => {
                    self.segments.push(Vec::new())
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn repeated(&mut self, step: &Step, total: Number, at_once: Number) -> Result<(), InputError> {
        let rounds = match &step.kind {
            StepKind::Loop { repeat: Repeat::Times(amount), .. } => {
                amount.constant(self.scope).map(|rounds| rounds as u64)
            }
            _ => None,
        };
        let total = multiply(total, rounds);
        if !has(step.body(), &|kind| matches!(kind, StepKind::Join)) {
            return self.body(step.body(), total, multiply(at_once, rounds));
        }
        // Children are joined in every round. A second look shows whether forks at the end of one
        // round live together with forks at the start of the next; it must not count in total.
        self.body(step.body(), total, at_once)?;
        if rounds == Some(0) || rounds == Some(1) {
            Ok(())
        } else {
            self.body(step.body(), Some(0), at_once)
        }
    }

    /// One entry per fork step and group. If stretches between joins fork different numbers of
    /// threads, the number at once is unclear.
    fn merged(&self) -> Vec<Forked> {
        let mut merged: Vec<Forked> = Vec::new();
        let mut groups: Vec<GroupIndex> =
            self.segments.iter().flatten().map(|forked| forked.group).collect();
        groups.sort_unstable();
        groups.dedup();
        for group in groups {
            merged.extend(self.merged_group(group));
        }
        merged
    }

    fn merged_group(&self, group: GroupIndex) -> Vec<Forked> {
        let of_group = |segment: &Vec<Forked>| {
            segment.iter().filter(|forked| forked.group == group).copied().collect()
        };
        let segments: Vec<Vec<Forked>> = self
            .segments
            .iter()
            .map(of_group)
            .filter(|segment: &Vec<_>| !segment.is_empty())
            .collect();
        let shape = |segment: &[Forked]| {
            segment.iter().map(|forked| (forked.times, forked.at_once)).collect::<Vec<_>>()
        };
        let clear = segments.windows(2).all(|pair| shape(&pair[0]) == shape(&pair[1]));
        let mut merged = Vec::new();
        for (index, segment) in segments.into_iter().enumerate() {
            let at_once = |forked: &Forked| match (clear, index) {
                (false, _) => None,
                (true, 0) => forked.at_once,
                (true, _) => Some(0),
            };
            merged.extend(
                segment.iter().map(|forked| Forked { at_once: at_once(forked), ..*forked }),
            );
        }
        merged
    }
}

fn has(body: &[Step], predicate: &impl Fn(&StepKind) -> bool) -> bool {
    body.iter().any(|step| predicate(&step.kind) || has(step.body(), predicate))
}

fn add(left: Number, right: Number) -> Number {
    Some(left?.saturating_add(right?))
}

/// Zero times an unknown number is zero.
fn multiply(left: Number, right: Number) -> Number {
    match (left, right) {
        (Some(0), _) | (_, Some(0)) => Some(0),
        (left, right) => Some(left?.saturating_mul(right?)),
    }
}

/// A number of threads for messages.
pub(crate) fn threads(number: u64) -> String {
    match number {
        0 => "no thread".to_owned(),
        1 => "1 thread".to_owned(),
        _ => format!("{} threads", plain(number as f64)),
    }
}
