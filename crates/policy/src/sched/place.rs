//! Where a thread is put when it starts or wakes.

use ampsched_model::{CoreId, ThreadId};

use super::{RunState, Sched};
use crate::{Allocator, Prefer};

impl Sched {
    /// The core for a thread that starts or wakes; always one that it may use.
    ///
    /// Round-robin allocators remember the choice, so ask once per placement.
    pub fn place_by_rules(&self, thread: ThreadId) -> CoreId {
        match self.rules.allocator {
            Allocator::WakeAffine => self.place_wake_affine(thread, None),
            Allocator::RoundRobinInClass => self.place_in_class(thread),
        }
    }

    /// The same, for a thread woken by a thread that runs on core `waker`.
    pub fn place_by_rules_near(&self, thread: ThreadId, waker: Option<CoreId>) -> CoreId {
        match self.rules.allocator {
            Allocator::WakeAffine => self.place_wake_affine(thread, waker),
            Allocator::RoundRobinInClass => self.place_in_class(thread),
        }
    }

    fn place_wake_affine(&self, thread: ThreadId, waker: Option<CoreId>) -> CoreId {
        let state = self.thread(thread);
        if state.state == RunState::New {
            return self.least_loaded(thread);
        }
        let previous = state.core;
        let candidates = [Some(previous), waker];
        let idle = candidates.into_iter().flatten().find_map(|near| self.idle_near(thread, near));
        let less_loaded =
            candidates.into_iter().flatten().filter(|&core| self.allows(thread, core));
        idle.or_else(|| less_loaded.min_by_key(|&core| self.load(core)))
            .unwrap_or_else(|| self.least_loaded(thread))
    }

    /// An idle core that the thread may use and that shares a cluster with `near`, itself first.
    fn idle_near(&self, thread: ThreadId, near: CoreId) -> Option<CoreId> {
        let usable = |core: CoreId| self.is_idle(core) && self.allows(thread, core);
        if usable(near) {
            return Some(near);
        }
        self.topology.siblings(near).iter().copied().find(|&core| usable(core))
    }

    /// The least loaded core that the thread may use; of equal ones the first.
    fn least_loaded(&self, thread: ThreadId) -> CoreId {
        let mut best: Option<((u64, bool), CoreId)> = None;
        for core in self.topology.cores() {
            let load = self.load(core);
            if best.is_none_or(|(least, _)| load < least) && self.allows(thread, core) {
                best = Some((load, core));
                // Cores that share one queue differ only in whether they run something.
                let unbeatable = load.0 == 0 || self.queues.len() == 1;
                if unbeatable && !load.1 {
                    break;
                }
            }
        }
        best.expect("an affinity set is never empty").1
    }

    /// Weight per core of the core's queue; of equal ones (queues may be shared) a core without a
    /// thread comes first.
    fn load(&self, core: CoreId) -> (u64, bool) {
        (self.queue(core).load_per_core(), self.core(core).running.is_some())
    }

    fn place_in_class(&self, thread: ThreadId) -> CoreId {
        let prefer = self.plan(thread).prefer;
        let fits = |core: CoreId| match prefer {
            Prefer::Any => true,
            Prefer::Big => self.topology.is_big(core),
            Prefer::Little => !self.topology.is_big(core),
        };
        let exists = self.topology.cores().any(|core| fits(core) && self.allows(thread, core));
        let usable = |core: CoreId| self.allows(thread, core) && (fits(core) || !exists);
        let cursor = &self.cursors[prefer as usize];
        let (next, count) = (usize::from(cursor.get()), self.topology.core_count());
        let in_turn = (next..count).chain(0..next).map(CoreId::from);
        let mut usable_in_turn = in_turn.filter(|&core| usable(core));
        let chosen = match prefer {
            Prefer::Any => usable_in_turn.min_by_key(|&core| self.load(core)),
            Prefer::Big | Prefer::Little => usable_in_turn.next(),
        };
        let chosen = chosen.expect("an affinity set is never empty");
        cursor.set(((chosen.index() + 1) % count) as u16);
        chosen
    }
}
