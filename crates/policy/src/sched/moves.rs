//! Threads come into queues, onto cores and off them; the books of queues, cores and threads follow.

use ampsched_model::{AppId, CoreId, Ns, ThreadId};

use super::{EnqueueKind, RunState, Sched};
use crate::queue::Entry;
use crate::{Activity, Order};

/// A thread is on a core now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The thread.
    pub thread: ThreadId,
    /// Whether the core had run another thread before.
    pub switched: bool,
    /// The other core on which the thread had been before, if so.
    pub migrated_from: Option<CoreId>,
}

impl Sched {
    /// Puts a thread that is not in a queue into the queue of a core.
    #[inline]
    pub fn enqueue(&mut self, thread: ThreadId, core: CoreId, kind: EnqueueKind, now_ns: Ns) {
        self.leave_state(thread, now_ns);
        if kind != EnqueueKind::Requeue
            || self.queue_index(self.thread(thread).core) != self.queue_index(core)
        {
            self.place_vruntime(thread, core, kind);
        }
        let queue = self.queue_index(core);
        let state = &mut self.threads[thread.index()];
        state.state = RunState::Ready;
        state.since_ns = now_ns;
        state.core = core;
        state.is_aside = false;
        self.serial += 1;
        let entry = Entry { key: state.vruntime, serial: self.serial, thread };
        self.count_in(thread, queue);
        self.queues[queue].push(entry);
        self.waiting += 1;
        self.track(thread, core, Activity::WAITING, now_ns);
        if self.has_rounds() {
            self.wait_in_round(thread);
        }
    }

    /// Puts a waiting thread on a core. Returns whether the core had run another thread before and
    /// whether the thread had been on another core: `(switched, migrated_from)`.
    #[inline]
    pub fn start(&mut self, core: CoreId, thread: ThreadId, now_ns: Ns) -> (bool, Option<CoreId>) {
        let state = &self.threads[thread.index()];
        debug_assert_eq!(state.state, RunState::Ready, "only a waiting thread can be started");
        let (from, waited_ns) = (state.core, now_ns.saturating_sub(state.since_ns));
        self.stats[thread.index()].count_wait(waited_ns);
        let (old, new) = (self.queue_index(from), self.queue_index(core));
        self.queues[old].remove(thread);
        self.waiting -= 1;
        if old != new {
            self.leave_queue(thread, old);
            self.place_vruntime(thread, core, EnqueueKind::Requeue);
            self.count_in(thread, new);
        }
        if self.has_rounds() {
            self.leave_round(thread);
            self.enter_round(thread, core);
        }
        self.queues[new].running += 1;
        let state = &mut self.threads[thread.index()];
        state.core = core;
        state.state = RunState::Running;
        state.since_ns = now_ns;
        let ran_on = state.ran_on.replace(core);
        let cpu = &mut self.cores[core.index()];
        debug_assert!(cpu.above.is_none(), "an occupied core starts nothing");
        self.idle_cores -= u16::from(cpu.running.is_none());
        cpu.running = Some(thread);
        cpu.since_ns = now_ns;
        (cpu.turn_ns, cpu.turn_virtual_ns) = (0, 0);
        let switched = cpu.last.replace(thread) != Some(thread);
        let migrated_from = ran_on.filter(|&from| from != core);
        let stats = &mut self.stats[thread.index()];
        stats.switches += u64::from(switched);
        if migrated_from.is_some() {
            stats.migrations += 1;
            stats.migrated_at_ns = now_ns;
        }
        self.track(thread, core, Activity::RUNNING, now_ns);
        (switched, migrated_from)
    }

    /// Takes the running thread off a core; it is then in no queue. `state` is what becomes of it:
    /// ready (the host enqueues it next), blocked or exited.
    #[inline]
    pub fn stop(&mut self, core: CoreId, state: RunState, now_ns: Ns) {
        let thread = self.cores[core.index()].running.take().expect("a thread runs on the core");
        self.idle_cores += 1;
        self.cores[core.index()].since_ns = now_ns;
        let queue = self.queue_index(core);
        self.queues[queue].running -= 1;
        self.leave_queue(thread, queue);
        if self.has_rounds() {
            self.end_in_round(thread);
        }
        if state != RunState::Ready {
            self.raise_least(queue);
        }
        let entry = &mut self.threads[thread.index()];
        entry.state = state;
        entry.since_ns = now_ns;
        match state {
            RunState::Exited => {
                self.track_exit(thread, now_ns);
                self.leave_present(thread);
            }
            // It is queued or held back at once, which is tracked then.
            RunState::Ready => {}
            _ => self.track(thread, core, Activity::ASLEEP, now_ns),
        }
    }

