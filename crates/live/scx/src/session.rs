//! A session: a policy's fast plane in the kernel, its slow plane here, epoch by epoch.

use std::collections::HashMap;

use ampsched_live_host::{CoreMap, Decision, Driver, Facts, Proc, Sighting};
use ampsched_model::{AppId, CoreId, CoreSet, Ns, ThreadId};
use ampsched_policy::{Factor, FactorKind, RunState};

use crate::ScxError;
use crate::kernel::{Exit, Kernel, Options, cpu_ns};
use crate::layout::Thread;
use crate::lower;

/// What the session knows of a thread in a slot of the kernel's table.
struct Member {
    /// Who of those that have had the slot.
    generation: u32,
    thread: ThreadId,
    process: u32,
    program: String,
    /// Programs that its process had executed when `program` was looked up.
    execs: u32,
    /// Counters at the last look.
    run_ns: Ns,
    ready_ns: Ns,
    blame_ns: Ns,
}

/// What a session has done.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Summary {
    /// The policy with its parameters, as given.
    pub policy: String,
    /// The means: always `scx`.
    pub backend: String,
    /// How long it ran, in s.
    pub age_s: f64,
    /// Threads that were scheduled.
    pub threads: usize,
    /// Epochs of the policy.
    pub epochs: u64,
    /// Changes of the plan that were carried out.
    pub decisions: u64,
    /// Time that threads ran on each core, in s, in the order of the cores.
    pub busy_s: Vec<f64>,
    /// Times that a thread was queued.
    pub queued: u64,
    /// CPU time of one look at the kernel's table of threads with the epoch and the changes that follow, in us.
    pub epoch_us: f64,
    /// Threads that there were at a look, on average.
    pub epoch_threads: f64,
    /// `epoch_us` per 1,000 threads; with few threads it is mostly what a look costs anyway.
    pub epoch_us_per_1000_threads: f64,
}

/// A running session.
pub struct Session {
    kernel: Kernel,
    driver: Driver,
    cores: CoreMap,
    facts: Facts,
    proc: Proc,
    /// By slot.
    members: Vec<Option<Member>>,
    apps: HashMap<i32, AppId>,
    /// CPU time of the slow plane, and sum over all looks of the threads that were there.
    slow_plane_ns: Ns,
    threads_seen: u64,
    looks: u64,
    summary: Summary,
}

impl Session {
    /// Loads the policy's rules into the kernel.
    ///
    /// # Errors
    ///
    /// The kernel cannot honour the rules, or does not take the scheduler.
    pub fn start(
        name: &str,
        driver: Driver,
        cores: CoreMap,
        facts: Facts,
        options: &Options,
        threads_max: u32,
    ) -> Result<Self, ScxError> {
        let (rules, topology) = (driver.rules(), cores.topology());
        let lowered = lower::rules(name, driver.needs(), &rules, topology)?;
        let mut initial = lower::state(lowered, rules.queues, topology, threads_max);
        initial.online = options.online;
        let kernel = Kernel::load(initial, options, driver.needs().blame)?;
        let summary =
            Summary { policy: name.to_owned(), backend: "scx".to_owned(), ..Summary::default() };
        let (members, apps, proc) = (Vec::new(), HashMap::new(), Proc::default());
        let (slow_plane_ns, threads_seen, looks) = (0, 0, 0);
        Ok(Self {
            kernel,
            driver,
            cores,
            facts,
            proc,
            members,
            apps,
            slow_plane_ns,
            threads_seen,
            looks,
            summary,
        })
    }

    /// How long to wait between two steps, in ns.
    pub fn period_ns(&self) -> Ns {
        self.driver.look_period_ns()
    }

    /// Looks, decides and carries out; `now_ns` is the time since the start.
    ///
    /// # Errors
    ///
    /// The kernel does not carry out the changes.
    pub fn step(&mut self, now_ns: Ns) -> Result<(), ScxError> {
        let begin_ns = cpu_ns();
        let sightings = self.look(now_ns);
        self.threads_seen += sightings.len() as u64;
        self.driver.look(&sightings, now_ns);
        self.tell_factors(now_ns);
        let decisions = self.driver.epoch();
        self.carry_out(&decisions)?;
        self.kernel.sign_of_life();
        self.summary.age_s = now_ns as f64 / 1e9;
        self.summary.epochs = self.driver.epochs();
        self.looks += 1;
        self.slow_plane_ns += cpu_ns() - begin_ns;
        Ok(())
    }

    /// Why the kernel has ended the scheduler; none while it runs.
    pub fn exit(&self) -> Option<Exit> {
        self.kernel.exit()
    }

