//! Invariants of the engine. Checked after every event in debug builds, and on request.

use ampsched_model::{CoreId, ThreadId};
use ampsched_policy::{Pick, RunState};

use super::Engine;
use super::timers::NEVER;
use crate::SimError;

impl Engine<'_> {
    fn broken(&self, what: String) -> SimError {
        SimError::Invariant { at_ns: self.events.now_ns(), what }
    }

    /// Before time goes on: everything that had to happen now has happened.
    pub(super) fn check_invariants(&self) -> Result<(), SimError> {
        self.check_places()?;
        self.check_work_conservation()
    }

    /// Every runnable thread is in exactly one place: on one core, or once in one queue.
    fn check_places(&self) -> Result<(), SimError> {
        let mut places = vec![0u32; self.threads.len()];
        for core in self.sched.topology().cores() {
            if let Some(thread) = self.sched.core(core).running {
                places[thread.index()] += 1;
                if self.sched.thread(thread).state != RunState::Running
                    || self.sched.thread(thread).core != core
                {
                    return Err(
                        self.broken(format!("{} is not where it runs", self.thread_name(thread)))
                    );
                }
            }
        }
        for thread in self.sched.all_queued() {
            places[thread.index()] += 1;
            if self.sched.thread(thread).state != RunState::Ready {
                return Err(
                    self.broken(format!("{} is queued but not ready", self.thread_name(thread)))
                );
            }
        }
        let mut runnable = 0;
        for (index, &count) in places.iter().enumerate() {
            let thread = ThreadId::from(index);
            let expected = u32::from(self.sched.thread(thread).state.is_runnable());
            runnable += expected as usize;
            if count != expected {
                return Err(
                    self.broken(format!("{} is in {count} places", self.thread_name(thread)))
                );
            }
        }
        if runnable == self.threads.runnable {
            return Ok(());
        }
        Err(self
            .broken(format!("{} threads counted runnable, {runnable} are", self.threads.runnable)))
    }

    /// A core that looked for work and found none really had none, by the policy's own rules; and by
    /// any standard if the policy promises work conservation.
    fn check_work_conservation(&self) -> Result<(), SimError> {
        if self.supervisor.needs.hooks.pick || !self.sched.rules().kick_idle {
            return Ok(());
        }
        for core in self.sched.topology().cores() {
            // A core with its timer set is about to look.
            if self.sched.core(core).running.is_some() || self.events.timers.get(core) != NEVER {
                continue;
            }
            if let Pick::Run(thread) | Pick::Pull(thread) =
                self.sched.pick_by_rules(core, self.events.now_ns())
            {
                if self.is_taken_care_of(thread) {
                    continue;
                }
                let name = self.thread_name(thread);
                return Err(
                    self.broken(format!("core {} idles although its rules give it {name}", core.0))
                );
            }
            if self.supervisor.needs.work_conserving && self.waits_for_core(core) {
                return Err(self.broken(format!(
                    "core {} idles while a thread waits that may run there",
                    core.0
                )));
            }
        }
        Ok(())
    }

    fn waits_for_core(&self, core: CoreId) -> bool {
        let waiting = self.sched.all_queued();
        waiting
            .into_iter()
            .any(|thread| self.sched.allows(thread, core) && !self.is_taken_care_of(thread))
    }

    /// An idle core that may run the thread is about to look for work.
    fn is_taken_care_of(&self, thread: ThreadId) -> bool {
        let soon_ns = self.events.now_ns() + self.setup.machine.costs.wakeup_latency_ns;
        let mut idle =
            self.sched.topology().cores().filter(|&core| self.sched.core(core).running.is_none());
        idle.any(|core| self.events.timers.get(core) <= soon_ns && self.sched.allows(thread, core))
    }
}
