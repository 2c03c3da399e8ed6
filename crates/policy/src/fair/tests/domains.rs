//! Domains that a kernel builds (`build_sched_domains`, `sd_init`, `build_sched_groups`).

use super::super::domains::{Domain, Domains};
use super::*;

fn domains(kernel: &Kernel, topology: &Topology) -> Domains {
    Fair::new(*kernel, topology, TICK_NS, 1).domains
}

fn groups(domain: &Domain) -> Vec<&[usize]> {
    domain.groups.iter().map(|group| &group.cores[..]).collect()
}

/// Names of a core's domains, the smallest first.
fn names(domains: &Domains, core: usize) -> Vec<&'static str> {
    domains.of_core[core].iter().map(|level| domains.all[level.domain].name).collect()
}

#[test]
fn four_equal_cores_have_one_domain_of_single_cores() {
    let domains = domains(&V6_18, &equal(4));
    assert_eq!(names(&domains, 3), ["MC"]);
    let own = &domains.all[0];
    assert_eq!(groups(own), [[0], [1], [2], [3]]);
    assert_eq!(
        (own.shares_cache, own.spreads, own.is_asymmetric, own.packs),
        (true, false, false, false)
    );
    // `sd_init`: min_interval sd_weight, max_interval twice that, imbalance_pct 117, cache_nice_tries 1.
    assert_eq!(
        (own.interval_min, own.interval_max, own.imbalance_pct, own.cache_nice_tries),
        (4, 8, 117, 1)
    );
}

#[test]
fn one_core_has_no_domain() {
    assert_eq!(names(&domains(&V6_18, &equal(1)), 0), Vec::<&str>::new());
}

#[test]
fn clusters_below_a_shared_cache_are_a_level() {
    let domains = domains(&V6_18, &little_and_big());
    assert_eq!([0, 3].map(|core| names(&domains, core)), [["CLS", "MC"]; 2]);
    assert!(domains.share_cache(0, 3));
    let [little, big, whole] = [(0, 0), (2, 0), (0, 1)]
        .map(|(core, level): (usize, usize)| &domains.all[domains.of_core[core][level].domain]);
    assert_eq!([groups(little), groups(big)], [[[0], [1]], [[2], [3]]]);
    assert_eq!(groups(whole), [[0, 1], [2, 3]]);
    // `asym_cpu_capacity_classify`: only the whole has both capacities; there nothing spreads (`sd_init`).
    assert_eq!([little, big, whole].map(|domain| domain.is_asymmetric), [false, false, true]);
    assert!(!whole.spreads);
    let of_7_3 = Fair::new(V7_3, &little_and_big(), TICK_NS, 1).domains;
    assert!(of_7_3.all[2].spreads, "as seen in 7.3");
    assert_eq!(
        whole.groups.iter().map(|group| group.capacity_max).collect::<Vec<_>>(),
        [512, 1024]
    );
    assert_eq!(domains.asymmetric, [Some(2); 4]);
}

#[test]
fn clusters_with_a_cache_each_share_only_the_package() {
    let topology = machine(&[(2, 512.0), (2, 1024.0)], Sees::Capacities, LastLevelCache::Cluster);
    let domains = domains(&V6_18, &topology);
    assert_eq!([0, 3].map(|core| names(&domains, core)), [["MC", "PKG"]; 2]);
    assert!(domains.share_cache(0, 1) && !domains.share_cache(1, 2));
    let whole = &domains.all[domains.of_core[0][1].domain];
    assert_eq!(groups(whole), [[0, 1], [2, 3]]);
    assert_eq!((whole.is_asymmetric, whole.spreads, whole.shares_cache), (true, false, false));
}

