//! The back end: a policy's fast plane in the kernel, its slow plane here, epoch by epoch.

mod load_and_clocks;

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::process::Command;

use ampsched_computer::{CoreMap, Proc, Root, ThreadKey, format_cpus, online_cpus};
use ampsched_live_driver::{Decision, Driver, Observation, crashes_verifier, lacks_clocks};
use ampsched_live_factors::{SensorSurvey, Sensors};
use ampsched_live_session::{
    Account, Backend, Clocks, End, Journal, Means, Observed, Outcome, PutBack, Scheduled, Session,
    Setup, read_sensors,
};
use ampsched_model::{CoreId, InputError, Ns, ThreadId};
use ampsched_policy::PELT_UNIT_NS;

use crate::class::{self, Chosen, Touch};
use crate::kernel::{Exit, Kernel, Options, Scope, hotplug_seq, monotonic_ns, threads_in_arena};
use crate::latencies::{Latencies, Latency, LatencyOutcome};
use crate::layout::{Operation, Set, Thread};
use crate::members::{Members, Span};
use crate::table::Cores;
use crate::{ScxError, lower, recording, table};

/// After how long without being run a runnable thread ends the scheduler (ours; the kernel allows up to 30 s).
const TIMEOUT_MS: u32 = 10_000;
/// After how long without a sign of life of the policy the scheduler ends (ours).
const EPOCH_LIMIT_NS: Ns = 5_000_000_000;
/// How often a session of a policy without a slow plane looks (ours): several times per `status --watch`.
const WATCH_NS: Ns = 250_000_000;
/// A policy's fast plane, with what a session needs of it.
pub trait KernelPlane: Sized {
    /// Loads the policy of a session.
    ///
    /// # Errors
    ///
    /// The policy or the system does not let it.
    fn load(session: &Session) -> Result<Self, InputError>;

    /// The threads that have changed since the last time ([`Kernel::read_changed`]).
    fn read_changed(&mut self, changed: &mut Vec<(u32, Thread)>);

    /// What its cores and queues do.
    fn read_cores(&mut self, cores: &mut Cores);

    /// Wake-up latencies since the last time ([`Kernel::read_latencies`]).
    fn read_latencies(&mut self, latencies: &mut Vec<Latency>) {
        latencies.clear();
    }

    /// How many of them are missing.
    fn latencies_lost(&self) -> u64 {
        0
    }

    /// Its time, in ns.
    fn clock_ns(&self) -> Ns {
        monotonic_ns()
    }

    /// Carries out changes of the plan ([`Kernel::apply`]).
    ///
    /// # Errors
    ///
    /// Nothing can be carried out any more.
    fn apply(&mut self, operations: &mut [Operation]) -> Result<(), ScxError>;

    /// Tells it that the slow plane is alive.
    fn sign_of_life(&mut self) {}

    /// Why it has ended; none while it runs.
    fn exit(&self) -> Option<Exit> {
        None
    }
}

impl KernelPlane for Kernel {
    fn load(session: &Session) -> Result<Self, InputError> {
        load(session)
    }

    fn read_changed(&mut self, changed: &mut Vec<(u32, Thread)>) {
        Self::read_changed(self, changed);
    }

    fn read_cores(&mut self, cores: &mut Cores) {
        Self::read_cores(self, cores);
    }

    fn read_latencies(&mut self, latencies: &mut Vec<Latency>) {
        Self::read_latencies(self, latencies);
    }

    fn latencies_lost(&self) -> u64 {
        Self::latencies_lost(self)
    }

    fn apply(&mut self, operations: &mut [Operation]) -> Result<(), ScxError> {
        Self::apply(self, operations)
    }

    fn sign_of_life(&mut self) {
        Self::sign_of_life(self);
    }

    fn exit(&self) -> Option<Exit> {
        Self::exit(self)
    }
}

