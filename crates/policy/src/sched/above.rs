//! Threads of classes above the policy's: real-time and deadline threads, and whatever else takes cores without asking.
//!
//! In Linux such classes stand above the fair class and above `sched_ext` (kernel/sched/core.c, `__pick_next_task`,
//! 6.12): whatever policy is loaded, it is not asked about their threads and does not see them. Who of them runs where
//! is the host's affair. The interpreter only keeps the books: which cores they *occupy* and since when. An occupied
//! core runs nothing for the policy and is not idle; what waits in its queue may be taken by others.

use ampsched_model::{CoreId, Ns, ThreadId};

use super::{RunState, Sched, Turn};
use crate::Activity;

impl Sched {
    /// The thread that a core executes, of the policy's or of a class above it.
    #[inline]
    pub fn current(&self, core: CoreId) -> Option<ThreadId> {
        let cpu = self.core(core);
        cpu.running.or(cpu.above)
    }

    /// Whether a core executes nothing, neither for the policy nor for a class above it, and is not the system's.
    #[inline]
    pub fn is_free(&self, core: CoreId) -> bool {
        self.current(core).is_none() && !self.is_taken(core)
    }

    /// Whether the other thread of its physical core is busy, or about to be: both are slower then (SMT).
    #[inline]
    pub fn shares_core(&self, core: CoreId) -> bool {
        self.topology.sibling(core).is_some_and(|other| {
            // What waits in a queue that serves both says nothing of the other one.
            let waits = !self.share_queue(core, other) && !self.queue(other).is_empty();
            waits || !self.is_free(other)
        })
    }

    /// Whether a thread is of a class above the policy's now.
    #[inline]
    pub fn is_above(&self, thread: ThreadId) -> bool {
        self.thread(thread).is_above
    }

    /// Time that a core has spent with the policy's threads, switching included.
    pub fn fair_ns(&self, core: CoreId) -> Ns {
        let cpu = self.core(core);
        cpu.busy_ns - cpu.above_ns
    }

    /// A thread that is in no queue and on no core belongs to a class above the policy's from now on, which does not
    /// see it any more.
    pub fn raise(&mut self, thread: ThreadId) {
        let state = &mut self.threads[thread.index()];
        if !std::mem::replace(&mut state.is_above, true) && state.state.is_live() {
            self.live[state.app.index()] -= 1;
        }
        // So nobody looks for it in a queue.
        state.is_aside = true;
    }

    /// A thread that [`Sched::raise`] has taken away, and that is on no core, belongs to the policy again; the host
    /// enqueues it next if it is to run.
    pub fn lower(&mut self, thread: ThreadId) {
        let state = &mut self.threads[thread.index()];
        if std::mem::replace(&mut state.is_above, false) && state.state.is_live() {
            let app = state.app;
            self.count_live(app);
        }
    }

    /// A thread of a class above is ready and waits for a core; `core` is where it is looked for meanwhile.
    pub fn wait_above(&mut self, thread: ThreadId, core: CoreId, now_ns: Ns) {
        self.leave_state_above(thread, now_ns);
        let state = &mut self.threads[thread.index()];
        debug_assert!(state.is_above, "only a thread of a class above waits there");
        state.state = RunState::Ready;
        state.since_ns = now_ns;
        state.core = core;
        self.track(thread, core, Activity::WAITING, now_ns);
    }

    /// A thread of a class above that waits is looked for at another core from now on.
    pub fn look_above(&mut self, thread: ThreadId, core: CoreId) {
        let state = &mut self.threads[thread.index()];
        debug_assert!(
            state.is_above && state.state == RunState::Ready,
            "a thread that waits above"
        );
        state.core = core;
    }

    /// A thread of a class above takes a core on which nothing runs: the host has taken the policy's thread off.
    pub fn occupy(&mut self, core: CoreId, thread: ThreadId, now_ns: Ns) -> Turn {
        self.leave_state_above(thread, now_ns);
        let cpu = &mut self.cores[core.index()];
        debug_assert!(cpu.running.is_none() && cpu.above.is_none(), "a core runs one thread");
        cpu.above = Some(thread);
        cpu.since_ns = now_ns;
        let switched = cpu.last.replace(thread) != Some(thread);
        self.idle_cores -= 1;
        self.serial += 1;
        self.queues[usize::from(cpu.queue)].occupied += 1;
        let state = &mut self.threads[thread.index()];
        (state.core, state.state, state.since_ns) = (core, RunState::Running, now_ns);
        let migrated_from = state.ran_on.replace(core).filter(|&from| from != core);
        let stats = &mut self.stats[thread.index()];
        stats.switches += u64::from(switched);
        if migrated_from.is_some() {
            stats.migrations += 1;
            stats.migrated_at_ns = now_ns;
        }
        self.track(thread, core, Activity::RUNNING, now_ns);
        Turn { thread, switched, migrated_from }
    }

    /// Charges the thread that occupies a core for time and instructions.
    pub fn charge_above(&mut self, core: CoreId, ran_ns: Ns, instructions: u64) {
        let cpu = &mut self.cores[core.index()];
        let thread = cpu.above.expect("a thread of a class above runs on the core");
        cpu.busy_ns += ran_ns;
        cpu.above_ns += ran_ns;
        let class = cpu.class.index();
        let stats = &mut self.stats[thread.index()];
        stats.run_ns[class] += ran_ns;
        stats.instructions[class] += instructions;
    }

    /// The thread that occupies a core leaves it; `state` is what becomes of it: ready (the host has it wait next),
    /// blocked or exited. The core is idle then, and the host lets the policy look.
    pub fn vacate(&mut self, core: CoreId, state: RunState, now_ns: Ns) {
        let cpu = &mut self.cores[core.index()];
        let thread = cpu.above.take().expect("a thread of a class above runs on the core");
        cpu.since_ns = now_ns;
        self.idle_cores += 1;
        self.serial += 1;
        self.queues[usize::from(cpu.queue)].occupied -= 1;
        let entry = &mut self.threads[thread.index()];
        (entry.state, entry.since_ns) = (state, now_ns);
        match state {
            RunState::Exited => self.exit_above(thread, now_ns),
            RunState::Ready => {}
            _ => self.track(thread, core, Activity::ASLEEP, now_ns),
        }
    }

    /// Ends a thread of a class above that is on no core.
    pub fn retire_above(&mut self, thread: ThreadId, now_ns: Ns) {
        self.leave_state_above(thread, now_ns);
        let state = &mut self.threads[thread.index()];
        (state.state, state.since_ns) = (RunState::Exited, now_ns);
        self.exit_above(thread, now_ns);
    }

    fn exit_above(&mut self, thread: ThreadId, now_ns: Ns) {
        self.track_exit(thread, now_ns);
        self.leave_present(thread);
    }

    fn leave_state_above(&mut self, thread: ThreadId, now_ns: Ns) {
        let state = &self.threads[thread.index()];
        self.stats[thread.index()].count_stay(state.state, now_ns.saturating_sub(state.since_ns));
    }
}
