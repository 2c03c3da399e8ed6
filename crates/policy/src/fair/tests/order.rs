//! Who is eligible and who comes first.

use super::*;

#[test]
fn the_mean_weighs_virtual_run_times_of_several_nice_values() {
    // `avg_vruntime`: (1024 x 10 ms + 335 x 4 ms + 3121 x 1 ms) / (1024 + 335 + 3121) = 14701 ms / 4480 = 3.281473 ms.
    let mut rig = Rig::single(V6_18);
    let [normal, light, heavy] = [0, 5, -5].map(|nice| rig.start(nice, 0));
    rig.set_times(normal, 10_000_000, 20_000_000);
    rig.set_times(light, 4_000_000, 20_000_000);
    rig.set_times(heavy, 1_000_000, 20_000_000);
    assert_eq!(rig.mean(0), 3_281_473);
    // `entity_eligible`: who has had no more than that.
    assert_eq!(
        [normal, light, heavy].map(|thread| rig.is_eligible(thread, 0)),
        [false, false, true]
    );
}

#[test]
fn the_running_thread_counts_for_the_mean() {
    // `avg_vruntime`: the mean of 0 and 3 ms.
    let mut rig = Rig::single(V6_18);
    let threads = rig.start_all(2, 0);
    assert_eq!(rig.choose(0), Some(threads[0]));
    rig.run(3 * MS);
    assert_eq!(rig.times(threads[0]).0, 3_000_000);
    assert_eq!(rig.mean(0), 1_500_000);
    assert_eq!([0, 1].map(|index| rig.is_eligible(threads[index], 0)), [false, true]);
}

#[test]
fn the_mean_is_rounded_down_and_eligibility_is_exact() {
    // `avg_vruntime` rounds to the left, -0.5 to -1; `entity_eligible` multiplies instead of dividing.
    let mut rig = Rig::single(V6_18);
    let threads = rig.start_all(2, 0);
    for (times, mean) in [([0, 1], 0), ([-1, 0], -1)] {
        for (thread, vruntime) in threads.iter().zip(times) {
            rig.set_times(*thread, vruntime, 10);
        }
        assert_eq!(rig.mean(0), mean);
        assert_eq!([0, 1].map(|index| rig.is_eligible(threads[index], 0)), [true, false]);
    }
}

#[test]
fn the_earliest_deadline_of_the_eligible_comes_first() {
    // sched-eevdf.rst: lag 0 or more, and of these the earliest virtual deadline. The mean is 0.
    let mut rig = Rig::single(V6_18);
    let [late, early, ahead] = [0, 0, 0].map(|nice| rig.start(nice, 0));
    rig.set_times(late, -3, 9);
    rig.set_times(early, -1, 5);
    rig.set_times(ahead, 4, 1);
    assert!(!rig.is_eligible(ahead, 0));
    assert_eq!(rig.choose(0), Some(early));
}

#[test]
fn a_thread_alone_runs_although_it_is_not_protected() {
    // `pick_eevdf`: with one queued entity nothing is compared.
    let mut rig = Rig::single(V6_18);
    let thread = rig.start(0, 0);
    for _ in 0..3 {
        assert_eq!(rig.choose(0), Some(thread));
        rig.run(50 * MS);
    }
}

#[test]
fn of_equal_deadlines_a_waiting_thread_comes_first() {
    // `pick_eevdf`: the running one is kept only if its deadline is earlier (`entity_before`).
    let mut rig = Rig::single(V6_18);
    let threads = rig.start_all(2, 0);
    assert_eq!(rig.choose(0), Some(threads[0]));
    rig.set_times(threads[0], 0, 5);
    rig.set_times(threads[1], 0, 5);
    rig.of(threads[0]).protected_until = VIRTUAL_START;
    assert_eq!(rig.choose(0), Some(threads[1]));
}

#[test]
fn cfs_takes_the_least_virtual_run_time() {
    // `pick_next_entity` up to 6.5.
    let mut rig = Rig::single(V3_16);
    let threads = rig.start_all(3, 0);
    for (thread, vruntime) in threads.iter().zip([7, 2, 5]) {
        rig.set_times(*thread, vruntime, 0);
    }
    assert_eq!(rig.choose(0), Some(threads[1]));
}
