//! Keeps threads at their shares of fast-core time, round by round (Kim & Huh, IEEE TC 2018).
//!
//! Their kernel counts for each thread the rounds that it has done on fast cores, each its share of 30
//! ms, and those on slow ones, each the rest of 30 ms. A thread with more fast than slow rounds changes
//! places with the one on a slow core that has most slow rounds more. Here the difference is kept as
//! time: by how much a thread's time on fast cores is ahead of its share of the time in which it was
//! runnable. So shares of 0 and 1 are no special case, and shares may change at any time.

use ampsched_model::{Ns, ThreadId};

use super::claims::{Bids, Low};
use super::seats;
use super::usage::{Meter, Usage};
use super::window::PerThread;
use crate::{ParamInfo, View};

/// Length of a round.
pub const ROUND: ParamInfo = ParamInfo::number(
    "round_ms",
    30.0,
    0.1,
    10_000.0,
    "round of which each thread spends its share on a fast core (Kim & Huh: 30 ms)",
);

/// Rounds beyond which being ahead or behind is forgotten (Kim & Huh's kernel: 255).
const ROUNDS_MAX: f64 = 255.0;

/// What a thread should get.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    /// Part of the time in which it is runnable to be spent on fast cores, 0..=1.
    pub fast: f64,
    /// How much time on a fast core makes up for time on a slow core that it gets less than others do; 0
    /// where threads do not have to share slow cores.
    ///
    /// Shares suppose that slow cores are shared evenly. Three threads on two cores never are for long.
    pub slow_worth: f64,
}

/// How far threads are ahead of their shares.
#[derive(Clone, Debug)]
pub struct Rounds {
    /// The lead over another thread that costs a thread its fast core.
    ///
    /// In Kim & Huh's kernel the one must have done a fast round more and the other a slow round more.
    /// With shares of one half that is half a round.
    lead_ns: f64,
    limit_ns: f64,
    meter: Meter,
    accounts: PerThread<Account>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Account {
    share: Share,
    /// In time on a fast core.
    ahead_ns: f64,
    /// Not settled yet.
    used: Usage,
}

impl Account {
    /// Time on fast cores that the share gives.
    fn due_ns(&self) -> f64 {
        self.share.fast * self.used.runnable_ns() as f64
    }

    /// Time on slow cores, running or waiting for a core.
    fn off_fast_ns(&self) -> f64 {
        (self.used.slow_ns + self.used.ready_ns) as f64
    }
}

/// Sums over all threads.
#[derive(Default)]
struct Totals {
    due_ns: f64,
    fast_ns: f64,
    slow_ns: f64,
    off_fast_ns: f64,
}

impl Rounds {
    /// Of a length.
    pub fn new(round_ns: Ns) -> Self {
        let round_ns = round_ns as f64;
        Self {
            lead_ns: round_ns / 2.0,
            limit_ns: ROUNDS_MAX * round_ns,
            meter: Meter::default(),
            accounts: PerThread::default(),
        }
    }

    /// Sets a thread's share from now on.
    pub fn set_share(&mut self, thread: ThreadId, share: Share) {
        self.accounts.slot(thread).share = share;
    }

    /// Settles the time since the last call. Time on fast cores beyond all shares, for which there was
    /// nobody else, counts for nobody.
    pub fn settle(&mut self, view: &View) {
        // Who has slept has used nothing, and is owed nothing.
        let recent = view.recent();
        let totals = self.read(view, &recent);
        let counted =
            if totals.due_ns < totals.fast_ns { totals.due_ns / totals.fast_ns } else { 1.0 };
        let per_slow = if totals.slow_ns > 0.0 { totals.off_fast_ns / totals.slow_ns } else { 1.0 };
        for &thread in recent.iter() {
            let account = self.accounts.slot(thread);
            let fast_ns = counted * account.used.fast_ns as f64 - account.due_ns();
            let slow_ns = per_slow * account.used.slow_ns as f64 - account.off_fast_ns();
            let ahead_ns = account.ahead_ns + fast_ns + slow_ns * account.share.slow_worth;
            account.ahead_ns = ahead_ns.clamp(-self.limit_ns, self.limit_ns);
        }
    }

