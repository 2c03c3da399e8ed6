//! What a core does next: its own queue, then the steal steps of the rules.

use std::cmp::Reverse;

use ampsched_model::{CoreId, Ns, ThreadId};

use super::{Pick, RunState, Sched};
use crate::queue::{Entry, RunQueue};
use crate::{
    DecidedBy, LoadFilter, NoWitness, Order, Prefer, Reason, SPEED_ONE, Steal, StealFrom, Witness,
};

/// Why a thread comes first in a queue that is in order.
const FIRST: &str = "it comes first in the queue";
/// The same if those before it may not run on the core.
const FIRST_THAT_MAY: &str = "it comes first of those in the queue that may run here";

impl Sched {
    /// What a core without a running thread does next.
    #[inline]
    pub fn pick_by_rules(&self, core: CoreId, now_ns: Ns) -> Pick {
        self.pick_watched(core, now_ns, NoWitness)
    }

    /// The same, telling a witness why, and why not the thread that it asks about.
    #[inline]
    pub fn pick_watched(&self, core: CoreId, now_ns: Ns, witness: impl Witness) -> Pick {
        let queue = self.queue(core);
        // The common case, without a search: the queue is in order and its first thread may run here.
        if matches!(self.rules.order, Order::Fifo | Order::Vruntime) {
            match queue.first() {
                Some(first) if self.allows(first.thread, core) => {
                    self.tell_first(queue, first, FIRST, now_ns, witness);
                    return Pick::Run(first.thread);
                }
                _ => {}
            }
        }
        self.pick_by_search(core, now_ns, witness)
    }

    /// Apart from the common case, which stays small enough to be inlined.
    #[inline(never)]
    fn pick_by_search(&self, core: CoreId, now_ns: Ns, witness: impl Witness) -> Pick {
        match self.first_of(self.queue(core), core, None, now_ns, witness) {
            Some(thread) if self.has_rounds() => self.pick_in_rounds(core, thread, now_ns, witness),
            Some(thread) => Pick::Run(thread),
            None => self.pick_elsewhere(core, None, now_ns, witness),
        }
    }

    /// What the steal steps yield; with rounds, what is more urgent than the thread `instead_of`.
    pub(super) fn pick_elsewhere(
        &self,
        core: CoreId,
        instead_of: Option<ThreadId>,
        now_ns: Ns,
        witness: impl Witness,
    ) -> Pick {
        if !self.may_balance(now_ns) {
            let is_slower = |&thread: &ThreadId| {
                let state = self.thread(thread);
                state.state == RunState::Running
                    && self.topology.core(state.core).class < self.topology.core(core).class
            };
            if let Some(thread) = witness.asks_about().filter(is_slower) {
                let because = "nothing is taken from elsewhere while no core is over-utilised";
                witness.passes(thread, || Reason::new(DecidedBy::BalanceWhen, because));
            }
            return Pick::Idle { recheck_ns: self.looks_again(now_ns) };
        }
        let mut recheck_ns: Option<Ns> = None;
        for (number, step) in (0..).zip(&self.rules.steal) {
            if !self.may_try(core, step) {
                continue;
            }
            match self.try_steal(core, (number, step), instead_of, now_ns, witness) {
                Ok(Some(pick)) => return pick,
                Ok(None) => {}
                Err(later_ns) => {
                    recheck_ns = Some(recheck_ns.map_or(later_ns, |ns| ns.min(later_ns)))
                }
            }
        }
        if self.topology.has_smt() && instead_of.is_none() {
            match self.part(core, now_ns, witness) {
                Ok(Some(thread)) => return Pick::Pull(thread),
                Ok(None) => {}
                Err(later_ns) => {
                    recheck_ns = Some(recheck_ns.map_or(later_ns, |ns| ns.min(later_ns)))
                }
            }
        }
        Pick::Idle { recheck_ns }
    }

    pub(super) fn may_try(&self, core: CoreId, step: &Steal) -> bool {
        match step.who {
            Prefer::Any => true,
            Prefer::Big => self.topology.is_big(core),
            Prefer::Little => !self.topology.is_big(core),
        }
    }

