//! Where threads are put, and who may run where.

use ampsched_model::{CoreId, CoreSet, ThreadId};

use super::host::{Host, MS, rules};
use crate::{Allocator, Change, Effect, Prefer, Rules};

const BIG_2_LITTLE_2: &[(u8, usize)] = &[(1, 2), (0, 2)];

fn cores(cores: &[usize]) -> CoreSet {
    cores.iter().map(|&core| CoreId::from(core)).collect()
}

/// A thread that blocked on that core.
fn sleeper_of(host: &mut Host, core: usize) -> ThreadId {
    let thread = host.fork_on(core, 1024);
    host.start(core, thread);
    host.block(core)
}

fn occupy(host: &mut Host, core: usize, threads: usize) {
    for _ in 0..threads {
        host.fork_on(core, 1024);
    }
    host.dispatch(core);
}

#[test]
fn new_threads_go_to_the_least_loaded_core_in_order() {
    let mut host = Host::new("cfs", &[(0, 4)]);
    occupy(&mut host, 1, 1);
    let placed = [0; 4].map(|_| {
        let thread = host.fork(1024);
        host.core_of(thread)
    });
    assert_eq!(placed, [0, 2, 3, 0]);
}

#[test]
fn weight_counts_for_new_threads() {
    let mut host = Host::new("cfs", &[(0, 2)]);
    host.fork_on(0, 4096);
    host.fork_on(1, 1024);
    host.fork_on(1, 1024);
    let thread = host.fork(1024);
    assert_eq!(host.core_of(thread), 1);
}

#[test]
fn a_woken_thread_goes_back_if_its_core_is_idle() {
    let mut host = Host::new("cfs", BIG_2_LITTLE_2);
    let sleeper = sleeper_of(&mut host, 3);
    assert_eq!(host.sched.place_by_rules(sleeper, 0), CoreId(3));
    assert_eq!(host.sched.place_by_rules_near(sleeper, Some(CoreId(0)), 0), CoreId(3));
}

#[test]
fn else_to_an_idle_core_near_its_own_else_near_its_waker() {
    let mut host = Host::new("cfs", BIG_2_LITTLE_2);
    let sleeper = sleeper_of(&mut host, 3);
    occupy(&mut host, 3, 1);
    let near = |host: &Host| host.sched.place_by_rules_near(sleeper, Some(CoreId(0)), 0);
    assert_eq!(near(&host), CoreId(2));
    occupy(&mut host, 2, 1);
    assert_eq!(near(&host), CoreId(0));
    occupy(&mut host, 0, 1);
    assert_eq!(near(&host), CoreId(1));
}

#[test]
fn with_no_idle_core_near_to_the_less_loaded_of_the_two() {
    let mut host = Host::new("cfs", &[(0, 3)]);
    let sleeper = sleeper_of(&mut host, 2);
    for (core, threads) in [(0, 2), (1, 1), (2, 3)] {
        occupy(&mut host, core, threads);
    }
    assert_eq!(host.sched.place_by_rules_near(sleeper, Some(CoreId(0)), 0), CoreId(0));
    assert_eq!(host.sched.place_by_rules(sleeper, 0), CoreId(2));
    host.sched.apply(sleeper, &Change::Affinity(cores(&[1])));
    assert_eq!(host.sched.place_by_rules_near(sleeper, Some(CoreId(0)), 0), CoreId(1));
}

fn in_class_host(clusters: &[(u8, usize)]) -> Host {
    let rules = Rules { allocator: Allocator::RoundRobinInClass, ..rules("cfs", &[], clusters) };
    Host::with(rules, clusters)
}

fn place_in_turn<const N: usize>(host: &mut Host, prefer: Prefer) -> [usize; N] {
    let thread = host.add(1024, None);
    host.sched.apply(thread, &Change::Prefer(prefer));
    [0; N].map(|_| host.sched.place_by_rules(thread, 0).index())
}

#[test]
fn each_class_has_its_own_turn() {
    let mut host = in_class_host(&[(0, 2), (1, 3)]);
    assert_eq!(place_in_turn(&mut host, Prefer::Big), [2, 3, 4, 2]);
    assert_eq!(place_in_turn(&mut host, Prefer::Little), [0, 1, 0]);
    assert_eq!(place_in_turn(&mut host, Prefer::Big), [3, 4]);
}

#[test]
fn without_preference_the_least_loaded_is_taken_in_turn() {
    let mut host = in_class_host(BIG_2_LITTLE_2);
    assert_eq!(place_in_turn(&mut host, Prefer::Any), [0, 1, 2, 3, 0]);
    occupy(&mut host, 1, 1);
    assert_eq!(place_in_turn(&mut host, Prefer::Any), [2, 3, 0, 2]);
}

#[test]
fn middle_cores_count_as_big() {
    let mut host = in_class_host(&[(2, 1), (1, 1), (0, 2)]);
    assert_eq!(place_in_turn(&mut host, Prefer::Big), [0, 1, 0]);
    assert_eq!(place_in_turn(&mut host, Prefer::Little), [2, 3, 2]);
}

#[test]
fn a_preference_that_no_allowed_core_meets_is_ignored() {
    let mut host = in_class_host(&[(0, 3)]);
    assert_eq!(place_in_turn(&mut host, Prefer::Little), [0, 1, 2]);
    let mut host = in_class_host(BIG_2_LITTLE_2);
    let thread = host.add(1024, Some(&[2]));
    host.sched.apply(thread, &Change::Prefer(Prefer::Big));
    assert_eq!(host.sched.place_by_rules(thread, 0), CoreId(2));
}

