//! Where a thread goes that wakes up or starts: kernels before 5.5
//! (fair.c 3.16 and 4.14: `select_task_rq_fair`, `wake_wide`, `wake_cap`, `wake_affine`, `effective_load`,
//! `select_idle_sibling`, `find_idlest_group`, `find_idlest_cpu`).

use ampsched_model::Ns;

use super::Fair;
use super::state::{CAPACITY_ONE, EntityId, QueueId, WEIGHT_ONE};
use crate::Sched;

/// What a search for an idle core takes per core of the cache (`avg_scan_cost`); ours.
const SCAN_COST_NS: Ns = 40;
/// Part of a core's mean idle time that a search may take, as a divisor (`select_idle_cpu`).
const SCAN_FUZZ: Ns = 512;
/// A searching core looks at least at this number of cores, less one (`SIS_PROP`).
const SCAN_LEAST: u64 = 4;

/// What waking on the waker's core or on the last one comes to (`wake_affine`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Affine {
    /// Loads of the two cores, and what the thread adds to them.
    pub here: i64,
    pub there: i64,
    pub adds_here: i64,
    pub adds_there: i64,
    pub capacity_here: i64,
    pub capacity_there: i64,
    pub imbalance_pct: i64,
}

impl Affine {
    /// Loads with the thread, per capacity; the last core's counts half of the tolerated imbalance more.
    fn effective(&self) -> (i64, i64) {
        let bias = 100 + (self.imbalance_pct - 100) / 2;
        (
            100 * self.capacity_there * (self.here + self.adds_here),
            bias * self.capacity_here * (self.there + self.adds_there),
        )
    }

    /// 3.16: the waker's core is not busier, or both together have no more than one of its threads.
    pub fn is_drawn_by_load(&self, per_thread_here: i64) -> bool {
        let (here, there) = self.effective();
        let together = self.here + self.there;
        self.here == 0 || here <= there || (self.here <= self.there && together <= per_thread_here)
    }

    /// 4.14 (`wake_affine_weight`).
    pub fn is_drawn_by_weight(&self) -> bool {
        let (here, there) = self.effective();
        here <= there
    }
}

/// How many cores a search for an idle one looks at (4.14, `SIS_PROP`).
pub(super) fn scan_of(cores: u64, idle_mean_ns: Ns) -> u64 {
    let cost_ns = SCAN_COST_NS * cores + 1;
    let span_ns = cores * (idle_mean_ns / SCAN_FUZZ);
    let looks = if span_ns > SCAN_LEAST * cost_ns { span_ns / cost_ns } else { SCAN_LEAST };
    looks - 1
}

impl Fair {
    /// The core for a thread that wakes up on behalf of what runs on `this`.
    pub(super) fn core_for_woken_by_load(
        &mut self,
        sched: &Sched,
        id: EntityId,
        this: usize,
        last: usize,
    ) -> usize {
        let mut target = last;
        if this != last && self.may_move(sched, id, this) && self.is_drawn(id, this, last) {
            target = this;
        }
        let core = self.idle_near(sched, id, last, target);
        self.or_allowed(sched, id, core)
    }

    /// Whether a thread wakes up on its waker's core or near it (`wake_affine`).
    fn is_drawn(&mut self, id: EntityId, this: usize, last: usize) -> bool {
        let level = self.domains.of_core[this]
            .iter()
            .find(|level| self.domains.all[level.domain].cores.contains(&last));
        let Some(level) = level else { return false };
        let pct = self.domains.all[level.domain].imbalance_pct as i64;
        let counts_threads = self.kernel.counts_threads();
        if counts_threads {
            !self.has_many_wakees(id, this) && self.is_drawn_by_load(id, this, last, pct)
        } else {
            !self.is_wide(id, this)
                && !self.is_too_big(id, this, last)
                && (self.is_idle(this) || self.is_drawn_by_weight(id, this, last, pct))
        }
    }

    /// 3.16: whether waker and woken thread wake so many that they should not share a cache (`wake_wide`).
    fn has_many_wakees(&self, id: EntityId, this: usize) -> bool {
        let Some(current) = self.cores[this].current else { return false };
        let cache = self.domains.cache[this];
        let factor = cache.map_or(1, |cache| self.domains.all[cache].cores.len()) as u32;
        let (waker, woken) =
            (self.entities[current as usize].flips, self.entities[id as usize].flips);
        woken > factor && waker > factor * woken
    }

    /// 4.14: whether a thread has too much to do for the smaller of two cores, where some are greater (`wake_cap`). It
    /// is not drawn to its waker then; no architecture asks for more.
    fn is_too_big(&mut self, id: EntityId, this: usize, last: usize) -> bool {
        let least = self.cores[this].capacity_max.min(self.cores[last].capacity_max);
        let most = self.domains.capacity_max;
        if most - least < most / 8 {
            return false;
        }
        self.settle(id);
        let share = u64::from(self.entities[id as usize].pelt.util_avg());
        !crate::sched::fits(share * self.cores[last].capacity_alone / CAPACITY_ONE, least)
    }

