//! What a back end shows of the threads and cores that it schedules.

use std::collections::BTreeSet;

use ampsched_live_factors::Energy;
use ampsched_model::{AppId, CoreId, Ns, ThreadId};

use crate::Session;

/// A scheduled thread.
#[derive(Clone, Copy, Debug)]
pub struct Scheduled<'a> {
    /// Its number.
    pub tid: i32,
    /// Its process.
    pub pid: i32,
    /// Its number for the policy.
    pub thread: ThreadId,
    /// Its application: its process group.
    pub app: AppId,
    /// Name of its program.
    pub program: &'a str,
    /// Its name.
    pub name: &'a str,
    /// The CPU on which it runs, waits or last ran.
    pub cpu: usize,
    /// How long others have waited for it since it was found, in real ns; none if nothing tells.
    pub blame_ns: Option<Ns>,
}

/// What is seen of the system. What is not overridden is what the policy's mirror shows, as of the last look.
pub trait Observed {
    /// The scheduled threads.
    fn scheduled(&self) -> impl Iterator<Item = Scheduled<'_>>;

    /// Threads that may have changed at the last observation: what was seen of them, their program or their group.
    fn changed(&self) -> impl Iterator<Item = Scheduled<'_>> {
        self.scheduled()
    }

    /// The CPUs that a thread may use at present.
    fn cpus(&self, session: &Session, thread: ThreadId) -> BTreeSet<usize> {
        session.cores.cpu_set(session.driver.sched().affinity(thread))
    }

    /// The scheduled thread that runs on a core.
    fn running(&self, session: &Session, core: CoreId) -> Option<ThreadId> {
        session.driver.sched().core(core).running
    }

    /// Scheduled threads that wait for a core.
    fn waiting(&self, session: &Session, core: CoreId) -> usize {
        session.driver.sched().queue_len(core)
    }

    /// Time that a core has run scheduled threads, in real ns.
    fn busy_ns(&self, session: &Session, core: CoreId) -> Ns {
        session.driver.dilation().to_real(session.driver.sched().core(core).busy_ns)
    }

    /// What else it says about itself.
    fn account(&self) -> Account;
}

/// What a back end says about itself beside its threads and cores.
#[derive(Clone, Debug)]
pub struct Account {
    /// Means of holding threads back.
    pub freezer: &'static str,
    /// Whether it knows who waits for whom.
    pub tells_blame: bool,
    /// Whether it reads power sensors of clusters.
    pub has_power_of_clusters: bool,
    /// Energy since the start, by sensor.
    pub energy: Vec<Energy>,
    /// What was lost of what it measures, each in a sentence.
    pub losses: Vec<String>,
}
