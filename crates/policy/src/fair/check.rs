//! Checks that the counts of queues are those of what is in them, and that the host's books agree.

use std::collections::BTreeMap;
use std::fmt::Debug;

use ampsched_model::ThreadId;

use super::Fair;
use super::state::{Entity, EntityId, Entry, Queue, QueueId};
use crate::{RunState, Sched};

/// What is kept against what is counted.
fn same<T: PartialEq + Debug>(what: &str, of: u32, kept: T, counted: T) -> Result<(), String> {
    if kept == counted {
        Ok(())
    } else {
        Err(format!("{what} of {of}: kept {kept:?}, counted {counted:?}"))
    }
}

/// In how many queues an entity is.
#[derive(Clone, Copy, Default)]
struct Places {
    waits: u32,
    runs: u32,
    /// Of these, in the queue that it names.
    own: u32,
}

impl Places {
    fn add(&mut self, runs: bool, is_own: bool) {
        *(if runs { &mut self.runs } else { &mut self.waits }) += 1;
        self.own += u32::from(is_own);
    }
}

impl Fair {
    /// Recounts everything that is kept up to date step by step. It costs as much as all live threads together.
    ///
    /// # Errors
    /// What differs.
    pub fn recount(&self, sched: &Sched) -> Result<(), String> {
        for id in 0..self.queues.len() as QueueId {
            self.recount_queue(id)?;
        }
        for (number, core) in self.cores.iter().enumerate() {
            let current = self.queues[number].current;
            same("whether it runs", number as u32, core.current.is_some(), current.is_some())?;
            let is_whole = core.taken.is_some() || core.capacity == core.capacity_max;
            same("whether its capacity is its own", number as u32, is_whole, true)?;
        }
        self.walt.as_ref().map_or(Ok(()), |walt| walt.check())?;
        // Those of threads that have ended are many, where programs are repeated.
        let live = sched.live_threads().filter_map(|thread| self.entity_of.get(thread.index()));
        let groups = self.queues.iter().filter_map(|queue| queue.parent);
        self.check_places(live.copied().chain(groups))?;
        for thread in sched.live_threads() {
            self.check_books(sched, thread)?;
        }
        Ok(())
    }

    /// Each of these entities is in the queue that it names if it is queued, and waits in no other one. So is each that
    /// is found in a queue.
    pub(super) fn check_places(&self, ids: impl Iterator<Item = EntityId>) -> Result<(), String> {
        let mut found: BTreeMap<EntityId, Places> = ids.map(|id| (id, Places::default())).collect();
        for (number, queue) in self.queues.iter().enumerate() {
            let waiting = queue.entries.iter().map(|entry| (entry.entity, false));
            for (id, runs) in waiting.chain(queue.current.map(|current| (current, true))) {
                let is_own = self.entities[id as usize].queue as usize == number;
                found.entry(id).or_default().add(runs, is_own);
            }
        }
        for (id, places) in found {
            let entity = &self.entities[id as usize];
            // Between leaving and the next choice it may still be the one that runs.
            let expected = if entity.is_queued { 1 } else { places.runs };
            same("places of entity", id, places.waits + places.runs, expected)?;
            same("places in its own queue of entity", id, places.own, expected)?;
            let leaves = entity.is_delayed && !entity.is_queued;
            same("whether it is queued or leaves now, of entity", id, leaves, false)?;
        }
        Ok(())
    }

    /// A thread that waits or runs in the books does so here.
    fn check_books(&self, sched: &Sched, thread: ThreadId) -> Result<(), String> {
        let Some(&id) = self.entity_of.get(thread.index()) else { return Ok(()) };
        // To the fair class, a thread in a class above sleeps.
        if sched.is_above(thread) {
            return Ok(());
        }
        let (entity, told) = (&self.entities[id as usize], sched.thread(thread));
        let runs = self.queues[entity.queue as usize].current == Some(id);
        let able = entity.is_queued && !entity.is_delayed;
        same("whether it can run, of entity", id, able, told.state.is_runnable())?;
        if able {
            same("core of entity", id, self.core_of(id), told.core.index())?;
        }
        if told.state == RunState::Running {
            same("whether it runs, of entity", id, runs, true)?;
        }
        Ok(())
    }

    pub(super) fn recount_queue(&self, id: QueueId) -> Result<(), String> {
        let queue = &self.queues[id as usize];
        let of = |id: EntityId| &self.entities[id as usize];
        let weight: u64 = queue.entries.iter().map(|entry| u64::from(entry.weight)).sum();
        let weighted = queue.entries.iter().map(Entry::weighted_vruntime);
        same("weight that waits in queue", id, queue.waiting_weight, weight)?;
        same("weighted virtual run time of queue", id, queue.waiting_sum, weighted.sum())?;
        same("shortest request of queue", id, queue.shortest, queue.shortest_of_entries())?;
        same("order of queue", id, queue.entries.is_sorted_by_key(|entry| entry.key), true)?;
        for entry in &queue.entries {
            let entity = of(entry.entity);
            let kept = (entry.vruntime, u64::from(entry.weight), entry.slice_ns);
            same(
                "entry of entity",
                entry.entity,
                kept,
                (entity.vruntime, entity.weight, entity.slice_ns),
            )?;
        }
        let running = queue.current.filter(|&current| of(current).is_queued);
        let all = || queue.entries.iter().map(|entry| entry.entity).chain(running);
        same("weight of queue", id, queue.weight, all().map(|id| of(id).weight).sum())?;
        same("entities of queue", id, queue.queued as usize, all().count())?;
        let below = |of_queue: fn(&Queue) -> u32, of_thread: fn(&Entity) -> bool| -> u32 {
            let count = |id: EntityId| match of(id).own_queue {
                Some(own) => of_queue(&self.queues[own as usize]),
                None => u32::from(of_thread(of(id))),
            };
            all().map(count).sum()
        };
        same("threads of queue", id, queue.threads, below(|queue| queue.threads, |_| true))?;
        let idlers = below(|queue| queue.idlers, |entity| entity.is_idler);
        same("threads of class idle of queue", id, queue.idlers, idlers)?;
        let able = below(|queue| queue.runnable, |entity| !entity.is_delayed);
        same("threads that can run of queue", id, queue.runnable, able)?;
        if queue.parent.is_some() {
            return Ok(());
        }
        // Without groups, all threads of a core are in its root queue.
        let has_groups = all().any(|id| of(id).own_queue.is_some());
        let able = all().filter(|&id| !of(id).is_delayed).map(|id| of(id).estimate.util());
        if has_groups {
            Ok(())
        } else {
            same("estimates of queue", id, queue.estimates, able.sum())
        }
    }
}
