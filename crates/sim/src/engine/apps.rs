//! Applications begin, end and begin anew.
//!
//! The protocol of Prop-SP (Saez et al., Euro-Par 2014 workshops, section 4): all programs start together,
//! one that has ended starts again at once, so that the others keep their company, and the run stops
//! when the slowest has ended the wanted number of times.

use std::num::NonZeroU32;
use std::ops::Index;
use std::slice;
use std::sync::Arc;

use ampsched_model::{App, AppId, Draw, Ns, Program, ThreadId};
use ampsched_policy::{DecidedBy, Event, GroupId, Reason, RunState};

use super::events::SimEvent;
use super::{Engine, Fallible};
use crate::{Decision, SimError, streams};

/// The part of a repetition's stream of random numbers from which the next repetition draws. Objects
/// have the numbers below, threads those far above (see `create_thread`).
const NEXT_REPETITION: u64 = 1 << 32;

/// Threads that an application may have in all its repetitions: what is kept of each fills memory.
const THREAD_LIMIT: usize = 1_000_000;

/// Ends of an application within the limit of time by which others that are not done are said to be kept from it.
pub(super) const VERY_OFTEN: usize = 1000;

/// Execution state of an application.
#[derive(Debug)]
pub(super) struct AppRun {
    pub name: String,
    pub program: Arc<Program>,
    pub nice: i8,
    /// The groups of its program.
    pub groups: Vec<GroupId>,
    /// When it starts for the first time.
    pub start_ns: Ns,
    /// Number of the present or last repetition.
    pub repetition: u32,
    /// When that began.
    pub began_ns: Ns,
    /// Completion times of the repetitions that have ended.
    pub completions_ns: Vec<Ns>,
    /// Threads that exist or are still to start, daemon threads aside; 0 when the repetition has ended.
    pub live: u32,
    /// The same of each of its processes.
    live_of: Vec<u32>,
    /// Threads that it has had in all repetitions.
    pub threads: u32,
    /// Numbers of its first object and its first profile.
    pub object_base: u32,
    pub profile_base: u32,
    /// Stream of random numbers of the present repetition.
    pub draw: Draw,
    /// Instances of each thread specification that the present repetition has forked.
    instances: Vec<u32>,
}

impl AppRun {
    /// Whether it may have a further thread.
    fn may_grow(&self) -> bool {
        (self.threads as usize) < THREAD_LIMIT
    }

    /// How a thread specification says that its threads end: whether they are daemon threads, and of which process.
    fn ending(&self, spec: u32) -> (bool, usize) {
        let thread = &self.program.threads[spec as usize];
        (thread.is_daemon, thread.process as usize)
    }

    /// Whether threads of a specification concern no others.
    pub fn is_solitary(&self, spec: u32) -> bool {
        self.program.is_solitary(&self.program.threads[spec as usize])
    }

    /// Whether it has daemon threads.
    pub fn has_daemons(&self) -> bool {
        self.program.threads.iter().any(|thread| thread.is_daemon)
    }

    /// So many more threads of a specification are to be waited for.
    fn expect(&mut self, spec: u32, count: u32) {
        let (is_daemon, process) = self.ending(spec);
        if !is_daemon {
            self.live += count;
            self.live_of[process] += count;
        }
    }

    fn too_many_threads(&self) -> SimError {
        SimError::TooManyThreads { app: self.name.clone(), limit: THREAD_LIMIT }
    }

    /// The number of the next thread that is forked by a specification.
    fn next_instance(&mut self, spec: u32) -> u32 {
        let (count, forked) =
            (self.program.threads[spec as usize].count, &mut self.instances[spec as usize]);
        *forked += 1;
        count + *forked - 1
    }

    /// Begins the next repetition: other random amounts.
    fn next_repetition(&mut self, now_ns: Ns) {
        self.repetition += 1;
        self.began_ns = now_ns;
        self.draw = self.draw.child(NEXT_REPETITION);
        self.instances.fill(0);
    }
}

/// What else has ended with a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Last {
    /// Others are to be waited for.
    Nothing,
    /// Its process, which was not the last one.
    Process(u32),
    /// Its application's repetition.
    App,
}

/// Processes that a program has.
fn processes(program: &Program) -> usize {
    let last = program.threads.iter().map(|thread| thread.process).max();
    last.map_or(0, |last| last as usize + 1)
}

/// All applications, by number.
pub(super) struct Apps {
    all: Vec<AppRun>,
    /// Times that each is to end; once, and then no more, if absent.
    repetitions: Option<NonZeroU32>,
    /// Those that have not yet ended as often as they are to.
    unfinished: usize,
}

impl Apps {
    /// None yet.
    pub fn new(repetitions: Option<NonZeroU32>) -> Self {
        Self { all: Vec::new(), repetitions, unfinished: 0 }
    }

