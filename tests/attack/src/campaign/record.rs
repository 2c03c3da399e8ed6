//! What a trace tells, added up by somebody who knows nothing of the engine.

use ampsched_model::{ClusterId, CoreId, Ns, ThreadId};
use ampsched_policy::{Reason, RunState};
use ampsched_sim::{Decision, Outcome, Trace, TraceThread, TurnEnd};

/// What the trace of one simulation comes to.
#[derive(Debug, Default)]
pub struct Record {
    cores: Vec<Core>,
    threads: Vec<Thread>,
    last_ns: Ns,
    dispatches: u64,
    wakeups: u64,
    preemptions: u64,
    /// The first contradiction.
    flaw: Option<String>,
    /// Frequencies of each cluster from each moment on.
    pub clocks: Vec<(ClusterId, u32, Ns)>,
}

#[derive(Clone, Debug, Default)]
struct Core {
    running: Option<(ThreadId, Ns)>,
    busy_ns: Ns,
}

#[derive(Clone, Debug, Default)]
struct Thread {
    on: Option<CoreId>,
    last: Option<CoreId>,
    run_ns: Ns,
    instructions: u64,
    migrations: u64,
    exited: bool,
    /// It is blocked, or held back.
    waits: bool,
}

impl Record {
    fn at(&mut self, at_ns: Ns) {
        if at_ns < self.last_ns {
            self.flaw(format!("time goes back from {} ns to {at_ns} ns", self.last_ns));
        }
        self.last_ns = at_ns;
    }

    fn flaw(&mut self, what: String) {
        self.flaw.get_or_insert(what);
    }

    fn core(&mut self, core: CoreId) -> &mut Core {
        if self.cores.len() <= core.index() {
            self.cores.resize(core.index() + 1, Core::default());
        }
        &mut self.cores[core.index()]
    }

    /// What the trace and the results contradict each other in.
    pub fn contradiction(&self, outcome: &Outcome) -> Option<String> {
        if self.flaw.is_some() {
            return self.flaw.clone();
        }
        let end_ns = outcome.makespan_ns;
        if self.last_ns > end_ns {
            return Some(format!(
                "the trace goes on until {} ns, the run until {end_ns} ns",
                self.last_ns
            ));
        }
        if self.threads.len() != outcome.threads.len() {
            return Some(format!(
                "the trace has {} threads, the results {}",
                self.threads.len(),
                outcome.threads.len()
            ));
        }
        let unequal = |what: &str, traced: u64, told: u64| {
            (traced != told).then(|| format!("{what}: the trace has {traced}, the results {told}"))
        };
        let busy =
            |core: &Core| core.busy_ns + core.running.map_or(0, |(_, since_ns)| end_ns - since_ns);
        let cores = outcome.cores.iter().enumerate().find_map(|(index, told)| {
            let traced = self.cores.get(index).map_or(0, busy);
            unequal(&format!("core {index} busy, in ns"), traced, told.busy_ns)
        });
        let threads = outcome.threads.iter().zip(&self.threads).find_map(|(told, traced)| {
            let name = &told.name;
            let still = traced.on.and_then(|core| self.cores[core.index()].running);
            let run_ns = traced.run_ns + still.map_or(0, |(_, since_ns)| end_ns - since_ns);
            unequal(&format!("thread {name} ran, in ns"), run_ns, told.run_ns())
                .or_else(|| {
                    unequal(&format!("thread {name} migrated"), traced.migrations, told.migrations)
                })
                .or_else(|| match still {
                    // Whoever still runs has retired more than was told.
                    Some(_) => None,
                    None => unequal(
                        &format!("thread {name} retired"),
                        traced.instructions,
                        told.instructions,
                    ),
                })
        });
        let counts = &outcome.counts;
        cores
            .or(threads)
            .or_else(|| unequal("dispatches", self.dispatches, counts.dispatches))
            .or_else(|| unequal("wake-ups", self.wakeups, counts.wakeups))
            .or_else(|| unequal("pre-emptions", self.preemptions, counts.preemptions))
    }
}

impl Trace for Record {
    fn thread(&mut self, thread: TraceThread<'_>) {
        if thread.id.index() != self.threads.len() {
            self.flaw(format!("thread {} is introduced out of order", thread.id.0));
        }
        self.threads.push(Thread::default());
    }

    fn run(&mut self, core: CoreId, thread: ThreadId, why: Option<&Reason>, at_ns: Ns) {
        self.at(at_ns);
        self.dispatches += 1;
        if why.is_none() {
            self.flaw(format!("no reason is given why core {} runs thread {}", core.0, thread.0));
        }
        if let Some((other, _)) = self.core(core).running.replace((thread, at_ns)) {
            self.flaw(format!("core {} runs thread {} and thread {}", core.0, other.0, thread.0));
        }
        let entry = &mut self.threads[thread.index()];
        let (on, exited) = (entry.on.replace(core), entry.exited);
        entry.migrations += u64::from(entry.last.is_some_and(|last| last != core));
        entry.last = Some(core);
        if let Some(other) = on {
            self.flaw(format!("thread {} runs on core {} and core {}", thread.0, other.0, core.0));
        }
        if exited {
            self.flaw(format!("thread {} runs after its end", thread.0));
        }
    }

    fn stop(&mut self, core: CoreId, thread: ThreadId, end: TurnEnd<'_>, at_ns: Ns) {
        self.at(at_ns);
        let Some((running, since_ns)) = self.core(core).running.take() else {
            return self.flaw(format!("core {} stops thread {}, but idles", core.0, thread.0));
        };
        if running != thread {
            return self.flaw(format!(
                "core {} stops thread {}, but runs {}",
                core.0, thread.0, running.0
            ));
        }
        let Some(instructions) = end.instructions else {
            return self.flaw(format!("nobody counted the instructions of thread {}", thread.0));
        };
        let turn_ns = at_ns - since_ns;
        self.core(core).busy_ns += turn_ns;
        let entry = &mut self.threads[thread.index()];
        entry.on = None;
        entry.run_ns += turn_ns;
        entry.instructions += instructions;
        entry.exited = end.state == RunState::Exited;
        entry.waits = end.state == RunState::Blocked;
    }

    fn wake(
        &mut self,
        _waker: Option<ThreadId>,
        woken: ThreadId,
        _core: Option<CoreId>,
        at_ns: Ns,
    ) {
        self.at(at_ns);
        let entry = &mut self.threads[woken.index()];
        // Threads that start, or have to go to another queue, become runnable, too, but do not wake.
        self.wakeups += u64::from(std::mem::take(&mut entry.waits));
        if entry.on.is_some() {
            self.flaw(format!("thread {} wakes while it runs", woken.0));
        }
    }

    fn decided(
        &mut self,
        thread: ThreadId,
        decision: Decision<'_>,
        _why: Option<&Reason>,
        at_ns: Ns,
    ) {
        self.at(at_ns);
        self.threads[thread.index()].waits |= matches!(decision, Decision::Held);
        self.preemptions += u64::from(matches!(decision, Decision::Interrupts { yes: true, .. }));
    }

    fn frequency(&mut self, cluster: ClusterId, mhz: u32, at_ns: Ns) {
        self.at(at_ns);
        self.clocks.push((cluster, mhz, at_ns));
    }

    fn queue_len(&mut self, _core: CoreId, _len: usize, at_ns: Ns) {
        self.at(at_ns);
    }
}
