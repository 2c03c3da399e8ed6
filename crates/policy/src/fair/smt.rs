//! Cores with two threads (SMT): each thread is a core here, and the two are siblings
//! (fair.c 6.18: `is_core_idle`, `select_idle_core`, `select_idle_smt`, `sched_asym`, `smt_balance`; 6.1:
//! `asym_smt_can_pull_tasks`).

use ampsched_model::CoreId;

use super::Fair;
use super::domains::Domain;
use super::kernel::Kernel;
use super::state::{CAPACITY_ONE, EntityId};
use super::stats::{GroupStats, When, sibling_imbalance};
use super::wake::wrapped;
use crate::{Sched, Topology};

/// What the two threads of a core can do together, up to 5.2 (`smt_gain`).
const GAIN: u64 = 1178;

/// Capacity of a core whose capacity the kernel is not told: half of what a physical core gains by its second thread,
/// up to 5.2 (3.16 `default_scale_smt_capacity`, 4.14 `arch_scale_cpu_capacity`).
pub(super) fn capacity(kernel: &Kernel, topology: &Topology, core: CoreId) -> u64 {
    let is_shared = kernel.is_by_load() && topology.sibling(core).is_some();
    if is_shared { GAIN / 2 } else { CAPACITY_ONE }
}

impl Fair {
    /// Whether the sibling of a core is idle; yes without SMT (`is_core_idle`).
    #[inline]
    pub(super) fn is_core_idle(&self, core: usize) -> bool {
        self.domains.sibling(core).is_none_or(|other| self.is_idle(other))
    }

    /// The domain for which it is noted whether a physical core is idle (`sd_llc_shared`; since 7.2 that of unequal
    /// capacities, `sd_balance_shared`).
    fn noting_domain(&self, core: usize) -> Option<usize> {
        let asymmetric = self.domains.asymmetric[core].filter(|_| self.kernel.fits_idle_cores);
        asymmetric.or(self.domains.cache[core])
    }

    /// A core has nothing to run: if its sibling has nothing either, a physical core is idle (`update_idle_core`).
    pub(super) fn note_idle_core(&mut self, core: usize) {
        if self.domains.has_smt() && self.is_core_idle(core) {
            if let Some(domain) = self.noting_domain(core) {
                self.domains.has_idle_core[domain] = true;
            }
        }
    }

    /// Whether some physical core near another is idle, as far as is known (`test_idle_cores`); not without SMT.
    #[inline]
    pub(super) fn knows_idle_core(&self, near: usize) -> bool {
        self.domains.has_smt()
            && self.noting_domain(near).is_some_and(|domain| self.domains.has_idle_core[domain])
    }

    /// No physical core is idle (`set_idle_cores`).
    pub(super) fn forget_idle_core(&mut self, near: usize) {
        if let Some(domain) = self.noting_domain(near) {
            self.domains.has_idle_core[domain] = false;
        }
    }

    /// The idle sibling of the thread's last core, if no physical core is idle (`select_idle_smt`).
    pub(super) fn idle_beside(
        &mut self,
        sched: &Sched,
        id: EntityId,
        last: usize,
        target: usize,
    ) -> Option<usize> {
        if self.knows_idle_core(target) || !self.domains.share_cache(last, target) {
            return None;
        }
        let other = self.domains.sibling(last)?;
        let is_found = self.may_move(sched, id, other) && self.is_available(other);
        self.because = "no physical core is idle, but the sibling of its last core is";
        is_found.then_some(other)
    }

    /// The next core whose sibling is idle, too, else the first idle one of those passed; however busy they are
    /// (`select_idle_cpu` with `has_idle_core`, `select_idle_core`).
    pub(super) fn idle_core_by_scan(
        &mut self,
        sched: &Sched,
        id: EntityId,
        target: usize,
        cache: usize,
    ) -> Option<usize> {
        let domain = &self.domains.all[cache];
        let cluster = self.domains.cluster(target).map_or(&[][..], |cluster| &cluster.cores);
        let others = wrapped(&domain.cores, target + 1).filter(|core| !cluster.contains(core));
        let mut idle = None;
        for core in wrapped(cluster, target + 1).chain(others) {
            if !self.may_move(sched, id, core) {
                continue;
            }
            if self.is_idle(core) && self.is_core_idle(core) {
                self.because = "it is the next physical core that is idle";
                return Some(core);
            }
            idle = idle.or_else(|| self.idle_of_core(sched, id, core));
        }
        self.forget_idle_core(target);
        self.because = "no physical core is idle, and it is the first idle thread of one";
        idle
    }

    /// The first idle thread of a core's physical core that is allowed.
    fn idle_of_core(&self, sched: &Sched, id: EntityId, core: usize) -> Option<usize> {
        let other = self.domains.sibling(core).unwrap_or(core);
        [core.min(other), core.max(other)]
            .into_iter()
            .find(|&each| self.is_available(each) && self.may_move(sched, id, each))
    }

    /// Whether a core's priority counts: between cores only if its physical core is otherwise idle
    /// (`sched_use_asym_prio`, since 6.4).
    #[inline]
    pub(super) fn goes_by_priority(&self, domain: &Domain, core: usize) -> bool {
        domain.are_siblings || !self.kernel.relieves_siblings || self.is_core_idle(core)
    }

