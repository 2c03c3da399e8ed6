//! Linux's fair class, as it is in the kernel: what orders its queues, where it puts threads, how it balances them.
//!
//! | part | file | kernel |
//! |---|---|---|
//! | [`Kernel`] | `kernel.rs` | generations: which parts there are, and their constants |
//! | [`Entity`], [`Queue`], [`Core`] | `state.rs` | `struct sched_entity`, `cfs_rq`, `rq` |
//! | order | `queue.rs` | `pick_eevdf`, eligibility, mean virtual run time |
//! | run | `run.rs` | `update_curr`, `place_entity`, `enqueue_entity`, `dequeue_entity`, delayed departures |
//! | load | `load.rs` | PELT of threads, groups and cores, what fits where, misfits |
//! | heat | `pressure.rs` | `scale_rt_capacity`, `update_cpu_capacity`, `get_actual_cpu_capacity` |
//! | domains | `domains.rs` | `sd_init`, groups, capacities, priorities |
//! | siblings | `smt.rs` | `select_idle_core`, `sched_asym`, `group_smt_balance` |
//! | stats | `stats.rs` | types of groups, `find_busiest_group`, `calculate_imbalance` |
//! | balance | `balance.rs` | `sched_balance_rq`, newly idle and active balance |
//! | idle cores | `nohz.rs` | `nohz_balancer_kick`, `nohz_idle_balance` |
//! | wake | `wake.rs` | `select_task_rq_fair` |
//! | before 5.5 | `by_load.rs`, `pull.rs`, `wake_old.rs` | balancing by load and placement of 3.16 and 4.14 |
//! | WALT | `walt.rs`, `demand.rs`, `by_demand.rs` | Android's 4.14: `find_best_target`, `sd_overutilized` |
//! | buddies | `buddies.rs` | `set_next_buddy` and the others of CFS |
//! | groups | `groups.rs` | `alloc_fair_sched_group`, `sched_move_task`, `calc_group_shares` |
//! | energy | `energy.rs` | `find_energy_efficient_cpu` |
//! | plane | `plane.rs` | what a host asks |
//! | check | `check.rs` | recounts everything, for tests |
//!
//! In a kernel, all of this is the kernel's own: there is nothing to load.

mod balance;
mod buddies;
mod by_demand;
mod by_load;
mod check;
mod demand;
mod domains;
mod energy;
mod groups;
mod kernel;
mod load;
mod nohz;
mod plane;
mod pressure;
mod pull;
mod queue;
mod run;
mod smt;
mod state;
mod stats;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_old;
mod wake;
mod wake_old;
mod walt;

use ampsched_model::{AppId, CoreId, Draw, Ns, SchedClass, Sees, ThreadId};

use crate::pelt::PeltClock;
use crate::{GroupId, Sched, Topology};
use by_load::PastLoads;
use domains::Domains;
use energy::PerfDomain;
pub use kernel::Kernel;
use state::{CAPACITY_ONE, Core, Entity, EntityId, Queue, QueueId};
use stats::GroupStats;
use walt::Walt;

/// Stream of random numbers, apart from those of programs, sensors and noise.
const DRAWS: u64 = (1 << 40) + 4;

/// Threads get their places for balancing from here, upwards and downwards.
const FIRST_STAMP: u64 = 1 << 40;

/// What all cores share (`struct root_domain`).
#[derive(Clone, Debug, Default)]
struct Root {
    /// Some core has more than one thread (`overloaded`).
    is_overloaded: bool,
    /// Some core has less than a fifth of its capacity to spare (`overutilized`).
    is_overutilised: bool,
    /// When idle cores' averages are to be brought up to date, in ticks (`nohz.next_blocked`).
    blocked_due: u64,
    /// When the kernel's own work comes to the next core that falls idle, in ticks ([`Fair::note_workers`]).
    workers_due: u64,
}

/// Whose queues they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Group(GroupId),
    /// A program's that states no group.
    Session(AppId),
}

