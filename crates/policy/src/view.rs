//! What a policy may see: one read-only window, the same in simulation and live.

use ampsched_model::{AppId, ClusterId, CoreId, Ns, ThreadId};

use crate::{Factor, Factors, Pick, RunState, Sched, ThreadPlan, ThreadStats, Topology};

/// The system at one moment.
#[derive(Clone, Copy)]
pub struct View<'a> {
    sched: &'a Sched,
    factors: &'a [Factors],
    now_ns: Ns,
}

impl<'a> View<'a> {
    /// A view of the interpreter's state; `factors` has one entry per thread.
    pub fn new(sched: &'a Sched, factors: &'a [Factors], now_ns: Ns) -> Self {
        Self { sched, factors, now_ns }
    }

    /// The time in ns since the start.
    pub fn now_ns(&self) -> Ns {
        self.now_ns
    }

    /// Cores and clusters.
    pub fn topology(&self) -> &'a Topology {
        self.sched.topology()
    }

    /// The threads that have started and not exited, in ascending order.
    pub fn threads(&self) -> impl Iterator<Item = ThreadId> + 'a {
        self.sched.live_threads()
    }

    /// The live threads that run or wait for a core.
    pub fn runnable(&self) -> impl Iterator<Item = ThreadId> + 'a {
        let sched = self.sched;
        self.threads().filter(move |&t| sched.thread(t).state.is_runnable())
    }

    /// A thread's state.
    pub fn state(&self, thread: ThreadId) -> RunState {
        self.sched.thread(thread).state
    }

    /// A thread's application.
    pub fn app(&self, thread: ThreadId) -> AppId {
        self.sched.thread(thread).app
    }

    /// The core on which a thread runs, waits or last ran.
    pub fn core(&self, thread: ThreadId) -> CoreId {
        self.sched.thread(thread).core
    }

    /// The thread that runs on a core.
    pub fn running(&self, core: CoreId) -> Option<ThreadId> {
        self.sched.core(core).running
    }

    /// Waiting threads in the core's queue.
    pub fn queue_len(&self, core: CoreId) -> usize {
        self.sched.queue_len(core)
    }

    /// The waiting threads in the core's queue, in no particular order.
    pub fn queued(&self, core: CoreId) -> Vec<ThreadId> {
        self.sched.queued(core)
    }

    /// A thread's counters since its start.
    pub fn stats(&self, thread: ThreadId) -> &'a ThreadStats {
        self.sched.stats(thread)
    }

    /// Time in ns that a thread has spent in run queues since its start, the present stay included.
    pub fn ready_ns(&self, thread: ThreadId) -> Ns {
        let state = self.sched.thread(thread);
        let stay_ns = if state.state == RunState::Ready { self.now_ns - state.since_ns } else { 0 };
        self.stats(thread).ready_ns + stay_ns
    }

    /// A thread's virtual run time in ns.
    pub fn vruntime(&self, thread: ThreadId) -> Ns {
        self.sched.thread(thread).vruntime
    }

    /// What the plan says of a thread now.
    pub fn plan(&self, thread: ThreadId) -> &'a ThreadPlan {
        self.sched.plan(thread)
    }

    /// Whether the plan lets a thread use a core.
    pub fn may_run(&self, thread: ThreadId, core: CoreId) -> bool {
        self.sched.allows(thread, core)
    }

    /// The frequency at which a cluster runs, in MHz.
    pub fn frequency_mhz(&self, cluster: ClusterId) -> u32 {
        self.sched.frequency_mhz(cluster)
    }

    /// What a cluster's power sensor shows, in mW.
    pub fn power_mw(&self, cluster: ClusterId) -> Factor {
        self.sched.power_mw(cluster)
    }

    /// What the hottest temperature sensor of a cluster shows, in degrees Celsius.
    pub fn temperature_c(&self, cluster: ClusterId) -> Factor {
        self.sched.temperature_c(cluster)
    }

    /// What is known about a thread.
    pub fn factors(&self, thread: ThreadId) -> &'a Factors {
        &self.factors[thread.index()]
    }

    /// The core that the rules choose for a thread.
    pub fn by_rules_place(&self, thread: ThreadId) -> CoreId {
        self.sched.place_by_rules(thread)
    }

    /// What the rules let a core do next.
    pub fn by_rules_pick(&self, core: CoreId) -> Pick {
        self.sched.pick_by_rules(core, self.now_ns)
    }

    /// How long the rules let a thread run on a core, in ns.
    pub fn by_rules_slice(&self, thread: ThreadId, core: CoreId) -> Ns {
        self.sched.slice_by_rules(thread, core)
    }

    /// Whether the rules let a woken thread interrupt a running one.
    pub fn by_rules_preempts(&self, woken: ThreadId, running: ThreadId, core: CoreId) -> bool {
        self.sched.preempts_by_rules(woken, running, core)
    }
}
