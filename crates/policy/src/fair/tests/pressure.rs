//! Capacity that heat takes, by kernel.

use ampsched_model::ClusterId;

use super::super::kernel::{Pressure, V4_14, V6_1};
use super::super::stats::{Busiest, GroupType, Moves, When};
use super::energy::board;
use super::*;
use crate::sched::Fit;

/// A period of load tracking.
const PERIOD_NS: Ns = 1024 * 1024;
const BIG: ClusterId = ClusterId(1);

impl Rig {
    /// Heat allows a cluster so many MHz from now on.
    fn cap(&mut self, cluster: ClusterId, mhz: u32) {
        self.sched.set_cap(cluster, mhz);
        self.fair.capped(&self.sched, cluster, self.now_ns);
    }

    /// Cores balance their smallest domain, some time after.
    fn find_out(&mut self, cores: &[usize], after_ns: Ns) {
        self.pass(after_ns);
        for &core in cores {
            self.fair.settle_core(core);
            self.balance(core, 0, When::Idle);
        }
        self.fair.recount(&self.sched).unwrap();
    }

    fn left(&self) -> Vec<u64> {
        self.fair.cores.iter().map(|core| core.capacity).collect()
    }
}

/// Cores 2 and 3 may have 600 of 1000 MHz, and have found out long after: 1024 - 1024 x 600 / 1000 = 410 are taken.
fn hot(kernel: Kernel) -> Rig {
    let mut rig = Rig::on(kernel, little_and_big());
    rig.cap(BIG, 600);
    rig.find_out(&[2, 3], 2_000 * PERIOD_NS);
    rig
}

#[test]
fn what_heat_takes_is_averaged_up_to_6_9_and_counts_at_once_since() {
    // `thermal_load_avg`: half of 410 after 32 periods, 3/4 = 307 after 64; then half of what was left.
    for (kernel, expected) in [
        (V3_16, [1024; 4]),
        (V4_14, [1024; 4]),
        (V6_1, [1024 - 205, 1024 - 307, 614, 614 + 205]),
        (V6_6, [1024 - 205, 1024 - 307, 614, 614 + 205]),
        (V6_18, [614, 614, 614, 1024]),
        (V7_3, [614, 614, 614, 1024]),
    ] {
        let mut rig = Rig::on(kernel, little_and_big());
        rig.cap(BIG, 600);
        assert_eq!(rig.left()[2], 1024, "{}: it has not balanced yet", kernel.version);
        let caps = [(600, 32), (600, 32), (600, 2_000), (1000, 32)];
        for ((mhz, periods), expected) in caps.into_iter().zip(expected) {
            rig.cap(BIG, mhz);
            rig.find_out(&[2], periods * PERIOD_NS);
            let left = rig.left()[2];
            // Sums are rounded down wherever they decay.
            assert!((expected..=expected + 1).contains(&left), "{}: {left}", kernel.version);
        }
        assert_eq!(rig.left()[3], 1024, "{}: it has never balanced", kernel.version);
        rig.find_out(&[2, 3], 2_000 * PERIOD_NS);
        assert_eq!(rig.left()[2..], [1024, 1024]);
        assert!(rig.fair.cores.iter().all(|core| core.taken.is_none()), "nothing is left of it");
    }
}

#[test]
fn only_kernels_that_know_capacities_hear_of_heat() {
    for sees in [Sees::Nothing, Sees::Priorities, Sees::Capacities] {
        let topology = machine(&[(2, 512.0), (2, 1024.0)], sees, LastLevelCache::Machine);
        let mut rig = Rig::on(V7_3, topology);
        rig.cap(BIG, 600);
        let takes = rig.fair.cores[2].taken.is_some();
        assert_eq!(takes, sees == Sees::Capacities);
        assert!(rig.fair.cores[0].taken.is_none(), "of the other cluster nothing is taken");
    }
}

#[test]
fn a_core_that_falls_idle_finds_out_once_in_a_while() {
    // `update_sd_lb_stats`: not before `next_update`, a tick after the last time here.
    let mut rig = hot(V6_18);
    rig.cap(BIG, 800);
    rig.fair.note_capacity(2, 0, When::NewlyIdle);
    assert_eq!(rig.left()[2], 614);
    rig.pass(2 * TICK_NS);
    rig.fair.note_capacity(2, 1, When::Idle);
    assert_eq!(rig.left()[2], 614, "only with the smallest domain");
    rig.fair.note_capacity(2, 0, When::NewlyIdle);
    assert_eq!(rig.left()[2], 1024 * 800 / 1000);
}