#[test]
fn equal_clusters_with_a_cache_each_spread_threads() {
    // SD_PREFER_SIBLING of the groups; 117 since 5.10, before 125 above the last-level cache.
    let topology = machine(&[(2, 1024.0), (2, 1024.0)], Sees::Nothing, LastLevelCache::Cluster);
    for (kernel, imbalance_pct) in [(V6_18, 117), (V3_16, 125)] {
        let domains = domains(&kernel, &topology);
        let whole = &domains.all[domains.of_core[0][1].domain];
        assert_eq!((whole.spreads, whole.imbalance_pct), (true, imbalance_pct));
    }
}

#[test]
fn kernels_that_see_nothing_take_all_cores_for_equal() {
    let topology = machine(&[(2, 512.0), (2, 1024.0)], Sees::Nothing, LastLevelCache::Machine);
    let fair = Fair::new(V6_18, &topology, TICK_NS, 1);
    assert_eq!(fair.cores.iter().map(|core| core.capacity_max).collect::<Vec<_>>(), [1024; 4]);
    assert!(!fair.domains.is_asymmetric);
    // Nor does a kernel before 4.20 tell them apart.
    let fair = Fair::new(V3_16, &little_and_big(), TICK_NS, 1);
    assert_eq!(fair.cores[0].capacity_max, 1024);
}

#[test]
fn hybrids_have_an_order_of_cores() {
    // ITMT: SD_ASYM_PACKING, and a priority of each core (`arch_asym_cpu_priority`); capacities are not known.
    let topology = machine(&[(8, 1024.0), (16, 560.0)], Sees::Priorities, LastLevelCache::Machine);
    let fair = Fair::new(V6_18, &topology, TICK_NS, 1);
    let own = &fair.domains.all[0];
    assert_eq!((own.name, own.groups.len(), own.packs, own.is_asymmetric), ("MC", 24, true, false));
    assert!(fair.is_preferred(7, 8) && !fair.is_preferred(8, 7), "P-cores come first");
    assert!(!fair.is_preferred(0, 7) && !fair.is_preferred(8, 23), "equal ones have no order");
    assert_eq!(fair.cores[23].capacity_max, 1024);
}

#[test]
fn groups_of_hybrids_name_their_best_core() {
    // `asym_prefer_cpu`: the first of the highest priority.
    let topology = machine(&[(2, 560.0), (2, 1024.0)], Sees::Priorities, LastLevelCache::Cluster);
    let domains = domains(&V6_18, &topology);
    let whole = &domains.all[domains.of_core[0][1].domain];
    assert_eq!(whole.groups.iter().map(|group| group.preferred).collect::<Vec<_>>(), [0, 2]);
    assert!(whole.packs);
    let inner = &domains.all[domains.of_core[0][0].domain];
    assert!(!inner.packs, "its cores are equal");
}

#[test]
fn e_cores_that_share_a_cache_are_a_cluster() {
    // `cpu_clustergroup_mask` of x86-64: cores with one L2. A P-core's level has one core and goes (`sd_degenerate`).
    let domains = domains(&V6_18, &hybrid(2));
    let names = |core: usize| -> Vec<&str> {
        domains.of_core[core].iter().map(|level| domains.all[level.domain].name).collect()
    };
    assert_eq!([names(0), names(2), names(9)], [vec!["MC"], vec!["CLS", "MC"], vec!["CLS", "MC"]]);
    let whole = &domains.all[domains.of_core[0][0].domain];
    assert_eq!(groups(whole), [&[0][..], &[1], &[2, 3, 4, 5], &[6, 7, 8, 9]]);
    assert!(whole.packs && whole.spreads);
    // `sd_share_id`: P-cores share the last-level cache with each other only.
    assert!(domains.share_cluster(0, 1) && domains.share_cluster(2, 5));
    assert!(!domains.share_cluster(1, 2) && !domains.share_cluster(5, 6));
}

#[test]
fn before_6_8_waking_does_not_tell_clusters_apart() {
    let domains = domains(&V6_6, &hybrid(2));
    assert_eq!(domains.all[domains.of_core[2][0].domain].name, "CLS");
    assert!(domains.share_cluster(1, 2) && domains.cluster(2).is_none());
}
