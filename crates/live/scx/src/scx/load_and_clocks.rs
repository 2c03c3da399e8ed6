//! What the kernel tracks by itself is told to the policy, and the clocks that the policy wants are set.

use ampsched_live_driver::Decision;
use ampsched_live_session::Session;

use super::{KernelPlane, Scx, load_unit_ns};
use crate::layout::Operation;
use crate::{loads, lower};

impl<K: KernelPlane> Scx<K> {
    /// Tells the policy's mirror what the kernel's load tracking says now: of all cores, and of the threads that have
    /// changed. Loads of others rise and fall with their cores' time alone.
    pub(super) fn tell_loads(&self, session: &mut Session) {
        let (Some(kernel), driver) = (&self.kernel, &mut session.driver) else { return };
        if driver.needs().load_tracking.is_none() {
            return;
        }
        let (unit_ns, now_ns) = (load_unit_ns(driver), kernel.clock_ns());
        for (slot, seen) in &self.changed {
            if let Some(thread) = self.members.thread_in(*slot) {
                driver.set_load(thread, loads::kept(&seen.tracked, unit_ns));
            }
        }
        for (core, seen) in session.cores.topology().cores().zip(&self.cores.cores) {
            let (own, time_ns) = (&seen.tracked, loads::time_ns(&seen.tracked, now_ns));
            driver.set_core_load(core, loads::of_core(own, unit_ns, now_ns), time_ns);
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
