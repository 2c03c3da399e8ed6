//! One use of a region: who works on it and which tasks are left.

use ampsched_model::{ClassId, InputError, Ns, ThreadId};
use ampsched_task::{Graph, Pick, TaskId, TaskPolicy, Tasks, Waiting, WorkerId};

use super::loaded::{Loaded, layout};
use super::window::Own;

/// One use of a region.
pub(super) struct Run {
    policy: Box<dyn TaskPolicy>,
    /// Work per second on each cluster, when the use began.
    speeds: Vec<f64>,
    pub waiting: Waiting,
    /// Tasks that exist: those with smaller numbers.
    pub created: usize,
    /// Whether the creator is working on the next one.
    pub is_creating: bool,
    /// A creator that is ahead by a use.
    pub early_creator: Option<ThreadId>,
    /// The task that the creator executes itself.
    pub own: Option<Own>,
    has_ended: Vec<bool>,
    /// Tasks that have not ended.
    pub left: usize,
    pub seats: Vec<Seat>,
}

/// A worker of a region.
pub(super) struct Seat {
    /// Where the policy believes it to sit at first.
    cluster: usize,
    is_big: bool,
    pub thread: Option<ThreadId>,
    /// What it executes.
    pub task: Option<TaskId>,
    /// What it has been woken for, and when.
    pub next: Option<(Pick, Ns)>,
}

/// The tasks that have been created, as a policy sees them. Classes of workers are clusters.
struct Created<'a> {
    graph: &'a Graph,
    speeds: &'a [f64],
    count: usize,
}

impl Tasks for Created<'_> {
    fn len(&self) -> usize {
        self.count
    }

    fn predecessors(&self, task: TaskId) -> &[TaskId] {
        self.graph.predecessors(task)
    }

    fn cost_s(&self, task: TaskId, class: ClassId) -> f64 {
        self.graph.work(task) / self.speeds[class.index()]
    }
}

impl Run {
    pub fn new(loaded: &Loaded, speeds: Vec<f64>, cores: &[usize]) -> Result<Self, InputError> {
        let fastest = speeds.iter().copied().fold(0.0, f64::max);
        let counts = layout(loaded.region.workers as usize, cores);
        let seat = |cluster: usize| Seat {
            cluster,
            is_big: speeds[cluster] == fastest,
            thread: None,
            task: None,
            next: None,
        };
        let seats = (0..cores.len())
            .flat_map(|cluster| std::iter::repeat_with(move || cluster).take(counts[cluster]))
            .map(seat)
            .collect();
        let tasks = loaded.graph.len();
        let mut run = Self {
            policy: loaded.policy(&speeds, cores)?,
            waiting: Waiting::new(&loaded.graph),
            created: 0,
            is_creating: false,
            early_creator: None,
            own: None,
            has_ended: vec![false; tasks],
            left: tasks,
            seats,
            speeds,
        };
        if !loaded.region.is_lazy {
            run.create(loaded, tasks);
        }
        Ok(run)
    }

    /// Creates so many tasks; those that wait for nothing are ready.
    pub fn create(&mut self, loaded: &Loaded, count: usize) {
        let first = self.created;
        self.created += count;
        let tasks = Created { graph: &loaded.graph, speeds: &self.speeds, count: self.created };
        self.policy.created(&tasks, TaskId::from(first));
        for task in (first..self.created).map(TaskId::from) {
            if self.waiting.is_ready(task) && self.own.as_ref().is_none_or(|own| own.task != task) {
                self.policy.ready(&tasks, task, None);
            }
        }
    }

    /// The seat of a thread. One that comes takes a free seat that the policy believes to be on its cluster, else any.
    pub fn sit(&mut self, thread: ThreadId, cluster: usize) -> Option<usize> {
        let is_its = |seat: &Seat| seat.thread == Some(thread);
        let is_free = |seat: &Seat| seat.thread.is_none();
        let seats = &mut self.seats;
        let place = seats.iter().position(is_its).or_else(|| {
            let near = seats.iter().position(|seat| is_free(seat) && seat.cluster == cluster);
            near.or_else(|| seats.iter().position(is_free))
        })?;
        seats[place].thread = Some(thread);
        Some(place)
    }

    /// Notes on which kind of core a worker runs.
    pub fn note_core(&mut self, place: usize, cluster: usize) {
        let is_big = self.speeds.iter().all(|&speed| speed <= self.speeds[cluster]);
        if std::mem::replace(&mut self.seats[place].is_big, is_big) != is_big {
            self.policy.moved(WorkerId::from(place), is_big);
        }
    }

    /// A task has ended at a worker, or (none) at its creator.
    pub fn end(&mut self, loaded: &Loaded, place: Option<usize>, task: TaskId) {
        if std::mem::replace(&mut self.has_ended[task.index()], true) {
            return;
        }
        self.left -= 1;
        self.policy.ended(task);
        let created = self.created;
        let tasks = Created { graph: &loaded.graph, speeds: &self.speeds, count: created };
        let (policy, own) = (&mut self.policy, &mut self.own);
        self.waiting.end(&loaded.graph, task, |next| match own {
            Some(own) if own.task == next => own.is_ready = true,
            _ if next.index() < created => policy.ready(&tasks, next, place.map(WorkerId::from)),
            _ => {}
        });
    }

    /// Lets idle workers ask; returns those that have got something, in their order.
    ///
    /// Errors: the task that the policy handed out although it waits for others.
    pub fn feed(&mut self, loaded: &Loaded, now_ns: Ns) -> Result<Vec<ThreadId>, TaskId> {
        let mut fed = Vec::new();
        if let Some(own) = self.own.as_mut().filter(|own| own.is_ready && own.waits) {
            own.waits = false;
            fed.push(own.thread);
        }
        for place in 0..self.seats.len() {
            let seat = &self.seats[place];
            let Some(thread) = seat.thread.filter(|_| seat.task.is_none() && seat.next.is_none())
            else {
                continue;
            };
            let tasks = Created { graph: &loaded.graph, speeds: &self.speeds, count: self.created };
            let Some(pick) = self.policy.next(&tasks, WorkerId::from(place)) else { continue };
            if pick.task.index() >= self.created || !self.waiting.is_ready(pick.task) {
                return Err(pick.task);
            }
            self.seats[place].next = Some((pick, now_ns));
            fed.push(thread);
        }
        Ok(fed)
    }

    /// What a running worker executes next: what it was given, else what another one of its kind took from a shared
    /// queue and was woken for earlier, but has not begun because it has no core yet.
    pub fn take(&mut self, place: usize, now_ns: Ns) -> Option<Pick> {
        let own = self.seats[place].next.take();
        let pick = own.or_else(|| {
            let is_big = self.seats[place].is_big;
            let left_behind = |seat: &&mut Seat| {
                let waits = |(pick, woken_ns): (Pick, Ns)| pick.shared && woken_ns < now_ns;
                seat.is_big == is_big && seat.next.is_some_and(waits)
            };
            self.seats.iter_mut().find(left_behind)?.next.take()
        });
        let (pick, _) = pick?;
        self.seats[place].task = Some(pick.task);
        Some(pick)
    }
}
