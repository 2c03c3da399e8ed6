//! Balancing between cores with two threads and others.

use super::super::by_load::{Judge, LoadStats};
use super::super::kernel::{V4_14, V6_1};
use super::super::stats::{Busiest, GroupStats, GroupType, Moves, When, sibling_imbalance};
use super::siblings::{smt, smt_hybrid};
use super::*;

/// P-cores 0 and 1, 2 and 3; E-cores 4 to 7, which share an L2.
fn small() -> Topology {
    smt_hybrid(2, 1, Sees::Priorities)
}

/// A rig whose cores, but for the idle ones, have run a thread each for a while.
fn rig(kernel: Kernel, topology: Topology, idle: &[usize]) -> Rig {
    let mut rig = Rig::busy_but(kernel, topology, idle);
    rig.pass(10 * MS);
    rig
}

/// The thread that runs on a core goes to another.
fn pushed(rig: &Rig, from: usize, to: u16) -> Vec<Act> {
    let id = rig.fair.cores[from].current.expect("it runs something");
    let push = Act::Push { thread: rig.fair.thread_of(id), to: CoreId(to) };
    vec![push, Act::Resched(CoreId(to))]
}

#[test]
fn an_idle_e_core_relieves_a_p_core_of_one_of_two_threads() {
    // `group_smt_balance`, `asym_active_balance`: the E-core's priority is less, but 0 has a busy sibling. At once.
    for kernel in [V6_6, V6_18, V7_3] {
        let mut rig = rig(kernel, small(), &[4, 5, 6, 7]);
        let expected = pushed(&rig, 0, 4);
        assert_eq!(rig.balance(4, 1, When::Idle), expected, "{}", kernel.version);
    }
    // 6.1: `asym_smt_can_pull_tasks`, two busy siblings; of these the E-core comes before the second (1120 and 512).
    let mut rig = rig(V6_1, small(), &[4, 5, 6, 7]);
    let expected = pushed(&rig, 1, 4);
    assert_eq!(rig.balance(4, 1, When::Idle), expected);
}

#[test]
fn a_p_core_takes_an_e_cores_thread_only_if_it_is_wholly_idle() {
    // `sched_use_asym_prio`: 1 is idle, but not 0.
    for kernel in [V6_1, V6_6, V6_18, V7_3] {
        let mut rig = rig(kernel, small(), &[1, 2, 3, 5, 6, 7]);
        assert_eq!(rig.balance(1, 1, When::Idle), [], "{}", kernel.version);
        let expected = pushed(&rig, 4, 2);
        assert_eq!(rig.balance(2, 1, When::Idle), expected, "{}", kernel.version);
    }
}

#[test]
fn an_idle_second_thread_leaves_e_cores_alone() {
    // The P-cores run one thread each, the E-cores 4: `sibling_imbalance` of 4 / 4 and 1 / 1 is 0, and 1 <= 0 + 1 cores
    // are idle.
    for kernel in [V6_1, V6_6, V6_18, V7_3] {
        let mut rig = rig(kernel, small(), &[1, 3]);
        for core in [1, 3] {
            assert_eq!(rig.balance(core, 1, When::Idle), [], "{}", kernel.version);
        }
    }
}

#[test]
fn an_idle_p_core_relieves_another() {
    // SD_PREFER_SIBLING: 2 and 0 threads, 2 / 2 = 1 or `group_smt_balance` 1. Pushed after four failures, as no core
    // has priority (`imbalanced_active_balance`).
    for kernel in [V3_16, V4_14, V6_1, V6_6, V6_18, V7_3] {
        let mut rig = rig(kernel, smt(2), &[2, 3]);
        for _ in 0..3 {
            assert_eq!(rig.balance(2, 1, When::Idle), [], "{}", kernel.version);
        }
        let acts = rig.balance(2, 1, When::Idle);
        assert!(matches!(acts[0], Act::Push { to: CoreId(2), .. }), "{} {acts:?}", kernel.version);
    }
}

