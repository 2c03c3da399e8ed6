//! Run time, lag, deadlines and delayed departures.

use super::super::run::Comes;
use super::*;

/// Two threads on one core; the first has run for 3 ms and sleeps now.
fn in_debt(kernel: Kernel) -> (Rig, ThreadId, ThreadId) {
    let mut rig = Rig::single(kernel);
    let threads = rig.start_all(2, 0);
    assert_eq!(rig.choose(0), Some(threads[0]));
    rig.pass(3 * MS);
    rig.sleep(threads[0], 0);
    (rig, threads[0], threads[1])
}

#[test]
fn run_time_is_virtual_by_weight() {
    // `calc_delta_fair`: 1 ms x 1024 / 335 = 3.056716 ms at nice 5, x 1024 / 3121 = 0.328099 ms at nice -5.
    for (nice, expected) in [(0, 1_000_000), (5, 3_056_716), (-5, 328_099)] {
        let mut rig = Rig::single(V6_18);
        let thread = rig.start(nice, 0);
        rig.choose(0);
        rig.run(MS);
        assert_eq!(rig.times(thread).0, expected);
    }
}

#[test]
fn lag_is_at_most_two_slices_or_a_tick() {
    // `update_entity_lag`: max(2 x 2.1 ms, 4 ms) = 4.2 ms on four cores, max(2 x 0.7 ms, 4 ms) = 4 ms on one; at nice
    // 5 4.2 ms x 1024 / 335 = 12.838208 ms. The mean of 0 and 40 ms is 20 ms.
    for (cores, nice, limit) in [(4, 0, 4_200_000), (1, 0, 4_000_000), (4, 5, 12_838_208)] {
        let mut rig = Rig::on(V6_18, equal(cores));
        let [behind, ahead] = [nice; 2].map(|nice| rig.start(nice, 0));
        rig.set_times(behind, 0, 1);
        rig.set_times(ahead, 40_000_000, 50_000_000);
        let lags = [behind, ahead].map(|thread| rig.fair.lag_of(rig.fair.id(thread)));
        assert_eq!(lags, [limit, -limit]);
    }
}

#[test]
fn a_thread_is_placed_so_that_its_lag_is_kept() {
    // `place_entity`: lag x (W + w) / W. 0.6 ms x (1359 + 3121) / 1359 = 1.977924 ms before the mean, which then moves
    // towards it by 3121 / 4480 of that; 0.6 ms are left.
    let mut rig = Rig::single(V6_18);
    let [one, other] = [0, 5].map(|nice| rig.start(nice, 0));
    for thread in [one, other] {
        rig.set_times(thread, 9_000_000, 10_000_000);
    }
    let woken = rig.add(-5, None);
    rig.of(woken).lag = 600_000;
    rig.wake(woken, 0);
    assert_eq!(rig.times(woken).0, 9_000_000 - 1_977_924);
    assert!((rig.fair.lag_of(rig.fair.id(woken)) - 600_000).abs() <= 1);
}

#[test]
fn debt_is_kept_too_but_nothing_in_an_empty_queue() {
    // -1 ms x (2048 + 1024) / 2048 = -1.5 ms. Alone a thread comes at the mean (`place_entity`: nr_queued).
    let mut rig = Rig::single(V6_18);
    rig.start_all(2, 0);
    let mean = rig.mean(0);
    let woken = rig.add(0, None);
    rig.of(woken).lag = -1_000_000;
    rig.wake(woken, 0);
    assert_eq!(rig.times(woken).0, mean + 1_500_000);

    let mut rig = Rig::single(V6_18);
    let woken = rig.add(0, None);
    rig.of(woken).lag = -1_000_000;
    rig.wake(woken, 0);
    assert_eq!(rig.times(woken).0, 0);
}

#[test]
fn the_first_request_is_half_and_others_are_whole() {
    // `place_entity` (PLACE_DEADLINE_INITIAL): 2.1 ms / 2 on four cores; at nice 5 2.1 ms x 1024 / 335 = 6.419104 ms.
    for (nice, request) in [(0, 2_100_000), (5, 6_419_104)] {
        let mut rig = Rig::on(V6_18, equal(4));
        let new = rig.start(nice, 0);
        let woken = rig.add(nice, None);
        rig.wake(woken, 1);
        let lengths = [new, woken].map(|thread| {
            let (vruntime, deadline) = rig.times(thread);
            deadline - vruntime
        });
        assert_eq!(lengths, [request / 2, request]);
    }
}

#[test]
fn a_moved_thread_keeps_what_is_left_of_its_request() {
    // `dequeue_entity` and `place_entity` (PLACE_REL_DEADLINE, since 6.12): 0.3 ms left; before a whole request.
    for (kernel, left) in [(V6_18, 300_000), (V6_6, 750_000 * 2)] {
        let mut rig = Rig::on(kernel, equal(2));
        let threads = rig.start_all(3, 0);
        rig.set_times(threads[2], 500_000, 800_000);
        let id = rig.fair.id(threads[2]);
        rig.fair.shift(id, 1);
        let (vruntime, deadline) = rig.times(threads[2]);
        assert_eq!((deadline - vruntime, rig.counts(0).0, rig.counts(1).0), (left, 2, 1));
    }
}

