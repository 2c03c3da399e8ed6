//! What a session tells about itself.

use ampsched_computer::CoreMap;
use ampsched_live_factors::FutexTrace;
use ampsched_live_host::Driver;
use ampsched_policy::Needs;

use super::Session;
use crate::observed::{Account, Observed, Scheduled, status_of};
use crate::roster::Member;
use crate::status::Status;

impl Observed for Session {
    fn driver(&self) -> &Driver {
        &self.setup.driver
    }

    fn cores(&self) -> &CoreMap {
        &self.setup.cores
    }

    fn scheduled(&self) -> impl Iterator<Item = Scheduled> {
        self.roster.members().map(scheduled)
    }
}

fn scheduled(member: &Member) -> Scheduled {
    Scheduled {
        tid: member.key.tid,
        pid: member.pid,
        thread: member.thread,
        app: member.app,
        program: member.program.clone(),
        name: member.name.clone(),
        cpu: member.cpu,
        cpus: member.given_cpus.as_ref().unwrap_or(&member.before.cpus).clone(),
    }
}

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
        let account = Account {
            own: &self.own,
            policy: &self.setup.policy,
            backend: "daemon",
            lacks: &self.setup.lacks,
            missing_factors: self.missing_factors(),
            measured: self.setup.instruments.notes().to_vec(),
            energy: self.sensors.energy(),
            freezer: self.freezer.name(),
            looked_ns: self.looked_ns,
            looks: self.looks,
            decisions: self.decisions,
            failures: self.failures.iter().cloned().collect(),
        };
        status_of(self, account)
    }
}
