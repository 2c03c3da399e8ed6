//! Cores with two threads: domains, and where threads go.

use super::super::kernel::{V4_14, V6_1};
use super::*;

/// So many physical cores of two threads each, then so many modules of four slow cores that share a second-level
/// cache.
pub(super) fn smt_hybrid(fast: usize, modules: usize, sees: Sees) -> Topology {
    with_modules(2 * fast, modules, sees).with_siblings(pairs(fast))
}

/// So many equal physical cores of two threads each.
pub(super) fn smt(cores: usize) -> Topology {
    equal(2 * cores).with_siblings(pairs(cores))
}

impl Rig {
    /// On a machine whose cores run a thread each, but for the idle ones.
    pub(super) fn busy_but(kernel: Kernel, topology: Topology, idle: &[usize]) -> Self {
        let mut rig = Self::on(kernel, topology);
        for core in 0..rig.fair.cores.len() {
            if !idle.contains(&core) {
                rig.start(0, core);
                rig.choose(core);
            }
        }
        rig.fair.domains.scan.fill(64);
        rig
    }

    /// Where a sleeping thread goes that ran on a core last, woken from there.
    fn woken_on(&mut self, core: usize) -> usize {
        let thread = self.add(0, None);
        let entity = self.of(thread);
        (entity.queue, entity.recent_core) = (core as u32, core as u16);
        self.place(thread, EnqueueKind::Wake, core)
    }

    /// Whether some physical core near core 0 is noted as idle.
    fn notes_idle_core(&self) -> bool {
        self.fair.knows_idle_core(0)
    }
}

fn names(rig: &Rig, core: usize) -> Vec<&'static str> {
    let domains = &rig.fair.domains;
    domains.of_core[core].iter().map(|level| domains.all[level.domain].name).collect()
}

#[test]
fn siblings_are_a_domain_below_the_cache() {
    // `sd_init`: SMT 110 %, no hot cache, 2 to 4 ms. E-cores have no such level, P-cores none of clusters
    // (`sd_degenerate`).
    for kernel in [V6_6, V6_18, V7_3] {
        let rig = Rig::on(kernel, smt_hybrid(4, 2, Sees::Priorities));
        assert_eq!([names(&rig, 0), names(&rig, 8)], [vec!["SMT", "MC"], vec!["CLS", "MC"]]);
        let domains = &rig.fair.domains;
        let own = &domains.all[domains.of_core[3][0].domain];
        assert_eq!(
            (&own.cores[..], own.imbalance_pct, own.cache_nice_tries),
            (&[2, 3][..], 110, 0)
        );
        assert_eq!((own.interval_min, own.interval_max, own.shares_cache), (2, 4, true));
        assert!(!own.packs && !own.spreads, "since 6.4 (`x86_smt_flags`)");
        let whole = &domains.all[domains.of_core[0][1].domain];
        let of = |group: usize| (whole.groups[group].are_siblings, whole.groups[group].physical);
        // `sg->cores`: 1 for a P-core, 4 for a module.
        assert_eq!([of(0), of(3), of(4)], [(true, 1), (true, 1), (false, 4)]);
        assert!(whole.packs && whole.spreads);
        assert!(domains.share_cluster(0, 7));
        assert_eq!(domains.share_cluster(7, 8), !kernel.prefers_cluster);
    }
}

#[test]
fn second_threads_came_last_up_to_6_3() {
    // `sched_set_itmt_core_prio`: prio x 2 / place^2: 2048 and 512 for a P-core's threads, 1120 for an E-core.
    let priority = |kernel| {
        let rig = Rig::on(kernel, smt_hybrid(4, 2, Sees::Priorities));
        [0, 1, 8].map(|core| rig.fair.domains.priority[core])
    };
    assert_eq!(priority(V6_1), [2048, 512, 1120]);
    assert_eq!(priority(V6_18), [1024, 1024, 560]);
    // And a thread was packed on the first one (`x86_smt_flags` with SD_ASYM_PACKING).
    let rig = Rig::on(V6_1, smt_hybrid(4, 2, Sees::Priorities));
    assert!(rig.fair.domains.all[rig.fair.domains.of_core[0][0].domain].packs);
}

#[test]
fn siblings_had_589_each_up_to_5_2() {
    // `smt_gain` 1178 / 2.
    for (kernel, capacity) in [(V3_16, 589), (V4_14, 589), (V6_1, 1024), (V7_3, 1024)] {
        let rig = Rig::on(kernel, smt_hybrid(4, 2, Sees::Priorities));
        let found = [0, 7, 8].map(|core| rig.fair.cores[core].capacity_max);
        assert_eq!(found, [capacity, capacity, 1024], "{}", kernel.version);
    }
}

#[test]
fn a_woken_thread_seeks_a_physical_core_that_is_idle() {
    // `select_idle_core`: 1 and 2 are idle, but next to a busy one; 4 and 5 are a whole.
    for kernel in [V6_1, V6_6, V6_18, V7_3] {
        let mut rig = Rig::busy_but(kernel, smt(4), &[1, 2, 4, 5]);
        assert_eq!(rig.woken_on(0), 4, "{}", kernel.version);
        // The scan is not bounded then, unless there is nothing to look for (`nr == 1`).
        rig.fair.domains.scan.fill(1);
        assert_eq!(rig.woken_on(0), 4, "{}", kernel.version);
        rig.fair.domains.scan.fill(0);
        assert_eq!(rig.woken_on(0), 0, "{}", kernel.version);
    }
}

