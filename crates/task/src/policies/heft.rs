//! Heterogeneous earliest finish time.

use crate::placement::{Insertion, Placement};
use crate::ranks::{by_decreasing, upward_mean_s};
use crate::{Build, Problem, Schedule, TaskPolicyInfo};

/// The registry's row.
pub static INFO: TaskPolicyInfo = TaskPolicyInfo {
    name: "heft",
    summary: "off-line: longest remaining path first, each task to the worker that ends it first",
    source: "Topcuoglu, Hariri, Wu, IEEE TPDS 13(3), 2002, section 4.1",
    documentation: "\
**Purpose.** The standard of list scheduling on unequal processors; what others are measured against.

**Algorithm.** A task's rank is its mean cost over all workers plus the longest path behind it, communication included. Tasks are placed by decreasing rank, each on the worker where it \
ends first, in the earliest gap between tasks placed before that can hold it. Equal ranks: the smaller number; equal ends: the smaller worker.

**Constants.** None.

**Example.** The graph of ten tasks on three processors in the paper's Figure 2: 80.

**Limits.** It needs all costs beforehand, and looks one task ahead only.",
    params: &[],
    lazy: false,
    build: Build::OffLine(|_, problem| schedule(problem)),
};

fn schedule(problem: &Problem<'_>) -> Schedule {
    let mut placement = Placement::new(problem, Insertion::Gaps);
    for task in by_decreasing(&upward_mean_s(problem)) {
        placement.place(placement.earliest(task));
    }
    placement.finish()
}
