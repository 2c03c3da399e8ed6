//! The interpreter of Rules and Plan: run queues, placement, selection, slices, preemption, balancing.
//!
//! It holds the scheduler's state and takes the fast-plane decisions; the host (a simulator, or a
//! test that replays a kernel's events) tells it what happens: `add`, `enqueue`, `start`, `charge`,
//! `stop`. The host asks `place_by_rules`, `pick_by_rules`, `expiry_ns`, `preempts_by_rules` and
//! `balance` what to do. A host that only watches another scheduler says what it sees: `observe`.
//! Nothing here knows a clock: `now_ns` is always passed in.

mod above;
mod aside;
mod balance;
pub(crate) mod by_energy;
mod by_load;
mod eevdf;
mod load;
mod moves;
mod observe;
mod part;
mod pick;
mod place;
mod planned;
mod rounds;
mod state;
mod system;
mod time;

use std::cell::Cell;

use ampsched_model::{AppId, ClusterId, CoreId, CoreSet, MAX_CLASSES, Ns, ThreadId};

use crate::pelt::ReportedLoads;
use crate::queue::RunQueue;
use crate::words::Contract;
use crate::{
    AffinityId, AffinityTable, Allocator, ClusterInfo, Factor, GroupInfo, Honours, LoadTracker,
    Needs, Order, Prefer, QueueScope, Rules, ThreadAttrs, ThreadPlan, Topology,
};
pub(crate) use by_energy::{Added, energy};
pub use by_energy::{CostPoint, cost_points};
pub(crate) use load::{Capacities, Fit, fits};
pub use moves::Turn;
use place::LastSearch;
pub use planned::Effect;
use rounds::Rounds;
pub use state::{CoreState, EnqueueKind, Pick, RunState, ThreadState, ThreadStats};

/// State and interpreter of the fast plane.
#[derive(Clone, Debug)]
pub struct Sched {
    topology: Topology,
    rules: Rules,
    affinities: AffinityTable,
    pub(crate) plans: Vec<ThreadPlan>,
    pub(crate) attrs: Vec<ThreadAttrs>,
    pub(crate) groups: Vec<GroupInfo>,
    pub(crate) honours: Honours,
    /// Whether a thread has ever been of class batch or idle.
    pub(crate) some_batch: bool,
    threads: Vec<ThreadState>,
    stats: Vec<ThreadStats>,
    /// The threads that have not exited, in ascending order, and some that have.
    present: Vec<ThreadId>,
    /// Threads in `present` that have exited.
    gone: usize,
    /// By application: its live threads.
    live: Vec<usize>,
    cores: Vec<CoreState>,
    queues: Vec<RunQueue>,
    /// Waiting threads in all queues.
    waiting: u32,
    /// Round-robin cursors over all, big and little cores ([`crate::Prefer`] as index).
    cursors: [Cell<u16>; 3],
    last_search: Cell<Option<LastSearch>>,
    /// Counts what is queued and what changes weight.
    serial: u64,
    /// Cores that execute nothing.
    idle_cores: u16,
    /// When imbalances are rotated next.
    rotation_due_ns: Ns,
    rounds: Rounds,
    /// Present frequency of each cluster.
    frequencies_mhz: Vec<u32>,
    /// The frequency that was asked for last of each cluster.
    wanted_mhz: Vec<u32>,
    /// The highest frequency that heat allows each cluster.
    caps_mhz: Vec<u32>,
    /// What the power sensor of each cluster shows, in mW.
    power_mw: Vec<Factor>,
    /// What the hottest temperature sensor of each cluster shows, in degrees Celsius.
    temperatures_c: Vec<Factor>,
    /// None: load is not tracked.
    load: Option<Box<LoadTracker>>,
    /// What the host says of load that it tracks by itself; none: it is tracked here.
    reported: Option<Box<ReportedLoads>>,
    /// Operating points of each cluster, if threads are placed by energy.
    costs: Vec<Vec<CostPoint>>,
    /// What the policy's needs name; nothing else is shown to it.
    needs: Needs,
    /// What the policy may ask for; none: the host has no policy to hold to it.
    contract: Option<Contract>,
}

impl Sched {
    /// An empty system of a host that watches another scheduler ([`Sched::observe`]): threads may leave queues in any
    /// order, at a cost that hardly grows with their number.
    pub fn watching(topology: Topology, rules: Rules) -> Self {
        Self::with_queues(topology, rules, RunQueue::watched)
    }

