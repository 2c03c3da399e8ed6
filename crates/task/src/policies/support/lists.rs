//! A fixed list of tasks for each worker, executed strictly in its order.

use std::collections::VecDeque;

use crate::{TaskId, WorkerId};

/// Lists of tasks, one per worker.
#[derive(Clone, Debug)]
pub struct Lists {
    of: Vec<VecDeque<TaskId>>,
    ready: Vec<bool>,
}

impl Lists {
    /// Empty lists of so many workers.
    pub fn new(workers: usize) -> Self {
        Self { of: vec![VecDeque::new(); workers], ready: Vec::new() }
    }

    /// Puts a task at the end of a worker's list.
    pub fn push(&mut self, worker: WorkerId, task: TaskId) {
        self.of[worker.index()].push_back(task);
    }

    /// Notes that a task may run.
    pub fn set_ready(&mut self, task: TaskId) {
        if self.ready.len() <= task.index() {
            self.ready.resize(task.index() + 1, false);
        }
        self.ready[task.index()] = true;
    }

    /// The next task of a worker, if it may run.
    pub fn head(&self, worker: WorkerId) -> Option<TaskId> {
        let head = self.of[worker.index()].front().copied();
        head.filter(|task| self.ready.get(task.index()) == Some(&true))
    }

    /// Takes the next task of a worker off its list.
    pub fn pop(&mut self, worker: WorkerId) {
        self.of[worker.index()].pop_front();
    }

    /// Deals tasks out in contiguous blocks whose lengths differ by one at most, the longer ones first
    /// (OpenMP 5.2, section 11.5.3, `static` without a chunk size, as libgomp does it).
    pub fn deal_blocks(&mut self, tasks: &[TaskId]) {
        let workers = self.of.len();
        let (length, longer) = (tasks.len() / workers, tasks.len() % workers);
        let mut rest = tasks;
        for worker in 0..workers {
            let (block, others) = rest.split_at(length + usize::from(worker < longer));
            self.of[worker].extend(block);
            rest = others;
        }
    }
}
