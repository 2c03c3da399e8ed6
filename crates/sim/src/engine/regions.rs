//! Parallel regions: threads of a program execute the tasks of a graph, fed by a task policy.
//!
//! Both levels of scheduling at once: the task policy decides which worker executes which task, the policy of the
//! operating system on which core and when that worker runs. A worker asks when it has nothing to do, blocks when it
//! gets nothing, and is woken with its next task. Of several idle workers the one with the smallest number asks first, as in
//! [`crate::run_tasks`]; so with a core for every worker both give the same schedule. Only if tasks end at the very same
//! moment may they differ: there workers ask when all of these tasks have ended, here each when its own has.

use std::sync::Arc;

use ampsched_model::{ClassId, CoreId, InputError, Ns, ObjectId, Region, ThreadId};
use ampsched_policy::Params;
use ampsched_task::{
    Build, Format, Graph, Pick, Problem, ReadOptions, Replay, TaskId, TaskPolicy, Tasks, Waiting,
    WorkerClass, WorkerId, Workers, build_task_policy, find_task_policy, parse_spec, read,
    task_program,
};

use super::objects::ObjectState;
use super::steps::Step;
use super::{Engine, Fallible, WaitsFor, Work};
use crate::SimError;

/// A region with its graph and its policy looked up.
pub(super) struct Loaded {
    region: Region,
    graph: Graph,
    build: Build,
    params: Params,
}

impl Loaded {
    /// Looks up graph and policy. Errors: one of them does not exist or cannot be used in a region.
    pub fn new(region: &Region) -> Result<Self, SimError> {
        let wrong = |what: String| SimError::Region { place: region.place.clone(), what };
        let input = |error: InputError| wrong(error.to_string());
        let spec = |text| parse_spec(text).map_err(wrong);
        let graph = match &region.text {
            Some(text) => Format::of(&region.graph)
                .and_then(|format| read(format, &region.graph, text, &ReadOptions::default()))
                .map_err(input)?,
            None => {
                let (name, params) = spec(&region.graph)?;
                task_program(name, &params).map_err(|error| wrong(error.to_string()))?
            }
        };
        let (name, params) = spec(&region.policy)?;
        let (build, params) =
            build_task_policy(name, &params).map_err(|error| wrong(error.to_string()))?;
        let is_lazy = find_task_policy(name).is_ok_and(|info| info.lazy);
        let refused = [
            (
                graph.has_communication(),
                "the graph's data takes time between workers, which only `ampsched tasks` models",
            ),
            (
                graph.cost_columns() > 0,
                "the graph states costs for classes of workers; here costs follow from the speeds of cores",
            ),
            (
                region.is_lazy && !is_lazy,
                "its policy needs all tasks beforehand, but a thread creates them one by one",
            ),
        ];
        match refused.into_iter().find(|(is_so, _)| *is_so) {
            Some((_, what)) => Err(wrong(what.to_owned())),
            None => Ok(Self { region: region.clone(), graph, build, params }),
        }
    }

    /// The policy, and the workers that it believes in: one on each core in the order of the cores, then again from
    /// the first core on. `speeds` are those of the clusters, in work per second, `cores` their sizes.
    fn policy(&self, speeds: &[f64], cores: &[usize]) -> Result<Box<dyn TaskPolicy>, InputError> {
        let counts = layout(self.region.workers as usize, cores);
        let class = |(cluster, count): (usize, usize)| WorkerClass {
            name: cluster.to_string(),
            speed: speeds[cluster],
            count,
            grab_s: 0.0,
        };
        let workers = Workers::new(counts.into_iter().enumerate().map(class).collect())?;
        Ok(match self.build {
            Build::OnLine(build) => build(&self.params, &workers),
            Build::OffLine(schedule) => {
                let problem = Problem::new(&self.graph, workers)?;
                let schedule = schedule(&self.params, &problem);
                Box::new(Replay::new(&schedule, problem.workers().len()))
            }
        })
    }
}

/// How many of so many workers each cluster has if they sit on the cores in turn.
fn layout(workers: usize, cores: &[usize]) -> Vec<usize> {
    let all: usize = cores.iter().sum();
    let (rounds, rest) = (workers / all, workers % all);
    let mut before = 0;
    cores
        .iter()
        .map(|&cores| {
            let more = rest.saturating_sub(before).min(cores);
            before += cores;
            rounds * cores + more
        })
        .collect()
}

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

/// One use of a region.
struct Run {
    policy: Box<dyn TaskPolicy>,
    /// Work per second on each cluster, when the use began.
    speeds: Vec<f64>,
    waiting: Waiting,
    /// Tasks that exist: those with smaller numbers.
    created: usize,
    /// Whether the creator is working on the next one.
    is_creating: bool,
    /// A creator that is ahead by a use.
    early_creator: Option<ThreadId>,
    has_ended: Vec<bool>,
    /// Tasks that have not ended.
    left: usize,
    seats: Vec<Seat>,
}

