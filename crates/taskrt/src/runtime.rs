//! The runtime: worker threads, parallel loops, graphs of tasks.

use std::mem::ManuallyDrop;
use std::ops::{ControlFlow, Range};
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::process;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use ampsched_task::{Graph, Schedule, Slot, TaskId, WorkerId, Workers, build_task_policy};
use rustix::thread::{CpuSet, gettid, sched_setaffinity};

use crate::dispatcher::{Dispatcher, Job, Serial, Waiter};
use crate::erase::{self, Parts};
use crate::graph_job::{GraphJob, NewTask, Scheduling, Stop};
use crate::loop_job::LoopJob;
use crate::parker::Parker;
use crate::path_publisher::PathPublisher;
use crate::policy_text::parse_policy;
use crate::recording::recording;
use crate::scope::Scope;
use crate::shared::{Shared, wake_all};
use crate::speed::measure;
use crate::{Cores, Error, Recording};

/// Stack of a worker: that of a program's main thread on Linux; waits may be nested on it.
const STACK_BYTES: usize = 8 << 20;

/// What a runtime is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// One worker per core.
    pub cores: Cores,
    /// Task policy with parameters, such as `cats:steal=1`; see the reference of task policies.
    pub policy: String,
    /// Whether each worker is pinned to its core. If not, the numbers of the CPUs only say how many workers there are.
    pub pin: bool,
    /// Whether executions are recorded, for [`Runtime::take_recording`]. Costs about 100 bytes and 50 ns per task or
    /// step of a loop.
    pub record: bool,
}

impl Config {
    /// Workers pinned to these cores; policy `fifo`; no recording.
    pub fn new(cores: Cores) -> Self {
        Self { cores, policy: "fifo".to_owned(), pin: true, record: false }
    }
}

/// A team of worker threads that execute parallel loops and graphs of tasks.
///
/// Whoever calls waits; workers that have nothing to do sleep. A worker may call, too: what a loop or task opens itself
/// is executed by that worker with the help of those that are idle. Dropping the runtime ends the threads.
///
/// A child that the process forks has none of the threads: there whatever has a [`Result`] is [`Error::Forked`], and
/// what has none panics with its words.
pub struct Runtime {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    thread_ids: Vec<u32>,
    /// The process whose threads they are.
    owner: u32,
}

/// What a worker's thread says of itself when it has started.
type Started = Result<(u32, Arc<Parker>), Error>;

impl Runtime {
    /// Starts the workers.
    ///
    /// If the environment has `AMPSCHED_TELL_PATHS=1`, it tells sessions of `ampsched live` which worker executes the
    /// longest chain of tasks.
    ///
    /// Errors: no such policy or parameter; a core that this process may not use; no more threads.
    pub fn new(config: &Config) -> Result<Self, Error> {
        let (name, values) = parse_policy(&config.policy)?;
        let (build, params) = build_task_policy(&name, &values)?;
        let policy = ampsched_task::find_task_policy(&name)?.name;
        let workers = config.cores.workers()?;
        let (report, reports) = channel();
        let mut team = Vec::new();
        for (worker, cpu) in workers.ids().zip(config.cores.cpus()) {
            team.push(start(worker, config.pin.then_some(cpu), report.clone())?);
        }
        let mut started: Vec<(WorkerId, (u32, Arc<Parker>))> = Vec::new();
        for (worker, said) in reports.iter().take(workers.len()) {
            started.push((worker, said?));
        }
        started.sort_by_key(|(worker, _)| *worker);
        let parkers: Vec<Arc<Parker>> =
            started.iter().map(|(_, (_, parker))| Arc::clone(parker)).collect();
        let thread_ids: Vec<u32> = started.into_iter().map(|(_, (id, _))| id).collect();
        let publisher = PathPublisher::if_asked(&thread_ids)?;
        let dispatcher = Dispatcher::new(workers, parkers.clone());
        let shared =
            Shared::new(dispatcher, parkers, (policy, build, params), config.record, publisher);
        let shared = Arc::new(shared);
        let mut threads = Vec::new();
        for (thread, begin) in team {
            // A thread that has reported waits for this.
            begin.send(Arc::clone(&shared)).expect("the worker waits");
            threads.push(thread);
        }
        Ok(Self { shared, threads, thread_ids, owner: process::id() })
    }

