//! The back end: looks at the threads in `/proc`, and carries decisions out by system calls and control files.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::process::Command;

use ampsched_computer::{
    Capabilities, CgroupVersion, Proc, Root, ThreadKey, ThreadStat, format_cpus,
};
use ampsched_live_driver::{Decision, Driver, Observation};
use ampsched_live_factors::{FutexTrace, SensorSurvey, Sensors};
use ampsched_live_session::{
    Account, Backend, Clocks, Journal, Observed, PutBack, Scheduled, Session, Setup, read_sensors,
};
use ampsched_model::{InputError, Ns, ThreadId};
use ampsched_policy::{Change, RunState, nice_to_weight};
use rustix::process::{Pid, set_child_subreaper};
use serde::Serialize;

use crate::freezer::{Freezer, WentOn};
use crate::restore::{outstanding, restore};
use crate::roster::{Member, Roster};
use crate::system::{set_cpus, set_nice};
use crate::touch::{Cpus, Instance, Touch};

/// Policies by affinities, nice values, frozen threads and limits of cpufreq.
pub struct Daemon {
    proc: Proc,
    roster: Roster,
    freezer: Freezer,
    clocks: Clocks,
    journal: Journal<Touch>,
    /// Who waits for whom, if the policy asks and the kernel tells.
    blame: Option<FutexTrace>,
    sensors: Sensors,
    has_power_of_clusters: bool,
}

/// What it adds to the results: nothing.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {}

impl ampsched_live_session::Outcome for Outcome {
    fn words(&self) -> Option<String> {
        None
    }
}

impl Observed for Daemon {
    fn scheduled(&self) -> impl Iterator<Item = Scheduled<'_>> {
        let tells_blame = self.blame.is_some();
        self.roster.members().map(move |member| Scheduled {
            tid: member.key.tid,
            pid: member.pid,
            thread: member.thread,
            app: member.app,
            program: &member.program,
            name: &member.name,
            cpu: member.cpu,
            blame_ns: tells_blame.then_some(member.blame_ns),
        })
    }

    fn cpus(&self, _session: &Session, thread: ThreadId) -> BTreeSet<usize> {
        let given = |member: &Member| member.given_cpus.clone();
        let cpus = |member: &Member| given(member).unwrap_or_else(|| member.before.cpus.clone());
        self.roster.member(thread).map(cpus).unwrap_or_default()
    }

    fn account(&self) -> Account {
        let lost = self.blame.as_ref().map_or(0, FutexTrace::lost);
        let loss = format!("blame is too small: {lost} events were lost");
        Account {
            freezer: self.freezer.name(),
            tells_blame: self.blame.is_some(),
            has_power_of_clusters: self.has_power_of_clusters,
            energy: self.sensors.energy(),
            losses: (lost > 0).then_some(loss).into_iter().collect(),
        }
    }
}

impl Backend for Daemon {
    const NAME: &'static str = "daemon";
    const PROGRAM: &'static str = "ampsched-live";
    /// Ours: it shares the cores with what it schedules.
    const CPU_SHARE_MAX: f64 = 0.25;
    type Outcome = Outcome;
    type Touch = Touch;

    fn check(setup: &Setup) -> Result<(), InputError> {
        if setup.scope.is_some() {
            return Ok(());
        }
        let message = "the daemon schedules a command, processes or a cgroup";
        Err(InputError::new("--everything", "", message)
            .with_hint("--cgroup takes all of a cgroup; --backend scx takes everything"))
    }

    fn start(session: &mut Session, mut journal: Journal<Touch>) -> Result<Self, InputError> {
        let root = Root::default();
        let survey = SensorSurvey::make(&root, &session.cores)?;
        let blame = start_tracing(session, &root, &mut journal).unwrap_or_else(|error| {
            session.note(TRACING, &error);
            None
        });
        Ok(Self {
            blame,
            sensors: Sensors::new(root.clone(), &survey),
            has_power_of_clusters: survey.has_power_of_clusters(),
            freezer: freezer(&session.capabilities, &root),
            clocks: Clocks::new(root.clone()),
            roster: Roster::default(),
            proc: Proc::new(root),
            journal,
        })
    }

    /// From now on all that a command leaves behind become children of this process.
    fn prepare(&self, _command: &mut Command) -> Result<(), InputError> {
        let own = Pid::from_raw(std::process::id() as i32);
        set_child_subreaper(own)
            .map_err(|error| InputError::new("subreaper", "", error.to_string()))
    }

