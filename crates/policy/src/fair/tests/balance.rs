//! When cores balance, and what makes them search or stop others.

use super::super::stats::When;
use super::*;

impl Rig {
    /// A core balances one of its domains. Returns what is to be done.
    pub(super) fn balance(&mut self, core: usize, level: usize, when: When) -> Vec<Act> {
        let mut acts = Vec::new();
        self.fair.balance(&self.sched, core, level, when, &mut acts);
        acts
    }

    /// Searches of this core that falls idle are always made.
    fn always_search(&mut self, core: usize) {
        for level in &mut self.fair.domains.of_core[core] {
            level.newidle_ratio = 1024;
        }
    }
}

/// Threads on core 0, of which the first one runs for 10 ms.
fn crowd(topology: Topology, count: usize) -> (Rig, Vec<ThreadId>) {
    let mut rig = Rig::on(V6_18, topology);
    let threads = rig.start_all(count, 0);
    assert_eq!(rig.choose(0), Some(threads[0]));
    rig.pass(10 * MS);
    rig.fair.settle_core(0);
    (rig, threads)
}

fn moved(thread: ThreadId, to: u16) -> Vec<Act> {
    vec![Act::Move { thread, to: CoreId(to) }, Act::Resched(CoreId(to))]
}

#[test]
fn idle_cores_balance_every_4_to_8_ms_and_busy_ones_16_times_more_rarely() {
    // `get_sd_balance_interval` of 4 cores at 250 Hz: 4 ms = 1 tick, 8 ms = 2 ticks; busy 16 - 1 and 32 - 1 ticks.
    let mut rig = Rig::on(V6_18, equal(4));
    for (ms, idle, busy) in [(4, 1, 15), (8, 2, 31)] {
        rig.fair.domains.of_core[0][0].interval = ms;
        assert_eq!([false, true].map(|is_busy| rig.fair.interval(0, 0, is_busy)), [idle, busy]);
    }
    // `max_load_balance_interval`: HZ x cores / 10 = 100 ticks.
    rig.fair.domains.of_core[0][0].interval = 512;
    assert_eq!([false, true].map(|is_busy| rig.fair.interval(0, 0, is_busy)), [100, 100]);
}

#[test]
fn a_balanced_domain_is_looked_at_half_as_often() {
    // `sched_balance_rq`, out_balanced: the interval doubles up to its maximum; not when a core falls idle.
    let mut rig = Rig::on(V6_18, equal(4));
    let mut intervals = Vec::new();
    for when in [When::NewlyIdle, When::Idle, When::Idle] {
        rig.balance(0, 0, when);
        intervals.push(rig.fair.domains.of_core[0][0].interval);
    }
    assert_eq!(intervals, [4, 8, 8]);
}

#[test]
fn an_idle_core_takes_one_of_three_threads() {
    // 3 / 2 = 1: the one that has waited longest since it was looked at (`detach_tasks`); the interval is the least
    // again.
    let (mut rig, threads) = crowd(equal(2), 3);
    rig.fair.domains.of_core[1][0].interval = 4;
    assert_eq!(rig.balance(1, 0, When::Idle), moved(threads[1], 1));
    assert_eq!((rig.counts(0).0, rig.counts(1).0), (2, 1));
    assert_eq!(rig.fair.domains.of_core[1][0].interval, 2);
}

#[test]
fn only_the_first_idle_core_of_a_group_balances_for_it() {
    // `should_we_balance`; for the others the domain counts as balanced.
    let topology = machine(&[(2, 1024.0), (2, 1024.0)], Sees::Nothing, LastLevelCache::Cluster);
    let (mut rig, threads) = crowd(topology, 3);
    rig.fair.domains.of_core[3][1].failures = 2;
    assert_eq!(rig.balance(3, 1, When::Idle), []);
    let level = &rig.fair.domains.of_core[3][1];
    assert_eq!((level.failures, level.interval), (0, 8));
    assert_eq!(rig.balance(2, 1, When::Idle), moved(threads[1], 2));
}

#[test]
fn threads_that_have_just_run_are_hot_until_balancing_has_failed_twice() {
    // `task_hot`: 0.5 ms; `can_migrate_task`: nr_balance_failed > cache_nice_tries, which is 1.
    let (mut rig, threads) = crowd(equal(2), 2);
    rig.of(threads[1]).charged_ns = rig.now_ns - 499_999;
    for failures in 1..=2 {
        assert_eq!(rig.balance(1, 0, When::Idle), []);
        assert_eq!(rig.fair.domains.of_core[1][0].failures, failures);
    }
    assert_eq!(rig.balance(1, 0, When::Idle), moved(threads[1], 1));
    assert_eq!(rig.fair.domains.of_core[1][0].failures, 0);
}

#[test]
fn a_running_thread_is_pushed_after_four_failures() {
    // `imbalanced_active_balance`: nr_balance_failed > cache_nice_tries + 2. Two threads that run, each alone on its
    // core, next to two idle cores with another cache: one of them is to move (SD_PREFER_SIBLING).
    let topology = machine(&[(2, 1024.0), (2, 1024.0)], Sees::Nothing, LastLevelCache::Cluster);
    let mut rig = Rig::on(V6_18, topology);
    let threads = [0, 1].map(|core| rig.start(0, core));
    for core in [0, 1] {
        rig.choose(core);
    }
    rig.pass(MS);
    for _ in 0..3 {
        assert_eq!(rig.balance(2, 1, When::Idle), []);
    }
    let acts = rig.balance(2, 1, When::Idle);
    let push = Act::Push { thread: threads[0], to: CoreId(2) };
    assert_eq!(acts, [push, Act::Resched(CoreId(2))]);
    assert_eq!(rig.fair.domains.of_core[2][1].failures, 0);
}

