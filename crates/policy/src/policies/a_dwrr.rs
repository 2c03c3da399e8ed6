//! A-DWRR: rounds of run time scaled by how fast the cores are.

use ampsched_model::Ns;

use super::cfs::{self, scaled};
use super::support::rating::{self, ratings};
use crate::{
    Charge, Needs, Order, ParamInfo, Params, Policy, PolicyInfo, Prefer, Rules, Slice, Steal,
    StealFrom, Topology, WakePreempt,
};

/// The registry's row.
pub static INFO: PolicyInfo = PolicyInfo {
    name: "a-dwrr",
    summary: "asymmetric distributed weighted round robin: equal scaled time for all, round by round",
    source: "Li, Brett, Knauerhase, Koufaty, Reddy, Hahn, HPCA 2010 (A-DWRR); Li, Baumberger, Hahn, PPoPP 2009 (DWRR). Details reconstructed",
    documentation: "\
**Purpose.** Fair shares of unequal cores among threads, in proportion to their weights, without a global queue.

**When to use.** As a default where nothing is known of the threads but their weights: it needs no speed-ups and no \
counters. Not where threads gain very differently from fast cores (`max-fair` asks who does), and not to serve \
programs alike: it counts threads.

**Algorithm.** Run time is scaled: time x rating of the core (slowest 1, fastest R). In each round a thread may run for round length x weight / 1024 of \
scaled time. A core serves the threads of its queue round by round, the one with least scaled time / weight first, each until its round ends or a \
round length has passed. Before a core enters a round it takes a thread from elsewhere that waits in an earlier round; if there is none, but one in the round before \
the last runs on a slower core, it takes that one, and its own thread goes there. So the rounds of any two threads differ by at most one. A new \
thread starts with the latest round. An idle core takes any waiting thread, an idle fast core also one that runs on a slow core. A woken \
thread interrupts as in CFS, on the scale of scaled time / weight.

**Constants.** The texts of the papers were not at hand; rounds, scaled time and round balancing are known from how others describe them, the rest is a \
reconstruction: `round_ms` = 30; the order within a round and the wake-up rule; that the running thread of a slower core is taken only when rounds would differ by \
two; and what happens to a thread that cannot keep up because it already has a core all the time, because its program allows it no other core, or because it \
sleeps. It is taken along, at most one round behind the others, and what it has missed is dropped: otherwise cores would have to idle. `rating` = 0 is the ratio of the \
highest frequencies; the paper measures it.

**Example.** A fast core of rating 2 with A and C, a slow one with D. A runs 0 to 15 ms, C 15 to 30 ms, D 0 to 30 ms: 30 ms of scaled time each; at 30 ms all enter \
the next round.

**Limits.** Shares per thread, so a program's share grows with its number of threads; blind to who gains from a fast core.",
    params: &[
        rating::RATING,
        ParamInfo::number("round_ms", 30.0, 0.01, 10_000.0, "round of a thread of weight 1024, in scaled time (ours)"),
        cfs::WAKEUP_GRANULARITY,
    ],
    build: |params| Box::new(ADwrr::new(params)),
};

/// A-DWRR.
pub struct ADwrr {
    rating: f64,
    round_ns: Ns,
    wakeup_granularity_ns: Ns,
}

impl ADwrr {
    fn new(params: &Params) -> Self {
        Self {
            rating: params.number("rating"),
            round_ns: params.ms("round_ms"),
            wakeup_granularity_ns: params.ms("wakeup_granularity_ms"),
        }
    }
}

impl Policy for ADwrr {
    fn needs(&self) -> Needs {
        Needs { work_conserving: true, ..Needs::default() }
    }

    fn rules(&self, topology: &Topology) -> Rules {
        let base = Rules::default();
        let pull = Steal { who: Prefer::Big, ..Steal::any(StealFrom::RunningOnSlower) };
        Rules {
            rating: ratings(self.rating, topology),
            order: Order::Rounds { length_ns: self.round_ns },
            steal: [&base.steal[..], &[pull]].concat(),
            slice: Slice::Fixed { slice_ns: self.round_ns },
            charge: Charge::Rated,
            preempt: WakePreempt::VruntimeGap {
                granularity_ns: scaled(self.wakeup_granularity_ns, 1_000_000, topology),
            },
            ..base
        }
    }
}
