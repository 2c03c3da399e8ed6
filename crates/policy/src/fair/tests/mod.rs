//! Tests of the fair class against the kernel's documented arithmetic. Comments work the numbers out and name the
//! kernel's function.

mod balance;
mod domains;
mod energy;
mod fork;
mod load;
mod migrate;
mod order;
mod page;
mod pressure;
mod relief;
mod run;
mod siblings;
mod slices;
mod stats;
mod wake;
mod walt;

use ampsched_model::{
    AppId, ClassId, CoreId, CoreSet, EnergyPoint, KernelView, LastLevelCache, Ns, SchedClass, Sees,
    ThreadId,
};

use super::Fair;
use super::kernel::{Kernel, V3_16, V6_6, V6_18, V7_3};
use super::state::{Entity, VIRTUAL_START};
use crate::pelt::Pelt;
use crate::{
    Act, ClusterInfo, EnqueueKind, FastPlane, Pick, Rules, RunState, Sched, ThreadAttrs, Topology,
    Turn, nice_to_weight,
};

const MS: Ns = 1_000_000;
/// A tick of 250 Hz.
const TICK_NS: Ns = 4 * MS;

/// Clusters of so many cores of some capacity each, as a kernel sees them; no powers are known.
fn machine(clusters: &[(usize, f64)], sees: Sees, last_level_cache: LastLevelCache) -> Topology {
    let mut next = 0;
    let of = |&(count, capacity): &(usize, f64)| {
        let cores = (next..next + count).map(CoreId::from).collect();
        next += count;
        ClusterInfo {
            shares_l2: false,
            class: ClassId(u8::from(capacity >= 1024.0)),
            cores,
            freqs_mhz: vec![1000],
            design: None,
            energy_model: vec![EnergyPoint { mhz: 1000, capacity, power_mw: 0.0 }],
        }
    };
    let clusters = clusters.iter().map(of).collect();
    Topology::from_clusters(clusters).seen_as(KernelView { sees, last_level_cache })
}

/// So many equal cores with one cache.
fn equal(cores: usize) -> Topology {
    machine(&[(cores, 1024.0)], Sees::Nothing, LastLevelCache::Machine)
}

/// Two fast cores, then so many modules of four slow ones that share a second-level cache.
fn hybrid(modules: usize) -> Topology {
    with_modules(2, modules, Sees::Priorities)
}

/// So many fast cores, then so many such modules.
fn with_modules(fast: usize, modules: usize, sees: Sees) -> Topology {
    let clusters: Vec<(usize, f64)> =
        std::iter::once((fast, 1024.0)).chain(std::iter::repeat_n((4, 560.0), modules)).collect();
    let topology = machine(&clusters, sees, LastLevelCache::Machine);
    let mut clusters = topology.clusters().to_vec();
    clusters[1..].iter_mut().for_each(|cluster| cluster.shares_l2 = true);
    let view = KernelView { sees, last_level_cache: LastLevelCache::Machine };
    Topology::from_clusters(clusters).seen_as(view)
}

/// The first cores in pairs of two threads of one physical core.
fn pairs(count: usize) -> impl Iterator<Item = (CoreId, CoreId)> {
    (0..count).map(|pair| (CoreId::from(2 * pair), CoreId::from(2 * pair + 1)))
}

/// Two cores of half the capacity, then two full ones, with one cache.
fn little_and_big() -> Topology {
    machine(&[(2, 512.0), (2, 1024.0)], Sees::Capacities, LastLevelCache::Machine)
}

/// Averages of a thread or core: utilisation, and load in multiples of the weight, as of time 0.
fn averages(util: u64, load: u64) -> Pelt {
    // LOAD_AVG_MAX - 1024, the divider at the start of a period (`get_pelt_divider`).
    const DIVIDER: u64 = 47_742 - 1_024;
    Pelt::of_sums(0, load * DIVIDER, util * DIVIDER, util * DIVIDER)
}

/// A fair class with threads; the host's part is played by hand.
struct Rig {
    fair: Fair,
    sched: Sched,
    now_ns: Ns,
    acts: Vec<Act>,
}

impl Rig {
    fn on(kernel: Kernel, topology: Topology) -> Self {
        let fair = Fair::new(kernel, &topology, TICK_NS, 1);
        Self { fair, sched: Sched::new(topology, Rules::default()), now_ns: 0, acts: Vec::new() }
    }

    /// On one core, where a slice is the base slice.
    fn single(kernel: Kernel) -> Self {
        Self::on(kernel, equal(1))
    }

    fn add(&mut self, nice: i32, cores: Option<&[u16]>) -> ThreadId {
        let cores = cores.map(|cores| cores.iter().map(|&core| CoreId(core)).collect::<CoreSet>());
        let thread = self.sched.add(AppId(0), nice_to_weight(nice), cores.as_ref());
        self.fair.added(&self.sched, thread, self.now_ns);
        thread
    }

    /// A new thread in the queue of a core.
    fn start(&mut self, nice: i32, core: usize) -> ThreadId {
        let thread = self.add(nice, None);
        self.enqueue(thread, core, EnqueueKind::Fork);
        thread
    }