#[test]
fn a_used_up_request_is_followed_by_another() {
    // `update_deadline`: at the deadline a new one, a slice after the virtual run time.
    let mut rig = Rig::single(V6_18);
    let threads = rig.start_all(2, 0);
    rig.choose(0);
    rig.pass(340_000);
    assert!(!rig.fair.charge(0));
    rig.pass(20_000);
    assert!(rig.fair.charge(0), "0.35 ms, half a slice, are used up");
    assert_eq!(rig.times(threads[0]), (360_000, 1_060_000));
}

#[test]
fn nobody_chooses_for_a_thread_alone() {
    // `update_curr`: nothing to do while nr_queued is 1.
    let mut rig = Rig::single(V6_18);
    rig.start(0, 0);
    rig.choose(0);
    rig.pass(10 * MS);
    assert!(!rig.fair.charge(0));
}

#[test]
fn who_owes_time_leaves_later() {
    // `dequeue_entity` (DELAY_DEQUEUE, since 6.12): at 3 ms, mean 1.5 ms, it is not eligible.
    let (mut rig, debtor, other) = in_debt(V6_18);
    assert!(rig.of(debtor).is_delayed);
    assert_eq!(rig.counts(0), (2, 1));
    assert_eq!(rig.choose(0), Some(other));
    // At 2 ms the mean is 2.5 ms: still not.
    rig.run(2 * MS);
    assert_eq!(rig.choose(0), Some(other));
    assert_eq!(rig.counts(0), (2, 1));
    // At 3 ms both are at the mean with the same deadline; it is picked, and leaves (`pick_next_entity`).
    rig.run(MS);
    assert_eq!(rig.choose(0), Some(other));
    assert_eq!(rig.counts(0), (1, 1));
    assert!(!rig.of(debtor).is_queued);
}

#[test]
fn before_delayed_departures_everybody_leaves_at_once() {
    let (mut rig, debtor, _) = in_debt(V6_6);
    assert_eq!(rig.counts(0), (1, 1));
    // `update_entity_lag`: 1.5 ms - 3 ms.
    assert_eq!((rig.of(debtor).is_queued, rig.of(debtor).lag), (false, -1_500_000));
}

#[test]
fn who_is_eligible_leaves_at_once() {
    let mut rig = Rig::single(V6_18);
    let threads = rig.start_all(2, 0);
    rig.choose(0);
    rig.set_times(threads[1], 5_000_000, 6_000_000);
    rig.pass(MS);
    rig.sleep(threads[0], 0);
    assert_eq!(rig.counts(0), (1, 1));
}

#[test]
fn who_wakes_up_while_its_departure_is_delayed_owes_what_is_left() {
    // `requeue_delayed_entity`: the lag is still negative, so it stays where it is.
    let (mut rig, debtor, _) = in_debt(V6_18);
    rig.choose(0);
    rig.run(MS);
    let before = rig.times(debtor);
    assert_eq!(rig.place(debtor, EnqueueKind::Wake, 0), 0);
    rig.wake(debtor, 0);
    assert_eq!((rig.times(debtor), rig.counts(0)), (before, (2, 2)));
    assert!(!rig.of(debtor).is_delayed);
}

#[test]
fn who_has_paid_meanwhile_comes_back_even() {
    // `requeue_delayed_entity` (DELAY_ZERO): with the other one at 5 ms its lag is 1 ms; it loses that, and is placed
    // at the mean of the others with a new request.
    let (mut rig, debtor, other) = in_debt(V6_18);
    rig.choose(0);
    rig.set_times(other, 5_000_000, 6_000_000);
    rig.wake(debtor, 0);
    assert_eq!(rig.times(debtor), (5_000_000, 5_700_000));
    assert_eq!(rig.counts(0), (2, 2));
}

#[test]
fn credit_from_a_delayed_departure_is_lost() {
    // `finish_delayed_dequeue_entity` (DELAY_ZERO): lag is at most 0 afterwards.
    let (mut rig, debtor, other) = in_debt(V6_18);
    rig.choose(0);
    rig.set_times(other, 5_000_000, 6_000_000);
    let id = rig.fair.id(debtor);
    rig.fair.finish_delayed(id);
    assert_eq!((rig.of(debtor).lag, rig.counts(0)), (0, (1, 1)));
}

#[test]
fn cfs_puts_sleepers_half_a_latency_behind_at_most() {
    // `place_entity` with GENTLE_FAIR_SLEEPERS: 6 ms / 2 before the least. A new one comes its slice after it
    // (START_DEBIT): 6 ms / 3 of three equal threads on one core.
    let mut rig = Rig::single(V3_16);
    let first = rig.start(0, 0);
    rig.set_times(first, 50_000_000, 0);
    rig.fair.queues[0].min_vruntime = VIRTUAL_START + 50_000_000;
    let id = rig.fair.id(first);
    let woken = rig.add(0, None);
    rig.wake(woken, 0);
    assert_eq!(rig.times(woken).0, 47_000_000);
    assert_eq!(rig.fair.fair_slice_ns(id), 3_000_000);
    let new = rig.add(0, None);
    rig.place(new, EnqueueKind::Fork, 0);
    rig.enqueue(new, 0, EnqueueKind::Fork);
    assert_eq!(rig.times(new).0, 52_000_000);
    assert_ne!(Comes::New, Comes::Woken);
}
