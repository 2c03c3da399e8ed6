//! Task groups: their queues on all cores, what they weigh there, and threads that change groups.

use ampsched_model::ThreadId;

use super::kernel::Order;
use super::run::{Comes, Leaves};
use super::state::{Entity, EntityId, Queue, QueueId, WEIGHT_ONE};
use super::{Fair, Owner};
use crate::{GroupId, Sched};

impl Fair {
    /// The place of a thread's group: that which its program states, else its session's, if sessions are groups
    /// (`sched_get_task_group`, autogroup.h: `autogroup_task_group`).
    pub(super) fn place_of(&mut self, sched: &Sched, thread: ThreadId) -> usize {
        match sched.attrs(thread).group {
            GroupId::ROOT if self.groups_sessions => {
                self.queues_of(sched, Owner::Session(sched.app(thread)))
            }
            stated => self.queues_of(sched, Owner::Group(stated)),
        }
    }

    /// The place of a group, which gets queues on all cores if it has none (`alloc_fair_sched_group`).
    fn queues_of(&mut self, sched: &Sched, owner: Owner) -> usize {
        if let Some(place) = self.groups.iter().position(|&(known, _)| known == owner) {
            return place;
        }
        let (parent, shares) = match owner {
            Owner::Group(group) => {
                let info = sched.group_info(group);
                (info.parent, u64::from(info.shares))
            }
            Owner::Session(_) => (GroupId::ROOT, WEIGHT_ONE),
        };
        let above = self.queues_of(sched, Owner::Group(parent));
        let place = self.groups.len();
        let count = self.cores.len();
        let slice_ns = self.scaled(self.kernel.base_slice_ns);
        self.groups.push((owner, shares));
        for core in 0..count {
            let id = self.entities.len() as EntityId;
            let own = (place * count + core) as QueueId;
            let queue = (above * count + core) as QueueId;
            let mut entity = Entity::new(None, queue, shares, slice_ns);
            entity.own_queue = Some(own);
            self.entities.push(entity);
            self.queues.push(Queue::new(core as u16, Some(id)));
            self.queues_of_groups[core].push(own);
        }
        place
    }

    /// A thread belongs to a group from now on (`sched_move_task`).
    pub(super) fn set_group(&mut self, id: EntityId, place: usize) {
        let count = self.cores.len();
        let (queue, core) = (self.entities[id as usize].queue as usize, self.core_of(id));
        if queue / count == place {
            return;
        }
        self.charge(core);
        let runs = self.cores[core].current == Some(id);
        let is_queued = self.entities[id as usize].is_queued;
        if runs {
            self.put_back(core);
        }
        if is_queued {
            self.dequeue(id, Leaves::Moves);
        }
        self.detach(id);
        self.entities[id as usize].queue = (place * count + core) as QueueId;
        if is_queued {
            self.enqueue(id, Comes::Moved);
        }
        if runs {
            self.take(core, id);
        }
    }

    /// What a group weighs on a core follows its load there (`update_cfs_group`).
    pub(super) fn reweigh_group(&mut self, id: EntityId) {
        if let Some(own) = self.entities[id as usize].own_queue {
            let weight = self.group_weight_on(own);
            self.reweigh(id, weight);
        }
    }

    /// A group's shares x its load on a core / its load everywhere, at least 2 (`calc_group_shares`).
    fn group_weight_on(&self, queue: QueueId) -> u64 {
        let count = self.cores.len() as QueueId;
        let group = queue / count;
        let shares = self.groups[group as usize].1;
        let own = self.queues[queue as usize].weight.max(self.queue_load(queue));
        let load = |other: QueueId| if other == queue { own } else { self.queue_load(other) };
        let total: u64 = (group * count..(group + 1) * count).map(load).sum();
        (shares * own).checked_div(total).map_or(shares, |own| own.clamp(2, shares.max(2)))
    }

    /// The weight of a thread or group changes: its lag in work stays (`reweight_entity`).
    pub(super) fn reweigh(&mut self, id: u32, weight: u64) {
        if self.entities[id as usize].weight == weight {
            return;
        }
        self.settle(id);
        let entity = &self.entities[id as usize];
        let (queue_id, is_queued, old) = (entity.queue, entity.is_queued, entity.weight);
        let waits = is_queued && self.queues[queue_id as usize].current != Some(id);
        let mean = self.mean_vruntime(queue_id);
        if waits {
            self.queues[queue_id as usize].remove(id);
        }
        if self.entities[id as usize].is_attached {
            let pelt = self.entities[id as usize].pelt;
            self.queues[queue_id as usize].pelt.reweigh(&pelt, old as u32, weight as u32);
        }
        let is_fair_by_lag = self.kernel.order == Order::Eevdf;
        let entity = &mut self.entities[id as usize];
        entity.weight = weight;
        let rescale = |virtual_ns: i64| {
            (i128::from(virtual_ns) * i128::from(old) / i128::from(weight)) as i64
        };
        if is_queued && is_fair_by_lag {
            let (behind, ahead) = (mean - entity.vruntime, entity.deadline - entity.vruntime);
            entity.vruntime = mean - rescale(behind);
            entity.deadline = entity.vruntime + rescale(ahead);
        } else if is_fair_by_lag {
            entity.lag = rescale(entity.lag);
        }
        if is_queued {
            let queue = &mut self.queues[queue_id as usize];
            queue.weight = queue.weight - old + weight;
        }
        if waits {
            let entry = self.entry(id);
            self.queues[queue_id as usize].insert(entry);
        }
    }
}
