//! A fast plane of the policy's own: what it is told, its ticks, and what it wants done.

use ampsched_model::{ClusterId, CoreId, ThreadId};
use ampsched_policy::{
    Act, DecidedBy, EnqueueKind, FastPlane, Pick, Reason, RunState, Sched, Turn,
};

use super::Engine;
use super::events::SimEvent;

impl Engine<'_> {
    /// The fast plane, if the policy brings one, with the books.
    #[inline]
    fn fast(&mut self) -> Option<(&mut dyn FastPlane, &Sched)> {
        let fast = self.supervisor.fast.as_deref_mut()?;
        Some((fast, &self.sched))
    }

    pub(super) fn fast_added(&mut self, thread: ThreadId) {
        let now_ns = self.events.now_ns();
        if let Some((fast, sched)) = self.fast() {
            fast.added(sched, thread, now_ns);
        }
    }

    /// Returns whether the core is to choose anew.
    #[inline]
    pub(super) fn fast_enqueued(
        &mut self,
        thread: ThreadId,
        core: CoreId,
        kind: EnqueueKind,
    ) -> bool {
        let now_ns = self.events.now_ns();
        self.fast().is_some_and(|(fast, sched)| fast.enqueued(sched, thread, core, kind, now_ns))
    }

    pub(super) fn fast_dequeued(&mut self, thread: ThreadId) {
        let now_ns = self.events.now_ns();
        if let Some((fast, sched)) = self.fast() {
            fast.dequeued(sched, thread, now_ns);
        }
    }

    #[inline]
    pub(super) fn fast_left(&mut self, thread: ThreadId, core: CoreId, state: RunState) {
        let now_ns = self.events.now_ns();
        if let Some((fast, sched)) = self.fast() {
            fast.left(sched, thread, core, state, now_ns);
        }
    }

    #[inline]
    pub(super) fn fast_started(&mut self, core: CoreId, turn: Turn) {
        let now_ns = self.events.now_ns();
        if let Some((fast, sched)) = self.fast() {
            fast.started(sched, core, turn, now_ns);
        }
    }

    pub(super) fn fast_yields(&mut self, core: CoreId) {
        let now_ns = self.events.now_ns();
        if let Some((fast, sched)) = self.fast() {
            fast.yields(sched, core, now_ns);
        }
    }

    pub(super) fn fast_changed(&mut self, thread: ThreadId) {
        let now_ns = self.events.now_ns();
        if let Some((fast, sched)) = self.fast() {
            fast.changed(sched, thread, now_ns);
        }
    }

    pub(super) fn fast_occupied(&mut self, core: CoreId, is_taken: bool) {
        let now_ns = self.events.now_ns();
        if let Some((fast, sched)) = self.fast() {
            fast.occupied(sched, core, is_taken, now_ns);
        }
    }

    pub(super) fn fast_clocked(&mut self, cluster: ClusterId) {
        let now_ns = self.events.now_ns();
        if let Some((fast, sched)) = self.fast() {
            for &core in &sched.topology().clusters()[cluster.index()].cores {
                fast.clocked(sched, core, now_ns);
            }
        }
    }

    /// Heat allows a cluster another frequency.
    pub(super) fn fast_capped(&mut self, cluster: ClusterId) {
        let now_ns = self.events.now_ns();
        if let Some((fast, sched)) = self.fast() {
            fast.capped(sched, cluster, now_ns);
        }
    }

    /// What a core does next.
    #[inline]
    pub(super) fn fast_pick(&mut self, core: CoreId) -> Pick {
        let now_ns = self.events.now_ns();
        let fast = self.supervisor.fast.as_deref_mut().expect("it is asked only if there is one");
        let pick = fast.pick(&self.sched, core, now_ns, &mut self.acts);
        if let Some(watch) = &mut self.record.watch {
            watch.picks(fast.because());
        }
        pick
    }

    /// A tick of all cores.
    pub(super) fn tick(&mut self) {
        let now_ns = self.events.now_ns();
        let fast = self.supervisor.fast.as_deref_mut().expect("only a fast plane has ticks");
        fast.tick(&self.sched, now_ns, &mut self.acts);
        let next_ns = now_ns + fast.tick_ns();
        self.events.schedule(next_ns, SimEvent::Tick);
        self.carry_out_acts();
    }

    /// What else the fast plane wants done.
    #[inline]
    pub(super) fn carry_out_acts(&mut self) {
        if !self.acts.is_empty() {
            self.carry_out();
        }
    }

    #[inline(never)]
    fn carry_out(&mut self) {
        let mut acts = std::mem::take(&mut self.acts);
        for act in acts.drain(..) {
            match act {
                Act::Resched(core) => {
                    if let Some(watch) = &mut self.record.watch {
                        watch
                            .cut(core, "its request is used up, or another thread comes before it");
                    }
                    self.switch_soon(core);
                }
                Act::Move { thread, to } => self.move_waiting(thread, to),
                Act::Push { thread, to } => self.push_running(thread, to),
            }
        }
        self.acts = acts;
    }

    fn move_waiting(&mut self, thread: ThreadId, to: CoreId) {
        let now_ns = self.events.now_ns();
        let from = self.sched.thread(thread).core;
        self.sched.dequeue(thread);
        self.sched.enqueue(thread, to, EnqueueKind::Requeue, now_ns);
        self.governors_hear(to);
        if let Some(watch) = &mut self.record.watch {
            watch.moved(thread, from, to, now_ns);
        }
        self.wake_if_idle(to);
    }

    /// Stops a running thread, which the fast plane has put into the queue of another core.
    fn push_running(&mut self, thread: ThreadId, to: CoreId) {
        let now_ns = self.events.now_ns();
        let from = self.sched.thread(thread).core;
        self.account(from);
        let because = "it is too big for its core, or would be better off on an idle one";
        self.record.because(|| Reason::new(DecidedBy::Hook, because));
        self.sched.stop(from, RunState::Ready, now_ns);
        self.close_turn(from, thread);
        self.threads[thread].involuntary += 1;
        self.sched.enqueue(thread, to, EnqueueKind::Requeue, now_ns);
        self.events.timers.set(from, now_ns);
        self.wake_if_idle(to);
    }

    fn wake_if_idle(&mut self, core: CoreId) {
        if self.sched.current(core).is_none() {
            self.switch_soon(core);
        }
    }
}
