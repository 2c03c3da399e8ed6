//! The critical-task queues of CATS, for bottom levels of any weight.
//!
//! A task is critical if it continues the longest path that is known to be left, or starts a longer one.
//! Big workers take critical tasks first, little ones the others. Where there is no big worker, all act as one.

use std::collections::BinaryHeap;

use crate::{BottomLevels, Pick, TaskId, Tasks, Weight, WorkerId, Workers};

/// Options of the policy.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Little workers may take critical tasks when there is nothing else.
    pub steal: bool,
    /// A task whose bottom level only equals the greatest one is not critical.
    pub strict: bool,
    /// Queues serve the greatest bottom level first, else in the order of readiness.
    pub ordered: bool,
    /// Critical tasks have a queue of their own.
    pub apart: bool,
    /// A successor of the last critical task on its longest path is critical, too.
    pub follow: bool,
}

/// By bottom level (its bits are ordered as the level is, since none is negative), then in the order of readiness.
///
/// The second number is the complement of a serial number, which starts anew after 2^32 tasks, and the task: half as
/// many bytes to move as in a tuple of three.
type Queue = BinaryHeap<(u64, u64)>;

/// Ready tasks, critical and not.
#[derive(Debug)]
pub struct CriticalQueues {
    options: Options,
    is_big: Vec<bool>,
    /// Number of big workers.
    big_count: usize,
    bottom: BottomLevels,
    /// `currMax`: bottom level of the last critical task.
    greatest: f64,
    /// The last critical task: its successors may continue its path.
    last: Option<TaskId>,
    critical: Queue,
    others: Queue,
    serial: u32,
}

impl CriticalQueues {
    /// Empty queues for these workers.
    pub fn new(options: Options, weight: Weight, workers: &Workers) -> Self {
        let is_big: Vec<bool> = workers.ids().map(|worker| workers.is_big(worker)).collect();
        Self {
            options,
            big_count: is_big.iter().filter(|&&is_big| is_big).count(),
            is_big,
            bottom: BottomLevels::new(weight),
            greatest: 0.0,
            last: None,
            critical: Queue::new(),
            others: Queue::new(),
            serial: 0,
        }
    }

    /// Computes the bottom levels of new tasks and raises those of the tasks before them.
    pub fn created(&mut self, tasks: &dyn Tasks, first: TaskId) {
        if first == TaskId(0) {
            self.greatest = self.longest_single(tasks);
        }
        self.bottom.created(tasks, first);
    }

    /// Where `currMax` starts: Nanos++ starts at one hop, so that the first critical task is no exit. The
    /// same in weights: just above the heaviest single task; in hops that is a path of two tasks.
    fn longest_single(&self, tasks: &dyn Tasks) -> f64 {
        match self.bottom.weight() {
            Weight::Hops => 2.0,
            weight @ Weight::Cost(_) => {
                let weights = (0..tasks.len()).map(|task| weight.of(tasks, TaskId::from(task)));
                weights.fold(0.0, f64::max) * (1.0 + f64::EPSILON)
            }
        }
    }

    /// A task may run now: critical or not?
    pub fn ready(&mut self, tasks: &dyn Tasks, task: TaskId) {
        let level = self.bottom.of(task);
        let longer = level > self.greatest || (level == self.greatest && !self.options.strict);
        let is_critical = longer || self.options.follow && self.continues(tasks, task, level);
        self.serial = self.serial.wrapping_add(1);
        let rank = if self.options.ordered { level.to_bits() } else { 0 };
        let entry = (rank, u64::from(!self.serial) << 32 | u64::from(task.0));
        if is_critical {
            self.greatest = level;
            self.last = Some(task);
        }
        // Every worker serves the queue of the others: without a queue apart it is the only one.
        let queue =
            if is_critical && self.options.apart { &mut self.critical } else { &mut self.others };
        queue.push(entry);
    }

    /// Whether a task is on the longest path behind the last critical task.
    fn continues(&self, tasks: &dyn Tasks, task: TaskId, level: f64) -> bool {
        let Some(last) = self.last else { return false };
        level >= self.greatest - self.bottom.weight().of(tasks, last)
            && tasks.predecessors(task).contains(&last)
    }

    /// A worker has been moved to a core of the fastest kind, or off one.
    pub fn moved(&mut self, worker: WorkerId, is_big: bool) {
        let was_big = std::mem::replace(&mut self.is_big[worker.index()], is_big);
        self.big_count = self.big_count - usize::from(was_big) + usize::from(is_big);
    }

    /// The next task for a worker.
    pub fn next(&mut self, worker: WorkerId) -> Option<Pick> {
        // Somebody has to execute critical tasks.
        let acts_as_big = self.is_big[worker.index()] || self.big_count == 0;
        let (own, other, may_help) = if acts_as_big {
            (&mut self.critical, &mut self.others, true)
        } else {
            (&mut self.others, &mut self.critical, self.options.steal)
        };
        let found = own.pop().or_else(|| if may_help { other.pop() } else { None });
        found.map(|(_, order)| Pick::shared(TaskId(order as u32)))
    }
}