    fn look(&mut self, session: &mut Session, now_ns: Ns) -> Vec<Observation> {
        for stat in session.find(now_ns).into_iter().flatten() {
            if self.roster.has(stat.key) {
                continue;
            }
            if let Err(error) = self.adopt(session, &stat, now_ns) {
                session.note(&format!("threads of {}", stat.name), &error);
            }
        }
        let elapsed_ns = now_ns.saturating_sub(session.looked_ns());
        let (freezer, holds_threads) = (&self.freezer, self.freezer.holds_threads());
        let is_held = |member: &Member| match holds_threads {
            true => freezer.is_held(member.key),
            false => freezer.is_held(member.process),
        };
        let (mut seen, unseen) = self.roster.look(&self.proc, &session.cores, elapsed_ns, is_held);
        if let Some(error) = unseen {
            session.note("looking at threads", &error);
        }
        let blame_ns = self.blame.as_mut().map_or_else(|| Ok(BTreeMap::new()), FutexTrace::take);
        let blame_ns = blame_ns.unwrap_or_else(|error| {
            session.note(TRACING, &error);
            BTreeMap::new()
        });
        self.roster.blame(&blame_ns, &mut seen);
        for observation in &mut seen {
            self.count(session, observation, now_ns);
        }
        seen
    }

    fn read_sensors(&mut self, driver: &mut Driver, now_ns: Ns) {
        read_sensors(&mut self.sensors, driver, now_ns);
    }

    fn carry_out(
        &mut self,
        session: &mut Session,
        decisions: &[Decision],
    ) -> Result<(), InputError> {
        for done in self.freezer.retry() {
            note_release(session, done);
        }
        for decision in decisions {
            match decision {
                Decision::Frequency(cluster, mhz) => {
                    self.clocks.set_cluster(session, *cluster, *mhz, &mut self.journal);
                }
                Decision::Limit(cluster, mhz) => {
                    self.clocks.limit_cluster(session, *cluster, *mhz, &mut self.journal);
                }
                Decision::Thread(thread, change) => {
                    if let Err(error) = self.change(session, *thread, change) {
                        session.note(what_failed(change), &error);
                    }
                }
            }
        }
        Ok(())
    }

    fn has_threads(&self) -> bool {
        self.roster.members().next().is_some()
    }

    fn journal(&mut self) -> Option<&mut Journal<Touch>> {
        Some(&mut self.journal)
    }

    fn outstanding(touches: Vec<Touch>) -> Vec<Touch> {
        outstanding(touches, &Proc::default())
    }

    /// Nobody reads its traces any more, without which their folder could not be removed.
    fn finish(self, _session: &mut Session) -> Outcome {
        Outcome {}
    }

    fn concerns(touches: &[Touch], threads: &BTreeSet<ThreadKey>) -> bool {
        touches.iter().filter_map(Touch::thread).any(|thread| threads.contains(&thread))
    }

    fn put_back(touches: &[Touch]) -> PutBack {
        restore(touches, &Root::default()).into()
    }
}

impl Daemon {
    /// Begins to schedule a thread.
    fn adopt(&mut self, session: &mut Session, stat: &ThreadStat, now_ns: Ns) -> io::Result<()> {
        let process = self.proc.process(stat.pid)?.key;
        let before = self.roster.before(stat, process, &self.proc)?;
        let allowed = session.cores.core_set(&before.cpus);
        if allowed.is_empty() {
            // It may not use any CPU of the machine.
            return Ok(());
        }
        let cpus = listed(&before.cpus)?;
        self.journal.write(&Touch::Thread {
            process,
            thread: stat.key,
            cpus,
            nice: before.nice,
        })?;
        let weight = nice_to_weight(before.nice);
        let known = session.add(stat.key.tid, stat.group, weight, &allowed, now_ns);
        self.roster.join(stat, process, known, before, &self.proc);
        match &mut self.blame {
            Some(blame) => blame.follow(stat.key.tid),
            None => Ok(()),
        }
    }

    /// Reads the counters of a thread, notes its new application if it has one, and lets it go if it has ended.
    fn count(&mut self, session: &mut Session, observation: &mut Observation, now_ns: Ns) {
        let Some(member) = self.roster.member_mut(observation.thread) else { return };
        if member.is_regrouped {
            member.app = session.regroup(member.thread, member.group);
        }
        let key = member.key;
        observation.instructions = session.count(key.tid, observation.core, now_ns);
        if observation.state == RunState::Exited {
            self.freezer.forget(key);
            session.instruments.forget(key.tid);
            self.roster.leave(key);
        }
    }

