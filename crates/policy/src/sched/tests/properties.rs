//! Random operations on random rules: what must hold whatever happens.

use ampsched_model::{CoreId, CoreSet, Ns, ThreadId};
use proptest::prelude::*;
use proptest::sample::Index;

use super::host::{Host, MS, rules};
use crate::{
    Allocator, Balance, Change, Charge, EnqueueKind, Order, Pick, Prefer, QueueScope, Rules,
    RunState, Sched, Steal, StealFrom,
};

/// What happens to the system; threads and cores are chosen among those to which it can happen.
#[derive(Clone, Debug)]
enum Op {
    Fork { weight: u32, cores: Option<u8>, count: u8 },
    Pass { ns: Ns },
    Requeue(Index),
    Block(Index),
    Exit(Index),
    Wake(Index),
    Move { thread: Index, core: Index },
    Change { thread: Index, change: Change },
    Balance { within_kind: bool },
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        any::<u8>().prop_map(|bits| Change::Affinity(core_set(bits))),
        prop_oneof![Just(Prefer::Any), Just(Prefer::Big), Just(Prefer::Little)]
            .prop_map(Change::Prefer),
        prop_oneof![Just(Prefer::Any), Just(Prefer::Big), Just(Prefer::Little)]
            .prop_map(Change::Move),
        (0..50u64).prop_map(Change::Rank),
        (15..90_000u32).prop_map(Change::Weight),
        (1.0..4.0f64).prop_map(|s| Change::Speed([1.0, s, s * s, s * s])),
        (0..5u64).prop_map(|ms| Change::Slice(ms * MS)),
        any::<bool>().prop_map(Change::Hold),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let index = any::<Index>;
    prop_oneof![
        2 => (15..90_000u32, any::<Option<u8>>(), 1..8u8)
            .prop_map(|(weight, cores, count)| Op::Fork { weight, cores, count }),
        4 => (1..5_000_000u64).prop_map(|ns| Op::Pass { ns }),
        4 => index().prop_map(Op::Requeue),
        2 => index().prop_map(Op::Block),
        1 => index().prop_map(Op::Exit),
        3 => index().prop_map(Op::Wake),
        1 => (index(), index()).prop_map(|(thread, core)| Op::Move { thread, core }),
        2 => (index(), change()).prop_map(|(thread, change)| Op::Change { thread, change }),
        1 => any::<bool>().prop_map(|within_kind| Op::Balance { within_kind }),
    ]
}

/// A non-empty set of the first four cores.
fn core_set(bits: u8) -> CoreSet {
    let bits = if bits & 15 == 0 { 15 } else { bits };
    (0..4usize).filter(|core| bits >> core & 1 == 1).map(CoreId::from).collect()
}

const CLUSTERS: &[&[(u8, usize)]] =
    &[&[(0, 4)], &[(1, 2), (0, 2)], &[(0, 3), (1, 1)], &[(2, 1), (1, 1), (0, 2)]];

/// Rules of every policy, and each order with each scope of queues. All cores look everywhere for
/// waiting threads, unless the policy says otherwise.
fn all_rules(clusters: &[(u8, usize)]) -> Vec<Rules> {
    let mut all: Vec<Rules> =
        crate::REGISTRY.iter().map(|info| rules(info.name, &[], clusters)).collect();
    let base = rules("cfs", &[], clusters);
    for queues in [QueueScope::PerCore, QueueScope::PerCluster, QueueScope::Global] {
        let orders = [
            Order::Fifo,
            Order::Vruntime,
            Order::Deadline,
            Order::HighestRank { fair_window_ns: MS },
            Order::Rounds { length_ns: 10 * MS },
        ];
        all.extend(orders.map(|order| Rules { queues, order, ..base.clone() }));
        let allocator = Allocator::LeastLoadedInClass;
        all.push(Rules { queues, allocator, ..base.clone() });
        let rating = [1024, 2048, 3000, 4096];
        let allocator = Allocator::LeastLoadedWith;
        all.push(Rules { queues, allocator, rating, charge: Charge::Rated, ..base.clone() });
    }
    all
}

fn looks_everywhere(rules: &Rules) -> bool {
    let everywhere = |from| rules.steal.contains(&Steal::any(from));
    rules.queues == QueueScope::Global
        || everywhere(StealFrom::OwnCluster) && everywhere(StealFrom::OtherClusters)
}

impl Host {
    fn threads_in(&self, wanted: RunState) -> Vec<ThreadId> {
        let all = (0..self.sched.thread_count()).map(ThreadId::from);
        all.filter(|&thread| self.sched.thread(thread).state == wanted).collect()
    }

