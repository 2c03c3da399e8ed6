//! Two running threads that share a physical core are parted if another one of the class is idle (SMT).

use ampsched_model::{CoreId, Ns, ThreadId};

use super::Sched;
use crate::{DecidedBy, Reason, Steal, Witness};

/// How long they have shared it by then (ours): one tick at 250 Hz, as a thread that starts others often sleeps soon.
const SHARED_NS: Ns = 4_000_000;

impl Sched {
    /// Whether cores that idle may take a running thread: from a slower core, or from a shared one.
    #[inline]
    pub fn pulls_running(&self) -> bool {
        self.rules.pulls_running_on(&self.topology)
    }

    /// The thread that an idle core with an idle sibling takes from two that share a physical core of its class, those
    /// who have for longest, or when it would. Only where idle cores steal within a cluster.
    pub(super) fn part(
        &self,
        core: CoreId,
        now_ns: Ns,
        witness: impl Witness,
    ) -> Result<Option<ThreadId>, Ns> {
        let steals = |step: &Steal| step.steals_nearby() && self.may_try(core, step);
        let step = (0..).zip(&self.rules.steal).find(|(_, step)| steals(step));
        let Some((number, _)) = step.filter(|_| !self.shares_core(core)) else { return Ok(None) };
        let class = self.topology.core(core).class;
        let of_class =
            self.topology.cores().filter(|&other| self.topology.core(other).class == class);
        let shared = of_class.filter_map(|other| {
            let beside = self.core(self.topology.sibling(other)?);
            let own = self.core(other);
            let thread = own.running.filter(|&thread| self.allows(thread, core))?;
            beside.running?;
            Some((own.since_ns.max(beside.since_ns), thread, other))
        });
        let Some((since_ns, thread, from)) =
            shared.min_by_key(|&(since_ns, _, from)| (since_ns, from))
        else {
            return Ok(None);
        };
        if now_ns < since_ns + SHARED_NS {
            return Err(since_ns + SHARED_NS);
        }
        witness.because(|| {
            let because = "it shares a physical core with a busy thread, and this one is idle";
            let reason = Reason::new(DecidedBy::Steal(number), because).core("from", from);
            reason.ns("shared_ns", now_ns - since_ns)
        });
        Ok(Some(thread))
    }
}
