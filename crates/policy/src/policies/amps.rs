//! AMPS: load balancing that knows how fast the cores are.

use ampsched_model::Ns;

use super::cfs::{self, CfsRules};
use super::support::rating::{self, ratings};
use crate::{
    Allocator, Balance, Needs, ParamInfo, Params, Policy, PolicyInfo, Prefer, Rules, Steal,
    StealFrom, Topology,
};

/// The registry's row.
pub static INFO: PolicyInfo = PolicyInfo {
    name: "amps",
    summary: "AMPS: run queues as long as their cores are fast, faster cores first, migrations that pay",
    source: "Li, Baumberger, Koufaty, Hahn: AMPS, SC 2007. Details reconstructed",
    documentation: "\
**Purpose.** A conventional scheduler with the one change that cores are not equally fast: it knows nothing of threads but their weights.

**When to use.** Where threads come, go and sleep, and nothing is known of them but their weights: an ordinary \
scheduler with the least change, without speed-ups. Not for a few long threads: one that is alone on a slow core \
stays there while fast cores are busy.

**Algorithm.** The scaled load of a core is the sum of the weights in its queue / its rating (slowest cores 1, fastest R). Three parts: \
(1) every 20 ms threads are moved from the core with the most to that with the least scaled load while the two differ by more than 10 % and the \
target stays below what the source had. (2) Faster cores first: a new or woken thread goes where the scaled load with it \
would be least, and an idle fast core takes a waiting thread from anywhere, else the one that runs on a slower core. (3) A thread that has changed cores less \
than 20 ms ago is not moved or pulled to another cluster. Within a core CFS decides.

**Constants.** The text of the paper was not at hand; the three parts are known from its abstract, the rest is a reconstruction. `balance_ms` = 20, \
`tolerance_percent` = 10, `min_resident_ms` = 20 (one period of balancing) and idleness as the sign of an under-used fast core are ours. `rating` is the \
measured ratio of speeds in the paper; where none is stated, the ratio of the highest frequencies. Left out of part 3: the prediction of a migration's cost \
from the resident set, because a migration costs the same for every thread in this model and there are no NUMA nodes.

**Example.** A fast core of rating 2 and a slow core with two threads each: scaled loads 1 and 2. One thread moves: 1.5 and 1.

**Limits.** Threads that gain little get as much of the fast cores as those that gain much. A thread alone on its core is never moved between busy cores.",
    params: &[
        rating::RATING,
        ParamInfo::number("balance_ms", 20.0, 0.1, 10_000.0, "period of balancing (ours)"),
        ParamInfo::number("tolerance_percent", 10.0, 0.0, 1000.0, "tolerated difference of scaled loads (ours)"),
        ParamInfo::number("min_resident_ms", 20.0, 0.0, 10_000.0, "least stay before moving to another cluster (ours)"),
        cfs::LATENCY,
        cfs::MIN_GRANULARITY,
        cfs::WAKEUP_GRANULARITY,
    ],
    build: |params| Box::new(Amps::new(params)),
};

/// AMPS.
pub struct Amps {
    cfs: CfsRules,
    rating: f64,
    period_ns: Ns,
    tolerance_percent: u32,
    min_resident_ns: Ns,
}

impl Amps {
    fn new(params: &Params) -> Self {
        Self {
            cfs: CfsRules::new(params),
            rating: params.number("rating"),
            period_ns: params.ms("balance_ms"),
            tolerance_percent: params.number("tolerance_percent").round() as u32,
            min_resident_ns: params.ms("min_resident_ms"),
        }
    }
}

impl Policy for Amps {
    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn rules(&self, topology: &Topology) -> Rules {
        let base = self.cfs.on(topology);
        let pull = Steal {
            who: Prefer::Big,
            min_resident_ns: self.min_resident_ns,
            ..Steal::any(StealFrom::RunningOnSlower)
        };
        let balance = base.balance.map(|balance| Balance {
            period_ns: self.period_ns,
            tolerance_percent: self.tolerance_percent,
            min_resident_ns: self.min_resident_ns,
            ..balance
        });
        Rules {
            rating: ratings(self.rating, topology),
            allocator: Allocator::LeastLoadedWith,
            steal: [&base.steal[..], &[pull]].concat(),
            kick_idle: true,
            balance,
            ..base
        }
    }
}

#[cfg(test)]
mod tests {
    use ampsched_model::{AppId, CoreId, ThreadId};

    use super::*;
    use crate::testing::{build, topology};
    use crate::{EnqueueKind, Pick, Sched};

    const MS: Ns = 1_000_000;

