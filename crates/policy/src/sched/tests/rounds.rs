//! Rounds: who enters which when, what is fair, and that nothing idles for it.

use ampsched_model::{Ns, ThreadId};
use proptest::prelude::*;

use super::host::{Host, MS, rules};
use crate::{Pick, Rules};

/// The length of a round in virtual run time.
const ROUND: Ns = 30 * MS;

fn a_dwrr(rating: f64, clusters: &[(u8, usize)]) -> Host {
    Host::with(a_dwrr_rules(rating, clusters), clusters)
}

fn a_dwrr_rules(rating: f64, clusters: &[(u8, usize)]) -> Rules {
    rules("a-dwrr", &[("rating", rating)], clusters)
}

impl Host {
    /// The round in which a thread is.
    fn round(&self, thread: ThreadId) -> u64 {
        self.sched.round(thread)
    }

    /// Scaled run time.
    fn scaled_ns(&self, thread: ThreadId, rating: u64) -> Ns {
        let stats = self.sched.stats(thread);
        stats.run_ns[0] + rating * stats.run_ns[1]
    }
}

/// A fast core of rating 2 with A and C, a slow one with D; all run from 0.
fn three(weight_of_d: u32) -> (Host, [ThreadId; 3]) {
    let mut host = a_dwrr(2.0, &[(1, 1), (0, 1)]);
    let threads = [(0, 1024), (0, 1024), (1, weight_of_d)].map(|(core, w)| host.fork_on(core, w));
    host.start(0, threads[0]);
    host.start(1, threads[2]);
    (host, threads)
}

#[test]
fn a_round_is_a_share_of_scaled_time() {
    let (mut host, [a, c, d]) = three(1024);
    assert_eq!(host.sched.expiry_ns(0.into(), None, 0), Some(15 * MS));
    assert_eq!(host.sched.expiry_ns(1.into(), None, 0), Some(30 * MS), "even if nobody waits");
    host.run_until(15 * MS);
    assert_eq!(host.running(0), Some(c));
    host.run_until(30 * MS);
    assert_eq!((host.running(0), host.running(1)), (Some(a), Some(d)));
    assert_eq!([a, c, d].map(|thread| host.scaled_ns(thread, 2)), [ROUND; 3]);
    assert_eq!([a, d].map(|thread| host.round(thread)), [1, 1]);
}

#[test]
fn a_core_may_be_one_round_ahead() {
    let (mut host, [a, c, d]) = three(1024);
    host.run_until(15 * MS);
    assert_eq!(host.block(0), c);
    host.dispatch(0);
    assert_eq!(host.running(0), Some(a), "nobody waits in round 0");
    assert_eq!((host.round(a), host.round(d)), (1, 0));
    // At 30 ms A and D end their rounds together.
    host.run_until(30 * MS);
    assert_eq!((host.running(0), host.running(1)), (Some(a), Some(d)));
    assert_eq!((host.round(a), host.round(d)), (2, 1));
}

#[test]
fn instead_of_getting_two_ahead_it_changes_places_with_a_slow_core() {
    // D's round takes 60 ms on the slow core.
    let (mut host, [a, c, d]) = three(2048);
    host.run_until(15 * MS);
    assert_eq!(host.block(0), c);
    host.dispatch(0);
    host.run_until(30 * MS);
    assert_eq!((host.running(0), host.running(1)), (Some(d), Some(a)));
    assert_eq!((host.round(d), host.round(a)), (1, 2));
}

#[test]
fn what_a_running_thread_has_not_been_charged_for_counts() {
    let mut host = a_dwrr(2.0, &[(1, 1), (0, 1)]);
    let [a, d] = [0, 1].map(|core| host.fork_on(core, 1024));
    host.start(0, a);
    host.start(1, d);
    for round in 1..3 {
        host.now_ns += 15 * MS;
        host.sched.charge(0.into(), 15 * MS, 0);
        host.requeue(0);
        // At 30 ms D has just ended round 0.
        assert_eq!((host.pick(0), host.round(a)), (Pick::Run(a), round));
        host.start(0, a);
    }
}

