//! Prop-SP: credits for time on fast cores in proportion to what it gains.

use std::cmp::Reverse;

use ampsched_model::{Ns, ThreadId};

use super::cfs;
use super::support::claims::Bids;
use super::support::seat_policy::{SeatPolicy, SeatRule};
use super::support::seats;
use super::support::speedup::{self, ActiveApp, Sharing, Speedups};
use super::support::window::PerThread;
use crate::{Event, Events, Needs, ParamInfo, Params, PolicyInfo, View};

/// The registry's row.
pub static INFO: PolicyInfo = PolicyInfo {
    name: "prop-sp",
    summary: "Prop-SP: credits for fast-core time in proportion to (speed-up - 1) x priority",
    source: "Saez, Pousa, Castro, Chaver, Prieto: Prop-SP, Euro-Par 2014 workshops (LNCS 8806), section 3",
    documentation: "\
**Purpose.** Much of the throughput of HSP without its unfairness: fast-core time in proportion to net speed-up x priority.

**When to use.** Where throughput counts but nobody may be left out, and where priorities are to divide the fast \
cores. It needs speed-ups, with `static` = 1 those measured beforehand. Not where fairness counts most (`acfs`), nor \
for programs that are shorter than its periods of 0.2 to 3.2 s.

**Algorithm.** Once per execution period the credits of all fast cores are shared out: an application with speed-up SP and static \
weight w gets a part in proportion to (SP - 1) w; one whose threads cannot use so much, min(N, N_FC) cores for the whole \
period, leaves the rest to the others. SP of an application with N runnable threads is that of HSP. Its threads get equal parts or, with \
`even` = 0, one after the other as much as a period holds. A thread on a fast core pays with time. When its credits are used up it \
changes places with the thread on a slow core that has most credits; if none has any, nothing moves.

**Constants.** 1 credit is 1 ns of fast-core time. The paper gives neither the reference amount of credits, nor how \
the period is chosen, nor the map from priorities to weights; ours: `period_ms` = 400 to begin with, doubled up to 3200 while there are more \
than 10 swaps per second and fast core, halved down to 200 while there are fewer than 2; weights are those of CFS / 1024; what is not used, or is overdrawn by \
running on a fast core that nobody else wanted, is carried over up to one period. Speed-ups are read every 200 ms (section 3). `static` = 1 uses \
speed-ups measured beforehand (the paper's Prop-SP static), else those of the moment (dynamic). `tick_ms` = 10 is ours (Solaris' clock tick).

**Example.** 2 fast and 2 slow cores, speed-ups 2.5, 2.1, 1.6, 1.2: of 800 ms of fast-core time the threads get 353, 259, 141 and 47 ms, shares \
0.882, 0.647, 0.353 and 0.118.

**Limits.** Neither the fairest nor the fastest choice; it needs speed-ups. With all speed-ups 1 the time is shared evenly among \
applications. Section 2 prints the net speed-up as \"SF = 1\": read SF - 1.",
    params: &[
        speedup::SAMPLE,
        speedup::STATIC,
        ParamInfo::flag("even", false, "threads of one program share its credits evenly"),
        ParamInfo::number("period_ms", 400.0, 1.0, 1e6, "first execution period (ours)"),
        ParamInfo::number("period_min_ms", 200.0, 1.0, 1e6, "least execution period (ours)"),
        ParamInfo::number("period_max_ms", 3200.0, 1.0, 1e6, "greatest execution period (ours)"),
        ParamInfo::number("swaps_max", 10.0, 0.0, 1e6, "swaps per s and fast core above which periods grow (ours)"),
        ParamInfo::number("swaps_min", 2.0, 0.0, 1e6, "swaps per s and fast core below which they shrink (ours)"),
        seats::TICK,
        cfs::LATENCY,
        cfs::MIN_GRANULARITY,
        cfs::WAKEUP_GRANULARITY,
    ],
    build: |params| Box::new(SeatPolicy::new(params, PropSp::new(params))),
};

