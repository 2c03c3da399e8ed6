//! What must be true whenever the lock is free.

use ampsched_policy::{Choice, RunState};
use ampsched_scx::layout::{NONE, Queue, Thread};

use crate::machine::{Machine, Place};

/// `NO_CORE`
const NO_CORE: u32 = NONE - 1;

/// A fault, as a sentence.
pub type Found = Result<(), String>;

fn expect(holds: bool, what: impl FnOnce() -> String) -> Found {
    if holds { Ok(()) } else { Err(what()) }
}

fn is(thread: &Thread, state: RunState) -> bool {
    thread.state == state.number()
}

/// What must be in a queue.
fn waits(thread: &Thread) -> bool {
    thread.in_use != 0 && is(thread, RunState::Ready) && thread.dequeued == 0
}

impl Machine {
    fn threads(&self) -> impl Iterator<Item = (u32, &Thread)> {
        (0..self.c.state().thread_count).map(|index| (index, self.c.thread(index)))
    }

    fn queue_of(&self, core: u32) -> u32 {
        self.c.state().cores[core as usize].queue
    }

    /// Every link of a queue in both directions, and its members in order.
    fn members(&self, index: u32, queue: &Queue) -> Result<Vec<u32>, String> {
        let (mut members, mut prev, mut next) = (Vec::new(), NONE, queue.first);
        while next != NONE {
            let thread = self.c.thread(next);
            expect(members.len() < queue.len as usize, || {
                format!("queue {index} is longer than its length")
            })?;
            expect(thread.prev == prev, || {
                format!("thread {next} in queue {index} is linked wrongly")
            })?;
            expect(waits(thread), || {
                format!("thread {next} is in queue {index} but does not wait")
            })?;
            expect(self.queue_of(thread.core) == index, || {
                format!("thread {next} is in queue {index} by mistake")
            })?;
            members.push(next);
            (prev, next) = (next, thread.next);
        }
        expect(queue.last == prev, || format!("queue {index} ends with {:x}", queue.last))?;
        expect(queue.len as usize == members.len(), || {
            format!("queue {index} is shorter than its length")
        })?;
        Ok(members)
    }

    fn check_queue(&self, index: u32) -> Result<usize, String> {
        let state = self.c.state();
        let queue = &state.queues[index as usize];
        let members = self.members(index, queue)?;
        let cores = &state.cores[..self.cpus.len()];
        let runs = |core: &&ampsched_scx::layout::Core| core.queue == index && core.running != NONE;
        let running: Vec<u32> = cores.iter().filter(runs).map(|core| core.running).collect();
        let all = members.iter().chain(&running);
        let load: u64 = all.map(|&thread| u64::from(self.c.thread(thread).weight)).sum();
        let arriving =
            members.iter().filter(|&&thread| self.c.thread(thread).arriving != 0).count();
        let found = (queue.running as usize, queue.load, queue.arriving as usize);
        let expected = (running.len(), load, arriving);
        expect(found == expected, || {
            format!("queue {index} has (running, load, arriving) {found:?}, not {expected:?}")
        })?;
        let is_told = state.waiting[index as usize] != 0;
        expect(is_told != members.is_empty(), || format!("queue {index}: {is_told} is told"))?;
        Ok(members.len())
    }

    fn check_cores(&self) -> Found {
        let state = self.c.state();
        for (index, core) in state.cores[..self.cpus.len()].iter().enumerate() {
            let is_idle = state.idle[index] != 0;
            let is_online = state.online.contains(index);
            expect(is_idle == (core.running == NONE && is_online), || {
                format!("core {index} runs {:x}; idle: {is_idle}", core.running)
            })?;
            if core.running != NONE {
                let own = self.c.thread(core.running);
                let agrees =
                    is(own, RunState::Running) && own.core as usize == index && own.in_use != 0;
                expect(agrees, || format!("core {index} does not run thread {}", core.running))?;
            }
        }
        Ok(())
    }

