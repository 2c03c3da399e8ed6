//! What the off-line schedulers share: tasks that have been placed, and where the next one could go.

use crate::schedule::Copies;
use crate::timeline::Timeline;
use crate::{Problem, Schedule, Slot, TaskId, WorkerId};

/// Whether a task may start in a gap between tasks that are placed already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insertion {
    /// In the earliest gap that can hold it.
    Gaps,
    /// Only after the last task of the worker.
    Append,
}

/// A schedule in the making.
#[derive(Debug)]
pub struct Placement<'p> {
    problem: &'p Problem<'p>,
    insertion: Insertion,
    timelines: Vec<Timeline>,
    copies: Copies,
    slots: Vec<Slot>,
}

impl<'p> Placement<'p> {
    /// Nothing is placed yet.
    pub fn new(problem: &'p Problem<'p>, insertion: Insertion) -> Self {
        Self {
            problem,
            insertion,
            timelines: vec![Timeline::new(problem.has_instants()); problem.workers().len()],
            copies: Copies::new(problem.graph().len()),
            slots: Vec::with_capacity(problem.graph().len()),
        }
    }

    /// Whether a task has been placed.
    pub fn has(&self, task: TaskId) -> bool {
        self.copies.has(task)
    }

    /// When the last task of a worker ends.
    pub fn free_s(&self, worker: WorkerId) -> f64 {
        self.timelines[worker.index()].end_s()
    }

    /// When the data of a task is available on a worker.
    pub fn available_s(&self, task: TaskId, comm_s: f64, worker: WorkerId) -> f64 {
        self.copies.available_s(task, comm_s, worker)
    }

    /// When all data that a task needs is available on a worker; its predecessors must have been placed.
    pub fn arrival_s(&self, task: TaskId, worker: WorkerId) -> f64 {
        self.copies.arrival_s(self.problem, task, worker)
    }

    /// The execution of a task by a worker whose data is available at `ready_s`, as early as possible.
    pub fn slot_from(&self, task: TaskId, worker: WorkerId, ready_s: f64) -> Slot {
        let cost_s = self.problem.cost_s(task, worker);
        let timeline = &self.timelines[worker.index()];
        let start_s = match self.insertion {
            Insertion::Gaps => timeline.earliest_s(ready_s, cost_s),
            Insertion::Append => timeline.end_s().max(ready_s),
        };
        Slot { task, worker, start_s, end_s: start_s + cost_s }
    }

    /// The earliest execution of a task by a worker.
    pub fn slot_on(&self, task: TaskId, worker: WorkerId) -> Slot {
        self.slot_from(task, worker, self.arrival_s(task, worker))
    }

    /// The earliest execution of a task by each worker, in their order.
    pub fn slots_of(&self, task: TaskId) -> impl Iterator<Item = Slot> + '_ {
        // Without communication the data is available everywhere at once.
        let everywhere_s =
            (!self.problem.graph().has_communication()).then(|| self.arrival_s(task, WorkerId(0)));
        self.problem.workers().ids().map(move |worker| {
            let ready_s = everywhere_s.unwrap_or_else(|| self.arrival_s(task, worker));
            self.slot_from(task, worker, ready_s)
        })
    }

    /// The execution that ends first; of equal ones that of the first worker.
    pub fn earliest(&self, task: TaskId) -> Slot {
        self.least(task, |slot| slot.end_s)
    }

    /// The execution for which `value` is least; of equal ones that of the first worker.
    pub fn least(&self, task: TaskId, value: impl Fn(&Slot) -> f64) -> Slot {
        let better = |best: Slot, slot: Slot| if value(&slot) < value(&best) { slot } else { best };
        self.slots_of(task).reduce(better).expect("there is a worker")
    }

    /// Places an execution that this placement has proposed.
    pub fn place(&mut self, slot: Slot) {
        let cost_s = self.problem.cost_s(slot.task, slot.worker);
        self.timelines[slot.worker.index()].occupy(slot.start_s, cost_s);
        self.copies.add(slot);
        self.slots.push(slot);
    }

    /// The schedule.
    pub fn finish(self) -> Schedule {
        Schedule::new(self.slots)
    }
}
