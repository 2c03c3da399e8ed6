//! The schedule in the form in which Linux's kernel tells it, from which Perfetto fills its own tables.
//!
//! Every CPU has a buffer of events: who takes it from whom (`sched_switch`), who wakes whom (`sched_waking`, kept with
//! the CPU where the woken thread goes, so that the wake-up stands before the turn), frequencies, idleness and
//! interrupts. The order of events of one CPU is kept; Perfetto orders those of several by their times.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use ampsched_model::Ns;
use ampsched_policy::RunState;

use super::packets::PacketWriter;
use super::proto::{
    CpuState, Ftrace, FtraceEvent, IrqEntry, IrqExit, NOT_IDLE, Process, ProcessFree,
    ProcessThread, ProcessTree, SchedMigrateTask, SchedSwitch, SchedWaking,
};

/// The idle thread of every CPU.
const IDLE: i32 = 0;
/// The process of the kernel's own threads, whose numbers follow.
const KERNEL: i32 = 2;
/// Priority of a thread of the fair class without a nice value. Perfetto only shows it.
const PRIO: i32 = 120;
/// Priority of an idle thread.
const IDLE_PRIO: i32 = 140;
/// Events that are kept before they are written.
const BUNDLE: usize = 256;

/// Buffers of all CPUs.
#[derive(Debug)]
pub struct Kernel {
    cpus: Vec<Cpu>,
    /// Names of threads by their numbers.
    comms: BTreeMap<i32, String>,
    /// First threads of processes: while others may come, such a number is not free.
    leaders: BTreeSet<i32>,
    /// The kernel's own threads by CPU and name.
    own: BTreeMap<(usize, String), i32>,
    last_ns: Ns,
}

#[derive(Debug)]
struct Cpu {
    /// Its number.
    number: u32,
    events: Vec<FtraceEvent>,
    /// Who has it, as written.
    on: i32,
    /// That thread gives it up; to whom will be known later.
    leaving: Option<(RunState, Ns)>,
    /// A thread of the kernel that takes it as soon as the other one is gone.
    taken_by: Option<i32>,
    /// Until when interrupts run.
    interrupted_until_ns: Ns,
}

impl Cpu {
    fn push(&mut self, event: Ftrace, at_ns: Ns) {
        let (timestamp, pid) = (Some(at_ns), Some(self.on.unsigned_abs()));
        self.events.push(FtraceEvent { timestamp, pid, event: Some(event) });
    }

    fn idles(&mut self, state: u32, at_ns: Ns) {
        let idle = CpuState { state: Some(state), cpu_id: Some(self.number) };
        self.push(Ftrace::CpuIdle(idle), at_ns);
    }
}

impl Kernel {
    /// CPUs of these numbers, all idle.
    pub fn new(numbers: impl Iterator<Item = u32>) -> Self {
        let cpu = |number| {
            let mut cpu = Cpu {
                number,
                events: Vec::new(),
                on: IDLE,
                leaving: None,
                taken_by: None,
                interrupted_until_ns: 0,
            };
            cpu.idles(0, 0);
            cpu
        };
        let cpus = numbers.map(cpu).collect();
        Self {
            cpus,
            comms: BTreeMap::new(),
            leaders: BTreeSet::new(),
            own: BTreeMap::new(),
            last_ns: 0,
        }
    }

    /// Introduces a thread of a process, which is named when its first thread comes.
    pub fn introduce<W: Write>(
        &mut self,
        packets: &mut PacketWriter<W>,
        (pid, process): (i32, Option<&str>),
        (tid, name): (i32, &str),
    ) {
        let process =
            process.map(|name| Process { pid: Some(pid), cmdline: vec![name.to_owned()] });
        let thread = ProcessThread { tid: Some(tid), name: Some(name.to_owned()), tgid: Some(pid) };
        packets.process_tree(ProcessTree {
            processes: process.into_iter().collect(),
            threads: vec![thread],
        });
        self.comms.insert(tid, name.to_owned());
        self.leaders.insert(pid);
    }