#[test]
fn without_priorities_e_cores_relieve_p_cores_since_6_6() {
    // Before, an idle E-core of its own, as on a machine without modules, saw no more than one idle core more.
    let topology = || {
        machine(&[(2, 1024.0), (2, 1024.0)], Sees::Nothing, LastLevelCache::Machine)
            .with_siblings(pairs(1))
    };
    for (kernel, moves) in [(V6_1, false), (V6_6, true), (V6_18, true), (V7_3, true)] {
        let mut rig = rig(kernel, topology(), &[2, 3]);
        let acts: Vec<Act> = (0..4).flat_map(|_| rig.balance(2, 0, When::Idle)).collect();
        assert_eq!(!acts.is_empty(), moves, "{} {acts:?}", kernel.version);
    }
}

#[test]
fn a_core_that_is_wholly_idle_balances_first() {
    // `should_we_balance`: 1 is idle, but 0 is busy; 2 and 3 are a whole. Without one it is 1's turn.
    let topology = || {
        machine(&[(4, 1024.0), (4, 1024.0)], Sees::Nothing, LastLevelCache::Cluster)
            .with_siblings(pairs(4))
    };
    let turns = |kernel, idle: &[usize], level| {
        let rig = rig(kernel, topology(), idle);
        let mut of = (0..4).filter(|&core| rig.fair.is_to_balance(core, level, When::Idle));
        (of.next(), of.next())
    };
    for (kernel, first) in [(V4_14, 1), (V6_1, 1), (V6_6, 2), (V6_18, 2), (V7_3, 2)] {
        assert_eq!(turns(kernel, &[1, 2, 3], 2), (Some(first), None), "{}", kernel.version);
        assert_eq!(turns(kernel, &[1], 2), (Some(1), None));
        assert_eq!(turns(kernel, &[], 2), (Some(0), None));
    }
}

#[test]
fn siblings_share_what_is_hot() {
    // `task_hot`: not within a physical core (since 5.10).
    let mut rig = rig(V6_18, smt(2), &[1, 2, 3]);
    let waiting = rig.start(0, 0);
    rig.of(waiting).charged_ns = rig.now_ns;
    assert_eq!(rig.balance(2, 1, When::Idle), []);
    let expected = vec![Act::Move { thread: waiting, to: CoreId(1) }, Act::Resched(CoreId(1))];
    assert_eq!(rig.balance(1, 0, When::Idle), expected);
}

/// A group with so many threads, and whether it is a P-core with two.
fn group(cores: u64, threads: u64, are_siblings: bool) -> GroupStats {
    let mut stats = GroupStats {
        capacity: 1024 * cores,
        util: 1024 * threads,
        runnable: 1024 * threads,
        threads,
        able: threads,
        idle_cores: cores - threads,
        cores,
        seconds: u64::from(are_siblings),
        are_siblings,
        ..GroupStats::default()
    };
    stats.is_to_relieve = are_siblings && threads > 1;
    stats.classify(117, false);
    stats
}

#[test]
fn busy_siblings_come_after_packing_and_before_misfits() {
    // `group_classify`.
    let mut stats = group(2, 2, true);
    assert_eq!(stats.kind, GroupType::Siblings);
    stats.misfit_load = 9;
    stats.classify(117, false);
    assert_eq!(stats.kind, GroupType::Siblings);
    stats.packs = true;
    stats.classify(117, false);
    assert_eq!(stats.kind, GroupType::Packing);
}

#[test]
fn threads_are_counted_by_physical_cores() {
    // `sibling_imbalance`: 1 x 4 - 4 x 0 = 4; (2 x 4 + 5) / 5 = 2. By hardware threads it were (2 x 8 + 6) / 6 = 3.
    let gap = |busiest, local| sibling_imbalance(When::Idle, &busiest, &local);
    assert_eq!(gap(group(4, 4, false), group(2, 0, true)), 2);
    // 4 x 2 - 1 x 1 = 7; (2 x 7 + 5) / 5 = 3.
    assert_eq!(gap(group(2, 2, true), group(4, 1, false)), 3);
}

