//! The fair class as a fast plane.

use ampsched_model::{ClusterId, CoreId, Ns, Sees, ThreadId};

use super::Fair;
use super::kernel::Order;
use super::run::{Comes, Leaves};
use super::state::{Entity, EntityId, WEIGHT_ONE};
use super::stats::When;
use crate::{Act, EnqueueKind, FastPlane, Honours, Pick, RunState, Sched, Turn};

impl FastPlane for Fair {
    fn tick_ns(&self) -> Ns {
        self.tick_ns
    }

    fn honours(&self) -> Honours {
        Honours {
            slice: self.kernel.takes_slices,
            uclamp: self.kernel.asymmetric,
            group: true,
            batch: true,
        }
    }

    fn added(&mut self, sched: &Sched, thread: ThreadId, now_ns: Ns) {
        self.now_ns = now_ns;
        let slice_ns = self.scaled(self.kernel.base_slice_ns);
        let weight = u64::from(sched.plan(thread).weight);
        let id = self.entities.len() as u32;
        self.entities.push(Entity::new(Some(thread), 0, weight, slice_ns));
        debug_assert_eq!(self.entity_of.len(), thread.index(), "threads are added in order");
        self.entity_of.push(id);
        if let Some(walt) = &mut self.walt {
            walt.add();
        }
        self.refresh(sched, thread);
    }

    fn place(
        &mut self,
        sched: &Sched,
        thread: ThreadId,
        kind: EnqueueKind,
        waker: Option<CoreId>,
        now_ns: Ns,
    ) -> CoreId {
        self.now_ns = now_ns;
        let id = self.id(thread);
        let core = match kind {
            EnqueueKind::Fork => {
                // Who starts a program is not simulated: something that runs on the first core.
                self.starter = waker.is_none().then_some(0);
                let this = waker.map_or(0, CoreId::index);
                self.waking_core = this;
                let queue = self.queue_on(self.entities[id as usize].queue, this);
                self.entities[id as usize].queue = queue;
                self.entities[id as usize].recent_core = this as u16;
                self.place_new_behind_parent(id, this);
                let core = self.core_for_new(sched, id, this);
                self.starter = None;
                core
            }
            EnqueueKind::Wake | EnqueueKind::Requeue => {
                // A timer or device interrupts the core on which it was asked.
                let this = waker.map_or_else(|| self.core_of(id), CoreId::index);
                self.waking_core = this;
                if self.walt.is_some() {
                    self.book_sleep(id, kind);
                }
                if self.entities[id as usize].is_delayed {
                    self.because = "it has not left its queue yet";
                    self.core_of(id)
                } else {
                    self.core_for_woken(sched, id, this)
                }
            }
        };
        CoreId::from(core)
    }

    fn enqueued(
        &mut self,
        sched: &Sched,
        thread: ThreadId,
        core: CoreId,
        kind: EnqueueKind,
        now_ns: Ns,
    ) -> bool {
        self.now_ns = now_ns;
        let (id, core) = (self.id(thread), core.index());
        self.charge(core);
        self.end_idle(core);
        if self.entities[id as usize].is_delayed {
            self.wake_delayed(id);
        } else if kind == EnqueueKind::Fork {
            self.entities[id as usize].queue =
                self.queue_on(self.entities[id as usize].queue, core);
            self.enqueue(id, Comes::New);
        } else {
            self.set_core(id, core);
            let comes = if kind == EnqueueKind::Wake { Comes::Woken } else { Comes::Moved };
            self.enqueue(id, comes);
        }
        self.enter_by_demand(id, kind == EnqueueKind::Fork);
        if kind != EnqueueKind::Fork && self.is_overutilised(core) {
            self.root.is_overutilised = true;
        }
        let interrupts = match self.cores[core].current.map(|current| self.thread_of(current)) {
            Some(running) if running != thread => match sched.preempts_by_class(thread, running) {
                Some((yes, because)) => {
                    self.because = because;
                    yes
                }
                None => self.interrupts(core, id),
            },
            _ => false,
        };
        if !interrupts {
            return false;
        }
        if self.kernel.preempts_lazily && core != self.waking_core {
            self.cores[core].is_to_choose = true;
            return false;
        }
        true
    }

    fn dequeued(&mut self, _sched: &Sched, thread: ThreadId, now_ns: Ns) {
        self.now_ns = now_ns;
        let id = self.id(thread);
        self.charge(self.core_of(id));
        self.leave_by_demand(id, false);
        if self.entities[id as usize].is_queued {
            self.dequeue(id, Leaves::Moves);
        }
    }

