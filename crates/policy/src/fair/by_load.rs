//! Who is busiest in a domain by load, and by how much: kernels before 5.5
//! (fair.c 3.16 and 4.14: `source_load`, `target_load`, `update_sd_lb_stats`, `find_busiest_group`,
//! `calculate_imbalance`, `fix_small_imbalance`, `find_busiest_queue`).

use super::Fair;
use super::domains::Domain;
use super::state::{CAPACITY_ONE, EntityId, WEIGHT_ONE};
use super::stats::When;

/// Loads of cores as of their last tick, and smoothed over ticks (`rq->cpu_load[0]` and `[1]`).
#[derive(Clone, Debug)]
pub(super) struct PastLoads {
    of_core: Vec<[u64; 2]>,
    /// The last tick.
    tick: u64,
}

impl PastLoads {
    pub fn new(cores: usize) -> Self {
        Self { of_core: vec![[0; 2]; cores], tick: 0 }
    }
}

/// Half of the past and half of the present load, rounded towards the present; ticks that were missed halve the past
/// (`__update_cpu_load`, `decay_load_missed`).
pub(super) fn smoothed(past: u64, present: u64, missed: u64) -> u64 {
    let past = past >> missed.min(63);
    (past + present + u64::from(present > past)) / 2
}

/// The state of a group of cores (`struct sg_lb_stats`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LoadStats {
    /// Load, in doubt the less for groups other than the searching core's own (`group_load`).
    pub load: u64,
    /// Load as it is (`sum_weighted_load`).
    pub present: u64,
    /// Utilisation, which 3.16 does not know (`group_util`).
    pub util: u64,
    pub threads: u64,
    pub idle_cores: u64,
    pub cores: u64,
    pub capacity: u64,
    /// Load per capacity, and load per thread (`avg_load`, `load_per_task`).
    pub mean: u64,
    pub per_thread: u64,
    /// It could do more (`group_has_free_capacity`, `group_has_capacity`).
    pub has_room: bool,
    /// It has more to do than it can (`group_no_capacity`).
    pub is_overloaded: bool,
    /// Affinities kept balancing within it from working (`group_imb`).
    pub is_imbalanced: bool,
    /// Load of a thread that is too big for its core (WALT, `group_misfit_task_load`).
    pub misfit: u64,
    /// It is one of two threads of a core: it has a capacity of much less than 1024, but can run one
    /// (`fix_small_capacity`).
    pub is_sibling: bool,
}

/// The busiest group of a domain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Busy {
    pub group: usize,
    /// The load to take from there, which may be 0.
    pub imbalance: u64,
    /// What is wrong there: a thread that is too big for its core (WALT); it has more to do than it can.
    pub is_misfit: bool,
    pub is_overloaded: bool,
}

/// How a search judges groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Judge {
    pub when: When,
    pub imbalance_pct: u64,
    /// By the number of threads, as up to 4.0.
    pub counts_threads: bool,
}

/// How many threads a group can run at once: as many as it has cores, fewer if they are weak (`sg_capacity_factor`).
pub(super) fn capacity_factor(capacity: u64, cores: u64) -> u64 {
    let threads_per_core = (CAPACITY_ONE * cores).div_ceil(capacity.max(1));
    (cores / threads_per_core.max(1)).min((capacity + CAPACITY_ONE / 2) / CAPACITY_ONE)
}

impl LoadStats {
    /// Its worst state is that of a thread that is too big (`group_misfit_task`).
    pub fn is_misfit(&self) -> bool {
        self.misfit > 0 && !self.is_overloaded && !self.is_imbalanced
    }

    /// Fills in what follows from the sums (end of `update_sg_lb_stats`, `group_classify`).
    pub fn finish(&mut self, judge: &Judge, is_imbalanced: bool) {
        let pct = judge.imbalance_pct;
        self.mean = self.load * CAPACITY_ONE / self.capacity.max(1);
        self.per_thread = self.present.checked_div(self.threads).unwrap_or(0);
        if judge.counts_threads {
            let factor = self.factor();
            self.has_room = factor > self.threads;
            self.is_overloaded = self.threads > factor;
            self.is_imbalanced = is_imbalanced;
        } else {
            let (able, used) = (self.capacity * 100, self.util * pct);
            self.has_room = self.threads < self.cores || able > used;
            self.is_overloaded = self.threads > self.cores && able < used;
            self.is_imbalanced = is_imbalanced && !self.is_overloaded;
        }
    }