    /// An empty system.
    pub fn new(topology: Topology, rules: Rules) -> Self {
        Self::with_queues(topology, rules, RunQueue::new)
    }

    fn with_queues(topology: Topology, rules: Rules, queue: fn(Order) -> RunQueue) -> Self {
        let queue_of = |core: CoreId| match rules.queues {
            QueueScope::PerCore => core.0,
            QueueScope::PerCluster => topology.core(core).cluster.0.into(),
            QueueScope::Global => 0,
        };
        let in_queue = |core: CoreId| CoreState {
            queue: queue_of(core),
            class: topology.core(core).class,
            ..CoreState::default()
        };
        let cores: Vec<CoreState> = topology.cores().map(in_queue).collect();
        let count = cores.iter().map(|core| usize::from(core.queue) + 1).max().unwrap_or(0);
        let mut queues = vec![queue(rules.order); count];
        for core in &cores {
            let queue = &mut queues[usize::from(core.queue)];
            queue.cores += 1;
            queue.capacity += u32::from(rules.rating[core.class.index()]);
        }
        let idle_cores = topology.core_count() as u16;
        let rotation_due_ns = rules.balance.map_or(0, |balance| balance.rotate_period_ns);
        let highest = |cluster: &ClusterInfo| cluster.max_mhz().unwrap_or(0);
        let costs = match rules.allocator {
            // Energies of cores with two threads are not told apart (topology.c 6.18, `sched_is_eas_possible`).
            Allocator::ByEnergy { .. } if !topology.has_smt() => {
                topology.clusters().iter().map(cost_points).collect()
            }
            _ => Vec::new(),
        };
        Self {
            affinities: AffinityTable::new(topology.core_count()),
            cores,
            frequencies_mhz: topology.clusters().iter().map(highest).collect(),
            wanted_mhz: topology.clusters().iter().map(highest).collect(),
            caps_mhz: topology.clusters().iter().map(highest).collect(),
            power_mw: vec![Factor::default(); topology.clusters().len()],
            temperatures_c: vec![Factor::default(); topology.clusters().len()],
            rounds: Rounds::of(rules.order, topology.core_count()),
            attrs: Vec::new(),
            groups: vec![GroupInfo::root()],
            honours: Self::honoured_by(&rules),
            some_batch: false,
            topology,
            rules,
            plans: Vec::new(),
            threads: Vec::new(),
            stats: Vec::new(),
            present: Vec::new(),
            gone: 0,
            live: Vec::new(),
            queues,
            waiting: 0,
            cursors: Default::default(),
            last_search: Cell::new(None),
            serial: 0,
            idle_cores,
            rotation_due_ns,
            load: None,
            reported: None,
            costs,
            needs: Needs::default(),
            contract: None,
        }
    }

    /// Cores and clusters.
    #[inline]
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The rules that are interpreted.
    #[inline]
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Number of threads ever added.
    pub fn thread_count(&self) -> usize {
        self.threads.len()
    }

