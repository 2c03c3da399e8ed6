//! What sessions of all back ends have in common, and how it becomes their status.

use std::collections::BTreeSet;

use ampsched_computer::{CoreMap, Proc, ThreadKey, format_cpus};
use ampsched_live_factors::Energy;
use ampsched_live_host::{Demand, Driver};
use ampsched_model::{AppId, CoreId, InputError, Ns, ThreadId};
use ampsched_policy::{Factor, FactorKind, Prefer, RunState};

use crate::status::{CoreStatus, Status, ThreadStatus};

/// A scheduled thread.
#[derive(Clone, Debug)]
pub struct Scheduled {
    /// Its number.
    pub tid: i32,
    /// Its process.
    pub pid: i32,
    /// Its number for the policy.
    pub thread: ThreadId,
    /// Its application: its process group.
    pub app: AppId,
    /// Name of its program.
    pub program: String,
    /// Its name.
    pub name: String,
    /// The CPU on which it runs, waits or last ran.
    pub cpu: usize,
    /// The CPUs that it may use at present.
    pub cpus: BTreeSet<usize>,
}

/// A session, whatever its means. What is not overridden is what the policy's mirror shows, as of the last look.
pub trait Observed {
    /// The policy's mirror.
    fn driver(&self) -> &Driver;

    /// The machine.
    fn cores(&self) -> &CoreMap;

    /// The scheduled threads.
    fn scheduled(&self) -> impl Iterator<Item = Scheduled>;

    /// The scheduled thread that runs on a core.
    fn running(&self, core: CoreId) -> Option<ThreadId> {
        self.driver().sched().core(core).running
    }

    /// Scheduled threads that wait for a core.
    fn waiting(&self, core: CoreId) -> usize {
        self.driver().sched().queue_len(core)
    }

    /// Time that a core has run scheduled threads, in real ns.
    fn busy_ns(&self, core: CoreId) -> Ns {
        self.driver().dilation().to_real(self.driver().sched().core(core).busy_ns)
    }
}

/// The process of a session, and what it uses itself.
#[derive(Clone, Debug)]
pub struct Own {
    /// Which.
    pub key: ThreadKey,
    /// CPU time that it had used before the session.
    used_before_ns: Ns,
}

impl Own {
    /// This process. Errors: `/proc` does not show it.
    pub fn process(proc: &Proc) -> Result<Self, InputError> {
        let own = proc.process(std::process::id() as i32);
        let own = own.ok_or_else(|| InputError::new("/proc", "", "this process is not in it"))?;
        Ok(Self { key: own.key, used_before_ns: used_ns(proc, own.key.tid) })
    }

    /// Share of one CPU that it has used in the time since then.
    pub fn overhead(&self, proc: &Proc, elapsed_ns: Ns) -> f64 {
        let used = used_ns(proc, self.key.tid).saturating_sub(self.used_before_ns);
        if elapsed_ns > 0 { (used as f64 / elapsed_ns as f64).min(1.0) } else { 0.0 }
    }
}

/// CPU time of a process's first thread (a session has no other).
fn used_ns(proc: &Proc, pid: i32) -> Ns {
    proc.run_and_wait_ns(pid, pid).map_or(0, |(run_ns, _)| run_ns)
}

/// What a back end says about its session beside its threads and cores.
#[derive(Clone, Debug)]
pub struct Account<'a> {
    /// The session's process.
    pub own: &'a Own,
    /// The policy with its parameters, as given.
    pub policy: &'a str,
    /// By which means it runs.
    pub backend: &'a str,
    /// What the policy asks for and does not get.
    pub lacks: &'a [Demand],
    /// Factors that are missing, or the same for all threads.
    pub missing_factors: Vec<String>,
    /// What is counted and predicted, in a line each.
    pub measured: Vec<String>,
    /// Energy since the start, by sensor.
    pub energy: Vec<Energy>,
    /// Means of holding threads back.
    pub freezer: &'a str,
    /// Time of the last look, in ns since the start.
    pub looked_ns: Ns,
    /// Looks at the threads so far.
    pub looks: u64,
    /// Decisions carried out so far.
    pub decisions: u64,
    /// What could not be carried out, each kind once.
    pub failures: Vec<String>,
}

