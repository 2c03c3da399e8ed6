//! Threads in the kernel's interpreter, to which random things happen.

use ampsched_model::{Draw, Ns};
use ampsched_policy::{Choice, EnqueueKind, RunState};
use ampsched_scx::layout::{NONE, Op, Set, Thread};

use crate::subjects::Table;

pub const CORES: usize = 4;
/// Events between two looks.
const EVENTS: u64 = 12;

/// More than the number of any process (Linux, `PID_MAX_LIMIT`).
const FIRST_PID: u32 = 5_000_000;

pub struct Chance {
    draw: Draw,
    /// How many threads have been started.
    forks: u32,
    /// By core: up to when its thread has been charged.
    charged_ns: [Ns; CORES],
}

impl Default for Chance {
    fn default() -> Self {
        Self { draw: Draw::new(0), forks: 0, charged_ns: [0; CORES] }
    }
}

pub type Crowd = Table<Chance>;

impl Crowd {
    pub fn begin(&mut self, threads: usize, seed: u64) {
        self.host.draw = Draw::new(seed);
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

    /// Time passes.
    pub fn pass_none_until(&mut self, now_ns: Ns) {
        self.now_ns = now_ns;
    }

    /// All threads.
    pub fn table(&self) -> Vec<Thread> {
        (0..self.native.state().thread_count).map(|slot| *self.native.thread(slot)).collect()
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.host.draw.bits() % limit
    }

    fn fork(&mut self) {
        let slot = self.come(FIRST_PID + self.host.forks);
        self.host.forks += 1;
        let core = self.below(CORES as u64) as u32;
        self.operate(Op::Enqueue, slot, core, EnqueueKind::Fork.number().into());
    }

    /// A thread comes into the table.
    pub fn come(&mut self, pid: u32) -> u32 {
        let slot = self.native.init_thread(1024, &Set::ALL);
        let own = self.native.thread_mut(slot);
        (own.pid, own.process, own.since_ns) = (pid, std::process::id(), self.now_ns);
        slot
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
            self.host.charged_ns[core as usize] = self.now_ns;
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
                self.native.exit_thread(call, slot);
            }
            1..=3 => self.operate(Op::Requeue, slot, core, 0),
            _ => self.operate(Op::Stop, slot, core, RunState::Blocked.number().into()),
        }
        let queue = self.native.state().cores[core as usize].queue as usize;
        let next = self.native.state().queues[queue].first;
        if next != NONE && self.below(4) > 0 {
            self.host.charged_ns[core as usize] = self.now_ns;
            self.operate(Op::Start, next, core, 0);
        }
    }

    fn charge(&mut self, core: u32) {
        if self.native.state().cores[core as usize].running != NONE {
            let since_ns = &mut self.host.charged_ns[core as usize];
            let ran_ns = self.now_ns - std::mem::replace(since_ns, self.now_ns);
            self.operate(Op::Charge, 0, core, ran_ns);
        }
    }
}
