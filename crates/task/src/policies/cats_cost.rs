//! CATS with bottom levels weighted by predicted cost.

use super::cats::{Cats, PARAMS, options};
use super::support::critical::CriticalQueues;
use crate::{Build, TaskPolicyInfo, Weight};

/// The registry's row.
pub static INFO: TaskPolicyInfo = TaskPolicyInfo {
    name: "cats-cost",
    summary: "CATS whose bottom levels add up predicted costs instead of counting tasks",
    source: "this project's variant of CATS (Chronaki et al., ICS 2015)",
    documentation: "\
**Purpose.** Removes the weakness that CATS's authors name: a path of few long tasks counts for less than one of many short ones.

**Algorithm.** As `cats`, but a task's bottom level is the predicted time of the longest path behind it, itself included, on the fastest class of workers, where critical tasks are meant to run. \
A successor of the last critical task is critical if its bottom level is at least that task's bottom level without the task itself.

**Constants.** The greatest bottom level starts at the cost of the costliest single task, which is what one hop is in `cats`: a task is first found critical when something follows it.

**Example.** A path of two tasks of 10 s and one of three tasks of 1 s, one big worker: `cats` holds the second one for critical, `cats-cost` the first.

**Limits.** It needs predictions; in simulation they are exact, in a runtime they are measured means of earlier tasks of the same kind.",
    params: PARAMS,
    lazy: true,
    build: Build::OnLine(|params, workers| {
        let weight = Weight::Cost(workers.fastest_class());
        Box::new(Cats { queues: CriticalQueues::new(options(params), weight, workers) })
    }),
};
