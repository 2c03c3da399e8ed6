//! A turn in one step is the same as its parts.

use ampsched_model::{AppId, CoreId, CoreSet, Ns, ThreadId};
use proptest::prelude::*;

use super::host::{Host, rules};
use crate::{EnqueueKind, Order, Pick, QueueScope, Rules, Sched, Turn};

/// A turn by the three steps of which [`Sched::next_turn`] consists.
fn by_steps(sched: &mut Sched, core: CoreId, now_ns: Ns) -> Option<Turn> {
    sched.requeue(core, now_ns);
    let Pick::Run(thread) = sched.pick_by_rules(core, now_ns) else { return None };
    let (switched, migrated_from) = sched.start(core, thread, now_ns);
    Some(Turn { thread, switched, migrated_from })
}

proptest! {
    #[test]
    fn a_turn_is_the_same_in_one_step(
        fifo in any::<bool>(),
        global in any::<bool>(),
        threads in prop::collection::vec((15..90_000u32, any::<bool>()), 2..12),
        turns in prop::collection::vec((0..2u16, 1..5_000_000u64), 1..60),
    ) {
        let order = if fifo { Order::Fifo } else { Order::Vruntime };
        let queues = if global { QueueScope::Global } else { QueueScope::PerCore };
        let clusters = &[(0, 2)];
        let mut one = Host::with(Rules { order, queues, ..rules("cfs", &[], clusters) }, clusters).sched;
        for (number, &(weight, is_bound)) in threads.iter().enumerate() {
            let core = CoreId::from(number % 2);
            let cores: Option<CoreSet> = is_bound.then(|| [core].into_iter().collect());
            let thread = one.add(AppId(0), weight, cores.as_ref());
            one.enqueue(thread, core, EnqueueKind::Fork, 0);
        }
        for core in [CoreId(0), CoreId(1)] {
            if let Pick::Run(thread) = one.pick_by_rules(core, 0) {
                one.start(core, thread, 0);
            }
        }
        let mut parts = one.clone();
        let mut now_ns = 0;
        for (core, ran_ns) in turns {
            let core = CoreId(core);
            now_ns += ran_ns;
            for sched in [&mut one, &mut parts] {
                for core in [CoreId(0), CoreId(1)] {
                    if sched.core(core).running.is_some() {
                        sched.charge(core, ran_ns, ran_ns);
                    }
                }
            }
            if one.core(core).running.is_none() {
                continue;
            }
            let before = format!("{one:?}");
            match one.next_turn(core, now_ns) {
                Some(turn) => prop_assert_eq!(Some(turn), by_steps(&mut parts, core, now_ns)),
                None => {
                    prop_assert_eq!(before, format!("{:?}", one), "nothing has happened");
                    by_steps(&mut one, core, now_ns);
                    by_steps(&mut parts, core, now_ns);
                }
            }
            for thread in (0..threads.len()).map(ThreadId::from) {
                let state = |sched: &Sched| format!("{:?} {:?}", sched.thread(thread), sched.stats(thread));
                prop_assert_eq!(state(&one), state(&parts));
            }
            for core in [CoreId(0), CoreId(1)] {
                let state = |sched: &Sched| {
                    let mut queued = sched.queued(core);
                    queued.sort_unstable();
                    format!("{:?} {queued:?} {:?}", sched.core(core), sched.queue(core).least())
                };
                prop_assert!(fifo || state(&one) == state(&parts));
                prop_assert_eq!(one.queue_len(core), parts.queue_len(core));
            }
            prop_assert_eq!(one.idle_cores(), parts.idle_cores());
        }
    }
    #[test]
    fn a_turn_that_the_host_chooses_is_the_same_in_one_step(
        threads in 1..9usize,
        turns in prop::collection::vec((any::<prop::sample::Index>(), 1..5_000_000u64), 1..60),
    ) {
        let clusters = &[(0, 1)];
        let mut one = Host::with(rules("rr", &[], clusters), clusters).sched;
        let core = CoreId(0);
        for _ in 0..threads {
            let thread = one.add(AppId(0), 1024, None);
            one.enqueue(thread, core, EnqueueKind::Fork, 0);
        }
        one.start(core, ThreadId(0), 0);
        let mut parts = one.clone();
        let mut now_ns = 0;
        for (next, ran_ns) in turns {
            now_ns += ran_ns;
            let next = ThreadId::from(next.index(threads));
            one.charge(core, ran_ns, ran_ns);
            parts.charge(core, ran_ns, ran_ns);
            let turn = one.hand_over(core, next, now_ns);
            parts.requeue(core, now_ns);
            let (switched, migrated_from) = parts.start(core, next, now_ns);
            prop_assert_eq!(turn, Turn { thread: next, switched, migrated_from });
            let state = |sched: &Sched| {
                let of = |thread| format!("{:?} {:?}", sched.thread(thread), sched.stats(thread));
                let all: Vec<String> = (0..threads).map(ThreadId::from).map(of).collect();
                (all, format!("{:?}", sched.core(core)), sched.queued(core), sched.waiting_count())
            };
            prop_assert_eq!(state(&one), state(&parts));
            prop_assert_eq!(one.idle_cores(), parts.idle_cores());
        }
    }
}
