//! What the programs in `bpf/scheduler` do when the kernel calls them, line by line.

use ampsched_policy::{Choice, RunState};
use ampsched_scx::layout::{CALL_OF_PLAN, CALL_OF_TIMER, NONE, Operation, Set};

use crate::machine::{Machine, Place, SLICE_DFL, SLICE_INF};

fn is_in(state: u32, expected: RunState) -> bool {
    state == expected.number()
}

impl Machine {
    /// `tell`, for the call of a core, or another one.
    pub fn tell(&mut self, caller: u32) {
        let call = self.c.call_of(caller, self.now_ns);
        self.c.collect_kicks(call);
        let call = &mut self.c.state_mut().calls[caller as usize];
        let wake = std::mem::take(&mut call.wake);
        let interrupt = std::mem::take(&mut call.interrupt);
        for cpu in 0..self.cpus.len() {
            if interrupt.contains(cpu) {
                self.cpus[cpu].kick_preempt = true;
            }
            if wake.contains(cpu) {
                self.kick_idle(cpu);
            }
        }
    }

    /// `scx_bpf_test_and_clear_cpu_idle`
    fn take_idle(&mut self, cpu: usize) -> bool {
        std::mem::take(&mut self.cpus[cpu].idle)
    }

    /// The CPU, and whether the task has begun there.
    pub fn ops_select_cpu(&mut self, task: usize, waker: Option<usize>) -> (usize, bool) {
        let home = self.tasks[task].cpu;
        let Some(thread) = self.thread_of(task) else { return (home, false) };
        let waker = waker.and_then(|cpu| Some((cpu, self.thread_of(self.cpus[cpu].current?)?)));
        let waker = waker.filter(|&(cpu, by)| self.c.state().cores[cpu].running == by);
        let waker = waker.map_or(NONE, |(cpu, _)| cpu as u32);
        let caller = home as u32;
        let call = self.c.call_of(caller, self.now_ns);
        let core = self.c.wake_up(call, thread, waker);
        if core == NONE {
            return (home, false);
        }
        let begins = self.c.state().calls[caller as usize].started != 0;
        self.tell(caller);
        (core as usize, begins)
    }

    fn enqueue_other(&mut self, task: usize, wakeup: bool) {
        if wakeup {
            return self.insert_local(task, SLICE_DFL, true);
        }
        let cpu = self.tasks[task].cpu;
        self.tasks[task].slice = SLICE_DFL;
        self.tasks[task].place = Place::Others(cpu);
        self.cpus[cpu].others.push_back(task);
        self.kick_idle(cpu);
    }

    pub fn ops_enqueue(&mut self, task: usize, wakeup: bool) {
        let Some(thread) = self.thread_of(task) else { return self.enqueue_other(task, wakeup) };
        let cpu = self.tasks[task].cpu;
        let is_idle = wakeup && self.take_idle(cpu);
        let here = cpu as u32;
        let call = self.c.call_of(here, self.now_ns);
        let state = &mut self.c.state_mut().calls[cpu];
        (state.here, state.here_idles) = (here, is_idle.into());
        let core = self.c.hand_over(call, thread);
        let begins = self.c.state().calls[cpu].started != 0;
        self.tell_story(format!("task {task} handed over at CPU {cpu}: {core:x}, {begins}"));
        if begins {
            self.insert_local(task, SLICE_INF, !is_idle);
        } else if core != NONE {
            self.insert_ours(task, core as usize);
            self.kick_idle(core as usize);
        }
        self.tell(here);
    }

    fn insert_ours(&mut self, task: usize, cpu: usize) {
        self.tasks[task].slice = SLICE_INF;
        self.tasks[task].place = Place::Ours(cpu);
        self.cpus[cpu].ours.push_back(task);
    }

    pub fn ops_dequeue(&mut self, task: usize) {
        self.suspend(task);
    }

    fn suspend(&mut self, task: usize) {
        let Some(thread) = self.thread_of(task) else { return };
        let cpu = self.tasks[task].cpu as u32;
        let call = self.c.call_of(cpu, self.now_ns);
        self.c.suspend(call, thread);
        self.tell(cpu);
    }

    /// `scx_bpf_dsq_move_to_local` of a task that may be there.
    pub fn move_to_local(&mut self, task: usize, cpu: usize) {
        self.unlink(task);
        self.tasks[task].cpu = cpu;
        self.tasks[task].place = Place::Local;
        self.cpus[cpu].local.push_back(task);
        self.dispatched += 1;
    }

    /// Sends a thread to a CPU; the kernel takes no notice unless the scheduler has the task.
    fn send(&mut self, thread: u32, cpu: usize) -> bool {
        let found = |task: &crate::machine::Task| task.thread == thread;
        let Some(task) = self.tasks.iter().position(found) else { return false };
        self.dispatched += 1;
        if self.tasks[task].place == Place::Custody {
            self.insert_ours(task, cpu);
        }
        true
    }

    fn receive(&mut self, cpu: usize) -> bool {
        let may = |&task: &usize| {
            let own = &self.tasks[task];
            own.allowed.contains(cpu) && (own.cpu == cpu || !self.cpus[cpu].offline)
        };
        if let Some(task) = self.cpus[cpu].ours.iter().copied().find(may) {
            self.move_to_local(task, cpu);
            return true;
        }
        if !self.cpus[cpu].ours.is_empty() {
            self.kick_idle(cpu);
        }
        false
    }

