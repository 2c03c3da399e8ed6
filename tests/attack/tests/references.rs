//! References can fail: each kind notices if anything of what its expectation is made of is wrong.

use std::collections::BTreeSet;

use ampsched_attack::references::{KINDS, run};

/// Cases of each kind.
const CASES: u64 = 30;

fn numbers(kind: usize) -> impl Iterator<Item = u64> {
    (0..CASES).map(move |round| round * KINDS.len() as u64 + kind as u64)
}

#[test]
fn each_kind_compares_something_and_holds() {
    for (kind, row) in KINDS.iter().enumerate() {
        for number in numbers(kind) {
            let report = run(11, number, None);
            assert_eq!(report.kind, kind);
            assert!(report.compared > 0, "{} {number}", row.name);
            assert_eq!(report.flaw, None, "number {number}\n{}", report.describe());
        }
    }
}

/// A reference that is given another parameter than the simulator has to contradict it.
#[test]
fn each_kind_notices_whatever_is_wrong_in_its_expectation() {
    for (kind, row) in KINDS.iter().enumerate() {
        let all = numbers(kind).flat_map(|number| run(11, number, None).bendable);
        let bendable: BTreeSet<&str> = all.collect();
        assert!(!bendable.is_empty(), "nothing of {} can be made wrong", row.name);
        for what in bendable {
            let flaws = numbers(kind).filter_map(|number| run(11, number, Some(what)).flaw);
            // A comparison has failed, not the simulation.
            let noticed = flaws.filter(|flaw| flaw.contains(", expected ")).count();
            // Some numbers do not matter in some cases: the room of a queue that is never full.
            assert!(noticed > 0, "{} does not notice another {what}", row.name);
        }
    }
}
