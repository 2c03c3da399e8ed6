//! Rounds: nobody enters a round that is more than one ahead of anybody's.
//!
//! Virtual time is the same everywhere and is cut into rounds. A queue serves the least virtual run time
//! first, so round by round, and a turn ends with the round. A core whose next thread is in a later
//! round than a thread that waits elsewhere takes that one instead. Nothing is idle for the sake of the
//! rounds: a thread that cannot keep up, because it already has a core all the time, may not use other
//! cores or sleeps, is taken along, and what it has missed of older rounds is dropped.
//!
//! What is marked cold is kept out of the paths of the other orders, which pay for one comparison.

use std::cmp::Ordering;

use ampsched_model::{CoreId, Ns, ThreadId};

use super::{EnqueueKind, Pick, Sched};
use crate::weight::{to_real, to_virtual};
use crate::{DecidedBy, Order, Reason, SPEED_ONE, Witness};

/// The books of [`Order::Rounds`].
#[derive(Clone, Debug)]
pub(super) struct Rounds {
    /// Virtual run time per round; all of it if there are no rounds.
    length_ns: Ns,
    /// The latest round that a thread has entered.
    latest: u64,
    /// Threads that wait in earlier rounds.
    waiting_earlier: u32,
    /// Threads that wait in the latest round.
    waiting_latest: u32,
    /// What the thread that runs on each core had run in total when it started.
    run_ns_before: Vec<Ns>,
}

impl Rounds {
    pub fn of(order: Order, cores: usize) -> Self {
        let length_ns = match order {
            Order::Rounds { length_ns } => length_ns,
            Order::Fifo | Order::Vruntime | Order::Deadline | Order::HighestRank { .. } => Ns::MAX,
        };
        let run_ns_before = vec![0; cores];
        Self { length_ns, latest: 0, waiting_earlier: 0, waiting_latest: 0, run_ns_before }
    }

    /// The earliest round in which a thread can be.
    fn earliest(&self) -> u64 {
        self.latest.saturating_sub(1)
    }

    /// The count to which a waiting thread belongs.
    fn waiting_at(&mut self, vruntime: Ns) -> Option<&mut u32> {
        match (vruntime / self.length_ns).cmp(&self.latest) {
            Ordering::Less => Some(&mut self.waiting_earlier),
            Ordering::Equal => Some(&mut self.waiting_latest),
            Ordering::Greater => None,
        }
    }

    /// The next round begins; `waiting` threads wait in total.
    fn advance(&mut self, waiting: u32) {
        let in_next = waiting - self.waiting_earlier - self.waiting_latest;
        self.waiting_earlier += self.waiting_latest;
        self.waiting_latest = in_next;
        self.latest += 1;
    }
}

impl Sched {
    #[inline]
    pub(super) fn has_rounds(&self) -> bool {
        matches!(self.rules.order, Order::Rounds { .. })
    }

    /// The round of a thread as of its last charge; 0 if there are no rounds.
    pub(super) fn round(&self, thread: ThreadId) -> u64 {
        self.round_at(self.thread(thread).vruntime)
    }

    fn round_at(&self, vruntime: Ns) -> u64 {
        (vruntime / self.rounds.length_ns).max(self.rounds.earliest())
    }

    /// The round of the thread that runs on a core, with what it has not been charged for yet.
    fn round_now(&self, thread: ThreadId, core: CoreId, now_ns: Ns) -> u64 {
        let charged_ns =
            self.stats(thread).run_ns_total() - self.rounds.run_ns_before[core.index()];
        let uncharged_ns =
            now_ns.saturating_sub(self.core(core).since_ns).saturating_sub(charged_ns);
        let counted_ns = self.counted_ns(thread, core, uncharged_ns);
        let weight = self.plan(thread).weight;
        self.round_at(self.thread(thread).vruntime + to_virtual(counted_ns, weight))
    }

    /// A new thread joins the latest round in a queue, where others may have got to in it: it is not owed
    /// the past. Others stay in theirs.
    pub(super) fn place_in_round(&mut self, thread: ThreadId, core: CoreId, kind: EnqueueKind) {
        if kind == EnqueueKind::Fork {
            let begin = self.rounds.latest * self.rounds.length_ns;
            self.threads[thread.index()].vruntime = begin.max(self.queue(core).min_vruntime);
            self.end_in_round(thread);
        }
    }

