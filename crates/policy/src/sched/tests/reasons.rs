//! Every decision tells its reason: by which rule, in which words, with which values.

use ampsched_model::{CoreId, ThreadId};

use super::host::{Host, MS, rules};
use crate::{
    Allocator, Balance, Change, DecidedBy, LoadBand, LoadFilter, LoadTracking, Order, Pick, Prefer,
    Reason, ReasonValue, Rules, Slice, Steal, StealFrom, Testimony, WakePreempt,
};

const BIG_2_LITTLE_2: &[(u8, usize)] = &[(1, 2), (0, 2)];

fn with(base: &str, clusters: &[(u8, usize)], change: impl Fn(&mut Rules)) -> Host {
    let mut rules = rules(base, &[], clusters);
    change(&mut rules);
    Host::with(rules, clusters)
}

fn allocating(allocator: Allocator) -> Host {
    with("cfs", BIG_2_LITTLE_2, |rules| rules.allocator = allocator)
}

fn value<'a>(reason: &'a Reason, name: &str) -> &'a ReasonValue {
    let found = reason.values.iter().find(|(known, _)| *known == name);
    &found.unwrap_or_else(|| panic!("{reason:?} does not state {name}")).1
}

fn loads(host: &[(u16, u64)]) -> ReasonValue {
    ReasonValue::Loads(host.iter().map(|&(core, load)| (CoreId(core), load)).collect())
}

/// A thread that blocked on that core.
fn sleeper_of(host: &mut Host, core: usize) -> ThreadId {
    let thread = host.fork_on(core, 1024);
    host.start(core, thread);
    host.block(core)
}

fn occupy(host: &mut Host, core: usize) -> ThreadId {
    let thread = host.fork_on(core, 1024);
    host.start(core, thread);
    thread
}

#[test]
fn wake_affine_tells_which_idle_core_or_which_load() {
    let mut host = allocating(Allocator::WakeAffine);
    let new = host.add(1024, None);
    let (core, why) = host.why_placed(new, None);
    assert_eq!((core, why.by), (CoreId(0), DecidedBy::Allocator));
    assert_eq!(why.because, "the least loaded core for a new thread");
    assert_eq!(*value(&why, "loads"), loads(&[(0, 0), (1, 0), (2, 0), (3, 0)]));

    let sleeper = sleeper_of(&mut host, 3);
    let mut expected = vec![
        (3, "its previous core, which is idle"),
        (2, "an idle core that shares a cluster with its previous one"),
        (0, "the waker's core, which is idle"),
        (1, "an idle core that shares a cluster with the waker's"),
        (3, "no core near is idle: the less loaded of its previous core and the waker's"),
    ];
    for (core, because) in expected.drain(..) {
        let (placed, why) = host.why_placed(sleeper, Some(0));
        assert_eq!((placed.index(), why.because), (core, because));
        assert_eq!(*value(&why, "previous_core"), ReasonValue::Core(CoreId(3)));
        assert_eq!(*value(&why, "waker_core"), ReasonValue::Core(CoreId(0)));
        occupy_if_idle(&mut host, core);
        if core == 1 {
            host.fork_on(0, 1024);
        }
    }
    host.sched.apply(sleeper, &Change::Affinity([CoreId(1)].into_iter().collect()));
    let (placed, why) = host.why_placed(sleeper, None);
    assert_eq!(placed, CoreId(1));
    assert!(why.because.starts_with("it may use neither"), "{}", why.because);
}

fn occupy_if_idle(host: &mut Host, core: usize) {
    if host.running(core).is_none() {
        occupy(host, core);
    }
}

#[test]
fn allocators_by_kind_tell_the_preference() {
    for (allocator, words) in [
        (Allocator::RoundRobinInClass, "the next core in turn of the kind that it prefers"),
        (
            Allocator::LeastLoadedInClass,
            "the least loaded core of the kind that it prefers; of equal ones its previous one",
        ),
    ] {
        let mut host = allocating(allocator);
        let thread = host.add(1024, None);
        host.sched.apply(thread, &Change::Prefer(Prefer::Little));
        let (core, why) = host.why_placed(thread, None);
        assert_eq!((core, why.because), (CoreId(2), words));
        assert_eq!(*value(&why, "prefer"), ReasonValue::Word("little".to_owned()));
        host.sched.apply(thread, &Change::Affinity([CoreId(1)].into_iter().collect()));
        let (core, why) = host.why_placed(thread, None);
        assert_eq!(core, CoreId(1));
        assert!(why.because.starts_with("it may not use the kind"), "{}", why.because);
    }
}

