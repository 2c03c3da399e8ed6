//! Bias scheduling: load balancing that prefers to move threads to where they stall less.

use ampsched_model::{CoreSet, Ns, ThreadId};

use super::cfs::{self, CfsRules};
use super::support::seats;
use crate::{
    Balance, Change, Needs, ParamInfo, Params, Plan, Policy, PolicyInfo, Prefer, Rules, Steal,
    StealFrom, Topology, View,
};

/// The registry's row.
pub static INFO: PolicyInfo = PolicyInfo {
    name: "bias",
    summary: "bias scheduling: threads that wait for memory are biased to little cores, others to big ones; load comes first",
    source: "Koufaty, Reddy, Hahn: Bias scheduling, EuroSys 2010; known from its abstract. Details reconstructed",
    documentation: "\
**Purpose.** Throughput by small changes to an existing scheduler: which thread is moved is chosen by what it gains, when and whether one is moved is not.

**When to use.** To see what it brings to choose who moves, while load decides when. It needs stall counters, which \
the kernel back end does not read, so it runs in the simulator only. Not for a few long threads: without `exchange` \
= 1 nobody moves while loads are even.

**Algorithm.** A thread's bias follows from the share of cycles in which the core where it runs waits for memory, an external stall: above 50 % the thread is biased to little \
cores, below 25 % to big ones, because what remains are stalls that an out-of-order core removes; otherwise it has none. CFS schedules and \
balances; when a thread has to move between big and little cores, one that is biased to the target goes first and one that is biased to its own kind \
last, and an idle core takes no thread that is biased to the other kind while there is another. With `exchange` = 1, every 10 ms, where this leaves all loads as they are, \
threads are exchanged: the one on a little core with the greatest bias to big cores and the one on a big core with the least, as long as that improves both together; an idle core \
counts as a thread without bias.

**Constants.** The text of the paper was not at hand; that stalls on the present core decide, that nothing is tried out, and that load balancing comes first is stated in its abstract. \
The thresholds `external_little` = 0.5 and `external_big` = 0.25, `tick_ms` = 10, the exchange (which the abstract does not have, so that it is off) and that a thread is exchanged at most once in \
`min_resident_ms` = 100 are ours.

**Example.** On a little core a thread waits for memory in 20 % of its cycles, on a big core another does in 60 %: with `exchange` = 1 they change places.

**Limits.** The same thread waits for a greater share of its cycles on a big core, which does the rest faster: one between the thresholds may be biased to whichever kind it \
is not on. How much a thread gains does not matter, only that it does. Threads without counters have no bias.",
    params: &[
        ParamInfo::number("external_little", 0.5, 0.0, 1.0, "share of cycles waiting for memory above which a thread belongs on little cores (ours)"),
        ParamInfo::number("external_big", 0.25, 0.0, 1.0, "share below which it belongs on big cores (ours)"),
        ParamInfo::flag("exchange", false, "exchange threads of opposite bias between balanced cores (ours)"),
        ParamInfo::number("min_resident_ms", 100.0, 0.0, 10_000.0, "least stay on a core before an exchange (ours)"),
        seats::TICK,
        cfs::LATENCY,
        cfs::MIN_GRANULARITY,
        cfs::WAKEUP_GRANULARITY,
    ],
    build: |params| Box::new(Bias::new(params)),
};

/// The kind of core that suits a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Suits {
    Little,
    Any,
    Big,
}

impl Suits {
    fn prefer(self) -> Prefer {
        match self {
            Self::Little => Prefer::Little,
            Self::Any => Prefer::Any,
            Self::Big => Prefer::Big,
        }
    }
}

/// Bias scheduling.
pub struct Bias {
    cfs: CfsRules,
    tick_ns: Ns,
    external_little: f64,
    external_big: f64,
    exchange: bool,
    min_resident_ns: Ns,
}

/// A place for an exchange: a runnable thread, or an idle core.
type Place = (Suits, Option<ThreadId>);

