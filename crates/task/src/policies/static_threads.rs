//! Static threading.

use super::support::lists::Lists;
use super::support::loops::Loops;
use crate::{Build, Pick, TaskId, TaskPolicy, TaskPolicyInfo, Tasks, WorkerId};

/// The registry's row.
pub static INFO: TaskPolicyInfo = TaskPolicyInfo {
    name: "static",
    summary: "every worker has an equal, fixed share of each level of the graph: pinned threads",
    source: "Chronaki et al., JPDC 2018, section 2: the baseline (pthreads, one pinned thread per core)",
    documentation: "\
**Purpose.** How programs for equal cores divide their work; the baseline of the JPDC 2018 paper.

**Algorithm.** The tasks of each level of the graph (those with equally many tasks on the longest path before them) are dealt out in contiguous blocks of equal length, one per worker. A worker executes its \
tasks in their order and waits for those that are not ready. Waiting for others is up to the graph: a barrier is a task that all wait for.

**Constants.** None.

**Example.** 800 equal iterations on four workers of speed 3.03 and four of speed 1: 100 iterations each, and the speed of the slowest rules: 8 times one little worker, where 16.1 are possible.

**Limits.** Blind to costs and to the speed of workers. Thread pools of pipelines with more threads than cores are a matter of the operating system's policy and not modelled here.",
    params: &[],
    lazy: false,
    build: Build::OnLine(|_, workers| {
        Box::new(StaticThreads { lists: Lists::new(workers.len()), levels: Loops::default() })
    }),
};

/// Static threading.
#[derive(Debug)]
struct StaticThreads {
    lists: Lists,
    levels: Loops,
}

impl TaskPolicy for StaticThreads {
    fn needs_whole_graph(&self) -> bool {
        true
    }

    fn created(&mut self, tasks: &dyn Tasks, _first: TaskId) {
        let new = self.levels.extend(tasks);
        new.iter().for_each(|level| self.lists.deal_blocks(level));
    }

    fn ready(&mut self, _tasks: &dyn Tasks, task: TaskId, _by: Option<WorkerId>) {
        self.lists.set_ready(task);
    }

    fn next(&mut self, _tasks: &dyn Tasks, worker: WorkerId) -> Option<Pick> {
        let task = self.lists.head(worker)?;
        self.lists.pop(worker);
        Some(Pick::own(task))
    }
}
