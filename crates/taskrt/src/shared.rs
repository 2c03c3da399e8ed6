//! How workers and callers come to the dispatcher, work, and wait.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ampsched_policy::Params;
use ampsched_task::{BottomLevels, Build, Slot, TaskId, Weight, WorkerId, Workers};

use crate::dispatcher::{Dispatcher, Job, Serial, ToWake, WAKE_S, Waiter, Work};
use crate::graph_job::{Body, Executions};
use crate::loop_job::{LoopJob, Step};
use crate::parker::Parker;
use crate::path_publisher::PathPublisher;
use crate::rates::Rates;

thread_local! {
    /// The runtime (by its address) and the worker that this thread is.
    static SELF: Cell<Option<(usize, WorkerId)>> = const { Cell::new(None) };
    /// The task that this thread executes.
    static TASK: Cell<Option<TaskId>> = const { Cell::new(None) };
}

/// The task that the calling thread executes, if it does.
pub fn current_task() -> Option<TaskId> {
    TASK.get()
}

/// What a runtime's threads share.
pub struct Shared {
    dispatcher: Mutex<Dispatcher>,
    parkers: Vec<Arc<Parker>>,
    /// How graphs are scheduled.
    pub build: Build,
    /// Parameters of the policy.
    pub params: Params,
    /// Name of the policy.
    pub policy: &'static str,
    /// Whether executions are recorded.
    pub is_recorded: bool,
    /// Where workers tell their paths, if anybody has asked for it.
    publisher: Option<PathPublisher>,
    zero: Instant,
}

