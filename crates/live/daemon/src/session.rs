//! A session: look at the threads, let the policy decide, carry it out; look by look.

mod telling;

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use ampsched_computer::{
    Capabilities, CgroupVersion, CoreMap, Proc, Root, ThreadKey, ThreadStat, format_cpus,
};
use ampsched_live_factors::{FutexTrace, Instruments, SensorSurvey, Sensors};
use ampsched_live_host::{Decision, Demand, Driver, Facts, Scope, Sighting};
use ampsched_model::{ClusterId, InputError, Ns, ThreadId};
use ampsched_policy::{Change, Factor, FactorKind, Refusal, RunState, nice_to_weight};
use serde::Serialize;

use crate::clocks::Clocks;
use crate::freezer::Freezer;
use crate::journal::{Journal, Touch};
use crate::observed::Own;
use crate::restore::{Restored, restore_file};
use crate::roster::{Member, Roster};
use crate::status::Status;
use crate::system::{has_ended, set_cpus, set_nice};

/// How often new threads are looked for, if the policy's looks are more frequent: a search reads several
/// files per process (ours).
const SEARCH_NS: Ns = 50_000_000;

/// What a session is made of.
pub struct Setup {
    /// The policy and its mirror.
    pub driver: Driver,
    /// The machine.
    pub cores: CoreMap,
    /// What the kernel offers.
    pub capabilities: Capabilities,
    /// Which threads are scheduled.
    pub scope: Scope,
    /// What was measured of programs beforehand.
    pub facts: Facts,
    /// Counters of the threads.
    pub instruments: Instruments,
    /// Power and temperature sensors.
    pub sensors: SensorSurvey,
    /// Whether clocks may be set.
    pub allow_dvfs: bool,
    /// What the policy asks for and does not get.
    pub lacks: Vec<Demand>,
    /// The policy with its parameters, as given.
    pub policy: String,
}

/// What a session has done, for the results.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// How it was at the end, without its threads.
    pub status: Status,
    /// Threads that were scheduled.
    pub threads: usize,
    /// What has been put back; none if somebody else did.
    pub restored: Option<Restored>,
}

/// A running session.
pub struct Session {
    setup: Setup,
    root: Root,
    proc: Proc,
    roster: Roster,
    freezer: Freezer,
    clocks: Clocks,
    journal: Journal,
    own: Own,
    /// Processes that are not scheduled besides.
    except: Vec<i32>,
    looked_ns: Ns,
    searched_ns: Option<Ns>,
    looks: u64,
    decisions: u64,
    failures: BTreeSet<String>,
    /// Who waits for whom, if the policy asks and the kernel tells.
    blame: Option<FutexTrace>,
    sensors: Sensors,
    /// Threads that may not use any CPU of the machine and so are not scheduled.
    left_alone: BTreeSet<ThreadKey>,
    threads: usize,
}

impl Session {
    /// Nothing is looked at or touched yet.
    pub fn new(setup: Setup, mut journal: Journal) -> Result<Self, InputError> {
        let (root, proc) = (Root::default(), Proc::default());
        let own = Own::process(&proc)?;
        let capabilities = &setup.capabilities;
        let place = capabilities.freezer.as_ref().and_then(|delegation| {
            let mount = match delegation.version {
                CgroupVersion::V1 => capabilities.cgroup_v1.get("freezer"),
                CgroupVersion::V2 => capabilities.cgroup_v2.as_ref(),
            };
            Some((delegation, mount?.as_str()))
        });
        let mut failures = BTreeSet::new();
        let blame = start_tracing(&setup, &root, &mut journal).unwrap_or_else(|error| {
            failures.insert(format!("tracing of futexes: {error}"));
            None
        });
        Ok(Self {
            blame,
            sensors: Sensors::new(root.clone(), &setup.sensors),
            freezer: Freezer::new(place, &root),
            clocks: Clocks::new(root.clone()),
            roster: Roster::default(),
            own,
            except: Vec::new(),
            root,
            proc,
            journal,
            looked_ns: 0,
            searched_ns: None,
            looks: 0,
            decisions: 0,
            failures,
            left_alone: BTreeSet::new(),
            threads: 0,
            setup,
        })
    }

