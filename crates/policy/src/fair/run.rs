//! Entities come into queues, run, and leave them; run time is charged
//! (fair.c: `update_curr`, `place_entity`, `enqueue_entity`, `dequeue_entity`, `set_next_entity`, `put_prev_entity`).

use ampsched_model::Ns;

use super::Fair;
use super::kernel::{Order, Parity};
use super::state::{EntityId, Entry, QueueId};

/// How an entity comes into a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comes {
    /// It is new (`ENQUEUE_INITIAL`).
    New,
    /// It was asleep (`ENQUEUE_WAKEUP`).
    Woken,
    /// It was in another queue.
    Moved,
}

/// Why an entity leaves a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaves {
    /// It sleeps (`DEQUEUE_SLEEP`).
    Sleeps,
    /// It has slept for a while, and stays no longer (`DEQUEUE_DELAYED`).
    IsDone,
    /// It ends (`DEQUEUE_SPECIAL`).
    Ends,
    /// It goes to another queue.
    Moves,
}

impl Fair {
    /// Charges the running thread of a core, and the groups that it is in, up to now. Returns whether the core is to
    /// choose anew, since a request is used up or nothing protects the thread any more (`update_curr`).
    #[inline]
    pub(super) fn charge(&mut self, core: usize) -> bool {
        let Some(current) = self.cores[core].current else { return false };
        // Its groups are charged with it.
        let ran_ns = self.now_ns - self.entities[current as usize].charged_ns;
        ran_ns > 0 && self.charge_chain(current, ran_ns)
    }

    /// An entity and those of the groups that it is in have run for that long.
    #[inline(never)]
    fn charge_chain(&mut self, current: EntityId, ran_ns: Ns) -> bool {
        if self.walt.is_some() {
            self.book_run(current);
        }
        let mut chooses = false;
        let mut at = Some(current);
        while let Some(id) = at {
            let entity = &mut self.entities[id as usize];
            let queue = &mut self.queues[entity.queue as usize];
            at = queue.parent;
            entity.charged_ns = self.now_ns;
            if !entity.is_queued {
                continue;
            }
            entity.run_ns += ran_ns;
            entity.vruntime += entity.to_virtual(ran_ns);
            let mut least = entity.vruntime;
            let mut is_used_up = false;
            if self.kernel.order == Order::Eevdf {
                if entity.vruntime >= entity.deadline {
                    entity.deadline = entity.vruntime + entity.request();
                    is_used_up = true;
                }
            } else if let Some(first) = queue.entries.first() {
                least = least.min(first.vruntime);
            }
            queue.min_vruntime = queue.min_vruntime.max(least);
            chooses |= queue.queued > 1
                && self.kernel.order == Order::Eevdf
                && (is_used_up
                    || (self.kernel.parity == Parity::ShortestRequest
                        && entity.protected_until <= entity.vruntime));
        }
        chooses
    }

    /// Puts an entity at its virtual run time in a queue (`place_entity`).
    fn place_in(&mut self, id: EntityId, comes: Comes) {
        let queue = self.entities[id as usize].queue;
        match self.kernel.order {
            Order::Cfs => self.place_behind_least(id, queue, comes),
            Order::Eevdf => self.place_by_lag(id, queue, comes),
        }
    }

    /// EEVDF: it keeps its lag, scaled for the weight by which it moves the mean.
    fn place_by_lag(&mut self, id: EntityId, queue: QueueId, comes: Comes) {
        let (mean, load) = (self.mean_vruntime(queue), self.mean_weight(queue));
        let entity = &mut self.entities[id as usize];
        let mut lag = i128::from(entity.lag);
        if load > 0 && lag != 0 {
            lag = lag * i128::from(load + entity.weight) / i128::from(load);
        } else if load == 0 {
            lag = 0;
        }
        entity.vruntime = mean - lag as i64;
        if std::mem::take(&mut entity.has_relative_deadline) {
            entity.deadline += entity.vruntime;
            return;
        }
        let request = entity.request();
        let request = if comes == Comes::New { request / 2 } else { request };
        entity.deadline = entity.vruntime + request;
    }

    /// CFS: at most half a latency behind the least, a new one as far ahead as its parent's queue told.
    fn place_behind_least(&mut self, id: EntityId, queue: QueueId, comes: Comes) {
        let least = self.queues[queue as usize].min_vruntime;
        let latency_ns = self.scaled(self.kernel.latency_ns);
        let entity = &mut self.entities[id as usize];
        match comes {
            Comes::New => entity.vruntime = least + entity.lag,
            Comes::Woken => {
                entity.vruntime = entity.vruntime.max(least - latency_ns as i64 / 2);
            }
            Comes::Moved => {}
        }
    }

