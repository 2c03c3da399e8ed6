//! What a session tells about itself.

use ampsched_live_factors::FutexTrace;
use ampsched_live_host::format_cpus;
use ampsched_model::{Ns, ThreadId};
use ampsched_policy::{Factor, FactorKind, Needs, Prefer, RunState};

use super::{Session, used_ns};
use crate::roster::Member;
use crate::status::{CoreStatus, Status, ThreadStatus};

impl Session {
    /// What the policy wants to know and does not get, each in a sentence.
    pub fn missing_factors(&self) -> Vec<String> {
        let (needs, ratio) = (self.setup.driver.needs(), self.setup.cores.speed_ratio());
        let unmet = self.setup.instruments.unmet(needs);
        let unmet = Needs { blame: needs.blame && self.blame.is_none(), ..unmet };
        let mut missing = self.setup.facts.missing(&unmet, ratio);
        missing.extend(self.setup.instruments.reasons());
        missing.extend(self.setup.driver.caveat(self.setup.sensors.has_power_of_clusters()));
        let lost = self.blame.as_ref().map_or(0, FutexTrace::lost);
        if lost > 0 {
            missing.push(format!("blame is too small: {lost} events were lost"));
        }
        missing
    }

    /// How it is now.
    pub fn status(&self) -> Status {
        let setup = &self.setup;
        let age_s = self.looked_ns as f64 / 1e9;
        let degraded = setup.lacks.iter().any(|demand| demand.is_essential);
        let used_ns = used_ns(&self.proc, self.own.tid) - self.used_before_ns;
        Status {
            pid: self.own.tid,
            start_ticks: self.own.start_ticks,
            policy: setup.policy.clone(),
            backend: "daemon".to_owned(),
            mode: if degraded { "degraded" } else { "as written" }.to_owned(),
            lacks: setup.lacks.clone(),
            missing_factors: self.missing_factors(),
            measured: self.setup.instruments.notes().to_vec(),
            energy: self.sensors.energy(),
            cores: setup.cores.describe(),
            freezer: self.freezer.name().to_owned(),
            age_s,
            looks: self.looks,
            epochs: setup.driver.epochs(),
            decisions: self.decisions,
            overhead: if age_s > 0.0 { (used_ns as f64 / 1e9 / age_s).min(1.0) } else { 0.0 },
            failures: self.failures.iter().cloned().collect(),
            threads: self.roster.members().map(|member| self.thread_status(member)).collect(),
            on_cores: self.core_status(),
        }
    }

    fn thread_status(&self, member: &Member) -> ThreadStatus {
        let (driver, cores) = (&self.setup.driver, &self.setup.cores);
        let (sched, factors) = (driver.sched(), driver.factors(member.thread));
        let (state, stats) = (sched.thread(member.thread), sched.stats(member.thread));
        let plan = sched.plan(member.thread);
        let known = |factor: Factor| (factor.kind != FactorKind::Missing).then_some(factor.value);
        let real_ns = |policy_ns: Ns| policy_ns as f64 * driver.dilation().factor();
        let age_s = |then_ns: Ns| (self.looked_ns as f64 - real_ns(then_ns)).max(0.0) / 1e9;
        let class = cores.core(member.cpu).map(|core| cores.topology().core(core).class);
        let cpus = member.given_cpus.as_ref().unwrap_or(&member.before.cpus);
        ThreadStatus {
            tid: member.key.tid,
            pid: member.pid,
            program: member.program.clone(),
            name: member.name.clone(),
            state: match state.state {
                RunState::Running => "running",
                RunState::Ready => "waiting",
                RunState::Held => "held",
                RunState::New | RunState::Blocked | RunState::Exited => "blocked",
            }
            .to_owned(),
            cpu: member.cpu,
            class: class.map_or_else(|| "other".to_owned(), |class| cores.class_name(class)),
            cpus: format_cpus(cpus.iter().copied()),
            wants: match plan.prefer {
                Prefer::Any => "any",
                Prefer::Big => "big",
                Prefer::Little => "little",
            }
            .to_owned(),
            rank: plan.rank,
            blame_s: known(factors.blame_ns).map(|ns| ns / 1e9),
            speedup: known(factors.speedup),
            speedup_kind: match factors.speedup.kind {
                FactorKind::Missing => "missing",
                FactorKind::Predicted => "predicted",
                FactorKind::Measured | FactorKind::Oracle => "measured",
            }
            .to_owned(),
            speedup_age_s: known(factors.speedup).map(|_| age_s(factors.speedup.at_ns)),
            big_s: stats.run_ns[1..].iter().sum::<Ns>() as f64 / 1e9,
            little_s: stats.run_ns[0] as f64 / 1e9,
            migrations: stats.migrations,
        }
    }

    fn core_status(&self) -> Vec<CoreStatus> {
        let (sched, cores) = (self.setup.driver.sched(), &self.setup.cores);
        let tid = |thread: ThreadId| {
            let found = self.roster.members().find(|member| member.thread == thread);
            found.map(|member| member.key.tid)
        };
        let elapsed_ns = self.looked_ns.max(1) as f64;
        let busy = |ns: Ns| ns as f64 * self.setup.driver.dilation().factor() / elapsed_ns;
        let topology = cores.topology();
        let status = |core| CoreStatus {
            cpu: cores.cpu(core),
            class: cores.class_name(topology.core(core).class),
            running: sched.core(core).running.and_then(tid),
            waiting: sched.queue_len(core),
            busy: busy(sched.core(core).busy_ns).min(1.0),
        };
        topology.cores().map(status).collect()
    }
}
