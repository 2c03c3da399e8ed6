//! What the kernel tracks by itself is told to the policy, and the clocks that the policy wants are set.

use ampsched_live_driver::Decision;
use ampsched_live_session::Session;

use super::Scx;
use crate::kernel::monotonic_ns;
use crate::layout::{Operation, Thread};
use crate::{loads, lower};

impl Scx {
    /// Tells the policy's mirror what the kernel's load tracking says now.
    pub(super) fn tell_loads(&self, session: &mut Session, threads: &[Thread]) {
        if self.seen.tracking == 0 {
            return;
        }
        let (now_ns, unit_ns) = (monotonic_ns(), self.seen.unit_ns);
        let known = self.members.iter().zip(threads);
        for (member, seen) in known.filter_map(|(member, seen)| Some((member.as_ref()?, seen))) {
            let core = &self.seen.cores[seen.tracked.core as usize].tracked;
            let load = loads::of_thread(core, &seen.tracked, unit_ns, now_ns);
            session.driver.set_load(member.thread, load);
        }
        for core in session.cores.topology().cores() {
            let own = &self.seen.cores[core.index()].tracked;
            session.driver.set_core_load(core, loads::of_core(own, unit_ns, now_ns));
        }
    }

    /// Sets the clocks that the policy wants; returns what load tracking has to know of it.
    pub(super) fn set_clocks(
        &mut self,
        session: &mut Session,
        decisions: &[Decision],
    ) -> Vec<Operation> {
        let mut operations = Vec::new();
        for decision in decisions {
            match *decision {
                Decision::Frequency(cluster, mhz) => {
                    let set = self.clocks.set_cluster(session, cluster, mhz, &mut self.journal);
                    let Some(mhz) = set else { continue };
                    let cluster = &session.cores.topology().clusters()[cluster.index()];
                    let max_mhz = cluster.max_mhz().unwrap_or(mhz);
                    let paces = cluster.cores.iter().map(|&core| lower::pace(core, mhz, max_mhz));
                    operations.extend(paces);
                }
                Decision::Limit(cluster, mhz) => {
                    self.clocks.limit_cluster(session, cluster, mhz, &mut self.journal);
                }
                Decision::Thread(..) => {}
            }
        }
        operations
    }
}
