//! Cores: their accounts of time, and how far the work on them is.

use std::ops::{Index, IndexMut};

use ampsched_model::{ClusterId, CoreId, Ns};
use ampsched_policy::Topology;

use super::speeds::Rate;
use super::threads::{Thread, Work};

/// Execution state of a core.
///
/// What the running thread has retired is a function of the time since its *anchor*: since it was put on the core, its
/// work or the speed of that changed, or it was delayed. So accounts may be brought up to date as often as anybody
/// likes: nothing that follows depends on it.
#[derive(Clone, Debug, Default)]
pub(super) struct Core {
    /// Up to when busy and idle time are accounted.
    accounted_ns: Ns,
    /// When the work at hand began, or begins once switching is paid for: the anchor.
    pub works_from_ns: Ns,
    /// When the work at hand is done.
    done_ns: Ns,
    /// When the running thread's slice ends.
    pub slice_end_ns: Ns,
    /// How fast it works.
    rate: Rate,
    /// Instructions accounted since the anchor.
    since_anchor: u64,
    /// Instructions that the running thread has retired since it was put on the core.
    pub retired: u64,
    /// Reschedule at the next opportunity.
    pub resched: bool,
    /// Its cluster, as in the topology (kept where the other fields are looked up).
    pub cluster: ClusterId,
    /// Number of threads that ran here and wait for devices.
    pub waiting_io: u32,
    /// Until when the system has the core, or keeps it from idling.
    pub noise_until_ns: Ns,
    /// Time of noise while no thread had the core.
    pub noise_ns: Ns,
    /// Time for which interrupts have kept threads from their work.
    pub interrupted_ns: Ns,
    pub idle_ns: Ns,
    /// Of that, time in which threads that had run here waited for devices.
    pub iowait_ns: Ns,
    pub overhead_ns: Ns,
    pub switches: u64,
    /// Busy time at each operating point of its cluster, up to the last change of that.
    pub busy_at_ns: Vec<Ns>,
}

/// What a core has done for the running thread since it was last accounted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Used {
    pub elapsed_ns: Ns,
    pub instructions: u64,
}

impl Core {
    /// Its cluster leaves an operating point, and it has been busy for so long in all.
    pub fn leave_point(&mut self, opp: usize, busy_ns: Ns) {
        let before_ns: Ns = self.busy_at_ns.iter().sum();
        if self.busy_at_ns.len() <= opp {
            self.busy_at_ns.resize(opp + 1, 0);
        }
        self.busy_at_ns[opp] += busy_ns - before_ns;
    }

    /// Accounts the time of a core without a thread up to now.
    #[inline]
    pub fn account_idle(&mut self, now_ns: Ns) {
        let mut idle_ns = now_ns - self.accounted_ns;
        if self.accounted_ns < self.noise_until_ns {
            let noise_ns = now_ns.min(self.noise_until_ns) - self.accounted_ns;
            self.noise_ns += noise_ns;
            idle_ns -= noise_ns;
        }
        self.idle_ns += idle_ns;
        if self.waiting_io > 0 {
            self.iowait_ns += idle_ns;
        }
        self.accounted_ns = now_ns;
    }

    /// Accounts the time of a core and the progress of the thread on it up to now.
    #[inline]
    pub fn account_busy(&mut self, thread: &mut Thread, now_ns: Ns) -> Used {
        let before_ns = std::mem::replace(&mut self.accounted_ns, now_ns);
        let elapsed_ns = now_ns - before_ns;
        let mut worked_ns = elapsed_ns;
        if before_ns < self.works_from_ns {
            let overhead_ns = now_ns.min(self.works_from_ns) - before_ns;
            self.overhead_ns += overhead_ns;
            worked_ns -= overhead_ns;
        }
        let instructions = match thread.work {
            Work::Steps => 0,
            Work::Instructions => {
                // Rounding down may leave an instruction for the end, never lose one.
                let retired = if now_ns >= self.done_ns {
                    thread.remaining
                } else {
                    self.newly_retired(now_ns).min(thread.remaining)
                };
                thread.remaining -= retired;
                retired
            }
            Work::CpuTime => {
                let retired = self.newly_retired(now_ns);
                thread.remaining -= worked_ns.min(thread.remaining);
                thread.demanded += retired;
                retired
            }
        };
        if thread.remaining == 0 {
            thread.work = Work::Steps;
        }
        self.since_anchor += instructions;
        self.retired += instructions;
        Used { elapsed_ns, instructions }
    }

    /// What has been retired since the anchor and is not accounted yet.
    #[inline]
    fn newly_retired(&self, now_ns: Ns) -> u64 {
        let worked_ns = now_ns.saturating_sub(self.works_from_ns);
        self.rate.retired_in(worked_ns) - self.since_anchor
    }

    /// A thread begins a turn after a delay for switching to it. The core must be accounted up to now.
    #[inline]
    pub fn begin_turn(&mut self, thread: &Thread, rate: Rate, delay_ns: Ns, slice_end_ns: Ns) {
        self.slice_end_ns = slice_end_ns;
        self.resched = false;
        self.retired = 0;
        self.works_from_ns = self.accounted_ns + delay_ns;
        self.anchor(thread, rate);
    }

    /// The running thread begins other work, or goes on at another speed. The core must be accounted up to now.
    #[inline]
    pub fn set_work(&mut self, thread: &Thread, rate: Rate) {
        self.works_from_ns = self.works_from_ns.max(self.accounted_ns);
        self.anchor(thread, rate);
    }

    /// The running thread is kept from its work for a time. The core must be accounted up to now.
    pub fn delay(&mut self, thread: &Thread, delay_ns: Ns) {
        self.works_from_ns = self.works_from_ns.max(self.accounted_ns) + delay_ns;
        self.anchor(thread, self.rate);
    }

    #[inline]
    fn anchor(&mut self, thread: &Thread, rate: Rate) {
        self.rate = rate;
        self.since_anchor = 0;
        let work_ns = match thread.work {
            Work::Steps => 0,
            Work::Instructions => rate.duration_ns(thread.remaining),
            Work::CpuTime => thread.remaining,
        };
        self.done_ns = self.works_from_ns + work_ns;
    }

    /// When the core is due for the running thread: when its work is done, at the end of its slice, or at once.
    #[inline]
    pub fn due_ns(&self, now_ns: Ns) -> Ns {
        // A branch instead of `min`: when slices end before the work does, as they mostly do, the
        // processor need not wait for the conversions that `done_ns` takes.
        if self.resched {
            now_ns
        } else if self.slice_end_ns <= self.done_ns {
            self.slice_end_ns
        } else {
            self.done_ns
        }
    }
}

/// All cores, by number.
pub(super) struct Cores {
    all: Vec<Core>,
}

impl Cores {
    /// Idle cores.
    pub fn new(topology: &Topology) -> Self {
        let core = |core| Core { cluster: topology.core(core).cluster, ..Core::default() };
        Self { all: topology.cores().map(core).collect() }
    }

    /// Number of cores.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// All, in ascending order.
    pub fn ids(&self) -> impl Iterator<Item = CoreId> + use<> {
        (0..self.all.len()).map(CoreId::from)
    }
}

impl Index<CoreId> for Cores {
    type Output = Core;

    #[inline]
    fn index(&self, core: CoreId) -> &Core {
        &self.all[core.index()]
    }
}

impl IndexMut<CoreId> for Cores {
    #[inline]
    fn index_mut(&mut self, core: CoreId) -> &mut Core {
        &mut self.all[core.index()]
    }
}
