//! A graph of tasks that is being executed: who waits for whom, what is ready, and the policy that decides.

use std::any::Any;
use std::mem::forget;

use ampsched_model::{ClassId, InputError};
use ampsched_policy::Params;
use ampsched_task::{
    BottomLevels, Build, Draft, Problem, Replay, Schedule, Slot, TaskId, TaskPolicy, Tasks,
    WorkerId, Workers,
};

use crate::Error;
use crate::rates::{RateId, Rates};

/// What a panic carries. One that nobody will get is forgotten instead of dropped: to drop it is to execute code of
/// somebody else, which may panic in its turn, or wait for what we hold.
pub type Payload = Box<dyn Any + Send>;
/// What a task of its own executes, once.
pub type Once = Box<dyn FnOnce() + Send>;
/// What all tasks of a graph execute.
pub type Each = &'static (dyn Fn(TaskId) + Sync);

/// What a task executes.
pub enum Body {
    /// Its own.
    Once(Once),
    /// The graph's.
    Each(Each),
}

/// Why no more tasks are started.
pub enum Stop {
    /// Somebody has asked for it, after so many tasks had been executed.
    Cancelled {
        /// Executed tasks.
        done: usize,
        /// All tasks.
        all: usize,
    },
    /// A task has panicked.
    Panicked(Payload),
    /// The policy has a fault, or cannot serve.
    Fault(Error),
}

/// A task that is to be created.
pub struct NewTask {
    /// Kind, by the rate at which its tasks are executed.
    pub kind: RateId,
    /// Name for recordings; made of kind and number if there is none.
    pub name: Option<Box<str>>,
    /// Stated seconds on each class of workers; none: what earlier tasks of the kind took.
    pub costs_s: Option<Vec<f64>>,
    /// Tasks that must have ended before; each once.
    pub before: Vec<TaskId>,
    /// What it executes; none: the graph's.
    pub body: Option<Once>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Ready,
    Running,
    Ended,
}

struct Node {
    state: State,
    /// Predecessors that have not ended.
    missing: u32,
    kind: RateId,
    name: Option<Box<str>>,
    costs_s: Option<Vec<f64>>,
    successors: Vec<TaskId>,
    body: Option<Once>,
}

/// What is measured and known of workers: a job needs it to predict costs.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    /// Measured durations.
    pub rates: &'a Rates,
    /// The workers.
    pub workers: &'a Workers,
}

/// All tasks, as a policy sees them.
#[derive(Default)]
struct Table {
    nodes: Vec<Node>,
    /// Predecessors of task i: `before[ends[i - 1]..ends[i]]`.
    ends: Vec<usize>,
    before: Vec<TaskId>,
}

struct View<'a> {
    table: &'a Table,
    known: Known<'a>,
}

impl Tasks for View<'_> {
    fn len(&self) -> usize {
        self.table.nodes.len()
    }

    fn predecessors(&self, task: TaskId) -> &[TaskId] {
        let start = if task.0 == 0 { 0 } else { self.table.ends[task.index() - 1] };
        &self.table.before[start..self.table.ends[task.index()]]
    }

    /// What is stated, or else what earlier tasks of the kind took; 1 s at speed 1 if there were none.
    fn cost_s(&self, task: TaskId, class: ClassId) -> f64 {
        let node = &self.table.nodes[task.index()];
        if let Some(costs_s) = &node.costs_s {
            return costs_s[class.index()];
        }
        let Known { rates, workers } = self.known;
        let measured_s = rates.seconds(node.kind, class, workers);
        measured_s.unwrap_or_else(|| 1.0 / workers.classes()[class.index()].speed)
    }

    fn has_ended(&self, task: TaskId) -> bool {
        self.table.nodes[task.index()].state == State::Ended
    }
}

