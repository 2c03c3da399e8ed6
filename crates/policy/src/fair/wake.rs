//! Where a thread goes that wakes up or starts
//! (fair.c 6.18: `select_task_rq_fair`, `wake_wide`, `wake_affine`, `select_idle_sibling`, `select_idle_cpu`,
//! `select_idle_capacity`, `sched_balance_find_dst_cpu`).

use ampsched_model::Ns;

use super::Fair;
use super::state::{CAPACITY_ONE, EntityId, WEIGHT_ONE};
use super::stats::{GroupStats, GroupType};
use crate::Sched;
use crate::sched::{Capacities, Fit};

/// After that long, counts of wake-ups are halved (`record_wakee`).
const FLIPS_HALVED_NS: Ns = 1_000_000_000;

impl Fair {
    /// The core for a thread that wakes up; `this` is the core on which that happens.
    pub(super) fn core_for_woken(&mut self, sched: &Sched, id: EntityId, this: usize) -> usize {
        let last = self.core_of(id);
        self.record_wakee(id, this);
        if self.goes_by_demand() {
            return self.core_by_demand(sched, id, last, true);
        }
        if self.kernel.is_by_load() {
            return self.core_for_woken_by_load(sched, id, this, last);
        }
        if self.uses_energy() && !self.root.is_overutilised {
            if let Some(core) = self.cheapest_core(sched, id, last) {
                self.because = "it costs the least energy there";
                return core;
            }
        }
        let mut target = last;
        let share_domain = self.share_domain(this, last);
        if share_domain && !self.is_wide(id, this) && self.may_move(sched, id, this) && this != last
        {
            target = self.affine_core(id, this, last);
        }
        self.idle_sibling(sched, id, last, target)
    }

    /// Whether some domain has both cores.
    fn share_domain(&self, one: usize, other: usize) -> bool {
        let mut domains = self.domains.of_core[one].iter();
        one == other || domains.any(|level| self.domains.all[level.domain].cores.contains(&other))
    }

    /// Notes whom the thread of a core wakes (`record_wakee`).
    fn record_wakee(&mut self, id: EntityId, this: usize) {
        let thread = self.entities[id as usize].thread;
        let Some(current) = self.cores[this].current else { return };
        let now_ns = self.now_ns;
        let waker = &mut self.entities[current as usize];
        if now_ns > waker.flips_halved_ns + FLIPS_HALVED_NS {
            waker.flips /= 2;
            waker.flips_halved_ns = now_ns;
        }
        if waker.last_woken != thread {
            waker.last_woken = thread;
            waker.flips += 1;
        }
    }

    /// Whether waker and woken thread have so many partners that they should not share a cache (`wake_wide`).
    pub(super) fn is_wide(&self, id: EntityId, this: usize) -> bool {
        let Some(current) = self.cores[this].current else { return false };
        let (one, other) =
            (self.entities[current as usize].flips, self.entities[id as usize].flips);
        let (least, most) = (one.min(other), one.max(other));
        let factor =
            self.domains.cache[this].map_or(1, |cache| self.domains.all[cache].cores.len());
        let factor = factor as u32;
        least >= factor && most >= least * factor
    }

    /// The core of the waker, or that on which the thread ran last (`wake_affine`).
    pub(super) fn affine_core(&mut self, id: EntityId, this: usize, last: usize) -> usize {
        if self.is_idle(this) && self.domains.share_cache(this, last) {
            return if self.is_idle(last) { last } else { this };
        }
        if self.is_idle(last) {
            return last;
        }
        let load = self.load_of(id);
        let both = self.domains.of_core[this]
            .iter()
            .map(|level| &self.domains.all[level.domain])
            .find(|domain| domain.cores.contains(&last));
        let pct = both.map_or(100, |domain| 100 + (domain.imbalance_pct - 100) / 2);
        let here = (self.load_on(this) + load) * 100 * self.cores[last].capacity;
        let there = self.load_on(last).saturating_sub(load) * pct * self.cores[this].capacity;
        if here < there { this } else { last }
    }

