//! Cores that are occupied by threads of classes above the policy's.

use ampsched_model::{AppId, CoreId};

use crate::testing::{build, topology};
use crate::{EnqueueKind, Pick, RunState, Sched, View};

const CORE: [CoreId; 2] = [CoreId(0), CoreId(1)];

/// A system of two equal cores under a policy.
fn sched(policy: &str) -> Sched {
    let topology = topology(&[(0, 2)]);
    let rules = build(policy, &[]).rules(&topology);
    Sched::new(topology, rules)
}

#[test]
fn an_occupied_core_is_not_idle_and_spares_what_waits_there() {
    for policy in ["cfs", "eevdf"] {
        let mut sched = sched(policy);
        let above = sched.add(AppId(0), 1024, None);
        sched.raise(above);
        sched.wait_above(above, CORE[0], 0);
        let turn = sched.occupy(CORE[0], above, 0);
        assert!(turn.switched && turn.migrated_from.is_none(), "{policy}");
        assert_eq!((sched.current(CORE[0]), sched.core(CORE[0]).running), (Some(above), None));
        assert_eq!((sched.idle_cores(), sched.is_idle(CORE[0])), (1, false), "{policy}");
        let fair = sched.add(AppId(0), 1024, None);
        assert_eq!(sched.place_by_rules(fair, 0), CORE[1], "{policy}");
        sched.enqueue(fair, CORE[0], EnqueueKind::Wake, 0);
        assert_eq!(sched.pick_by_rules(CORE[1], 0), Pick::Run(fair), "{policy}");
        sched.charge_above(CORE[0], 700, 70);
        sched.vacate(CORE[0], RunState::Blocked, 700);
        assert_eq!((sched.idle_cores(), sched.core(CORE[0]).busy_ns), (2, 700));
        assert_eq!(sched.stats(above).run_ns_total(), 700);
    }
}

#[test]
fn the_policy_sees_no_thread_of_a_class_above() {
    let mut sched = sched("cfs");
    let (above, fair) = (sched.add(AppId(0), 1024, None), sched.add(AppId(0), 1024, None));
    sched.raise(above);
    sched.wait_above(above, CORE[0], 0);
    sched.enqueue(fair, CORE[0], EnqueueKind::Fork, 0);
    let seen = |sched: &Sched| {
        let view = View::new(sched, &[], 0);
        (view.threads().collect::<Vec<_>>(), view.live_count(), view.live_in(AppId(0)))
    };
    assert_eq!(seen(&sched), (vec![fair], 1, 1));
    assert_eq!(sched.live_threads().count(), 2);
    // It becomes a fair thread, and the other one leaves.
    sched.lower(above);
    sched.enqueue(above, CORE[0], EnqueueKind::Wake, 10);
    assert_eq!(sched.stats(above).ready_ns, 10);
    assert_eq!(seen(&sched), (vec![above, fair], 2, 2));
    sched.dequeue(fair);
    sched.raise(fair);
    assert_eq!(seen(&sched), (vec![above], 1, 1));
    sched.retire_above(fair, 20);
    assert_eq!(seen(&sched), (vec![above], 1, 1));
    assert_eq!(sched.live_threads().count(), 1);
}
