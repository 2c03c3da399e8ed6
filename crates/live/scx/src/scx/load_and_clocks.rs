//! What the kernel tracks by itself is told to the policy, and the clocks that the policy wants are set.

use ampsched_live_driver::Decision;
use ampsched_live_session::Session;

use super::{FastPlane, Scx};
use crate::layout::Operation;
use crate::{loads, lower};

impl<K: FastPlane> Scx<K> {
    /// Tells the policy's mirror what the kernel's load tracking says now: of all, as loads rise and fall with time
    /// alone.
    pub(super) fn tell_loads(&self, session: &mut Session) {
        let Some(kernel) = &self.kernel else { return };
        let Some(seen) = kernel.loads() else { return };
        let now_ns = kernel.clock_ns();
        for (slot, own) in (0..).zip(&seen.threads) {
            let Some(thread) = self.members.thread_in(slot) else { continue };
            let core = &seen.cores[own.core as usize];
            session.driver.set_load(thread, loads::of_thread(core, own, seen.unit_ns, now_ns));
        }
        for (core, own) in session.cores.topology().cores().zip(&seen.cores) {
            session.driver.set_core_load(core, loads::of_core(own, seen.unit_ns, now_ns));
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
