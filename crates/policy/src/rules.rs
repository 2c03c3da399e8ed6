//! Rules: the fast plane of a policy, as data that a kernel can execute by itself.

use ampsched_model::{MAX_CLASSES, Ns};

use crate::weight::to_real;
use crate::words::Does;
use crate::{Needs, Prefer, SPEED_ONE, Topology};

/// The daemon leaves the choice to the kernel.
const KERNEL_CHOOSES: &str = "the kernel's fair scheduler chooses";

/// The daemon cannot make cores share queues.
const NO_SHARING: Does =
    Does::Refuses { what: "lets cores share run queues", instead: "each core has its own" };

choice! {
    /// Which cores share a run queue.
    pub enum QueueScope as "queues" {
        /// Each core has its own.
        PerCore as "per_core" => { reads: &[Changes::Affinity, Changes::Hold], }
        /// The cores of a cluster share one.
        PerCluster as "per_cluster" => {
            reads: &[Changes::Affinity, Changes::Hold],
            daemon: NO_SHARING,
        }
        /// All cores share one.
        Global as "global" => {
            reads: &[Changes::Affinity, Changes::Hold],
            hides: &[Changes::Prefer, Changes::Move],
            daemon: NO_SHARING,
        }
    }
}

choice! {
    /// Which waiting thread a queue serves first. Ties: the thread that has waited longest.
    pub enum Order as "order" {
        /// First come, first served.
        Fifo as "fifo" => {
            daemon: Refuses { what: "serves threads in the order of arrival", instead: KERNEL_CHOOSES },
        }
        /// Least virtual run time (CFS).
        Vruntime as "vruntime" => { reads: &[Changes::Weight], }
        /// Earliest virtual deadline among the eligible (EEVDF).
        Deadline as "deadline" => { reads: &[Changes::Weight, Changes::Slice], }
        /// Highest rank among the threads whose virtual run time is at most `fair_window_ns` above the
        /// least in the queue; so a high rank cannot starve the others.
        HighestRank as "highest_rank" {
            /// Width of the window in ns of virtual run time; `u64::MAX` is no limit.
            fair_window_ns: Ns = [u64::MAX, 6_000_000],
        } => {
            reads: &[Changes::Rank, Changes::Weight],
            daemon: Refuses {
                what: "serves the waiting thread of the highest rank",
                instead: KERNEL_CHOOSES,
            },
        }
        /// Round by round (DWRR): least virtual run time, which means the same in all queues. A turn ends with
        /// a round at the latest. Before a core enters a round it takes threads of earlier rounds from
        /// elsewhere, as far as its steal steps reach. The rounds in which threads are differ by at most one.
        Rounds as "rounds" {
            /// Virtual run time per round in ns.
            length_ns: Ns = [30_000_000, 10_000_000],
        } => {
            reads: &[Changes::Weight],
            daemon: Refuses { what: "serves threads round by round", instead: KERNEL_CHOOSES },
        }
    }
}