    /// The running thread loses its core and waits in the core's queue again: [`Sched::stop`] and
    /// [`Sched::enqueue`] in one, without counting it out and in.
    #[inline]
    pub fn requeue(&mut self, core: CoreId, now_ns: Ns) {
        if matches!(self.rules.order, Order::Deadline | Order::Rounds { .. }) {
            let thread = self.cores[core.index()].running.expect("a thread runs on the core");
            self.stop(core, RunState::Ready, now_ns);
            return self.enqueue(thread, core, EnqueueKind::Requeue, now_ns);
        }
        let cpu = &mut self.cores[core.index()];
        let thread = cpu.running.take().expect("a thread runs on the core");
        cpu.since_ns = now_ns;
        let queue = &mut self.queues[usize::from(cpu.queue)];
        self.idle_cores += 1;
        self.waiting += 1;
        self.serial += 1;
        let state = &mut self.threads[thread.index()];
        state.state = RunState::Ready;
        state.since_ns = now_ns;
        queue.running -= 1;
        queue.push(Entry { key: state.vruntime, serial: self.serial, thread });
        self.track(thread, core, Activity::WAITING, now_ns);
    }

    /// The running thread's turn ends and the core takes what comes first: [`Sched::requeue`],
    /// [`Sched::pick_by_rules`] and [`Sched::start`] in one. None, and nothing has happened, if that takes more than
    /// looking at the head of the queue.
    #[inline]
    pub fn next_turn(&mut self, core: CoreId, now_ns: Ns) -> Option<Turn> {
        if self.load.is_some() || !matches!(self.rules.order, Order::Fifo | Order::Vruntime) {
            return None;
        }
        let cpu = &self.cores[core.index()];
        let thread = cpu.running?;
        let queue = &mut self.queues[usize::from(cpu.queue)];
        let key = self.threads[thread.index()].vruntime;
        let entry = Entry { key, serial: self.serial + 1, thread };
        let next = queue.first_with(&entry)?.thread;
        if !self.affinities.allows(self.plans[next.index()].affinity, core) {
            return None;
        }
        queue.exchange(entry);
        Some(self.change_turns(core, thread, next, now_ns))
    }

    /// The running thread's turn ends and the core takes a thread that waits in its queue, or the same one again:
    /// [`Sched::requeue`] and [`Sched::start`] in one, for a host that chooses itself, where threads have no virtual
    /// run times here.
    #[inline]
    pub fn hand_over(&mut self, core: CoreId, next: ThreadId, now_ns: Ns) -> Turn {
        debug_assert_eq!(self.rules.order, Order::Fifo, "all else is kept by others");
        let cpu = &self.cores[core.index()];
        let thread = cpu.running.expect("a thread runs on the core");
        if next != thread {
            let key = self.threads[thread.index()].vruntime;
            let entry = Entry { key, serial: self.serial + 1, thread };
            self.queues[usize::from(cpu.queue)].replace(entry, next);
        }
        self.track(thread, core, Activity::WAITING, now_ns);
        self.track(next, core, Activity::RUNNING, now_ns);
        self.change_turns(core, thread, next, now_ns)
    }

    /// The books of a core and two threads, once the queue has the one instead of the other.
    #[inline]
    fn change_turns(&mut self, core: CoreId, thread: ThreadId, next: ThreadId, now_ns: Ns) -> Turn {
        self.serial += 1;
        let cpu = &mut self.cores[core.index()];
        cpu.since_ns = now_ns;
        (cpu.turn_ns, cpu.turn_virtual_ns) = (0, 0);
        let ended = &mut self.threads[thread.index()];
        ended.since_ns = now_ns;
        if next == thread {
            return Turn { thread, switched: false, migrated_from: None };
        }
        ended.state = RunState::Ready;
        cpu.running = Some(next);
        cpu.last = Some(next);
        let begun = &mut self.threads[next.index()];
        let waited_ns = now_ns - begun.since_ns;
        begun.state = RunState::Running;
        begun.since_ns = now_ns;
        begun.core = core;
        let migrated_from = begun.ran_on.replace(core).filter(|&from| from != core);
        let stats = &mut self.stats[next.index()];
        stats.count_wait(waited_ns);
        stats.switches += 1;
        if migrated_from.is_some() {
            stats.migrations += 1;
            stats.migrated_at_ns = now_ns;
        }
        Turn { thread: next, switched: true, migrated_from }
    }

