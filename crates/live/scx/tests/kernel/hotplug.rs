//! CPUs that go offline and come back, after kernel/sched/core.c of Linux 6.18 (`sched_cpu_deactivate`,
//! `balance_push`), and what the programs in `bpf/scheduler/hotplug.h` do then.

use ampsched_model::CoreId;
use ampsched_scx::layout::{NONE, Set};

use crate::machine::{Machine, Place, Task};

/// Whether a task counts on the run queue of its CPU.
fn is_queued(task: &Task) -> bool {
    !matches!(task.place, Place::Asleep | Place::Waking { .. } | Place::Gone)
}

impl Machine {
    /// The CPUs to which tasks may go.
    fn online(&self) -> Set {
        (0..self.cpus.len()).filter(|&cpu| !self.cpus[cpu].offline).map(CoreId::from).collect()
    }

    /// `select_fallback_rq`: where a task goes that has lost its CPU; if it may run nowhere else, it may anywhere from
    /// now on.
    pub fn fallback(&mut self, task: usize) -> usize {
        let online = self.online();
        let allowed = self.tasks[task].allowed;
        if let Some(core) = allowed.cores().find(|core| online.contains(core.index())) {
            return core.index();
        }
        self.tasks[task].allowed = Set::ALL;
        self.ops_set_cpumask(task, &Set::ALL);
        online.cores().next().expect("a CPU is online").index()
    }

    /// A CPU goes: from now on whatever it picks is pushed away. It is gone when it has nothing any more.
    pub fn go_offline(&mut self, cpu: usize) {
        self.tell_story(format!("CPU {cpu} goes offline"));
        self.cpus[cpu].offline = true;
        self.cpus[cpu].hijacked = false;
        self.hotplug(cpu, false);
        self.push_all(cpu);
    }

    pub fn come_online(&mut self, cpu: usize) {
        self.tell_story(format!("CPU {cpu} comes online"));
        self.cpus[cpu].offline = false;
        self.hotplug(cpu, true);
        self.kick_idle(cpu);
    }

    /// `hotplug`
    fn hotplug(&mut self, cpu: usize, comes: bool) {
        let core = cpu as u32;
        self.c.change_core(core, comes);
        for thread in 0..self.c.state().thread_count {
            let call = self.c.call_of(core, self.now_ns);
            self.c.follow_cores(call, thread);
            self.tell(core);
        }
    }

    /// A CPU that goes picks one task after the other, each of which is pushed away.
    pub fn push_all(&mut self, cpu: usize) {
        for _ in 0..self.tasks.len() + 1 {
            if self.cpus[cpu].current.is_none() {
                self.choose_next(cpu);
            }
            let Some(task) = self.cpus[cpu].current else { return };
            if self.thread_of(task).is_none() {
                // The kernel parks those that are its own there.
                self.block_one(cpu);
            } else {
                self.push(task);
            }
        }
    }

    /// `push_cpu_stop`
    fn push(&mut self, task: usize) {
        let from = self.tasks[task].cpu;
        self.tell_story(format!("task {task} is pushed away from CPU {from}"));
        self.put_off(from);
        let online = self.online();
        let lost = !self.tasks[task].allowed.cores().any(|core| online.contains(core.index()));
        if lost {
            // Out and in again.
            self.change(task, |machine| {
                machine.fallback(task);
            });
        }
        let to = self.fallback(task);
        if self.tasks[task].place == Place::Custody {
            self.ops_dequeue(task);
        }
        self.unlink(task);
        self.tasks[task].cpu = to;
        self.enqueue(task, false);
    }

    /// Whether a CPU is gone: nobody is on its run queue.
    pub fn is_gone(&self, cpu: usize) -> bool {
        let here = |task: &Task| task.cpu == cpu && is_queued(task);
        self.cpus[cpu].offline && !self.tasks.iter().any(here)
    }

    /// `find_stranded`
    pub fn find_stranded(&mut self) {
        let need_resched = |cpu: usize| self.c.state().cores[cpu].need_resched != 0;
        let comes =
            |cpu: usize| !self.cpus[cpu].ours.is_empty() || !self.cpus[cpu].others.is_empty();
        let stranded = |cpu: &usize| self.cpus[*cpu].offline && (need_resched(*cpu) || comes(*cpu));
        let Some(cpu) = (0..self.cpus.len()).rfind(stranded) else { return };
        self.c.state_mut().stranded = cpu as u32;
        let helper = self.online().cores().last().expect("a CPU is online").index();
        self.cpus[helper].kick_preempt = true;
    }

    /// `help_stranded`, of a CPU that asks.
    pub fn help_stranded(&mut self, helper: usize) {
        let core = std::mem::replace(&mut self.c.state_mut().stranded, NONE);
        if core == NONE {
            return;
        }
        let cpu = core as usize;
        let queued: Vec<usize> =
            [&self.cpus[cpu].ours, &self.cpus[cpu].others].into_iter().flatten().copied().collect();
        for task in queued {
            self.release(task);
        }
        let call = self.c.call_of(helper as u32, self.now_ns);
        let thread = self.c.pick_for(call, core);
        self.tell(helper as u32);
        let found = self.tasks.iter().position(|task| thread != NONE && task.thread == thread);
        if let Some(task) = found.filter(|&task| self.tasks[task].place == Place::Custody) {
            self.release(task);
        }
    }

    /// Into the local queue of the CPU where it is.
    fn release(&mut self, task: usize) {
        let home = self.tasks[task].cpu;
        self.move_to_local(task, home);
        self.cpus[home].resched = true;
    }
}
