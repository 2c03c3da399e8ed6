//! What a policy may see: one read-only window, the same in simulation and live.

use std::borrow::Cow;

use ampsched_model::{AppId, ClusterId, CoreId, MAX_CLASSES, Ns, ThreadId};

use crate::{
    Factor, Factors, Pick, RunState, Sched, ThreadLoad, ThreadPlan, ThreadStats, Topology,
};

/// The system at one moment.
#[derive(Clone, Copy)]
pub struct View<'a> {
    sched: &'a Sched,
    factors: &'a [Factors],
    now_ns: Ns,
    waker: Option<CoreId>,
    /// What [`View::recent`] says; none: all threads.
    recent: Option<&'a [ThreadId]>,
}

impl<'a> View<'a> {
    /// A view of the interpreter's state; `factors` has one entry per thread.
    pub fn new(sched: &'a Sched, factors: &'a [Factors], now_ns: Ns) -> Self {
        Self { sched, factors, now_ns, waker: None, recent: None }
    }

    /// The same for the placement of a thread that was woken by one on core `waker`.
    pub fn woken_from(self, waker: Option<CoreId>) -> Self {
        Self { waker, ..self }
    }

    /// The same with the threads that are not silent, if they are known and few ([`Sched::few_recent`]).
    pub fn with_recent(self, recent: Option<&'a [ThreadId]>) -> Self {
        Self { recent, ..self }
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
        let sched = self.sched;
        sched.live_threads().filter(move |&thread| !sched.is_above(thread))
    }

    /// The live threads that run or wait for a core.
    pub fn runnable(&self) -> impl Iterator<Item = ThreadId> + 'a {
        let sched = self.sched;
        let candidates = self.recent.unwrap_or(sched.present()).iter().copied();
        candidates.filter(move |&thread| {
            sched.thread(thread).state.is_runnable() && !sched.is_above(thread)
        })
    }

    /// The live threads but those that have slept, or were held back, since the policy's last epoch and of which
    /// nothing has changed, in ascending order. Some of these may be among them: what a policy decides must not depend
    /// on that. Where most threads sleep, a policy that asks for no others costs what has changed; it has to ask at
    /// each epoch.
    pub fn recent(&self) -> Cow<'a, [ThreadId]> {
        self.recent.map_or_else(|| self.threads().collect(), Cow::Borrowed)
    }

    /// How many live threads there are.
    pub fn live_count(&self) -> usize {
        self.sched.live_count()
    }

    /// How many live threads an application has.
    pub fn live_in(&self, app: AppId) -> usize {
        self.sched.live_in(app)
    }

    /// A thread's state.
    pub fn state(&self, thread: ThreadId) -> RunState {
        self.sched.thread(thread).state
    }

    /// A thread's application.
    pub fn app(&self, thread: ThreadId) -> AppId {
        self.sched.app(thread)
    }

    /// The core on which a thread runs, waits or last ran.
    pub fn core(&self, thread: ThreadId) -> CoreId {
        self.sched.thread(thread).core
    }

    /// The thread that runs on a core; none also if a class above the policy's occupies it.
    pub fn running(&self, core: CoreId) -> Option<ThreadId> {
        self.sched.core(core).running
    }

    /// Whether a core runs nothing, has no waiting thread in its queue, and is not busy with the system's own work, of
    /// which nothing else is shown.
    pub fn is_idle(&self, core: CoreId) -> bool {
        self.sched.is_idle(core)
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

    /// Instructions that a thread has retired on cores of each class; 0 unless
    /// [`Needs::instructions`](crate::Needs::instructions) asks for them.
    pub fn instructions(&self, thread: ThreadId) -> &'a [u64; MAX_CLASSES] {
        const NONE: &[u64; MAX_CLASSES] = &[0; MAX_CLASSES];
        if self.sched.needs().instructions { self.sched.instructions(thread) } else { NONE }
    }

    /// Their sum.
    pub fn instructions_total(&self, thread: ThreadId) -> u64 {
        self.instructions(thread).iter().sum()
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

    /// Whether the thread's program lets it use a core, whatever the plan says.
    pub fn user_allows(&self, thread: ThreadId, core: CoreId) -> bool {
        self.sched.user_allows(thread, core)
    }

    /// The frequency at which a cluster runs, in MHz.
    pub fn frequency_mhz(&self, cluster: ClusterId) -> u32 {
        self.sched.frequency_mhz(cluster)
    }

    /// The frequency that was asked for a cluster last, by a governor or the policy, whatever limits say;
    /// in MHz. The highest if nobody asked.
    pub fn wanted_mhz(&self, cluster: ClusterId) -> u32 {
        self.sched.wanted_mhz(cluster)
    }

    /// The share of time in which a thread has been runnable lately, 0 to 1024; 0 unless
    /// [`Needs::load_tracking`](crate::Needs::load_tracking) asks for it, as for the others below.
    pub fn load(&self, thread: ThreadId) -> u32 {
        self.sched.load_of(thread, self.now_ns)
    }

    /// What a thread uses of the fastest core, 0 to 1024: its average or, if greater, the estimate of what
    /// it will use when it wakes up.
    pub fn util(&self, thread: ThreadId) -> u32 {
        self.sched.util_of(thread, self.now_ns)
    }

    /// Whether a thread sleeps, or is held back, and [`View::util`] says the same until something changes: the
    /// average is below the estimate, or nothing.
    pub fn is_util_at_rest(&self, thread: ThreadId) -> bool {
        let fades = |load: ThreadLoad| load.running > 0 && load.running >= load.util;
        let load = || self.sched.thread_load(thread, self.now_ns);
        !self.state(thread).is_runnable() && !load().is_some_and(fades)
    }

    /// How much of a core is used, 0 to its capacity.
    pub fn core_util(&self, core: CoreId) -> u32 {
        self.sched.core_util(core, self.now_ns)
    }

    /// The same without what a thread has left there.
    pub fn core_util_without(&self, core: CoreId, thread: ThreadId) -> u32 {
        self.sched.core_util_without(core, thread, self.now_ns)
    }

    /// Whether a core has less than a fifth of its capacity to spare.
    pub fn is_overutilised(&self, core: CoreId) -> bool {
        self.sched.is_overutilised(core, self.now_ns)
    }

    /// Time in ns that a core has spent with threads since the start, those of the system included.
    pub fn busy_ns(&self, core: CoreId) -> Ns {
        self.sched.core(core).busy_ns + self.sched.taken_ns(core)
    }

    /// What a cluster's power sensor shows, in mW; missing unless
    /// [`Needs::sensors`](crate::Needs::sensors) asks for it, as for the next.
    pub fn power_mw(&self, cluster: ClusterId) -> Factor {
        self.sensed(self.sched.power_mw(cluster))
    }

    /// What the hottest temperature sensor of a cluster shows, in degrees Celsius.
    pub fn temperature_c(&self, cluster: ClusterId) -> Factor {
        self.sensed(self.sched.temperature_c(cluster))
    }

    fn sensed(&self, shown: Factor) -> Factor {
        if self.sched.needs().sensors { shown } else { Factor::default() }
    }

    /// What is known about a thread.
    pub fn factors(&self, thread: ThreadId) -> &'a Factors {
        &self.factors[thread.index()]
    }

    /// The core that the rules choose for a thread.
    pub fn by_rules_place(&self, thread: ThreadId) -> CoreId {
        self.sched.place_by_rules_near(thread, self.waker, self.now_ns)
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
