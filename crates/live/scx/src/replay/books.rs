//! The books in the end: threads, cores and queues.

use ampsched_model::{CoreId, ThreadId};
use ampsched_policy::{Choice, CoreLoad, RunState};

use super::{Checked, Replay, same};
use crate::layout::{NONE, Sched, Thread};
use crate::loads;

fn number(core: Option<CoreId>) -> u32 {
    core.map_or(NONE, |core| core.0.into())
}

impl Replay {
    /// Compares all that both interpreters know of threads, cores and queues.
    ///
    /// # Errors
    ///
    /// Something differs.
    pub fn compare(&self, state: &Sched, threads: &[Thread]) -> Checked {
        for (&slot, own) in &self.slots {
            let found = threads.get(slot as usize).ok_or(format!("there is no slot {slot}"))?;
            self.compare_thread(own.thread, found).map_err(|why| format!("slot {slot}: {why}"))?;
        }
        for core in self.rust.topology().cores() {
            self.compare_core(core, state).map_err(|why| format!("core {}: {why}", core.0))?;
        }
        self.compare_loads(state, threads)
    }

    fn compare_core(&self, core: CoreId, state: &Sched) -> Checked {
        let (ours, theirs) = (self.rust.core(core), &state.cores[core.index()]);
        let running = ours.running.map_or(NONE, |thread| thread.0);
        same("who runs", theirs.running, running)?;
        same("since when", theirs.since_ns, ours.since_ns)?;
        same("time with threads", theirs.busy_ns, ours.busy_ns)?;
        let queue = &state.queues[theirs.queue as usize];
        same("waiting threads", queue.len as usize, self.rust.queue_len(core))
    }

    fn compare_thread(&self, thread: ThreadId, theirs: &Thread) -> Checked {
        let (state, stats, plan) =
            (self.rust.thread(thread), self.rust.stats(thread), self.rust.plan(thread));
        same("state", theirs.state, state.state.number())?;
        same("core", theirs.core, state.core.0.into())?;
        same("last core", theirs.ran_on, number(state.ran_on))?;
        if state.state != RunState::New {
            same("since when", theirs.since_ns, state.since_ns)?;
        }
        same("virtual run time", theirs.vruntime, state.vruntime)?;
        same("deadline", theirs.deadline, state.deadline)?;
        same("weight", theirs.weight, plan.weight)?;
        same("rank", theirs.rank, plan.rank)?;
        same("preference", theirs.prefer, plan.prefer.number())?;
        same("run time", theirs.run_ns, stats.run_ns)?;
        same("waits", theirs.ready_ns, stats.ready_ns)?;
        same("longest wait", theirs.ready_ns_max, stats.ready_ns_max)?;
        same("time asleep", theirs.blocked_ns, stats.blocked_ns)?;
        same("switches", theirs.switches, stats.switches)?;
        same("migrations", theirs.migrations, stats.migrations)?;
        for core in self.rust.topology().cores() {
            let allows = theirs.affinity.contains(core.index());
            same("whether it may use a core", allows, self.rust.allows(thread, core))?;
        }
        Ok(())
    }

    /// What load tracking says of threads and cores.
    fn compare_loads(&self, state: &Sched, threads: &[Thread]) -> Checked {
        if self.rust.load_tracking().is_none() {
            return Ok(());
        }
        let now_ns = self.now_ns;
        for core in self.rust.topology().cores() {
            let found = loads::of_core(&state.cores[core.index()].tracked, state.unit_ns, now_ns);
            let (util, boosted) =
                (self.rust.core_util(core, now_ns), self.rust.core_util_boosted(core, now_ns));
            same("tracked load of a core", found, CoreLoad { util, boosted })?;
        }
        for (&slot, own) in &self.slots {
            let theirs = &threads[slot as usize].tracked;
            let core = &state.cores[theirs.core as usize].tracked;
            let found = loads::of_thread(core, theirs, state.unit_ns, now_ns);
            same(
                "tracked load of a thread",
                Some(found),
                self.rust.thread_load(own.thread, now_ns),
            )?;
        }
        Ok(())
    }
}
