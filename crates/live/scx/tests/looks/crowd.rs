//! Threads in the kernel's interpreter, to which random things happen.

use ampsched_live_session::Session;
use ampsched_model::{Draw, InputError, Ns};
use ampsched_policy::{Choice, EnqueueKind, Needs, RunState};
use ampsched_scx::layout::{NONE, Op, Operation, Thread};
use ampsched_scx::native::Native;
use ampsched_scx::table::Cores;
use ampsched_scx::{FastPlane, ScxError, lower};

pub const CORES: usize = 4;
const THREADS_MAX: u32 = 256;
/// Events between two looks.
const EVENTS: u64 = 12;

pub struct Crowd {
    native: Native,
    draw: Draw,
    now_ns: Ns,
    /// By core: up to when its thread has been charged.
    charged_ns: [Ns; CORES],
}

impl Crowd {
    pub fn begin(&mut self, threads: usize, seed: u64) {
        self.draw = Draw::new(seed);
        (0..threads).for_each(|_| self.fork());
    }

    /// Time passes, and something happens.
    pub fn pass_until(&mut self, now_ns: Ns) {
        let span_ns = (now_ns - self.now_ns) / (EVENTS + 1);
        for _ in 0..EVENTS {
            self.now_ns += 1 + self.below(span_ns);
            let slot = self.below(self.native.state().thread_count.into()) as u32;
            self.happen_to(slot);
        }
        self.now_ns = now_ns;
        // As at a tick.
        (0..CORES as u32).for_each(|core| self.charge(core));
    }

    /// All threads.
    pub fn table(&self) -> Vec<Thread> {
        (0..self.native.state().thread_count).map(|slot| *self.native.thread(slot)).collect()
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.draw.bits() % limit
    }

    fn fork(&mut self) {
        let slot = self.native.welcome(1024, (1 << CORES) - 1);
        let own = self.native.thread_mut(slot);
        (own.pid, own.process) = (std::process::id(), std::process::id());
        own.since_ns = self.now_ns;
        let core = self.below(CORES as u64) as u32;
        self.operate(Op::Enqueue, slot, core, EnqueueKind::Fork.number().into());
    }

    fn happen_to(&mut self, slot: u32) {
        let Thread { in_use, state, core, .. } = *self.native.thread(slot);
        let is = |expected: RunState| state == expected.number();
        let running = self.native.state().cores[core as usize].running;
        if in_use == 0 {
            self.fork();
        } else if is(RunState::Blocked) {
            let core = self.below(CORES as u64) as u32;
            self.operate(Op::Enqueue, slot, core, EnqueueKind::Wake.number().into());
        } else if is(RunState::Ready) && running == NONE {
            self.charged_ns[core as usize] = self.now_ns;
            self.operate(Op::Start, slot, core, 0);
        } else {
            self.end_turn(core);
        }
    }

    /// The thread on a core sleeps, waits again, or ends; the first that waits there follows.
    fn end_turn(&mut self, core: u32) {
        self.charge(core);
        let slot = self.native.state().cores[core as usize].running;
        match self.below(10) {
            0 => {
                let call = self.native.call_of(core, self.now_ns);
                self.native.bid_farewell(call, slot);
            }
            1..=3 => self.operate(Op::Requeue, slot, core, 0),
            _ => self.operate(Op::Stop, slot, core, RunState::Blocked.number().into()),
        }
        let queue = self.native.state().cores[core as usize].queue as usize;
        let next = self.native.state().queues[queue].first;
        if next != NONE && self.below(4) > 0 {
            self.charged_ns[core as usize] = self.now_ns;
            self.operate(Op::Start, next, core, 0);
        }
    }

    fn charge(&mut self, core: u32) {
        if self.native.state().cores[core as usize].running != NONE {
            let since_ns = &mut self.charged_ns[core as usize];
            let ran_ns = self.now_ns - std::mem::replace(since_ns, self.now_ns);
            self.operate(Op::Charge, 0, core, ran_ns);
        }
    }

    fn operate(&mut self, kind: Op, thread: u32, core: u32, a: u64) {
        let (now_ns, kind) = (self.now_ns, kind as u32);
        let mut operation = Operation { now_ns, a, kind, thread, core, ..Operation::default() };
        self.native.operate(std::slice::from_mut(&mut operation));
    }
}

impl FastPlane for Crowd {
    fn load(session: &Session) -> Result<Self, InputError> {
        let (rules, topology) = (session.driver.rules(), session.cores.topology());
        let lowered = lower::rules(&session.name, &Needs::default(), &rules, topology).unwrap();
        let native = Native::new(lower::state(lowered, &rules, topology, THREADS_MAX));
        let draw = Draw::new(0);
        Ok(Self { native, draw, now_ns: 0, charged_ns: [0; CORES] })
    }

    fn read_changed(&mut self, changed: &mut Vec<(u32, Thread)>) {
        self.native.read_changed(changed);
    }

    fn read_cores(&mut self, cores: &mut Cores) {
        self.native.read_cores(cores);
    }

    fn clock_ns(&self) -> Ns {
        self.now_ns
    }

    fn apply(&mut self, operations: &mut [Operation]) -> Result<(), ScxError> {
        self.native.operate(operations);
        Ok(())
    }
}