#[test]
fn of_no_idle_core_the_first_idle_thread_is_taken_and_that_is_noted() {
    // `select_idle_core`'s `idle_cpu`: from core 0 on, 3 is passed first. Then `set_idle_cores` is off, and the sibling
    // of the last core is looked at before all others (`select_idle_smt`).
    for kernel in [V6_1, V6_18, V7_3] {
        let mut rig = Rig::busy_but(kernel, smt(4), &[3, 7]);
        assert!(rig.notes_idle_core());
        assert_eq!(rig.woken_on(0), 3);
        assert!(!rig.notes_idle_core());
        assert_eq!(rig.woken_on(6), 7, "its sibling");
        assert_eq!(rig.woken_on(4), 7, "the next one");
        assert_eq!(rig.woken_on(0), 3);
    }
}

#[test]
fn a_core_that_falls_idle_beside_an_idle_one_is_noted() {
    // `update_idle_core`.
    let mut rig = Rig::busy_but(V6_18, smt(2), &[3]);
    rig.fair.forget_idle_core(0);
    let fall_idle = |rig: &mut Rig, core: usize| {
        let id = rig.fair.cores[core].current.unwrap();
        let thread = rig.fair.thread_of(id);
        rig.leave(thread, core, RunState::Exited);
        assert_eq!(rig.choose(core), None);
    };
    fall_idle(&mut rig, 0);
    assert!(!rig.notes_idle_core(), "1 is busy");
    fall_idle(&mut rig, 2);
    assert!(rig.notes_idle_core());
}

#[test]
fn an_e_core_is_a_physical_core_too() {
    // From P-core 2 on: E-core 8 is idle as a whole, P-core 5 is not.
    for kernel in [V6_18, V7_3] {
        let mut rig = Rig::busy_but(kernel, smt_hybrid(4, 2, Sees::Priorities), &[5, 12]);
        assert_eq!(rig.woken_on(2), 12);
        // In the own module first (`sched_cluster_active`), as long as there is an idle one.
        let mut rig = Rig::busy_but(kernel, smt_hybrid(4, 2, Sees::Priorities), &[0, 1, 11, 12]);
        assert_eq!(rig.woken_on(8), 11);
        assert_eq!(rig.woken_on(13), 12);
    }
}

#[test]
fn cores_that_are_not_allowed_make_no_whole() {
    // `select_idle_core` looks at siblings that are not allowed, but takes none of them.
    let mut rig = Rig::busy_but(V6_18, smt(3), &[2, 3, 5]);
    let thread = rig.add(0, Some(&[0, 3, 5]));
    rig.of(thread).queue = 0;
    assert_eq!(rig.place(thread, EnqueueKind::Wake, 0), 3);
}

#[test]
fn where_capacities_differ_siblings_count_since_7_2() {
    // `asym_fits_cpu`, `select_idle_capacity`: 2 x 2 threads of 512, 2 x 2 of 1024. Of 100 on core 1, beside a busy
    // one: 6.18 stays, 7.3 takes the next idle physical core where it fits. 500 fits on no little one.
    let topology = || {
        machine(&[(4, 512.0), (4, 1024.0)], Sees::Capacities, LastLevelCache::Machine)
            .with_siblings(pairs(4))
    };
    for (kernel, util, idle, expected) in [
        (V6_18, 100, &[1, 2, 3, 6, 7][..], 1),
        (V7_3, 100, &[1, 2, 3, 6, 7], 2),
        (V7_3, 500, &[1, 2, 3, 6, 7], 6),
        // An idle little core before half of a big one where it fits.
        (V7_3, 500, &[2, 3, 6], 2),
        (V6_18, 500, &[2, 3, 6], 6),
        // No core is idle: half of one where it fits.
        (V7_3, 500, &[2, 6], 6),
    ] {
        let mut rig = Rig::busy_but(kernel, topology(), idle);
        let thread = rig.add(0, None);
        rig.of(thread).queue = 1;
        rig.of(thread).recent_core = 1;
        rig.set_util(thread, util);
        let found = rig.place(thread, EnqueueKind::Wake, 1);
        assert_eq!(found, expected, "{} {util} {idle:?}", kernel.version);
    }
}

#[test]
fn new_threads_go_where_most_cores_are_idle() {
    // `update_pick_idlest`: a module has 4, a P-core 2, that of who starts 1; of equals the least used, the first.
    // Balancing brings them to P-cores afterwards.
    for kernel in [V6_18, V7_3] {
        let mut rig = Rig::on(kernel, smt_hybrid(4, 2, Sees::Priorities));
        let mut found = Vec::new();
        for _ in 0..12 {
            let thread = rig.add(0, None);
            let core = rig.fair.place(&rig.sched, thread, EnqueueKind::Fork, None, 0);
            rig.enqueue(thread, core.index(), EnqueueKind::Fork);
            rig.choose(core.index());
            found.push(core.index());
        }
        // Modules of 4 and 4 down to 2 and 2; P-cores of 2, which are less used; modules of 2; now the own P-core has
        // as many as any; last the less used ones of 1.
        assert_eq!(found, [8, 12, 9, 13, 2, 4, 6, 10, 14, 1, 3, 5], "{}", kernel.version);
    }
}

#[test]
fn energy_and_smt_do_not_go_together() {
    // `sched_is_eas_possible`, `build_perf_domains`.
    let uses = |topology: &Topology| Fair::new(V6_18, topology, TICK_NS, 1).uses_energy();
    assert!(uses(&super::energy::board()));
    assert!(!uses(&super::energy::board().with_siblings([(CoreId(2), CoreId(3))])));
}
