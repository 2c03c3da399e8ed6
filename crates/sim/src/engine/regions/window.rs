//! Windows of created tasks: what exceeds a region's window its creator executes itself.
//!
//! As libgomp does (`GOMP_task` in `libgomp/task.c`: with more than 64 tasks per thread a new one is not deferred): the
//! creator executes the very task that it has created, at once. If that waits for others, the creator meanwhile
//! executes what is ready, if it is one of the region's workers, else it blocks. The policy never gets such a task.

use ampsched_model::{ObjectId, Op, ThreadId};
use ampsched_task::TaskId;

use super::run::Run;
use super::{Engine, Fallible, Loaded, Step};

/// A task that its creator executes itself.
pub(super) struct Own {
    pub task: TaskId,
    pub thread: ThreadId,
    /// What it waits for has ended.
    pub is_ready: bool,
    /// Its creator is blocked until then.
    pub waits: bool,
    is_running: bool,
    /// Profile of the region's tasks, if a thread works on it.
    profile: Option<u32>,
    /// Whether the creator is one of the region's workers, and its seat while it helps.
    is_worker: bool,
    place: Option<usize>,
}

impl Run {
    /// Whether one more task would exceed the window.
    pub fn is_full(&self, loaded: &Loaded) -> bool {
        let Some(window) = loaded.region.window else { return false };
        let ended = loaded.graph.len() - self.left;
        self.created - ended >= window as usize
    }
}

impl Engine<'_> {
    /// The task that has just been created stays with its creator.
    pub(super) fn create_own(&mut self, thread: ThreadId, region: ObjectId, run: &mut Run) {
        let loaded = self.objects.region(region).loaded.clone();
        let task = TaskId::from(run.created);
        run.is_creating = false;
        run.own = Some(Own {
            task,
            thread,
            is_ready: run.waiting.is_ready(task),
            waits: false,
            is_running: false,
            profile: self.profile_of_tasks(thread, region),
            is_worker: self.is_worker(thread, region),
            place: None,
        });
        run.create(&loaded, 1);
    }

    /// The profile of the first step of the program that works on a region.
    fn profile_of_tasks(&self, thread: ThreadId, region: ObjectId) -> Option<u32> {
        let app = &self.apps[self.threads[thread].app];
        app.program.code.iter().find_map(|op| match op {
            Op::Tasks { region: local, profile } if app.object_base + local.0 == region.0 => {
                Some(app.profile_base + u32::from(profile.0))
            }
            _ => None,
        })
    }

    /// Whether the code of a thread works on a region, too.
    fn is_worker(&self, thread: ThreadId, region: ObjectId) -> bool {
        let entry = &self.threads[thread];
        let app = &self.apps[entry.app];
        let first = app.program.threads[entry.spec as usize].entry;
        app.program.code[first.index()..].iter().take_while(|op| **op != Op::Exit).any(
            |op| matches!(op, Op::Tasks { region: local, .. } if app.object_base + local.0 == region.0),
        )
    }

    /// The creator goes on with a task of its own: waits for it to be ready, executes it, ends it.
    pub(super) fn own_step(
        &mut self,
        thread: ThreadId,
        region: ObjectId,
        mut run: Box<Run>,
        profile: u32,
    ) -> Fallible<Step> {
        let loaded = self.objects.region(region).loaded.clone();
        let Some(own) = &mut run.own else { unreachable!("the creator has a task") };
        own.waits = false;
        let of_tasks = own.profile.unwrap_or(profile);
        if own.is_running {
            let task = own.task;
            run.own = None;
            run.end(&loaded, None, task);
            if run.left == 0 {
                self.close_region(region, *run, thread)?;
                self.threads[thread].next_step();
                return Ok(Step::Go);
            }
            let fed = run.feed(&loaded, self.events.now_ns());
            return self.create_next(thread, region, run, fed, profile);
        }
        if let Some((place, task)) =
            own.place.and_then(|place| Some((place, run.seats[place].task.take()?)))
        {
            run.end(&loaded, Some(place), task);
        }
        self.wait_or_begin(thread, region, run, of_tasks)
    }

    /// Begins the creator's own task if it is ready, else something else that is.
    fn wait_or_begin(
        &mut self,
        thread: ThreadId,
        region: ObjectId,
        mut run: Box<Run>,
        profile: u32,
    ) -> Fallible<Step> {
        let loaded = self.objects.region(region).loaded.clone();
        let cluster = self.cluster_of_thread(thread);
        let now_ns = self.events.now_ns();
        let Some(own) = &mut run.own else { unreachable!("the creator has a task") };
        let (task, is_ready, is_worker, seat) = (own.task, own.is_ready, own.is_worker, own.place);
        let is_given = seat.is_some_and(|place| run.seats[place].next.is_some());
        if is_ready && !is_given {
            if let Some(place) = seat {
                run.seats[place].thread = None;
            }
            let own = run.own.as_mut().expect("it has a task");
            (own.is_running, own.place) = (true, None);
            let fed = run.feed(&loaded, now_ns);
            self.objects.region(region).run = Some(run);
            self.wake_fed(&loaded, fed, thread)?;
            let work_ns = loaded.graph.work(task) * loaded.region.work_ns;
            return Ok(self.work_here(thread, work_ns, profile));
        }
        let place = seat.or_else(|| if is_worker { run.sit(thread, cluster) } else { None });
        if let Some(place) = place {
            run.note_core(place, cluster);
        }
        let fed = run.feed(&loaded, now_ns);
        let pick = place.and_then(|place| run.take(place, now_ns));
        let own = run.own.as_mut().expect("it has a task");
        (own.place, own.waits) = (place, pick.is_none());
        self.objects.region(region).run = Some(run);
        self.wake_fed(&loaded, fed, thread)?;
        Ok(self.execute(thread, region, &loaded, pick, profile))
    }
}