    /// An idle core near the target, or the target (`select_idle_sibling`).
    pub(super) fn idle_sibling(
        &mut self,
        sched: &Sched,
        id: EntityId,
        last: usize,
        target: usize,
    ) -> usize {
        let is_asymmetric = self.domains.is_asymmetric && self.kernel.asymmetric;
        if is_asymmetric {
            self.sync(id);
        }
        let wants_whole = self.kernel.fits_idle_cores;
        let suits = |fair: &Self, core: usize| {
            fair.is_available(core)
                && (!is_asymmetric
                    || (fair.fits_on(id, core) && (!wants_whole || fair.is_core_idle(core))))
        };
        if suits(self, target) && self.may_move(sched, id, target) {
            self.because = "it ran there last, or near it, and the core is idle";
            return target;
        }
        // Idle cores where it ran before, but in another cluster (`prev_aff`).
        let mut beyond = None;
        if last != target
            && self.domains.share_cache(last, target)
            && suits(self, last)
            && self.may_move(sched, id, last)
        {
            if self.domains.share_cluster(last, target) {
                self.because = "it ran there last and the core is idle";
                return last;
            }
            beyond = Some(last);
        }
        let recent = usize::from(self.entities[id as usize].recent_core);
        self.entities[id as usize].recent_core = last as u16;
        if recent != last
            && recent != target
            && self.domains.share_cache(recent, target)
            && suits(self, recent)
            && self.may_move(sched, id, recent)
        {
            if self.domains.share_cluster(recent, target) {
                self.because = "it ran there before the last time and the core is idle";
                return recent;
            }
            beyond = beyond.or(Some(recent));
        }
        if is_asymmetric {
            if let Some(domain) = self.domains.asymmetric[target] {
                let found = self.idle_of_capacity(sched, id, target, domain);
                return self.or_allowed(sched, id, found.unwrap_or(target));
            }
        }
        let beside = self.idle_beside(sched, id, last, target);
        let found = beside.or_else(|| self.idle_by_scan(sched, id, target)).or(beyond);
        self.or_allowed(sched, id, found.unwrap_or(target))
    }

    /// A core, or the first that the thread may use (`select_fallback_rq`).
    pub(super) fn or_allowed(&mut self, sched: &Sched, id: EntityId, core: usize) -> usize {
        if self.may_move(sched, id, core) {
            return core;
        }
        let allowed = (0..self.cores.len()).find(|&core| self.may_move(sched, id, core));
        allowed.unwrap_or(core)
    }

    /// The next idle core of the last-level cache, looking at as many as is worth it (`select_idle_cpu`).
    pub(super) fn idle_by_scan(
        &mut self,
        sched: &Sched,
        id: EntityId,
        target: usize,
    ) -> Option<usize> {
        let cache = self.domains.cache[target]?;
        let domain = &self.domains.all[cache];
        let mut left =
            if self.kernel.scans_by_util { self.domains.scan[cache] + 1 } else { u64::MAX };
        if left == 1 {
            self.because = "cores are too busy to look for an idle one";
            return None;
        }
        if self.knows_idle_core(target) {
            return self.idle_core_by_scan(sched, id, target, cache);
        }
        let cluster = self.domains.cluster(target).map_or(&[][..], |cluster| &cluster.cores);
        let others = wrapped(&domain.cores, target + 1).filter(|core| !cluster.contains(core));
        for core in wrapped(cluster, target + 1).chain(others) {
            if !self.may_move(sched, id, core) {
                continue;
            }
            left -= 1;
            if left == 0 {
                break;
            }
            if self.is_available(core) {
                self.because = "it is the next idle core that shares the cache";
                return Some(core);
            }
        }
        self.because = "no core that shares the cache is idle";
        None
    }

