//! Asymmetry-aware round robin: equal time on fast cores.

use super::cfs;
use super::support::claims::Bids;
use super::support::rotation::{self, Rotation, Turn};
use super::support::seat_policy::{SeatPolicy, SeatRule};
use super::support::seats;
use crate::{PolicyInfo, View};

/// The registry's row.
pub static INFO: PolicyInfo = PolicyInfo {
    name: "rr-amp",
    summary: "asymmetry-aware round robin: every thread gets the same time on fast cores",
    source: "the scheduler RR that Prop-SP (Saez et al., Euro-Par 2014 workshops) compares with",
    documentation: "\
**Purpose.** Fair shares of the fast cores, without knowing who gains from them.

**When to use.** For even shares of the fast cores where nothing is known of the threads: it needs no speed-ups. It \
is also the fair baseline for policies that have them. Not to serve programs alike: it counts threads.

**Algorithm.** Every 200 ms the N_FC runnable threads that have had least time on fast cores get one each; the others share the \
slow ones under CFS. In between, a fast core whose thread blocks goes to the thread with the least fast time. A new thread starts \
with the least fast time of those that are there.

**Constants.** `rotate_ms` = 200, the period of Prop-SP's sampling, and `tick_ms` = 10 are ours: the paper gives none.

**Example.** 2 fast and 2 slow cores, four threads: each has a fast core half of the time. With speed-ups 3.4, 3.4, 1.2, 1.2 \
aggregate speed-up is 2.6, slowdowns 1.55, 1.55, 1.09, 1.09.

**Limits.** Per thread, so a program's share grows with its number of threads; blind to speed-ups and weights.",
    params: &[
        rotation::ROTATE,
        seats::TICK,
        cfs::LATENCY,
        cfs::MIN_GRANULARITY,
        cfs::WAKEUP_GRANULARITY,
    ],
    build: |params| Box::new(SeatPolicy::new(params, RrAmp(Rotation::new(params)))),
};

/// Those whose turn it is.
struct RrAmp(Rotation);

impl SeatRule for RrAmp {
    type Claim = Turn<u8>;

    fn claims(&mut self, view: &View, _fast_cores: usize) -> Bids<Self::Claim> {
        self.0.claims(view, |_| 0)
    }
}

#[cfg(test)]
mod tests {
    use ampsched_model::ThreadId;

    use super::*;
    use crate::testing::{PolicyHost, build};

    const MS: u64 = 1_000_000;

    #[test]
    fn all_get_the_same_fast_time() {
        let mut host = PolicyHost::new(&[(1, 2), (0, 2)], build("rr-amp", &[]));
        let threads: Vec<ThreadId> = (0..5).map(|_| host.add(None)).collect();
        for _ in 0..500 {
            host.run_epoch();
        }
        let fast_ms = |&thread: &ThreadId| seats::fast_ns(host.sched.stats(thread)) / MS;
        for ms in threads.iter().map(fast_ms) {
            assert!(ms.abs_diff(5000 * 2 / 5) <= 210, "{ms}");
        }
    }

    #[test]
    fn places_change_only_once_per_rotation() {
        let mut host = PolicyHost::new(&[(1, 1), (0, 1)], build("rr-amp", &[]));
        let threads = [host.add(None), host.add(None)];
        let holders: Vec<ThreadId> = (0..80)
            .map(|_| {
                host.run_epoch();
                host.on_fast()[0]
            })
            .collect();
        let turns: Vec<(ThreadId, usize)> =
            holders.chunk_by(|a, b| a == b).map(|turn| (turn[0], turn.len())).collect();
        let [a, b] = threads;
        assert_eq!(turns, [(a, 20), (b, 20), (a, 20), (b, 20)]);
    }

    #[test]
    fn a_newcomer_is_not_owed_the_past() {
        let mut host = PolicyHost::new(&[(1, 1), (0, 2)], build("rr-amp", &[]));
        let old = [host.add(None), host.add(None)];
        for _ in 0..400 {
            host.run_epoch();
        }
        let new = host.add(None);
        for _ in 0..240 {
            host.run_epoch();
        }
        let fast_ms = |thread| seats::fast_ns(host.sched.stats(thread)) / MS;
        assert!(fast_ms(new).abs_diff(800) <= 210, "{}", fast_ms(new));
        assert!(fast_ms(old[0]).abs_diff(2800) <= 210, "{}", fast_ms(old[0]));
    }
}
