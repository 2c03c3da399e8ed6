//! Dynamic level scheduling.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::placement::{Insertion, Placement};
use crate::ranks::{Key, Waiting, upward_s};
use crate::{Build, Problem, Schedule, TaskId, TaskPolicyInfo, WorkerId};

/// The registry's row.
pub static INFO: TaskPolicyInfo = TaskPolicyInfo {
    name: "dls",
    summary: "off-line: of all ready tasks and workers, always the pair of highest dynamic level",
    source: "Sih and Lee, IEEE TPDS 4(2), 1993, as restated by Topcuoglu et al., 2002, section 3; a reconstruction",
    documentation: "\
**Purpose.** Chooses task and worker together instead of one after the other.

**Algorithm.** A task's static level is the longest path behind it, median costs, itself included, without communication. The dynamic level of a ready task on a worker is its static level, minus the time at which both its data has \
arrived and the worker is free, plus its median cost minus its cost there. The pair of highest dynamic level is placed next, behind the worker's last task; equal ones: the smaller task, then the \
smaller worker.

**Constants.** None. The median of an even number of costs is the mean of the two in the middle.

**Example.** The graph of ten tasks on three processors of Topcuoglu et al., Figure 2: 91.

**Limits.** No insertion into gaps. The full text of the original was not at hand.",
    params: &[],
    lazy: false,
    build: Build::OffLine(|_, problem| Levels::schedule(problem)),
};

/// By dynamic level, smaller tasks first.
type Entry = (Key, Reverse<TaskId>);

/// Ready tasks as one worker sees them.
///
/// A task's dynamic level falls as time passes only once its data has arrived: then it is `score` - free
/// time, before it is `score` - arrival. Each kind has its queue, so no step looks at all ready tasks.
#[derive(Debug, Default)]
struct Ready {
    /// Data not arrived when the worker is free: by dynamic level.
    waiting: BinaryHeap<Entry>,
    /// The same tasks by arrival.
    arrivals: BinaryHeap<Reverse<(Key, TaskId)>>,
    /// Data arrived: by score.
    arrived: BinaryHeap<Entry>,
}

struct Levels<'p> {
    problem: &'p Problem<'p>,
    /// Static level + median cost of each task.
    levels_s: Vec<f64>,
    placement: Placement<'p>,
    ready: Vec<Ready>,
}

impl<'p> Levels<'p> {
    fn schedule(problem: &'p Problem<'p>) -> Schedule {
        let medians_s: Vec<f64> =
            problem.graph().tasks().map(|task| median_s(problem, task)).collect();
        let static_s = upward_s(problem.graph(), false, |task| medians_s[task.index()]);
        let mut levels = Self {
            problem,
            levels_s: static_s.iter().zip(&medians_s).map(|(level, own)| level + own).collect(),
            placement: Placement::new(problem, Insertion::Append),
            ready: problem.workers().ids().map(|_| Ready::default()).collect(),
        };
        let mut waiting = Waiting::new(problem.graph());
        Waiting::entries(problem.graph()).for_each(|task| levels.add(task));
        while let Some((task, worker)) = levels.best() {
            levels.placement.place(levels.placement.slot_on(task, worker));
            waiting.end(problem.graph(), task, |next| levels.add(next));
        }
        levels.placement.finish()
    }

    /// Static level + median cost - cost on the worker.
    fn score(&self, task: TaskId, worker: WorkerId) -> f64 {
        self.levels_s[task.index()] - self.problem.cost_s(task, worker)
    }

    fn add(&mut self, task: TaskId) {
        for worker in self.problem.workers().ids() {
            let arrival_s = self.placement.arrival_s(task, worker);
            let score = self.score(task, worker);
            let ready = &mut self.ready[worker.index()];
            ready.waiting.push((Key(score - arrival_s), Reverse(task)));
            ready.arrivals.push(Reverse((Key(arrival_s), task)));
        }
    }

    /// The pair of highest dynamic level.
    fn best(&mut self) -> Option<(TaskId, WorkerId)> {
        let mut best: Option<(Entry, WorkerId)> = None;
        for worker in self.problem.workers().ids() {
            if let Some(entry) = self.best_on(worker) {
                if best.is_none_or(|(greatest, _)| entry > greatest) {
                    best = Some((entry, worker));
                }
            }
        }
        best.map(|((_, Reverse(task)), worker)| (task, worker))
    }

    fn best_on(&mut self, worker: WorkerId) -> Option<Entry> {
        let free_s = self.placement.free_s(worker);
        while let Some(&Reverse((Key(arrival_s), task))) =
            self.ready[worker.index()].arrivals.peek()
        {
            if arrival_s > free_s {
                break;
            }
            let score = self.score(task, worker);
            let ready = &mut self.ready[worker.index()];
            ready.arrivals.pop();
            ready.arrived.push((Key(score), Reverse(task)));
        }
        let Ready { waiting, arrived, .. } = &mut self.ready[worker.index()];
        let placement = &self.placement;
        let placed = |entry: &Entry| placement.has(entry.1.0);
        // A task whose data has arrived stands in the other queue by now.
        let late = |entry: &Entry| placement.arrival_s(entry.1.0, worker) <= free_s;
        while waiting.peek().is_some_and(|entry| placed(entry) || late(entry)) {
            waiting.pop();
        }
        while arrived.peek().is_some_and(placed) {
            arrived.pop();
        }
        let now = arrived.peek().map(|&(Key(score), task)| (Key(score - free_s), task));
        now.max(waiting.peek().copied())
    }
}

/// Median cost of a task over all workers.
fn median_s(problem: &Problem<'_>, task: TaskId) -> f64 {
    let mut costs_s: Vec<(f64, usize)> = problem
        .costs_s(task)
        .iter()
        .zip(problem.workers().classes())
        .map(|(&cost_s, class)| (cost_s, class.count))
        .collect();
    costs_s.sort_by(|a, b| a.0.total_cmp(&b.0));
    let at = |place: usize| {
        let mut before = 0;
        let found = costs_s.iter().find(|(_, count)| {
            before += count;
            place < before
        });
        found.expect("the place is that of a worker").0
    };
    let count = problem.workers().len();
    (at((count - 1) / 2) + at(count / 2)) / 2.0
}