    /// How many threads it can run at once (`sg_capacity_factor`).
    fn factor(&self) -> u64 {
        capacity_factor(self.capacity, self.cores).max(u64::from(self.is_sibling))
    }

    /// It has no more room, if the searching core's group has and at least two threads fewer, and groups are physical
    /// cores (`SD_PREFER_SIBLING` of the SMT level, since 4.1).
    pub fn spread(&mut self, local: &LoadStats) {
        if local.has_room && self.threads > local.threads + 1 {
            self.is_overloaded = true;
            self.is_imbalanced = false;
        }
    }

    /// The worse the greater (`enum group_type`).
    pub fn rank(&self) -> u8 {
        match (self.is_overloaded, self.is_imbalanced) {
            (true, _) => 3,
            (_, true) => 2,
            _ => u8::from(self.misfit > 0),
        }
    }
}

impl Judge {
    /// Whether a group is busier than the busiest so far (`update_sd_pick_busiest`).
    pub fn is_busier(&self, stats: &LoadStats, best: &LoadStats) -> bool {
        if self.counts_threads {
            return stats.mean > best.mean && (stats.is_overloaded || stats.is_imbalanced);
        }
        (stats.rank(), stats.mean) > (best.rank(), best.mean)
    }

    /// How much load is to be moved; none: nothing is wrong (`find_busiest_group`).
    pub fn imbalance(&self, local: &LoadStats, busiest: &LoadStats, mean: u64) -> Option<u64> {
        if busiest.threads == 0 {
            return None;
        }
        let is_forced = busiest.is_imbalanced || self.trumps_load(local, busiest);
        if !is_forced && self.is_even(local, busiest, mean) {
            return None;
        }
        Some(self.calculate(local, *busiest, mean))
    }

    /// An idle core with room takes from a group without, whatever the loads are.
    pub fn trumps_load(&self, local: &LoadStats, busiest: &LoadStats) -> bool {
        if self.counts_threads {
            self.when == When::NewlyIdle && local.has_room && !busiest.has_room
        } else {
            self.when != When::Busy && local.has_room && busiest.is_overloaded
        }
    }

    pub fn is_even(&self, local: &LoadStats, busiest: &LoadStats, mean: u64) -> bool {
        if local.mean >= busiest.mean || local.mean >= mean {
            return true;
        }
        match self.when {
            When::Idle if self.counts_threads => {
                local.idle_cores < busiest.idle_cores && busiest.threads <= busiest.cores
            }
            When::Idle => !busiest.is_overloaded && local.idle_cores <= busiest.idle_cores + 1,
            _ => 100 * busiest.mean <= self.imbalance_pct * local.mean,
        }
    }

    /// `calculate_imbalance`.
    fn calculate(&self, local: &LoadStats, mut busiest: LoadStats, mean: u64) -> u64 {
        if busiest.is_imbalanced {
            busiest.per_thread = busiest.per_thread.min(mean);
        }
        if busiest.mean <= mean || local.mean >= mean {
            return small_imbalance(local, &busiest, 0);
        }
        let imbalance = self.gap(local, &busiest, mean);
        if imbalance < busiest.per_thread {
            return small_imbalance(local, &busiest, imbalance);
        }
        imbalance
    }

    /// What makes a group that is above the mean, and one that is below, average.
    pub fn gap(&self, local: &LoadStats, busiest: &LoadStats, mean: u64) -> u64 {
        let given = (busiest.mean - mean).min(self.above_capacity(local, busiest));
        let given = given.saturating_mul(busiest.capacity);
        let taken = (mean - local.mean) * local.capacity;
        given.min(taken) / CAPACITY_ONE
    }

    /// The load that a group has above what keeps its cores busy, per capacity (`load_above_capacity`).
    fn above_capacity(&self, local: &LoadStats, busiest: &LoadStats) -> u64 {
        if self.counts_threads {
            if busiest.is_imbalanced {
                return u64::MAX;
            }
            let factor = busiest.factor();
            let above = busiest.threads.saturating_sub(factor);
            return above * WEIGHT_ONE * CAPACITY_ONE / busiest.capacity;
        }
        let threads = busiest.threads * CAPACITY_ONE;
        if !busiest.is_overloaded || !local.is_overloaded || threads <= busiest.capacity {
            return u64::MAX;
        }
        (threads - busiest.capacity) * WEIGHT_ONE / busiest.capacity
    }
}

