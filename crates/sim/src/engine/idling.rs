//! Idle cores that have to leave an idle state before they do anything (`idle_exit` of a machine's costs).
//!
//! A core goes deeper when it has idled for as long as the deeper state needs to pay off, as for its power
//! (`meters/`). Whatever wakes it up then, it looks for work only when the exit latency is over; until then it counts
//! as idle. An interrupt that brings no work makes it begin anew; a look that finds none does not.

use ampsched_model::{CoreId, Machine, Ns};

use super::Engine;
use super::timers::NEVER;

/// An idle core.
#[derive(Clone, Copy, Debug)]
struct Rest {
    since_ns: Ns,
    /// What the core had done by then.
    done_ns: Ns,
    /// When it has left its idle state; `NEVER` while nothing wakes it up.
    awake_ns: Ns,
}

/// How long each core idles.
pub(super) struct Idling(Vec<Rest>);

impl Idling {
    /// All idle; none if leaving idle states takes no time.
    pub fn new(machine: &Machine) -> Option<Box<Self>> {
        let rest = Rest { since_ns: 0, done_ns: 0, awake_ns: NEVER };
        (machine.longest_exit_ns() > 0).then(|| Box::new(Self(vec![rest; machine.cores()])))
    }
}

impl Engine<'_> {
    /// A core has nothing to run; it must be accounted up to now.
    #[inline]
    pub(super) fn idles(&mut self, core: CoreId) {
        let Some(idling) = self.idling.as_deref_mut() else { return };
        let rest = &mut idling.0[core.index()];
        let done_ns = self.sched.core(core).busy_ns + self.cores[core].noise_ns;
        if done_ns != rest.done_ns {
            *rest = Rest { since_ns: self.events.now_ns(), done_ns, awake_ns: NEVER };
        }
    }

    /// An interrupt without work wakes an idle core up.
    pub(super) fn idles_anew(&mut self, core: CoreId) {
        let now_ns = self.events.now_ns();
        if let Some(idling) = self.idling.as_deref_mut() {
            idling.0[core.index()].since_ns = now_ns;
        }
    }

    /// The timer of a core without a thread is due: whether it still has to leave its idle state.
    #[inline]
    pub(super) fn still_wakes_up(&mut self, core: CoreId) -> bool {
        self.idling.is_some() && self.wakes_up(core)
    }

    #[cold]
    fn wakes_up(&mut self, core: CoreId) -> bool {
        let (now_ns, is_free) = (self.events.now_ns(), self.sched.is_free(core));
        let Some(idling) = self.idling.as_deref_mut().filter(|_| is_free) else { return false };
        let rest = &mut idling.0[core.index()];
        // It has just lost its thread to another core.
        if rest.done_ns != self.sched.core(core).busy_ns + self.cores[core].noise_ns {
            return false;
        }
        if rest.awake_ns == NEVER {
            let cluster = &self.setup.machine.clusters[self.cores[core].cluster.index()];
            rest.awake_ns = now_ns + cluster.power.exit_after_ns(now_ns - rest.since_ns);
        }
        let is_asleep = now_ns < rest.awake_ns;
        if is_asleep {
            self.events.timers.set(core, rest.awake_ns);
            self.meter_idle(core);
        } else {
            rest.awake_ns = NEVER;
        }
        is_asleep
    }
}