    /// The workers, with their speeds as far as they are known.
    pub fn workers(&self) -> Workers {
        self.is_here().unwrap_or_else(refuse);
        self.shared.lock().workers.clone()
    }

    /// Whether the workers' threads are this process's; in a forked child a thread may have left its locks locked.
    fn is_here(&self) -> Result<(), Error> {
        if self.owner == process::id() { Ok(()) } else { Err(Error::Forked { owner: self.owner }) }
    }

    /// The operating system's identifiers of the workers' threads, in the order of the workers.
    pub fn thread_ids(&self) -> &[u32] {
        &self.thread_ids
    }

    /// The worker that the calling thread is, if it is one of this runtime.
    pub fn current_worker(&self) -> Option<WorkerId> {
        self.shared.current()
    }

    /// Executes `body` for all iterations of a range, in parts of which each is executed by one worker, in any order.
    ///
    /// Faster workers get more: shares follow the speeds that were measured at earlier loops of the same place in the
    /// program, and who has finished takes from others. A part lasts some microseconds, so `body` should loop over it.
    ///
    /// If a body panics, the loop ends as soon as all parts that have been begun end, and the panic goes on in the
    /// caller.
    #[track_caller]
    pub fn for_each(&self, range: Range<usize>, body: impl Fn(Range<usize>) + Sync) {
        let body = |part: Range<usize>| {
            body(part);
            ControlFlow::Continue(())
        };
        self.execute_loop(range, Location::caller(), &body).unwrap_or_else(refuse);
    }

    /// As [`Runtime::for_each`], but a body that returns `Break` ends the loop: no further part is begun.
    ///
    /// Errors: [`Error::Cancelled`] if a body has returned `Break`, even the last one.
    #[track_caller]
    pub fn try_for_each(
        &self,
        range: Range<usize>,
        body: impl Fn(Range<usize>) -> ControlFlow<()> + Sync,
    ) -> Result<(), Error> {
        self.execute_loop(range, Location::caller(), &body)
    }

    /// As [`Runtime::for_each`] for all elements of a slice: `body` gets the first element's number and some elements.
    #[track_caller]
    pub fn for_each_mut<T: Send>(&self, slice: &mut [T], body: impl Fn(usize, &mut [T]) + Sync) {
        let (len, parts) = (slice.len(), Parts::new(slice));
        let body = |range: Range<usize>| {
            // SAFETY: the slice is borrowed until the loop has ended, and parts of a loop do not overlap.
            #[allow(unsafe_code)]
            let part = unsafe { parts.part(range.clone()) };
            body(range.start, part);
            ControlFlow::Continue(())
        };
        self.execute_loop(0..len, Location::caller(), &body).expect("nobody cancels it");
    }

    /// Combines results of all iterations: `map` makes one of some iterations, `merge` one of two.
    ///
    /// In which order results are merged is not determined: sums of floating-point numbers may differ in the last bits.
    #[track_caller]
    pub fn map_reduce<T: Send>(
        &self,
        range: Range<usize>,
        identity: impl Fn() -> T,
        map: impl Fn(Range<usize>) -> T + Sync,
        merge: impl Fn(T, T) -> T + Sync,
    ) -> T {
        let results: Vec<Mutex<Option<T>>> =
            (0..self.thread_ids.len()).map(|_| Mutex::new(None)).collect();
        let lock = |place: usize| results[place].lock().unwrap_or_else(PoisonError::into_inner);
        let body = |part: Range<usize>| {
            let new = map(part);
            let place = self.current_worker().expect("a worker executes it").index();
            let old = lock(place).take();
            let merged = if let Some(old) = old { merge(old, new) } else { new };
            *lock(place) = Some(merged);
            ControlFlow::Continue(())
        };
        self.execute_loop(range, Location::caller(), &body).unwrap_or_else(refuse);
        let all = results.into_iter().filter_map(|result| result.into_inner().ok().flatten());
        all.fold(identity(), merge)
    }