    fn busy_cores(&self) -> Vec<CoreId> {
        let cores = self.sched.topology().cores();
        cores.filter(|&core| self.sched.core(core).running.is_some()).collect()
    }

    /// Carries out an operation unless there is nothing that it could happen to.
    fn carry_out(&mut self, op: &Op) {
        let busy = self.busy_cores();
        let ready = self.threads_in(RunState::Ready);
        let blocked = self.threads_in(RunState::Blocked);
        let all = self.sched.thread_count();
        match op {
            Op::Fork { weight, cores, count } => {
                for _ in 0..*count {
                    let app = ampsched_model::AppId(0);
                    let thread = self.sched.add(app, *weight, cores.map(core_set).as_ref());
                    self.place(thread, EnqueueKind::Fork);
                }
            }
            Op::Pass { ns } => self.advance(*ns),
            Op::Requeue(index) if !busy.is_empty() => self.requeue(index.get(&busy).index()),
            Op::Block(index) if !busy.is_empty() => {
                self.block(index.get(&busy).index());
            }
            Op::Exit(index) if !busy.is_empty() => {
                self.sched.stop(*index.get(&busy), RunState::Exited, self.now_ns);
            }
            Op::Wake(index) if !blocked.is_empty() => {
                self.place(*index.get(&blocked), EnqueueKind::Wake);
            }
            Op::Move { thread, core } if !ready.is_empty() => {
                let thread = *thread.get(&ready);
                let core = core.index(self.sched.topology().core_count());
                if self.sched.allows(thread, core.into()) {
                    self.move_to(core, thread);
                }
            }
            Op::Change { thread, change } if all > 0 => {
                self.change(thread.index(all).into(), change)
            }
            Op::Balance { within_kind } => {
                let within_kind = *within_kind;
                let balance = Balance {
                    period_ns: 1,
                    rotate_period_ns: 2,
                    tolerance_percent: 25,
                    within_kind,
                    min_resident_ns: 0,
                    by_preference: !within_kind,
                };
                self.sched.balance(balance, self.now_ns);
            }
            _ => {}
        }
    }

    fn place(&mut self, thread: ThreadId, kind: EnqueueKind) {
        if self.sched.plan(thread).held {
            return self.sched.hold(thread, self.now_ns);
        }
        let core = self.sched.place_by_rules(thread, self.now_ns);
        assert!(self.sched.allows(thread, core), "placed where it may not run");
        if kind == EnqueueKind::Fork && self.sched.rules().allocator == Allocator::WakeAffine {
            let usable = self.sched.topology().cores().filter(|&c| self.sched.allows(thread, c));
            assert_eq!(usable.min_by_key(|&c| self.sched.load(c)), Some(core), "least loaded");
        }
        self.sched.enqueue(thread, core, kind, self.now_ns);
    }

    fn change(&mut self, thread: ThreadId, change: &Change) {
        if !self.sched.apply(thread, change).moves {
            return;
        }
        match self.sched.thread(thread).state {
            RunState::Held => return self.place(thread, EnqueueKind::Wake),
            RunState::Ready => self.sched.dequeue(thread),
            RunState::Running => {
                let core = self.sched.thread(thread).core;
                self.sched.stop(core, RunState::Ready, self.now_ns);
            }
            other => panic!("a thread that is {other:?} is not in a wrong place"),
        }
        self.place(thread, EnqueueKind::Requeue);
    }

    /// Every core without a thread looks for one.
    fn dispatch_all(&mut self) {
        for core in 0..self.sched.topology().core_count() {
            if self.running(core).is_some() {
                continue;
            }
            let pick = self.pick(core);
            if let Pick::Run(thread) | Pick::Pull(thread) = pick {
                assert!(self.sched.allows(thread, core.into()), "picked where it may not run");
            } else if looks_everywhere(self.sched.rules()) {
                // The only thread of a core that is about to run it is not up for taking.
                let spared = |&thread: &ThreadId| {
                    self.sched.queue(self.sched.thread(thread).core).can_spare()
                };
                let mut waiting = self.threads_in(RunState::Ready).into_iter().filter(spared);
                assert!(!waiting.any(|t| self.sched.allows(t, core.into())), "idles beside work");
            }
            self.dispatch(core);
            if let Some(thread) = self.running(core) {
                let slice_ns = self.sched.slice_by_rules(thread, core.into());
                assert!(slice_ns > 0, "a slice of nothing");
            }
        }
    }
}

