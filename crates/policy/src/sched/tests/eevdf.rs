//! EEVDF: eligibility, deadlines, lag, preemption.

use ampsched_model::{Ns, ThreadId};

use super::host::{Host, MS, rules};
use crate::{Change, Pick, Rules, Slice, WakePreempt};

/// Requests of 3 ms that end exactly.
fn exact() -> Rules {
    let rules = rules("eevdf", &[("hz", 0.0)], &[(0, 1)]);
    Rules { slice: Slice::Request { base_ns: 3 * MS }, ..rules }
}

fn host() -> Host {
    Host::with(exact(), &[(0, 2)])
}

/// Three equal waiting threads with virtual run times of 0, 1 and 5 ms above a common start.
fn vector(slice_of_b_ns: Ns) -> (Host, [ThreadId; 3]) {
    let mut host = host();
    let threads = [0, 0, 0].map(|core| host.fork_on(core, 1024));
    host.sched.apply(threads[1], &Change::Slice(slice_of_b_ns));
    for (&thread, ran_us) in threads.iter().zip([0, 1_000, 5_000]) {
        let start = host.vruntime(thread);
        host.sched.set_virtual(thread, start + ran_us * 1000);
    }
    (host, threads)
}

impl crate::Sched {
    /// Puts a waiting thread at a virtual run time with a new request.
    fn set_virtual(&mut self, thread: ThreadId, vruntime: Ns) {
        let (core, now_ns) = (self.thread(thread).core, self.thread(thread).since_ns);
        self.dequeue(thread);
        let request = self.slice_by_rules(thread, core);
        let state = &mut self.threads[thread.index()];
        state.vruntime = vruntime;
        state.deadline = vruntime + request;
        self.enqueue(thread, core, crate::EnqueueKind::Requeue, now_ns);
    }
}

#[test]
fn the_earliest_deadline_among_the_eligible_is_picked() {
    let (host, threads) = vector(0);
    let queue = host.sched.queue(0.into());
    assert_eq!(queue.mean_vruntime() - i128::from(host.vruntime(threads[0])), 2 * i128::from(MS));
    let eligible = threads.map(|thread| host.sched.is_eligible(thread, queue));
    assert_eq!(eligible, [true, true, false]);
    assert_eq!(host.pick(0), Pick::Run(threads[0]));
}

#[test]
fn a_shorter_request_is_served_earlier() {
    let (host, threads) = vector(MS / 2);
    assert_eq!(host.pick(0), Pick::Run(threads[1]));
}

#[test]
fn a_request_ends_when_it_is_used_up_or_at_the_next_tick() {
    for (tick_ns, expected_ns) in [(None, 3 * MS), (Some(4 * MS), 4 * MS)] {
        let mut host = Host::with(Rules { tick_ns, ..exact() }, &[(0, 1)]);
        let threads = [0, 0].map(|core| host.fork_on(core, 1024));
        // The first requests are half as long.
        host.start(0, threads[0]);
        host.advance(3 * MS / 2);
        host.requeue(0);
        host.start(0, threads[1]);
        host.advance(3 * MS / 2);
        host.requeue(0);
        host.dispatch(0);
        assert_eq!(host.running(0), Some(threads[0]));
        let since_ns = if tick_ns.is_some() { 0 } else { host.now_ns };
        let expiry_ns = host.sched.expiry_ns(0.into(), None, host.now_ns).unwrap();
        assert_eq!(expiry_ns - since_ns, expected_ns + if tick_ns.is_some() { 4 * MS } else { 0 });
    }
}

#[test]
fn a_first_request_is_half_as_long() {
    let mut host = host();
    let thread = host.fork_on(0, 2048);
    let state = host.sched.thread(thread);
    // Weight 2048 halves virtual time again.
    assert_eq!(state.deadline - state.vruntime, 3 * MS / 4);
}

/// A thread that blocks with a lag of +-1 ms against one equal thread.
fn blocked_with_lag(positive: bool) -> (Host, ThreadId, ThreadId) {
    let mut host = host();
    let threads = [0, 0].map(|core| host.fork_on(core, 1024));
    let (sleeper, other) = (threads[0], threads[1]);
    let ahead = if positive { other } else { sleeper };
    host.start(0, ahead);
    host.advance(2 * MS);
    if positive {
        host.requeue(0);
        host.start(0, sleeper);
    }
    host.block(0);
    (host, sleeper, other)
}

fn lag_us(host: &Host, thread: ThreadId) -> i64 {
    let core = host.sched.thread(thread).core;
    let mean = host.sched.queue(core).mean_vruntime();
    (mean - i128::from(host.vruntime(thread))) as i64 / 1000
}