/// Whether one thread is to be moved though the imbalance is less than a thread: if the loads differ by a thread, or
/// more capacity is used then (`fix_small_imbalance`).
pub(super) fn small_imbalance(local: &LoadStats, busiest: &LoadStats, imbalance: u64) -> u64 {
    let local_per_thread = if local.threads == 0 { 0 } else { local.per_thread };
    let per_thread = busiest.per_thread;
    let threads = if local.threads > 0 && per_thread > local_per_thread { 1 } else { 2 };
    let scaled = per_thread * CAPACITY_ONE / busiest.capacity.max(1);
    if busiest.mean + scaled >= local.mean + scaled * threads {
        return per_thread;
    }
    let used = |capacity: u64, per_thread: u64, mean: u64| capacity * per_thread.min(mean);
    let now = used(busiest.capacity, per_thread, busiest.mean)
        + used(local.capacity, local_per_thread, local.mean);
    let left = busiest.mean.saturating_sub(scaled);
    let moved = (busiest.mean * busiest.capacity).min(per_thread * CAPACITY_ONE);
    let come = moved / local.capacity.max(1);
    let after = used(busiest.capacity, per_thread, left)
        + used(local.capacity, local_per_thread, local.mean + come);
    if after / CAPACITY_ONE > now / CAPACITY_ONE { per_thread } else { imbalance }
}

impl Fair {
    /// Load of the threads of a core that can run (`weighted_cpuload`): in 3.16 that of those that wait as of when they
    /// began to.
    pub(super) fn runnable_load(&mut self, core: usize) -> u64 {
        let queue = &self.queues[core];
        let current = queue.current.filter(|&current| self.entities[current as usize].is_queued);
        let count = queue.entries.len();
        let mut load = current.map_or(0, |current| self.tracked_load(current));
        for place in 0..count {
            let id = self.queues[core].entries[place].entity;
            load += self.tracked_load(id);
        }
        load
    }

    /// See [`Self::runnable_load`].
    fn tracked_load(&mut self, id: EntityId) -> u64 {
        if !self.kernel.counts_threads() {
            self.settle(id);
        }
        let entity = &self.entities[id as usize];
        entity.pelt.load_avg(entity.weight as u32)
    }

    /// Utilisation of a core in units of capacity (4.14, `cpu_util`): averages are shares of time here.
    fn util_of_core(&self, core: usize) -> u64 {
        if self.walt.is_some() {
            return self.demand_on(core);
        }
        let own = &self.cores[core];
        let share = u64::from(self.queues[core].pelt.util_avg());
        (share * own.capacity_alone / CAPACITY_ONE).min(own.capacity_max)
    }

    /// A tick: loads become past loads (`update_cpu_load_active`, 4.14 `cpu_load_update_active`).
    pub(super) fn note_loads(&mut self) {
        let tick = self.ticks();
        let missed = tick.saturating_sub(self.past_loads.tick + 1);
        self.past_loads.tick = tick;
        for core in 0..self.cores.len() {
            self.charge(core);
            self.settle_core(core);
            let load = self.runnable_load(core);
            let past = &mut self.past_loads.of_core[core];
            *past = [load, smoothed(past[1], load, missed)];
        }
    }

    /// Which past load a search looks at, if any (`busy_idx` 2, `idle_idx` 1 beyond a cache, else 0, as between
    /// siblings; `cpu_load[idx - 1]`).
    fn past_of(when: When, domain: &Domain) -> Option<usize> {
        match when {
            _ if domain.are_siblings => None,
            When::Busy => Some(1),
            When::Idle if !domain.shares_cache => Some(0),
            _ => None,
        }
    }

