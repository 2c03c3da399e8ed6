//! A policy's own fast plane: code that takes every decision instead of [`Rules`].
//!
//! The host keeps the books of threads, cores and times ([`Sched`]) and asks the fast plane what to do; the fast plane
//! keeps whatever it needs to answer. It is told of everything after the books have it, and it may be asked at any
//! moment. `now_ns` never decreases.

use ampsched_model::{ClusterId, CoreId, Ns, ThreadId};

use crate::{EnqueueKind, Honours, Pick, RunState, Sched, Turn};

/// What a fast plane wants its host to do at once, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// The core takes leave of its thread, if it has one, and picks anew.
    Resched(CoreId),
    /// A waiting thread goes to the queue of another core.
    Move {
        /// The thread.
        thread: ThreadId,
        /// Where to.
        to: CoreId,
    },
    /// A running thread is stopped and goes to the queue of another core.
    Push {
        /// The thread.
        thread: ThreadId,
        /// Where to.
        to: CoreId,
    },
}

/// Code that takes every fast-plane decision.
pub trait FastPlane: Send {
    /// Period of its tick, at which [`FastPlane::tick`] is called while some core has a thread, in ns.
    fn tick_ns(&self) -> Ns;

    /// Which attributes of threads it honours.
    fn honours(&self) -> Honours;

    /// A thread exists now; it is not yet placed.
    fn added(&mut self, sched: &Sched, thread: ThreadId, now_ns: Ns);

    /// The core for a thread that starts, wakes or has to leave its core, on behalf of what runs on `waker`.
    fn place(
        &mut self,
        sched: &Sched,
        thread: ThreadId,
        kind: EnqueueKind,
        waker: Option<CoreId>,
        now_ns: Ns,
    ) -> CoreId;

    /// A thread waits in a core's queue now. Returns whether the core is to choose anew.
    fn enqueued(
        &mut self,
        sched: &Sched,
        thread: ThreadId,
        core: CoreId,
        kind: EnqueueKind,
        now_ns: Ns,
    ) -> bool;

    /// A waiting thread has left its queue, because it is held back, ends, or may not be there.
    fn dequeued(&mut self, sched: &Sched, thread: ThreadId, now_ns: Ns);

    /// The running thread of a core has left it: it sleeps, has ended, or ([`RunState::Ready`]) has to go elsewhere.
    fn left(&mut self, sched: &Sched, thread: ThreadId, core: CoreId, state: RunState, now_ns: Ns);

    /// What a core does next. Its last thread, if it can still run, waits in its queue. A waiting thread of another
    /// queue may be picked; whatever else is to move stands in `acts`.
    fn pick(&mut self, sched: &Sched, core: CoreId, now_ns: Ns, acts: &mut Vec<Act>) -> Pick;

    /// The turn of a core's thread, which could go on, ends: [`FastPlane::pick`] and [`FastPlane::started`] in one, of
    /// threads that wait in the core's queue, and that one. None, and nothing has happened to any thread, if that takes
    /// more than a look at the queue.
    fn next_turn(&mut self, _core: CoreId, _now_ns: Ns) -> Option<ThreadId> {
        None
    }

    /// A thread is on a core now.
    fn started(&mut self, sched: &Sched, core: CoreId, turn: Turn, now_ns: Ns);

    /// The running thread of a core gives up the rest of its turn and waits.
    fn yields(&mut self, sched: &Sched, core: CoreId, now_ns: Ns);

    /// When the running thread of a core is to be looked at before the next tick, if ever.
    fn expiry_ns(&mut self, sched: &Sched, core: CoreId, now_ns: Ns) -> Option<Ns>;

    /// A tick of all cores.
    fn tick(&mut self, sched: &Sched, now_ns: Ns, acts: &mut Vec<Act>);

    /// A thread's weight, slice or other attribute has changed in the books.
    fn changed(&mut self, sched: &Sched, thread: ThreadId, now_ns: Ns);

    /// A thread of a class above takes a core, or leaves it; who ran there waits in its queue.
    fn occupied(&mut self, sched: &Sched, core: CoreId, is_taken: bool, now_ns: Ns);

    /// A core works at another speed from now on: its frequency has changed.
    fn clocked(&mut self, sched: &Sched, core: CoreId, now_ns: Ns);

    /// Heat allows a cluster another frequency than before ([`Sched::cap_mhz`]).
    fn capped(&mut self, _sched: &Sched, _cluster: ClusterId, _now_ns: Ns) {}

    /// What a core uses, 0 to its capacity, for governors, if the fast plane measures that by itself; none: as load
    /// tracking says.
    fn util(&mut self, _core: CoreId, _now_ns: Ns) -> Option<u32> {
        None
    }

    /// Why it decided last as it did, in words for the user.
    fn because(&self) -> &'static str;

    /// Whether what it keeps agrees with itself and with the books, once everything is done that an event asks for.
    ///
    /// # Errors
    /// What does not.
    fn check(&self, _sched: &Sched) -> Result<(), String> {
        Ok(())
    }
}