/// A policy inside this computer's kernel.
pub struct Scx<K = Kernel> {
    /// None while it is loaded anew.
    kernel: Option<K>,
    members: Members,
    latencies: Latencies,
    /// What cores and queues did at the last look.
    cores: Cores,
    /// Room for the threads that have changed.
    changed: Vec<(u32, Thread)>,
    /// The kernel's time of the last look.
    looked_ns: Ns,
    /// Threads under the extensible class; none if everything is scheduled.
    chosen: Option<Chosen>,
    clocks: Clocks,
    sensors: Sensors,
    has_power_of_clusters: bool,
    /// What is touched: classes of threads, and clocks.
    journal: Journal<Touch>,
    /// Whether there was anybody to schedule when threads were looked for.
    found_some: bool,
}

/// What it has done, for the results.
#[derive(Clone, Debug, serde::Serialize)]
pub struct ScxOutcome {
    /// Time that threads ran on each core, in s, in the order of the cores.
    pub busy_s: Vec<f64>,
    /// Times that a thread was queued.
    pub queued: u64,
    /// Wake-up latencies, in the same words as the simulator's.
    pub latency: LatencyOutcome,
}

impl Outcome for ScxOutcome {
    fn words(&self) -> Option<String> {
        Some(format!("queued {} times; {}", self.queued, self.latency.in_words()))
    }
}

/// Who runs, who waits and for how long is the kernel's word, not the mirror's.
impl<K: KernelPlane> Observed for Scx<K> {
    fn scheduled(&self) -> impl Iterator<Item = Scheduled<'_>> {
        self.members.all()
    }

    fn changed(&self) -> impl Iterator<Item = Scheduled<'_>> {
        self.members.changed()
    }

    fn running(&self, _session: &Session, core: CoreId) -> Option<ThreadId> {
        self.members.thread_in(self.cores.cores[core.index()].running)
    }

    fn waiting(&self, _session: &Session, core: CoreId) -> usize {
        let queue = self.cores.cores[core.index()].queue as usize;
        self.cores.queues.get(queue).map_or(0, |queue| queue.len as usize)
    }

    fn busy_ns(&self, _session: &Session, core: CoreId) -> Ns {
        self.cores.cores[core.index()].busy_ns
    }

    fn account(&self) -> Account {
        Account {
            freezer: "the scheduler itself",
            tells_blame: true,
            has_power_of_clusters: self.has_power_of_clusters,
            energy: self.sensors.energy(),
            losses: Vec::new(),
        }
    }
}

impl<K: KernelPlane> Backend for Scx<K> {
    const NAME: &'static str = "scx";
    const PROGRAM: &'static str = "ampsched-live-scx";
    /// A session that gives no sign of life is ended, so its looks must not become rare.
    const CPU_SHARE_MAX: f64 = 1.0;
    type Outcome = ScxOutcome;
    type Touch = Touch;

    fn check(setup: &Setup) -> Result<(), InputError> {
        if setup.settings.backend == Means::Daemon {
            return Err(InputError::new("--backend", "", "daemon is what ampsched-live does"));
        }
        online(&Root::default(), &setup.cores).map(|_| ())
    }

    fn start(session: &mut Session, mut journal: Journal<Touch>) -> Result<Self, InputError> {
        let root = Root::default();
        let survey = SensorSurvey::make(&root, &session.cores)?;
        session.driver.leave_rules_to_back_end();
        let mut kernel = K::load(session)?;
        let everything = session.settings.scope.everything;
        let chosen = (!everything).then(|| Chosen::begin(&mut journal)).transpose();
        let chosen = chosen.map_err(|error| InputError::new("journal", "", error.to_string()))?;
        let mut cores = Cores::default();
        kernel.read_cores(&mut cores);
        Ok(Self {
            looked_ns: kernel.clock_ns(),
            kernel: Some(kernel),
            members: Members::default(),
            latencies: Latencies::default(),
            cores,
            changed: Vec::new(),
            chosen,
            clocks: Clocks::new(root.clone()),
            has_power_of_clusters: survey.has_power_of_clusters(),
            sensors: Sensors::new(root, &survey),
            journal,
            found_some: true,
        })
    }

    /// It starts under the kernel's extensible class, which all that it starts inherit.
    #[allow(unsafe_code)] // Between fork and exec.
    fn prepare(&self, command: &mut Command) -> Result<(), InputError> {
        // SAFETY: a single system call.
        unsafe { command.pre_exec(class::choose_own) };
        Ok(())
    }

