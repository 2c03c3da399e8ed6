//! A running session: the policy, its mirror of the system, and what is known of the threads.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;

use ampsched_computer::{Capabilities, CoreMap, Proc, Root, ThreadStat};
use ampsched_live_driver::{Decision, Demand, Driver, Facts};
use ampsched_live_factors::Instruments;
use ampsched_model::{AppId, CoreId, CoreSet, InputError, Ns, ThreadId};
use ampsched_policy::{Factor, FactorKind, Refusal};
use rustix::io::Errno;

use crate::claims::{Claims, Taken};
use crate::own::{Own, cpu_time};
use crate::paths::Paths;
use crate::{Backend, Scope, Settings, Setup};

/// How often new threads are looked for, if looks are more frequent: a search reads several files per process (ours).
const SEARCH_NS: Ns = 50_000_000;
/// Number of the process whose children are kernel threads.
const KTHREADD: i32 = 2;
/// What failures of counters are called.
const COUNTERS: &str = "counters";

/// A running session, whatever its means.
pub struct Session {
    /// What is wanted.
    pub settings: Settings,
    /// The policy's name.
    pub name: String,
    /// The machine.
    pub cores: CoreMap,
    /// What the kernel offers.
    pub capabilities: Capabilities,
    /// The policy and its mirror.
    pub driver: Driver,
    /// Counters of the threads.
    pub instruments: Instruments,
    /// What was measured of programs beforehand.
    pub(crate) facts: Facts,
    /// What runtimes tell of their tasks, if the policy asks.
    paths: Option<Paths>,
    /// What the policy asks for and does not get.
    pub(crate) lacks: Vec<Demand>,
    /// The policy with its parameters, as given.
    pub policy: String,
    pub(crate) own: Own,
    /// What could not be carried out, each kind once.
    pub(crate) failures: BTreeSet<String>,
    pub(crate) counts: Counts,
    scope: Option<Scope>,
    /// What others see of what it schedules; none before it has told them.
    claims: Option<Claims>,
    /// Processes that are not scheduled whatever the scope.
    exempt: Vec<i32>,
    apps: BTreeMap<i32, AppId>,
    searched_ns: Option<Ns>,
    looked_ns: Ns,
}

/// What a session has done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Looks at the threads.
    pub looks: u64,
    /// Decisions carried out.
    pub decisions: u64,
    /// Threads that were scheduled.
    pub threads: usize,
    /// CPU time of all looks, with the decisions that followed.
    pub cpu_ns: Ns,
    /// Sum over all looks of the threads that were there.
    pub seen: u64,
}

impl Session {
    /// A session that has not looked yet.
    ///
    /// # Errors
    ///
    /// `/proc` does not show this process, or the policy's rules read what its needs do not name.
    pub fn new(setup: Setup) -> Result<Self, InputError> {
        let Setup { settings, policy, cores, capabilities, instruments, facts, .. } = setup;
        let own = Own::process(&Proc::default())?;
        // Without memfds no runtime tells anything.
        let paths = policy.policy.needs().paths.then(|| Paths::new().ok()).flatten();
        Ok(Self {
            settings,
            name: policy.name,
            driver: Driver::new(policy.policy, cores.topology(), setup.dilation)
                .map_err(|why| refused(&policy.text, why))?,
            policy: policy.text,
            cores,
            capabilities,
            instruments,
            facts,
            paths,
            lacks: setup.lacks,
            exempt: vec![own.key.tid],
            own,
            failures: BTreeSet::new(),
            counts: Counts::default(),
            scope: setup.scope,
            claims: None,
            apps: BTreeMap::new(),
            searched_ns: None,
            looked_ns: 0,
        })
    }

    /// A process that is not scheduled whatever the scope, from now on.
    pub(crate) fn exempt(&mut self, pid: i32) {
        self.exempt.push(pid);
    }

    /// Whether the threads of some processes or of a cgroup have to be looked for; else they come by themselves.
    pub fn is_of_others(&self) -> bool {
        matches!(self.scope, Some(Scope::Trees { .. } | Scope::Cgroup { .. }))
    }