/// A worker of a region.
struct Seat {
    /// Where the policy believes it to sit at first.
    cluster: usize,
    is_big: bool,
    thread: Option<ThreadId>,
    /// What it executes.
    task: Option<TaskId>,
    /// What it has been woken for, and when.
    next: Option<(Pick, Ns)>,
}

/// The tasks that have been created, as a policy sees them. Classes of workers are clusters.
struct Created<'a> {
    graph: &'a Graph,
    speeds: &'a [f64],
    count: usize,
}

impl Tasks for Created<'_> {
    fn len(&self) -> usize {
        self.count
    }

    fn predecessors(&self, task: TaskId) -> &[TaskId] {
        self.graph.predecessors(task)
    }

    fn cost_s(&self, task: TaskId, class: ClassId) -> f64 {
        self.graph.work(task) / self.speeds[class.index()]
    }
}

impl Run {
    fn new(loaded: &Loaded, speeds: Vec<f64>, cores: &[usize]) -> Result<Self, InputError> {
        let fastest = speeds.iter().copied().fold(0.0, f64::max);
        let counts = layout(loaded.region.workers as usize, cores);
        let seat = |cluster: usize| Seat {
            cluster,
            is_big: speeds[cluster] == fastest,
            thread: None,
            task: None,
            next: None,
        };
        let seats = (0..cores.len())
            .flat_map(|cluster| std::iter::repeat_with(move || cluster).take(counts[cluster]))
            .map(seat)
            .collect();
        let tasks = loaded.graph.len();
        let mut run = Self {
            policy: loaded.policy(&speeds, cores)?,
            waiting: Waiting::new(&loaded.graph),
            created: 0,
            is_creating: false,
            early_creator: None,
            has_ended: vec![false; tasks],
            left: tasks,
            seats,
            speeds,
        };
        if !loaded.region.is_lazy {
            run.create(loaded, tasks);
        }
        Ok(run)
    }

    /// Creates so many tasks; those that wait for nothing are ready.
    fn create(&mut self, loaded: &Loaded, count: usize) {
        let first = self.created;
        self.created += count;
        let tasks = Created { graph: &loaded.graph, speeds: &self.speeds, count: self.created };
        self.policy.created(&tasks, TaskId::from(first));
        for task in (first..self.created).map(TaskId::from) {
            if self.waiting.is_ready(task) {
                self.policy.ready(&tasks, task, None);
            }
        }
    }

    /// The seat of a thread. One that comes takes a free seat that the policy believes to be on its cluster, else any.
    fn sit(&mut self, thread: ThreadId, cluster: usize) -> Option<usize> {
        let is_its = |seat: &Seat| seat.thread == Some(thread);
        let is_free = |seat: &Seat| seat.thread.is_none();
        let seats = &mut self.seats;
        let place = seats.iter().position(is_its).or_else(|| {
            let near = seats.iter().position(|seat| is_free(seat) && seat.cluster == cluster);
            near.or_else(|| seats.iter().position(is_free))
        })?;
        seats[place].thread = Some(thread);
        Some(place)
    }

    /// Notes on which kind of core a worker runs.
    fn note_core(&mut self, place: usize, cluster: usize) {
        let is_big = self.speeds.iter().all(|&speed| speed <= self.speeds[cluster]);
        if std::mem::replace(&mut self.seats[place].is_big, is_big) != is_big {
            self.policy.moved(WorkerId::from(place), is_big);
        }
    }

    /// A task has ended at a worker.
    fn end(&mut self, loaded: &Loaded, place: usize, task: TaskId) {
        if std::mem::replace(&mut self.has_ended[task.index()], true) {
            return;
        }
        self.left -= 1;
        self.policy.ended(task);
        let created = self.created;
        let tasks = Created { graph: &loaded.graph, speeds: &self.speeds, count: created };
        let policy = &mut self.policy;
        self.waiting.end(&loaded.graph, task, |next| {
            if next.index() < created {
                policy.ready(&tasks, next, Some(WorkerId::from(place)));
            }
        });
    }

    /// Lets idle workers ask; returns those that have got something, in their order.
    ///
    /// Errors: the task that the policy handed out although it waits for others.
    fn feed(&mut self, loaded: &Loaded, now_ns: Ns) -> Result<Vec<ThreadId>, TaskId> {
        let mut fed = Vec::new();
        for place in 0..self.seats.len() {
            let seat = &self.seats[place];
            let Some(thread) = seat.thread.filter(|_| seat.task.is_none() && seat.next.is_none())
            else {
                continue;
            };
            let tasks = Created { graph: &loaded.graph, speeds: &self.speeds, count: self.created };
            let Some(pick) = self.policy.next(&tasks, WorkerId::from(place)) else { continue };
            if pick.task.index() >= self.created || !self.waiting.is_ready(pick.task) {
                return Err(pick.task);
            }
            self.seats[place].next = Some((pick, now_ns));
            fed.push(thread);
        }
        Ok(fed)
    }