impl Bias {
    fn new(params: &Params) -> Self {
        Self {
            cfs: CfsRules::new(params),
            tick_ns: params.ms("tick_ms"),
            external_little: params.number("external_little"),
            external_big: params.number("external_big"),
            exchange: params.flag("exchange"),
            min_resident_ns: params.ms("min_resident_ms"),
        }
    }

    fn bias(&self, view: &View, thread: ThreadId) -> Suits {
        let Some(stalls) = view.factors(thread).stalls else { return Suits::Any };
        let external = stalls.counters.memory_share();
        if external > self.external_little {
            Suits::Little
        } else if external < self.external_big {
            Suits::Big
        } else {
            Suits::Any
        }
    }

    /// Threads that may leave a kind of core for the other one, and its idle cores.
    fn places(&self, view: &View, kind: Prefer) -> Vec<Place> {
        let topology = view.topology();
        let is_here = |thread: &ThreadId| topology.kind(view.core(*thread)) == kind;
        let threads = view.runnable().filter(is_here).filter(|&t| self.may_leave(view, t, kind));
        let mut places: Vec<Place> = threads.map(|t| (self.bias(view, t), Some(t))).collect();
        let idle =
            topology.cores().filter(|&core| topology.kind(core) == kind && view.is_idle(core));
        places.extend(idle.map(|_| (Suits::Any, None)));
        places
    }

    fn may_leave(&self, view: &View, thread: ThreadId, kind: Prefer) -> bool {
        let topology = view.topology();
        let stats = view.stats(thread);
        let settled =
            stats.migrations == 0 || view.now_ns() >= stats.migrated_at_ns + self.min_resident_ns;
        settled
            && topology
                .cores()
                .any(|core| topology.kind(core) != kind && view.may_run(thread, core))
    }

    /// Exchanges threads one for one, so that loads stay as they are.
    fn exchange(&self, view: &View, plan: &mut Plan) {
        let mut little = self.places(view, Prefer::Little);
        let mut big = self.places(view, Prefer::Big);
        little.sort_by_key(|&(bias, thread)| (std::cmp::Reverse(bias), thread));
        big.sort_by_key(|&(bias, thread)| (bias, thread));
        let pairs = little.into_iter().zip(big).take_while(|(little, big)| little.0 > big.0);
        for ((_, goes_up), (_, goes_down)) in pairs {
            // Who leaves a big core goes first, so that the other one finds it free.
            for (thread, kind) in [(goes_down, Prefer::Little), (goes_up, Prefer::Big)] {
                if let Some(thread) = thread {
                    send(view, plan, thread, kind);
                }
            }
        }
    }
}

/// Sends a thread to a kind of core, without binding it there.
fn send(view: &View, plan: &mut Plan, thread: ThreadId, kind: Prefer) {
    let topology = view.topology();
    let there: CoreSet = topology.cores().filter(|&core| topology.kind(core) == kind).collect();
    plan.set(thread, Change::Affinity(there));
    plan.set(thread, Change::Affinity(topology.cores().collect()));
}

impl Policy for Bias {
    fn needs(&self) -> Needs {
        Needs { stalls: true, epoch_ns: Some(self.tick_ns), ..Needs::default() }
    }

    fn rules(&self, topology: &Topology) -> Rules {
        let base = self.cfs.on(topology);
        let others = |who, except| Steal { who, except, ..Steal::any(StealFrom::OtherClusters) };
        Rules {
            steal: vec![
                Steal::any(StealFrom::OwnCluster),
                others(Prefer::Big, Some(Prefer::Little)),
                others(Prefer::Little, Some(Prefer::Big)),
                others(Prefer::Any, None),
            ],
            balance: base.balance.map(|balance| Balance { by_preference: true, ..balance }),
            ..base
        }
    }

    fn epoch(&mut self, view: &View, plan: &mut Plan) {
        if view.topology().class_count() == 1 {
            return;
        }
        for thread in view.threads() {
            let prefer = self.bias(view, thread).prefer();
            if view.plan(thread).prefer != prefer {
                plan.set(thread, Change::Prefer(prefer));
            }
        }
        if self.exchange {
            self.exchange(view, plan);
        }
    }
}

