//! Longest dynamic critical path.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ampsched_model::ClassId;

use crate::placement::{Insertion, Placement};
use crate::ranks::{Key, upward_s};
use crate::{Build, Problem, Schedule, TaskId, TaskPolicyInfo};

/// The registry's row.
pub static INFO: TaskPolicyInfo = TaskPolicyInfo {
    name: "ldcp",
    summary: "off-line: always the next task on the longest path, which is measured anew each time",
    source: "Daoud and Kharma, J. Parallel and Distributed Computing 68(4), 2008; a reconstruction",
    documentation: "\
**Purpose.** HEFT's ranks use mean costs and do not change; here each path is measured with the costs of one class of workers, and what has been placed counts with its real times.

**Algorithm.** For every class of workers a task's rank is the longest path behind it at that class's costs, communication included. The longest dynamic critical path leads through the unplaced task with a placed predecessor (or none at all) \
for which the arrival of that predecessor's data plus its greatest rank is greatest. If that task has unplaced predecessors, the one of greatest rank for the same class comes first, and so on. The task is placed where it ends first, with insertion.

**Constants.** None. Equal path lengths: the smaller number.

**Example.** A task that is slow on every class but one: its rank counts the slowest, so its path is served early.

**Limits.** Ranks of unplaced tasks do not change when others are placed, since all tasks behind them are unplaced, too; so no graph needs to be updated, and a step takes logarithmic time. The original updates one graph per \
processor; its full text was not at hand.",
    params: &[],
    lazy: false,
    build: Build::OffLine(|_, problem| Paths::schedule(problem)),
};

struct Paths<'p> {
    problem: &'p Problem<'p>,
    /// Ranks by class and task.
    ranks_s: Vec<Vec<f64>>,
    /// Class for which the rank of each task is greatest.
    longest: Vec<ClassId>,
    /// Latest arrival of data from placed predecessors.
    arrival_s: Vec<f64>,
    placement: Placement<'p>,
    /// Candidates by path length; those of a shorter length than now are stale.
    candidates: BinaryHeap<(Key, Reverse<TaskId>)>,
}

impl<'p> Paths<'p> {
    fn schedule(problem: &'p Problem<'p>) -> Schedule {
        let graph = problem.graph();
        let mut paths = Self::new(problem);
        for task in graph.tasks().filter(|&task| graph.predecessors(task).is_empty()) {
            paths.push(task);
        }
        while let Some((Key(length_s), Reverse(task))) = paths.candidates.pop() {
            if paths.placement.has(task) || length_s < paths.length_s(task) {
                continue;
            }
            let next = paths.first_unplaced(task);
            paths.place(next);
            if next != task {
                paths.push(task);
            }
        }
        paths.placement.finish()
    }

    fn new(problem: &'p Problem<'p>) -> Self {
        let graph = problem.graph();
        let classes = (0..problem.workers().classes().len()).map(ClassId::from);
        let ranks_s: Vec<Vec<f64>> = classes
            .clone()
            .map(|class| {
                upward_s(problem.graph(), true, |task| problem.costs_s(task)[class.index()])
            })
            .collect();
        let greatest = |task: TaskId| {
            let rank_s = |class: ClassId| ranks_s[class.index()][task.index()];
            let better = |best, class| if rank_s(class) > rank_s(best) { class } else { best };
            classes.clone().reduce(better).expect("there is a class")
        };
        Self {
            problem,
            longest: graph.tasks().map(greatest).collect(),
            ranks_s,
            arrival_s: vec![0.0; graph.len()],
            placement: Placement::new(problem, Insertion::Gaps),
            candidates: BinaryHeap::new(),
        }
    }

    /// Length of the longest path through a task that enters it from what is placed.
    fn length_s(&self, task: TaskId) -> f64 {
        let class = self.longest[task.index()];
        self.arrival_s[task.index()] + self.ranks_s[class.index()][task.index()]
    }

    fn push(&mut self, task: TaskId) {
        self.candidates.push((Key(self.length_s(task)), Reverse(task)));
    }

    /// The task itself, or the first task before it on its longest unplaced path.
    fn first_unplaced(&self, task: TaskId) -> TaskId {
        let ranks_s = &self.ranks_s[self.longest[task.index()].index()];
        let mut first = task;
        loop {
            let before = self.problem.graph().predecessors(first).iter().copied();
            let unplaced = before.filter(|&from| !self.placement.has(from));
            let longer = |best: TaskId, from: TaskId| {
                if ranks_s[from.index()] > ranks_s[best.index()] { from } else { best }
            };
            match unplaced.reduce(longer) {
                Some(from) => first = from,
                None => return first,
            }
        }
    }

    fn place(&mut self, task: TaskId) {
        let slot = self.placement.earliest(task);
        self.placement.place(slot);
        for &next in self.problem.graph().successors(task) {
            let mut inputs = self.problem.graph().inputs(next);
            let comm_s = inputs.find(|(from, _)| *from == task).map_or(0.0, |(_, comm_s)| comm_s);
            let arrival_s = &mut self.arrival_s[next.index()];
            *arrival_s = arrival_s.max(slot.end_s + comm_s);
            self.push(next);
        }
    }
}
