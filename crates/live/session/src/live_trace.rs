//! A trace of a live session in the form of the simulator's: who runs where, as far as looks can tell, and every
//! decision.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use ampsched_computer::{CoreMap, format_cpus};
use ampsched_live_driver::{Decision, Driver};
use ampsched_model::{ClusterId, CoreId, InputError, Ns, ThreadId};
use ampsched_policy::Reason;
use ampsched_trace::{
    Decision as TraceDecision, PerfettoTrace, SystemIds, Trace, TraceCore, TraceMachine,
    TraceThread, TurnEnd,
};

use crate::{Observed, Scheduled, Session};

/// Writes the trace.
pub struct LiveTrace {
    file: PathBuf,
    trace: PerfettoTrace<File>,
    /// How many threads the session knew at the last step.
    known: usize,
    /// One more than the greatest number of a thread in the trace.
    next: u32,
    /// Who runs on each core, as last written.
    running: BTreeMap<CoreId, ThreadId>,
}

impl LiveTrace {
    /// Starts a file.
    pub fn new(file: &Path, cores: &CoreMap) -> Result<Self, InputError> {
        let wrong = |error: std::io::Error| wrong(file, &error);
        let created = File::create(file).map_err(wrong)?;
        let trace = PerfettoTrace::new(created, &describe(cores)).map_err(wrong)?;
        let running = BTreeMap::new();
        Ok(Self { file: file.to_owned(), trace, known: 0, next: 0, running })
    }

    /// Writes what a step has seen and decided.
    pub fn step(
        &mut self,
        session: &Session,
        seen: &impl Observed,
        decisions: &[Decision],
        now_ns: Ns,
    ) {
        self.who_is_new(session, seen);
        self.who_runs(session, seen, now_ns);
        for decision in decisions {
            match decision {
                Decision::Thread(thread, change) => {
                    let cpus = |set: &_| format_cpus(session.cores.cpu_set(set));
                    let what = change.in_words(|set| format!("CPUs {}", cpus(set)));
                    let planned = TraceDecision::Planned(&what);
                    let why = why_planned(&session.driver, *thread, now_ns);
                    self.trace.decided(*thread, planned, Some(&why), now_ns);
                }
                Decision::Frequency(cluster, mhz) | Decision::Limit(cluster, mhz) => {
                    self.trace.frequency(*cluster, *mhz, now_ns);
                }
            }
        }
    }

    /// Names the threads that have come since the last step; their numbers ascend.
    fn who_is_new(&mut self, session: &Session, seen: &impl Observed) {
        let count = session.driver.sched().thread_count();
        if std::mem::replace(&mut self.known, count) == count {
            return;
        }
        let mut new: Vec<Scheduled> =
            seen.scheduled().filter(|member| member.thread.0 >= self.next).collect();
        new.sort_by_key(|member| member.thread);
        for member in new {
            let id = member.thread;
            self.next = id.0 + 1;
            self.trace.thread(TraceThread {
                id,
                app: member.app.index(),
                app_name: member.program,
                name: member.name,
                ids: Some(SystemIds { pid: member.pid, tid: member.tid }),
            });
        }
    }

    fn who_runs(&mut self, session: &Session, seen: &impl Observed, now_ns: Ns) {
        let cores = || session.cores.topology().cores();
        let now = |core| seen.running(session, core);
        let now: BTreeMap<CoreId, ThreadId> =
            cores().filter_map(|core| Some((core, now(core)?))).collect();
        let known = std::mem::take(&mut self.running);
        for (core, thread) in known {
            match now.get(&core) == Some(&thread) {
                true => drop(self.running.insert(core, thread)),
                false => self.trace.stop(core, thread, ended(session, thread), now_ns),
            }
        }
        for (core, thread) in now {
            // A thread that moves while it is looked at may seem to be on two cores.
            if !self.running.values().any(|&other| other == thread) {
                self.running.insert(core, thread);
                self.trace.run(core, thread, None, now_ns);
            }
        }
        for core in cores() {
            self.trace.queue_len(core, seen.waiting(session, core), now_ns);
        }
    }

    /// Completes the file.
    pub fn finish(self) -> Result<(), InputError> {
        self.trace.finish().map_err(|error| wrong(&self.file, &error))
    }
}

/// How a turn ended whose end was only seen afterwards: nobody knows what it retired, or why.
fn ended(session: &Session, thread: ThreadId) -> TurnEnd<'static> {
    TurnEnd { instructions: None, state: session.driver.sched().thread(thread).state, why: None }
}

fn wrong(file: &Path, error: &std::io::Error) -> InputError {
    InputError::new(file.display().to_string(), "", error.to_string())
}

fn describe(cores: &CoreMap) -> TraceMachine {
    let topology = cores.topology();
    let cluster_of = |cpu| cores.domains().iter().position(|domain| domain.cpus.contains(&cpu));
    let core = |core| {
        let (class, cpu) = (cores.class_name(topology.core(core).class), cores.cpu(core));
        TraceCore {
            about: format!("{class}, CPU {cpu}"),
            cpu: cpu as u32,
            cluster: cluster_of(cpu).map(ClusterId::from),
        }
    };
    let cluster = |(_, domain): (usize, &ampsched_computer::Domain)| {
        let class = cores.class_name(ampsched_model::ClassId(domain.class));
        format!("{class} {}", format_cpus(domain.cpus.iter().copied()))
    };
    TraceMachine {
        name: "this computer".to_owned(),
        cores: topology.cores().map(core).collect(),
        clusters: cores.domains().iter().enumerate().map(cluster).collect(),
    }
}

/// Why a policy changes the plan for a thread: when it looked, and what it knew, in its own time.
fn why_planned(driver: &Driver, thread: ThreadId, now_ns: Ns) -> Reason {
    let now_ns = driver.dilation().to_policy(now_ns);
    Reason::of_plan(None, driver.epochs(), driver.factors(thread), now_ns)
}
