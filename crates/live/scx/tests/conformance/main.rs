//! The interpreter in C decides as the one in Rust, whatever happens.

mod both;
mod host;
mod subjects;

use ampsched_model::Draw;
use ampsched_policy::{Needs, REGISTRY, Topology, Wire, build_policy};
use ampsched_scx::{layout, lower, native};

use crate::host::Host;
use crate::subjects::{random_rules, topologies};

/// Random events per trace.
const STEPS: usize = 200;

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

fn replay(
    what: &str,
    topology: Topology,
    rules: ampsched_policy::Rules,
    lowered: layout::Rules,
    seed: u64,
) -> Host {
    let mut host = Host::new(topology, rules, lowered, seed);
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| host.run(STEPS)));
    assert!(
        outcome.is_ok(),
        "{what} with seed {seed} differs after {} operations",
        host.both.trace.len()
    );
    host
}

#[test]
fn layouts_agree() {
    use std::mem::offset_of;

    use layout::{Core, Operation, Queue, Rules, Sched, Thread};
    let ours = [
        size_of::<Rules>(),
        size_of::<u64>() * <ampsched_policy::Steal as Wire>::LEN,
        size_of::<u64>() * <ampsched_policy::Balance as Wire>::LEN,
        size_of::<Thread>(),
        offset_of!(Thread, state),
        offset_of!(Thread, run_ns),
        offset_of!(Thread, generation),
        size_of::<Core>(),
        size_of::<Queue>(),
        offset_of!(Queue, newcomer),
        size_of::<Sched>(),
        offset_of!(Sched, cores),
        offset_of!(Sched, queues),
        size_of::<Sched>(),
        size_of::<Operation>(),
        offset_of!(Operation, value),
    ];
    assert_eq!(native::layout(), ours.map(|number| number as u64));
}

#[test]
fn every_policy_with_rules_decides_the_same() {
    // Policies that differ in their slow plane only have equal rules. What the slow plane needs does not matter here.
    let mut done: Vec<Vec<ampsched_policy::Rules>> = Vec::new();
    for info in REGISTRY {
        let policy = build_policy(info.name, &[]).unwrap();
        let on_all: Vec<_> = topologies().iter().map(|topology| policy.rules(topology)).collect();
        let Ok(_) = lower::rules(info.name, &Needs::default(), &on_all[0], &topologies()[0]) else {
            continue;
        };
        if done.contains(&on_all) {
            continue;
        }
        for seed in 0..traces(1000) {
            let topology = topology_of(seed);
            let rules = policy.rules(&topology);
            let lowered = lower::rules(info.name, &Needs::default(), &rules, &topology).unwrap();
            replay(info.name, topology, rules, lowered, seed);
        }
        done.push(on_all);
    }
    assert!(done.len() >= 9, "only {} sets of rules were compared", done.len());
}

#[test]
fn random_rules_decide_the_same() {
    for seed in 0..traces(2000) {
        let rules = random_rules(&mut Draw::new(seed).child(1));
        let topology = topology_of(seed);
        let lowered = lower::rules("random", &Needs::default(), &rules, &topology).unwrap();
        replay(&format!("{rules:?}"), topology, rules, lowered, seed);
    }
}

#[test]
fn what_a_kernel_cannot_do_is_refused_by_name() {
    let refused: Vec<(&str, String)> = REGISTRY
        .iter()
        .filter_map(|info| {
            let policy = build_policy(info.name, &[]).unwrap();
            let topology = &topologies()[0];
            let why = lower::unsupported(&policy.needs(), &policy.rules(topology), topology);
            (!why.is_empty()).then(|| (info.name, why.join("; ")))
        })
        .collect();
    let load = "it needs tracked load";
    let place = "it places threads by code of its own (hook `place`)";
    let clocks = "it sets the clocks of clusters, which is the daemon's business";
    let retired = "it reads retired instructions, which are not counted here";
    let stalls = "it reads stall counters, which are not counted here";
    let power = "it reads power sensors, which are not read here";
    let sensors = "it reads sensors of clusters, which are not read here";
    let expected = [
        ("bias", stalls.to_owned()),
        ("dtpm", format!("{clocks}; {sensors}")),
        ("eas", format!("{place}; {load}")),
        ("gts", load.to_owned()),
        ("hfee", format!("{clocks}; {retired}")),
        ("hfee-as-published", format!("{clocks}; {retired}")),
        ("hpm", format!("{clocks}; {retired}; {sensors}")),
        ("iks", format!("{place}; {clocks}")),
        ("pie", stalls.to_owned()),
        ("smart-balance", format!("{retired}; {power}")),
        ("utilisation-aware", format!("{clocks}; {load}")),
        ("wash-orig", retired.to_owned()),
    ];
    assert_eq!(refused, expected);
}

/// A trace of what happens under random rules.
fn random_trace(seed: u64) -> Host {
    let rules = random_rules(&mut Draw::new(seed).child(1));
    let topology = topology_of(seed);
    let lowered = lower::rules("random", &Needs::default(), &rules, &topology).unwrap();
    replay(&format!("{rules:?}"), topology, rules, lowered, seed)
}

fn assert_same_answers(answers: &[layout::Operation], host: &Host, seed: u64) {
    for (index, (ours, theirs)) in host.both.trace.iter().zip(answers).enumerate() {
        assert_eq!(format!("{theirs:?}"), format!("{ours:?}"), "operation {index} of seed {seed}");
    }
}

#[test]
fn a_trace_has_the_same_answers_all_at_once() {
    for seed in 0..traces(100) {
        let host = random_trace(seed);
        let mut operations = host.both.trace.clone();
        native::Native::new(host.both.before).operate(&mut operations);
        assert_same_answers(&operations, &host, seed);
    }
}

/// The same in the kernel's BPF machine. Needs root.
#[cfg(feature = "bpf")]
#[test]
fn the_kernel_s_bpf_machine_decides_the_same() {
    use ampsched_scx::kernel::Replay;

    let mut loaded: Option<Replay> = None;
    for seed in 0..traces(300) {
        let host = random_trace(seed);
        let before = host.both.before;
        if let Some(kernel) = &mut loaded {
            kernel.reset(before);
        }
        let kernel = loaded.get_or_insert_with(|| {
            Replay::load(before).expect("the kernel has BPF arenas, and we are root")
        });
        let mut operations = host.both.trace.clone();
        kernel.operate(&mut operations).unwrap();
        assert_same_answers(&operations, &host, seed);
    }
}
