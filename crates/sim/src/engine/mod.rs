//! The engine: time, cores and threads.
//!
//! Every core has one timer (its next completion or slice end) in a winner tree; everything else
//! (sleeps, I/O, epochs, balancing) is in one heap. Simultaneous events are ordered by (time, heap
//! before cores, serial or core number), so a run is reproducible bit by bit.

mod apps;
mod check;
mod deadlock;
mod dispatch;
mod energy;
mod frequency;
mod governing;
mod objects;
mod regions;
mod report;
mod sampler;
mod speeds;
mod steps;
mod timers;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroU32;
use std::sync::Arc;

use ampsched_model::{
    AppId, Cluster, ClusterId, CodePtr, CoreId, Draw, Machine, Ns, ObjectId, Program, ThreadId,
    Workload,
};
use ampsched_policy::{
    Change, Event, Factor, FactorKind, Factors, Needs, Plan, Policy, Sched, Stalls, Topology, View,
};

use crate::factors::{Evidence, FactorService};
use crate::{
    Counts, FactorSource, GovernorSpec, OfflineFacts, Outcome, SimError, Trace, offline_facts,
};
use energy::Energy;
use frequency::Clock;
use governing::Governing;
use objects::ObjectState;
use sampler::Sampler;
use speeds::Speeds;
use timers::{CoreTimers, NEVER};

/// How a simulation is run.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Seed of all random amounts.
    pub seed: u64,
    /// Where policies get speed-ups from.
    pub factors: FactorSource,
    /// Stop at this time, whatever still runs.
    pub until_ns: Option<Ns>,
    /// Start applications that have ended anew, and stop when each has ended at least so often
    /// (Prop-SP, Euro-Par 2014 workshops, section 4); if absent, each runs once.
    pub repetitions: Option<NonZeroU32>,
    /// What the policy's own work costs.
    pub overhead: Overhead,
    /// Who sets the frequencies; clusters without a governor stay at their highest. From the first time that
    /// the policy sets a cluster's frequency itself, that cluster has no governor any more.
    pub governors: Vec<GovernorSpec>,
    /// Account for power, energy and heat.
    pub energy: bool,
    /// Fail if the workload has not ended by then.
    pub limit_ns: Ns,
    /// Check the engine's invariants after every event (slow); always on in debug builds.
    pub check: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 1,
            factors: FactorSource::Oracle,
            overhead: Overhead::default(),
            governors: Vec::new(),
            until_ns: None,
            repetitions: None,
            energy: false,
            limit_ns: 100_000_000_000_000,
            check: cfg!(debug_assertions),
        }
    }
}

/// Time that the policy itself takes from the programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overhead {
    /// Charged to a core whenever it is given a thread.
    pub decision_ns: Ns,
    /// Charged to the first core whenever the slow plane looks at the system: to the thread that runs
    /// there; nothing if the core is idle.
    pub epoch_ns: Ns,
}

/// Runs a workload on a machine under a policy.
///
/// `policy_name` only labels the result. Errors: see [`SimError`].
pub fn simulate(
    machine: &Machine,
    workload: &Workload,
    policy_name: &str,
    policy: Box<dyn Policy>,
    options: &Options,
) -> Result<Outcome, SimError> {
    simulate_with(machine, workload, policy_name, policy, options, None)
}

/// The same, recording a trace.
pub fn simulate_with(
    machine: &Machine,
    workload: &Workload,
    policy_name: &str,
    policy: Box<dyn Policy>,
    options: &Options,
    trace: Option<&mut dyn Trace>,
) -> Result<Outcome, SimError> {
    let mut engine = Engine::new(machine, workload, policy_name, policy, options, trace)?;
    if options.energy {
        engine.energy = Some(Box::new(Energy::new(machine)?));
        engine.start_meters();
    }
    if engine.needs.offline_speedup || engine.needs.alone {
        engine.offline = offline_facts(machine, workload, options)?;
    }
    engine.start_governors()?;
    engine.run().map_err(|error| *error)?;
    engine.outcome()
}

/// Errors are boxed inside the engine, so that a result fits into a register.
type Fallible<T = ()> = Result<T, Box<SimError>>;

/// Events that may happen without time going on.
const EVENT_LIMIT: u64 = 10_000_000;