    /// CFS: the share of the period that an entity has (`sched_slice`).
    pub(super) fn fair_slice_ns(&self, id: EntityId) -> Ns {
        let latency_ns = self.scaled(self.kernel.latency_ns);
        let least_ns = self.scaled(self.kernel.base_slice_ns);
        let entity = &self.entities[id as usize];
        let count =
            Ns::from(self.queues[entity.queue as usize].queued) + Ns::from(!entity.is_queued);
        let mut slice_ns = latency_ns.max(count * least_ns);
        let mut at = Some(id);
        while let Some(id) = at {
            let entity = &self.entities[id as usize];
            let queue = &self.queues[entity.queue as usize];
            let total = queue.weight + if entity.is_queued { 0 } else { entity.weight };
            slice_ns = slice_ns * entity.weight / total.max(1);
            at = queue.parent;
        }
        slice_ns
    }

    /// How far an entity is behind the mean of its queue, at most two requests or a tick (`entity_lag`).
    pub(super) fn lag_of(&self, id: EntityId) -> i64 {
        let entity = &self.entities[id as usize];
        let limit = entity.to_virtual((2 * entity.slice_ns).max(self.tick_ns));
        (self.mean_vruntime(entity.queue) - entity.vruntime).clamp(-limit, limit)
    }

    /// Keeps the lag of an entity that leaves (`update_entity_lag`); of one whose departure was delayed, the debt
    /// that is left.
    fn keep_lag(&mut self, id: EntityId) {
        let lag = self.lag_of(id);
        let entity = &mut self.entities[id as usize];
        entity.lag = if entity.is_delayed { lag.max(entity.lag).min(0) } else { lag };
    }

    /// A thread's entity comes into its queue, and groups that were empty into theirs (`enqueue_task_fair`). The core
    /// must be charged up to now.
    pub(super) fn enqueue(&mut self, id: EntityId, comes: Comes) {
        let core = self.queues[self.entities[id as usize].queue as usize].core;
        let is_idler = u32::from(self.entities[id as usize].is_idler);
        let mut at = Some(id);
        let mut comes = comes;
        let mut counts = false;
        while let Some(each) = at {
            let entity = &self.entities[each as usize];
            let queue = entity.queue;
            if entity.is_queued {
                if entity.is_delayed {
                    self.undelay(each);
                }
                counts = true;
            }
            if !counts {
                self.enqueue_one(each, comes);
                comes = Comes::Woken;
            } else {
                self.reweigh_group(each);
            }
            let queue = &mut self.queues[queue as usize];
            queue.threads += 1;
            queue.idlers += is_idler;
            queue.runnable += 1;
            at = queue.parent;
        }
        let estimate = self.entities[id as usize].estimate.util();
        let root = &mut self.queues[usize::from(core)];
        root.estimates += estimate;
        self.stamp(id);
        if self.threads_on(usize::from(core)) >= 2 {
            self.root.is_overloaded = true;
        }
    }

    fn enqueue_one(&mut self, id: EntityId, comes: Comes) {
        self.settle(id);
        self.attach(id, comes == Comes::New);
        self.reweigh_group(id);
        self.place_in(id, comes);
        let entry = self.entry(id);
        let entity = &mut self.entities[id as usize];
        entity.is_queued = true;
        let queue = &mut self.queues[entity.queue as usize];
        queue.weight += entity.weight;
        queue.queued += 1;
        queue.insert(entry);
    }

    /// An entity whose departure was delayed has something to do again (`requeue_delayed_entity`).
    pub(super) fn undelay(&mut self, id: EntityId) {
        self.settle(id);
        let lag = self.lag_of(id);
        let queue_id = self.entities[id as usize].queue;
        if lag > 0 && self.queues[queue_id as usize].current != Some(id) {
            // It has paid: it comes back even.
            self.queues[queue_id as usize].remove(id);
            self.entities[id as usize].is_queued = false;
            self.entities[id as usize].lag = 0;
            self.place_in(id, Comes::Woken);
            let entry = self.entry(id);
            self.entities[id as usize].is_queued = true;
            self.queues[queue_id as usize].insert(entry);
        }
        self.entities[id as usize].is_delayed = false;
    }

    /// A thread whose departure was delayed wakes up where it is.
    pub(super) fn wake_delayed(&mut self, id: EntityId) {
        self.undelay(id);
        let mut at = Some(id);
        while let Some(each) = at {
            let queue = self.entities[each as usize].queue;
            let queue = &mut self.queues[queue as usize];
            queue.runnable += 1;
            at = queue.parent;
            if let Some(group) = at.filter(|&group| self.entities[group as usize].is_delayed) {
                self.undelay(group);
            }
        }
        let core = usize::from(self.queues[self.entities[id as usize].queue as usize].core);
        self.queues[core].estimates += self.entities[id as usize].estimate.util();
    }

