//! HSP: the fast cores for those who gain most.

use super::cfs;
use super::support::claims::Bids;
use super::support::ranking::{Place, Ranking};
use super::support::seat_policy::{SeatPolicy, SeatRule};
use super::support::seats;
use super::support::speedup::{self, Sharing, Speedups, app_gains};
use crate::{Needs, ParamInfo, Params, PolicyInfo, View};

/// The registry's row.
pub static INFO: PolicyInfo = PolicyInfo {
    name: "hsp",
    summary: "high speed-up: the fast cores go to the programs that gain most, whatever becomes of the others",
    source: "Saez et al.: Prop-SP, Euro-Par 2014 workshops, sections 2 and 4 (HSP ranked by application speed-up)",
    documentation: "\
**Purpose.** The greatest throughput that an assignment of threads to cores can give; the upper end of the trade between \
throughput and fairness.

**When to use.** To see what throughput alone asks for, and what fairness costs against it. It needs speed-ups. Not \
where every program has to get on: who gains little never sees a fast core while others want it.

**Algorithm.** The runnable threads are ordered by the speed-up of their application, and the first N_FC have a fast core each; the \
others share the slow ones under CFS. An application with N runnable threads and mean thread speed-up SF gains SF if N = 1, else \
(SF - 1) / (floor((N - 1) / N_FC) + 1)^2 + 1 or, with `even`, min(N_FC, N) / N x (SF - 1) + 1. Speed-ups are read every 200 ms; the \
order is applied every 10 ms, so that a fast core whose thread blocks goes to the next. A thread on a slow core takes the place of one on a \
fast core only if it gains 5 % more.

**Constants.** 200 ms: Prop-SP, section 3. `tick_ms` = 10 (Solaris' clock tick) and `hysteresis` = 0.05 are ours, against threads \
that change places for nothing.

**Example.** 2 fast and 2 slow cores, speed-ups 2.5, 2.1, 1.6, 1.2: the first two stay on the fast cores, aggregate speed-up 2.6, \
slowdowns 1, 1, 1.6, 1.2.

**Limits.** Unfair by design: a program with a small speed-up never sees a fast core while others want them. Unknown speed-ups count 1.",
    params: &[
        speedup::SAMPLE,
        speedup::STATIC,
        speedup::EVEN,
        HYSTERESIS,
        seats::TICK,
        cfs::LATENCY,
        cfs::MIN_GRANULARITY,
        cfs::WAKEUP_GRANULARITY,
    ],
    build: |params| Box::new(SeatPolicy::new(params, Hsp::new(params))),
};

/// What keeps a thread on its fast core.
pub const HYSTERESIS: ParamInfo =
    ParamInfo::number("hysteresis", 0.05, 0.0, 10.0, "how much more a newcomer must gain (ours)");

/// Those who gain most.
struct Hsp {
    hysteresis: f64,
    sharing: Sharing,
    speedups: Speedups,
    ranking: Ranking,
}

impl Hsp {
    fn new(params: &Params) -> Self {
        Self {
            hysteresis: params.number("hysteresis"),
            sharing: Sharing::new(params),
            speedups: Speedups::new(params),
            ranking: Ranking::default(),
        }
    }
}

impl SeatRule for Hsp {
    type Claim = Place;

    fn needs(&self) -> Needs {
        self.speedups.needs()
    }

    fn claims(&mut self, view: &View, fast_cores: usize) -> Bids<Place> {
        self.speedups.update(view);
        let gains = app_gains(view, &mut self.speedups, self.sharing, fast_cores);
        self.ranking.claims(gains, self.hysteresis, fast_cores)
    }
}

#[cfg(test)]
mod tests {
    use ampsched_model::{AppId, ThreadId};

    use crate::testing::{PolicyHost, build};

    fn host(policy: &str, speedups: &[(u16, f64)]) -> (PolicyHost, Vec<ThreadId>) {
        let mut host = PolicyHost::new(&[(1, 2), (0, 2)], build(policy, &[]));
        let add = |&(app, speedup): &(u16, f64)| host.add_to(AppId(app), Some(speedup));
        let threads = speedups.iter().map(add).collect();
        (host, threads)
    }

    #[test]
    fn those_who_gain_most_have_the_fast_cores() {
        let (mut host, threads) = host("hsp", &[(0, 1.2), (1, 2.5), (2, 1.6), (3, 2.1)]);
        host.run_epoch();
        assert_eq!(host.on_fast(), [threads[1], threads[3]]);
        assert_eq!(host.run_epoch(), 0, "nothing changes");
    }

    #[test]
    fn programs_count_not_threads() {
        // Four threads that gain 3 each gain (3 - 1) / 4 + 1 = 1.5 as a program on two fast cores.
        let threads = [(0, 3.0), (0, 3.0), (0, 3.0), (0, 3.0), (1, 1.6), (2, 1.4)];
        let (mut host, threads) = host("hsp", &threads);
        host.run_epoch();
        assert_eq!(host.on_fast(), [threads[0], threads[4]]);
    }

    #[test]
    fn a_newcomer_must_gain_five_percent_more() {
        for (speedup, changes) in [(2.09, false), (2.11, true)] {
            let (mut host, threads) = host("hsp", &[(0, 3.0), (1, 2.0), (2, 1.5)]);
            host.run_epoch();
            assert_eq!(host.on_fast(), threads[..2]);
            host.factors[2].speedup.value = speedup;
            for _ in 0..25 {
                host.run_epoch();
            }
            assert_eq!(host.on_fast().contains(&threads[2]), changes, "{speedup}");
        }
    }

    #[test]
    fn a_fast_core_whose_thread_blocks_goes_to_the_next() {
        let (mut host, threads) = host("hsp", &[(0, 3.0), (1, 2.0), (2, 1.5), (3, 1.2)]);
        host.run_epoch();
        host.run_epoch();
        let core = host.sched.thread(threads[0]).core;
        host.sched.stop(core, crate::RunState::Blocked, host.now_ns);
        host.run_epoch();
        assert_eq!(host.on_fast(), threads[1..3]);
    }

    #[test]
    fn equals_keep_their_places_when_one_starts_anew() {
        let (mut host, threads) = host("hsp", &[(0, 2.0), (1, 2.0), (2, 2.0), (3, 2.0)]);
        host.run_epoch();
        host.run_epoch();
        assert_eq!(host.on_fast(), threads[..2]);
        let core = host.sched.thread(threads[0]).core;
        host.sched.stop(core, crate::RunState::Exited, host.now_ns);
        let again = host.add_to(AppId(0), Some(2.0));
        host.run_epoch();
        host.run_epoch();
        assert_eq!(host.on_fast(), [threads[1], again]);
    }
}