impl Shared {
    /// Workers have not started.
    pub fn new(
        dispatcher: Dispatcher,
        parkers: Vec<Arc<Parker>>,
        (policy, build, params): (&'static str, Build, Params),
        is_recorded: bool,
        publisher: Option<PathPublisher>,
    ) -> Self {
        let (dispatcher, zero) = (Mutex::new(dispatcher), Instant::now());
        Self { dispatcher, parkers, build, params, policy, is_recorded, publisher, zero }
    }

    /// The dispatcher.
    pub fn lock(&self) -> MutexGuard<'_, Dispatcher> {
        // Nothing panics under the lock but a faulty policy; what it leaves is still a dispatcher.
        self.dispatcher.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bottom levels for a new graph, if workers tell their paths.
    pub fn levels(&self, workers: &Workers) -> Option<BottomLevels> {
        let levels = |_: &PathPublisher| BottomLevels::new(Weight::Cost(workers.fastest_class()));
        self.publisher.as_ref().map(levels)
    }

    /// Tells the path of what a worker does from now on, if workers tell; 0: none.
    fn tell(&self, me: WorkerId, path_ns: u64) {
        if let Some(publisher) = &self.publisher {
            publisher.tell(me, path_ns);
        }
    }

    /// The worker that the calling thread is.
    pub fn current(&self) -> Option<WorkerId> {
        let (runtime, worker) = SELF.get()?;
        (runtime == self.address()).then_some(worker)
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    /// Who the calling thread is when it waits.
    pub fn waiter(&self) -> Waiter {
        self.current().map_or_else(|| Waiter::Outside(Arc::new(Parker::new())), Waiter::Worker)
    }

    /// What a worker's thread does until the runtime ends.
    pub fn work(&self, me: WorkerId) {
        SELF.set(Some((self.address(), me)));
        self.serve(me, 0, |dispatcher| dispatcher.is_closing);
        SELF.set(None);
    }

    /// Changes the dispatcher, feeds idle workers, and wakes who has to be woken.
    pub fn change<T>(&self, change: impl FnOnce(&mut Dispatcher, &mut ToWake) -> T) -> T {
        let mut to_wake = ToWake::new();
        let mut dispatcher = self.lock();
        let result = change(&mut dispatcher, &mut to_wake);
        dispatcher.feed(None, &mut to_wake);
        dispatcher.end_stalled(&mut to_wake);
        drop(dispatcher);
        wake_all(&mut to_wake);
        result
    }

    /// Waits for the end of a graph or loop and takes it off the dispatcher; a worker helps meanwhile.
    pub fn wait(&self, serial: Serial, waiter: &Waiter) -> Job {
        match waiter {
            Waiter::Worker(me) => self.serve(*me, serial, |dispatcher| dispatcher.is_done(serial)),
            Waiter::Outside(parker) => {
                while !self.lock().is_done(serial) {
                    parker.wait(spin());
                }
            }
        }
        let mut dispatcher = self.lock();
        let job = dispatcher.finish(serial);
        if self.is_recorded {
            let executions = match &job {
                Job::Graph(graph) => graph.recorded(&dispatcher.rates),
                Job::Loop(open) => self.recorded(open.work(), &dispatcher.rates),
            };
            dispatcher.recorded.extend(executions);
        }
        job
    }

    /// Executes what the policies have for a worker, nothing older than `from`, until `is_over`.
    fn serve(&self, me: WorkerId, from: Serial, is_over: impl Fn(&Dispatcher) -> bool) {
        let mut to_wake = ToWake::new();
        let outer_ns = self.publisher.as_ref().map_or(0, |publisher| publisher.path_ns(me));
        let mut dispatcher = self.lock();
        while !is_over(&dispatcher) {
            let mut work = dispatcher.feed(Some((me, from)), &mut to_wake);
            if work.is_none() {
                dispatcher.rest(me, from, &mut to_wake);
                drop(dispatcher);
                wake_all(&mut to_wake);
                self.tell(me, 0);
                self.parkers[me.index()].wait(spin());
                dispatcher = self.lock();
                work = dispatcher.given(me);
            }
            let Some(work) = work else { continue };
            if let Some(publisher) = &self.publisher {
                publisher.tell(me, dispatcher.path_ns(&work));
            }
            drop(dispatcher);
            wake_all(&mut to_wake);
            dispatcher = self.execute(me, work, &mut to_wake);
        }
        drop(dispatcher);
        wake_all(&mut to_wake);
        self.tell(me, outer_ns);
    }

    /// Executes something and says so on the dispatcher.
    fn execute(
        &self,
        me: WorkerId,
        work: Work,
        to_wake: &mut ToWake,
    ) -> MutexGuard<'_, Dispatcher> {
        match work {
            Work::Task(serial, task, body) => {
                let outer = TASK.replace(Some(task));
                let start_s = self.seconds(Instant::now());
                // Whatever a body has left half done is reached by nobody: the panic goes on in the caller.
                let outcome = catch_unwind(AssertUnwindSafe(|| match body {
                    Body::Once(body) => body(),
                    Body::Each(body) => body(task),
                }));
                let end_s = self.seconds(Instant::now());
                TASK.set(outer);
                let mut dispatcher = self.lock();
                let slot = Slot { task, worker: me, start_s, end_s };
                dispatcher.end_task(serial, slot, outcome.err(), to_wake);
                dispatcher
            }
            Work::Loop(serial, work) => {
                self.help(serial, &work, me, to_wake);
                self.lock()
            }
        }
    }

    /// Helps with a loop that the worker has joined, then leaves it.
    pub fn help(&self, serial: Serial, work: &LoopJob, me: WorkerId, to_wake: &mut ToWake) {
        let outer = TASK.take();
        let done = work.help(me);
        TASK.set(outer);
        self.lock().leave_loop(serial, me, &done, to_wake);
    }

    fn seconds(&self, at: Instant) -> f64 {
        at.duration_since(self.zero).as_secs_f64()
    }

    /// The steps of a loop as executions of tasks.
    fn recorded(&self, work: &LoopJob, rates: &Rates) -> Option<Executions> {
        let kind = rates.name(work.site);
        let mut all = Executions::default();
        for Step { worker, range, start, end } in work.take_steps()? {
            let task = TaskId::from(all.tasks.len());
            all.tasks.push((format!("{}..{}", range.start, range.end), kind.to_owned()));
            let (start_s, end_s) = (self.seconds(start), self.seconds(end));
            all.slots.push(Slot { task, worker, start_s, end_s });
        }
        Some(all)
    }
}

/// Rings all parkers.
pub fn wake_all(to_wake: &mut ToWake) {
    to_wake.drain(..).for_each(|parker| parker.unpark());
}

/// True for the time that a waiting thread stays awake: as long as a wake-up costs, so that waiting never costs more
/// than twice what it had to (Karlin et al., Empirical studies of competitive spinning, SOSP 1991).
fn spin() -> impl FnMut() -> bool {
    let (start, longest) = (Instant::now(), Duration::from_secs_f64(WAKE_S));
    let mut is_awake = true;
    move || {
        is_awake = is_awake && start.elapsed() < longest;
        std::hint::spin_loop();
        is_awake
    }
}
