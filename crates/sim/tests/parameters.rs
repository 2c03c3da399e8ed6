//! Every policy with every legal parameter: it runs, or is refused by an error; it never panics.

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};

use ampsched_model::Draw;
use ampsched_policy::{ParamInfo, ParamKind, REGISTRY, build_policy};
use ampsched_sim::{FactorSource, Outcome, SimError, simulate};
use common::{Host, ns, shipped_catalog, workload};

/// Mixes of endless threads, sleepers and a lock, for some ms.
const MIXES: [&str; 3] = [
    "[[threads]]\nname='h'\ncount=5\nbody=[{loop='forever',body=[{run_us=3000,profile='unit'}]}]",
    "[[threads]]\nname='h'\ncount=2\nbody=[{loop='forever',body=[{run_us=900,profile='unit'}]}]\n\
     [[threads]]\nname='s'\ncount=3\nbody=[{loop='forever',body=[{run_us={mean=200,cv=0.5},profile='unit'},{sleep_us=700}]}]",
    "[mutexes.m]\n[[threads]]\nname='l'\ncount=4\nbody=[{loop='forever',body=[\
     {lock='m'},{run_us=150,profile='unit'},{unlock='m'},{run_us=400,profile='unit'}]}]",
];

/// Five endless threads of a shipped profile.
const ENDLESS: &str = MIXES[0];

/// A legal value: an end, the default, or any in between, on a logarithmic scale if there is one.
fn legal(param: &ParamInfo, random: &mut Draw) -> f64 {
    let choice = |count: usize, random: &mut Draw| (random.bits() % count as u64) as f64;
    match param.kind {
        ParamKind::Flag => choice(2, random),
        ParamKind::OneOf(values) => values[choice(values.len(), random) as usize].0,
        ParamKind::Choice(choices) => choice(choices.len(), random),
        ParamKind::Number { min, max } | ParamKind::PerMhz { min, max } => {
            let between = random.uniform();
            match random.bits() % 5 {
                0 => min,
                1 => max,
                2 => param.default,
                3 => min + between * (max - min),
                _ if min >= 0.0 => {
                    let least = min.max(max * 1e-6);
                    (least * (max / least).powf(between)).clamp(min, max)
                }
                _ => min + between * (max - min),
            }
        }
    }
}

fn run(host: &Host, mix: &str, name: &str, params: &[(String, f64)]) -> Result<Outcome, SimError> {
    let policy = build_policy(name, params).expect("the parameters are legal");
    simulate(&host.machine, &workload(&[mix]), name, policy, &host.options)
}

#[test]
fn m08_no_policy_panics_for_legal_parameters() {
    let mut random = Draw::new(8);
    let mut failures = Vec::new();
    std::panic::set_hook(Box::new(|_| ())); // one line per failure, below
    for info in REGISTRY {
        for round in 0..100 {
            let mut mask = Draw::new(round);
            let (big, little) = (1 + random.bits() % 3, random.bits() % 4);
            let mut host = Host::unequal(big as usize, little as usize, 2.5).with_seed(round);
            host.machine.costs.context_switch_ns = 2_000;
            host.machine.costs.migrate_cross_cluster_ns = 5_000;
            host.options.until_ns = Some(ns(30.0));
            host.options.check = false; // the books are checked in debug builds nevertheless
            host.options.factors = match random.bits() % 4 {
                0 => FactorSource::Missing,
                1 => FactorSource::Sampled { interval_ns: 1_000_000 },
                2 => FactorSource::Constant(1.0),
                _ => FactorSource::Oracle,
            };
            let params: Vec<(String, f64)> = info
                .params
                .iter()
                .map(|param| (param.name.to_owned(), legal(param, &mut random)))
                .filter(|_| round < 50 || mask.bits() % 2 == 0)
                .collect();
            let mix = MIXES[(random.bits() % 3) as usize];
            let caught = catch_unwind(AssertUnwindSafe(|| run(&host, mix, info.name, &params)));
            let said = match caught {
                Ok(
                    Ok(_)
                    | Err(
                        SimError::SliceTooShort { .. }
                        | SimError::RoundTooShort { .. }
                        | SimError::NoPower { .. },
                    ),
                ) => continue,
                Ok(Err(error)) => error.to_string(),
                Err(panic) => match panic.downcast::<String>() {
                    Ok(text) => format!("panic: {text}"),
                    Err(_) => "panic".to_owned(),
                },
            };
            failures.push(format!("{} {params:?} on {big}+{little}: {said}\n", info.name));
        }
    }
    let _ = std::panic::take_hook();
    assert!(failures.is_empty(), "{}", failures.concat());
}

#[test]
fn m08_a_least_slice_longer_than_a_round_is_an_equal_share() {
    let catalog = shipped_catalog();
    let machine = catalog.machine("exynos5422").unwrap().part(&["big=1"]).unwrap();
    let host = Host { machine, options: ampsched_sim::Options::default() };
    let params = [("round_ms".to_owned(), 1.0), ("min_slice_ms".to_owned(), 5.0)];
    for name in ["max-fair", "max-perf", "min-fair", "min-fair-hfee", "similarity", "uniformity"] {
        let mut host = Host { machine: host.machine.clone(), options: host.options.clone() };
        host.options.factors = FactorSource::Missing;
        host.options.until_ns = Some(ns(100.0));
        run(&host, ENDLESS, name, &params).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}