/// Those who have credits.
struct PropSp {
    sharing: Sharing,
    speedups: Speedups,
    period: Period,
    accounts: Accounts,
}

/// The execution period and how it adapts.
struct Period {
    length_ns: Ns,
    min_ns: Ns,
    max_ns: Ns,
    swaps_min: f64,
    swaps_max: f64,
    start_ns: Ns,
    swaps: usize,
}

impl Period {
    fn is_over(&self, now_ns: Ns) -> bool {
        self.start_ns == 0 || now_ns >= self.start_ns + self.length_ns
    }

    /// Begins the next period, longer or shorter according to the swaps of the last one.
    fn begin(&mut self, now_ns: Ns, fast_cores: usize) {
        if self.start_ns > 0 {
            let core_seconds = (now_ns - self.start_ns) as f64 / 1e9 * fast_cores as f64;
            let rate = self.swaps as f64 / core_seconds;
            if rate > self.swaps_max {
                self.length_ns = (2 * self.length_ns).min(self.max_ns);
            } else if rate < self.swaps_min {
                self.length_ns = (self.length_ns / 2).max(self.min_ns);
            }
        }
        self.start_ns = now_ns;
        self.swaps = 0;
    }
}

/// Credits of all threads, and what became of those awarded: awarded = consumed + expired + held.
#[derive(Default)]
struct Accounts {
    credits_ns: PerThread<i64>,
    paid_ns: PerThread<Ns>,
    awarded_ns: i64,
    consumed_ns: i64,
    /// Negative if more debt was forgiven than credit lost.
    expired_ns: i64,
}

impl Accounts {
    fn award(&mut self, thread: ThreadId, ns: i64) {
        *self.credits_ns.slot(thread) += ns;
        self.awarded_ns += ns;
    }

    /// Pays for the time that a thread has run on fast cores since it paid last.
    fn charge(&mut self, view: &View, thread: ThreadId) {
        let used_ns = seats::fast_ns(view.stats(thread));
        let paid_ns = std::mem::replace(self.paid_ns.slot(thread), used_ns);
        let due_ns = (used_ns - paid_ns) as i64;
        *self.credits_ns.slot(thread) -= due_ns;
        self.consumed_ns += due_ns;
    }

    /// What a thread holds, or owes, beyond a limit is lost.
    fn expire(&mut self, thread: ThreadId, limit_ns: i64) {
        let credits_ns = self.credits_ns.slot(thread);
        let kept_ns = (*credits_ns).clamp(-limit_ns, limit_ns);
        self.expired_ns += *credits_ns - kept_ns;
        *credits_ns = kept_ns;
    }

    fn of(&mut self, thread: ThreadId) -> i64 {
        *self.credits_ns.slot(thread)
    }

    /// Whether no credit came from nowhere or got lost.
    fn is_balanced(&self) -> bool {
        let held_ns: i64 = self.credits_ns.values().sum();
        self.awarded_ns == self.consumed_ns + self.expired_ns + held_ns
    }
}

impl PropSp {
    fn new(params: &Params) -> Self {
        Self {
            sharing: Sharing::new(params),
            speedups: Speedups::new(params),
            period: Period {
                length_ns: params.ms("period_ms"),
                min_ns: params.ms("period_min_ms"),
                max_ns: params.ms("period_max_ms"),
                swaps_min: params.number("swaps_min"),
                swaps_max: params.number("swaps_max"),
                start_ns: 0,
                swaps: 0,
            },
            accounts: Accounts::default(),
        }
    }

    /// Shares out the credits of the period that begins.
    fn assign_credits(&mut self, view: &View, fast_cores: usize) {
        let period_ns = self.period.length_ns;
        for thread in view.threads() {
            self.accounts.expire(thread, period_ns as i64);
        }
        let apps = ActiveApp::all(view, &mut self.speedups);
        let shares = fast_core_shares(&apps, self.sharing, fast_cores);
        for (app, cores) in apps.iter().zip(shares) {
            self.distribute(app, cores * period_ns as f64, period_ns as f64);
        }
    }

