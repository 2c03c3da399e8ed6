//! What all workers share, under one lock: open graphs and loops, who is idle, and what has been measured.
//!
//! Whoever changes something asks the policies on behalf of idle workers, too, and wakes only those that get work:
//! nobody is woken in vain, and a policy that keeps a task for a certain worker is asked for that worker. A worker that
//! waits within a task (for a graph or loop that the task has opened) helps with what was opened since, never with
//! older work: so it cannot come back to what it waits for itself, waits are nested no deeper than there are open
//! graphs and loops, and the newest one that anybody waits for can always go on.

use std::sync::Arc;

use ampsched_task::{Slot, TaskId, WorkerId, Workers};

use crate::graph_job::{Body, Executions, GraphJob, Known, NewTask, Once, Payload};
use crate::loop_job::{Done, LoopJob};
use crate::parker::Parker;
use crate::rates::Rates;

/// Number of a graph or loop; later ones have greater numbers.
pub type Serial = u64;

/// What waking a worker costs: shorter tasks are not handed to a sleeping one, and who waits stays awake for as long.
/// Measured by `runtime_bench wake`: medians of 10 to 22 µs on two shared x86-64 cores.
pub const WAKE_S: f64 = 20e-6;

/// What a worker does next.
pub enum Work {
    /// Executes a task.
    Task(Serial, TaskId, Body),
    /// Helps with a loop.
    Loop(Serial, Arc<LoopJob>),
}

/// Who waits for the end of a graph or loop.
#[derive(Clone)]
pub enum Waiter {
    /// A thread that is no worker.
    Outside(Arc<Parker>),
    /// A worker.
    Worker(WorkerId),
}

/// A loop that is being executed.
pub struct OpenLoop {
    work: Arc<LoopJob>,
    /// Workers that have been told to help and have not left.
    active: usize,
    /// Most workers at a time: there are no more iterations.
    active_max: usize,
    /// Iterations that have not been executed by workers that have left.
    left: usize,
}

impl OpenLoop {
    /// What is executed.
    pub fn work(&self) -> &LoopJob {
        &self.work
    }

    /// Iterations that have been executed.
    pub fn done(&self) -> usize {
        self.work.len() - self.left
    }

    fn is_done(&self) -> bool {
        self.active == 0 && (self.left == 0 || self.work.is_stopped())
    }
}

/// A graph or a loop.
pub enum Job {
    /// Tasks.
    Graph(Box<GraphJob>),
    /// Iterations.
    Loop(OpenLoop),
}

impl Job {
    fn is_done(&self) -> bool {
        match self {
            Self::Graph(graph) => graph.is_done(),
            Self::Loop(open) => open.is_done(),
        }
    }

    fn has_work(&self) -> bool {
        match self {
            Self::Graph(graph) => graph.has_ready(),
            Self::Loop(open) => open.work.has_more(),
        }
    }
}

struct Entry {
    serial: Serial,
    job: Job,
    waiter: Option<Waiter>,
}

struct Desk {
    parker: Arc<Parker>,
    /// If the worker is idle: the oldest work that it may do.
    idle_from: Option<Serial>,
    /// What it does when it wakes up.
    given: Option<Work>,
}

/// What all workers share.
pub struct Dispatcher {
    /// The workers.
    pub workers: Workers,
    /// What has been measured.
    pub rates: Rates,
    /// What has been recorded of graphs and loops that have ended.
    pub recorded: Vec<Executions>,
    /// Whether workers shall end.
    pub is_closing: bool,
    jobs: Vec<Entry>,
    desks: Vec<Desk>,
    /// Workers, those of the fastest class first.
    by_speed: Vec<WorkerId>,
    idle: usize,
    next_serial: Serial,
}

/// Parkers of the threads that are to be woken when the lock has been released.
pub type ToWake = Vec<Arc<Parker>>;

impl Dispatcher {
    /// Nothing to do; every worker has a parker.
    pub fn new(workers: Workers, parkers: Vec<Arc<Parker>>) -> Self {
        let desk = |parker| Desk { parker, idle_from: None, given: None };
        let mut dispatcher = Self {
            rates: Rates::new(workers.classes().len()),
            recorded: Vec::new(),
            is_closing: false,
            jobs: Vec::new(),
            desks: parkers.into_iter().map(desk).collect(),
            by_speed: Vec::new(),
            idle: 0,
            next_serial: 1,
            workers: workers.clone(),
        };
        dispatcher.set_workers(workers);
        dispatcher
    }

    /// Replaces what is known of the workers' speeds.
    pub fn set_workers(&mut self, workers: Workers) {
        let speed = |worker: &WorkerId| workers.classes()[workers.class_of(*worker).index()].speed;
        self.by_speed = workers.ids().collect();
        self.by_speed.sort_by(|a, b| speed(b).total_cmp(&speed(a)));
        self.workers = workers;
    }

