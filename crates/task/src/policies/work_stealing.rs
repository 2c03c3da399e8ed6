//! A deque per worker, and stealing.

use std::collections::VecDeque;

use crate::{Build, Pick, TaskId, TaskPolicy, TaskPolicyInfo, Tasks, WorkerId, Workers};

/// The registry's row.
pub static INFO: TaskPolicyInfo = TaskPolicyInfo {
    name: "work-stealing",
    summary: "each worker runs the newest task it has freed; idle ones steal the oldest of others",
    source: "Blumofe and Leiserson, Scheduling multithreaded computations by work stealing, J. ACM 46(5), 1999; as in Cilk, oneTBB and rayon",
    documentation: "\
**Purpose.** What most task runtimes do today; keeps data in caches and needs no global queue.

**Algorithm.** A task joins the deque of the worker that ended its last predecessor; tasks without predecessors join the deque of worker 0, which creates them. A worker takes the newest task of its own deque. If that is \
empty it steals the oldest task of the next worker that has one, in the order of the numbers from its own on.

**Constants.** None. The original steals from a random victim; here the order is fixed, as a policy has no random source, and each thief begins at another victim.

**Example.** Worker 0 creates a, b, c. It runs c, worker 1 steals a, worker 2 steals b.

**Limits.** Blind to costs and to the speed of workers; a little worker keeps what it has freed until somebody idles.",
    params: &[],
    lazy: true,
    build: Build::OnLine(|_, workers| Box::new(WorkStealing::new(workers))),
};

/// A deque per worker.
#[derive(Debug)]
struct WorkStealing {
    deques: Vec<VecDeque<TaskId>>,
}

impl WorkStealing {
    fn new(workers: &Workers) -> Self {
        Self { deques: vec![VecDeque::new(); workers.len()] }
    }
}

impl TaskPolicy for WorkStealing {
    fn ready(&mut self, _tasks: &dyn Tasks, task: TaskId, by: Option<WorkerId>) {
        self.deques[by.unwrap_or_default().index()].push_back(task);
    }

    fn next(&mut self, _tasks: &dyn Tasks, worker: WorkerId) -> Option<Pick> {
        let (count, own) = (self.deques.len(), worker.index());
        if let Some(task) = self.deques[own].pop_back() {
            return Some(Pick::own(task));
        }
        let mut victims = (1..count).map(|step| (own + step) % count);
        let victim = victims.find(|&victim| !self.deques[victim].is_empty())?;
        self.deques[victim].pop_front().map(Pick::shared)
    }
}
