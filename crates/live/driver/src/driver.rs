//! The driver: a policy's slow plane on a system that another scheduler runs.
//!
//! A back end tells it what it has seen of the threads ([`Driver::look`]), lets it decide ([`Driver::epoch`]) and
//! carries the decisions out. The policy sees the same [`View`] as in the simulator.

use std::collections::BTreeMap;

use ampsched_model::{AppId, ClusterId, CoreId, CoreSet, Ns, ThreadId};
use ampsched_policy::{
    Allocator, Change, CoreLoad, Event, Factor, Factors, KeptLoad, Needs, Pick, Plan, Policy,
    Prefer, Refusal, Rules, RunState, Sched, Topology, View,
};

use crate::Dilation;
use crate::demands::plans_nothing;
use crate::playback::{Done, play};

/// What a back end has seen of a thread since its last look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    /// Which.
    pub thread: ThreadId,
    /// What it does now: [`RunState::Running`] and [`RunState::Ready`] mean the same here, that it wants to run.
    pub state: RunState,
    /// The core on which it runs, waits or last ran.
    pub core: CoreId,
    /// How long it has run, in real ns.
    pub ran_ns: Ns,
    /// How long it has waited for a core, in real ns.
    pub waited_ns: Ns,
    /// Instructions that it has retired; 0 if they are not counted.
    pub instructions: u64,
    /// How long others have waited for it, in real ns; 0 if that is not known.
    pub blame_ns: Ns,
}

/// What a back end has to carry out; times are real.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// A change of a thread's plan.
    Thread(ThreadId, Change),
    /// A frequency in MHz.
    Frequency(ClusterId, u32),
    /// A limit of the frequency in MHz; `u32::MAX` lifts it.
    Limit(ClusterId, u32),
}

/// How often a back end looks at a system whose policy does not say: Solaris' and many kernels' clock tick,
/// which the policies here that have ticks use, too.
const LOOK_NS: Ns = 10_000_000;
/// Least often that a back end looks, whatever the policy's epoch: new threads have to be found.
const LOOK_NS_MAX: Ns = 100_000_000;

/// A policy and the mirror of the system that it sees.
pub struct Driver {
    policy: Box<dyn Policy>,
    needs: Needs,
    sched: Sched,
    factors: Vec<Factors>,
    plan: Plan,
    /// Moves that the rules decide, for back ends that can only bind threads.
    moves: Vec<(ThreadId, Prefer)>,
    /// Whether the back end executes the rules by itself.
    rules_are_executed: bool,
    /// Threads that such moves have taken elsewhere in the mirror since the last look: where they were seen last.
    displaced: BTreeMap<ThreadId, CoreId>,
    /// By thread: the number of the last look that has mentioned it.
    mentioned: Vec<u64>,
    /// Number of looks so far.
    looks: u64,
    /// Threads of which something may have changed since the last epoch, in any order.
    changed: ChangedThreads,
    dilation: Dilation,
    /// The last look, in the policy's time.
    seen_ns: Ns,
    /// When the next epoch is due, in the policy's time.
    due_ns: Ns,
    epochs: u64,
}

impl Driver {
    /// A policy on a machine without threads, at time 0.
    ///
    /// # Errors
    ///
    /// One of the policy's rules reads what its needs do not name.
    pub fn new(
        policy: Box<dyn Policy>,
        topology: &Topology,
        dilation: Dilation,
    ) -> Result<Self, Refusal> {
        let (needs, rules) = (policy.needs(), policy.rules(topology));
        let mut sched = Sched::watching(topology.clone(), rules);
        sched.serve(&needs)?;
        Ok(Self {
            due_ns: needs.epoch_ns.unwrap_or(Ns::MAX),
            policy,
            needs,
            sched,
            factors: Vec::new(),
            plan: Plan::new(),
            moves: Vec::new(),
            rules_are_executed: false,
            displaced: BTreeMap::new(),
            mentioned: Vec::new(),
            looks: 0,
            changed: ChangedThreads::default(),
            dilation,
            seen_ns: 0,
            epochs: 0,
        })
    }

    /// What the policy needs; times are the policy's.
    pub fn needs(&self) -> &Needs {
        &self.needs
    }

    /// What the policy cannot do on this machine, in a sentence that follows its name; `sensors`: whether
    /// there are power sensors of clusters.
    pub fn caveat(&self, sensors: bool) -> Option<String> {
        self.policy.caveats(self.sched.topology(), sensors)
    }

    /// Says that the back end executes the rules by itself. Else rules that are thresholds of load and nothing else are
    /// applied here, look by look.
    pub fn leave_rules_to_back_end(&mut self) {
        self.rules_are_executed = true;
    }