    /// How long to wait between two steps, in ns.
    pub fn period_ns(&self) -> Ns {
        self.setup.driver.look_period_ns()
    }

    /// Whether it schedules anybody.
    pub fn has_members(&self) -> bool {
        self.roster.members().next().is_some()
    }

    /// Processes that are not scheduled whatever the scope, from now on: the guardian, for one.
    pub fn except(&mut self, pids: Vec<i32>) {
        self.except = pids;
    }

    /// Looks, decides and carries out; `now_ns` is the time since the start. Returns what was decided.
    ///
    /// # Errors
    ///
    /// The policy asks for something that its own rules or needs rule out.
    pub fn step(&mut self, now_ns: Ns) -> Result<Vec<Decision>, Refusal> {
        if self.searched_ns.is_none_or(|at_ns| now_ns >= at_ns + SEARCH_NS) {
            self.searched_ns = Some(now_ns);
            self.search(now_ns);
        }
        self.look(now_ns);
        self.tell_factors(now_ns);
        self.tell_sensors(now_ns);
        let decisions = self.setup.driver.epoch()?;
        self.decisions += decisions.len() as u64;
        for decision in &decisions {
            self.carry_out(decision);
        }
        Ok(decisions)
    }

    fn search(&mut self, now_ns: Ns) {
        for stat in self.setup.scope.find(&self.root, &self.proc) {
            let is_kernel_thread = stat.parent == KTHREADD || stat.pid == KTHREADD;
            let is_own = stat.pid == self.own.key.tid || self.except.contains(&stat.pid);
            if is_own || is_kernel_thread || self.roster.has(stat.key) {
                continue;
            }
            if let Err(error) = self.adopt(&stat, now_ns) {
                self.note(&format!("threads of {}", stat.name), error);
            }
        }
    }

    fn adopt(&mut self, stat: &ThreadStat, now_ns: Ns) -> io::Result<()> {
        let before = self.roster.before(stat)?;
        let user = self.setup.cores.core_set(&before.cpus);
        if user.is_empty() {
            self.left_alone.insert(stat.key);
            return Ok(());
        }
        self.journal.write(&Touch::Thread {
            pid: stat.pid,
            tid: stat.key.tid,
            start_ticks: stat.key.start_ticks,
            cpus: format_cpus(before.cpus.iter().copied()),
            nice: before.nice,
        })?;
        let restricted = (user.len() < self.setup.cores.cpus().len()).then_some(&user);
        let (app, weight) = (self.roster.app(stat.group), nice_to_weight(before.nice));
        let driver = &mut self.setup.driver;
        let thread = driver.add(app, weight, restricted, now_ns);
        self.roster.join(stat, thread, before, &self.proc);
        self.threads += 1;
        if let Err(error) = self.setup.instruments.follow(stat.key.tid) {
            self.note(COUNTERS, error);
        }
        match &mut self.blame {
            Some(blame) => blame.follow(stat.key.tid),
            None => Ok(()),
        }
    }

    /// Says of each thread what is known of the program that it runs now.
    fn tell_factors(&mut self, now_ns: Ns) {
        let ratio = self.setup.cores.speed_ratio();
        for member in self.roster.members() {
            let mut factors = self.setup.facts.factors(&member.program, ratio, now_ns);
            if self.blame.is_some() {
                let value = member.blame_ns as f64;
                factors.blame_ns = Factor { value, kind: FactorKind::Measured, at_ns: now_ns };
            }
            self.setup.instruments.tell(member.key.tid, &mut factors);
            self.setup.driver.set_factors(member.thread, factors);
        }
    }

    /// Says what the sensors of clusters show.
    fn tell_sensors(&mut self, now_ns: Ns) {
        if !self.sensors.read(now_ns) {
            return;
        }
        for (cluster, power_mw) in self.sensors.power_mw() {
            self.setup.driver.set_power(cluster, power_mw);
        }
        for (cluster, temperature_c) in self.sensors.temperature_c() {
            self.setup.driver.set_temperature(cluster, temperature_c);
        }
    }

