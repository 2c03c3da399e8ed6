//! The back end: a policy's fast plane in the kernel, its slow plane here, epoch by epoch.

use std::collections::{BTreeSet, HashMap};
use std::os::unix::process::CommandExt;
use std::process::Command;

use ampsched_computer::{CoreMap, Proc, Root, ThreadKey, format_cpus, online_cpus};
use ampsched_live_driver::{Decision, Observation, crashes_verifier};
use ampsched_live_session::{
    Account, Backend, End, Journal, Means, Observed, Outcome, PutBack, Scheduled, Session, Setup,
};
use ampsched_model::{AppId, CoreId, CoreSet, InputError, Ns, ThreadId};
use ampsched_policy::{Choice, RunState, Source};

use crate::class::{self, Chosen, Touch};
use crate::kernel::{Exit, Kernel, Options, Scope};
use crate::layout::{Operation, Sched, Thread};
use crate::{ScxError, lower};

/// Most threads at a time (ours): half of what Linux allows by default (`pid_max` is 32,768).
const THREADS_MAX: u32 = 16_384;
/// After how long without being run a runnable thread ends the scheduler (ours; the kernel allows up to 30 s).
const TIMEOUT_MS: u32 = 10_000;
/// After how long without a sign of life of the policy the scheduler ends (ours).
const EPOCH_LIMIT_NS: Ns = 5_000_000_000;
/// How often a session of a policy without a slow plane looks (ours): several times per `status --watch`.
const WATCH_NS: Ns = 250_000_000;
/// How often the names, programs and groups of threads are read that have not executed another program (ours).
const NAMES_NS: Ns = 1_000_000_000;

/// What is known of a thread in a slot of the kernel's table.
struct Member {
    /// Who of those that have had the slot.
    generation: u32,
    /// Whether it was seen for the first time at the last look.
    is_new: bool,
    thread: ThreadId,
    app: AppId,
    /// The process group that is its application.
    group: i32,
    tid: u32,
    process: u32,
    program: String,
    /// Its name, which it may change any time.
    name: String,
    /// Programs that its process had executed when `program` was looked up.
    execs: u32,
    /// The CPU on which it runs, waits or last ran.
    cpu: usize,
    /// Counters at the last look.
    run_ns: Ns,
    ready_ns: Ns,
    blame_ns: Ns,
}

impl Member {
    /// Whether it may be another than it was: who has just been forked soon gets a process group and a program.
    fn may_be_another(&self, seen: &Thread) -> bool {
        self.is_new || self.execs != seen.execs || self.program.is_empty()
    }

    /// Looks up its name, its program and its application, which it may change any time.
    fn identify(&mut self, session: &mut Session, proc: &Proc, seen: &Thread) {
        let Some(stat) = proc.stat(seen.process as i32, seen.pid as i32) else { return };
        self.name = stat.name;
        if self.group != stat.group {
            (self.group, self.app) = (stat.group, session.regroup(self.thread, stat.group));
        }
        // For a moment a process that executes a program has no command line; then it is asked again.
        let program = program(proc, seen.process);
        if !program.is_empty() {
            (self.execs, self.program) = (seen.execs, program);
        }
    }
}

/// A policy's fast plane, with what a session needs of it.
pub trait FastPlane: Sized {
    /// Loads the policy of a session.
    ///
    /// # Errors
    ///
    /// The policy or the system does not let it.
    fn load(session: &Session) -> Result<Self, InputError>;

    /// A copy of its table but for threads ([`Kernel::state`]).
    fn state(&self) -> Sched;

    /// A copy of its threads ([`Kernel::threads`]).
    fn threads(&self) -> Vec<Thread>;

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

impl FastPlane for Kernel {
    fn load(session: &Session) -> Result<Self, InputError> {
        load(session)
    }

    fn state(&self) -> Sched {
        Self::state(self)
    }

