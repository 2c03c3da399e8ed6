//! Capacity that heat takes away
//! (fair.c: `scale_rt_capacity`, `update_group_capacity`, `check_cpu_capacity`, of 6.1, 6.6 and 6.18).
//!
//! The kernel's cooling device lowers the highest frequency of a cluster, and the scheduler hears what its cores lose:
//! up to 6.9 by `topology_update_thermal_pressure` (drivers/base/arch_topology.c), of which it keeps an average
//! (`thermal_load_avg`, since 5.7), since 6.10 by the limit of cpufreq's policy (drivers/cpufreq/cpufreq.c,
//! `cpufreq_update_pressure`). Firmware that lowers clocks by itself, as for turbo and power limits of x86-64, reports
//! nothing. Up to 7.1 all of it needs Arm or RISC-V, which know the frequency to which capacities belong.
//!
//! What a core can reach is looked up when it is asked (`get_actual_cpu_capacity`): for clamps and energy. All else
//! goes by what was left of it when it balanced its smallest domain last.

use ampsched_model::{ClusterId, Ns, Sees};

use super::Fair;
use super::kernel::Pressure;
use super::state::Core;
use super::stats::When;
use crate::pelt::Pelt;
use crate::sched::Capacities;
use crate::{Activity, Sched};

/// What heat takes of a core's capacity, or has taken.
#[derive(Clone, Debug)]
pub(super) struct Taken {
    /// Now (`thermal_pressure`; `cpufreq_pressure`).
    now: u64,
    /// Its average, in real time (`avg_thermal`).
    average: Pelt,
    /// From when on a core that falls idle brings its capacity up to date, in ticks (`next_update`).
    due: u64,
}

impl Core {
    /// Its capacity at the highest frequency that it may have now (`get_actual_cpu_capacity`).
    pub fn reach(&self) -> u64 {
        self.capacity_max - self.taken.as_ref().map_or(0, |taken| taken.now)
    }

    pub fn capacities(&self) -> Capacities {
        Capacities { whole: self.capacity_max, left: self.capacity, reach: self.reach() }
    }

    /// Brings the average of what heat takes up to now: at ticks of a busy core, or when averages of an idle one are
    /// read (`update_thermal_load_avg`). What is taken now counts for all the time since the last time.
    #[inline]
    pub fn settle_taken(&mut self, now_ns: Ns) {
        if let Some(taken) = &mut self.taken {
            let load = Activity { load: taken.now, runnable: 0, running: false };
            taken.average.update(now_ns, load);
        }
    }
}

impl Fair {
    /// Heat allows a cluster another frequency than before.
    pub(super) fn press(&mut self, sched: &Sched, cluster: ClusterId) {
        let topology = sched.topology();
        if self.kernel.pressure == Pressure::Ignored || topology.sees() != Sees::Capacities {
            return;
        }
        let info = &topology.clusters()[cluster.index()];
        let highest = u64::from(info.max_mhz().unwrap_or(1).max(1));
        let capped = u64::from(sched.cap_mhz(cluster)).min(highest);
        // Averages were kept at the last tick; those of idle cores earlier, which is not known.
        let average = Pelt::new(self.ticks() * self.tick_ns);
        for core in &info.cores {
            let own = &mut self.cores[core.index()];
            let now = own.capacity_max - own.capacity_max * capped / highest;
            match &mut own.taken {
                Some(taken) => taken.now = now,
                None if now > 0 => own.taken = Some(Box::new(Taken { now, average, due: 0 })),
                None => {}
            }
        }
    }

    /// A core balances a domain. If that is its smallest one, it finds out what is left of its capacity; if it has just
    /// fallen idle, only once in a while (`update_group_capacity`).
    pub(super) fn note_capacity(&mut self, core: usize, level: usize, when: When) {
        if level > 0 || self.cores[core].taken.is_none() {
            return;
        }
        let (ticks, interval) = (self.ticks(), self.interval(core, level, false));
        let own = &mut self.cores[core];
        let Some(taken) = own.taken.as_deref_mut() else { return };
        if when == When::NewlyIdle && ticks < taken.due {
            return;
        }
        taken.due = ticks + interval;
        let lost = match self.kernel.pressure {
            Pressure::Averaged => taken.average.load_avg(1),
            Pressure::Exact | Pressure::Ignored => taken.now,
        };
        if taken.now + lost == 0 {
            own.taken = None;
        }
        own.capacity = own.capacity_max.saturating_sub(lost).max(1);
        let cores = &self.cores;
        self.domains.note_capacity(core, |core| cores[core].capacity);
    }

    /// Whether more is missing of a core's capacity than domains tolerate (`check_cpu_capacity`).
    #[inline]
    pub(super) fn is_reduced(&self, core: usize, imbalance_pct: u64) -> bool {
        let own = &self.cores[core];
        own.capacity * imbalance_pct < own.capacity_max * 100
    }

    /// Whether the only thread of a core of reduced capacity is better off on an idle one (`need_active_balance`).
    pub(super) fn spares(&self, imbalance_pct: u64, idle: usize, source: usize) -> bool {
        let (there, here) = (self.cores[source].capacity, self.cores[idle].capacity);
        self.queues[source].runnable == 1
            && self.is_reduced(source, imbalance_pct)
            && there * imbalance_pct < here * 100
    }
}
