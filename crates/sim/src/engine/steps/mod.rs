//! Threads execute the steps of their programs until they use time, block or end.

mod flow;
mod spin;
mod sync;
mod time;

use ampsched_model::{ObjectId, Op, ProfileId, Program, SchedClass, ThreadId, TimerMode};

use super::threads::{WaitsFor, Work};
use super::{Engine, Fallible};
use crate::SimError;

/// Steps that a thread may execute without using time.
const STEP_LIMIT: u64 = 10_000_000;

/// What a thread does after its steps at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It has work for the core.
    Work,
    /// It blocks.
    Blocked,
    /// It ends.
    Exited,
    /// It gives up the core.
    GivesUp,
    /// It may no longer use its core.
    Moves,
    /// It changes to another class, above the policy's or from there.
    Changes(SchedClass),
}

/// What one step leads to.
pub(super) enum Step {
    /// The next step, at once.
    Go,
    /// Stop executing steps; the program counter is already right.
    Stop(Next),
}

impl Engine<'_> {
    /// Executes the steps of a running thread until it uses time, blocks or ends.
    pub(super) fn advance(&mut self, thread: ThreadId) -> Fallible<Next> {
        if self.threads[thread].spins {
            return Ok(self.end_spin_in_vain(thread));
        }
        let program = self.apps[self.threads[thread].app].program.clone();
        for _ in 0..STEP_LIMIT {
            if self.pays_for_waking(thread) {
                return Ok(Next::Work);
            }
            if let Step::Stop(next) = self.step(thread, &program)? {
                return Ok(next);
            }
        }
        Err(SimError::NoProgress {
            thread: self.thread_name(thread),
            steps: STEP_LIMIT,
            at_ns: self.events.now_ns(),
        }
        .into())
    }

    /// Executes one step. Those that are done for good leave the program counter behind them, those that are to be
    /// tried again when the thread wakes leave it where it is.
    fn step(&mut self, thread: ThreadId, program: &Program) -> Fallible<Step> {
        let entry = &self.threads[thread];
        let app = &self.apps[entry.app];
        let (first_object, first_profile) = (app.object_base, app.profile_base);
        let object = |local: &ObjectId| ObjectId(first_object + local.0);
        let profile = |local: &ProfileId| first_profile + u32::from(local.0);
        match &program.code[entry.pc.index()] {
            Op::Compute { instructions, profile: of } => {
                Ok(self.draw_work(thread, Work::Instructions, instructions, profile(of)))
            }
            Op::Run { reference_ns, profile: of } => {
                Ok(self.draw_reference_work(thread, reference_ns, profile(of)))
            }
            Op::Occupy { cpu_ns, profile: of } => {
                Ok(self.draw_work(thread, Work::CpuTime, cpu_ns, profile(of)))
            }
            Op::Lock(mutex) => self.lock(thread, object(mutex)),
            Op::LockOneOf { first, count } => self.lock_one_of(thread, object(first), *count),
            Op::Unlock(mutex) => self.unlock(thread, object(mutex)),
            Op::UnlockOneOf { first, count } => self.unlock_one_of(thread, object(first), *count),
            Op::Wait { condition, mutex } => {
                self.wait(thread, object(condition), object(mutex), false)
            }
            Op::SignalAndWait { condition, mutex } => {
                self.signal_and_wait(thread, object(condition), object(mutex))
            }
            Op::Signal(condition) => self.signal(thread, object(condition)),
            Op::Broadcast(condition) => self.broadcast(thread, object(condition)),
            Op::Barrier(barrier) => self.arrive(thread, object(barrier)),
            Op::SemWait(semaphore) => Ok(self.sem_wait(thread, object(semaphore))),
            Op::SemPost(semaphore) => self.sem_post(thread, object(semaphore)),
            Op::Push(queue) => self.push_item(thread, object(queue)),
            Op::Pop { queue, end } => self.pop_item(thread, object(queue), *end),
            Op::Close(queue) => self.close_queue(thread, object(queue)),
            Op::Tasks { region, profile: of } => {
                self.tasks_step(thread, object(region), profile(of))
            }
            Op::Create { region, profile: of } => {
                self.create_step(thread, object(region), profile(of))
            }
            Op::Take { pool, end } => Ok(self.take_iteration(thread, object(pool), *end)),
            Op::ItemEnd { again } => Ok(flow::end_item(&mut self.threads[thread], *again)),
            Op::Loop { count, end } => Ok(flow::begin_loop(&mut self.threads[thread], count, *end)),
            Op::LoopEnd { start } => Ok(flow::end_loop(&mut self.threads[thread], *start)),
            Op::Fork { thread: spec } => self.fork(thread, *spec),
            Op::Join => Ok(self.join(thread)),
            Op::Sleep(amount) => Ok(self.sleep(thread, amount)),
            Op::SleepUntil { at_ns } => Ok(self.sleep_until_own(thread, *at_ns)),
            Op::Period { begun_ns, length_ns } => {
                self.next_period(thread, *begun_ns, *length_ns);
                Ok(self.go(thread))
            }
            Op::TimerWait { timer, period_ns, mode } => {
                let rebase = *mode == TimerMode::Relative;
                Ok(self.wait_for_timer(thread, object(timer), *period_ns, rebase))
            }
            Op::Io { device, service_ns } => {
                Ok(self.request_io(thread, object(device), service_ns))
            }
            Op::Yield => {
                self.threads[thread].next_step();
                Ok(Step::Stop(Next::GivesUp))
            }
            Op::Suspend => {
                self.threads[thread].next_step();
                Ok(self.block(thread, WaitsFor::Resume))
            }
            Op::Resume { thread: spec } => self.resume(thread, *spec),
            Op::SetAffinity(set) => self.set_affinity(thread, set),
            Op::SetNice(nice) => Ok(self.set_nice(thread, *nice)),
            Op::SetClass(class) => Ok(self.set_class(thread, *class)),
            Op::SetSlice(_) | Op::SetUclamp { .. } | Op::SetGroup(_) => {
                Ok(self.change_attrs(thread, &program.code[entry.pc.index()]))
            }
            Op::Exit => Ok(Step::Stop(Next::Exited)),
        }
    }

    /// The step is done.
    fn go(&mut self, thread: ThreadId) -> Step {
        self.threads[thread].next_step();
        Step::Go
    }

    /// The thread waits; for an object it may spin first.
    pub(super) fn block(&mut self, thread: ThreadId, waits_for: WaitsFor) -> Step {
        self.threads[thread].waits_for = waits_for;
        match waits_for {
            WaitsFor::Object(object) if self.objects.spin_ns(object) > 0 => {
                self.begin_spinning(thread, object)
            }
            _ => Step::Stop(Next::Blocked),
        }
    }
}
