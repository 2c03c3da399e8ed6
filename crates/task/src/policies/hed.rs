//! HEFT's order with duplication.

use crate::placement::{Insertion, Placement};
use crate::ranks::{by_decreasing, upward_mean_s};
use crate::{Build, Problem, Schedule, Slot, TaskId, TaskPolicyInfo, WorkerId};

/// The registry's row.
pub static INFO: TaskPolicyInfo = TaskPolicyInfo {
    name: "hed",
    summary: "off-line: HEFT that executes a task again where its data would come too late",
    source: "Baskiyar and SaiRanga, Parallel Processing Workshops 2003 (heterogeneous scheduling with duplication); a reconstruction",
    documentation: "\
**Purpose.** Where communication is dear, computing something twice is cheaper than sending it.

**Algorithm.** Tasks are placed in the order of `heft`. On a worker, the predecessor whose data arrives last is executed once more if the task can then start earlier. The worker on which the task so ends first is chosen; there, \
predecessors that are last then are duplicated, too, as long as it helps. In the end executions that nobody needs are deleted, the latest first: those all of whose readers get their data in time from another execution. What remains starts as early as its order allows.

**Constants.** None.

**Example.** A task of 1 s with two successors of 3 s, whose data takes 10 s to the other worker: both workers execute the first task, and all ends after 4 s instead of 7 s.

**Limits.** Only direct predecessors are duplicated. The original deletes duplicates as long as the makespan stays, even if others are delayed; that would mean to evaluate the whole schedule for each. Its full text was not at hand. \
Duplicates cost energy.",
    params: &[],
    lazy: false,
    build: Build::OffLine(|_, problem| schedule(problem)),
};

fn schedule(problem: &Problem<'_>) -> Schedule {
    let mut placement = Placement::new(problem, Insertion::Gaps);
    for task in by_decreasing(&upward_mean_s(problem)) {
        let mut slot = best(problem, &placement, task);
        while let Some((duplicate, earlier)) = duplicated(problem, &placement, slot) {
            placement.place(duplicate);
            slot = earlier;
        }
        placement.place(slot);
    }
    without_redundant(problem, &placement.finish()).retimed(problem)
}

/// The execution of a task on the worker where it ends first, with or without a duplicate before it.
fn best(problem: &Problem<'_>, placement: &Placement<'_>, task: TaskId) -> Slot {
    let with_duplicate =
        |slot: &Slot| duplicated(problem, placement, *slot).map_or(*slot, |pair| pair.1);
    placement.least(task, |slot| with_duplicate(slot).end_s)
}

/// The predecessor that a task waits for longest, executed again on its worker, and the task then; none if it
/// would not start earlier.
fn duplicated(
    problem: &Problem<'_>,
    placement: &Placement<'_>,
    slot: Slot,
) -> Option<(Slot, Slot)> {
    let Slot { task, worker, .. } = slot;
    let arrival_s = |(from, comm_s): (TaskId, f64)| placement.available_s(from, comm_s, worker);
    let inputs = || problem.graph().inputs(task);
    let last = inputs().reduce(|a, b| if arrival_s(b) > arrival_s(a) { b } else { a })?;
    let duplicate = placement.slot_on(last.0, worker);
    if duplicate.end_s >= arrival_s(last) {
        return None;
    }
    let others = inputs().filter(|input| input.0 != last.0).map(arrival_s);
    let earlier = placement.slot_from(task, worker, others.fold(duplicate.end_s, f64::max));
    (earlier.start_s < slot.start_s).then_some((duplicate, earlier))
}

/// The schedule without executions all of whose readers get their data in time from another one.
fn without_redundant(problem: &Problem<'_>, schedule: &Schedule) -> Schedule {
    let graph = problem.graph();
    let mut of_task: Vec<Vec<Slot>> = vec![Vec::new(); graph.len()];
    schedule.slots().iter().for_each(|slot| of_task[slot.task.index()].push(*slot));
    for slot in schedule.slots().iter().rev() {
        let copies = &of_task[slot.task.index()];
        if copies.len() < 2 {
            continue;
        }
        let others = || copies.iter().filter(|copy| copy.worker != slot.worker);
        let in_time = |reader: &Slot, comm_s: f64| {
            others().any(|copy| {
                copy.end_s + delay_s(comm_s, copy.worker, reader.worker) <= reader.start_s
            })
        };
        let needless = graph.successors(slot.task).iter().all(|&next| {
            let comm_s = comm_s(problem, slot.task, next);
            of_task[next.index()].iter().all(|reader| in_time(reader, comm_s))
        });
        if needless {
            of_task[slot.task.index()].retain(|copy| copy.worker != slot.worker);
        }
    }
    Schedule::new(of_task.into_iter().flatten().collect())
}

fn delay_s(comm_s: f64, from: WorkerId, to: WorkerId) -> f64 {
    if from == to { 0.0 } else { comm_s }
}

/// Seconds that the data of a link takes between workers.
fn comm_s(problem: &Problem<'_>, from: TaskId, to: TaskId) -> f64 {
    let mut inputs = problem.graph().inputs(to);
    inputs.find(|input| input.0 == from).map_or(0.0, |input| input.1)
}