    fn sign_of_life(&mut self) {
        if let Some(kernel) = &mut self.kernel {
            kernel.sign_of_life();
        }
    }

    fn look(&mut self, session: &mut Session, now_ns: Ns) -> Vec<Observation> {
        self.take_in(session, now_ns);
        let Some(kernel) = &mut self.kernel else { return Vec::new() };
        let from_ns = std::mem::replace(&mut self.looked_ns, kernel.clock_ns());
        kernel.read_cores(&mut self.cores);
        kernel.read_changed(&mut self.changed);
        let span = Span { from_ns, to_ns: self.looked_ns, now_ns };
        let alive = || kernel.sign_of_life();
        let observations = self.members.look(session, &self.changed, span, alive);
        self.latencies.take(kernel);
        self.latencies.name(self.members.changed());
        self.tell_loads(session);
        observations
    }

    fn read_sensors(&mut self, driver: &mut Driver, now_ns: Ns) {
        read_sensors(&mut self.sensors, driver, now_ns);
    }

    fn carry_out(
        &mut self,
        session: &mut Session,
        decisions: &[Decision],
    ) -> Result<(), InputError> {
        let mut operations = self.members.operations(decisions);
        operations.extend(self.set_clocks(session, decisions));
        match &mut self.kernel {
            Some(kernel) if !operations.is_empty() => {
                kernel.apply(&mut operations).map_err(in_words)
            }
            _ => Ok(()),
        }
    }

    fn period_ns(&self, session: &Session) -> Ns {
        let needs = session.driver.needs();
        match needs.epoch_ns.is_none() && !needs.events.lifecycle {
            // The kernel does all that such a policy says; a look is for those who watch.
            true => WATCH_NS,
            false => session.driver.look_period_ns(),
        }
    }

    fn has_threads(&self) -> bool {
        self.found_some
    }

    fn end(&self) -> Option<End> {
        let exit = self.kernel.as_ref()?.exit()?;
        let Exit { reason, message, .. } = &exit;
        let why = format!("the kernel has ended the scheduler: {reason}: {message}");
        Some(End { why, can_restart: exit.asks_for_restart() })
    }

    fn restart(&mut self, session: &mut Session) -> Result<(), InputError> {
        if let Some(kernel) = &mut self.kernel {
            self.latencies.leave(kernel);
        }
        self.members.begin_anew();
        // The kernel has one scheduler at a time.
        self.kernel = None;
        self.kernel = Some(K::load(session)?);
        Ok(())
    }

    /// The kernel's own scheduler takes over.
    fn finish(mut self, session: &mut Session) -> ScxOutcome {
        if let Some(mut kernel) = self.kernel.take() {
            kernel.read_cores(&mut self.cores);
            self.latencies.leave(&mut kernel);
        }
        let busy_s = |core| self.busy_ns(session, core) as f64 / 1e9;
        ScxOutcome {
            busy_s: session.cores.topology().cores().map(busy_s).collect(),
            queued: self.cores.queues.iter().map(|queue| queue.serial).sum(),
            latency: self.latencies.summary(),
        }
    }

    fn journal(&mut self) -> Option<&mut Journal<Touch>> {
        Some(&mut self.journal)
    }

    fn outstanding(touches: Vec<Touch>) -> Vec<Touch> {
        class::outstanding(touches, &Proc::default())
    }

    /// A thread that is left in the class would count as one that was there before.
    fn concerns(touches: &[Touch], _threads: &BTreeSet<ThreadKey>) -> bool {
        touches.contains(&Touch::Choosing)
    }

    fn put_back(touches: &[Touch]) -> PutBack {
        let (clocks, mut failures) = class::put_clocks_back(touches, &Root::default());
        let classes = class::put_back(touches);
        failures.extend(classes.failures);
        let what = match clocks {
            0 => classes.what,
            _ => format!("{}, {clocks} settings of clocks", classes.what),
        };
        PutBack { what, failures }
    }
}

impl<K: KernelPlane> Scx<K> {
    /// The fast plane; none while it is loaded anew.
    pub fn fast_plane(&mut self) -> Option<&mut K> {
        self.kernel.as_mut()
    }

