//! Periodic load balancing between run queues.

use std::cmp::Reverse;

use ampsched_model::{CoreId, Ns, ThreadId};

use super::{EnqueueKind, Sched};
use crate::queue::{Entry, RunQueue};
use crate::{Balance, DecidedBy, NoWitness, Prefer, Reason, SPEED_ONE, Witness};

impl Sched {
    /// Moves waiting threads from the most to the least loaded queues until no move helps, and
    /// returns the cores whose queues received one.
    ///
    /// Load is weight per rated core. A move helps if the loads differ by more than the tolerance and the
    /// target stays less loaded than the source was. Once per rotation period threads also move if that
    /// only swaps the imbalance. Simplified from Linux's `load_balance` (3.16): no groups,
    /// no history.
    pub fn balance(&mut self, balance: Balance, now_ns: Ns) -> Vec<CoreId> {
        self.balance_watched(balance, now_ns, NoWitness)
    }

    /// The same, telling a witness of each move.
    pub fn balance_watched(
        &mut self,
        balance: Balance,
        now_ns: Ns,
        witness: impl Witness,
    ) -> Vec<CoreId> {
        let mut receivers = Vec::new();
        if !self.may_balance(now_ns) {
            return receivers;
        }
        let kinds: &[Prefer] =
            if balance.within_kind { &[Prefer::Big, Prefer::Little] } else { &[Prefer::Any] };
        let mut rotated = false;
        for &kind in kinds {
            let group = Group {
                kind,
                tolerance_percent: balance.tolerance_percent,
                settled_ns: now_ns.saturating_sub(balance.min_resident_ns),
                by_preference: balance.by_preference,
            };
            // Mostly there is nothing to do, which should cost little.
            if self.imbalance(group).is_none() {
                continue;
            }
            self.even_out(group, now_ns, &mut receivers, witness);
            if now_ns >= self.rotation_due_ns {
                rotated |= self.rotate(group, now_ns, &mut receivers, witness);
            }
        }
        if rotated {
            self.rotation_due_ns = now_ns + balance.rotate_period_ns;
        }
        receivers
    }

    /// Moves threads while that helps, at most as many as the group has cores.
    fn even_out(
        &mut self,
        group: Group,
        now_ns: Ns,
        receivers: &mut Vec<CoreId>,
        witness: impl Witness,
    ) {
        for _ in 0..self.cores_of(group).count() {
            let Some((thread, target)) = self.helpful_move(group) else { break };
            let because = "it evens out the loads of the two queues";
            self.tell_move(thread, target, because, group, witness);
            self.dequeue(thread);
            self.enqueue(thread, target, EnqueueKind::Requeue, now_ns);
            receivers.push(target);
        }
    }

    /// Swaps imbalances that cannot be removed: each queue gives and receives at most one thread.
    ///
    /// Linux takes a thread if half its load is at most the imbalance, which is half the gap
    /// (3.16 `move_tasks`; later kernels after one failed attempt), the least recently moved first. The
    /// thread that came by the last rotation stays, so that all get their turn. Returns whether one moved.
    fn rotate(
        &mut self,
        group: Group,
        now_ns: Ns,
        receivers: &mut Vec<CoreId>,
        witness: impl Witness,
    ) -> bool {
        let before = receivers.len();
        let mut sources = self.sources(group, 0);
        for target in self.targets(group) {
            let limit = group.tolerated(self.queue(target).scaled_load());
            let found = sources.iter().position(|&source| {
                let source = self.queue(source);
                source.scaled_load() > limit && self.swappable(source, target, group).is_some()
            });
            let Some(position) = found else { continue };
            let source = sources.remove(position);
            let thread = self.swappable(self.queue(source), target, group);
            let thread = thread.expect("found just now");
            let because = "loads that cannot be evened out take turns: the two queues swap theirs";
            self.tell_move(thread, target, because, group, witness);
            self.dequeue(thread);
            self.enqueue(thread, target, EnqueueKind::Requeue, now_ns);
            let queue = self.queue_index(target);
            self.queues[queue].newcomer = Some(thread);
            self.queues[queue].rotated = self.serial;
            receivers.push(target);
        }
        receivers.len() > before
    }

    /// Tells of a move that is about to happen.
    fn tell_move(
        &self,
        thread: ThreadId,
        target: CoreId,
        because: &'static str,
        group: Group,
        witness: impl Witness,
    ) {
        let from = self.thread(thread).core;
        witness.moves(thread, from, target, || {
            Reason::new(DecidedBy::Balance, because)
                .count("load_from", self.queue(from).scaled_load())
                .count("load_to", self.queue(target).scaled_load())
                .count("tolerance_percent", group.tolerance_percent)
        });
    }

    /// The waiting thread that came first among those whose move would not enlarge the imbalance.
    fn swappable(&self, source: &RunQueue, target: CoreId, group: Group) -> Option<ThreadId> {
        let room = room(source.scaled_load(), self.queue(target));
        let fits = source.iter().filter(|entry| {
            source.newcomer != Some(entry.thread)
                && self.may_move(entry.thread, target, group)
                && room >= rated(self.plan(entry.thread).weight)
        });
        let turn = |entry: &&Entry| self.turn(entry, target, group);
        fits.min_by_key(turn).map(|entry| entry.thread)
    }