    /// What a step yields now, or when it would.
    fn try_steal(
        &self,
        core: CoreId,
        (number, step): (u8, &Steal),
        instead_of: Option<ThreadId>,
        now_ns: Ns,
        witness: impl Witness,
    ) -> Result<Option<Pick>, Ns> {
        if step.from == StealFrom::RunningOnSlower && self.shares_core(core) {
            if let Some(thread) = witness.asks_about() {
                let because =
                    "the other thread of the faster core is busy, so it is not faster now";
                witness.passes(thread, || Reason::new(DecidedBy::Steal(number), because));
            }
            return Ok(None);
        }
        if step.load != LoadFilter::Any {
            return self.steal_by_load(core, number, step, now_ns, witness);
        }
        if step.from == StealFrom::RunningOnSlower {
            let found = self.running_on_slower(core, (number, step), instead_of, now_ns, witness);
            return found.map(|thread| thread.map(Pick::Pull));
        }
        if self.waiting == 0 {
            return Ok(None);
        }
        let found = self.waiting_elsewhere(core, (number, step), instead_of, now_ns, witness);
        let Some((from, thread, because)) = found else { return Ok(None) };
        let by = DecidedBy::Steal(number);
        let due_ns = self.core(core).since_ns + step.min_idle_ns;
        if now_ns < due_ns {
            witness.passes(thread, || {
                Reason::new(by, "the core has not been idle for long enough")
                    .ns("idle_ns", now_ns - self.core(core).since_ns)
                    .ns("min_idle_ns", step.min_idle_ns)
            });
            return Err(due_ns);
        }
        witness.because(|| {
            self.with_keys(Reason::new(by, because), thread, now_ns)
                .core("from", from)
                .count("load", self.queue(from).scaled_load())
        });
        Ok(Some(Pick::Run(thread)))
    }

