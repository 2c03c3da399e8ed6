//! What the fair class keeps of threads, queues and cores; names in brackets are the kernel's.

use ampsched_model::{Ns, ThreadId};

use super::pressure::Taken;
use crate::pelt::{Pelt, PeltClock, UtilEst};

/// A schedulable entity: a thread, or what a task group has on one core (`struct sched_entity`).
pub(super) type EntityId = u32;
/// A queue: that of a task group on a core (`struct cfs_rq`); the first ones are the cores' root queues.
pub(super) type QueueId = u32;

/// Virtual times begin here, so that differences never go below 0.
pub(super) const VIRTUAL_START: i64 = 1 << 40;
/// Weight of nice 0 (`NICE_0_LOAD`).
pub(super) const WEIGHT_ONE: u64 = 1024;
/// The shortest request where nobody has one.
pub(super) const NO_SLICE: (Ns, u32) = (Ns::MAX, 0);
/// Full capacity (`SCHED_CAPACITY_SCALE`).
pub(super) const CAPACITY_ONE: u64 = 1024;

/// A thread or a group on a core (`struct sched_entity`).
#[derive(Clone, Debug)]
pub(super) struct Entity {
    /// The thread; none: it stands for a task group on a core.
    pub thread: Option<ThreadId>,
    /// The queue in which it is or was last (`cfs_rq_of`).
    pub queue: QueueId,
    /// The queue of the group for which it stands (`my_q`).
    pub own_queue: Option<QueueId>,
    pub weight: u64,
    pub vruntime: i64,
    pub deadline: i64,
    /// Mean virtual run time minus its own when it left its queue (`vlag`).
    pub lag: i64,
    /// Up to which virtual run time it is protected while it runs (`vprot`).
    pub protected_until: i64,
    /// Length of its requests in ns (`slice`).
    pub slice_ns: Ns,
    /// It is in its queue, or runs from it (`on_rq`).
    pub is_queued: bool,
    /// It sleeps, but stays in its queue until it has paid its debt (`sched_delayed`).
    pub is_delayed: bool,
    /// Its deadline is relative to its virtual run time, as it is between queues (`rel_deadline`).
    pub has_relative_deadline: bool,
    /// Up to when its run time is charged (`exec_start`).
    pub charged_ns: Ns,
    /// Run time in total, and when its turn began (`sum_exec_runtime`, `prev_sum_exec_runtime`).
    pub run_ns: Ns,
    pub run_before_ns: Ns,
    /// When it last stopped running.
    pub left_ns: Ns,
    /// Averages; kept in the time of its core's clock.
    pub pelt: Pelt,
    pub estimate: UtilEst,
    /// It may use one core only (`nr_cpus_allowed`).
    pub is_bound: bool,
    /// It is of class idle (`task_has_idle_policy`).
    pub is_idler: bool,
    /// Least and greatest utilisation that it is taken to have (`uclamp_eff_value`).
    pub clamps: (u64, u64),
    /// Its averages are a part of its queue's.
    pub is_attached: bool,
    /// Its place among the core's threads, those first that have been taken or looked at longest ago (`cfs_tasks`).
    pub stamp: u64,
    /// The core on which it ran before the last one (`recent_used_cpu`).
    pub recent_core: u16,
    /// How often it has woken another thread than before, lately; whom; when that was halved (`wakee_flips`).
    pub flips: u32,
    pub last_woken: Option<ThreadId>,
    pub flips_halved_ns: Ns,
}

impl Entity {
    pub fn new(thread: Option<ThreadId>, queue: QueueId, weight: u64, slice_ns: Ns) -> Self {
        Self {
            thread,
            queue,
            own_queue: None,
            weight,
            vruntime: VIRTUAL_START,
            deadline: VIRTUAL_START,
            lag: 0,
            protected_until: 0,
            slice_ns,
            is_queued: false,
            is_delayed: false,
            has_relative_deadline: false,
            charged_ns: 0,
            run_ns: 0,
            run_before_ns: 0,
            left_ns: Ns::MAX,
            pelt: Pelt::default(),
            estimate: UtilEst::default(),
            is_bound: false,
            is_idler: false,
            clamps: (0, CAPACITY_ONE),
            is_attached: false,
            stamp: 0,
            recent_core: 0,
            flips: 0,
            last_woken: None,
            flips_halved_ns: 0,
        }
    }

    /// Time as virtual time of its weight (`calc_delta_fair`).
    #[inline]
    pub fn to_virtual(&self, ns: Ns) -> i64 {
        if self.weight == WEIGHT_ONE {
            return ns as i64;
        }
        // Division of wider numbers takes long.
        match ns.checked_mul(WEIGHT_ONE) {
            Some(scaled) => (scaled / self.weight) as i64,
            None => (u128::from(ns) * u128::from(WEIGHT_ONE) / u128::from(self.weight)) as i64,
        }
    }

