//! Who is on the fast cores, for policies that decide it thread by thread: claims of the threads
//! become moves between the kinds of core.
//!
//! "Fast" are all cores but those of the slowest class ([`crate::Topology::is_big`]); on a machine with
//! three classes the middle one counts as fast. Where all cores are alike there is nothing to decide.

use ampsched_model::{CoreId, Ns, ThreadId};

use super::super::cfs::CfsRules;
use super::claims::{Bids, Low, least};
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

/// Number of fast cores for the runnable threads ([`Topology::big_seats`]); 0 where all cores are alike.
pub fn fast_cores(view: &View) -> usize {
    let topology = view.topology();
    if topology.class_count() == 1 {
        return 0;
    }
    topology.big_seats(if topology.has_smt() { view.runnable().count() } else { 0 })
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

/// The claims of the runnable threads by a value, the least first. Who is on a fast core gives way only to a
/// thread whose value is less by more than `lead`.
pub fn least_first(view: &View, lead: f64, mut value: impl FnMut(ThreadId) -> f64) -> Bids<Low> {
    let claim = |thread| {
        let head_start = if is_on_fast(view, thread) { lead } else { 0.0 };
        (Low(value(thread) - head_start), thread)
    };
    view.runnable().map(claim).collect()
}

/// Gives the fast cores to the threads whose claims come first, one each, and sends the others to the slow
/// ones, where they stay unless they `roam`: those wake up on any core. Returns the number of threads that had to
/// change to a fast core.
///
/// Threads that may not use any fast core are passed over. Those who leave go first, so that those who come find
/// the cores free. Most of those who have none stay where they are: only the others are put in order.
pub fn seat<C: Ord + Copy>(
    view: &View,
    plan: &mut Plan,
    claims: &[(C, ThreadId)],
    roams: impl Fn(ThreadId) -> bool,
) -> usize {
    let free = fast_cores(view);
    if free == 0 {
        return 0;
    }
    let claims = || claims.iter().copied();
    let rest = |thread| if roams(thread) { Prefer::Any } else { Prefer::Little };
    let seated = least(claims(), free, |&(_, thread)| may_use_fast(view, thread));
    let has_to_go = |claim: &(C, ThreadId)| {
        !is_settled(view, claim.1, Prefer::Little, rest(claim.1))
            && seated.binary_search(claim).is_err()
    };
    let mut leaving: Bids<C> = claims().filter(has_to_go).collect();
    leaving.sort_unstable();
    for (_, thread) in leaving {
        leave(view, plan, thread, rest(thread));
    }
    seated.iter().filter(|&&(_, thread)| settle(view, plan, thread)).count()
}

/// Plans that a thread goes to a slow core if it is on none, and where it wakes up.
fn leave(view: &View, plan: &mut Plan, thread: ThreadId, rest: Prefer) {
    if rest == Prefer::Little || !is_at(view, thread, Prefer::Little) {
        plan.set(thread, Change::Move(Prefer::Little));
    }
    if rest != Prefer::Little {
        plan.set(thread, Change::Prefer(rest));
    }
}

fn may_use_fast(view: &View, thread: ThreadId) -> bool {
    view.topology().big_cores().any(|core: CoreId| view.may_run(thread, core))
}

/// Whether a thread is on a kind of core and wakes up on the kind that it should.
fn is_settled(view: &View, thread: ThreadId, kind: Prefer, wakes_on: Prefer) -> bool {
    view.plan(thread).prefer == wakes_on && is_at(view, thread, kind)
}

/// Plans a fast core for a thread if it is on none or does not know it; returns whether it is on none.
fn settle(view: &View, plan: &mut Plan, thread: ThreadId) -> bool {
    if !is_settled(view, thread, Prefer::Big, Prefer::Big) {
        plan.set(thread, Change::Move(Prefer::Big));
    }
    !is_on_fast(view, thread)
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
        // Who has slept has used nothing, and is not new.
        let mut newcomers = Vec::new();
        for &thread in view.recent().iter() {
            let counter_ns = fast_ns(view.stats(thread));
            let before_ns = std::mem::replace(self.seen_ns.slot(thread), counter_ns);
            match self.used_ns.slot(thread) {
                Some(used_ns) => *used_ns += counter_ns - before_ns,
                None => newcomers.push(thread),
            }
        }
        if newcomers.is_empty() {
            return;
        }
        let least_ns = view.threads().filter_map(|thread| *self.used_ns.slot(thread)).min();
        for thread in newcomers {
            *self.used_ns.slot(thread) = Some(least_ns.unwrap_or(0));
        }
    }

    /// A thread's fast time with its head start.
    pub fn of(&mut self, thread: ThreadId) -> Ns {
        self.used_ns.slot(thread).unwrap_or(0)
    }
}