    /// The threads that have started and not exited, in ascending order.
    ///
    /// The cost does not depend on how many have exited before.
    pub fn live_threads(&self) -> impl Iterator<Item = ThreadId> + '_ {
        self.present.iter().copied().filter(|&thread| self.thread(thread).state.is_live())
    }

    /// The threads that have not exited, in ascending order, and some that have.
    #[inline]
    pub(crate) fn present(&self) -> &[ThreadId] {
        &self.present
    }

    /// Number of threads that have been added and not exited.
    pub fn present_count(&self) -> usize {
        self.present.len() - self.gone
    }

    /// How many live threads there are.
    pub fn live_count(&self) -> usize {
        self.live.iter().sum()
    }

    /// A thread's application.
    pub fn app(&self, thread: ThreadId) -> AppId {
        self.thread(thread).app
    }

    /// How many live threads an application has.
    pub fn live_in(&self, app: AppId) -> usize {
        self.live.get(app.index()).copied().unwrap_or(0)
    }

    /// A thread's state.
    #[inline]
    pub fn thread(&self, thread: ThreadId) -> &ThreadState {
        &self.threads[thread.index()]
    }

    /// A thread's counters.
    #[inline]
    pub fn stats(&self, thread: ThreadId) -> &ThreadStats {
        &self.stats[thread.index()]
    }

    /// The same as if its present stay in a queue, or blocked, ended now: what it waits for may never come.
    pub fn stats_until(&self, thread: ThreadId, now_ns: Ns) -> ThreadStats {
        let state = self.thread(thread);
        let mut stats = self.stats(thread).clone();
        stats.count_stay(state.state, now_ns - state.since_ns);
        stats
    }

    /// A thread's plan.
    #[inline]
    pub fn plan(&self, thread: ThreadId) -> &ThreadPlan {
        &self.plans[thread.index()]
    }

    /// A core's state.
    #[inline]
    pub fn core(&self, core: CoreId) -> &CoreState {
        &self.cores[core.index()]
    }

    /// Waiting threads in the core's queue.
    #[inline]
    pub fn queue_len(&self, core: CoreId) -> usize {
        self.queue(core).len()
    }

    /// The waiting threads in the core's queue, in no particular order.
    pub fn queued(&self, core: CoreId) -> Vec<ThreadId> {
        self.queue(core).iter().map(|entry| entry.thread).collect()
    }

    /// All waiting threads, in no particular order.
    pub fn all_queued(&self) -> Vec<ThreadId> {
        self.queues.iter().flat_map(|queue| queue.iter().map(|entry| entry.thread)).collect()
    }

    /// Number of waiting threads in all queues.
    pub fn waiting_count(&self) -> usize {
        self.waiting as usize
    }

    /// The cores that the queue of a core serves, in ascending order.
    pub fn cores_of_queue(&self, core: CoreId) -> impl Iterator<Item = CoreId> + use<> {
        let span = match self.rules.queues {
            QueueScope::PerCore => core.index()..core.index() + 1,
            QueueScope::Global => 0..self.cores.len(),
            QueueScope::PerCluster => {
                let cores = self.topology.cluster_cores(core);
                cores[0].index()..cores[cores.len() - 1].index() + 1
            }
        };
        span.map(CoreId::from)
    }

    /// Whether the same queue serves two cores.
    #[inline]
    pub fn share_queue(&self, one: CoreId, other: CoreId) -> bool {
        self.queue_index(one) == self.queue_index(other)
    }

    /// Number of cores that execute nothing, neither for the policy nor for a class above it.
    #[inline]
    pub fn idle_cores(&self) -> usize {
        self.idle_cores.into()
    }

    /// Whether the thread that runs on a core has to give way some time: if threads wait in its queue, and
    /// under rounds always, because there may be others elsewhere.
    #[inline]
    pub fn is_contended(&self, core: CoreId) -> bool {
        !self.queue(core).is_empty() || self.has_rounds()
    }

    /// Whether a core neither executes anything, for whomever, nor has waiting work of its own.
    #[inline]
    pub fn is_idle(&self, core: CoreId) -> bool {
        self.is_free(core) && self.queue(core).is_empty()
    }

    /// The cores that the plan lets a thread use.
    pub fn affinity(&self, thread: ThreadId) -> &CoreSet {
        self.affinities.set(self.plans[thread.index()].affinity)
    }

    /// Whether the plan lets a thread use a core.
    #[inline]
    pub fn allows(&self, thread: ThreadId, core: CoreId) -> bool {
        self.affinities.allows(self.plans[thread.index()].affinity, core)
    }

    /// Whether the thread's program lets it use a core, whatever the plan says.
    pub fn user_allows(&self, thread: ThreadId, core: CoreId) -> bool {
        self.affinities.allows(self.plans[thread.index()].user_affinity, core)
    }

    /// Adds a thread of an application with a weight (1024 is nice 0) and the cores that its program
    /// allows (all if absent). Its identifier is the number of threads added before.
    pub fn add(&mut self, app: AppId, weight: u32, cores: Option<&CoreSet>) -> ThreadId {
        let affinity = cores.map_or(AffinityId::ALL, |set| self.affinities.intern(set));
        self.plans.push(ThreadPlan {
            affinity,
            user_affinity: affinity,
            weight,
            ..ThreadPlan::default()
        });
        self.attrs.push(ThreadAttrs::default());
        self.threads.push(ThreadState { app, ..ThreadState::default() });
        self.stats.push(ThreadStats::default());
        let thread = ThreadId::from(self.threads.len() - 1);
        self.present.push(thread);
        thread
    }

    /// Tells that a thread belongs to another application from now on.
    pub fn set_app(&mut self, thread: ThreadId, app: AppId) {
        let state = &mut self.threads[thread.index()];
        let before = std::mem::replace(&mut state.app, app);
        if state.state.is_live() {
            self.live[before.index()] -= 1;
            self.count_live(app);
        }
    }

    /// The frequency at which a cluster runs, in MHz; the highest until the host says otherwise.
    #[inline]
    pub fn frequency_mhz(&self, cluster: ClusterId) -> u32 {
        self.frequencies_mhz[cluster.index()]
    }

    /// The frequency that was asked for a cluster last, whatever limits say, in MHz; the highest until
    /// the host says otherwise.
    pub fn wanted_mhz(&self, cluster: ClusterId) -> u32 {
        self.wanted_mhz[cluster.index()]
    }

    /// Tells which frequency was asked for.
    pub fn set_wanted(&mut self, cluster: ClusterId, mhz: u32) {
        self.wanted_mhz[cluster.index()] = mhz;
    }

    /// The highest frequency that heat allows a cluster, in MHz: what the kernel's cooling device sets, not what
    /// firmware does by itself (turbo, power limits). The highest there is until the host says otherwise.
    pub fn cap_mhz(&self, cluster: ClusterId) -> u32 {
        self.caps_mhz[cluster.index()]
    }

    /// Tells which frequency heat allows a cluster from now on.
    pub fn set_cap(&mut self, cluster: ClusterId, mhz: u32) {
        self.caps_mhz[cluster.index()] = mhz;
    }

    /// What a cluster's power sensor shows, in mW.
    pub fn power_mw(&self, cluster: ClusterId) -> Factor {
        self.power_mw[cluster.index()]
    }

    /// Tells what a cluster's power sensor shows.
    pub fn set_power(&mut self, cluster: ClusterId, power_mw: Factor) {
        self.power_mw[cluster.index()] = power_mw;
    }

    /// What the hottest temperature sensor of a cluster shows, in degrees Celsius.
    pub fn temperature_c(&self, cluster: ClusterId) -> Factor {
        self.temperatures_c[cluster.index()]
    }

    /// Tells what the hottest temperature sensor of a cluster shows.
    pub fn set_temperature(&mut self, cluster: ClusterId, temperature_c: Factor) {
        self.temperatures_c[cluster.index()] = temperature_c;
    }

    /// Tells at which frequency a cluster runs from now on.
    pub fn set_frequency(&mut self, cluster: ClusterId, mhz: u32, now_ns: Ns) {
        self.frequencies_mhz[cluster.index()] = mhz;
        self.track_frequency(cluster, mhz, now_ns);
    }

    /// Adds to the time that others have waited for a thread.
    pub fn blame(&mut self, thread: ThreadId, waited_ns: Ns) {
        self.stats[thread.index()].blame_ns += waited_ns;
    }

    /// Instructions that a thread has retired on cores of each class.
    pub fn instructions(&self, thread: ThreadId) -> &[u64; MAX_CLASSES] {
        &self.stats[thread.index()].instructions
    }

    /// Time that other threads have waited for a thread.
    pub fn blame_ns(&self, thread: ThreadId) -> Ns {
        self.stats[thread.index()].blame_ns
    }

    /// Whether a core is of the kind that a thread prefers.
    #[inline]
    fn is_preferred(&self, thread: ThreadId, core: CoreId) -> bool {
        match self.plan(thread).prefer {
            Prefer::Any => true,
            kind => self.topology.kind(core) == kind,
        }
    }

    /// Whether there is a core of the kind that a thread prefers which it may use.
    fn may_use_preferred(&self, thread: ThreadId) -> bool {
        let mut cores = self.topology.cores();
        cores.any(|core| self.is_preferred(thread, core) && self.allows(thread, core))
    }

    #[inline]
    pub(crate) fn queue(&self, core: CoreId) -> &RunQueue {
        &self.queues[self.queue_index(core)]
    }

    #[inline]
    fn queue_index(&self, core: CoreId) -> usize {
        self.cores[core.index()].queue.into()
    }
}

#[cfg(test)]
mod tests;
