//! A core's time as load tracking sees it.

use ampsched_model::Ns;

use super::{CAPACITY_ONE, Pelt};

/// The clock of a core in which its threads' averages are kept: while the core is busy it advances with
/// the work done, so that equal work counts equally on every core at every frequency; when the core falls
/// idle it catches up with real time (Linux since 5.1, kernel/sched/pelt.h: `update_rq_clock_pelt`,
/// `update_idle_rq_clock_pelt`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeltClock {
    real_ns: Ns,
    scaled_ns: Ns,
    lost_ns: Ns,
}

impl PeltClock {
    /// A clock that shows the real time.
    pub fn new(now_ns: Ns) -> Self {
        Self { real_ns: now_ns, scaled_ns: now_ns, lost_ns: 0 }
    }

    /// A clock in some state: the real time up to which it is kept, that scaled by the work done, and what of the
    /// difference is lost.
    pub fn of_times(real_ns: Ns, scaled_ns: Ns, lost_ns: Ns) -> Self {
        Self { real_ns, scaled_ns, lost_ns }
    }

    /// What the clock shows.
    pub fn time_ns(&self) -> Ns {
        self.scaled_ns.saturating_sub(self.lost_ns)
    }

    /// The core was busy until now with a present capacity of 0 to 1024: 1024 is the fastest core of the
    /// machine at its highest frequency. Call it before the frequency changes, too.
    pub fn busy_until(&mut self, now_ns: Ns, capacity: u32) {
        let passed_ns = now_ns.saturating_sub(self.real_ns);
        self.real_ns += passed_ns;
        self.scaled_ns += passed_ns * u64::from(capacity) / u64::from(CAPACITY_ONE);
    }

    /// The core, busy until now, falls idle: the clock catches up. If the core has been busy for so long
    /// that its utilisation is full, it would not have been idle at full speed either, and the difference
    /// is lost instead of counting as idle time.
    pub fn fall_idle(&mut self, core: &Pelt) {
        if core.is_saturated() {
            self.lost_ns += self.real_ns - self.scaled_ns;
        }
        self.scaled_ns = self.real_ns;
    }

    /// The core was idle until now.
    pub fn idle_until(&mut self, now_ns: Ns) {
        self.real_ns = self.real_ns.max(now_ns);
        self.scaled_ns = self.real_ns;
    }
}
