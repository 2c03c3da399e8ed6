//! Both interpreters side by side: each call goes to both, and what they answer must agree.

use ampsched_model::{AppId, ClusterId, CoreId, CoreSet, Ns, ThreadId};
use ampsched_policy::{
    Balance, Change, Choice, CoreLoad, EnqueueKind, LoadTracking, PELT_UNIT_NS, Pick, RunState,
    Sched, Topology,
};
use ampsched_scx::layout::{self, NEVER, NONE, Op, Operation, Set};
use ampsched_scx::native::Native;
use ampsched_scx::{loads, lower};

/// The interpreters, and what the one in C has been told so far.
pub struct Both {
    pub rust: Sched,
    pub c: Native,
    /// Operations with their answers: a trace.
    pub trace: Vec<Operation>,
    /// The state before the first of them.
    pub before: Box<layout::Sched>,
    pub now_ns: Ns,
}

fn core_number(core: Option<CoreId>) -> u32 {
    core.map_or(NONE, |core| core.0.into())
}

impl Both {
    pub fn new(
        topology: Topology,
        rules: ampsched_policy::Rules,
        lowered: layout::Rules,
        tracking: Option<LoadTracking>,
        threads_max: u32,
    ) -> Self {
        let mut before = lower::state(lowered, &rules, &topology, threads_max);
        if let Some(how) = tracking {
            lower::track_load(&mut before, how, &topology, PELT_UNIT_NS);
        }
        let mut rust = Sched::new(topology, rules);
        if let Some(how) = tracking {
            rust.track_load(how);
        }
        Self { rust, c: Native::new(&before), trace: Vec::new(), before, now_ns: 0 }
    }

    /// Tells the interpreter in C, which answers.
    fn tell(&mut self, mut operation: Operation) -> Operation {
        operation.now_ns = self.now_ns;
        self.c.operate(std::slice::from_mut(&mut operation));
        self.trace.push(operation);
        operation
    }

    fn op(
        &mut self,
        kind: Op,
        thread: Option<ThreadId>,
        core: Option<CoreId>,
        a: u64,
    ) -> Operation {
        let (thread, core) = (thread.map_or(NONE, |thread| thread.0), core_number(core));
        self.tell(Operation { kind: kind as u32, thread, core, a, ..Operation::default() })
    }

    pub fn add(&mut self, weight: u32, cores: Option<&CoreSet>) -> ThreadId {
        let thread = self.rust.add(AppId(0), weight, cores);
        let cores = cores.map_or(Set::ALL, |cores| cores.iter().collect());
        let kind = Op::Add as u32;
        let answer = self.tell(Operation { kind, a: weight.into(), cores, ..Operation::default() });
        assert_eq!(answer.value, u64::from(thread.0), "number of a new thread");
        thread
    }

    pub fn place(&mut self, thread: ThreadId, waker: Option<CoreId>) -> CoreId {
        let core = self.rust.place_by_rules_near(thread, waker, self.now_ns);
        let answer = self.op(Op::Place, Some(thread), waker, 0);
        assert_eq!(answer.value, u64::from(core.0), "core for {thread:?}, woken from {waker:?}");
        core
    }

    pub fn enqueue(&mut self, thread: ThreadId, core: CoreId, kind: EnqueueKind) {
        self.rust.enqueue(thread, core, kind, self.now_ns);
        self.op(Op::Enqueue, Some(thread), Some(core), kind.number().into());
    }

    pub fn pick(&mut self, core: CoreId) -> Pick {
        let pick = self.rust.pick_by_rules(core, self.now_ns);
        let answer = self.op(Op::Pick, None, Some(core), 0);
        let found = match answer.pick_kind {
            0 => Pick::Idle { recheck_ns: (answer.value != NEVER).then_some(answer.value) },
            1 => Pick::Run(ThreadId(answer.pick_thread)),
            _ => Pick::Pull(ThreadId(answer.pick_thread)),
        };
        assert_eq!(found, pick, "what {core:?} does next");
        pick
    }

    pub fn start(&mut self, core: CoreId, thread: ThreadId) {
        self.rust.start(core, thread, self.now_ns);
        self.op(Op::Start, Some(thread), Some(core), 0);
    }

    pub fn charge(&mut self, core: CoreId, ran_ns: Ns) {
        self.rust.charge(core, ran_ns, 0);
        self.op(Op::Charge, None, Some(core), ran_ns);
    }

    pub fn stop(&mut self, core: CoreId, state: RunState) {
        self.rust.stop(core, state, self.now_ns);
        self.op(Op::Stop, None, Some(core), state.number().into());
    }

    pub fn requeue(&mut self, core: CoreId) {
        self.rust.requeue(core, self.now_ns);
        self.op(Op::Requeue, None, Some(core), 0);
    }

    pub fn dequeue(&mut self, thread: ThreadId) {
        self.rust.dequeue(thread);
        self.op(Op::Dequeue, Some(thread), None, 0);
    }

    pub fn hold(&mut self, thread: ThreadId) {
        self.rust.hold(thread, self.now_ns);
        self.op(Op::Leave, Some(thread), None, RunState::Held.number().into());
    }

    pub fn retire(&mut self, thread: ThreadId) {
        self.rust.retire(thread, self.now_ns);
        self.op(Op::Leave, Some(thread), None, RunState::Exited.number().into());
    }

    pub fn expiry_ns(&mut self, core: CoreId) -> Option<Ns> {
        let expiry_ns = self.rust.expiry_ns(core, None, self.now_ns);
        let answer = self.op(Op::Expiry, None, Some(core), 0);
        assert_eq!(
            (answer.value != NEVER).then_some(answer.value),
            expiry_ns,
            "end of the turn on {core:?}"
        );
        expiry_ns
    }

