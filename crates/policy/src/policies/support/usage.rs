//! What threads have used since they were looked at last.

use ampsched_model::{Ns, ThreadId};

use super::seats::fast_ns;
use super::window::PerThread;
use crate::View;

/// Time that a thread has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// On fast cores.
    pub fast_ns: Ns,
    /// On slow cores.
    pub slow_ns: Ns,
    /// In run queues.
    pub ready_ns: Ns,
    /// Blocked; a stay counts when it ends.
    pub blocked_ns: Ns,
}

impl Usage {
    /// Time in which it could have run on a core.
    pub fn runnable_ns(&self) -> Ns {
        self.fast_ns + self.slow_ns + self.ready_ns
    }
}

/// Reads the threads' counters.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    seen: PerThread<Usage>,
}

impl Meter {
    /// What the thread has used since the last call for it, or since its start.
    pub fn since_last(&mut self, view: &View, thread: ThreadId) -> Usage {
        let stats = view.stats(thread);
        let now = Usage {
            fast_ns: fast_ns(stats),
            slow_ns: stats.run_ns[0],
            ready_ns: view.ready_ns(thread),
            blocked_ns: stats.blocked_ns,
        };
        let seen = std::mem::replace(self.seen.slot(thread), now);
        Usage {
            fast_ns: now.fast_ns - seen.fast_ns,
            slow_ns: now.slow_ns - seen.slow_ns,
            ready_ns: now.ready_ns - seen.ready_ns,
            blocked_ns: now.blocked_ns - seen.blocked_ns,
        }
    }
}
