//! Window-assisted load tracking against vectors computed from its definition: windows of 20 ms, so that 19,531 ns of
//! full work are 1 of 1024, five remembered windows, new threads at 15 %.

use ampsched_model::Draw;

use super::super::kernel::ANDROID_4_14;
use super::super::walt::{Did, WINDOW_NS, Walt};
use super::energy::board;
use super::*;

/// Cores of 1024, 512 and 512, the latter in one cluster, and a thread that starts on the first at 0.
fn walt() -> Walt {
    let mut walt = Walt::new(WINDOW_NS, [(0, 1024), (1, 512), (1, 512)].into_iter());
    walt.add();
    walt.start(0, 0, 0);
    walt.enter(0, 0);
    walt
}

/// A thread runs for so long from the start of each of some windows, and sleeps for the rest of it.
fn run(walt: &mut Walt, from: u64, windows: u64, ran_ns: Ns) {
    for window in from..from + windows {
        let start_ns = window * WINDOW_NS;
        if window > 0 {
            walt.book(0, Did::Slept, start_ns);
            walt.enter(0, start_ns);
        }
        walt.book(0, Did::Ran, start_ns + ran_ns);
        walt.leave(0, true, start_ns + ran_ns);
    }
}

#[test]
fn a_new_thread_needs_15_percent() {
    // 3 ms / 19,531 ns.
    let walt = walt();
    assert_eq!((walt.demand(0), walt.runnable(0)), (153, 153));
}

#[test]
fn demand_is_the_last_window_or_the_mean_of_five() {
    let mut walt = walt();
    // 10 of 20 ms: the last window counts, as the mean is less: (10 + 4 x 3) / 5 = 4.4 ms. 10 ms / 19,531 ns = 512.
    run(&mut walt, 0, 1, 10 * MS);
    assert_eq!(walt.demand(0), 153, "the window is not over");
    walt.book(0, Did::Slept, WINDOW_NS);
    assert_eq!(walt.demand(0), 512);
    // Then 2 ms: (2 + 10 + 3 x 3) / 5 = 4.2 ms.
    run(&mut walt, 1, 1, 2 * MS);
    walt.book(0, Did::Slept, 2 * WINDOW_NS);
    assert_eq!(walt.demand(0), 215);
    // In the fifth window with 2 ms the 10 ms are forgotten: 2 ms.
    run(&mut walt, 2, 4, 2 * MS);
    walt.book(0, Did::Slept, 6 * WINDOW_NS);
    assert_eq!(walt.demand(0), 102);
}

#[test]
fn windows_of_sleep_do_not_count() {
    let mut walt = walt();
    run(&mut walt, 0, 1, 10 * MS);
    walt.book(0, Did::Slept, 50 * WINDOW_NS);
    assert_eq!(walt.demand(0), 512);
    assert_eq!(walt.load(0, 50 * WINDOW_NS), 0, "but the core has done nothing");
}

#[test]
fn a_thread_that_runs_on_fills_all_windows() {
    let mut walt = walt();
    walt.book(0, Did::Ran, 5 * MS);
    // The rest of the first window, two full ones, and 1 ms: 1024 twice.
    walt.book(0, Did::Ran, 3 * WINDOW_NS + MS);
    assert_eq!((walt.demand(0), walt.runnable(0)), (1024, 1024));
    assert_eq!(walt.load(0, 3 * WINDOW_NS + MS), 1024);
}

#[test]
fn a_turn_across_the_end_of_a_window_counts_in_both() {
    let mut walt = walt();
    walt.book(0, Did::Slept, 15 * MS);
    walt.book(0, Did::Ran, 26 * MS);
    // 5 ms; the mean is (5 + 4 x 3) / 5 = 3.4 ms.
    assert_eq!(walt.demand(0), 256);
    walt.book(0, Did::Ran, 2 * WINDOW_NS + 1);
    assert_eq!((walt.demand(0), walt.load(0, 2 * WINDOW_NS + 1)), (1024, 1024));
}

