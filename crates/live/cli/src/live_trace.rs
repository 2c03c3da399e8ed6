//! A trace of a live session in the form of the simulator's: who runs where, as far as looks can tell, and every
//! decision.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use ampsched_live_daemon::Session;
use ampsched_live_host::{CoreMap, Decision, format_cpus};
use ampsched_model::{CoreId, InputError, Ns, ThreadId};
use ampsched_policy::{Change, Prefer};
use ampsched_trace::{PerfettoTrace, Trace, TraceMachine, TraceThread};

/// Writes the trace.
pub struct LiveTrace {
    file: PathBuf,
    trace: PerfettoTrace<File>,
    known: BTreeSet<ThreadId>,
    /// Who runs on each core, as last written.
    running: BTreeMap<CoreId, ThreadId>,
}

impl LiveTrace {
    /// Starts a file.
    pub fn new(file: &Path, cores: &CoreMap) -> Result<Self, InputError> {
        let wrong = |error: std::io::Error| wrong(file, &error);
        let created = File::create(file).map_err(wrong)?;
        let trace = PerfettoTrace::new(created, &describe(cores)).map_err(wrong)?;
        let (known, running) = (BTreeSet::new(), BTreeMap::new());
        Ok(Self { file: file.to_owned(), trace, known, running })
    }

    /// Writes what a step has seen and decided.
    pub fn step(&mut self, session: &Session, decisions: &[Decision], now_ns: Ns) {
        for member in session.members() {
            if self.known.insert(member.thread) {
                self.trace.thread(TraceThread {
                    id: member.thread,
                    app: member.app.index(),
                    app_name: &member.program,
                    name: &format!("{} {}", member.name, member.key.tid),
                });
            }
        }
        let sched = session.driver().sched();
        for core in sched.topology().cores() {
            let (before, now) = (self.running.get(&core).copied(), sched.core(core).running);
            if before != now {
                if let Some(thread) = self.running.remove(&core) {
                    self.trace.stop(core, thread, 0, now_ns);
                }
            }
        }
        for core in sched.topology().cores() {
            if let Some(thread) =
                sched.core(core).running.filter(|_| !self.running.contains_key(&core))
            {
                self.running.insert(core, thread);
                self.trace.run(core, thread, now_ns);
            }
            self.trace.queue_len(core, sched.queue_len(core), now_ns);
        }
        for decision in decisions {
            match decision {
                Decision::Thread(thread, change) => {
                    self.trace.decided(*thread, &text_of(change, session.cores()), now_ns);
                }
                Decision::Frequency(cluster, mhz) | Decision::Limit(cluster, mhz) => {
                    self.trace.frequency(*cluster, *mhz, now_ns);
                }
            }
        }
    }

    /// Completes the file.
    pub fn finish(self) -> Result<(), InputError> {
        self.trace.finish().map_err(|error| wrong(&self.file, &error))
    }
}

fn wrong(file: &Path, error: &std::io::Error) -> InputError {
    InputError::new(file.display().to_string(), "", error.to_string())
}

fn describe(cores: &CoreMap) -> TraceMachine {
    let topology = cores.topology();
    let title = |core| {
        let class = cores.class_name(topology.core(core).class);
        format!("{class}, CPU {}", cores.cpu(core))
    };
    let cluster = |(_, domain): (usize, &ampsched_live_host::Domain)| {
        let class = cores.class_name(ampsched_model::ClassId(domain.class));
        format!("{class} {}", format_cpus(domain.cpus.iter().copied()))
    };
    TraceMachine {
        name: "this computer".to_owned(),
        cores: topology.cores().map(title).collect(),
        clusters: cores.domains().iter().enumerate().map(cluster).collect(),
    }
}

/// A decision in words.
fn text_of(change: &Change, cores: &CoreMap) -> String {
    let kind = |prefer: Prefer| match prefer {
        Prefer::Any => "any core",
        Prefer::Big => "big cores",
        Prefer::Little => "little cores",
    };
    match change {
        Change::Affinity(set) => format!("to CPUs {}", format_cpus(cores.cpu_set(set))),
        Change::Prefer(prefer) => format!("prefers {}", kind(*prefer)),
        Change::Move(prefer) => format!("to {}", kind(*prefer)),
        Change::Rank(rank) => format!("rank {rank}"),
        Change::Weight(weight) => format!("weight {weight}"),
        Change::Speed(_) => "speeds".to_owned(),
        Change::Slice(slice_ns) => format!("slice {:.2} ms", *slice_ns as f64 / 1e6),
        Change::Hold(true) => "held back".to_owned(),
        Change::Hold(false) => "goes on".to_owned(),
    }
}
