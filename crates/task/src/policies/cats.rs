//! CATS: criticality-aware tasks.

use ampsched_policy::{ParamInfo, Params};

use super::support::critical::{CriticalQueues, Options};
use crate::{Build, Pick, TaskId, TaskPolicy, TaskPolicyInfo, Tasks, Weight, WorkerId};

/// The parameters that CATS and its variant share.
pub(super) const PARAMS: &[ParamInfo] = &[
    ParamInfo::flag(
        "steal",
        false,
        "little workers take critical tasks when nothing else is ready; off in Nanos++",
    ),
    ParamInfo::flag(
        "strict",
        false,
        "a task whose bottom level only equals the greatest one is not critical; off in Nanos++",
    ),
    ParamInfo::flag(
        "ordered",
        true,
        "queues serve the greatest bottom level first, else in the order of readiness (0: an ablation)",
    ),
    ParamInfo::flag(
        "apart",
        true,
        "critical tasks have a queue of their own, else all tasks share one (0: an ablation)",
    ),
    ParamInfo::flag(
        "follow",
        true,
        "a successor of the last critical task on its longest path is critical, too (0: an ablation)",
    ),
];

/// The registry's row.
pub static INFO: TaskPolicyInfo = TaskPolicyInfo {
    name: "cats",
    summary: "critical tasks, found by counting the tasks behind them, go to big workers",
    source: "Chronaki et al., Criticality-aware dynamic task scheduling for heterogeneous architectures, ICS 2015; as in the Nanos++ plug-in `botlev`",
    documentation: "\
**Purpose.** Keeps the longest path of a task graph on the big workers without knowing what tasks cost.

**Algorithm.** A task's bottom level is the number of tasks on the longest path behind it. A task that becomes ready is critical if its bottom level is above that of the last \
critical task (or equal, unless `strict`), or if it succeeds that task on its longest path. Big workers take critical tasks, else others; little workers take others, \
and critical ones only with `steal`. As long as no worker is big, all act as big ones. Both queues serve the greatest bottom level first, equal ones in the order of readiness. \
`ordered`, `apart` and `follow` = 0 each take one of these rules away; without the first two `fifo` is left.

**Constants.** The greatest bottom level starts at one hop, as in Nanos++, so an exit task is never the first critical one. The 300 spins of an idle worker before it looks into the other queue take no \
simulated time.

**Example.** A chain a, b, c, d and two free tasks x, y of 4 s on a little worker, 2 s on a big one, one of each: the big worker runs the chain, the little one x and y; all ends after 8 s. \
`fifo` gives x or y to the big worker, delays the chain, and needs 10 s.

**Limits.** It counts tasks, not their durations (see `cats-cost`). Without `steal`, little workers may idle while critical tasks wait for a big one.",
    params: PARAMS,
    lazy: true,
    build: Build::OnLine(|params, workers| {
        Box::new(Cats { queues: CriticalQueues::new(options(params), Weight::Hops, workers) })
    }),
};

/// The options that the parameters state.
pub(super) fn options(params: &Params) -> Options {
    Options {
        steal: params.flag("steal"),
        strict: params.flag("strict"),
        ordered: params.flag("ordered"),
        apart: params.flag("apart"),
        follow: params.flag("follow"),
    }
}

/// CATS with any weight of tasks.
#[derive(Debug)]
pub(super) struct Cats {
    /// Ready tasks.
    pub queues: CriticalQueues,
}

impl TaskPolicy for Cats {
    fn created(&mut self, tasks: &dyn Tasks, first: TaskId) {
        self.queues.created(tasks, first);
    }

    fn ready(&mut self, tasks: &dyn Tasks, task: TaskId, _by: Option<WorkerId>) {
        self.queues.ready(tasks, task);
    }

    fn moved(&mut self, worker: WorkerId, is_big: bool) {
        self.queues.moved(worker, is_big);
    }

    fn next(&mut self, _tasks: &dyn Tasks, worker: WorkerId) -> Option<Pick> {
        self.queues.next(worker)
    }
}
