//! What a thread will use when it wakes up: utilisation without the decay of its sleep.

use ampsched_model::Ns;

use super::{CAPACITY_ONE, Pelt};

/// A thread's estimated utilisation: it follows a rise at once and a fall by a quarter each time that the
/// thread goes to sleep (Linux 6.8, kernel/sched/fair.c: `util_est_update`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UtilEst {
    ewma: u32,
    /// Start of the period in which it was estimated last.
    seen_ns: Option<Ns>,
}

/// A difference below 1 % is no news (fair.c, `UTIL_EST_MARGIN`).
const MARGIN: u32 = CAPACITY_ONE / 100;

/// A new value counts 1 / 4 (fair.c, `UTIL_EST_WEIGHT_SHIFT`).
const WEIGHT: u32 = 4;

impl UtilEst {
    /// The estimate, 0 to 1024; 0 for a thread that has never slept.
    pub fn util(&self) -> u32 {
        self.ewma
    }

    /// The thread goes to sleep on a core of some capacity. Update its averages before.
    pub fn on_sleep(&mut self, thread: &Pelt, capacity: u32) {
        if self.seen_ns == Some(thread.period_start_ns()) {
            return;
        }
        let util = thread.util_avg();
        // Beyond the core's capacity the average says that the core was never idle, not what the thread needs.
        if self.ewma > util && self.ewma - util >= MARGIN && util > capacity {
            return;
        }
        self.seen_ns = Some(thread.period_start_ns());
        if util >= self.ewma {
            self.ewma = util;
        } else if self.ewma - util >= MARGIN && util + MARGIN >= thread.runnable_avg() {
            // A thread that had to wait might have used more.
            self.ewma = (WEIGHT * self.ewma - (self.ewma - util)) / WEIGHT;
        }
    }
}

/// A core's utilisation as energy estimates read it; `estimates` is the sum over its runnable threads
/// (Linux 6.6, fair.c: `cpu_util_cfs`).
pub fn core_util(core: &Pelt, estimates: u32, capacity: u32) -> u32 {
    core.util_avg().max(estimates).min(capacity)
}

/// A core's utilisation as `schedutil` reads it: time spent waiting for the core counts, too (Linux since
/// 6.5, fair.c: `cpu_util_cfs_boost`).
pub fn core_util_boosted(core: &Pelt, estimates: u32, capacity: u32) -> u32 {
    core_util(core, estimates.max(core.runnable_avg()), capacity)
}