    fn look(&mut self, now_ns: Ns) -> Vec<Sighting> {
        let threads = self.kernel.threads();
        self.members.resize_with(threads.len(), || None);
        let mut sightings = Vec::with_capacity(threads.len());
        for (slot, seen) in threads.iter().enumerate() {
            let known = self.members[slot].as_ref();
            if known.is_some_and(|member| seen.in_use == 0 || member.generation != seen.generation)
            {
                let gone = self.members[slot].take().expect("it is known");
                sightings.push(exited(&gone, &self.driver));
            }
            if seen.in_use == 0 {
                continue;
            }
            if self.members[slot].is_none() {
                self.members[slot] = Some(self.welcome(seen, now_ns));
            }
            let member = self.members[slot].as_mut().expect("it is known or welcome");
            if member.execs != seen.execs {
                member.execs = seen.execs;
                member.program = program(&self.proc, member.process);
            }
            sightings.push(sighting(member, seen));
        }
        sightings
    }

    fn welcome(&mut self, seen: &Thread, now_ns: Ns) -> Member {
        let pid = seen.process as i32;
        let group = self.proc.process(pid).map_or(pid, |stat| stat.group);
        // The numbers are 16 bits wide; beyond, all further groups count as one.
        let next = AppId(u16::try_from(self.apps.len()).unwrap_or(u16::MAX));
        let app = *self.apps.entry(group).or_insert(next);
        let allowed: CoreSet = (0..self.cores.topology().core_count())
            .filter(|core| seen.user_affinity >> core & 1 == 1)
            .map(CoreId::from)
            .collect();
        let everywhere = allowed.len() == self.cores.topology().core_count();
        let restricted = (!everywhere && !allowed.is_empty()).then_some(&allowed);
        let thread = self.driver.add(app, seen.weight, restricted, now_ns);
        self.summary.threads += 1;
        Member {
            generation: seen.generation,
            thread,
            process: seen.process,
            program: program(&self.proc, seen.process),
            execs: seen.execs,
            run_ns: 0,
            ready_ns: 0,
            blame_ns: 0,
        }
    }

    fn tell_factors(&mut self, now_ns: Ns) {
        let ratio = self.cores.speed_ratio();
        for member in self.members.iter().flatten() {
            let known = self.facts.factors(&member.program, ratio, now_ns);
            let value = member.blame_ns as f64;
            let blame_ns = Factor { value, kind: FactorKind::Measured, at_ns: now_ns };
            self.driver.set_factors(member.thread, ampsched_policy::Factors { blame_ns, ..known });
        }
    }

    fn carry_out(&mut self, decisions: &[Decision]) -> Result<(), ScxError> {
        let slots: HashMap<ThreadId, (u32, u32)> = self
            .members
            .iter()
            .enumerate()
            .filter_map(|(slot, member)| {
                let member = member.as_ref()?;
                Some((member.thread, (slot as u32, member.generation)))
            })
            .collect();
        let mut operations = Vec::new();
        for decision in decisions {
            // Policies that set clocks are refused, so there are no others.
            let Decision::Thread(thread, change) = decision else { continue };
            let Some(&(slot, generation)) = slots.get(thread) else { continue };
            let lowered = lower::change(slot, change).into_iter();
            operations.extend(
                lowered.map(|operation| crate::layout::Operation { generation, ..operation }),
            );
        }
        self.summary.decisions += decisions.len() as u64;
        if operations.is_empty() { Ok(()) } else { self.kernel.apply(&mut operations) }
    }

    /// Ends the session: the kernel's own scheduler takes over. Returns what was done.
    pub fn finish(mut self) -> Summary {
        let state = self.kernel.state();
        let count = self.cores.topology().core_count();
        self.summary.busy_s =
            state.cores[..count].iter().map(|core| core.busy_ns as f64 / 1e9).collect();
        self.summary.queued = state.serial;
        let looks = self.looks.max(1) as f64;
        self.summary.epoch_us = self.slow_plane_ns as f64 / 1e3 / looks;
        self.summary.epoch_threads = self.threads_seen as f64 / looks;
        // ns per thread.
        self.summary.epoch_us_per_1000_threads =
            self.slow_plane_ns as f64 / self.threads_seen.max(1) as f64;
        self.summary
    }
}

/// The last part of the path of the program that a process executes, as it was started.
fn program(proc: &Proc, process: u32) -> String {
    let command = proc.command(process as i32);
    let path = command.first().map_or("", String::as_str);
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

/// What a thread does and has used since the last look.
fn sighting(member: &mut Member, seen: &Thread) -> Sighting {
    let run_ns = seen.run_ns.iter().sum();
    let since = |now: Ns, before: &mut Ns| now.saturating_sub(std::mem::replace(before, now));
    Sighting {
        thread: member.thread,
        state: match seen.state {
            1 => RunState::Ready,
            2 => RunState::Running,
            4 => RunState::Held,
            5 => RunState::Exited,
            _ => RunState::Blocked,
        },
        core: CoreId(seen.core as u16),
        ran_ns: since(run_ns, &mut member.run_ns),
        waited_ns: since(seen.ready_ns, &mut member.ready_ns),
        instructions: 0,
        blame_ns: since(seen.blame_ns, &mut member.blame_ns),
    }
}

fn exited(member: &Member, driver: &Driver) -> Sighting {
    Sighting {
        thread: member.thread,
        state: RunState::Exited,
        core: driver.sched().thread(member.thread).core,
        ran_ns: 0,
        waited_ns: 0,
        instructions: 0,
        blame_ns: 0,
    }
}
