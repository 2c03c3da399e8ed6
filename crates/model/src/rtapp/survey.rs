//! What only all tasks together tell: who forks whom, how many meet at a barrier, who shares a timer.

use std::collections::BTreeMap;

use super::ast::{Event, EventKind, Task};
use crate::InputError;
use crate::reader::quoted;

/// Prefix of timers that every thread has for itself.
const UNIQUE: &str = "unique";

/// Facts about all tasks.
pub(super) struct Survey {
    /// Whether a task is forked by some task, by index.
    pub forked: Vec<bool>,
    indices: BTreeMap<String, usize>,
    parties: BTreeMap<String, u32>,
    timers: BTreeMap<TimerKey, Timer>,
}

/// A timer: that of all tasks, or of one task if its name begins with `unique`.
type TimerKey = (Option<usize>, String);

#[derive(Clone, Copy, Default)]
struct Timer {
    /// Some event sets the absolute mode, which rt-app then applies to the timer for good.
    absolute: bool,
    /// Threads that use it.
    threads: u32,
    /// Last task that was seen to use it.
    last: Option<usize>,
}

impl Survey {
    /// Surveys tasks; an error if a fork leads nowhere or has no end, or a barrier cannot be met.
    pub fn of(tasks: &[Task]) -> Result<Self, InputError> {
        let indices =
            tasks.iter().enumerate().map(|(index, task)| (task.name.clone(), index)).collect();
        let mut survey = Self {
            forked: vec![false; tasks.len()],
            indices,
            parties: BTreeMap::new(),
            timers: BTreeMap::new(),
        };
        survey.forks(tasks)?;
        survey.barriers(tasks)?;
        survey.timers(tasks);
        Ok(survey)
    }

    /// The task of a name that a fork or the file's order of tasks gave.
    pub fn task(&self, name: &str) -> usize {
        self.indices.get(name).copied().unwrap_or(0)
    }

    /// Threads that meet at a barrier.
    pub fn parties(&self, barrier: &str) -> u32 {
        self.parties.get(barrier).copied().unwrap_or(0).max(1)
    }

    /// Whether a timer of a task is in absolute mode.
    pub fn is_absolute(&self, task: usize, timer: &str) -> bool {
        self.timers.get(&key(task, timer)).is_some_and(|timer| timer.absolute)
    }

    /// Whether several threads share a timer that a task uses.
    pub fn is_shared(&self, task: usize, timer: &str) -> bool {
        !timer.starts_with(UNIQUE)
            && self.timers.get(&key(task, timer)).is_some_and(|timer| timer.threads > 1)
    }

    fn forks(&mut self, tasks: &[Task]) -> Result<(), InputError> {
        let mut forks = vec![Vec::new(); tasks.len()];
        for (parent, task) in tasks.iter().enumerate() {
            for event in task.events() {
                let EventKind::Fork(name) = &event.kind else { continue };
                let child = *self.indices.get(name).ok_or_else(|| {
                    event.spot.unknown("thread", name, tasks.iter().map(|task| &*task.name))
                })?;
                forks[parent].push(child);
                self.forked[child] = true;
                if let Some((_, spot)) = tasks[child].delay.as_ref().filter(|(us, _)| *us > 0) {
                    let error = spot.error(
                        "the delay of a forked thread, which counts from the start of the program, is not simulated",
                    );
                    return Err(error.with_hint("put a \"sleep\" before \"fork\""));
                }
            }
        }
        match on_a_cycle(&forks) {
            None => Ok(()),
            Some(index) => {
                let task = &tasks[index];
                let name = quoted(&task.name);
                Err(task
                    .spot
                    .error(format!("thread {name} forks itself, so there is no end of threads")))
            }
        }
    }

    fn barriers(&mut self, tasks: &[Task]) -> Result<(), InputError> {
        let mut visitors: BTreeMap<&str, (u32, Option<usize>)> = BTreeMap::new();
        for (index, event, name) in barriers(tasks) {
            let task = &tasks[index];
            if self.forked[index] {
                let error = event.spot.error(format!(
                    "thread {} is forked, so rt-app cannot know how many threads meet here",
                    quoted(&task.name)
                ));
                return Err(error.with_hint("use \"wait\" and \"broad\""));
            }
            *self.parties.entry(name.to_owned()).or_default() += task.instances;
            let (threads, last) = visitors.entry(name).or_default();
            if last.replace(index) != Some(index) {
                *threads += task.instances;
            }
        }
        for (_, event, name) in barriers(tasks) {
            let (parties, threads) = (self.parties[name], visitors[name].0);
            if parties > threads {
                let error = event.spot.error(format!(
                    "barrier {} stands at several places of one thread: it waits for {parties} threads, but only {threads} ever come",
                    quoted(name)
                ));
                return Err(error.with_hint("give every meeting point a name of its own"));
            }
        }
        Ok(())
    }

