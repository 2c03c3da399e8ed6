//! Types of groups, and what is to be moved between two.

use super::super::stats::{GroupStats, GroupType, Moves, When, sibling_imbalance};
use super::*;

/// A group of cores of capacity 1024 with so many threads, all of which can run.
fn group(cores: u64, threads: u64, util: u64, runnable: u64) -> GroupStats {
    GroupStats {
        load: 1024 * threads,
        capacity: 1024 * cores,
        util,
        runnable,
        threads,
        able: threads,
        idle_cores: cores.saturating_sub(threads),
        cores,
        ..GroupStats::default()
    }
}

fn kind(mut stats: GroupStats) -> GroupType {
    stats.classify(117, false);
    stats.kind
}

#[test]
fn a_group_with_more_threads_than_cores_is_overloaded_beyond_a_margin() {
    // `group_is_overloaded`: 102400 < 117 x util from 876 on, or 1024 x 117 = 119808 < 100 x runnable from 1199 on.
    assert_eq!(kind(group(1, 2, 876, 0)), GroupType::Overloaded);
    assert_eq!(kind(group(1, 2, 875, 1198)), GroupType::HasSpare);
    assert_eq!(kind(group(1, 2, 0, 1199)), GroupType::Overloaded);
    assert_eq!(kind(group(2, 2, 2048, 4096)), GroupType::FullyBusy, "a thread for each core");
}

#[test]
fn a_group_without_an_idle_core_is_fully_busy_beyond_the_same_margin() {
    // `group_has_capacity`.
    assert_eq!(kind(group(1, 1, 875, 1198)), GroupType::HasSpare);
    assert_eq!(kind(group(1, 1, 876, 0)), GroupType::FullyBusy);
    assert_eq!(kind(group(1, 1, 0, 1199)), GroupType::FullyBusy);
    assert_eq!(kind(group(2, 1, 2048, 4096)), GroupType::HasSpare, "fewer threads than cores");
}

#[test]
fn sleepers_that_still_pay_count_as_threads() {
    // `sgs->sum_nr_running` is that of `rq->nr_running`, in which delayed departures count.
    let delayed = GroupStats { able: 1, ..group(1, 2, 876, 0) };
    assert_eq!(kind(delayed), GroupType::Overloaded);
}

#[test]
fn packing_comes_before_misfits_and_overload_before_all() {
    // `group_classify`.
    let both = GroupStats { packs: true, misfit_load: 9, ..group(1, 1, 1024, 1024) };
    assert_eq!(kind(both), GroupType::Packing);
    assert_eq!(kind(GroupStats { packs: false, ..both }), GroupType::Misfit);
    assert_eq!(kind(GroupStats { threads: 2, able: 2, ..both }), GroupType::Overloaded);
}

#[test]
fn siblings_differ_by_threads_per_core() {
    // `sibling_imbalance`.
    let imbalance = |busiest: (u64, u64), local: (u64, u64)| {
        let of = |(cores, threads)| group(cores, threads, 0, 0);
        sibling_imbalance(When::Idle, &of(busiest), &of(local))
    };
    assert_eq!(imbalance((2, 3), (2, 1)), 2);
    assert_eq!(imbalance((2, 1), (2, 3)), 0);
    // 2 x 5 - 4 x 1 = 6; (2 x 6 + 6) / 6 = 3.
    assert_eq!(imbalance((4, 5), (2, 1)), 3);
    // 1 x 2 = 2; (2 x 2 + 5) / 5 = 1; an empty group counts 2.
    assert_eq!(imbalance((4, 2), (1, 0)), 2);
    let busy = sibling_imbalance(When::Busy, &group(2, 9, 0, 0), &group(2, 0, 0, 0));
    assert_eq!(busy, 0, "a busy core does not spread");
}

/// What is moved in the outermost domain of a machine from its second to its first group.
fn judge(
    topology: Topology,
    when: When,
    mut local: GroupStats,
    mut busiest: GroupStats,
) -> Option<(Moves, u64)> {
    let fair = Fair::new(V6_18, &topology, TICK_NS, 1);
    let domain = fair.domains.all.len() - 1;
    let mut total = GroupStats::default();
    for stats in [&mut local, &mut busiest] {
        stats.classify(117, false);
        if stats.kind == GroupType::Overloaded {
            stats.mean_load = stats.load * 1024 / stats.capacity;
        }
        total.load += stats.load;
        total.capacity += stats.capacity;
    }
    let found = fair.judge(domain, when, local, (1, busiest), total);
    found.map(|found| (found.moves, found.imbalance))
}

fn two_caches(cores: usize) -> Topology {
    machine(&[(cores, 1024.0), (cores, 1024.0)], Sees::Nothing, LastLevelCache::Cluster)
}

#[test]
fn an_idle_core_takes_half_of_what_a_core_has_more() {
    // `calculate_imbalance`: single cores with 3 and 0 threads: 3 / 2 = 1.
    let judge =
        |threads| judge(equal(2), When::Idle, group(1, 0, 0, 0), group(1, threads, 1024, 4096));
    assert_eq!(judge(2), Some((Moves::Threads, 1)));
    assert_eq!(judge(3), Some((Moves::Threads, 1)));
    assert_eq!(judge(4), Some((Moves::Threads, 2)));
    // Its only thread is left alone (`find_busiest_group`).
    assert_eq!(judge(1), None);
}

#[test]
fn groups_that_spread_even_out_their_threads() {
    // SD_PREFER_SIBLING: two cores each, 2 and 0 threads: one moves, although each thread has a core.
    assert_eq!(
        judge(two_caches(2), When::Idle, group(2, 0, 0, 0), group(2, 2, 2048, 2048)),
        Some((Moves::Threads, 1))
    );
    assert_eq!(
        judge(two_caches(2), When::Busy, group(2, 1, 500, 500), group(2, 2, 2048, 2048)),
        None
    );
    assert_eq!(
        judge(two_caches(2), When::Idle, group(2, 1, 500, 500), group(2, 2, 2048, 2048)),
        None
    );
}