fn least_loaded_host(clusters: &[(u8, usize)]) -> Host {
    let rules = Rules { allocator: Allocator::LeastLoadedInClass, ..rules("cfs", &[], clusters) };
    Host::with(rules, clusters)
}

#[test]
fn the_least_loaded_of_the_preferred_kind_is_taken() {
    let mut host = least_loaded_host(BIG_2_LITTLE_2);
    let thread = host.add(1024, None);
    occupy(&mut host, 0, 2);
    occupy(&mut host, 1, 1);
    let mut place = |prefer| {
        host.sched.apply(thread, &Change::Prefer(prefer));
        host.sched.place_by_rules(thread, 0).index()
    };
    assert_eq!([Prefer::Big, Prefer::Little, Prefer::Any].map(&mut place), [1, 2, 2]);
}

#[test]
fn of_equally_loaded_cores_the_previous_one_is_taken() {
    let mut host = least_loaded_host(BIG_2_LITTLE_2);
    let sleeper = sleeper_of(&mut host, 3);
    host.sched.apply(sleeper, &Change::Prefer(Prefer::Little));
    assert_eq!(host.sched.place_by_rules(sleeper, 0), CoreId(3));
    occupy(&mut host, 3, 1);
    assert_eq!(host.sched.place_by_rules(sleeper, 0), CoreId(2));
}

#[test]
fn a_move_is_asked_for_only_from_the_wrong_kind_to_a_kind_that_may_be_used() {
    let mut host = least_loaded_host(BIG_2_LITTLE_2);
    let thread = host.fork_on(2, 1024);
    assert!(
        !host.sched.apply(thread, &Change::Prefer(Prefer::Big)).moves,
        "from the next placement on"
    );
    assert!(host.sched.apply(thread, &Change::Move(Prefer::Big)).moves);
    assert!(!host.sched.apply(thread, &Change::Move(Prefer::Little)).moves);
    host.start(2, thread);
    assert!(host.sched.apply(thread, &Change::Move(Prefer::Big)).moves);
    host.block(2);
    assert!(
        !host.sched.apply(thread, &Change::Move(Prefer::Big)).moves,
        "a blocked thread is nowhere"
    );
    let bound = host.add(1024, Some(&[3]));
    host.sched.enqueue(bound, CoreId(3), crate::EnqueueKind::Fork, 0);
    assert!(!host.sched.apply(bound, &Change::Move(Prefer::Big)).moves, "it may use no big core");
}

#[test]
fn a_policy_restricts_within_what_the_program_allows() {
    let mut host = Host::new("cfs", &[(0, 4)]);
    let thread = host.add(1024, Some(&[1, 2]));
    let allowed = |host: &Host| -> Vec<usize> {
        (0..4).filter(|&core| host.sched.allows(thread, core.into())).collect()
    };
    assert_eq!(allowed(&host), [1, 2]);
    host.sched.apply(thread, &Change::Affinity(cores(&[2, 3])));
    assert_eq!(allowed(&host), [2]);
    // Nothing in common: the program has the last word.
    host.sched.apply(thread, &Change::Affinity(cores(&[0, 3])));
    assert_eq!(allowed(&host), [1, 2]);
    host.sched.apply(thread, &Change::Affinity(cores(&[0, 1, 2, 3])));
    assert_eq!(allowed(&host), [1, 2]);
}

#[test]
fn the_host_is_told_of_threads_in_the_wrong_place() {
    let mut host = Host::new("cfs", &[(0, 2)]);
    let (waiting, running) = (host.fork_on(0, 1024), host.fork_on(1, 1024));
    host.start(1, running);
    let elsewhere = [Change::Affinity(cores(&[1])), Change::Affinity(cores(&[0]))];
    assert!(host.sched.apply(waiting, &elsewhere[0]).moves);
    assert!(!host.sched.apply(waiting, &elsewhere[1]).moves);
    assert!(host.sched.apply(running, &elsewhere[1]).moves);
    host.sched.apply(running, &elsewhere[0]);
    host.block(1);
    assert!(!host.sched.apply(running, &elsewhere[1]).moves, "a blocked thread is nowhere");
    assert!(host.sched.restrict_user(waiting, &cores(&[1])).moves);
    let again = host.sched.restrict_user(waiting, &cores(&[1]));
    assert_eq!(again, Effect { moves: true, opens: false }, "nothing new");
}

#[test]
fn migrations_are_counted_by_where_threads_ran() {
    let mut host = Host::new("cfs", &[(0, 3)]);
    let thread = host.fork_on(0, 1024);
    // Moved before it ever ran: no migration.
    host.move_to(1, thread);
    assert_eq!(host.sched.start(CoreId(1), thread, 0), (true, None));
    host.advance(MS);
    host.requeue(1);
    assert_eq!(host.sched.start(CoreId(1), thread, MS), (false, None));
    host.block(1);
    // Woken elsewhere: a migration, though it waited in that core's own queue.
    host.wake_on(2, thread);
    assert_eq!(host.sched.start(CoreId(2), thread, MS), (true, Some(CoreId(1))));
    let stats = host.sched.stats(thread);
    assert_eq!((stats.switches, stats.migrations, stats.migrated_at_ns), (2, 1, MS));
}
