//! Threads of classes above run: they become ready, get cores, are interrupted, wait, change class and end.

use ampsched_model::{CoreId, Ns, SchedClass, ThreadId};
use ampsched_policy::{DecidedBy, EnqueueKind, Event, Reason, RunState, ThreadAttrs};

use super::super::events::SimEvent;
use super::super::steps::{Next, Step};
use super::super::threads::Work;
use super::super::timers::NEVER;
use super::super::watch::why_waits;
use super::super::{Engine, Fallible};
use super::{DL_SHARE, QUANTUM_NS};
use crate::SimError;

impl Engine<'_> {
    /// Whether nobody but the policy schedules anything.
    #[inline]
    pub(in crate::engine) fn has_realtime(&self) -> bool {
        self.realtime.is_some()
    }

    /// A thread that is on no core and in no queue is of a class above from now on.
    ///
    /// Errors: deadline threads would reserve too much of the machine, or one may not use all of it.
    pub(in crate::engine) fn enter_above(
        &mut self,
        thread: ThreadId,
        class: SchedClass,
    ) -> Fallible {
        let cores = self.sched.topology().cores();
        let capacity: u64 =
            cores.map(|it| u64::from(self.sched.topology().core(it).capacity)).sum();
        let limit = capacity * DL_SHARE / 1024;
        let Some(realtime) = self.realtime.as_deref_mut() else { return Ok(()) };
        realtime.enter(thread, class);
        let reserved = realtime.reserved;
        self.sched.raise(thread);
        if !matches!(class, SchedClass::Deadline { .. }) {
            return Ok(());
        }
        let share = |bandwidth: u64| format!("{:.3}", bandwidth as f64 / f64::from(1 << 20));
        if reserved > limit {
            let thread = self.thread_name(thread);
            let (asked, limit) = (share(reserved), share(limit));
            return Err(SimError::NoBandwidth { thread, asked, limit }.into());
        }
        let mut cores = self.sched.topology().cores();
        if cores.any(|core| !self.sched.user_allows(thread, core)) {
            return Err(SimError::BoundDeadline { thread: self.thread_name(thread) }.into());
        }
        Ok(())
    }

    /// A thread of a class above becomes ready, woken or started by `waker` if any.
    pub(in crate::engine) fn ready_above(
        &mut self,
        thread: ThreadId,
        kind: EnqueueKind,
        waker: Option<ThreadId>,
    ) -> Fallible {
        let now_ns = self.events.now_ns();
        self.begin_job(thread, now_ns);
        let Some(realtime) = self.realtime.as_deref_mut() else { return Ok(()) };
        let entity = realtime.entity_mut(thread);
        let throttled = match entity.class {
            SchedClass::Deadline { .. } => entity.budget.wake(now_ns),
            _ => None,
        };
        let core = self.sched.thread(thread).core;
        self.sched.wait_above(thread, core, now_ns);
        self.threads.runnable += 1;
        self.record.counts.wakeups += u64::from(kind == EnqueueKind::Wake);
        if let Some(watch) = &mut self.record.watch {
            let because = "it waits in its place among the threads of classes above the policy's";
            watch.placed_above(Reason::new(DecidedBy::Class, because));
            watch.queued(thread, core, waker, self.sched.queue_len(core), now_ns);
        }
        match throttled {
            Some(until_ns) => self.wait_for_budget(thread, until_ns),
            None => self.wait_for_core(thread, false),
        }
        if let Some(waker) = waker {
            self.charge_waker(waker, kind);
        }
        Ok(())
    }

    /// A thread waits in its place among those that are ready, and aims at a core if it can.
    fn wait_for_core(&mut self, thread: ThreadId, before_equals: bool) {
        let Some(realtime) = self.realtime.as_deref_mut() else { return };
        realtime.push(thread, before_equals);
        self.aim(thread);
    }

    /// A deadline thread waits for a new budget.
    fn wait_for_budget(&mut self, thread: ThreadId, until_ns: Ns) {
        let Some(realtime) = self.realtime.as_deref_mut() else { return };
        realtime.throttled.push(thread);
        let entity = realtime.entity_mut(thread);
        entity.throttlings += 1;
        let event = SimEvent::Replenish(thread, entity.throttlings);
        self.events.schedule(until_ns.max(self.events.now_ns()), event);
    }

    /// A deadline thread gets its new budget.
    pub(in crate::engine) fn replenish(&mut self, thread: ThreadId, throttling: u32) {
        let now_ns = self.events.now_ns();
        let Some(realtime) = self.realtime.as_deref_mut() else { return };
        if !realtime.throttled.contains(&thread)
            || realtime.entity(thread).throttlings != throttling
        {
            return;
        }
        realtime.take(thread);
        realtime.entity_mut(thread).budget.replenish(now_ns);
        self.wait_for_core(thread, false);
    }

    /// A core on which nothing runs takes a thread of a class above, if one is for it. Returns whether it does.
    pub(in crate::engine) fn dispatch_above(&mut self, core: CoreId) -> bool {
        let Some(realtime) = self.realtime.as_deref() else { return false };
        if realtime.is_reserved(core) {
            return false;
        }
        let is_for = |&thread: &ThreadId| match realtime.aim(thread) {
            Some(aim) => aim == core,
            None => self.sched.user_allows(thread, core),
        };
        let Some(thread) = realtime.ready().find(is_for) else { return false };
        self.start_above(core, thread);
        self.give_up_on(core);
        self.aim_all();
        true
    }

    fn start_above(&mut self, core: CoreId, thread: ThreadId) {
        let now_ns = self.events.now_ns();
        let pace = self.pace(core);
        let Some(realtime) = self.realtime.as_deref_mut() else { return };
        realtime.take(thread);
        let entity = realtime.entity_mut(thread);
        (entity.from_ns, entity.pace) = (now_ns, pace);
        let end_ns = entity.rest_ns().map_or(NEVER, |rest_ns| now_ns + rest_ns.max(1));
        if let Some(watch) = &mut self.record.watch {
            let because = "the most urgent thread of the classes above the policy's";
            watch.picked_above(Reason::new(DecidedBy::Class, because));
        }
        self.occupy(core, thread, end_ns);
        self.watch_fair(core);
    }

    /// How fast budgets are used on a core, in 1/1024: its capacity at the present frequency (kernel/sched/deadline.c,
    /// `dl_scaled_delta_exec`, 6.12).
    fn pace(&self, core: CoreId) -> u64 {
        let topology = self.sched.topology();
        let place = topology.core(core);
        let mhz = u64::from(self.sched.frequency_mhz(place.cluster));
        let max_mhz = topology.clusters()[place.cluster.index()].max_mhz().unwrap_or(0);
        u64::from(place.capacity) * mhz / u64::from(max_mhz).max(1)
    }

    /// The frequency of a core has changed: the budget of the thread there lasts another time.
    pub(in crate::engine) fn pace_budget(&mut self, core: CoreId) {
        let Some(thread) = self.sched.core(core).above else { return };
        let (now_ns, pace) = (self.events.now_ns(), self.pace(core));
        let Some(realtime) = self.realtime.as_deref_mut() else { return };
        let entity = realtime.entity_mut(thread);
        entity.settle(now_ns);
        entity.pace = pace;
        let end_ns = entity.rest_ns().map_or(NEVER, |rest_ns| now_ns + rest_ns);
        self.cores[core].slice_end_ns = end_ns;
    }

    /// The timer of an occupied core is due: work done, budget or quantum used up, or it is to switch.
    pub(in crate::engine) fn on_timer_above(&mut self, core: CoreId, thread: ThreadId) -> Fallible {
        self.account(core);
        if self.threads[thread].work == Work::Steps {
            match self.advance(thread)? {
                Next::Work => {}
                Next::Blocked => return self.release_above(core, thread, RunState::Blocked),
                Next::Exited => return self.release_above(core, thread, RunState::Exited),
                Next::GivesUp => return self.yield_above(core, thread),
                Next::Moves => {
                    let because = "it restricts itself to other cores";
                    self.record.because(|| Reason::new(DecidedBy::Program, because));
                    return self.requeue_above(core, thread, false);
                }
                Next::Changes(class) => return self.change_above(core, thread, class),
            }
        }
        let now_ns = self.events.now_ns();
        let resched = std::mem::take(&mut self.cores[core].resched);
        let is_over = now_ns >= self.cores[core].slice_end_ns;
        if is_over {
            let Some(realtime) = self.realtime.as_deref_mut() else { return Ok(()) };
            let entity = realtime.entity_mut(thread);
            entity.settle(now_ns);
            if let SchedClass::Deadline { .. } = entity.class {
                if entity.budget.is_used_up() {
                    self.because_above("its budget is used up");
                    return self.throttle_running(core, thread);
                }
            } else if entity.quantum_ns == 0 {
                entity.quantum_ns = QUANTUM_NS;
                let own = entity.urgency();
                let sched = &self.sched;
                let is_equal = |&other: &ThreadId| {
                    let may = realtime.aim(other).is_none() && sched.user_allows(other, core);
                    may && realtime.urgency(other) == own
                };
                if realtime.ready().any(|other| is_equal(&other)) {
                    self.because_above("its quantum is over, and another of its priority waits");
                    return self.requeue_above(core, thread, false);
                }
            }
            self.pace_budget(core);
        }
        if resched && self.has_to_leave(core, thread) {
            self.because_above(
                "a more urgent thread, or the fair ones after long waiting, get the core",
            );
            return self.requeue_above(core, thread, true);
        }
        self.arm(core);
        Ok(())
    }

    /// The next turn that ends does so by the order of the classes above.
    fn because_above(&mut self, because: &'static str) {
        self.record.because(|| Reason::new(DecidedBy::Class, because));
    }

    /// Whether somebody more urgent is to have a core, or the fair threads are.
    fn has_to_leave(&self, core: CoreId, thread: ThreadId) -> bool {
        let Some(realtime) = self.realtime.as_deref() else { return false };
        let own = realtime.urgency(thread);
        realtime.is_reserved(core) || realtime.coming[core.index()].is_some_and(|it| it < own)
    }

    fn settle_above(&mut self, core: CoreId, thread: ThreadId) {
        let now_ns = self.events.now_ns();
        debug_assert_eq!(self.sched.core(core).above, Some(thread));
        if let Some(realtime) = self.realtime.as_deref_mut() {
            realtime.entity_mut(thread).settle(now_ns);
        }
    }

    /// The thread that occupies a core waits again, before equally urgent ones if it was interrupted.
    fn requeue_above(&mut self, core: CoreId, thread: ThreadId, interrupted: bool) -> Fallible {
        self.settle_above(core, thread);
        self.vacate(core, thread, RunState::Ready);
        self.threads[thread].involuntary += u64::from(interrupted);
        self.sched.wait_above(thread, core, self.events.now_ns());
        if let Some(realtime) = self.realtime.as_deref_mut() {
            realtime.push(thread, interrupted);
        }
        self.dispatch(core)?;
        self.aim_all();
        Ok(())
    }

    /// The thread that occupies a core has used its budget up.
    fn throttle_running(&mut self, core: CoreId, thread: ThreadId) -> Fallible {
        let now_ns = self.events.now_ns();
        self.vacate(core, thread, RunState::Ready);
        self.threads[thread].involuntary += 1;
        self.sched.wait_above(thread, core, now_ns);
        let Some(realtime) = self.realtime.as_deref_mut() else { return Ok(()) };
        let until_ns = realtime.entity(thread).budget.next_period_ns();
        self.wait_for_budget(thread, until_ns);
        self.dispatch(core)
    }

    /// `sched_yield`: behind all of its priority; a deadline thread gives up the rest of its budget.
    fn yield_above(&mut self, core: CoreId, thread: ThreadId) -> Fallible {
        self.settle_above(core, thread);
        self.record.because(|| Reason::new(DecidedBy::Program, "it yields the core"));
        self.end_job(thread);
        let Some(realtime) = self.realtime.as_deref_mut() else { return Ok(()) };
        let entity = realtime.entity_mut(thread);
        if let SchedClass::Deadline { .. } = entity.class {
            entity.budget.give_up();
            let next_ns = entity.budget.next_period_ns();
            self.begin_job(thread, next_ns);
            return self.throttle_running(core, thread);
        }
        self.requeue_above(core, thread, false)
    }

    /// The thread that occupies a core blocks or exits.
    fn release_above(&mut self, core: CoreId, thread: ThreadId, state: RunState) -> Fallible {
        self.settle_above(core, thread);
        self.end_job(thread);
        self.record.because(|| why_waits(&self.threads[thread], &self.objects));
        self.vacate(core, thread, state);
        self.threads.runnable -= 1;
        if state == RunState::Exited {
            self.leave_above(thread);
            self.finish_thread(thread)?;
        } else {
            self.threads[thread].voluntary += 1;
        }
        self.dispatch(core)
    }

    fn leave_above(&mut self, thread: ThreadId) {
        if let Some(realtime) = self.realtime.as_deref_mut() {
            realtime.leave(thread);
        }
    }

    /// A thread of a class above ends where it is, because its application's time is over.
    pub(in crate::engine) fn end_above(&mut self, thread: ThreadId) {
        let (now_ns, core) = (self.events.now_ns(), self.sched.thread(thread).core);
        match self.sched.thread(thread).state {
            RunState::Running => {
                self.account(core);
                self.vacate(core, thread, RunState::Exited);
                self.events.timers.set(core, now_ns);
                self.threads.runnable -= 1;
            }
            RunState::Ready => {
                self.sched.retire_above(thread, now_ns);
                self.threads.runnable -= 1;
            }
            RunState::Blocked => {
                self.end_io_wait(thread);
                self.sched.retire_above(thread, now_ns);
            }
            RunState::New | RunState::Held | RunState::Exited => {}
        }
        self.leave_above(thread);
    }

    /// A thread asks for another class; what it runs on has to switch if that is above, or was.
    pub(in crate::engine) fn set_class(&mut self, thread: ThreadId, class: SchedClass) -> Step {
        self.threads[thread].next_step();
        let before = self.sched.attrs(thread).class;
        if before == class {
            return Step::Go;
        }
        if before.is_above() || class.is_above() {
            return Step::Stop(Next::Changes(class));
        }
        self.put_class(thread, class);
        Step::Go
    }

    /// Writes a thread's class down, and the weight that follows from it.
    fn put_class(&mut self, thread: ThreadId, class: SchedClass) {
        let attrs = ThreadAttrs { class, ..*self.sched.attrs(thread) };
        self.set_attrs(thread, attrs);
        self.weigh(thread);
        self.fast_changed(thread);
    }

    /// A fair thread that runs on a core goes to a class above.
    pub(in crate::engine) fn rise(
        &mut self,
        core: CoreId,
        thread: ThreadId,
        class: SchedClass,
    ) -> Fallible {
        self.record.because(|| Reason::new(DecidedBy::Program, "it changes its class"));
        self.take_off(core, thread, RunState::Blocked);
        self.threads.runnable -= 1;
        self.tell(Event::Blocked(thread))?;
        self.put_class(thread, class);
        self.enter_above(thread, class)?;
        self.ready_above(thread, EnqueueKind::Wake, None)?;
        self.dispatch(core)
    }

    /// The thread that occupies a core changes its class.
    fn change_above(&mut self, core: CoreId, thread: ThreadId, class: SchedClass) -> Fallible {
        self.settle_above(core, thread);
        self.record.because(|| Reason::new(DecidedBy::Program, "it changes its class"));
        self.vacate(core, thread, RunState::Blocked);
        self.threads.runnable -= 1;
        self.leave_above(thread);
        self.put_class(thread, class);
        if class.is_above() {
            self.enter_above(thread, class)?;
            self.ready_above(thread, EnqueueKind::Wake, None)?;
        } else {
            self.sched.lower(thread);
            let kind = self.introduce(thread)?;
            // A change of class counts as a wait of no length.
            self.record.counts.wakeups += u64::from(kind != EnqueueKind::Wake);
            self.make_runnable(thread, kind, None)?;
        }
        self.dispatch(core)
    }

    /// The policy hears of a thread, if it has not yet. Returns how the thread comes into a queue.
    fn introduce(&mut self, thread: ThreadId) -> Fallible<EnqueueKind> {
        if self.threads[thread].is_known {
            return Ok(EnqueueKind::Wake);
        }
        self.threads[thread].is_known = true;
        self.refresh_factor(thread);
        self.tell(Event::Added(thread))?;
        Ok(EnqueueKind::Fork)
    }
}