    /// Whether a step may take from the queue of another core, else why not.
    fn reaches(&self, core: CoreId, step: &Steal, other: CoreId) -> Result<(), &'static str> {
        let cluster = |core: CoreId| self.topology.core(core).cluster;
        if self.queue_index(other) == self.queue_index(core) {
            return Err("it waits in the core's own queue");
        }
        if (cluster(other) == cluster(core)) != (step.from == StealFrom::OwnCluster) {
            return Err("the step does not look at its cluster");
        }
        if !self.queue(other).can_spare() {
            return Err("it is the only thread of a core that is about to run it");
        }
        Ok(())
    }

    /// A waiting thread of another core's queue, where it waits and why it: of the most loaded queue, or of
    /// all the highest rank or the earliest round.
    fn waiting_elsewhere(
        &self,
        core: CoreId,
        (number, step): (u8, &Steal),
        instead_of: Option<ThreadId>,
        now_ns: Ns,
        witness: impl Witness,
    ) -> Option<(CoreId, ThreadId, &'static str)> {
        let others = self.topology.cores().filter(|&other| self.reaches(core, step, other).is_ok());
        let found = others.filter_map(|other| {
            let first = self.first_of(self.queue(other), core, step.except, now_ns, NoWitness);
            first.map(|thread| (other, thread))
        });
        let found =
            found.filter(|&(_, thread)| instead_of.is_none_or(|own| self.is_behind(thread, own)));
        let (found, because) = match self.rules.order {
            Order::HighestRank { .. } => (
                found.min_by_key(|&(_, thread)| self.rank_key(thread)),
                "of the threads that come first in other queues the one of the highest rank",
            ),
            Order::Rounds { .. } => (
                found.min_by_key(|&(other, thread)| {
                    (self.round(thread), Reverse(self.queue(other).scaled_load()), other)
                }),
                "of the threads that come first in other queues the one in the earliest round",
            ),
            Order::Fifo | Order::Vruntime | Order::Deadline => (
                found.min_by_key(|&(other, _)| (Reverse(self.queue(other).scaled_load()), other)),
                "the thread that comes first in the most loaded queue that the step reaches",
            ),
        };
        let stolen = found.map(|(_, thread)| thread);
        if let Some(thread) = witness.asks_about().filter(|&thread| stolen != Some(thread)) {
            self.tell_unstolen(core, (number, step), thread, found, now_ns, witness);
        }
        found.map(|(from, thread)| (from, thread, because))
    }

    /// Why a step does not take a waiting thread but that of a core, or none.
    fn tell_unstolen(
        &self,
        core: CoreId,
        (number, step): (u8, &Steal),
        thread: ThreadId,
        taken: Option<(CoreId, ThreadId)>,
        now_ns: Ns,
        witness: impl Witness,
    ) {
        let state = self.thread(thread);
        if state.state != RunState::Ready {
            return;
        }
        let refused = self.reaches(core, step, state.core);
        let refused = refused.and_then(|()| self.may_take(thread, core, step.except)).err();
        witness.passes(thread, || {
            let because = match (refused, taken) {
                (Some(refused), _) => refused,
                (None, Some(_)) => "another thread comes before it",
                (None, None) => "no thread is urgent enough to be taken",
            };
            let reason = Reason::new(DecidedBy::Steal(number), because);
            let reason = self.with_keys(reason, thread, now_ns);
            let reason = reason.count("load", self.queue(state.core).scaled_load());
            match taken {
                Some((from, taken)) => reason
                    .thread("taken", taken)
                    .core("from", from)
                    .count("load_there", self.queue(from).scaled_load()),
                None => reason,
            }
        });
    }

    /// Highest rank first; ties: the thread that has been in its state longest.
    fn rank_key(&self, thread: ThreadId) -> (Reverse<u64>, Ns, ThreadId) {
        (Reverse(self.plan(thread).rank), self.thread(thread).since_ns, thread)
    }

    fn running_on_slower(
        &self,
        core: CoreId,
        (number, step): (u8, &Steal),
        instead_of: Option<ThreadId>,
        now_ns: Ns,
        witness: impl Witness,
    ) -> Result<Option<ThreadId>, Ns> {
        let by = DecidedBy::Steal(number);
        let class = self.topology.core(core).class;
        let slower = self.topology.cores().filter(|&other| self.topology.core(other).class < class);
        let running =
            slower.filter_map(|other| self.core(other).running.map(|thread| (other, thread)));
        let (mut best, mut soonest_ns): (Option<ThreadId>, Option<Ns>) = (None, None);
        for (other, thread) in running {
            let urgent =
                instead_of.is_none_or(|own| self.is_far_behind(thread, other, own, now_ns));
            if !urgent {
                witness.passes(thread, || Reason::new(by, "it is not two rounds behind"));
                continue;
            }
            if let Err(because) = self.gains(thread, other, core, step) {
                witness.passes(thread, || {
                    self.with_gain(Reason::new(by, because), thread, other, core, step)
                });
                continue;
            }
            let due_ns = match self.stats(thread).migrations {
                0 => now_ns,
                _ => self.stats(thread).migrated_at_ns + step.min_resident_ns,
            };
            if now_ns < due_ns {
                witness.passes(thread, || {
                    Reason::new(by, "its last migration is too short ago")
                        .ns("resident_ns", now_ns - self.stats(thread).migrated_at_ns)
                        .ns("min_resident_ns", step.min_resident_ns)
                });
                soonest_ns = Some(soonest_ns.map_or(due_ns, |ns| ns.min(due_ns)));
            } else if best.is_none_or(|best| self.rank_key(thread) < self.rank_key(best)) {
                best = Some(thread);
                witness.because(|| {
                    let because =
                        "it gains enough by a faster core, and has the highest rank of those";
                    self.with_gain(Reason::new(by, because), thread, other, core, step)
                        .core("from", other)
                        .count("rank", self.plan(thread).rank)
                });
            }
        }
        if let Some(thread) = witness.asks_about().filter(|&t| best.is_some_and(|b| b != t)) {
            if self.thread(thread).state == RunState::Running {
                witness.passes(thread, || {
                    let reason = Reason::new(by, "another thread is pulled");
                    let reason = reason.count("rank", self.plan(thread).rank);
                    best.map_or(reason.clone(), |best| {
                        reason.thread("taken", best).count("rank_of_taken", self.plan(best).rank)
                    })
                });
            }
        }
        match (best, soonest_ns) {
            (None, Some(due_ns)) => Err(due_ns),
            (best, _) => Ok(best),
        }
    }

    /// Predicted speed of a thread on a core relative to another, in the plan's fixed point.
    fn gain(&self, thread: ThreadId, from: CoreId, to: CoreId) -> u64 {
        u64::from(self.speed(thread, to)) * u64::from(SPEED_ONE)
            / u64::from(self.speed(thread, from).max(1))
    }

    /// Whether a running thread may be pulled and gains enough by it, else why not.
    fn gains(
        &self,
        thread: ThreadId,
        from: CoreId,
        to: CoreId,
        step: &Steal,
    ) -> Result<(), &'static str> {
        self.may_take(thread, to, step.except)?;
        match self.gain(thread, from, to) >= u64::from(step.min_gain) {
            true => Ok(()),
            false => Err("it gains too little by the faster core"),
        }
    }

    fn with_gain(
        &self,
        reason: Reason,
        thread: ThreadId,
        from: CoreId,
        to: CoreId,
        step: &Steal,
    ) -> Reason {
        let ratio = |fixed: u64| fixed as f64 / f64::from(SPEED_ONE);
        reason
            .real("gain", ratio(self.gain(thread, from, to)))
            .real("min_gain", ratio(step.min_gain.into()))
    }

    /// Whether a core may take a thread from a queue, else why not.
    fn may_take(
        &self,
        thread: ThreadId,
        core: CoreId,
        except: Option<Prefer>,
    ) -> Result<(), &'static str> {
        if !self.allows(thread, core) {
            return Err("it may not use the core");
        }
        if except == Some(self.plan(thread).prefer) {
            return Err("the step leaves threads of its preference where they are");
        }
        Ok(())
    }

    /// The first waiting thread of a queue that `core` may run.
    pub(super) fn first_of(
        &self,
        queue: &RunQueue,
        core: CoreId,
        except: Option<Prefer>,
        now_ns: Ns,
        witness: impl Witness,
    ) -> Option<ThreadId> {
        let fits = |entry: &&Entry| self.may_take(entry.thread, core, except).is_ok();
        let (entry, because) = match self.rules.order {
            Order::Fifo => match queue.first().filter(fits) {
                Some(first) => (Some(first), FIRST),
                None => (earliest(queue, fits), FIRST_THAT_MAY),
            },
            Order::Vruntime | Order::Rounds { .. } => match queue.first().filter(fits) {
                Some(first) => (Some(first), FIRST),
                None => (least(queue, fits), FIRST_THAT_MAY),
            },
            Order::Deadline => self.earliest_eligible(queue, fits),
            Order::HighestRank { fair_window_ns } => {
                let limit = queue.least()?.saturating_add(fair_window_ns);
                let fair = queue.iter().filter(|entry| entry.key <= limit && fits(entry));
                match fair.min_by_key(|entry| (Reverse(self.plan(entry.thread).rank), entry.serial))
                {
                    Some(first) => (Some(first), "the highest rank within the fair window"),
                    // Beyond the window only if nobody within it may run on that core.
                    None => (
                        least(queue, fits),
                        "nobody within the fair window may run here: the least virtual run time of the others",
                    ),
                }
            }
        };
        let entry = entry?;
        self.tell_first(queue, entry, because, now_ns, witness);
        Some(entry.thread)
    }

    /// Tells why a thread comes first in a queue, and why another one there does not.
    #[inline]
    fn tell_first(
        &self,
        queue: &RunQueue,
        first: &Entry,
        because: &'static str,
        now_ns: Ns,
        witness: impl Witness,
    ) {
        let waiting = queue.len() as u64;
        witness.because(|| {
            let because = if waiting == 1 { "the only one that waits here" } else { because };
            let reason = Reason::new(DecidedBy::Order, because).count("waiting", waiting);
            self.with_keys(reason, first.thread, now_ns)
        });
        let Some(other) = witness.asks_about().filter(|&other| other != first.thread) else {
            return;
        };
        if queue.iter().any(|entry| entry.thread == other) {
            witness.passes(other, || {
                let reason = Reason::new(DecidedBy::Order, "another thread comes before it");
                let reason = self.with_keys(reason, other, now_ns);
                reason.count("waiting", waiting).thread("first", first.thread)
            });
        }
    }

    /// A reason with what the order compares, of a thread that waits.
    fn with_keys(&self, reason: Reason, thread: ThreadId, now_ns: Ns) -> Reason {
        let state = self.thread(thread);
        let queue = self.queue(state.core);
        let reason = reason.ns("waited_ns", now_ns.saturating_sub(state.since_ns));
        let above = |reason: Reason, origin: i128| {
            reason.ns_from("vruntime_ns", state.vruntime.into(), origin)
        };
        match self.rules.order {
            Order::Fifo => reason,
            Order::Vruntime => above(reason, queue.min_vruntime.into()),
            Order::Deadline => {
                let mean = queue.mean_vruntime();
                above(reason, mean).ns_from("deadline_ns", state.deadline.into(), mean)
            }
            Order::HighestRank { fair_window_ns } => {
                let least = queue.least().unwrap_or(state.vruntime);
                let reason = reason.count("rank", self.plan(thread).rank);
                above(reason, least.into()).ns("fair_window_ns", fair_window_ns)
            }
            Order::Rounds { .. } => above(reason.count("round", self.round(thread)), 0),
        }
    }

    /// EEVDF: the earliest deadline among the eligible.
    fn earliest_eligible<'a>(
        &self,
        queue: &'a RunQueue,
        fits: impl Fn(&&Entry) -> bool,
    ) -> (Option<&'a Entry>, &'static str) {
        let key = |entry: &&Entry| (self.thread(entry.thread).deadline, entry.serial);
        let fitting = || queue.iter().filter(|entry| fits(entry));
        let eligible = fitting().filter(|entry| self.is_eligible(entry.thread, queue));
        match eligible.min_by_key(key) {
            Some(first) => (Some(first), "the earliest virtual deadline among the eligible"),
            // With a thread excluded (affinity, stealing) the rest may all be ahead of the mean.
            None => (
                fitting().min_by_key(key),
                "nobody eligible may run here: the earliest virtual deadline of the others",
            ),
        }
    }
}

fn earliest(queue: &RunQueue, fits: impl Fn(&&Entry) -> bool) -> Option<&Entry> {
    queue.iter().filter(|entry| fits(entry)).min_by_key(|entry| entry.serial)
}

fn least(queue: &RunQueue, fits: impl Fn(&&Entry) -> bool) -> Option<&Entry> {
    queue.iter().filter(|entry| fits(entry)).min_by_key(|entry| (entry.key, entry.serial))
}