    /// A fast core of rating 2, a slow one, and the balancing that AMPS asks for.
    fn system(clusters: &[(u8, usize)], params: &[(&str, f64)]) -> (Sched, Balance) {
        let topology = topology(clusters);
        let params = [&[("rating", 2.0)], params].concat();
        let rules = build("amps", &params).rules(&topology);
        let balance = rules.balance.unwrap();
        (Sched::new(topology, rules), balance)
    }

    fn fork(sched: &mut Sched, core: CoreId) -> ThreadId {
        let thread = sched.add(AppId(0), 1024, None);
        sched.enqueue(thread, core, EnqueueKind::Fork, 0);
        thread
    }

    /// So many threads in the queues of two cores, of which one runs.
    fn fill(sched: &mut Sched, counts: [usize; 2]) {
        for (core, count) in counts.into_iter().enumerate() {
            for _ in 0..count {
                fork(sched, core.into());
            }
            let Pick::Run(thread) = sched.pick_by_rules(core.into(), 0) else { panic!() };
            sched.start(core.into(), thread, 0);
        }
    }

    fn threads_per_core(sched: &Sched) -> Vec<usize> {
        let cores = sched.topology().cores();
        cores.map(|c| sched.queue_len(c) + usize::from(sched.core(c).running.is_some())).collect()
    }

    #[test]
    fn loads_are_scaled_by_the_rating() {
        for (before, after) in [
            // Scaled 1 and 2 become 1.5 and 1.
            ([2, 2], [3, 1]),
            // Scaled 1.5 and 1: the move would only turn it round.
            ([3, 1], [3, 1]),
            ([4, 1], [4, 1]),
            ([5, 1], [4, 2]),
            // Scaled 5 and 5.
            ([10, 5], [10, 5]),
            ([4, 5], [6, 3]),
        ] {
            let (mut sched, balance) = system(&[(1, 1), (0, 1)], &[]);
            fill(&mut sched, before);
            sched.balance(balance, 20 * MS);
            assert_eq!(threads_per_core(&sched), after, "{before:?}");
        }
    }

    #[test]
    fn a_difference_within_the_tolerance_is_left_alone() {
        // Scaled loads 10.5 and 12 differ by 14 %.
        for (tolerance, after) in [(10.0, [22, 11]), (15.0, [21, 12])] {
            let (mut sched, balance) =
                system(&[(1, 1), (0, 1)], &[("tolerance_percent", tolerance)]);
            fill(&mut sched, [21, 12]);
            sched.balance(balance, 20 * MS);
            assert_eq!(threads_per_core(&sched), after, "{tolerance}");
        }
    }

    #[test]
    fn new_threads_go_where_they_find_most() {
        // The slow core is numbered first.
        let (mut sched, _) = system(&[(0, 1), (1, 1)], &[]);
        let mut put = || {
            let thread = sched.add(AppId(0), 1024, None);
            let core = sched.place_by_rules(thread, 0);
            sched.enqueue(thread, core, EnqueueKind::Fork, 0);
            core.index()
        };
        // With it 1 or 0.5; 1 or 1; 2 or 1; 2 or 1.5; 2 or 2; 3 or 2.
        assert_eq!([put(), put(), put(), put(), put()], [1, 0, 1, 1, 0]);
    }

    #[test]
    fn an_idle_fast_core_takes_what_runs_on_a_slow_one() {
        let (mut sched, _) = system(&[(1, 1), (0, 2)], &[]);
        let threads = [1usize, 2].map(|core| fork(&mut sched, core.into()));
        for (core, &thread) in [1usize, 2].iter().zip(&threads) {
            sched.start((*core).into(), thread, 0);
        }
        assert_eq!(sched.pick_by_rules(CoreId(0), MS), Pick::Pull(threads[0]));
    }

    #[test]
    fn who_has_just_come_stays() {
        let (mut sched, balance) = system(&[(1, 1), (0, 1)], &[]);
        let threads: Vec<ThreadId> = (0..4).map(|_| fork(&mut sched, CoreId(1))).collect();
        // Each has run on the fast core first and then, at 5 ms, on the slow one.
        for &thread in &threads {
            for (core, now_ns) in [(CoreId(0), 0), (CoreId(1), 5 * MS)] {
                sched.start(core, thread, now_ns);
                sched.stop(core, crate::RunState::Ready, now_ns);
                sched.enqueue(thread, CoreId(1), EnqueueKind::Requeue, now_ns);
            }
        }
        sched.start(CoreId(1), threads[3], 5 * MS);
        assert!(sched.balance(balance, 20 * MS).is_empty());
        assert!(!sched.balance(balance, 25 * MS).is_empty());
    }
}
