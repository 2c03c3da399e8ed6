//! Executes a schedule that was computed beforehand.

use super::support::lists::Lists;
use crate::{Pick, Schedule, TaskId, TaskPolicy, Tasks, WorkerId};

/// Each worker executes its tasks in the order of a schedule, each one as soon as it is ready.
#[derive(Debug)]
pub struct Replay {
    lists: Lists,
}

impl Replay {
    /// Executes a schedule for so many workers.
    pub fn new(schedule: &Schedule, workers: usize) -> Self {
        let mut lists = Lists::new(workers);
        schedule.slots().iter().for_each(|slot| lists.push(slot.worker, slot.task));
        Self { lists }
    }
}

impl TaskPolicy for Replay {
    fn needs_whole_graph(&self) -> bool {
        true
    }

    fn ready(&mut self, _tasks: &dyn Tasks, task: TaskId, _by: Option<WorkerId>) {
        self.lists.set_ready(task);
    }

    fn next(&mut self, _tasks: &dyn Tasks, worker: WorkerId) -> Option<Pick> {
        let task = self.lists.head(worker)?;
        self.lists.pop(worker);
        Some(Pick::own(task))
    }
}
