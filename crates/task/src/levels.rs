//! Bottom levels of tasks that are created while others run.

use ampsched_model::ClassId;

use crate::{TaskId, Tasks};

/// What a task adds to the bottom levels of those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// One per task.
    Hops,
    /// Its predicted seconds on a class.
    Cost(ClassId),
}

impl Weight {
    /// Of a task.
    pub fn of(self, tasks: &dyn Tasks, task: TaskId) -> f64 {
        match self {
            Self::Hops => 1.0,
            Self::Cost(class) => tasks.cost_s(task, class),
        }
    }
}

/// Weight of the longest path from each task to an exit, its own weight included, of all tasks that have been created.
/// Those of tasks that have ended are raised no more.
#[derive(Debug)]
pub struct BottomLevels {
    weight: Weight,
    levels: Vec<f64>,
}

impl BottomLevels {
    /// Of no tasks yet.
    pub fn new(weight: Weight) -> Self {
        Self { weight, levels: Vec::new() }
    }

    /// What a task adds.
    pub fn weight(&self) -> Weight {
        self.weight
    }

    /// How many tasks it knows.
    pub fn len(&self) -> usize {
        self.levels.len()
    }

    /// Whether it knows no task.
    pub fn is_empty(&self) -> bool {
        self.levels.is_empty()
    }

    /// The bottom level of a task that it knows.
    pub fn of(&self, task: TaskId) -> f64 {
        self.levels[task.index()]
    }

    /// Computes the bottom levels of the tasks from `first` on, which are new, and raises those of the tasks before
    /// them.
    pub fn created(&mut self, tasks: &dyn Tasks, first: TaskId) {
        self.levels.resize(tasks.len(), 0.0);
        let mut raised = Vec::new();
        // Backwards: all new successors of a task have raised it when its turn comes.
        for task in (first.index()..tasks.len()).rev().map(TaskId::from) {
            self.levels[task.index()] += self.weight.of(tasks, task);
            self.raise(tasks, task, first, &mut raised);
            while let Some(older) = raised.pop() {
                self.raise(tasks, older, first, &mut raised);
            }
        }
    }

    /// Raises the predecessors of a task. A new one keeps the length of the path behind it until its
    /// turn comes; an older one (before `first`) is complete and passes it on.
    fn raise(&mut self, tasks: &dyn Tasks, task: TaskId, first: TaskId, raised: &mut Vec<TaskId>) {
        let path = self.levels[task.index()];
        for &from in tasks.predecessors(task).iter().filter(|&&from| !tasks.has_ended(from)) {
            let older = from < first;
            let level = if older { path + self.weight.of(tasks, from) } else { path };
            if level > self.levels[from.index()] {
                self.levels[from.index()] = level;
                if older {
                    raised.push(from);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Tasks of 1 s in a chain, of which some have been created and some have ended.
    struct Chain {
        before: Vec<TaskId>,
        created: usize,
        ended: usize,
        /// How often costs have been asked for.
        asked: Cell<usize>,
    }

    impl Tasks for Chain {
        fn len(&self) -> usize {
            self.created
        }

        fn predecessors(&self, task: TaskId) -> &[TaskId] {
            &self.before[task.index().saturating_sub(1)..task.index()]
        }

        fn cost_s(&self, _: TaskId, _: ClassId) -> f64 {
            self.asked.set(self.asked.get() + 1);
            1.0
        }

        fn has_ended(&self, task: TaskId) -> bool {
            task.index() < self.ended
        }
    }

    fn chain(length: usize) -> Chain {
        let before = (0..length).map(TaskId::from).collect();
        Chain { before, created: 0, ended: 0, asked: Cell::new(0) }
    }

    #[test]
    fn tasks_that_come_later_raise_those_that_have_not_ended() {
        let (mut chain, mut levels) = (chain(10), BottomLevels::new(Weight::Cost(ClassId(0))));
        let level = |levels: &BottomLevels, task: usize| levels.of(TaskId::from(task));
        chain.created = 4;
        levels.created(&chain, TaskId(0));
        assert_eq!([0, 1, 3].map(|task| level(&levels, task)), [4.0, 3.0, 1.0]);
        (chain.created, chain.ended) = (6, 2);
        levels.created(&chain, TaskId(4));
        assert_eq!([2, 3, 4, 5].map(|task| level(&levels, task)), [4.0, 3.0, 2.0, 1.0]);
        assert_eq!(level(&levels, 1), 3.0, "it has ended");
        assert_eq!(levels.len(), 6);
    }

    #[test]
    fn a_long_chain_of_which_most_has_ended_costs_little() {
        let (mut chain, mut levels) = (chain(10_000), BottomLevels::new(Weight::Cost(ClassId(0))));
        for task in 0..chain.before.len() {
            (chain.created, chain.ended) = (task + 1, task.saturating_sub(1));
            levels.created(&chain, TaskId::from(task));
        }
        assert!(chain.asked.get() < 3 * chain.before.len(), "{}", chain.asked.get());
    }
}
