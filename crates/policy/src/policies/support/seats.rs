//! Who is on the fast cores, for policies that decide it thread by thread: an order of the threads
//! becomes moves between the kinds of core.
//!
//! "Fast" are all cores but those of the slowest class ([`crate::Topology::is_big`]); on a machine with
//! three classes the middle one counts as fast. Where all cores are alike there is nothing to decide.

use ampsched_model::{CoreId, Ns, ThreadId};

use super::super::cfs::CfsRules;
use super::window::PerThread;
use crate::{
    Allocator, Balance, Change, ParamInfo, Plan, Prefer, Rules, Steal, StealFrom, ThreadStats,
    Topology, View,
};

/// How often the order of threads is applied.
pub const TICK: ParamInfo = ParamInfo::number(
    "tick_ms",
    10.0,
    0.1,
    10_000.0,
    "period at which threads are assigned to kinds of core (ours; Solaris' clock tick)",
);

/// CFS within each kind of core; an idle core takes waiting threads from anywhere, an idle fast core
/// also interrupts one that runs on a slow core.
pub fn rules(cfs: CfsRules, topology: &Topology) -> Rules {
    let rules = cfs.on(topology);
    let pull = Steal { who: Prefer::Big, ..Steal::any(StealFrom::RunningOnSlower) };
    Rules {
        allocator: Allocator::LeastLoadedInClass,
        steal: [&rules.steal[..], &[pull]].concat(),
        kick_idle: true,
        balance: rules.balance.map(|balance| Balance { within_kind: true, ..balance }),
        ..rules
    }
}

/// Number of fast cores; 0 where all cores are alike.
pub fn fast_cores(topology: &Topology) -> usize {
    if topology.class_count() == 1 { 0 } else { topology.big_cores().count() }
}

/// Whether a thread runs or waits on a fast core.
pub fn is_on_fast(view: &View, thread: ThreadId) -> bool {
    is_at(view, thread, Prefer::Big)
}

fn is_at(view: &View, thread: ThreadId, kind: Prefer) -> bool {
    view.state(thread).is_runnable() && view.topology().kind(view.core(thread)) == kind
}

/// Time that a thread has run on fast cores.
pub fn fast_ns(stats: &ThreadStats) -> Ns {
    stats.run_ns[1..].iter().sum()
}

/// The runnable threads in the order of a value, the least first; ties: the lower number. Who is on a
/// fast core gives way only to a thread whose value is less by more than `lead`.
pub fn least_first(
    view: &View,
    lead: f64,
    mut value: impl FnMut(ThreadId) -> f64,
) -> Vec<ThreadId> {
    let mut values: Vec<(f64, ThreadId)> = Vec::new();
    for thread in view.runnable() {
        let head_start = if is_on_fast(view, thread) { lead } else { 0.0 };
        values.push((value(thread) - head_start, thread));
    }
    values.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    values.into_iter().map(|(_, thread)| thread).collect()
}

/// Gives the fast cores to the first threads of an order, one each, and sends the others to the slow
/// ones. Returns the number of threads that had to change to a fast core.
///
/// `order` holds the runnable threads, the most deserving first. Threads that may not use any fast
/// core are passed over. Those who leave go first, so that those who come find the cores free.
pub fn seat(view: &View, plan: &mut Plan, order: &[ThreadId]) -> usize {
    let topology = view.topology();
    let mut free = fast_cores(topology);
    if free == 0 {
        return 0;
    }
    let mut seated = Vec::with_capacity(free);
    for &thread in order {
        if free > 0 && may_use_fast(view, thread) {
            free -= 1;
            seated.push(thread);
        } else {
            settle(view, plan, thread, Prefer::Little);
        }
    }
    seated.iter().filter(|&&thread| settle(view, plan, thread, Prefer::Big)).count()
}

fn may_use_fast(view: &View, thread: ThreadId) -> bool {
    view.topology().big_cores().any(|core: CoreId| view.may_run(thread, core))
}

/// Plans a thread's kind of core if it is not there or does not know it; returns whether it is elsewhere.
fn settle(view: &View, plan: &mut Plan, thread: ThreadId, kind: Prefer) -> bool {
    let elsewhere = !is_at(view, thread, kind);
    if elsewhere || view.plan(thread).prefer != kind {
        plan.set(thread, Change::Move(kind));
    }
    elsewhere
}

/// Time that threads have had on fast cores, such that newcomers are not owed the past: a new
/// thread starts with the least of those that are there.
#[derive(Clone, Debug, Default)]
pub struct FastTime {
    /// None: not seen yet.
    used_ns: PerThread<Option<Ns>>,
    seen_ns: PerThread<Ns>,
}

impl FastTime {
    /// Reads the threads' counters.
    pub fn update(&mut self, view: &View) {
        let mut least_ns = Ns::MAX;
        for thread in view.threads() {
            let counter_ns = fast_ns(view.stats(thread));
            let before_ns = std::mem::replace(self.seen_ns.slot(thread), counter_ns);
            if let Some(used_ns) = self.used_ns.slot(thread) {
                *used_ns += counter_ns - before_ns;
                least_ns = least_ns.min(*used_ns);
            }
        }
        for thread in view.threads() {
            let start_ns = if least_ns == Ns::MAX { 0 } else { least_ns };
            self.used_ns.slot(thread).get_or_insert(start_ns);
        }
    }

    /// A thread's fast time with its head start.
    pub fn of(&mut self, thread: ThreadId) -> Ns {
        self.used_ns.slot(thread).unwrap_or(0)
    }
}
