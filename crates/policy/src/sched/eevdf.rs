//! Earliest eligible virtual deadline first: eligibility, deadlines and lag.

use ampsched_model::{CoreId, Ns, ThreadId};

use super::{EnqueueKind, Sched};
use crate::queue::RunQueue;
use crate::weight::to_virtual;
use crate::{DecidedBy, NoWitness, Reason, Slice, Witness};

impl Sched {
    /// EEVDF: whether choosing anew on a core would yield the woken thread, or the request of the
    /// running one is used up anyway (Linux `check_preempt_wakeup_fair`, `pick_eevdf`).
    pub(super) fn is_fresh_pick(
        &self,
        woken: ThreadId,
        running: ThreadId,
        core: CoreId,
        run_to_parity: bool,
        witness: impl Witness,
    ) -> bool {
        let queue = self.queue(core);
        let current = self.thread(running);
        let tell = |because| {
            witness.because(|| {
                let (mean, woken) = (queue.mean_vruntime(), self.thread(woken));
                Reason::new(DecidedBy::Preempt, because)
                    .ns_from("deadline_ns", woken.deadline.into(), mean)
                    .ns_from("vruntime_ns", woken.vruntime.into(), mean)
                    .ns_from("deadline_of_running_ns", current.deadline.into(), mean)
                    .ns_from("vruntime_of_running_ns", current.vruntime.into(), mean)
            });
        };
        if current.vruntime >= current.deadline {
            tell("the running thread's request is used up");
            return true;
        }
        let competes = self.is_eligible(running, queue);
        if run_to_parity && competes {
            tell("the running thread has had no more than its share and runs to parity");
            return false;
        }
        // The time only says how long others have waited, which nobody hears here.
        if self.first_of(queue, core, None, 0, NoWitness) != Some(woken) {
            tell("choosing anew would not choose the woken thread");
            return false;
        }
        if competes && current.deadline <= self.thread(woken).deadline {
            tell("the running thread's deadline is not later");
            return false;
        }
        tell("choosing anew chooses the woken thread");
        true
    }

    /// Whether a thread has had no more than its share (EEVDF: lag >= 0).
    pub(super) fn is_eligible(&self, thread: ThreadId, queue: &RunQueue) -> bool {
        i128::from(self.thread(thread).vruntime) * i128::from(queue.load) <= queue.weighted_vruntime
    }

    /// EEVDF placement: keep the lag that the thread had when it left, scaled for the total weight
    /// that it changes by joining (Linux `place_entity`).
    ///
    /// A woken thread makes a new request, a new thread one of half the length
    /// (`PLACE_DEADLINE_INITIAL`), a moved one keeps what is left (`PLACE_REL_DEADLINE`).
    pub(super) fn place_deadline(&mut self, thread: ThreadId, core: CoreId, kind: EnqueueKind) {
        let queue = self.queue(core);
        let (mean, load) = (queue.mean_vruntime(), i128::from(queue.load));
        let weight = i128::from(self.plans[thread.index()].weight);
        let mut lag = self.kept_lag(thread, kind);
        if load > 0 {
            lag = lag * (load + weight) / load;
        }
        let vruntime = (mean - lag).max(0) as u64;
        let state = &self.threads[thread.index()];
        let request = match kind {
            EnqueueKind::Fork => self.request_virtual(thread) / 2,
            EnqueueKind::Wake => self.request_virtual(thread),
            EnqueueKind::Requeue => state.deadline.saturating_sub(state.vruntime),
        };
        let state = &mut self.threads[thread.index()];
        state.vruntime = vruntime;
        state.deadline = vruntime + request;
    }

    /// What a thread is owed when it comes to a queue.
    fn kept_lag(&self, thread: ThreadId, kind: EnqueueKind) -> i128 {
        let lag = i128::from(self.threads[thread.index()].lag);
        match kind {
            EnqueueKind::Fork => 0,
            EnqueueKind::Wake if lag < 0 => self.remaining_debt(thread).clamp(lag, 0),
            EnqueueKind::Wake | EnqueueKind::Requeue => lag,
        }
    }

    /// The lag of a sleeping thread that owes time, had it stayed in its queue without running, as
    /// Linux leaves it there until it is even (`DELAY_DEQUEUE`, `DELAY_ZERO`).
    ///
    /// With the sleeper of weight w and virtual run time v, the mean of a queue of weight W and mean
    /// V is (W V + w v) / (W + w), and the lag (V - v) W / (W + w).
    fn remaining_debt(&self, thread: ThreadId) -> i128 {
        let state = &self.threads[thread.index()];
        let queue = self.queue(state.core);
        let load = i128::from(queue.load);
        let weight = i128::from(self.plans[thread.index()].weight);
        (queue.mean_vruntime() - i128::from(state.vruntime)) * load / (load + weight)
    }

    /// Remembers, for a thread that leaves its queue, how much time it is owed: at most two requests
    /// (Linux `entity_lag`). A request that is used up is renewed.
    pub(super) fn keep_lag(&mut self, thread: ThreadId, queue: usize) {
        let mean = self.queues[queue].mean_vruntime();
        let request = self.request_virtual(thread);
        let limit = 2 * i128::from(request);
        let state = &mut self.threads[thread.index()];
        state.lag = (mean - i128::from(state.vruntime)).clamp(-limit, limit) as i64;
        if state.vruntime >= state.deadline {
            state.deadline = state.vruntime + request;
        }
    }

    fn request_virtual(&self, thread: ThreadId) -> Ns {
        let plan = &self.plans[thread.index()];
        let request_ns = match self.rules.slice {
            _ if plan.slice_ns > 0 => plan.slice_ns,
            Slice::Request { base_ns } => base_ns,
            Slice::Fixed { .. } | Slice::LatencyShare { .. } => 0,
        };
        to_virtual(request_ns, plan.weight)
    }
}
