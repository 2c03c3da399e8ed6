//! Applications begin, end and begin anew.
//!
//! The protocol of Prop-SP (Saez et al., Euro-Par 2014 workshops, section 4): all programs start together,
//! one that has ended starts again at once, so that the others keep their company, and the run stops
//! when the slowest has ended the wanted number of times.

use std::num::NonZeroU32;

use ampsched_model::{AppId, ThreadId};
use ampsched_policy::{Event, RunState};

use super::{Engine, Fallible, Happening, Work};
use crate::SimError;

/// The part of a repetition's stream of random numbers from which the next repetition draws. Objects
/// have the numbers below, threads those far above (see `create_thread`).
const NEXT_REPETITION: u64 = 1 << 32;

/// Threads that an application may have in all its repetitions: what is kept of each fills memory.
const THREAD_LIMIT: usize = 1_000_000;

impl Engine<'_> {
    /// The present repetition of an application will start at `began_ns`.
    pub(super) fn begin(&mut self, app: AppId) {
        let run = &mut self.apps[app.index()];
        let (began_ns, repetition) = (run.began_ns, run.repetition);
        run.live = run.program.initial_threads();
        let duration_ns = run.program.duration_ns;
        self.push(began_ns, Happening::AppStart(app));
        self.pending += 1;
        if let Some(duration_ns) = duration_ns {
            self.push(began_ns + duration_ns, Happening::AppStop(app, repetition));
            self.pending += 1;
        }
    }

    /// Creates the threads that an application starts with.
    pub(super) fn start_app(&mut self, app: AppId) -> Fallible {
        self.pending -= 1;
        let run = &self.apps[app.index()];
        let (program, repetition) = (run.program.clone(), run.repetition);
        for (spec, thread) in program.threads.iter().enumerate() {
            for instance in 0..thread.count {
                if thread.start_ns > 0 {
                    self.pending += 1;
                    let start = Happening::ThreadStart(app, repetition, spec as u32, instance);
                    self.push(self.now_ns + thread.start_ns, start);
                } else {
                    self.create_thread(app, spec as u32, instance, None)?;
                }
            }
        }
        Ok(())
    }

    /// An application's duration is over: all its threads end where they are.
    pub(super) fn stop_app(&mut self, app: AppId) -> Fallible {
        let threads: Vec<ThreadId> = self.threads_of(app).collect();
        for thread in threads {
            self.end_by_force(thread);
            self.tell(Event::Exited(thread))?;
        }
        self.apps[app.index()].live = 0;
        self.complete(app)
    }

    /// The live threads of an application.
    pub(super) fn threads_of(&self, app: AppId) -> impl Iterator<Item = ThreadId> + '_ {
        self.sched.live_threads().filter(move |thread| self.threads[thread.index()].app == app)
    }

    fn end_by_force(&mut self, thread: ThreadId) {
        let core = self.sched.thread(thread).core;
        match self.sched.thread(thread).state {
            RunState::Running => {
                self.account(core);
                self.take_off(core, thread, RunState::Exited);
                self.timers.set(core, self.now_ns);
                self.runnable -= 1;
            }
            RunState::Ready => {
                self.sched.dequeue(thread);
                self.sched.retire(thread, self.now_ns);
                self.runnable -= 1;
            }
            RunState::Held => {
                self.held -= 1;
                self.sched.retire(thread, self.now_ns);
            }
            RunState::Blocked => {
                self.end_io_wait(thread);
                self.sched.retire(thread, self.now_ns);
            }
            RunState::New | RunState::Exited => {}
        }
        let entry = &mut self.threads[thread.index()];
        entry.end_ns = self.now_ns;
        // What it was told to do and did not is not demanded any more.
        if entry.work == Work::Instructions {
            entry.demanded -= entry.remaining;
        }
        entry.remaining = 0;
        entry.work = Work::Steps;
    }

    /// Whether that repetition has not ended.
    pub(super) fn goes_on(&self, app: AppId, repetition: u32) -> bool {
        let run = &self.apps[app.index()];
        run.repetition == repetition && run.live > 0
    }

    /// An application has ended.
    pub(super) fn complete(&mut self, app: AppId) -> Fallible {
        let run = &mut self.apps[app.index()];
        let took_ns = self.now_ns - run.began_ns;
        run.completions_ns.push(took_ns);
        let wanted = self.options.repetitions.map_or(1, NonZeroU32::get);
        self.unfinished -= usize::from(run.completions_ns.len() == wanted as usize);
        if self.options.repetitions.is_none() {
            return Ok(());
        }
        if took_ns == 0 {
            return Err(SimError::NothingToRepeat { app: run.name.clone() }.into());
        }
        // Others may go on for ever; without this, a deadlock among a few would not be noticed.
        if let Some(stuck) = self.stuck_app() {
            return Err(self.deadlock(Some(stuck)).into());
        }
        if self.unfinished == 0 {
            return Ok(());
        }
        self.check_thread_limit(app)?;
        self.repeat(app);
        Ok(())
    }

    /// Refuses a further thread to an application that has had very many.
    pub(super) fn check_thread_limit(&self, app: AppId) -> Fallible {
        let run = &self.apps[app.index()];
        if (run.threads as usize) < THREAD_LIMIT {
            return Ok(());
        }
        Err(SimError::TooManyThreads { app: run.name.clone(), limit: THREAD_LIMIT }.into())
    }

    /// Starts an application anew: other random amounts, objects as at first.
    fn repeat(&mut self, app: AppId) {
        let run = &mut self.apps[app.index()];
        run.repetition += 1;
        run.began_ns = self.now_ns;
        run.draw = run.draw.child(NEXT_REPETITION);
        run.instances.fill(0);
        let objects = &mut self.objects[run.object_base as usize..];
        for (state, object) in objects.iter_mut().zip(&run.program.objects) {
            state.reset(&object.kind);
        }
        self.begin(app);
    }
}
