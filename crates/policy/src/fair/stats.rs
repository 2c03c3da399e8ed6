//! Who is busiest in a domain, and by how much
//! (fair.c 6.18: `update_sd_lb_stats`, `group_classify`, `find_busiest_group`, `calculate_imbalance`,
//! `find_busiest_queue`).

use super::Fair;
use super::load::is_greater;
use super::state::CAPACITY_ONE;

/// Why a core balances (`enum cpu_idle_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// It has something to run.
    Busy,
    /// It has been idle for a while.
    Idle,
    /// It has just nothing more to run.
    NewlyIdle,
}

/// What is wrong with a group, the worst last (`enum group_type`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum GroupType {
    /// It has capacity to spare.
    #[default]
    HasSpare,
    /// It is busy, and threads do not hinder each other much.
    FullyBusy,
    /// A thread is too big for its core.
    Misfit,
    /// Both threads of a physical core are busy (`group_smt_balance`, since 6.6).
    Siblings,
    /// A better core is idle.
    Packing,
    /// Affinities kept balancing from working.
    Imbalanced,
    /// There is more to do than capacity.
    Overloaded,
}

/// What is moved (`enum migration_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moves {
    /// Threads of so much load.
    Load,
    /// Threads of so much utilisation.
    Util,
    /// Number of threads.
    Threads,
    /// The thread that is too big.
    Misfit,
}

/// The state of a group (`struct sg_lb_stats`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GroupStats {
    pub load: u64,
    pub capacity: u64,
    pub util: u64,
    pub runnable: u64,
    /// Queued threads, sleepers that still pay included, and those that can run.
    pub threads: u64,
    pub able: u64,
    pub idle_cores: u64,
    pub cores: u64,
    /// Those of them whose sibling is another one of them.
    pub seconds: u64,
    pub misfit_load: u64,
    pub packs: bool,
    /// They are the two threads of one physical core, and whether it is to be relieved of one.
    pub are_siblings: bool,
    pub is_to_relieve: bool,
    pub mean_load: u64,
    pub kind: GroupType,
}

/// What a search has found: the group, and what to move from there to the searching core.
#[derive(Clone, Copy, Debug)]
pub(super) struct Busiest {
    pub group: usize,
    pub moves: Moves,
    pub imbalance: u64,
}

impl GroupStats {
    /// `group_has_capacity`.
    fn has_capacity(&self, imbalance_pct: u64) -> bool {
        self.threads < self.cores
            || (self.capacity * imbalance_pct >= self.runnable * 100
                && self.capacity * 100 > self.util * imbalance_pct)
    }

    /// `group_is_overloaded`.
    fn is_overloaded(&self, imbalance_pct: u64) -> bool {
        self.threads > self.cores
            && (self.capacity * 100 < self.util * imbalance_pct
                || self.capacity * imbalance_pct < self.runnable * 100)
    }

    /// `group_classify`.
    pub(super) fn classify(&mut self, imbalance_pct: u64, is_imbalanced: bool) {
        self.kind = if self.is_overloaded(imbalance_pct) {
            GroupType::Overloaded
        } else if is_imbalanced {
            GroupType::Imbalanced
        } else if self.packs {
            GroupType::Packing
        } else if self.is_to_relieve {
            GroupType::Siblings
        } else if self.misfit_load > 0 {
            GroupType::Misfit
        } else if !self.has_capacity(imbalance_pct) {
            GroupType::FullyBusy
        } else {
            GroupType::HasSpare
        };
    }
}

