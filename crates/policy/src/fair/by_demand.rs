//! Balancing where threads go by demand: by load as in 4.14, but with misfits, and only where cores lack capacity
//! (kernel/sched/fair.c of Qualcomm's msm-4.14: `sd_overutilized`, `update_sd_pick_busiest`, `find_busiest_group`,
//! `calculate_imbalance`, `find_busiest_queue`, `can_migrate_task`, `need_active_balance`, `idle_balance`).

use super::Fair;
use super::by_load::{Busy, Judge, LoadStats, small_imbalance};
use super::demand::MARGIN_UP;
use super::state::{CAPACITY_ONE, EntityId};
use super::stats::When;

/// A core with one thread and a smaller one is left to itself (`sched_small_task_threshold`).
const SMALL: u64 = 102;

impl Judge {
    /// How much load is to be moved; none: nothing is wrong (`find_busiest_group`).
    pub fn imbalance_by_demand(
        &self,
        local: &LoadStats,
        busiest: &LoadStats,
        mean: u64,
    ) -> Option<u64> {
        if busiest.threads == 0 {
            return None;
        }
        let is_forced =
            busiest.is_imbalanced || busiest.is_misfit() || self.trumps_load(local, busiest);
        if !is_forced && self.is_even(local, busiest, mean) {
            return None;
        }
        Some(self.calculate_by_demand(local, *busiest, mean))
    }

    /// `calculate_imbalance`.
    fn calculate_by_demand(&self, local: &LoadStats, mut busiest: LoadStats, mean: u64) -> u64 {
        if busiest.is_imbalanced {
            busiest.per_thread = busiest.per_thread.min(mean);
        }
        let helps = busiest.is_overloaded && !local.is_overloaded && !local.is_imbalanced;
        let is_level = busiest.mean <= mean || local.mean >= mean;
        if is_level && !busiest.is_misfit() {
            return if helps { busiest.per_thread } else { small(local, &busiest, 0) };
        }
        let mut imbalance = if is_level { 0 } else { self.gap(local, &busiest, mean) };
        if busiest.is_misfit() && (self.when == When::NewlyIdle || local.threads < local.cores) {
            imbalance = imbalance.max(busiest.misfit);
        }
        if imbalance >= busiest.per_thread {
            imbalance
        } else if helps && self.when != When::Busy {
            busiest.per_thread
        } else {
            small(local, &busiest, imbalance)
        }
    }
}

/// `fix_small_imbalance`: a group with room takes a thread even if it is weaker.
fn small(local: &LoadStats, busiest: &LoadStats, imbalance: u64) -> u64 {
    let found = small_imbalance(local, busiest, imbalance);
    let is_crowded = busiest.is_overloaded && busiest.threads > busiest.cores;
    let takes = local.threads < local.cores && local.capacity < busiest.capacity;
    if found == imbalance && is_crowded && takes { busiest.per_thread } else { found }
}

impl Fair {
    /// Notes whether a core lacks capacity, for its smallest domain (`update_overutilized_status`).
    pub(super) fn note_overutilised(&mut self, core: usize) {
        if self.goes_by_demand() && self.lacks_capacity(core, 0) {
            if let Some(level) = self.domains.of_core[core].first() {
                let domain = level.domain;
                self.domains.all[domain].is_overutilised = true;
            }
        }
    }

    /// Whether a core is to balance a domain at all (`rebalance_domains`).
    pub(super) fn may_balance(&self, core: usize, level: usize) -> bool {
        let domain = self.domains.of_core[core][level].domain;
        !self.goes_by_demand() || self.domains.all[domain].is_overutilised
    }

    /// Whether it is to do so at each tick, since a misfit waits there (`get_sd_balance_interval`).
    pub(super) fn is_urgent(&self, core: usize, level: usize) -> bool {
        let domain = &self.domains.all[self.domains.of_core[core][level].domain];
        self.goes_by_demand()
            && domain.is_overutilised
            && domain.cores.iter().any(|&core| self.cores[core].misfit_load > 0)
    }

    /// What a search of a domain has seen of its cores (end of `update_sd_lb_stats`).
    pub(super) fn note_domain(&mut self, core: usize, level: usize, used: u64, capacity: u64) {
        let domain = self.domains.of_core[core][level].domain;
        let lack = |&&core: &&usize| self.lacks_capacity(core, 0);
        let lacking: Vec<usize> =
            self.domains.all[domain].cores.iter().filter(lack).copied().collect();
        self.domains.all[domain].is_overutilised = !lacking.is_empty();
        let above: Vec<usize> =
            self.domains.of_core[core][level + 1..].iter().map(|level| level.domain).collect();
        if lacking.iter().any(|&core| self.cores[core].misfit_load > 0) {
            let unequal = above.iter().find(|&&above| self.domains.all[above].is_asymmetric);
            if let Some(&above) = unequal {
                self.domains.all[above].is_overutilised = true;
            }
        }
        if let Some(&next) = above.first() {
            self.domains.all[next].is_overutilised |= capacity * CAPACITY_ONE < used * MARGIN_UP;
        }
    }

