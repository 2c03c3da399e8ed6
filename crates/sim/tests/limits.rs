//! The limits of `Limits`: where they are exact, and that no policy ever beats them.

mod common;

use ampsched_policy::REGISTRY;
use ampsched_sim::{Limits, Outcome};
use common::{Host, ns, workload};
use proptest::prelude::*;

fn limits(host: &Host, programs: &[&str]) -> Limits {
    Limits::new(&host.machine, &workload(programs), &host.options)
}

/// Equal within a millionth.
fn assert_near(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 1e-6, "{found} is not {expected}");
}

fn threads(count: u32, body: &str) -> String {
    format!("[[threads]]\nname='t'\ncount={count}\nbody=[{body}]")
}

const MS: &str = "{run_us=1000,profile='unit'}";

#[test]
fn one_thread_needs_its_time_on_a_big_core() {
    let host = Host::unequal(1, 1, 2.0);
    assert_near(limits(&host, &[&threads(1, MS)]).makespan_ns(), ns(1.0) as f64);
}

#[test]
fn two_threads_share_a_big_and_a_little_core() {
    // 2 ms of work at 1.5 ms of big cores per ms.
    let host = Host::unequal(1, 1, 2.0);
    let found = limits(&host, &[&threads(2, MS)]).makespan_ns();
    assert!((found / (2.0 / 1.5 * 1e6) - 1.0).abs() < 1e-3, "{found}");
}

#[test]
fn threads_that_are_fewer_than_the_cores_use_the_best_ones() {
    // Three threads cannot use four cores: two big ones and one little one carry 2.5.
    let host = Host::unequal(2, 2, 2.0);
    let found = limits(&host, &[&threads(3, MS)]).makespan_ns();
    assert!((found / (3.0 / 2.5 * 1e6) - 1.0).abs() < 1e-3, "{found}");
}

#[test]
fn a_lock_is_held_by_one_at_a_time() {
    let body = "{lock='m'},{run_us=1000,profile='unit'},{unlock='m'}";
    let program = format!("[mutexes.m]\n{}", threads(4, body));
    let host = Host::unequal(4, 4, 2.0);
    assert_near(limits(&host, &[&program]).makespan_ns(), ns(4.0) as f64);
}

#[test]
fn a_barrier_waits_for_the_slowest() {
    let slow = "[{run_us=3000,profile='unit'},{barrier='b'},{run_us=1000,profile='unit'}]";
    let fast = "[{run_us=1000,profile='unit'},{barrier='b'},{run_us=3000,profile='unit'}]";
    let program = format!(
        "[barriers.b]\n[[threads]]\nname='x'\nbody={slow}\n[[threads]]\nname='y'\nbody={fast}"
    );
    let host = Host::unequal(2, 0, 1.0);
    assert_near(limits(&host, &[&program]).makespan_ns(), ns(6.0) as f64);
}

#[test]
fn the_slowest_stage_limits_a_pipeline() {
    let program = "[queues.q]\ncapacity=4\n\
        [[threads]]\nname='source'\nbody=[{loop=20,body=[{run_us=100,profile='unit'},{push='q'}]},{close='q'}]\n\
        [[threads]]\nname='sink'\nbody=[{each='q',body=[{run_us=400,profile='unit'}]}]";
    let host = Host::unequal(2, 0, 1.0);
    assert_near(limits(&host, &[program]).makespan_ns(), ns(8.0) as f64);
}

#[test]
fn the_shorter_program_first_is_the_best_order() {
    // On one core, 1 ms and 3 ms: 1 and 4 ms, as against 3 and 4.
    let host = Host::symmetric(1);
    let (short, long) = (threads(1, MS), threads(1, "{run_us=3000,profile='unit'}"));
    let found = limits(&host, &[&long, &short]);
    assert_near(found.h_antt(&[3e6, 1e6]), f64::midpoint(4.0 / 3.0, 1.0));
    assert_near(found.h_stp(&[3e6, 1e6]), 3.0 / 4.0 + 1.0);
}