#[test]
fn who_runs_on_for_long_is_one_round_ahead() {
    let mut host = a_dwrr(1.0, &[(0, 1)]);
    let [greedy, other] = [0, 0].map(|core| host.fork_on(core, 1024));
    host.start(0, greedy);
    host.advance(10 * ROUND);
    host.requeue(0);
    assert_eq!((host.round(greedy), host.round(other)), (1, 0));
    // The next round is used up, but no more than that.
    host.run_until(host.now_ns + 4 * ROUND);
    assert_eq!((host.run_ns(greedy), host.run_ns(other)), (11 * ROUND, 3 * ROUND));
}

#[test]
fn a_core_takes_threads_of_earlier_rounds_first() {
    let mut host = a_dwrr(1.0, &[(0, 2)]);
    let [a, b, c] = [0, 1, 1].map(|core| host.fork_on(core, 1024));
    host.start(0, a);
    host.start(1, b);
    host.advance(ROUND);
    host.requeue(0);
    assert_eq!(host.pick(0), Pick::Run(c), "A would enter round 1 while C waits in round 0");
    host.start(0, c);
    host.requeue(1);
    assert_eq!(host.pick(1), Pick::Run(b), "A waits in round 1, too");
}

#[test]
fn sleepers_and_newcomers_join_the_present_rounds() {
    let mut host = a_dwrr(1.0, &[(0, 1)]);
    let [sleeper, other] = [0, 0].map(|core| host.fork_on(core, 1024));
    host.start(0, sleeper);
    host.block(0);
    host.dispatch(0);
    for _ in 0..5 {
        host.run_until(host.now_ns + ROUND);
    }
    assert_eq!(host.round(other), 5);
    host.wake_on(0, sleeper);
    assert_eq!(host.round(sleeper), 4, "one behind");
    let new = host.fork_on(0, 1024);
    assert_eq!(host.round(new), 5);
    // 30 ms until both others are a round behind again, 30 ms more until all have had the same.
    let before = [sleeper, other, new].map(|thread| host.run_ns(thread));
    host.run_until(host.now_ns + 4 * ROUND);
    let after = [sleeper, other, new].map(|thread| host.run_ns(thread));
    assert_eq!([0, 1, 2].map(|i| (after[i] - before[i]) / ROUND), [2, 1, 1]);
}

#[test]
fn a_stream_of_newcomers_starves_nobody() {
    let mut host = a_dwrr(1.0, &[(0, 1)]);
    let old = host.fork_on(0, 1024);
    host.run_until(10 * MS);
    host.fork_on(0, 1024);
    host.requeue(0);
    // Each runs for 1 ms, and before it ends the next one has come.
    for _ in 0..100 {
        host.dispatch(0);
        if host.running(0) == Some(old) {
            return;
        }
        host.advance(MS);
        host.fork_on(0, 1024);
        host.block(0);
    }
    panic!("it never runs again");
}

#[test]
fn a_woken_thread_that_is_behind_interrupts() {
    for (ahead_ms, preempts) in [(2, false), (4, true)] {
        let mut host = a_dwrr(1.0, &[(0, 4)]);
        let [woken, running] = [0, 0].map(|core| host.fork_on(core, 1024));
        host.start(0, running);
        host.advance(ahead_ms * MS);
        // CFS's granularity on four cores is 3 ms.
        assert_eq!(host.sched.preempts_by_rules(woken, running, 0.into()), preempts);
    }
}

#[test]
fn two_threads_take_turns_at_the_fast_core() {
    for rating in [1.3, 2.0, 3.25] {
        let mut host = a_dwrr(rating, &[(1, 1), (0, 1)]);
        let threads = [0, 1].map(|core| host.fork_on(core, 1024));
        host.run_until(20_000 * MS);
        for thread in threads {
            let share = host.sched.stats(thread).run_ns[1] as f64 / host.now_ns as f64;
            assert!((share - 0.5).abs() < 0.02, "rating {rating}: {share}");
        }
    }
}

