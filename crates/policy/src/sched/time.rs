//! Virtual time: what running costs, how long a slice lasts, who may interrupt whom.

use ampsched_model::{CoreId, Ns, ThreadId};

use super::{EnqueueKind, Sched};
use crate::queue::RunQueue;
use crate::weight::{WEIGHT_ONE, to_real, to_virtual};
use crate::{Charge, DecidedBy, NoWitness, Order, Reason, SPEED_ONE, Slice, WakePreempt, Witness};

impl Sched {
    /// Charges the thread that runs on a core for time and instructions.
    #[inline]
    pub fn charge(&mut self, core: CoreId, ran_ns: Ns, instructions: u64) {
        let cpu = &mut self.cores[core.index()];
        let thread = cpu.running.expect("a thread runs on the core");
        cpu.busy_ns += ran_ns;
        let class = cpu.class.index();
        let stats = &mut self.stats[thread.index()];
        stats.run_ns[class] += ran_ns;
        stats.instructions[class] += instructions;
        if self.rules.order != Order::Fifo {
            self.charge_vruntime(thread, core, ran_ns);
        }
    }

    #[inline]
    fn charge_vruntime(&mut self, thread: ThreadId, core: CoreId, ran_ns: Ns) {
        let weight = self.plans[thread.index()].weight;
        let is_plain = self.rules.charge == Charge::Time && u64::from(weight) == WEIGHT_ONE;
        let delta = if is_plain { ran_ns } else { self.turn_virtual_ns(thread, core, ran_ns) };
        let state = &mut self.threads[thread.index()];
        state.vruntime += delta;
        let vruntime = state.vruntime;
        let queue = &mut self.queues[usize::from(self.cores[core.index()].queue)];
        if self.rules.order == Order::Deadline {
            queue.weighted_vruntime += i128::from(weight) * i128::from(delta);
        } else {
            let least = queue.least().map_or(vruntime, |least| least.min(vruntime));
            queue.min_vruntime = queue.min_vruntime.max(least);
        }
    }

    /// Virtual run time for a further part of the turn on a core. Only the turn as a whole is rounded, so that it
    /// does not matter in how many parts it is charged.
    #[inline(never)]
    fn turn_virtual_ns(&mut self, thread: ThreadId, core: CoreId, ran_ns: Ns) -> Ns {
        let turn_ns = self.cores[core.index()].turn_ns + ran_ns;
        let counted_ns = self.counted_ns(thread, core, turn_ns);
        let virtual_ns = to_virtual(counted_ns, self.plans[thread.index()].weight);
        let cpu = &mut self.cores[core.index()];
        cpu.turn_ns = turn_ns;
        virtual_ns - std::mem::replace(&mut cpu.turn_virtual_ns, virtual_ns)
    }

    /// What time on a core counts, apart from the thread's weight.
    pub(super) fn counted_ns(&self, thread: ThreadId, core: CoreId, ran_ns: Ns) -> Ns {
        ran_ns * u64::from(self.pace(thread, core)) / u64::from(SPEED_ONE)
    }

    /// How much faster than real time a thread of weight 1024 is charged on a core, in the plan's fixed point.
    #[inline]
    pub(super) fn pace(&self, thread: ThreadId, core: CoreId) -> u16 {
        match self.rules.charge {
            Charge::Time => SPEED_ONE,
            Charge::Progress => self.speed(thread, core),
            Charge::Rated => self.rules.rating[self.cores[core.index()].class.index()],
        }
    }

    /// Predicted speed of a thread on a core in the plan's fixed point.
    #[inline]
    pub(super) fn speed(&self, thread: ThreadId, core: CoreId) -> u16 {
        self.plans[thread.index()].speed[self.cores[core.index()].class.index()]
    }

    /// How long a thread may run on a core while others wait, in ns.
    #[inline]
    pub fn slice_by_rules(&self, thread: ThreadId, core: CoreId) -> Ns {
        self.slice_watched(thread, core, NoWitness)
    }

    #[inline]
    fn slice_watched(&self, thread: ThreadId, core: CoreId, witness: impl Witness) -> Ns {
        let plan = &self.plans[thread.index()];
        if plan.slice_ns > 0 {
            witness.because(|| {
                Reason::new(DecidedBy::Plan, "the slice that the plan gives it is over")
                    .ns("slice_ns", plan.slice_ns)
            });
            return plan.slice_ns;
        }
        let slice = match self.rules.slice {
            Slice::Fixed { slice_ns } => slice_ns,
            Slice::LatencyShare { latency_ns, min_granularity_ns } => {
                Share::of(self.queue(core)).slice_ns(plan.weight, latency_ns, min_granularity_ns)
            }
            Slice::Request { base_ns } => base_ns,
        };
        let slice_ns = if self.rules.slice_by_speed {
            slice * u64::from(SPEED_ONE) / u64::from(self.speed(thread, core).max(1))
        } else {
            slice
        };
        witness.because(|| {
            let reason = Reason::new(DecidedBy::Slice, "its slice is over");
            let reason = reason.ns("slice_ns", slice_ns);
            match self.rules.slice_by_speed {
                true => {
                    let speed = f64::from(self.speed(thread, core)) / f64::from(SPEED_ONE);
                    reason.real("divided_by_speed", speed)
                }
                false => reason,
            }
        });
        slice_ns
    }

