//! Properties of tasks that follow from the graph: ranks and levels. All take one pass over the graph.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::{Graph, Problem, TaskId, Tasks};

/// A number as a sort key; greater numbers come later, -0 before 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Key(pub f64);

impl Eq for Key {}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Longest path from each task to an exit, in seconds: `own(task)` of every task on it, its own included,
/// and the communication between them if it is counted.
pub fn upward_s(graph: &Graph, communication: bool, own: impl Fn(TaskId) -> f64) -> Vec<f64> {
    let mut ranks = vec![0.0_f64; graph.len()];
    for task in graph.tasks().rev() {
        // All successors have greater numbers, so the longest path behind the task is complete.
        ranks[task.index()] += own(task);
        for (from, comm_s) in graph.inputs(task) {
            let path_s = ranks[task.index()] + if communication { comm_s } else { 0.0 };
            ranks[from.index()] = ranks[from.index()].max(path_s);
        }
    }
    ranks
}

/// `rank_u` of HEFT: upward with mean costs and communication (Topcuoglu et al., TPDS 2002, section 4.1).
pub fn upward_mean_s(problem: &Problem<'_>) -> Vec<f64> {
    upward_s(problem.graph(), true, |task| problem.mean_s(task))
}

/// `rank_d` of HEFT: longest path from an entry to each task, without the task itself (TPDS 2002, section 4.1).
pub fn downward_mean_s(problem: &Problem<'_>) -> Vec<f64> {
    let graph = problem.graph();
    let mut ranks = vec![0.0_f64; graph.len()];
    for task in graph.tasks() {
        let paths_s = graph
            .inputs(task)
            .map(|(from, comm_s)| ranks[from.index()] + problem.mean_s(from) + comm_s);
        ranks[task.index()] = paths_s.fold(0.0, f64::max);
    }
    ranks
}

/// Tasks by decreasing value; equal ones in their order. Predecessors come first if their values are not less.
pub fn by_decreasing(values: &[f64]) -> Vec<TaskId> {
    let mut order: Vec<TaskId> = (0..values.len()).map(TaskId::from).collect();
    order.sort_by(|a, b| values[b.index()].total_cmp(&values[a.index()]));
    order
}

/// Depth of tasks: the number of links on the longest path from an entry, kept up as tasks are created.
#[derive(Clone, Debug, Default)]
pub struct Levels {
    of: Vec<u32>,
    tasks: Vec<Vec<TaskId>>,
}

impl Levels {
    /// The levels of all tasks.
    pub fn of(tasks: &dyn Tasks) -> Self {
        let mut levels = Self::default();
        levels.extend(tasks);
        levels
    }

    /// Adds the tasks that are not there yet.
    pub fn extend(&mut self, tasks: &dyn Tasks) {
        for task in (self.of.len()..tasks.len()).map(TaskId::from) {
            let before = tasks.predecessors(task).iter().map(|from| self.of[from.index()] + 1);
            let level = before.max().unwrap_or(0);
            self.of.push(level);
            if self.tasks.len() <= level as usize {
                self.tasks.resize(level as usize + 1, Vec::new());
            }
            self.tasks[level as usize].push(task);
        }
    }

    /// Number of levels.
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Level of a task.
    pub fn level(&self, task: TaskId) -> usize {
        self.of[task.index()] as usize
    }

    /// Tasks of a level in their order.
    pub fn tasks(&self, level: usize) -> &[TaskId] {
        &self.tasks[level]
    }
}

/// How many predecessors of each task have not ended.
#[derive(Clone, Debug)]
pub struct Waiting {
    missing: Vec<u32>,
}

impl Waiting {
    /// No task has ended.
    pub fn new(graph: &Graph) -> Self {
        Self { missing: graph.tasks().map(|task| graph.predecessors(task).len() as u32).collect() }
    }

    /// Whether all predecessors of a task have ended.
    #[inline]
    pub fn is_ready(&self, task: TaskId) -> bool {
        self.missing[task.index()] == 0
    }

    /// Tasks without predecessors.
    pub fn entries<'a>(graph: &'a Graph) -> impl Iterator<Item = TaskId> + 'a {
        graph.tasks().filter(|&task| graph.predecessors(task).is_empty())
    }

    /// Ends a task and calls `freed` with each one that waited for it alone.
    #[inline]
    pub fn end(&mut self, graph: &Graph, task: TaskId, mut freed: impl FnMut(TaskId)) {
        for &next in graph.successors(task) {
            self.missing[next.index()] -= 1;
            if self.missing[next.index()] == 0 {
                freed(next);
            }
        }
    }
}

/// A topological order: of all tasks whose predecessors are listed, the one of greatest value; of equal
/// ones the first.
pub fn ready_by_decreasing(graph: &Graph, values: &[f64]) -> Vec<TaskId> {
    let entry = |task: TaskId| (Key(values[task.index()]), Reverse(task));
    let mut waiting = Waiting::new(graph);
    let mut ready: BinaryHeap<_> = Waiting::entries(graph).map(entry).collect();
    let mut order = Vec::with_capacity(graph.len());
    while let Some((_, Reverse(task))) = ready.pop() {
        order.push(task);
        waiting.end(graph, task, |next| ready.push(entry(next)));
    }
    order
}
