//! Whole runs against committed results, so that no change of behaviour goes unnoticed.
//!
//! After an intended change: `BLESS=1 cargo test -p ampsched-sim --test golden`, and say in the commit
//! why the results moved.

mod common;

use std::fmt::Write;
use std::path::Path;

use ampsched_policy::{REGISTRY, build_policy};
use ampsched_sim::{Options, Outcome, simulate};
use common::shipped_catalog;

const RUNS: &[(&str, &str)] = &[
    ("2B2S", "sync-2"),
    ("2B4S", "comm-1"),
    ("4B2S", "nsync-4"),
    ("4B4S", "rand-10"),
    ("tensor", "sync-3"),
];

#[test]
fn runs_are_as_committed() {
    let mut table = String::from(
        "machine workload policy makespan_ns dispatches switches migrations wakeups preemptions turnarounds_ns\n",
    );
    let catalog = shipped_catalog();
    for &(machine, workload) in RUNS {
        for info in REGISTRY {
            let outcome = simulate(
                &catalog.machine(machine).unwrap(),
                &catalog.workload(workload).unwrap(),
                info.name,
                build_policy(info.name, &[]).unwrap(),
                &Options { check: false, ..Options::default() },
            );
            row(&mut table, &outcome.unwrap());
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/runs.txt");
    if std::env::var_os("BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &table).unwrap();
    }
    let committed = std::fs::read_to_string(&path).expect("tests/golden/runs.txt exists");
    for (now, then) in table.lines().zip(committed.lines()) {
        assert_eq!(now, then, "behaviour changed; see the head of this file");
    }
    assert_eq!(table.lines().count(), committed.lines().count());
}

fn row(table: &mut String, outcome: &Outcome) {
    let counts = outcome.counts;
    let turnarounds: Vec<String> =
        outcome.apps.iter().map(|app| app.turnaround_ns.to_string()).collect();
    writeln!(
        table,
        "{} {} {} {} {} {} {} {} {} {}",
        outcome.machine,
        outcome.workload,
        outcome.policy,
        outcome.makespan_ns,
        counts.dispatches,
        counts.switches,
        counts.migrations,
        counts.wakeups,
        counts.preemptions,
        turnarounds.join(",")
    )
    .unwrap();
}
