//! Threads go by what they need of a window (`walt.rs`): when it is booked, what fits where, and where threads wake up,
//! start and move up (kernel/sched/fair.c of Qualcomm's msm-4.14: `task_fits_max`, `find_best_target`,
//! `find_energy_efficient_cpu`, `select_energy_cpu_idx`, `check_for_migration`).
//!
//! A thread with a `uclamp_min` counts as boosted (schedtune's `boost`), and needs at least that.
//!
//! Left out: `prefer_idle`, synchronous wake-ups, depths of sleep, `sched_boost`, rotation of big threads (off by
//! default), cores set aside by `core_ctl`.

use ampsched_model::{CoreId, Ns};

use super::Fair;
use super::kernel::{Kernel, Tracking};
use super::state::{CAPACITY_ONE, EntityId};
use super::walt::{Did, Walt};
use crate::{Act, EnqueueKind, Sched, Topology};

/// Capacity that a thread needs at least, in 1024 of its demand, on a core that is not smaller than its own, and on a
/// smaller one: 5 and 15 % to spare (`sched_capacity_margin_up`, `sched_capacity_margin_down`).
pub(super) const MARGIN_UP: u64 = 1078;
const MARGIN_DOWN: u64 = 1205;
/// The margin of the clock (`capacity_margin`).
const MARGIN_CLOCK: u64 = 1280;
/// Less of the energy is not worth a migration: 1/64 (`select_energy_cpu_idx`).
const LITTLE_ENERGY: u64 = 6;

/// Why a thread seeks a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seeks {
    /// It wakes up.
    Awake,
    /// It is new or runs and is too big for its core: idle ones only.
    Idle,
}

/// What a search has found so far.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    /// The idle core with least to do in this window, and that.
    idle: Option<(usize, u64)>,
    /// The busy core with most to spare, and that.
    busy: Option<(usize, u64)>,
    busy_count: u32,
    /// Capacity of the core found last.
    capacity: Option<u64>,
    /// The core with most to spare, whether the thread fits or not.
    roomiest: Option<(usize, u64)>,
}

/// What a generation that tracks by windows keeps on a machine, whose capacities its device tree states.
pub(super) fn walt_of(kernel: &Kernel, topology: &Topology) -> Option<Box<Walt>> {
    let Tracking::Walt { window_ns } = kernel.tracking else { return None };
    let of = |core| (topology.core(core).cluster.index(), topology.core(core).capacity.into());
    Some(Box::new(Walt::new(window_ns, topology.cores().map(of))))
}

impl Fair {
    /// Whether threads are placed and balanced by demand: capacities are known and differ (`energy_aware`; kernels with
    /// WALT come with an energy model).
    pub(super) fn goes_by_demand(&self) -> bool {
        self.walt.is_some() && self.domains.is_asymmetric
    }

    /// The number by which demands are kept.
    fn number(&self, id: EntityId) -> usize {
        self.thread_of(id).index()
    }

    fn book(&mut self, id: EntityId, did: Did) {
        let (number, now_ns) = (self.number(id), self.now_ns);
        if let Some(walt) = &mut self.walt {
            walt.book(number, did, now_ns);
        }
    }

    /// A thread has run up to now.
    #[cold]
    pub(super) fn book_run(&mut self, id: EntityId) {
        self.book(id, Did::Ran);
    }

    /// A thread wakes up, or has to leave its core, and is about to be placed.
    pub(super) fn book_sleep(&mut self, id: EntityId, kind: EnqueueKind) {
        self.book(id, if kind == EnqueueKind::Wake { Did::Slept } else { Did::Waited });
    }

    /// A core takes a waiting thread. It has waited for others, unless the core was idle.
    #[cold]
    pub(super) fn book_wait(&mut self, id: EntityId, core: usize) {
        let did = if self.cores[core].is_working { Did::Waited } else { Did::Slept };
        self.book(id, did);
    }

    /// A thread has come into the queue of a core.
    #[inline]
    pub(super) fn enter_by_demand(&mut self, id: EntityId, is_new: bool) {
        if self.walt.is_none() {
            return;
        }
        let (number, core, now_ns) = (self.number(id), self.core_of(id), self.now_ns);
        let Some(walt) = &mut self.walt else { return };
        if is_new {
            walt.start(number, core, now_ns);
        }
        walt.enter(number, now_ns);
        if !is_new {
            self.note_overutilised(core);
        }
    }