impl Fair {
    /// The busiest group of a core's domain, and what to do about it; none if all is well.
    pub(super) fn find_busiest(
        &mut self,
        core: usize,
        level: usize,
        when: When,
    ) -> Option<Busiest> {
        let (number, own_group) = {
            let level = &self.domains.of_core[core][level];
            (level.domain, level.own_group)
        };
        let is_root = level + 1 == self.domains.of_core[core].len();
        let (mut local, mut total) = (GroupStats::default(), GroupStats::default());
        let mut busiest: Option<(usize, GroupStats)> = None;
        let (mut is_overloaded, mut is_overutilised) = (false, false);
        self.note_capacity(core, level, when);
        let mut others = std::mem::take(&mut self.group_stats);
        others.clear();
        let count = self.domains.all[number].groups.len();
        for step in 0..count {
            // From the own group on, as the kernel's ring of groups goes.
            let group = (own_group + step) % count;
            let is_local = group == own_group;
            let stats = self.group_stats(
                core,
                (number, group),
                (!is_local).then_some(&local),
                when,
                (&mut is_overloaded, &mut is_overutilised),
            );
            total.load += stats.load;
            total.capacity += stats.capacity;
            total.util += stats.util;
            if is_local {
                local = stats;
            } else {
                others.push((group, stats));
            }
        }
        for &(group, stats) in &others {
            if self.is_busier(core, number, (group, &stats), busiest, local.kind) {
                busiest = Some((group, stats));
            }
        }
        self.group_stats = others;
        if is_root {
            self.root.is_overloaded = is_overloaded;
            self.root.is_overutilised = is_overutilised;
        } else if is_overutilised {
            self.root.is_overutilised = true;
        }
        self.note_idle_scan(number, when, total.util);
        let (group, stats) = busiest?;
        self.judge(number, when, local, (group, stats), total)
    }

    /// `update_sg_lb_stats`; `local`: the state of the own group, if it is another.
    pub(super) fn group_stats(
        &mut self,
        core: usize,
        (domain, group): (usize, usize),
        local: Option<&GroupStats>,
        when: When,
        (is_overloaded, is_overutilised): (&mut bool, &mut bool),
    ) -> GroupStats {
        let mut stats = GroupStats::default();
        let own = &self.domains.all[domain];
        let (asymmetric, packs, pct) = (own.is_asymmetric, own.packs, own.imbalance_pct);
        for index in 0..self.domains.all[domain].groups[group].cores.len() {
            let other = self.domains.all[domain].groups[group].cores[index];
            let load = self.load_on(other);
            stats.load += load;
            stats.util += self.util_on(other);
            stats.runnable += self.runnable_on(other);
            stats.able += u64::from(self.queues[other].runnable);
            let threads = self.threads_on(other);
            stats.threads += u64::from(threads);
            stats.capacity += self.cores[other].capacity;
            stats.cores += 1;
            *is_overutilised |= self.is_overutilised(other);
            *is_overloaded |= threads > 1;
            if threads == 0 {
                stats.idle_cores += 1;
                continue;
            }
            if asymmetric {
                let misfit = self.cores[other].misfit_load;
                stats.misfit_load = stats.misfit_load.max(misfit);
                *is_overloaded |= misfit > 0;
            } else if when != When::Busy
                && self.queues[other].runnable == 1
                && self.is_reduced(other, pct)
            {
                // `sched_reduced_capacity` (since 5.19).
                stats.misfit_load = stats.misfit_load.max(load);
            }
        }
        let own = &self.domains.all[domain].groups[group];
        stats.are_siblings = own.are_siblings;
        stats.seconds = stats.cores - own.physical;
        if let Some(local) = local.filter(|_| when != When::Busy && stats.able > 0) {
            stats.packs = packs && self.comes_before(core, domain, own.preferred, &stats, local);
            stats.is_to_relieve =
                self.kernel.relieves_siblings && stats.are_siblings && stats.able > 1;
        }
        stats.classify(pct, false);
        if stats.kind == GroupType::Overloaded {
            stats.mean_load = stats.load * CAPACITY_ONE / stats.capacity.max(1);
        }
        stats
    }

    /// Whether a core comes before another where threads are packed (`sched_asym_prefer`).
    pub(super) fn is_preferred(&self, one: usize, other: usize) -> bool {
        self.domains.priority[one] > self.domains.priority[other]
    }

