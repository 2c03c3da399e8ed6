//! The life of threads: creation, forks, joins, what they change about themselves, the end.

use ampsched_model::{App, AppId, Calibration, CodePtr, CoreSet, Op, Program, ThreadId};
use ampsched_policy::{EnqueueKind, Event};

use super::apps::Last;
use super::steps::{Next, Step};
use super::threads::{NewThread, WaitsFor};
use super::{Engine, Fallible};
use crate::{SimError, TraceThread, streams};

impl Engine<'_> {
    /// Creates a thread and makes it runnable.
    pub(super) fn create_thread(
        &mut self,
        app: AppId,
        spec: u32,
        instance: u32,
        parent: Option<ThreadId>,
    ) -> Fallible {
        let now_ns = self.events.now_ns();
        let run = self.apps.count_thread(app);
        let program = run.program.clone();
        let thread_spec = &program.threads[spec as usize];
        let single = thread_spec.count == 1 && parent.is_none();
        let name = if single {
            thread_spec.name.clone()
        } else {
            format!("{}.{instance}", thread_spec.name)
        };
        let new = NewThread {
            app,
            spec,
            repetition: run.repetition,
            entry: thread_spec.entry,
            profile: run.profile_base + first_profile(&program, thread_spec.entry),
            draw: streams::of_thread(&run.draw, spec, instance),
            parent,
            name,
            nice: thread_spec.nice,
        };
        let app_name = run.name.clone();
        let affinity = match &thread_spec.affinity {
            Some(set) => Some(self.existing_cores(&format!("{app_name}/{}", new.name), set)?),
            None => None,
        };
        let thread = self.sched.add(app, 1024, affinity.as_ref());
        if let Some(watch) = &mut self.record.watch {
            watch.trace.thread(TraceThread {
                id: thread,
                app: app.index(),
                app_name: &app_name,
                name: &new.name,
                ids: None,
            });
        }
        self.threads.add(new, now_ns);
        let attrs = self.stated_attrs(app, &thread_spec.attrs);
        self.set_attrs(thread, attrs);
        self.weigh(thread);
        self.fast_added(thread);
        self.supervisor.add_thread(app, now_ns);
        self.meter_thread();
        self.refresh_factor(thread);
        if attrs.class.is_above() {
            self.enter_above(thread, attrs.class)?;
        } else {
            self.threads[thread].is_known = true;
            self.tell(Event::Added(thread))?;
        }
        self.make_runnable(thread, EnqueueKind::Fork, parent)
    }

    /// A thread creates another one.
    pub(super) fn fork(&mut self, parent: ThreadId, spec: u32) -> Fallible<Step> {
        let entry = &mut self.threads[parent];
        entry.next_step();
        let app = entry.app;
        let instance = self.apps.fork(app, spec)?;
        entry.children += u32::from(!self.apps.is_daemon(app, spec));
        self.create_thread(app, spec, instance, Some(parent))?;
        Ok(Step::Go)
    }

    /// A thread waits for those that it has created, daemon threads aside.
    pub(super) fn join(&mut self, thread: ThreadId) -> Step {
        let entry = &mut self.threads[thread];
        entry.next_step();
        if entry.children == 0 { Step::Go } else { self.block(thread, WaitsFor::Children) }
    }

    /// A thread wakes the suspended ones of a specification.
    pub(super) fn resume(&mut self, waker: ThreadId, spec: u32) -> Fallible<Step> {
        let entry = &mut self.threads[waker];
        entry.next_step();
        let app = entry.app;
        let waits = |other: &ThreadId| {
            let other = &self.threads[*other];
            other.app == app && other.spec == spec && other.waits_for == WaitsFor::Resume
        };
        let resumed: Vec<ThreadId> = self.sched.live_threads().filter(waits).collect();
        self.wake_all(resumed, waker)?;
        Ok(Step::Go)
    }

    /// A thread restricts itself to some cores.
    pub(super) fn set_affinity(&mut self, thread: ThreadId, set: &CoreSet) -> Fallible<Step> {
        self.threads[thread].next_step();
        let set = self.existing_cores(&self.thread_name(thread), set)?;
        let effect = self.sched.restrict_user(thread, &set);
        self.fast_changed(thread);
        if effect.opens {
            self.offer_to_idle_cores();
        }
        let moves = effect.moves || self.leaves_above(thread)?;
        Ok(if moves { Step::Stop(Next::Moves) } else { Step::Go })
    }

    /// A thread changes its nice value, to which its application's is added.
    pub(super) fn set_nice(&mut self, thread: ThreadId, nice: i8) -> Step {
        let entry = &mut self.threads[thread];
        entry.next_step();
        entry.nice = nice;
        self.weigh(thread);
        self.fast_changed(thread);
        Step::Go
    }

    /// The cores of a set that the machine has; an error if there is none.
    fn existing_cores(&self, name: &str, set: &CoreSet) -> Fallible<CoreSet> {
        let cores: CoreSet = set.iter().filter(|core| core.index() < self.cores.len()).collect();
        if cores.is_empty() {
            let last = self.cores.len() - 1;
            return Err(SimError::NoSuchCore { thread: name.to_owned(), last }.into());
        }
        Ok(cores)
    }

    /// Refuses work that is calibrated with a core that the machine does not have.
    pub(super) fn check_calibration(&self, app: &App) -> Result<(), SimError> {
        let last = self.cores.len() - 1;
        match app.program.calibration {
            Calibration::Core(core) if core.index() > last => {
                Err(SimError::NoCalibration { app: app.name.clone(), core: core.index(), last })
            }
            _ => Ok(()),
        }
    }

    /// A thread has ended: its application and its parent may go on.
    pub(super) fn finish_thread(&mut self, thread: ThreadId) -> Fallible {
        let entry = &mut self.threads[thread];
        entry.end_ns = self.events.now_ns();
        if let Some(&mutex) = entry.held.first() {
            let object = self.objects.name(mutex).to_owned();
            return Err(SimError::ExitHolding { thread: self.thread_name(thread), object }.into());
        }
        let (app, spec, parent) = (entry.app, entry.spec, entry.parent);
        let last = self.apps.end_thread(app, spec);
        if self.threads[thread].is_known {
            self.tell(Event::Exited(thread))?;
        }
        if let Some(parent) = parent.filter(|_| !self.apps.is_daemon(app, spec)) {
            self.child_ended(parent, thread)?;
        }
        match last {
            Last::Nothing => Ok(()),
            Last::Process(process) => self.end_daemons(app, Some(process)),
            Last::App => {
                self.end_daemons(app, None)?;
                self.complete(app)
            }
        }
    }

    fn child_ended(&mut self, parent: ThreadId, child: ThreadId) -> Fallible {
        let above = &mut self.threads[parent];
        above.children -= 1;
        if above.children == 0 && above.waits_for == WaitsFor::Children {
            self.wake(parent, Some(child))?;
        }
        Ok(())
    }
}

/// The profile of the first work behind an entry, for what is known of a thread before it runs.
fn first_profile(program: &Program, entry: CodePtr) -> u32 {
    let profile = program.code[entry.index()..].iter().find_map(|op| match op {
        Op::Compute { profile, .. }
        | Op::Run { profile, .. }
        | Op::Occupy { profile, .. }
        | Op::Tasks { profile, .. }
        | Op::Create { profile, .. } => Some(profile.0),
        _ => None,
    });
    profile.map_or(0, u32::from)
}
