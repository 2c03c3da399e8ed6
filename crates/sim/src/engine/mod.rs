//! The engine: simulated time, cores, threads, objects and applications, and the policy that supervises them.
//!
//! Each is a *part*: a struct with fields of its own, whose methods name what else they touch as arguments. [`Engine`]
//! composes them. Its own methods, one file per kind, are the transitions that concern several parts at once, because
//! anything that happens to a thread may make the policy change everything; parts never call the engine.
//!
//! | part | file | knows |
//! |---|---|---|
//! | [`Setup`] | `setup.rs` | what is simulated and how; never changes |
//! | [`Events`] | `events.rs`, `timers.rs` | time, what happens next |
//! | [`Cores`] | `cores.rs` | accounts of time, how far the work on each core is |
//! | [`Threads`] | `threads.rs`, `timeliness.rs` | what each executes, waits for and has done, and how timely |
//! | [`Apps`] | `apps.rs` | repetitions, completions |
//! | [`Objects`] | `objects.rs`, `regions/` | who holds them and who waits |
//! | [`Speeds`], [`Clocks`] | `speeds.rs`, `clocks.rs`, `turbo.rs` | rates of work, frequencies |
//! | [`Contention`] | `contention/` | how threads on different cores slow each other down |
//! | [`Meters`] | `meters.rs`, `meters/` | power, energy, heat, sensors |
//! | [`Handovers`] | `handover.rs` | which core used an object last |
//! | [`Idling`] | `idling.rs` | how long cores idle, and what waking them up takes |
//! | [`Noisy`] | `noise.rs` | what the system does beside the programs |
//! | [`Governing`] | `governing.rs` | governors and what they are told |
//! | [`Supervisor`] | `supervisor.rs`, `sampler.rs` | the policy, its factors, needs and plan |
//! | [`Record`] | `setup.rs`, `watch.rs` | totals, and the trace with its reasons |
//! | [`RealTime`] | `realtime/`, `above.rs` | the classes above the policy's, and the cores that they occupy |
//! | [`Progress`] | `progress.rs` | whether anybody gets anything done |

mod above;
mod apps;
mod attrs;
mod check;
mod clocks;
mod contention;
mod cores;
mod deadlock;
mod dispatch;
mod events;
mod governing;
mod handover;
mod idling;
mod life;
mod meters;
mod noise;
mod objects;
mod options;
mod plane;
mod pools;
mod progress;
mod realtime;
mod regions;
mod report;
mod sampler;
mod setup;
mod slow_plane;
mod speeds;
mod steps;
mod supervisor;
mod threads;
mod timeliness;
mod timers;
mod turbo;
mod wake;
mod watch;

use ampsched_model::{Machine, SchedClass, ThreadId, Workload, run_loop};
use ampsched_policy::{Act, GroupId, Policy, Refusal, Sched, Topology};

use crate::{Outcome, SimError, Trace};
use apps::{Apps, VERY_OFTEN};
use attrs::Asked;
use clocks::Clocks;
use contention::Contention;
use cores::Cores;
use events::{Due, Events, SimEvent};
use governing::Governing;
use handover::Handovers;
use idling::Idling;
use meters::Meters;
use noise::Noisy;
use objects::Objects;
pub use options::{Options, Overhead};
use progress::Progress;
use realtime::RealTime;
pub(crate) use regions::region_graph;
use setup::{Record, Setup};
use speeds::Speeds;
use supervisor::Supervisor;
use threads::Threads;

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
    let setup = Setup::new(machine, workload, policy_name, options);
    let placed = workload.placed_on(machine);
    let mut engine = Engine::new(setup, &placed.workload, policy, trace)?;
    engine.asked.dropped_sets = placed.dropped;
    let needs = engine.supervisor.needs;
    if needs.offline_speedup || needs.alone || needs.work {
        engine.supervisor.offline = options.alone.of(machine, workload, options)?;
    }
    engine.run().map_err(|error| *error)?;
    engine.outcome()
}

/// Errors are boxed inside the engine, so that a result fits into a register.
type Fallible<T = ()> = Result<T, Box<SimError>>;

/// Events that may happen without time going on.
const EVENT_LIMIT: u64 = 10_000_000;

