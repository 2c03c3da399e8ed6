//! What a core does next: its own queue, then the steal steps of the rules.

use std::cmp::Reverse;

use ampsched_model::{CoreId, Ns, ThreadId};

use super::{Pick, Sched};
use crate::queue::{Entry, RunQueue};
use crate::{LoadFilter, Order, Prefer, SPEED_ONE, Steal, StealFrom};

impl Sched {
    /// What a core without a running thread does next.
    #[inline]
    pub fn pick_by_rules(&self, core: CoreId, now_ns: Ns) -> Pick {
        let queue = self.queue(core);
        // The common case, without a search: the queue is in order and its first thread may run here.
        if matches!(self.rules.order, Order::Fifo | Order::Vruntime) {
            match queue.first() {
                Some(first) if self.allows(first.thread, core) => return Pick::Run(first.thread),
                _ => {}
            }
        }
        self.pick_by_search(core, now_ns)
    }

    /// Apart from the common case, which stays small enough to be inlined.
    #[inline(never)]
    fn pick_by_search(&self, core: CoreId, now_ns: Ns) -> Pick {
        match self.first_of(self.queue(core), core, None) {
            Some(thread) if self.has_rounds() => self.pick_in_rounds(core, thread, now_ns),
            Some(thread) => Pick::Run(thread),
            None => self.pick_elsewhere(core, None, now_ns),
        }
    }

    /// What the steal steps yield; with rounds, what is more urgent than the thread `instead_of`.
    pub(super) fn pick_elsewhere(
        &self,
        core: CoreId,
        instead_of: Option<ThreadId>,
        now_ns: Ns,
    ) -> Pick {
        if !self.may_balance(now_ns) {
            return Pick::Idle { recheck_ns: self.looks_again(now_ns) };
        }
        let mut recheck_ns: Option<Ns> = None;
        for step in self.rules.steal.iter().filter(|step| self.may_try(core, step)) {
            match self.try_steal(core, step, instead_of, now_ns) {
                Ok(Some(pick)) => return pick,
                Ok(None) => {}
                Err(later_ns) => {
                    recheck_ns = Some(recheck_ns.map_or(later_ns, |ns| ns.min(later_ns)))
                }
            }
        }
        Pick::Idle { recheck_ns }
    }

    fn may_try(&self, core: CoreId, step: &Steal) -> bool {
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
        step: &Steal,
        instead_of: Option<ThreadId>,
        now_ns: Ns,
    ) -> Result<Option<Pick>, Ns> {
        if step.load != LoadFilter::Any {
            return self.steal_by_load(core, step, now_ns);
        }
        if step.from == StealFrom::RunningOnSlower {
            let found = self.running_on_slower(core, step, instead_of, now_ns);
            return found.map(|thread| thread.map(Pick::Pull));
        }
        if self.waiting == 0 {
            return Ok(None);
        }
        let Some(thread) = self.waiting_elsewhere(core, step, instead_of) else { return Ok(None) };
        let due_ns = self.core(core).since_ns + step.min_idle_ns;
        if now_ns < due_ns { Err(due_ns) } else { Ok(Some(Pick::Run(thread))) }
    }

    /// A waiting thread of another core's queue: of the most loaded queue, or of all the highest rank or
    /// the earliest round.
    fn waiting_elsewhere(
        &self,
        core: CoreId,
        step: &Steal,
        instead_of: Option<ThreadId>,
    ) -> Option<ThreadId> {
        let own = self.queue_index(core);
        let own_cluster = self.topology.core(core).cluster;
        let others = self.topology.cores().filter(|&other| {
            let same_cluster = self.topology.core(other).cluster == own_cluster;
            self.queue_index(other) != own
                && same_cluster == (step.from == StealFrom::OwnCluster)
                && self.queue(other).can_spare()
        });
        let found = others.filter_map(|other| {
            self.first_of(self.queue(other), core, step.except).map(|thread| (other, thread))
        });
        let found =
            found.filter(|&(_, thread)| instead_of.is_none_or(|own| self.is_behind(thread, own)));
        match self.rules.order {
            Order::HighestRank { .. } => found.min_by_key(|&(_, thread)| self.rank_key(thread)),
            Order::Rounds { .. } => found.min_by_key(|&(other, thread)| {
                (self.round(thread), Reverse(self.queue(other).scaled_load()), other)
            }),
            Order::Fifo | Order::Vruntime | Order::Deadline => {
                found.min_by_key(|&(other, _)| (Reverse(self.queue(other).scaled_load()), other))
            }
        }
        .map(|(_, thread)| thread)
    }