#[test]
fn lag_survives_sleep() {
    let (mut host, sleeper, other) = blocked_with_lag(true);
    host.start(0, other);
    host.advance(10 * MS);
    host.wake_on(0, sleeper);
    assert_eq!(lag_us(&host, sleeper), 1_000);
    assert_eq!(lag_us(&host, other), -1_000);
}

#[test]
fn lag_survives_migration_into_other_company() {
    let (mut host, sleeper, _) = blocked_with_lag(true);
    let company = [1, 1, 1].map(|core| host.fork_on(core, 1024));
    host.start(1, company[0]);
    host.advance(77 * MS);
    host.wake_on(1, sleeper);
    assert_eq!(lag_us(&host, sleeper), 1_000);
    host.move_to(0, sleeper);
    host.move_to(1, sleeper);
    assert_eq!(lag_us(&host, sleeper), 1_000);
}

#[test]
fn a_debt_shrinks_as_the_others_catch_up() {
    for (passed_us, left_us) in [(0, -1_000), (1_000, -500), (1_400, -300), (2_000, 0), (50_000, 0)]
    {
        let (mut host, sleeper, other) = blocked_with_lag(false);
        assert_eq!(host.sched.threads[sleeper.index()].lag, -(MS as i64));
        host.start(0, other);
        host.advance(passed_us * 1000);
        host.wake_on(0, sleeper);
        assert_eq!(lag_us(&host, sleeper), left_us, "after {passed_us} us");
    }
}

#[test]
fn lag_is_at_most_two_requests() {
    let mut host = host();
    let threads = [0, 0].map(|core| host.fork_on(core, 1024));
    host.start(0, threads[0]);
    host.advance(100 * MS);
    host.requeue(0);
    host.start(0, threads[1]);
    host.block(0);
    assert_eq!(host.sched.threads[threads[1].index()].lag, 6 * MS as i64);
}

#[test]
fn a_moved_thread_keeps_the_rest_of_its_request() {
    let mut host = host();
    let threads = [0, 0].map(|core| host.fork_on(core, 1024));
    host.start(0, threads[0]);
    host.advance(MS);
    host.requeue(0);
    host.move_to(1, threads[0]);
    let state = host.sched.thread(threads[0]);
    assert_eq!(state.deadline - state.vruntime, MS / 2);
}

/// Whether a thread that wakes after the other has run for `ran_us` preempts it.
fn preempts(run_to_parity: bool, ran_us: u64) -> bool {
    let rules = Rules { preempt: WakePreempt::EarlierDeadline { run_to_parity }, ..exact() };
    let mut host = Host::with(rules, &[(0, 1)]);
    let threads = [0, 0].map(|core| host.fork_on(core, 1024));
    let (sleeper, other) = (threads[0], threads[1]);
    // The sleeper leaves with a lag of 1 ms.
    host.start(0, other);
    host.advance(2 * MS);
    host.requeue(0);
    host.start(0, sleeper);
    host.block(0);
    host.start(0, other);
    host.advance(ran_us * 1000);
    host.wake_on(0, sleeper);
    host.sched.preempts_by_rules(sleeper, other, 0.into())
}

#[test]
fn a_thread_that_is_owed_time_preempts_one_that_is_ahead() {
    // With the sleeper back, the running thread is not eligible and so not protected.
    assert!(preempts(true, 500) && preempts(false, 500));
}

#[test]
fn an_even_thread_is_protected_to_the_end_of_its_request() {
    let preempts = |run_to_parity, ran_us: u64| {
        let rules = Rules { preempt: WakePreempt::EarlierDeadline { run_to_parity }, ..exact() };
        let mut host = Host::with(rules, &[(0, 1)]);
        let running = host.fork_on(0, 1024);
        host.start(0, running);
        host.advance(ran_us * 1000);
        // A new thread has no lag and a short first request: its deadline is earlier, if only just.
        let woken = host.fork_on(0, 1024);
        host.sched.apply(woken, &Change::Slice(MS / 10));
        let start = host.vruntime(woken);
        host.sched.set_virtual(woken, start);
        host.sched.preempts_by_rules(woken, running, 0.into())
    };
    assert!(!preempts(true, 1_000));
    assert!(preempts(false, 1_000));
    assert!(preempts(true, 1_500), "the request of 1.5 ms is used up");
}

#[test]
fn virtual_time_goes_on_when_a_queue_empties() {
    let mut host = host();
    let thread = host.fork_on(0, 1024);
    let start = host.vruntime(thread);
    host.start(0, thread);
    host.advance(50 * MS);
    host.block(0);
    let next = host.fork_on(0, 1024);
    assert_eq!(host.vruntime(next), start + 50 * MS);
}