    fn threads(&self) -> Vec<Thread> {
        Self::threads(self)
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
    proc: Proc,
    /// By slot.
    members: Vec<Option<Member>>,
    /// The kernel's table but for threads, as of the last look.
    seen: Box<Sched>,
    /// Threads under the extensible class; none if everything is scheduled.
    chosen: Option<Chosen>,
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
}

impl Outcome for ScxOutcome {
    fn words(&self) -> Option<String> {
        Some(format!("queued {} times", self.queued))
    }
}

/// Who runs, who waits and for how long is the kernel's word, not the mirror's.
impl<K: FastPlane> Observed for Scx<K> {
    fn scheduled(&self) -> impl Iterator<Item = Scheduled<'_>> {
        self.members.iter().flatten().map(|member| Scheduled {
            tid: member.tid as i32,
            pid: member.process as i32,
            thread: member.thread,
            app: member.app,
            program: &member.program,
            name: &member.name,
            cpu: member.cpu,
            blame_ns: Some(member.blame_ns),
        })
    }

    fn running(&self, _session: &Session, core: CoreId) -> Option<ThreadId> {
        let slot = self.seen.cores[core.index()].running as usize;
        self.members.get(slot)?.as_ref().map(|member| member.thread)
    }

    fn waiting(&self, _session: &Session, core: CoreId) -> usize {
        let queue = self.seen.cores[core.index()].queue as usize;
        self.seen.queues.get(queue).map_or(0, |queue| queue.len as usize)
    }

    fn busy_ns(&self, _session: &Session, core: CoreId) -> Ns {
        self.seen.cores[core.index()].busy_ns
    }

    fn account(&self) -> Account {
        Account {
            freezer: "the scheduler itself",
            tells_blame: true,
            has_power_of_clusters: false,
            energy: Vec::new(),
            losses: Vec::new(),
        }
    }
}

impl<K: FastPlane> Backend for Scx<K> {
    const NAME: &'static str = "scx";
    const PROGRAM: &'static str = "ampsched-live-scx";
    /// Whoever gives no sign of life is ended, so that its looks must not become rare.
    const CPU_SHARE_MAX: f64 = 1.0;
    type Outcome = ScxOutcome;
    type Touch = Touch;

    fn check(setup: &Setup) -> Result<(), InputError> {
        if setup.settings.backend == Means::Daemon {
            return Err(InputError::new("--backend", "", "daemon is what ampsched-live does"));
        }
        online(&Root::default(), &setup.cores).map(|_| ())
    }