#[test]
fn what_fits_goes_by_what_is_left_and_clamps_by_what_is_within_reach() {
    // `util_fits_cpu`: 490 x 1280 < 614 x 1024 <= 500 x 1280; `uclamp_max` is compared with the whole capacity.
    for kernel in [V6_6, V6_18] {
        let mut rig = hot(kernel);
        rig.cap(BIG, 500);
        let thread = rig.add(0, None);
        let id = rig.fair.id(thread);
        for (util, clamps, expected) in [
            (490, (0, 1024), Fit::Well),
            (500, (0, 1024), Fit::Not),
            (500, (0, 1000), Fit::Well),
            // 512 are within reach already, though 614 are left as of the last balancing.
            (400, (512, 1024), Fit::Well),
            (400, (513, 1024), Fit::Slow),
        ] {
            rig.set_util(thread, util);
            rig.of(thread).clamps = clamps;
            assert_eq!(rig.fair.fit_on(id, 2), expected, "{} {util} {clamps:?}", kernel.version);
        }
    }
}

#[test]
fn a_core_is_over_utilised_sooner() {
    // `cpu_overutilized`: 490 fits into 614, 500 does not.
    for (util, left, expected) in [(490, 614, false), (500, 614, true), (500, 1024, false)] {
        let mut rig = if left < 1024 { hot(V6_18) } else { Rig::on(V6_18, little_and_big()) };
        rig.set_core(2, util, 1);
        assert_eq!(rig.fair.is_overutilised(2), expected, "{util} {left}");
    }
}

#[test]
fn a_thread_that_fits_nowhere_wakes_up_on_the_core_with_most_left() {
    // `select_idle_capacity`: 600 fits neither into 512 nor into 1024 x 400 / 1000 = 409.
    for kernel in [V6_1, V6_6, V6_18, V7_3] {
        let woken = |rig: &mut Rig| {
            let thread = rig.add(0, None);
            rig.of(thread).queue = 2;
            rig.of(thread).recent_core = 2;
            rig.set_util(thread, 600);
            rig.fair.domains.scan.fill(64);
            rig.place(thread, EnqueueKind::Wake, 2)
        };
        let mut rig = hot(kernel);
        rig.cap(BIG, 400);
        assert_eq!(woken(&mut rig), 2, "{}: the cores have not found out yet", kernel.version);
        rig.find_out(&[2, 3], 2_000 * PERIOD_NS);
        assert_eq!(woken(&mut rig), 0, "{}", kernel.version);
    }
}

#[test]
fn a_thread_that_asks_for_much_goes_where_most_is_within_reach() {
    // `select_idle_capacity`, `find_energy_efficient_cpu`: 1000 are nowhere; 614 or 682 are more than 512, but not 409
    // or 341, whatever cores have found out.
    for kernel in [V6_6, V6_18] {
        let highs = [(little_and_big(), 600, 2), (board(), 2, 2), (board(), 1, 0)];
        for (topology, mhz, expected) in highs.into_iter().chain([(little_and_big(), 400, 0)]) {
            let mut rig = Rig::on(kernel, topology);
            rig.cap(BIG, mhz);
            let thread = rig.add(0, None);
            rig.set_util(thread, 100);
            rig.of(thread).clamps = (1000, 1024);
            rig.of(thread).queue = 2;
            rig.of(thread).recent_core = 2;
            assert_eq!(
                rig.place(thread, EnqueueKind::Wake, 2),
                expected,
                "{} {mhz}",
                kernel.version
            );
        }
    }
}

#[test]
fn a_thread_of_the_greatest_core_is_a_misfit_up_to_6_9() {
    // `update_misfit_status`; since 6.10 not on a core of the greatest capacity that the thread may use.
    for (kernel, expected) in [(V6_1, true), (V6_6, true), (V6_18, false), (V7_3, false)] {
        let mut rig = hot(kernel);
        let thread = rig.start(0, 2);
        rig.choose(2);
        rig.set_util(thread, 600);
        rig.fair.note_misfit(2);
        assert_eq!(rig.fair.cores[2].misfit_load > 0, expected, "{}", kernel.version);
        let is_averaged = kernel.pressure == Pressure::Averaged;
        assert_eq!(is_averaged, expected);
    }
}