    /// Adds an application with the numbers of its first object and profile.
    pub fn add(&mut self, app: &App, seed: u64, object_base: u32, profile_base: u32) -> AppId {
        let draw = streams::of_app(seed, &app.name);
        self.unfinished += 1;
        self.all.push(AppRun {
            name: app.name.clone(),
            nice: app.nice,
            start_ns: app.start_ns,
            repetition: 0,
            began_ns: app.start_ns,
            completions_ns: Vec::new(),
            live: 0,
            live_of: vec![0; processes(&app.program)],
            threads: 0,
            object_base,
            profile_base,
            draw,
            instances: vec![0; app.program.threads.len()],
            groups: Vec::new(),
            program: app.program.clone(),
        });
        AppId::from(self.all.len() - 1)
    }

    /// The groups of an application's program are these.
    pub fn set_groups(&mut self, app: AppId, groups: Vec<GroupId>) {
        self.all[app.index()].groups = groups;
    }

    /// All, by number.
    pub fn iter(&self) -> slice::Iter<'_, AppRun> {
        self.all.iter()
    }

    /// Whether all have ended as often as they are to.
    #[inline]
    pub fn are_done(&self) -> bool {
        self.unfinished == 0
    }

    /// Whether that repetition has not ended.
    pub fn goes_on(&self, app: AppId, repetition: u32) -> bool {
        let run = &self[app];
        run.repetition == repetition && run.live > 0
    }

    /// Whether a thread is to start that was to start later: a daemon thread does not if its process has ended.
    pub fn starts(&self, app: AppId, repetition: u32, spec: u32) -> bool {
        let (is_daemon, process) = self[app].ending(spec);
        self.goes_on(app, repetition) && (!is_daemon || self[app].live_of[process] > 0)
    }

    /// Whether a thread specification is one of daemon threads.
    pub fn is_daemon(&self, app: AppId, spec: u32) -> bool {
        self[app].ending(spec).0
    }

    /// A thread of an application is created. Returns the application.
    pub fn count_thread(&mut self, app: AppId) -> &AppRun {
        let run = &mut self.all[app.index()];
        run.threads += 1;
        run
    }

    /// A thread forks another one by a specification: its instance number.
    ///
    /// Errors: the application has had very many.
    pub fn fork(&mut self, app: AppId, spec: u32) -> Fallible<u32> {
        let run = &mut self.all[app.index()];
        if !run.may_grow() {
            return Err(run.too_many_threads().into());
        }
        run.expect(spec, 1);
        Ok(run.next_instance(spec))
    }

    /// A thread of an application has ended. Returns what it was the last one of, daemon threads aside.
    pub fn end_thread(&mut self, app: AppId, spec: u32) -> Last {
        let run = &mut self.all[app.index()];
        let (is_daemon, process) = run.ending(spec);
        if is_daemon {
            return Last::Nothing;
        }
        run.live -= 1;
        run.live_of[process] -= 1;
        match (run.live, run.live_of[process]) {
            (0, _) => Last::App,
            (_, 0) => Last::Process(process as u32),
            _ => Last::Nothing,
        }
    }

    /// An application's repetition has ended; returns how long it took.
    fn complete(&mut self, app: AppId, now_ns: Ns) -> Ns {
        let wanted = self.repetitions.map_or(1, NonZeroU32::get);
        let run = &mut self.all[app.index()];
        run.live = 0;
        let took_ns = now_ns - run.began_ns;
        run.completions_ns.push(took_ns);
        self.unfinished -= usize::from(run.completions_ns.len() == wanted as usize);
        took_ns
    }

    /// Whether an application has ended as often as it is to.
    fn is_done(&self, run: &AppRun) -> bool {
        run.completions_ns.len() >= self.repetitions.map_or(1, NonZeroU32::get) as usize
    }
}

impl Index<AppId> for Apps {
    type Output = AppRun;

    #[inline]
    fn index(&self, app: AppId) -> &AppRun {
        &self.all[app.index()]
    }
}