    fn timers(&mut self, tasks: &[Task]) {
        for (index, task) in tasks.iter().enumerate() {
            for event in task.events() {
                let EventKind::Timer { name, absolute, .. } = &event.kind else { continue };
                let timer = self.timers.entry(key(index, name)).or_default();
                timer.absolute |= absolute;
                if timer.last.replace(index) != Some(index) {
                    // A forked thread may exist any number of times.
                    let threads = if self.forked[index] { u32::MAX } else { task.instances };
                    timer.threads = timer.threads.saturating_add(threads);
                }
            }
        }
    }
}

/// An event that waits for something, and one that wakes whoever does.
type Uses<'a> = (Option<&'a Event>, Option<&'a Event>);

/// Conditions and semaphores that are only waited for, or only signalled, one line each: most likely misspelt.
pub(super) fn lonely_names(tasks: &[Task]) -> Vec<String> {
    // Semaphores have names of their own.
    let mut uses: BTreeMap<(bool, &str), Uses> = BTreeMap::new();
    for event in tasks.iter().flat_map(Task::events) {
        let is_semaphore = matches!(event.kind, EventKind::SemWait(_) | EventKind::SemPost(_));
        let (name, waits, wakes) = match &event.kind {
            EventKind::Wait { condition, .. } => (condition, true, false),
            EventKind::Suspend(name) | EventKind::SemWait(name) => (name, true, false),
            EventKind::Signal(name)
            | EventKind::Broadcast(name)
            | EventKind::Resume(name)
            | EventKind::SemPost(name) => (name, false, true),
            EventKind::Sync { condition, .. } => (condition, true, true),
            _ => continue,
        };
        let (waiter, waker) = uses.entry((is_semaphore, name)).or_default();
        *waiter = waiter.or(waits.then_some(event));
        *waker = waker.or(wakes.then_some(event));
    }
    let remark = |((_, name), uses): ((bool, &str), Uses)| match uses {
        (Some(event), None) => Some(format!(
            "{} in line {}: nobody wakes {}",
            event.spot.key,
            event.spot.line,
            quoted(name)
        )),
        (None, Some(event)) => Some(format!(
            "{} in line {}: nobody waits for {}",
            event.spot.key,
            event.spot.line,
            quoted(name)
        )),
        _ => None,
    };
    uses.into_iter().filter_map(remark).collect()
}

fn key(task: usize, timer: &str) -> TimerKey {
    (timer.starts_with(UNIQUE).then_some(task), timer.to_owned())
}

/// Every use of a barrier: task, event, name.
fn barriers(tasks: &[Task]) -> impl Iterator<Item = (usize, &Event, &str)> {
    tasks.iter().enumerate().flat_map(|(index, task)| {
        task.events().filter_map(move |event| match &event.kind {
            EventKind::Barrier(name) => Some((index, event, name.as_str())),
            _ => None,
        })
    })
}

/// A node on a cycle of a graph, if there is one.
fn on_a_cycle(successors: &[Vec<usize>]) -> Option<usize> {
    let mut predecessors = vec![Vec::new(); successors.len()];
    for (from, targets) in successors.iter().enumerate() {
        for target in targets {
            predecessors[*target].push(from);
        }
    }
    // Nodes from which no cycle can be reached are taken away, last ones first.
    let mut left: Vec<usize> = successors.iter().map(Vec::len).collect();
    let mut done: Vec<usize> = (0..left.len()).filter(|node| left[*node] == 0).collect();
    while let Some(node) = done.pop() {
        for before in &predecessors[node] {
            left[*before] -= 1;
            if left[*before] == 0 {
                done.push(*before);
            }
        }
    }
    let mut node = left.iter().position(|count| *count > 0)?;
    // Each remaining node has a remaining successor; after as many steps as nodes the walk is on a cycle.
    for _ in 0..successors.len() {
        node = successors[node].iter().copied().find(|next| left[*next] > 0)?;
    }
    Some(node)
}

#[cfg(test)]
mod tests {
    use super::on_a_cycle;

    #[test]
    fn cycles_are_found_behind_chains() {
        assert_eq!(on_a_cycle(&[vec![1, 2], vec![2], vec![]]), None);
        assert_eq!(on_a_cycle(&[vec![0]]), Some(0));
        let node = on_a_cycle(&[vec![1, 4], vec![2], vec![3], vec![2], vec![]]);
        assert!(node == Some(2) || node == Some(3), "{node:?}");
    }
}