    /// The state of a group but for some cores (`update_sg_lb_stats`).
    fn load_stats(
        &mut self,
        (domain, group): (usize, usize),
        is_local: bool,
        judge: &Judge,
        without: &[usize],
    ) -> LoadStats {
        let own = &self.domains.all[domain];
        let past = Self::past_of(judge.when, own);
        let mut stats = LoadStats { is_sibling: own.are_siblings, ..LoadStats::default() };
        for index in 0..self.domains.all[domain].groups[group].cores.len() {
            let core = self.domains.all[domain].groups[group].cores[index];
            stats.capacity += self.cores[core].capacity_max;
            stats.cores += 1;
            if without.contains(&core) {
                continue;
            }
            let present = self.runnable_load(core);
            let before = past.map_or(present, |index| self.past_loads.of_core[core][index]);
            // `target_load` and `source_load`.
            stats.load += if is_local { before.max(present) } else { before.min(present) };
            stats.present += present;
            stats.util += self.util_of_core(core);
            stats.threads += u64::from(self.threads_on(core));
            stats.idle_cores += u64::from(self.is_idle(core));
            if self.goes_by_demand() && self.domains.all[domain].is_asymmetric {
                stats.misfit = stats.misfit.max(self.cores[core].misfit_load);
            }
        }
        stats.finish(judge, self.domains.all[domain].groups[group].is_imbalanced);
        stats
    }

    /// The busiest group of a core's domain; none if all is well. `without`: cores that are left out.
    pub(super) fn find_busiest_by_load(
        &mut self,
        core: usize,
        level: usize,
        when: When,
        without: &[usize],
    ) -> Option<Busy> {
        let (domain, own_group) = {
            let level = &self.domains.of_core[core][level];
            (level.domain, level.own_group)
        };
        let judge = Judge {
            when,
            imbalance_pct: self.domains.all[domain].imbalance_pct,
            counts_threads: self.kernel.counts_threads(),
        };
        let local = self.load_stats((domain, own_group), true, &judge, without);
        let spreads =
            !judge.counts_threads && self.domains.all[domain].groups[own_group].are_siblings;
        let by_demand = self.goes_by_demand();
        let (mut load, mut capacity, mut used) = (local.load, local.capacity, local.util);
        let mut busiest: (Option<usize>, LoadStats) = (None, LoadStats::default());
        let count = self.domains.all[domain].groups.len();
        for group in (1..count).map(|step| (own_group + step) % count) {
            let mut stats = self.load_stats((domain, group), false, &judge, without);
            if spreads {
                stats.spread(&local);
            }
            load += stats.load;
            capacity += stats.capacity;
            used += stats.util;
            let is_busier = if by_demand {
                let best = &busiest.1;
                self.is_busier_by_demand(domain, (own_group, &local), (group, &stats), best)
            } else {
                judge.is_busier(&stats, &busiest.1)
            };
            if is_busier {
                busiest = (Some(group), stats);
            }
        }
        if level + 1 == self.domains.of_core[core].len() {
            let all = 0..self.cores.len();
            self.root.is_overloaded = all.into_iter().any(|core| {
                self.threads_on(core) > 1 || (by_demand && self.cores[core].misfit_load > 0)
            });
        }
        let mean = CAPACITY_ONE * load / capacity.max(1);
        let imbalance = if by_demand {
            self.note_domain(core, level, used, capacity);
            if !self.may_take(domain, when, own_group, busiest.0) {
                return None;
            }
            judge.imbalance_by_demand(&local, &busiest.1, mean)?
        } else {
            judge.imbalance(&local, &busiest.1, mean)?
        };
        let (is_misfit, is_overloaded) = (busiest.1.is_misfit(), busiest.1.is_overloaded);
        Some(Busy { group: busiest.0?, imbalance, is_misfit, is_overloaded })
    }

    /// The core of a group with most load per capacity; one that has a single thread only if that is not too much
    /// (`find_busiest_queue`).
    pub(super) fn busiest_core_by_load(
        &mut self,
        (domain, to): (usize, usize),
        found: &Busy,
        without: &[usize],
    ) -> Option<usize> {
        let (mut best, mut most, mut most_capacity) = (None, 0, 1);
        for index in 0..self.domains.all[domain].groups[found.group].cores.len() {
            let core = self.domains.all[domain].groups[found.group].cores[index];
            if found.is_misfit {
                let misfit = self.cores[core].misfit_load;
                if misfit > most && !without.contains(&core) {
                    (best, most) = (Some(core), misfit);
                }
                continue;
            }
            let load = self.runnable_load(core);
            let is_one_too_much = self.threads_on(core) == 1 && load > found.imbalance;
            if without.contains(&core) || is_one_too_much || self.keeps_its_thread(domain, to, core)
            {
                continue;
            }
            let capacity = self.cores[core].capacity_max;
            if load * most_capacity > most * capacity {
                (best, most, most_capacity) = (Some(core), load, capacity);
            }
        }
        best
    }
}
