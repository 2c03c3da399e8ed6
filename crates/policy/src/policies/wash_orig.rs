//! WASH as its authors describe it, reconstructed.

use ampsched_model::{Ns, ThreadId};

use super::cfs::{self, CfsRules};
use super::support::known_speedup;
use super::support::window::{Activity, PerThread, Windowed};
use super::wash::Bound;
use crate::{Needs, ParamInfo, Params, Plan, Policy, PolicyInfo, Rules, Topology, View};

/// The registry's row.
pub static INFO: PolicyInfo = PolicyInfo {
    name: "wash-orig",
    summary: "WASH reconstructed from its abstract: sequential, scalable and non-scalable programs",
    source: "Jibaja et al.: WASH, CGO 2016 (abstract and summaries; the algorithm's text was not at hand)",
    documentation: "\
**Purpose.** The managed-runtime scheduler from which `wash` is derived; a reconstruction, kept apart because the two differ.

**When to use.** For programs that run for many seconds, some of which scale and some of which wait at locks. It \
needs speed-ups, instructions and blame: who waits for whom. Not for short programs: it reacts after a second.

**Algorithm.** CFS selects. Every 40 ms, over the threads that were runnable in the window: if they are no more than the big \
cores, all are bound to these. Else, if nobody's lock ratio (time that others have waited for it / its run time) reaches the \
threshold, the programs scale and all threads may use all cores. Else threads are ranked: those whose lock ratio reaches the \
threshold, by the time that others have waited for them; then the rest by weight, then by speed-up x retired instructions. Down \
the ranking, threads are bound to the big cores until their share of the retired instructions reaches the big cores' share of the \
machine's capacity, B s / (B s + L) with B big and L little cores and s the mean speed-up; the others may use all cores.

**Constants.** `lock_threshold` = 0.5, `smoothing_ms` = 1000 (exponential window over all observations) and the period of 40 ms \
are ours. Service threads of a runtime (compiler, collector) are not told apart: they count as application threads. The authors \
relate the time that a thread itself waits for locks to its run time; here it is the time that others wait for it, since the one \
is the sum of the other and says who is to be accelerated.

**Example.** 2 big + 2 little cores, mean speed-up 2: the big cores hold 2/3 of the capacity. Of six threads with equal \
instruction counts four are bound, the one that others waited for first among them.

**Limits.** Those of `wash`; besides, it reacts after a second.",
    params: &[
        ParamInfo::number(
            "lock_threshold",
            0.5,
            0.0,
            1000.0,
            "time that others waited / run time from which a thread is critical (ours)",
        ),
        ParamInfo::number("smoothing_ms", 1000.0, 1.0, 1e6, "memory of observations (ours)"),
        ParamInfo::number("epoch_ms", 40.0, 0.1, 10_000.0, "period (reconstruction)"),
        cfs::LATENCY,
        cfs::MIN_GRANULARITY,
        cfs::WAKEUP_GRANULARITY,
    ],
    build: |params| Box::new(WashOrig::new(params)),
};

/// WASH, reconstructed.
pub struct WashOrig {
    cfs: CfsRules,
    lock_threshold: f64,
    keep: f64,
    epoch_ns: Ns,
    observed: PerThread<Observed>,
    activity: Activity,
    bound: Bound,
}

/// Smoothed observations of a thread.
#[derive(Clone, Debug, Default)]
struct Observed {
    blame: Windowed,
    run_ns: Windowed,
    instructions: Windowed,
    speedup: Option<f64>,
}

/// A thread on its way to a core.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    thread: ThreadId,
    weight: u32,
    blame_ns: f64,
    lock_ratio: f64,
    instructions: f64,
    speedup: f64,
}

impl WashOrig {
    fn new(params: &Params) -> Self {
        let epoch_ns = params.ms("epoch_ms");
        Self {
            cfs: CfsRules::new(params),
            lock_threshold: params.number("lock_threshold"),
            keep: (-(epoch_ns as f64) / (params.number("smoothing_ms") * 1e6)).exp(),
            epoch_ns,
            observed: PerThread::default(),
            activity: Activity::default(),
            bound: Bound::default(),
        }
    }

    fn observe(&mut self, view: &View) {
        let keep = self.keep;
        for thread in view.threads() {
            let stats = view.stats(thread);
            let observed = self.observed.slot(thread);
            observed.blame.update(view.factors(thread).blame_ns.or(0.0), keep);
            observed.run_ns.update(stats.run_ns_total() as f64, keep);
            observed.instructions.update(view.instructions_total(thread) as f64, keep);
            let speedup = known_speedup(view, thread).unwrap_or(1.0);
            let before = observed.speedup.unwrap_or(speedup);
            observed.speedup = Some(keep * before + (1.0 - keep) * speedup);
        }
    }

    fn candidate(&mut self, view: &View, thread: ThreadId) -> Candidate {
        let observed = self.observed.slot(thread);
        Candidate {
            thread,
            weight: view.plan(thread).weight,
            blame_ns: observed.blame.value(),
            lock_ratio: observed.blame.value() / observed.run_ns.value().max(1.0),
            instructions: observed.instructions.value(),
            speedup: observed.speedup.unwrap_or(1.0),
        }
    }

    /// Ranks non-scalable programs' threads and returns how many of the first are bound.
    fn choose(&self, candidates: &mut [Candidate], topology: &Topology) -> usize {
        candidates.sort_by(|a, b| self.before(a, b));
        let total: f64 = candidates.iter().map(|c| c.instructions).sum();
        let target = big_share(candidates, topology) * total;
        let mut sum = 0.0;
        let enough = candidates.iter().position(|candidate| {
            let reached = sum >= target;
            sum += candidate.instructions;
            reached
        });
        enough.unwrap_or(candidates.len())
    }

