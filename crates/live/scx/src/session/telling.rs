//! What a session tells about itself.

use ampsched_computer::CoreMap;
use ampsched_live_daemon::{Account, Observed, Scheduled, Status, status_of};
use ampsched_live_host::Driver;
use ampsched_model::{CoreId, Ns, ThreadId};
use ampsched_policy::Needs;

use super::{Member, Session};

/// Who runs, who waits and for how long is the kernel's word, not the mirror's.
impl Observed for Session {
    fn driver(&self) -> &Driver {
        &self.driver
    }

    fn cores(&self) -> &CoreMap {
        &self.cores
    }

    fn scheduled(&self) -> impl Iterator<Item = Scheduled> {
        self.members.iter().flatten().map(|member| self.scheduled_as(member))
    }

    fn running(&self, core: CoreId) -> Option<ThreadId> {
        let slot = self.seen.cores[core.index()].running as usize;
        self.members.get(slot)?.as_ref().map(|member| member.thread)
    }

    fn waiting(&self, core: CoreId) -> usize {
        let queue = self.seen.cores[core.index()].queue as usize;
        self.seen.queues.get(queue).map_or(0, |queue| queue.len as usize)
    }

    fn busy_ns(&self, core: CoreId) -> Ns {
        self.seen.cores[core.index()].busy_ns
    }
}

impl Session {
    fn scheduled_as(&self, member: &Member) -> Scheduled {
        let sched = self.driver.sched();
        Scheduled {
            tid: member.tid as i32,
            pid: member.process as i32,
            thread: member.thread,
            app: member.app,
            program: member.program.clone(),
            name: member.name.clone(),
            cpu: self.cores.cpu(sched.thread(member.thread).core),
            cpus: self.cores.cpu_set(sched.affinity(member.thread)),
        }
    }

    /// What the policy wants to know and does not get, each in a sentence.
    pub fn missing_factors(&self) -> Vec<String> {
        // Blame is counted in the kernel.
        let needs = Needs { blame: false, ..self.instruments.unmet(self.driver.needs()) };
        let mut missing = self.facts.missing(&needs, self.cores.speed_ratio());
        missing.extend(self.driver.caveat(false));
        missing
    }

    /// How it is now.
    pub fn status(&self) -> Status {
        let account = Account {
            own: &self.own,
            policy: &self.policy,
            backend: "scx",
            // A policy that lacks anything in the kernel is refused.
            lacks: &[],
            missing_factors: self.missing_factors(),
            measured: self.instruments.notes().to_vec(),
            energy: Vec::new(),
            freezer: "the scheduler itself",
            looked_ns: self.looked_ns,
            looks: self.looks,
            decisions: self.decisions,
            failures: self.not_measured.iter().cloned().chain(self.instruments.reasons()).collect(),
        };
        status_of(self, account)
    }
}