    fn look(&mut self, now_ns: Ns) {
        let elapsed_ns = now_ns.saturating_sub(self.looked_ns);
        self.looked_ns = now_ns;
        self.looks += 1;
        let (freezer, holds_threads) = (&self.freezer, self.freezer.holds_threads());
        let is_held = |member: &Member| match holds_threads {
            true => freezer.is_held(member.key),
            false => freezer.is_held(process_key(member)),
        };
        let mut sightings = self.roster.look(&self.proc, &self.setup.cores, elapsed_ns, is_held);
        let blame_ns = match self.blame.as_mut().map(FutexTrace::take) {
            Some(Ok(blame_ns)) => blame_ns,
            Some(Err(error)) => {
                self.note("tracing of futexes", error);
                BTreeMap::new()
            }
            None => BTreeMap::new(),
        };
        self.roster.blame(&blame_ns, &mut sightings);
        self.count(&mut sightings, now_ns);
        self.setup.driver.look(&sightings, now_ns);
        for seen in sightings.iter().filter(|seen| seen.state == RunState::Exited) {
            if let Some(key) = self.roster.member(seen.thread).map(|member| member.key) {
                self.freezer.forget(key);
                self.setup.instruments.forget(key.tid);
                self.roster.leave(key);
            }
        }
    }

    /// Reads the counters of all threads, also of those that have ended.
    fn count(&mut self, sightings: &mut [Sighting], now_ns: Ns) {
        for seen in sightings {
            let Some(member) = self.roster.member(seen.thread) else { continue };
            let class = self.setup.cores.topology().core(seen.core).class;
            match self.setup.instruments.look(member.key.tid, class, now_ns) {
                Ok(instructions) => seen.instructions = instructions,
                Err(error) => self.note(COUNTERS, error),
            }
        }
    }

    fn carry_out(&mut self, decision: &Decision) {
        match decision {
            Decision::Frequency(cluster, mhz) => self.set_clock(*cluster, *mhz),
            Decision::Limit(cluster, mhz) => self.limit_clock(*cluster, *mhz),
            Decision::Thread(thread, change) => {
                let done = match change {
                    Change::Affinity(_) | Change::Prefer(_) | Change::Move(_) => self.bind(*thread),
                    Change::Weight(weight) => self.renice(*thread, *weight),
                    Change::Hold(_) => self.hold(*thread),
                    // Only a fast plane could use them; what that means is among the policy's demands.
                    Change::Rank(_) | Change::Speed(_) => Ok(()),
                    Change::Slice(_) => Err(io::ErrorKind::Unsupported.into()),
                };
                if let Err(error) = done {
                    self.note(what_failed(change), error);
                }
            }
        }
    }

    /// Writes a thread's CPUs if they are others than it has.
    fn bind(&mut self, thread: ThreadId) -> io::Result<()> {
        let cpus = self.setup.cores.cpu_set(&self.setup.driver.cores_for(thread));
        let Some(member) = self.roster.member(thread) else { return Ok(()) };
        if member.given_cpus.as_ref() == Some(&cpus) {
            return Ok(());
        }
        member.given_cpus = Some(cpus.clone());
        let (pid, tid) = (member.pid, member.key.tid);
        let text = format_cpus(cpus.iter().copied());
        if self.roster.gives_cpus(pid, &text) {
            self.journal.write(&Touch::GivenCpus { pid, cpus: text })?;
        }
        set_cpus(tid, &cpus)
    }

    fn renice(&mut self, thread: ThreadId, weight: u32) -> io::Result<()> {
        let nice = nice_of(weight);
        let Some(member) = self.roster.member(thread) else { return Ok(()) };
        member.given_nice = Some(nice);
        let (pid, tid) = (member.pid, member.key.tid);
        if self.roster.gives_nice(pid, nice) {
            self.journal.write(&Touch::GivenNice { pid, nice })?;
        }
        set_nice(tid, nice)
    }