#[test]
fn the_least_loaded_with_the_thread_tells_what_it_would_be() {
    let mut host = allocating(Allocator::LeastLoadedWith);
    occupy(&mut host, 0);
    let thread = host.add(2048, None);
    let (core, why) = host.why_placed(thread, None);
    assert_eq!(core, CoreId(1));
    let expected = loads(&[(0, 3072), (1, 2048), (2, 2048), (3, 2048)]);
    assert_eq!(*value(&why, "loads_with_it"), expected);
}

const BAND: LoadBand = LoadBand { up: 512, down: 256, min_resident_ns: 0, min_weight: 1024 };

#[test]
fn placement_by_load_tells_the_load_and_its_limits() {
    let mut host = allocating(Allocator::ByLoad { band: BAND });
    host.sched.track_load(LoadTracking::ByTime);
    let new = host.add(1024, None);
    let (core, why) = host.why_placed(new, None);
    assert_eq!((core, value(&why, "kind")), (CoreId(0), &ReasonValue::Word("big".to_owned())));
    // A new thread counts as one that has always run.
    let up = sleeper_of(&mut host, 2);
    let (core, why) = host.why_placed(up, None);
    assert_eq!((core, why.because), (CoreId(0), "it has become heavy: an idle big core"));
    assert_eq!(*value(&why, "up"), ReasonValue::Count(512));
    let ReasonValue::Count(load) = value(&why, "load") else { panic!("{why:?}") };
    assert!(*load >= 512);
    let down = sleeper_of(&mut host, 1);
    let (core, why) = host.why_placed(down, None);
    assert_eq!((core, why.because), (CoreId(1), "its previous core, which is idle"));
    host.advance(200 * MS);
    let (core, why) = host.why_placed(down, None);
    let because = "it has become light: the least loaded little core";
    assert_eq!((core, why.because), (CoreId(2), because));
}

/// Two threads wait on core 0; the order takes `first`.
fn two_waiting(order: Order) -> (Host, ThreadId, ThreadId) {
    let mut host = with("cfs", &[(0, 1)], |rules| {
        rules.order = order;
        rules.fork_debit = false;
        if order == Order::Deadline {
            rules.slice = Slice::Request { base_ns: 3 * MS };
        }
    });
    let (a, b) = (host.fork_on(0, 1024), host.fork_on(0, 1024));
    host.start(0, a);
    host.advance(2 * MS);
    host.requeue(0);
    (host, b, a)
}

#[test]
fn picks_tell_the_keys_of_their_order() {
    let rounds = Order::Rounds { length_ns: 30 * MS };
    let rank = Order::HighestRank { fair_window_ns: 5 * MS };
    for (order, because, keys) in [
        (Order::Fifo, "it comes first in the queue", &["waited_ns"][..]),
        (Order::Vruntime, "it comes first in the queue", &["vruntime_ns"]),
        (
            Order::Deadline,
            "the earliest virtual deadline among the eligible",
            &["vruntime_ns", "deadline_ns"],
        ),
        (
            rank,
            "the highest rank within the fair window",
            &["rank", "vruntime_ns", "fair_window_ns"],
        ),
        (rounds, "it comes first in the queue", &["round", "vruntime_ns"]),
    ] {
        let (mut host, first, second) = two_waiting(order);
        host.sched.apply(first, &Change::Rank(7));
        assert_eq!(host.pick(0), Pick::Run(first), "{order:?}");
        let why = host.why_picked(0);
        assert_eq!((why.by, why.because), (DecidedBy::Order, because));
        assert_eq!(*value(&why, "waiting"), ReasonValue::Count(2));
        assert_eq!(*value(&why, "waited_ns"), ReasonValue::Ns(2_000_000));
        let passed = host.why_passed(0, second);
        assert_eq!(passed.because, "another thread comes before it");
        assert_eq!(*value(&passed, "first"), ReasonValue::Thread(first));
        for key in keys {
            value(&why, key);
            value(&passed, key);
        }
    }
}

