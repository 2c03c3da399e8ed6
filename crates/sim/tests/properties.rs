//! Invariants of the engine on random workloads, machines and every policy of the registry.
//!
//! The engine's own checks run after every event (`Options::check`): a thread is in one place, busy +
//! idle = cores x time, retired = demanded instructions, no idle core beside a waiting thread where
//! the policy forbids it. Here they meet random programs that cannot deadlock.

mod common;

use ampsched_model::{KernelView, LastLevelCache, Sees};
use ampsched_policy::{Kernel, REGISTRY};
use ampsched_sim::{FactorSource, Outcome};
use common::Host;
use proptest::prelude::*;

/// A step that every thread of a group executes.
fn step() -> impl Strategy<Value = String> {
    prop_oneof![
        (1u32..3_000).prop_map(|us| format!("{{run_us={us},profile='unit'}}")),
        (1u32..3_000).prop_map(|us| format!("{{compute={{mean={us}e3,cv=0.7}},profile='unit'}}")),
        (1u32..500).prop_map(|us| format!("{{occupy_us={us},profile='unit'}}")),
        (1u32..2_000).prop_map(|us| format!("{{sleep_us={{mean={us},dist='exponential'}}}}")),
        (1u32..300, 0u32..2).prop_map(|(us, mutex)| format!(
            "{{lock='m{mutex}'}},{{run_us={us},profile='unit'}},{{unlock='m{mutex}'}}"
        )),
        (1u32..300).prop_map(|us| format!("{{io_us={us},device='d'}}")),
        (1u32..200).prop_map(|us| format!(
            "{{dynamic='p',body=[{{run_us={{mean={us},cv=0.9}},profile='unit'}}]}}"
        )),
        Just("{yield=true}".to_owned()),
        Just("{barrier='all'}".to_owned()),
    ]
}

/// A program whose groups all execute the same steps (so that barriers are met), plus a pipeline.
fn program() -> impl Strategy<Value = String> {
    (prop::collection::vec(step(), 1..7), 1u32..5, 1u32..7, 1u32..4, -5i32..6, 1u32..4).prop_map(
        |(steps, rounds, threads, workers, nice, capacity)| {
            let body = steps.join(",");
            format!(
                "[mutexes.m0]\n[mutexes.m1]\n[devices.d]\n[pools.p]\ntotal=40\nchunk=3\n\
                 [barriers.all]\n[queues.q]\ncapacity={capacity}\n\
                 [[threads]]\nname='group'\ncount={threads}\nnice={nice}\nbody=[{{loop={rounds},body=[{body}]}}]\n\
                 [[threads]]\nname='source'\nbody=[{{loop=20,body=[{{run_us=100,profile='unit'}},{{push='q'}}]}},{{close='q'}}]\n\
                 [[threads]]\nname='sink'\ncount={workers}\nbody=[{{each='q',body=[{{run_us={{mean=400,cv=0.5}},profile='unit'}}]}}]"
            )
        },
    )
}

/// Every wake-up is counted once, percentiles are in order, and waiting for a core after one is part of all waiting.
fn timely(outcome: &Outcome) -> Result<(), TestCaseError> {
    let who = &outcome.policy;
    // A thread that a policy has held back comes as one that wakes up.
    if HOLD_NOBODY.contains(&who.as_str()) {
        prop_assert_eq!(outcome.latency.count, outcome.counts.wakeups, "{}", who);
    }
    prop_assert!(outcome.latency.count <= outcome.counts.wakeups, "{}", who);
    let threads = outcome.threads.iter().map(|thread| &thread.latency);
    prop_assert_eq!(threads.clone().map(|own| own.count).sum::<u64>(), outcome.latency.count);
    prop_assert_eq!(threads.map(|own| own.max_ns).max(), Some(outcome.latency.max_ns));
    for thread in &outcome.threads {
        let own = &thread.latency;
        let counted: u64 = own.counts.iter().map(|&count| u64::from(count)).sum();
        prop_assert_eq!(counted, own.count, "{}: {}", who, thread.name);
        prop_assert_eq!(own.upper_ns.last().copied().unwrap_or(0), own.max_ns);
        let told = [own.p50_ns, own.p95_ns, own.p99_ns, own.max_ns];
        prop_assert!(told.is_sorted(), "{}: {}: {:?}", who, thread.name, told);
        prop_assert!(own.max_ns <= thread.ready_ns, "{}: {}: {:?}", who, thread.name, thread);
    }
    Ok(())
}