choice! {
    /// Where a thread is put when it starts or wakes.
    pub enum Allocator as "allocator" {
        /// Start: least loaded core. Wake-up: an idle core that shares a cache with the previous core or
        /// the waker's; else the less loaded of these two (Linux `select_task_rq_fair`).
        WakeAffine as "wake_affine" => { reads: &[Changes::Weight], }
        /// Next core, round robin, among the kind that the thread prefers; a thread without preference
        /// goes to the least loaded of all cores, ties round robin (COLAB, Algorithm 1).
        RoundRobinInClass as "round_robin_in_class" => {
            reads: &[Changes::Prefer, Changes::Move, Changes::Weight],
            daemon: Refuses {
                what: "spreads waking threads over the cores of their class in turn",
                instead: "bound to the class, the kernel chooses",
            },
        }
        /// The least loaded core of the kind that the thread prefers, of equal ones its previous one, else
        /// the first. A thread without preference, or which may not use that kind, goes to the least loaded
        /// of all.
        LeastLoadedInClass as "least_loaded_in_class" => {
            reads: &[Changes::Prefer, Changes::Move, Changes::Weight],
            daemon: Approximates {
                what: "takes a thread's kind of core for a preference between epochs",
                instead: "it is bound to that kind until the next epoch",
            },
        }
        /// The core whose load with the thread would be least; of equal ones its previous one, else the first.
        /// With [`Rules::rating`] a fast core takes more before a slow one gets the next.
        LeastLoadedWith as "least_loaded_with" => {
            reads: &[Changes::Weight],
            daemon: Refuses {
                what: "places threads by load per rated core",
                instead: "the kernel places them",
            },
        }
        /// Start: the least loaded big core. Wake-up: an idle big core for a thread on a little one that has
        /// become heavy, the least loaded little one for a thread on a big one that has become light, else as
        /// [`Allocator::WakeAffine`] among the cores of its kind.
        ByLoad as "by_load" {
            /// Loads between which a thread stays where it is.
            band: LoadBand = [],
        } => {
            reads: &[Changes::Weight],
            reads_load: true,
            daemon: Approximates {
                what: "moves threads by load when they wake up and at each tick",
                instead: "at each look, from run times since the last one",
            },
        }
        /// Start: as [`Allocator::WakeAffine`]. Wake-up: while no core is over-utilised, where the thread costs the
        /// least energy, by the machine's energy model; on its previous core unless that saves more than a share of
        /// the energy of all (Linux `find_energy_efficient_cpu`). Without an energy model as
        /// [`Allocator::WakeAffine`].
        ByEnergy as "by_energy" {
            /// The share, in 1/1024.
            hysteresis: u32 = [64, 0],
        } => {
            reads: &[Changes::Weight],
            reads_load: true,
            daemon: Refuses {
                what: "puts waking threads where they cost the least energy",
                instead: "the kernel places them",
            },
        }
    }
}

record! {
    /// Loads between which a thread stays on the kind of core on which it is (global task scheduling).
    #[derive(Copy)]
    pub struct LoadBand as "load_band" wire {
        /// From this load on, 0 to 1024, a thread on a little core goes up.
        up: u32 = 0, in [700, 300, 1000] => {}
        /// Below this load a thread on a big core goes down.
        down: u32 = 0, in [256, 600] => {}
        /// How long ago its last migration must be.
        min_resident_ns: Ns = 0, in [0, 5_000_000] => {}
        /// Threads of a smaller weight never go up, and go down whatever their load.
        min_weight: u32 = 0, in [0, 1024] => {}
    }
}

choice! {
    /// Which threads a step of stealing takes, by their tracked load.
    pub enum LoadFilter as "steal_load" {
        /// All.
        Any as "any" => {}
        /// Those that may go up, the heaviest first.
        Heavy as "heavy" {
            /// Loads between which a thread stays where it is.
            band: LoadBand = [],
        } => { reads_load: true, }
        /// While no big core that they may use is idle: those that have run in at most this share, in 1/1024,
        /// of the time in which they were runnable; the lightest first.
        Starved as "starved" {
            /// The share, 0 to 1024.
            max_served: u32 = [256, 700],
        } => { reads_load: true, }
        /// Those that use more than four fifths of the capacity of the core on which they are, the heaviest
        /// first (Linux, misfit tasks).
        Misfit as "misfit" => { reads_load: true, }
    }
}

choice! {
    /// When waiting threads change queues other than by waking up.
    pub enum BalanceWhen as "balance_when" {
        /// Whenever the steps of stealing and the periodic balancing say so.
        Always as "always" => {}
        /// Only while some core is over-utilised, that is, has less than a fifth of its capacity to spare
        /// (Linux with an energy model).
        OverUtilised as "over_utilised" => {
            reads_load: true,
            daemon: Refuses {
                what: "balances only while a core is over-utilised",
                instead: "the kernel balances always",
            },
        }
    }
}