/// What the heap holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    /// An application starts.
    AppStart(AppId),
    /// A thread with a start delay starts: application, its repetition, specification, instance.
    ThreadStart(AppId, u32, u32, u32),
    /// The duration of an application's repetition is over.
    AppStop(AppId, u32),
    /// A sleeping thread wakes.
    Wake(ThreadId),
    /// A device has finished a request of a thread.
    IoDone(ObjectId, ThreadId),
    /// The policy's slow plane runs.
    Epoch,
    /// Run queues are balanced.
    Balance,
    /// A core has idled for long in the given stay.
    Deepen(CoreId, u32),
    /// Temperatures change.
    ThermalStep,
    /// A cluster's power sensor refreshes.
    PowerSample(ClusterId),
    /// A cluster's clock has changed, as the given request wanted.
    Frequency(ClusterId, u32),
    /// A cluster's governor may want to look, if it has not done so since the given look.
    GovernorTimer(ClusterId, u32),
}

/// What a thread is doing with the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// Nothing: its next step is to be executed.
    Steps,
    /// Retiring instructions.
    Instructions,
    /// Using CPU time.
    CpuTime,
}

/// Loop or item that a thread is in.
#[derive(Clone, Copy, Debug)]
enum Frame {
    /// A counted loop with iterations left, the present one included.
    Loop { left: u64 },
    /// Work on an item of a queue; the thread's own stream of random numbers is put aside.
    Item { outer: Draw },
    /// Work on an iteration of a pool; `next..end` is the rest of the chunk.
    Iteration { pool: ObjectId, outer: Draw, use_number: u32, next: u64, end: u64 },
}

/// Execution state of a thread.
#[derive(Debug)]
struct Thread {
    app: AppId,
    spec: u32,
    /// The repetition of its application that it belongs to.
    repetition: u32,
    name: String,
    pc: CodePtr,
    work: Work,
    /// Instructions or ns left of the present work.
    remaining: u64,
    /// Profile of the present or last work, in the run's table.
    profile: u32,
    demanded: u64,
    draw: Draw,
    frames: Vec<Frame>,
    held: Vec<ObjectId>,
    /// Times that the thread has used up each pool.
    pool_uses: Vec<(ObjectId, u32)>,
    /// What it waits for, for reports.
    waits_for: WaitsFor,
    /// The core on which it ran before it began to wait for a device.
    io_core: Option<CoreId>,
    /// A woken waiter of a condition still has to acquire the mutex.
    reacquiring: bool,
    parent: Option<ThreadId>,
    children: u32,
    /// Times that it left a core to wait for something.
    voluntary: u64,
    /// Times that it lost a core to another thread while it could have gone on.
    involuntary: u64,
    start_ns: Ns,
    end_ns: Ns,
}

impl Thread {
    /// Times that the thread has seen the end of a pool.
    fn uses_of(&self, pool: ObjectId) -> u32 {
        self.pool_uses.iter().find(|(known, _)| *known == pool).map_or(0, |&(_, uses)| uses)
    }

    fn finish_use(&mut self, pool: ObjectId) {
        match self.pool_uses.iter_mut().find(|(known, _)| *known == pool) {
            Some((_, uses)) => *uses += 1,
            None => self.pool_uses.push((pool, 1)),
        }
    }
}

/// What a blocked thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaitsFor {
    Nothing,
    Object(ObjectId),
    Children,
    Time,
    Resume,
}

/// Execution state of a core.
#[derive(Clone, Debug, Default)]
struct Core {
    /// Up to when busy and idle time are accounted.
    accounted_ns: Ns,
    /// Switching cost that the running thread still has to pay.
    overhead_left_ns: Ns,
    /// When the running thread's work is done.
    done_ns: Ns,
    /// When its slice ends.
    slice_end_ns: Ns,
    instructions_per_ns: f64,
    ns_per_instruction: f64,
    idle_ns: Ns,
    /// Of that, time in which threads that had run here waited for devices.
    iowait_ns: Ns,
    /// Number of these threads.
    waiting_io: u32,
    overhead_ns: Ns,
    switches: u64,
    /// Reschedule at the next opportunity.
    resched: bool,
    /// Instructions that the running thread has retired since it was put on the core.
    retired: u64,
    /// Its cluster, as in the topology (kept where the other fields are looked up).
    cluster: ClusterId,
}

/// Execution state of an application.
#[derive(Debug)]
struct AppRun {
    name: String,
    program: Arc<Program>,
    nice: i8,
    /// When it starts for the first time.
    start_ns: Ns,
    /// Number of the present or last repetition.
    repetition: u32,
    /// When that began.
    began_ns: Ns,
    /// Completion times of the repetitions that have ended.
    completions_ns: Vec<Ns>,
    /// Threads that exist or are still to start; 0 when the repetition has ended.
    live: u32,
    /// Threads that it has had in all repetitions.
    threads: u32,
    object_base: u32,
    profile_base: u32,
    /// Stream of random numbers of the present repetition.
    draw: Draw,
    /// Instances of each thread specification that the present repetition has forked.
    instances: Vec<u32>,
}