    fn affine(&mut self, this: usize, last: usize, pct: i64) -> Affine {
        Affine {
            here: self.runnable_load(this) as i64,
            there: self.runnable_load(last) as i64,
            adds_here: 0,
            adds_there: 0,
            capacity_here: self.cores[this].capacity_max as i64,
            capacity_there: self.cores[last].capacity_max as i64,
            imbalance_pct: pct,
        }
    }

    fn is_drawn_by_load(&mut self, id: EntityId, this: usize, last: usize, pct: i64) -> bool {
        let weight = self.entities[id as usize].weight as i64;
        let affine = Affine {
            adds_here: self.effective_load(id, this, weight, weight),
            adds_there: self.effective_load(id, last, 0, weight),
            ..self.affine(this, last, pct)
        };
        let threads = i64::from(self.threads_on(this));
        affine.is_drawn_by_load(affine.here.checked_div(threads).unwrap_or(0))
    }

    fn is_drawn_by_weight(&mut self, id: EntityId, this: usize, last: usize, pct: i64) -> bool {
        let load = self.load_of(id) as i64;
        let affine = Affine { adds_here: load, adds_there: -load, ..self.affine(this, last, pct) };
        affine.is_drawn_by_weight()
    }

    /// 3.16: what weight in a thread's group on a core, and in the group as a whole, adds to the core's load
    /// (`effective_load`).
    fn effective_load(&self, id: EntityId, core: usize, here: i64, in_group: i64) -> i64 {
        let mut queue = self.queue_on(self.entities[id as usize].queue, core);
        let (mut adds, mut adds_to_group) = (here, in_group);
        while let Some(group) = self.queues[queue as usize].parent {
            let shares = self.groups[queue as usize / self.cores.len()].1 as i64;
            let own = self.queues[queue as usize].weight as i64;
            let total = adds_to_group + own + self.load_elsewhere(queue);
            let weight = own + adds;
            let has = if total > 0 && weight < total { weight * shares / total } else { shares };
            adds = has.max(2) - self.entities[group as usize].weight as i64;
            adds_to_group = 0;
            queue = self.entities[group as usize].queue;
        }
        adds
    }

    /// Load of a queue's group on other cores.
    fn load_elsewhere(&self, queue: QueueId) -> i64 {
        let count = self.cores.len() as QueueId;
        let first = queue / count * count;
        let others = (first..first + count).filter(|&other| other != queue);
        others.map(|other| self.queue_load(other) as i64).sum()
    }

    /// An idle core near the target, or the target (`select_idle_sibling`).
    fn idle_near(&mut self, sched: &Sched, id: EntityId, last: usize, target: usize) -> usize {
        if self.is_idle(target) {
            self.because = "it ran there last, or near it, and the core is idle";
            return target;
        }
        if last != target && self.domains.share_cache(last, target) && self.is_idle(last) {
            self.because = "it ran there last and the core is idle";
            return last;
        }
        // 3.16 looks for a group that is wholly idle: without SMT, that is a core.
        let found = match (self.kernel.counts_threads(), self.domains.has_smt()) {
            (true, false) => self.idle_by_scan(sched, id, target),
            (true, true) => self.idle_group(sched, id, target),
            (false, false) => self.idle_by_cost(sched, id, target),
            (false, true) => self
                .idle_core(sched, id, target)
                .or_else(|| self.idle_by_cost(sched, id, target))
                .or_else(|| self.idle_sibling_of(sched, id, target)),
        };
        found.unwrap_or(target)
    }

    /// 4.14: the next idle core of the cache, looking at as many as the waker's core can afford (`select_idle_cpu`).
    fn idle_by_cost(&mut self, sched: &Sched, id: EntityId, target: usize) -> Option<usize> {
        let cores = &self.domains.all[self.domains.cache[target]?].cores;
        let looks = scan_of(cores.len() as u64, self.cores[self.waking_core].idle_mean_ns);
        let start = cores.iter().position(|&core| core >= target).unwrap_or(0);
        let found = cores[start..]
            .iter()
            .chain(&cores[..start])
            .take(looks as usize)
            .find(|&&core| self.may_move(sched, id, core) && self.is_idle(core));
        let found = found.copied();
        self.because = match found {
            Some(_) => "it is the next idle core that shares the cache",
            None => "it has found no idle core that shares the cache in the time that it takes",
        };
        found
    }

