//! Parallel loops whose iterations idle workers fetch.

use std::ops::Range;

use ampsched_policy::{ParamInfo, Params};

use super::support::loops::Loops;
use crate::{Build, Pick, TaskId, TaskPolicy, TaskPolicyInfo, Tasks, WorkerId, Workers};

/// The registry's row.
pub static INFO: TaskPolicyInfo = TaskPolicyInfo {
    name: "loop-dynamic",
    summary: "each level is a parallel loop of whose iterations idle workers fetch the next few",
    source: "Chronaki et al., JPDC 2018, section 2; OpenMP 5.2, section 11.5.3, `schedule(dynamic)` and `schedule(guided)`",
    documentation: "\
**Purpose.** OpenMP's loops for uneven iterations or, as here, uneven workers.

**Algorithm.** Workers share a counter of iterations. An idle worker takes the next `chunk` iterations of the running loop; with `guided` an equal share of those that are left, but at least `chunk`. The next level begins \
when all iterations of the level have ended.

**Constants.** `chunk` = 1, OpenMP's default; the paper does not state its own. Fetching costs what the workers' class says (time per grab).

**Example.** 800 equal iterations on four workers of speed 3.03 and one of speed 1, chunk 1: 13.1 times one little worker, where 13.12 are possible; with chunk 25 the little worker's last chunk is late, and it is 10.67.

**Limits.** A barrier at the end of each level; a large chunk taken last by a slow worker delays it.",
    params: &[
        ParamInfo::number("chunk", 1.0, 1.0, 1e9, "iterations per fetch (OpenMP: 1)"),
        ParamInfo::flag(
            "guided",
            false,
            "fetch left / workers iterations, at least chunk (OpenMP: guided)",
        ),
    ],
    lazy: false,
    build: Build::OnLine(|params, workers| Box::new(LoopDynamic::new(params, workers))),
};

/// Loops whose iterations are fetched.
#[derive(Debug)]
struct LoopDynamic {
    chunk: usize,
    guided: bool,
    loops: Loops,
    /// Iterations of each loop that have been fetched.
    fetched: Vec<usize>,
    /// What each worker has fetched of the running loop and not begun.
    own: Vec<Range<usize>>,
}

impl LoopDynamic {
    fn new(params: &Params, workers: &Workers) -> Self {
        Self {
            chunk: params.number("chunk").round() as usize,
            guided: params.flag("guided"),
            loops: Loops::default(),
            fetched: Vec::new(),
            own: vec![0..0; workers.len()],
        }
    }

    /// How many of the iterations that are left a worker fetches.
    fn share(&self, left: usize) -> usize {
        let equal = if self.guided { left.div_ceil(self.own.len()) } else { 0 };
        equal.max(self.chunk).min(left)
    }
}

impl TaskPolicy for LoopDynamic {
    fn needs_whole_graph(&self) -> bool {
        true
    }

    fn created(&mut self, tasks: &dyn Tasks, _first: TaskId) {
        self.loops.extend(tasks);
        self.fetched.resize(self.loops.len(), 0);
    }

    /// All iterations of the running loop are ready: what they wait for was in loops before.
    fn ready(&mut self, _tasks: &dyn Tasks, _task: TaskId, _by: Option<WorkerId>) {}

    fn ended(&mut self, task: TaskId) {
        self.loops.ended(task);
    }

    fn next(&mut self, _tasks: &dyn Tasks, worker: WorkerId) -> Option<Pick> {
        let iterations = self.loops.iterations();
        if let Some(own) = self.own[worker.index()].next() {
            return Some(Pick::own(iterations[own]));
        }
        let fetched = self.fetched.get(self.loops.current()).copied()?;
        let first = *iterations.get(fetched)?;
        let end = fetched + self.share(iterations.len() - fetched);
        self.own[worker.index()] = fetched + 1..end;
        self.fetched[self.loops.current()] = end;
        Some(Pick::shared(first))
    }
}