#[test]
fn a_single_thread_of_a_p_core_is_left_alone() {
    // `update_sd_pick_busiest`, `smt_vs_nonsmt_groups`: P-core group 0, module group 2 of `small`.
    for kernel in [V6_6, V6_18, V7_3] {
        let fair = Fair::new(kernel, &small(), TICK_NS, 1);
        let domain = fair.domains.all.len() - 1;
        let busier = |one: (usize, GroupStats), other: (usize, GroupStats)| {
            fair.is_busier(2, domain, (one.0, &one.1), Some(other), GroupType::HasSpare)
        };
        let (single, module) = ((0, group(2, 1, true)), (2, group(4, 1, false)));
        assert!(!busier(single, module), "though it has fewer idle cores");
        assert!(busier(module, single));
        // Of two that are to be relieved the first (`group_fully_busy`).
        let double = (0, group(2, 2, true));
        assert!(!busier(double, (1, double.1)) && busier(double, module));
        // Both threads of one wait on one side: rather the one without an idle side.
        let crowded = (1, GroupStats { idle_cores: 1, ..double.1 });
        assert!(busier(double, crowded) && !busier(crowded, double));
    }
}

#[test]
fn up_to_6_3_numbers_of_busy_siblings_decided() {
    // `asym_smt_can_pull_tasks`: with siblings on both sides if exactly one more is busy, and by priority: that of 2 is
    // 2048, of 1 512; without any there, if nothing runs here; without any here, if two are busy there.
    let fair = Fair::new(V6_1, &small(), TICK_NS, 1);
    let domain = fair.domains.all.len() - 1;
    let before = |core, preferred, stats: GroupStats, local: GroupStats| {
        fair.comes_before(core, domain, preferred, &stats, &local)
    };
    let (p, e) = (|threads| group(2, threads, true), |threads| group(4, threads, false));
    assert_eq!([1, 2].map(|busy| before(2, 1, p(busy), p(0))), [true, false]);
    assert_eq!([1, 2].map(|busy| before(2, 1, p(busy), p(1))), [false, true]);
    assert!(!before(2, 0, p(1), p(0)), "equal");
    assert_eq!([0, 1].map(|busy| before(2, 4, e(1), p(busy))), [true, false]);
    assert_eq!([1, 2].map(|busy| before(4, 0, p(busy), e(0))), [false, true]);
}

#[test]
fn misfits_go_to_wholly_idle_cores_since_7_2() {
    // `update_sd_pick_busiest`, `env->dst_core_idle`: 2 and 3 are siblings of 1024, 0 and 1 of 512.
    let topology = || little_and_big().with_siblings(pairs(2));
    for (kernel, taken) in [(V6_18, true), (V7_3, false)] {
        let rig = rig(kernel, topology(), &[1, 3]);
        let misfit = GroupStats { kind: GroupType::Misfit, misfit_load: 700, ..group(2, 1, true) };
        let domain = rig.fair.domains.all.len() - 1;
        let found = rig.fair.is_busier(3, domain, (0, &misfit), None, GroupType::HasSpare);
        assert_eq!(found, taken, "{}", kernel.version);
    }
}

#[test]
fn up_to_4_14_a_woken_thread_seeks_a_physical_core_too() {
    let woken = |rig: &mut Rig, core: usize| {
        let thread = rig.add(0, None);
        let entity = rig.of(thread);
        (entity.queue, entity.recent_core) = (core as u32, core as u16);
        rig.place(thread, EnqueueKind::Wake, core)
    };
    // 3.16 `select_idle_sibling`: the next group that is wholly idle, 4 and 5; else the target's sibling; else the
    // target, though 3 is idle. 4.14: `select_idle_core`, `select_idle_cpu` with 3 looks at most, `select_idle_smt`.
    for (kernel, last) in [(V3_16, 0), (V4_14, 3)] {
        let mut all = rig(kernel, smt(4), &[3, 4, 5]);
        assert_eq!(woken(&mut all, 0), 4, "{}", kernel.version);
        let mut halves = rig(kernel, smt(4), &[1, 3]);
        assert_eq!(woken(&mut halves, 0), 1, "{}", kernel.version);
        let mut other = rig(kernel, smt(4), &[3]);
        assert_eq!(woken(&mut other, 0), last, "{}", kernel.version);
        assert_eq!(other.fair.knows_idle_core(0), kernel == V3_16, "set_idle_cores");
    }
}