    /// A thread has a CPU.
    pub fn runs(&mut self, cpu: usize, tid: i32, at_ns: Ns) {
        self.last_ns = self.last_ns.max(at_ns);
        match self.cpus[cpu].leaving.take() {
            // It stays: a kernel would not switch at all.
            Some((_, left_ns)) if left_ns == at_ns && self.cpus[cpu].on == tid => {}
            Some((state, left_ns)) if left_ns == at_ns => self.switch(cpu, state, tid, at_ns),
            Some((state, left_ns)) => {
                self.switch(cpu, state, IDLE, left_ns);
                self.switch(cpu, RunState::Ready, tid, at_ns);
            }
            None => self.switch(cpu, RunState::Ready, tid, at_ns),
        }
    }

    /// The thread that has a CPU gives it up and is in that state afterwards.
    pub fn stops(&mut self, cpu: usize, state: RunState, at_ns: Ns) {
        self.last_ns = self.last_ns.max(at_ns);
        match self.cpus[cpu].taken_by.take() {
            Some(own) => self.switch(cpu, state, own, at_ns),
            None => self.cpus[cpu].leaving = Some((state, at_ns)),
        }
    }

    /// A thread of the kernel's takes a CPU as soon as that is free.
    pub fn takes<W: Write>(
        &mut self,
        packets: &mut PacketWriter<W>,
        cpu: usize,
        name: &str,
        at_ns: Ns,
    ) {
        let tid = self.own_thread(packets, cpu, name);
        let other = &mut self.cpus[cpu];
        let free = other.on == IDLE
            || other.leaving.is_some()
            || self.own.values().any(|&own| own == other.on);
        match free {
            true => self.runs(cpu, tid, at_ns),
            false => other.taken_by = Some(tid),
        }
    }

    /// The thread of the kernel's gives it back.
    pub fn gives_back(&mut self, cpu: usize, at_ns: Ns) {
        self.cpus[cpu].taken_by = None;
        self.stops(cpu, RunState::Blocked, at_ns);
    }

    fn own_thread<W: Write>(
        &mut self,
        packets: &mut PacketWriter<W>,
        cpu: usize,
        name: &str,
    ) -> i32 {
        let key = (cpu, name.to_owned());
        if let Some(&tid) = self.own.get(&key) {
            return tid;
        }
        let tid = KERNEL + 1 + self.own.len() as i32;
        let process = self.own.is_empty().then_some("kthreadd");
        let name = format!("{name}/{}", self.cpus[cpu].number);
        self.introduce(packets, (KERNEL, process), (tid, &name));
        self.own.insert(key, tid);
        tid
    }

    /// An interrupt takes a CPU for a time; those that meet follow each other.
    pub fn interrupt(&mut self, cpu: usize, name: &str, takes_ns: Ns, at_ns: Ns) {
        let cpu = &mut self.cpus[cpu];
        let from_ns = at_ns.max(cpu.interrupted_until_ns);
        cpu.interrupted_until_ns = from_ns + takes_ns;
        let (irq, name) = (Some(1), Some(name.to_owned()));
        cpu.push(Ftrace::IrqHandlerEntry(IrqEntry { irq, name }), from_ns);
        cpu.push(Ftrace::IrqHandlerExit(IrqExit { irq, ret: Some(1) }), from_ns + takes_ns);
    }

    /// A thread that has just now lost one CPU will have another one at the same time.
    ///
    /// Perfetto takes events of several CPUs at one time in any order, but goes on with a CPU whose event was the last
    /// one before: this one is told 1 ns early, so that the turn on the one CPU ends before that on the other begins.
    pub fn migrates(&mut self, tid: i32, from: usize, to: usize, at_ns: Ns) {
        let migrate = SchedMigrateTask {
            comm: self.comm(tid),
            pid: Some(tid),
            prio: Some(PRIO),
            orig_cpu: Some(self.cpus[from].number as i32),
            dest_cpu: Some(self.cpus[to].number as i32),
        };
        self.cpus[from].push(Ftrace::SchedMigrateTask(migrate), at_ns.saturating_sub(1));
    }

