//! CFS on four cores: slices, preemption, where virtual time starts.

use super::host::{Host, MS};
use crate::{Pick, nice_to_weight};

fn round_us(ns: u64) -> u64 {
    (ns + 500) / 1000
}

fn slices_us(weights: &[u32]) -> Vec<u64> {
    let mut host = Host::new("cfs", &[(0, 4)]);
    let threads: Vec<_> = weights.iter().map(|&weight| host.fork_on(0, weight)).collect();
    threads.iter().map(|&t| round_us(host.sched.slice_by_rules(t, 0.into()))).collect()
}

#[test]
fn slices_share_the_latency_by_weight() {
    assert_eq!(slices_us(&[1024]), [18_000]);
    assert_eq!(slices_us(&[1024; 2]), [9_000; 2]);
    assert_eq!(slices_us(&[1024, nice_to_weight(5)]), [13_563, 4_437]);
    assert_eq!(slices_us(&[1024; 8]), [2_250; 8]);
    assert_eq!(slices_us(&[1024; 9]), [2_250; 9]);
}

#[test]
fn a_turn_ends_with_the_slice() {
    let mut host = Host::new("cfs", &[(0, 4)]);
    let threads = [nice_to_weight(5), 1024].map(|weight| host.fork_on(0, weight));
    host.dispatch(0);
    assert_eq!(host.running(0), Some(threads[1]));
    let expiry_ns = host.sched.expiry_ns(0.into(), None, 0).unwrap();
    assert_eq!(round_us(expiry_ns), 13_563);
    host.advance(expiry_ns);
    host.requeue(0);
    assert_eq!(host.pick(0), Pick::Run(threads[1]), "still behind the light one");
}

#[test]
fn nobody_waits_no_expiry() {
    let mut host = Host::new("cfs", &[(0, 4)]);
    host.fork_on(0, 1024);
    host.dispatch(0);
    assert_eq!(host.sched.expiry_ns(0.into(), None, 0), None);
}

#[test]
fn a_turn_ends_early_if_the_thread_is_a_slice_ahead() {
    let mut host = Host::new("cfs", &[(0, 4)]);
    let threads = [0, 0].map(|core| host.fork_on(core, 1024));
    host.start(0, threads[0]);
    host.advance(7 * MS);
    host.requeue(0);
    host.start(0, threads[0]);
    // 7 ms ahead already: 2 ms more make a slice, but not before the granularity of 2.25 ms.
    assert_eq!(host.sched.expiry_ns(0.into(), None, 7 * MS), Some(9 * MS + MS / 4));
    // A slice given from outside counts alone.
    assert_eq!(host.sched.expiry_ns(0.into(), Some(MS), 7 * MS), Some(8 * MS));
    assert_eq!(host.sched.expiry_ns(0.into(), Some(MS), 9 * MS), Some(9 * MS), "overdue is now");
}

/// Whether a thread of that weight preempts one that is so much virtual time ahead.
fn preempts(ahead_us: u64, weight: u32) -> bool {
    let mut host = Host::new("cfs", &[(0, 4)]);
    // The earlier one starts at the higher virtual run time.
    let (woken, running) = (host.fork_on(0, weight), host.fork_on(0, 1024));
    host.start(0, running);
    let lead_us = (host.vruntime(running) as i64 - host.vruntime(woken) as i64) / 1000;
    host.advance((ahead_us as i64 - lead_us) as u64 * 1000);
    host.sched.preempts_by_rules(woken, running, 0.into())
}

#[test]
fn a_woken_thread_preempts_beyond_the_weighted_granularity() {
    assert!(!preempts(2_000, 1024));
    assert!(!preempts(3_000, 1024));
    assert!(preempts(3_500, 1024));
    // Nice 5: 3 ms x 1024 / 335 = 9.17 ms.
    assert!(!preempts(3_500, nice_to_weight(5)));
    assert!(!preempts(9_100, nice_to_weight(5)));
    assert!(preempts(9_200, nice_to_weight(5)));
    assert!(!preempts(0, 1024));
}

#[test]
fn a_new_thread_starts_a_slice_behind() {
    let mut host = Host::new("cfs", &[(0, 4)]);
    let first = host.fork_on(0, 1024);
    let floor = host.vruntime(first) - 18 * MS;
    let second = host.fork_on(0, 1024);
    assert_eq!(host.vruntime(second) - floor, 9 * MS);
    // Weight 512: a third of 18 ms, counted twice.
    let third = host.fork_on(0, 1024);
    let light = host.fork_on(0, 512);
    assert_eq!(host.vruntime(third) - floor, 6 * MS);
    let slice_ns = 18 * MS * 512 / 3584;
    assert_eq!(host.vruntime(light) - floor, slice_ns * 2);
}

#[test]
fn a_sleeper_comes_back_half_a_latency_behind_at_most() {
    let mut host = Host::new("cfs", &[(0, 4)]);
    let (sleeper, other) = (host.fork_on(0, 1024), host.fork_on(0, 1024));
    host.start(0, sleeper);
    host.block(0);
    host.start(0, other);
    host.advance(100 * MS);
    host.wake_on(0, sleeper);
    assert_eq!(host.vruntime(other) - host.vruntime(sleeper), 9 * MS);
    // After a short sleep it keeps its place.
    let kept = host.vruntime(sleeper);
    host.requeue(0);
    host.start(0, sleeper);
    host.advance(MS);
    host.block(0);
    host.start(0, other);
    host.advance(MS);
    host.wake_on(0, sleeper);
    assert_eq!(host.vruntime(sleeper), kept + MS);
}

#[test]
fn heavy_threads_age_slowly() {
    let mut host = Host::new("cfs", &[(0, 1)]);
    let thread = host.fork_on(0, 2048);
    let before = host.vruntime(thread);
    host.start(0, thread);
    host.advance(8 * MS);
    assert_eq!(host.vruntime(thread) - before, 4 * MS);
}
