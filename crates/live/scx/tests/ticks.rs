//! Turns that end at ticks do so though the kernel's ticks come a little late.

use ampsched_model::{ClassId, CoreId};
use ampsched_policy::{ClusterInfo, Needs, Topology, build_policy};
use ampsched_scx::layout::{NONE, Set};
use ampsched_scx::{lower, native::Native};

const TICK_NS: u64 = 4_000_000;
const LATE_NS: u64 = 11_000;

#[test]
fn a_turn_is_over_at_the_first_tick_after_its_request() {
    let policy = build_policy("eevdf", &[]).unwrap();
    let topology = Topology::from_clusters(vec![ClusterInfo {
        shares_l2: false,
        class: ClassId(0),
        cores: vec![CoreId(0)],
        freqs_mhz: vec![1000],
        design: None,
        energy_model: Vec::new(),
    }]);
    let rules = policy.rules(&topology);
    assert_eq!(rules.tick_ns, Some(TICK_NS));
    let wire = lower::rules("eevdf", &Needs::default(), &rules, &topology).unwrap();
    let mut c = Native::new(&lower::state(wire, &rules, &topology, 4));
    let [first, second] = [(); 2].map(|()| c.init_thread(1024, &Set::ALL));
    let call = c.call_of(0, TICK_NS);
    c.hand_over(call, first);
    assert_eq!(c.pick_next(call, 0, NONE), first);
    assert!(c.note_arrival(first, 0, TICK_NS));
    // Its request is not used up yet, so it is not interrupted.
    let call = c.call_of(0, TICK_NS + 100_000);
    c.hand_over(call, second);
    assert!(!c.tick_ends_turn(first, TICK_NS + 200_000));
    let tick = |number: u64| number * TICK_NS + LATE_NS;
    assert!((2..10).any(|number| c.tick_ends_turn(first, tick(number))), "it never ends");
}