    fn execute_loop(
        &self,
        range: Range<usize>,
        site: &'static Location<'static>,
        body: &(dyn Fn(Range<usize>) -> ControlFlow<()> + Sync),
    ) -> Result<(), Error> {
        let name = || format!("loop {}:{}", site.file(), site.line());
        self.loop_at(range, std::ptr::from_ref(site) as usize, name, body)
    }

    /// A loop at a place that has a number and a name.
    pub(crate) fn loop_at(
        &self,
        range: Range<usize>,
        site: usize,
        name: impl FnOnce() -> String,
        body: &(dyn Fn(Range<usize>) -> ControlFlow<()> + Sync),
    ) -> Result<(), Error> {
        self.is_here()?;
        if range.is_empty() {
            return Ok(());
        }
        // SAFETY: the body is not called any more when `wait` has returned.
        #[allow(unsafe_code)]
        let body = unsafe { erase::loop_body(body) };
        let shared = &*self.shared;
        let waiter = shared.waiter();
        let (serial, work) = shared.change(|dispatcher, to_wake| {
            let site = dispatcher.rates.of_site(site, name);
            let speed = |worker| {
                let class = dispatcher.workers.class_of(worker);
                let seconds = dispatcher.rates.seconds(site, class, &dispatcher.workers);
                seconds.map_or(dispatcher.workers.classes()[class.index()].speed, |each_s| {
                    1.0 / each_s
                })
            };
            let supposed = dispatcher.workers.ids().map(speed).collect();
            let work = Arc::new(LoopJob::new(body, range, site, supposed, shared.is_recorded));
            (dispatcher.open_loop(Arc::clone(&work), waiter.clone(), to_wake), work)
        });
        if let Waiter::Worker(me) = waiter {
            let mut to_wake = Vec::new();
            shared.help(serial, &work, me, &mut to_wake);
            wake_all(&mut to_wake);
        }
        let Job::Loop(open) = shared.wait(serial, &waiter) else { unreachable!("it is a loop") };
        if let Some(payload) = work.take_panic() {
            resume_unwind(payload);
        }
        if work.is_stopped() {
            let (done, all) = (open.done(), work.len());
            return Err(Error::Cancelled { done, all, unit: "iterations" });
        }
        Ok(())
    }

