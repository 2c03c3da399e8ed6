//! Hand-over of objects between cores: the cache line of a lock, a queue, a pool or a semaphore moves to who uses it.
//!
//! The line is with one core at a time: of several that want it each waits for those before it. So a counter that many
//! cores increment goes up once per transfer, however many they are.

use ampsched_model::{ClusterId, CoreId, Costs, Ns, ObjectId, ThreadId};

use super::Engine;

/// Where the line of an object is.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    /// The core that used it last; none: nobody has.
    core: Option<CoreId>,
    /// When it is there.
    there_ns: Ns,
}

/// The lines of all objects, by number.
#[derive(Debug, Default)]
pub(super) struct Handovers {
    lines: Vec<Line>,
}

impl Handovers {
    /// A core uses an object: how long it waits for the line.
    fn take(
        &mut self,
        object: ObjectId,
        core: CoreId,
        transfer_ns: impl Fn(CoreId) -> Ns,
        now_ns: Ns,
    ) -> Ns {
        if self.lines.len() <= object.index() {
            self.lines.resize(object.index() + 1, Line::default());
        }
        let line = &mut self.lines[object.index()];
        let wait_ns = match line.core.replace(core) {
            Some(last) if last != core => line.there_ns.saturating_sub(now_ns) + transfer_ns(last),
            _ => 0,
        };
        line.there_ns = line.there_ns.max(now_ns + wait_ns);
        wait_ns
    }
}

/// What the transfer of a line from a cluster takes of the time of a core.
fn transfer_ns(costs: &Costs, from: ClusterId, to: ClusterId) -> Ns {
    if from == to { costs.handover_same_cluster_ns } else { costs.handover_cross_cluster_ns }
}

impl Engine<'_> {
    /// A running thread has used an object: if another core did so last, it goes on when its core has the line.
    #[inline]
    pub(super) fn hand_over(&mut self, thread: ThreadId, object: ObjectId) {
        if self.handovers.is_some() {
            self.move_line(thread, object);
        }
    }

    #[cold]
    fn move_line(&mut self, thread: ThreadId, object: ObjectId) {
        let Some(handovers) = self.handovers.as_deref_mut() else { return };
        let core = self.sched.thread(thread).core;
        let (cores, cluster) = (&self.cores, self.cores[core].cluster);
        let costs = self.setup.machine.costs_on(cluster);
        let from = |last: CoreId| transfer_ns(costs, cores[last].cluster, cluster);
        let wait_ns = handovers.take(object, core, from, self.events.now_ns());
        if wait_ns > 0 && self.sched.current(core) == Some(thread) {
            self.account(core);
            self.cores[core].delay(&self.threads[thread], wait_ns);
            self.arm(core);
        }
    }
}