    /// The next idle core where the thread fits, else the idle one of the greatest capacity; since 7.2 one of which the
    /// sibling is idle, too, comes first (`select_idle_capacity`).
    fn idle_of_capacity(
        &mut self,
        sched: &Sched,
        id: EntityId,
        target: usize,
        domain: usize,
    ) -> Option<usize> {
        let seeks_whole = self.kernel.fits_idle_cores && self.knows_idle_core(target);
        let bounds = self.kernel.scans_capacities_by_util;
        let mut left = if bounds { self.domains.scan[domain] } else { u64::MAX };
        if left == 0 && seeks_whole {
            return None;
        }
        let domain = &self.domains.all[domain];
        let mut best: Option<((bool, Fit, u64), usize)> = None;
        for core in wrapped(&domain.cores, target) {
            if !self.may_move(sched, id, core) {
                continue;
            }
            if left == 0 && !seeks_whole {
                break;
            }
            left = left.saturating_sub(1);
            if !self.is_available(core) {
                continue;
            }
            let (fit, is_whole) = (self.fit_on(id, core), !seeks_whole || self.is_core_idle(core));
            if fit == Fit::Well && is_whole {
                self.because = "it is the next idle core where it fits";
                return Some(core);
            }
            let Capacities { left, reach, .. } = self.cores[core].capacities();
            let worth = (is_whole, fit, if fit == Fit::Slow { reach } else { left });
            if best.is_none_or(|(of_best, _)| worth > of_best) {
                best = Some((worth, core));
            }
        }
        if seeks_whole && best.is_none_or(|((is_whole, ..), _)| !is_whole) {
            self.forget_idle_core(target);
        }
        self.because = "it fits on no idle core, and this is the greatest of them";
        best.map(|(_, core)| core)
    }

    /// The core for a thread that starts, created on `this`: from the largest domain down, the idlest group, in the
    /// smallest the idlest core (`sched_balance_find_dst_cpu`).
    pub(super) fn core_for_new(&mut self, sched: &Sched, id: EntityId, this: usize) -> usize {
        if self.goes_by_demand() {
            return self.core_by_demand(sched, id, this, false);
        }
        let allowed = |fair: &Self, core: usize| fair.may_move(sched, id, core);
        let mut core = this;
        let mut level = self.domains.of_core[core].len();
        while level > 0 {
            let number = self.domains.of_core[core][level - 1].domain;
            match self.idlest_group(sched, id, core, level - 1) {
                None => level -= 1,
                Some(group) => {
                    let found = self.idlest_core(sched, id, number, group, core);
                    // Go on below the domain, where the found core is.
                    core = found;
                    let size = self.domains.all[number].cores.len();
                    level = self.domains.of_core[core]
                        .iter()
                        .take_while(|own| self.domains.all[own.domain].cores.len() < size)
                        .count();
                }
            }
        }
        self.because = "it is the idlest core of the idlest group of cores";
        if allowed(self, core) { core } else { self.or_allowed(sched, id, core) }
    }

    /// The group of a domain that has most to spare; none: that of the core itself (`sched_balance_find_dst_group`).
    fn idlest_group(
        &mut self,
        sched: &Sched,
        id: EntityId,
        core: usize,
        level: usize,
    ) -> Option<usize> {
        if self.kernel.is_by_load() {
            return self.idlest_group_by_load(sched, id, core, level);
        }
        let (number, own) = {
            let level = &self.domains.of_core[core][level];
            (level.domain, level.own_group)
        };
        let count = self.domains.all[number].groups.len();
        let mut local: Option<GroupStats> = None;
        let mut idlest: Option<(usize, GroupStats)> = None;
        for step in 0..count {
            let group = (own + step) % count;
            let cores = &self.domains.all[number].groups[group].cores;
            if !cores.iter().any(|&core| self.may_move(sched, id, core)) {
                continue;
            }
            let stats = self.wakeup_stats(id, number, group);
            if group == own {
                local = Some(stats);
            } else if idlest.is_none_or(|(best, of_best)| {
                self.is_idler(number, (group, &stats), (best, &of_best))
            }) {
                idlest = Some((group, stats));
            }
        }
        let (group, stats) = idlest?;
        let Some(local) = local else { return Some(group) };
        let pct = self.domains.all[number].imbalance_pct;
        match local.kind.cmp(&stats.kind) {
            std::cmp::Ordering::Less => return None,
            std::cmp::Ordering::Greater => return Some(group),
            std::cmp::Ordering::Equal => {}
        }
        let stays = match local.kind {
            GroupType::Overloaded | GroupType::FullyBusy => {
                let tolerated = WEIGHT_ONE * (pct - 100) / 100;
                stats.mean_load >= local.mean_load + tolerated
                    || 100 * local.mean_load <= pct * stats.mean_load
            }
            GroupType::Imbalanced | GroupType::Packing | GroupType::Siblings => true,
            GroupType::Misfit => {
                let groups = &self.domains.all[number].groups;
                groups[own].capacity_max >= groups[group].capacity_max
            }
            GroupType::HasSpare => local.idle_cores >= stats.idle_cores,
        };
        (!stays).then_some(group)
    }

