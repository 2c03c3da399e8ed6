//! The state that this process shares with the interpreter in C: `bpf/state.h` and `bpf/operation.h` in Rust.
//!
//! The C headers say what each field means. A test compares sizes and offsets.

use ampsched_model::{CoreId, MAX_CLASSES};
use ampsched_policy::Wire;

/// Most cores.
pub const CORES_MAX: usize = ampsched_live_driver::KERNEL_CORES_MAX;
/// One more than the highest number of a CPU: Linux has room for no more on any computer (`CONFIG_NR_CPUS`).
pub const CPUS_MAX: usize = 8192;
/// No thread, core or preference.
pub const NONE: u32 = u32::MAX;
/// No time.
pub const NEVER: u64 = u64::MAX;

/// The fast plane of a policy, as `words.h` lays it out.
pub type Rules = [u64; <ampsched_policy::Rules as Wire>::LEN];

/// The averages of a thread or core, as `bpf/pelt.h` lays them out.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Averages {
    pub updated_ns: u64,
    pub part: u64,
    pub load_sum: u64,
    pub runnable_sum: u64,
    pub util_sum: u64,
}

/// The tracked load of a thread.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct TrackedThread {
    pub pelt: Averages,
    pub estimated: u64,
    pub estimate: u32,
    pub weight: u32,
    pub core: u32,
    pub attached: u8,
    pub runnable: u8,
    pub running: u8,
    pub unused: u8,
}

/// The tracked load of a core.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct TrackedCore {
    pub pelt: Averages,
    pub real_ns: u64,
    pub scaled_ns: u64,
    pub lost_ns: u64,
    pub seen_ns: u64,
    pub load: u64,
    pub runnable: u32,
    pub running: u32,
    pub estimates: u32,
    pub capacity: u32,
    pub present: u32,
    pub requested: u32,
}

/// A set of cores.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Set {
    pub words: [u64; CORES_MAX / 64],
}

impl Set {
    /// All cores that there can be.
    pub const ALL: Self = Self { words: [u64::MAX; CORES_MAX / 64] };

    /// Whether a core is in it; below [`CORES_MAX`].
    pub fn contains(&self, core: usize) -> bool {
        self.words[core / 64] >> (core % 64) & 1 == 1
    }

    /// Its cores, in ascending order.
    pub fn cores(&self) -> impl Iterator<Item = CoreId> + '_ {
        (0..CORES_MAX).filter(|&core| self.contains(core)).map(CoreId::from)
    }
}

/// Of cores below [`CORES_MAX`].
impl FromIterator<CoreId> for Set {
    fn from_iter<I: IntoIterator<Item = CoreId>>(cores: I) -> Self {
        let mut set = Self::default();
        for core in cores {
            set.words[core.index() / 64] |= 1 << (core.index() % 64);
        }
        set
    }
}

/// A thread: plan, state, counters.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Thread {
    pub affinity: Set,
    pub user_affinity: Set,
    pub rank: u64,
    pub slice_ns: u64,
    pub weight: u32,
    pub prefer: u32,
    pub speed: [u32; MAX_CLASSES],
    pub held: u32,
    pub state: u32,
    pub core: u32,
    pub ran_on: u32,
    pub vruntime: u64,
    pub deadline: u64,
    pub lag: i64,
    pub since_ns: u64,
    pub key: u64,
    pub serial: u64,
    pub prev: u32,
    pub next: u32,
    pub run_ns: [u64; MAX_CLASSES],
    pub ready_ns: u64,
    pub ready_ns_max: u64,
    pub blocked_ns: u64,
    pub blame_ns: u64,
    pub switches: u64,
    pub migrations: u64,
    pub migrated_at_ns: u64,
    pub woken_ns: u64,
    pub tracked: TrackedThread,
    pub charged_ns: u64,
    pub on_since_ns: u64,
    pub pid: u32,
    pub process: u32,
    pub bound_to: u32,
    pub chosen: u32,
    pub pull_to: u32,
    pub generation: u32,
    pub execs: u32,
    pub in_use: u8,
    pub dequeued: u8,
    pub must_move: u8,
    pub arriving: u8,
    pub allowed: Set,
    pub wanted: Set,
}

/// A core.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Core {
    pub running: u32,
    pub last: u32,
    pub since_ns: u64,
    pub busy_ns: u64,
    pub recheck_ns: u64,
    pub turn_ns: u64,
    pub turn_virtual_ns: u64,
    pub queue: u32,
    pub cluster: u32,
    pub cluster_first: u32,
    pub cluster_last: u32,
    pub class: u32,
    pub kind: u32,
    pub need_resched: u32,
    pub interrupted: u32,
    pub others_run: u32,
    pub last_generation: u32,
    pub sibling: u32,
    pub unanswered: u32,
    pub others_due_ns: u64,
    pub tracked: TrackedCore,
}