#[test]
fn an_idle_cache_takes_utilisation_of_an_overloaded_one() {
    // Not SD_SHARE_LLC: what the local group has left, 2048 - 600.
    let overloaded = group(2, 5, 2048, 5120);
    let found = judge(two_caches(2), When::Idle, group(2, 1, 600, 600), overloaded);
    assert_eq!(found, Some((Moves::Util, 1448)));
}

#[test]
fn loads_of_busy_groups_meet_at_the_mean() {
    // 1 thread against 3 on single cores: means 1024 and 3072, overall 2048; (3072 - 2048) x 1024 / 1024.
    let found = judge(equal(2), When::Busy, group(1, 1, 1024, 1024), group(1, 3, 1024, 3072));
    assert_eq!(found, Some((Moves::Load, 1024)));
}

#[test]
fn overloaded_groups_differ_by_17_percent_before_anything_moves() {
    // `find_busiest_group`: 100 x 7 > 117 x 6 is false; 100 x 8 > 117 x 6 is true.
    let judge = |threads| {
        judge(
            equal(2),
            When::Busy,
            group(1, 6, 1024, 6144),
            group(1, threads, 1024, 1024 * threads),
        )
    };
    assert_eq!(judge(7), None);
    assert_eq!(judge(8), Some((Moves::Load, 1024)));
}

#[test]
fn misfits_move_first_and_one_at_a_time() {
    let misfit = GroupStats { misfit_load: 700, ..group(2, 1, 512, 512) };
    let found = judge(little_and_big(), When::Idle, group(2, 0, 0, 0), misfit);
    assert_eq!(found, Some((Moves::Misfit, 1)));
}

#[test]
fn the_last_of_fully_busy_groups_is_taken() {
    // `update_sd_pick_busiest` since 6.6: their mean loads are not computed, and equal ones replace each other.
    let mut rig = Rig::on(V6_18, equal(3));
    for core in 1..3 {
        rig.start(0, core);
        rig.choose(core);
        rig.set_core(core, 1024, 1024);
    }
    let [first, last] = [1, 2].map(|place| {
        let mut stats = group(1, 1, 1024, 1024);
        stats.classify(117, false);
        (place, stats)
    });
    assert!(rig.fair.is_busier(0, 0, (2, &last.1), Some(first), GroupType::HasSpare));
    assert!(rig.fair.is_busier(0, 0, (1, &first.1), Some(last), GroupType::HasSpare));
}

#[test]
fn the_group_with_fewest_idle_cores_and_most_threads_is_busiest() {
    let fair = Fair::new(V6_18, &two_caches(4), TICK_NS, 1);
    let domain = fair.domains.all.len() - 1;
    let busier = |one: GroupStats, other: GroupStats| {
        fair.is_busier(0, domain, (1, &one), Some((1, other)), GroupType::HasSpare)
    };
    assert!(busier(group(4, 3, 0, 0), group(4, 2, 0, 0)));
    assert!(!busier(group(4, 2, 0, 0), group(4, 3, 0, 0)));
    let crowded = GroupStats { threads: 5, able: 5, idle_cores: 1, ..group(4, 3, 0, 0) };
    assert!(busier(crowded, group(4, 3, 0, 0)));
    assert!(!busier(group(4, 3, 0, 0), group(4, 3, 0, 0)));
}

#[test]
fn greater_cores_keep_what_fits_them() {
    // `update_sd_pick_busiest`: a little core takes nothing from big ones with capacity to spare. It may from fully
    // busy ones if nothing else was found: that is decided before.
    let fair = Fair::new(V6_18, &little_and_big(), TICK_NS, 1);
    let domain = fair.domains.all.len() - 1;
    let taken = |threads: u64| {
        let mut stats = group(2, threads, 1000 * threads, 1000 * threads);
        stats.classify(117, false);
        fair.is_busier(0, domain, (1, &stats), None, GroupType::HasSpare)
    };
    assert_eq!([1, 2].map(taken), [false, true]);
}

#[test]
fn misfits_are_sought_by_greater_cores_only() {
    let fair = Fair::new(V6_18, &little_and_big(), TICK_NS, 1);
    let domain = fair.domains.all.len() - 1;
    let mut misfit = GroupStats { misfit_load: 700, ..group(2, 1, 512, 512) };
    misfit.classify(117, false);
    let taken = |core: usize, group: usize, local| {
        fair.is_busier(core, domain, (group, &misfit), None, local)
    };
    assert!(taken(2, 0, GroupType::HasSpare));
    assert!(!taken(2, 0, GroupType::FullyBusy));
    assert!(!taken(0, 1, GroupType::HasSpare));
}

#[test]
fn the_scan_for_idle_cores_shrinks_with_utilisation() {
    // `update_idle_cpu_scan` of 4 cores at 512 each: 512^2 x 117^2 / (10000 x 1024) = 350; (1024 - 350) x 4 / 1024 = 2.
    // At 875 each, 85.5 %: 1023, and nothing is left.
    let mut fair = Fair::new(V6_18, &equal(4), TICK_NS, 1);
    for (util, scan) in [(0, 4), (512, 2), (875, 0), (1024, 0)] {
        fair.note_idle_scan(0, When::Idle, 4 * util);
        assert_eq!(fair.domains.scan, [scan]);
        fair.note_idle_scan(0, When::NewlyIdle, 0);
        assert_eq!(fair.domains.scan, [scan], "not by cores that fall idle");
    }
}