    /// A thread's entity leaves its queue, and groups that become empty theirs (`dequeue_entities`). Returns whether
    /// the thread is out: else it stays until it has paid its debt. The core must be charged up to now.
    pub(super) fn dequeue(&mut self, id: EntityId, why: Leaves) -> bool {
        let core = usize::from(self.queues[self.entities[id as usize].queue as usize].core);
        let was_delayed = self.entities[id as usize].is_delayed;
        if !was_delayed {
            self.queues[core].estimates -= self.entities[id as usize].estimate.util();
        }
        let counts = u32::from(self.entities[id as usize].thread.is_some());
        let is_idler = u32::from(self.entities[id as usize].is_idler);
        let mut is_out = true;
        let mut goes = true;
        let mut why = why;
        let mut at = Some(id);
        while let Some(each) = at {
            let queue = self.entities[each as usize].queue;
            if goes {
                if !self.dequeue_one(each, why) {
                    is_out &= each != id;
                    goes = false;
                }
            } else {
                self.reweigh_group(each);
            }
            let own = &mut self.queues[queue as usize];
            if is_out {
                own.threads -= counts;
                own.idlers -= is_idler;
            }
            if !was_delayed {
                own.runnable -= 1;
            }
            if own.queued > 0 {
                goes = false;
            } else {
                why = Leaves::Sleeps;
            }
            at = own.parent;
        }
        is_out
    }

    /// A thread goes to sleep, and leaves an estimate of what it uses (`dequeue_task_fair`).
    pub(super) fn sleep(&mut self, id: EntityId) {
        if !self.kernel.estimates_early {
            self.dequeue(id, Leaves::Sleeps);
            return self.estimate(id);
        }
        let before = self.entities[id as usize].estimate.util();
        self.estimate(id);
        let core = self.core_of(id);
        let estimates = &mut self.queues[core].estimates;
        *estimates = *estimates - before + self.entities[id as usize].estimate.util();
        self.dequeue(id, Leaves::Sleeps);
    }

    /// Whether it is out (`dequeue_entity`).
    fn dequeue_one(&mut self, id: EntityId, why: Leaves) -> bool {
        self.settle(id);
        let queue_id = self.entities[id as usize].queue;
        let sleeps = why == Leaves::Sleeps;
        if self.kernel.order == Order::Eevdf {
            if sleeps && self.kernel.delays_dequeue && !self.is_eligible(queue_id, id) {
                self.keep_lag(id);
                self.entities[id as usize].is_delayed = true;
                return false;
            }
            self.keep_lag(id);
        }
        let entity = &mut self.entities[id as usize];
        let queue = &mut self.queues[queue_id as usize];
        if self.kernel.keeps_deadline && why == Leaves::Moves {
            entity.deadline -= entity.vruntime;
            entity.has_relative_deadline = true;
        }
        if queue.current != Some(id) {
            queue.remove(id);
        }
        entity.is_queued = false;
        entity.is_delayed = false;
        queue.weight -= entity.weight;
        queue.queued -= 1;
        if self.kernel.order == Order::Cfs {
            queue.buddies.forget(id);
            let running = queue.current.filter(|&current| current != id);
            let running = running.map(|current| self.entities[current as usize].vruntime);
            let first = queue.entries.first().map(|entry| entry.vruntime);
            if let Some(least) = running.into_iter().chain(first).min() {
                queue.min_vruntime = queue.min_vruntime.max(least);
            }
        } else if queue.queued == 0 {
            queue.min_vruntime = queue.min_vruntime.max(self.entities[id as usize].vruntime);
        }
        true
    }

    /// The running thread of a core goes back among those that wait, as far as it is queued (`put_prev_task_fair`). The
    /// core must be charged up to now.
    pub(super) fn put_back(&mut self, core: usize) {
        let (now_ns, order) = (self.now_ns, self.kernel.order);
        let mut at = self.cores[core].current.take();
        while let Some(id) = at {
            let (entity, queue, core) = self.parts(id);
            entity.settle(id, queue, core, now_ns);
            entity.left_ns = now_ns;
            queue.current = None;
            if entity.is_queued {
                queue.insert(Entry::of(id, entity, order));
            }
            at = queue.parent;
        }
    }

