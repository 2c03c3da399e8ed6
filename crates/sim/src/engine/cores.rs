//! Cores: their accounts of time, and how far the work on them is.

use std::ops::{Index, IndexMut};

use ampsched_model::{ClusterId, CoreId, Ns};
use ampsched_policy::Topology;

use super::speeds::Rate;
use super::threads::{Thread, Work};

/// Execution state of a core.
#[derive(Clone, Debug, Default)]
pub(super) struct Core {
    /// Up to when busy and idle time are accounted.
    accounted_ns: Ns,
    /// Switching cost that the running thread still has to pay.
    pub overhead_left_ns: Ns,
    /// When the running thread's work is done.
    pub done_ns: Ns,
    /// When its slice ends.
    pub slice_end_ns: Ns,
    /// How fast it works.
    pub rate: Rate,
    pub idle_ns: Ns,
    /// Of that, time in which threads that had run here waited for devices.
    pub iowait_ns: Ns,
    /// Number of these threads.
    pub waiting_io: u32,
    pub overhead_ns: Ns,
    pub switches: u64,
    /// Reschedule at the next opportunity.
    pub resched: bool,
    /// Instructions that the running thread has retired since it was put on the core.
    pub retired: u64,
    /// Its cluster, as in the topology (kept where the other fields are looked up).
    pub cluster: ClusterId,
}

/// What a core has done for the running thread since it was last accounted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Used {
    pub elapsed_ns: Ns,
    pub instructions: u64,
}

impl Core {
    /// Accounts the time of a core without a thread up to now.
    #[inline]
    pub fn account_idle(&mut self, now_ns: Ns) {
        let idle_ns = now_ns - self.accounted_ns;
        self.idle_ns += idle_ns;
        if self.waiting_io > 0 {
            self.iowait_ns += idle_ns;
        }
        self.accounted_ns = now_ns;
    }

    /// Accounts the time of a core and the progress of the thread on it up to now; none if there is nothing new.
    #[inline]
    pub fn account_busy(&mut self, thread: &mut Thread, now_ns: Ns) -> Option<Used> {
        let elapsed_ns = now_ns - self.accounted_ns;
        if elapsed_ns == 0 && now_ns < self.done_ns {
            return None;
        }
        self.accounted_ns = now_ns;
        let overhead_ns = elapsed_ns.min(self.overhead_left_ns);
        self.overhead_left_ns -= overhead_ns;
        self.overhead_ns += overhead_ns;
        let instructions = self.work(thread, elapsed_ns - overhead_ns, now_ns >= self.done_ns);
        if thread.remaining == 0 {
            thread.work = Work::Steps;
        }
        self.retired += instructions;
        Some(Used { elapsed_ns, instructions })
    }

    /// Lets a thread do what it can in some time, all that is left if it `finished`; returns the instructions
    /// that it has retired.
    #[inline]
    fn work(&self, thread: &mut Thread, worked_ns: Ns, finished: bool) -> u64 {
        match thread.work {
            Work::Steps => 0,
            Work::Instructions => {
                let retired = if finished {
                    thread.remaining
                } else {
                    // Rounding down may leave an instruction for the end, never lose one.
                    self.rate.retired_in(worked_ns).min(thread.remaining)
                };
                thread.remaining -= retired;
                retired
            }
            Work::CpuTime => {
                thread.remaining -= worked_ns.min(thread.remaining);
                let retired = self.rate.retired_in(worked_ns);
                thread.demanded += retired;
                retired
            }
        }
    }

    /// The work of the thread on it is done so much after now. Returns when the core is due: then, at the end of
    /// the slice, or at once.
    #[inline]
    pub fn plan(&mut self, thread: &Thread, now_ns: Ns) -> Ns {
        let work_ns = match thread.work {
            Work::Steps => 0,
            Work::Instructions => self.rate.duration_ns(thread.remaining),
            Work::CpuTime => thread.remaining,
        };
        self.done_ns = now_ns + self.overhead_left_ns + work_ns;
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