    /// The threads that are to be scheduled, if it is time to look for them again.
    pub fn find(&mut self, now_ns: Ns) -> Option<Vec<ThreadStat>> {
        if self.searched_ns.is_some_and(|at_ns| now_ns < at_ns + SEARCH_NS) {
            return None;
        }
        self.searched_ns = Some(now_ns);
        let proc = Proc::default();
        let mut found = self.in_scope(&proc)?;
        match self.claims.as_mut().map(|claims| claims.take(&proc, &found)).transpose() {
            Ok(others) => {
                let others = others.unwrap_or_default();
                for holder in others.values().collect::<BTreeSet<_>>() {
                    let whose = format!("they belong to {}", holder.words());
                    self.note("processes that are left alone", &io::Error::other(whose));
                }
                found.retain(|stat| !others.contains_key(&stat.pid));
            }
            // Nobody may be scheduled of whom others do not know.
            Err(error) => {
                self.note("telling other sessions", &error);
                found.clear();
            }
        }
        Some(found)
    }

    /// All threads of the scope but its own; none if that is everything.
    pub(crate) fn in_scope(&mut self, proc: &Proc) -> Option<Vec<ThreadStat>> {
        let mut found = self.scope.as_mut()?.find(&Root::default(), proc);
        let is_kernel_thread = |stat: &ThreadStat| stat.parent == KTHREADD || stat.pid == KTHREADD;
        found.retain(|stat| !self.exempt.contains(&stat.pid) && !is_kernel_thread(stat));
        Some(found)
    }

    /// Tells other sessions what this one schedules, from now on. Returns the journals that one's own sessions have
    /// left behind that are gone: looked for afterwards, because one that was there before may have gone meanwhile.
    ///
    /// # Errors
    ///
    /// Another session schedules some of it, or this session, or sets the clocks that this one may set.
    pub(crate) fn claim(&mut self, mut claims: Claims) -> Result<Vec<PathBuf>, InputError> {
        let proc = Proc::default();
        let taken = self.claim_all(&mut claims, &proc);
        let taken = taken.map_err(|error| InputError::new("sessions", "", error.to_string()))?;
        if let Some((what, holder)) = taken {
            let message = format!("{what} of {}", holder.words());
            let hint =
                "two would undo each other's work: stop that one, or schedule other processes";
            return Err(InputError::new("run", "", message).with_hint(hint));
        }
        let left = claims.left_journals();
        self.claims = Some(claims);
        Ok(left)
    }

    /// What another session has of what this one is to schedule, and whose it is.
    fn claim_all(
        &mut self,
        claims: &mut Claims,
        proc: &Proc,
    ) -> io::Result<Option<(String, Taken)>> {
        if let Some(holder) = claims.scheduled_by(proc)? {
            return Ok(Some(("this session itself is among the processes".to_owned(), holder)));
        }
        if self.settings.allow_dvfs {
            if let Some(holder) = claims.take_clocks()? {
                return Ok(Some(("--allow-dvfs: the clocks are those".to_owned(), holder)));
            }
        }
        let taken = match self.in_scope(proc) {
            Some(found) => claims.take(proc, &found)?.into_iter().next(),
            None => claims.take_everything(proc)?,
        };
        let what = |pid: i32| {
            let name = proc.process(pid).map_or_else(|_| String::new(), |stat| stat.name);
            format!("process {pid} ({name}) is among those")
        };
        Ok(taken.map(|(pid, holder)| (what(pid), holder)))
    }

    /// The open file by which others see what this session schedules; none before it has told them.
    pub(crate) fn share_claims(&self) -> io::Result<Option<std::fs::File>> {
        self.claims.as_ref().map(Claims::share).transpose()
    }

    /// Makes a thread known to the policy: its number, its process group, its weight (1024 is nice 0), the cores that
    /// its program allows. Returns its number for the policy and its application.
    pub fn add(
        &mut self,
        tid: i32,
        group: i32,
        weight: u32,
        allowed: &CoreSet,
        now_ns: Ns,
    ) -> (ThreadId, AppId) {
        let app = self.app(group);
        let is_restricted = !allowed.is_empty() && allowed.len() < self.cores.cpus().len();
        let thread = self.driver.add(app, weight, is_restricted.then_some(allowed), now_ns);
        self.counts.threads += 1;
        if let Err(error) = self.instruments.follow(tid) {
            self.note(COUNTERS, &error);
        }
        (thread, app)
    }