    /// The fast plane; times are real.
    pub fn rules(&self) -> Rules {
        self.dilation.rules_to_real(self.sched.rules())
    }

    /// The mirror; times are the policy's.
    pub fn sched(&self) -> &Sched {
        &self.sched
    }

    /// What is known of a thread; times are the policy's.
    pub fn factors(&self, thread: ThreadId) -> &Factors {
        &self.factors[thread.index()]
    }

    /// How much slower than real time the policy's time passes.
    pub fn dilation(&self) -> Dilation {
        self.dilation
    }

    /// Number of epochs so far.
    pub fn epochs(&self) -> u64 {
        self.epochs
    }

    /// How often a back end should look and decide, in real ns.
    pub fn look_period_ns(&self) -> Ns {
        let epoch_ns = self.needs.epoch_ns.map(|ns| self.dilation.to_real(ns));
        epoch_ns.unwrap_or(self.dilation.to_real(LOOK_NS)).clamp(1, LOOK_NS_MAX)
    }

    /// A new thread of an application with a weight (1024 is nice 0) and the cores that its program allows
    /// (all if absent); blocked until it is seen.
    pub fn add(
        &mut self,
        app: AppId,
        weight: u32,
        cores: Option<&CoreSet>,
        now_ns: Ns,
    ) -> ThreadId {
        let now_ns = self.dilation.to_policy(now_ns).max(self.seen_ns);
        let thread = self.sched.add(app, weight, cores);
        self.factors.push(Factors::default());
        self.mentioned.push(0);
        self.changed.add(thread);
        if self.places_by_load() {
            let kind = self.kind_of(self.sched.place_by_rules(thread, now_ns));
            self.moves.push((thread, kind));
        }
        self.tell(Event::Added(thread), now_ns);
        thread
    }

    /// Says that a thread belongs to another application from now on.
    pub fn set_app(&mut self, thread: ThreadId, app: AppId) {
        self.sched.set_app(thread, app);
        self.changed.add(thread);
    }

    /// Says what is known of a thread; rates are per real s, times are real.
    pub fn set_factors(&mut self, thread: ThreadId, factors: Factors) {
        self.changed.add(thread);
        let dilation = self.dilation;
        let at = |factor: Factor| Factor { at_ns: dilation.to_policy(factor.at_ns), ..factor };
        let time =
            |factor: Factor| Factor { value: factor.value / dilation.factor(), ..at(factor) };
        let known = &mut self.factors[thread.index()];
        *known = Factors {
            speedup: at(factors.speedup),
            offline_speedup: at(factors.offline_speedup),
            alone_ips: Factor {
                value: dilation.rate_to_policy(factors.alone_ips.value),
                ..at(factors.alone_ips)
            },
            blame_ns: time(factors.blame_ns),
            power_mw: at(factors.power_mw),
            energy_ratio: at(factors.energy_ratio),
            work_ns: time(factors.work_ns),
            path_ns: time(factors.path_ns),
            stalls: factors.stalls,
        }
        .named_by(&self.needs);
    }

    /// Says at which frequency a cluster runs.
    pub fn set_frequency(&mut self, cluster: ClusterId, mhz: u32) {
        self.sched.set_frequency(cluster, mhz, self.seen_ns);
    }

    /// Says what the averages of a thread are, if the back end tracks load by itself ([`Sched::tell_load`]).
    pub fn set_load(&mut self, thread: ThreadId, load: Option<KeptLoad>) {
        self.sched.tell_load(thread, load);
    }

    /// Says what the averages of a core are now, as [`Driver::set_load`], and what the time of its threads' is.
    pub fn set_core_load(&mut self, core: CoreId, load: CoreLoad, time_ns: Ns) {
        self.sched.tell_core_load(core, load, time_ns);
    }

    /// Says what a cluster's power sensor shows, in mW.
    pub fn set_power(&mut self, cluster: ClusterId, power_mw: Factor) {
        self.sched.set_power(cluster, power_mw);
    }

    /// Says what a cluster's hottest temperature sensor shows, in degrees Celsius.
    pub fn set_temperature(&mut self, cluster: ClusterId, temperature_c: Factor) {
        self.sched.set_temperature(cluster, temperature_c);
    }

