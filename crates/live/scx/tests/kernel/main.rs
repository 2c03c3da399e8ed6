//! What the scheduler in the kernel does when the kernel calls it (`bpf/host.h`) keeps its books right and loses no
//! thread, in whatever order a model of the kernel calls it.

mod callbacks;
mod check;
mod events;
mod machine;
#[path = "../conformance/subjects.rs"]
mod subjects;

use ampsched_model::Draw;
use ampsched_policy::{Needs, REGISTRY, Rules, Topology, build_policy};
use ampsched_scx::lower;
use ampsched_scx::native::{self, Native};

use crate::events::Events;
use crate::machine::Machine;
use crate::subjects::{random_rules, topologies};

/// Random events per trace.
const STEPS: usize = 300;
/// Room for threads.
const THREADS_MAX: u32 = 64;

/// Traces per policy, or of random rules. `TRACES` in the environment asks for more.
fn traces(fallback: u64) -> u64 {
    std::env::var("TRACES").map_or(fallback, |text| text.parse().expect("TRACES is a number"))
}

/// Traces take turns with the machines.
fn topology_of(seed: u64) -> Topology {
    let mut all = topologies();
    let index = seed % all.len() as u64;
    all.swap_remove(index as usize)
}

fn run(what: &str, topology: &Topology, rules: &Rules, seed: u64) {
    let lowered = lower::rules(what, &Needs::default(), rules, topology).unwrap();
    let state = lower::state(lowered, rules, topology, THREADS_MAX);
    let balances = rules.balance.is_some_and(|balance| balance.period_ns > 0);
    native::doing(&format!("seed {seed} of {what}"));
    let mut events = Events::new(Machine::new(Native::new(state)), balances, seed);
    if let Err(fault) = events.run(STEPS) {
        let story: Vec<String> = events.machine.story.into();
        panic!("seed {seed} of {what}: {fault}\n{}", story.join("\n"));
    }
}

#[test]
fn no_policy_loses_a_thread_in_the_kernel() {
    let mut done: Vec<Vec<Rules>> = Vec::new();
    for info in REGISTRY {
        let policy = build_policy(info.name, &[]).unwrap();
        let on_all: Vec<_> = topologies().iter().map(|topology| policy.rules(topology)).collect();
        let first = &topologies()[0];
        let is_lowered = lower::rules(info.name, &Needs::default(), &on_all[0], first).is_ok();
        if !is_lowered || done.contains(&on_all) {
            continue;
        }
        for seed in 0..traces(50) {
            let topology = topology_of(seed);
            run(info.name, &topology, &policy.rules(&topology), seed);
        }
        done.push(on_all);
    }
    assert!(done.len() >= 9, "only {} sets of rules were tried", done.len());
}

#[test]
fn random_rules_lose_no_thread_in_the_kernel() {
    for seed in 0..traces(300) {
        let rules = random_rules(&mut Draw::new(seed).child(1));
        run(&format!("{rules:?}"), &topology_of(seed), &rules, seed);
    }
}