    /// When the thread that runs on a core has to let others run; none if nobody waits
    /// ([`Sched::is_contended`]).
    ///
    /// The running thread must have been charged up to `now_ns`. `slice_ns` replaces the rules' slice.
    #[inline]
    pub fn expiry_ns(&self, core: CoreId, slice_ns: Option<Ns>, now_ns: Ns) -> Option<Ns> {
        self.expiry_watched(core, slice_ns, now_ns, NoWitness)
    }

    /// The same, telling a witness why the turn ends then.
    #[inline]
    pub fn expiry_watched(
        &self,
        core: CoreId,
        slice_ns: Option<Ns>,
        now_ns: Ns,
        witness: impl Witness,
    ) -> Option<Ns> {
        if self.has_rounds() {
            return self.expiry_in_rounds(core, slice_ns, now_ns, witness);
        }
        if self.queue(core).is_empty() {
            return None;
        }
        let thread = self.cores[core.index()].running?;
        Some(self.at_tick(self.slice_end_ns(core, thread, slice_ns, now_ns, witness).max(now_ns)))
    }

    /// When the slice of the thread that runs on a core ends.
    #[inline]
    pub(super) fn slice_end_ns(
        &self,
        core: CoreId,
        thread: ThreadId,
        slice_ns: Option<Ns>,
        now_ns: Ns,
        witness: impl Witness,
    ) -> Ns {
        let since_ns = self.cores[core.index()].since_ns;
        match slice_ns {
            Some(slice_ns) => {
                witness.because(|| {
                    Reason::new(DecidedBy::Hook, "its slice is over").ns("slice_ns", slice_ns)
                });
                since_ns + slice_ns
            }
            None => self.expiry_by_rules(core, thread, since_ns, now_ns, witness),
        }
    }

    /// The next tick, if there are ticks.
    #[inline]
    pub(super) fn at_tick(&self, due_ns: Ns) -> Ns {
        match self.rules.tick_ns {
            Some(tick_ns) => due_ns.div_ceil(tick_ns) * tick_ns,
            None => due_ns,
        }
    }

    #[inline]
    fn expiry_by_rules(
        &self,
        core: CoreId,
        thread: ThreadId,
        since_ns: Ns,
        now_ns: Ns,
        witness: impl Witness,
    ) -> Ns {
        let weight = self.plans[thread.index()].weight;
        match self.rules.slice {
            Slice::Fixed { .. } => since_ns + self.slice_watched(thread, core, witness),
            Slice::Request { .. } => {
                let state = self.thread(thread);
                let left = state.deadline.saturating_sub(state.vruntime);
                witness.because(|| {
                    Reason::new(DecidedBy::Slice, "its request is used up")
                        .ns("left_of_request_ns", left)
                });
                now_ns + to_real(left, weight)
            }
            Slice::LatencyShare { min_granularity_ns, .. } => {
                let slice = self.slice_watched(thread, core, witness);
                let by_share = since_ns + slice;
                // Linux check_preempt_tick: past the minimum granularity, being a slice ahead of the
                // leftmost waiting thread also ends the turn.
                let Some(first) = self.leftmost_key(core) else { return by_share };
                let ahead = (first + slice).saturating_sub(self.thread(thread).vruntime);
                let by_lead = (since_ns + min_granularity_ns).max(now_ns + to_real(ahead, weight));
                if by_lead < by_share {
                    witness.because(|| {
                        let because = "it is a slice ahead of the first thread that waits";
                        Reason::new(DecidedBy::Slice, because)
                            .ns("slice_ns", slice)
                            .ns("min_granularity_ns", min_granularity_ns)
                    });
                }
                by_share.min(by_lead)
            }
        }
    }

    fn leftmost_key(&self, core: CoreId) -> Option<Ns> {
        match self.rules.order {
            Order::Vruntime => self.queue(core).least(),
            Order::Fifo | Order::Deadline | Order::HighestRank { .. } | Order::Rounds { .. } => {
                None
            }
        }
    }

    /// Whether a woken thread, already in the core's queue, interrupts the one that runs there.
    ///
    /// The running thread must have been charged up to now.
    pub fn preempts_by_rules(&self, woken: ThreadId, running: ThreadId, core: CoreId) -> bool {
        self.preempts_watched(woken, running, core, NoWitness)
    }