    /// Highest rank first; ties: the thread that has been in its state longest.
    fn rank_key(&self, thread: ThreadId) -> (Reverse<u64>, Ns, ThreadId) {
        (Reverse(self.plan(thread).rank), self.thread(thread).since_ns, thread)
    }

    fn running_on_slower(
        &self,
        core: CoreId,
        step: &Steal,
        instead_of: Option<ThreadId>,
        now_ns: Ns,
    ) -> Result<Option<ThreadId>, Ns> {
        let class = self.topology.core(core).class;
        let slower = self.topology.cores().filter(|&other| self.topology.core(other).class < class);
        let running =
            slower.filter_map(|other| self.core(other).running.map(|thread| (other, thread)));
        let (mut best, mut soonest_ns): (Option<ThreadId>, Option<Ns>) = (None, None);
        for (other, thread) in running {
            let urgent =
                instead_of.is_none_or(|own| self.is_far_behind(thread, other, own, now_ns));
            if !urgent || !self.gains(thread, other, core, step) {
                continue;
            }
            let due_ns = match self.stats(thread).migrations {
                0 => now_ns,
                _ => self.stats(thread).migrated_at_ns + step.min_resident_ns,
            };
            if now_ns < due_ns {
                soonest_ns = Some(soonest_ns.map_or(due_ns, |ns| ns.min(due_ns)));
            } else if best.is_none_or(|best| self.rank_key(thread) < self.rank_key(best)) {
                best = Some(thread);
            }
        }
        match (best, soonest_ns) {
            (None, Some(due_ns)) => Err(due_ns),
            (best, _) => Ok(best),
        }
    }

    fn gains(&self, thread: ThreadId, from: CoreId, to: CoreId, step: &Steal) -> bool {
        let gain = u64::from(self.speed(thread, to)) * u64::from(SPEED_ONE)
            / u64::from(self.speed(thread, from).max(1));
        self.allows(thread, to)
            && step.except != Some(self.plan(thread).prefer)
            && gain >= u64::from(step.min_gain)
    }

    /// The first waiting thread of a queue that `core` may run.
    pub(super) fn first_of(
        &self,
        queue: &RunQueue,
        core: CoreId,
        except: Option<Prefer>,
    ) -> Option<ThreadId> {
        let fits = |entry: &&Entry| {
            self.allows(entry.thread, core) && except != Some(self.plan(entry.thread).prefer)
        };
        match self.rules.order {
            Order::Fifo => queue.first().filter(fits).or_else(|| earliest(queue, fits)),
            Order::Vruntime | Order::Rounds { .. } => {
                queue.first().filter(fits).or_else(|| least(queue, fits))
            }
            Order::Deadline => self.earliest_eligible(queue, fits),
            Order::HighestRank { fair_window_ns } => {
                let limit = queue.least()?.saturating_add(fair_window_ns);
                let fair = queue.iter().filter(|entry| entry.key <= limit && fits(entry));
                fair.min_by_key(|entry| (Reverse(self.plan(entry.thread).rank), entry.serial))
                    // Beyond the window only if nobody within it may run on that core.
                    .or_else(|| least(queue, fits))
            }
        }
        .map(|entry| entry.thread)
    }

    /// EEVDF: the earliest deadline among the eligible.
    fn earliest_eligible<'a>(
        &self,
        queue: &'a RunQueue,
        fits: impl Fn(&&Entry) -> bool,
    ) -> Option<&'a Entry> {
        let key = |entry: &&Entry| (self.thread(entry.thread).deadline, entry.serial);
        let fitting = || queue.iter().filter(|entry| fits(entry));
        fitting()
            .filter(|entry| self.is_eligible(entry.thread, queue))
            .min_by_key(key)
            // With a thread excluded (affinity, stealing) the rest may all be ahead of the mean.
            .or_else(|| fitting().min_by_key(key))
    }
}

fn earliest(queue: &RunQueue, fits: impl Fn(&&Entry) -> bool) -> Option<&Entry> {
    queue.iter().filter(|entry| fits(entry)).min_by_key(|entry| entry.serial)
}

fn least(queue: &RunQueue, fits: impl Fn(&&Entry) -> bool) -> Option<&Entry> {
    queue.iter().filter(|entry| fits(entry)).min_by_key(|entry| (entry.key, entry.serial))
}
