//! Directions of the core model that hold for every profile and core.

use ampsched_model::{
    CoreParams, CpiStack, Pipeline, Profile, cpi_stack, cycles_per_instruction, speed_ips,
};
use proptest::prelude::*;

#[path = "core_model/cases.rs"]
mod cases;

/// Rounding of sums and products.
const SLACK: f64 = 1.0 + 1e-12;

prop_compose! {
    /// Misses per 1,000 instructions: loads and stores of the L1, of a small and of a large L2.
    fn misses()(
        l1 in (0.0..200.0, 0.0..100.0),
        small in (0.0..1.0, 0.0..1.0),
        large in (0.0..1.0, 0.0..1.0),
    ) -> [f64; 6] {
        let (reads, writes) = (l1.0 * small.0, l1.1 * small.1);
        [l1.0 + l1.1, l1.1, reads + writes, writes, reads * large.0 + writes * large.1, writes * large.1]
    }
}

prop_compose! {
    fn profiles()(
        cpi in (0.3..2.0, 0.5..5.0),
        uops in 0.8..1.5,
        shares in (0.0..0.6, 0.0..0.3, 0.0..0.4),
        rates in (0.0..20.0, 0.0..30.0),
        misses in misses(),
        prefetchable in 0.0..=1.0,
        ilp in (1.0..12.0, 1.0..3.0),
        use_1 in 0.0..1.0,
        use_3 in 0.0..1.0,
    ) -> Profile {
        Profile {
            cpi_core_big: cpi.0,
            cpi_core_little: cpi.1,
            uops_per_instruction: uops,
            load: shares.0,
            fp_single: shares.1,
            fp_double: shares.2,
            branch_mpki: rates.0,
            l1i_mpki: rates.1,
            l1d_mpki: misses[0],
            l1d_write_mpki: misses[1],
            l2_512k_mpki: misses[2],
            l2_512k_write_mpki: misses[3],
            l2_2m_mpki: misses[4],
            l2_2m_write_mpki: misses[5],
            prefetchable,
            ilp_40: ilp.0,
            ilp_128: ilp.0 * ilp.1,
            load_use_1: use_1 * use_3,
            load_use_3: use_3,
            ..cases::profile()
        }
    }
}

prop_compose! {
    fn cores()(
        out_of_order in any::<bool>(),
        width in 1.0..8.0,
        window in 1.0..600.0,
        cycles in (5.0..25.0, 1.0..6.0, 5.0..40.0),
        fp in (0.25..4.0, 0.25..6.0, 1.0..8.0, 1.0..14.0),
        l2_kib in 64.0..16384.0,
        memory_ns in 20.0..300.0,
        mlp_max in 1.0..32.0,
        prefetch_share in 0.0..=1.0,
    ) -> CoreParams {
        CoreParams {
            pipeline: if out_of_order { Pipeline::OutOfOrder } else { Pipeline::InOrder },
            width,
            window,
            mispredict_cycles: cycles.0,
            load_cycles: cycles.1,
            l2_cycles: cycles.2,
            fp_single_cycles: fp.0,
            fp_double_cycles: fp.1,
            fp_single_latency_cycles: fp.2,
            fp_double_latency_cycles: fp.3,
            simd_cycles: 0.5,
            simd_latency_cycles: 3.0,
            l2_kib,
            memory_ns,
            mlp_max,
            prefetch_share,
            ..cases::big()
        }
    }
}

/// One rate of a profile raised, the others as they are.
fn raised(profile: &Profile, which: usize, by: f64) -> Profile {
    let mut profile = profile.clone();
    match which {
        0 => profile.branch_mpki += by,
        1 => profile.l1i_mpki += by,
        _ => profile.l1d_mpki += by,
    }
    profile
}

/// More loads that miss the L1, and that miss a small and a large L2.
fn with_more_l2_misses(profile: &Profile, small: f64, large: f64) -> Profile {
    Profile {
        l1d_mpki: profile.l1d_mpki + small,
        l2_512k_mpki: profile.l2_512k_mpki + small,
        l2_2m_mpki: profile.l2_2m_mpki + large,
        ..profile.clone()
    }
}