#[test]
fn waiting_is_demand_but_no_work_for_the_clock() {
    let mut walt = walt();
    walt.book(0, Did::Waited, 8 * MS);
    walt.book(0, Did::Ran, 10 * MS);
    walt.leave(0, true, 10 * MS);
    walt.book(0, Did::Slept, WINDOW_NS);
    assert_eq!(walt.demand(0), 512);
    // 2 ms, in steps of 20 us rounded up: 2.02 ms.
    assert_eq!(walt.load(0, WINDOW_NS), 103);
}

#[test]
fn work_is_time_times_capacity_at_the_frequency() {
    let mut walt = walt();
    walt.set_clock(0, 500, 2000);
    run(&mut walt, 0, 1, 16 * MS);
    walt.book(0, Did::Slept, WINDOW_NS);
    // 16 ms x 256 / 1024 = 4 ms; the mean is (4 + 4 x 3) / 5 = 3.2 ms.
    assert_eq!(walt.demand(0), 204);
    assert_eq!(walt.speed(0), 256);
}

#[test]
fn work_goes_along_to_another_cluster_and_stays_within_one() {
    let mut walt = walt();
    // 5 ms; the busiest thread's in steps of 20 us rounded up.
    run(&mut walt, 0, 1, 5 * MS);
    walt.go(0, 1, WINDOW_NS + MS);
    let loads = |walt: &mut Walt| [0, 1, 2].map(|core| walt.load(core, WINDOW_NS + MS));
    assert_eq!(loads(&mut walt), [0, 257, 0]);
    // Within the cluster the sum stays, and the busiest thread is told of its new core.
    walt.go(0, 2, WINDOW_NS + MS);
    assert_eq!(loads(&mut walt), [0, 256, 257]);
    walt.go(0, 0, WINDOW_NS + MS);
    assert_eq!(loads(&mut walt), [257, 0, 0]);
}

#[test]
fn what_has_been_on_a_core_is_seen_until_the_window_ends() {
    let mut walt = walt();
    walt.book(0, Did::Ran, MS);
    walt.leave(0, true, MS);
    assert_eq!((walt.runnable(0), walt.seen(0, 2 * MS)), (0, 153));
    assert!(walt.is_seen(0, 0, 2 * MS) && !walt.is_seen(0, 1, 2 * MS));
    walt.enter(0, 3 * MS);
    assert_eq!(walt.seen(0, 3 * MS), 153, "not twice");
    walt.leave(0, true, 4 * MS);
    assert_eq!(walt.seen(0, WINDOW_NS), 0);
}

#[test]
fn demand_and_work_are_those_of_the_definition() {
    for seed in 0..100 {
        let mut draw = Draw::new(seed);
        let mut walt = walt();
        let (mut now_ns, mut busy, mut ran) = (0, vec![0; 1], vec![0; 1]);
        for _ in 0..100 {
            let did = [Did::Slept, Did::Waited, Did::Ran][(draw.bits() % 3) as usize];
            let end_ns = now_ns + 1 + draw.bits() % (3 * WINDOW_NS);
            walt.book(0, did, end_ns);
            while now_ns < end_ns {
                let next_ns = end_ns.min((now_ns / WINDOW_NS + 1) * WINDOW_NS);
                let (window, passed_ns) = ((now_ns / WINDOW_NS) as usize, next_ns - now_ns);
                busy[window] += if did == Did::Slept { 0 } else { passed_ns };
                ran[window] += if did == Did::Ran { passed_ns } else { 0 };
                now_ns = next_ns;
                if now_ns % WINDOW_NS == 0 {
                    busy.push(0);
                    ran.push(0);
                }
            }
            let over = busy.len() - 1;
            let mut last: Vec<Ns> = vec![3 * MS; 5];
            last.extend(busy[..over].iter().filter(|&&ns| ns > 0));
            let last = &last[last.len() - 5..];
            let demand = match busy[..over].iter().any(|&ns| ns > 0) {
                true => last[4].max(last.iter().sum::<Ns>() / 5) / 19_531,
                false => 153,
            };
            assert!(demand <= 1024);
            assert_eq!((walt.demand(0), walt.runnable(0)), (demand, demand), "seed {seed}");
            let work = over.checked_sub(1).map_or(0, |before| ran[before]);
            let step = if work > 0 { (work / 20_000 + 1).min(1000) * 20_000 } else { 0 };
            assert_eq!(walt.load(0, now_ns), step / 19_531, "seed {seed}");
            walt.check().unwrap();
        }
    }
}