    /// The application of a process group.
    fn app(&mut self, group: i32) -> AppId {
        // The numbers are 16 bits wide; beyond, all further groups count as one.
        let next = AppId(u16::try_from(self.apps.len()).unwrap_or(u16::MAX));
        *self.apps.entry(group).or_insert(next)
    }

    /// A thread's process is in this group now: a shell forks first and then makes a group of what it has started.
    /// Returns its application.
    pub fn regroup(&mut self, thread: ThreadId, group: i32) -> AppId {
        let app = self.app(group);
        self.driver.set_app(thread, app);
        app
    }

    /// Instructions that a thread has retired since the last look; 0 if they are not counted. It was seen on this core.
    pub fn count(&mut self, tid: i32, core: CoreId, now_ns: Ns) -> u64 {
        let class = self.cores.topology().core(core).class;
        self.instruments.look(tid, class, now_ns).unwrap_or_else(|error| {
            self.note(COUNTERS, &error);
            0
        })
    }

    /// Remembers a failure, each kind once; that a thread has ended meanwhile is none.
    pub fn note(&mut self, what: &str, error: &io::Error) {
        let has_ended = error.raw_os_error() == Some(Errno::SRCH.raw_os_error());
        if has_ended || error.kind() == io::ErrorKind::NotFound {
            return;
        }
        let hint = match error.kind() {
            io::ErrorKind::PermissionDenied if what == COUNTERS => {
                " (CAP_PERFMON or the same user is needed)"
            }
            io::ErrorKind::PermissionDenied => " (CAP_SYS_NICE or the same user is needed)",
            _ => "",
        };
        self.failures.insert(format!("{what}: {error}{hint}"));
    }

    /// Time of the last look, in ns since the start.
    pub fn looked_ns(&self) -> Ns {
        self.looked_ns
    }

    /// Looks, lets the policy decide and carries it out; `now_ns` is the time since the start. Returns what was
    /// decided.
    ///
    /// # Errors
    ///
    /// The policy asks for something that its own rules or needs rule out, or the back end cannot carry out anything
    /// any more.
    pub fn step<B: Backend>(
        &mut self,
        backend: &mut B,
        now_ns: Ns,
    ) -> Result<Vec<Decision>, InputError> {
        let begun = cpu_time();
        // Thousands of new threads are work for seconds where cores are slow: each part shows that it lives.
        backend.sign_of_life();
        let observations = backend.look(self, now_ns);
        (self.looked_ns, self.counts.looks) = (now_ns, self.counts.looks + 1);
        backend.sign_of_life();
        self.driver.look(&observations, now_ns);
        self.counts.seen += self.driver.sched().present_count() as u64;
        self.tell_factors(backend, now_ns);
        backend.read_sensors(&mut self.driver, now_ns);
        backend.sign_of_life();
        let decisions = self.driver.epoch().map_err(|why| refused(&self.policy, why))?;
        self.counts.decisions += decisions.len() as u64;
        backend.carry_out(self, &decisions)?;
        backend.sign_of_life();
        self.counts.cpu_ns += cpu_time().saturating_sub(begun).as_nanos() as Ns;
        Ok(decisions)
    }

    /// Says what is known of threads and the programs that they run now. Of the others nothing has changed.
    fn tell_factors(&mut self, backend: &impl Backend, now_ns: Ns) {
        let ratio = self.cores.speed_ratio();
        for member in backend.changed() {
            let mut factors = self.facts.factors(member.program, ratio, now_ns);
            let measured =
                |ns: Ns| Factor { value: ns as f64, kind: FactorKind::Measured, at_ns: now_ns };
            factors.blame_ns = member.blame_ns.map_or_else(Factor::default, measured);
            let path_ns =
                self.paths.as_mut().and_then(|paths| paths.path_ns(member.pid, member.tid, now_ns));
            factors.path_ns = path_ns.map_or_else(Factor::default, measured);
            self.instruments.tell(member.tid, &mut factors);
            self.driver.set_factors(member.thread, factors);
        }
    }
}

/// What the user is told of a policy that breaks its own contract.
fn refused(policy: &str, why: Refusal) -> InputError {
    InputError::new("policy", policy, why.to_string())
}