    pub fn preempts(&mut self, woken: ThreadId, running: ThreadId, core: CoreId) -> bool {
        let preempts = self.rust.preempts_by_rules(woken, running, core);
        let answer = self.op(Op::Preempts, Some(woken), Some(core), 0);
        assert_eq!(
            answer.value != 0,
            preempts,
            "whether {woken:?} interrupts {running:?} on {core:?}"
        );
        preempts
    }

    pub fn balance(&mut self, balance: Balance) -> Vec<CoreId> {
        let mut receivers = self.rust.balance(balance, self.now_ns);
        receivers.sort_unstable();
        receivers.dedup();
        let answer = self.op(Op::Balance, None, None, 0);
        let cores: Set = receivers.iter().copied().collect();
        assert_eq!(answer.cores, cores, "cores that balancing gives threads");
        receivers
    }

    /// A cluster's frequency changes.
    pub fn set_frequency(&mut self, cluster: ClusterId, mhz: u32) {
        self.rust.set_frequency(cluster, mhz, self.now_ns);
        let cluster = self.rust.topology().clusters()[cluster.index()].clone();
        for core in cluster.cores {
            self.tell(lower::pace(core, mhz, *cluster.freqs_mhz.last().expect("it has one")));
        }
    }

    /// Carries out a change; returns whether the thread must be moved.
    pub fn apply(&mut self, thread: ThreadId, change: &Change) -> bool {
        let moves = self.rust.apply(thread, change).moves;
        let mut moves_in_c = false;
        for operation in lower::change(thread.0, change) {
            moves_in_c |= self.tell(operation).value != 0;
        }
        assert_eq!(moves_in_c, moves, "whether {change:?} moves {thread:?}");
        moves
    }

    pub fn restrict_user(&mut self, thread: ThreadId, set: &CoreSet) -> bool {
        let moves = self.rust.restrict_user(thread, set).moves;
        let (kind, cores) = (Op::UserAffinity as u32, set.iter().collect());
        let answer = self.tell(Operation { kind, thread: thread.0, cores, ..Operation::default() });
        assert_eq!(answer.value != 0, moves, "whether a set of its program moves {thread:?}");
        moves
    }

    /// All that both know of threads, cores and queues.
    pub fn compare(&self) {
        for index in 0..self.rust.thread_count() {
            self.compare_thread(ThreadId::from(index));
        }
        for core in self.rust.topology().cores() {
            let (ours, theirs) = (self.rust.core(core), &self.c.state().cores[core.index()]);
            assert_eq!(
                ours.running.map_or(NONE, |thread| thread.0),
                theirs.running,
                "{core:?} runs"
            );
            assert_eq!(
                (ours.since_ns, ours.busy_ns),
                (theirs.since_ns, theirs.busy_ns),
                "{core:?}"
            );
            let queue = &self.c.state().queues[theirs.queue as usize];
            assert_eq!(self.rust.queue_len(core), queue.len as usize, "queue of {core:?}");
        }
        self.compare_loads();
        assert_eq!(
            self.rust.idle_cores(),
            self.c.state().idle.iter().filter(|&&idle| idle != 0).count(),
            "idle cores"
        );
    }

    /// What load tracking says of threads and cores.
    fn compare_loads(&self) {
        let (state, now_ns) = (self.c.state(), self.now_ns);
        if self.rust.load_tracking().is_none() {
            return;
        }
        for core in self.rust.topology().cores() {
            let found = loads::of_core(&state.cores[core.index()].tracked, state.unit_ns, now_ns);
            let (util, boosted) =
                (self.rust.core_util(core, now_ns), self.rust.core_util_boosted(core, now_ns));
            assert_eq!(found, CoreLoad { util, boosted }, "tracked load of {core:?}");
        }
        for thread in (0..self.rust.thread_count()).map(ThreadId::from) {
            let own = &self.c.thread(thread.0).tracked;
            let core = &state.cores[own.core as usize].tracked;
            let found = loads::of_thread(core, own, state.unit_ns, now_ns);
            let ours = self.rust.thread_load(thread, now_ns);
            assert_eq!(Some(found), ours, "tracked load of {thread:?}");
        }
    }

    fn compare_thread(&self, thread: ThreadId) {
        let (state, stats, plan) =
            (self.rust.thread(thread), self.rust.stats(thread), self.rust.plan(thread));
        let c = self.c.thread(thread.0);
        let ours =
            (state.state.number(), state.core.0.into(), core_number(state.ran_on), state.since_ns);
        assert_eq!(
            (c.state, c.core, c.ran_on, c.since_ns),
            ours,
            "state, core, last core and since when of {thread:?}"
        );
        assert_eq!(
            (c.vruntime, c.deadline),
            (state.vruntime, state.deadline),
            "virtual times of {thread:?}"
        );
        assert_eq!(
            (c.weight, c.rank, c.prefer),
            (plan.weight, plan.rank, plan.prefer.number()),
            "plan of {thread:?}"
        );
        let ours = (stats.run_ns, stats.ready_ns, stats.ready_ns_max, stats.blocked_ns);
        assert_eq!(
            (c.run_ns, c.ready_ns, c.ready_ns_max, c.blocked_ns),
            ours,
            "times of {thread:?}"
        );
        let ours = (stats.switches, stats.migrations, stats.migrated_at_ns);
        assert_eq!((c.switches, c.migrations, c.migrated_at_ns), ours, "moves of {thread:?}");
        for core in self.rust.topology().cores() {
            assert_eq!(
                c.affinity.contains(core.index()),
                self.rust.allows(thread, core),
                "{thread:?} on {core:?}"
            );
        }
    }
}