    /// A thread comes into a queue.
    #[cold]
    pub(super) fn wait_in_round(&mut self, thread: ThreadId) {
        if let Some(count) = self.rounds.waiting_at(self.threads[thread.index()].vruntime) {
            *count += 1;
        }
    }

    /// A thread leaves a queue.
    #[cold]
    pub(super) fn leave_round(&mut self, thread: ThreadId) {
        if let Some(count) = self.rounds.waiting_at(self.threads[thread.index()].vruntime) {
            *count -= 1;
        }
    }

    /// A thread that has left its queue starts on a core. If it is in the next round, that begins now.
    #[cold]
    pub(super) fn enter_round(&mut self, thread: ThreadId, core: CoreId) {
        self.rounds.run_ns_before[core.index()] = self.stats(thread).run_ns_total();
        let begin = self.rounds.earliest() * self.rounds.length_ns;
        let vruntime = &mut self.threads[thread.index()].vruntime;
        *vruntime = begin.max(*vruntime);
        if *vruntime / self.rounds.length_ns > self.rounds.latest {
            self.rounds.advance(self.waiting);
        }
    }

    /// A thread that does not run waits for the next round at most, even if it ran on for longer.
    #[cold]
    pub(super) fn end_in_round(&mut self, thread: ThreadId) {
        let end = (self.rounds.latest + 2) * self.rounds.length_ns - 1;
        let vruntime = &mut self.threads[thread.index()].vruntime;
        *vruntime = end.min(*vruntime);
    }

    /// [`Sched::expiry_ns`] if there are rounds: the end of the slice or of the round.
    #[cold]
    pub(super) fn expiry_in_rounds(
        &self,
        core: CoreId,
        slice_ns: Option<Ns>,
        now_ns: Ns,
        witness: impl Witness,
    ) -> Option<Ns> {
        let thread = self.core(core).running?;
        let left = self.rounds.length_ns - self.thread(thread).vruntime % self.rounds.length_ns;
        let left_ns = to_real(left, self.plan(thread).weight) * u64::from(SPEED_ONE);
        let round_end_ns = now_ns + left_ns.div_ceil(self.pace(thread, core).max(1).into());
        let slice_end_ns = self.slice_end_ns(core, thread, slice_ns, now_ns, witness);
        if round_end_ns < slice_end_ns {
            witness.because(|| {
                Reason::new(DecidedBy::Order, "its round ends")
                    .count("round", self.round(thread))
                    .ns("left_in_round_ns", left)
            });
        }
        Some(self.at_tick(round_end_ns.min(slice_end_ns).max(now_ns)))
    }

    /// What a core does whose own next thread is `own`: before it enters a later round with it, it
    /// takes a thread of an earlier one from elsewhere.
    pub(super) fn pick_in_rounds(
        &self,
        core: CoreId,
        own: ThreadId,
        now_ns: Ns,
        witness: impl Witness,
    ) -> Pick {
        let earlier = match self.round(own).cmp(&self.rounds.latest) {
            Ordering::Less => false,
            Ordering::Equal => self.rounds.waiting_earlier > 0,
            // Threads that run in the round before the latest may be two behind then.
            Ordering::Greater => true,
        };
        if !earlier {
            return Pick::Run(own);
        }
        match self.pick_elsewhere(core, Some(own), now_ns, witness) {
            Pick::Idle { .. } => Pick::Run(own),
            elsewhere => {
                witness.adds(|reason| {
                    reason.thread("instead_of", own).count("round_of_that", self.round(own))
                });
                elsewhere
            }
        }
    }

    /// Whether a core takes a thread that waits elsewhere instead of `own`: it is in an earlier round.
    pub(super) fn is_behind(&self, thread: ThreadId, own: ThreadId) -> bool {
        self.round(thread) < self.round(own)
    }

    /// Whether a core takes the thread that runs on a slower core, `from`, instead of `own`: it would be
    /// two rounds behind, and `own` may take its place.
    pub(super) fn is_far_behind(
        &self,
        thread: ThreadId,
        from: CoreId,
        own: ThreadId,
        now_ns: Ns,
    ) -> bool {
        self.round_now(thread, from, now_ns) + 1 < self.round(own) && self.allows(own, from)
    }
}
