//! The interpreter of Rules and Plan: run queues, placement, selection, slices, preemption, balancing.
//!
//! It holds the scheduler's state and takes the fast-plane decisions; the host (a simulator, or a
//! test that replays a kernel's events) tells it what happens: `add`, `enqueue`, `start`, `charge`,
//! `stop`. The host asks `place_by_rules`, `pick_by_rules`, `expiry_ns`, `preempts_by_rules` and
//! `balance` what to do. A host that only watches another scheduler says what it sees: `observe`. Nothing here knows a clock: `now_ns` is always passed in.

mod balance;
mod by_load;
mod eevdf;
mod load;
mod moves;
mod observe;
mod pick;
mod place;
mod rounds;
mod time;

use std::cell::Cell;

use ampsched_model::{AppId, ClassId, ClusterId, CoreId, CoreSet, MAX_CLASSES, Ns, ThreadId};

use crate::plan::to_fixed;
use crate::queue::RunQueue;
use crate::words::Contract;
use crate::{
    AffinityId, AffinityTable, Change, ClusterInfo, Factor, LoadTracker, Needs, Order, Plan,
    Prefer, QueueScope, Refusal, Rules, ThreadPlan, Topology,
};
pub(crate) use load::fits;
use place::LastSearch;
use rounds::Rounds;

choice! {
    /// Where a thread is in its life.
    pub enum RunState as "state" {
        /// Not started.
        New as "new" => {}
        /// Waiting in a run queue.
        Ready as "ready" => {}
        /// On a core.
        Running as "running" => {}
        /// Waiting for an object, a timer or a device.
        Blocked as "blocked" => {}
        /// It could run but is held back by the plan ([`Change::Hold`]).
        Held as "held" => {}
        /// Ended.
        Exited as "exited" => {}
    }
}

impl Default for RunState {
    fn default() -> Self {
        Self::New
    }
}

impl RunState {
    /// Started and not exited.
    pub fn is_live(self) -> bool {
        matches!(self, Self::Ready | Self::Running | Self::Blocked | Self::Held)
    }

    /// Running or waiting for a core.
    pub fn is_runnable(self) -> bool {
        matches!(self, Self::Ready | Self::Running)
    }
}

/// Scheduling state of a thread.
#[derive(Clone, Debug, Default)]
pub struct ThreadState {
    /// Where it is in its life.
    pub state: RunState,
    /// Its application.
    pub app: AppId,
    /// The core on which it runs, waits or last ran.
    pub core: CoreId,
    /// The core on which it runs or last ran; none if it never has.
    pub ran_on: Option<CoreId>,
    /// Virtual run time in ns, relative to its queue.
    pub vruntime: Ns,
    /// Virtual deadline in ns (EEVDF).
    pub deadline: Ns,
    /// Since when it is in its state.
    pub since_ns: Ns,
    /// Mean virtual run time of its queue minus its own when it left it (EEVDF).
    lag: i64,
}

/// What a thread has used and suffered since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadStats {
    /// Time on cores of each class, switching included.
    pub run_ns: [Ns; MAX_CLASSES],
    /// Time in run queues.
    pub ready_ns: Ns,
    /// Longest single stay in a run queue.
    pub ready_ns_max: Ns,
    /// Time blocked.
    pub blocked_ns: Ns,
    /// Times that it was put on a core after another thread had used it.
    pub switches: u64,
    /// Times that it was put on another core than before.
    pub migrations: u64,
    /// When it last changed cores.
    pub migrated_at_ns: Ns,
    /// Instructions retired on cores of each class. Policies read them through the [`crate::View`].
    instructions: [u64; MAX_CLASSES],
    /// Time that other threads have waited for this one; a policy's factor.
    blame_ns: Ns,
}

impl ThreadStats {
    /// Time on cores in total.
    pub fn run_ns_total(&self) -> Ns {
        self.run_ns.iter().sum()
    }

    #[inline]
    fn count_wait(&mut self, waited_ns: Ns) {
        self.ready_ns += waited_ns;
        self.ready_ns_max = self.ready_ns_max.max(waited_ns);
    }
}

/// Scheduling state of a core.
#[derive(Clone, Debug, Default)]
pub struct CoreState {
    /// The thread that runs on it.
    pub running: Option<ThreadId>,
    /// Since when that thread runs (slices are counted from here), or since when the core is idle.
    pub since_ns: Ns,
    /// The thread that ran last.
    pub last: Option<ThreadId>,
    /// Time that it has spent with threads, switching included.
    pub busy_ns: Ns,
    /// Time that the running thread has been charged for since it was started, or its pace last changed.
    turn_ns: Ns,
    /// What of its virtual run time that was.
    turn_virtual_ns: Ns,
    /// Its queue.
    queue: u16,
    /// Its speed class, as in the topology (kept where the other fields are looked up).
    class: ClassId,
}

choice! {
    /// How a thread comes into a run queue.
    pub enum EnqueueKind as "enqueue" {
        /// It has just been created.
        Fork as "fork" => {}
        /// It was blocked.
        Wake as "wake" => {}
        /// It was running and has lost the core.
        Requeue as "requeue" => {}
    }
}