    /// Writes down what has been seen at some time; times never decrease. Threads that are not mentioned do
    /// what they did: they sleep, wait or are held back. One that was taken to run has not run then, but waits.
    /// The cost does not depend on how many are not mentioned.
    pub fn look(&mut self, observations: &[Observation], now_ns: Ns) {
        let now_ns = self.dilation.to_policy(now_ns).max(self.seen_ns);
        self.looks += 1;
        for seen in observations {
            self.mentioned[seen.thread.index()] = self.looks;
            self.changed.add(seen.thread);
            self.sched.blame(seen.thread, self.dilation.to_policy(seen.blame_ns));
        }
        let mut live = self.not_where_they_were();
        let (scheduled, rest): (Vec<Observation>, Vec<Observation>) =
            observations.iter().partition(|seen| is_scheduled(seen.state));
        live.iter().for_each(|seen| self.changed.add(seen.thread));
        live.extend(scheduled);
        for gone in rest {
            self.charge(&gone);
            self.sched.observe(gone.thread, gone.state, gone.core, self.seen_ns);
            if gone.state == RunState::Exited {
                self.tell(Event::Exited(gone.thread), now_ns);
            }
        }
        let done: Vec<Done> = live.iter().map(|seen| self.done(seen)).collect();
        for step in play(&done, self.seen_ns, now_ns) {
            let seen = &live[step.index];
            self.sched.observe(seen.thread, step.state, seen.core, step.at_ns);
            if step.state == RunState::Running {
                self.charge(seen);
            }
        }
        self.seen_ns = now_ns;
    }

    /// What a back end that mentions all threads would say of those that it does not mention and that the mirror shows
    /// as doing something else: it takes them to run, or has moved them.
    fn not_where_they_were(&mut self) -> Vec<Observation> {
        let running = |core| Some((self.sched.core(core).running?, core));
        let running = self.sched.topology().cores().filter_map(running);
        let moved = self.displaced.iter().map(|(&thread, &core)| (thread, core));
        let silent = running.chain(moved);
        let silent = silent.filter(|&(thread, _)| self.mentioned[thread.index()] < self.looks);
        let observation = |(thread, core)| {
            let is_runnable = self.sched.thread(thread).state.is_runnable();
            Observation {
                thread,
                state: if is_runnable { RunState::Ready } else { RunState::Blocked },
                core,
                ran_ns: 0,
                // All the time.
                waited_ns: if is_runnable { Ns::MAX } else { 0 },
                instructions: 0,
                blame_ns: 0,
            }
        };
        let mut observations: Vec<Observation> = silent.map(observation).collect();
        observations.sort_by_key(|seen| seen.thread);
        self.displaced.clear();
        observations
    }

    fn done(&self, seen: &Observation) -> Done {
        Done {
            core: seen.core,
            ran_ns: self.dilation.to_policy(seen.ran_ns),
            waited_ns: self.dilation.to_policy(seen.waited_ns),
            is_runnable: seen.state.is_runnable(),
        }
    }

    /// Counts what a thread has used; it runs, or has ended or is held and may have run before.
    fn charge(&mut self, seen: &Observation) {
        let ran_ns = self.dilation.to_policy(seen.ran_ns);
        if ran_ns == 0 || self.sched.thread(seen.thread).state == RunState::Exited {
            return;
        }
        if self.sched.core(seen.core).running != Some(seen.thread) {
            self.sched.observe(seen.thread, RunState::Running, seen.core, self.seen_ns);
        }
        self.sched.charge(seen.core, ran_ns, seen.instructions);
    }

    /// Lets the policy decide if it is time; returns what to carry out.
    ///
    /// # Errors
    ///
    /// The policy asks for a change that none of its rules reads, or that its needs do not name.
    pub fn epoch(&mut self) -> Result<Vec<Decision>, Refusal> {
        let now_ns = self.seen_ns;
        if now_ns >= self.due_ns {
            let recent = self.sched.few_recent(&self.changed.threads);
            let view = View::new(&self.sched, &self.factors, now_ns).with_recent(recent.as_deref());
            self.policy.epoch(&view, &mut self.plan);
            self.changed.clear();
            self.epochs += 1;
            let period_ns = self.needs.epoch_ns.unwrap_or(Ns::MAX).max(1);
            // Epochs that were missed are not made up for.
            self.due_ns += (now_ns - self.due_ns) / period_ns * period_ns + period_ns;
        }
        let mut decisions = self.take_decisions()?;
        if self.places_by_load() {
            self.place_by_load();
            decisions.extend(self.take_decisions()?);
        }
        Ok(decisions)
    }

