//! Scenes that can be changed in known ways, and what is told of them.

use ampsched_model::Ns;
use ampsched_policy::REGISTRY;
use ampsched_sim::Outcome;

use super::setup::{Cluster, Setup, compute, costs, machine, thread, us};
use crate::dice::Dice;

/// A step of a thread; times are in ns.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// So many instructions, a multiple of 8.
    Work(u64),
    /// The same with a mutex held.
    Locked(u64),
    Sleep(u64),
    /// A device is used.
    Device(u64),
    Yield,
}

/// A thread.
#[derive(Clone, Debug)]
pub struct Plan {
    pub name: String,
    pub start: u64,
    pub nice: i64,
    /// Lines that say which cores it may use, and of which class it is.
    pub keys: String,
    /// What it does; all threads meet behind each round.
    pub rounds: Vec<Vec<Step>>,
}

impl Plan {
    /// It may use these cores and no others.
    pub fn bind(&mut self, cores: &[u64]) {
        let class = self.keys.lines().filter(|line| !line.starts_with("cores"));
        let class: String = class.map(|line| format!("{line}\n")).collect();
        self.keys = format!("{class}cores = {cores:?}\n");
    }
}

/// A machine of unequal cores, threads and a policy.
#[derive(Clone, Debug)]
pub struct Scene {
    /// Numbers of cores and frequencies.
    pub clusters: Vec<(u64, u64)>,
    pub costs: Vec<(&'static str, u64)>,
    pub meets: bool,
    pub threads: Vec<Plan>,
    pub policy: String,
    pub until: Option<Ns>,
    pub seed: u64,
}

impl Scene {
    /// A scene under any policy.
    pub fn new(dice: &mut Dice) -> Self {
        let count = *dice.of(&[1, 2, 2, 3]);
        let mut clusters: Vec<(u64, u64)> =
            (0..count).map(|_| (dice.whole(1..=3), *dice.of(&[1000, 2000, 4000]))).collect();
        clusters.dedup_by_key(|cluster| cluster.1);
        let cores = clusters.iter().map(|cluster| cluster.0).sum();
        let mut cost = |key: &'static str| {
            let is_free = dice.once_in(2);
            (key, if is_free { 0 } else { dice.whole(1..=9000) })
        };
        let costs = [
            "context_switch_ns",
            "migrate_same_cluster_ns",
            "migrate_cross_cluster_ns",
            "wakeup_latency_ns",
        ]
        .map(&mut cost)
        .to_vec();
        let rounds = dice.whole(1..=4);
        let threads =
            (0..dice.whole(1..=6)).map(|number| plan(dice, number, rounds, cores)).collect();
        let policy = REGISTRY[dice.index(REGISTRY.len())].name.to_owned();
        Self { clusters, costs, meets: dice.once_in(3), threads, policy, until: None, seed: 1 }
    }

    /// All steps of all threads.
    pub fn steps(&mut self) -> impl Iterator<Item = &mut Step> {
        self.threads.iter_mut().flat_map(|thread| thread.rounds.iter_mut().flatten())
    }

    /// One thread does more, which the results have to show.
    pub fn add_work(&mut self) {
        self.threads[0].rounds[0].push(Step::Work(8_000_000));
    }

    /// The files.
    pub fn setup(&self) -> Setup {
        let clusters: Vec<Cluster> =
            self.clusters.iter().map(|&(cores, mhz)| Cluster::new(cores, mhz)).collect();
        let machine = machine(&clusters, &costs(&self.costs));
        let mut program = "[mutexes.m]\n[devices.d]\n[barriers.b]\n".to_owned();
        for plan in &self.threads {
            let mut body: Vec<String> = Vec::new();
            for round in &plan.rounds {
                body.extend(round.iter().map(text));
                body.extend(self.meets.then(|| "{ barrier = \"b\" }".to_owned()));
            }
            let Plan { start, nice, keys, .. } = plan;
            let keys = format!("start_us = {}\nnice = {nice}\n{keys}", us(*start));
            program += &thread(&plan.name, &keys, &body);
        }
        if !self.meets {
            program = program.replacen("[barriers.b]\n", "", 1);
        }
        let mut setup = Setup::new(machine, program, &self.policy);
        setup.options.until_ns = self.until;
        setup.options.seed = self.seed;
        setup
    }
}