proptest! {
    #[test]
    fn cycles_are_finite_and_positive(profile in profiles(), core in cores(), mhz in 100.0..6000.0) {
        let stack = cpi_stack(&profile, &core, mhz);
        for part in [stack.core, stack.branch, stack.fetch, stack.l2, stack.memory] {
            prop_assert!(part.is_finite() && part >= 0.0, "{stack:?}");
        }
        prop_assert!(stack.core > 0.0);
    }

    #[test]
    fn more_misses_never_help(
        profile in profiles(), core in cores(), mhz in 100.0..6000.0, which in 0..3usize, by in 0.0..20.0,
    ) {
        let more = raised(&profile, which, by);
        let (few, many) = (cycles_per_instruction(&profile, &core, mhz), cycles_per_instruction(&more, &core, mhz));
        prop_assert!(few <= many * SLACK, "{few} > {many}");
    }

    #[test]
    fn more_l2_misses_never_help_between_the_measured_sizes(
        profile in profiles(), core in cores(), mhz in 100.0..6000.0, l2_kib in 512.0..=2048.0,
        small in 0.0..20.0, part in 0.0..=1.0,
    ) {
        let core = CoreParams { l2_kib, ..core };
        let more = with_more_l2_misses(&profile, small, small * part);
        let (few, many) = (cycles_per_instruction(&profile, &core, mhz), cycles_per_instruction(&more, &core, mhz));
        prop_assert!(few <= many * SLACK, "{few} > {many}");
    }

    #[test]
    fn proportionally_more_l2_misses_never_help_at_any_size(
        profile in profiles(), core in cores(), mhz in 100.0..6000.0, factor in 1.0..3.0,
    ) {
        let more = Profile {
            l2_512k_mpki: profile.l2_512k_mpki * factor,
            l2_512k_write_mpki: profile.l2_512k_write_mpki * factor,
            l2_2m_mpki: profile.l2_2m_mpki * factor,
            l2_2m_write_mpki: profile.l2_2m_write_mpki * factor,
            ..profile.clone()
        };
        let (few, many) = (cycles_per_instruction(&profile, &core, mhz), cycles_per_instruction(&more, &core, mhz));
        prop_assert!(few <= many * SLACK, "{few} > {many}");
    }

    #[test]
    fn a_larger_l2_never_hurts(
        profile in profiles(), core in cores(), mhz in 100.0..6000.0, factor in 1.0..16.0,
    ) {
        let larger = CoreParams { l2_kib: core.l2_kib * factor, ..core };
        let small = cycles_per_instruction(&profile, &core, mhz);
        let large = cycles_per_instruction(&profile, &larger, mhz);
        prop_assert!(large <= small * SLACK, "{large} > {small}");
    }

    #[test]
    fn a_higher_frequency_never_slows_down_and_gains_at_most_its_factor(
        profile in profiles(), core in cores(), mhz in 100.0..6000.0, factor in 1.0..8.0,
    ) {
        let (slow, fast) = (speed_ips(&profile, &core, mhz), speed_ips(&profile, &core, mhz * factor));
        prop_assert!(slow <= fast * SLACK, "{slow} > {fast}");
        prop_assert!(fast <= factor * slow * SLACK, "{fast} > {factor} x {slow}");
    }

    #[test]
    fn in_order_is_never_faster_with_the_same_parameters(
        profile in profiles(), core in cores(), mhz in 100.0..6000.0,
    ) {
        let with = |pipeline| cycles_per_instruction(&profile, &CoreParams { pipeline, ..core }, mhz);
        prop_assert!(with(Pipeline::OutOfOrder) <= with(Pipeline::InOrder));
    }

    #[test]
    fn a_better_prefetcher_never_hurts(
        profile in profiles(), core in cores(), mhz in 100.0..6000.0, better in 0.0..=1.0,
    ) {
        let share = core.prefetch_share + (1.0 - core.prefetch_share) * better;
        let with = CoreParams { prefetch_share: share, ..core };
        let (now, then) = (cycles_per_instruction(&profile, &core, mhz), cycles_per_instruction(&profile, &with, mhz));
        prop_assert!(then <= now * SLACK, "{then} > {now}");
    }

    #[test]
    fn memory_part_grows_with_the_frequency_and_nothing_else_does(
        profile in profiles(), core in cores(), mhz in 100.0..3000.0,
    ) {
        let core = CoreParams { pipeline: Pipeline::InOrder, ..core };
        let (once, twice) = (cpi_stack(&profile, &core, mhz), cpi_stack(&profile, &core, 2.0 * mhz));
        prop_assert!((twice.memory - 2.0 * once.memory).abs() <= 1e-9 * twice.memory);
        prop_assert_eq!(CpiStack { memory: 0.0, ..twice }, CpiStack { memory: 0.0, ..once });
    }
}