    /// Opens a graph.
    pub fn open_graph(&mut self, graph: GraphJob) -> Serial {
        self.open(Job::Graph(Box::new(graph)), None)
    }

    /// Opens a loop; if a worker has called it, that worker helps, too, and everybody who is idle is told to.
    pub fn open_loop(
        &mut self,
        work: Arc<LoopJob>,
        waiter: Waiter,
        to_wake: &mut ToWake,
    ) -> Serial {
        let caller = if let Waiter::Worker(worker) = waiter { Some(worker) } else { None };
        let active_max = work.len();
        let is_idle = |worker: &&WorkerId| self.desks[worker.index()].idle_from.is_some();
        let idle = self.by_speed.iter().filter(is_idle).copied();
        let members: Vec<WorkerId> = caller.into_iter().chain(idle).take(active_max).collect();
        work.deal(&members);
        let active = usize::from(caller.is_some());
        let open = OpenLoop { left: work.len(), work, active, active_max };
        let serial = self.open(Job::Loop(open), Some(waiter));
        members.into_iter().for_each(|member| self.give_if_any(member, to_wake));
        serial
    }

    fn open(&mut self, job: Job, waiter: Option<Waiter>) -> Serial {
        let serial = self.next_serial;
        self.next_serial += 1;
        self.jobs.push(Entry { serial, job, waiter });
        serial
    }

    /// Adds a task to a graph; its body comes back if the graph starts no more tasks.
    pub fn add_task(&mut self, serial: Serial, new: NewTask) -> (TaskId, Option<Once>) {
        let Self { rates, workers, jobs, .. } = self;
        graph(jobs, serial).add(Known { rates, workers }, new)
    }

    /// The one who has opened a graph creates no more tasks, and waits.
    pub fn close_graph(&mut self, serial: Serial, waiter: Waiter) {
        let Self { rates, workers, jobs, .. } = self;
        let place = place(jobs, serial);
        jobs[place].waiter = Some(waiter);
        graph(jobs, serial).close(Known { rates, workers });
    }

    /// An open graph.
    pub fn graph(&mut self, serial: Serial) -> &mut GraphJob {
        graph(&mut self.jobs, serial)
    }

    /// Time in ns of the longest chain of tasks that begins with this work; 0 for none.
    pub fn path_ns(&mut self, work: &Work) -> u64 {
        let Self { rates, workers, jobs, .. } = self;
        match work {
            Work::Task(serial, task, _) => {
                graph(jobs, *serial).path_ns(Known { rates, workers }, *task)
            }
            Work::Loop(..) => 0,
        }
    }

    /// Whether a graph or loop has ended.
    pub fn is_done(&self, serial: Serial) -> bool {
        self.jobs[place(&self.jobs, serial)].job.is_done()
    }

    /// Takes a graph or loop that has ended off the dispatcher.
    pub fn finish(&mut self, serial: Serial) -> Job {
        let entry = self.jobs.remove(place(&self.jobs, serial));
        debug_assert!(entry.job.is_done());
        entry.job
    }

    /// A task has been executed.
    pub fn end_task(
        &mut self,
        serial: Serial,
        slot: Slot,
        panic: Option<Payload>,
        to_wake: &mut ToWake,
    ) {
        let Self { rates, workers, jobs, .. } = self;
        let job = graph(jobs, serial);
        let class = workers.class_of(slot.worker);
        rates.note(job.kind(slot.task), class, 1.0, slot.end_s - slot.start_s);
        job.end(Known { rates, workers }, slot, panic);
        self.tell_waiter(serial, to_wake);
    }

    /// A worker has left a loop.
    pub fn leave_loop(
        &mut self,
        serial: Serial,
        worker: WorkerId,
        done: &Done,
        to_wake: &mut ToWake,
    ) {
        let place = place(&self.jobs, serial);
        let Job::Loop(open) = &mut self.jobs[place].job else { unreachable!("it is a loop") };
        open.active -= 1;
        open.left -= done.iterations;
        if done.iterations > 0 {
            let (site, class) = (open.work.site, self.workers.class_of(worker));
            self.rates.note(site, class, done.iterations as f64, done.seconds);
        }
        self.tell_waiter(serial, to_wake);
    }

    /// Wakes who waits for a graph or loop if it has ended.
    pub fn tell_waiter(&mut self, serial: Serial, to_wake: &mut ToWake) {
        let entry = &self.jobs[place(&self.jobs, serial)];
        if !entry.job.is_done() {
            return;
        }
        match entry.waiter.clone() {
            Some(Waiter::Outside(parker)) => to_wake.push(parker),
            // A worker that is not idle looks by itself.
            Some(Waiter::Worker(worker)) => self.wake(worker, to_wake),
            None => {}
        }
    }