    /// A thread leaves the queue of its core: it is still there, and if it runs, it is charged up to now.
    #[inline]
    pub(super) fn leave_by_demand(&mut self, id: EntityId, sleeps: bool) {
        if self.walt.is_none() || !self.entities[id as usize].is_queued {
            return;
        }
        let (number, now_ns) = (self.number(id), self.now_ns);
        if let Some(walt) = &mut self.walt {
            walt.leave(number, sleeps, now_ns);
        }
    }

    /// A thread that is in no queue belongs to another core from now on.
    #[inline]
    pub(super) fn go_by_demand(&mut self, id: EntityId, core: usize) {
        if self.walt.is_none() {
            return;
        }
        let (number, now_ns) = (self.number(id), self.now_ns);
        if let Some(walt) = &mut self.walt {
            walt.go(number, core, now_ns);
        }
    }

    /// A core's cluster runs at another frequency from now on.
    pub(super) fn clock_by_demand(&mut self, core: usize, present: u64, highest: u64) {
        if self.walt.is_some() {
            self.charge(core);
        }
        if let Some(walt) = &mut self.walt {
            walt.set_clock(core, present, highest);
        }
    }

    /// What the clock of a core goes by; none: by averages.
    pub(super) fn clock_util(&mut self, core: usize, now_ns: Ns) -> Option<u32> {
        self.walt.as_ref()?;
        self.now_ns = now_ns;
        self.charge(core);
        Some(self.walt.as_mut()?.load(core, now_ns) as u32)
    }

    /// What a thread needs, of 1024 (`task_util`).
    pub(super) fn demand_of(&self, id: EntityId) -> u64 {
        self.walt.as_ref().map_or(0, |walt| walt.demand(self.number(id)))
    }

    /// The same within its clamps (`boosted_task_util`).
    pub(super) fn clamped_demand(&self, id: EntityId) -> u64 {
        let (least, most) = self.clamps(id);
        self.demand_of(id).max(least).min(most)
    }

    /// What the queued threads of a core need, at most its capacity (`cpu_util`).
    pub(super) fn demand_on(&self, core: usize) -> u64 {
        let sum = self.walt.as_ref().map_or(0, |walt| walt.runnable(core));
        sum.min(self.cores[core].capacity_max)
    }

    /// What all threads need that have been there in this window, with more, at most its capacity (`cpu_util_cum`).
    pub(super) fn seen_on(&mut self, core: usize, more: u64) -> u64 {
        let now_ns = self.now_ns;
        let seen = self.walt.as_mut().map_or(0, |walt| walt.seen(core, now_ns));
        (seen + more).min(self.cores[core].capacity_max)
    }

    /// Whether what a thread needs is in that sum (`task_in_cum_window_demand`).
    fn is_seen_on(&self, core: usize, id: EntityId) -> bool {
        let number = self.number(id);
        self.walt.as_ref().is_some_and(|walt| walt.is_seen(number, core, self.now_ns))
    }

    /// Whether a core takes a thread well (`task_fits_max`).
    pub(super) fn fits_by_demand(&self, id: EntityId, core: usize) -> bool {
        let capacity = self.cores[core].capacity_max;
        if capacity == self.domains.capacity_max {
            return true;
        }
        if self.clamps(id).0 > 0 && self.is_smallest(core) {
            return false;
        }
        let shrinks = self.cores[self.core_of(id)].capacity_max > capacity;
        let margin = if shrinks { MARGIN_DOWN } else { MARGIN_UP };
        capacity * CAPACITY_ONE > self.clamped_demand(id) * margin
    }

    /// Whether a core is one of the smallest (`is_min_capacity_cpu`).
    pub(super) fn is_smallest(&self, core: usize) -> bool {
        let least = self.cores.iter().map(|core| core.capacity_max).min();
        least == Some(self.cores[core].capacity_max)
    }

    /// Whether a core would have less than 5 % to spare with so much more (`__cpu_overutilized`).
    pub(super) fn lacks_capacity(&self, core: usize, more: u64) -> bool {
        self.cores[core].capacity_max * CAPACITY_ONE < (self.demand_on(core) + more) * MARGIN_UP
    }

