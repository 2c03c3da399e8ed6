//! What instructions of each kind cost.

use ampsched_model::{CoreParams, KindCycles, Profile, cpi_stack, kind_cycles, miss_cycles};

#[path = "core_model/cases.rs"]
mod cases;

use cases::{big, little, profile};

/// Code without floating point and SIMD.
fn integers() -> Profile {
    Profile { fp_simd: 0.0, fp_single: 0.0, fp_double: 0.0, fp_div: 0.0, ..profile() }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs()
}

/// Cycles of instructions in the proportions of a profile.
fn mixed(profile: &Profile, kinds: &KindCycles) -> f64 {
    let memory = profile.load + profile.store;
    let float = profile.fp_single + profile.fp_double + profile.fp_div;
    let simd = profile.fp_simd - float;
    let integer = 1.0 - memory - profile.branch - profile.fp_simd;
    integer * kinds.integer
        + memory * kinds.memory
        + profile.branch * kinds.branch
        + float * kinds.float
        + simd * kinds.simd
}

#[test]
fn a_profile_s_own_mix_costs_its_core_part() {
    for core in [big(), little()] {
        let cycles = mixed(&integers(), &kind_cycles(&integers(), &core));
        assert!(close(cycles, cpi_stack(&integers(), &core, 1000.0).core), "{cycles}");
    }
}

#[test]
fn scarce_units_bind_their_own_kind_alone() {
    for core in [big(), little()] {
        let few =
            CoreParams { fp_single_cycles: 4.0, fp_double_cycles: 6.0, simd_cycles: 3.0, ..core };
        let (plain, bound) = (kind_cycles(&integers(), &core), kind_cycles(&integers(), &few));
        assert!(bound.float >= 5.0 && bound.simd >= 3.0, "{bound:?}");
        assert!(plain.float < 5.0 && plain.simd < 3.0, "{plain:?}");
        assert_eq!((bound.integer, bound.memory), (plain.integer, plain.memory));
    }
}

#[test]
fn longer_latencies_cost_more_and_less_out_of_order() {
    let cost = |core: &CoreParams, simd_latency_cycles| {
        let core = CoreParams { simd_latency_cycles, simd_cycles: 0.1, ..*core };
        kind_cycles(&integers(), &core).simd
    };
    let grown = |core: &CoreParams| cost(core, 9.0) - cost(core, 3.0);
    assert!(grown(&big()) > 0.0);
    assert!(grown(&little()) > 2.0 * grown(&big()));
}

#[test]
fn branches_and_stores_keep_nobody_waiting_in_order() {
    let stores = Profile { load: 0.0, store: 0.35, ..integers() };
    let cycles = kind_cycles(&stores, &little());
    let slot = stores.uops_per_instruction / little().width;
    assert!(close(cycles.branch, slot) && close(cycles.memory, slot), "{cycles:?}");
}

#[test]
fn the_mean_is_that_of_each_kind() {
    let one = KindCycles { integer: 1.0, memory: 2.0, branch: 3.0, float: 4.0, simd: 5.0 };
    let three = KindCycles { integer: 3.0, memory: 6.0, branch: 9.0, float: 12.0, simd: 15.0 };
    let two = KindCycles { integer: 2.0, memory: 4.0, branch: 6.0, float: 8.0, simd: 10.0 };
    assert_eq!(KindCycles::mean(&[one, three]), two);
    assert_eq!(KindCycles::mean(&[]), KindCycles::default());
}

#[test]
fn misses_cost_what_the_stack_says_of_all_of_them_together() {
    let profile = Profile { l1i_mpki: 0.0, prefetchable: 0.0, ..profile() };
    for core in [big(), little()] {
        let (stack, one) =
            (cpi_stack(&profile, &core, 2000.0), miss_cycles(&profile, &core, 2000.0));
        let l1d_reads = (profile.l1d_mpki - profile.l1d_write_mpki) / 1000.0;
        assert!(close(l1d_reads * one.l2, stack.l2), "{one:?}");
        let (reads, lines) = if core.l2_kib == 2048.0 { (1.5, 2.0) } else { (4.0, 5.0) };
        assert!(
            close((reads * one.memory).max(lines * one.line) / 1000.0, stack.memory),
            "{one:?} {stack:?}"
        );
    }
}

#[test]
fn memory_costs_more_cycles_at_a_higher_frequency_and_the_l2_does_not() {
    let (slow, fast) =
        (miss_cycles(&profile(), &big(), 1000.0), miss_cycles(&profile(), &big(), 2000.0));
    assert_eq!(slow.l2, fast.l2);
    assert!(close(2.0 * slow.memory, fast.memory) && close(2.0 * slow.line, fast.line));
}
