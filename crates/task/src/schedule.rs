//! A schedule: which worker executes which task when.

use std::collections::BTreeMap;

use crate::{Problem, TaskId, WorkerId};

/// One execution of a task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slot {
    /// The task.
    pub task: TaskId,
    /// The worker.
    pub worker: WorkerId,
    /// Start in seconds.
    pub start_s: f64,
    /// End in seconds.
    pub end_s: f64,
}

/// Executions of all tasks of a graph; a task may be executed by several workers.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    slots: Vec<Slot>,
    makespan_s: f64,
}

impl Schedule {
    /// A schedule of these executions. They are sorted by start, then end; those that begin and end at the same
    /// moment (tasks that take no time) keep their order, in which predecessors must come first.
    pub fn new(mut slots: Vec<Slot>) -> Self {
        slots.sort_by(|a, b| a.start_s.total_cmp(&b.start_s).then(a.end_s.total_cmp(&b.end_s)));
        let makespan_s = slots.iter().map(|slot| slot.end_s).fold(0.0, f64::max);
        Self { slots, makespan_s }
    }

    /// All executions by start; predecessors come first.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// End of the last execution in seconds.
    pub fn makespan_s(&self) -> f64 {
        self.makespan_s
    }

    /// The executions of each worker in their order.
    pub fn by_worker(&self, workers: usize) -> Vec<Vec<Slot>> {
        let mut rows = vec![Vec::new(); workers];
        for slot in &self.slots {
            rows[slot.worker.index()].push(*slot);
        }
        rows
    }

    /// Seconds that each worker executes tasks.
    pub fn busy_s(&self, workers: usize) -> Vec<f64> {
        let mut busy_s = vec![0.0; workers];
        for slot in &self.slots {
            busy_s[slot.worker.index()] += slot.end_s - slot.start_s;
        }
        busy_s
    }

    /// The same executions in the same order on each worker, each as early as its data and its worker allow.
    #[must_use]
    pub fn retimed(&self, problem: &Problem<'_>) -> Self {
        let mut copies = Copies::new(problem.graph().len());
        let mut free_s = vec![0.0_f64; problem.workers().len()];
        let slots = self.slots.iter().map(|slot| {
            let free = &mut free_s[slot.worker.index()];
            let start_s = copies.arrival_s(problem, slot.task, slot.worker).max(*free);
            let end_s = start_s + problem.cost_s(slot.task, slot.worker);
            *free = end_s;
            let slot = Slot { start_s, end_s, ..*slot };
            copies.add(slot);
            slot
        });
        Self::new(slots.collect())
    }

    /// What is wrong with the schedule: a task that is not executed or takes another time than it should,
    /// executions of a worker that overlap, or one that starts before its data has arrived.
    pub fn flaw(&self, problem: &Problem<'_>) -> Option<String> {
        let graph = problem.graph();
        let mut copies = Copies::new(graph.len());
        let mut free_s = vec![0.0_f64; problem.workers().len()];
        for slot in &self.slots {
            let name = graph.task_name(slot.task);
            if slot.end_s != slot.start_s + problem.cost_s(slot.task, slot.worker) {
                return Some(format!("task {name:?} takes another time than it costs"));
            }
            let free = &mut free_s[slot.worker.index()];
            if slot.start_s < *free {
                return Some(format!("worker {} is busy when {name:?} starts", slot.worker.0));
            }
            *free = slot.end_s;
            if slot.start_s < copies.arrival_s(problem, slot.task, slot.worker) {
                return Some(format!("task {name:?} starts before its data has arrived"));
            }
            copies.add(*slot);
        }
        let missing = graph.tasks().find(|&task| !copies.has(task));
        missing.map(|task| format!("task {:?} is not executed", graph.task_name(task)))
    }
}

/// Where and when the executions of each task end.
///
/// Nearly always a task is executed once, so the first execution stands in a table and others in a map.
#[derive(Clone, Debug)]
pub struct Copies {
    first: Vec<(f64, WorkerId)>,
    more: BTreeMap<TaskId, Vec<(f64, WorkerId)>>,
}

impl Copies {
    /// No execution of any of so many tasks.
    pub fn new(tasks: usize) -> Self {
        Self { first: vec![(f64::INFINITY, WorkerId(0)); tasks], more: BTreeMap::new() }
    }

    /// Whether the task has been executed.
    #[inline]
    pub fn has(&self, task: TaskId) -> bool {
        self.first[task.index()].0 < f64::INFINITY
    }

    /// Adds an execution.
    #[inline]
    pub fn add(&mut self, slot: Slot) {
        if self.has(slot.task) {
            self.more.entry(slot.task).or_default().push((slot.end_s, slot.worker));
        } else {
            self.first[slot.task.index()] = (slot.end_s, slot.worker);
        }
    }

    /// When the data of a task, which takes `comm_s` between workers, is available on a worker; never if
    /// the task has not been executed.
    #[inline]
    pub fn available_s(&self, task: TaskId, comm_s: f64, worker: WorkerId) -> f64 {
        let at = |(end_s, on): (f64, WorkerId)| if on == worker { end_s } else { end_s + comm_s };
        let first_s = at(self.first[task.index()]);
        if self.more.is_empty() {
            return first_s;
        }
        let more = self.more.get(&task).into_iter().flatten();
        more.fold(first_s, |earliest_s, &copy| earliest_s.min(at(copy)))
    }

    /// When all data that a task needs is available on a worker; never if a predecessor has not been executed.
    #[inline]
    pub fn arrival_s(&self, problem: &Problem<'_>, task: TaskId, worker: WorkerId) -> f64 {
        let inputs = problem.graph().inputs(task);
        inputs.fold(0.0, |latest_s: f64, (from, comm_s)| {
            latest_s.max(self.available_s(from, comm_s, worker))
        })
    }
}
