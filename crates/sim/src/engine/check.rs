//! Invariants of the engine. Checked after every event in debug builds, and on request.

use ampsched_model::{CoreId, Ns, ThreadId};
use ampsched_policy::{Pick, RunState};

use super::Engine;
use super::timers::NEVER;
use crate::SimError;

impl Engine<'_> {
    pub(super) fn broken(&self, what: String) -> SimError {
        SimError::Invariant { at_ns: self.events.now_ns(), what }
    }

    /// Before time goes on: everything that had to happen now has happened.
    pub(super) fn check_invariants(&self) -> Result<(), SimError> {
        self.check_places()?;
        self.check_above()?;
        self.check_contention()?;
        if let Some(fast) = &self.supervisor.fast {
            fast.check(&self.sched).map_err(|what| self.broken(what))?;
        }
        self.check_work_conservation()
    }

    /// Every runnable thread is in exactly one place: on one core, or once in one queue.
    fn check_places(&self) -> Result<(), SimError> {
        let mut placed = self.placed()?;
        placed.sort_unstable();
        let is_runnable = |thread: &ThreadId| self.sched.thread(*thread).state.is_runnable();
        let runnable: Vec<ThreadId> = self.sched.live_threads().filter(is_runnable).collect();
        if placed != runnable {
            let places = |thread: ThreadId| placed.iter().filter(|&&other| other == thread).count();
            let mut all = placed.iter().chain(&runnable).copied();
            let wrong = all.find(|&thread| places(thread) != 1 || !runnable.contains(&thread));
            let wrong = wrong.expect("lists of the same threads are equal, for both are in order");
            let (name, count) = (self.thread_name(wrong), places(wrong));
            return Err(self.broken(format!("{name} is in {count} places")));
        }
        if runnable.len() == self.threads.runnable {
            return Ok(());
        }
        let (counted, are) = (self.threads.runnable, runnable.len());
        Err(self.broken(format!("{counted} threads counted runnable, {are} are")))
    }

    /// The threads that run on a core, then those in queues.
    fn placed(&self) -> Result<Vec<ThreadId>, SimError> {
        let mut placed = Vec::new();
        for core in self.sched.topology().cores() {
            let Some(thread) = self.sched.current(core) else { continue };
            let state = self.sched.thread(thread);
            if state.state != RunState::Running || state.core != core {
                let name = self.thread_name(thread);
                return Err(self.broken(format!("{name} is not where it runs")));
            }
            placed.push(thread);
        }
        let above = self.realtime.as_deref().into_iter().flat_map(|it| it.waiting());
        for thread in self.sched.all_queued().into_iter().chain(above) {
            if self.sched.thread(thread).state != RunState::Ready {
                let name = self.thread_name(thread);
                return Err(self.broken(format!("{name} is queued but not ready")));
            }
            placed.push(thread);
        }
        Ok(placed)
    }

    /// A core that looked for work and found none really had none, by the policy's own rules; and by
    /// any standard if the policy promises work conservation.
    fn check_work_conservation(&self) -> Result<(), SimError> {
        if self.supervisor.needs.hooks.pick || !self.sched.rules().kick_idle {
            return Ok(());
        }
        for core in self.sched.topology().cores() {
            // A core with its timer set is about to look.
            if !self.sched.is_free(core) || self.events.timers.get(core) != NEVER {
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

    /// No core does something less urgent while a thread of a class above waits that may run there, or is about to.
    fn check_above(&self) -> Result<(), SimError> {
        let Some(realtime) = self.realtime.as_deref() else { return Ok(()) };
        for thread in realtime.ready() {
            let mut cores = self.sched.topology().cores();
            let core = cores.find(|&core| {
                self.sched.user_allows(thread, core)
                    && realtime.urgency(thread) < self.urgency_on(realtime, core)
            });
            if let Some(core) = core.filter(|_| realtime.aim(thread).is_none()) {
                let name = self.thread_name(thread);
                return Err(self.broken(format!("core {} is not given to {name}", core.0)));
            }
            let soon_ns = self.soon_ns();
            if let Some(core) = realtime.aim(thread) {
                if self.events.timers.get(core) > soon_ns {
                    let name = self.thread_name(thread);
                    return Err(self.broken(format!("core {} does not take {name}", core.0)));
                }
            }
        }
        Ok(())
    }

    /// By then every core is awake that has been woken up.
    fn soon_ns(&self) -> Ns {
        let machine = &self.setup.machine;
        self.events.now_ns() + machine.longest_wakeup_ns() + machine.longest_exit_ns()
    }

    fn waits_for_core(&self, core: CoreId) -> bool {
        let waiting = self.sched.all_queued();
        waiting
            .into_iter()
            .any(|thread| self.sched.allows(thread, core) && !self.is_taken_care_of(thread))
    }

    /// An idle core that may run the thread is about to look for work, or the system has the thread's core for a
    /// moment.
    fn is_taken_care_of(&self, thread: ThreadId) -> bool {
        if self.sched.is_taken(self.sched.thread(thread).core) {
            return true;
        }
        let soon_ns = self.soon_ns();
        let mut idle = self.sched.topology().cores().filter(|&core| self.sched.is_free(core));
        idle.any(|core| self.events.timers.get(core) <= soon_ns && self.sched.allows(thread, core))
    }
}