struct Engine<'t> {
    now_ns: Ns,
    machine: Machine,
    workload_name: String,
    policy_name: String,
    options: Options,
    sched: Sched,
    policy: Box<dyn Policy>,
    needs: Needs,
    plan: Plan,
    factors: Vec<Factors>,
    factor_service: FactorService,
    /// Per application; empty if the policy does not ask for them.
    offline: Vec<OfflineFacts>,
    /// Counters, if speed-ups are predicted from them.
    sampler: Option<Sampler>,
    timers: CoreTimers,
    /// All idle cores look for work by then, as far as is known.
    idle_look_ns: Ns,
    heap: BinaryHeap<Reverse<(Ns, u64, Happening)>>,
    serial: u64,
    cores: Vec<Core>,
    threads: Vec<Thread>,
    objects: Vec<ObjectState>,
    object_names: Vec<String>,
    apps: Vec<AppRun>,
    speeds: Speeds,
    /// Per cluster.
    clocks: Vec<Clock>,
    /// None: energy is not accounted for.
    energy: Option<Box<Energy>>,
    /// None: no cluster has a governor.
    governing: Option<Box<Governing>>,
    /// Threads that run or wait for a core.
    runnable: usize,
    /// Threads that the plan holds back.
    held: usize,
    /// Applications that have not yet ended as often as they are to.
    unfinished: usize,
    /// Heap entries that will make a thread runnable, or end some.
    pending: usize,
    counts: Counts,
    /// Events handled at the present moment.
    events_now: u64,
    trace: Option<&'t mut dyn Trace>,
}

impl<'t> Engine<'t> {
    fn new(
        machine: &Machine,
        workload: &Workload,
        policy_name: &str,
        policy: Box<dyn Policy>,
        options: &Options,
        trace: Option<&'t mut dyn Trace>,
    ) -> Result<Self, SimError> {
        let topology = Topology::new(machine);
        let (needs, rules) = (policy.needs(), policy.rules(&topology));
        let core = |core| Core { cluster: topology.core(core).cluster, ..Core::default() };
        let cores: Vec<Core> = topology.cores().map(core).collect();
        let clock = |cluster: &Cluster| Clock::new(cluster.opps.len());
        let mut sched = Sched::new(topology, rules);
        sched.serve(&needs);
        let mut engine = Self {
            now_ns: 0,
            workload_name: workload.name.clone(),
            policy_name: policy_name.to_owned(),
            options: options.clone(),
            sched,
            needs,
            policy,
            plan: Plan::new(),
            factors: Vec::new(),
            factor_service: FactorService::new(options.factors.clone()),
            offline: Vec::new(),
            sampler: match &options.factors {
                FactorSource::Predicted(source) => Some(Sampler::new(source, machine)),
                _ => None,
            },
            timers: CoreTimers::new(cores.len()),
            idle_look_ns: NEVER,
            heap: BinaryHeap::new(),
            serial: 0,
            cores,
            threads: Vec::new(),
            objects: Vec::new(),
            object_names: Vec::new(),
            apps: Vec::new(),
            speeds: Speeds::new(machine, needs.stalls),
            clocks: machine.clusters.iter().map(clock).collect(),
            energy: None,
            governing: None,
            runnable: 0,
            held: 0,
            unfinished: workload.apps.len(),
            pending: 0,
            counts: Counts::default(),
            events_now: 0,
            machine: machine.clone(),
            trace,
        };
        for index in 0..workload.apps.len() {
            engine.load_app(workload, index)?;
        }
        engine.schedule_periodic();
        Ok(engine)
    }

    fn load_app(&mut self, workload: &Workload, index: usize) -> Result<(), SimError> {
        let app = &workload.apps[index];
        let program = app.program.clone();
        let object_base = self.objects.len() as u32;
        let profile_base = self.speeds.add(&self.machine, &program.profiles);
        for object in &program.objects {
            self.objects.push(ObjectState::new(&object.kind)?);
            self.object_names.push(format!("{}/{}", app.name, object.name));
        }
        if let Some(sampler) = &mut self.sampler {
            sampler.add_profiles(&program.profiles, &self.machine);
        }
        // The seed and the application's name, not its place in the mix: alone or together, it does
        // the same work.
        let bytes = app.name.bytes();
        let draw = bytes.fold(Draw::new(self.options.seed), |draw, byte| draw.child(byte.into()));
        self.apps.push(AppRun {
            name: app.name.clone(),
            nice: app.nice,
            start_ns: app.start_ns,
            repetition: 0,
            began_ns: app.start_ns,
            completions_ns: Vec::new(),
            live: 0,
            threads: 0,
            object_base,
            profile_base,
            draw,
            instances: vec![0; program.threads.len()],
            program,
        });
        self.begin(AppId::from(index));
        Ok(())
    }