/// Some policies that hold no thread back.
const HOLD_NOBODY: &[&str] = &["cfs", "eevdf", "linux", "rr", "fifo", "colab", "wash"];

fn run_all(host: &Host, program: &str) -> Result<(), TestCaseError> {
    let mut work: Option<(String, u64)> = None;
    for info in REGISTRY {
        let outcome = host.try_run(program, info.name);
        let outcome =
            outcome.map_err(|error| TestCaseError::fail(format!("{}: {error}", info.name)))?;
        bounded_waits(&outcome)?;
        timely(&outcome)?;
        let name = info.name.to_owned();
        let total: u64 = instructions_of_computes(&outcome);
        let (other, expected) = work.get_or_insert((name, total));
        prop_assert_eq!(total, *expected, "{} and {} did different work", info.name, other);
    }
    Ok(())
}

/// Work without `occupy_us`, whose instructions depend on the cores, is the same under every policy.
fn instructions_of_computes(outcome: &Outcome) -> u64 {
    let group_occupies = outcome.threads.iter().filter(|thread| !thread.name.starts_with("group"));
    group_occupies.map(|thread| thread.instructions).sum()
}

/// Nobody waits longer than all others could use up in some turns.
fn bounded_waits(outcome: &Outcome) -> Result<(), TestCaseError> {
    let limit_ns = 400_000_000 * outcome.threads.len() as u64;
    for thread in &outcome.threads {
        prop_assert!(
            thread.ready_ns_max < limit_ns,
            "{} waited {} ns",
            thread.name,
            thread.ready_ns_max
        );
    }
    Ok(())
}

/// Repeated applications: each ends often enough, the last one just then, and does the same work under
/// every policy.
fn run_all_repeated(host: &Host, mix: &[&str], repetitions: usize) -> Result<(), TestCaseError> {
    let mut works: Vec<Vec<u64>> = Vec::new();
    for info in REGISTRY {
        let outcome = host.try_run_mix(mix, info.name);
        let outcome =
            outcome.map_err(|error| TestCaseError::fail(format!("{}: {error}", info.name)))?;
        prop_assert_eq!(&outcome, &host.run_mix(mix, info.name), "{}: a second run", info.name);
        let ended = outcome.apps.iter().map(|app| app.completions_ns.len());
        prop_assert_eq!(ended.min(), Some(repetitions), "{}", info.name);
        for (index, app) in outcome.apps.iter().enumerate() {
            let total_ns: u64 = app.completions_ns.iter().sum();
            prop_assert!(total_ns <= outcome.makespan_ns, "{}: {total_ns} ns", info.name);
            works.resize(works.len().max(index + 1), Vec::new());
            let work = work_by_repetition(&outcome, index);
            let common = work.len().min(works[index].len());
            prop_assert_eq!(&work[..common], &works[index][..common], "{}", info.name);
            works[index] = work;
        }
    }
    Ok(())
}

/// [`instructions_of_computes`] of each repetition of an application that ended.
fn work_by_repetition(outcome: &Outcome, app: usize) -> Vec<u64> {
    let mut work = vec![0; outcome.apps[app].completions_ns.len()];
    for thread in &outcome.threads {
        if usize::from(thread.app) == app && !thread.name.starts_with("group") {
            if let Some(sum) = work.get_mut(thread.repetition as usize) {
                *sum += thread.instructions;
            }
        }
    }
    work
}

/// A mix on big and little cores, repeated.
fn repeated(
    mix: &[&str],
    cores: (usize, usize),
    repetitions: u32,
    seed: u64,
) -> Result<(), TestCaseError> {
    let mut host =
        Host::unequal(cores.0, cores.1, 2.5).with_seed(seed).with_repetitions(repetitions);
    host.machine.costs.context_switch_ns = 2_000;
    host.machine.costs.migrate_cross_cluster_ns = 23_000;
    run_all_repeated(&host, mix, repetitions as usize)
}