    fn left(
        &mut self,
        _sched: &Sched,
        thread: ThreadId,
        core: CoreId,
        state: RunState,
        now_ns: Ns,
    ) {
        self.now_ns = now_ns;
        let (id, core) = (self.id(thread), core.index());
        self.charge(core);
        self.leave_by_demand(id, state == RunState::Blocked);
        match state {
            RunState::Blocked => self.sleep(id),
            RunState::Exited => {
                self.dequeue(id, Leaves::Ends);
                self.detach(id);
            }
            _ => {
                self.dequeue(id, Leaves::Moves);
            }
        }
        self.put_back(core);
        if self.queues[core].queued == 0 {
            self.fall_idle(core);
        }
    }

    fn pick(&mut self, sched: &Sched, core: CoreId, now_ns: Ns, acts: &mut Vec<Act>) -> Pick {
        self.now_ns = now_ns;
        let own = core.index();
        if let Some(id) = self.next_on(own) {
            return Pick::Run(self.thread_of(id));
        }
        if self.cores[own].current.is_none() {
            self.fall_idle(own);
        }
        if self.cores[own].idle_since_ns.is_none() {
            self.cores[own].idle_since_ns = Some(now_ns);
        }
        // What has come may sleep; then there is still nothing to run.
        let came = self.balance_newly_idle(sched, own, acts);
        let Some(id) = came.then(|| self.first_on(own)).flatten() else {
            self.note_idle_core(own);
            return Pick::Idle { recheck_ns: None };
        };
        self.because = "the core fell idle and took it from the busiest one";
        let thread = self.thread_of(id);
        acts.retain(|act| !matches!(*act, Act::Move { thread: other, .. } if other == thread));
        acts.retain(|act| *act != Act::Resched(core));
        Pick::Run(thread)
    }

    fn next_turn(&mut self, core: CoreId, now_ns: Ns) -> Option<ThreadId> {
        self.now_ns = now_ns;
        let core = core.index();
        let id = self.next_on(core)?;
        self.begin_turn(core, id);
        Some(self.thread_of(id))
    }

    fn started(&mut self, _sched: &Sched, core: CoreId, turn: Turn, now_ns: Ns) {
        self.now_ns = now_ns;
        let core = core.index();
        self.charge(core);
        self.begin_turn(core, self.id(turn.thread));
    }

    fn yields(&mut self, _sched: &Sched, core: CoreId, now_ns: Ns) {
        self.now_ns = now_ns;
        let core = core.index();
        self.charge(core);
        let Some(id) = self.cores[core].current else { return };
        if self.queues[self.entities[id as usize].queue as usize].queued < 2 {
            return;
        }
        let request = self.entities[id as usize].request();
        let queue = self.entities[id as usize].queue;
        let eligible = self.is_eligible(queue, id);
        let entity = &mut self.entities[id as usize];
        match self.kernel.order {
            Order::Eevdf => {
                // Who has had more than its share gives up nothing (6.18, and stable kernels before).
                if eligible {
                    entity.vruntime = entity.deadline;
                    entity.deadline += request;
                }
                entity.protected_until = entity.vruntime;
            }
            Order::Cfs => self.skip_once(id),
        }
    }

    fn expiry_ns(&mut self, _sched: &Sched, core: CoreId, now_ns: Ns) -> Option<Ns> {
        if !self.kernel.hrtick {
            return None;
        }
        self.now_ns = now_ns;
        let core = core.index();
        self.charge(core);
        let id = self.cores[core].current?;
        let entity = &self.entities[id as usize];
        if self.queues[entity.queue as usize].queued < 2 {
            return None;
        }
        let left = entity.protected_until.min(entity.deadline) - entity.vruntime;
        let left_ns = left.max(0) as u64 * entity.weight / WEIGHT_ONE;
        Some(now_ns + left_ns.max(10_000))
    }

