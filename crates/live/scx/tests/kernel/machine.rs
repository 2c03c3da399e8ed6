//! The kernel as far as its scheduling class for extensions goes: CPUs, tasks, local queues and kicks, after
//! kernel/sched/ext.c of Linux 6.18. It calls what `callbacks.rs` has.

use std::collections::VecDeque;

use ampsched_scx::layout::{NONE, Set};
use ampsched_scx::native::Native;

/// `SCX_SLICE_INF`
pub const SLICE_INF: u64 = u64::MAX;
/// `SCX_SLICE_DFL`
pub const SLICE_DFL: u64 = 20_000_000;
/// How often a CPU asks for a task before it gives up for now (`SCX_DSP_MAX_LOOPS`).
const LOOPS_MAX: usize = 32;

/// Where a task is for the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Not runnable, or out of all queues for a change.
    Asleep,
    /// A CPU is selected, and it is about to be enqueued there; `direct`: into the local queue.
    Waking { wakeup: bool, direct: bool },
    /// The scheduler has it and must give it to a CPU.
    Custody,
    /// In its CPU's local queue.
    Local,
    /// Sent to a CPU.
    Ours(usize),
    /// Of others, behind ours.
    Others(usize),
    /// On its CPU.
    Running,
    /// It has ended.
    Gone,
}

#[derive(Clone, Debug)]
pub struct Task {
    /// NONE: not ours.
    pub thread: u32,
    pub place: Place,
    pub cpu: usize,
    pub slice: u64,
    pub allowed: Set,
    pub exiting: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Cpu {
    pub current: Option<usize>,
    pub local: VecDeque<usize>,
    pub ours: VecDeque<usize>,
    pub others: VecDeque<usize>,
    /// In the kernel's mask of idle CPUs.
    pub idle: bool,
    /// A task of a higher class runs.
    pub hijacked: bool,
    /// It goes offline, or has gone.
    pub offline: bool,
    pub resched: bool,
    /// Kicks that have yet to arrive.
    pub kick_idle: bool,
    pub kick_preempt: bool,
}

pub struct Machine {
    pub c: Native,
    pub now_ns: u64,
    pub cpus: Vec<Cpu>,
    pub tasks: Vec<Task>,
    /// The CPU that is choosing its next task.
    choosing: Option<usize>,
    /// Tasks that the scheduler has moved to a queue while its CPU asked.
    pub dispatched: usize,
    /// What happened, for the report of a fault.
    pub story: VecDeque<String>,
}

impl Machine {
    pub fn new(c: Native) -> Self {
        let idle = Cpu { idle: true, ..Cpu::default() };
        let cpus = vec![idle; c.state().core_count as usize];
        let (tasks, story) = (Vec::new(), VecDeque::new());
        Self { c, now_ns: 1_000_000_000, cpus, tasks, choosing: None, dispatched: 0, story }
    }

    /// Notes what happens; the last lines are kept.
    pub fn tell_story(&mut self, line: String) {
        if self.story.len() == 60 {
            self.story.pop_front();
        }
        self.story.push_back(format!("{:>9} us: {line}", self.now_ns / 1000));
    }

    pub fn thread_of(&self, task: usize) -> Option<u32> {
        let thread = self.tasks[task].thread;
        (thread != NONE).then_some(thread)
    }

    /// Takes a task out of the kernel's queue in which it is.
    pub fn unlink(&mut self, task: usize) {
        let (place, home) = (self.tasks[task].place, self.tasks[task].cpu);
        match place {
            Place::Local => self.cpus[home].local.retain(|&other| other != task),
            Place::Ours(cpu) => self.cpus[cpu].ours.retain(|&other| other != task),
            Place::Others(cpu) => self.cpus[cpu].others.retain(|&other| other != task),
            _ => {}
        }
    }

    pub fn insert_local(&mut self, task: usize, slice: u64, preempts: bool) {
        let home = self.tasks[task].cpu;
        self.tasks[task].slice = slice;
        self.tasks[task].place = Place::Local;
        let current = self.cpus[home].current;
        let cpu = &mut self.cpus[home];
        if preempts {
            cpu.local.push_front(task);
        } else {
            cpu.local.push_back(task);
        }
        match current {
            Some(other) if preempts && other != task => {
                self.tasks[other].slice = 0;
                self.cpus[home].resched = true;
            }
            None if !self.cpus[home].hijacked => self.cpus[home].resched = true,
            _ => {}
        }
    }

