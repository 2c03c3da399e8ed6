//! Stall counters that policies get: as of the core where a thread runs, agreeing with its speed.

mod common;

use std::sync::{Arc, Mutex};

use ampsched_model::{
    App, ClassId, ClusterId, CoreId, Costs, Machine, Ns, ThreadId, Workload, parse_program,
};
use ampsched_policy::{
    Change, Event, Events, Needs, Plan, Policy, Rules, Stalls, Topology, View, build_policy,
};
use ampsched_sim::{FactorSource, Options, simulate};

use common::shipped_catalog;

/// What is known of a thread at an epoch.
#[derive(Clone, Copy, Debug)]
struct Seen {
    class: ClassId,
    instructions: u64,
    stalls: Option<Stalls>,
}

/// CFS that moves thread 0 to and fro between the clusters and writes down what it is told.
struct Probe {
    rules: Box<dyn Policy>,
    needs_stalls: bool,
    mhz: Option<u32>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Probe {
    fn look(&self, view: &View) {
        let (thread, topology) = (ThreadId(0), view.topology());
        self.seen.lock().unwrap().push(Seen {
            class: topology.core(view.core(thread)).class,
            instructions: view.instructions_total(thread),
            stalls: view.factors(thread).stalls,
        });
    }
}

const EPOCH_NS: Ns = 10_000_000;

impl Policy for Probe {
    fn needs(&self) -> Needs {
        Needs {
            stalls: self.needs_stalls,
            instructions: true,
            frequencies: true,
            epoch_ns: Some(EPOCH_NS),
            events: Events { lifecycle: true, ..Events::default() },
            ..Needs::default()
        }
    }

    fn rules(&self, topology: &Topology) -> Rules {
        self.rules.rules(topology)
    }

    fn on_event(&mut self, view: &View, event: Event, plan: &mut Plan) {
        if event == Event::Added(ThreadId(0)) {
            self.look(view);
            if let Some(mhz) = self.mhz {
                plan.set_frequency(ClusterId(0), mhz);
            }
        }
    }

    fn epoch(&mut self, view: &View, plan: &mut Plan) {
        self.look(view);
        let count = self.seen.lock().unwrap().len();
        let target = CoreId::from(if count % 4 < 2 { 0 } else { view.topology().core_count() - 1 });
        plan.set(ThreadId(0), Change::Affinity([target].into_iter().collect()));
    }
}

/// 100 ms of a program of one thread that computes with one profile.
fn seen(machine: &Machine, probe: impl FnOnce(&mut Probe), factors: FactorSource) -> Vec<Seen> {
    let catalog = shipped_catalog();
    let program = "name = 'p'\ndescription = 'd'\n[[threads]]\nname = 't'\n\
                   body = [{ compute = 10_000_000_000, profile = 'mcf' }]";
    let program = parse_program("p.toml", program).unwrap();
    let program = program.instantiate(&[], catalog.profiles()).unwrap();
    let app = App { name: "p".into(), program: program.into(), start_ns: 0, nice: 0 };
    let workload = Workload { name: "w".into(), description: String::new(), apps: vec![app] };
    let seen = Arc::new(Mutex::new(Vec::new()));
    let rules = build_policy("cfs", &[]).unwrap();
    let mut policy = Probe { rules, needs_stalls: true, mhz: None, seen: seen.clone() };
    probe(&mut policy);
    let options = Options { factors, until_ns: Some(100_000_000), ..Options::default() };
    simulate(machine, &workload, "probe", Box::new(policy), &options).unwrap();
    let seen = seen.lock().unwrap();
    seen.clone()
}

fn machine(name: &str) -> Machine {
    Machine { costs: Costs::default(), ..shipped_catalog().machine(name).unwrap() }
}

#[test]
fn stalls_are_those_of_the_core_and_agree_with_the_speed() {
    let machine = machine("2B2S");
    let seen = seen(&machine, |_| {}, FactorSource::Oracle);
    assert!(seen[0].stalls.is_none(), "it has not run yet");
    let mut classes = Vec::new();
    for (number, pair) in seen.windows(2).enumerate() {
        let (before, after) = (pair[0], pair[1]);
        let stalls = after.stalls.unwrap();
        assert_eq!((stalls.class, stalls.at_ns), (after.class, (number as u64 + 1) * EPOCH_NS));
        let mhz = [1200.0, 2000.0][stalls.class.index()];
        let cycles = mhz * 1e-3 * EPOCH_NS as f64;
        let cpi = cycles / (after.instructions - before.instructions) as f64;
        assert!((stalls.counters.cpi() / cpi - 1.0).abs() < 1e-5, "{stalls:?} {cpi}");
        classes.push(stalls.class.0);
    }
    classes.sort_unstable();
    classes.dedup();
    assert_eq!(classes, [0, 1], "it ran on both");
}

#[test]
fn memory_takes_fewer_cycles_at_a_lower_clock() {
    let machine = machine("exynos5422");
    let at = |mhz| {
        let seen = seen(&machine, |probe| probe.mhz = mhz, FactorSource::Oracle);
        let mut found = seen.iter().filter_map(|seen| seen.stalls);
        let first = machine.clusters[0].class;
        found.rfind(|stalls| stalls.class == first).unwrap().counters
    };
    let (full, half) = (at(None), at(Some(machine.clusters[0].max_mhz() / 2)));
    assert!((full.cpi_base / half.cpi_base - 1.0).abs() < 1e-9);
    assert!((full.cpi_memory / half.cpi_memory - 2.0).abs() < 1e-9);
}

#[test]
fn who_does_not_ask_or_may_not_know_gets_none() {
    let machine = machine("2B2S");
    for seen in [
        seen(&machine, |probe| probe.needs_stalls = false, FactorSource::Oracle),
        seen(&machine, |_| {}, FactorSource::Missing),
    ] {
        assert!(seen.len() > 5 && seen.iter().all(|seen| seen.stalls.is_none()));
    }
}