/// What a policy has reached must not be better than the limits.
fn check(found: &Limits, outcome: &Outcome, policy: &str) -> Result<(), TestCaseError> {
    let alone: Vec<f64> = (0..outcome.apps.len()).map(|app| 1e6 * (app + 1) as f64).collect();
    let times: Vec<f64> = outcome.apps.iter().map(|app| app.turnaround_ns as f64).collect();
    for (app, time) in times.iter().enumerate() {
        prop_assert!(*time >= found.turnaround_ns(app), "{policy}: program {app} in {time} ns");
    }
    let makespan_ns = outcome.makespan_ns as f64;
    prop_assert!(makespan_ns >= found.makespan_ns(), "{policy}: makespan {makespan_ns} ns");
    let slowdown = |(time, alone): (&f64, &f64)| time / alone;
    let h_antt = times.iter().zip(&alone).map(slowdown).sum::<f64>() / times.len() as f64;
    prop_assert!(h_antt >= found.h_antt(&alone), "{policy}: H_ANTT {h_antt}");
    let h_stp = times.iter().zip(&alone).map(|pair| 1.0 / slowdown(pair)).sum::<f64>();
    prop_assert!(h_stp <= found.h_stp(&alone), "{policy}: H_STP {h_stp}");
    Ok(())
}

fn step() -> impl Strategy<Value = String> {
    prop_oneof![
        (1u32..3_000).prop_map(|us| format!("{{run_us={us},profile='unit'}}")),
        (1u32..3_000).prop_map(|us| format!("{{compute={{mean={us}e3,cv=0.7}},profile='unit'}}")),
        (1u32..500).prop_map(|us| format!("{{occupy_us={us},profile='unit'}}")),
        (1u32..1_000).prop_map(|us| format!("{{sleep_us={{mean={us},dist='exponential'}}}}")),
        (1u32..900, 0u32..2).prop_map(|(us, mutex)| format!(
            "{{lock='m{mutex}'}},{{run_us={us},profile='unit'}},{{unlock='m{mutex}'}}"
        )),
        (1u32..300).prop_map(|us| format!("{{io_us={us},device='d'}}")),
        (1u32..200).prop_map(|us| format!(
            "{{dynamic='p',body=[{{run_us={{mean={us},cv=0.9}},profile='unit'}}]}}"
        )),
        Just("{barrier='all'}".to_owned()),
    ]
}

fn program() -> impl Strategy<Value = String> {
    (prop::collection::vec(step(), 1..6), 1u32..4, 1u32..5, 1u32..4, 1u32..600, 0u32..200).prop_map(
        |(steps, rounds, count, workers, item_us, spin_us)| {
            let body = steps.join(",");
            format!(
                "[mutexes.m0]\n[mutexes.m1]\n[devices.d]\n[pools.p]\ntotal=20\nchunk=3\n\
                 [barriers.all]\nspin_us={spin_us}\n[queues.q]\ncapacity=2\n\
                 [[threads]]\nname='group'\ncount={count}\nbody=[{{loop={rounds},body=[{body}]}}]\n\
                 [[threads]]\nname='source'\nbody=[{{loop=10,body=[{{run_us=100,profile='unit'}},{{push='q'}}]}},{{close='q'}}]\n\
                 [[threads]]\nname='sink'\ncount={workers}\nbody=[{{each='q',body=[{{run_us={{mean={item_us},cv=0.5}},profile='unit'}}]}}]"
            )
        },
    )
}

/// All policies on a mix.
fn run_all(host: &Host, mix: &[&str]) -> Result<(), TestCaseError> {
    let found = limits(host, mix);
    for info in REGISTRY {
        let outcome = host.try_run_mix(mix, info.name);
        let outcome =
            outcome.map_err(|error| TestCaseError::fail(format!("{}: {error}", info.name)))?;
        check(&found, &outcome, info.name)?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_policy_beats_a_limit(
        mix in prop::collection::vec(program(), 1..4),
        big in 1usize..3,
        little in 0usize..3,
        ratio in 1.1f64..4.0,
        seed in 0u64..1_000,
        cost_ns in 0u64..50_000,
    ) {
        let mut host = Host::unequal(big, little, ratio).with_seed(seed);
        host.machine.costs.context_switch_ns = cost_ns / 10;
        host.machine.costs.migrate_cross_cluster_ns = cost_ns;
        let mix: Vec<&str> = mix.iter().map(String::as_str).collect();
        run_all(&host, &mix)?;
    }

    #[test]
    fn no_policy_beats_a_limit_of_repeated_programs(
        one in program(),
        other in program(),
        repetitions in 1u32..4,
        seed in 0u64..1_000,
    ) {
        let host = Host::unequal(1, 2, 2.5).with_seed(seed).with_repetitions(repetitions);
        run_all(&host, &[&one, &other])?;
    }
}