    /// Whether a group is busier than the busiest so far (`update_sd_pick_busiest`).
    pub(super) fn is_busier(
        &self,
        core: usize,
        domain: usize,
        (group, stats): (usize, &GroupStats),
        best: Option<(usize, GroupStats)>,
        local: GroupType,
    ) -> bool {
        if stats.able == 0 {
            return false;
        }
        let domain = &self.domains.all[domain];
        let own_capacity = self.cores[core].capacity;
        if domain.is_asymmetric
            && stats.kind == GroupType::Misfit
            && (!is_greater(own_capacity, domain.groups[group].capacity_max)
                || local != GroupType::HasSpare
                || (self.kernel.fits_idle_cores && !self.is_core_idle(core)))
        {
            return false;
        }
        // It begins with none: as a group with capacity to spare and endlessly many idle cores.
        let are_siblings = stats.are_siblings;
        let none = GroupStats { idle_cores: u64::MAX, are_siblings, ..GroupStats::default() };
        let (best_group, best) = best.unwrap_or((group, none));
        let is_fuller = stats.idle_cores < best.idle_cores
            || (stats.idle_cores == best.idle_cores && stats.threads > best.threads);
        let busier = match stats.kind.cmp(&best.kind) {
            std::cmp::Ordering::Greater => return true,
            std::cmp::Ordering::Less => return false,
            std::cmp::Ordering::Equal => match stats.kind {
                GroupType::Overloaded => return stats.mean_load > best.mean_load,
                GroupType::Imbalanced => return false,
                GroupType::Packing => {
                    let [of_best, own] =
                        [best_group, group].map(|group| domain.groups[group].preferred);
                    return self.is_preferred(of_best, own);
                }
                GroupType::Misfit => return stats.misfit_load > best.misfit_load,
                GroupType::Siblings if stats.idle_cores + best.idle_cores > 0 => is_fuller,
                // Their mean loads are not computed: the last one is taken (since 6.6), or the first of siblings.
                GroupType::FullyBusy | GroupType::Siblings => !best.are_siblings,
                // A single thread of siblings has a physical core for itself: better another group's.
                GroupType::HasSpare
                    if self.kernel.relieves_siblings && are_siblings != best.are_siblings =>
                {
                    !are_siblings || stats.able > 1
                }
                GroupType::HasSpare => is_fuller,
            },
        };
        busier && !self.is_left_alone(core, domain, group, stats)
    }

    /// A group that is not overloaded, of greater cores than the searching one, is better off where it is.
    fn is_left_alone(
        &self,
        core: usize,
        domain: &super::domains::Domain,
        group: usize,
        stats: &GroupStats,
    ) -> bool {
        domain.is_asymmetric
            && stats.kind <= GroupType::FullyBusy
            && is_greater(domain.groups[group].capacity_min, self.cores[core].capacity)
    }

    /// `find_busiest_group`, once the groups are known.
    pub(super) fn judge(
        &self,
        domain: usize,
        when: When,
        mut local: GroupStats,
        (group, busiest): (usize, GroupStats),
        total: GroupStats,
    ) -> Option<Busiest> {
        let own = &self.domains.all[domain];
        let found =
            |moves, imbalance: u64| (imbalance > 0).then_some(Busiest { group, moves, imbalance });
        match busiest.kind {
            GroupType::Misfit if own.is_asymmetric => return found(Moves::Misfit, 1),
            GroupType::Misfit => return found(Moves::Load, busiest.misfit_load),
            GroupType::Packing => return found(Moves::Threads, busiest.able),
            GroupType::Imbalanced => return found(Moves::Threads, 1),
            _ => {}
        }
        // With an energy model, nothing is balanced while no core is over-utilised.
        if self.uses_energy() && !self.root.is_overutilised {
            return None;
        }
        if local.kind > busiest.kind {
            return None;
        }
        let mean = |stats: &GroupStats| stats.load * CAPACITY_ONE / stats.capacity.max(1);
        let overall = mean(&total);
        let spreads = own.spreads && self.is_spread_out(&busiest, &local);
        let gap = self.gap(when, &busiest, &local);
        if local.kind == GroupType::Overloaded {
            if local.mean_load >= busiest.mean_load
                || local.mean_load >= overall
                || 100 * busiest.mean_load <= own.imbalance_pct * local.mean_load
            {
                return None;
            }
        } else {
            let is_forced = spreads && local.kind == GroupType::HasSpare && gap > 1;
            if !is_forced && busiest.kind != GroupType::Overloaded {
                // A core without a sibling takes a thread of one with two (`smt_vs_nonsmt_groups`).
                let relieves = busiest.kind == GroupType::Siblings && !local.are_siblings;
                let others_idle = busiest.cores > 1 && local.idle_cores <= busiest.idle_cores + 1;
                if when == When::Busy || (!relieves && (others_idle || busiest.able == 1)) {
                    return None;
                }
            }
        }
        // `calculate_imbalance`.
        if busiest.kind == GroupType::Siblings {
            return found(Moves::Threads, 1);
        }
        if local.kind == GroupType::HasSpare {
            if busiest.kind > GroupType::FullyBusy && !own.shares_cache {
                let room = local.capacity.max(local.util) - local.util;
                if when != When::Busy && room == 0 {
                    return found(Moves::Threads, 1);
                }
                return found(Moves::Util, room);
            }
            if busiest.cores == 1 || spreads {
                return found(Moves::Threads, gap / 2);
            }
            let gap = local.idle_cores.saturating_sub(busiest.idle_cores);
            return found(Moves::Threads, gap / 2);
        }
        let mut busiest_mean = busiest.mean_load;
        if local.kind < GroupType::Overloaded {
            local.mean_load = mean(&local);
            if busiest.kind < GroupType::Overloaded {
                busiest_mean = mean(&busiest);
            }
            if local.mean_load >= busiest_mean || local.mean_load >= overall {
                return None;
            }
        }
        let given = busiest_mean.saturating_sub(overall) * busiest.capacity;
        let taken = overall.saturating_sub(local.mean_load) * local.capacity;
        found(Moves::Load, given.min(taken) / CAPACITY_ONE)
    }

