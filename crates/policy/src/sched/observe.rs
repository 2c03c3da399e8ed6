//! For hosts that watch a scheduler instead of being one: states are written down, not decided.

use ampsched_model::{CoreId, Ns, ThreadId};

use super::{EnqueueKind, RunState, Sched};
use crate::Activity;

impl Sched {
    /// A thread has been found in a state on a core: that it runs there, waits there, or has last run there.
    ///
    /// All books follow (queues, loads, times, migrations) as if this interpreter had decided it; run time
    /// is charged apart ([`Sched::charge`]). If another thread was taken to run on that core, it waits from
    /// now on. Observations come in the order of time. A thread that has exited stays so.
    pub fn observe(&mut self, thread: ThreadId, state: RunState, core: CoreId, now_ns: Ns) {
        let before = self.thread(thread);
        if (before.state, before.core) == (state, core) || before.state == RunState::Exited {
            return;
        }
        let before = (before.state, before.core);
        match before {
            (RunState::Running, on) => self.stop(on, state_after_running(state), now_ns),
            (RunState::Ready, _) => self.dequeue(thread),
            _ => {}
        }
        match state {
            RunState::Ready => self.enqueue(thread, core, kind_after(before.0), now_ns),
            RunState::Running => {
                self.enqueue(thread, core, kind_after(before.0), now_ns);
                if self.core(core).running.is_some() {
                    self.requeue(core, now_ns);
                }
                self.start(core, thread, now_ns);
            }
            RunState::Exited if before.0 != RunState::Running => self.retire(thread, now_ns),
            RunState::Blocked if before.0 != RunState::Running => {
                self.threads[thread.index()].core = core;
                self.rest(thread, RunState::Blocked, now_ns);
            }
            RunState::Held => {
                self.threads[thread.index()].core = core;
                self.hold(thread, now_ns);
            }
            RunState::Blocked | RunState::Exited | RunState::New => {}
        }
    }

    /// The live threads but those that have slept, or were held back, since the policy's last epoch and of which
    /// nothing has changed, in ascending order, if they are few among all. `told` are those whose state, counters,
    /// factors, application or plan may have changed since then, in any order.
    pub fn few_recent(&self, told: &[ThreadId]) -> Option<Vec<ThreadId>> {
        let cores = self.topology.core_count();
        // To sort a part costs as much as to look at several times as many.
        if 4 * (told.len() + self.waiting_count() + cores) > self.present_count() {
            return None;
        }
        let mut recent = self.all_queued();
        recent.extend(self.topology.cores().filter_map(|core| self.core(core).running));
        recent.extend_from_slice(told);
        recent.sort_unstable();
        recent.dedup();
        recent.retain(|&thread| self.thread(thread).state.is_live());
        Some(recent)
    }

    /// A thread that is in no queue and on no core does nothing from now on.
    pub(super) fn rest(&mut self, thread: ThreadId, state: RunState, now_ns: Ns) {
        self.leave_state(thread, now_ns);
        let entry = &mut self.threads[thread.index()];
        entry.state = state;
        entry.since_ns = now_ns;
        let core = entry.core;
        self.track(thread, core, Activity::ASLEEP, now_ns);
    }
}

/// What a running thread becomes when it stops, before it is queued or held.
fn state_after_running(state: RunState) -> RunState {
    match state {
        RunState::Blocked | RunState::Exited => state,
        _ => RunState::Ready,
    }
}

/// How a thread that was in a state comes into a queue.
fn kind_after(before: RunState) -> EnqueueKind {
    match before {
        RunState::New => EnqueueKind::Fork,
        RunState::Blocked | RunState::Held => EnqueueKind::Wake,
        RunState::Ready | RunState::Running | RunState::Exited => EnqueueKind::Requeue,
    }
}
