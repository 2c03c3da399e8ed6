//! A host that lets random things happen to random threads, as a kernel would, and asks the interpreters what to do.

use ampsched_model::{ClusterId, CoreId, CoreSet, Draw, MAX_CLASSES, Ns, ThreadId};
use ampsched_policy::{
    Change, ChangeKind, EnqueueKind, LoadTracking, Pick, Prefer, RunState, Topology, nice_to_weight,
};
use ampsched_scx::layout;

use crate::both::Both;

/// Most threads that a trace adds.
pub const THREADS_MAX: u32 = 48;

pub struct Host {
    pub both: Both,
    draw: Draw,
    /// Up to when the thread of each core has been charged.
    charged_ns: Vec<Ns>,
    balance_due_ns: Ns,
}

impl Host {
    pub fn new(
        topology: Topology,
        rules: ampsched_policy::Rules,
        lowered: layout::Rules,
        tracking: Option<LoadTracking>,
        seed: u64,
    ) -> Self {
        let charged_ns = vec![0; topology.core_count()];
        let balance_due_ns = rules.balance.map_or(Ns::MAX, |balance| balance.period_ns);
        let both = Both::new(topology, rules, lowered, tracking, THREADS_MAX);
        Self { both, draw: Draw::new(seed), charged_ns, balance_due_ns }
    }