    /// `SCX_KICK_IDLE`: nothing if the CPU is not idle.
    pub fn kick_idle(&mut self, cpu: usize) {
        let is_busy = self.cpus[cpu].current.is_some() || self.cpus[cpu].hijacked;
        if self.is_gone(cpu) {
            return;
        }
        if !is_busy || self.choosing == Some(cpu) {
            self.cpus[cpu].kick_idle = true;
        }
    }

    /// Kicks arrive.
    pub fn deliver(&mut self, cpu: usize) {
        let kicked = &mut self.cpus[cpu];
        let idle = std::mem::take(&mut kicked.kick_idle);
        let preempt = std::mem::take(&mut kicked.kick_preempt);
        let is_idle = kicked.current.is_none() && !kicked.hijacked;
        kicked.resched |= preempt || (idle && is_idle);
        if let Some(task) = kicked.current.filter(|_| preempt) {
            self.tasks[task].slice = 0;
        }
    }

    /// `do_enqueue_task`
    pub fn enqueue(&mut self, task: usize, wakeup: bool) {
        if self.tasks[task].exiting || self.cpus[self.tasks[task].cpu].offline {
            return self.insert_local(task, SLICE_DFL, false);
        }
        self.tasks[task].place = Place::Custody;
        self.ops_enqueue(task, wakeup);
    }

    /// `balance_one`: returns the task that comes next.
    fn balance(&mut self, cpu: usize) -> Option<usize> {
        let prev = self.cpus[cpu].current;
        let goes_on = |machine: &Self| prev.filter(|&task| machine.tasks[task].slice > 0);
        for _ in 0..LOOPS_MAX {
            if let Some(task) = goes_on(self).or(self.cpus[cpu].local.front().copied()) {
                return Some(task);
            }
            self.dispatched = 0;
            if !self.cpus[cpu].offline {
                self.ops_dispatch(cpu, prev);
            }
            if self.dispatched == 0 {
                return goes_on(self).or(self.cpus[cpu].local.front().copied());
            }
        }
        self.cpus[cpu].kick_idle = true;
        goes_on(self).or(self.cpus[cpu].local.front().copied())
    }

    /// `put_prev_task_scx`
    fn put_prev(&mut self, task: usize) {
        self.ops_stopping(task);
        if self.tasks[task].slice > 0 {
            self.tasks[task].place = Place::Local;
            let cpu = self.tasks[task].cpu;
            self.cpus[cpu].local.push_front(task);
        } else {
            self.enqueue(task, false);
        }
    }

    /// `set_next_task_scx`
    pub fn set_next(&mut self, task: usize) {
        self.unlink(task);
        let own = &mut self.tasks[task];
        own.place = Place::Running;
        if own.slice == 0 {
            own.slice = SLICE_DFL;
        }
        self.cpus[own.cpu].current = Some(task);
        self.ops_running(task);
    }

    /// `__schedule`
    pub fn schedule(&mut self, cpu: usize) {
        if self.cpus[cpu].offline {
            return self.push_all(cpu);
        }
        self.choose_next(cpu);
    }

    pub fn choose_next(&mut self, cpu: usize) {
        self.cpus[cpu].resched = false;
        if self.cpus[cpu].hijacked || self.is_gone(cpu) {
            return;
        }
        self.choosing = Some(cpu);
        let (prev, next) = (self.cpus[cpu].current, self.balance(cpu));
        self.tell_story(format!("CPU {cpu} chooses {next:?} after {prev:?}"));
        self.cpus[cpu].resched = false;
        if prev.is_none() || next != prev {
            if let Some(task) = prev {
                self.put_prev(task);
            }
            self.cpus[cpu].current = None;
            self.cpus[cpu].idle = next.is_none();
            if let Some(task) = next {
                self.set_next(task);
            }
        }
        self.choosing = None;
    }

    /// A task of a higher class takes the CPU.
    pub fn hijack(&mut self, cpu: usize) {
        self.tell_story(format!("CPU {cpu} is taken by a higher class"));
        self.put_off(cpu);
        self.cpus[cpu].hijacked = true;
    }

