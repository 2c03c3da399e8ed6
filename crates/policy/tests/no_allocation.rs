//! The decisions of the fast plane allocate nothing once the queues have their size.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use ampsched_model::{AppId, ClassId, CoreId, Ns, ThreadId};
use ampsched_policy::{
    ClusterInfo, EnqueueKind, Pick, REGISTRY, RunState, Sched, Topology, build_policy,
};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: all requests go to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn topology() -> Topology {
    let cluster = |class, cores: std::ops::Range<usize>| ClusterInfo {
        shares_l2: false,
        class: ClassId(class),
        cores: cores.map(CoreId::from).collect(),
        freqs_mhz: vec![1000],
        design: None,
        energy_model: Vec::new(),
    };
    Topology::from_clusters(vec![cluster(1, 0..2), cluster(0, 2..4)])
}

/// Every core runs a slice; every third thread blocks and wakes again.
fn turn(sched: &mut Sched, now_ns: &mut Ns, turn: usize) {
    const STEP_NS: Ns = 700_000;
    *now_ns += STEP_NS;
    for core in (0..4usize).map(CoreId::from) {
        if let Some(thread) = sched.core(core).running {
            sched.charge(core, STEP_NS, STEP_NS);
            std::hint::black_box(sched.expiry_ns(core, None, *now_ns));
            if (turn + core.index()) % 3 == 0 {
                sched.stop(core, RunState::Blocked, *now_ns);
                let target = sched.place_by_rules_near(thread, Some(core), *now_ns);
                sched.enqueue(thread, target, EnqueueKind::Wake, *now_ns);
                if let Some(running) = sched.core(target).running {
                    std::hint::black_box(sched.preempts_by_rules(thread, running, target));
                }
            } else {
                sched.stop(core, RunState::Ready, *now_ns);
                sched.enqueue(thread, core, EnqueueKind::Requeue, *now_ns);
            }
        }
        match sched.pick_by_rules(core, *now_ns) {
            Pick::Run(thread) => drop(sched.start(core, thread, *now_ns)),
            Pick::Pull(thread) => {
                let from = sched.thread(thread).core;
                sched.stop(from, RunState::Ready, *now_ns);
                sched.enqueue(thread, from, EnqueueKind::Requeue, *now_ns);
                sched.start(core, thread, *now_ns);
            }
            Pick::Idle { .. } => {}
        }
    }
}

#[test]
fn turns_do_not_allocate() {
    for info in REGISTRY {
        let topology = topology();
        let policy = build_policy(info.name, &[]).unwrap();
        if policy.needs().hooks.fair {
            continue; // Nothing is decided by its rules.
        }
        let rules = policy.rules(&topology);
        let mut sched = Sched::new(topology, rules);
        // Each queue has once held all threads, then they spread.
        let threads: Vec<ThreadId> = (0..12).map(|_| sched.add(AppId(0), 1024, None)).collect();
        for &thread in &threads {
            sched.enqueue(thread, CoreId(0), EnqueueKind::Fork, 0);
        }
        for core in (1..4usize).chain([0]).map(CoreId::from) {
            for &thread in &threads {
                sched.dequeue(thread);
                sched.enqueue(thread, core, EnqueueKind::Requeue, 0);
            }
        }
        let mut now_ns = 0;
        let before = ALLOCATIONS.with(Cell::get);
        for number in 0..2_000 {
            turn(&mut sched, &mut now_ns, number);
        }
        let after = ALLOCATIONS.with(Cell::get);
        assert_eq!(after - before, 0, "{} allocates", info.name);
        let run_ns: Ns = threads.iter().map(|&thread| sched.stats(thread).run_ns_total()).sum();
        assert!(run_ns > 4 * 1_000 * 700_000, "{}: cores were busy", info.name);
    }
}