    /// What the policy has asked for since the last time, and what its rules have decided here.
    ///
    /// # Errors
    ///
    /// As for [`Driver::epoch`].
    pub fn take_decisions(&mut self) -> Result<Vec<Decision>, Refusal> {
        self.sched.check(&self.plan)?;
        let mut decisions: Vec<Decision> = Vec::new();
        for (thread, kind) in self.moves.drain(..) {
            self.changed.add(thread);
            let change = Change::Move(kind);
            self.sched.apply(thread, &change);
            decisions.push(Decision::Thread(thread, change));
        }
        for (thread, change) in self.plan.drain() {
            self.changed.add(thread);
            self.sched.apply(thread, &change);
            decisions.push(Decision::Thread(thread, self.dilation.change_to_real(change)));
        }
        let frequencies = self.plan.drain_frequencies();
        decisions.extend(frequencies.map(|(cluster, mhz)| Decision::Frequency(cluster, mhz)));
        let limits = self.plan.drain_limits();
        decisions.extend(limits.map(|(cluster, mhz)| Decision::Limit(cluster, mhz)));
        for decision in &decisions {
            if let Decision::Frequency(cluster, mhz) = decision {
                self.sched.set_wanted(*cluster, *mhz);
            }
        }
        Ok(decisions)
    }

    /// The cores on which a thread should be, for back ends that can only bind it: those that the plan allows
    /// and, of these, those of the kind that it prefers if there are any.
    pub fn cores_for(&self, thread: ThreadId) -> CoreSet {
        let (allowed, prefer) = (self.sched.affinity(thread), self.sched.plan(thread).prefer);
        let preferred: CoreSet = allowed
            .iter()
            .filter(|&core| prefer == Prefer::Any || self.kind_of(core) == prefer)
            .collect();
        if preferred.is_empty() { allowed.clone() } else { preferred }
    }

    fn kind_of(&self, core: CoreId) -> Prefer {
        self.sched.topology().kind(core)
    }

    fn tell(&mut self, event: Event, now_ns: Ns) {
        if self.needs.events.lifecycle {
            let view = View::new(&self.sched, &self.factors, now_ns);
            self.policy.on_event(&view, event, &mut self.plan);
        }
    }

    /// Whether the policy's decisions are only those that the kernel's own scheduler takes without it.
    pub fn changes_nothing(&self) -> bool {
        !self.rules_are_executed && plans_nothing(&self.needs, self.sched.rules())
    }

    /// Whether the policy is thresholds of load and nothing else: then its rules are applied here, look by
    /// look, for back ends whose fast plane cannot.
    fn places_by_load(&self) -> bool {
        !self.rules_are_executed && matches!(self.sched.rules().allocator, Allocator::ByLoad { .. })
    }

    /// What idle cores would take, and where threads on big cores would be put if they woke up now, as moves
    /// between the kinds of core.
    fn place_by_load(&mut self) {
        let mut cores: Vec<CoreId> = self.sched.topology().cores().collect();
        cores.sort_by_key(|&core| !self.sched.topology().is_big(core));
        for core in cores {
            if !self.sched.is_idle(core) {
                continue;
            }
            if let Pick::Run(thread) | Pick::Pull(thread) =
                self.sched.pick_by_rules(core, self.seen_ns)
            {
                self.move_to(thread, core);
            }
        }
        let on_big = |&thread: &ThreadId| {
            let state = self.sched.thread(thread);
            state.state != RunState::Held && self.kind_of(state.core) == Prefer::Big
        };
        let threads: Vec<ThreadId> = self.sched.live_threads().filter(on_big).collect();
        for thread in threads {
            self.move_to(thread, self.sched.place_by_rules(thread, self.seen_ns));
        }
    }

    fn move_to(&mut self, thread: ThreadId, core: CoreId) {
        let (state, kind) = (self.sched.thread(thread), self.kind_of(core));
        if self.kind_of(state.core) == kind && self.sched.plan(thread).prefer == kind {
            return;
        }
        let seen = if state.state.is_runnable() { RunState::Ready } else { state.state };
        self.changed.add(thread);
        self.moves.push((thread, kind));
        self.displaced.entry(thread).or_insert(state.core);
        self.sched.observe(thread, seen, core, self.seen_ns);
    }
}

/// Threads of which something was told, each once.
#[derive(Default)]
struct ChangedThreads {
    threads: Vec<ThreadId>,
    /// By thread.
    is_told: Vec<bool>,
}

impl ChangedThreads {
    fn add(&mut self, thread: ThreadId) {
        if self.is_told.len() <= thread.index() {
            self.is_told.resize(thread.index() + 1, false);
        }
        if !std::mem::replace(&mut self.is_told[thread.index()], true) {
            self.threads.push(thread);
        }
    }

    fn clear(&mut self) {
        self.threads.drain(..).for_each(|thread| self.is_told[thread.index()] = false);
    }
}

/// Whether a thread has a place among those that run, wait or sleep.
fn is_scheduled(state: RunState) -> bool {
    state.is_runnable() || state == RunState::Blocked
}