choice! {
    /// Where an idle core looks for work.
    pub enum StealFrom as "steal_from" {
        /// Waiting threads of the other queues of its cluster.
        OwnCluster as "own_cluster" => {}
        /// Waiting threads of the other clusters' queues.
        OtherClusters as "other_clusters" => {}
        /// Threads that run on a core of a slower class, the highest rank first.
        RunningOnSlower as "running_on_slower" => {
            reads: &[Changes::Rank],
            daemon: Depends(pulled_by_daemon),
        }
    }
}

/// What becomes of running threads that an idle fast core would take, if a daemon runs the policy.
fn pulled_by_daemon(needs: &Needs, rules: &Rules) -> Does {
    if matches!(rules.allocator, Allocator::ByLoad { .. }) {
        return Does::Exact;
    }
    match needs.epoch_ns {
        Some(_) => Does::Approximates {
            what: "lets an idle fast core take a running thread from a slow one at once",
            instead: "at the next epoch",
        },
        None => Does::Refuses {
            what: "lets an idle fast core take a running thread from a slow one",
            instead: "it stays where it is",
        },
    }
}

record! {
    /// One step of what an idle core tries.
    #[derive(Copy)]
    pub struct Steal as "steal" wire {
        /// Where it looks.
        from: StealFrom = StealFrom::OwnCluster => {}
        /// Which cores do so: all, big ones, little ones.
        who: Prefer = Prefer::Any => {}
        /// How long the core must have been idle.
        min_idle_ns: Ns = 0, in [0, 0, 5_000_000] => {}
        /// Threads with this preference stay where they are.
        except: Option<Prefer> = None => { reads: &[Changes::Prefer], }
        /// Least predicted speed-up over the thread's present core, in 1/1024 (running threads only).
        min_gain: u16 = 0, in [0, 1024, 2048] => { reads: &[Changes::Speed], }
        /// How long ago the thread's last migration must be (running threads only).
        min_resident_ns: Ns = 0, in [0, 4_000_000] => {}
        /// Which threads by their load; `min_gain` does not count then.
        load: LoadFilter = LoadFilter::Any => {}
    }
}

