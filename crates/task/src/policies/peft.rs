//! Predict earliest finish time.

use crate::placement::{Insertion, Placement};
use crate::ranks::ready_by_decreasing;
use crate::{Build, Problem, Schedule, TaskPolicyInfo};

/// The registry's row.
pub static INFO: TaskPolicyInfo = TaskPolicyInfo {
    name: "peft",
    summary: "off-line: like HEFT, but looks ahead to the exit with a table of optimistic costs",
    source: "Arabnejad and Barbosa, IEEE TPDS 25(3), 2014",
    documentation: "\
**Purpose.** HEFT's choice of a worker ignores what follows; this one adds what follows at its best.

**Algorithm.** The optimistic cost of a task on a worker is the longest way from it to an exit if every task behind it could choose its worker freely, paying communication whenever the worker changes. A task's priority is the mean \
of its optimistic costs. Of the ready tasks the one of highest priority is next; it goes to the worker for which its end plus its optimistic cost there is least, with insertion. Equal ones: the smaller number.

**Constants.** None.

**Example.** The graph of ten tasks on three processors in the paper's Figure 2: 122, where HEFT needs 133.

**Limits.** Ways to the exit do not compete for workers in the table, so it underestimates wide graphs.",
    params: &[],
    lazy: false,
    build: Build::OffLine(|_, problem| schedule(problem)),
};

fn schedule(problem: &Problem<'_>) -> Schedule {
    let optimistic_s = optimistic_s(problem);
    let (workers, classes) = (problem.workers(), problem.workers().classes());
    let mean_s = |row: &[f64]| {
        let weighted = row.iter().zip(classes).map(|(cost_s, class)| cost_s * class.count as f64);
        weighted.sum::<f64>() / workers.len() as f64
    };
    let priorities: Vec<f64> = optimistic_s.chunks(classes.len()).map(mean_s).collect();
    let mut placement = Placement::new(problem, Insertion::Gaps);
    for task in ready_by_decreasing(problem.graph(), &priorities) {
        let row = &optimistic_s[task.index() * classes.len()..][..classes.len()];
        let slot =
            placement.least(task, |slot| slot.end_s + row[workers.class_of(slot.worker).index()]);
        placement.place(slot);
    }
    placement.finish()
}

/// The optimistic cost table by task and class. Workers of one class have equal rows: staying on the same
/// worker is never worse than moving to another one of its class.
fn optimistic_s(problem: &Problem<'_>) -> Vec<f64> {
    let (graph, classes) = (problem.graph(), problem.workers().classes().len());
    let mut table_s = vec![0.0_f64; graph.len() * classes];
    let mut through_s = vec![0.0; classes];
    for task in graph.tasks().rev() {
        let row = &table_s[task.index() * classes..][..classes];
        for (through_s, (after_s, cost_s)) in
            through_s.iter_mut().zip(row.iter().zip(problem.costs_s(task)))
        {
            *through_s = after_s + cost_s;
        }
        let elsewhere_s = through_s.iter().copied().fold(f64::INFINITY, f64::min);
        for (from, comm_s) in graph.inputs(task) {
            let row = &mut table_s[from.index() * classes..][..classes];
            for (longest_s, here_s) in row.iter_mut().zip(&through_s) {
                *longest_s = longest_s.max(here_s.min(elsewhere_s + comm_s));
            }
        }
    }
    table_s
}