#[test]
fn beyond_the_window_or_alone_the_reason_says_so() {
    let (mut host, first, _) = two_waiting(Order::Vruntime);
    host.sched.apply(first, &Change::Affinity([CoreId(0)].into_iter().collect()));
    host.start(0, first);
    assert_eq!(host.why_picked(0).because, "the only one that waits here");
}

fn stealing(from: StealFrom, step: impl Fn(&mut Steal)) -> Host {
    with("cfs", BIG_2_LITTLE_2, |rules| {
        let mut only = Steal::any(from);
        step(&mut only);
        rules.steal = vec![Steal::any(StealFrom::OwnCluster), only];
    })
}

#[test]
fn stealing_tells_the_step_the_queue_and_its_load() {
    let mut host = stealing(StealFrom::OtherClusters, |_| {});
    occupy(&mut host, 2);
    let waiting = host.fork_on(2, 1024);
    assert_eq!(host.pick(0), Pick::Run(waiting));
    let why = host.why_picked(0);
    assert_eq!(why.by, DecidedBy::Steal(1));
    assert_eq!(*value(&why, "from"), ReasonValue::Core(CoreId(2)));
    assert_eq!(*value(&why, "load"), ReasonValue::Count(2048));
    let near = host.fork_on(1, 1024);
    occupy(&mut host, 1);
    assert_eq!(host.pick(0), Pick::Run(near));
    assert_eq!(host.why_picked(0).by, DecidedBy::Steal(0), "the step that takes, by its number");
}