impl Steal {
    /// Whether it looks within the own cluster.
    pub fn steals_nearby(&self) -> bool {
        self.from == StealFrom::OwnCluster
    }

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

/// The kernel's fair scheduler has the same parts with other numbers.
const OWN_CONSTANTS: Does = Does::Approximates {
    what: "has constants of its own for slices, preemption and balancing",
    instead: "the kernel's (EEVDF since Linux 6.6, CFS before)",
};

choice! {
    /// How long a thread may run while others wait. [`crate::Change::Slice`] replaces it for a thread.
    pub enum Slice as "slice" {
        /// Always as long.
        Fixed as "fixed" {
            /// The length.
            slice_ns: Ns = [10_000_000, 3_000_000],
        } => {
            reads: &[Changes::Slice],
            daemon: Refuses {
                what: "gives slices of a fixed length",
                instead: "the kernel's own slices",
            },
        }
        /// Share, by weight, of a period that each waiting thread should see once (CFS).
        LatencyShare as "latency_share" {
            /// The period up to `latency_ns / min_granularity_ns` threads.
            latency_ns: Ns = [18_000_000],
            /// Period per thread beyond.
            min_granularity_ns: Ns = [2_250_000],
        } => { reads: &[Changes::Slice, Changes::Weight], daemon: OWN_CONSTANTS, }
        /// Until the virtual deadline, `base_ns` of weighted run time after the request (EEVDF).
        Request as "request" {
            /// The length of a request.
            base_ns: Ns = [2_800_000, 2_100_000],
        } => { reads: &[Changes::Slice, Changes::Weight], daemon: OWN_CONSTANTS, }
    }
}

choice! {
    /// What run time counts.
    pub enum Charge as "charge" {
        /// Time / weight.
        Time as "time" => {}
        /// Time x predicted speed on that core / weight: threads get equal progress.
        Progress as "progress" => {
            reads: &[Changes::Speed],
            daemon: Refuses {
                what: "charges run time by predicted speed, for equal progress",
                instead: "equal time",
            },
        }
        /// Time x [`Rules::rating`] of that core / weight.
        Rated as "rated" => {
            daemon: Refuses { what: "charges run time by the rating of cores", instead: "equal time" },
        }
    }
}

choice! {
    /// Whether a woken thread interrupts the running one.
    pub enum WakePreempt as "preempt" {
        /// Never.
        Never as "never" => {
            daemon: Refuses { what: "lets woken threads interrupt nobody", instead: "the kernel's rule" },
        }
        /// If its virtual run time is smaller by more than this granularity (weighted) (CFS).
        VruntimeGap as "vruntime_gap" {
            /// Granularity in ns at weight 1024.
            granularity_ns: Ns = [1_000_000],
        } => { reads: &[Changes::Weight], }
        /// The same, with the running thread's virtual run time divided by its speed-up on a big core (COLAB's
        /// literal text).
        ScaledVruntimeGap as "scaled_vruntime_gap" {
            /// Granularity in ns at weight 1024.
            scaled_granularity_ns: Ns = [1_000_000],
        } => {
            reads: &[Changes::Weight, Changes::Speed],
            daemon: Refuses {
                what: "decides preemption by virtual run time divided by the speed-up",
                instead: "the kernel's rule",
            },
        }
        /// If choosing anew would choose it, or the running thread's request is used up anyway (EEVDF).
        EarlierDeadline as "earlier_deadline" {
            /// Never while the running thread has had no more than its share and its request is not used
            /// up (Linux feature RUN_TO_PARITY).
            run_to_parity: bool = [0, 1],
        } => {}
    }
}

record! {
    /// Periodic load balancing between run queues.
    #[derive(Copy)]
    pub struct Balance as "balance" wire {
        /// Period.
        period_ns: Ns = 4_000_000, in [4_000_000] => { reads: &[Changes::Weight], }
        /// Every so often, a multiple of the period, a waiting thread moves even if that only swaps the
        /// imbalance: where threads do not divide evenly, they take turns at having a core for themselves.
        rotate_period_ns: Ns = 64_000_000, in [4_000_000, 64_000_000] => {}
        /// Tolerated imbalance in percent.
        tolerance_percent: u32 = 25, in [0, 25] => {}
        /// Big cores among themselves and little cores among themselves, for policies that say themselves
        /// who is on which kind.
        within_kind: bool = false => {}
        /// How long ago the last migration of a thread must be that moves to another cluster.
        min_resident_ns: Ns = 0, in [0, 10_000_000] => {}
        /// Between big and little cores, of the threads that could move, one that prefers the target's kind
        /// first, and one that prefers its own kind last.
        by_preference: bool = false => { reads: &[Changes::Prefer], }
    }
}

record! {
    /// The fast plane of a policy.
    ///
    /// The default is plain: a queue per core, first come, first served, slices of 10 ms, idle cores steal, nobody
    /// interrupts. A policy states what is special about it.
    pub struct Rules as "rules" wire {
        /// Which cores share a queue.
        queues: QueueScope = QueueScope::PerCore => {}
        /// How fast the policy takes the cores of each class to be for any thread, relative to the slowest, in
        /// units of 1 / [`crate::SPEED_ONE`]. All loads that are compared between queues are weights per rated
        /// core.
        rating: [u16; MAX_CLASSES] = [SPEED_ONE; MAX_CLASSES], in [1024] => {
            daemon: Depends(rated_by_daemon),
        }
        /// Which waiting thread comes first.
        order: Order = Order::Fifo => {}
        /// Where threads are put.
        allocator: Allocator = Allocator::WakeAffine => {}
        /// What an idle core tries, in order, after its own queue.
        steal: Vec<Steal> =
            vec![Steal::any(StealFrom::OwnCluster), Steal::any(StealFrom::OtherClusters)] => {}
        /// Whether idle cores are told at once when a thread has to wait (else they look only when they
        /// become idle and when load is balanced).
        kick_idle: bool = true => {}
        /// How long a thread may run.
        slice: Slice = Slice::Fixed { slice_ns: 10_000_000 } => { python: "slice_ns", }
        /// Divide slices by the predicted speed on the core: equal work instead of equal time.
        slice_by_speed: bool = false => {
            reads: &[Changes::Speed],
            daemon: Refuses {
                what: "shortens slices on faster cores",
                instead: "the kernel's own slices",
            },
        }
        /// What run time counts.
        charge: Charge = Charge::Time => {}
        /// Wake-up preemption.
        preempt: WakePreempt = WakePreempt::Never => { python: "wake_preemption", }
        /// How far behind the queue's least virtual run time a woken thread may be (CFS: latency / 2).
        sleeper_credit_ns: Ns = 0, in [0, 9_000_000] => {}
        /// A new thread starts one slice behind (CFS START_DEBIT).
        fork_debit: bool = false => {}
        /// Slices end at multiples of this, as with a periodic tick; exactly if absent.
        tick_ns: Option<Ns> = None, in [4_000_000] => {}
        /// Periodic load balancing.
        balance: Option<Balance> = None => {}
        /// When stealing and balancing happen at all.
        balance_when: BalanceWhen = BalanceWhen::Always => {}
    }
}

/// What a daemon makes of ratings that differ.
fn rated_by_daemon(_needs: &Needs, rules: &Rules) -> Does {
    match rules.allocator {
        // It is refused by itself.
        Allocator::LeastLoadedWith => Does::Exact,
        _ => {
            Does::Refuses { what: "balances load per rated core", instead: "all cores count alike" }
        }
    }
}

impl Rules {
    /// How long each of two threads of one weight that share a core runs at a time where that is shortest, in ns,
    /// unless the policy's plan or code says otherwise.
    pub fn turn_ns(&self, topology: &Topology, weight: u32) -> Ns {
        let slice_ns = match self.slice {
            Slice::Fixed { slice_ns } => slice_ns,
            Slice::LatencyShare { latency_ns, min_granularity_ns } => {
                (latency_ns / 2).max(min_granularity_ns)
            }
            Slice::Request { base_ns } => base_ns,
        };
        let limited_ns = match self.order {
            Order::Rounds { length_ns } => {
                let pace = self.greatest_pace(topology.class_count()).max(1);
                let left_ns = to_real(length_ns, weight) * u64::from(SPEED_ONE) / u64::from(pace);
                slice_ns.min(left_ns)
            }
            Order::Fifo | Order::Vruntime | Order::Deadline | Order::HighestRank { .. } => slice_ns,
        };
        limited_ns.max(self.tick_ns.unwrap_or(0))
    }