/// How a session is now.
pub fn status_of(session: &impl Observed, account: Account) -> Status {
    let Account { own, looked_ns, .. } = account;
    let degraded = account.lacks.iter().any(|demand| demand.is_essential);
    let scheduled: Vec<Scheduled> = session.scheduled().collect();
    Status {
        pid: own.key.tid,
        start_ticks: own.key.start_ticks,
        policy: account.policy.to_owned(),
        backend: account.backend.to_owned(),
        mode: if degraded { "degraded" } else { "as written" }.to_owned(),
        lacks: account.lacks.to_vec(),
        missing_factors: account.missing_factors,
        measured: account.measured,
        energy: account.energy,
        cores: session.cores().describe(),
        freezer: account.freezer.to_owned(),
        age_s: looked_ns as f64 / 1e9,
        looks: account.looks,
        epochs: session.driver().epochs(),
        decisions: account.decisions,
        overhead: own.overhead(&Proc::default(), looked_ns),
        failures: account.failures,
        on_cores: core_status(session, &scheduled, looked_ns),
        threads: scheduled
            .into_iter()
            .map(|thread| thread_status(session, thread, looked_ns))
            .collect(),
    }
}

fn thread_status(session: &impl Observed, thread: Scheduled, looked_ns: Ns) -> ThreadStatus {
    let (driver, cores) = (session.driver(), session.cores());
    let (sched, factors) = (driver.sched(), driver.factors(thread.thread));
    let (state, stats) = (sched.thread(thread.thread), sched.stats(thread.thread));
    let plan = sched.plan(thread.thread);
    let known = |factor: Factor| (factor.kind != FactorKind::Missing).then_some(factor.value);
    let class = cores.core(thread.cpu).map(|core| cores.topology().core(core).class);
    let age_s =
        |then_ns: Ns| looked_ns.saturating_sub(driver.dilation().to_real(then_ns)) as f64 / 1e9;
    let real_s = |ns: Ns| driver.dilation().to_real(ns) as f64 / 1e9;
    ThreadStatus {
        tid: thread.tid,
        pid: thread.pid,
        program: thread.program,
        name: thread.name,
        state: match state.state {
            RunState::Running => "running",
            RunState::Ready => "waiting",
            RunState::Held => "held",
            RunState::New | RunState::Blocked | RunState::Exited => "blocked",
        }
        .to_owned(),
        cpu: thread.cpu,
        class: class.map_or_else(|| "other".to_owned(), |class| cores.class_name(class)),
        cpus: format_cpus(thread.cpus),
        wants: match plan.prefer {
            Prefer::Any => "any",
            Prefer::Big => "big",
            Prefer::Little => "little",
        }
        .to_owned(),
        rank: plan.rank,
        blame_s: known(factors.blame_ns).map(|ns| ns / 1e9 * driver.dilation().factor()),
        speedup: known(factors.speedup),
        speedup_kind: match factors.speedup.kind {
            FactorKind::Missing => "missing",
            FactorKind::Predicted => "predicted",
            FactorKind::Measured | FactorKind::Oracle => "measured",
        }
        .to_owned(),
        speedup_age_s: known(factors.speedup).map(|_| age_s(factors.speedup.at_ns)),
        big_s: real_s(stats.run_ns[1..].iter().sum()),
        little_s: real_s(stats.run_ns[0]),
        migrations: stats.migrations,
    }
}

fn core_status(
    session: &impl Observed,
    scheduled: &[Scheduled],
    elapsed_ns: Ns,
) -> Vec<CoreStatus> {
    let cores = session.cores();
    let tid = |thread: ThreadId| {
        scheduled.iter().find(|known| known.thread == thread).map(|known| known.tid)
    };
    let status = |core| CoreStatus {
        cpu: cores.cpu(core),
        class: cores.class_name(cores.topology().core(core).class),
        running: session.running(core).and_then(tid),
        waiting: session.waiting(core),
        busy: (session.busy_ns(core) as f64 / elapsed_ns.max(1) as f64).min(1.0),
    };
    cores.topology().cores().map(status).collect()
}
