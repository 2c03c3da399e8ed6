//! Rules: the fast plane of a policy, as data that a kernel can execute by itself.

use ampsched_model::{MAX_CLASSES, Ns};

use crate::Prefer;

/// Which cores share a run queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueScope {
    /// Each core has its own.
    PerCore,
    /// The cores of a cluster share one.
    PerCluster,
    /// All cores share one.
    Global,
}

/// Which waiting thread a queue serves first. Ties: the thread that has waited longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// First come, first served.
    Fifo,
    /// Least virtual run time (CFS).
    Vruntime,
    /// Earliest virtual deadline among the eligible (EEVDF).
    Deadline,
    /// Highest rank among the threads whose virtual run time is at most `fair_window_ns` above the
    /// least in the queue; so a high rank cannot starve the others.
    HighestRank {
        /// Width of the window in ns of virtual run time; `u64::MAX` is no limit.
        fair_window_ns: Ns,
    },
    /// Round by round (DWRR): least virtual run time, which means the same in all queues. A turn ends with a
    /// round at the latest. Before a core enters a round it takes threads of earlier rounds from elsewhere,
    /// as far as its steal steps reach. The rounds in which threads are differ by at most one.
    Rounds {
        /// Virtual run time per round in ns.
        length_ns: Ns,
    },
}

/// Where a thread is put when it starts or wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocator {
    /// Start: least loaded core. Wake-up: an idle core that shares a cache with the previous core or
    /// the waker's; else the less loaded of these two (Linux `select_task_rq_fair`).
    WakeAffine,
    /// Next core, round robin, among the kind that the thread prefers; a thread without preference
    /// goes to the least loaded of all cores, ties round robin (COLAB, Algorithm 1).
    RoundRobinInClass,
    /// The least loaded core of the kind that the thread prefers, of equal ones its previous one, else
    /// the first. A thread without preference, or which may not use that kind, goes to the least loaded
    /// of all.
    LeastLoadedInClass,
    /// The core whose load with the thread would be least; of equal ones its previous one, else the first.
    /// With [`Rules::rating`] a fast core takes more before a slow one gets the next.
    LeastLoadedWith,
    /// Start: the least loaded big core. Wake-up: an idle big core for a thread on a little one that has
    /// become heavy, the least loaded little one for a thread on a big one that has become light, else as
    /// [`Allocator::WakeAffine`] among the cores of its kind. Needs tracked load.
    ByLoad(LoadBand),
}

/// Loads between which a thread stays on the kind of core on which it is (global task scheduling).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadBand {
    /// From this load on, 0 to 1024, a thread on a little core goes up.
    pub up: u32,
    /// Below this load a thread on a big core goes down.
    pub down: u32,
    /// How long ago its last migration must be.
    pub min_resident_ns: Ns,
    /// Threads of a smaller weight never go up, and go down whatever their load.
    pub min_weight: u32,
}

/// Which threads a step of stealing takes, by their tracked load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadFilter {
    /// All.
    Any,
    /// Those that may go up, the heaviest first.
    Heavy(LoadBand),
    /// While no big core that they may use is idle: those that have run in at most this share, in 1/1024, of
    /// the time in which they were runnable; the lightest first.
    Starved {
        /// The share.
        max_served: u32,
    },
    /// Those that use more than four fifths of the capacity of the core on which they are, the heaviest first
    /// (Linux, misfit tasks).
    Misfit,
}

/// When waiting threads change queues other than by waking up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BalanceWhen {
    /// Whenever the steps of stealing and the periodic balancing say so.
    Always,
    /// Only while some core is over-utilised, that is, has less than a fifth of its capacity to spare (Linux
    /// with an energy model). Needs tracked load.
    OverUtilised,
}

/// Where an idle core looks for work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StealFrom {
    /// Waiting threads of the other queues of its cluster.
    OwnCluster,
    /// Waiting threads of the other clusters' queues.
    OtherClusters,
    /// Threads that run on a core of a slower class.
    RunningOnSlower,
}

/// One step of what an idle core tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steal {
    /// Where it looks.
    pub from: StealFrom,
    /// Which cores do so: all, big ones, little ones.
    pub who: Prefer,
    /// How long the core must have been idle.
    pub min_idle_ns: Ns,
    /// Threads with this preference stay where they are.
    pub except: Option<Prefer>,
    /// Least predicted speed-up over the thread's present core, in 1/1024 (running threads only).
    pub min_gain: u16,
    /// How long ago the thread's last migration must be (running threads only).
    pub min_resident_ns: Ns,
    /// Which threads by their load; `min_gain` does not count then.
    pub load: LoadFilter,
}

