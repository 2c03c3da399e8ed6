//! States that are written down instead of decided: the books must be those of a host that decided them.

use ampsched_model::{AppId, CoreId, Ns, ThreadId};
use proptest::prelude::*;

use super::host::{Host, MS, rules};
use crate::testing::topology;
use crate::{RunState, Sched};

const CLUSTERS: [(u8, usize); 2] = [(1, 2), (0, 2)];
const CORES: usize = 4;

fn watched() -> (Host, Vec<ThreadId>) {
    let mut host = Host::new("cfs", &CLUSTERS);
    let threads = (0..3).map(|_| host.add(1024, None)).collect();
    (host, threads)
}

#[test]
fn times_are_those_between_observations() {
    let (mut host, threads) = watched();
    let (thread, core) = (threads[0], CoreId(2));
    let seen = [RunState::Ready, RunState::Running, RunState::Blocked, RunState::Running];
    for (at_ms, state) in (0..).zip(seen) {
        host.sched.observe(thread, state, core, at_ms * MS);
    }
    host.sched.charge(core, MS, 70);
    host.sched.observe(thread, RunState::Exited, core, 4 * MS);
    let stats = host.sched.stats(thread);
    assert_eq!((stats.ready_ns, stats.blocked_ns, stats.run_ns), (MS, MS, [MS, 0, 0, 0]));
    assert_eq!(host.sched.instructions(threads[0]).iter().sum::<u64>(), 70);
    assert_eq!(host.sched.live_threads().count(), 0);
}

#[test]
fn a_thread_found_elsewhere_has_migrated() {
    let (mut host, threads) = watched();
    host.sched.observe(threads[0], RunState::Running, CoreId(0), 0);
    host.sched.observe(threads[0], RunState::Running, CoreId(3), 5 * MS);
    let stats = host.sched.stats(threads[0]);
    assert_eq!((stats.migrations, stats.migrated_at_ns), (1, 5 * MS));
    assert_eq!((host.running(0), host.running(3)), (None, Some(threads[0])));
}

#[test]
fn of_two_on_one_core_the_last_seen_runs() {
    let (mut host, threads) = watched();
    host.sched.observe(threads[0], RunState::Running, CoreId(1), 0);
    host.sched.observe(threads[1], RunState::Running, CoreId(1), MS);
    assert_eq!(host.running(1), Some(threads[1]));
    assert_eq!(host.sched.queued(CoreId(1)), [threads[0]]);
}

/// What has been said of each thread.
type Said = Vec<(RunState, CoreId)>;

fn check(sched: &Sched, said: &Said) {
    let running = |core: CoreId| said.iter().filter(|&&s| s == (RunState::Running, core)).count();
    let waits = |said: &&(RunState, CoreId)| said.0 == RunState::Ready;
    for (index, &(state, core)) in said.iter().enumerate() {
        let seen = sched.thread(ThreadId::from(index));
        assert_eq!(seen.state, state, "thread {index}");
        if state.is_runnable() {
            assert_eq!(seen.core, core, "thread {index}");
        }
    }
    for core in (0..CORES).map(CoreId::from) {
        assert_eq!(usize::from(sched.core(core).running.is_some()), running(core));
    }
    assert_eq!(sched.all_queued().len(), said.iter().filter(waits).count());
    let idle = (0..CORES).map(CoreId::from).filter(|&core| running(core) == 0).count();
    assert_eq!(sched.idle_cores(), idle);
    let live = said.iter().filter(|(state, _)| state.is_live()).count();
    assert_eq!(sched.live_threads().count(), live);
}

proptest! {
    #[test]
    fn whatever_is_seen_the_books_agree(
        policy in prop::sample::select(vec!["cfs", "eevdf", "rr", "colab", "a-dwrr"]),
        seen in prop::collection::vec((0..6usize, 0..5usize, 0..CORES, 0..3 * MS), 1..200),
    ) {
        let mut sched = Sched::new(topology(&CLUSTERS), rules(policy, &[], &CLUSTERS));
        sched.track_load(crate::LoadTracking::ByTime);
        let mut said: Said = vec![(RunState::New, CoreId(0)); 6];
        for _ in &said {
            sched.add(AppId(0), 1024, None);
        }
        let states =
            [RunState::Ready, RunState::Running, RunState::Blocked, RunState::Held, RunState::Exited];
        let mut now_ns: Ns = 0;
        for (thread, state, core, passed_ns) in seen {
            now_ns += passed_ns;
            let (state, core) = (states[state], CoreId::from(core));
            sched.observe(ThreadId::from(thread), state, core, now_ns);
            if said[thread].0 == RunState::Exited {
                continue;
            }
            if state == RunState::Running {
                for other in said.iter_mut().filter(|other| **other == (RunState::Running, core)) {
                    other.0 = RunState::Ready;
                }
            }
            said[thread] = (state, core);
            check(&sched, &said);
        }
        for thread in (0..said.len()).map(ThreadId::from) {
            let stats = sched.stats(thread);
            prop_assert!(stats.ready_ns + stats.blocked_ns <= now_ns);
        }
    }
}
