//! Periodic load balancing between run queues.

use std::cmp::Reverse;

use ampsched_model::{CoreId, ThreadId};

use super::{EnqueueKind, Sched};
use crate::Balance;

impl Sched {
    /// Moves waiting threads from the most to the least loaded queues until no move helps, and
    /// returns the cores whose queues received one.
    ///
    /// A move helps if the loads differ by more than the tolerance and by more than the thread's
    /// weight. Simplified from Linux's `load_balance`: no groups, no history (CFS of 3.16).
    pub fn balance(&mut self, balance: Balance, now_ns: u64) -> Vec<CoreId> {
        let mut receivers = Vec::new();
        for _ in 0..self.topology.core_count() {
            let Some((thread, target)) = self.helpful_move(balance.tolerance_percent) else {
                break;
            };
            self.dequeue(thread);
            self.enqueue(thread, target, EnqueueKind::Requeue, now_ns);
            receivers.push(target);
        }
        receivers
    }

    fn helpful_move(&self, tolerance_percent: u32) -> Option<(ThreadId, CoreId)> {
        let most = self.topology.cores().map(|core| self.queue(core).load).max()?;
        let mut targets: Vec<CoreId> = self.topology.cores().collect();
        targets.sort_by_key(|&core| (self.queue(core).load, core));
        // Loads ascend, so the first target that is within the tolerance ends the search.
        let limit =
            |target: CoreId| self.queue(target).load * u64::from(100 + tolerance_percent) / 100;
        targets
            .into_iter()
            .take_while(|&target| limit(target) < most)
            .find_map(|target| Some((self.movable_to(target, limit(target))?, target)))
    }

    /// A waiting thread whose move to the target's queue helps, from the most loaded source that has one.
    fn movable_to(&self, target: CoreId, limit: u64) -> Option<ThreadId> {
        let is_source =
            |&core: &CoreId| self.queue(core).load > limit && !self.queue(core).is_empty();
        let mut sources: Vec<CoreId> = self.topology.cores().filter(is_source).collect();
        sources.sort_by_key(|&core| (Reverse(self.queue(core).load), core));
        sources.into_iter().find_map(|source| {
            let gap = self.queue(source).load - self.queue(target).load;
            let helps = |thread: ThreadId| {
                self.allows(thread, target) && u64::from(self.plan(thread).weight) < gap
            };
            let waiting = self.queue(source).iter().filter(|entry| helps(entry.thread));
            waiting.min_by_key(|entry| entry.serial).map(|entry| entry.thread)
        })
    }
}
