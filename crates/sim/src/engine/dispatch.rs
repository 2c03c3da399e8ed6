//! Cores: accounting of time and instructions, dispatch, preemption, migration.

use ampsched_model::{CoreId, Ns, ThreadId};
use ampsched_policy::{EnqueueKind, Event, Pick, RunState, View};

use super::steps::Next;
use super::{Core, Engine, Fallible, NEVER, Work};
use crate::SimError;

/// Weight of nice 0.
const WEIGHT_ONE: u32 = 1024;

impl Core {
    /// Accounts the time of a core without a thread up to now.
    #[inline]
    fn account_idle(&mut self, now_ns: Ns) {
        let idle_ns = now_ns - self.accounted_ns;
        self.idle_ns += idle_ns;
        if self.waiting_io > 0 {
            self.iowait_ns += idle_ns;
        }
        self.accounted_ns = now_ns;
    }
}

impl Engine<'_> {
    /// Accounts a core's time, and its thread's progress, up to now.
    #[inline]
    pub(super) fn account(&mut self, core: CoreId) {
        let state = &mut self.cores[core.index()];
        let elapsed_ns = self.now_ns - state.accounted_ns;
        let Some(thread) = self.sched.core(core).running else {
            return state.account_idle(self.now_ns);
        };
        if elapsed_ns == 0 && self.now_ns < state.done_ns {
            return;
        }
        state.accounted_ns = self.now_ns;
        let overhead_ns = elapsed_ns.min(state.overhead_left_ns);
        state.overhead_left_ns -= overhead_ns;
        state.overhead_ns += overhead_ns;
        let worked_ns = elapsed_ns - overhead_ns;
        let entry = &mut self.threads[thread.index()];
        let finished = self.now_ns >= state.done_ns;
        let instructions = match entry.work {
            Work::Steps => 0,
            Work::Instructions => {
                let retired = if finished {
                    entry.remaining
                } else {
                    // Rounding down may leave an instruction for the end, never lose one.
                    retired_in(worked_ns, state.instructions_per_ns).min(entry.remaining)
                };
                entry.remaining -= retired;
                retired
            }
            Work::CpuTime => {
                entry.remaining -= worked_ns.min(entry.remaining);
                let retired = retired_in(worked_ns, state.instructions_per_ns);
                entry.demanded += retired;
                retired
            }
        };
        if entry.remaining == 0 {
            entry.work = Work::Steps;
        }
        state.retired += instructions;
        if let Some(sampler) = &mut self.sampler {
            sampler.count(thread, entry.profile, state.cluster, instructions);
        }
        self.sched.charge(core, elapsed_ns, instructions);
        if let Some(governing) = self.governing.as_deref_mut() {
            if self.sched.plan(thread).weight < WEIGHT_ONE {
                governing.count_nice(core, elapsed_ns);
            }
        }
    }

    /// A core's timer is due: work done, slice over, reschedule wanted, or time to look for work.
    #[inline]
    pub(super) fn on_core_timer(&mut self, core: CoreId) -> Fallible {
        let Some(thread) = self.sched.core(core).running else { return self.dispatch(core) };
        self.account(core);
        if self.threads[thread.index()].work == Work::Steps {
            match self.advance(thread)? {
                Next::Work => {}
                Next::Blocked => return self.release(core, thread, RunState::Blocked),
                Next::Exited => return self.release(core, thread, RunState::Exited),
                Next::GivesUp => return self.switch_out(core, thread),
                Next::Moves => return self.relocate(thread),
            }
        }
        let state = &mut self.cores[core.index()];
        let slice_over = self.now_ns >= state.slice_end_ns;
        if state.resched || (slice_over && self.sched.is_contended(core)) {
            return self.switch_out(core, thread);
        }
        if slice_over {
            // Nobody waits any more; whoever comes next sets a new end.
            state.slice_end_ns = NEVER;
        }
        self.arm(core, thread);
        Ok(())
    }

    /// The running thread goes back into the queue and the core takes what comes first.
    #[inline]
    fn switch_out(&mut self, core: CoreId, thread: ThreadId) -> Fallible {
        self.sched.requeue(core, self.now_ns);
        self.close_turn(core, thread);
        self.tell(Event::Stopped(thread, core))?;
        self.dispatch(core)?;
        if self.sched.core(core).running != Some(thread) {
            self.threads[thread.index()].involuntary += 1;
        }
        Ok(())
    }

    /// The running thread blocks or exits.
    fn release(&mut self, core: CoreId, thread: ThreadId, state: RunState) -> Fallible {
        self.take_off(core, thread, state);
        self.runnable -= 1;
        if state == RunState::Exited {
            self.finish_thread(thread)?;
        } else {
            self.threads[thread.index()].voluntary += 1;
            self.tell(Event::Blocked(thread))?;
        }
        self.dispatch(core)
    }

    /// Takes the running thread off its core; it is in no queue then.
    #[inline]
    pub(super) fn take_off(&mut self, core: CoreId, thread: ThreadId, state: RunState) {
        self.sched.stop(core, state, self.now_ns);
        self.close_turn(core, thread);
    }

    #[inline]
    fn close_turn(&mut self, core: CoreId, thread: ThreadId) {
        let state = &mut self.cores[core.index()];
        let retired = std::mem::take(&mut state.retired);
        state.resched = false;
        if let Some(trace) = self.trace.as_deref_mut() {
            trace.stop(core, thread, retired, self.now_ns);
        }
        self.governors_hear(core);
    }

    /// An idle core looks for work.
    #[inline]
    pub(super) fn dispatch(&mut self, core: CoreId) -> Fallible {
        // A policy's reaction to an event may have put a thread here already.
        if self.sched.core(core).running.is_some() {
            return Ok(());
        }
        match self.pick(core)? {
            Pick::Run(thread) => self.put_on(core, thread),
            Pick::Pull(thread) => self.pull(core, thread),
            Pick::Idle { recheck_ns } => {
                self.account(core);
                self.meter_idle(core);
                self.timers.set(core, recheck_ns.unwrap_or(NEVER).max(self.now_ns + 1));
                self.idle_look_ns = NEVER;
                Ok(())
            }
        }
    }

    #[inline]
    fn pick(&mut self, core: CoreId) -> Fallible<Pick> {
        if !self.needs.hooks.pick {
            return Ok(self.sched.pick_by_rules(core, self.now_ns));
        }
        let pick = self.policy.pick(&View::new(&self.sched, &self.factors, self.now_ns), core);
        let (thread, state) = match pick {
            Pick::Run(thread) => (thread, RunState::Ready),
            Pick::Pull(thread) => (thread, RunState::Running),
            Pick::Idle { .. } => return Ok(pick),
        };
        let fits = thread.index() < self.threads.len()
            && self.sched.thread(thread).state == state
            && self.sched.allows(thread, core);
        if fits {
            return Ok(pick);
        }
        let what =
            format!("picks thread {} for core {}, where it cannot run now", thread.0, core.0);
        Err(SimError::BadPolicy { policy: self.policy_name.clone(), what }.into())
    }

    /// Interrupts a thread on a slower core and runs it here.
    fn pull(&mut self, core: CoreId, thread: ThreadId) -> Fallible {
        let from = self.sched.thread(thread).core;
        self.account(from);
        self.take_off(from, thread, RunState::Ready);
        self.threads[thread.index()].involuntary += 1;
        self.sched.enqueue(thread, from, EnqueueKind::Requeue, self.now_ns);
        self.timers.set(from, self.now_ns);
        self.put_on(core, thread)
    }

    #[inline]
    fn put_on(&mut self, core: CoreId, thread: ThreadId) -> Fallible {
        self.cores[core.index()].account_idle(self.now_ns);
        let (switched, migrated_from) = self.sched.start(core, thread, self.now_ns);
        self.counts.dispatches += 1;
        self.counts.switches += u64::from(switched);
        let overhead_ns =
            self.options.overhead.decision_ns + self.switch_cost_ns(core, switched, migrated_from);
        let slice_end_ns = self.slice_end_ns(core, thread);
        let cluster = self.cores[core.index()].cluster;
        let profile = self.threads[thread.index()].profile;
        self.meter_running(core, thread, profile);
        let rate = self.speeds.rate(profile, cluster);
        let state = &mut self.cores[core.index()];
        state.overhead_left_ns = overhead_ns;
        state.switches += u64::from(switched);
        state.instructions_per_ns = rate.instructions_per_ns;
        state.ns_per_instruction = rate.ns_per_instruction;
        state.resched = false;
        state.slice_end_ns = slice_end_ns;
        if let Some(trace) = self.trace.as_deref_mut() {
            trace.run(core, thread, self.now_ns);
            trace.queue_len(core, self.sched.queue_len(core), self.now_ns);
        }
        self.arm(core, thread);
        if self.sched.idle_cores() > 0 {
            self.tell_idle_cores(core, migrated_from.is_some());
        }
        self.governors_hear(core);
        self.tell(Event::Started(thread, core))
    }

    #[inline]
    fn switch_cost_ns(
        &mut self,
        core: CoreId,
        switched: bool,
        migrated_from: Option<CoreId>,
    ) -> Ns {
        let costs = &self.machine.costs;
        let switch_ns = if switched { costs.context_switch_ns } else { 0 };
        let Some(from) = migrated_from else { return switch_ns };
        self.counts.migrations += 1;
        let same_cluster = self.cores[from.index()].cluster == self.cores[core.index()].cluster;
        switch_ns
            + if same_cluster {
                costs.migrate_same_cluster_ns
            } else {
                costs.migrate_cross_cluster_ns
            }
    }

    /// When the running thread has to let others run. It must be accounted up to now.
    #[inline]
    fn slice_end_ns(&mut self, core: CoreId, thread: ThreadId) -> Ns {
        let slice_ns = if self.needs.hooks.slice {
            let view = View::new(&self.sched, &self.factors, self.now_ns);
            Some(self.policy.slice(&view, thread, core))
        } else {
            None
        };
        self.sched.expiry_ns(core, slice_ns, self.now_ns).unwrap_or(NEVER)
    }

    /// Sets a core's timer to the end of the running thread's work or slice.
    #[inline]
    pub(super) fn arm(&mut self, core: CoreId, thread: ThreadId) {
        let state = &mut self.cores[core.index()];
        let entry = &self.threads[thread.index()];
        let work_ns = match entry.work {
            Work::Steps => 0,
            Work::Instructions => duration_ns(entry.remaining, state.ns_per_instruction),
            Work::CpuTime => entry.remaining,
        };
        state.done_ns = self.now_ns + state.overhead_left_ns + work_ns;
        // A branch instead of `min`: when slices end before the work does, as they mostly do, the
        // processor need not wait for the conversions that `done_ns` takes.
        if state.resched {
            self.timers.set(core, self.now_ns);
        } else if state.slice_end_ns <= state.done_ns {
            self.timers.set(core, state.slice_end_ns);
        } else {
            self.timers.set(core, state.done_ns);
        }
    }

    /// A thread has started on a core: idle ones may want what waits there or the thread itself.
    fn tell_idle_cores(&mut self, core: CoreId, migrated: bool) {
        if self.sched.queue_len(core) > 0 {
            self.kick_idle_cores(self.now_ns);
        }
        let topology = self.sched.topology();
        if migrated || topology.core(core).class < topology.top_class() {
            self.remind_idle_cores();
        }
    }

    /// A core without work may pull a thread that starts on a slower one, once it has been there long enough.
    fn remind_idle_cores(&mut self) {
        if !self.sched.rules().pulls_running() {
            return;
        }
        for other in self.sched.topology().cores() {
            if self.sched.is_idle(other) && self.timers.get(other) == NEVER {
                self.timers.set(other, self.now_ns);
            }
        }
    }

    /// A thread became runnable: place it, queue it, and see who must look. `waker` caused it.
    pub(super) fn make_runnable(
        &mut self,
        thread: ThreadId,
        kind: EnqueueKind,
        waker: Option<ThreadId>,
    ) -> Fallible {
        if self.sched.plan(thread).held {
            self.held += 1;
            self.sched.hold(thread, self.now_ns);
            return Ok(());
        }
        let core = self.place(thread, waker)?;
        self.account(core);
        self.sched.enqueue(thread, core, kind, self.now_ns);
        self.runnable += 1;
        self.governors_hear(core);
        if let Some(trace) = self.trace.as_deref_mut() {
            trace.wake(waker, thread, self.now_ns);
            trace.queue_len(core, self.sched.queue_len(core), self.now_ns);
        }
        if kind == EnqueueKind::Wake {
            self.counts.wakeups += 1;
            self.tell(Event::Woken(thread, waker))?;
        }
        if self.should_preempt(thread, core) {
            self.counts.preemptions += 1;
            self.cores[core.index()].resched = true;
            self.timers.set(core, self.now_ns);
        } else {
            self.after_enqueue(core, self.now_ns + self.machine.costs.wakeup_latency_ns);
        }
        Ok(())
    }

    fn place(&mut self, thread: ThreadId, waker: Option<ThreadId>) -> Fallible<CoreId> {
        let waker_core = waker.map(|waker| self.sched.thread(waker).core);
        if !self.needs.hooks.place {
            return Ok(self.sched.place_by_rules_near(thread, waker_core, self.now_ns));
        }
        let view = View::new(&self.sched, &self.factors, self.now_ns).woken_from(waker_core);
        let core = self.policy.place(&view, thread);
        if core.index() < self.cores.len() && self.sched.allows(thread, core) {
            return Ok(core);
        }
        let what = format!("places thread {} on core {}, which it may not use", thread.0, core.0);
        Err(SimError::BadPolicy { policy: self.policy_name.clone(), what }.into())
    }

    fn should_preempt(&mut self, thread: ThreadId, core: CoreId) -> bool {
        let Some(running) = self.sched.core(core).running else { return false };
        if self.sched.thread(thread).state != RunState::Ready {
            return false;
        }
        if !self.needs.hooks.preempts {
            return self.sched.preempts_by_rules(thread, running, core);
        }
        self.policy.preempts(
            &View::new(&self.sched, &self.factors, self.now_ns),
            thread,
            running,
            core,
        )
    }

    /// A thread waits in a core's queue: the core, or idle ones, must look; slices may change.
    pub(super) fn after_enqueue(&mut self, core: CoreId, idle_looks_ns: Ns) {
        if self.sched.core(core).running.is_none() {
            let already_looks = self.timers.get(core) <= idle_looks_ns;
            self.timers.set(core, self.timers.get(core).min(idle_looks_ns));
            // The core can take only one: a further thread is for others.
            if !already_looks {
                return;
            }
        } else {
            self.refresh_slices(core);
        }
        self.kick_idle_cores(idle_looks_ns);
    }

    /// Idle cores look for work, if the rules say so.
    pub(super) fn kick_idle_cores(&mut self, at_ns: Ns) {
        // Many threads may wake at one moment; that all idle cores look needs saying only once.
        if self.sched.idle_cores() == 0
            || self.idle_look_ns <= at_ns
            || !self.sched.rules().kick_idle
        {
            return;
        }
        for other in self.sched.topology().cores() {
            if self.sched.core(other).running.is_none() {
                self.timers.set(other, self.timers.get(other).min(at_ns));
            }
        }
        self.idle_look_ns = at_ns;
    }

    /// The queue of a core got longer: recompute the slice end of the cores that it serves.
    fn refresh_slices(&mut self, core: CoreId) {
        for other in self.sched.cores_of_queue(core) {
            let Some(thread) = self.sched.core(other).running else { continue };
            self.account(other);
            // Steps that wait to be executed at this very moment keep their timer.
            let slice_end_ns = self.slice_end_ns(other, thread);
            let state = &mut self.cores[other.index()];
            state.slice_end_ns = slice_end_ns;
            let due_ns = if state.resched { self.now_ns } else { state.done_ns.min(slice_end_ns) };
            self.timers.set(other, due_ns);
        }
    }

    /// Moves a thread that may no longer be where it is.
    pub(super) fn relocate(&mut self, thread: ThreadId) -> Fallible {
        let core = self.sched.thread(thread).core;
        match self.sched.thread(thread).state {
            RunState::Ready => self.sched.dequeue(thread),
            RunState::Running => {
                self.account(core);
                self.take_off(core, thread, RunState::Ready);
                self.threads[thread.index()].involuntary += 1;
                self.timers.set(core, self.now_ns);
            }
            RunState::Held => {
                self.held -= 1;
                return self.make_runnable(thread, EnqueueKind::Wake, None);
            }
            RunState::New | RunState::Blocked | RunState::Exited => return Ok(()),
        }
        self.runnable -= 1;
        self.make_runnable(thread, EnqueueKind::Requeue, None)
    }
}

/// Whole instructions that retire in some time.
///
/// Amounts and times are below 2^63, so both conversions go through signed integers: one machine
/// instruction each instead of several.
#[inline]
fn retired_in(worked_ns: Ns, instructions_per_ns: f64) -> u64 {
    (worked_ns as i64 as f64 * instructions_per_ns) as i64 as u64
}

/// Time that instructions take, rounded up. (`f64::ceil` is a function call on older processors.)
#[inline]
fn duration_ns(instructions: u64, ns_per_instruction: f64) -> Ns {
    let exact_ns = instructions as i64 as f64 * ns_per_instruction;
    let whole_ns = exact_ns as i64;
    whole_ns as u64 + u64::from((whole_ns as f64) < exact_ns)
}