    /// Puts threads under the extensible class that run already, or were started by such.
    fn take_in(&mut self, session: &mut Session, now_ns: Ns) {
        let Some(chosen) = &self.chosen else { return };
        if !session.is_of_others() {
            return;
        }
        let Some(found) = session.find(now_ns) else { return };
        for thread in &found {
            // Kernel threads and threads that have just ended cannot be chosen, which is no failure.
            const NO_FAILURE: [i32; 3] = [libc::EPERM, libc::EINVAL, libc::ESRCH];
            let Err(error) = chosen.take_in(thread, &mut self.journal) else { continue };
            if !error.raw_os_error().is_some_and(|code| NO_FAILURE.contains(&code)) {
                session.note("scheduling classes of threads", &error);
            }
        }
        self.found_some = !found.is_empty();
    }
}

/// Loads the policy for those of the cores that are online.
fn load(session: &Session) -> Result<Kernel, InputError> {
    let (driver, cores) = (&session.driver, &session.cores);
    let (rules, topology) = (driver.rules(), cores.topology());
    let options = Options {
        scope: if session.settings.scope.everything { Scope::All } else { Scope::Chosen },
        cpus: topology.cores().map(|core| cores.cpu(core) as u32).collect(),
        hotplug_seq: hotplug_seq(),
        timeout_ms: TIMEOUT_MS,
        epoch_limit_ns: EPOCH_LIMIT_NS,
    };
    let online = online(&Root::default(), cores)?;
    let release = Root::default().text("/proc/sys/kernel/osrelease").unwrap_or_default();
    if let Some(lack) = crashes_verifier(&rules, &release) {
        let why = format!("it {}: {}", lack.what, lack.instead);
        return Err(in_words(ScxError::Refused { policy: session.name.clone(), why }));
    }
    let mut unmet = session.instruments.unmet(driver.needs());
    let lacks = lacks_clocks(topology, &session.capabilities, session.settings.allow_dvfs);
    if let Some(why) = lacks.filter(|_| unmet.frequencies) {
        let why = format!("it sets the clocks of clusters: {why}");
        return Err(in_words(ScxError::Refused { policy: session.name.clone(), why }));
    }
    unmet.frequencies = false;
    let lowered = lower::rules(&session.name, &unmet, &rules, topology).map_err(in_words)?;
    let mut initial = lower::state(lowered, &rules, topology, threads_max(&Root::default()));
    initial.slots = table::slots_beside_state();
    lower::take_offline(&mut initial, &rules, online);
    if let Some(how) = driver.needs().load_tracking {
        lower::track_load(&mut initial, how, topology, load_unit_ns(driver));
    }
    let recording = recording::begin(session)?;
    initial.records_max = if recording.is_some() { recording::ROOM } else { 0 };
    Kernel::load(&initial, &rules, &options, driver.needs().blame, recording).map_err(in_words)
}

/// The unit of time in which load is tracked, in ns.
fn load_unit_ns(driver: &Driver) -> Ns {
    driver.dilation().to_real(PELT_UNIT_NS).max(1)
}

/// How many threads the kernel allows at a time, as far as an arena has room for them.
fn threads_max(root: &Root) -> u32 {
    let limit = |name| root.number(&format!("/proc/sys/kernel/{name}"));
    let limits = ["pid_max", "threads-max"].iter().filter_map(|name| limit(name).ok()?);
    limits.fold(threads_in_arena().into(), u64::min) as u32
}

/// The cores whose CPUs are online. Errors: a CPU is in none of the stated classes, but the kernel has one
/// scheduler for all.
fn online(root: &Root, cores: &CoreMap) -> Result<Set, InputError> {
    let cpus = online_cpus(root)?;
    let outside = cpus.iter().copied().filter(|&cpu| cores.core(cpu).is_none());
    let outside = format_cpus(outside);
    if !outside.is_empty() {
        let message = format!("CPUs {outside} are online and in no class");
        let hint = "in the kernel a policy schedules every CPU: name all with --big, --middle and --little";
        return Err(InputError::new("cores", "", message).with_hint(hint));
    }
    Ok(cores.core_set(&cpus).iter().collect())
}

fn in_words(error: ScxError) -> InputError {
    InputError::new("scx", "", error.to_string())
}
