//! How a session is now.

use std::collections::{BTreeMap, BTreeSet};

use ampsched_computer::{Proc, format_cpus};
use ampsched_model::{Ns, ThreadId};
use ampsched_policy::{Factor, FactorKind, Needs, Prefer, RunState};

use crate::tell;
use crate::{Account, Backend, CoreStatus, Observed, Scheduled, Session, Status, ThreadStatus};

impl Session {
    /// How it is now.
    pub fn status<B: Backend>(&self, backend: &B) -> Status {
        let (account, looked_ns) = (backend.account(), self.looked_ns());
        let is_degraded = self.lacks.iter().any(|demand| demand.is_essential);
        let mode = match (is_degraded, self.driver.changes_nothing()) {
            (true, _) => "degraded",
            (false, true) => "by the kernel itself",
            (false, false) => "as written",
        };
        Status {
            pid: self.own.key.tid,
            start_ticks: self.own.key.start_ticks,
            policy: self.policy.clone(),
            backend: B::NAME.to_owned(),
            mode: mode.to_owned(),
            lacks: self.lacks.clone(),
            missing_factors: self.missing_factors(&account),
            measured: self.instruments.notes().to_vec(),
            energy: account.energy,
            cores: self.cores.describe(),
            freezer: account.freezer.to_owned(),
            age_s: looked_ns as f64 / 1e9,
            looks: self.counts.looks,
            epochs: self.driver.epochs(),
            decisions: self.counts.decisions,
            overhead: self.own.overhead(&Proc::default(), looked_ns),
            failures: self.failures.iter().cloned().collect(),
            on_cores: self.core_status(backend),
            threads: backend
                .scheduled()
                .map(|member| self.thread_status(backend, &member))
                .collect(),
        }
    }

    /// What the policy wants to know and does not get, each in a sentence.
    fn missing_factors(&self, account: &Account) -> Vec<String> {
        let needs = self.driver.needs();
        let unmet = self.instruments.unmet(needs);
        let unmet = Needs { blame: needs.blame && !account.tells_blame, ..unmet };
        let mut missing = self.facts.missing(&unmet, self.cores.speed_ratio());
        missing.extend(self.instruments.reasons());
        missing.extend(self.driver.caveat(account.has_power_of_clusters));
        missing.extend_from_slice(&account.losses);
        missing
    }

    /// Says for people what is counted, predicted and missing.
    pub(crate) fn tell_what_it_knows<B: Backend>(&self, backend: &B) {
        let missing = self.missing_factors(&backend.account());
        for line in self.instruments.notes().iter().chain(&missing) {
            tell(B::PROGRAM, line);
        }
    }

    fn thread_status(&self, seen: &impl Observed, member: &Scheduled) -> ThreadStatus {
        let (driver, cores, thread) = (&self.driver, &self.cores, member.thread);
        let (sched, factors) = (driver.sched(), driver.factors(thread));
        let (state, stats, plan) = (sched.thread(thread), sched.stats(thread), sched.plan(thread));
        let known = |factor: Factor| (factor.kind != FactorKind::Missing).then_some(factor.value);
        let class = cores.core(member.cpu).map(|core| cores.topology().core(core).class);
        let real_s = |ns: Ns| driver.dilation().to_real(ns) as f64 / 1e9;
        let age_s = |then_ns: Ns| self.looked_ns() as f64 / 1e9 - real_s(then_ns);
        ThreadStatus {
            tid: member.tid,
            pid: member.pid,
            program: member.program.to_owned(),
            name: member.name.to_owned(),
            state: state_in_words(state.state).to_owned(),
            cpu: member.cpu,
            class: class.map_or_else(|| "other".to_owned(), |class| cores.class_name(class)),
            cpus: format_cpus(seen.cpus(self, thread)),
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
            speedup_age_s: known(factors.speedup).map(|_| age_s(factors.speedup.at_ns).max(0.0)),
            big_s: real_s(stats.run_ns[1..].iter().sum()),
            little_s: real_s(stats.run_ns[0]),
            migrations: stats.migrations,
        }
    }

    fn core_status(&self, seen: &impl Observed) -> Vec<CoreStatus> {
        let cores = || self.cores.topology().cores();
        let running: BTreeSet<ThreadId> =
            cores().filter_map(|core| seen.running(self, core)).collect();
        let runs = |known: &Scheduled| running.contains(&known.thread);
        let tids: BTreeMap<ThreadId, i32> =
            seen.scheduled().filter(runs).map(|known| (known.thread, known.tid)).collect();
        let tid = |thread: ThreadId| tids.get(&thread).copied();
        let status = |core| CoreStatus {
            cpu: self.cores.cpu(core),
            class: self.cores.class_name(self.cores.topology().core(core).class),
            running: seen.running(self, core).and_then(tid),
            waiting: seen.waiting(self, core),
            busy: (seen.busy_ns(self, core) as f64 / self.looked_ns().max(1) as f64).min(1.0),
        };
        cores().map(status).collect()
    }
}

/// A state as the status calls it.
fn state_in_words(state: RunState) -> &'static str {
    match state {
        RunState::Running => "running",
        RunState::Ready => "waiting",
        RunState::Held => "held",
        RunState::New | RunState::Blocked | RunState::Exited => "blocked",
    }
}