    /// Calls `body`, which creates tasks that start while it creates more, and waits for all of them.
    ///
    /// Tasks may borrow what lives longer than this call, as with [`std::thread::scope`].
    ///
    /// Errors: [`Error::Cancelled`]; [`Error::WholeGraph`] if the policy cannot begin before all tasks are known; a
    /// fault of the policy. If a task or `body` panics, no more tasks are started, and the panic goes on when all have
    /// ended.
    pub fn scope<'env, T>(
        &self,
        body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
    ) -> Result<T, Error> {
        self.is_here()?;
        let Shared { build, params, policy, .. } = &*self.shared;
        if Scheduling::of(*build, params, &self.workers()).needs_whole_graph() {
            return Err(Error::WholeGraph { policy });
        }
        self.create(false, body)
    }

    /// As [`Runtime::scope`], but no task starts before all have been created: any policy will do.
    ///
    /// Errors: as [`Runtime::scope`], but no [`Error::WholeGraph`].
    pub fn graph<'env, T>(
        &self,
        body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
    ) -> Result<T, Error> {
        self.create(true, body)
    }

    fn create<'env, T>(
        &self,
        is_held: bool,
        body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
    ) -> Result<T, Error> {
        self.is_here()?;
        let serial = self
            .open(is_held, |shared, workers| Scheduling::of(shared.build, &shared.params, workers));
        let scope = Scope::new(Arc::clone(&self.shared), serial);
        // The tasks must have ended before the panic goes on: they borrow.
        let result = catch_unwind(AssertUnwindSafe(|| body(&scope)));
        // If the panic of a task goes on, that of `body` is forgotten (see `Payload`).
        let result = result.map_err(ManuallyDrop::new);
        if result.is_err() {
            self.shared.lock().graph(serial).cancel();
        }
        let ended = self.close(serial);
        match result {
            Ok(result) => ended.map(|()| result),
            Err(payload) => resume_unwind(ManuallyDrop::into_inner(payload)),
        }
    }

    fn open(&self, is_held: bool, with: impl FnOnce(&Shared, &Workers) -> Scheduling) -> Serial {
        self.shared.change(|dispatcher, _| {
            let scheduling = with(&self.shared, &dispatcher.workers);
            let levels = self.shared.levels(&dispatcher.workers);
            let is_recorded = self.shared.is_recorded;
            let job = GraphJob::new(scheduling, None, is_held, is_recorded, levels);
            dispatcher.open_graph(job)
        })
    }

    /// Executes a graph, such as one that was read from a file: `body` for each of its tasks, whose predecessors have
    /// ended.
    ///
    /// Costs are those that the graph states.
    ///
    /// Errors: the graph states costs for another number of classes than there are; a fault of the policy. If a
    /// body panics, no more tasks are started, and the panic goes on in the caller.
    pub fn run_graph(&self, graph: &Graph, body: impl Fn(TaskId) + Sync) -> Result<(), Error> {
        self.is_here()?;
        let classes = self.workers();
        let problem = ampsched_task::Problem::new(graph, classes)?;
        let scheduling = Scheduling::of(self.shared.build, &self.shared.params, problem.workers());
        let tasks = graph.tasks().map(|task| {
            let costs_s = Some(problem.costs_s(task).to_vec());
            let before = graph.predecessors(task).to_vec();
            (graph.kind(task), Some(graph.task_name(task).into()), costs_s, before)
        });
        self.run_each(scheduling, tasks, &body)
    }

    fn run_each<'a>(
        &self,
        scheduling: Scheduling,
        tasks: impl Iterator<Item = (&'a str, Option<Box<str>>, Option<Vec<f64>>, Vec<TaskId>)>,
        body: &(dyn Fn(TaskId) + Sync),
    ) -> Result<(), Error> {
        // SAFETY: the body is not called any more when `close` has returned.
        #[allow(unsafe_code)]
        let each = unsafe { erase::each(body) };
        let serial = self.shared.change(|dispatcher, _| {
            let levels = self.shared.levels(&dispatcher.workers);
            let is_recorded = self.shared.is_recorded;
            let mut job = GraphJob::new(scheduling, Some(each), true, is_recorded, levels);
            for (kind, name, costs_s, before) in tasks {
                let kind = dispatcher.rates.of_kind(kind);
                let known = crate::graph_job::Known {
                    rates: &dispatcher.rates,
                    workers: &dispatcher.workers,
                };
                job.add(known, NewTask { kind, name, costs_s, before, body: None });
            }
            dispatcher.open_graph(job)
        });
        self.close(serial)
    }

    /// No more tasks are created; waits for those that there are.
    fn close(&self, serial: Serial) -> Result<(), Error> {
        let waiter = self.shared.waiter();
        self.shared.change(|dispatcher, _| dispatcher.close_graph(serial, waiter.clone()));
        let Job::Graph(mut graph) = self.shared.wait(serial, &waiter) else {
            unreachable!("it is a graph")
        };
        let stop = graph.take_stop();
        // Bodies that were not executed are dropped before what they borrow.
        drop(graph);
        match stop {
            None => Ok(()),
            Some(Stop::Cancelled { done, all }) => {
                Err(Error::Cancelled { done, all, unit: "tasks" })
            }
            Some(Stop::Fault(error)) => Err(error),
            Some(Stop::Panicked(payload)) => resume_unwind(payload),
        }
    }

    /// Calls `body` once on each worker, on all at the same time.
    fn on_each_worker(&self, body: impl Fn(WorkerId) + Sync) -> Result<(), Error> {
        self.is_here()?;
        let workers = self.workers();
        let slot = |worker: WorkerId| {
            let task = TaskId::from(worker.index());
            Slot { task, worker, start_s: 0.0, end_s: 0.0 }
        };
        let schedule = Schedule::new(workers.ids().map(slot).collect());
        let tasks = workers.ids().map(|_| ("worker", None, None, Vec::new()));
        self.run_each(Scheduling::Given(schedule), tasks, &|task| {
            body(WorkerId::from(task.index()))
        })
    }

    /// Measures how fast each worker is while all of them compute for `duration`, and makes that the classes' speeds:
    /// those of the classes' slowest workers, of which the slowest one is 1. Returns the same for each worker.
    ///
    /// Errors: a speed so low that it cannot be told.
    pub fn measure_speeds(&self, duration: Duration) -> Result<Vec<f64>, Error> {
        let rounds: Vec<Mutex<f64>> = self.thread_ids.iter().map(|_| Mutex::new(0.0)).collect();
        self.on_each_worker(|worker| {
            let rounds_per_s = measure(duration);
            *rounds[worker.index()].lock().unwrap_or_else(PoisonError::into_inner) = rounds_per_s;
        })?;
        let speeds: Vec<f64> = rounds
            .into_iter()
            .map(|speed| speed.into_inner().unwrap_or_else(PoisonError::into_inner))
            .collect();
        let slowest = speeds.iter().copied().fold(f64::INFINITY, f64::min);
        let relative: Vec<f64> = speeds.iter().map(|speed| speed / slowest).collect();
        let mut dispatcher = self.shared.lock();
        let workers = &dispatcher.workers;
        let mut classes = workers.classes().to_vec();
        for (number, class) in classes.iter_mut().enumerate() {
            let of_class = workers.ids().filter(|&of| workers.class_of(of).index() == number);
            let speeds = of_class.map(|worker| relative[worker.index()]);
            class.speed = speeds.fold(f64::INFINITY, f64::min);
        }
        let workers = Workers::new(classes)?;
        dispatcher.set_workers(workers);
        Ok(relative)
    }

    /// What has been executed since the start or the last call, if the runtime records and anything was executed.
    ///
    /// Errors: too many executions for a graph.
    pub fn take_recording(&self) -> Result<Option<Recording>, Error> {
        self.is_here()?;
        let (all, workers) = {
            let mut dispatcher = self.shared.lock();
            (std::mem::take(&mut dispatcher.recorded), dispatcher.workers.clone())
        };
        Ok(recording(all, workers)?)
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if self.is_here().is_err() {
            // There is nobody to wait for, and what they share may be locked.
            self.threads.drain(..).for_each(std::mem::forget);
            return;
        }
        self.shared.change(|dispatcher, to_wake| dispatcher.close(to_wake));
        for thread in self.threads.drain(..) {
            // A worker's thread has no result, and panics of bodies are caught.
            let _ = thread.join();
        }
    }
}

