//! Load tracking: the averages of entities, queues and cores, and what is compared with them
//! (pelt.c; fair.c: `update_load_avg`, `attach_entity_load_avg`, `cpu_load`, `cpu_util`, `task_h_load`).

use super::Fair;
use ampsched_model::Ns;

use super::kernel::Pressure;
use super::state::{CAPACITY_ONE, Core, Entity, EntityId, Queue, QueueId};
use crate::Activity;
use crate::pelt::Pelt;
use crate::sched::{Fit, fits};

/// Whether a capacity is greater by more than 5 % (`capacity_greater`).
pub(super) fn is_greater(one: u64, other: u64) -> bool {
    one * CAPACITY_ONE > other * 1078
}

impl Core {
    /// Brings its clock up to now (`update_rq_clock_pelt`).
    #[inline]
    fn advance(&mut self, now_ns: Ns) {
        if self.is_working {
            self.clock.busy_until(now_ns, self.capacity_now as u32);
        } else {
            self.clock.idle_until(now_ns);
        }
    }
}

impl Queue {
    /// Brings its averages, and its core's clock, up to now.
    #[inline(always)]
    fn settle(&mut self, core: &mut Core, now_ns: Ns) {
        if self.settled_ns != now_ns {
            self.book(core, now_ns);
        }
    }

    /// The same; its time has gone on since it was last done.
    #[inline(never)]
    fn book(&mut self, core: &mut Core, now_ns: Ns) {
        self.settled_ns = now_ns;
        core.advance(now_ns);
        let done = Activity {
            load: self.weight,
            runnable: self.runnable.into(),
            running: self.current.is_some(),
        };
        if !self.removed.is_empty() {
            self.drop_removed();
        }
        self.kept_ns = core.clock.time_ns();
        self.pelt.update(self.kept_ns, done);
    }

    /// The averages of threads that have gone to other cores leave its own.
    #[cold]
    fn drop_removed(&mut self) {
        for (pelt, weight) in self.removed.drain(..) {
            self.pelt.detach(&pelt, weight);
        }
    }
}

impl Entity {
    /// Brings its averages, and its queue's, up to its core's time; it is about to do something else.
    #[inline(always)]
    pub fn settle(&mut self, id: EntityId, queue: &mut Queue, core: &mut Core, now_ns: Ns) {
        queue.settle(core, now_ns);
        if !self.is_attached {
            return;
        }
        let done = Activity {
            load: self.is_queued.into(),
            runnable: (self.is_queued && !self.is_delayed).into(),
            running: queue.current == Some(id),
        };
        self.pelt.update(core.clock.time_ns(), done);
    }
}

impl Fair {
    /// Brings a core's clock up to now (`update_rq_clock_pelt`).
    #[inline]
    pub(super) fn advance(&mut self, core: usize) {
        self.cores[core].advance(self.now_ns);
    }

    /// A core has nothing to run from now on (`update_idle_rq_clock_pelt`).
    pub(super) fn fall_idle(&mut self, core: usize) {
        if !self.cores[core].is_working {
            return;
        }
        self.settle_queue(core as QueueId);
        self.cores[core].clock.fall_idle(&self.queues[core].pelt);
        self.cores[core].is_working = false;
        // Its clock has caught up: the time between counts as idle before anything else happens at this moment.
        self.queues[core].settled_ns = Ns::MAX;
        self.settle_queue(core as QueueId);
    }

    /// Brings a queue's averages up to its core's time.
    #[inline]
    pub(super) fn settle_queue(&mut self, id: QueueId) {
        let queue = &mut self.queues[id as usize];
        queue.settle(&mut self.cores[usize::from(queue.core)], self.now_ns);
    }

    /// Brings the averages of a sleeping thread up to when those of its core were kept last: an idle core's stay as
    /// they are until they are read (`sync_entity_load_avg`).
    pub(super) fn sync(&mut self, id: EntityId) {
        let entity = &mut self.entities[id as usize];
        if entity.is_attached && !entity.is_queued {
            let kept_ns = self.queues[entity.queue as usize].kept_ns;
            entity.pelt.update(kept_ns, Activity::ASLEEP);
        }
    }

