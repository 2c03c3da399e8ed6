//! Cores get threads and lose them: timers, turns, picking, starting.

use ampsched_model::{CoreId, Ns, ThreadId};
use ampsched_policy::{
    DecidedBy, EnqueueKind, Event, NoWitness, Order, Pick, Reason, RunState, Turn,
};

use super::contention::rate_on;
use super::steps::Next;
use super::threads::Work;
use super::timers::NEVER;
use super::watch::why_waits;
use super::{Engine, Fallible};

/// Weight of nice 0.
const WEIGHT_ONE: u32 = 1024;

impl Engine<'_> {
    /// Accounts a core's time, and its thread's progress, up to now.
    #[inline]
    pub(super) fn account(&mut self, core: CoreId) {
        let now_ns = self.events.now_ns();
        let state = &mut self.cores[core];
        let Some(thread) = self.sched.core(core).running else {
            return self.account_without(core);
        };
        let entry = &mut self.threads[thread];
        let used = state.account_busy(entry, now_ns);
        if self.supervisor.counts_work() {
            let (profile, cluster) = (entry.profile, state.cluster);
            self.supervisor.count_work(thread, profile, cluster, used.instructions);
        }
        self.sched.charge(core, used.elapsed_ns, used.instructions);
        if let Some(governing) = self.governing.as_deref_mut() {
            if self.sched.plan(thread).weight < WEIGHT_ONE {
                governing.count_nice(core, used.elapsed_ns);
            }
        }
    }

    /// The same for all whose virtual times a thread's own is compared with when it comes to a core: those that serve
    /// its queue, and those that serve the queue from which the thread comes.
    pub(super) fn account_for_move(&mut self, thread: ThreadId, to: CoreId) {
        if self.sched.rules().order == Order::Fifo {
            return self.account(to);
        }
        let from = self.sched.thread(thread).core;
        for core in self.sched.cores_of_queue(to) {
            self.account(core);
        }
        if !self.sched.share_queue(from, to) {
            for core in self.sched.cores_of_queue(from) {
                self.account(core);
            }
        }
    }

    /// The same for all cores.
    pub(super) fn account_all(&mut self) {
        for core in self.cores.ids() {
            self.account(core);
        }
    }

    /// A core's timer is due: work done, slice over, reschedule wanted, or time to look for work.
    #[inline]
    pub(super) fn on_core_timer(&mut self, core: CoreId) -> Fallible {
        let Some(thread) = self.sched.core(core).running else {
            let above = self.sched.core(core).above;
            return match above {
                Some(thread) => self.on_timer_above(core, thread),
                None if self.still_wakes_up(core) => Ok(()),
                None => self.dispatch(core),
            };
        };
        self.account(core);
        if self.threads[thread].work == Work::Steps {
            match self.advance(thread)? {
                Next::Work => {}
                Next::Blocked => return self.release(core, thread, RunState::Blocked),
                Next::Exited => return self.release(core, thread, RunState::Exited),
                Next::GivesUp => {
                    let yields = || Reason::new(DecidedBy::Program, "it yields the core");
                    self.record.because(yields);
                    self.fast_yields(core);
                    return self.switch_out(core, thread);
                }
                Next::Moves => {
                    let because = "it restricts itself to other cores";
                    self.record.because(|| Reason::new(DecidedBy::Program, because));
                    return self.relocate(thread);
                }
                Next::Changes(class) => return self.rise(core, thread, class),
            }
        }
        let state = &mut self.cores[core];
        let slice_over = self.events.now_ns() >= state.slice_end_ns;
        if state.resched || (slice_over && self.sched.is_contended(core)) {
            if state.works_from_ns >= self.events.now_ns() && !state.resched {
                self.progress.end_fruitless_turn();
            }
            self.record.turn_over(core, state.resched);
            return self.switch_out(core, thread);
        }
        if slice_over {
            // Nobody waits any more; whoever comes next sets a new end.
            state.slice_end_ns = NEVER;
        }
        self.arm(core);
        Ok(())
    }

    /// The running thread goes back into the queue and the core takes what comes first.
    #[inline]
    fn switch_out(&mut self, core: CoreId, thread: ThreadId) -> Fallible {
        if let Some(turn) = self.next_turn(core) {
            if turn.thread != thread {
                self.threads[thread].involuntary += 1;
            }
            return self.begin_turn(core, turn);
        }
        self.sched.requeue(core, self.events.now_ns());
        self.close_turn(core, thread);
        self.tell(Event::Stopped(thread, core))?;
        self.dispatch(core)?;
        if self.sched.core(core).running != Some(thread) {
            self.threads[thread].involuntary += 1;
        }
        Ok(())
    }

    /// The next turn of a core in one step, if nobody hears of the end of the present one, or interferes.
    #[inline]
    fn next_turn(&mut self, core: CoreId) -> Option<Turn> {
        if self.supervisor.follows_turns()
            || self.record.watch.is_some()
            || self.governing.is_some()
            || self.has_realtime()
        {
            return None;
        }
        let now_ns = self.events.now_ns();
        let Some(fast) = self.supervisor.fast.as_deref_mut() else {
            return self.sched.next_turn(core, now_ns);
        };
        let next = fast.next_turn(core, now_ns)?;
        Some(self.sched.hand_over(core, next, now_ns))
    }

    /// The running thread blocks or exits.
    fn release(&mut self, core: CoreId, thread: ThreadId, state: RunState) -> Fallible {
        self.record.because(|| why_waits(&self.threads[thread], &self.objects));
        self.take_off(core, thread, state);
        self.threads.runnable -= 1;
        if state == RunState::Exited {
            self.finish_thread(thread)?;
        } else {
            self.threads[thread].voluntary += 1;
            self.tell(Event::Blocked(thread))?;
        }
        self.dispatch(core)
    }

    /// Takes the running thread off its core; it is in no queue then.
    #[inline]
    pub(super) fn take_off(&mut self, core: CoreId, thread: ThreadId, state: RunState) {
        self.sched.stop(core, state, self.events.now_ns());
        self.fast_left(thread, core, state);
        self.close_turn(core, thread);
    }

    #[inline]
    pub(super) fn close_turn(&mut self, core: CoreId, thread: ThreadId) {
        let state = &mut self.cores[core];
        let retired = std::mem::take(&mut state.retired);
        state.resched = false;
        self.note_change_on(core);
        if let Some(watch) = &mut self.record.watch {
            watch.stops(core, thread, retired, &self.sched, self.events.now_ns());
        }
        self.governors_hear(core);
    }

    /// An idle core looks for work.
    #[inline]
    pub(super) fn dispatch(&mut self, core: CoreId) -> Fallible {
        // A policy's reaction to an event may have put a thread here already.
        if self.sched.current(core).is_some() {
            self.insist(core);
            return Ok(());
        }
        if self.is_kept_by_noise(core) || self.dispatch_above(core) {
            return Ok(());
        }
        match self.pick(core)? {
            Pick::Run(thread) => self.put_on(core, thread)?,
            Pick::Pull(thread) => self.pull(core, thread)?,
            Pick::Idle { recheck_ns } => {
                self.account(core);
                self.meter_idle(core);
                self.idles(core);
                let soonest_ns = self.events.now_ns() + 1;
                let due_ns =
                    recheck_ns.map_or(NEVER, |at_ns| self.setup.machine.costs.at_tick(at_ns));
                self.events.timers.set(core, due_ns.max(soonest_ns));
                self.events.idle_look_ns = NEVER;
                self.fair_is_served(core);
                self.let_sibling_look(core);
            }
        }
        self.carry_out_acts();
        Ok(())
    }

    /// The other thread of the physical core of one that idles now may pull what it could not while that was busy.
    #[inline]
    fn let_sibling_look(&mut self, core: CoreId) {
        let Some(other) = self.sched.topology().sibling(core) else { return };
        if !self.sched.is_free(other) || !self.sched.pulls_running() {
            return;
        }
        let now_ns = self.events.now_ns();
        if self.supervisor.needs.hooks.pick {
            // Nobody but the policy knows what the other one would take: it looks once for each time that this one
            // becomes idle.
            if self.sched.core(core).since_ns == now_ns {
                let due_ns = self.events.timers.get(other).min(now_ns + 1);
                self.events.timers.set(other, due_ns);
            }
            return;
        }
        let look_ns = match self.sched.pick_by_rules(other, now_ns) {
            Pick::Idle { recheck_ns: None } => return,
            Pick::Idle { recheck_ns: Some(at_ns) } => self.setup.machine.costs.at_tick(at_ns),
            Pick::Run(_) | Pick::Pull(_) => now_ns,
        };
        let due_ns = self.events.timers.get(other).min(look_ns);
        self.events.timers.set(other, due_ns);
    }

    #[inline]
    fn pick(&mut self, core: CoreId) -> Fallible<Pick> {
        if self.supervisor.fast.is_some() {
            return Ok(self.fast_pick(core));
        }
        if self.sched.rules().order == Order::Deadline && self.sched.queue_len(core) == 0 {
            // Who is eligible elsewhere depends on how far those are who run there.
            self.account_all();
        }
        let (now_ns, sched, supervisor) = (self.events.now_ns(), &self.sched, &mut self.supervisor);
        let pick = match &mut self.record.watch {
            None => supervisor.pick(sched, core, now_ns, NoWitness),
            Some(watch) => {
                watch.pick(core, now_ns, |told| supervisor.pick(sched, core, now_ns, told))
            }
        };
        if self.supervisor.needs.hooks.pick {
            self.check_pick(core, pick)?;
        }
        Ok(pick)
    }

    fn check_pick(&self, core: CoreId, pick: Pick) -> Fallible {
        let (thread, state) = match pick {
            Pick::Run(thread) => (thread, RunState::Ready),
            Pick::Pull(thread) => (thread, RunState::Running),
            Pick::Idle { .. } => return Ok(()),
        };
        let fits = self.threads.has(thread)
            && self.sched.thread(thread).state == state
            && self.sched.allows(thread, core);
        if fits {
            return Ok(());
        }
        let what =
            format!("picks thread {} for core {}, where it cannot run now", thread.0, core.0);
        Err(self.setup.bad_policy(what))
    }

    /// Interrupts a thread on a slower core and runs it here.
    fn pull(&mut self, core: CoreId, thread: ThreadId) -> Fallible {
        let now_ns = self.events.now_ns();
        let from = self.sched.thread(thread).core;
        self.account(from);
        self.record.pulled();
        self.take_off(from, thread, RunState::Ready);
        self.threads[thread].involuntary += 1;
        self.sched.enqueue(thread, from, EnqueueKind::Requeue, now_ns);
        self.events.timers.set(from, now_ns);
        self.put_on(core, thread)
    }

    #[inline]
    fn put_on(&mut self, core: CoreId, thread: ThreadId) -> Fallible {
        let now_ns = self.events.now_ns();
        if !self.sched.share_queue(self.sched.thread(thread).core, core) {
            self.account_for_move(thread, core);
        }
        self.cores[core].account_idle(now_ns);
        let (switched, migrated_from) = self.sched.start(core, thread, now_ns);
        let turn = Turn { thread, switched, migrated_from };
        self.fast_started(core, turn);
        self.begin_turn(core, turn)
    }

    /// A thread has got a core, which must be accounted up to now.
    #[inline]
    fn begin_turn(&mut self, core: CoreId, turn: Turn) -> Fallible {
        let Turn { thread, switched, migrated_from } = turn;
        let now_ns = self.events.now_ns();
        self.record.counts.dispatches += 1;
        self.record.counts.switches += u64::from(switched);
        let delay_ns = self.setup.options.overhead.decision_ns
            + self.switch_cost_ns(core, thread, switched, migrated_from)
            + self.cores[core].noise_until_ns.saturating_sub(now_ns);
        let slice_end_ns = self.slice_end_ns(core, thread);
        let entry = &mut self.threads[thread];
        entry.timeliness.gets_core(now_ns);
        let profile = entry.profile;
        let state = &mut self.cores[core];
        let rate = rate_on(&mut self.contention, &self.speeds, core, state.cluster, profile);
        state.switches += u64::from(switched);
        state.begin_turn(entry, rate, delay_ns, slice_end_ns);
        self.events.timers.set(core, state.due_ns(now_ns));
        self.meter_running(core, thread, profile);
        if let Some(watch) = &mut self.record.watch {
            watch.runs(core, thread, self.sched.queue_len(core), now_ns);
        }
        if self.sched.idle_cores() > 0 {
            self.tell_idle_cores(core, migrated_from.is_some());
        }
        self.governors_hear(core);
        self.tell(Event::Started(thread, core))
    }

    #[inline]
    pub(super) fn switch_cost_ns(
        &self,
        core: CoreId,
        thread: ThreadId,
        switched: bool,
        migrated_from: Option<CoreId>,
    ) -> Ns {
        let costs = self.setup.machine.costs_on(self.cores[core].cluster);
        let switch_ns = if switched { costs.context_switch_ns } else { 0 };
        switch_ns + migrated_from.map_or(0, |from| self.migration_cost_ns(core, thread, from))
    }

    #[inline(never)]
    fn migration_cost_ns(&self, core: CoreId, thread: ThreadId, from: CoreId) -> Ns {
        let cluster = self.cores[core].cluster;
        let costs = self.setup.machine.costs_on(cluster);
        let (same_ns, cross_ns) = match self.speeds.refill(self.threads[thread].profile, cluster) {
            Some(refill) => (refill.same_cluster_ns, refill.cross_cluster_ns),
            None => (costs.migrate_same_cluster_ns, costs.migrate_cross_cluster_ns),
        };
        if self.cores[from].cluster == cluster { same_ns } else { cross_ns }
    }

    /// When the running thread has to let others run. It must be accounted up to now.
    #[inline]
    pub(super) fn slice_end_ns(&mut self, core: CoreId, thread: ThreadId) -> Ns {
        let end_ns = if self.record.watch.is_some() {
            self.watched_slice_end_ns(core, thread)
        } else {
            let now_ns = self.events.now_ns();
            self.supervisor.slice_end_ns(&self.sched, core, thread, now_ns, NoWitness)
        };
        end_ns.unwrap_or(NEVER)
    }

    /// The same, with what a trace is told of it.
    #[inline(never)]
    fn watched_slice_end_ns(&mut self, core: CoreId, thread: ThreadId) -> Option<Ns> {
        let (now_ns, sched, supervisor) = (self.events.now_ns(), &self.sched, &mut self.supervisor);
        let watch = self.record.watch.as_mut()?;
        watch.slice_end(core, |told| supervisor.slice_end_ns(sched, core, thread, now_ns, told))
    }

    /// A core is to switch at the next opportunity: at once, or when it has woken up.
    pub(super) fn switch_soon(&mut self, core: CoreId) {
        let now_ns = self.events.now_ns();
        if self.sched.current(core).is_some() {
            self.cores[core].resched = true;
            self.events.timers.set(core, now_ns);
        } else {
            let costs = self.setup.machine.costs_on(self.cores[core].cluster);
            let due_ns = self.events.timers.get(core).min(now_ns + costs.wakeup_latency_ns);
            self.events.timers.set(core, due_ns);
        }
    }

    /// Sets a core's timer to the end of the running thread's work or slice.
    #[inline]
    pub(super) fn arm(&mut self, core: CoreId) {
        let due_ns = self.cores[core].due_ns(self.events.now_ns());
        self.events.timers.set(core, due_ns);
    }
}