    /// The same, telling a witness why or why not.
    pub fn preempts_watched(
        &self,
        woken: ThreadId,
        running: ThreadId,
        core: CoreId,
        witness: impl Witness,
    ) -> bool {
        if self.some_batch && self.rules.preempt != WakePreempt::Never {
            if let Some((yes, because)) = self.preempts_by_class(woken, running) {
                witness.because(|| Reason::new(DecidedBy::Class, because));
                return yes;
            }
        }
        match self.rules.preempt {
            WakePreempt::Never => {
                let because = "a woken thread never interrupts";
                witness.because(|| Reason::new(DecidedBy::Preempt, because));
                false
            }
            WakePreempt::VruntimeGap { granularity_ns } => {
                let running = self.thread(running).vruntime;
                self.is_behind_by(woken, running, granularity_ns, witness)
            }
            WakePreempt::ScaledVruntimeGap { scaled_granularity_ns } => {
                let scaled = self.scaled_vruntime(running, core);
                self.is_behind_by(woken, scaled, scaled_granularity_ns, witness)
            }
            WakePreempt::EarlierDeadline { run_to_parity } => {
                self.is_fresh_pick(woken, running, core, run_to_parity, witness)
            }
        }
    }

    /// Whether a woken thread is behind a virtual run time by more than a granularity.
    fn is_behind_by(
        &self,
        woken: ThreadId,
        vruntime: Ns,
        granularity_ns: Ns,
        witness: impl Witness,
    ) -> bool {
        let own = self.thread(woken).vruntime;
        let granularity = to_virtual(granularity_ns, self.plans[woken.index()].weight);
        let is_behind = vruntime.saturating_sub(own) > granularity;
        witness.because(|| {
            let because = match is_behind {
                true => "the woken thread's virtual run time is smaller by more than the granularity",
                false => "the woken thread's virtual run time is not smaller by more than the granularity",
            };
            Reason::new(DecidedBy::Preempt, because)
                .ns_from("gap_ns", vruntime.into(), own.into())
                .ns("granularity_ns", granularity)
        });
        is_behind
    }

    /// Virtual run time of the running thread, its part above the queue's least divided by its speed
    /// on that core (only that part has a meaning).
    fn scaled_vruntime(&self, running: ThreadId, core: CoreId) -> Ns {
        let current = self.thread(running).vruntime;
        let floor = self.queue(core).min_vruntime.min(current);
        let speed = u64::from(self.speed(running, core).max(1));
        floor + (current - floor) * u64::from(SPEED_ONE) / speed
    }

    /// Sets the virtual run time of a thread that comes to a core's queue from elsewhere.
    pub(super) fn place_vruntime(&mut self, thread: ThreadId, core: CoreId, kind: EnqueueKind) {
        match self.rules.order {
            Order::Deadline => return self.place_deadline(thread, core, kind),
            Order::Rounds { .. } => return self.place_in_round(thread, core, kind),
            Order::Fifo | Order::Vruntime | Order::HighestRank { .. } => {}
        }
        let source = self.queue(self.thread(thread).core).min_vruntime;
        let target = self.queue(core).min_vruntime;
        let vruntime = match kind {
            EnqueueKind::Fork => {
                let debit = if self.rules.fork_debit { self.fork_debit(thread, core) } else { 0 };
                target + debit
            }
            // Virtual run times mean something only relative to their queue's least one.
            EnqueueKind::Wake | EnqueueKind::Requeue => {
                (target + self.thread(thread).vruntime).saturating_sub(source)
            }
        };
        let floor = if kind == EnqueueKind::Wake {
            target.saturating_sub(self.rules.sleeper_credit_ns)
        } else {
            0
        };
        self.threads[thread.index()].vruntime = vruntime.max(floor);
    }

    fn fork_debit(&self, thread: ThreadId, core: CoreId) -> Ns {
        let weight = self.plans[thread.index()].weight;
        match self.rules.slice {
            Slice::LatencyShare { latency_ns, min_granularity_ns } => {
                let mut share = Share::of(self.queue(core));
                share.load += u64::from(weight);
                share.threads += 1;
                to_virtual(share.slice_ns(weight, latency_ns, min_granularity_ns), weight)
            }
            Slice::Fixed { slice_ns } | Slice::Request { base_ns: slice_ns } => {
                to_virtual(slice_ns, weight)
            }
        }
    }
}

/// What a core's scheduling period is divided among.
struct Share {
    threads: u64,
    load: u64,
}

impl Share {
    fn of(queue: &RunQueue) -> Self {
        let threads = queue.len() as u64 + u64::from(queue.running);
        let threads = if queue.cores == 1 {
            threads
        } else {
            threads.div_ceil(u64::from(queue.cores.max(1)))
        };
        Self { threads, load: queue.load_per_core() }
    }

    /// The part of the period that belongs to a weight (Linux `sched_slice`).
    fn slice_ns(&self, weight: u32, latency_ns: Ns, min_granularity_ns: Ns) -> Ns {
        let period_ns = latency_ns.max(self.threads * min_granularity_ns);
        let weight = u64::from(weight);
        period_ns * weight / self.load.max(weight)
    }
}
