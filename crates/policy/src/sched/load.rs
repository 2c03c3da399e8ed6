//! Load tracking: which changes of state it hears of, and what it answers.

use ampsched_model::{ClusterId, CoreId, Ns, ThreadId};

use super::Sched;
use crate::{Activity, CAPACITY_ONE, CoreLoad, KeptLoad, LoadTracker, LoadTracking, ThreadLoad};

impl Sched {
    /// Tracks load from now on, which must be before the first thread is added.
    pub fn track_load(&mut self, how: LoadTracking) {
        let capacities = self.topology.cores().map(|core| self.topology.core(core).capacity);
        self.load = Some(Box::new(LoadTracker::new(how, capacities)));
    }

    /// How load is tracked, if it is.
    pub fn load_tracking(&self) -> Option<LoadTracking> {
        self.load.as_deref().map(LoadTracker::how)
    }

    /// Tells the averages of a thread, by a host that tracks load by itself, if the thread does something else than
    /// when that was reported last; none before its start. From now on nothing is tracked here.
    pub fn tell_load(&mut self, thread: ThreadId, load: Option<KeptLoad>) {
        self.reported.get_or_insert_default().set_thread(thread, load);
    }

    /// Tells the averages of a core now, as [`Sched::tell_load`], and what the time is in which those of its threads
    /// are kept.
    pub fn tell_core_load(&mut self, core: CoreId, load: CoreLoad, time_ns: Ns) {
        self.reported.get_or_insert_default().set_core(core, load, time_ns);
    }

    /// A thread does something else from now on.
    #[inline]
    pub(super) fn track(&mut self, thread: ThreadId, core: CoreId, done: Activity, now_ns: Ns) {
        if let (Some(load), None) = (self.load.as_deref_mut(), &self.reported) {
            load.becomes(thread, core, done, self.plans[thread.index()].weight, now_ns);
        }
    }

    /// A thread has ended.
    #[inline]
    pub(super) fn track_exit(&mut self, thread: ThreadId, now_ns: Ns) {
        if let Some(load) = self.load.as_deref_mut() {
            load.exit(thread, now_ns);
        }
    }

    /// A cluster's frequency changes.
    pub(super) fn track_frequency(&mut self, cluster: ClusterId, mhz: u32, now_ns: Ns) {
        let Some(load) = self.load.as_deref_mut() else { return };
        let cluster = &self.topology.clusters()[cluster.index()];
        let max_mhz = cluster.freqs_mhz.last().copied().unwrap_or(0);
        for &core in &cluster.cores {
            load.set_frequency(core, mhz, max_mhz, now_ns);
        }
    }

    /// The share of time in which a thread has been runnable lately, 0 to 1024; 0 if load is not tracked.
    pub fn load_of(&self, thread: ThreadId, now_ns: Ns) -> u32 {
        if let Some(reported) = &self.reported {
            return reported.thread(thread).load;
        }
        self.load.as_deref().map_or(0, |load| load.load(thread, now_ns))
    }

    /// What a thread uses of the fastest core, 0 to 1024 ([`LoadTracker::util`]); 0 if load is not tracked.
    pub fn util_of(&self, thread: ThreadId, now_ns: Ns) -> u32 {
        if let Some(reported) = &self.reported {
            return reported.thread(thread).util;
        }
        self.load.as_deref().map_or(0, |load| load.util(thread, now_ns))
    }

    /// The share of the time in which a thread was runnable that it ran, in 1/1024; 1024 if load is not
    /// tracked.
    pub(super) fn served_of(&self, thread: ThreadId, now_ns: Ns) -> u32 {
        let Some(load) = self.thread_load(thread, now_ns) else { return CAPACITY_ONE };
        load.running * CAPACITY_ONE / load.load.max(1)
    }

