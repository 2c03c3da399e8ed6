//! A task graph as a sequence of parallel loops: each level is a loop, with a barrier at its end.

use crate::ranks::Levels;
use crate::{TaskId, Tasks};

/// Which loop is running.
#[derive(Clone, Debug, Default)]
pub struct Loops {
    levels: Levels,
    /// Iterations of each loop that have not ended.
    left: Vec<usize>,
    current: usize,
    known: usize,
}

impl Loops {
    /// Adds the tasks that have been created and returns those of each level.
    pub fn extend(&mut self, tasks: &dyn Tasks) -> Vec<Vec<TaskId>> {
        self.levels.extend(tasks);
        self.left.resize(self.levels.len(), 0);
        let mut new = vec![Vec::new(); self.levels.len()];
        for task in (self.known..tasks.len()).map(TaskId::from) {
            let level = self.levels.level(task);
            self.left[level] += 1;
            new[level].push(task);
            self.current = self.current.min(level);
        }
        self.known = tasks.len();
        new
    }

    /// Iterations of the running loop; none if all loops have ended.
    pub fn iterations(&self) -> &[TaskId] {
        if self.current < self.levels.len() { self.levels.tasks(self.current) } else { &[] }
    }

    /// Number of the running loop.
    pub fn current(&self) -> usize {
        self.current
    }

    /// Number of loops.
    pub fn len(&self) -> usize {
        self.left.len()
    }

    /// Whether a task is an iteration of the running loop.
    pub fn is_current(&self, task: TaskId) -> bool {
        self.levels.level(task) == self.current
    }

    /// An iteration has ended; the last one of a loop starts the next loop.
    pub fn ended(&mut self, task: TaskId) {
        self.left[self.levels.level(task)] -= 1;
        while self.left.get(self.current) == Some(&0) {
            self.current += 1;
        }
    }
}
