//! What load tracking in the kernel says: its table brought up to a time, as the interpreter in C does it.

#![allow(unsafe_code)] // Memory is shared with the interpreter.

use std::ptr::NonNull;

use ampsched_model::Ns;
use ampsched_policy::{
    Activity, CAPACITY_ONE, CoreLoad, PELT_UNIT_NS, Pelt, PeltClock, ThreadLoad, core_util,
    core_util_boosted,
};

use crate::layout::{Averages, Core, Sched, Thread, TrackedCore, TrackedThread};

/// What load tracking keeps of all threads and cores.
#[derive(Clone, Debug)]
pub struct Loads {
    /// The unit of time in which load is tracked, in ns.
    pub unit_ns: Ns,
    /// Of each core.
    pub cores: Vec<TrackedCore>,
    /// Of the thread in each slot.
    pub threads: Vec<TrackedThread>,
}

impl Loads {
    /// Copies it from a table; fields may be of slightly different moments. None if load is not tracked.
    ///
    /// # Safety
    ///
    /// There is a table, initialised, with its threads behind it. Only the interpreter uses it meanwhile.
    pub unsafe fn read(table: NonNull<Sched>) -> Option<Self> {
        let state = table.as_ptr();
        // SAFETY: `core_count` cores and `thread_count` threads exist, and every pattern of bits is one.
        unsafe {
            if (&raw const (*state).tracking).read_volatile() == 0 {
                return None;
            }
            let cores: *const Core = (&raw const (*state).cores).cast();
            let threads: *const Thread = state.add(1).cast();
            let tracked_core = |at| (&raw const (*cores.add(at)).tracked).read_volatile();
            let tracked_thread = |at| (&raw const (*threads.add(at)).tracked).read_volatile();
            let core_count = (&raw const (*state).core_count).read_volatile() as usize;
            let thread_count = (&raw const (*state).thread_count).read_volatile() as usize;
            Some(Self {
                unit_ns: (&raw const (*state).unit_ns).read_volatile(),
                cores: (0..core_count).map(tracked_core).collect(),
                threads: (0..thread_count).map(tracked_thread).collect(),
            })
        }
    }
}

/// The averages of a thread of a core now; nothing of one that has not started. `unit_ns` is the unit of time in which
/// load is tracked.
pub fn of_thread(
    core: &TrackedCore,
    thread: &TrackedThread,
    unit_ns: Ns,
    now_ns: Ns,
) -> ThreadLoad {
    if thread.attached == 0 {
        return ThreadLoad::default();
    }
    let done = match (thread.runnable, thread.running) {
        (0, _) => Activity::ASLEEP,
        (_, 0) => Activity::WAITING,
        _ => Activity::RUNNING,
    };
    let pelt = averages(&thread.pelt, done, unit_ns, time_ns(core, now_ns));
    ThreadLoad {
        load: pelt.load_avg(CAPACITY_ONE) as u32,
        running: pelt.util_avg(),
        util: pelt.util_avg().max(thread.estimate),
    }
}

/// The averages of a core now.
pub fn of_core(core: &TrackedCore, unit_ns: Ns, now_ns: Ns) -> CoreLoad {
    let done =
        Activity { load: core.load, runnable: core.runnable.into(), running: core.running != 0 };
    let pelt = averages(&core.pelt, done, unit_ns, time_ns(core, now_ns));
    CoreLoad {
        util: core_util(&pelt, core.estimates, core.capacity),
        boosted: core_util_boosted(&pelt, core.estimates, core.capacity),
    }
}

fn sums(found: &Averages) -> Pelt {
    Pelt::of_sums(found.part, found.load_sum, found.runnable_sum, found.util_sum)
}

/// Averages as they are at a time of their core.
fn averages(found: &Averages, done: Activity, unit_ns: Ns, time_ns: Ns) -> Pelt {
    let mut pelt = sums(found);
    let units = time_ns.saturating_sub(found.updated_ns) / unit_ns.max(1);
    pelt.update(units * PELT_UNIT_NS, done);
    pelt
}

/// What the clock of a core shows.
fn time_ns(core: &TrackedCore, now_ns: Ns) -> Ns {
    let mut clock = PeltClock::of_times(core.real_ns, core.scaled_ns, core.lost_ns);
    if now_ns == core.seen_ns {
        return clock.time_ns();
    }
    if core.running != 0 {
        clock.busy_until(now_ns, core.present);
    } else {
        clock.fall_idle(&sums(&core.pelt));
        clock.idle_until(now_ns);
    }
    clock.time_ns()
}