/// Every thread is in one place, and the sums of every queue are those of its threads.
fn check(sched: &Sched) {
    let mut places = vec![0; sched.thread_count()];
    let mut sums = vec![(0u64, 0i128, 0u32); sched.queues.len()];
    let mut count = |thread: ThreadId, queue: usize, runs: bool| {
        let state = sched.thread(thread);
        places[thread.index()] += 1;
        assert_eq!(state.state, if runs { RunState::Running } else { RunState::Ready });
        assert_eq!(sched.queue_index(state.core), queue);
        let weight = sched.plan(thread).weight;
        let sum = &mut sums[queue];
        sum.0 += u64::from(weight);
        sum.1 += i128::from(weight) * i128::from(state.vruntime);
        sum.2 += u32::from(runs);
    };
    for (index, queue) in sched.queues.iter().enumerate() {
        for entry in queue.iter() {
            assert_eq!(entry.key, sched.thread(entry.thread).vruntime);
            count(entry.thread, index, false);
        }
    }
    for core in sched.topology().cores() {
        if let Some(thread) = sched.core(core).running {
            assert_eq!(sched.thread(thread).core, core);
            count(thread, sched.queue_index(core), true);
        }
    }
    for (index, &found) in places.iter().enumerate() {
        let runnable = sched.thread(ThreadId::from(index)).state.is_runnable();
        assert_eq!(found, i32::from(runnable), "places of thread {index}");
    }
    for (queue, sum) in sched.queues.iter().zip(&sums) {
        assert_eq!((queue.load, queue.running), (sum.0, sum.2));
        if sched.rules().order == Order::Deadline {
            assert_eq!(queue.weighted_vruntime, sum.1);
        } else if sched.rules().order != Order::Fifo {
            assert_eq!(queue.least(), queue.iter().map(|entry| entry.key).min());
        }
    }
    let all = (0..sched.thread_count()).map(ThreadId::from);
    let live = all.filter(|&thread| sched.thread(thread).state.is_live());
    assert!(sched.live_threads().eq(live), "live threads");
    let waiting: usize = sched.queues.iter().map(|queue| queue.len()).sum();
    assert_eq!(sched.waiting as usize, waiting);
    let idle = sched.cores.iter().filter(|core| core.running.is_none()).count();
    assert_eq!(sched.idle_cores(), idle);
}

fn floors(sched: &Sched) -> Vec<Ns> {
    sched.queues.iter().map(|queue| queue.min_vruntime).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn books_balance_and_cores_do_not_idle_beside_work(
        clusters in prop::sample::select(CLUSTERS),
        rules in any::<Index>(),
        ops in prop::collection::vec(op(), 1..120),
    ) {
        let rules = rules.get(&all_rules(clusters)).clone();
        let by_deadline = rules.order == Order::Deadline;
        let mut host = Host::with(rules, clusters);
        let mut before = floors(&host.sched);
        for op in &ops {
            host.carry_out(op);
            check(&host.sched);
            host.dispatch_all();
            check(&host.sched);
            let after = floors(&host.sched);
            // EEVDF has no least virtual run time; its mean may go back when a thread leaves.
            if !by_deadline {
                prop_assert!(before.iter().zip(&after).all(|(before, after)| before <= after));
            }
            before = after;
        }
    }

    #[test]
    fn time_is_accounted_in_full(
        clusters in prop::sample::select(CLUSTERS),
        rules in any::<Index>(),
        ops in prop::collection::vec(op(), 1..80),
    ) {
        let mut host = Host::with(rules.get(&all_rules(clusters)).clone(), clusters);
        let mut born_ns = Vec::new();
        for op in &ops {
            host.carry_out(op);
            born_ns.resize(host.sched.thread_count(), host.now_ns);
            host.dispatch_all();
        }
        for (index, &born_ns) in born_ns.iter().enumerate() {
            let thread = ThreadId::from(index);
            let (state, stats) = (host.sched.thread(thread), host.sched.stats(thread));
            let accounted_ns = stats.run_ns_total() + stats.ready_ns + stats.blocked_ns;
            // Waiting is accounted when it ends, running as time passes.
            let end_ns = match state.state {
                RunState::Running => host.now_ns,
                RunState::Ready | RunState::Blocked | RunState::Held | RunState::Exited => {
                    state.since_ns
                }
                RunState::New => born_ns,
            };
            prop_assert_eq!(accounted_ns, end_ns - born_ns);
        }
    }
}
