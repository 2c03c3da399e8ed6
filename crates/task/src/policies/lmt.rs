//! Levelized min time.

use crate::placement::{Insertion, Placement};
use crate::ranks::Levels;
use crate::{Build, Problem, Schedule, TaskId, TaskPolicyInfo};

/// The registry's row.
pub static INFO: TaskPolicyInfo = TaskPolicyInfo {
    name: "lmt",
    summary: "off-line: level by level, costly tasks first, each to the worker that ends it first",
    source: "Iverson, Özgüner, Follen, Heterogeneous Computing Workshop 1995; a reconstruction",
    documentation: "\
**Purpose.** A simple off-line scheduler: tasks of one level are independent, so each level is a small problem.

**Algorithm.** Tasks are grouped by depth. Levels are placed in their order; inside a level the task of greatest mean cost first, on the worker that ends it first, behind that worker's last task. \
Equal costs: the smaller number; equal ends: the smaller worker.

**Constants.** None. The original is described with several rules for choosing the worker; the finish time is ours.

**Example.** The graph of ten tasks on three processors of Topcuoglu et al. (2002), Figure 2: 76 with this rule. The paper quotes another value for the original rule, so it is no check of this one.

**Limits.** A long path through cheap tasks is not noticed.",
    params: &[],
    lazy: false,
    build: Build::OffLine(|_, problem| schedule(problem)),
};

fn schedule(problem: &Problem<'_>) -> Schedule {
    let mut placement = Placement::new(problem, Insertion::Append);
    let levels = Levels::of(problem);
    for level in 0..levels.len() {
        let mut tasks: Vec<TaskId> = levels.tasks(level).to_vec();
        tasks.sort_by(|&a, &b| problem.mean_s(b).total_cmp(&problem.mean_s(a)));
        for task in tasks {
            placement.place(placement.earliest(task));
        }
    }
    placement.finish()
}