    fn receive_other(&mut self, cpu: usize) -> bool {
        let Some(&task) = self.cpus[cpu].others.front() else { return false };
        self.move_to_local(task, cpu);
        true
    }

    fn fetch(&mut self, cpu: usize, prev: Option<usize>) {
        if self.receive(cpu) || self.receive_other(cpu) {
            return;
        }
        if let Some(task) = prev.filter(|&task| self.thread_of(task).is_none()) {
            self.tasks[task].slice = SLICE_DFL;
        }
    }

    pub fn ops_dispatch(&mut self, cpu: usize, prev: Option<usize>) {
        let core = cpu as u32;
        let before = prev.and_then(|task| self.thread_of(task));
        if let Some(task) = prev.filter(|&task| before.is_some() && self.tasks[task].exiting) {
            self.tasks[task].slice = SLICE_INF;
            let call = self.c.call_of(core, self.now_ns);
            self.c.continue_exiting(call, before.expect("it is there"), core);
            return self.tell(core);
        }
        self.help_stranded(cpu);
        if before.is_some() && self.receive_other(cpu) {
            return;
        }
        if before.is_none() && self.c.has_no_work(core) {
            return self.fetch(cpu, prev);
        }
        let call = self.c.call_of(core, self.now_ns);
        let thread = self.c.pick_next(call, core, before.unwrap_or(NONE));
        self.tell_story(format!("CPU {cpu} looks: thread {thread:x}"));
        self.tell(core);
        if before == Some(thread) {
            if !self.receive(cpu) {
                self.tasks[prev.expect("it was there before")].slice = SLICE_INF;
            }
            return;
        }
        if thread != NONE && !self.send(thread, cpu) {
            self.c.abort_start(call, core, thread);
            self.tell(core);
        }
        self.fetch(cpu, prev);
    }

    pub fn ops_tick(&mut self, task: usize) {
        let Some(thread) = self.thread_of(task) else { return };
        let (own, cpu) = (*self.c.thread(thread), self.tasks[task].cpu);
        let over = self.c.tick_ends_turn(thread, self.now_ns);
        let has_run_long = self.now_ns.saturating_sub(own.on_since_ns) >= SLICE_DFL;
        let others_wait =
            !self.cpus[cpu].local.is_empty() || (has_run_long && !self.cpus[cpu].others.is_empty());
        if over || others_wait {
            self.tasks[task].slice = 0;
        }
    }

    pub fn ops_running(&mut self, task: usize) {
        let Some(thread) = self.thread_of(task) else { return };
        let core = self.tasks[task].cpu as u32;
        if !self.c.note_arrival(thread, core, self.now_ns) {
            let call = self.c.call_of(core, self.now_ns);
            self.c.note_running(call, thread, core);
            self.tell(core);
        }
    }

    /// Of a task that stays runnable.
    pub fn ops_stopping(&mut self, task: usize) {
        let Some(thread) = self.thread_of(task) else { return };
        if is_in(self.c.thread(thread).state, RunState::Running) {
            self.c.charge_off_cpu(thread, self.now_ns);
        }
    }

    pub fn ops_quiescent(&mut self, task: usize, sleeps: bool) {
        let Some(thread) = self.thread_of(task) else { return };
        if !sleeps {
            return self.suspend(task);
        }
        let cpu = self.tasks[task].cpu as u32;
        let call = self.c.call_of(cpu, self.now_ns);
        self.c.dequeue_thread(call, thread, RunState::Blocked.number());
        self.tell(cpu);
    }

    pub fn ops_set_weight(&mut self, task: usize, weight: u32) {
        if let Some(thread) = self.thread_of(task) {
            self.c.change_weight(thread, weight);
        }
    }

    pub fn ops_set_cpumask(&mut self, task: usize, cores: &Set) {
        let Some(thread) = self.thread_of(task) else { return };
        let cpu = self.tasks[task].cpu as u32;
        let call = self.c.call_of(cpu, self.now_ns);
        self.c.restrict_to(call, thread, cores);
        self.tell(cpu);
    }

    /// `forget`
    pub fn forget(&mut self, task: usize) {
        let Some(thread) = self.thread_of(task) else { return };
        self.tasks[task].thread = NONE;
        let cpu = self.tasks[task].cpu as u32;
        let call = self.c.call_of(cpu, self.now_ns);
        self.c.exit_thread(call, thread);
        self.tell(cpu);
    }

    /// A change of the plan; kicks are told when all are applied.
    pub fn apply(&mut self, mut operation: Operation) {
        self.tell_story(format!(
            "plan: {} {:x}, thread {}",
            operation.kind, operation.a, operation.thread
        ));
        let call = self.c.call_of(CALL_OF_PLAN, self.now_ns);
        self.c.change_plan(call, &mut operation);
    }

    pub fn on_timer(&mut self, balances: bool) {
        let call = self.c.call_of(CALL_OF_TIMER, self.now_ns);
        self.c.run_periodic(call, balances);
        self.tell(CALL_OF_TIMER);
        self.find_stranded();
    }
}
