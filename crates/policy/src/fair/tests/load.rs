//! Averages, and what fits where.

use super::super::load::is_greater;
use super::*;
use crate::sched::{Fit, fits};

/// A period of load tracking.
const PERIOD_NS: Ns = 1024 * 1024;

#[test]
fn the_load_of_an_idle_core_halves_in_32_periods() {
    // `decay_load`: y^32 = 1/2. A new thread counts as fully loaded, 1024 at nice 0.
    let mut rig = Rig::single(V6_18);
    let thread = rig.start(0, 0);
    rig.choose(0);
    rig.pass(1_000 * PERIOD_NS);
    rig.sleep(thread, 0);
    assert_eq!(rig.choose(0), None);
    let asleep_ns = rig.now_ns;
    let loads =
        [0, 32, 64, 96].map(|periods| rig.fair.load_after(0, asleep_ns + periods * PERIOD_NS));
    assert_eq!(loads.map(|load| load.div_ceil(2) * 2), [1024, 512, 256, 128]);
}

#[test]
fn a_moved_thread_takes_its_averages_along() {
    // `detach_entity_load_avg` and `attach_entity_load_avg`: sums over cores stay.
    let mut rig = Rig::on(V6_18, equal(2));
    let threads = rig.start_all(2, 0);
    rig.choose(0);
    rig.pass(20 * PERIOD_NS);
    let sums = |rig: &mut Rig| {
        rig.fair.settle_core(0);
        rig.fair.settle_core(1);
        [rig.fair.load_on(0) + rig.fair.load_on(1), rig.fair.util_on(0) + rig.fair.util_on(1)]
    };
    let before = sums(&mut rig);
    let waiting = threads[usize::from(rig.fair.queues[0].current == Some(rig.fair.id(threads[0])))];
    let id = rig.fair.id(waiting);
    rig.fair.shift(id, 1);
    let after = sums(&mut rig);
    assert!(rig.fair.load_on(1) >= 1023, "rounded down");
    assert!(rig.fair.util_on(1) > 100);
    for (one, other) in before.iter().zip(after) {
        assert!(one.abs_diff(other) <= 1, "{before:?} {after:?}");
    }
}

#[test]
fn new_threads_share_what_a_core_has_left() {
    // `post_init_entity_util_avg`: half of 1024, then of 512, then of 256. What the others use by weight, 512 x 1024 /
    // (1024 + 1) and so on, would be more.
    let mut rig = Rig::single(V6_18);
    let threads = rig.start_all(4, 0);
    let utils = [0, 1, 2, 3].map(|index: usize| rig.of(threads[index]).pelt.util_avg());
    assert_eq!(utils, [512, 256, 128, 64]);
}

#[test]
fn a_light_new_thread_is_expected_to_use_little() {
    // 512 x 335 / (1024 + 1) = 167, less than 256.
    let mut rig = Rig::single(V6_18);
    rig.start(0, 0);
    let light = rig.start(5, 0);
    assert_eq!(rig.of(light).pelt.util_avg(), 167);
}

#[test]
fn a_fifth_is_kept_free() {
    // `fits_capacity`: 819 x 1280 = 1048320 is below 1024 x 1024, 820 x 1280 = 1049600 is not.
    assert!(fits(819_u64, 1024_u64));
    assert!(!fits(820_u64, 1024_u64));
}

#[test]
fn a_capacity_is_greater_by_5_percent() {
    // `capacity_greater`: 1079 x 1024 is above 1024 x 1078, 1078 x 1024 is not.
    assert!(is_greater(1079, 1024));
    assert!(!is_greater(1078, 1024));
}

/// The misfit load of a core that runs a thread of some utilisation.
fn misfit(kernel: Kernel, util: u64, core: usize, allowed: Option<&[u16]>) -> u64 {
    let mut rig = Rig::on(kernel, little_and_big());
    let thread = rig.add(0, allowed);
    rig.enqueue(thread, core, EnqueueKind::Fork);
    rig.set_util(thread, util);
    rig.choose(core);
    rig.fair.note_misfit(core);
    rig.fair.cores[core].misfit_load
}

#[test]
fn a_thread_too_big_for_its_core_is_a_misfit() {
    // `update_misfit_status`: 409 x 1280 is below 512 x 1024, 410 x 1280 is not. Its load is 1024.
    assert_eq!(misfit(V6_18, 409, 0, None), 0);
    assert_eq!(misfit(V6_18, 410, 0, None), 1024);
    assert_eq!(misfit(V6_18, 410, 0, Some(&[0])), 0, "it may go nowhere else");
    assert_eq!(misfit(V6_18, 1024, 2, None), 0, "no core is greater");
    assert_eq!(misfit(V3_16, 410, 0, None), 0, "no kernel before 4.20 knows");
}

#[test]
fn utilisation_counts_estimates_of_those_that_can_run() {
    // `cpu_util_cfs`: max(util_avg, util_est), at most the capacity.
    let mut rig = Rig::on(V6_18, little_and_big());
    rig.set_core(0, 300, 0);
    assert_eq!(rig.fair.util_on(0), 300);
    rig.fair.queues[0].estimates = 400;
    assert_eq!(rig.fair.util_on(0), 400);
    rig.fair.queues[0].estimates = 600;
    assert_eq!(rig.fair.util_on(0), 512);
}

