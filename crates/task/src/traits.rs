//! What a task policy is: the one interface that the simulator and a task runtime call.

use ampsched_model::ClassId;

use crate::{TaskId, WorkerId};

/// What a policy may ask about tasks.
///
/// A simulated graph is complete from the start; a runtime appends tasks as the program creates them.
pub trait Tasks {
    /// Number of tasks created so far.
    fn len(&self) -> usize;

    /// Whether no task has been created.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Tasks that a task waits for; all have smaller numbers.
    fn predecessors(&self, task: TaskId) -> &[TaskId];

    /// Predicted seconds of a task on a class of workers.
    fn cost_s(&self, task: TaskId, class: ClassId) -> f64;

    /// Whether a task is known to have ended.
    fn has_ended(&self, _task: TaskId) -> bool {
        false
    }
}

/// What a worker executes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// The task.
    pub task: TaskId,
    /// Whether it was taken from something that workers share, such as a queue or a loop counter, which takes time.
    pub shared: bool,
}

impl Pick {
    /// A task from something shared.
    pub fn shared(task: TaskId) -> Self {
        Self { task, shared: true }
    }

    /// A task that the worker had already.
    pub fn own(task: TaskId) -> Self {
        Self { task, shared: false }
    }
}

/// Feeds workers with tasks while they run.
///
/// A policy reads no clock and no random source. It is told of every task once: created, then ready (in any
/// order among equals), then ended. It hands out only ready tasks, each once. A host asks idle workers
/// again after every task that ended.
pub trait TaskPolicy: Send {
    /// Whether all tasks must have been created before the first one is ready, because the policy divides levels of the
    /// graph.
    fn needs_whole_graph(&self) -> bool {
        false
    }

    /// Tasks have been created: those from `first` on.
    fn created(&mut self, _tasks: &dyn Tasks, _first: TaskId) {}

    /// All predecessors of a task have ended, the last one on worker `by` (none: it had no predecessor).
    fn ready(&mut self, tasks: &dyn Tasks, task: TaskId, by: Option<WorkerId>);

    /// A task has ended. Called before `ready` of the tasks that it frees.
    fn ended(&mut self, _task: TaskId) {}

    /// The operating system has moved a worker to a core of the fastest kind, or off one. Never called where
    /// workers have their cores for themselves.
    fn moved(&mut self, _worker: WorkerId, _is_big: bool) {}

    /// A worker has nothing to do. `None`: it stays idle.
    fn next(&mut self, tasks: &dyn Tasks, worker: WorkerId) -> Option<Pick>;
}