    /// The averages of a thread; none if load is not tracked.
    pub fn thread_load(&self, thread: ThreadId, now_ns: Ns) -> Option<ThreadLoad> {
        if let Some(reported) = &self.reported {
            return Some(reported.thread(thread));
        }
        let tracker = self.load.as_deref()?;
        Some(tracker.averages(thread, now_ns))
    }

    /// A core's utilisation, 0 to its capacity ([`LoadTracker::core_util`]); 0 if load is not tracked.
    pub fn core_util(&self, core: CoreId, now_ns: Ns) -> u32 {
        if let Some(reported) = &self.reported {
            return reported.core(core).util;
        }
        self.load.as_deref().map_or(0, |load| load.core_util(core, now_ns))
    }

    /// The same without what a thread has left there.
    pub fn core_util_without(&self, core: CoreId, thread: ThreadId, now_ns: Ns) -> u32 {
        if let Some(reported) = &self.reported {
            let is_there = self.thread(thread).core == core;
            let own = if is_there { reported.thread(thread).util } else { 0 };
            return reported.core(core).util.saturating_sub(own);
        }
        self.load.as_deref().map_or(0, |load| load.core_util_without(core, thread, now_ns))
    }

    /// A core's utilisation as governors read it ([`LoadTracker::core_util_boosted`]); 0 if load is not
    /// tracked.
    pub fn core_util_boosted(&self, core: CoreId, now_ns: Ns) -> u32 {
        if let Some(reported) = &self.reported {
            return reported.core(core).boosted;
        }
        self.load.as_deref().map_or(0, |load| load.core_util_boosted(core, now_ns))
    }

    /// The greatest utilisation that a core can have: its capacity, or 1024 if load is tracked by time.
    pub fn util_max(&self, core: CoreId) -> u32 {
        let known = self.load.as_deref().map(|load| load.capacity(core));
        known.unwrap_or(self.topology.core(core).capacity)
    }

    /// Whether a core has less than a fifth of its capacity to spare (Linux, `cpu_overutilized`).
    pub fn is_overutilised(&self, core: CoreId, now_ns: Ns) -> bool {
        !fits(self.core_util(core, now_ns), self.util_max(core))
    }
}

/// Margin of a core's capacity (fair.c, `fits_capacity`: 1280 / 1024).
const MARGIN: u64 = 1280;

/// What a core can do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capacities {
    /// At its highest frequency (`arch_scale_cpu_capacity`).
    pub whole: u64,
    /// Less what is taken of it (`capacity_of`).
    pub left: u64,
    /// At the highest frequency that it may have now (`get_actual_cpu_capacity`).
    pub reach: u64,
}

/// How well a core takes a thread, the worst first (fair.c, `util_fits_cpu`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fit {
    /// It would have too little to spare.
    Not,
    /// It has, but its capacity is less than the least utilisation that the thread asks for.
    Slow,
    /// Well.
    Well,
}

impl Fit {
    /// For a utilisation, without its clamps, and these. The margin is for what is used: clamps are compared with the
    /// capacity itself.
    pub fn of(util: u64, clamps: (u64, u64), capacity: u64) -> Self {
        Self::on(util, clamps, Capacities { whole: capacity, left: capacity, reach: capacity })
    }

    /// The same on a core of which not all capacity is left.
    pub fn on(util: u64, (min, max): (u64, u64), core: Capacities) -> Self {
        let full = u64::from(CAPACITY_ONE);
        let is_capped = max <= core.whole && (core.whole, max) != (full, full);
        let asked = min.min(max);
        if !is_capped && !fits(util, core.left) {
            Fit::Not
        } else if util < asked && asked > core.reach {
            Fit::Slow
        } else {
            Fit::Well
        }
    }
}

/// Whether a utilisation leaves a core of some capacity a fifth to spare (fair.c, `fits_capacity`).
pub(crate) fn fits(util: impl Into<u64>, capacity: impl Into<u64>) -> bool {
    util.into() * MARGIN < capacity.into() * u64::from(CAPACITY_ONE)
}