impl Engine<'_> {
    /// The present repetition of an application will start when it is to.
    pub(super) fn begin(&mut self, app: AppId) {
        let run = &mut self.apps.all[app.index()];
        (run.live, run.live_of) = (0, vec![0; run.live_of.len()]);
        for spec in 0..run.program.threads.len() {
            run.expect(spec as u32, run.program.threads[spec].count);
        }
        self.events.schedule(run.began_ns, SimEvent::AppStart(app));
        if let Some(duration_ns) = run.program.duration_ns {
            let stop = SimEvent::AppStop(app, run.repetition);
            self.events.schedule(run.began_ns + duration_ns, stop);
        }
    }

    /// Creates the threads that an application starts with.
    pub(super) fn start_app(&mut self, app: AppId) -> Fallible {
        let run = &self.apps[app];
        let (program, repetition) = (run.program.clone(), run.repetition);
        for (spec, thread) in program.threads.iter().enumerate() {
            for instance in 0..thread.count {
                if thread.start_ns > 0 {
                    let start = SimEvent::ThreadStart(app, repetition, spec as u32, instance);
                    self.events.schedule(self.events.now_ns() + thread.start_ns, start);
                } else {
                    self.create_thread(app, spec as u32, instance, None)?;
                }
            }
        }
        Ok(())
    }

    /// An application's duration is over: all its threads end where they are.
    pub(super) fn stop_app(&mut self, app: AppId) -> Fallible {
        self.end_all_by_force(app, |_| true, "its application's time is over")?;
        self.complete(app)
    }

    /// All threads of an application's process, or of all its processes, have ended but daemon threads: these end where
    /// they are.
    pub(super) fn end_daemons(&mut self, app: AppId, process: Option<u32>) -> Fallible {
        let program = self.apps[app].program.clone();
        let is_meant = |spec: u32| {
            let thread = &program.threads[spec as usize];
            thread.is_daemon && process.is_none_or(|process| process == thread.process)
        };
        self.end_all_by_force(app, is_meant, "all threads that are no daemon threads have ended")
    }

    fn end_all_by_force(
        &mut self,
        app: AppId,
        is_meant: impl Fn(u32) -> bool,
        because: &'static str,
    ) -> Fallible {
        let meant = |thread: &ThreadId| {
            let thread = &self.threads[*thread];
            thread.app == app && is_meant(thread.spec)
        };
        let threads: Vec<ThreadId> = self.sched.live_threads().filter(meant).collect();
        for thread in threads {
            self.end_by_force(thread, because);
            if self.threads[thread].is_known {
                self.tell(Event::Exited(thread))?;
            }
        }
        Ok(())
    }

    fn end_by_force(&mut self, thread: ThreadId, because: &'static str) {
        let now_ns = self.events.now_ns();
        let core = self.sched.thread(thread).core;
        let why = || Reason::new(DecidedBy::Program, because);
        match self.sched.thread(thread).state {
            _ if self.sched.is_above(thread) => self.end_above(thread),
            RunState::Running => {
                self.record.because(why);
                self.account(core);
                self.take_off(core, thread, RunState::Exited);
                self.events.timers.set(core, now_ns);
                self.threads.runnable -= 1;
            }
            RunState::Ready => {
                self.sched.dequeue(thread);
                self.fast_dequeued(thread);
                self.sched.retire(thread, now_ns);
                self.threads.runnable -= 1;
            }
            RunState::Held => {
                self.threads.held -= 1;
                self.sched.retire(thread, now_ns);
            }
            RunState::Blocked => {
                self.end_io_wait(thread);
                self.sched.retire(thread, now_ns);
            }
            RunState::New | RunState::Exited => {}
        }
        if let Some(watch) = &mut self.record.watch {
            watch.trace.decided(thread, Decision::Ended, Some(&why()), now_ns);
        }
        self.threads[thread].end_by_force(now_ns);
    }

    /// An application has ended.
    pub(super) fn complete(&mut self, app: AppId) -> Fallible {
        let took_ns = self.apps.complete(app, self.events.now_ns());
        if self.apps.repetitions.is_none() {
            return Ok(());
        }
        if took_ns == 0 {
            return Err(SimError::NothingToRepeat { app: self.apps[app].name.clone() }.into());
        }
        // Others may go on for ever; without this, a deadlock among a few would not be noticed.
        if let Some(stuck) = self.stuck_app(|_| true) {
            return Err(self.deadlock(Some(stuck)).into());
        }
        if self.apps.are_done() {
            return Ok(());
        }
        if !self.apps[app].may_grow() {
            let outlasted = self.outlasted(|run| !run.may_grow());
            return Err(outlasted.unwrap_or_else(|| self.apps[app].too_many_threads()).into());
        }
        self.repeat(app);
        Ok(())
    }

    /// The error for an application that has been repeated, by those that may be it, while another one is not done.
    pub(super) fn outlasted(&self, may_be: impl Fn(&AppRun) -> bool) -> Option<SimError> {
        let apps = &self.apps;
        let waiting = apps.iter().find(|run| !apps.is_done(run))?;
        let repeated = apps.iter().find(|run| apps.is_done(run) && may_be(run))?;
        Some(SimError::Outlasted {
            policy: self.setup.policy_name.clone(),
            app: repeated.name.clone(),
            ends: repeated.completions_ns.len(),
            at_ns: self.events.now_ns(),
            waiting: waiting.name.clone(),
        })
    }

    /// Starts an application anew, its objects as at first.
    fn repeat(&mut self, app: AppId) {
        let run = &mut self.apps.all[app.index()];
        run.next_repetition(self.events.now_ns());
        self.objects.reset(run.object_base, &run.program.objects);
        self.begin(app);
    }
}