    /// So many new threads of nice 0.
    fn start_all(&mut self, count: usize, core: usize) -> Vec<ThreadId> {
        (0..count).map(|_| self.start(0, core)).collect()
    }

    /// Returns whether the core is to choose anew.
    fn enqueue(&mut self, thread: ThreadId, core: usize, kind: EnqueueKind) -> bool {
        self.fair.enqueued(&self.sched, thread, CoreId::from(core), kind, self.now_ns)
    }

    fn wake(&mut self, thread: ThreadId, core: usize) -> bool {
        self.enqueue(thread, core, EnqueueKind::Wake)
    }

    /// Where a thread goes that wakes up on behalf of a core.
    fn place(&mut self, thread: ThreadId, kind: EnqueueKind, waker: usize) -> usize {
        let waker = Some(CoreId::from(waker));
        self.fair.place(&self.sched, thread, kind, waker, self.now_ns).index()
    }

    /// A core chooses and runs what it has chosen.
    fn choose(&mut self, core: usize) -> Option<ThreadId> {
        self.check();
        let id = CoreId::from(core);
        match self.fair.pick(&self.sched, id, self.now_ns, &mut self.acts) {
            Pick::Run(thread) | Pick::Pull(thread) => {
                let turn = Turn { thread, switched: true, migrated_from: None };
                self.fair.started(&self.sched, id, turn, self.now_ns);
                Some(thread)
            }
            Pick::Idle { .. } => None,
        }
    }

    fn pass(&mut self, ns: Ns) {
        self.now_ns += ns;
        self.fair.now_ns = self.now_ns;
    }

    /// Time passes, and the running threads are charged.
    fn run(&mut self, ns: Ns) {
        self.pass(ns);
        for core in 0..self.fair.cores.len() {
            self.fair.charge(core);
        }
    }

    /// The running thread of a core leaves it.
    fn leave(&mut self, thread: ThreadId, core: usize, state: RunState) {
        self.fair.left(&self.sched, thread, CoreId::from(core), state, self.now_ns);
    }

    fn sleep(&mut self, thread: ThreadId, core: usize) {
        self.leave(thread, core, RunState::Blocked);
    }

    fn tick(&mut self) -> Vec<Act> {
        let mut acts = Vec::new();
        self.fair.tick(&self.sched, self.now_ns, &mut acts);
        self.check();
        acts
    }

    fn of(&mut self, thread: ThreadId) -> &mut Entity {
        let id = self.fair.id(thread);
        &mut self.fair.entities[id as usize]
    }

    /// Virtual run time and deadline of a thread, from where virtual time starts.
    fn times(&mut self, thread: ThreadId) -> (i64, i64) {
        let entity = self.of(thread);
        (entity.vruntime - VIRTUAL_START, entity.deadline - VIRTUAL_START)
    }

    /// Gives a queued thread these times.
    fn set_times(&mut self, thread: ThreadId, vruntime: i64, deadline: i64) {
        self.edit(thread, |entity| {
            (entity.vruntime, entity.deadline) =
                (VIRTUAL_START + vruntime, VIRTUAL_START + deadline);
        });
    }

    fn set_slice(&mut self, thread: ThreadId, slice_ns: Ns) {
        self.edit(thread, |entity| entity.slice_ns = slice_ns);
    }

    /// Changes a queued thread, and its entry if it waits.
    fn edit(&mut self, thread: ThreadId, change: impl FnOnce(&mut Entity)) {
        let id = self.fair.id(thread);
        let queue = self.fair.entities[id as usize].queue as usize;
        let waits = self.fair.queues[queue].current != Some(id);
        if waits {
            self.fair.queues[queue].remove(id);
        }
        change(&mut self.fair.entities[id as usize]);
        if waits {
            let entry = self.fair.entry(id);
            self.fair.queues[queue].insert(entry);
        }
    }

    /// Gives a thread a utilisation and full load, as of time 0.
    fn set_util(&mut self, thread: ThreadId, util: u64) {
        self.of(thread).pelt = averages(util, 1);
    }

    /// Gives a core a utilisation and a load, as of time 0.
    fn set_core(&mut self, core: usize, util: u64, load: u64) {
        self.fair.queues[core].pelt = averages(util, load);
    }

    /// Mean virtual run time of a core, from where virtual time starts.
    fn mean(&self, core: usize) -> i64 {
        self.fair.mean_vruntime(core as u32) - VIRTUAL_START
    }

    fn is_eligible(&self, thread: ThreadId, core: usize) -> bool {
        self.fair.is_eligible(core as u32, self.fair.id(thread))
    }

    /// Whether everything counted is what is there.
    fn check(&self) {
        for id in 0..self.fair.queues.len() as u32 {
            self.fair.recount_queue(id).unwrap();
        }
        self.fair.check_places(0..self.fair.entities.len() as u32).unwrap();
    }

    /// Queued threads of a core, and those of them that can run.
    fn counts(&self, core: usize) -> (u32, u32) {
        (self.fair.queues[core].threads, self.fair.queues[core].runnable)
    }
}