#[cfg(test)]
mod tests {
    use ampsched_model::{ClassId, StallCounters};

    use super::*;
    use crate::testing::{PolicyHost, build};
    use crate::{RunState, Stalls};

    /// Two big and two little cores, and threads that wait for memory for these shares of their cycles,
    /// wherever they run.
    fn host(params: &[(&str, f64)], shares: &[f64]) -> (PolicyHost, Vec<ThreadId>) {
        let mut host = PolicyHost::new(&[(1, 2), (0, 2)], build("bias", params));
        let threads = shares.iter().map(|_| host.add(None)).collect();
        for (index, &share) in shares.iter().enumerate() {
            set_share(&mut host, index, share);
        }
        (host, threads)
    }

    fn set_share(host: &mut PolicyHost, index: usize, share: f64) {
        let counters =
            StallCounters { cpi_base: 1.0 - share, cpi_memory: share, ..StallCounters::default() };
        host.factors[index].stalls = Some(Stalls { class: ClassId(0), counters, at_ns: 0 });
    }

    fn run(host: &mut PolicyHost, epochs: usize) -> usize {
        (0..epochs).map(|_| host.run_epoch()).sum()
    }

    #[test]
    fn opposite_bias_is_exchanged() {
        let (mut host, threads) = host(&[("exchange", 1.0)], &[0.6, 0.3, 0.2, 0.3]);
        run(&mut host, 3);
        assert_eq!(host.on_fast(), threads[1..3], "the first went down, the third up");
        assert_eq!(run(&mut host, 50), 0, "and there they stay");
    }

    #[test]
    fn no_bias_gives_way_and_equal_bias_does_not() {
        let (mut host, threads) = host(&[("exchange", 1.0)], &[0.3, 0.2, 0.2, 0.6]);
        run(&mut host, 3);
        assert_eq!(host.on_fast(), threads[1..3]);
    }

    #[test]
    fn thresholds_are_parameters_and_exclusive() {
        for (share, bias) in
            [(0.24, Suits::Big), (0.25, Suits::Any), (0.5, Suits::Any), (0.51, Suits::Little)]
        {
            let (host, threads) = host(&[], &[share]);
            let policy = Bias::new(&Params::defaults(INFO.params));
            assert_eq!(policy.bias(&host.view(), threads[0]), bias, "{share}");
        }
    }

    #[test]
    fn without_exchange_bias_waits_for_an_imbalance() {
        let (mut host, threads) = host(&[], &[0.6, 0.3, 0.2, 0.3]);
        run(&mut host, 20);
        assert_eq!(host.on_fast(), threads[..2]);
        assert_eq!(host.sched.plan(threads[2]).prefer, Prefer::Big);
    }

    #[test]
    fn exchanges_are_rare() {
        let (mut host, threads) = host(&[("exchange", 1.0)], &[0.6, 0.3, 0.2, 0.3]);
        run(&mut host, 3);
        let changes: Vec<bool> = (0..30)
            .map(|_| {
                // What is on a big core seems to belong on a little one, and the other way round.
                for index in [0, 2] {
                    let on_big = host.on_fast().contains(&threads[index]);
                    set_share(&mut host, index, if on_big { 0.6 } else { 0.2 });
                }
                let before = host.on_fast();
                host.run_epoch();
                host.on_fast() != before
            })
            .collect();
        let count = changes.iter().filter(|&&changed| changed).count();
        assert!((2..=3).contains(&count), "{changes:?}");
    }

    #[test]
    fn an_idle_big_core_attracts() {
        let (mut host, threads) = host(&[("exchange", 1.0)], &[0.6, 0.3, 0.2]);
        // The third is on a little core; the second leaves.
        run(&mut host, 1);
        let core = host.sched.thread(threads[1]).core;
        host.sched.stop(core, RunState::Blocked, host.now_ns);
        run(&mut host, 2);
        assert!(host.on_fast().contains(&threads[2]));
    }
}