/// All parts of a simulation.
struct Engine<'t> {
    setup: Setup,
    events: Events,
    sched: Sched,
    supervisor: Supervisor,
    cores: Cores,
    threads: Threads,
    apps: Apps,
    objects: Objects,
    speeds: Speeds,
    clocks: Clocks,
    /// None: nobody slows anybody down on another core.
    contention: Option<Box<Contention>>,
    /// None: energy is not accounted for.
    meters: Option<Box<Meters>>,
    /// None: no thread is ever of a class above the policy's.
    realtime: Option<Box<RealTime>>,
    /// None: no cluster has a governor.
    governing: Option<Box<Governing>>,
    /// None: the system does nothing beside the programs.
    noisy: Option<Box<Noisy>>,
    /// None: using what another core used last costs nothing.
    handovers: Option<Box<Handovers>>,
    /// None: leaving idle states costs nothing.
    idling: Option<Box<Idling>>,
    record: Record<'t>,
    progress: Progress,
    /// What a fast plane wants done; kept for its memory.
    acts: Vec<Act>,
    asked: Asked,
    /// How threads behave that spin, in the table of profiles.
    spin_profile: u32,
    stated_groups: Vec<(GroupId, StatedGroup)>,
}

/// Shares and clamps that a program states of a group.
type StatedGroup = (Option<u32>, Option<u16>, Option<u16>);

impl<'t> Engine<'t> {
    /// Everything at time 0.
    fn new(
        setup: Setup,
        workload: &Workload,
        policy: Box<dyn Policy>,
        trace: Option<&'t mut dyn Trace>,
    ) -> Result<Self, SimError> {
        let (machine, options) = (&setup.machine, &setup.options);
        let topology = Topology::new(machine);
        let mut rules = policy.rules(&topology);
        rules.tick_ns = rules.tick_ns.or(machine.costs.tick_ns);
        let supervisor =
            Supervisor::new(policy, &options.factors, options.seed, machine, &topology);
        setup.check_epoch(&supervisor.needs)?;
        let cores = Cores::new(&topology);
        let mut sched = Sched::new(topology, rules);
        let refused = |why: Refusal| setup.bad_policy(why.to_string());
        if let Some(fast) = &supervisor.fast {
            sched.set_honours(fast.honours());
        }
        sched.serve(&supervisor.needs).map_err(|why| *refused(why))?;
        let mut engine = Self {
            events: Events::new(cores.len()),
            cores,
            record: Record::new(trace, &sched),
            sched,
            threads: Threads::default(),
            apps: Apps::new(options.repetitions),
            objects: Objects::default(),
            speeds: Speeds::new(machine, supervisor.needs.stalls),
            clocks: Clocks::new(machine),
            contention: Contention::new(machine),
            meters: None,
            realtime: None,
            governing: None,
            noisy: None,
            handovers: machine.has_handovers().then(Box::default),
            idling: Idling::new(machine),
            progress: Progress::default(),
            acts: Vec::new(),
            asked: Asked::default(),
            spin_profile: 0,
            stated_groups: Vec::new(),
            supervisor,
            setup,
        };
        if workload.apps.iter().any(|app| app.program.classes().any(SchedClass::is_above)) {
            engine.realtime = Some(Box::new(RealTime::new(engine.cores.len())));
        }
        for app in &workload.apps {
            engine.setup.check_end(app)?;
            engine.setup.check_app(app, &engine.sched)?;
            let objects = engine.objects.add(app)?;
            engine.check_calibration(app)?;
            let machine = &engine.setup.machine;
            let kind = machine.calibrated(&app.program.calibration);
            let profiles = engine.speeds.add(machine, &app.program.profiles, kind);
            engine.supervisor.add_profiles(&app.program.profiles, &engine.setup.machine);
            let groups = engine.add_groups(&app.program.groups)?;
            let app = engine.apps.add(app, engine.setup.options.seed, objects, profiles);
            engine.apps.set_groups(app, groups);
            engine.begin(app);
        }
        engine.add_spinning();
        engine.hold_bounds();
        engine.schedule_periodic();
        engine.tell_clocks();
        engine.start_meters()?;
        engine.start_governors()?;
        engine.start_noise();
        Ok(engine)
    }

    /// How threads behave that spin: like rt-app's busy loop, which computes and never waits for memory.
    fn add_spinning(&mut self) {
        if self.objects.have_spinners() {
            let busy = [run_loop()];
            let machine = &self.setup.machine;
            self.spin_profile = self.speeds.add(machine, &busy, machine.fastest());
            self.supervisor.add_profiles(&busy, &self.setup.machine);
        }
    }

