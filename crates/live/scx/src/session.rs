//! A session: a policy's fast plane in the kernel, its slow plane here, epoch by epoch.

mod telling;

use std::collections::{BTreeSet, HashMap};

use ampsched_computer::{CoreMap, Proc};
use ampsched_live_daemon::{Observed, Own, Status};
use ampsched_live_factors::Instruments;
use ampsched_live_host::{Decision, Driver, Facts, Sighting};
use ampsched_model::{AppId, CoreId, CoreSet, Ns, ThreadId};
use ampsched_policy::{Choice, Factor, FactorKind, Refusal, RunState, Source};

use crate::ScxError;
use crate::kernel::{Exit, Kernel, Options, cpu_ns};
use crate::layout::{Sched, Thread};
use crate::lower;

/// How often a session of a policy without a slow plane looks (ours): several times per `status --watch`.
const WATCH_NS: Ns = 250_000_000;

/// How often the names of threads are read (ours): they are for people.
const NAMES_NS: Ns = 1_000_000_000;

/// What the session knows of a thread in a slot of the kernel's table.
struct Member {
    /// Who of those that have had the slot.
    generation: u32,
    thread: ThreadId,
    app: AppId,
    tid: u32,
    process: u32,
    program: String,
    /// Its name, which it may change any time.
    name: String,
    /// Programs that its process had executed when `program` was looked up.
    execs: u32,
    /// Counters at the last look.
    run_ns: Ns,
    ready_ns: Ns,
    blame_ns: Ns,
}

