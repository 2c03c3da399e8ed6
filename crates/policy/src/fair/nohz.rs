//! What busy cores have done for those that idle without a tick (fair.c 6.18: `nohz_balancer_kick`,
//! `nohz_idle_balance`, `nohz.next_blocked`).

use super::Fair;
use super::stats::When;
use crate::{Act, Sched};

/// The cycle of the kernel's own work on an idle core: 500 ms (`HPAGE_FRAG_CHECK_INTERVAL_MSEC`), as 4-ms ticks and the
/// wheel of timers round it up (kernel/time/timer.c).
const WORKERS_NS: u64 = 512_000_000;

impl Fair {
    /// Whether a busy core's tick has an idle core balance for all idle ones (`nohz_balancer_kick`).
    pub(super) fn kicks_idle(&self, core: usize) -> bool {
        if self.ticks() < self.idle_balance_due || self.first_idle().is_none() {
            return false;
        }
        if self.goes_by_demand() {
            return self.threads_on(core) >= 2 && self.lacks_capacity(core, 0);
        }
        if self.threads_on(core) >= 2 {
            return true;
        }
        if self.kernel.is_by_load() {
            return self.shares_cache_with_busy(core);
        }
        let levels = &self.domains.of_core[core];
        let smallest = levels.first().map(|level| &self.domains.all[level.domain]);
        if smallest.is_some_and(|domain| self.is_reduced(core, domain.imbalance_pct)) {
            return true;
        }
        let packs = levels.iter().map(|level| &self.domains.all[level.domain]).any(|domain| {
            let comes_before = |&idle: &usize| {
                self.is_idle(idle)
                    && self.is_preferred(idle, core)
                    && self.goes_by_priority(domain, idle)
            };
            domain.packs && domain.cores.iter().any(comes_before)
        });
        if packs {
            return true;
        }
        if self.domains.asymmetric[core].is_some() {
            return self.cores[core].misfit_load > 0
                && self.cores[core].capacity_max < self.domains.capacity_max;
        }
        self.shares_cache_with_busy(core)
    }

    /// An idle core balances for all idle ones that are due, itself last (`_nohz_idle_balance`).
    pub(super) fn balance_idle(&mut self, sched: &Sched, acts: &mut Vec<Act>) {
        let count = self.cores.len();
        let Some(first) = self.first_idle() else { return };
        let now = self.ticks();
        let mut next = now + 60_000_000_000 / self.tick_ns;
        // Itself first up to 4.0.
        let itself = usize::from(!self.kernel.counts_threads());
        for step in itself..itself + count {
            let core = (first + step) % count;
            if !self.is_idle(core) {
                continue;
            }
            if !self.kernel.is_by_load() || now >= self.cores[core].balance_due {
                self.settle_core(core);
            }
            if now >= self.cores[core].balance_due {
                self.balance_domains(sched, core, When::Idle, acts);
            }
            next = next.min(self.cores[core].balance_due);
        }
        self.idle_balance_due = next;
        self.root.blocked_due = now + self.blocked_ticks();
    }

    /// Every [`WORKERS_NS`] a timer of the kernel's own goes off on an idle core (mm/compaction.c, `kcompactd`), which
    /// then balances what is due. That is how a kernel finds out that no core is over-utilised any more, where a single
    /// thread sleeps and wakes. Here the next core that falls idle looks around instead (`add_nr_running`). Only where
    /// threads are placed by energy: nothing else follows from it.
    pub(super) fn note_workers(&mut self) {
        let now = self.ticks();
        if self.uses_energy() && !self.kernel.is_by_load() && now >= self.root.workers_due {
            self.root.is_overloaded |= self.root.workers_due > 0;
            self.root.workers_due = now + WORKERS_NS / self.tick_ns;
        }
    }

    /// What threads have left on idle cores decays unseen; now and then it is brought up to date
    /// (`_nohz_idle_balance`, `NOHZ_STATS_KICK`).
    pub(super) fn note_blocked(&mut self) {
        let now = self.ticks();
        if self.kernel.is_by_load() || now < self.root.blocked_due {
            return;
        }
        self.root.blocked_due = now + self.blocked_ticks();
        for core in 0..self.cores.len() {
            if self.is_idle(core) {
                self.settle_core(core);
            }
        }
    }

    /// 32 ms (`LOAD_AVG_PERIOD`), in ticks.
    fn blocked_ticks(&self) -> u64 {
        32_000_000_u64.div_ceil(self.tick_ns)
    }

    /// The first core that has nothing to run.
    pub(super) fn first_idle(&self) -> Option<usize> {
        (0..self.cores.len()).find(|&core| self.is_idle(core))
    }
}
