//! What a migration takes if it depends on the working set.

mod common;

use ampsched_model::{CoreParams, Pipeline, Profile, Refill, miss_cycles, refill};
use common::{Host, ns};
use proptest::prelude::*;

const LIKE: &str = "[profiles.p]\nlike = 'unit'\n";

/// A thread that computes for 1 ms on core 0, then for 1 ms on another core.
fn mover(profile: &str, core: usize) -> String {
    format!(
        "{profile}\n[[threads]]\nname = 't'\ncores = [0]\nbody = [{{ compute = 2e6, profile = 'p' }}, \
         {{ set_cores = [{core}] }}, {{ compute = 2e6, profile = 'p' }}]\n"
    )
}

/// 20 cycles for a line from the L2, 80 ns more from memory, at 2000 MHz; 32 KiB and 2 MiB.
fn host(refills: bool) -> Host {
    let mut host = Host::unequal(2, 2, 1.0);
    for cluster in &mut host.machine.clusters {
        let params = CoreParams { l2_cycles: 20.0, memory_ns: 80.0, ..cluster.params };
        cluster.params = CoreParams { pipeline: Pipeline::InOrder, ..params };
    }
    host.machine.costs.migrate_same_cluster_ns = 7_000;
    host.machine.costs.migrate_cross_cluster_ns = 9_000;
    host.machine.costs.migrate_refill = refills;
    host
}

fn end_ns(refills: bool, keys: &str, core: usize) -> u64 {
    host(refills).run(&mover(&format!("{LIKE}{keys}"), core), "cfs").makespan_ns
}

#[test]
fn lines_that_fit_are_missed_once() {
    // Nobody reads what it loads at once, so a line costs nothing from the L2 and 80 ns / 2 from memory.
    let half_kib = "working_set_kib = 0.5";
    assert_eq!(end_ns(true, half_kib, 1), ns(2.0));
    assert_eq!(end_ns(true, half_kib, 2), ns(2.0) + 8 * 80);
    // What the L2 holds, and twice that, of which half misses anyway.
    assert_eq!(end_ns(true, "working_set_kib = 2048", 3), ns(2.0) + 2048 * 16 * 80);
    let lost = 1.0 - 2f64.ln();
    let lost_ns = (2048.0 * 16.0 * 80.0 * lost).round() as u64;
    assert_eq!(end_ns(true, "working_set_kib = 4096", 3), ns(2.0) + lost_ns);
    // On the same core, and without a move: nothing.
    assert_eq!(end_ns(true, half_kib, 0), ns(2.0));
}

#[test]
fn fixed_times_hold_if_nothing_is_known_or_wanted() {
    assert_eq!(end_ns(true, "cycles = 1", 1), ns(2.0) + 7_000);
    assert_eq!(end_ns(true, "cycles = 1", 2), ns(2.0) + 9_000);
    assert_eq!(end_ns(false, "working_set_kib = 64", 1), ns(2.0) + 7_000);
    assert_eq!(end_ns(false, "working_set_kib = 64", 2), ns(2.0) + 9_000);
}

fn profile(working_set_kib: f64) -> Profile {
    Profile {
        load_use_3: 0.5,
        working_set_kib: Some(working_set_kib),
        ilp_40: 2.0,
        ilp_128: 3.0,
        l2_512k_mpki: 5.0,
        l2_2m_mpki: 2.0,
        l1d_mpki: 20.0,
        ..common::unit_profile()
    }
}

#[test]
fn the_arithmetic_is_lines_times_a_miss() {
    let core = host(true).machine.clusters[0].params;
    let miss = miss_cycles(&profile(64.0), &core, 2000.0);
    let Refill { same_cluster_ns, cross_cluster_ns } =
        refill(&profile(64.0), &core, 2000.0).unwrap();
    assert_eq!(miss.l2, 10.0);
    // Of 512 lines in the L1 1 - ln 2, as the working set is twice as large; 1024 lines of the L2.
    let l1_ns = 512.0 * (1.0 - 2f64.ln()) * 10.0 / 2.0;
    assert_eq!(same_cluster_ns, l1_ns.round() as u64);
    let all_ns = l1_ns + 1024.0 * miss.memory / 2.0;
    assert_eq!(cross_cluster_ns, all_ns.round() as u64);
    assert_eq!(refill(&common::unit_profile(), &core, 2000.0), None);
}

proptest! {
    /// A greater working set costs more as long as it fits, and never more than what just fits.
    #[test]
    fn refills_grow_up_to_the_caches(one in 0.1f64..1e6, part in 0.0f64..1.0, mhz in 200f64..5000.0) {
        let core = host(true).machine.clusters[0].params;
        let of = |kib: f64| refill(&profile(kib), &core, mhz).unwrap();
        let within = core.l1d_kib * (0.01 + 0.99 * part);
        prop_assert!(of(within / 2.0).same_cluster_ns <= of(within).same_cluster_ns);
        prop_assert!(of(within / 2.0).cross_cluster_ns <= of(within).cross_cluster_ns);
        prop_assert!(of(one).same_cluster_ns <= of(core.l1d_kib).same_cluster_ns);
        prop_assert!(of(one).same_cluster_ns <= of(one).cross_cluster_ns);
        let most_ns = of(core.l1d_kib).same_cluster_ns + of(core.l2_kib).cross_cluster_ns;
        prop_assert!(of(one).cross_cluster_ns <= most_ns);
    }
}
