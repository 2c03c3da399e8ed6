//! A host for tests of policies: it holds a Sched, applies plans and keeps factors.

use ampsched_model::{AppId, ClassId, CoreId, Ns, ThreadId};

use crate::{
    ClusterInfo, EnqueueKind, Event, Factor, FactorKind, Factors, Needs, Pick, Plan, Policy,
    Refusal, RunState, Sched, Topology, View, build_policy,
};

/// A topology of clusters, each a class and a number of cores.
pub fn topology(clusters: &[(u8, usize)]) -> Topology {
    let mut next = 0;
    let clusters = clusters.iter().map(|&(class, count)| {
        let cores = (next..next + count).map(CoreId::from).collect();
        next += count;
        let (class, freqs_mhz) = (ClassId(class), vec![1000]);
        ClusterInfo {
            shares_l2: false,
            class,
            cores,
            freqs_mhz,
            design: None,
            energy_model: Vec::new(),
        }
    });
    Topology::from_clusters(clusters.collect())
}

/// A policy with parameters.
pub fn build(name: &str, params: &[(&str, f64)]) -> Box<dyn Policy> {
    let params: Vec<(String, f64)> = params.iter().map(|&(n, v)| (n.to_owned(), v)).collect();
    build_policy(name, &params).unwrap()
}

/// A policy and the system that it sees.
pub struct PolicyHost {
    pub sched: Sched,
    pub factors: Vec<Factors>,
    pub now_ns: Ns,
    /// All that the policy has asked for.
    pub asked: Vec<String>,
    policy: Box<dyn Policy>,
    plan: Plan,
    /// The factors that the policy's needs name.
    named: Vec<Factors>,
}

impl PolicyHost {
    pub fn new(clusters: &[(u8, usize)], policy: Box<dyn Policy>) -> Self {
        Self::on(topology(clusters), policy)
    }

    pub fn on(topology: Topology, policy: Box<dyn Policy>) -> Self {
        let needs = policy.needs();
        Self::giving(&needs, topology, policy).unwrap_or_else(|why| panic!("the policy {why}"))
    }

    /// A host that gives the policy what these needs name, whatever its own.
    pub fn giving(
        needs: &Needs,
        topology: Topology,
        policy: Box<dyn Policy>,
    ) -> Result<Self, Refusal> {
        let rules = policy.rules(&topology);
        let mut sched = Sched::new(topology, rules);
        sched.serve(needs)?;
        Ok(Self {
            sched,
            factors: Vec::new(),
            now_ns: 0,
            asked: Vec::new(),
            policy,
            plan: Plan::new(),
            named: Vec::new(),
        })
    }

    /// A new thread, blocked and not yet told to the policy.
    fn add_silent(&mut self, app: AppId, speedup: Option<f64>) -> ThreadId {
        let thread = self.sched.add(app, 1024, None);
        let known = |value| Factor { value, kind: FactorKind::Oracle, at_ns: 0 };
        self.factors.push(Factors {
            speedup: speedup.map(known).unwrap_or_default(),
            ..Factors::default()
        });
        thread
    }

    /// A new thread in the queue of the core that the rules choose.
    pub fn add(&mut self, speedup: Option<f64>) -> ThreadId {
        self.add_to(AppId(0), speedup)
    }

    /// The same for a thread of some application.
    pub fn add_to(&mut self, app: AppId, speedup: Option<f64>) -> ThreadId {
        let thread = self.add_silent(app, speedup);
        self.refresh();
        let view = View::new(&self.sched, &self.named, self.now_ns);
        self.policy.on_event(&view, Event::Added(thread), &mut self.plan);
        self.apply();
        let core = self.sched.place_by_rules(thread, self.now_ns);
        self.sched.enqueue(thread, core, EnqueueKind::Fork, self.now_ns);
        thread
    }

    /// Programs of one thread each with these speed-ups.
    pub fn add_programs(&mut self, speedups: &[f64]) -> Vec<ThreadId> {
        let add = |(app, &speedup)| self.add_to(AppId(app), Some(speedup));
        (0..).zip(speedups).map(add).collect()
    }

    /// The part of the time until now that each thread has had on fast cores.
    pub fn fast_shares(&self, threads: &[ThreadId]) -> Vec<f64> {
        let fast_ns = |&thread: &ThreadId| self.sched.stats(thread).run_ns[1..].iter().sum::<Ns>();
        threads.iter().map(|thread| fast_ns(thread) as f64 / self.now_ns as f64).collect()
    }

    /// A new thread that others have waited for.
    pub fn add_blamed(&mut self, speedup: f64, blame_ns: Ns) -> ThreadId {
        let thread = self.add(Some(speedup));
        self.sched.blame(thread, blame_ns);
        thread
    }

