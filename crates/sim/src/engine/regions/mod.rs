//! Parallel regions: threads of a program execute the tasks of a graph, fed by a task policy.
//!
//! Both levels of scheduling at once: the task policy decides which worker executes which task, the policy of the
//! operating system on which core and when that worker runs. A worker asks when it has nothing to do, blocks when it
//! gets nothing, and is woken with its next task. Of several idle workers the one with the smallest number asks first,
//! as in [`crate::run_tasks`]; so with a core for every worker both give the same schedule. Only if tasks end at the
//! very same moment may they differ: there workers ask when all of these tasks have ended, here each when its own has.

mod loaded;
mod run;
mod window;

use std::sync::Arc;

use ampsched_model::{CoreId, ObjectId, ThreadId};
use ampsched_task::{Pick, TaskId};

use super::steps::Step;
use super::threads::{WaitsFor, Work};
use super::{Engine, Fallible};
use crate::SimError;
pub(super) use loaded::Loaded;
pub(crate) use loaded::region_graph;
use run::Run;

/// State of a region. A program may use it again and again; a thread may be behind by some uses.
pub(super) struct RegionState {
    loaded: Arc<Loaded>,
    /// Uses that have ended.
    ended: u32,
    /// The present use, if somebody has begun it.
    run: Option<Box<Run>>,
}

impl RegionState {
    /// Nobody has used the region.
    pub fn new(loaded: Arc<Loaded>) -> Self {
        Self { loaded, ended: 0, run: None }
    }

    /// Forgets all uses.
    pub fn reset(&mut self) {
        (self.ended, self.run) = (0, None);
    }
}