#[test]
fn weights_share_in_proportion() {
    let mut host = a_dwrr(2.0, &[(1, 1), (0, 2)]);
    let weights = [512, 1024, 1024, 1024, 2048, 1024, 512, 1024];
    let threads: Vec<ThreadId> =
        weights.iter().enumerate().map(|(i, &w)| host.fork_on(i % 3, w)).collect();
    host.run_until(40_960 * MS);
    // 4 x 40.96 s of scaled time for 8 x 1024 of weight: 20 s for each 1024.
    for (&thread, weight) in threads.iter().zip(weights) {
        let scaled_ms = host.scaled_ns(thread, 2) / MS;
        let expected_ms = 20_480 * u64::from(weight) / 1024;
        let round_ms = 30 * u64::from(weight) / 1024;
        assert!(scaled_ms.abs_diff(expected_ms) <= 2 * round_ms, "{scaled_ms} {expected_ms}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// With enough threads for all cores nothing is dropped, and shares are equal to within two rounds
    /// at any time.
    #[test]
    fn shares_differ_by_two_rounds_at_most(
        big in 1usize..3, little in 0usize..3, rating in 1u64..4, spare in 1usize..8,
        homes in prop::collection::vec(0usize..4, 24), ms in 1u64..2_000,
    ) {
        let clusters = if little > 0 { vec![(1, big), (0, little)] } else { vec![(0, big)] };
        let mut host = a_dwrr(rating as f64, &clusters);
        let cores = big + little;
        // While one thread runs for a round on a slow core, the fast ones go on with the others.
        let count = big * rating as usize + little + spare;
        let threads: Vec<ThreadId> =
            homes.iter().take(count).map(|home| host.fork_on(home % cores, 1024)).collect();
        host.run_until(ms * MS);
        let scaled = threads.iter().map(|&thread| match little {
            0 => host.run_ns(thread),
            _ => host.scaled_ns(thread, rating),
        });
        let (least, most) = (scaled.clone().min().unwrap(), scaled.max().unwrap());
        prop_assert!(most - least <= 2 * ROUND, "{least} {most}");
    }

    /// Whatever blocks, wakes and starts: rounds differ by one at most, and nobody starts in a later
    /// round than a thread that waits and could be taken.
    #[test]
    fn rounds_never_differ_by_more_than_one(
        rating in 1.0f64..4.0,
        weights in prop::collection::vec(15u32..4_000, 1..12),
        steps in prop::collection::vec((0usize..4, 0usize..6, 0u64..40_000), 1..150),
    ) {
        let clusters = [(1, 2), (0, 2)];
        let mut host = a_dwrr(rating, &clusters);
        let mut asleep: Vec<ThreadId> = Vec::new();
        for (index, &weight) in weights.iter().enumerate() {
            host.fork_on(index % 4, weight);
        }
        for (core, what, us) in steps {
            match what {
                0 if host.running(core).is_some() => asleep.push(host.block(core)),
                1 if !asleep.is_empty() => {
                    let thread = asleep.swap_remove(core % asleep.len());
                    host.wake_on(core, thread);
                }
                2 => drop(host.fork_on(core, weights[core % weights.len()])),
                _ => {}
            }
            host.dispatch_in_round_order();
            host.run_until(host.now_ns + us * 1000);
            host.dispatch_in_round_order();
            let running: Vec<u64> =
                (0..4).filter_map(|core| host.running(core)).map(|t| host.round(t)).collect();
            let (least, most) = (running.iter().min(), running.iter().max());
            prop_assert!(most.zip(least).is_none_or(|(most, least)| most - least <= 1), "{running:?}");
        }
    }
}

impl Host {
    /// Every core without a thread takes one. If it takes one of its own, nobody waits elsewhere in an
    /// earlier round.
    fn dispatch_in_round_order(&mut self) {
        for core in 0..4 {
            if self.running(core).is_some() {
                continue;
            }
            let own = self.sched.queued(core.into());
            self.dispatch(core);
            let Some(thread) = self.running(core) else { continue };
            if !own.contains(&thread) {
                continue;
            }
            // The only thread of a core that is about to run it is not up for taking.
            let spared = |&queue: &usize| self.sched.queue(queue.into()).can_spare();
            let others = (0..4).filter(spared).flat_map(|queue| self.sched.queued(queue.into()));
            let earliest = others.map(|other| self.round(other)).min();
            assert!(earliest.is_none_or(|earliest| self.round(thread) <= earliest), "{thread:?}");
        }
    }
}
