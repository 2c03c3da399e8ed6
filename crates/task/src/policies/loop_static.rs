//! Parallel loops, cut into one block per worker.

use super::support::lists::Lists;
use super::support::loops::Loops;
use crate::{Build, Pick, TaskId, TaskPolicy, TaskPolicyInfo, Tasks, WorkerId};

/// The registry's row.
pub static INFO: TaskPolicyInfo = TaskPolicyInfo {
    name: "loop-static",
    summary: "each level is a parallel loop in one block per worker, with a barrier at its end",
    source: "Chronaki et al., JPDC 2018, section 2; OpenMP 5.2, section 11.5.3, `schedule(static)`",
    documentation: "\
**Purpose.** The default of OpenMP's parallel loops.

**Algorithm.** As `static`, but no worker begins a level before all have ended the one before: the barrier at the end of a loop. Without that barrier (`nowait`) it is `static`.

**Constants.** None. Block lengths differ by one iteration at most, the longer ones first, as in libgomp.

**Example.** Ten iterations on four workers: blocks of 3, 3, 2, 2.

**Limits.** Every loop takes as long as its slowest worker; dependences that would allow more overlap are not used.",
    params: &[],
    lazy: false,
    build: Build::OnLine(|_, workers| {
        Box::new(LoopStatic { lists: Lists::new(workers.len()), loops: Loops::default() })
    }),
};

/// Loops in blocks.
#[derive(Debug)]
struct LoopStatic {
    lists: Lists,
    loops: Loops,
}

impl TaskPolicy for LoopStatic {
    fn needs_whole_graph(&self) -> bool {
        true
    }

    fn created(&mut self, tasks: &dyn Tasks, _first: TaskId) {
        let new = self.loops.extend(tasks);
        new.iter().for_each(|level| self.lists.deal_blocks(level));
    }

    fn ready(&mut self, _tasks: &dyn Tasks, task: TaskId, _by: Option<WorkerId>) {
        self.lists.set_ready(task);
    }

    fn ended(&mut self, task: TaskId) {
        self.loops.ended(task);
    }

    fn next(&mut self, _tasks: &dyn Tasks, worker: WorkerId) -> Option<Pick> {
        let task = self.lists.head(worker).filter(|&task| self.loops.is_current(task))?;
        self.lists.pop(worker);
        Some(Pick::own(task))
    }
}