    /// A sleeping thread goes to another core: what it has added to its old one's averages leaves them when these are
    /// brought up to date next (`remove_entity_load_avg`, `migrate_se_pelt_lag`).
    pub(super) fn remove(&mut self, id: EntityId) {
        let queue_id = self.entities[id as usize].queue;
        let is_top = self.queues[queue_id as usize].parent.is_none();
        if self.kernel.is_by_load() || !is_top || !self.entities[id as usize].is_attached {
            return self.detach(id);
        }
        self.sync(id);
        let core = self.core_of(id);
        let entity = &mut self.entities[id as usize];
        entity.is_attached = false;
        self.queues[queue_id as usize].removed.push((entity.pelt, entity.weight as u32));
        if !self.cores[core].is_working {
            self.advance(core);
            let now_ns = self.cores[core].clock.time_ns();
            self.entities[id as usize].pelt.update(now_ns, Activity::ASLEEP);
        }
    }

    /// Brings an entity's averages, and its queue's, up to its core's time; it is about to do something else.
    pub(super) fn settle(&mut self, id: EntityId) {
        let now_ns = self.now_ns;
        let (entity, queue, core) = self.parts(id);
        entity.settle(id, queue, core, now_ns);
    }

    /// An entity's averages become a part of its queue's, and of those above (`attach_entity_load_avg`); a new one gets
    /// its first (`post_init_entity_util_avg`).
    pub(super) fn attach(&mut self, id: EntityId, is_new: bool) {
        if self.entities[id as usize].is_attached {
            return;
        }
        let queue_id = self.entities[id as usize].queue;
        self.settle_queue(queue_id);
        let core = usize::from(self.queues[queue_id as usize].core);
        let time_ns = self.cores[core].clock.time_ns();
        let weight = self.entities[id as usize].weight as u32;
        let mut pelt = self.entities[id as usize].pelt;
        if is_new && self.entities[id as usize].thread.is_some() {
            let capacity = if self.kernel.is_by_load() {
                CAPACITY_ONE as u32
            } else {
                self.cores[core].capacity_max as u32
            };
            pelt = Pelt::forked(time_ns, &self.queues[queue_id as usize].pelt, weight, capacity);
        } else if is_new {
            pelt = Pelt::new(time_ns);
        }
        self.queues[queue_id as usize].pelt.attach(&mut pelt, weight);
        let mut above = self.queues[queue_id as usize].parent;
        while let Some(group) = above {
            let queue = self.entities[group as usize].queue;
            self.settle_queue(queue);
            let mut copy = pelt;
            self.queues[queue as usize].pelt.attach(&mut copy, 0);
            above = self.queues[queue as usize].parent;
        }
        let entity = &mut self.entities[id as usize];
        entity.pelt = pelt;
        entity.is_attached = true;
    }

    /// An entity's averages leave its queue's, and those above (`detach_entity_load_avg`).
    pub(super) fn detach(&mut self, id: EntityId) {
        self.settle(id);
        let entity = &mut self.entities[id as usize];
        if !std::mem::take(&mut entity.is_attached) {
            return;
        }
        let (pelt, weight) = (entity.pelt, entity.weight as u32);
        let mut queue_id = entity.queue;
        self.queues[queue_id as usize].pelt.detach(&pelt, weight);
        while let Some(group) = self.queues[queue_id as usize].parent {
            queue_id = self.entities[group as usize].queue;
            self.settle_queue(queue_id);
            self.queues[queue_id as usize].pelt.detach(&pelt, 0);
        }
    }

    /// A thread's estimate follows what it has used, when it goes to sleep (`util_est_update`).
    pub(super) fn estimate(&mut self, id: EntityId) {
        let core = usize::from(self.queues[self.entities[id as usize].queue as usize].core);
        let capacity = self.cores[core].capacity_max as u32;
        let entity = &mut self.entities[id as usize];
        let pelt = entity.pelt;
        entity.estimate.on_sleep(&pelt, capacity);
    }

    /// Average load of a queue as of its last change (`cfs_rq_load_avg`).
    #[inline]
    pub(super) fn queue_load(&self, queue: QueueId) -> u64 {
        self.queues[queue as usize].pelt.load_avg(1)
    }

    /// Load of a core (`cpu_load`).
    #[inline]
    pub(super) fn load_on(&self, core: usize) -> u64 {
        self.queue_load(core as QueueId)
    }

    /// Utilisation of a core by averages and estimates, at most its capacity (`cpu_util_cfs`).
    #[inline]
    pub(super) fn util_on(&self, core: usize) -> u64 {
        let queue = &self.queues[core];
        let util = queue.pelt.util_avg().max(queue.estimates);
        u64::from(util).min(self.cores[core].capacity_max)
    }

    /// The same, with the time spent waiting (`cpu_util_cfs_boost`).
    pub(super) fn boosted_on(&self, core: usize) -> u64 {
        let queue = &self.queues[core];
        let util = queue.pelt.util_avg().max(queue.estimates).max(queue.pelt.runnable_avg());
        u64::from(util).min(self.cores[core].capacity_max)
    }