    fn wake(&mut self, worker: WorkerId, to_wake: &mut ToWake) {
        let desk = &mut self.desks[worker.index()];
        if desk.idle_from.take().is_some() {
            self.idle -= 1;
            to_wake.push(Arc::clone(&desk.parker));
        }
    }

    /// Tells all workers to end.
    pub fn close(&mut self, to_wake: &mut ToWake) {
        self.is_closing = true;
        (0..self.desks.len()).for_each(|worker| self.wake(WorkerId::from(worker), to_wake));
    }

    /// Gives work to idle workers as long as there is some, and returns what `asking`, who is awake, does next.
    ///
    /// The fastest ask first, so that they get what they wait for; but where tasks are so short that waking somebody
    /// takes longer, whoever is awake comes first.
    pub fn feed(
        &mut self,
        asking: Option<(WorkerId, Serial)>,
        to_wake: &mut ToWake,
    ) -> Option<Work> {
        if self.idle == 0 || self.is_fine() {
            let work = asking.and_then(|(worker, from)| self.find(worker, from));
            if work.is_some() || self.idle == 0 {
                self.give_to_idle(to_wake);
                return work;
            }
        }
        let mut own = None;
        for place in 0..self.by_speed.len() {
            let worker = self.by_speed[place];
            match asking {
                Some((asker, from)) if asker == worker => own = self.find(worker, from),
                _ => self.give_if_any(worker, to_wake),
            }
        }
        own
    }

    fn give_to_idle(&mut self, to_wake: &mut ToWake) {
        if self.idle == 0 || !self.jobs.iter().any(|entry| entry.job.has_work()) {
            return;
        }
        for place in 0..self.by_speed.len() {
            self.give_if_any(self.by_speed[place], to_wake);
        }
    }

    /// Gives a worker something if it is idle and there is something for it.
    fn give_if_any(&mut self, worker: WorkerId, to_wake: &mut ToWake) {
        let Some(from) = self.desks[worker.index()].idle_from else { return };
        if let Some(work) = self.find(worker, from) {
            self.desks[worker.index()].given = Some(work);
            self.wake(worker, to_wake);
        }
    }

    /// Whether the newest graph's tasks are shorter than a wake-up.
    fn is_fine(&self) -> bool {
        match self.jobs.last() {
            Some(Entry { job: Job::Graph(graph), .. }) => graph.is_finer_than(WAKE_S),
            _ => true,
        }
    }

    /// Something for a worker, not older than `from`; the newest first, so that inner work ends before outer work.
    fn find(&mut self, worker: WorkerId, from: Serial) -> Option<Work> {
        let Self { rates, workers, jobs, .. } = self;
        for entry in jobs.iter_mut().rev().take_while(|entry| entry.serial >= from) {
            match &mut entry.job {
                Job::Graph(graph) => {
                    let taken = graph.take(Known { rates, workers }, worker);
                    if let Some((task, body)) = taken {
                        return Some(Work::Task(entry.serial, task, body));
                    }
                }
                Job::Loop(open) if open.active < open.active_max && open.work.has_more() => {
                    open.active += 1;
                    return Some(Work::Loop(entry.serial, Arc::clone(&open.work)));
                }
                Job::Loop(_) => {}
            }
        }
        None
    }

    /// A worker goes to sleep.
    pub fn rest(&mut self, worker: WorkerId, from: Serial, to_wake: &mut ToWake) {
        self.desks[worker.index()].idle_from = Some(from);
        self.idle += 1;
        self.end_stalled(to_wake);
    }

    /// If nobody is awake any more although all have asked for work, ends graphs whose policies hand out nothing.
    pub fn end_stalled(&mut self, to_wake: &mut ToWake) {
        if self.idle < self.desks.len() {
            return;
        }
        for place in (0..self.jobs.len()).rev() {
            let Entry { serial, job, waiter } = &mut self.jobs[place];
            let (serial, is_worker) = (*serial, matches!(waiter, Some(Waiter::Worker(_))));
            let Job::Graph(graph) = job else { continue };
            if graph.end_if_stalled() {
                self.tell_waiter(serial, to_wake);
                if is_worker {
                    return; // It goes on, and may help older graphs.
                }
            }
        }
    }

    /// What a worker was given while it was asleep.
    pub fn given(&mut self, worker: WorkerId) -> Option<Work> {
        self.desks[worker.index()].given.take()
    }
}

fn place(jobs: &[Entry], serial: Serial) -> usize {
    jobs.binary_search_by_key(&serial, |entry| entry.serial).expect("it is open")
}

fn graph(jobs: &mut [Entry], serial: Serial) -> &mut GraphJob {
    let place = place(jobs, serial);
    match &mut jobs[place].job {
        Job::Graph(graph) => graph,
        Job::Loop(_) => unreachable!("it is a graph"),
    }
}