    /// `update_sg_wakeup_stats`.
    fn wakeup_stats(&mut self, id: EntityId, domain: usize, group: usize) -> GroupStats {
        let (asymmetric, pct) = {
            let own = &self.domains.all[domain];
            (own.is_asymmetric, own.imbalance_pct)
        };
        let mut stats = GroupStats { misfit_load: u64::from(asymmetric), ..GroupStats::default() };
        for index in 0..self.domains.all[domain].groups[group].cores.len() {
            let core = self.domains.all[domain].groups[group].cores[index];
            // Idle cores' averages decay unseen until they are read; the kernel looks here as they are.
            stats.load += self.load_on(core);
            stats.util += self.util_without(core, id);
            stats.runnable += self.runnable_on(core);
            let starts = u64::from(self.starter == Some(core));
            stats.able += u64::from(self.queues[core].runnable) + starts;
            stats.threads += u64::from(self.threads_on(core)) + starts;
            stats.capacity += self.cores[core].capacity;
            stats.cores += 1;
            stats.idle_cores += u64::from(self.is_idle(core) && starts == 0);
            if asymmetric && stats.misfit_load > 0 && self.fits_on(id, core) {
                stats.misfit_load = 0;
            }
        }
        stats.classify(pct, false);
        if matches!(stats.kind, GroupType::FullyBusy | GroupType::Overloaded) {
            stats.mean_load = stats.load * CAPACITY_ONE / stats.capacity.max(1);
        }
        stats
    }

    /// `update_pick_idlest`.
    fn is_idler(
        &self,
        domain: usize,
        (group, stats): (usize, &GroupStats),
        (best, of_best): (usize, &GroupStats),
    ) -> bool {
        let groups = &self.domains.all[domain].groups;
        match stats.kind.cmp(&of_best.kind) {
            std::cmp::Ordering::Less => return true,
            std::cmp::Ordering::Greater => return false,
            std::cmp::Ordering::Equal => {}
        }
        match stats.kind {
            GroupType::Overloaded | GroupType::FullyBusy => of_best.mean_load > stats.mean_load,
            GroupType::Imbalanced | GroupType::Packing | GroupType::Siblings => false,
            GroupType::Misfit => groups[best].capacity_max < groups[group].capacity_max,
            GroupType::HasSpare => {
                stats.idle_cores > of_best.idle_cores
                    || (stats.idle_cores == of_best.idle_cores && stats.util < of_best.util)
            }
        }
    }

    /// The core of a group that fell idle last, else the one of least load (`sched_balance_find_dst_group_cpu`).
    fn idlest_core(
        &mut self,
        sched: &Sched,
        id: EntityId,
        domain: usize,
        group: usize,
        this: usize,
    ) -> usize {
        if self.kernel.is_by_load() {
            return self.idlest_core_by_load(sched, id, domain, group, this);
        }
        let cores = &self.domains.all[domain].groups[group].cores;
        if cores.len() == 1 {
            return cores[0];
        }
        let (mut latest, mut found): (Ns, Option<usize>) = (0, None);
        let (mut least, mut least_core) = (u64::MAX, this);
        for &core in cores {
            if !self.may_move(sched, id, core) {
                continue;
            }
            if self.has_only_idlers(core) {
                return core;
            }
            if self.is_idle(core) {
                let since_ns = self.cores[core].idle_since_ns.unwrap_or(0);
                if since_ns > latest || found.is_none() {
                    (latest, found) = (since_ns, Some(core));
                }
            } else if found.is_none() && self.load_on(core) < least {
                (least, least_core) = (self.load_on(core), core);
            }
        }
        found.unwrap_or(least_core)
    }
}

/// All cores in their order, but from a number on (`for_each_cpu_wrap`).
pub(super) fn wrapped(cores: &[usize], from: usize) -> impl Iterator<Item = usize> {
    let start = cores.iter().position(|&core| core >= from).unwrap_or(0);
    cores[start..].iter().chain(&cores[..start]).copied()
}