/// What a core does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// Run this waiting thread.
    Run(ThreadId),
    /// Interrupt this thread, which runs on a slower core, and run it here.
    Pull(ThreadId),
    /// Nothing to do; ask again at that time if nothing has happened before.
    Idle {
        /// Time in ns.
        recheck_ns: Option<Ns>,
    },
}

/// State and interpreter of the fast plane.
#[derive(Clone, Debug)]
pub struct Sched {
    topology: Topology,
    rules: Rules,
    affinities: AffinityTable,
    plans: Vec<ThreadPlan>,
    threads: Vec<ThreadState>,
    stats: Vec<ThreadStats>,
    /// The threads that have not exited, in ascending order, and some that have.
    present: Vec<ThreadId>,
    /// Threads in `present` that have exited.
    gone: usize,
    cores: Vec<CoreState>,
    queues: Vec<RunQueue>,
    /// Waiting threads in all queues.
    waiting: u32,
    /// Round-robin cursors over all, big and little cores ([`crate::Prefer`] as index).
    cursors: [Cell<u16>; 3],
    last_search: Cell<Option<LastSearch>>,
    /// Counts what is queued and what changes weight.
    serial: u64,
    /// Cores without a running thread.
    idle_cores: u16,
    /// When imbalances are rotated next.
    rotation_due_ns: Ns,
    rounds: Rounds,
    /// Present frequency of each cluster.
    frequencies_mhz: Vec<u32>,
    /// The frequency that was asked for last of each cluster.
    wanted_mhz: Vec<u32>,
    /// What the power sensor of each cluster shows, in mW.
    power_mw: Vec<Factor>,
    /// What the hottest temperature sensor of each cluster shows, in degrees Celsius.
    temperatures_c: Vec<Factor>,
    /// None: load is not tracked.
    load: Option<Box<LoadTracker>>,
    /// What the policy's needs name; nothing else is shown to it.
    needs: Needs,
    /// What the policy may ask for; none: the host has no policy to hold to it.
    contract: Option<Contract>,
}

/// What a change of the plan has brought about; nothing if it was so before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// The thread is on a core, or in the queue of a core, that it may not use, or held back though it need
    /// not be, or runnable though it is held back: the host must move it.
    pub moves: bool,
    /// Idle cores may be allowed to take the thread now: the host must let them look.
    pub opens: bool,
}

impl Sched {
    /// An empty system.
    pub fn new(topology: Topology, rules: Rules) -> Self {
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
        let mut queues = vec![RunQueue::new(rules.order); count];
        for core in &cores {
            let queue = &mut queues[usize::from(core.queue)];
            queue.cores += 1;
            queue.capacity += u32::from(rules.rating[core.class.index()]);
        }
        let idle_cores = topology.core_count() as u16;
        let rotation_due_ns = rules.balance.map_or(0, |balance| balance.rotate_period_ns);
        let highest = |cluster: &ClusterInfo| cluster.max_mhz().unwrap_or(0);
        Self {
            affinities: AffinityTable::new(topology.core_count()),
            cores,
            frequencies_mhz: topology.clusters().iter().map(highest).collect(),
            wanted_mhz: topology.clusters().iter().map(highest).collect(),
            power_mw: vec![Factor::default(); topology.clusters().len()],
            temperatures_c: vec![Factor::default(); topology.clusters().len()],
            rounds: Rounds::of(rules.order, topology.core_count()),
            topology,
            rules,
            plans: Vec::new(),
            threads: Vec::new(),
            stats: Vec::new(),
            present: Vec::new(),
            gone: 0,
            queues,
            waiting: 0,
            cursors: Default::default(),
            last_search: Cell::new(None),
            serial: 0,
            idle_cores,
            rotation_due_ns,
            load: None,
            needs: Needs::default(),
            contract: None,
        }
    }

    /// Serves a policy with these needs: tracks load as they say, shows it what they name and nothing else, and
    /// holds it to its contract ([`Sched::check`]).
    pub fn serve(&mut self, needs: &Needs) {
        self.needs = *needs;
        self.contract = Some(Contract::new(needs, &self.rules));
        if let Some(how) = needs.load_tracking {
            self.track_load(how);
        }
    }

    /// What the policy's needs name.
    pub fn needs(&self) -> &Needs {
        &self.needs
    }

