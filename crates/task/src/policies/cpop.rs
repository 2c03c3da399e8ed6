//! Critical path on a processor.

use crate::placement::{Insertion, Placement};
use crate::ranks::{downward_mean_s, ready_by_decreasing, upward_mean_s};
use crate::{Build, Problem, Schedule, TaskId, TaskPolicyInfo, WorkerId};

/// Priorities on the critical path are equal in theory; sums of doubles agree to about this part.
const EQUAL: f64 = 1e-9;

/// The registry's row.
pub static INFO: TaskPolicyInfo = TaskPolicyInfo {
    name: "cpop",
    summary: "off-line: the whole critical path on the one worker that executes it fastest",
    source: "Topcuoglu, Hariri, Wu, IEEE TPDS 13(3), 2002, section 4.2",
    documentation: "\
**Purpose.** Avoids all communication along the critical path.

**Algorithm.** A task's priority is the length of the longest path through it (upward plus downward rank, mean costs). The critical path starts at the entry task of highest priority and follows successors of the same \
priority. Its tasks go to the worker on which they take least time together; every other task to the worker that ends it first, with insertion. Of the ready tasks the one of highest priority is next; \
equal ones: the smaller number.

**Constants.** Priorities that differ by less than 1e-9 of their value count as equal.

**Example.** The graph of ten tasks on three processors in the paper's Figure 2: critical path 1, 2, 9, 10 on the second processor, 86.

**Limits.** One worker carries the whole path even if another is free; with several equal critical paths only one is followed.",
    params: &[],
    lazy: false,
    build: Build::OffLine(|_, problem| schedule(problem)),
};

fn schedule(problem: &Problem<'_>) -> Schedule {
    let (up, down) = (upward_mean_s(problem), downward_mean_s(problem));
    let priorities: Vec<f64> = up.iter().zip(&down).map(|(up, down)| up + down).collect();
    let path = critical_path(problem, &priorities);
    let worker = fastest_for(problem, &path);
    let mut is_critical = vec![false; priorities.len()];
    path.iter().for_each(|task| is_critical[task.index()] = true);
    let mut placement = Placement::new(problem, Insertion::Gaps);
    for task in ready_by_decreasing(problem.graph(), &priorities) {
        let slot = if is_critical[task.index()] {
            placement.slot_on(task, worker)
        } else {
            placement.earliest(task)
        };
        placement.place(slot);
    }
    placement.finish()
}

/// From the entry task of highest priority along successors of the same priority.
fn critical_path(problem: &Problem<'_>, priorities: &[f64]) -> Vec<TaskId> {
    let graph = problem.graph();
    let priority = |task: TaskId| priorities[task.index()];
    let entries = graph.tasks().filter(|&task| graph.predecessors(task).is_empty());
    let first =
        entries.reduce(|best, task| if priority(task) > priority(best) { task } else { best });
    let mut path: Vec<TaskId> = first.into_iter().collect();
    while let Some(&last) = path.last() {
        let same = priority(path[0]) * (1.0 - EQUAL);
        let mut following = graph.successors(last).iter().copied();
        match following.find(|&next| priority(next) >= same) {
            Some(next) => path.push(next),
            None => break,
        }
    }
    path
}

/// The worker on which these tasks take least time together.
fn fastest_for(problem: &Problem<'_>, path: &[TaskId]) -> WorkerId {
    let total_s =
        |worker: WorkerId| path.iter().map(|&task| problem.cost_s(task, worker)).sum::<f64>();
    let workers = problem.workers().ids();
    workers
        .reduce(|best, worker| if total_s(worker) < total_s(best) { worker } else { best })
        .expect("there is a worker")
}