/// A run queue.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Queue {
    pub load: u64,
    pub min_vruntime: u64,
    pub base: u64,
    pub weighted: i64,
    pub rotated: u64,
    pub serial: u64,
    pub first: u32,
    pub last: u32,
    pub len: u32,
    pub running: u32,
    pub cores: u32,
    pub capacity: u32,
    pub newcomer: u32,
    pub arriving: u32,
    pub index: u32,
    pub unused: u32,
}

/// Most clusters of a machine on which threads are placed by energy.
pub const DOMAINS_MAX: usize = 16;
/// Most operating points of such a cluster.
pub const POINTS_MAX: usize = 32;

/// An operating point of a cluster.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Point {
    pub cost: u64,
    pub capacity: u32,
    pub unused: u32,
}

/// A cluster, as energy is estimated.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Domain {
    pub capacity: u32,
    pub count: u32,
    pub points: [Point; POINTS_MAX],
}

/// The books of rounds.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Rounds {
    pub latest: u64,
    pub waiting: u32,
    pub unused: u32,
    pub waiting_earlier: u32,
    pub waiting_latest: u32,
    pub run_ns_before: [u64; CORES_MAX],
}

/// The answer to a core that asks what to do.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Pick {
    pub now_ns: u64,
    pub recheck_ns: u64,
    pub core: u32,
    pub instead_of: u32,
    pub kind: u32,
    pub thread: u32,
    pub except: u32,
    pub some: u32,
    pub key: u64,
    pub begun: u64,
    pub passes: u32,
    pub passed: u32,
}

/// What one call by the kernel works with.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Call {
    pub pick: Pick,
    pub now_ns: u64,
    pub wake: Set,
    pub interrupt: Set,
    pub cores: Set,
    pub has_kicks: u32,
    pub wake_idle: u32,
    pub rekick_idle: u32,
    pub here: u32,
    pub here_idles: u32,
    pub started: u32,
    pub back: u32,
    pub unused: u32,
}

/// The calls of timers, and those of the loader; lower ones are those of cores.
pub const CALL_OF_TIMER: u32 = CORES_MAX as u32;
pub const CALL_OF_PLAN: u32 = CALL_OF_TIMER + 1;
const CALLS: usize = CORES_MAX + 2;

/// Cores that are balanced among themselves.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Group {
    pub receivers: Set,
    pub settled_ns: u64,
    pub least: u64,
    pub most: u64,
    pub kind: u32,
    pub tolerance_percent: u32,
    pub by_preference: u32,
    pub thread: u32,
    pub source: u32,
    pub unused: u32,
}

/// Everything but the threads, which follow.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Sched {
    pub rules: Rules,
    pub core_count: u32,
    pub queue_count: u32,
    pub thread_count: u32,
    pub threads_max: u32,
    pub cursors: [u32; 3],
    pub free_slot: u32,
    pub top_class: u32,
    pub pulls_running: u32,
    pub zero: u32,
    pub one: u32,
    pub stuck: u32,
    pub domain_count: u32,
    pub rotations: u64,
    pub rotation_due_ns: u64,
    pub online: Set,
    pub operations_at: u64,
    pub alive_ns: u64,
    pub records_at: u64,
    pub records_max: u64,
    pub records_read: u64,
    pub records_lost: u64,
    pub unit_ns: u64,
    pub marks_at: u64,
    pub words: u32,
    pub slots: u32,
    pub stranded: u32,
    pub has_smt: u32,
    pub tracking: u32,
    pub knows_energy: u32,
    pub idle: [u8; CORES_MAX],
    pub waiting: [u8; CORES_MAX],
    pub rounds: Rounds,
    pub cores: [Core; CORES_MAX],
    pub queues: [Queue; CORES_MAX],
    pub calls: [Call; CALLS],
    pub group: Group,
    pub domains: [Domain; DOMAINS_MAX],
    pub targets: [u32; CORES_MAX],
    pub sources: [u32; CORES_MAX],
}

/// Something that happens, a question, or a change of the plan; with the answer.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Operation {
    pub now_ns: u64,
    pub a: u64,
    pub b: u64,
    pub kind: u32,
    pub thread: u32,
    pub core: u32,
    pub generation: u32,
    pub value: u64,
    pub pick_kind: u32,
    pub pick_thread: u32,
    pub cores: Set,
}

/// Kinds of [`Operation`]; `bpf/operation.h` says what each takes and answers.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Add,
    Enqueue,
    Start,
    Charge,
    Stop,
    Requeue,
    Dequeue,
    Leave,
    Balance,
    Place,
    Pick,
    Expiry,
    Preempts,
    UserAffinity,
    Pace,
}

/// Kinds from here on are changes of the plan: this and the change's number.
pub const CHANGE: u32 = 64;