    /// Whether threads may move between two groups though no core lacks capacity: to a core that has just fallen idle,
    /// not from a weaker one, and from an equal one only if that has several (`find_busiest_group`).
    pub(super) fn may_take(
        &self,
        domain: usize,
        when: When,
        own: usize,
        busiest: Option<usize>,
    ) -> bool {
        let own_domain = &self.domains.all[domain];
        if own_domain.is_overutilised {
            return true;
        }
        let Some(busiest) = busiest.filter(|_| when == When::NewlyIdle) else { return false };
        let first = |group: usize| own_domain.groups[group].cores[0];
        let capacity = |group: usize| self.cores[first(group)].capacity_max;
        match capacity(own).cmp(&capacity(busiest)) {
            std::cmp::Ordering::Greater => false,
            std::cmp::Ordering::Equal => self.threads_on(first(busiest)) >= 2,
            std::cmp::Ordering::Less => true,
        }
    }

    /// Whether a group is busier than the busiest so far (`update_sd_pick_busiest`).
    pub(super) fn is_busier_by_demand(
        &self,
        domain: usize,
        (own, local): (usize, &LoadStats),
        (group, stats): (usize, &LoadStats),
        best: &LoadStats,
    ) -> bool {
        let domain = &self.domains.all[domain];
        let [own, group] = [own, group].map(|group| &domain.groups[group]);
        let is_smaller = |one: u64, other: u64| one * MARGIN_UP < other * CAPACITY_ONE;
        if stats.is_misfit()
            && (!is_smaller(group.capacity_max, own.capacity_max) || !local.has_room)
        {
            return false;
        }
        if stats.rank() != best.rank() {
            return stats.rank() > best.rank();
        }
        if stats.mean <= best.mean {
            return false;
        }
        if !domain.is_asymmetric {
            return true;
        }
        if stats.threads <= stats.cores && is_smaller(own.capacity_min, group.capacity_min) {
            return false;
        }
        let (one, other) = (own.capacity_min, group.capacity_min);
        let are_similar = one.abs_diff(other) < one.max(other) / 8;
        match stats.rank() {
            0 => are_similar,
            1 => stats.misfit >= best.misfit,
            _ => true,
        }
    }

    /// Whether a search for the busiest core of a group passes one over: a stronger one that has a single thread, or a
    /// small one besides (`find_busiest_queue`).
    pub(super) fn keeps_its_thread(&self, domain: usize, core: usize, other: usize) -> bool {
        let is_stronger = self.cores[core].capacity_max < self.cores[other].capacity_max;
        if !self.goes_by_demand() || !self.domains.all[domain].is_asymmetric || !is_stronger {
            return false;
        }
        let is_small = |id: EntityId| self.demand_of(id) < SMALL;
        match self.threads_on(other) {
            1 => true,
            2 => self.cores[other].current.is_some_and(is_small),
            _ => false,
        }
    }

    /// Whether a thread is left where it is: what has been on a core that has just fallen idle would be more than what
    /// has been on its own, or, at the first attempt, it does not fit on a weaker core (`can_migrate_task`).
    pub(super) fn is_better_left(
        &mut self,
        (core, source): (usize, usize),
        domain: usize,
        when: When,
        id: EntityId,
        keeps_big: bool,
    ) -> bool {
        if !self.goes_by_demand() {
            return false;
        }
        let need = self.demand_of(id);
        if when == When::NewlyIdle && !self.domains.all[domain].is_overutilised {
            let (here, there) = (self.seen_on(core, 0) + need, self.seen_on(source, 0));
            if here + need > there {
                return true;
            }
        }
        keeps_big && !self.fits_by_demand(id, core)
    }

    /// Whether a running thread is stopped and taken at once (`need_active_balance`).
    pub(super) fn is_taken_at_once(
        &self,
        (core, source): (usize, usize),
        when: When,
        found: &Busy,
    ) -> bool {
        if !self.goes_by_demand() {
            return false;
        }
        let grows = self.cores[source].capacity_max < self.cores[core].capacity_max;
        let is_relieved = grows
            && self.threads_on(source) == 1
            && self.lacks_capacity(source, 0)
            && !self.lacks_capacity(core, 0);
        (when != When::Busy && (is_relieved || found.is_misfit))
            || (found.is_overloaded && self.cores[source].misfit_load > 0)
    }

    /// Whether a core that falls idle looks for threads however shortly it idles: it is not one of the smallest, and
    /// one of these has a thread that does not fit (`min_cap_cluster_has_misfit_task`).
    pub(super) fn is_forced_to_look(&self, core: usize) -> bool {
        let has_misfit =
            |other: usize| self.cores[other].misfit_load > 0 && self.is_smallest(other);
        self.goes_by_demand() && !self.is_smallest(core) && (0..self.cores.len()).any(has_misfit)
    }
}