    /// The core of a group from which threads are taken (`find_busiest_queue`).
    pub(super) fn busiest_core(&self, core: usize, level: usize, found: &Busiest) -> Option<usize> {
        let domain = &self.domains.all[self.domains.of_core[core][level].domain];
        let own_capacity = self.cores[core].capacity;
        let mut best: Option<usize> = None;
        let (mut most, mut most_capacity) = (0, 1);
        for &other in &domain.groups[found.group].cores {
            let able = u64::from(self.queues[other].runnable);
            let capacity = self.cores[other].capacity;
            let is_single_kept = (domain.is_asymmetric
                && !is_greater(own_capacity, capacity)
                && (!self.kernel.fits_idle_cores || self.is_core_idle(other)))
                || (domain.packs
                    && self.goes_by_priority(domain, other)
                    && self.is_preferred(other, core));
            if able == 0 || (able == 1 && is_single_kept) {
                continue;
            }
            match found.moves {
                Moves::Load => {
                    let load = self.load_on(other);
                    let is_reduced = self.is_reduced(other, domain.imbalance_pct);
                    if able == 1 && load > found.imbalance && !is_reduced {
                        continue;
                    }
                    if load * most_capacity > most * capacity {
                        (best, most, most_capacity) = (Some(other), load, capacity);
                    }
                }
                Moves::Util => {
                    let util = self.boosted_on(other);
                    if able > 1 && util > most {
                        (best, most) = (Some(other), util);
                    }
                }
                Moves::Threads => {
                    if able > most {
                        (best, most) = (Some(other), able);
                    }
                }
                Moves::Misfit => {
                    if self.cores[other].misfit_load > most {
                        (best, most) = (Some(other), self.cores[other].misfit_load);
                    }
                }
            }
        }
        best
    }

    /// How many cores searches for an idle one look at from now on: fewer the busier they are
    /// (`update_idle_cpu_scan`).
    pub(super) fn note_idle_scan(&mut self, domain: usize, when: When, util: u64) {
        let own = &self.domains.all[domain];
        if when == When::NewlyIdle || !own.shares_cache || !self.kernel.scans_by_util {
            return;
        }
        let cores = own.cores.len() as u64;
        let mean = util / cores;
        let pct = own.imbalance_pct;
        let busy = (mean * mean * pct * pct / (10_000 * CAPACITY_ONE)).min(CAPACITY_ONE);
        self.domains.scan[domain] = (CAPACITY_ONE - busy) * cores / CAPACITY_ONE;
    }
}

/// How many threads more the busiest group has than it should next to the searching one (`sibling_imbalance`).
pub(super) fn sibling_imbalance(when: When, busiest: &GroupStats, local: &GroupStats) -> u64 {
    if when == When::Busy || busiest.threads == 0 {
        return 0;
    }
    let [of_busiest, of_local] = [busiest, local].map(|stats| stats.cores - stats.seconds);
    if of_busiest == of_local {
        return busiest.threads.saturating_sub(local.threads);
    }
    // Groups of different size: by threads per physical core, rounded.
    let (there, here) = (of_local * busiest.threads, of_busiest * local.threads);
    let both = of_busiest + of_local;
    let gap = (2 * there.saturating_sub(here) + both) / both;
    if gap <= 1 && local.threads == 0 && busiest.threads > 1 { 2 } else { gap }
}