    /// Hands an application's credits to its threads.
    fn distribute(&mut self, app: &ActiveApp, credits_ns: f64, period_ns: f64) {
        let mut left_ns = credits_ns;
        for &thread in &app.threads {
            let part_ns = match self.sharing {
                Sharing::Even => credits_ns / app.threads.len() as f64,
                Sharing::BusyFastCores | Sharing::LastFastCore => left_ns.min(period_ns),
            };
            left_ns -= part_ns;
            self.accounts.award(thread, part_ns.round() as i64);
        }
    }

    /// Who keeps or gets a fast core: those on one that have credits; then those that have most; then
    /// those on one that have none, whom nobody replaces.
    fn by_credits(&mut self, view: &View) -> Bids<(u8, Reverse<i64>)> {
        let claim = |thread| {
            let credits_ns = self.accounts.of(thread);
            let place = match (credits_ns > 0, seats::is_on_fast(view, thread)) {
                (true, true) => 0,
                (true, false) => 1,
                (false, true) => 2,
                (false, false) => 3,
            };
            ((place, Reverse(credits_ns)), thread)
        };
        view.runnable().map(claim).collect()
    }
}

/// Fast cores that each application may use on average: in proportion to (speed-up - 1) x weight,
/// none more than it has threads; what that leaves goes to the others in proportion.
fn fast_core_shares(apps: &[ActiveApp], sharing: Sharing, fast_cores: usize) -> Vec<f64> {
    let net = |app: &ActiveApp| {
        let speedup = sharing.app_speedup(app.speedup, app.threads.len(), fast_cores);
        (speedup - 1.0) * app.weight / 1024.0
    };
    let mut claims: Vec<f64> = apps.iter().map(net).collect();
    if claims.iter().all(|&claim| claim == 0.0) {
        claims = vec![1.0; apps.len()];
    }
    let limit = |app: &ActiveApp| app.threads.len().min(fast_cores) as f64;
    let mut shares: Vec<Option<f64>> = vec![None; apps.len()];
    loop {
        let given: f64 = shares.iter().flatten().sum();
        let open = || (0..apps.len()).filter(|&i| shares[i].is_none());
        let total: f64 = open().map(|i| claims[i]).sum();
        let share = |i: usize| {
            if total > 0.0 { (fast_cores as f64 - given) * claims[i] / total } else { 0.0 }
        };
        let full: Vec<usize> = open().filter(|&i| share(i) > limit(&apps[i])).collect();
        if full.is_empty() {
            return (0..apps.len()).map(|i| shares[i].unwrap_or_else(|| share(i))).collect();
        }
        for i in full {
            shares[i] = Some(limit(&apps[i]));
        }
    }
}

impl SeatRule for PropSp {
    type Claim = (u8, Reverse<i64>);

    fn needs(&self) -> Needs {
        let events = Events { lifecycle: true, ..Events::default() };
        Needs { events, ..self.speedups.needs() }
    }

    fn claims(&mut self, view: &View, fast_cores: usize) -> Bids<Self::Claim> {
        self.speedups.update(view);
        // Who has slept has nothing to pay for.
        for &thread in view.recent().iter() {
            self.accounts.charge(view, thread);
        }
        if self.period.is_over(view.now_ns()) {
            self.period.begin(view.now_ns(), fast_cores);
            self.assign_credits(view, fast_cores);
        }
        debug_assert!(self.accounts.is_balanced(), "credits are conserved");
        self.by_credits(view)
    }

    fn seated(&mut self, changes: usize) {
        self.period.swaps += changes;
    }

    fn on_event(&mut self, view: &View, event: Event) {
        if let Event::Exited(thread) = event {
            self.accounts.charge(view, thread);
            self.accounts.expire(thread, 0);
        }
    }
}

#[cfg(test)]
mod tests;