    fn helpful_move(&self, group: Group) -> Option<(ThreadId, CoreId)> {
        let load = |core: CoreId| self.queue(core).scaled_load();
        let (least, most) = self.imbalance(group)?;
        let lightest = self.lightest_waiting();
        let sources = self.sources(group, group.tolerated(least));
        self.targets(group)
            .into_iter()
            // Loads ascend, so the first target that nothing can help ends the search.
            .take_while(|&target| {
                let queue = self.queue(target);
                group.tolerated(load(target)) < most && helps(lightest, most, queue)
            })
            .find_map(|target| {
                let limit = group.tolerated(load(target));
                let busier = sources.iter().copied().take_while(|&source| load(source) > limit);
                Some((self.movable(busier, target, group)?, target))
            })
    }

    /// The least and the greatest load, if a thread waits and they differ by more than the tolerance.
    fn imbalance(&self, group: Group) -> Option<(u64, u64)> {
        if self.waiting == 0 {
            return None;
        }
        let (mut least, mut most) = (u64::MAX, 0);
        for core in self.cores_of(group) {
            let load = self.queue(core).scaled_load();
            (least, most) = (least.min(load), most.max(load));
        }
        (least < most && group.tolerated(least) < most).then_some((least, most))
    }

    /// The least weight of a waiting thread.
    fn lightest_waiting(&self) -> u32 {
        let waiting = self.queues.iter().flat_map(RunQueue::iter);
        waiting.map(|entry| self.plan(entry.thread).weight).min().unwrap_or(u32::MAX)
    }

    /// The cores of a group in ascending order.
    fn cores_of(&self, group: Group) -> impl Iterator<Item = CoreId> + '_ {
        let all = self.topology.cores();
        all.filter(move |&core| group.kind == Prefer::Any || self.topology.kind(core) == group.kind)
    }

    /// The cores of a group, least loaded first; of equal ones first those with a physical core for themselves, then
    /// that to which a rotation has brought nothing for longest, so that all share what does not divide evenly.
    fn targets(&self, group: Group) -> Vec<CoreId> {
        let mut targets: Vec<CoreId> = self.cores_of(group).collect();
        targets.sort_by_key(|&core| {
            let queue = self.queue(core);
            (queue.scaled_load(), self.shares_core(core), queue.rotated, core)
        });
        targets
    }

    /// The cores whose queues can spare a thread and hold more than some load, most loaded first.
    fn sources(&self, group: Group, above: u64) -> Vec<CoreId> {
        let load = |core: CoreId| self.queue(core).scaled_load();
        let is_source = |&core: &CoreId| load(core) > above && self.queue(core).can_spare();
        let mut sources: Vec<CoreId> = self.cores_of(group).filter(is_source).collect();
        sources.sort_by_key(|&core| (Reverse(load(core)), core));
        sources
    }

    /// Whether a waiting thread may use the target and has not just come to its own cluster from another.
    fn may_move(&self, thread: ThreadId, target: CoreId, group: Group) -> bool {
        let cluster = |core: CoreId| self.topology.core(core).cluster;
        let stats = self.stats(thread);
        let settled = stats.migrations == 0 || stats.migrated_at_ns <= group.settled_ns;
        self.allows(thread, target)
            && (settled || cluster(self.thread(thread).core) == cluster(target))
    }

    /// Whose turn it is to move to the target, least first: by preference if that matters, then by arrival.
    fn turn(&self, entry: &Entry, target: CoreId, group: Group) -> (u8, u64) {
        let (from, to) =
            (self.topology.kind(self.thread(entry.thread).core), self.topology.kind(target));
        let reluctance = match self.plan(entry.thread).prefer {
            _ if !group.by_preference || from == to => 0,
            Prefer::Any => 1,
            preferred if preferred == to => 0,
            Prefer::Big | Prefer::Little => 2,
        };
        (reluctance, entry.serial)
    }

    /// The thread to move to the target: the one that came first to the first source that has any.
    fn movable(
        &self,
        mut sources: impl Iterator<Item = CoreId>,
        target: CoreId,
        group: Group,
    ) -> Option<ThreadId> {
        sources.find_map(|source| {
            let source = self.queue(source);
            let waiting = source.iter().filter(|entry| {
                self.may_move(entry.thread, target, group)
                    && helps(
                        self.plan(entry.thread).weight,
                        source.scaled_load(),
                        self.queue(target),
                    )
            });
            let turn = |entry: &&Entry| self.turn(entry, target, group);
            waiting.min_by_key(turn).map(|entry| entry.thread)
        })
    }
}

/// Cores that are balanced among themselves.
#[derive(Clone, Copy)]
struct Group {
    /// Their kind; any for all cores.
    kind: Prefer,
    tolerance_percent: u32,
    /// Threads that have migrated since then do not go to another cluster.
    settled_ns: Ns,
    /// Whether threads that prefer the other kind of core move there first.
    by_preference: bool,
}

impl Group {
    /// The greatest load that does not differ too much from a load.
    fn tolerated(self, load: u64) -> u64 {
        load * u64::from(100 + self.tolerance_percent) / 100
    }
}

/// Whether a queue with one more thread is still less loaded than a source with that load.
fn helps(weight: u32, source_load: u64, target: &RunQueue) -> bool {
    rated(weight) < room(source_load, target)
}

/// What the target lacks of that load, as the sum over its cores of load x rating.
fn room(source_load: u64, target: &RunQueue) -> u64 {
    source_load.saturating_sub(target.scaled_load()) * u64::from(target.capacity)
}

/// A weight in the units of [`room`].
fn rated(weight: u32) -> u64 {
    u64::from(weight) * u64::from(SPEED_ONE)
}