/// What a session has done, for the results.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Summary {
    /// How it was at the end, without its threads.
    pub status: Status,
    /// Threads that were scheduled.
    pub threads: usize,
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
    instruments: Instruments,
    /// What could not be counted, each reason in a sentence.
    not_measured: BTreeSet<String>,
    proc: Proc,
    /// By slot.
    members: Vec<Option<Member>>,
    apps: HashMap<i32, AppId>,
    own: Own,
    /// The policy with its parameters, as given.
    policy: String,
    /// The kernel's table but for threads, as of the last look.
    seen: Box<Sched>,
    looked_ns: Ns,
    looks: u64,
    decisions: u64,
    threads: usize,
    /// CPU time of the slow plane, and sum over all looks of the threads that were there.
    slow_plane_ns: Ns,
    threads_seen: u64,
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
        instruments: Instruments,
        options: &Options,
        threads_max: u32,
    ) -> Result<Self, ScxError> {
        let (rules, topology) = (driver.rules(), cores.topology());
        let lowered = lower::rules(name, &instruments.unmet(driver.needs()), &rules, topology)?;
        let mut initial = lower::state(lowered, &rules, topology, threads_max);
        initial.online = options.online;
        let kernel = Kernel::load(initial, &rules, options, driver.needs().blame)?;
        let proc = Proc::default();
        let own = Own::process(&proc)
            .map_err(|error| ScxError::Kernel { what: "/proc".to_owned(), why: error.message })?;
        Ok(Self {
            seen: Box::new(kernel.state()),
            kernel,
            driver,
            cores,
            facts,
            instruments,
            not_measured: BTreeSet::new(),
            proc,
            members: Vec::new(),
            apps: HashMap::new(),
            own,
            policy: name.to_owned(),
            looked_ns: 0,
            looks: 0,
            decisions: 0,
            threads: 0,
            slow_plane_ns: 0,
            threads_seen: 0,
        })
    }

    /// How long to wait between two steps, in ns.
    pub fn period_ns(&self) -> Ns {
        let needs = self.driver.needs();
        match needs.epoch_ns.is_none() && !needs.events.lifecycle {
            // The kernel does all that such a policy says; a look is for those who watch.
            true => WATCH_NS,
            false => self.driver.look_period_ns(),
        }
    }

    /// Whether it schedules anybody.
    pub fn has_members(&self) -> bool {
        self.members.iter().any(Option::is_some)
    }

    /// Looks, decides and carries out; `now_ns` is the time since the start. Returns what was decided.
    ///
    /// # Errors
    ///
    /// The kernel does not carry out the changes.
    pub fn step(&mut self, now_ns: Ns) -> Result<Vec<Decision>, ScxError> {
        let begin_ns = cpu_ns();
        // Thousands of new threads are work for seconds where cores are slow: each part of a step shows that it lives.
        self.kernel.sign_of_life();
        let sightings = self.look(now_ns);
        self.kernel.sign_of_life();
        self.threads_seen += sightings.len() as u64;
        self.driver.look(&sightings, now_ns);
        self.tell_factors(now_ns);
        self.kernel.sign_of_life();
        let refused =
            |why: Refusal| ScxError::Contract { policy: self.policy.clone(), why: why.to_string() };
        let decisions = self.driver.epoch().map_err(refused)?;
        self.carry_out(&decisions)?;
        self.kernel.sign_of_life();
        self.slow_plane_ns += cpu_ns() - begin_ns;
        Ok(decisions)
    }

    /// Why the kernel has ended the scheduler; none while it runs.
    pub fn exit(&self) -> Option<Exit> {
        self.kernel.exit()
    }

    fn look(&mut self, now_ns: Ns) -> Vec<Sighting> {
        let names_are_due = now_ns / NAMES_NS != self.looked_ns / NAMES_NS;
        (self.looked_ns, self.looks) = (now_ns, self.looks + 1);
        *self.seen = self.kernel.state();
        let threads = self.kernel.threads();
        self.members.resize_with(threads.len(), || None);
        let mut sightings = Vec::with_capacity(threads.len());
        for (slot, seen) in threads.iter().enumerate() {
            let known = self.members[slot].as_ref();
            if known.is_some_and(|member| seen.in_use == 0 || member.generation != seen.generation)
            {
                let gone = self.members[slot].take().expect("it is known");
                let mut last = exited(&gone, &self.driver);
                last.instructions = self.count(gone.tid as i32, last.core, now_ns);
                self.instruments.forget(gone.tid as i32);
                sightings.push(last);
            }
            if seen.in_use == 0 {
                continue;
            }
            if self.members[slot].is_none() {
                self.members[slot] = Some(self.welcome(seen, now_ns));
            }
            let member = self.members[slot].as_mut().expect("it is known or welcome");
            if member.execs != seen.execs || member.program.is_empty() {
                // For a moment a process that executes a program has no command line; then it is asked again.
                let program = program(&self.proc, member.process);
                if !program.is_empty() {
                    (member.execs, member.program) = (seen.execs, program);
                }
            }
            if names_are_due {
                member.name = name(&self.proc, seen);
            }
            let mut seen = sighting(member, seen);
            let tid = member.tid as i32;
            seen.instructions = self.count(tid, seen.core, now_ns);
            sightings.push(seen);
        }
        sightings
    }

    /// The instructions that a thread has retired since the last look.
    fn count(&mut self, tid: i32, core: CoreId, now_ns: Ns) -> u64 {
        let class = self.cores.topology().core(core).class;
        self.instruments.look(tid, class, now_ns).unwrap_or_else(|error| {
            self.not_measured.insert(format!("counters: {error}"));
            0
        })
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
        self.threads += 1;
        if let Err(error) = self.instruments.follow(seen.pid as i32) {
            // Whoever has ended at once was not to be counted.
            if error.raw_os_error() != Some(libc::ESRCH) {
                self.not_measured.insert(format!("counters: {error}"));
            }
        }
        Member {
            generation: seen.generation,
            thread,
            app,
            tid: seen.pid,
            process: seen.process,
            program: program(&self.proc, seen.process),
            name: name(&self.proc, seen),
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
            let mut factors = ampsched_policy::Factors { blame_ns, ..known };
            self.instruments.tell(member.tid as i32, &mut factors);
            self.driver.set_factors(member.thread, factors);
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
        self.decisions += decisions.len() as u64;
        if operations.is_empty() { Ok(()) } else { self.kernel.apply(&mut operations) }
    }

    /// Ends the session: the kernel's own scheduler takes over. Returns what was done.
    pub fn finish(mut self) -> Summary {
        *self.seen = self.kernel.state();
        let mut status = self.status();
        (status.threads, status.on_cores) = (Vec::new(), Vec::new());
        let busy_s = |core| self.busy_ns(core) as f64 / 1e9;
        let looks = self.looks.max(1) as f64;
        Summary {
            status,
            threads: self.threads,
            busy_s: self.cores.topology().cores().map(busy_s).collect(),
            queued: self.seen.serial,
            epoch_us: self.slow_plane_ns as f64 / 1e3 / looks,
            epoch_threads: self.threads_seen as f64 / looks,
            // ns per thread.
            epoch_us_per_1000_threads: self.slow_plane_ns as f64 / self.threads_seen.max(1) as f64,
        }
    }
}

/// The last part of the path of the program that a process executes, as it was started.
fn program(proc: &Proc, process: u32) -> String {
    let command = proc.command(process as i32);
    let path = command.first().map_or("", String::as_str);
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

/// A thread's name; empty if it has just ended.
fn name(proc: &Proc, seen: &Thread) -> String {
    proc.stat(seen.process as i32, seen.pid as i32).map_or_else(String::new, |stat| stat.name)
}

/// What a thread does and has used since the last look.
fn sighting(member: &mut Member, seen: &Thread) -> Sighting {
    let run_ns = seen.run_ns.iter().sum();
    let since = |now: Ns, before: &mut Ns| now.saturating_sub(std::mem::replace(before, now));
    Sighting {
        thread: member.thread,
        state: seen_state(seen.state),
        core: CoreId(seen.core as u16),
        ran_ns: since(run_ns, &mut member.run_ns),
        waited_ns: since(seen.ready_ns, &mut member.ready_ns),
        instructions: 0,
        blame_ns: since(seen.blame_ns, &mut member.blame_ns),
    }
}

/// The state of a number in the kernel's table; a thread that has not started yet is blocked until it is seen.
fn seen_state(number: u32) -> RunState {
    match RunState::from_number(number, &mut Source::defaults()) {
        RunState::New => RunState::Blocked,
        state => state,
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
