//! Simulates the execution of a task graph by workers that have their cores for themselves.
//!
//! A worker that takes a task waits until its data has arrived, then executes it without interruption; so one
//! event per task is enough. Events are ordered by (time, task), which makes runs reproducible. When all tasks that
//! end at one moment have ended, idle workers ask for new ones in the order of their numbers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ampsched_policy::Params;
use ampsched_task::{
    Build, Copies, Problem, Replay, Schedule, Slot, TaskId, TaskPolicy, Waiting, WorkerId,
};

/// Why a simulation of a task graph cannot go on: a fault of the policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaskError {
    /// All workers are idle, and tasks are left.
    #[error("all workers idle after {ended} of {tasks} tasks; the policy hands out no more")]
    Stalled {
        /// Tasks that have ended.
        ended: usize,
        /// All tasks.
        tasks: usize,
    },
    /// The policy has handed out a task that waits for others.
    #[error("the policy handed out task \"{task}\" before its predecessors had ended")]
    NotReady {
        /// Name of the task.
        task: String,
    },
}

/// Executes a graph under a policy. An off-line policy's schedule is computed first and then executed.
///
/// Errors: as [`run_tasks`].
pub fn run_task_policy(
    problem: &Problem<'_>,
    build: Build,
    params: &Params,
) -> Result<Schedule, TaskError> {
    match build {
        Build::OnLine(build) => run_tasks(problem, build(params, problem.workers()).as_mut()),
        Build::OffLine(schedule) => {
            let mut replay = Replay::new(&schedule(params, problem), problem.workers().len());
            run_tasks(problem, &mut replay)
        }
    }
}

/// Executes a graph while a policy feeds the workers.
///
/// Errors: the policy hands out a task that is not ready, or none although all workers idle.
pub fn run_tasks(
    problem: &Problem<'_>,
    policy: &mut dyn TaskPolicy,
) -> Result<Schedule, TaskError> {
    policy.created(problem, TaskId(0));
    let mut run = Run::new(problem);
    for task in Waiting::entries(problem.graph()) {
        policy.ready(problem, task, None);
    }
    run.feed(policy)?;
    while let Some(Reverse((time, task, worker))) = run.running.pop() {
        run.end(f64::from_bits(time), task, worker, policy);
        if run.running.peek().is_none_or(|next| next.0.0 > time) {
            run.feed(policy)?;
        }
    }
    run.finish()
}

struct Run<'p> {
    problem: &'p Problem<'p>,
    now_s: f64,
    /// By end; the bits of times that are not negative are ordered as the times are.
    running: BinaryHeap<Reverse<(u64, TaskId, WorkerId)>>,
    /// Idle workers by number.
    idle: Vec<bool>,
    waiting: Waiting,
    copies: Copies,
    ended: usize,
    slots: Vec<Slot>,
}

impl<'p> Run<'p> {
    fn new(problem: &'p Problem<'p>) -> Self {
        let (tasks, workers) = (problem.graph().len(), problem.workers().len());
        Self {
            problem,
            now_s: 0.0,
            running: BinaryHeap::with_capacity(workers),
            idle: vec![true; workers],
            waiting: Waiting::new(problem.graph()),
            copies: Copies::new(tasks),
            ended: 0,
            slots: Vec::with_capacity(tasks),
        }
    }

    /// Lets idle workers ask until none of them gets a task.
    fn feed(&mut self, policy: &mut dyn TaskPolicy) -> Result<(), TaskError> {
        for worker in self.problem.workers().ids() {
            if !self.idle[worker.index()] {
                continue;
            }
            if let Some(pick) = policy.next(self.problem, worker) {
                if !self.waiting.is_ready(pick.task) {
                    let task = self.problem.graph().task_name(pick.task).to_owned();
                    return Err(TaskError::NotReady { task });
                }
                self.start(pick.task, worker, pick.shared);
            }
        }
        Ok(())
    }

    fn start(&mut self, task: TaskId, worker: WorkerId, shared: bool) {
        let workers = self.problem.workers();
        let grab_s =
            if shared { workers.classes()[workers.class_of(worker).index()].grab_s } else { 0.0 };
        let taken_s = self.now_s + grab_s;
        let start_s = if self.problem.graph().has_communication() {
            self.copies.arrival_s(self.problem, task, worker).max(taken_s)
        } else {
            taken_s
        };
        let end_s = start_s + self.problem.cost_s(task, worker);
        self.idle[worker.index()] = false;
        self.running.push(Reverse((end_s.to_bits(), task, worker)));
        self.slots.push(Slot { task, worker, start_s, end_s });
    }

    fn end(&mut self, time_s: f64, task: TaskId, worker: WorkerId, policy: &mut dyn TaskPolicy) {
        self.now_s = time_s;
        self.idle[worker.index()] = true;
        let again = self.copies.has(task);
        self.copies.add(Slot { task, worker, start_s: time_s, end_s: time_s });
        if again {
            return;
        }
        self.ended += 1;
        policy.ended(task);
        let problem = self.problem;
        self.waiting.end(problem.graph(), task, |next| policy.ready(problem, next, Some(worker)));
    }

    fn finish(self) -> Result<Schedule, TaskError> {
        let tasks = self.problem.graph().len();
        if self.ended < tasks {
            return Err(TaskError::Stalled { ended: self.ended, tasks });
        }
        Ok(Schedule::new(self.slots))
    }
}