    fn schedule_periodic(&mut self) {
        if let Some(epoch_ns) = self.needs.epoch_ns {
            self.push(epoch_ns, Happening::Epoch);
        }
        if let Some(balance) = self.sched.rules().balance {
            self.push(balance.period_ns, Happening::Balance);
        }
    }

    fn push(&mut self, at_ns: Ns, happening: Happening) {
        self.serial += 1;
        self.heap.push(Reverse((at_ns, self.serial, happening)));
    }

    fn run(&mut self) -> Fallible {
        let until_ns = self.options.until_ns.unwrap_or(NEVER);
        while self.unfinished > 0 {
            let (core, core_ns) = self.timers.first();
            let heap_ns = self.heap.peek().map_or(NEVER, |Reverse((at_ns, _, _))| *at_ns);
            let next_ns = core_ns.min(heap_ns);
            if self.runnable == 0 && self.pending == 0 && self.held == 0 {
                return Err(self.deadlock(None).into());
            }
            if next_ns > until_ns {
                self.now_ns = until_ns;
                break;
            }
            if next_ns > self.options.limit_ns {
                return Err(SimError::TimeLimit { limit_ns: self.options.limit_ns }.into());
            }
            if self.options.check && next_ns > self.now_ns {
                self.check_invariants()?;
            }
            self.guard_progress(next_ns, core)?;
            self.now_ns = next_ns;
            if heap_ns <= core_ns {
                let Reverse((_, _, happening)) =
                    self.heap.pop().expect("the heap has a first entry");
                self.handle(happening)?;
            } else {
                self.on_core_timer(core)?;
            }
            self.let_governors_look();
        }
        self.account_all();
        self.settle_all();
        Ok(())
    }

    /// Threads that yield to each other for ever use no time: say so instead of hanging.
    #[inline]
    fn guard_progress(&mut self, next_ns: Ns, core: CoreId) -> Fallible {
        if next_ns > self.now_ns {
            self.events_now = 0;
            return Ok(());
        }
        self.events_now += 1;
        if self.events_now < EVENT_LIMIT {
            return Ok(());
        }
        let thread = self
            .sched
            .core(core)
            .running
            .map_or("(none)".into(), |thread| self.thread_name(thread));
        Err(SimError::NoProgress { thread, steps: self.events_now, at_ns: self.now_ns }.into())
    }

    fn handle(&mut self, happening: Happening) -> Fallible {
        match happening {
            Happening::AppStart(app) => self.start_app(app)?,
            Happening::ThreadStart(app, repetition, spec, instance) => {
                self.pending -= 1;
                if self.goes_on(app, repetition) {
                    self.create_thread(app, spec, instance, None)?;
                }
            }
            Happening::AppStop(app, repetition) => {
                self.pending -= 1;
                if self.goes_on(app, repetition) {
                    self.stop_app(app)?;
                }
            }
            Happening::Wake(thread) => {
                self.pending -= 1;
                self.wake(thread, None)?;
            }
            Happening::IoDone(device, thread) => {
                self.pending -= 1;
                // Not for a device that has been reset since it was asked.
                let entry = &self.threads[thread.index()];
                if entry.repetition == self.apps[entry.app.index()].repetition {
                    self.next_request(device);
                }
                let came_back = self.end_io_wait(thread);
                self.wake(thread, None)?;
                if came_back {
                    self.governors_hear_io(self.sched.thread(thread).core);
                }
            }
            Happening::Epoch => self.epoch()?,
            Happening::Balance => self.balance(),
            Happening::Deepen(core, stay) => self.deepen(core, stay),
            Happening::ThermalStep => self.thermal_step()?,
            Happening::PowerSample(cluster) => self.sample_power(cluster),
            Happening::Frequency(cluster, request) => self.finish_transition(cluster, request),
            Happening::GovernorTimer(cluster, look) => self.governor_timer(cluster, look),
        }
        Ok(())
    }

    /// The slow plane: bring the books up to date, refresh the factors, let the policy look.
    fn epoch(&mut self) -> Fallible {
        self.account_all();
        self.refresh_factors();
        let view = View::new(&self.sched, &self.factors, self.now_ns);
        self.policy.epoch(&view, &mut self.plan);
        self.apply_plan()?;
        self.charge_epoch();
        let epoch_ns = self.needs.epoch_ns.expect("an epoch has a cadence");
        self.push(self.now_ns + epoch_ns, Happening::Epoch);
        Ok(())
    }