    fn tick(&mut self, sched: &Sched, now_ns: Ns, acts: &mut Vec<Act>) {
        self.now_ns = now_ns;
        let ticks = self.ticks();
        let (mut kicks, mut is_busy) = (false, false);
        let mut some_idle = self.first_idle().is_some();
        if self.kernel.is_by_load() {
            self.note_loads();
        }
        for core in 0..self.cores.len() {
            if self.cores[core].current.is_none() {
                continue;
            }
            is_busy = true;
            let mut chooses =
                self.charge(core) | std::mem::take(&mut self.cores[core].is_to_choose);
            self.settle_core(core);
            if self.kernel.order == Order::Cfs {
                chooses |= self.turn_is_over(core);
            }
            if chooses {
                acts.push(Act::Resched(CoreId::from(core)));
            }
            self.note_misfit(core);
            if !self.root.is_overutilised && self.is_overutilised(core) {
                self.root.is_overutilised = true;
            }
            self.move_up(sched, core, acts);
            kicks |= some_idle && self.kicks_idle(core);
            if ticks >= self.cores[core].balance_due {
                self.balance_domains(sched, core, When::Busy, acts);
                some_idle = self.first_idle().is_some();
            }
        }
        if kicks {
            self.balance_idle(sched, acts);
        } else if is_busy && ticks > self.root.blocked_due {
            self.note_blocked();
        }
    }

    fn changed(&mut self, sched: &Sched, thread: ThreadId, now_ns: Ns) {
        self.now_ns = now_ns;
        self.refresh(sched, thread);
        let id = self.id(thread);
        let weight = u64::from(sched.plan(thread).weight);
        // Averages are rounded whenever they are brought up to date: not for what holds already.
        if weight == self.entities[id as usize].weight {
            return;
        }
        self.charge(self.core_of(id));
        self.reweigh(id, weight);
    }

    fn occupied(&mut self, _sched: &Sched, core: CoreId, is_taken: bool, now_ns: Ns) {
        self.now_ns = now_ns;
        let core = core.index();
        self.charge(core);
        self.put_back(core);
        self.cores[core].is_occupied = is_taken;
        if is_taken && self.queues[core].queued == 0 {
            self.fall_idle(core);
        }
    }

    fn clocked(&mut self, sched: &Sched, core: CoreId, now_ns: Ns) {
        self.now_ns = now_ns;
        self.advance(core.index());
        let own = &mut self.cores[core.index()];
        let cluster = sched.topology().core(core).cluster;
        let highest = sched.topology().clusters()[cluster.index()].max_mhz().unwrap_or(1).max(1);
        let present = u64::from(sched.frequency_mhz(cluster));
        let is_known = sched.topology().sees() == Sees::Capacities;
        if is_known && self.kernel.asymmetric && !self.kernel.is_by_load() {
            own.capacity_now = own.capacity_max * present / u64::from(highest);
        }
        self.clock_by_demand(core.index(), present, highest.into());
    }

    fn util(&mut self, core: CoreId, now_ns: Ns) -> Option<u32> {
        self.clock_util(core.index(), now_ns)
    }

    fn capped(&mut self, sched: &Sched, cluster: ClusterId, now_ns: Ns) {
        self.now_ns = now_ns;
        self.press(sched, cluster);
    }

    fn because(&self) -> &'static str {
        self.because
    }

    fn check(&self, sched: &Sched) -> Result<(), String> {
        self.recount(sched)
    }
}

impl Fair {
    /// The thread that comes first on a core, which is charged up to now.
    #[inline]
    fn next_on(&mut self, core: usize) -> Option<EntityId> {
        self.charge(core);
        let id = self.first_on(core)?;
        self.because = match self.kernel.order {
            Order::Eevdf => {
                "of those that have had no more than their share its deadline is earliest"
            }
            Order::Cfs => {
                self.forget_buddies(id);
                "it has had least time"
            }
        };
        Some(id)
    }

    /// A core, charged up to now, runs a thread of its queue, or goes on with the one that it has.
    #[inline]
    fn begin_turn(&mut self, core: usize, id: EntityId) {
        if self.cores[core].current == Some(id) {
            return;
        }
        self.put_back(core);
        self.cores[core].is_to_choose = false;
        self.end_idle(core);
        if self.walt.is_some() {
            self.book_wait(id, core);
        }
        self.take(core, id);
        self.note_misfit(core);
    }

    /// A core has something to run again (`update_rq_avg_idle`).
    fn end_idle(&mut self, core: usize) {
        let own = &mut self.cores[core];
        let Some(since_ns) = own.idle_since_ns.take() else { return };
        let idle_ns = self.now_ns - since_ns;
        let mean = own.idle_mean_ns as i64;
        let mean = mean + (idle_ns as i64 - mean) / 8;
        own.idle_mean_ns = (mean as Ns).min(2 * super::balance::MIGRATION_COST_NS);
    }
}