    /// Takes a waiting thread out of its queue; the host enqueues it elsewhere next.
    pub fn dequeue(&mut self, thread: ThreadId) {
        let queue = self.queue_index(self.thread(thread).core);
        self.threads[thread.index()].is_aside = true;
        self.queues[queue].remove(thread);
        self.waiting -= 1;
        self.leave_queue(thread, queue);
        if self.has_rounds() {
            self.leave_round(thread);
        }
    }

    /// Holds back a thread that is in no queue and on no core.
    pub fn hold(&mut self, thread: ThreadId, now_ns: Ns) {
        self.rest(thread, RunState::Held, now_ns);
    }

    /// Ends a thread that is in no queue and on no core.
    pub fn retire(&mut self, thread: ThreadId, now_ns: Ns) {
        self.leave_state(thread, now_ns);
        let state = &mut self.threads[thread.index()];
        state.state = RunState::Exited;
        state.since_ns = now_ns;
        self.raise_least(self.queue_index(self.thread(thread).core));
        self.track_exit(thread, now_ns);
        self.leave_present(thread);
    }

    /// A thread has exited. The list is cleared when half of it has: a constant cost per thread.
    pub(super) fn leave_present(&mut self, thread: ThreadId) {
        let state = &self.threads[thread.index()];
        // The policy does not see, nor count, threads of classes above it.
        if !state.is_above {
            self.live[state.app.index()] -= 1;
        }
        self.gone += 1;
        if 2 * self.gone > self.present.len() {
            let threads = &self.threads;
            self.present.retain(|thread| threads[thread.index()].state != RunState::Exited);
            self.gone = 0;
        }
    }

    #[inline]
    fn leave_queue(&mut self, thread: ThreadId, queue: usize) {
        if self.rules.order == Order::Deadline {
            self.keep_lag(thread, queue);
        }
        self.count_out(thread, queue);
    }

    /// A thread has left a queue for good or to sleep. If no thread runs there, the first that waits has the least
    /// virtual run time now; else that is seen when the running thread is charged (Linux `update_min_vruntime` in
    /// `dequeue_entity`). So threads that start later come behind those that wait, not where one was that never ran.
    #[inline]
    fn raise_least(&mut self, queue: usize) {
        let queue = &mut self.queues[queue];
        if queue.running == 0 && !matches!(self.rules.order, Order::Fifo | Order::Deadline) {
            queue.min_vruntime = queue.min_vruntime.max(queue.least().unwrap_or(0));
        }
    }

    #[inline]
    pub(super) fn leave_state(&mut self, thread: ThreadId, now_ns: Ns) {
        let state = &self.threads[thread.index()];
        self.stats[thread.index()].count_stay(state.state, now_ns.saturating_sub(state.since_ns));
        if state.state == RunState::New {
            self.count_live(state.app);
        }
    }

    /// An application has one live thread more.
    #[cold]
    pub(super) fn count_live(&mut self, app: AppId) {
        if self.live.len() <= app.index() {
            self.live.resize(app.index() + 1, 0);
        }
        self.live[app.index()] += 1;
    }

    #[inline]
    fn count_in(&mut self, thread: ThreadId, queue: usize) {
        let weight = self.plans[thread.index()].weight;
        self.queues[queue].load += u64::from(weight);
        if self.rules.order == Order::Deadline {
            let vruntime = self.threads[thread.index()].vruntime;
            self.queues[queue].weighted_vruntime += i128::from(weight) * i128::from(vruntime);
        }
    }

    #[inline]
    fn count_out(&mut self, thread: ThreadId, queue: usize) {
        let weight = self.plans[thread.index()].weight;
        let queue = &mut self.queues[queue];
        queue.load -= u64::from(weight);
        if self.rules.order == Order::Deadline {
            let vruntime = self.threads[thread.index()].vruntime;
            queue.weighted_vruntime -= i128::from(weight) * i128::from(vruntime);
            if queue.load == 0 {
                queue.min_vruntime = vruntime;
            }
        }
    }
}