    /// Whether the policy may ask for all of a plan.
    ///
    /// # Errors
    ///
    /// A change that none of its rules reads, or that its needs do not name.
    pub fn check(&self, plan: &Plan) -> Result<(), Refusal> {
        self.contract.map_or(Ok(()), |contract| contract.check(plan))
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

    /// The cores that the queue of a core serves, in ascending order.
    pub fn cores_of_queue(&self, core: CoreId) -> impl Iterator<Item = CoreId> + use<> {
        let span = match self.rules.queues {
            QueueScope::PerCore => core.index()..core.index() + 1,
            QueueScope::Global => 0..self.cores.len(),
            QueueScope::PerCluster => {
                let siblings = self.topology.siblings(core);
                siblings[0].index()..siblings[siblings.len() - 1].index() + 1
            }
        };
        span.map(CoreId::from)
    }

    /// Whether the same queue serves two cores.
    #[inline]
    pub fn share_queue(&self, one: CoreId, other: CoreId) -> bool {
        self.queue_index(one) == self.queue_index(other)
    }

    /// Number of cores without a running thread.
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

    /// Whether a core neither runs nor has waiting work of its own.
    #[inline]
    pub fn is_idle(&self, core: CoreId) -> bool {
        self.cores[core.index()].running.is_none() && self.queue(core).is_empty()
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
        self.threads.push(ThreadState { app, ..ThreadState::default() });
        self.stats.push(ThreadStats::default());
        let thread = ThreadId::from(self.threads.len() - 1);
        self.present.push(thread);
        thread
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

    /// Carries out a change of the plan. What holds already is left alone.
    pub fn apply(&mut self, thread: ThreadId, change: &Change) -> Effect {
        let index = thread.index();
        match change {
            Change::Affinity(set) => {
                let user = self.plans[index].user_affinity;
                let affinity = self.affinities.restrict(set, user);
                let is_new =
                    std::mem::replace(&mut self.plans[index].affinity, affinity) != affinity;
                Effect { moves: is_new && self.is_misplaced(thread), opens: is_new }
            }
            Change::Prefer(prefer) => Effect { opens: self.prefer(thread, *prefer), moves: false },
            Change::Move(prefer) => {
                let opens = self.prefer(thread, *prefer);
                Effect { moves: self.is_on_wrong_kind(thread), opens }
            }
            Change::Rank(rank) => {
                self.plans[index].rank = *rank;
                Effect::default()
            }
            Change::Weight(weight) => {
                self.reweigh(thread, (*weight).max(1));
                Effect::default()
            }
            Change::Speed(speed) => {
                let speed = speed.map(to_fixed);
                let is_new = std::mem::replace(&mut self.plans[index].speed, speed) != speed;
                if is_new {
                    self.begin_turn_anew(thread);
                }
                Effect { moves: false, opens: is_new }
            }
            Change::Slice(slice_ns) => {
                self.plans[index].slice_ns = *slice_ns;
                Effect::default()
            }
            Change::Hold(held) => {
                self.plans[index].held = *held;
                let state = self.thread(thread).state;
                let moves = if *held { state.is_runnable() } else { state == RunState::Held };
                Effect { moves, opens: false }
            }
        }
    }

    /// Returns whether that is another preference than before.
    fn prefer(&mut self, thread: ThreadId, prefer: Prefer) -> bool {
        std::mem::replace(&mut self.plans[thread.index()].prefer, prefer) != prefer
    }

    /// The pace at which a thread is charged changes: what it has run so far has been charged for.
    fn begin_turn_anew(&mut self, thread: ThreadId) {
        let core = self.threads[thread.index()].core;
        let cpu = &mut self.cores[core.index()];
        if cpu.running == Some(thread) {
            (cpu.turn_ns, cpu.turn_virtual_ns) = (0, 0);
        }
    }

    /// The program itself restricts its thread. Returns whether it is now where it may not be.
    pub fn restrict_user(&mut self, thread: ThreadId, set: &CoreSet) -> bool {
        let id = self.affinities.intern(set);
        let plan = &mut self.plans[thread.index()];
        plan.user_affinity = id;
        plan.affinity = id;
        self.is_misplaced(thread)
    }

    fn is_misplaced(&self, thread: ThreadId) -> bool {
        let state = self.thread(thread);
        state.state.is_runnable() && !self.allows(thread, state.core)
    }

    /// Whether a runnable thread is on a core of a kind that it does not prefer, though it may use one
    /// that it does.
    fn is_on_wrong_kind(&self, thread: ThreadId) -> bool {
        let state = self.thread(thread);
        state.state.is_runnable()
            && !self.is_preferred(thread, state.core)
            && self.may_use_preferred(thread)
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

    fn reweigh(&mut self, thread: ThreadId, weight: u32) {
        let old = std::mem::replace(&mut self.plans[thread.index()].weight, weight);
        if old == weight {
            return;
        }
        self.begin_turn_anew(thread);
        let state = &self.threads[thread.index()];
        if state.state.is_runnable() {
            self.serial += 1;
            let vruntime = i128::from(state.vruntime);
            let queue = &mut self.queues[usize::from(self.cores[state.core.index()].queue)];
            queue.load = queue.load - u64::from(old) + u64::from(weight);
            if self.rules.order == Order::Deadline {
                queue.weighted_vruntime += (i128::from(weight) - i128::from(old)) * vruntime;
            }
        }
    }

    #[inline]
    fn queue(&self, core: CoreId) -> &RunQueue {
        &self.queues[self.queue_index(core)]
    }

    #[inline]
    fn queue_index(&self, core: CoreId) -> usize {
        self.cores[core.index()].queue.into()
    }
}

#[cfg(test)]
mod tests;