    /// Lets a waiting thread run for some time where it waits and puts it back.
    pub fn run_alone(&mut self, thread: ThreadId, ran_ns: Ns, instructions: u64) {
        let core = self.sched.thread(thread).core;
        self.sched.start(core, thread, self.now_ns);
        self.now_ns += ran_ns;
        self.sched.charge(core, ran_ns, instructions);
        self.sched.stop(core, RunState::Ready, self.now_ns);
        self.sched.enqueue(thread, core, EnqueueKind::Requeue, self.now_ns);
    }

    /// Every core without a thread takes one; then time passes and all that run are charged, a tenth of
    /// an instruction per ns.
    pub fn run(&mut self, ran_ns: Ns) {
        let cores: Vec<CoreId> = self.sched.topology().cores().collect();
        for &core in &cores {
            if self.sched.core(core).running.is_some() {
                continue;
            }
            match self.sched.pick_by_rules(core, self.now_ns) {
                Pick::Run(thread) => drop(self.sched.start(core, thread, self.now_ns)),
                Pick::Pull(thread) => {
                    self.sched.requeue(self.sched.thread(thread).core, self.now_ns);
                    self.sched.start(core, thread, self.now_ns);
                }
                Pick::Idle { .. } => {}
            }
        }
        self.now_ns += ran_ns;
        for core in cores {
            if self.sched.core(core).running.is_some() {
                self.sched.charge(core, ran_ns, ran_ns / 10);
            }
        }
    }

    /// Lets a running thread block.
    pub fn block(&mut self, thread: ThreadId) {
        let core = self.sched.thread(thread).core;
        self.sched.stop(core, RunState::Blocked, self.now_ns);
    }

    /// Lets a blocked thread wake up where the policy puts it.
    pub fn wake(&mut self, thread: ThreadId) {
        let view = View::new(&self.sched, &self.named, self.now_ns);
        let target = match self.sched.needs().hooks.place {
            true => self.policy.place(&view, thread),
            false => self.sched.place_by_rules(thread, self.now_ns),
        };
        self.sched.enqueue(thread, target, EnqueueKind::Wake, self.now_ns);
    }

    /// What a policy sees now, if its needs name all factors.
    pub fn view(&self) -> View<'_> {
        View::new(&self.sched, &self.factors, self.now_ns)
    }

    /// The threads on cores that are not of the slowest class, running or waiting.
    pub fn on_fast(&self) -> Vec<ThreadId> {
        let all = (0..self.sched.thread_count()).map(ThreadId::from);
        let fast = |&thread: &ThreadId| {
            let state = self.sched.thread(thread);
            state.state.is_runnable() && self.sched.topology().is_big(state.core)
        };
        all.filter(fast).collect()
    }

    /// One epoch; returns the number of changes.
    pub fn epoch(&mut self) -> usize {
        self.now_ns += self.policy.needs().epoch_ns.unwrap();
        self.epoch_now()
    }

    /// Lets time pass until the next epoch; then it happens.
    pub fn run_epoch(&mut self) -> usize {
        self.run(self.policy.needs().epoch_ns.unwrap());
        self.epoch_now()
    }

    fn epoch_now(&mut self) -> usize {
        self.refresh();
        let view = View::new(&self.sched, &self.named, self.now_ns);
        self.policy.epoch(&view, &mut self.plan);
        self.apply()
    }

    fn refresh(&mut self) {
        for (index, factors) in self.factors.iter_mut().enumerate() {
            let blame_ns = self.sched.blame_ns(ThreadId::from(index));
            factors.blame_ns =
                Factor { value: blame_ns as f64, kind: FactorKind::Measured, at_ns: self.now_ns };
        }
        let needs = self.sched.needs();
        self.named = self.factors.iter().map(|factors| factors.named_by(needs)).collect();
    }

    fn apply(&mut self) -> usize {
        self.sched.check(&self.plan).unwrap_or_else(|refusal| panic!("the policy {refusal}"));
        self.asked.extend(self.plan.drain_frequencies().map(|asked| format!("{asked:?}")));
        self.asked.extend(self.plan.drain_limits().map(|asked| format!("at most {asked:?}")));
        let changes: Vec<_> = self.plan.drain().collect();
        self.asked.extend(changes.iter().map(|asked| format!("{asked:?}")));
        for (thread, change) in &changes {
            if self.sched.apply(*thread, change).moves {
                match self.sched.thread(*thread).state {
                    RunState::Running => {
                        let core = self.sched.thread(*thread).core;
                        self.sched.stop(core, RunState::Ready, self.now_ns);
                    }
                    RunState::Held => {}
                    _ => self.sched.dequeue(*thread),
                }
                if self.sched.plan(*thread).held {
                    self.sched.hold(*thread, self.now_ns);
                    continue;
                }
                let core = self.sched.place_by_rules(*thread, self.now_ns);
                self.sched.enqueue(*thread, core, EnqueueKind::Requeue, self.now_ns);
            }
        }
        changes.len()
    }
}