#[test]
fn who_goes_to_sleep_is_estimated() {
    // `util_est_update`: a rise counts at once. 6.14 to 7.1.4 look at the average before they bring it up to date: as
    // it was at the last tick.
    for kernel in [V6_6, V6_18, V7_3] {
        let mut rig = Rig::single(kernel);
        let thread = rig.start(0, 0);
        rig.choose(0);
        rig.pass(100 * MS);
        rig.tick();
        let at_tick = rig.of(thread).pelt.util_avg();
        rig.pass(3 * MS);
        rig.sleep(thread, 0);
        let util = rig.of(thread).pelt.util_avg();
        assert!(900 < at_tick && at_tick < util, "{at_tick} {util}");
        let estimate = if kernel == V6_18 { at_tick } else { util };
        assert_eq!(rig.of(thread).estimate.util(), estimate);
        assert_eq!(rig.fair.queues[0].estimates, 0);
        rig.wake(thread, 0);
        assert_eq!(rig.fair.queues[0].estimates, estimate);
    }
}

/// Half of a second-long activity's utilisation, after 32 periods asleep.
fn half_of(util: u32) -> std::ops::RangeInclusive<u32> {
    util / 2 - 1..=util / 2 + 1
}

/// A thread that has run for 100 ms on core 0 and sleeps, next to one that runs on core 1; its utilisation.
fn sleeper() -> (Rig, ThreadId, u32) {
    let mut rig = Rig::on(V7_3, equal(4));
    let [thread, _] = [0, 1].map(|core| rig.start(0, core));
    for core in [0, 1] {
        rig.choose(core);
    }
    rig.pass(100 * MS);
    rig.sleep(thread, 0);
    assert_eq!(rig.choose(0), None);
    let util = rig.of(thread).pelt.util_avg();
    (rig, thread, util)
}

#[test]
fn a_sleeping_thread_is_what_it_was_when_its_core_was_looked_at_last() {
    // `sync_entity_load_avg`: up to `last_update_time` of its queue.
    let (mut rig, thread, util) = sleeper();
    let id = rig.fair.id(thread);
    rig.pass(32 * PERIOD_NS);
    rig.fair.sync(id);
    assert_eq!(rig.of(thread).pelt.util_avg(), util);
    rig.fair.settle_core(0);
    rig.fair.sync(id);
    assert!(half_of(util).contains(&rig.of(thread).pelt.util_avg()));
}

#[test]
fn who_wakes_up_elsewhere_leaves_its_old_core_when_that_is_looked_at() {
    // `remove_entity_load_avg`; the thread itself has decayed meanwhile (`migrate_se_pelt_lag`).
    let (mut rig, thread, util) = sleeper();
    rig.pass(32 * PERIOD_NS);
    rig.wake(thread, 2);
    assert_eq!(rig.fair.queues[0].pelt.util_avg(), util);
    assert!(half_of(util).contains(&rig.of(thread).pelt.util_avg()));
    assert!(half_of(util).contains(&rig.fair.queues[2].pelt.util_avg()));
    rig.fair.settle_core(0);
    assert_eq!(rig.fair.queues[0].pelt.util_avg(), 0);
}

#[test]
fn what_is_left_on_idle_cores_decays_every_32_ms() {
    // `nohz_balancer_kick`: at the first busy tick after `nohz.next_blocked`; 32 ms are 8 ticks.
    let (mut rig, _, _) = sleeper();
    rig.tick();
    let mut utils = Vec::new();
    for _ in 0..10 {
        rig.pass(TICK_NS);
        rig.tick();
        utils.push(rig.fair.queues[0].pelt.util_avg());
    }
    let changes: Vec<usize> = (1..10).filter(|&at| utils[at] != utils[at - 1]).collect();
    assert_eq!(changes, [8], "{utils:?}");
}

/// 34.11: `util_fits_cpu`: the margin is for what is used, clamps are compared with the capacity itself.
#[test]
fn h34_11_clamps_have_no_margin() {
    for capacity in [222, 462, 1023, 1024] {
        for util in (0..=1024).step_by(16) {
            let of = |min, max| Fit::of(util, (min, max), capacity);
            let plain = if fits(util, capacity) { Fit::Well } else { Fit::Not };
            assert_eq!(of(0, 1024), plain);
            assert_eq!(of(util.min(capacity), 1024), plain, "it asks for what is there");
            assert_eq!(of(0, capacity), if capacity < 1024 { Fit::Well } else { plain });
            let asks = if plain == Fit::Well && util < 1024 && capacity < 1024 {
                Fit::Slow
            } else {
                plain
            };
            assert_eq!(of(1024, 1024), asks, "{util} on {capacity}");
            // Contradictory clamps: the greatest one counts.
            assert_eq!(of(1024, capacity), of(capacity, capacity));
        }
    }
}
