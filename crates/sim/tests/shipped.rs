//! Every shipped program ends, every shipped machine runs a mix, and every policy runs many of both. Not each with
//! each: that is `make sweep`.

mod common;

use ampsched_model::{FileKind, Workload};
use ampsched_policy::{PolicyInfo, REGISTRY, build_policy};
use ampsched_sim::{Options, simulate};
use common::shipped_catalog;

/// Short versions of these parameters keep the test quick; the structure stays.
const QUICK: &[(&str, f64)] = &[];

/// Policies for the programs with large task graphs, each of which is built anew for every run. `regions.rs` runs a
/// small one under all of them.
const FOR_GRAPHS: [&str; 4] = ["cfs", "colab", "gts", "static"];

fn alone(program: ampsched_model::Program) -> Workload {
    let app = ampsched_model::App {
        name: program.name.clone(),
        program: program.into(),
        start_ns: 0,
        nice: 0,
    };
    Workload { name: app.name.clone(), description: String::new(), apps: vec![app] }
}

/// Every third (`each` = 3) policy for a program or machine, and other ones for the next.
fn policies_for(at: usize, each: usize) -> impl Iterator<Item = &'static PolicyInfo> {
    REGISTRY.iter().copied().skip(at % each).step_by(each)
}

/// Every second program from the first or second on: halves run side by side.
fn programs_end(first: usize) {
    let catalog = shipped_catalog();
    let machine = catalog.machine("2B2S").unwrap();
    let params: Vec<(String, f64)> =
        QUICK.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
    let programs = catalog.list(FileKind::Program).into_iter().enumerate();
    for (at, (name, _)) in programs.skip(first).step_by(2) {
        let workload = alone(catalog.program(&name, &params).unwrap());
        let has_graph = name.starts_with("chronaki-");
        let is_for = |info: &&PolicyInfo| !has_graph || FOR_GRAPHS.contains(&info.name);
        for info in policies_for(at / 2, if has_graph { 1 } else { 3 }).filter(is_for) {
            let policy = build_policy(info.name, &[]).unwrap();
            // Who stops programs for an epoch lets them wait for some.
            let patience_ns = if policy.needs().holds { 20_000_000_000 } else { 1_000_000_000 };
            let outcome = simulate(
                &machine,
                &workload,
                info.name,
                policy,
                &Options { check: false, ..Options::default() },
            );
            let outcome =
                outcome.unwrap_or_else(|error| panic!("{name} under {}: {error}", info.name));
            assert!(outcome.makespan_ns > 0);
            let longest_ns =
                outcome.threads.iter().map(|thread| thread.ready_ns_max).max().unwrap();
            assert!(longest_ns < patience_ns, "{name} under {}: waited {longest_ns} ns", info.name);
        }
    }
}

/// Every second machine.
fn machines_run_a_mix(first: usize) {
    let catalog = shipped_catalog();
    let workload = catalog.workload("sync-1").unwrap();
    let machines = catalog.list(FileKind::Machine).into_iter().enumerate();
    for (at, (name, _)) in machines.skip(first).step_by(2) {
        let machine = catalog.machine(&name).unwrap();
        for info in policies_for(at / 2, 4) {
            let policy = build_policy(info.name, &[]).unwrap();
            let outcome = simulate(&machine, &workload, info.name, policy, &Options::default());
            outcome.unwrap_or_else(|error| panic!("{name} under {}: {error}", info.name));
        }
    }
}

#[test]
fn every_first_program_ends() {
    programs_end(0);
}

#[test]
fn every_second_program_ends() {
    programs_end(1);
}

#[test]
fn every_first_machine_runs_a_mix() {
    machines_run_a_mix(0);
}

#[test]
fn every_second_machine_runs_a_mix() {
    machines_run_a_mix(1);
}