#[test]
fn no_work_is_lost_when_threads_move() {
    for seed in 0..50 {
        let mut draw = Draw::new(seed);
        let mut walt = Walt::new(WINDOW_NS, [0, 0, 1].into_iter().map(|cluster| (cluster, 1024)));
        for thread in 0..4 {
            walt.add();
            walt.start(thread, thread % 3, 0);
            walt.enter(thread, 0);
        }
        for window in 1..40 {
            let mut ran_ns = 0;
            for step in 0..10 {
                let now_ns = (window - 1) * WINDOW_NS + step * 2 * MS + draw.bits() % MS;
                let thread = (draw.bits() % 4) as usize;
                walt.book(thread, Did::Waited, now_ns);
                let long_ns = draw.bits() % MS;
                ran_ns += long_ns;
                walt.book(thread, Did::Ran, now_ns + long_ns);
                walt.leave(thread, draw.bits() % 2 == 0, now_ns + long_ns);
                walt.go(thread, (draw.bits() % 3) as usize, now_ns + long_ns);
                walt.enter(thread, now_ns + long_ns);
                walt.check().unwrap();
            }
            // Nobody runs then: what is waited for does not count.
            (0..4).for_each(|thread| walt.book(thread, Did::Waited, window * WINDOW_NS));
            assert_eq!(walt.work_before(window * WINDOW_NS), ran_ns, "seed {seed}, {window}");
        }
    }
}

/// A thread that runs alone for a while from the start of a window on, on a board of two little and two big cores
/// (capacities 512 and 1024), with ticks; returns the acts of each tick.
fn hog(rig: &mut Rig, core: usize, ticks: usize) -> (ThreadId, Vec<Vec<Act>>) {
    let thread = rig.start(0, core);
    assert_eq!(rig.choose(core), Some(thread));
    let acts = (0..ticks).map(|_| {
        rig.pass(TICK_NS);
        rig.tick()
    });
    let acts = acts.collect();
    (thread, acts)
}

#[test]
fn a_heavy_thread_moves_up_once_a_window_is_over() {
    let mut rig = Rig::on(ANDROID_4_14, board());
    let (thread, acts) = hog(&mut rig, 0, 5);
    // After 20 ms on a core of 512 its demand is 512; 512 x 1078 > 512 x 1024.
    assert_eq!(acts[..4].concat(), []);
    // Of two idle ones of equal demand the later one.
    assert_eq!(acts[4][0], Act::Push { thread, to: CoreId(3) });
}

#[test]
fn a_light_thread_wakes_up_on_a_little_core_and_a_heavier_one_on_a_big_one() {
    // Up from 95 % of 512, 486, down below 85 %, 435: 10, 9 and 8 ms of full work are 512, 460 and 409.
    for (ran_ms, last, expected) in [(10, 0, 3), (9, 0, 0), (9, 3, 3), (8, 3, 1)] {
        let mut rig = Rig::on(ANDROID_4_14, board());
        let thread = rig.start(0, last);
        rig.choose(last);
        let scale = if last == 0 { 2 } else { 1 };
        rig.pass(ran_ms * MS * scale);
        rig.fair.charge(last);
        rig.sleep(thread, last);
        rig.choose(last);
        rig.pass(WINDOW_NS);
        let core = rig.place(thread, EnqueueKind::Wake, 2);
        assert_eq!(core, expected, "{ran_ms} ms on core {last}");
    }
}

#[test]
fn clocks_follow_the_last_window() {
    let mut rig = Rig::on(ANDROID_4_14, board());
    let (thread, _) = hog(&mut rig, 3, 2);
    let util = |rig: &mut Rig| rig.fair.util(CoreId(3), rig.now_ns);
    assert_eq!(util(&mut rig), Some(0));
    rig.sleep(thread, 3);
    rig.pass(WINDOW_NS - 2 * TICK_NS);
    // 8 ms, in steps of 20 us rounded up: 8.02 ms.
    assert_eq!(util(&mut rig), Some(410));
    rig.pass(WINDOW_NS);
    assert_eq!(util(&mut rig), Some(0));
    let mut pelt = Rig::on(V6_18, board());
    assert_eq!(pelt.fair.util(CoreId(3), 0), None, "the host tracks load");
}
