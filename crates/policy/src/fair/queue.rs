//! The order of a queue: who is eligible, who comes first.
//!
//! EEVDF: V is the mean virtual run time of all that are queued, by weight; eligible is who has had no more than that;
//! the eligible one with the earliest deadline comes first (fair.c, `avg_vruntime`, `entity_eligible`, `pick_eevdf`).
//! CFS: the least virtual run time comes first.

use std::cmp::Ordering;

use ampsched_model::Ns;

use super::kernel::Order;
use super::state::{Entity, EntityId, Entry, NO_SLICE, Queue};
use super::{Fair, QueueId};

impl Entry {
    /// An entry for an entity.
    #[inline]
    pub fn of(id: EntityId, entity: &Entity, order: Order) -> Self {
        let key = match order {
            Order::Eevdf => entity.deadline,
            Order::Cfs => entity.vruntime,
        };
        let (vruntime, slice_ns, weight) = (entity.vruntime, entity.slice_ns, entity.weight as u32);
        Self { key, vruntime, slice_ns, weight, entity: id }
    }

    /// Weight x virtual run time.
    #[inline]
    pub fn weighted_vruntime(&self) -> i128 {
        i128::from(self.weight) * i128::from(self.vruntime)
    }
}

impl Queue {
    /// Puts an entity that does not run among those that wait.
    #[inline]
    pub fn insert(&mut self, entry: Entry) {
        self.waiting_weight += u64::from(entry.weight);
        self.waiting_sum += entry.weighted_vruntime();
        match entry.slice_ns.cmp(&self.shortest.0) {
            Ordering::Less => self.shortest = (entry.slice_ns, 1),
            Ordering::Equal => self.shortest.1 += 1,
            Ordering::Greater => {}
        }
        // Who has just run mostly comes last.
        if self.entries.last().is_none_or(|last| last.key <= entry.key) {
            return self.entries.push(entry);
        }
        let place = self.entries.partition_point(|other| other.key <= entry.key);
        self.entries.insert(place, entry);
    }

    /// Takes an entity from those that wait.
    #[inline]
    pub fn remove(&mut self, entity: EntityId) {
        let place = self.entries.iter().position(|entry| entry.entity == entity);
        let entry = self.entries.remove(place.expect("the entity waits in this queue"));
        self.waiting_weight -= u64::from(entry.weight);
        self.waiting_sum -= entry.weighted_vruntime();
        if entry.slice_ns == self.shortest.0 {
            self.shortest.1 -= 1;
            if self.shortest.1 == 0 {
                self.shortest = self.shortest_of_entries();
            }
        }
    }

    /// The shortest request of the entries, and how many have it.
    pub fn shortest_of_entries(&self) -> (Ns, u32) {
        let Some(least) = self.entries.iter().map(|entry| entry.slice_ns).min() else {
            return NO_SLICE;
        };
        (least, self.entries.iter().filter(|entry| entry.slice_ns == least).count() as u32)
    }
}

impl Fair {
    /// Total weight of a queue and the sum of weight x virtual run time, the running entity included if it is queued.
    #[inline]
    fn sums(&self, queue: QueueId) -> (u64, i128) {
        let queue = &self.queues[queue as usize];
        let (mut weight, mut sum) = (queue.waiting_weight, queue.waiting_sum);
        if let Some(current) = queue.current {
            let current = &self.entities[current as usize];
            if current.is_queued {
                weight += current.weight;
                sum += i128::from(current.weight) * i128::from(current.vruntime);
            }
        }
        (weight, sum)
    }

    /// Mean virtual run time of a queue, rounded down (`avg_vruntime`).
    pub(super) fn mean_vruntime(&self, queue: QueueId) -> i64 {
        let (weight, sum) = self.sums(queue);
        if weight == 0 {
            return self.queues[queue as usize].min_vruntime;
        }
        sum.div_euclid(i128::from(weight)) as i64
    }

    /// Total weight that counts for the mean (`avg_load`, and the running entity's).
    pub(super) fn mean_weight(&self, queue: QueueId) -> u64 {
        self.sums(queue).0
    }

    /// Whether an entity of a queue has had no more than its share (`entity_eligible`).
    #[inline]
    pub(super) fn is_eligible(&self, queue: QueueId, entity: EntityId) -> bool {
        let (weight, sum) = self.sums(queue);
        i128::from(self.entities[entity as usize].vruntime) * i128::from(weight) <= sum
    }

    /// Whether the running entity is still protected from others (`protect_slice`).
    pub(super) fn is_protected(&self, entity: EntityId) -> bool {
        let entity = &self.entities[entity as usize];
        entity.protected_until > entity.vruntime
    }

    /// The entity that comes first; the running one takes part if it is queued. `protects`: it is kept if it is
    /// protected.
    pub(super) fn first_of(&self, queue: QueueId, protects: bool) -> Option<EntityId> {
        match self.kernel.order {
            Order::Eevdf => self.earliest_eligible(queue, protects),
            Order::Cfs => self.least_or_buddy(queue),
        }
    }

    /// `pick_eevdf` (6.18).
    fn earliest_eligible(&self, id: QueueId, protects: bool) -> Option<EntityId> {
        let queue = &self.queues[id as usize];
        let current = queue.current.filter(|&current| self.entities[current as usize].is_queued);
        if queue.entries.is_empty() {
            return current;
        }
        if queue.entries.len() == 1 && current.is_none() {
            return queue.entries.first().map(|entry| entry.entity);
        }
        let (weight, sum) = self.sums(id);
        let fits = |vruntime: i64| i128::from(vruntime) * i128::from(weight) <= sum;
        let current = current.filter(|&current| fits(self.entities[current as usize].vruntime));
        if let Some(current) = current.filter(|&current| protects && self.is_protected(current)) {
            return Some(current);
        }
        let best = queue.entries.iter().find(|entry| fits(entry.vruntime));
        match (best, current) {
            (Some(best), Some(current)) => {
                let earlier = self.entities[current as usize].deadline < best.key;
                Some(if earlier { current } else { best.entity })
            }
            (Some(best), None) => Some(best.entity),
            (None, current) => current,
        }
    }

    /// An entry for an entity.
    #[inline]
    pub(super) fn entry(&self, id: EntityId) -> Entry {
        Entry::of(id, &self.entities[id as usize], self.kernel.order)
    }
}