    /// The slow plane's work delays whoever runs on the first core.
    fn charge_epoch(&mut self) {
        let (core, epoch_ns) = (CoreId(0), self.options.overhead.epoch_ns);
        if epoch_ns == 0 {
            return;
        }
        if let Some(thread) = self.sched.core(core).running {
            self.cores[core.index()].overhead_left_ns += epoch_ns;
            self.arm(core, thread);
        }
    }

    fn refresh_factors(&mut self) {
        let threads: Vec<ThreadId> = self.sched.live_threads().collect();
        for thread in threads {
            self.refresh_factor(thread);
        }
    }

    fn refresh_factor(&mut self, thread: ThreadId) {
        let power_mw = if self.needs.power { self.thread_power_mw(thread) } else { None };
        let evidence = Evidence {
            seed: self.options.seed,
            thread,
            truth: self.speeds.speedup(self.threads[thread.index()].profile),
            sched: &self.sched,
            now_ns: self.now_ns,
        };
        let blame = self.sched.blame_ns(thread) as f64;
        let stalls = self.stalls(thread);
        let factors = &mut self.factors[thread.index()];
        let last = factors.speedup;
        factors.speedup = match &mut self.sampler {
            Some(sampler) => sampler.speedup(evidence.seed, thread, &last, self.now_ns),
            None => self.factor_service.speedup(evidence, &last),
        };
        factors.blame_ns = Factor { value: blame, kind: FactorKind::Measured, at_ns: self.now_ns };
        factors.stalls = stalls;
        if let Some(value) = power_mw {
            factors.power_mw = Factor { value, kind: FactorKind::Measured, at_ns: self.now_ns };
        }
        *factors = factors.named_by(&self.needs);
    }

    /// What the counters of the core show on which a thread runs or last ran.
    fn stalls(&self, thread: ThreadId) -> Option<Stalls> {
        if !self.needs.stalls || self.options.factors == FactorSource::Missing {
            return None;
        }
        let core = self.sched.thread(thread).ran_on?;
        let place = self.sched.topology().core(core);
        let profile = self.threads[thread.index()].profile;
        let counters = self.speeds.stalls(profile, place.cluster)?;
        Some(Stalls { class: place.class, counters, at_ns: self.now_ns })
    }

    fn apply_plan(&mut self) -> Fallible {
        if self.plan.is_empty() {
            return Ok(());
        }
        self.sched.check(&self.plan).map_err(|refusal| SimError::BadPolicy {
            policy: self.policy_name.clone(),
            what: refusal.to_string(),
        })?;
        let mut opens = false;
        let changes: Vec<(ThreadId, Change)> = self.plan.drain().collect();
        for (thread, change) in changes {
            if thread.index() >= self.threads.len() {
                let what = format!("plans for thread {}, which does not exist", thread.0);
                return Err(SimError::BadPolicy { policy: self.policy_name.clone(), what }.into());
            }
            let effect = self.sched.apply(thread, &change);
            opens |= effect.opens;
            if effect.moves {
                self.relocate(thread)?;
            }
        }
        self.apply_frequencies()?;
        if opens {
            // They have to be woken up for it, as by a thread that has to wait.
            self.kick_idle_cores(self.now_ns + self.machine.costs.wakeup_latency_ns);
        }
        Ok(())
    }

    #[inline]
    fn tell(&mut self, event: Event) -> Fallible {
        let events = self.needs.events;
        let wanted = match event {
            Event::Added(_) | Event::Exited(_) => events.lifecycle,
            Event::Woken(..) | Event::Blocked(_) => events.blocking,
            Event::Started(..) | Event::Stopped(..) => events.dispatch,
        };
        if !wanted {
            return Ok(());
        }
        let view = View::new(&self.sched, &self.factors, self.now_ns);
        self.policy.on_event(&view, event, &mut self.plan);
        self.apply_plan()
    }

    fn balance(&mut self) {
        let balance = self.sched.rules().balance.expect("balancing has a period");
        self.account_all();
        for core in self.sched.balance(balance, self.now_ns) {
            self.after_enqueue(core, self.now_ns);
        }
        self.push(self.now_ns + balance.period_ns, Happening::Balance);
    }

    fn account_all(&mut self) {
        for core in 0..self.cores.len() {
            self.account(CoreId::from(core));
        }
    }
}
