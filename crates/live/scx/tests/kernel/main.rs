//! What the scheduler in the kernel does when the kernel calls it (`bpf/calls.h`) keeps its books right and loses no
//! thread, in whatever order a model of the kernel calls it.

mod callbacks;
mod check;
mod events;
mod hotplug;
mod machine;
#[path = "../subjects/mod.rs"]
mod subjects;
mod watch;

use ampsched_policy::{LoadTracking, PELT_UNIT_NS, Rules, Topology};
use ampsched_scx::native::{self, Native};
use ampsched_scx::{layout, lower};

use crate::events::Events;
use crate::machine::Machine;
use crate::subjects::{traces, try_policies, try_random_rules};

/// Random events per trace.
const STEPS: usize = 300;
/// Room for threads.
const THREADS_MAX: u32 = 64;

fn run(
    what: &str,
    topology: &Topology,
    rules: &Rules,
    lowered: layout::Rules,
    tracking: Option<LoadTracking>,
    seed: u64,
) {
    let mut state = lower::state(lowered, rules, topology, THREADS_MAX);
    if let Some(how) = tracking {
        lower::track_load(&mut state, how, topology, PELT_UNIT_NS);
    }
    let balances = rules.balance.is_some_and(|balance| balance.period_ns > 0);
    native::doing(&format!("seed {seed} of {what}"));
    let mut events = Events::new(Machine::new(Native::new(&state)), balances, seed);
    if let Err(fault) = events.run(STEPS) {
        let story: Vec<String> = events.machine.story.into();
        panic!("seed {seed} of {what}: {fault}\n{}", story.join("\n"));
    }
}

#[test]
fn no_policy_loses_a_thread_in_the_kernel() {
    let count = try_policies(traces(50), |name, topology, rules, lowered, tracking, seed| {
        run(name, &topology, &rules, lowered, tracking, seed);
    });
    assert!(count >= 9, "only {count} sets of rules were tried");
}

#[test]
fn random_rules_lose_no_thread_in_the_kernel() {
    try_random_rules(traces(300), |name, topology, rules, lowered, tracking, seed| {
        run(name, &topology, &rules, lowered, tracking, seed);
    });
}