#[test]
fn slow_cores_take_misfits_of_throttled_ones_and_these_take_none() {
    // `capacity_greater`: 512 x 1024 > 409 x 1078, so 0 takes the thread of 2 (6.6); 2 takes none of 0.
    let mut rig = Rig::on(V6_6, little_and_big());
    rig.cap(BIG, 400);
    rig.find_out(&[2, 3], 2_000 * PERIOD_NS);
    let thread = rig.start(0, 2);
    rig.choose(2);
    rig.set_util(thread, 600);
    rig.fair.note_misfit(2);
    rig.pass(10 * MS);
    let acts = rig.balance(0, 1, When::Idle);
    assert_eq!(acts, [Act::Push { thread, to: CoreId(0) }, Act::Resched(CoreId(0))]);
    rig.choose(0);
    rig.set_util(thread, 600);
    rig.fair.note_misfit(0);
    assert!(rig.fair.cores[0].misfit_load > 0, "it does not fit there either");
    rig.pass(10 * MS);
    assert_eq!(rig.balance(2, 1, When::Idle), []);
    // As soon as they are cool: 1024.
    rig.cap(BIG, 1000);
    rig.find_out(&[2, 3], 2_000 * PERIOD_NS);
    assert_eq!(rig.balance(2, 1, When::Idle)[0], Act::Push { thread, to: CoreId(2) });
}

#[test]
fn an_idle_core_of_an_equal_cluster_takes_the_thread_of_a_throttled_one() {
    // `sched_reduced_capacity`, `need_active_balance`: 117 x 614 < 100 x 1024, but 117 x 900 is not; the tick of the
    // core with the thread has idle ones balance (`nohz_balancer_kick`).
    let equal = [(2, 1024.0), (2, 1024.0)];
    for kernel in [V6_1, V6_6, V6_18, V7_3] {
        for (mhz, takes) in [(600, true), (879, false)] {
            let topology = machine(&equal, Sees::Capacities, LastLevelCache::Machine);
            let mut rig = Rig::on(kernel, topology);
            rig.cap(BIG, mhz);
            rig.find_out(&[2, 3], 2_000 * PERIOD_NS);
            let thread = rig.start(0, 2);
            rig.choose(2);
            rig.pass(100 * MS);
            rig.fair.settle_core(2);
            assert_eq!(rig.fair.kicks_idle(2), takes, "{} {mhz}", kernel.version);
            let acts = rig.balance(0, 1, When::Idle);
            let push = vec![Act::Push { thread, to: CoreId(0) }, Act::Resched(CoreId(0))];
            assert_eq!(acts, if takes { push } else { vec![] }, "{} {mhz}", kernel.version);
        }
    }
}

#[test]
fn idle_slow_cores_take_some_of_the_threads_of_throttled_ones() {
    // `find_busiest_group`: 2 idle cores are more than 0 + 1, and greater ones are not left alone (`sgc->min_capacity`)
    // once they have no more left: 409 x 1024 <= 512 x 1078; `need_active_balance`: 117 x 409 < 100 x 512.
    for kernel in [V6_18, V7_3] {
        for (mhz, takes) in [(1000, false), (600, false), (400, true)] {
            let mut rig = Rig::on(kernel, little_and_big());
            rig.cap(BIG, mhz);
            rig.find_out(&[2, 3], 2_000 * PERIOD_NS);
            let threads = [2, 3].map(|core| {
                let thread = rig.start(0, core);
                rig.choose(core);
                thread
            });
            rig.pass(100 * MS);
            (2..4).for_each(|core| rig.fair.settle_core(core));
            let acts = rig.balance(0, 1, When::Idle);
            let push =
                vec![Act::Push { thread: threads[0], to: CoreId(0) }, Act::Resched(CoreId(0))];
            assert_eq!(acts, if takes { push } else { vec![] }, "{} {mhz}", kernel.version);
        }
    }
}

#[test]
fn idle_throttled_cores_leave_busy_slow_ones_alone() {
    // `update_sd_pick_busiest`: 512 x 1024 > 409 x 1078.
    for mhz in [1000, 400] {
        let mut rig = Rig::on(V6_18, little_and_big());
        rig.cap(BIG, mhz);
        rig.find_out(&[2, 3], 2_000 * PERIOD_NS);
        for core in [0, 1] {
            rig.start(0, core);
            rig.choose(core);
        }
        let group = rig.fair.group_stats(2, (2, 0), None, When::Idle, (&mut false, &mut false));
        let is_busier = rig.fair.is_busier(2, 2, (0, &group), None, GroupType::HasSpare);
        assert_eq!((group.able, is_busier), (2, mhz == 1000));
    }
}