    /// Reads the threads' counters.
    fn read(&mut self, view: &View, threads: &[ThreadId]) -> Totals {
        let mut totals = Totals::default();
        for &thread in threads {
            let account = self.accounts.slot(thread);
            account.used = self.meter.since_last(view, thread);
            totals.due_ns += account.due_ns();
            totals.fast_ns += account.used.fast_ns as f64;
            totals.slow_ns += account.used.slow_ns as f64;
            totals.off_fast_ns += account.off_fast_ns();
        }
        totals
    }

    /// The claims of the runnable threads; who is least ahead should be on a fast core.
    pub fn claims(&mut self, view: &View) -> Bids<Low> {
        seats::least_first(view, self.lead_ns, |thread| self.accounts.slot(thread).ahead_ns)
    }
}

#[cfg(test)]
mod tests {
    use ampsched_model::CoreId;

    use super::*;
    use crate::testing::{PolicyHost, build};
    use crate::{EnqueueKind, RunState};

    const MS: Ns = 1_000_000;

    /// One fast and one slow core with two threads, each with half of the fast one.
    fn halves() -> (PolicyHost, Rounds, [ThreadId; 2]) {
        let mut host = PolicyHost::new(&[(1, 1), (0, 1)], build("max-fair", &[]));
        let threads = [host.add(Some(2.0)), host.add(Some(2.0))];
        let mut rounds = Rounds::new(30 * MS);
        for thread in threads {
            rounds.set_share(thread, Share { fast: 0.5, slow_worth: 0.0 });
        }
        (host, rounds, threads)
    }

    fn ahead_ms(rounds: &mut Rounds, threads: [ThreadId; 2]) -> [f64; 2] {
        threads.map(|thread| rounds.accounts.slot(thread).ahead_ns / MS as f64)
    }

    #[test]
    fn who_is_half_a_round_behind_is_first() {
        let (mut host, mut rounds, [a, b]) = halves();
        let mut order_after_ms = |ms: Ns| {
            host.run(ms * MS);
            let view = host.view();
            rounds.settle(&view);
            let mut claims = rounds.claims(&view);
            claims.sort_unstable();
            let order: Vec<ThreadId> = claims.into_iter().map(|(_, thread)| thread).collect();
            (order, ahead_ms(&mut rounds, [a, b]))
        };
        assert_eq!(order_after_ms(14), (vec![a, b], [7.0, -7.0]));
        assert_eq!(order_after_ms(2), (vec![b, a], [8.0, -8.0]));
    }

    #[test]
    fn time_that_nobody_else_wanted_does_not_count() {
        let (mut host, mut rounds, threads) = halves();
        host.run(10 * MS);
        rounds.settle(&host.view());
        let slow = host.sched.thread(threads[1]).core;
        host.sched.stop(slow, RunState::Blocked, host.now_ns);
        host.run(1000 * MS);
        rounds.settle(&host.view());
        assert_eq!(ahead_ms(&mut rounds, threads), [5.0, -5.0]);
    }

    #[test]
    fn what_is_missed_on_slow_cores_is_made_up_for() {
        let mut host = PolicyHost::new(&[(1, 1), (0, 1)], build("max-fair", &[]));
        let [fast, runs, waits] = [host.add(None), host.add(None), host.add(None)];
        let mut rounds = Rounds::new(30 * MS);
        rounds.set_share(fast, Share { fast: 1.0, slow_worth: 0.5 });
        rounds.set_share(runs, Share { fast: 0.0, slow_worth: 0.5 });
        rounds.set_share(waits, Share { fast: 0.0, slow_worth: 0.5 });
        host.sched.start(CoreId(0), fast, 0);
        host.sched.start(CoreId(1), runs, 0);
        host.sched.dequeue(waits);
        host.sched.enqueue(waits, CoreId(1), EnqueueKind::Requeue, 0);
        host.run(10 * MS);
        rounds.settle(&host.view());
        // Of 10 ms each should have had 5; 1 ms on the slow core stands for 2 of sharing it.
        assert_eq!(ahead_ms(&mut rounds, [runs, waits]), [5.0, -5.0]);
    }

    #[test]
    fn long_debts_are_forgotten() {
        let (mut host, mut rounds, threads) = halves();
        host.run(60_000 * MS);
        rounds.settle(&host.view());
        assert_eq!(ahead_ms(&mut rounds, threads), [7650.0, -7650.0]);
    }
}
