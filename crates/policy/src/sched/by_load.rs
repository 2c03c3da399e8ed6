//! Placing, stealing and balancing by tracked load: global task scheduling and energy-aware scheduling.

use std::cmp::Reverse;

use ampsched_model::{CoreId, Ns, ThreadId};

use super::{Pick, RunState, Sched, fits};
use crate::{
    BalanceWhen, Choice, DecidedBy, LoadBand, LoadFilter, Prefer, Reason, Steal, StealFrom, Witness,
};

/// When an idle core looks again for a thread that its load may let go: the period of CFS's balancing
/// here, one tick at 250 Hz.
const LOOK_AGAIN_NS: Ns = 4_000_000;

impl Sched {
    /// Whether stealing and balancing happen now.
    #[inline]
    pub(super) fn may_balance(&self, now_ns: Ns) -> bool {
        match self.rules.balance_when {
            BalanceWhen::Always => true,
            BalanceWhen::OverUtilised => self.some_overutilised(now_ns),
        }
    }

    /// Whether some core has less than a fifth of its capacity to spare.
    pub(super) fn some_overutilised(&self, now_ns: Ns) -> bool {
        self.topology.cores().any(|core| self.is_overutilised(core, now_ns))
    }

    /// When an idle core looks again that may not steal now: while others run, a core may become over-utilised
    /// by a thread that the idle one could take.
    pub(super) fn looks_again(&self, now_ns: Ns) -> Option<Ns> {
        let some_run = self.idle_cores() < self.topology.core_count();
        (some_run && self.pulls_running()).then_some(now_ns + LOOK_AGAIN_NS)
    }

    /// [`crate::Allocator::ByLoad`].
    pub(super) fn place_by_load(
        &self,
        thread: ThreadId,
        waker: Option<CoreId>,
        band: LoadBand,
        now_ns: Ns,
        witness: impl Witness,
    ) -> CoreId {
        let state = self.thread(thread);
        if state.state == RunState::New {
            let kind = if self.may_go_up(thread, band) { Prefer::Big } else { Prefer::Little };
            witness.because(|| {
                self.why_placed("a new thread: the least loaded core of its kind", thread)
                    .word("kind", kind.word().name)
                    .count("weight", self.plan(thread).weight)
                    .count("min_weight", band.min_weight)
            });
            // A core whose sibling is busy is neither big nor idle: then the least loaded one of all.
            let core = self.least_loaded_of(kind, thread).filter(|&core| !self.shares_core(core));
            return core.unwrap_or_else(|| self.least_loaded(thread));
        }
        let here = self.topology.kind(state.core);
        let (elsewhere, because) = match here {
            Prefer::Little if self.heavy_load(thread, band, now_ns).is_some() => {
                (self.idle_big(thread), "it has become heavy: an idle big core")
            }
            Prefer::Big if self.is_light(thread, band, now_ns) => (
                self.least_loaded_of(Prefer::Little, thread),
                "it has become light: the least loaded little core",
            ),
            _ => (None, ""),
        };
        let core = match elsewhere {
            Some(core) => {
                let previous = state.core;
                witness
                    .because(|| self.why_placed(because, thread).core("previous_core", previous));
                core
            }
            None => {
                let same_kind = waker.filter(|&core| self.topology.kind(core) == here);
                self.place_wake_affine(thread, same_kind, witness)
            }
        };
        witness.adds(|reason| {
            let reason = reason.count("load", self.load_of(thread, now_ns));
            reason.count("up", band.up).count("down", band.down)
        });
        core
    }

    /// Whether the priority filter lets a thread go up.
    fn may_go_up(&self, thread: ThreadId, band: LoadBand) -> bool {
        self.plan(thread).weight >= band.min_weight
    }

    fn has_settled(&self, thread: ThreadId, band: LoadBand, now_ns: Ns) -> bool {
        let stats = self.stats(thread);
        stats.migrations == 0 || now_ns >= stats.migrated_at_ns + band.min_resident_ns
    }

    /// The load of a thread on a little core if it may go up.
    fn heavy_load(&self, thread: ThreadId, band: LoadBand, now_ns: Ns) -> Option<u32> {
        let may = self.may_go_up(thread, band) && self.has_settled(thread, band, now_ns);
        may.then(|| self.load_of(thread, now_ns)).filter(|&load| load >= band.up)
    }

    /// Whether a thread on a big core goes down.
    fn is_light(&self, thread: ThreadId, band: LoadBand, now_ns: Ns) -> bool {
        !self.may_go_up(thread, band)
            || self.has_settled(thread, band, now_ns) && self.load_of(thread, now_ns) < band.down
    }

    /// An idle big core that the thread may use, a whole one: half of a core that two threads share is none.
    fn idle_big(&self, thread: ThreadId) -> Option<CoreId> {
        let mut big = self.topology.big_cores();
        big.find(|&core| self.is_idle(core) && !self.shares_core(core) && self.allows(thread, core))
    }