    fn change(
        &mut self,
        session: &mut Session,
        thread: ThreadId,
        change: &Change,
    ) -> io::Result<()> {
        match change {
            Change::Affinity(_) | Change::Prefer(_) | Change::Move(_) => self.bind(session, thread),
            Change::Weight(weight) => self.renice(thread, *weight),
            Change::Hold(_) => self.hold(session, thread),
            // Only a fast plane could use them; what that means is among the policy's demands.
            Change::Rank(_) | Change::Speed(_) => Ok(()),
            Change::Slice(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Writes a thread's CPUs if they are others than it has.
    fn bind(&mut self, session: &Session, thread: ThreadId) -> io::Result<()> {
        let cpus = session.cores.cpu_set(&session.driver.cores_for(thread));
        let Some(member) = self.roster.member_mut(thread) else { return Ok(()) };
        if member.given_cpus.as_ref() == Some(&cpus) {
            return Ok(());
        }
        let (process, tid, list) = (member.process, member.key.tid, listed(&cpus)?);
        if !self.roster.has_given_cpus(process.tid, list.text()) {
            self.journal.write(&Touch::GivenCpus { process, cpus: list.clone() })?;
            self.roster.gives_cpus(process.tid, list.text());
        }
        set_cpus(tid, &cpus)?;
        if let Some(member) = self.roster.member_mut(thread) {
            member.given_cpus = Some(cpus);
        }
        Ok(())
    }

    fn renice(&mut self, thread: ThreadId, weight: u32) -> io::Result<()> {
        let nice = nice_of(weight);
        let Some(member) = self.roster.member_mut(thread) else { return Ok(()) };
        let (process, tid) = (member.process, member.key.tid);
        if !self.roster.has_given_nice(process.tid, nice) {
            self.journal.write(&Touch::GivenNice { process, nice })?;
            self.roster.gives_nice(process.tid, nice);
        }
        set_nice(tid, nice)?;
        if let Some(member) = self.roster.member_mut(thread) {
            member.given_nice = Some(nice);
        }
        Ok(())
    }

    /// Holds a thread back, or its process if that is all that can be held and all its threads are meant.
    fn hold(&mut self, session: &mut Session, thread: ThreadId) -> io::Result<()> {
        let Some(member) = self.roster.member(thread).cloned() else {
            return Ok(());
        };
        let plans = session.driver.sched();
        let (key, held) = if self.freezer.holds_threads() {
            (member.key, plans.plan(thread).held)
        } else {
            let mut all = self.roster.members().filter(|other| other.pid == member.pid);
            (member.process, all.all(|other| plans.plan(other.thread).held))
        };
        match (held, self.freezer.is_held(key)) {
            (true, false) => self.freezer.hold(key, &mut self.journal),
            (false, true) => {
                note_release(session, self.freezer.release(key));
                Ok(())
            }
            (true, true) => {
                self.freezer.keep(key);
                Ok(())
            }
            (false, false) => Ok(()),
        }
    }
}

/// Follows futexes if the policy asks who waits for whom and tracing is there.
fn start_tracing(
    session: &Session,
    root: &Root,
    journal: &mut Journal<Touch>,
) -> io::Result<Option<FutexTrace>> {
    let tracefs = session.capabilities.tracefs.as_ref().filter(|_| session.driver.needs().blame);
    let Some(tracefs) = tracefs else { return Ok(None) };
    let instance = Instance::own();
    let folder = FutexTrace::folder(&root.path(tracefs), instance.name());
    journal.write(&Touch::Tracing { instance })?;
    FutexTrace::start(folder).map(Some)
}

/// CPUs as a journal has them.
fn listed(cpus: &BTreeSet<usize>) -> io::Result<Cpus> {
    Cpus::try_from(format_cpus(cpus.iter().copied())).map_err(io::Error::other)
}

/// What failures of tracing are called.
const TRACING: &str = "tracing of futexes";

/// Remembers that a thread could not go on, or not where it was before.
fn note_release(session: &mut Session, done: io::Result<Option<WentOn>>) {
    match done {
        Ok(None) => {}
        Ok(Some(WentOn { gone, now })) => {
            let message = format!(
                "cgroup {} is gone; who was held goes on in {}",
                gone.display(),
                now.display()
            );
            session.note("letting threads go on", &io::Error::other(message));
        }
        Err(error) => session.note("letting threads go on", &error),
    }
}

/// Where threads are held back here.
fn freezer(capabilities: &Capabilities, root: &Root) -> Freezer {
    let place = capabilities.freezer.as_ref().and_then(|delegation| {
        let mount = match delegation.version {
            CgroupVersion::V1 => capabilities.cgroup_v1.get("freezer"),
            CgroupVersion::V2 => capabilities.cgroup_v2.as_ref(),
        };
        Some((delegation, &**mount?))
    });
    Freezer::new(place, root)
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