/// A change of the step, and why it does not take the thread then.
type Refusal = (fn(&mut Steal), &'static str);

#[test]
fn a_thread_that_is_not_stolen_hears_why() {
    let refusals: [Refusal; 3] = [
        (
            |step| step.except = Some(Prefer::Little),
            "the step leaves threads of its preference where they are",
        ),
        (|step| step.min_idle_ns = MS, "the core has not been idle for long enough"),
        (|_| {}, "it may not use the core"),
    ];
    for (step, because) in refusals {
        let mut host = stealing(StealFrom::OtherClusters, step);
        occupy(&mut host, 2);
        let waiting = host.fork_on(2, 1024);
        host.sched.apply(waiting, &Change::Prefer(Prefer::Little));
        if because == "it may not use the core" {
            host.sched.apply(waiting, &Change::Affinity([CoreId(2)].into_iter().collect()));
        }
        let passed = host.why_passed(0, waiting);
        assert_eq!((passed.by, passed.because), (DecidedBy::Steal(1), because));
    }
    let mut host = stealing(StealFrom::OwnCluster, |_| {});
    let only = host.fork_on(1, 1024);
    let passed = host.why_passed(0, only);
    assert_eq!(passed.because, "it is the only thread of a core that is about to run it");
}

#[test]
fn pulling_tells_the_gain_and_how_long_the_thread_has_been_there() {
    let mut host = stealing(StealFrom::RunningOnSlower, |step| {
        (step.min_gain, step.min_resident_ns) = (1536, 10 * MS);
    });
    let slow = occupy(&mut host, 2);
    let passed = host.why_passed(0, slow);
    assert_eq!(passed.because, "it gains too little by the faster core");
    assert_eq!(*value(&passed, "gain"), ReasonValue::Real(1.0));
    assert_eq!(*value(&passed, "min_gain"), ReasonValue::Real(1.5));
    let mut speeds = [1.0; ampsched_model::MAX_CLASSES];
    speeds[1] = 2.0;
    host.sched.apply(slow, &Change::Speed(speeds));
    assert_eq!(host.pick(0), Pick::Pull(slow));
    let why = host.why_picked(0);
    assert_eq!(why.by, DecidedBy::Steal(1));
    assert_eq!(*value(&why, "gain"), ReasonValue::Real(2.0));
    assert_eq!(*value(&why, "from"), ReasonValue::Core(CoreId(2)));
    // It goes to the other little core: its stay there has just begun.
    host.advance(MS);
    host.requeue(2);
    host.start(3, slow);
    host.advance(4 * MS);
    let passed = host.why_passed(0, slow);
    assert_eq!(passed.because, "its last migration is too short ago");
    assert_eq!(*value(&passed, "resident_ns"), ReasonValue::Ns(4_000_000));
}

#[test]
fn stealing_by_load_tells_the_load() {
    let host_with = |band| {
        let mut host =
            stealing(StealFrom::RunningOnSlower, |step| step.load = LoadFilter::Heavy { band });
        host.sched.track_load(LoadTracking::ByTime);
        let slow = occupy(&mut host, 2);
        (host, slow)
    };
    let (host, slow) = host_with(LoadBand { up: 2000, ..BAND });
    let passed = host.why_passed(0, slow);
    assert_eq!(passed.because, "its load does not let the step take it");
    assert_eq!(*value(&passed, "up"), ReasonValue::Count(2000));
    let (host, slow) = host_with(BAND);
    assert_eq!(host.pick(0), Pick::Pull(slow));
    let why = host.why_picked(0);
    assert_eq!(why.because, "the heaviest thread that may go up");
    value(&why, "load");
}

#[test]
fn a_core_in_a_later_round_tells_instead_of_whom() {
    let mut host = with("a-dwrr", &[(0, 2)], |_| {});
    let Order::Rounds { length_ns } = host.sched.rules().order else { panic!("a-dwrr has rounds") };
    let own = occupy(&mut host, 0);
    occupy(&mut host, 1);
    let behind = host.fork_on(1, 1024);
    host.advance(length_ns);
    host.requeue(0);
    assert_eq!(host.pick(0), Pick::Run(behind));
    let why = host.why_picked(0);
    assert!(matches!(why.by, DecidedBy::Steal(_)), "{why:?}");
    assert_eq!(*value(&why, "instead_of"), ReasonValue::Thread(own));
    assert_eq!(
        (value(&why, "round"), value(&why, "round_of_that")),
        (&ReasonValue::Count(0), &ReasonValue::Count(1))
    );
}

fn why_preempts(host: &Host, woken: ThreadId, running: ThreadId) -> (bool, Reason) {
    let told = Testimony::default();
    let preempts = host.sched.preempts_watched(woken, running, CoreId(0), &told);
    assert_eq!(preempts, host.sched.preempts_by_rules(woken, running, CoreId(0)));
    (preempts, told.why().expect("both answers have a reason"))
}

/// A thread wakes on core 0 after another one has run there for some time.
fn woken_after(host: &mut Host, ran_ns: u64) -> (ThreadId, ThreadId) {
    let sleeper = sleeper_of(host, 0);
    let running = occupy(host, 0);
    host.advance(ran_ns);
    host.wake_on(0, sleeper);
    (sleeper, running)
}

#[test]
fn preemption_tells_the_gap_or_the_deadlines() {
    let mut host = with("cfs", &[(0, 1)], |rules| rules.preempt = WakePreempt::Never);
    let (woken, running) = woken_after(&mut host, 50 * MS);
    assert_eq!(why_preempts(&host, woken, running).1.because, "a woken thread never interrupts");
    for (ran_ns, expected) in [(50 * MS, true), (MS / 10, false)] {
        let mut host = with("cfs", &[(0, 1)], |rules| {
            rules.fork_debit = false;
            rules.preempt = WakePreempt::VruntimeGap { granularity_ns: MS };
        });
        let (woken, running) = woken_after(&mut host, ran_ns);
        let (preempts, why) = why_preempts(&host, woken, running);
        assert_eq!((preempts, why.by), (expected, DecidedBy::Preempt));
        let ReasonValue::Ns(gap) = *value(&why, "gap_ns") else { panic!("{why:?}") };
        assert_eq!(gap > MS as i64, expected);
        assert_eq!(*value(&why, "granularity_ns"), ReasonValue::Ns(MS as i64));
    }
    let mut host = Host::new("eevdf", &[(0, 1)]);
    let (woken, running) = woken_after(&mut host, 50 * MS);
    let (preempts, why) = why_preempts(&host, woken, running);
    assert!(preempts);
    assert_eq!(why.because, "the running thread's request is used up");
    value(&why, "deadline_of_running_ns");
}

fn why_ends(host: &Host, core: usize) -> Reason {
    let told = Testimony::default();
    let watched = host.sched.expiry_watched(core.into(), None, host.now_ns, &told);
    assert_eq!(watched, host.sched.expiry_ns(core.into(), None, host.now_ns));
    told.why().expect("a turn that ends has a reason")
}

#[test]
fn the_end_of_a_turn_tells_what_is_used_up() {
    for (policy, because) in [
        ("rr", "its slice is over"),
        ("cfs", "its slice is over"),
        ("eevdf", "its request is used up"),
        ("a-dwrr", "its slice is over"),
    ] {
        let mut host = with(policy, &[(0, 1)], |rules| rules.fork_debit = false);
        let running = occupy(&mut host, 0);
        host.fork_on(0, 1024);
        let why = why_ends(&host, 0);
        assert_eq!((why.by, why.because), (DecidedBy::Slice, because), "{policy}");
        host.sched.apply(running, &Change::Slice(MS));
        if policy != "eevdf" {
            let why = why_ends(&host, 0);
            assert_eq!(
                (why.by, value(&why, "slice_ns")),
                (DecidedBy::Plan, &ReasonValue::Ns(1_000_000))
            );
        }
    }
    // It starts a slice ahead of those that are there.
    let mut host = Host::new("cfs", &[(0, 1)]);
    occupy(&mut host, 0);
    host.fork_on(0, 1024);
    assert_eq!(why_ends(&host, 0).because, "it is a slice ahead of the first thread that waits");
    let mut host = Host::new("a-dwrr", &[(0, 1)]);
    let Order::Rounds { length_ns } = host.sched.rules().order else { panic!("a-dwrr has rounds") };
    let running = occupy(&mut host, 0);
    host.advance(length_ns / 2);
    host.requeue(0);
    host.start(0, running);
    assert_eq!(why_ends(&host, 0).because, "its round ends");
}

#[test]
fn balancing_tells_both_loads() {
    let balance = Balance {
        period_ns: 4 * MS,
        rotate_period_ns: 64 * MS,
        tolerance_percent: 25,
        within_kind: false,
        min_resident_ns: 0,
        by_preference: false,
    };
    let mut host = with("cfs", &[(0, 2)], |rules| rules.balance = Some(balance));
    let threads = [0; 4].map(|core| host.fork_on(core, 1024));
    let told = Testimony::default();
    let receivers = host.sched.balance_watched(balance, 4 * MS, &told);
    let moved = told.moved();
    assert_eq!(moved.len(), receivers.len());
    assert_eq!(moved.iter().map(|moved| moved.to).collect::<Vec<_>>(), receivers);
    let first = &moved[0];
    assert_eq!((first.thread, first.from, first.to), (threads[0], CoreId(0), CoreId(1)));
    assert_eq!(first.why.because, "it evens out the loads of the two queues");
    assert_eq!(*value(&first.why, "load_from"), ReasonValue::Count(4096));
    assert_eq!(*value(&first.why, "load_to"), ReasonValue::Count(0));
}

#[test]
fn reasons_speak_the_words_of_the_rules() {
    let rules = rules("cfs", &[], BIG_2_LITTLE_2);
    assert_eq!(DecidedBy::Order.words(Some(&rules)), "order: vruntime");
    assert_eq!(DecidedBy::Order.words(None), "order");
    let step = DecidedBy::Steal(0).words(Some(&rules));
    assert_eq!(step, "steal step 1: own_cluster");
    let slice = DecidedBy::Slice
        .words(Some(&Rules { slice: Slice::Fixed { slice_ns: MS }, ..rules.clone() }));
    assert_eq!(slice, "slice: fixed { slice_ns: 1000000 }");
    assert_eq!(DecidedBy::Plan.words(Some(&rules)), "plan");
}