impl Engine<'_> {
    /// A thread works on a region: it ends the task at hand, if any, and goes on with the next one.
    pub(super) fn tasks_step(
        &mut self,
        thread: ThreadId,
        region: ObjectId,
        profile: u32,
    ) -> Fallible<Step> {
        if self.objects.region(region).ended > self.threads[thread].uses_of(region) {
            return Ok(self.leave_region(thread, region));
        }
        let loaded = self.objects.region(region).loaded.clone();
        let cluster = self.cluster_of_thread(thread);
        let mut run = self.open_region(region, profile)?;
        let Some(place) = run.sit(thread, cluster) else {
            let workers = loaded.region.workers;
            let name = self.thread_name(thread);
            let what =
                format!("thread {name} works on it besides {workers} others (raise workers)");
            return Err(self.region_error(&loaded, what));
        };
        run.note_core(place, cluster);
        if let Some(task) = run.seats[place].task.take() {
            run.end(&loaded, Some(place), task);
            if run.left == 0 {
                self.close_region(region, *run, thread)?;
                return Ok(self.leave_region(thread, region));
            }
        }
        let fed = run.feed(&loaded, self.events.now_ns());
        let pick = run.take(place, self.events.now_ns());
        self.objects.region(region).run = Some(run);
        self.wake_fed(&loaded, fed, thread)?;
        Ok(self.execute(thread, region, &loaded, pick, profile))
    }

    /// A worker executes the task that it got, or waits if it got none.
    fn execute(
        &mut self,
        thread: ThreadId,
        region: ObjectId,
        loaded: &Loaded,
        pick: Option<Pick>,
        profile: u32,
    ) -> Step {
        let Some(pick) = pick else { return self.block(thread, WaitsFor::Object(region)) };
        let path_ns = loaded.paths[pick.task.index()] * loaded.region.work_ns;
        self.supervisor.hear_path(thread, path_ns, self.events.now_ns());
        let grab_ns = if pick.shared { loaded.region.grab_ns } else { 0.0 };
        let work_ns = loaded.graph.work(pick.task) * loaded.region.work_ns + grab_ns;
        self.work_here(thread, work_ns, profile)
    }

    /// A thread creates the tasks of a region one by one.
    pub(super) fn create_step(
        &mut self,
        thread: ThreadId,
        region: ObjectId,
        profile: u32,
    ) -> Fallible<Step> {
        let loaded = self.objects.region(region).loaded.clone();
        let mut run = self.open_region(region, profile)?;
        let all = loaded.graph.len();
        if run.own.is_some() {
            return self.own_step(thread, region, run, profile);
        }
        if !run.is_creating && run.created == all {
            run.early_creator = Some(thread);
            self.objects.region(region).run = Some(run);
            return Ok(self.block(thread, WaitsFor::Object(region)));
        }
        let mut fed = Ok(Vec::new());
        if run.is_creating {
            if run.is_full(&loaded) {
                self.create_own(thread, region, &mut run);
                return self.own_step(thread, region, run, profile);
            }
            run.create(&loaded, 1);
            fed = run.feed(&loaded, self.events.now_ns());
        }
        self.create_next(thread, region, run, fed, profile)
    }

    /// Begins to create the next task, or goes on to the next step if all are there.
    fn create_next(
        &mut self,
        thread: ThreadId,
        region: ObjectId,
        mut run: Box<Run>,
        fed: Result<Vec<ThreadId>, TaskId>,
        profile: u32,
    ) -> Fallible<Step> {
        let loaded = self.objects.region(region).loaded.clone();
        run.is_creating = run.created < loaded.graph.len();
        let goes_on = run.is_creating;
        self.objects.region(region).run = Some(run);
        self.wake_fed(&loaded, fed, thread)?;
        if goes_on {
            return Ok(self.work_here(thread, loaded.region.create_ns, profile));
        }
        self.threads[thread].next_step();
        Ok(Step::Go)
    }

    /// The present use of a region, taken out to work on it.
    fn open_region(&mut self, region: ObjectId, profile: u32) -> Fallible<Box<Run>> {
        if let Some(run) = self.objects.region(region).run.take() {
            return Ok(run);
        }
        let loaded = self.objects.region(region).loaded.clone();
        let clusters = &self.setup.machine.clusters;
        let cores: Vec<usize> = clusters.iter().map(|cluster| cluster.cores.len()).collect();
        let work_s = loaded.region.work_ns / 1e9;
        let fastest = self.speeds.reference(profile) * work_s;
        let speed = |cluster: usize| {
            self.speeds.rate(profile, cluster.into()).instructions_per_ns / fastest
        };
        let speeds = (0..cores.len()).map(speed).collect();
        match Run::new(&loaded, speeds, &cores) {
            Ok(run) => Ok(Box::new(run)),
            Err(error) => Err(self.region_error(&loaded, error.to_string())),
        }
    }

    /// All tasks have ended: whoever waits goes on.
    fn close_region(&mut self, region: ObjectId, run: Run, by: ThreadId) -> Fallible {
        self.objects.region(region).ended += 1;
        let workers = run.seats.iter().filter_map(|seat| seat.thread);
        self.wake_all(workers.chain(run.early_creator).filter(|&other| other != by), by)
    }

    fn leave_region(&mut self, thread: ThreadId, region: ObjectId) -> Step {
        let entry = &mut self.threads[thread];
        entry.finish_use(region);
        entry.next_step();
        Step::Go
    }

    fn wake_fed(
        &mut self,
        loaded: &Loaded,
        fed: Result<Vec<ThreadId>, TaskId>,
        by: ThreadId,
    ) -> Fallible {
        let fed = fed.map_err(|task| {
            let name = loaded.graph.task_name(task);
            self.region_error(
                loaded,
                format!("the policy handed out task {name:?} before its predecessors had ended"),
            )
        })?;
        self.wake_all(fed.into_iter().filter(|&other| other != by), by)
    }

    /// Works so long, as on the fastest core; then the same step comes again.
    fn work_here(&mut self, thread: ThreadId, work_ns: f64, profile: u32) -> Step {
        let amount = (work_ns * self.speeds.reference(profile)).round() as u64;
        let step = self.begin_work(thread, Work::Instructions, amount, profile);
        self.threads[thread].pc.0 -= 1;
        step
    }

    fn cluster_of_thread(&self, thread: ThreadId) -> usize {
        let core: CoreId = self.sched.thread(thread).core;
        self.sched.topology().core(core).cluster.index()
    }

    fn region_error(&self, loaded: &Loaded, what: String) -> Box<SimError> {
        Box::new(SimError::Region { place: loaded.region.place.clone(), what })
    }
}
