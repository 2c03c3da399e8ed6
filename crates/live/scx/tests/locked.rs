//! A core that looks for work takes nobody from a queue that somebody else changes at that moment.

#![allow(unsafe_code)] // It holds a lock of the C code.

use std::sync::atomic::{AtomicU32, Ordering};

use ampsched_model::{ClassId, CoreId};
use ampsched_policy::{ClusterInfo, Needs, Topology, build_policy};
use ampsched_scx::layout::{NONE, Set};
use ampsched_scx::{lower, native::Native};

const IDLE: u32 = 0;
const BUSIEST: u32 = 1;
const BUSY: u32 = 2;
const NOW_NS: u64 = 1_000_000;

/// `struct lock_word` (bpf/lock.h).
#[repr(C, align(64))]
struct LockWord {
    held: AtomicU32,
}

unsafe extern "C" {
    static lock_words: [LockWord; 3];
}

/// Three cores under CFS, with a queue each.
fn cores() -> Native {
    let policy = build_policy("cfs", &[]).unwrap();
    let topology = Topology::from_clusters(vec![ClusterInfo {
        shares_l2: false,
        class: ClassId(0),
        cores: (0..3).map(CoreId).collect(),
        freqs_mhz: vec![1000],
        design: None,
        energy_model: Vec::new(),
    }]);
    let rules = policy.rules(&topology);
    let wire = lower::rules("cfs", &Needs::default(), &rules, &topology).unwrap();
    Native::new(&lower::state(wire, &rules, &topology, 16))
}

/// A thread runs on a core, and so many wait there. Returns these; from now on they may run anywhere.
fn fill(c: &mut Native, core: u32, waiting: usize) -> Vec<u32> {
    let call = c.call_of(core, NOW_NS);
    let mut threads: Vec<u32> = (0..=waiting)
        .map(|_| {
            let thread = c.init_thread(1024, &Set::from_iter([CoreId(core as u16)]));
            c.hand_over(call, thread);
            thread
        })
        .collect();
    let first = c.pick_next(call, core, NONE);
    assert!(c.note_arrival(first, core, NOW_NS));
    for &thread in &threads {
        c.restrict_to(call, thread, &Set::ALL);
    }
    threads.retain(|&thread| thread != first);
    threads
}

/// What the idle core takes while somebody else holds the queue of a core.
fn taken(c: &mut Native, held: u32) -> u32 {
    // SAFETY: C has more of them, one for each queue, and only reads and writes them atomically.
    let lock = unsafe { &lock_words[held as usize].held };
    lock.store(1, Ordering::SeqCst);
    let call = c.call_of(IDLE, 2 * NOW_NS);
    let thread = c.pick_next(call, IDLE, NONE);
    lock.store(0, Ordering::SeqCst);
    thread
}

// One test, as all share one set of locks.
#[test]
fn locked_queues_are_passed_over() {
    let all = [(BUSIEST, 2), (BUSY, 1)];
    let mut c = cores();
    let [_, of_busy] = all.map(|(core, waiting)| fill(&mut c, core, waiting));
    assert!(of_busy.contains(&taken(&mut c, BUSIEST)));

    let mut c = cores();
    let [of_busiest, _] = all.map(|(core, waiting)| fill(&mut c, core, waiting));
    assert!(of_busiest.contains(&taken(&mut c, BUSY)));

    // If there is nobody else, it looks again.
    let mut c = cores();
    let only = fill(&mut c, BUSIEST, 1);
    assert_eq!(taken(&mut c, BUSIEST), NONE);
    assert!(!c.has_no_work(IDLE));
    let call = c.call_of(IDLE, 2 * NOW_NS);
    assert_eq!([c.pick_next(call, IDLE, NONE)], *only);
}
