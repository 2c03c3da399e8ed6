//! The search for the best schedule: cases whose optimum is known, and what must hold of any.

mod common;

use ampsched_policy::REGISTRY;
use ampsched_sim::{Effort, Objective, Optimum, OptimumError, optimum};
use common::{Host, ns, workload};
use proptest::prelude::*;

const EFFORT: Effort = Effort {
    objective: Objective::Makespan,
    quantum_ns: 500_000,
    simulations: 20_000,
    tolerance: 0.0,
};

fn search(host: &Host, programs: &[&str], effort: Effort) -> Optimum {
    let alone = vec![1e6; programs.len()];
    optimum(&host.machine, &workload(programs), &host.options, &alone, effort).unwrap()
}

/// Equal to some ms but for the rounding of frequencies to MHz.
fn assert_near(found_ns: u64, ms: f64) {
    assert!((found_ns as f64 / 1e6 / ms - 1.0).abs() < 1e-3, "{found_ns} ns, not {ms} ms");
}

fn threads(count: u32, body: &str) -> String {
    format!("[[threads]]\nname='t'\ncount={count}\nbody=[{body}]")
}

fn run(us: u32) -> String {
    format!("{{run_us={us},profile='unit'}}")
}

#[test]
fn one_thread_stays_on_the_big_core() {
    let host = Host::unequal(1, 1, 2.0);
    let found = search(&host, &[&threads(1, &run(3_000))], EFFORT);
    assert_eq!(found.outcome.makespan_ns, ns(3.0));
    assert!(found.proven);
    let stays: Vec<(u32, u32)> =
        found.timeline.iter().map(|stay| (stay.core, stay.thread)).collect();
    assert_eq!(stays, [(0, 0)]);
}

#[test]
fn two_threads_take_turns_on_the_big_core() {
    // 2 x 3 ms at 1.5 ms of big cores per ms; both end together if each has the big core for half of the time.
    let host = Host::unequal(1, 1, 2.0);
    let found = search(&host, &[&threads(2, &run(3_000))], EFFORT);
    assert_eq!(found.outcome.makespan_ns, ns(4.0));
    assert!(found.proven);
}

#[test]
fn the_shorter_program_gets_the_core_first() {
    let host = Host::symmetric(1);
    let effort = Effort { objective: Objective::HAntt, ..EFFORT };
    let (short, long) = (threads(1, &run(1_000)), threads(1, &run(3_000)));
    let found = search(&host, &[&long, &short], effort);
    let turnarounds: Vec<u64> = found.outcome.apps.iter().map(|app| app.turnaround_ns).collect();
    assert_eq!(turnarounds, [ns(4.0), ns(1.0)]);
    assert!(found.proven && (found.value - 2.5).abs() < 1e-9, "{}", found.value);
}

#[test]
fn who_holds_a_lock_that_others_need_comes_first() {
    // The second thread of the first program waits for 1 ms of the first one's 2 ms on the big core.
    let first = "[{lock='m'},{run_us=2000,profile='unit'},{unlock='m'}]";
    let program = format!(
        "[mutexes.m]\n[[threads]]\nname='holder'\nbody={first}\n\
         [[threads]]\nname='other'\nbody=[{{sleep_us=100}},{{lock='m'}},{{run_us=1000,profile='unit'}},{{unlock='m'}}]"
    );
    let host = Host::unequal(1, 1, 3.0);
    let found = search(&host, &[&program, &threads(1, &run(1_000))], EFFORT);
    assert_eq!(found.outcome.makespan_ns, ns(3.0));
    assert!(found.proven);
}

#[test]
fn a_migration_that_costs_more_than_it_gains_is_left_out() {
    let mut host = Host::unequal(1, 1, 1.5);
    host.machine.costs.migrate_cross_cluster_ns = 5_000_000;
    let found = search(&host, &[&threads(2, &run(2_000))], EFFORT);
    assert_near(found.outcome.makespan_ns, 3.0);
    assert_eq!(found.outcome.counts.migrations, 0);
}

#[test]
fn what_is_too_large_is_refused() {
    let host = Host::unequal(2, 2, 2.0);
    let unfit = |program: &str| {
        let mix = workload(&[program]);
        optimum(&host.machine, &mix, &host.options, &[1e6], EFFORT).unwrap_err()
    };
    let what = "the optimum is looked for with at most 6 threads on 4 cores, not 7 on 4";
    assert_eq!(unfit(&threads(7, &run(1))), OptimumError::Unfit(what.to_owned()));
}

#[test]
fn too_few_simulations_prove_nothing_and_say_so() {
    let host = Host::unequal(1, 1, 2.3);
    let mix = [threads(1, &run(7_000)), threads(2, &run(3_000))];
    let mix: Vec<&str> = mix.iter().map(String::as_str).collect();
    let effort = Effort { objective: Objective::HAntt, simulations: 3, ..EFFORT };
    let found = search(&host, &mix, effort);
    assert!(!found.proven);
    assert_eq!(found.simulations, 3);
}

fn program() -> impl Strategy<Value = String> {
    let step = prop_oneof![
        (200u32..2_000).prop_map(run),
        (50u32..500).prop_map(|us| format!("{{sleep_us={us}}}")),
        (100u32..900).prop_map(|us| format!("{{lock='m'}},{},{{unlock='m'}}", run(us))),
        Just("{barrier='b'}".to_owned()),
    ];
    (prop::collection::vec(step, 1..4), 1u32..3).prop_map(|(steps, count)| {
        format!("[mutexes.m]\n[barriers.b]\n{}", threads(count, &steps.join(",")))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn a_proven_optimum_lies_between_the_limit_and_its_own_schedule(
        mix in prop::collection::vec(program(), 1..3),
        (big, little) in prop_oneof![Just((1usize, 1usize)), Just((2, 2))],
        ratio in 1.2f64..3.0,
        antt in any::<bool>(),
    ) {
        let mut host = Host::unequal(big, little, ratio);
        host.machine.costs.context_switch_ns = 2_000;
        host.machine.costs.migrate_cross_cluster_ns = 20_000;
        let mix: Vec<&str> = mix.iter().map(String::as_str).collect();
        let objective = if antt { Objective::HAntt } else { Objective::Makespan };
        let effort = Effort { objective, simulations: 400, tolerance: 1e-3, ..EFFORT };
        let found = search(&host, &mix, effort);
        prop_assert!(found.value >= found.limit, "{} below {}", found.value, found.limit);
        // The same again.
        let again = search(&host, &mix, effort);
        prop_assert_eq!(&again.outcome, &found.outcome);
        prop_assert_eq!(again.simulations, found.simulations);
        for info in REGISTRY {
            let outcome = host.run_mix(&mix, info.name);
            let sum: f64 = outcome.apps.iter().map(|app| app.turnaround_ns as f64 / 1e6).sum();
            let reached = match objective {
                Objective::Makespan => outcome.makespan_ns as f64,
                _ => sum / mix.len() as f64,
            };
            prop_assert!(reached >= found.limit, "{} beats the limit", info.name);
        }
    }
}
