//! Threads: executing the steps of their programs, creation and exit.

use std::sync::Arc;

use ampsched_model::{AppId, CodePtr, CoreSet, Ns, ObjectId, Op, Program, ThreadId, TimerMode};
use ampsched_policy::{Change, EnqueueKind, Event, Factor, FactorKind, Factors, nice_to_weight};

use super::objects::Attempt;
use super::{Engine, Fallible, Frame, Happening, Thread, WaitsFor, Work};
use crate::{SimError, TraceThread};

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
        let program = self.apps[self.threads[thread.index()].app.index()].program.clone();
        for _ in 0..STEP_LIMIT {
            if let Step::Stop(next) = self.step(thread, &program)? {
                return Ok(next);
            }
        }
        Err(SimError::NoProgress {
            thread: self.thread_name(thread),
            steps: STEP_LIMIT,
            at_ns: self.now_ns,
        }
        .into())
    }

    fn step(&mut self, thread: ThreadId, program: &Arc<Program>) -> Fallible<Step> {
        let entry = &mut self.threads[thread.index()];
        let app = &self.apps[entry.app.index()];
        let object = |local: &ObjectId| ObjectId(app.object_base + local.0);
        let op = &program.code[entry.pc.index()];
        match op {
            Op::Compute { instructions, profile } => {
                let amount = instructions.draw(&mut entry.draw);
                let profile = app.profile_base + u32::from(profile.0);
                Ok(self.compute(thread, Work::Instructions, amount, profile))
            }
            Op::Run { reference_ns, profile } => {
                let ns = reference_ns.draw(&mut entry.draw);
                let profile = app.profile_base + u32::from(profile.0);
                let amount = (ns as f64 * self.speeds.reference(profile)).round() as u64;
                Ok(self.compute(thread, Work::Instructions, amount, profile))
            }
            Op::Occupy { cpu_ns, profile } => {
                let amount = cpu_ns.draw(&mut entry.draw);
                let profile = app.profile_base + u32::from(profile.0);
                Ok(self.compute(thread, Work::CpuTime, amount, profile))
            }
            Op::Lock(mutex) => {
                let mutex = object(mutex);
                let attempt = self.lock(thread, mutex)?;
                Ok(self.go_or_retry(thread, attempt, mutex))
            }
            Op::LockOneOf { first, count } => {
                // The choice must not change when the thread tries again.
                let mut peek = entry.draw;
                let choice = (peek.bits() % u64::from(*count)) as u32;
                let mutex = ObjectId(object(first).0 + choice);
                let attempt = self.lock(thread, mutex)?;
                if attempt == Attempt::Done(()) {
                    self.threads[thread.index()].draw = peek;
                }
                Ok(self.go_or_retry(thread, attempt, mutex))
            }
            Op::Unlock(mutex) => {
                let mutex = object(mutex);
                self.unlock(thread, mutex)?;
                Ok(self.go(thread))
            }
            Op::UnlockOneOf { first, count } => {
                let range = object(first).0..object(first).0 + count;
                let held = entry.held.iter().rev().find(|mutex| range.contains(&mutex.0)).copied();
                let mutex = held.unwrap_or(ObjectId(range.start));
                self.unlock(thread, mutex)?;
                Ok(self.go(thread))
            }
            Op::Wait { condition, mutex } => {
                let (condition, mutex) = (object(condition), object(mutex));
                self.wait_step(thread, condition, mutex, false)
            }
            Op::SignalAndWait { condition, mutex } => {
                let (condition, mutex) = (object(condition), object(mutex));
                self.signal_and_wait(thread, condition, mutex)
            }
            Op::Signal(condition) => {
                let condition = object(condition);
                self.signal(thread, condition, false)?;
                Ok(self.go(thread))
            }
            Op::Broadcast(condition) => {
                let condition = object(condition);
                self.signal(thread, condition, true)?;
                Ok(self.go(thread))
            }
            Op::Barrier(barrier) => {
                let barrier = object(barrier);
                entry.pc.0 += 1;
                match self.arrive(thread, barrier)? {
                    Attempt::Done(()) => Ok(Step::Go),
                    Attempt::MustWait => Ok(self.block(thread, WaitsFor::Object(barrier))),
                }
            }
            Op::SemWait(semaphore) => {
                let semaphore = object(semaphore);
                let attempt = self.sem_wait(thread, semaphore);
                Ok(self.go_or_retry(thread, attempt, semaphore))
            }
            Op::SemPost(semaphore) => {
                let semaphore = object(semaphore);
                self.sem_post(thread, semaphore)?;
                Ok(self.go(thread))
            }
            Op::Push(queue) => {
                let queue = object(queue);
                let attempt = self.push_item(thread, queue)?;
                Ok(self.go_or_retry(thread, attempt, queue))
            }
            Op::Pop { queue, end } => {
                let (queue, end) = (object(queue), *end);
                self.pop_step(thread, queue, end)
            }
            Op::Take { pool, end } => {
                let (pool, end) = (object(pool), *end);
                Ok(self.take_step(thread, pool, end))
            }
            Op::Tasks { region, profile } => {
                let profile = app.profile_base + u32::from(profile.0);
                self.tasks_step(thread, object(region), profile)
            }
            Op::Create { region, profile } => {
                let profile = app.profile_base + u32::from(profile.0);
                self.create_step(thread, object(region), profile)
            }
            Op::ItemEnd { again } => {
                entry.pc = *again;
                if let Some(Frame::Item { outer }) = entry.frames.last() {
                    entry.draw = *outer;
                    entry.frames.pop();
                }
                Ok(Step::Go)
            }
            Op::Close(queue) => {
                let queue = object(queue);
                self.close(thread, queue)?;
                Ok(self.go(thread))
            }
            Op::Loop { count, end } => {
                let left = count.draw(&mut entry.draw);
                if left == 0 {
                    entry.pc = *end;
                } else {
                    entry.frames.push(Frame::Loop { left });
                    entry.pc.0 += 1;
                }
                Ok(Step::Go)
            }
            Op::LoopEnd { start } => {
                let Some(Frame::Loop { left }) = entry.frames.last_mut() else {
                    unreachable!("loops are balanced")
                };
                if *left != u64::MAX {
                    *left -= 1;
                }
                if *left == 0 {
                    entry.frames.pop();
                    entry.pc.0 += 1;
                } else {
                    entry.pc = *start;
                }
                Ok(Step::Go)
            }
            Op::Fork { thread: spec } => {
                let (app, spec) = (entry.app, *spec);
                entry.pc.0 += 1;
                self.fork(thread, app, spec)?;
                Ok(Step::Go)
            }
            Op::Join => {
                entry.pc.0 += 1;
                if entry.children == 0 {
                    Ok(Step::Go)
                } else {
                    Ok(self.block(thread, WaitsFor::Children))
                }
            }
            Op::Sleep(amount) => {
                let sleep_ns = amount.draw(&mut entry.draw);
                entry.pc.0 += 1;
                let until_ns = self.now_ns + sleep_ns;
                Ok(self.sleep_until(thread, until_ns))
            }
            Op::TimerWait { timer, period_ns, mode } => {
                entry.pc.0 += 1;
                let rebase = *mode == TimerMode::Relative;
                let timer = object(timer);
                let expiry_ns = self.next_expiry(thread, timer, *period_ns, rebase);
                Ok(self.sleep_until(thread, expiry_ns))
            }
            Op::Io { device, service_ns } => {
                let device = object(device);
                let service_ns = service_ns.draw(&mut entry.draw);
                entry.pc.0 += 1;
                self.request(thread, device, service_ns);
                Ok(self.block(thread, WaitsFor::Object(device)))
            }
            Op::Yield => {
                entry.pc.0 += 1;
                Ok(Step::Stop(Next::GivesUp))
            }
            Op::Suspend => {
                entry.pc.0 += 1;
                Ok(self.block(thread, WaitsFor::Resume))
            }
            Op::Resume { thread: spec } => {
                let (app, spec) = (entry.app, *spec);
                entry.pc.0 += 1;
                self.resume(thread, app, spec)?;
                Ok(Step::Go)
            }
            Op::SetAffinity(set) => {
                entry.pc.0 += 1;
                self.set_affinity(thread, set)
            }
            Op::SetNice(nice) => {
                entry.pc.0 += 1;
                let weight = nice_to_weight(i32::from(*nice) + i32::from(app.nice));
                self.sched.apply(thread, &Change::Weight(weight));
                Ok(Step::Go)
            }
            Op::Exit => Ok(Step::Stop(Next::Exited)),
        }
    }

    fn go(&mut self, thread: ThreadId) -> Step {
        self.threads[thread.index()].pc.0 += 1;
        Step::Go
    }

    /// Goes on if the attempt succeeded, else blocks and tries again when woken.
    fn go_or_retry(&mut self, thread: ThreadId, attempt: Attempt<()>, object: ObjectId) -> Step {
        match attempt {
            Attempt::Done(()) => self.go(thread),
            Attempt::MustWait => self.block(thread, WaitsFor::Object(object)),
        }
    }

    pub(super) fn block(&mut self, thread: ThreadId, waits_for: WaitsFor) -> Step {
        self.threads[thread.index()].waits_for = waits_for;
        Step::Stop(Next::Blocked)
    }

    fn sleep_until(&mut self, thread: ThreadId, until_ns: Ns) -> Step {
        if until_ns <= self.now_ns {
            return Step::Go;
        }
        self.pending += 1;
        self.push(until_ns, Happening::Wake(thread));
        self.block(thread, WaitsFor::Time)
    }

    /// Starts work for the core; behind it stands the next step.
    pub(super) fn compute(
        &mut self,
        thread: ThreadId,
        work: Work,
        amount: u64,
        profile: u32,
    ) -> Step {
        let core = self.sched.thread(thread).core;
        let cluster = self.sched.topology().core(core).cluster;
        if profile != self.threads[thread.index()].profile {
            self.meter_running(core, thread, profile);
        }
        let rate = self.speeds.rate(profile, cluster);
        let entry = &mut self.threads[thread.index()];
        entry.pc.0 += 1;
        if amount == 0 {
            return Step::Go;
        }
        entry.work = work;
        entry.remaining = amount;
        entry.profile = profile;
        if work == Work::Instructions {
            entry.demanded += amount;
        }
        let state = &mut self.cores[core.index()];
        state.instructions_per_ns = rate.instructions_per_ns;
        state.ns_per_instruction = rate.ns_per_instruction;
        Step::Stop(Next::Work)
    }

    /// A wait for a condition has two halves: block, then acquire the mutex again.
    fn wait_step(
        &mut self,
        thread: ThreadId,
        condition: ObjectId,
        mutex: ObjectId,
        unlock_after: bool,
    ) -> Fallible<Step> {
        if !self.threads[thread.index()].reacquiring {
            self.unlock(thread, mutex)?;
            self.threads[thread.index()].reacquiring = true;
            self.wait_condition(thread, condition);
            return Ok(self.block(thread, WaitsFor::Object(condition)));
        }
        let attempt = self.lock(thread, mutex)?;
        if attempt == Attempt::Done(()) {
            self.threads[thread.index()].reacquiring = false;
            if unlock_after {
                self.unlock(thread, mutex)?;
            }
        }
        Ok(self.go_or_retry(thread, attempt, mutex))
    }

    fn signal_and_wait(
        &mut self,
        thread: ThreadId,
        condition: ObjectId,
        mutex: ObjectId,
    ) -> Fallible<Step> {
        if !self.threads[thread.index()].reacquiring {
            if self.lock(thread, mutex)? == Attempt::MustWait {
                return Ok(self.block(thread, WaitsFor::Object(mutex)));
            }
            self.signal(thread, condition, false)?;
        }
        self.wait_step(thread, condition, mutex, true)
    }

    fn pop_step(&mut self, thread: ThreadId, queue: ObjectId, end: CodePtr) -> Fallible<Step> {
        let item = match self.pop_item(thread, queue)? {
            Attempt::MustWait => return Ok(self.block(thread, WaitsFor::Object(queue))),
            Attempt::Done(item) => item,
        };
        let entry = &mut self.threads[thread.index()];
        let Some(number) = item else {
            entry.pc = end;
            return Ok(Step::Go);
        };
        let app = &self.apps[entry.app.index()];
        entry.frames.push(Frame::Item { outer: entry.draw });
        entry.draw = app.draw.child(u64::from(queue.0 - app.object_base)).child(number);
        entry.pc.0 += 1;
        Ok(Step::Go)
    }

    /// Takes the next iteration of a pool: from the thread's chunk, else a new chunk.
    fn take_step(&mut self, thread: ThreadId, pool: ObjectId, end: CodePtr) -> Step {
        let entry = &mut self.threads[thread.index()];
        let (outer, use_number, rest) = match entry.frames.last() {
            Some(&Frame::Iteration { pool: same, outer, use_number, next, end })
                if same == pool =>
            {
                entry.frames.pop();
                (outer, use_number, (next < end).then_some((next, end)))
            }
            _ => (entry.draw, entry.uses_of(pool), None),
        };
        let chunk = rest.or_else(|| self.take_chunk(pool, use_number));
        let entry = &mut self.threads[thread.index()];
        entry.draw = outer;
        let Some((iteration, last)) = chunk else {
            entry.finish_use(pool);
            entry.pc = end;
            return Step::Go;
        };
        let app = &self.apps[entry.app.index()];
        entry.frames.push(Frame::Iteration {
            pool,
            outer,
            use_number,
            next: iteration + 1,
            end: last,
        });
        let stream =
            app.draw.child(u64::from(pool.0 - app.object_base)).child(u64::from(use_number));
        entry.draw = stream.child(iteration);
        entry.pc.0 += 1;
        Step::Go
    }

    fn fork(&mut self, parent: ThreadId, app: AppId, spec: u32) -> Fallible {
        self.check_thread_limit(app)?;
        let run = &mut self.apps[app.index()];
        run.live += 1;
        let instance = run.program.threads[spec as usize].count + run.instances[spec as usize];
        run.instances[spec as usize] += 1;
        self.threads[parent.index()].children += 1;
        self.create_thread(app, spec, instance, Some(parent))
    }

    fn resume(&mut self, waker: ThreadId, app: AppId, spec: u32) -> Fallible {
        let waits = |other: &ThreadId| {
            let other = &self.threads[other.index()];
            other.app == app && other.spec == spec && other.waits_for == WaitsFor::Resume
        };
        let resumed: Vec<ThreadId> = self.sched.live_threads().filter(waits).collect();
        for other in resumed {
            self.wake(other, Some(waker))?;
        }
        Ok(())
    }

    fn set_affinity(&mut self, thread: ThreadId, set: &CoreSet) -> Fallible<Step> {
        let set = self.existing_cores(&self.thread_name(thread), set)?;
        let misplaced = self.sched.restrict_user(thread, &set);
        Ok(if misplaced { Step::Stop(Next::Moves) } else { Step::Go })
    }

    /// The cores of a set that the machine has; an error if there is none.
    fn existing_cores(&self, name: &str, set: &CoreSet) -> Fallible<CoreSet> {
        let cores: CoreSet = set.iter().filter(|core| core.index() < self.cores.len()).collect();
        if cores.is_empty() {
            return Err(SimError::NoSuchCore {
                thread: name.to_owned(),
                last: self.cores.len() - 1,
            }
            .into());
        }
        Ok(cores)
    }

    /// Creates a thread and makes it runnable.
    pub(super) fn create_thread(
        &mut self,
        app: AppId,
        spec: u32,
        instance: u32,
        parent: Option<ThreadId>,
    ) -> Fallible {
        let run = &mut self.apps[app.index()];
        run.threads += 1;
        let program = run.program.clone();
        let thread_spec = &program.threads[spec as usize];
        let single = thread_spec.count == 1 && parent.is_none();
        let name = if single {
            thread_spec.name.clone()
        } else {
            format!("{}.{instance}", thread_spec.name)
        };
        let draw = run.draw.child(u64::MAX - u64::from(spec)).child(instance.into());
        let weight = nice_to_weight(i32::from(thread_spec.nice) + i32::from(run.nice));
        let profile = run.profile_base + first_profile(&program, thread_spec.entry);
        let repetition = run.repetition;
        let app_name = run.name.clone();
        let affinity = match &thread_spec.affinity {
            Some(set) => Some(self.existing_cores(&format!("{app_name}/{name}"), set)?),
            None => None,
        };
        let thread = self.sched.add(app, weight, affinity.as_ref());
        if let Some(trace) = self.trace.as_deref_mut() {
            trace.thread(TraceThread {
                id: thread,
                app: app.index(),
                app_name: &app_name,
                name: &name,
            });
        }
        self.threads.push(Thread {
            app,
            spec,
            repetition,
            name,
            pc: thread_spec.entry,
            work: Work::Steps,
            remaining: 0,
            profile,
            demanded: 0,
            draw,
            frames: Vec::new(),
            held: Vec::new(),
            pool_uses: Vec::new(),
            waits_for: WaitsFor::Nothing,
            io_core: None,
            reacquiring: false,
            parent,
            children: 0,
            voluntary: 0,
            involuntary: 0,
            start_ns: self.now_ns,
            end_ns: self.now_ns,
        });
        self.factors.push(self.factors_of_new(app));
        self.meter_thread();
        self.refresh_factor(thread);
        self.tell(Event::Added(thread))?;
        self.make_runnable(thread, EnqueueKind::Fork, parent)
    }

    /// What is known of a thread before it runs.
    fn factors_of_new(&self, app: AppId) -> Factors {
        let Some(facts) = self.offline.get(app.index()) else { return Factors::default() };
        let known = |value: f64| Factor { value, kind: FactorKind::Measured, at_ns: self.now_ns };
        Factors {
            offline_speedup: known(facts.speedup),
            alone_ips: known(facts.fast_ips),
            energy_ratio: facts.energy_ratio.map(known).unwrap_or_default(),
            ..Factors::default()
        }
    }

    /// A thread has ended: its application and its parent may go on.
    pub(super) fn finish_thread(&mut self, thread: ThreadId) -> Fallible {
        let entry = &mut self.threads[thread.index()];
        entry.end_ns = self.now_ns;
        if let Some(&mutex) = entry.held.first() {
            let object = self.object_names[mutex.index()].clone();
            return Err(SimError::ExitHolding { thread: self.thread_name(thread), object }.into());
        }
        let (app, parent) = (entry.app, entry.parent);
        let run = &mut self.apps[app.index()];
        run.live -= 1;
        let last = run.live == 0;
        self.tell(Event::Exited(thread))?;
        if let Some(parent) = parent {
            self.child_ended(parent, thread)?;
        }
        if last { self.complete(app) } else { Ok(()) }
    }

    fn child_ended(&mut self, parent: ThreadId, child: ThreadId) -> Fallible {
        let above = &mut self.threads[parent.index()];
        above.children -= 1;
        if above.children == 0 && above.waits_for == WaitsFor::Children {
            self.wake(parent, Some(child))?;
        }
        Ok(())
    }

    pub(super) fn thread_name(&self, thread: ThreadId) -> String {
        let entry = &self.threads[thread.index()];
        format!("{}/{}", self.apps[entry.app.index()].name, entry.name)
    }
}

/// The profile of the first work behind an entry, for what is known of a thread before it runs.
fn first_profile(program: &Program, entry: CodePtr) -> u32 {
    let profile = program.code[entry.index()..].iter().find_map(|op| match op {
        Op::Compute { profile, .. }
        | Op::Run { profile, .. }
        | Op::Occupy { profile, .. }
        | Op::Tasks { profile, .. }
        | Op::Create { profile, .. } => Some(profile.0),
        _ => None,
    });
    profile.map_or(0, u32::from)
}
