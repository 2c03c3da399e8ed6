//! Threads become runnable: waking, placing, pre-empting, and which idle cores look.

use ampsched_model::{CoreId, Ns, ObjectId, ThreadId};
use ampsched_policy::{DecidedBy, EnqueueKind, Event, NoWitness, Reason, RunState, Witness};

use super::events::SimEvent;
use super::threads::WaitsFor;
use super::timers::NEVER;
use super::{Engine, Fallible};
use crate::Decision;

impl Engine<'_> {
    /// Wakes a blocked thread; its wait is blamed on `waker`.
    pub(super) fn wake(&mut self, thread: ThreadId, waker: Option<ThreadId>) -> Fallible {
        // A thread of a stopped application may still stand in a waiting list.
        if self.sched.thread(thread).state != RunState::Blocked {
            self.end_spinning(thread);
            return Ok(());
        }
        if let Some(waker) = waker {
            let waited_ns = self.events.now_ns() - self.sched.thread(thread).since_ns;
            self.sched.blame(waker, waited_ns);
        }
        let now_ns = self.events.now_ns();
        let entry = &mut self.threads[thread];
        entry.waits_for = WaitsFor::Nothing;
        entry.timeliness.wakes(now_ns);
        self.make_runnable(thread, EnqueueKind::Wake, waker)
    }

    /// Wakes threads one after the other on behalf of one.
    pub(super) fn wake_all(
        &mut self,
        threads: impl IntoIterator<Item = ThreadId>,
        waker: ThreadId,
    ) -> Fallible {
        threads.into_iter().try_for_each(|thread| self.wake(thread, Some(waker)))
    }

    /// A device has finished a thread's request.
    pub(super) fn end_io(&mut self, device: ObjectId, thread: ThreadId) -> Fallible {
        // Not for a device that has been reset since it was asked.
        let entry = &self.threads[thread];
        if entry.repetition == self.apps[entry.app].repetition {
            if let Some((next, service_ns)) = self.objects.next_request(device) {
                self.serve(device, next, service_ns);
            }
        }
        let latency_ns = self.objects.latency_ns(device);
        if latency_ns == 0 {
            return self.come_back(thread);
        }
        self.events.schedule(self.events.now_ns() + latency_ns, SimEvent::IoBack(thread));
        Ok(())
    }

    /// A thread's request is done: it goes on.
    pub(super) fn come_back(&mut self, thread: ThreadId) -> Fallible {
        let came_back = self.end_io_wait(thread);
        self.wake(thread, None)?;
        if came_back {
            self.governors_hear_io(self.sched.thread(thread).core);
        }
        Ok(())
    }

    /// A device begins to serve a thread.
    pub(super) fn serve(&mut self, device: ObjectId, thread: ThreadId, service_ns: Ns) {
        let at_ns = self.events.now_ns() + service_ns;
        self.events.schedule(at_ns, SimEvent::IoDone(device, thread));
    }

    /// A thread does not wait for a device any more. Returns whether it did.
    pub(super) fn end_io_wait(&mut self, thread: ThreadId) -> bool {
        let Some(core) = self.threads[thread].io_core.take() else { return false };
        self.account(core);
        self.cores[core].waiting_io -= 1;
        true
    }

    /// A thread became runnable: place it, queue it, and see who must look. `waker` caused it.
    pub(super) fn make_runnable(
        &mut self,
        thread: ThreadId,
        kind: EnqueueKind,
        waker: Option<ThreadId>,
    ) -> Fallible {
        if self.sched.is_above(thread) {
            return self.ready_above(thread, kind, waker);
        }
        let now_ns = self.events.now_ns();
        if self.sched.plan(thread).held {
            self.threads.held += 1;
            self.sched.hold(thread, now_ns);
            if let Some(watch) = &mut self.record.watch {
                watch.trace.decided(thread, Decision::Held, None, now_ns);
            }
            return Ok(());
        }
        let core = self.place(thread, kind, waker)?;
        self.account_for_move(thread, core);
        self.sched.enqueue(thread, core, kind, now_ns);
        let chooses = self.fast_enqueued(thread, core, kind);
        self.threads.runnable += 1;
        self.governors_hear(core);
        if let Some(watch) = &mut self.record.watch {
            watch.queued(thread, core, waker, self.sched.queue_len(core), now_ns);
        }
        if kind == EnqueueKind::Wake {
            self.record.counts.wakeups += 1;
            self.tell(Event::Woken(thread, waker))?;
        }
        if self.supervisor.fast.is_some() {
            self.tell_interruption(thread, core, chooses);
        }
        if chooses || self.should_preempt(thread, core) {
            self.record.counts.preemptions += 1;
            self.cores[core].resched = true;
            self.events.timers.set(core, now_ns);
        } else {
            let costs = self.setup.machine.costs_on(self.cores[core].cluster);
            self.after_enqueue(core, now_ns + costs.wakeup_latency_ns);
        }
        if let Some(waker) = waker {
            self.charge_waker(waker, kind);
        }
        Ok(())
    }

    /// Tells a trace whether a woken thread interrupts the one on its core, by a fast plane of the policy's own.
    fn tell_interruption(&mut self, woken: ThreadId, core: CoreId, yes: bool) {
        let (now_ns, running) = (self.events.now_ns(), self.sched.core(core).running);
        if let (Some(watch), Some(running)) = (&mut self.record.watch, running) {
            watch.preempts(woken, running, core, now_ns, |told| {
                let because = if yes {
                    "choosing anew would choose it"
                } else {
                    "choosing anew would not choose it, or not before the next tick"
                };
                told.because(|| Reason::new(DecidedBy::Hook, because));
                yes
            });
        }
    }

    /// Waking and starting others takes time of the thread that does it, before its next step.
    pub(super) fn charge_waker(&mut self, waker: ThreadId, kind: EnqueueKind) {
        let core = self.sched.thread(waker).core;
        let costs = self.setup.machine.costs_on(self.cores[core].cluster);
        let wake_ns = if kind == EnqueueKind::Fork { costs.fork_ns } else { costs.wake_ns };
        if wake_ns > 0 && self.sched.current(core) == Some(waker) {
            self.account(core);
            self.cores[core].delay(&self.threads[waker], wake_ns);
            self.arm(core);
        }
    }

    /// Whether a running thread still pays for having woken or started others, or for a line that comes to its core.
    #[inline]
    pub(super) fn pays_for_waking(&self, thread: ThreadId) -> bool {
        let core = &self.cores[self.sched.thread(thread).core];
        core.works_from_ns > self.events.now_ns() && {
            let costs = self.setup.machine.costs_on(core.cluster);
            costs.wake_ns > 0 || costs.fork_ns > 0 || self.handovers.is_some()
        }
    }

    fn place(
        &mut self,
        thread: ThreadId,
        kind: EnqueueKind,
        waker: Option<ThreadId>,
    ) -> Fallible<CoreId> {
        let waker_core = waker.map(|waker| self.sched.thread(waker).core);
        let now_ns = self.events.now_ns();
        let (sched, supervisor) = (&self.sched, &mut self.supervisor);
        let core = match &mut self.record.watch {
            None => supervisor.place(sched, thread, kind, waker_core, now_ns, NoWitness),
            Some(watch) => {
                watch.place(|told| supervisor.place(sched, thread, kind, waker_core, now_ns, told))
            }
        };
        if !self.supervisor.needs.hooks.place
            || (core.index() < self.cores.len() && self.sched.allows(thread, core))
        {
            return Ok(core);
        }
        let what = format!("places thread {} on core {}, which it may not use", thread.0, core.0);
        Err(self.setup.bad_policy(what))
    }

    fn should_preempt(&mut self, thread: ThreadId, core: CoreId) -> bool {
        let Some(running) = self.sched.core(core).running else { return false };
        if self.sched.thread(thread).state != RunState::Ready || self.supervisor.fast.is_some() {
            return false;
        }
        let (now_ns, sched, supervisor) = (self.events.now_ns(), &self.sched, &mut self.supervisor);
        match &mut self.record.watch {
            None => supervisor.preempts(sched, thread, running, core, now_ns, NoWitness),
            Some(watch) => watch.preempts(thread, running, core, now_ns, |told| {
                supervisor.preempts(sched, thread, running, core, now_ns, told)
            }),
        }
    }

    /// Moves a thread that may no longer be where it is.
    pub(super) fn relocate(&mut self, thread: ThreadId) -> Fallible {
        let core = self.sched.thread(thread).core;
        match self.sched.thread(thread).state {
            RunState::Ready => {
                self.sched.dequeue(thread);
                self.fast_dequeued(thread);
            }
            RunState::Running => {
                self.account(core);
                self.take_off(core, thread, RunState::Ready);
                self.threads[thread].involuntary += 1;
                self.events.timers.set(core, self.events.now_ns());
            }
            RunState::Held => {
                self.threads.held -= 1;
                return self.make_runnable(thread, EnqueueKind::Wake, None);
            }
            RunState::New | RunState::Blocked | RunState::Exited => return Ok(()),
        }
        self.threads.runnable -= 1;
        self.make_runnable(thread, EnqueueKind::Requeue, None)
    }

    /// A thread waits in a core's queue: the core, or idle ones, must look; slices may change.
    pub(super) fn after_enqueue(&mut self, core: CoreId, idle_looks_ns: Ns) {
        if self.sched.is_free(core) {
            let due_ns = self.events.timers.get(core);
            // The core can take only one: a further thread is for others.
            if due_ns > idle_looks_ns {
                self.events.timers.set(core, idle_looks_ns);
                return;
            }
        } else {
            self.refresh_slices(core);
            self.watch_fair(core);
        }
        self.kick_idle_cores(idle_looks_ns);
    }

    /// The queue of a core got longer: recompute the slice end of the cores that it serves.
    fn refresh_slices(&mut self, core: CoreId) {
        for other in self.sched.cores_of_queue(core) {
            let Some(thread) = self.sched.core(other).running else { continue };
            self.account(other);
            // Steps that wait to be executed at this very moment keep their timer.
            let slice_end_ns = self.slice_end_ns(other, thread);
            self.cores[other].slice_end_ns = slice_end_ns;
            self.arm(other);
        }
    }

    /// Idle cores may be allowed to take a thread that they were not before: they have to be woken up for it, as by a
    /// thread that has to wait.
    pub(super) fn offer_to_idle_cores(&mut self) {
        self.kick_idle_cores(self.events.now_ns() + self.setup.machine.longest_wakeup_ns());
    }

    /// Idle cores look for work, if the rules say so.
    pub(super) fn kick_idle_cores(&mut self, at_ns: Ns) {
        // Many threads may wake at one moment; that all idle cores look needs saying only once.
        if self.sched.idle_cores() == 0
            || self.events.idle_look_ns <= at_ns
            || !self.sched.rules().kick_idle
        {
            return;
        }
        let topology = self.sched.topology();
        for other in topology.cores() {
            if self.sched.is_free(other) {
                // Those with a physical core for themselves look first; of two idle threads of a core, one has it.
                let is_late = topology.is_second(other) || self.sched.shares_core(other);
                let looks_ns = at_ns + Ns::from(is_late);
                let due_ns = self.events.timers.get(other).min(looks_ns);
                self.events.timers.set(other, due_ns);
            }
        }
        self.events.idle_look_ns = at_ns;
    }

    /// A thread has started on a core: idle ones may want what waits there or the thread itself.
    #[inline(never)]
    pub(super) fn tell_idle_cores(&mut self, core: CoreId, migrated: bool) {
        if self.sched.queue_len(core) > 0 {
            self.kick_idle_cores(self.events.now_ns());
        }
        let topology = self.sched.topology();
        let is_slow = topology.core(core).class < topology.top_class();
        if migrated || is_slow || self.sched.shares_core(core) {
            self.remind_idle_cores();
        }
    }

    /// A core without work may pull a thread that starts on a slower or shared one, once it has been there long enough.
    fn remind_idle_cores(&mut self) {
        if !self.sched.pulls_running() {
            return;
        }
        for other in self.sched.topology().cores() {
            if self.sched.is_idle(other) && self.events.timers.get(other) == NEVER {
                self.events.timers.set(other, self.events.now_ns());
            }
        }
    }
}