/// Ends the calling thread of a forked child, where a result has no place for an error; nobody cancels such calls.
fn refuse(error: Error) {
    panic!("{error}")
}

/// Starts a worker's thread, which reports and then waits for what it shares with the others.
fn start(
    worker: WorkerId,
    cpu: Option<usize>,
    report: Sender<(WorkerId, Started)>,
) -> Result<(JoinHandle<()>, Sender<Arc<Shared>>), Error> {
    let (begin, beginning): (_, Receiver<Arc<Shared>>) = channel();
    let name = format!("ampsched-{}", worker.0);
    let thread = Builder::new().name(name).stack_size(STACK_BYTES).spawn(move || {
        let pinned = cpu.map_or(Ok(()), pin);
        let parker = || (gettid().as_raw_pid() as u32, Arc::new(Parker::new()));
        let said = pinned.map(|()| parker());
        let is_fine = said.is_ok();
        // If nobody listens any more another worker could not start, and this one ends.
        let is_heard = report.send((worker, said)).is_ok();
        drop(report);
        if let (true, Ok(shared)) = (is_fine && is_heard, beginning.recv()) {
            shared.work(worker);
        }
    });
    let thread = thread
        .map_err(|error| Error::system(format!("thread of worker {}", worker.0), error, ""))?;
    Ok((thread, begin))
}

/// Pins the calling thread.
fn pin(cpu: usize) -> Result<(), Error> {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).map_err(|error| {
        let hint = "there is no such CPU, or this process may not use it; see `taskset -cp $$`";
        Error::system(format!("pinning a worker to CPU {cpu}"), error, hint)
    })
}