    /// A waiting thread runs now on its core (`set_next_task_fair`). The turn of a group goes on if the thread before
    /// was one of its own (`pick_next_task_fair`: `is_same_group`).
    pub(super) fn take(&mut self, core: usize, thread: EntityId) {
        let (now_ns, parity) = (self.now_ns, self.kernel.parity);
        let mut at = Some(thread);
        while let Some(id) = at {
            let (entity, queue, core) = self.parts(id);
            entity.settle(id, queue, core, now_ns);
            queue.remove(id);
            queue.current = Some(id);
            let shortest_ns = queue.shortest.0;
            entity.charged_ns = now_ns;
            if entity.own_queue.is_none() || entity.left_ns != now_ns {
                entity.run_before_ns = entity.run_ns;
                entity.protected_until = entity.deadline;
                if parity == Parity::ShortestRequest && shortest_ns < entity.slice_ns {
                    let until = entity.vruntime + entity.to_virtual(shortest_ns);
                    entity.protected_until = entity.deadline.min(until);
                }
            }
            at = queue.parent;
        }
        if !self.kernel.is_by_load() {
            self.stamp(thread);
        }
        self.cores[core].current = Some(thread);
        self.cores[core].is_working = true;
        self.cores[core].idle_since_ns = None;
    }

    /// It is the last of its core's threads that balancing looks at from now on.
    pub(super) fn stamp(&mut self, id: EntityId) {
        self.stamps += 1;
        self.entities[id as usize].stamp = self.stamps;
    }

    /// The thread that a core runs next, if it has one; those whose departure was delayed leave when it is their turn
    /// (`pick_task_fair`). The core must be charged up to now.
    pub(super) fn first_on(&mut self, core: usize) -> Option<EntityId> {
        loop {
            let mut queue = core as QueueId;
            let found = loop {
                let id = self.first_of(queue, true)?;
                let entity = &self.entities[id as usize];
                if entity.is_delayed {
                    break Err(id);
                }
                match entity.own_queue {
                    None => break Ok(id),
                    Some(own) => queue = own,
                }
            };
            match found {
                Ok(id) => return Some(id),
                Err(delayed) => self.finish_delayed(delayed),
            }
        }
    }

    /// An entity that has slept for a while leaves its queue.
    pub(super) fn finish_delayed(&mut self, id: EntityId) {
        self.dequeue(id, Leaves::IsDone);
    }

    /// Whether a woken thread interrupts the one that runs on its core (`check_preempt_wakeup_fair`). The core must be
    /// charged up to now.
    pub(super) fn interrupts(&mut self, core: usize, woken: EntityId) -> bool {
        let Some(current) = self.cores[core].current else { return false };
        if current == woken {
            return false;
        }
        let (mut running, mut woken) = (current, woken);
        self.to_same_queue(&mut running, &mut woken);
        let queue = self.entities[running as usize].queue;
        if self.kernel.order == Order::Cfs {
            return self.interrupts_as_buddy(current, running, woken);
        }
        let is_shorter =
            self.entities[woken as usize].slice_ns < self.entities[running as usize].slice_ns;
        let protects = !(self.kernel.preempts_for_short && is_shorter);
        self.first_of(queue, protects) == Some(woken)
    }

    /// Climbs from two entities to those in one queue (`find_matching_se`).
    fn to_same_queue(&self, one: &mut EntityId, other: &mut EntityId) {
        let depth = |mut id: EntityId| {
            let mut depth = 0;
            while let Some(parent) = self.queues[self.entities[id as usize].queue as usize].parent {
                (id, depth) = (parent, depth + 1);
            }
            depth
        };
        let (mut first, mut second) = (depth(*one), depth(*other));
        let above = |id: EntityId| {
            let parent = self.queues[self.entities[id as usize].queue as usize].parent;
            parent.expect("it is not in a root queue")
        };
        while self.entities[*one as usize].queue != self.entities[*other as usize].queue {
            if first >= second {
                (*one, first) = (above(*one), first - 1);
            } else {
                (*other, second) = (above(*other), second - 1);
            }
        }
    }

    /// CFS: whether the turn of a core's thread, or of a group that it is in, is over (`task_tick_fair`).
    pub(super) fn turn_is_over(&mut self, core: usize) -> bool {
        let mut is_over = false;
        let mut at = self.cores[core].current;
        while let Some(id) = at {
            is_over |= self.turn_within_queue_is_over(id);
            at = self.queues[self.entities[id as usize].queue as usize].parent;
        }
        is_over
    }

    /// The same within its queue (`check_preempt_tick`).
    fn turn_within_queue_is_over(&mut self, id: EntityId) -> bool {
        let entity = &self.entities[id as usize];
        let queue = &self.queues[entity.queue as usize];
        if queue.queued < 2 {
            return false;
        }
        let (share_ns, ran_ns) = (self.fair_slice_ns(id), entity.run_ns - entity.run_before_ns);
        if ran_ns > share_ns {
            self.forget_buddies(id);
            return true;
        }
        let least_ns = self.scaled(self.kernel.base_slice_ns);
        let Some(first) = queue.entries.first() else { return false };
        ran_ns >= least_ns && entity.vruntime - first.vruntime > share_ns as i64
    }

    /// The threads of a core that are queued, sleepers that still pay included (`nr_running`).
    pub(super) fn threads_on(&self, core: usize) -> u32 {
        self.queues[core].threads
    }
}
