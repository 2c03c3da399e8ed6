//! One global queue.

use std::collections::VecDeque;

use crate::{Build, Pick, TaskId, TaskPolicy, TaskPolicyInfo, Tasks, WorkerId};

/// The registry's row.
pub static INFO: TaskPolicyInfo = TaskPolicyInfo {
    name: "fifo",
    summary: "one global queue in the order of readiness: what OmpSs and OpenMP tasks do",
    source: "Chronaki et al., JPDC 2018, section 2: the task-based variant (OmpSs, OpenMP 4.0 `depend`)",
    documentation: "\
**Purpose.** The task-based variant of the JPDC 2018 paper, and the baseline of all task policies.

**Algorithm.** A task that becomes ready joins the end of one queue. An idle worker takes its head. Of several idle workers the one with the smallest number asks first.

**Constants.** None.

**Example.** Three ready tasks a, b, c and two workers: the first runs a, the second b; c goes to whichever ends first.

**Limits.** Blind to costs and to the speed of workers. With few, coarse tasks at the end, a little worker may take the last one while big ones idle.",
    params: &[],
    lazy: true,
    build: Build::OnLine(|_, _| Box::<Fifo>::default()),
};

/// One global queue.
#[derive(Debug, Default)]
struct Fifo {
    queue: VecDeque<TaskId>,
}

impl TaskPolicy for Fifo {
    fn ready(&mut self, _tasks: &dyn Tasks, task: TaskId, _by: Option<WorkerId>) {
        self.queue.push_back(task);
    }

    fn next(&mut self, _tasks: &dyn Tasks, _worker: WorkerId) -> Option<Pick> {
        self.queue.pop_front().map(Pick::shared)
    }
}