    /// A thread, or nobody, wakes another one, which goes to a CPU. If the thread has just now lost a CPU, that one's
    /// buffer tells it, since Perfetto would take a wake-up before the end of the turn for needless.
    pub fn wakes(
        &mut self,
        waker: Option<i32>,
        tid: i32,
        (left_now, to): (Option<usize>, usize),
        at_ns: Ns,
    ) {
        self.last_ns = self.last_ns.max(at_ns);
        if let Some(left) = left_now.filter(|&left| self.cpus[left].on == tid) {
            if let Some((state, left_ns)) = self.cpus[left].leaving.take() {
                self.switch(left, state, IDLE, left_ns);
            }
        }
        let waking = SchedWaking {
            comm: self.comm(tid),
            pid: Some(tid),
            prio: Some(PRIO),
            success: Some(1),
            target_cpu: Some(self.cpus[to].number as i32),
        };
        self.cpus[left_now.unwrap_or(to)].events.push(FtraceEvent {
            timestamp: Some(at_ns),
            pid: Some(waker.unwrap_or(IDLE).unsigned_abs()),
            event: Some(Ftrace::SchedWaking(waking)),
        });
    }

    /// A CPU has another frequency.
    pub fn frequency(&mut self, cpu: usize, mhz: u32, at_ns: Ns) {
        self.last_ns = self.last_ns.max(at_ns);
        let cpu = &mut self.cpus[cpu];
        let clocked = CpuState { state: Some(mhz * 1000), cpu_id: Some(cpu.number) };
        cpu.push(Ftrace::CpuFrequency(clocked), at_ns);
    }

    /// Writes buffers that are full.
    pub fn write_full<W: Write>(&mut self, packets: &mut PacketWriter<W>, cpu: usize) {
        let cpu = &mut self.cpus[cpu];
        if cpu.events.len() >= BUNDLE {
            packets.bundle(cpu.number, std::mem::take(&mut cpu.events));
        }
    }

    /// Ends all turns at the time of the last event and writes what is left.
    pub fn finish<W: Write>(&mut self, packets: &mut PacketWriter<W>) {
        let end_ns = self.last_ns.max(packets.last_ns());
        for cpu in 0..self.cpus.len() {
            let last = (RunState::Ready, end_ns);
            if self.cpus[cpu].on != IDLE {
                let (state, at_ns) = self.cpus[cpu].leaving.take().unwrap_or(last);
                self.switch(cpu, state, IDLE, at_ns);
            }
            let cpu = &mut self.cpus[cpu];
            packets.bundle(cpu.number, std::mem::take(&mut cpu.events));
        }
    }

    /// A CPU goes from who has it to another thread.
    fn switch(&mut self, cpu: usize, state: RunState, to: i32, at_ns: Ns) {
        let from = self.cpus[cpu].on;
        let switch = SchedSwitch {
            prev_comm: self.comm(from),
            prev_pid: Some(from),
            prev_prio: Some(prio(from)),
            prev_state: Some(if from == IDLE { 0 } else { state_bits(state) }),
            next_comm: self.comm(to),
            next_pid: Some(to),
            next_prio: Some(prio(to)),
        };
        let freed = ProcessFree { comm: self.comm(from), pid: Some(from), prio: Some(PRIO) };
        let cpu = &mut self.cpus[cpu];
        if from == IDLE {
            cpu.idles(NOT_IDLE, at_ns);
        }
        cpu.push(Ftrace::SchedSwitch(switch), at_ns);
        cpu.on = to;
        if to == IDLE {
            cpu.idles(0, at_ns);
        }
        if state == RunState::Exited && !self.leaders.contains(&from) {
            cpu.push(Ftrace::SchedProcessFree(freed), at_ns);
        }
    }

    fn comm(&self, tid: i32) -> Option<String> {
        if tid == IDLE { Some("swapper".to_owned()) } else { self.comms.get(&tid).cloned() }
    }
}

fn prio(tid: i32) -> i32 {
    if tid == IDLE { IDLE_PRIO } else { PRIO }
}

/// The state of a thread that gives up its CPU, as `sched_switch` writes it: runnable and interrupted, asleep, stopped
/// from outside, or dead.
fn state_bits(state: RunState) -> i64 {
    match state {
        RunState::Ready | RunState::Running | RunState::New => 0x800,
        RunState::Blocked => 0x1,
        RunState::Held => 0x4,
        RunState::Exited => 0x10,
    }
}
