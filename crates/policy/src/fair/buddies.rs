//! CFS: who comes next, and what makes it another than the least (fair.c up to 6.5: `pick_next_entity`,
//! `wakeup_preempt_entity`, `set_next_buddy`, `set_last_buddy`, `set_skip_buddy`, `task_fork_fair`).

use super::kernel::Order;
use super::state::{Buddies, EntityId};
use super::{Fair, QueueId};

/// From this number of threads in a queue on, an interrupted one is to come back soon (`sched_nr_latency`).
const LAST_MATTERS: u32 = 8;

impl Buddies {
    /// An entity has got its turn, or leaves (`clear_buddies`).
    pub fn forget(&mut self, id: EntityId) {
        for buddy in [&mut self.next, &mut self.last, &mut self.skip] {
            *buddy = buddy.filter(|&buddy| buddy != id);
        }
    }
}

impl Fair {
    /// The entity of least virtual run time, or a buddy that is not far from it (`pick_next_entity`).
    pub(super) fn least_or_buddy(&self, id: QueueId) -> Option<EntityId> {
        let queue = &self.queues[id as usize];
        let current = queue.current.filter(|&current| self.entities[current as usize].is_queued);
        let first = queue.entries.first().map(|entry| entry.entity);
        let least = self.before(current, first)?;
        let is_near = |buddy: &EntityId| !self.is_far_behind(*buddy, least);
        let mut chosen = least;
        if queue.buddies.skip == Some(least) {
            let second = if Some(least) == current {
                first
            } else {
                let second = queue.entries.get(1).map(|entry| entry.entity);
                self.before(current, second)
            };
            chosen = second.filter(is_near).unwrap_or(least);
        }
        let last = queue.buddies.last.filter(is_near);
        let next = queue.buddies.next.filter(is_near);
        Some(next.or(last).unwrap_or(chosen))
    }

    /// The running entity if its virtual run time is less than a waiting one's (`entity_before`).
    fn before(&self, current: Option<EntityId>, waiting: Option<EntityId>) -> Option<EntityId> {
        let vruntime = |id: EntityId| self.entities[id as usize].vruntime;
        match (current, waiting) {
            (Some(current), Some(waiting)) if vruntime(waiting) <= vruntime(current) => {
                Some(waiting)
            }
            (current, waiting) => current.or(waiting),
        }
    }

    /// Whether one is behind another by more than the granularity of wake-ups (`wakeup_preempt_entity`).
    fn is_far_behind(&self, one: EntityId, other: EntityId) -> bool {
        let granularity_ns = self.scaled(self.kernel.wakeup_granularity_ns);
        let (one, other) = (&self.entities[one as usize], &self.entities[other as usize]);
        one.vruntime - other.vruntime > other.to_virtual(granularity_ns)
    }

    /// Whether a woken entity interrupts the running one of its queue, which stands for a thread; then both are buddies
    /// (`check_preempt_wakeup`).
    pub(super) fn interrupts_as_buddy(
        &mut self,
        thread: EntityId,
        running: EntityId,
        woken: EntityId,
    ) -> bool {
        if !self.is_far_behind(running, woken) {
            return false;
        }
        self.mark(woken, |buddies| &mut buddies.next);
        let queue = self.entities[thread as usize].queue;
        // `NEXT_BUDDY` is off by default, `LAST_BUDDY` on.
        if self.queues[queue as usize].queued >= LAST_MATTERS && running == thread {
            self.mark(running, |buddies| &mut buddies.last);
        }
        true
    }

    /// A thread yields: others come first once (`yield_task_fair`).
    pub(super) fn skip_once(&mut self, id: EntityId) {
        self.forget_buddies(id);
        self.mark(id, |buddies| &mut buddies.skip);
    }

    fn mark(&mut self, id: EntityId, buddy: impl Fn(&mut Buddies) -> &mut Option<EntityId>) {
        let mut at = Some(id);
        while let Some(each) = at {
            let queue = &mut self.queues[self.entities[each as usize].queue as usize];
            *buddy(&mut queue.buddies) = Some(each);
            at = queue.parent;
        }
    }

    /// An entity, and the groups that it is in, are nobody's buddies any more (`clear_buddies`).
    pub(super) fn forget_buddies(&mut self, id: EntityId) {
        let mut at = Some(id);
        while let Some(each) = at {
            let queue = &mut self.queues[self.entities[each as usize].queue as usize];
            queue.buddies.forget(each);
            at = queue.parent;
        }
    }

    /// How far ahead of the least a new thread begins: a slice, or as far as its parent is, next to which it was
    /// created (`task_fork_fair`, `START_DEBIT`). Kept as its lag until it comes into a queue.
    pub(super) fn place_new_behind_parent(&mut self, id: EntityId, this: usize) {
        if self.kernel.order != Order::Cfs {
            return;
        }
        self.charge(this);
        let slice_ns = self.fair_slice_ns(id);
        let entity = &self.entities[id as usize];
        let least = self.queues[entity.queue as usize].min_vruntime;
        let parent = self.queues[entity.queue as usize].current;
        let ahead = parent.map_or(0, |parent| self.entities[parent as usize].vruntime - least);
        let debit = entity.to_virtual(slice_ns);
        self.entities[id as usize].lag = debit.max(ahead);
    }
}