    /// The utilisation of a core without a thread's (`cpu_util_without`).
    pub(super) fn util_without(&self, core: usize, id: EntityId) -> u64 {
        let (util, estimates) = self.parts_without(core, id);
        u64::from(util.max(estimates)).min(self.cores[core].capacity_max)
    }

    /// Average utilisation of a core, and the sum of its estimates, without a thread's.
    pub(super) fn parts_without(&self, core: usize, id: EntityId) -> (u32, u32) {
        let entity = &self.entities[id as usize];
        let queue = &self.queues[core];
        let is_here = usize::from(self.queues[entity.queue as usize].core) == core;
        let mut util = queue.pelt.util_avg();
        let mut estimates = queue.estimates;
        if is_here && entity.is_attached {
            util = util.saturating_sub(entity.pelt.util_avg());
            if entity.is_queued && !entity.is_delayed {
                estimates = estimates.saturating_sub(entity.estimate.util());
            }
        }
        (util, estimates)
    }

    /// Time that threads of a core are runnable on average, 1024 for each (`cpu_runnable`).
    pub(super) fn runnable_on(&self, core: usize) -> u64 {
        self.queues[core].pelt.runnable_avg().into()
    }

    /// A thread's utilisation, or what is estimated of it (`task_util_est`).
    #[inline]
    pub(super) fn util_of(&self, id: EntityId) -> u64 {
        let entity = &self.entities[id as usize];
        u64::from(entity.pelt.util_avg().max(entity.estimate.util()))
    }

    /// A thread's load, as its core sees it through the groups that it is in (`task_h_load`).
    pub(super) fn load_of(&self, id: EntityId) -> u64 {
        let entity = &self.entities[id as usize];
        let mut load = entity.pelt.load_avg(entity.weight as u32);
        let mut queue = &self.queues[entity.queue as usize];
        while let Some(group) = queue.parent {
            let group = &self.entities[group as usize];
            load = load * group.weight / (queue.pelt.load_avg(1) + 1);
            queue = &self.queues[group.queue as usize];
        }
        load
    }

    /// Whether a core takes a thread well (`task_fits_cpu`).
    pub(super) fn fits_on(&self, id: EntityId, core: usize) -> bool {
        if self.walt.is_some() {
            return self.fits_by_demand(id, core);
        }
        self.fit_on(id, core) == Fit::Well
    }

    /// How well a core takes a thread (`util_fits_cpu`).
    pub(super) fn fit_on(&self, id: EntityId, core: usize) -> Fit {
        Fit::on(self.util_of(id), self.clamps(id), self.cores[core].capacities())
    }

    /// Brings all averages of a core up to now (`sched_balance_update_blocked_averages`).
    pub(super) fn settle_core(&mut self, core: usize) {
        for index in 0..self.queues_of_groups[core].len() {
            let queue = self.queues_of_groups[core][index];
            self.settle_queue(queue);
        }
        self.settle_queue(core as QueueId);
        self.cores[core].settle_taken(self.now_ns);
        if let Some(current) = self.cores[core].current {
            self.settle(current);
        }
    }

    /// Whether a core has less than a fifth of its capacity to spare (`cpu_overutilized`).
    pub(super) fn is_overutilised(&self, core: usize) -> bool {
        if self.goes_by_demand() {
            return self.lacks_capacity(core, 0);
        }
        !fits(self.util_on(core), self.cores[core].capacity)
    }

    /// Notes whether a thread is too big for the core on which it runs (`update_misfit_status`). Up to 6.9 that may be
    /// the greatest one, if heat takes of it (6.10 and later: `max_allowed_capacity`).
    pub(super) fn note_misfit(&mut self, core: usize) {
        if !self.kernel.asymmetric || !self.domains.is_asymmetric {
            return;
        }
        let own = &self.cores[core];
        let may_be = own.capacity_max < self.domains.capacity_max
            || (own.taken.is_some() && self.kernel.pressure == Pressure::Averaged);
        let load = match own.current {
            Some(current)
                if may_be && self.may_use_several(current) && !self.fits_on(current, core) =>
            {
                self.load_of(current).max(1)
            }
            _ => 0,
        };
        self.cores[core].misfit_load = load;
    }

    /// Time of the last update of a queue's averages: for tests of decay.
    #[cfg(test)]
    pub(super) fn load_after(&mut self, core: usize, now_ns: u64) -> u64 {
        self.now_ns = now_ns;
        self.settle_core(core);
        self.load_on(core)
    }
}