    /// How much faster than real time threads of weight 1024 are charged where that is most, in 1/[`SPEED_ONE`]; of
    /// speeds that a plan tells nothing is known here.
    fn greatest_pace(&self, classes: usize) -> u16 {
        match self.charge {
            Charge::Time | Charge::Progress => SPEED_ONE,
            Charge::Rated => self.rating.into_iter().take(classes).max().unwrap_or(SPEED_ONE),
        }
    }

    /// Among which cores a thread may be on another one with each turn, by design: not only because a core is idle or
    /// overloaded.
    pub fn turns_reach(&self) -> QueueScope {
        match self.order {
            Order::Rounds { .. } => QueueScope::Global,
            Order::Fifo | Order::Vruntime | Order::Deadline | Order::HighestRank { .. } => {
                self.queues
            }
        }
    }

    /// Whether idle cores may interrupt threads that run on slower ones.
    pub fn pulls_running(&self) -> bool {
        self.steal.iter().any(|step| step.from == StealFrom::RunningOnSlower)
    }

    /// The same on a machine, where those that steal within a cluster also part threads that share a physical core.
    pub fn pulls_running_on(&self, topology: &Topology) -> bool {
        self.pulls_running() || (topology.has_smt() && self.steal.iter().any(Steal::steals_nearby))
    }
}
