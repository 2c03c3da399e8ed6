//! What protects a running thread, and who interrupts it.

use super::*;

/// One of four cores: the first thread runs since it woke up, for 0.5 ms of its 2.1 ms.
fn running(kernel: Kernel) -> (Rig, ThreadId) {
    let mut rig = Rig::on(Kernel { preempts_lazily: false, ..kernel }, equal(4));
    let thread = rig.add(0, None);
    rig.wake(thread, 0);
    rig.choose(0);
    rig.run(500_000);
    (rig, thread)
}

/// A thread with a slice wakes up with a lag. Returns whether it interrupts.
fn woken(rig: &mut Rig, slice_ns: Ns, lag: i64) -> bool {
    let thread = rig.add(0, None);
    rig.of(thread).slice_ns = slice_ns;
    rig.of(thread).lag = lag;
    rig.wake(thread, 0)
}

#[test]
fn a_running_thread_is_protected_until_its_request_ends() {
    // RUN_TO_PARITY: a new thread comes at the mean, 0.5 ms, with its deadline at 0.5 + 2.1 / 2 = 1.55 ms, before 2.1
    // ms; it waits nevertheless.
    let (mut rig, thread) = running(V6_18);
    let new = rig.add(0, None);
    assert!(!rig.enqueue(new, 0, EnqueueKind::Fork));
    assert_eq!(rig.choose(0), Some(thread));
    // At the end of its request the running one is no longer protected (`protect_slice`).
    rig.run(1_600_000);
    assert_eq!(rig.choose(0), Some(new));
}

#[test]
fn who_has_had_more_than_its_share_is_not_protected() {
    // `pick_eevdf`: with a lag of 1 ms the woken one comes at 0.5 ms - 1 ms x 2048 / 1024 = -1.5 ms; at a mean of -0.5
    // ms the running one is not eligible.
    assert!(woken(&mut running(V6_18).0, 2_100_000, 1_000_000));
}

#[test]
fn a_shorter_request_interrupts() {
    // `check_preempt_wakeup_fair` (PREEMPT_SHORT, since 6.12): deadline at 0.5 + 0.7 ms, before 2.1 ms.
    assert!(woken(&mut running(V6_18).0, 700_000, 0));
    assert!(!woken(&mut running(V6_6).0, 700_000, 0));
}

#[test]
fn a_shorter_request_that_is_not_eligible_waits() {
    assert!(!woken(&mut running(V6_18).0, 700_000, -1_000_000));
}

#[test]
fn protection_lasts_as_long_as_the_shortest_request() {
    // `set_protect_slice` (since 6.17): 0.7 ms, the shortest of the queue; before its own 1.05 ms, half a slice.
    for (kernel, protected) in [(V6_18, 700_000), (V6_6, 1_125_000)] {
        let mut rig = Rig::on(kernel, equal(4));
        let threads = rig.start_all(2, 0);
        rig.set_slice(threads[1], 700_000);
        rig.set_times(threads[1], 0, 2_000_000);
        assert_eq!(rig.choose(0), Some(threads[0]));
        assert_eq!(rig.of(threads[0]).protected_until - VIRTUAL_START, protected);
        rig.pass(protected as u64 - 10_000);
        assert!(!rig.fair.charge(0));
        rig.pass(10_000);
        assert!(rig.fair.charge(0), "`update_curr` asks for a choice");
    }
}

#[test]
fn a_core_is_told_lazily_unless_it_wakes_the_thread_itself() {
    // PREEMPT_LAZY: `resched_curr_lazy` of another core waits for its tick; the own core chooses when its system call
    // ends.
    for (waker, at_once) in [(0, true), (1, false)] {
        let mut rig = Rig::on(V6_18, equal(2));
        let short = rig.add(0, None);
        rig.wake(short, 0);
        rig.choose(0);
        rig.sleep(short, 0);
        let long = rig.start(0, 0);
        rig.set_times(long, 0, 1_000_000_000);
        rig.choose(0);
        rig.of(long).slice_ns = 100 * MS;
        rig.fair.waking_core = waker;
        assert_eq!(rig.wake(short, 0), at_once);
        rig.pass(TICK_NS);
        let resched = Act::Resched(CoreId(0));
        assert_eq!(rig.tick().contains(&resched), !at_once || rig.fair.charge(0));
    }
}

#[test]
fn cfs_interrupts_beyond_the_wake_up_granularity() {
    // `wakeup_preempt_entity`: 1 ms on one core.
    for (behind, interrupts) in [(1_000_000, false), (1_000_001, true)] {
        let mut rig = Rig::single(V3_16);
        let thread = rig.start(0, 0);
        rig.choose(0);
        let other = rig.add(0, None);
        rig.wake(other, 0);
        let now = rig.times(thread).0;
        rig.set_times(other, now - behind, 0);
        let id = rig.fair.id(other);
        assert_eq!(rig.fair.interrupts(0, id), interrupts);
    }
}

#[test]
fn cfs_ends_a_turn_after_its_share_of_the_latency() {
    // `check_preempt_tick`: 6 ms x 1024 / 2048 = 3 ms of two threads; 4.5 ms of weights 1024 and 335 (nice 5):
    // 6 ms x 1024 / 1359 = 4.520971 ms.
    for (nice, share_ns) in [(0, 3_000_000), (5, 4_520_971)] {
        let mut rig = Rig::single(V3_16);
        let threads = [0, nice].map(|nice| rig.start(nice, 0));
        rig.set_times(threads[0], 0, 0);
        rig.set_times(threads[1], 1, 0);
        assert_eq!(rig.choose(0), Some(threads[0]));
        // Far behind, so that only the share ends the turn.
        rig.set_times(threads[1], 10_000_000, 0);
        rig.run(share_ns);
        assert!(!rig.fair.turn_is_over(0));
        rig.run(1);
        assert!(rig.fair.turn_is_over(0));
    }
}

#[test]
fn who_yields_gives_up_the_rest_of_its_request() {
    // `yield_task_fair`: at 0.2 ms, with half a slice until 0.35 ms, on to 0.35 ms and a deadline of 1.05 ms.
    let mut rig = Rig::single(V6_18);
    let threads = rig.start_all(2, 0);
    rig.set_times(threads[1], 400_000, 1_100_000);
    assert_eq!(rig.choose(0), Some(threads[0]));
    rig.pass(200_000);
    rig.fair.yields(&rig.sched, CoreId(0), rig.now_ns);
    assert_eq!(rig.times(threads[0]), (350_000, 1_050_000));
    // At 0.5 ms, beyond the mean of 0.45 ms, nothing is given up.
    rig.pass(150_000);
    rig.fair.yields(&rig.sched, CoreId(0), rig.now_ns);
    assert_eq!(rig.times(threads[0]), (500_000, 1_050_000));
    assert_eq!(rig.choose(0), Some(threads[1]));
}