    /// The core for a thread that wakes up (`last` is where it ran) or is new (its parent's).
    pub(super) fn core_by_demand(
        &mut self,
        sched: &Sched,
        id: EntityId,
        last: usize,
        wakes: bool,
    ) -> usize {
        let seeks = if wakes { Seeks::Awake } else { Seeks::Idle };
        let core = self.best_by_demand(sched, id, last, seeks);
        self.or_allowed(sched, id, core)
    }

    /// `find_energy_efficient_cpu`.
    fn best_by_demand(&mut self, sched: &Sched, id: EntityId, last: usize, seeks: Seeks) -> usize {
        let (target, backup) = self.best_targets(sched, id, last, seeks);
        let Some(target) = target else {
            self.because = "it ran there last, and no core is better for what it needs";
            return last;
        };
        let more = if seeks == Seeks::Awake { self.demand_of(id) } else { 0 };
        let is_boosted = self.clamps(id).0 > 0;
        if is_boosted || self.lacks_capacity(last, more) || !self.fits_by_demand(id, last) {
            self.because = "what it needs fits there, and not where it ran last";
            return target;
        }
        if self.perf_domains.is_empty() {
            self.because = "what it needs fits there, with most to spare";
            return target;
        }
        let candidates: Vec<usize> = [last, target].into_iter().chain(backup).collect();
        let energy: Vec<u64> = candidates
            .iter()
            .map(|&core| self.energy_by_demand(&candidates, id, core, seeks == Seeks::Awake))
            .collect();
        let mut best = 0;
        for place in 1..candidates.len() {
            let saves = energy[0].saturating_sub(energy[place]);
            // What is within the margin counts as equal.
            if saves >= energy[0] >> LITTLE_ENERGY && energy[place] < energy[best] {
                best = place;
            }
        }
        self.because = match best {
            0 => "it ran there last, and no core saves enough energy",
            _ => "it costs the least energy there",
        };
        candidates[best]
    }

    /// The core to which a thread would go, and another one in case of need; none: it stays (`find_best_target`).
    fn best_targets(
        &mut self,
        sched: &Sched,
        id: EntityId,
        last: usize,
        seeks: Seeks,
    ) -> (Option<usize>, Option<usize>) {
        let Some(domain) = self.domains.asymmetric.iter().flatten().next().copied() else {
            return (None, None);
        };
        let first = self.first_group_by_demand(domain, id);
        let start = self.domains.all[domain].groups[first].capacity_max;
        if self.cores[last].capacity_max == start && self.is_free_by_demand(last) {
            return (None, None);
        }
        let is_boosted = self.clamps(id).0 > 0;
        let mut found = Found::default();
        let count = self.domains.all[domain].groups.len();
        for step in 0..count {
            let group = (first + step) % count;
            for index in 0..self.domains.all[domain].groups[group].cores.len() {
                let core = self.domains.all[domain].groups[group].cores[index];
                if self.may_move(sched, id, core) {
                    self.weigh_core(&mut found, id, (core, last), start, seeks);
                }
            }
            let groups = &self.domains.all[domain].groups;
            let grows = groups[group].capacity_max < groups[(group + 1) % count].capacity_max;
            let has_found = found.idle.is_some() || found.busy.is_some();
            if has_found && (!is_boosted || !grows) {
                break;
            }
        }
        self.choose_target(found, id, last, seeks, is_boosted)
    }

    /// The smallest group of cores where a thread fits (`start_cpu`).
    fn first_group_by_demand(&self, domain: usize, id: EntityId) -> usize {
        let groups = &self.domains.all[domain].groups;
        let mut order: Vec<usize> = (0..groups.len()).collect();
        order.sort_by_key(|&group| groups[group].capacity_max);
        let fits = |&group: &usize| self.fits_by_demand(id, groups[group].cores[0]);
        let greatest = order.last().copied().unwrap_or(0);
        order.into_iter().find(fits).unwrap_or(greatest)
    }

    /// Whether a core is idle, but for what starts a program.
    fn is_free_by_demand(&self, core: usize) -> bool {
        self.is_idle(core) && self.starter != Some(core)
    }