/// Two E-cores, 0 and 1, and two P-cores, 2 and 3.
fn hybrid() -> Topology {
    machine(&[(2, 560.0), (2, 1024.0)], Sees::Priorities, LastLevelCache::Machine)
}

#[test]
fn an_idle_p_core_takes_the_thread_of_a_busy_e_core() {
    // `nohz_balancer_kick`: a core of higher priority is idle. Its balancing finds a group to pack (`sched_group_asym`)
    // and stops the E-core at once (`asym_active_balance`).
    let mut rig = Rig::on(V6_18, hybrid());
    let thread = rig.start(0, 0);
    rig.choose(0);
    rig.pass(TICK_NS);
    assert!(rig.fair.kicks_idle(0));
    let push = Act::Push { thread, to: CoreId(2) };
    assert!(rig.tick().contains(&push));
    assert_eq!((rig.counts(0).0, rig.counts(2).0), (0, 1));
}

#[test]
fn an_idle_e_core_leaves_the_thread_of_a_p_core_alone() {
    let mut rig = Rig::on(V6_18, hybrid());
    rig.start(0, 2);
    rig.choose(2);
    for _ in 0..50 {
        rig.pass(TICK_NS);
        assert_eq!(rig.tick(), []);
    }
}

#[test]
fn equal_cores_do_not_stop_each_other() {
    let mut rig = Rig::on(V6_18, equal(4));
    rig.start(0, 0);
    rig.choose(0);
    for _ in 0..50 {
        rig.pass(TICK_NS);
        assert_eq!(rig.tick(), []);
    }
}

#[test]
fn an_idle_big_core_takes_what_is_too_big_for_a_little_one() {
    // `check_misfit_status` and `need_active_balance`: at 500 of 512 it does not fit.
    let mut rig = Rig::on(V6_18, little_and_big());
    let thread = rig.start(0, 0);
    rig.set_util(thread, 500);
    rig.choose(0);
    rig.pass(TICK_NS);
    let push = Act::Push { thread, to: CoreId(2) };
    assert!(rig.tick().contains(&push));
    assert_eq!(rig.fair.cores[0].misfit_load, 0);
    assert_eq!(rig.fair.domains.of_core[2][1].failures, 0, "it does not count as a failure");
}

#[test]
fn a_core_that_falls_idle_takes_a_thread() {
    // `sched_balance_newidle`: one thread at once.
    let (mut rig, threads) = crowd(equal(4), 4);
    rig.always_search(1);
    assert_eq!(rig.choose(1), Some(threads[1]));
    assert_eq!((rig.counts(0).0, rig.counts(1).0), (3, 1));
    assert_eq!(rig.acts, [], "the host puts it there with the choice");
}

#[test]
fn a_core_that_is_seldom_idle_for_long_does_not_search() {
    // `sched_balance_newidle`: avg_idle < max_newidle_lb_cost.
    let (mut rig, _) = crowd(equal(4), 4);
    rig.always_search(1);
    rig.fair.cores[1].idle_mean_ns = 1_000;
    assert_eq!(rig.choose(1), None);
}

#[test]
fn idle_times_count_an_eighth_up_to_1_ms() {
    // `update_avg`, `update_rq_avg_idle`: 1 ms + (0.2 - 1) / 8 = 0.9 ms; after 40 ms 5.7875 ms, cut to 1 ms.
    let mut rig = Rig::single(V6_18);
    let thread = rig.add(0, None);
    for (idle_ns, mean_ns) in [(200_000, 900_000), (40 * MS, 1_000_000)] {
        rig.pass(idle_ns);
        rig.wake(thread, 0);
        assert_eq!(rig.fair.cores[0].idle_mean_ns, mean_ns);
        rig.choose(0);
        rig.sleep(thread, 0);
        assert_eq!(rig.choose(0), None);
    }
}

#[test]
fn searches_that_were_seldom_worth_it_are_made_seldom() {
    // `update_newidle_stats`: 512 of 1024 at first; after 512 more calls without success 256 of 1024, and half of both
    // counts is kept.
    let mut rig = Rig::on(V6_18, equal(4));
    for _ in 0..512 {
        rig.fair.count_newidle(0, 0, 0);
    }
    let level = &rig.fair.domains.of_core[0][0];
    assert_eq!(
        (level.newidle_ratio, level.newidle_calls, level.newidle_successes),
        (256, 512, 128)
    );
    // NI_RANDOM: a search that is made with 256 in 1024 counts (1024 + 128) / 256 = 4.
    rig.fair.domains.of_core[0][0].newidle_ratio = 255;
    let draws: Vec<u32> = (0..1024).filter_map(|_| rig.fair.newidle_draw(0, 0)).collect();
    assert!(draws.iter().all(|&worth| worth == 4));
    assert!((200..320).contains(&draws.len()), "{} of 1024", draws.len());
    let mut always = Rig::on(V6_6, equal(4));
    assert_eq!(always.fair.newidle_draw(0, 0), Some(1));
}
