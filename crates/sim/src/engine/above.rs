//! Cores occupied by threads of classes above the policy's: taking them, leaving them, and the books meanwhile.
//!
//! Who occupies which core is decided elsewhere (`realtime/`). The policy is not asked and hears nothing: it only finds
//! that a core runs nothing of its own and is not idle either ([`ampsched_policy::Sched::occupy`]).

use ampsched_model::{CoreId, Ns, ThreadId};
use ampsched_policy::RunState;

use super::Engine;
use super::contention::rate_on;

impl Engine<'_> {
    /// Accounts the time of a core that runs nothing of the policy's, up to now.
    #[inline(never)]
    pub(super) fn account_without(&mut self, core: CoreId) {
        let now_ns = self.events.now_ns();
        let state = &mut self.cores[core];
        let Some(thread) = self.sched.core(core).above else {
            state.account_idle(now_ns);
            return self.sched.note_taken(core, state.noise_ns);
        };
        let used = state.account_busy(&mut self.threads[thread], now_ns);
        self.sched.charge_above(core, used.elapsed_ns, used.instructions);
    }

    /// A thread of a class above takes a core on which nothing runs, until that time at most. Returns when its work
    /// begins, once switching is paid for.
    pub(super) fn occupy(&mut self, core: CoreId, thread: ThreadId, slice_end_ns: Ns) -> Ns {
        let now_ns = self.events.now_ns();
        self.account(core);
        let turn = self.sched.occupy(core, thread, now_ns);
        self.fast_occupied(core, true);
        self.record.counts.dispatches += 1;
        self.record.counts.switches += u64::from(turn.switched);
        let delay_ns = self.switch_cost_ns(core, turn.thread, turn.switched, turn.migrated_from)
            + self.cores[core].noise_until_ns.saturating_sub(now_ns);
        let entry = &mut self.threads[thread];
        entry.timeliness.gets_core(now_ns);
        let profile = entry.profile;
        let state = &mut self.cores[core];
        let rate = rate_on(&mut self.contention, &self.speeds, core, state.cluster, profile);
        state.switches += u64::from(turn.switched);
        state.begin_turn(entry, rate, delay_ns, slice_end_ns);
        self.events.timers.set(core, state.due_ns(now_ns));
        self.meter_running(core, thread, profile);
        if let Some(watch) = &mut self.record.watch {
            watch.runs(core, thread, self.sched.queue_len(core), now_ns);
        }
        // What waits here is for others now.
        if self.sched.queue_len(core) > 0 {
            self.kick_idle_cores(now_ns);
        }
        self.governors_hear(core);
        now_ns + delay_ns
    }

    /// The thread that occupies a core leaves it. It must be accounted up to now; somebody has to look for work there.
    pub(super) fn vacate(&mut self, core: CoreId, thread: ThreadId, state: RunState) {
        self.sched.vacate(core, state, self.events.now_ns());
        self.fast_occupied(core, false);
        self.close_turn(core, thread);
    }
}