    /// Holds a thread back, or its process if that is all that can be held and all its threads are meant.
    fn hold(&mut self, thread: ThreadId) -> io::Result<()> {
        let Some(member) = self.roster.member(thread).map(|member| member.clone()) else {
            return Ok(());
        };
        let plans = self.setup.driver.sched();
        let (key, held) = if self.freezer.holds_threads() {
            (member.key, plans.plan(thread).held)
        } else {
            let mut all = self.roster.members().filter(|other| other.pid == member.pid);
            (process_key(&member), all.all(|other| plans.plan(other.thread).held))
        };
        match (held, self.freezer.is_held(key)) {
            (true, false) => self.freezer.hold(key, &mut self.journal),
            (false, true) => self.freezer.release(key),
            _ => Ok(()),
        }
    }

    fn set_clock(&mut self, cluster: ClusterId, mhz: u32) {
        if !self.setup.allow_dvfs {
            return;
        }
        let domain = self.setup.cores.domain(cluster);
        match self.clocks.set(domain, mhz, &mut self.journal) {
            Ok(Some(mhz)) => self.setup.driver.set_frequency(cluster, mhz),
            Ok(None) => {}
            Err(error) => self.note("clocks", error),
        }
    }

    fn limit_clock(&mut self, cluster: ClusterId, mhz: u32) {
        if !self.setup.allow_dvfs {
            return;
        }
        let domain = self.setup.cores.domain(cluster);
        if let Err(error) = self.clocks.limit(domain, mhz, &mut self.journal) {
            self.note("limits of clocks", error);
        }
    }

    /// Remembers a failure, each kind once; that a thread has ended meanwhile is none.
    fn note(&mut self, what: &str, error: io::Error) {
        if !has_ended(&error) && error.kind() != io::ErrorKind::NotFound {
            let hint = match error.kind() {
                io::ErrorKind::PermissionDenied if what == COUNTERS => {
                    " (CAP_PERFMON or the same user is needed)"
                }
                io::ErrorKind::PermissionDenied => " (CAP_SYS_NICE or the same user is needed)",
                _ => "",
            };
            self.failures.insert(format!("{what}: {error}{hint}"));
        }
    }

    /// What could not be carried out, each kind once.
    pub fn failures(&self) -> impl Iterator<Item = &str> {
        self.failures.iter().map(String::as_str)
    }

    /// Puts everything back and ends.
    pub fn finish(mut self) -> Result<Summary, InputError> {
        let mut status = self.status();
        // Its folder can only be removed when nobody reads there.
        self.blame = None;
        (status.threads, status.on_cores) = (Vec::new(), Vec::new());
        let restored = restore_file(self.journal.path())?;
        Ok(Summary { status, threads: self.threads, restored })
    }
}

/// Follows futexes if the policy asks who waits for whom and tracing is there.
fn start_tracing(
    setup: &Setup,
    root: &Root,
    journal: &mut Journal,
) -> io::Result<Option<FutexTrace>> {
    let tracefs = setup.capabilities.tracefs.as_ref().filter(|_| setup.driver.needs().blame);
    let Some(tracefs) = tracefs else { return Ok(None) };
    let name = format!("ampsched-{}", std::process::id());
    let folder = FutexTrace::folder(&root.path(tracefs), &name);
    journal.write(&Touch::Tracing { folder: folder.clone() })?;
    FutexTrace::start(folder).map(Some)
}

/// What failures of counters are called.
const COUNTERS: &str = "counters";

/// Number of the process whose children are kernel threads.
const KTHREADD: i32 = 2;

/// A process's first thread, as which it is held back.
fn process_key(member: &Member) -> ThreadKey {
    ThreadKey { tid: member.pid, start_ticks: member.process_start_ticks }
}

fn what_failed(change: &Change) -> &'static str {
    match change {
        Change::Hold(_) => "holding threads back",
        Change::Weight(_) => "nice values",
        Change::Slice(_) => "slices of single threads",
        _ => "CPUs of threads",
    }
}

/// The nice value whose weight is nearest.
fn nice_of(weight: u32) -> i32 {
    let distance = |&nice: &i32| nice_to_weight(nice).abs_diff(weight);
    (-20..=19).min_by_key(distance).expect("there are forty")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_become_the_nearest_nice_value() {
        assert_eq!([88761, 1024, 1000, 15, 1].map(nice_of), [-20, 0, 0, 19, 19]);
        assert_eq!(nice_of(930), 0);
        assert_eq!(nice_of(900), 1);
    }
}