    /// Lets `steps` things happen.
    pub fn run(&mut self, steps: usize) {
        for _ in 0..steps {
            let pause_ns = self.draw.bits() % [1, 100_000, 3_000_000, 30_000_000][self.below(4)];
            self.both.now_ns += pause_ns;
            self.step();
            self.dispatch_all();
        }
        self.both.compare();
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.draw.bits() % limit as u64) as usize
    }

    fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }

    fn step(&mut self) {
        if self.both.now_ns >= self.balance_due_ns {
            let balance = self.both.rust.rules().balance.expect("it is due");
            self.both.balance(balance);
            self.balance_due_ns = self.both.now_ns + balance.period_ns;
        }
        match self.below(16) {
            0 | 1 => self.fork(),
            2..=5 => self.wake(),
            6..=8 => self.block(),
            9..=12 => self.tick(),
            13 => self.change_plan(),
            14 => self.change_plan_by_program(),
            15 if self.chance(3) => self.change_frequency(),
            _ if self.chance(8) => self.exit(),
            _ => self.both.compare(),
        }
    }

    /// A random set of cores that is not empty; of many cores a few, so that all are used.
    fn some_cores(&mut self) -> CoreSet {
        let count = self.charged_ns.len();
        let one_in = if count > 64 { 64 } else { 2 };
        let mut set: CoreSet =
            (0..count).map(CoreId::from).filter(|_| self.draw.bits() % one_in == 0).collect();
        set.insert(CoreId::from(self.below(count)));
        set
    }

    fn thread_in(&mut self, state: RunState) -> Option<ThreadId> {
        let all = (0..self.both.rust.thread_count()).map(ThreadId::from);
        let found: Vec<ThreadId> =
            all.filter(|&thread| self.both.rust.thread(thread).state == state).collect();
        (!found.is_empty()).then(|| found[self.below(found.len())])
    }

    fn charge(&mut self, core: CoreId) {
        let ran_ns = self.both.now_ns
            - std::mem::replace(&mut self.charged_ns[core.index()], self.both.now_ns);
        if self.both.rust.core(core).running.is_some() {
            self.both.charge(core, ran_ns);
        }
    }

    fn fork(&mut self) {
        if self.both.rust.thread_count() as u32 == THREADS_MAX {
            return;
        }
        let nice = self.below(40) as i32 - 20;
        let weight = nice_to_weight(if self.chance(2) { 0 } else { nice });
        let cores = if self.chance(4) { Some(self.some_cores()) } else { None };
        let thread = self.both.add(weight, cores.as_ref());
        self.make_runnable(thread, EnqueueKind::Fork, None);
    }

    fn wake(&mut self) {
        let Some(thread) = self.thread_in(RunState::Blocked) else { return self.fork() };
        let waker = if self.chance(2) {
            None
        } else {
            Some(CoreId::from(self.below(self.charged_ns.len())))
        };
        self.make_runnable(thread, EnqueueKind::Wake, waker);
    }

    fn make_runnable(&mut self, thread: ThreadId, kind: EnqueueKind, waker: Option<CoreId>) {
        if self.both.rust.plan(thread).held {
            return self.both.hold(thread);
        }
        let core = self.both.place(thread, waker);
        self.charge(core);
        self.both.enqueue(thread, core, kind);
        if let Some(running) = self.both.rust.core(core).running {
            self.both.expiry_ns(core);
            if self.both.preempts(thread, running, core) {
                self.both.requeue(core);
            }
        }
    }

    fn block(&mut self) {
        let Some(thread) = self.thread_in(RunState::Running) else { return };
        let core = self.both.rust.thread(thread).core;
        self.charge(core);
        self.both.stop(core, RunState::Blocked);
    }

    fn exit(&mut self) {
        let Some(thread) = self.thread_in(RunState::Running) else { return };
        let core = self.both.rust.thread(thread).core;
        self.charge(core);
        self.both.stop(core, RunState::Exited);
    }

    /// All that run are charged and lose their core if their turn is over.
    fn tick(&mut self) {
        for core in self.both.rust.topology().cores() {
            if self.both.rust.core(core).running.is_none() {
                continue;
            }
            self.charge(core);
            if self.both.expiry_ns(core).is_some_and(|due_ns| self.both.now_ns >= due_ns) {
                self.both.requeue(core);
            }
        }
    }

    fn change_plan(&mut self) {
        let count = self.both.rust.thread_count();
        if count == 0 {
            return;
        }
        let thread = ThreadId::from(self.below(count));
        if self.both.rust.thread(thread).state == RunState::Exited {
            return;
        }
        let kind = [Prefer::Any, Prefer::Big, Prefer::Little][self.below(3)];
        let nice = self.below(40) as i32 - 20;
        let change = match ChangeKind::ALL[self.below(ChangeKind::ALL.len())] {
            ChangeKind::Affinity => Change::Affinity(self.some_cores()),
            ChangeKind::Prefer => Change::Prefer(kind),
            ChangeKind::Move => Change::Move(kind),
            ChangeKind::Rank => Change::Rank(self.draw.bits() % 10),
            ChangeKind::Weight => Change::Weight(nice_to_weight(nice)),
            ChangeKind::Speed => {
                Change::Speed([(); MAX_CLASSES].map(|()| 0.5 + 4.0 * self.draw.uniform()))
            }
            ChangeKind::Slice => Change::Slice([0, 1_000_000, 20_000_000][self.below(3)]),
            ChangeKind::Hold => Change::Hold(self.both.rust.thread(thread).state != RunState::Held),
        };
        if self.both.apply(thread, &change) {
            self.relocate(thread);
        }
    }

    fn change_plan_by_program(&mut self) {
        if !self.chance(3) {
            return self.change_plan();
        }
        let Some(thread) = self.thread_in(RunState::Running) else { return };
        let set = self.some_cores();
        if self.both.restrict_user(thread, &set) {
            self.relocate(thread);
        }
    }

    fn change_frequency(&mut self) {
        let cluster = self.below(self.both.rust.topology().clusters().len());
        let mhz = [200, 700, 1000][self.below(3)];
        self.both.set_frequency(ClusterId::from(cluster), mhz);
    }

    /// As the simulator moves a thread that may no longer be where it is.
    fn relocate(&mut self, thread: ThreadId) {
        let core = self.both.rust.thread(thread).core;
        let state = self.both.rust.thread(thread).state;
        match state {
            RunState::Ready => self.both.dequeue(thread),
            RunState::Running => {
                self.charge(core);
                self.both.stop(core, RunState::Ready);
            }
            RunState::Held if self.chance(10) => return self.both.retire(thread),
            RunState::Held => return self.make_runnable(thread, EnqueueKind::Wake, None),
            RunState::New | RunState::Blocked | RunState::Exited => return,
        }
        self.make_runnable(thread, EnqueueKind::Requeue, None);
    }

    /// Cores without a thread look for one, in random order.
    fn dispatch_all(&mut self) {
        let count = self.charged_ns.len();
        let first = self.below(count);
        for core in (first..count).chain(0..first).map(CoreId::from) {
            if self.both.rust.core(core).running.is_some() {
                continue;
            }
            self.charge(core);
            match self.both.pick(core) {
                Pick::Run(thread) => self.both.start(core, thread),
                Pick::Pull(thread) => {
                    let from = self.both.rust.thread(thread).core;
                    self.charge(from);
                    self.both.stop(from, RunState::Ready);
                    self.both.enqueue(thread, from, EnqueueKind::Requeue);
                    self.both.start(core, thread);
                }
                Pick::Idle { .. } => {}
            }
        }
    }
}
