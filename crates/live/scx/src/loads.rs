//! What load tracking in the kernel says: its table brought up to a time, as the interpreter in C does it.

use ampsched_model::{CoreId, Ns};
use ampsched_policy::{
    Activity, CoreLoad, KeptLoad, PELT_UNIT_NS, Pelt, PeltClock, ThreadLoad, core_util,
    core_util_boosted,
};

use crate::layout::{Averages, TrackedCore, TrackedThread};

/// What is kept of a thread; nothing of one that has not started. `unit_ns` is the unit of time in which load is
/// tracked.
pub fn kept(thread: &TrackedThread, unit_ns: Ns) -> Option<KeptLoad> {
    let done = match (thread.runnable, thread.running) {
        (0, _) => Activity::ASLEEP,
        (_, 0) => Activity::WAITING,
        _ => Activity::RUNNING,
    };
    (thread.attached != 0).then(|| KeptLoad {
        core: CoreId(thread.core as u16),
        sums: sums(&thread.pelt),
        updated_ns: thread.pelt.updated_ns,
        done,
        estimate: thread.estimate,
        unit_ns,
    })
}

/// The averages of a thread of a core now; nothing of one that has not started.
pub fn of_thread(
    core: &TrackedCore,
    thread: &TrackedThread,
    unit_ns: Ns,
    now_ns: Ns,
) -> ThreadLoad {
    let averages = |kept: KeptLoad| kept.at(time_ns(core, now_ns));
    kept(thread, unit_ns).map_or_else(ThreadLoad::default, averages)
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

/// What the clock of a core shows, in whose time its threads' averages are kept.
pub fn time_ns(core: &TrackedCore, now_ns: Ns) -> Ns {
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