    fn run(&mut self) -> Fallible {
        while !self.apps.are_done() {
            let due = self.events.first();
            if self.is_stuck() {
                return Err(self.deadlock(None).into());
            }
            if due.at_ns > self.events.now_ns() {
                if self.settle_contention() {
                    continue;
                }
                if self.is_over(due)? {
                    break;
                }
            }
            self.events.go_on(due.at_ns);
            if self.events.count() {
                self.pause(due)?;
            }
            if due.is_event {
                let event = self.events.take();
                self.handle(event)?;
                self.events.handled();
            } else {
                self.on_core_timer(due.core)?;
            }
            self.let_governors_look();
        }
        self.account_all();
        self.settle_meters();
        Ok(())
    }

    /// Whether nothing can happen to any thread any more.
    #[inline]
    fn is_stuck(&self) -> bool {
        self.threads.runnable == 0 && self.threads.held == 0 && !self.events.may_move_threads()
    }

    /// Before time goes on: whether the simulation is to stop instead.
    #[inline]
    fn is_over(&mut self, due: Due) -> Fallible<bool> {
        if due.at_ns > self.setup.stop_ns() {
            return self.stop(due);
        }
        if self.setup.options.check {
            self.check_invariants()?;
        }
        Ok(false)
    }

    #[cold]
    fn stop(&mut self, due: Due) -> Fallible<bool> {
        let options = &self.setup.options;
        match options.until_ns.filter(|&until_ns| due.at_ns > until_ns) {
            Some(until_ns) => {
                self.events.go_on(until_ns);
                Ok(true)
            }
            None => {
                let outlasted = self.outlasted(|run| run.completions_ns.len() >= VERY_OFTEN);
                let limit_ns = options.limit_ns;
                Err(outlasted.unwrap_or(SimError::TimeLimit { limit_ns }).into())
            }
        }
    }

    /// Now and then: whether it should go on at all.
    #[cold]
    fn pause(&mut self, due: Due) -> Fallible {
        if self.setup.options.interrupt.is_wanted() {
            return Err(SimError::Interrupted.into());
        }
        if self.events.pause() >= EVENT_LIMIT {
            return Err(self.no_progress(due));
        }
        self.check_progress()
    }

    /// Threads that yield to each other for ever use no time: say so instead of hanging.
    fn no_progress(&self, due: Due) -> Box<SimError> {
        let running = self.sched.current(due.core);
        let thread = running.map_or("(none)".into(), |thread| self.thread_name(thread));
        SimError::NoProgress { thread, steps: EVENT_LIMIT, at_ns: due.at_ns }.into()
    }

    fn handle(&mut self, event: SimEvent) -> Fallible {
        match event {
            SimEvent::AppStart(app) => self.start_app(app),
            SimEvent::ThreadStart(app, repetition, spec, instance) => {
                if !self.apps.starts(app, repetition, spec) {
                    return Ok(());
                }
                self.create_thread(app, spec, instance, None)
            }
            SimEvent::AppStop(app, repetition) => {
                if !self.apps.goes_on(app, repetition) {
                    return Ok(());
                }
                self.stop_app(app)
            }
            SimEvent::Wake(thread) => self.wake(thread, None),
            SimEvent::IoDone(device, thread) => self.end_io(device, thread),
            SimEvent::IoBack(thread) => self.come_back(thread),
            SimEvent::Epoch => self.epoch(),
            SimEvent::Balance => {
                self.balance();
                Ok(())
            }
            SimEvent::Tick => {
                self.tick();
                Ok(())
            }
            SimEvent::Deepen(core, stay) => {
                self.deepen(core, stay);
                Ok(())
            }
            SimEvent::ThermalStep => self.thermal_step(),
            SimEvent::PowerSample(cluster) => {
                self.sample_power(cluster);
                Ok(())
            }
            SimEvent::PowerLimit => {
                self.check_budget();
                Ok(())
            }
            SimEvent::Noise(core, source) => self.make_noise(core, source),
            SimEvent::Frequency(cluster, request) => {
                self.finish_transition(cluster, request);
                Ok(())
            }
            SimEvent::Replenish(thread, throttling) => {
                self.replenish(thread, throttling);
                Ok(())
            }
            SimEvent::FairServer(core, plan) => self.fair_server(core, plan),
            SimEvent::GovernorTimer(cluster, look) => {
                self.governor_timer(cluster, look);
                Ok(())
            }
        }
    }

    /// A thread's name for the user, its application's before it.
    fn thread_name(&self, thread: ThreadId) -> String {
        let entry = &self.threads[thread];
        format!("{}/{}", self.apps[entry.app].name, entry.name)
    }
}