fn text(step: &Step) -> String {
    match step {
        Step::Work(work) => compute(*work),
        Step::Locked(work) => {
            format!("{{ lock = \"m\" }}, {}, {{ unlock = \"m\" }}", compute(*work))
        }
        Step::Sleep(ns) => format!("{{ sleep_us = {} }}", us(*ns)),
        Step::Device(ns) => format!("{{ io_us = {}, device = \"d\" }}", us(*ns)),
        Step::Yield => "{ yield = true }".to_owned(),
    }
}

fn plan(dice: &mut Dice, number: u64, rounds: u64, cores: u64) -> Plan {
    let class = match dice.whole(0..=9) {
        0 => format!("class = \"fifo\"\npriority = {}\n", dice.whole(1..=99)),
        1 => format!("class = \"rr\"\npriority = {}\n", dice.whole(1..=5)),
        2 => "class = \"batch\"\n".to_owned(),
        _ => String::new(),
    };
    let bound = match dice.once_in(4) {
        true => format!("cores = [{}]\n", dice.whole(0..=cores - 1)),
        false => String::new(),
    };
    let longest = dice.whole(1..=400_000);
    let rounds = (0..rounds)
        .map(|_| {
            let mut round = vec![Step::Work(8 * dice.whole(1..=longest))];
            for _ in 0..dice.whole(0..=3) {
                let (work, ns) = (8 * dice.whole(1..=longest), dice.whole(1..=1_500_000));
                round.push(match dice.whole(0..=7) {
                    0 | 1 => Step::Sleep(ns),
                    2 => Step::Device(ns),
                    3 => Step::Yield,
                    4 | 5 => Step::Locked(work),
                    _ => Step::Work(work),
                });
            }
            round
        })
        .collect();
    Plan {
        name: format!("t{number}"),
        start: dice.whole(0..=1) * dice.whole(0..=3_000_000),
        nice: if dice.once_in(3) { dice.whole(0..=20) as i64 - 10 } else { 0 },
        keys: class + &bound,
        rounds,
    }
}

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Ns,
    Instructions,
    Times,
}

/// All whole numbers of the results, with words for them; nothing that is a name.
pub fn facts(outcome: &Outcome) -> Vec<(String, Unit, u64)> {
    let mut facts = vec![("makespan".to_owned(), Unit::Ns, outcome.makespan_ns)];
    for (number, thread) in outcome.threads.iter().enumerate() {
        let mut add = |what: &str, unit, value| {
            facts.push((format!("{what} of thread {number}"), unit, value));
        };
        add("start", Unit::Ns, thread.start_ns);
        add("end", Unit::Ns, thread.end_ns);
        for (class, class_ns) in thread.class_ns.iter().enumerate() {
            add(&format!("time on class {class}"), Unit::Ns, *class_ns);
        }
        add("ready time", Unit::Ns, thread.ready_ns);
        add("longest ready time", Unit::Ns, thread.ready_ns_max);
        add("blocked time", Unit::Ns, thread.blocked_ns);
        add("blame", Unit::Ns, thread.blame_ns);
        add("longest latency", Unit::Ns, thread.latency.max_ns);
        add("instructions", Unit::Instructions, thread.instructions);
        add("demanded instructions", Unit::Instructions, thread.instructions_demanded);
        add("switches", Unit::Times, thread.switches);
        add("voluntary switches", Unit::Times, thread.voluntary);
        add("involuntary switches", Unit::Times, thread.involuntary);
        add("migrations", Unit::Times, thread.migrations);
    }
    for (number, core) in outcome.cores.iter().enumerate() {
        let mut add = |what: &str, unit, value| {
            facts.push((format!("{what} of core {number}"), unit, value));
        };
        add("busy time", Unit::Ns, core.busy_ns);
        add("overhead", Unit::Ns, core.overhead_ns);
        add("switches", Unit::Times, core.switches);
    }
    let counts = &outcome.counts;
    for (what, count) in [
        ("dispatches", counts.dispatches),
        ("wake-ups", counts.wakeups),
        ("pre-emptions", counts.preemptions),
    ] {
        facts.push((what.to_owned(), Unit::Times, count));
    }
    facts
}
