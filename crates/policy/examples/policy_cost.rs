//! What each policy costs: time per decision of its fast plane and per epoch of its slow plane, for 64
//! threads of 8 applications on 4 big and 4 little cores.
//!
//! Prints one line per policy: name, ns per decision, ns per epoch (0 if it has none). Medians of
//! several rounds, with all policies in each round; with names as arguments, only those. `make -C lab bench` shows them
//! as a table.

use std::hint::black_box;
use std::time::Instant;

use ampsched_model::{AppId, ClassId, CoreId, Ns, Pipeline, StallCounters, ThreadId};
use ampsched_policy::{
    Change, ClusterInfo, CoreDesign, EnqueueKind, Event, Factor, FactorKind, Factors, Pick, Plan,
    Policy, REGISTRY, RunState, Sched, Stalls, Topology, View, build_policy,
};

const THREADS: usize = 64;
const APPS: usize = 8;
const CORES: usize = 8;
const ROUNDS: usize = 9;
const EPOCHS: usize = 400;
const STEP_NS: Ns = 700_000;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let mut names: Vec<&str> = wanted.iter().map(String::as_str).collect();
    if names.is_empty() {
        names = REGISTRY.iter().map(|info| info.name).collect();
    }
    let mut costs = vec![(Vec::new(), Vec::new()); names.len()];
    for _ in 0..ROUNDS {
        for (name, (decisions, epochs)) in names.iter().zip(&mut costs) {
            let (decision_ns, epoch_ns) = System::new(name).measure();
            decisions.push(decision_ns);
            epochs.push(epoch_ns);
        }
    }
    for (name, (mut decisions, mut epochs)) in names.into_iter().zip(costs) {
        println!("{name} {:.1} {:.1}", median(&mut decisions), median(&mut epochs));
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A policy and the threads that it schedules.
struct System {
    policy: Box<dyn Policy>,
    sched: Sched,
    factors: Vec<Factors>,
    plan: Plan,
    now_ns: Ns,
    decisions: u64,
}

impl System {
    fn new(name: &str) -> Self {
        let policy = build_policy(name, &[]).unwrap_or_else(|error| panic!("{error}"));
        let cluster = |class, cores: std::ops::Range<usize>, pipeline| ClusterInfo {
            shares_l2: false,
            class: ClassId(class),
            cores: cores.map(CoreId::from).collect(),
            freqs_mhz: vec![1000],
            design: Some(CoreDesign { pipeline, width: 3.0, window: 128.0 }),
            energy_model: Vec::new(),
        };
        let topology = Topology::from_clusters(vec![
            cluster(1, 0..CORES / 2, Pipeline::OutOfOrder),
            cluster(0, CORES / 2..CORES, Pipeline::InOrder),
        ]);
        let mut sched = Sched::new(topology.clone(), policy.rules(&topology));
        sched.serve(&policy.needs()).expect("a shipped policy keeps to its contract");
        let mut system =
            Self { policy, sched, factors: Vec::new(), plan: Plan::new(), now_ns: 0, decisions: 0 };
        for index in 0..THREADS {
            system.add(index);
        }
        system
    }

    fn add(&mut self, index: usize) {
        let thread = self.sched.add(AppId((index % APPS) as u16), 1024, None);
        let known = |value| Factor { value, kind: FactorKind::Measured, at_ns: 0 };
        let speedup = 1.2 + 2.0 * (index * 7 % THREADS) as f64 / THREADS as f64;
        self.factors.push(Factors {
            speedup: known(speedup),
            offline_speedup: known(speedup),
            ..Factors::default()
        });
        let view = View::new(&self.sched, &self.factors, self.now_ns);
        self.policy.on_event(&view, Event::Added(thread), &mut self.plan);
        self.apply();
        let core = self.sched.place_by_rules(thread, self.now_ns);
        self.sched.enqueue(thread, core, EnqueueKind::Fork, self.now_ns);
    }

    /// Mean ns per decision and per epoch.
    fn measure(mut self) -> (f64, f64) {
        let epoch_ns = self.policy.needs().epoch_ns;
        let steps = epoch_ns.map_or(14, |ns| (ns / STEP_NS).clamp(1, 14));
        let (mut deciding_ns, mut looking_ns) = (0u128, 0u128);
        for epoch in 0..EPOCHS {
            let start = Instant::now();
            for step in 0..steps as usize {
                self.step(epoch + step);
            }
            deciding_ns += start.elapsed().as_nanos();
            if epoch_ns.is_some() {
                self.observe(epoch);
                let start = Instant::now();
                let view = View::new(&self.sched, &self.factors, self.now_ns);
                self.policy.epoch(&view, &mut self.plan);
                looking_ns += start.elapsed().as_nanos();
                self.apply();
            }
        }
        (deciding_ns as f64 / self.decisions as f64, looking_ns as f64 / EPOCHS as f64)
    }

    /// Every core runs a slice and takes what comes next; some threads block and wake at once.
    fn step(&mut self, step: usize) {
        self.now_ns += STEP_NS;
        for core in (0..CORES).map(CoreId::from) {
            self.leave(core, (step + core.index()) % 5 == 0);
            match self.sched.pick_by_rules(core, self.now_ns) {
                Pick::Run(thread) => drop(self.sched.start(core, thread, self.now_ns)),
                Pick::Pull(thread) => {
                    self.sched.requeue(self.sched.thread(thread).core, self.now_ns);
                    self.sched.start(core, thread, self.now_ns);
                }
                Pick::Idle { .. } => {}
            }
            self.decisions += 1;
        }
    }

    fn leave(&mut self, core: CoreId, blocks: bool) {
        let Some(thread) = self.sched.core(core).running else { return };
        self.sched.charge(core, STEP_NS, STEP_NS);
        black_box(self.sched.expiry_ns(core, None, self.now_ns));
        if !blocks {
            return self.sched.requeue(core, self.now_ns);
        }
        self.sched.stop(core, RunState::Blocked, self.now_ns);
        self.sched.blame(ThreadId::from((thread.index() + 1) % THREADS), STEP_NS);
        let target = self.sched.place_by_rules_near(thread, Some(core), self.now_ns);
        self.sched.enqueue(thread, target, EnqueueKind::Wake, self.now_ns);
        if let Some(running) = self.sched.core(target).running {
            black_box(self.sched.preempts_by_rules(thread, running, target));
        }
    }

    /// What a host measures between epochs: blame, and speed-ups that drift.
    fn observe(&mut self, epoch: usize) {
        for (index, factors) in self.factors.iter_mut().enumerate() {
            let blame_ns = self.sched.blame_ns(ThreadId::from(index)) as f64;
            let at_ns = self.now_ns;
            factors.blame_ns = Factor { value: blame_ns, kind: FactorKind::Measured, at_ns };
            factors.stalls = stalls(&self.sched, index, at_ns);
            let drift = if (epoch / 20 + index) % 2 == 0 { 1.01 } else { 1.0 / 1.01 };
            factors.speedup.value = (factors.speedup.value * drift).clamp(1.0, 4.0);
            factors.speedup.at_ns = at_ns;
        }
    }

    fn apply(&mut self) {
        let changes: Vec<(ThreadId, Change)> = self.plan.drain().collect();
        for (thread, change) in changes {
            if !self.sched.apply(thread, &change).moves {
                continue;
            }
            let state = self.sched.thread(thread);
            match state.state {
                RunState::Running => {
                    let core = state.core;
                    self.sched.stop(core, RunState::Ready, self.now_ns);
                }
                _ => self.sched.dequeue(thread),
            }
            let core = self.sched.place_by_rules(thread, self.now_ns);
            self.sched.enqueue(thread, core, EnqueueKind::Requeue, self.now_ns);
        }
    }
}

/// Stalls on the core where a thread ran last: from none to most cycles, by its number.
fn stalls(sched: &Sched, index: usize, at_ns: Ns) -> Option<Stalls> {
    let core = sched.thread(ThreadId::from(index)).ran_on?;
    let cpi_memory = 3.0 * (index * 11 % THREADS) as f64 / THREADS as f64;
    let counters = StallCounters {
        cpi_base: 0.8,
        cpi_memory,
        llc_mpi: cpi_memory / 200.0,
        mlp: 1.5,
        dependence: [0.4, 0.2, 0.1],
        load_use_distance: 5.0,
    };
    Some(Stalls { class: sched.topology().core(core).class, counters, at_ns })
}