    /// What a running worker executes next: what it was given, else what another one of its kind took from a shared
    /// queue and was woken for earlier, but has not begun because it has no core yet.
    fn take(&mut self, place: usize, now_ns: Ns) -> Option<Pick> {
        let own = self.seats[place].next.take();
        let pick = own.or_else(|| {
            let is_big = self.seats[place].is_big;
            let left_behind = |seat: &&mut Seat| {
                let waits = |(pick, woken_ns): (Pick, Ns)| pick.shared && woken_ns < now_ns;
                seat.is_big == is_big && seat.next.is_some_and(waits)
            };
            self.seats.iter_mut().find(left_behind)?.next.take()
        });
        let (pick, _) = pick?;
        self.seats[place].task = Some(pick.task);
        Some(pick)
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
        if self.region(region).ended > self.threads[thread.index()].uses_of(region) {
            return Ok(self.leave_region(thread, region));
        }
        let loaded = self.region(region).loaded.clone();
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
            run.end(&loaded, place, task);
            if run.left == 0 {
                self.close_region(region, *run, thread)?;
                return Ok(self.leave_region(thread, region));
            }
        }
        let fed = run.feed(&loaded, self.now_ns);
        let pick = run.take(place, self.now_ns);
        self.region(region).run = Some(run);
        self.wake_fed(&loaded, fed, thread)?;
        let Some(pick) = pick else { return Ok(self.block(thread, WaitsFor::Object(region))) };
        let grab_ns = if pick.shared { loaded.region.grab_ns } else { 0.0 };
        let work_ns = loaded.graph.work(pick.task) * loaded.region.work_ns + grab_ns;
        Ok(self.work_here(thread, work_ns, profile))
    }

    /// A thread creates the tasks of a region one by one.
    pub(super) fn create_step(
        &mut self,
        thread: ThreadId,
        region: ObjectId,
        profile: u32,
    ) -> Fallible<Step> {
        let loaded = self.region(region).loaded.clone();
        let mut run = self.open_region(region, profile)?;
        let all = loaded.graph.len();
        if !run.is_creating && run.created == all {
            run.early_creator = Some(thread);
            self.region(region).run = Some(run);
            return Ok(self.block(thread, WaitsFor::Object(region)));
        }
        let mut fed = Ok(Vec::new());
        if run.is_creating {
            run.create(&loaded, 1);
            fed = run.feed(&loaded, self.now_ns);
        }
        run.is_creating = run.created < all;
        let goes_on = run.is_creating;
        self.region(region).run = Some(run);
        self.wake_fed(&loaded, fed, thread)?;
        if goes_on {
            return Ok(self.work_here(thread, loaded.region.create_ns, profile));
        }
        self.threads[thread.index()].pc.0 += 1;
        Ok(Step::Go)
    }

    /// The present use of a region, taken out to work on it.
    fn open_region(&mut self, region: ObjectId, profile: u32) -> Fallible<Box<Run>> {
        if let Some(run) = self.region(region).run.take() {
            return Ok(run);
        }
        let loaded = self.region(region).loaded.clone();
        let clusters = &self.machine.clusters;
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
        self.region(region).ended += 1;
        let workers = run.seats.iter().filter_map(|seat| seat.thread);
        for other in workers.chain(run.early_creator).filter(|&other| other != by) {
            self.wake(other, Some(by))?;
        }
        Ok(())
    }

    fn leave_region(&mut self, thread: ThreadId, region: ObjectId) -> Step {
        let entry = &mut self.threads[thread.index()];
        entry.finish_use(region);
        entry.pc.0 += 1;
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
        fed.into_iter()
            .filter(|&other| other != by)
            .try_for_each(|other| self.wake(other, Some(by)))
    }

    /// Works so long, as on the fastest core; then the same step comes again.
    fn work_here(&mut self, thread: ThreadId, work_ns: f64, profile: u32) -> Step {
        let amount = (work_ns * self.speeds.reference(profile)).round() as u64;
        let step = self.compute(thread, Work::Instructions, amount, profile);
        self.threads[thread.index()].pc.0 -= 1;
        step
    }

    fn cluster_of_thread(&self, thread: ThreadId) -> usize {
        let core: CoreId = self.sched.thread(thread).core;
        self.sched.topology().core(core).cluster.index()
    }

    fn region_error(&self, loaded: &Loaded, what: String) -> Box<SimError> {
        Box::new(SimError::Region { place: loaded.region.place.clone(), what })
    }

    fn region(&mut self, region: ObjectId) -> &mut RegionState {
        match &mut self.objects[region.index()] {
            ObjectState::Region(state) => state,
            _ => unreachable!("checked"),
        }
    }
}