    /// The least loaded core of a kind that the thread may use; of equal ones the first.
    fn least_loaded_of(&self, kind: Prefer, thread: ThreadId) -> Option<CoreId> {
        let cores = self.topology.cores();
        let usable =
            cores.filter(|&core| self.topology.kind(core) == kind && self.allows(thread, core));
        usable.min_by_key(|&core| self.load(core))
    }

    /// What a step that filters by load yields now, or when to look again.
    pub(super) fn steal_by_load(
        &self,
        core: CoreId,
        number: u8,
        step: &Steal,
        now_ns: Ns,
        witness: impl Witness,
    ) -> Result<Option<Pick>, Ns> {
        let by = DecidedBy::Steal(number);
        let (mut best, mut some) = (None, false);
        self.for_candidates(core, step, |thread| {
            some = true;
            let Some(key) = self.key_by_load(thread, step.load, now_ns) else {
                witness.passes(thread, || {
                    let reason = Reason::new(by, "its load does not let the step take it");
                    self.with_loads(reason, thread, step.load, now_ns)
                });
                return;
            };
            if best.is_none_or(|(least, _)| key < least) {
                best = Some((key, thread));
            }
        });
        if let Some((_, thread)) = best {
            witness.because(|| {
                let because = match step.load {
                    LoadFilter::Any => "the first that the step may take",
                    LoadFilter::Heavy { .. } => "the heaviest thread that may go up",
                    LoadFilter::Starved { .. } => "the lightest of the threads that starve",
                    LoadFilter::Misfit => "the thread that its core fits least",
                };
                let from = self.thread(thread).core;
                let reason = Reason::new(by, because).core("from", from);
                self.with_loads(reason, thread, step.load, now_ns)
            });
        }
        let pick = |(_, thread)| match self.thread(thread).state {
            RunState::Running => Pick::Pull(thread),
            _ => Pick::Run(thread),
        };
        // Loads rise and fall with time alone.
        if some && best.is_none() { Err(now_ns + LOOK_AGAIN_NS) } else { Ok(best.map(pick)) }
    }

    /// A reason with what a filter looks at.
    fn with_loads(
        &self,
        reason: Reason,
        thread: ThreadId,
        filter: LoadFilter,
        now_ns: Ns,
    ) -> Reason {
        let reason = reason.count("load", self.load_of(thread, now_ns));
        match filter {
            LoadFilter::Any => reason,
            LoadFilter::Heavy { band } => reason.count("up", band.up),
            LoadFilter::Starved { max_served } => reason
                .count("served", self.served_of(thread, now_ns))
                .count("max_served", max_served),
            LoadFilter::Misfit => reason
                .count("util", self.util_of(thread, now_ns))
                .count("capacity", self.util_max(self.thread(thread).core)),
        }
    }

    /// Looks at the threads that a step may take at all, whatever their load.
    ///
    /// An idle core does this again and again while all others are busy with light threads.
    fn for_candidates(&self, core: CoreId, step: &Steal, mut look: impl FnMut(ThreadId)) {
        let mut consider = |thread: ThreadId| {
            if self.allows(thread, core) && step.except != Some(self.plan(thread).prefer) {
                look(thread);
            }
        };
        let place = self.topology.core(core);
        if step.from == StealFrom::RunningOnSlower {
            let all = self.topology.cores();
            let slower = all.filter(|&other| self.topology.core(other).class < place.class);
            slower.filter_map(|other| self.core(other).running).for_each(consider);
            return;
        }
        if self.waiting == 0 {
            return;
        }
        let own = self.queue_index(core);
        for other in self.topology.cores() {
            let same_cluster = self.topology.core(other).cluster == place.cluster;
            let queue = self.queue(other);
            if same_cluster == (step.from == StealFrom::OwnCluster)
                && self.queue_index(other) != own
                && queue.can_spare()
            {
                queue.iter().for_each(|entry| consider(entry.thread));
            }
        }
    }

    /// The order in which a filter takes threads, the least first; none if it does not take the thread.
    fn key_by_load(
        &self,
        thread: ThreadId,
        filter: LoadFilter,
        now_ns: Ns,
    ) -> Option<(Reverse<u32>, u32, ThreadId)> {
        match filter {
            LoadFilter::Any => Some((Reverse(0), 0, thread)),
            LoadFilter::Heavy { band } => {
                let load = self.heavy_load(thread, band, now_ns)?;
                Some((Reverse(load), 0, thread))
            }
            LoadFilter::Starved { max_served } => {
                let starves =
                    self.idle_big(thread).is_none() && self.served_of(thread, now_ns) <= max_served;
                starves.then(|| (Reverse(0), self.load_of(thread, now_ns), thread))
            }
            LoadFilter::Misfit => {
                let util = self.util_of(thread, now_ns);
                let capacity = self.util_max(self.thread(thread).core);
                (!fits(util, capacity)).then_some((Reverse(util), 0, thread))
            }
        }
    }
}