/// The fair class of a generation of the kernel on a machine.
pub struct Fair {
    kernel: Kernel,
    tick_ns: Ns,
    now_ns: Ns,
    entities: Vec<Entity>,
    /// Of each thread.
    entity_of: Vec<EntityId>,
    /// The cores' root queues, then those of groups.
    queues: Vec<Queue>,
    cores: Vec<Core>,
    /// Of each group that has queues here, whose it is, and its shares.
    groups: Vec<(Owner, u64)>,
    /// Programs that state no group have one each (autogroup.c).
    groups_sessions: bool,
    /// Of each core, the queues of groups there.
    queues_of_groups: Vec<Vec<QueueId>>,
    domains: Domains,
    perf_domains: Vec<PerfDomain>,
    root: Root,
    /// Loads of cores at past ticks, which kernels that balance by load look at.
    past_loads: PastLoads,
    /// Demands of threads, of kernels that have them ([`kernel::Tracking::Walt`]).
    walt: Option<Box<Walt>>,
    /// When an idle core is to balance for all idle ones, in ticks (`nohz.next_balance`).
    idle_balance_due: u64,
    /// The core on which the last wake-up happened.
    waking_core: usize,
    /// The core of the thread that starts a program just now.
    starter: Option<usize>,
    stamps: u64,
    /// Goes down where threads come to the end of those that balancing looks at.
    last_stamp: u64,
    draws: Draw,
    because: &'static str,
    /// Kept for their memory.
    candidates: Vec<EntityId>,
    group_stats: Vec<(usize, GroupStats)>,
}

impl Fair {
    /// The fair class on a machine with no threads.
    ///
    /// `tick_ns` is the kernel's (1 s / `CONFIG_HZ`). Chance ([`Kernel::draws_newidle`]) follows from `seed`.
    pub fn new(kernel: Kernel, topology: &Topology, tick_ns: Ns, seed: u64) -> Self {
        let count = topology.core_count();
        // Only x86-64 has precise ticks that cost little enough (`HRTICK`).
        let hrtick = kernel.hrtick && topology.sees() != Sees::Capacities;
        let kernel = Kernel { hrtick, ..kernel };
        let knows = kernel.knows_capacities && topology.sees() == Sees::Capacities;
        let capacity = |core: CoreId| {
            let known = u64::from(topology.core(core).capacity);
            if knows { known } else { smt::capacity(&kernel, topology, core) }
        };
        let capacities: Vec<u64> = topology.cores().map(capacity).collect();
        let core = |&capacity: &u64| Core {
            capacity_alone: if knows { capacity } else { CAPACITY_ONE },
            current: None,
            clock: PeltClock::new(0),
            is_working: false,
            capacity_max: capacity,
            capacity,
            taken: None,
            // Before 5.1, averages are kept in real time.
            capacity_now: if kernel.is_by_load() { CAPACITY_ONE } else { capacity },
            idle_since_ns: Some(0),
            idle_mean_ns: 2 * balance::MIGRATION_COST_NS,
            balance_due: 0,
            is_occupied: false,
            is_to_choose: false,
            misfit_load: 0,
        };
        Self {
            tick_ns,
            now_ns: 0,
            entities: Vec::new(),
            entity_of: Vec::new(),
            queues: (0..count).map(|core| Queue::new(core as u16, None)).collect(),
            cores: capacities.iter().map(core).collect(),
            groups: vec![(Owner::Group(GroupId::ROOT), state::WEIGHT_ONE)],
            groups_sessions: false,
            queues_of_groups: vec![Vec::new(); count],
            domains: Domains::of(&kernel, topology, &capacities),
            // Energy and SMT do not go together (`sched_is_eas_possible`).
            perf_domains: if topology.has_smt() { Vec::new() } else { PerfDomain::all(topology) },
            root: Root::default(),
            past_loads: PastLoads::new(count),
            walt: demand::walt_of(&kernel, topology),
            idle_balance_due: 0,
            waking_core: 0,
            starter: None,
            stamps: FIRST_STAMP,
            last_stamp: FIRST_STAMP,
            draws: Draw::new(seed).child(DRAWS),
            because: "",
            candidates: Vec::new(),
            group_stats: Vec::new(),
            kernel,
        }
    }

    /// Each program is a session of its own: a group of 1024 shares, unless it states one
    /// (autogroup.c, `sched_autogroup_create_attach`, as `setsid` calls it).
    pub fn with_sessions(self, groups_sessions: bool) -> Self {
        Self { groups_sessions, ..self }
    }

    /// A constant of the kernel as it is with this machine's number of cores.
    fn scaled(&self, constant_ns: Ns) -> Ns {
        Kernel::scale(constant_ns, self.cores.len())
    }

    /// Time in ticks (`jiffies`).
    fn ticks(&self) -> u64 {
        self.now_ns / self.tick_ns
    }

    fn draw(&mut self) -> u64 {
        self.draws.bits()
    }

    /// Whether a core has nothing to run (`available_idle_cpu`).
    fn is_idle(&self, core: usize) -> bool {
        let own = &self.cores[core];
        own.current.is_none() && !own.is_occupied && self.queues[core].threads == 0
    }

    /// Whether a woken thread gets a core as if it were idle (`available_idle_cpu`, `sched_idle_cpu`).
    fn is_available(&self, core: usize) -> bool {
        self.is_idle(core) || self.has_only_idlers(core)
    }

