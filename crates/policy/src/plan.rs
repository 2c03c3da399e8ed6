//! The Plan: what the slow plane tells the fast plane about each thread.

use ampsched_model::{ClusterId, CoreSet, MAX_CLASSES, Ns, ThreadId};

use crate::AffinityId;

choice! {
    /// A kind of core: where a thread is put when it starts or wakes (soft: idle cores may still take it).
    pub enum Prefer as "prefer" {
        /// Any core.
        Any as "any" => {}
        /// A big core.
        Big as "big" => {}
        /// A little core.
        Little as "little" => {}
    }
}

#[allow(clippy::derivable_impls)] // The enum is declared by the table of words.
impl Default for Prefer {
    fn default() -> Self {
        Self::Any
    }
}

/// Fixed-point 1.0 of [`ThreadPlan::speed`].
pub const SPEED_ONE: u16 = 1024;

/// The plan for one thread, as the interpreters read it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThreadPlan {
    /// Cores that it may use (hard).
    pub affinity: AffinityId,
    /// Cores that the program itself allowed; the policy's choice lies within.
    pub user_affinity: AffinityId,
    /// Kind of core that it prefers (soft).
    pub prefer: Prefer,
    /// Weight; 1024 is nice 0.
    pub weight: u32,
    /// Rank for queues that serve the highest rank first.
    pub rank: u64,
    /// Length of its slices or requests in ns; 0: as the rules say.
    pub slice_ns: Ns,
    /// It may not run at all for now.
    pub held: bool,
    /// Predicted speed on each class relative to the slowest, in units of 1 / [`SPEED_ONE`].
    pub speed: [u16; MAX_CLASSES],
}

impl Default for ThreadPlan {
    fn default() -> Self {
        Self {
            affinity: AffinityId::ALL,
            user_affinity: AffinityId::ALL,
            prefer: Prefer::Any,
            weight: 1024,
            rank: 0,
            slice_ns: 0,
            held: false,
            speed: [SPEED_ONE; MAX_CLASSES],
        }
    }
}

/// Least relative speed of the plan's fixed point.
pub const SPEED_MIN: f64 = 1.0 / SPEED_ONE as f64;
/// Greatest relative speed of the plan's fixed point.
pub const SPEED_MAX: f64 = 63.0;

/// A relative speed in the plan's fixed point; what is out of its range is at its end.
pub(crate) fn to_fixed(speed: f64) -> u16 {
    (speed.clamp(SPEED_MIN, SPEED_MAX) * f64::from(SPEED_ONE)).round() as u16
}

changes! {
    /// One change of a thread's plan. It is refused when it is made if no rule of the policy reads it.
    pub enum Change, ChangeKind as "change" {
        /// Restrict the thread to these cores (within what its program allows).
        Affinity(CoreSet) as "affinity", "cores" => {}
        /// Prefer a kind of core, from the next placement on.
        Prefer(Prefer) as "prefer", "kind" => {
            daemon: Approximates {
                what: "takes a thread's kind of core for a preference",
                instead: "the thread is bound to that kind until the plan changes",
            },
        }
        /// Prefer a kind of core and, if the thread runs or waits on another kind, go there now.
        Move(Prefer) as "move", "kind" => {
            daemon: Approximates {
                what: "takes a thread's kind of core for a preference",
                instead: "the thread is bound to that kind until the plan changes",
            },
        }
        /// Set the rank: the highest is served first.
        Rank(u64) as "rank", "rank" => {
            daemon: Refuses { what: "ranks threads", instead: "the kernel's fair scheduler chooses" },
        }
        /// Set the weight; 1024 is nice 0.
        Weight(u32) as "weight", "weight" => {
            daemon: Approximates { what: "sets weights", instead: "the nearest nice value" },
        }
        /// Set the predicted speed on each class relative to the slowest (1.0 = as fast).
        Speed([f64; MAX_CLASSES]) as "speed", "speeds" => {
            daemon: Refuses { what: "tells predicted speeds", instead: "the kernel knows no speeds of threads" },
        }
        /// Set the length of slices or, under EEVDF, of requests in ns (Linux: `sched_attr.sched_runtime`);
        /// 0: as the rules say.
        Slice(Ns) as "slice", "slice_ns" => {
            daemon: Refuses { what: "sets the slices of single threads", instead: "the kernel's own slices" },
        }
        /// Hold the thread back, as a freezer or SIGSTOP does, or let it go on.
        Hold(bool) as "hold", "held" => {
            daemon: With { means: Means::Freezer, what: "holds single threads back" },
        }
    }
}

/// Changes that a policy asks for; a back end applies them when the policy returns.
///
/// The simulator writes them into the interpreter's tables, the kernel back end into BPF maps, the
/// daemon into affinities and nice values. Frequencies go to cpufreq.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    changes: Vec<(ThreadId, Change)>,
    frequencies: Vec<(ClusterId, u32)>,
    limits: Vec<(ClusterId, u32)>,
}

impl Plan {
    /// An empty plan.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks for a change.
    pub fn set(&mut self, thread: ThreadId, change: Change) {
        self.changes.push((thread, change));
    }

    /// Asks for a frequency of a cluster in MHz: the lowest operating point that is at least as fast, or
    /// the highest there is.
    pub fn set_frequency(&mut self, cluster: ClusterId, mhz: u32) {
        self.frequencies.push((cluster, mhz));
    }

    /// Limits a cluster to the highest operating point of at most so many MHz, or to its lowest; `u32::MAX`
    /// lifts the limit. The governor or policy that chooses the frequency goes on doing so, and its choice is cut.
    pub fn limit_frequency(&mut self, cluster: ClusterId, mhz: u32) {
        self.limits.push((cluster, mhz));
    }

    /// Whether it asks for frequencies or limits of them.
    pub fn sets_clocks(&self) -> bool {
        !self.frequencies.is_empty() || !self.limits.is_empty()
    }

    /// Takes the limits out, in the order in which they were asked for.
    pub fn drain_limits(&mut self) -> impl Iterator<Item = (ClusterId, u32)> + '_ {
        self.limits.drain(..)
    }

    /// Takes the frequencies out, in the order in which they were asked for.
    pub fn drain_frequencies(&mut self) -> impl Iterator<Item = (ClusterId, u32)> + '_ {
        self.frequencies.drain(..)
    }

    /// The changes in the order in which they were asked for.
    pub fn changes(&self) -> &[(ThreadId, Change)] {
        &self.changes
    }

    /// Takes the changes out and keeps the memory.
    pub fn drain(&mut self) -> impl Iterator<Item = (ThreadId, Change)> + '_ {
        self.changes.drain(..)
    }

    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.frequencies.is_empty() && self.limits.is_empty()
    }
}