proptest! {
    // They take longest, twice two programs under every policy: an eighth of the cases each.
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 8))]

    #[test]
    fn repeated_applications_keep_the_invariants_on_equal_cores(
        first in program(), second in program(), cores in 1usize..4, repetitions in 1u32..4, seed in 0u64..1000,
    ) {
        repeated(&[&first, &second], (cores, 0), repetitions, seed)?;
    }

    #[test]
    fn repeated_applications_keep_the_invariants_on_unequal_cores(
        first in program(), second in program(), big in 1usize..4, little in 1usize..4,
        repetitions in 1u32..4, seed in 0u64..1000,
    ) {
        repeated(&[&first, &second], (big, little), repetitions, seed)?;
    }
}

proptest! {
    #[test]
    fn every_policy_keeps_the_invariants(
        program in program(), big in 1usize..4, little in 0usize..4, ratio in 1.2f64..4.0, seed in 0u64..1000,
    ) {
        let mut host = Host::unequal(big, little, ratio).with_seed(seed);
        host.machine.costs.context_switch_ns = 2_000;
        host.machine.costs.migrate_same_cluster_ns = 7_000;
        host.machine.costs.migrate_cross_cluster_ns = 23_000;
        host.machine.costs.wakeup_latency_ns = 3_000;
        run_all(&host, &program)?;
    }

    #[test]
    fn every_version_of_linux_keeps_the_invariants(
        first in program(), second in program(), big in 1usize..4, little in 0usize..5, ratio in 1.2f64..4.0,
        sees in 0usize..3, cache in 0usize..2, seed in 0u64..1000, flags in 0u8..4,
    ) {
        let mut host = Host::unequal(big, little, ratio).with_seed(seed);
        host.machine.costs.context_switch_ns = 2_000;
        host.machine.costs.wakeup_latency_ns = 3_000;
        host.machine.kernel_view =
            KernelView { sees: Sees::ALL[sees].1, last_level_cache: LastLevelCache::ALL[cache].1 };
        // Threads that change the cores that they may use, their group, class, slice and clamp.
        let last = (big + little - 1).max(1);
        let wide = if big + little == 1 { "[0]".to_owned() } else { format!("[0,{last}]") };
        let run = |us: u32| format!("{{run_us={us},profile='unit'}}");
        let body = [
            "{set_cores=[0]}", &run(500), &format!("{{set_cores={wide}}}"), &run(700), "{sleep_us=300}",
            "{set_group='/a'}", &run(3_000), "{set_class='fifo',priority=10}", &run(100),
            "{set_class='fair'}", &run(200), "{set_class='idle'}", &run(100), "{set_class='fair'}",
            "{set_slice_us=2000}", "{sleep_us=100}", "{set_group='/a/b'}", "{set_uclamp_max=300}",
        ].join(",");
        let roams = format!(
            "[[threads]]\nname='roams'\ncount=2\ngroup='/a/b'\nslice_us=500\nbody=[{{loop=9,body=[{body}]}}]"
        );
        let first = format!("{first}\n{roams}");
        for kernel in Kernel::ALL {
            let (lazy, autogroup) = (flags & 1, flags >> 1);
            let policy = format!("linux:kernel={}:lazy={lazy}:autogroup={autogroup}", kernel.version);
            let outcome = host.try_run_mix(&[&first, &second], &policy);
            let outcome = outcome.map_err(|error| TestCaseError::fail(format!("{policy}: {error}")))?;
            bounded_waits(&outcome)?;
        }
    }

    #[test]
    fn wrong_factors_cost_time_but_break_nothing(program in program(), which in 0usize..3, seed in 0u64..1000) {
        let mut host = Host::unequal(2, 2, 2.5).with_seed(seed);
        let noisy = FactorSource::Noisy { cv: 0.8, stale_ns: 50_000_000 };
        host.options.factors = [FactorSource::Missing, FactorSource::Constant(1.0), noisy][which].clone();
        run_all(&host, &program)?;
    }
}