    /// Whether a core has nothing but threads of class idle, which give way at once (`sched_idle_cpu`).
    fn has_only_idlers(&self, core: usize) -> bool {
        let queue = &self.queues[core];
        let is_known = self.kernel.sees_idlers && !self.cores[core].is_occupied;
        is_known && queue.threads > 0 && queue.idlers == queue.threads
    }

    /// The core on which a thread is or was last.
    fn core_of(&self, id: EntityId) -> usize {
        usize::from(self.queues[self.entities[id as usize].queue as usize].core)
    }

    /// A thread that is in no queue belongs to another core from now on; its averages leave the old one.
    fn set_core(&mut self, id: EntityId, core: usize) {
        if self.core_of(id) == core {
            return;
        }
        self.remove(id);
        self.go_by_demand(id, core);
        let old = self.entities[id as usize].queue;
        if self.kernel.order == kernel::Order::Cfs {
            let behind =
                self.entities[id as usize].vruntime - self.queues[old as usize].min_vruntime;
            self.entities[id as usize].vruntime = behind;
        }
        self.carry_util(id, core);
        let new = self.queue_on(old, core);
        self.entities[id as usize].queue = new;
        if self.kernel.order == kernel::Order::Cfs {
            self.entities[id as usize].vruntime += self.queues[new as usize].min_vruntime;
        }
    }

    /// The queue of the same group on another core.
    fn queue_on(&self, queue: QueueId, core: usize) -> QueueId {
        let count = self.cores.len();
        let group = queue as usize / count;
        (group * count + core) as QueueId
    }

    /// Least and greatest utilisation that a thread is to be taken to have (`uclamp_eff_value`).
    fn clamps(&self, id: EntityId) -> (u64, u64) {
        self.entities[id as usize].clamps
    }

    /// Whether a thread may use more than one core.
    fn may_use_several(&self, id: EntityId) -> bool {
        !self.entities[id as usize].is_bound
    }

    /// A thread is of class idle from now on, or is not.
    fn set_idler(&mut self, id: EntityId, is_idler: bool) {
        let entity = &mut self.entities[id as usize];
        if std::mem::replace(&mut entity.is_idler, is_idler) == is_idler || !entity.is_queued {
            return;
        }
        let mut at = Some(id);
        while let Some(each) = at {
            let queue = &mut self.queues[self.entities[each as usize].queue as usize];
            queue.idlers = if is_idler { queue.idlers + 1 } else { queue.idlers - 1 };
            at = queue.parent;
        }
    }

    /// A thread that has come here asleep is not among those that can run.
    fn uncount_delayed(&mut self, id: EntityId) {
        let estimate = self.entities[id as usize].estimate.util();
        let core = self.core_of(id);
        self.queues[core].estimates -= estimate;
        let mut at = Some(id);
        while let Some(each) = at {
            let queue = &mut self.queues[self.entities[each as usize].queue as usize];
            queue.runnable -= 1;
            at = queue.parent;
        }
    }

    /// The thread of an entity that is no group's.
    fn thread_of(&self, id: EntityId) -> ThreadId {
        self.entities[id as usize].thread.expect("a leaf of queues is a thread")
    }

    /// An entity with its queue and its core.
    #[inline(always)]
    fn parts(&mut self, id: EntityId) -> (&mut Entity, &mut Queue, &mut Core) {
        let entity = &mut self.entities[id as usize];
        let queue = &mut self.queues[entity.queue as usize];
        let core = &mut self.cores[usize::from(queue.core)];
        (entity, queue, core)
    }

    fn id(&self, thread: ThreadId) -> EntityId {
        self.entity_of[thread.index()]
    }

    /// Averages and masks of a thread that the books have changed.
    fn refresh(&mut self, sched: &Sched, thread: ThreadId) {
        let id = self.id(thread);
        let several = sched.affinity(thread).iter().nth(1).is_some();
        let place = self.place_of(sched, thread);
        self.set_group(id, place);
        let (least, most) = sched.uclamp(thread);
        let stated_ns = sched.attrs(thread).slice_ns;
        let base_ns = self.scaled(self.kernel.base_slice_ns);
        let takes_slices = self.kernel.takes_slices;
        self.set_idler(id, sched.attrs(thread).class == SchedClass::Idle);
        let entity = &mut self.entities[id as usize];
        entity.is_bound = !several;
        entity.clamps = (least.into(), most.into());
        entity.slice_ns = if stated_ns > 0 && takes_slices { stated_ns } else { base_ns };
    }
}