    /// A request as virtual time.
    #[inline]
    pub fn request(&self) -> i64 {
        self.to_virtual(self.slice_ns)
    }
}

/// An entity that waits in a queue, with what the order of the queue looks at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// What the queue is sorted by: the deadline, or the virtual run time.
    pub key: i64,
    pub vruntime: i64,
    pub slice_ns: Ns,
    pub weight: u32,
    pub entity: EntityId,
}

/// Entities of a queue that are to come before or after their turn, if that is not unfair (CFS).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Buddies {
    /// It has woken and is to interrupt (`next`).
    pub next: Option<EntityId>,
    /// It was interrupted (`last`).
    pub last: Option<EntityId>,
    /// It has yielded (`skip`).
    pub skip: Option<EntityId>,
}

/// The queue of a group on a core (`struct cfs_rq`).
#[derive(Clone, Debug)]
pub(super) struct Queue {
    /// Its core.
    pub core: u16,
    /// The group's entity on this core; none: it is the core's root queue.
    pub parent: Option<EntityId>,
    /// Entities that wait, in order.
    pub entries: Vec<Entry>,
    /// The entity that runs, which is not among the entries (`curr`).
    pub current: Option<EntityId>,
    /// Sum of weights of the entries, and of weight x virtual run time.
    pub waiting_weight: u64,
    pub waiting_sum: i128,
    /// The shortest request of the entries, and how many of them have it (`cfs_rq_min_slice`).
    pub shortest: (Ns, u32),
    /// Weights of all that are queued, the running one included (`load.weight`).
    pub weight: u64,
    /// Entities that are queued, the running one included (`nr_queued`).
    pub queued: u32,
    /// Threads below it that are queued, and that can run (`h_nr_queued`, `h_nr_runnable`).
    pub threads: u32,
    pub runnable: u32,
    /// Queued threads that are of class idle (`h_nr_idle`).
    pub idlers: u32,
    /// Never decreases (`min_vruntime`).
    pub min_vruntime: i64,
    pub buddies: Buddies,
    pub pelt: Pelt,
    /// Up to when they are kept, and what the core's clock showed then.
    pub settled_ns: Ns,
    pub kept_ns: Ns,
    /// Averages of sleeping threads, with their weights, that have gone to other cores since (`removed`).
    pub removed: Vec<(Pelt, u32)>,
    /// Sum of its runnable threads' estimates (`avg.util_est`).
    pub estimates: u32,
}

impl Queue {
    pub fn new(core: u16, parent: Option<EntityId>) -> Self {
        Self {
            core,
            parent,
            entries: Vec::new(),
            current: None,
            waiting_weight: 0,
            waiting_sum: 0,
            shortest: NO_SLICE,
            weight: 0,
            queued: 0,
            threads: 0,
            runnable: 0,
            idlers: 0,
            min_vruntime: VIRTUAL_START,
            buddies: Buddies::default(),
            pelt: Pelt::default(),
            settled_ns: 0,
            kept_ns: 0,
            removed: Vec::new(),
            estimates: 0,
        }
    }
}

/// A core (`struct rq`).
#[derive(Clone, Debug)]
pub(super) struct Core {
    /// The thread's entity that runs (`curr`), until the core chooses anew.
    pub current: Option<EntityId>,
    /// Time in which the averages of its threads are kept.
    pub clock: PeltClock,
    /// Its clock runs with the work done: it has not fallen idle since it took a thread.
    pub is_working: bool,
    /// Capacity at its highest frequency, as far as the kernel knows it (`arch_scale_cpu_capacity`).
    pub capacity_max: u64,
    /// What is left of that, as of when it balanced its smallest domain last (`cpu_capacity`).
    pub capacity: u64,
    /// What heat takes of it; none: nothing.
    pub taken: Option<Box<Taken>>,
    /// Capacity at its present frequency, for the clock.
    pub capacity_now: u64,
    /// By what shares of time become utilisation, up to 5.2: its capacity, without what a sibling takes of it.
    pub capacity_alone: u64,
    /// Since when it is idle, if it is (`idle_stamp`).
    pub idle_since_ns: Option<Ns>,
    /// How long it is idle on average (`avg_idle`).
    pub idle_mean_ns: Ns,
    /// When its domains are balanced next, in ticks (`next_balance`).
    pub balance_due: u64,
    /// A thread of a class above runs on it.
    pub is_occupied: bool,
    /// It is to choose anew at its next tick (`TIF_NEED_RESCHED_LAZY`).
    pub is_to_choose: bool,
    /// Load of a thread that is too big for it (`misfit_task_load`).
    pub misfit_load: u64,
}