#[test]
fn up_to_4_14_a_physical_core_could_do_1178() {
    // 3.16 `sg_capacity_factor`: ceil(2048 / 1178) = 2 and 2 / 2 = 1: two threads are too many. Of one sibling
    // ceil(1024 / 589) = 2 and 1 / 2 = 0, but `fix_small_capacity` makes it 1.
    let judge = |counts_threads| Judge { when: When::Idle, imbalance_pct: 117, counts_threads };
    let stats = |cores: u64, threads: u64, capacity: u64| LoadStats {
        load: 1024 * threads,
        present: 1024 * threads,
        util: capacity.min(589 * threads),
        threads,
        cores,
        capacity,
        is_sibling: cores == 1,
        ..LoadStats::default()
    };
    let overloaded = |counts, mut stats: LoadStats| {
        stats.finish(&judge(counts), false);
        stats.is_overloaded
    };
    assert_eq!([1, 2].map(|n| overloaded(true, stats(2, n, 1178))), [false, true]);
    assert_eq!([1, 2].map(|n| overloaded(true, stats(1, n, 589))), [false, true]);
    // 4.14 `group_no_capacity`: no more threads than cores; only next to a core with two fewer (SD_PREFER_SIBLING).
    assert!(!overloaded(false, stats(2, 2, 1178)));
    for (threads, is_spread) in [(0, true), (1, false)] {
        let (mut local, mut busiest) = (stats(2, threads, 1178), stats(2, 2, 1178));
        local.finish(&judge(false), false);
        busiest.finish(&judge(false), false);
        busiest.spread(&local);
        assert_eq!(busiest.is_overloaded, is_spread);
    }
}

#[test]
fn since_6_4_priorities_do_not_count_where_two_siblings_are_busy() {
    // `sched_group_asym`: group_weight - idle_cpus != 1. 2 is wholly idle, and comes before an E-core's priority.
    for kernel in [V6_6, V6_18, V7_3] {
        let rig = rig(kernel, small(), &[2, 3]);
        let domain = rig.fair.domains.all.len() - 1;
        let local = group(2, 0, true);
        let found =
            [1, 2].map(|busy| rig.fair.comes_before(2, domain, 4, &group(2, busy, true), &local));
        assert_eq!(found, [true, false], "{}", kernel.version);
    }
}

#[test]
fn little_cores_help_big_ones_of_which_both_threads_are_busy_since_7_2() {
    // `sched_balance_find_src_rq`, `smt_degraded_cap`: one thread each on 2 and 3, siblings of 1024.
    let topology = || little_and_big().with_siblings(pairs(2));
    for (kernel, idle, source) in
        [(V6_18, &[0, 1][..], None), (V7_3, &[0, 1], Some(2)), (V7_3, &[0, 1, 3], None)]
    {
        let rig = rig(kernel, topology(), idle);
        let found = Busiest { group: 1, moves: Moves::Threads, imbalance: 1 };
        assert_eq!(rig.fair.busiest_core(0, 1, &found), source, "{} {idle:?}", kernel.version);
    }
}

#[test]
fn where_nothing_spreads_only_cores_without_siblings_relieve() {
    // `smt_vs_nonsmt_groups`, in an asymmetric domain of 6.18 without SD_PREFER_SIBLING: 1 idle core is no more than 0
    // and 1.
    let topology = little_and_big().with_siblings([(CoreId(2), CoreId(3))]);
    let fair = Fair::new(V6_18, &topology, TICK_NS, 1);
    let domain = fair.domains.all.len() - 1;
    let moves = |local| {
        let busiest = (1, group(2, 2, true));
        fair.judge(domain, When::Idle, local, busiest, GroupStats::default()).is_some()
    };
    assert!(moves(group(1, 0, false)));
    assert!(!moves(group(2, 1, true)));
}