    /// Looks at a core (the loop of `find_best_target` for threads that are not `prefer_idle`).
    fn weigh_core(
        &mut self,
        found: &mut Found,
        id: EntityId,
        (core, last): (usize, usize),
        start: u64,
        seeks: Seeks,
    ) {
        let capacity = self.cores[core].capacity_max;
        let (need, least) = (self.demand_of(id), self.clamped_demand(id));
        let others = self.others_on(core, id, seeks == Seeks::Awake);
        let room = capacity.saturating_sub(others);
        if room > found.roomiest.map_or(0, |(_, most)| most) {
            found.roomiest = Some((core, room));
        }
        let with = least.max(others + need);
        if with > capacity || capacity < start {
            return;
        }
        if self.is_free_by_demand(core) {
            let known = if self.is_seen_on(core, id) { need } else { 0 };
            let seen = self.seen_on(core, 0) + least - known.min(least);
            let is_better = found
                .idle
                .is_none_or(|(best, of_best)| best != last && (core == last || seen <= of_best));
            if is_better {
                found.idle = Some((core, seen));
                found.capacity = Some(capacity);
            }
            return;
        }
        if seeks == Seeks::Idle {
            return;
        }
        found.busy_count += 1;
        let spare = capacity - with;
        let is_small = found.capacity.is_some_and(|other| capacity < other);
        if is_small || spare >= found.busy.map_or(0, |(_, most)| most) {
            found.busy = Some((core, spare));
            found.capacity = Some(capacity);
        }
    }

    /// The end of `find_best_target`: a busy core comes before an idle one, if threads may be packed.
    fn choose_target(
        &mut self,
        found: Found,
        id: EntityId,
        last: usize,
        seeks: Seeks,
        is_boosted: bool,
    ) -> (Option<usize>, Option<usize>) {
        let idle = found.idle.map(|(core, _)| core);
        let busy = found.busy.map(|(core, _)| core);
        let packs = !is_boosted && busy.is_some_and(|core| self.packs(found.busy_count, core, id));
        let (mut target, mut backup) = match (idle, busy) {
            (None, busy) => (busy, None),
            (idle, Some(_)) if packs => (busy, idle),
            (idle, _) => (idle, None),
        };
        if target.is_none() {
            let allowed = |&core: &usize| seeks == Seeks::Awake || self.is_free_by_demand(core);
            target = found.roomiest.map(|(core, _)| core).filter(allowed);
        }
        backup = backup.filter(|&core| Some(core) != target && core != last);
        if target == Some(last) {
            (target, backup) = (backup, None);
        }
        (target, backup)
    }

    /// Whether a busy core comes before an idle one: if others are busy, too, or its frequency is enough
    /// (`is_packing_eligible`).
    fn packs(&mut self, busy_count: u32, core: usize, id: EntityId) -> bool {
        if busy_count != 1 {
            return true;
        }
        let more = if self.is_seen_on(core, id) { 0 } else { self.demand_of(id) };
        let with = self.seen_on(core, more) * MARGIN_CLOCK / CAPACITY_ONE;
        with <= self.walt.as_ref().map_or(0, |walt| walt.speed(core))
    }

    /// What other threads need on a core (`cpu_util_wake`).
    pub(super) fn others_on(&self, core: usize, id: EntityId, wakes: bool) -> u64 {
        let all = self.demand_on(core);
        let is_here = !wakes && self.core_of(id) == core && self.entities[id as usize].is_queued;
        if is_here { all.saturating_sub(self.demand_of(id)) } else { all }
    }

    /// A tick of a busy core: its thread moves up to an idle core if it is too big (`check_for_migration`).
    pub(super) fn move_up(&mut self, sched: &Sched, core: usize, acts: &mut Vec<Act>) {
        if !self.goes_by_demand() {
            return;
        }
        self.note_overutilised(core);
        let Some(id) = self.cores[core].current.filter(|_| self.cores[core].misfit_load > 0) else {
            return;
        };
        let to = self.best_by_demand(sched, id, core, Seeks::Idle);
        if self.cores[to].capacity_max <= self.cores[core].capacity_max {
            return;
        }
        self.put_back(core);
        self.shift(id, to);
        self.cores[core].misfit_load = 0;
        let to = CoreId::from(to);
        acts.push(Act::Push { thread: self.thread_of(id), to });
        acts.push(Act::Resched(to));
    }
}