    /// The group of a domain with least load, if it is less than that of the core's own; none: that one
    /// (`find_idlest_group`).
    pub(super) fn idlest_group_by_load(
        &mut self,
        sched: &Sched,
        id: EntityId,
        core: usize,
        level: usize,
    ) -> Option<usize> {
        let (domain, own) = {
            let level = &self.domains.of_core[core][level];
            (level.domain, level.own_group)
        };
        let pct = self.domains.all[domain].imbalance_pct;
        let mut search = Idlest::new(pct, self.kernel.counts_threads());
        let count = self.domains.all[domain].groups.len();
        for group in (0..count).map(|step| (own + step) % count) {
            let cores = &self.domains.all[domain].groups[group].cores;
            if !cores.iter().any(|&core| self.may_move(sched, id, core)) {
                continue;
            }
            let loads = self.loads_of_group(domain, group);
            if group == own {
                search.own = Some(loads);
            } else {
                search.look_at(group, loads);
            }
        }
        search.found()
    }

    /// Load of the threads of a group that can run, and of all, per capacity.
    fn loads_of_group(&mut self, domain: usize, group: usize) -> (u64, u64) {
        let (mut runnable, mut all, mut capacity) = (0, 0, 0);
        for index in 0..self.domains.all[domain].groups[group].cores.len() {
            let core = self.domains.all[domain].groups[group].cores[index];
            runnable += self.runnable_load(core);
            all += self.load_on(core);
            capacity += self.cores[core].capacity_max;
        }
        let per_capacity = |load: u64| load * CAPACITY_ONE / capacity.max(1);
        (per_capacity(runnable), per_capacity(all))
    }

    /// 3.16: the core of a group with least load. 4.14: the one that fell idle last, else that (`find_idlest_cpu`).
    pub(super) fn idlest_core_by_load(
        &mut self,
        sched: &Sched,
        id: EntityId,
        domain: usize,
        group: usize,
        this: usize,
    ) -> usize {
        let counts_threads = self.kernel.counts_threads();
        let (mut latest_ns, mut idle): (Ns, Option<usize>) = (0, None);
        let (mut least, mut found) = (u64::MAX, this);
        for index in 0..self.domains.all[domain].groups[group].cores.len() {
            let core = self.domains.all[domain].groups[group].cores[index];
            if !self.may_move(sched, id, core) {
                continue;
            }
            if !counts_threads && self.is_idle(core) {
                let since_ns = self.cores[core].idle_since_ns.unwrap_or(0);
                if since_ns > latest_ns || idle.is_none() {
                    (latest_ns, idle) = (since_ns, Some(core));
                }
                continue;
            }
            let load = self.runnable_load(core);
            if load < least || (load == least && core == this) {
                (least, found) = (load, core);
            }
        }
        idle.unwrap_or(found)
    }

    /// 4.14: a thread's utilisation stays what it is in units of capacity when it goes to another core; here it is a
    /// share of time.
    pub(super) fn carry_util(&mut self, id: EntityId, core: usize) {
        if !self.kernel.is_by_load() {
            return;
        }
        let from = self.cores[self.core_of(id)].capacity_alone;
        let to = self.cores[core].capacity_alone;
        self.entities[id as usize].pelt.scale_util(from, to);
    }
}

/// A search for the idlest group (`find_idlest_group`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Idlest {
    imbalance_pct: u64,
    counts_threads: bool,
    /// Loads of the own group: of what can run, and of all.
    pub own: Option<(u64, u64)>,
    best: Option<(usize, (u64, u64))>,
}

impl Idlest {
    pub fn new(imbalance_pct: u64, counts_threads: bool) -> Self {
        Self { imbalance_pct, counts_threads, own: None, best: None }
    }

    /// Half of the tolerated imbalance, in percent.
    fn scale(&self) -> u64 {
        100 + (self.imbalance_pct - 100) / 2
    }

    /// Loads that differ by less are alike (4.10 and later).
    fn tolerance(&self) -> u64 {
        WEIGHT_ONE * (self.imbalance_pct - 100) / 100
    }

    /// Another group than the own.
    pub fn look_at(&mut self, group: usize, (runnable, all): (u64, u64)) {
        let Some((idlest, (least, least_all))) = self.best else {
            self.best = Some((group, (runnable, all)));
            return;
        };
        let tolerance = self.tolerance();
        if self.counts_threads {
            if runnable < least {
                self.best = Some((group, (runnable, all)));
            }
        } else if least > runnable + tolerance {
            self.best = Some((group, (runnable, all)));
        } else if runnable < least + tolerance && 100 * least_all > self.scale() * all {
            // Alike: what sleeps there counts, too; what is compared with next stays the least.
            self.best = Some((group, (least, all)));
        } else {
            self.best = Some((idlest, (least, least_all)));
        }
    }

    /// The group to go to, if it is idler than the own.
    pub fn found(&self) -> Option<usize> {
        let (group, (least, least_all)) = self.best?;
        if self.counts_threads {
            let own = self.own.map_or(0, |(runnable, _)| runnable);
            return (100 * own >= self.scale() * least).then_some(group);
        }
        let Some((own, own_all)) = self.own else { return Some(group) };
        let tolerance = self.tolerance();
        let stays = least > own + tolerance
            || (own < least + tolerance && 100 * own_all < self.scale() * least_all);
        (!stays).then_some(group)
    }
}