impl Steal {
    /// An unconditional step.
    pub const fn any(from: StealFrom) -> Self {
        Self {
            from,
            who: Prefer::Any,
            min_idle_ns: 0,
            except: None,
            min_gain: 0,
            min_resident_ns: 0,
            load: LoadFilter::Any,
        }
    }
}

/// How long a thread may run while others wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slice {
    /// Always as long.
    Fixed(Ns),
    /// Share, by weight, of a period that each waiting thread should see once (CFS).
    LatencyShare {
        /// The period up to `latency_ns / min_granularity_ns` threads.
        latency_ns: Ns,
        /// Period per thread beyond.
        min_granularity_ns: Ns,
    },
    /// Until the virtual deadline, `base_ns` of weighted run time after the request (EEVDF).
    Request(Ns),
}

/// What run time counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charge {
    /// Time / weight.
    Time,
    /// Time x predicted speed on that core / weight: threads get equal progress.
    Progress,
    /// Time x [`Rules::rating`] of that core / weight.
    Rated,
}

/// Whether a woken thread interrupts the running one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakePreempt {
    /// Never.
    Never,
    /// If its virtual run time is smaller by more than this granularity (weighted) (CFS).
    VruntimeGap {
        /// Granularity in ns at weight 1024.
        granularity_ns: Ns,
        /// COLAB's literal text: divide the running thread's virtual run time by its speed-up on a big core.
        divide_by_speed: bool,
    },
    /// If choosing anew would choose it, or the running thread's request is used up anyway (EEVDF).
    EarlierDeadline {
        /// Never while the running thread has had no more than its share and its request is not used
        /// up (Linux feature RUN_TO_PARITY).
        run_to_parity: bool,
    },
}

/// Periodic load balancing between run queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Balance {
    /// Period.
    pub period_ns: Ns,
    /// Every so often, a multiple of the period, a waiting thread moves even if that only swaps the
    /// imbalance: where threads do not divide evenly, they take turns at having a core for themselves.
    pub rotate_period_ns: Ns,
    /// Tolerated imbalance in percent.
    pub tolerance_percent: u32,
    /// Big cores among themselves and little cores among themselves, for policies that say themselves
    /// who is on which kind.
    pub within_kind: bool,
    /// How long ago the last migration of a thread must be that moves to another cluster.
    pub min_resident_ns: Ns,
    /// Between big and little cores, of the threads that could move, one that prefers the target's kind
    /// first, and one that prefers its own kind last.
    pub by_preference: bool,
}

/// The fast plane of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Which cores share a queue.
    pub queues: QueueScope,
    /// How fast the policy takes the cores of each class to be for any thread, relative to the slowest, in
    /// units of 1 / [`crate::SPEED_ONE`]. All loads that are compared between queues are weights per rated
    /// core.
    pub rating: [u16; MAX_CLASSES],
    /// Which waiting thread comes first.
    pub order: Order,
    /// Where threads are put.
    pub allocator: Allocator,
    /// What an idle core tries, in order, after its own queue.
    pub steal: Vec<Steal>,
    /// Whether idle cores are told at once when a thread has to wait (else they look only when they
    /// become idle and when load is balanced).
    pub kick_idle: bool,
    /// How long a thread may run.
    pub slice: Slice,
    /// Divide slices by the predicted speed on the core: equal work instead of equal time.
    pub slice_by_speed: bool,
    /// What run time counts.
    pub charge: Charge,
    /// Wake-up preemption.
    pub preempt: WakePreempt,
    /// How far behind the queue's least virtual run time a woken thread may be (CFS: latency / 2).
    pub sleeper_credit_ns: Ns,
    /// A new thread starts one slice behind (CFS START_DEBIT).
    pub fork_debit: bool,
    /// Slices end at multiples of this, as with a periodic tick; exactly if absent.
    pub tick_ns: Option<Ns>,
    /// Periodic load balancing.
    pub balance: Option<Balance>,
    /// When stealing and balancing happen at all.
    pub balance_when: BalanceWhen,
}

impl Rules {
    /// Whether idle cores may interrupt threads that run on slower ones.
    pub fn pulls_running(&self) -> bool {
        self.steal.iter().any(|step| step.from == StealFrom::RunningOnSlower)
    }
}
