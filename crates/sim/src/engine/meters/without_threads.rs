//! Cores without threads: they idle, or do the system's own work.

use ampsched_model::{CoreId, Ns};

use super::{Doing, Meters, Site};

impl Meters {
    /// A core has nothing to run. Returns whether that is news.
    #[inline]
    pub fn rest(&mut self, core: CoreId, site: Site, now_ns: Ns) -> bool {
        let was_running = !matches!(self.cores[core.index()].doing, Doing::Idle { .. });
        if was_running {
            self.set(core, Doing::Idle { state: 0 }, site, now_ns);
        }
        was_running
    }

    /// When an idle core goes into the next idle state, after how long and in which stay.
    pub fn next_deepening(&self, core: CoreId, site: Site) -> Option<(Ns, u32)> {
        let meter = &self.cores[core.index()];
        let Doing::Idle { state } = meter.doing else { return None };
        let states = &site.power(meter.cluster).idle_states;
        let (present, next) = (states.get(state)?, states.get(state + 1)?);
        // A core goes deeper when it has idled for as long as the deeper state needs to pay off.
        let wait_ns = next.min_residency_ns.saturating_sub(present.min_residency_ns);
        Some((wait_ns, meter.stay))
    }

    /// A core has idled long enough for the next idle state, if it is still in the given stay. Returns whether it is.
    pub fn deepen(&mut self, core: CoreId, stay: u32, site: Site, now_ns: Ns) -> bool {
        let meter = &self.cores[core.index()];
        let Doing::Idle { state } = meter.doing else { return false };
        if meter.stay != stay {
            return false;
        }
        self.set(core, Doing::Idle { state: state + 1 }, site, now_ns);
        true
    }

    /// A kernel thread runs on a core: it uses what code uses that waits for memory.
    pub fn run_system(&mut self, core: CoreId, site: Site, now_ns: Ns) {
        self.set(core, Doing::System, site, now_ns);
    }

    /// An interrupt wakes an idle core, which begins to idle anew.
    pub fn disturb(&mut self, core: CoreId, site: Site, now_ns: Ns) {
        let meter = &mut self.cores[core.index()];
        if let Doing::Idle { .. } = meter.doing {
            meter.stay += 1;
            self.set(core, Doing::Idle { state: 0 }, site, now_ns);
        }
    }
}