#[test]
fn groups_are_overloaded_sooner_and_of_more_load() {
    // `group_is_overloaded`: 2 x 614 x 100 < 1060 x 117 <= 2 x 1024 x 100 with 3 threads; mean load 3000 x 1024 / 1228.
    let three = |rig: &mut Rig| {
        rig.start_all(2, 2);
        rig.start(0, 3);
        (2..4).for_each(|core| assert!(rig.choose(core).is_some()));
        rig.set_core(2, 530, 2000);
        rig.set_core(3, 530, 1000);
        rig.fair.group_stats(0, (2, 1), None, When::Idle, (&mut false, &mut false))
    };
    let stats = three(&mut Rig::on(V6_18, little_and_big()));
    assert_eq!((stats.kind, stats.capacity), (GroupType::HasSpare, 2048));
    let stats = three(&mut hot(V6_18));
    assert_eq!((stats.kind, stats.capacity), (GroupType::Overloaded, 1228));
    assert_eq!(stats.mean_load, 3000 * 1024 / 1228);
}

#[test]
fn a_single_thread_of_more_load_than_is_to_be_moved_is_taken_off_a_reduced_core() {
    // `find_busiest_queue`, migrate_load: `check_cpu_capacity`.
    let equal = machine(&[(2, 1024.0), (2, 1024.0)], Sees::Capacities, LastLevelCache::Machine);
    for (mhz, expected) in [(1000, None), (600, Some(2))] {
        let mut rig = Rig::on(V6_18, equal.clone());
        rig.cap(BIG, mhz);
        rig.find_out(&[2, 3], 2_000 * PERIOD_NS);
        rig.start(0, 2);
        rig.choose(2);
        let found = Busiest { group: 1, moves: Moves::Load, imbalance: 500 };
        assert_eq!(rig.fair.busiest_core(0, 1, &found), expected, "{mhz}");
    }
}

#[test]
fn wake_ups_between_two_busy_cores_weigh_loads_by_what_is_left() {
    // `wake_affine_weight`: 3000 x 100 x 1024 < 4000 x 108 x 1024, but not < 4000 x 108 x 614.
    for (mhz, expected) in [(1000, 2), (600, 0)] {
        let topology =
            machine(&[(2, 1024.0), (2, 1024.0)], Sees::Capacities, LastLevelCache::Machine);
        let mut rig = Rig::on(V6_18, topology);
        rig.cap(BIG, mhz);
        rig.find_out(&[2, 3], 2_000 * PERIOD_NS);
        for core in [0, 2] {
            rig.start(0, core);
            rig.choose(core);
        }
        let thread = rig.add(0, None);
        rig.of(thread).pelt = averages(10, 0);
        rig.set_core(2, 0, 3000);
        rig.set_core(0, 0, 4000);
        let id = rig.fair.id(thread);
        assert_eq!(rig.fair.affine_core(id, 2, 0), expected, "{mhz}");
    }
}

#[test]
fn energy_is_that_of_clocks_within_reach() {
    // `em_cpu_energy`: 1.25 x 700 = 875 would take the third point of the big cores (1024, 1700); 1024 x 2 / 3 = 682
    // takes the second one, 1300 x 1000 / 768; 341 the first, of which two cores do at most 682 x 400 / 341.
    for kernel in [V6_6, V6_18] {
        let mut rig = Rig::on(kernel, board());
        for (core, util) in [400, 100, 600, 500].into_iter().enumerate() {
            rig.set_core(core, util, 0);
        }
        let thread = rig.add(0, None);
        rig.set_util(thread, 200);
        let id = rig.fair.id(thread);
        for (mhz, expected) in [(3, 2158.20), (2, 1692.71), (1, 800.0)] {
            rig.cap(BIG, mhz);
            let energy = rig.fair.energy_with(1, id, Some(3)) as f64 / f64::from(1 << 20);
            assert!((energy - expected).abs() < 0.01, "{} {mhz}: {energy}", kernel.version);
        }
    }
}