    fn start(session: &mut Session, journal: Journal<Touch>) -> Result<Self, InputError> {
        let kernel = K::load(session)?;
        let everything = session.settings.scope.everything;
        let chosen = (!everything).then(|| Chosen::begin(journal)).transpose();
        let chosen = chosen.map_err(|error| InputError::new("journal", "", error.to_string()))?;
        Ok(Self {
            seen: Box::new(kernel.state()),
            kernel: Some(kernel),
            proc: Proc::default(),
            members: Vec::new(),
            chosen,
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
        let Some(kernel) = &self.kernel else { return Vec::new() };
        *self.seen = kernel.state();
        let threads = kernel.threads();
        let names_are_due = now_ns / NAMES_NS != session.looked_ns() / NAMES_NS;
        self.members.resize_with(threads.len(), || None);
        let mut observations = Vec::with_capacity(threads.len());
        for (slot, seen) in threads.iter().enumerate() {
            let known = self.members[slot].as_ref();
            if known.is_some_and(|member| seen.in_use == 0 || member.generation != seen.generation)
            {
                let gone = self.members[slot].take().expect("it is known");
                observations.push(exited(&gone, session, now_ns));
            }
            if seen.in_use == 0 {
                continue;
            }
            if self.members[slot].is_none() {
                self.members[slot] = Some(self.welcome(session, seen, now_ns));
            } else if let Some(member) = &mut self.members[slot] {
                if names_are_due || member.may_be_another(seen) {
                    member.identify(session, &self.proc, seen);
                }
                member.is_new = false;
            }
            let member = self.members[slot].as_mut().expect("it is known or welcome");
            observations.push(observation(member, session, seen, now_ns));
        }
        observations
    }

    fn carry_out(
        &mut self,
        _session: &mut Session,
        decisions: &[Decision],
    ) -> Result<(), InputError> {
        let slots: HashMap<ThreadId, (u32, u32)> = self
            .members
            .iter()
            .enumerate()
            .filter_map(|(slot, member)| {
                let member = member.as_ref()?;
                Some((member.thread, (slot as u32, member.generation)))
            })
            .collect();
        let mut operations = Vec::new();
        for decision in decisions {
            // Policies that set clocks are refused, so there are no others.
            let Decision::Thread(thread, change) = decision else { continue };
            let Some(&(slot, generation)) = slots.get(thread) else { continue };
            let lowered = lower::change(slot, change).into_iter();
            operations.extend(lowered.map(|operation| Operation { generation, ..operation }));
        }
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
        self.members.clear();
        // The kernel has one scheduler at a time.
        self.kernel = None;
        self.kernel = Some(K::load(session)?);
        Ok(())
    }

    /// The kernel's own scheduler takes over.
    fn finish(mut self, session: &mut Session) -> ScxOutcome {
        if let Some(kernel) = self.kernel.take() {
            *self.seen = kernel.state();
        }
        let busy_s = |core| self.busy_ns(session, core) as f64 / 1e9;
        ScxOutcome {
            busy_s: session.cores.topology().cores().map(busy_s).collect(),
            queued: self.seen.serial,
        }
    }

    fn journal(&mut self) -> Option<&mut Journal<Touch>> {
        self.chosen.as_mut().map(Chosen::journal)
    }

    fn mattering(touches: Vec<Touch>) -> Vec<Touch> {
        class::mattering(touches, &Proc::default())
    }

    /// Whoever is left in the class would count as one that was there before.
    fn concerns(touches: &[Touch], _threads: &BTreeSet<ThreadKey>) -> bool {
        touches.contains(&Touch::Choosing)
    }

    fn put_back(touches: &[Touch]) -> PutBack {
        class::put_back(touches)
    }
}

impl<K: FastPlane> Scx<K> {
    /// The fast plane; none while it is loaded anew.
    pub fn fast_plane(&mut self) -> Option<&mut K> {
        self.kernel.as_mut()
    }

    /// Puts threads under the extensible class that run already, or were started by such.
    fn take_in(&mut self, session: &mut Session, now_ns: Ns) {
        let Some(chosen) = &mut self.chosen else { return };
        if !session.is_of_others() {
            return;
        }
        let Some(found) = session.find(now_ns) else { return };
        for thread in &found {
            // Kernel threads and threads that have just ended cannot be chosen, which is no failure.
            const NO_FAILURE: [i32; 3] = [libc::EPERM, libc::EINVAL, libc::ESRCH];
            if let Err(error) = chosen.take_in(thread)
                && !error.raw_os_error().is_some_and(|code| NO_FAILURE.contains(&code))
            {
                session.note("scheduling classes of threads", &error);
            }
        }
        self.found_some = !found.is_empty();
    }

    fn welcome(&self, session: &mut Session, seen: &Thread, now_ns: Ns) -> Member {
        let pid = seen.process as i32;
        let stat = self.proc.stat(pid, seen.pid as i32);
        let group = stat.as_ref().map_or(pid, |stat| stat.group);
        let allowed: CoreSet = (0..session.cores.topology().core_count())
            .filter(|core| seen.user_affinity >> core & 1 == 1)
            .map(CoreId::from)
            .collect();
        let (thread, app) = session.add(seen.pid as i32, group, seen.weight, &allowed, now_ns);
        Member {
            generation: seen.generation,
            is_new: true,
            thread,
            app,
            group,
            tid: seen.pid,
            process: seen.process,
            program: program(&self.proc, seen.process),
            name: stat.map_or_else(String::new, |stat| stat.name),
            execs: seen.execs,
            cpu: 0,
            run_ns: 0,
            ready_ns: 0,
            blame_ns: 0,
        }
    }
}

/// Loads the policy for those of the cores that are online.
fn load(session: &Session) -> Result<Kernel, InputError> {
    let (driver, cores) = (&session.driver, &session.cores);
    let (rules, topology) = (driver.rules(), cores.topology());
    let options = Options {
        scope: if session.settings.scope.everything { Scope::All } else { Scope::Chosen },
        cpus: topology.cores().map(|core| cores.cpu(core) as u32).collect(),
        online: online(&Root::default(), cores)?,
        timeout_ms: TIMEOUT_MS,
        epoch_limit_ns: EPOCH_LIMIT_NS,
    };
    let release = Root::default().text("/proc/sys/kernel/osrelease").unwrap_or_default();
    if let Some(lack) = crashes_verifier(&rules, &release) {
        let why = format!("it {}: {}", lack.what, lack.instead);
        return Err(in_words(ScxError::Refused { policy: session.name.clone(), why }));
    }
    let unmet = session.instruments.unmet(driver.needs());
    let lowered = lower::rules(&session.name, &unmet, &rules, topology).map_err(in_words)?;
    let mut initial = lower::state(lowered, &rules, topology, THREADS_MAX);
    initial.online = options.online;
    Kernel::load(initial, &rules, &options, driver.needs().blame).map_err(in_words)
}

/// The cores whose CPUs are online, as a word. Errors: a CPU is in none of the stated classes, but the kernel has one
/// scheduler for all.
fn online(root: &Root, cores: &CoreMap) -> Result<u64, InputError> {
    let cpus = online_cpus(root)?;
    let outside = cpus.iter().copied().filter(|&cpu| cores.core(cpu).is_none());
    let outside = format_cpus(outside);
    if !outside.is_empty() {
        let message = format!("CPUs {outside} are online and in no class");
        let hint = "in the kernel a policy schedules every CPU: name all with --big, --middle and --little";
        return Err(InputError::new("cores", "", message).with_hint(hint));
    }
    Ok(cores.core_set(&cpus).iter().fold(0, |word, core| word | 1 << core.index()))
}

/// The last part of the path of the program that a process executes, as it was started.
fn program(proc: &Proc, process: u32) -> String {
    let command = proc.command(process as i32);
    let path = command.first().map_or("", String::as_str);
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

/// What a thread does and has used since the last look.
fn observation(
    member: &mut Member,
    session: &mut Session,
    seen: &Thread,
    now_ns: Ns,
) -> Observation {
    let core = CoreId(seen.core as u16);
    let run_ns = seen.run_ns.iter().sum();
    let since = |now: Ns, before: &mut Ns| now.saturating_sub(std::mem::replace(before, now));
    member.cpu = session.cores.cpu(core);
    Observation {
        thread: member.thread,
        state: seen_state(seen.state),
        core,
        ran_ns: since(run_ns, &mut member.run_ns),
        waited_ns: since(seen.ready_ns, &mut member.ready_ns),
        instructions: session.count(member.tid as i32, core, now_ns),
        blame_ns: since(seen.blame_ns, &mut member.blame_ns),
    }
}

/// The state of a number in the kernel's table; a thread that has not started yet is blocked until it is seen.
fn seen_state(number: u32) -> RunState {
    match RunState::from_number(number, &mut Source::defaults()) {
        RunState::New => RunState::Blocked,
        state => state,
    }
}

/// The end of a thread, which is counted no longer.
fn exited(member: &Member, session: &mut Session, now_ns: Ns) -> Observation {
    let (tid, core) = (member.tid as i32, session.driver.sched().thread(member.thread).core);
    let instructions = session.count(tid, core, now_ns);
    session.instruments.forget(tid);
    Observation {
        thread: member.thread,
        state: RunState::Exited,
        core,
        ran_ns: 0,
        waited_ns: 0,
        instructions,
        blame_ns: 0,
    }
}

fn in_words(error: ScxError) -> InputError {
    InputError::new("scx", "", error.to_string())
}