    /// Whether a core comes before those of a group that has something to run, and so takes it (`sched_group_asym`;
    /// up to 6.3 `asym_smt_can_pull_tasks`). `preferred`: the group's best core.
    pub(super) fn comes_before(
        &self,
        core: usize,
        domain: usize,
        preferred: usize,
        stats: &GroupStats,
        local: &GroupStats,
    ) -> bool {
        let is_preferred = self.is_preferred(core, preferred);
        if !self.domains.has_smt() {
            return is_preferred;
        }
        let busy = stats.cores - stats.idle_cores;
        if self.kernel.relieves_siblings {
            let counts = self.goes_by_priority(&self.domains.all[domain], core);
            return counts && is_preferred && !(stats.are_siblings && busy != 1);
        }
        match (local.are_siblings, stats.are_siblings) {
            (false, _) => busy >= 2 && stats.are_siblings || is_preferred,
            (true, true) => is_preferred && busy == local.cores - local.idle_cores + 1,
            (true, false) => is_preferred && local.threads == 0,
        }
    }

    /// Whether an idle core stops another for its thread at once (`asym_active_balance`): if it comes before, or the
    /// other's sibling is busy, too.
    pub(super) fn packs_at_once(&self, domain: &Domain, core: usize, source: usize) -> bool {
        let relieves = || self.domains.has_smt() && !self.goes_by_priority(domain, source);
        domain.packs
            && self.goes_by_priority(domain, core)
            && (self.is_preferred(core, source) || relieves())
    }

    /// Whether threads are to spread over a group's siblings (`prefer_sibling`): if it has several cores; up to 6.5 if
    /// the searching core's own has.
    #[inline]
    pub(super) fn is_spread_out(&self, busiest: &GroupStats, local: &GroupStats) -> bool {
        let is_by_own = self.domains.has_smt() && !self.kernel.relieves_siblings;
        if is_by_own { local.cores > 1 } else { busiest.cores > 1 }
    }

    /// How many threads more the busiest group has than it should: up to 6.5 whatever the numbers of cores are.
    pub(super) fn gap(&self, when: When, busiest: &GroupStats, local: &GroupStats) -> u64 {
        if self.domains.has_smt() && !self.kernel.relieves_siblings {
            return busiest.threads.saturating_sub(local.threads);
        }
        sibling_imbalance(when, busiest, local)
    }

    /// The core of a group whose turn it is to balance between cores: the first idle one; since 6.6 sooner one of which
    /// the sibling is idle, too (`should_we_balance`).
    pub(super) fn first_idle_of(&self, domain: &Domain, cores: &[usize]) -> Option<usize> {
        let mut idle = cores.iter().copied().filter(|&core| self.is_idle(core));
        let first = idle.next()?;
        let seeks_whole =
            self.domains.has_smt() && self.kernel.relieves_siblings && !domain.are_siblings;
        if !seeks_whole || self.is_core_idle(first) {
            return Some(first);
        }
        Some(idle.find(|&core| self.is_core_idle(core)).unwrap_or(first))
    }

    /// 3.16: the first core of a group that is wholly idle, of the cache's physical cores and then of the target's
    /// siblings (`select_idle_sibling`).
    pub(super) fn idle_group(
        &mut self,
        sched: &Sched,
        id: EntityId,
        target: usize,
    ) -> Option<usize> {
        self.because = "it is in the next group of cores that is wholly idle";
        for level in self.domains.of_core[target].iter().rev() {
            let groups = &self.domains.all[level.domain].groups;
            if !self.domains.all[level.domain].shares_cache {
                continue;
            }
            for step in 0..groups.len() {
                let cores = &groups[(level.own_group + step) % groups.len()].cores;
                if cores.iter().all(|&core| core != target && self.is_idle(core)) {
                    let mut allowed = cores.iter().copied();
                    if let Some(core) = allowed.find(|&core| self.may_move(sched, id, core)) {
                        return Some(core);
                    }
                }
            }
        }
        self.because = "no group of cores that shares the cache is wholly idle";
        None
    }

    /// 4.14: the next core of which the sibling is idle, too, if there is one as far as is known (`select_idle_core`).
    pub(super) fn idle_core(
        &mut self,
        sched: &Sched,
        id: EntityId,
        target: usize,
    ) -> Option<usize> {
        if !self.knows_idle_core(target) {
            return None;
        }
        let cache = self.domains.cache[target]?;
        let found = wrapped(&self.domains.all[cache].cores, target).find(|&core| {
            self.may_move(sched, id, core) && self.is_idle(core) && self.is_core_idle(core)
        });
        match found {
            Some(_) => self.because = "it is the next physical core that is idle",
            None => self.forget_idle_core(target),
        }
        found
    }

    /// 4.14: the idle sibling of the target (`select_idle_smt`).
    pub(super) fn idle_sibling_of(
        &mut self,
        sched: &Sched,
        id: EntityId,
        target: usize,
    ) -> Option<usize> {
        let other = self.domains.sibling(target)?;
        let is_found = self.may_move(sched, id, other) && self.is_idle(other);
        if is_found {
            self.because = "it is the idle sibling of that core";
        }
        is_found.then_some(other)
    }
}