    /// Tracked load: a thread does there what its state says, and a core has what its threads do.
    fn check_loads(&self) -> Found {
        if self.c.state().tracking == 0 {
            return Ok(());
        }
        let mut expected = vec![(0, 0, 0, 0); self.cpus.len()];
        for (index, thread) in self.threads().filter(|(_, thread)| thread.in_use != 0) {
            let own = &thread.tracked;
            let runs = is(thread, RunState::Running);
            let is_runnable = runs || is(thread, RunState::Ready);
            let found = (own.runnable != 0, own.running != 0);
            expect(found == (is_runnable, runs), || {
                format!("thread {index} is tracked as (runnable, running) {found:?}, {thread:?}")
            })?;
            if is_runnable {
                let core = &mut expected[own.core as usize];
                core.0 += u64::from(own.weight);
                core.1 += 1;
                core.2 |= u32::from(runs);
                core.3 += own.estimate;
                expect(own.core == thread.core, || {
                    format!("thread {index} is tracked on core {}", own.core)
                })?;
            }
        }
        for (index, expected) in expected.iter().enumerate() {
            let own = &self.c.state().cores[index].tracked;
            let found = (own.load, own.runnable, own.running, own.estimates);
            expect(found == *expected, || {
                format!(
                    "core {index} is tracked as (load, runnable, running, estimates) {found:?}, not {expected:?}"
                )
            })?;
        }
        Ok(())
    }

    /// What nobody would ever give a CPU to.
    fn check_custody(&self, task: usize) -> Found {
        let Some(thread) = self.thread_of(task) else { return Ok(()) };
        let own = self.c.thread(thread);
        if self.tasks[task].place != Place::Custody {
            return Ok(());
        }
        let unseen = own.bound_to == NO_CORE || own.arriving != 0;
        let lost = is(own, RunState::Running) || (waits(own) && unseen);
        expect(!lost, || {
            format!("task {task} is lost: the kernel waits for it to be sent, {own:?}")
        })
    }

    pub fn check(&self) -> Found {
        let mut waiting = 0;
        for queue in 0..self.c.state().queue_count {
            waiting += self.check_queue(queue)?;
        }
        let ready = self.threads().filter(|(_, thread)| waits(thread)).count();
        expect(waiting == ready, || format!("{ready} threads wait, {waiting} are in queues"))?;
        for (index, thread) in self.threads().filter(|(_, thread)| is(thread, RunState::Running)) {
            let running = self.c.state().cores[thread.core as usize].running;
            expect(running == index, || {
                format!("thread {index} runs on core {}, which runs {running:x}", thread.core)
            })?;
        }
        self.check_cores()?;
        self.check_loads()?;
        (0..self.tasks.len()).try_for_each(|task| self.check_custody(task))
    }

    /// No CPU idles, with nobody having told it to look, while a thread waits that was put there and may run there.
    pub fn check_work(&self) -> Found {
        for (index, thread) in self.threads().filter(|(_, thread)| waits(thread)) {
            let cpu = &self.cpus[thread.core as usize];
            let told = cpu.resched || cpu.kick_idle || cpu.kick_preempt;
            let idle = cpu.current.is_none() && !told;
            let may = thread.affinity.contains(thread.core as usize);
            expect(!(idle && may), || {
                format!("core {} idles while thread {index} waits there, {thread:?}", thread.core)
            })?;
        }
        Ok(())
    }

    /// Nobody is runnable any more.
    pub fn check_drained(&self) -> Found {
        for (index, task) in self.tasks.iter().enumerate() {
            let over = matches!(task.place, Place::Asleep | Place::Gone);
            expect(over, || {
                let thread = self.thread_of(index).map(|thread| self.c.thread(thread));
                format!("task {index} never runs: {task:?} {thread:?}")
            })?;
        }
        Ok(())
    }
}