/// How the tasks of a graph are scheduled.
pub enum Scheduling {
    /// By a policy that is told of tasks as they are created.
    OnLine(Box<dyn TaskPolicy>),
    /// From all costs, when all tasks have been created.
    OffLine(fn(&Params, &Problem<'_>) -> Schedule, Params),
    /// By a schedule that is there already.
    Given(Schedule),
}

impl Scheduling {
    /// A policy of the registry.
    pub fn of(build: Build, params: &Params, workers: &Workers) -> Self {
        match build {
            Build::OnLine(build) => Self::OnLine(build(params, workers)),
            Build::OffLine(schedule) => Self::OffLine(schedule, params.clone()),
        }
    }

    /// Whether all tasks must have been created before the first one starts.
    pub fn needs_whole_graph(&self) -> bool {
        match self {
            Self::OnLine(policy) => policy.needs_whole_graph(),
            Self::OffLine(..) | Self::Given(_) => true,
        }
    }
}

/// A graph of tasks that is being executed.
pub struct GraphJob {
    table: Table,
    scheduling: Scheduling,
    each: Option<Each>,
    /// Tasks are started only when all have been created.
    is_held: bool,
    /// More tasks may be created.
    is_open: bool,
    ready: usize,
    running: usize,
    /// Tasks that have ended or will not be started.
    ended: usize,
    executed: usize,
    executed_s: f64,
    stop: Option<Stop>,
    /// Executions, if they are recorded.
    slots: Option<Vec<Slot>>,
    /// Seconds of the longest chain that begins with each task, if others are told.
    levels: Option<BottomLevels>,
}

impl GraphJob {
    /// A graph without tasks yet.
    pub fn new(
        scheduling: Scheduling,
        each: Option<Each>,
        is_held: bool,
        is_recorded: bool,
        levels: Option<BottomLevels>,
    ) -> Self {
        Self {
            table: Table::default(),
            scheduling,
            each,
            is_held,
            is_open: true,
            ready: 0,
            running: 0,
            ended: 0,
            executed: 0,
            executed_s: 0.0,
            stop: None,
            slots: is_recorded.then(Vec::new),
            levels,
        }
    }

    /// Adds a task. If no more tasks are started its body comes back, to be dropped without any lock.
    pub fn add(&mut self, known: Known<'_>, new: NewTask) -> (TaskId, Option<Once>) {
        let task = TaskId::from(self.table.nodes.len());
        let mut missing = 0;
        for from in &new.before {
            let node = &mut self.table.nodes[from.index()];
            if node.state != State::Ended {
                node.successors.push(task);
                missing += 1;
            }
        }
        let NewTask { kind, name, costs_s, before, mut body } = new;
        let stopped = if self.stop.is_some() { body.take() } else { None };
        let state = if self.stop.is_some() { State::Ended } else { State::Waiting };
        let successors = Vec::new();
        self.table.nodes.push(Node { state, missing, kind, name, costs_s, successors, body });
        self.table.before.extend(before);
        self.table.ends.push(self.table.before.len());
        if self.stop.is_some() {
            self.ended += 1;
        } else if !self.is_held {
            self.announce(known, task);
        }
        (task, stopped)
    }

    /// No more tasks are created by the one who opened the graph; a held one starts.
    pub fn close(&mut self, known: Known<'_>) {
        self.is_open = false;
        if !std::mem::take(&mut self.is_held) || self.stop.is_some() {
            return;
        }
        match self.plan(known) {
            Ok(()) => self.announce(known, TaskId(0)),
            Err(error) => self.stop(Stop::Fault(error)),
        }
    }

    /// Tells the policy of the tasks from `first` on.
    fn announce(&mut self, known: Known<'_>, first: TaskId) {
        let Self { table, scheduling, .. } = self;
        let Scheduling::OnLine(policy) = scheduling else { unreachable!("it has been planned") };
        if first.index() == table.nodes.len() {
            return;
        }
        policy.created(&View { table, known }, first);
        for task in (first.index()..self.table.nodes.len()).map(TaskId::from) {
            if self.table.nodes[task.index()].missing == 0 {
                self.set_ready(known, task, None);
            }
        }
    }

    /// Puts a policy that replays the schedule in the place of one that decides beforehand.
    fn plan(&mut self, known: Known<'_>) -> Result<(), Error> {
        let schedule = match &self.scheduling {
            Scheduling::OnLine(_) => return Ok(()),
            Scheduling::Given(schedule) => schedule.clone(),
            Scheduling::OffLine(..) if self.table.nodes.is_empty() => Schedule::new(Vec::new()),
            Scheduling::OffLine(schedule, params) => {
                let graph = self.draft(known)?.finish()?;
                schedule(params, &Problem::new(&graph, known.workers.clone())?)
            }
        };
        // Copies of a task save time only if data takes time between workers, which share memory here.
        let mut seen = vec![false; self.table.nodes.len()];
        let mut once = schedule.slots().to_vec();
        once.retain(|slot| !std::mem::replace(&mut seen[slot.task.index()], true));
        let replay = Replay::new(&Schedule::new(once), known.workers.len());
        self.scheduling = Scheduling::OnLine(Box::new(replay));
        Ok(())
    }

    /// The graph with predicted costs, for policies that decide beforehand.
    fn draft(&self, known: Known<'_>) -> Result<Draft, InputError> {
        let view = View { table: &self.table, known };
        let classes = known.workers.classes().len();
        let mut draft = Draft::new("tasks");
        for task in (0..view.len()).map(TaskId::from) {
            let kind = known.rates.name(self.table.nodes[task.index()].kind);
            let number = draft.task(&task.0.to_string(), kind, 0.0, 0)?;
            let costs_s = (0..classes).map(|class| view.cost_s(task, ClassId::from(class)));
            draft.costs(number, costs_s.collect())?;
            for from in view.predecessors(task) {
                draft.link(from.0, task.0, 0.0, 0)?;
            }
        }
        Ok(draft)
    }

    fn set_ready(&mut self, known: Known<'_>, task: TaskId, by: Option<WorkerId>) {
        let Self { table, scheduling, .. } = self;
        let Scheduling::OnLine(policy) = scheduling else { unreachable!("it has been planned") };
        table.nodes[task.index()].state = State::Ready;
        self.ready += 1;
        policy.ready(&View { table, known }, task, by);
    }

    /// What a worker executes next, if the policy has something for it.
    pub fn take(&mut self, known: Known<'_>, worker: WorkerId) -> Option<(TaskId, Body)> {
        if self.ready == 0 {
            return None;
        }
        let Self { table, scheduling, .. } = self;
        let Scheduling::OnLine(policy) = scheduling else { unreachable!("it has been planned") };
        let task = policy.next(&View { table, known }, worker)?.task;
        let node = &mut table.nodes[task.index()];
        if node.state != State::Ready {
            self.stop(Stop::Fault(Error::NotReady { task: task.0 }));
            return None;
        }
        node.state = State::Running;
        self.ready -= 1;
        self.running += 1;
        let body = node.body.take().map(Body::Once);
        Some((task, body.unwrap_or_else(|| Body::Each(self.each.expect("the graph has a body")))))
    }

    /// Time in ns of the longest chain of tasks that have been created, predicted on workers of the fastest class, that
    /// begins with this one; 0 if nobody is told.
    pub fn path_ns(&mut self, known: Known<'_>, task: TaskId) -> u64 {
        let Self { table, levels: Some(levels), .. } = self else { return 0 };
        // All at once that have been created since the last time, so that each older task is raised once.
        levels.created(&View { table, known }, TaskId::from(levels.len()));
        // Times beyond 500 years are not told apart.
        (levels.of(task) * 1e9) as u64
    }

    /// Number of tasks so far.
    pub fn len(&self) -> usize {
        self.table.nodes.len()
    }

    /// Kind of a task.
    pub fn kind(&self, task: TaskId) -> RateId {
        self.table.nodes[task.index()].kind
    }

    /// A task has been executed, within a time that is counted from the start of the runtime.
    pub fn end(&mut self, known: Known<'_>, slot: Slot, panic: Option<Payload>) {
        self.running -= 1;
        self.ended += 1;
        self.executed += 1;
        self.executed_s += slot.end_s - slot.start_s;
        if let Some(slots) = &mut self.slots {
            slots.push(slot);
        }
        let node = &mut self.table.nodes[slot.task.index()];
        node.state = State::Ended;
        let successors = std::mem::take(&mut node.successors);
        if let Some(payload) = panic {
            self.stop(Stop::Panicked(payload));
        }
        if self.stop.is_some() {
            return;
        }
        if let Scheduling::OnLine(policy) = &mut self.scheduling {
            policy.ended(slot.task);
        }
        for next in successors {
            let node = &mut self.table.nodes[next.index()];
            node.missing -= 1;
            if node.missing == 0 && !self.is_held {
                self.set_ready(known, next, Some(slot.worker));
            }
        }
    }

    /// Starts no more tasks. Bodies stay until the graph is dropped. The first reason counts, but a panic is never
    /// lost.
    pub fn stop(&mut self, why: Stop) {
        let is_first = self.stop.is_none();
        match (&self.stop, why) {
            (None, why) | (Some(Stop::Cancelled { .. }), why @ Stop::Panicked(_)) => {
                self.stop = Some(why);
            }
            (Some(_), Stop::Panicked(payload)) => forget(payload),
            (Some(_), Stop::Cancelled { .. } | Stop::Fault(_)) => {}
        }
        if !is_first {
            return;
        }
        for node in &mut self.table.nodes {
            if matches!(node.state, State::Waiting | State::Ready) {
                node.state = State::Ended;
                self.ended += 1;
            }
        }
        self.ready = 0;
    }

    /// Starts no more tasks because somebody asked for it.
    pub fn cancel(&mut self) {
        self.stop(Stop::Cancelled { done: self.executed, all: self.table.nodes.len() });
    }

    /// Ends the graph if no worker will ever get one of its tasks: none runs, and all workers idle.
    pub fn end_if_stalled(&mut self) -> bool {
        let is_stalled = !self.is_open && self.running == 0 && !self.is_done();
        if is_stalled {
            let (ended, tasks) = (self.ended, self.table.nodes.len());
            self.stop(Stop::Fault(Error::Stalled { ended, tasks }));
        }
        is_stalled
    }

    /// Whether a worker may get a task.
    pub fn has_ready(&self) -> bool {
        self.ready > 0
    }

    /// Whether no more tasks are started.
    pub fn is_stopped(&self) -> bool {
        self.stop.is_some()
    }

    /// Whether all tasks have ended and no more will be created.
    pub fn is_done(&self) -> bool {
        !self.is_open && self.ended == self.table.nodes.len()
    }

    /// Whether its tasks have been shorter than `seconds` on average so far.
    pub fn is_finer_than(&self, seconds: f64) -> bool {
        self.executed_s < seconds * self.executed as f64
    }

    /// Why it was stopped, if it was.
    pub fn take_stop(&mut self) -> Option<Stop> {
        self.stop.take()
    }

    /// What was recorded: names and kinds of the executed tasks, links between them, executions; numbers from 0.
    pub fn recorded(&self, rates: &Rates) -> Option<Executions> {
        let slots = self.slots.as_ref()?;
        let mut number_of = vec![None; self.table.nodes.len()];
        let mut executed: Vec<TaskId> = slots.iter().map(|slot| slot.task).collect();
        executed.sort_unstable();
        let mut all = Executions::default();
        let known_links = |task: TaskId| {
            let start = if task.0 == 0 { 0 } else { self.table.ends[task.index() - 1] };
            &self.table.before[start..self.table.ends[task.index()]]
        };
        for task in executed {
            let number = all.tasks.len() as u32;
            number_of[task.index()] = Some(number);
            let node = &self.table.nodes[task.index()];
            let kind = rates.name(node.kind).to_owned();
            let name = node.name.as_ref().map_or_else(|| task.0.to_string(), ToString::to_string);
            all.tasks.push((name, kind));
            let before = known_links(task).iter().filter_map(|from| number_of[from.index()]);
            all.links.extend(before.map(|from| (from, number)));
        }
        let numbered = |slot: &Slot| {
            let number = number_of[slot.task.index()].expect("it was executed");
            Slot { task: TaskId(number), ..*slot }
        };
        all.slots = slots.iter().map(numbered).collect();
        Some(all)
    }
}

/// Executions of tasks.
#[derive(Default)]
pub struct Executions {
    /// Name and kind of each task.
    pub tasks: Vec<(String, String)>,
    /// Which task waited for which: (first, second).
    pub links: Vec<(u32, u32)>,
    /// Who executed what when, in seconds since the start of the runtime.
    pub slots: Vec<Slot>,
}