    /// Critical threads by blame, then the others by weight and by what a big core would gain.
    fn before(&self, a: &Candidate, b: &Candidate) -> std::cmp::Ordering {
        let is_critical = |c: &Candidate| c.lock_ratio >= self.lock_threshold;
        let benefit = |c: &Candidate| c.speedup * c.instructions;
        is_critical(b)
            .cmp(&is_critical(a))
            .then_with(|| match is_critical(a) {
                true => b.blame_ns.total_cmp(&a.blame_ns),
                false => b.weight.cmp(&a.weight).then(benefit(b).total_cmp(&benefit(a))),
            })
            .then(a.thread.cmp(&b.thread))
    }
}

/// The big cores' share of the machine's capacity.
fn big_share(candidates: &[Candidate], topology: &Topology) -> f64 {
    let mean = candidates.iter().map(|c| c.speedup).sum::<f64>() / candidates.len() as f64;
    let big = topology.big_seats(candidates.len()) as f64 * mean;
    big / (big + topology.little_cores().count() as f64)
}

impl Policy for WashOrig {
    fn needs(&self) -> Needs {
        Needs {
            speedup: true,
            instructions: true,
            blame: true,
            epoch_ns: Some(self.epoch_ns),
            ..Needs::default()
        }
    }

    fn rules(&self, topology: &Topology) -> Rules {
        self.cfs.on(topology)
    }

    fn epoch(&mut self, view: &View, plan: &mut Plan) {
        let topology = view.topology();
        let active = self.activity.end_window(view);
        self.observe(view);
        if topology.class_count() == 1 || active.is_empty() {
            return;
        }
        let mut candidates: Vec<Candidate> =
            active.iter().map(|&thread| self.candidate(view, thread)).collect();
        let scalable = candidates.iter().all(|c| c.lock_ratio < self.lock_threshold);
        let bound = if candidates.len() <= topology.big_seats(candidates.len()) {
            candidates.len()
        } else if scalable {
            0
        } else {
            self.choose(&mut candidates, topology)
        };
        for (place, candidate) in candidates.iter().enumerate() {
            self.bound.set(view, plan, candidate.thread, place < bound);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{PolicyHost, build};

    const MS: u64 = 1_000_000;

    fn bound(host: &PolicyHost, threads: &[ThreadId]) -> Vec<bool> {
        threads.iter().map(|&t| !host.sched.allows(t, 2usize.into())).collect()
    }

    /// Threads that have each retired as many instructions in 40 ms on 2 big and 2 little cores.
    fn host_with(speedups: &[f64]) -> (PolicyHost, Vec<ThreadId>) {
        let mut host = PolicyHost::new(&[(1, 2), (0, 2)], build("wash-orig", &[]));
        let threads: Vec<ThreadId> = speedups.iter().map(|&s| host.add_blamed(s, 0)).collect();
        for &thread in &threads {
            host.run_alone(thread, 20 * MS, 1_000_000);
        }
        (host, threads)
    }

    #[test]
    fn scalable_programs_roam() {
        let (mut host, threads) = host_with(&[2.0; 6]);
        host.sched.blame(threads[3], 9 * MS);
        host.epoch();
        assert_eq!(bound(&host, &threads), [false; 6]);
    }

    #[test]
    fn few_threads_are_bound() {
        let (mut host, threads) = host_with(&[1.1, 1.2]);
        host.epoch();
        assert_eq!(bound(&host, &threads), [true; 2]);
    }

    #[test]
    fn the_critical_come_first_then_those_that_gain() {
        let (mut host, threads) = host_with(&[1.0, 1.5, 2.0, 2.5, 3.0, 2.0]);
        host.sched.blame(threads[0], 11 * MS);
        host.epoch();
        // Mean speed-up 2: the big cores hold 2/3 of the capacity, four of six equal shares.
        assert_eq!(bound(&host, &threads), [true, false, true, true, true, false]);
    }

    #[test]
    fn among_the_critical_blame_decides() {
        // Mean speed-up 1: half of the capacity, two of four. Weight does not help.
        let (mut host, threads) = host_with(&[1.0, 1.0, 1.0, 1.0]);
        host.sched.apply(threads[0], &crate::Change::Weight(4096));
        for (thread, blame_ms) in [(0, 11), (1, 12), (2, 13), (3, 14)] {
            host.sched.blame(threads[thread], blame_ms * MS);
        }
        host.epoch();
        assert_eq!(bound(&host, &threads), [false, false, true, true]);
    }

    #[test]
    fn weight_goes_before_gain() {
        let (mut host, threads) = host_with(&[1.0, 3.0, 3.0, 3.0, 1.0, 1.0]);
        host.sched.blame(threads[0], 11 * MS);
        host.sched.apply(threads[5], &crate::Change::Weight(2048));
        host.epoch();
        assert_eq!(bound(&host, &threads), [true, true, true, false, false, true]);
    }

    #[test]
    fn observations_fade_within_the_smoothing_time() {
        let (mut host, threads) = host_with(&[2.0; 6]);
        host.sched.blame(threads[0], 15 * MS);
        host.epoch();
        assert!(bound(&host, &threads)[0]);
        // The thread runs on without being waited for: its ratio falls below one half.
        for _ in 0..10 {
            host.run_alone(threads[0], 20 * MS, 1_000_000);
            host.epoch();
        }
        assert!(!bound(&host, &threads)[0]);
    }
}