    /// The task on a CPU gives way to one of a higher class.
    pub fn put_off(&mut self, cpu: usize) {
        self.choosing = Some(cpu);
        self.balance(cpu);
        if let Some(task) = self.cpus[cpu].current {
            self.put_prev(task);
        }
        let own = &mut self.cpus[cpu];
        (own.current, own.idle, own.resched) = (None, false, false);
        self.choosing = None;
    }

    /// The task on a CPU sleeps.
    pub fn block(&mut self, cpu: usize) {
        if self.cpus[cpu].current.is_some() {
            self.block_one(cpu);
            self.schedule(cpu);
        }
    }

    /// The same, before the CPU chooses another one.
    pub fn block_one(&mut self, cpu: usize) {
        let Some(task) = self.cpus[cpu].current else { return };
        self.tell_story(format!("task {task} blocks on CPU {cpu}"));
        self.ops_quiescent(task, true);
        self.tasks[task].place = Place::Asleep;
        self.cpus[cpu].current = None;
        if self.tasks[task].exiting {
            self.forget(task);
            self.tasks[task].place = Place::Gone;
        }
    }

    /// The kernel's tick on a CPU, after some time.
    pub fn tick(&mut self, cpu: usize, period_ns: u64) {
        let Some(task) = self.cpus[cpu].current else { return };
        let own = &mut self.tasks[task];
        if own.slice != SLICE_INF {
            own.slice = own.slice.saturating_sub(period_ns);
        }
        self.ops_tick(task);
        if self.tasks[task].slice == 0 {
            self.cpus[cpu].resched = true;
        }
    }

    /// `select_task_rq_scx` and what follows up to the lock of the CPU.
    pub fn begin_wake(&mut self, task: usize, waker: Option<usize>, wakeup: bool) {
        let (cpu, direct) = self.ops_select_cpu(task, waker);
        let allowed = self.tasks[task].allowed;
        let is_allowed = allowed.contains(cpu) && !self.cpus[cpu].offline;
        let cpu = if is_allowed { cpu } else { self.fallback(task) };
        self.tell_story(format!("task {task} wakes up for CPU {cpu}, at once: {direct}"));
        self.tasks[task].cpu = cpu;
        self.tasks[task].place = Place::Waking { wakeup, direct };
    }

    /// The rest of a wake-up.
    pub fn end_wake(&mut self, task: usize) {
        let Place::Waking { wakeup, direct } = self.tasks[task].place else { return };
        self.tell_story(format!("task {task} has woken up"));
        if direct {
            self.insert_local(task, SLICE_INF, false);
        } else {
            self.enqueue(task, wakeup);
        }
    }

    /// A property of a runnable task changes: out and in again (`sched_change_begin`, `sched_change_end`).
    pub fn change(&mut self, task: usize, how: impl FnOnce(&mut Self)) {
        let place = self.tasks[task].place;
        self.tell_story(format!("a property of task {task} changes, {place:?}"));
        let queued = !matches!(place, Place::Asleep | Place::Waking { .. } | Place::Gone);
        if !queued {
            return how(self);
        }
        if place == Place::Custody {
            self.ops_dequeue(task);
        }
        self.ops_quiescent(task, false);
        self.unlink(task);
        self.tasks[task].place = Place::Asleep;
        how(self);
        if place == Place::Running {
            self.set_next(task);
        } else {
            self.enqueue(task, false);
        }
    }

    /// A task that may not be where it is any more is moved (`affine_move_task`).
    pub fn move_away(&mut self, task: usize) {
        let (place, from, allowed) =
            (self.tasks[task].place, self.tasks[task].cpu, self.tasks[task].allowed);
        let queued = !matches!(place, Place::Asleep | Place::Waking { .. } | Place::Gone);
        if (allowed.contains(from) && !self.cpus[from].offline) || !queued {
            return;
        }
        self.tell_story(format!("task {task} is moved away from CPU {from}"));
        if place == Place::Running {
            self.hijack(from);
        }
        if self.tasks[task].place == Place::Custody {
            self.ops_dequeue(task);
        }
        self.unlink(task);
        self.tasks[task].cpu = self.fallback(task);
        self.enqueue(task, false);
        if place == Place::Running {
            self.cpus[from].hijacked = false;
            self.schedule(from);
        }
    }
}
