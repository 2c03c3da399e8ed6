//! Where a thread goes that wakes up.

use super::*;

impl Rig {
    /// A thread runs on a core.
    fn busy(&mut self, core: usize) -> ThreadId {
        let thread = self.start(0, core);
        assert_eq!(self.choose(core), Some(thread));
        thread
    }

    /// A sleeping thread that ran on a core last.
    fn sleeper(&mut self, core: usize) -> ThreadId {
        let thread = self.add(0, None);
        let entity = self.of(thread);
        entity.queue = core as u32;
        entity.recent_core = core as u16;
        entity.pelt = averages(100, 1);
        thread
    }

    fn woken_from(&mut self, thread: ThreadId, waker: usize) -> usize {
        self.place(thread, EnqueueKind::Wake, waker)
    }
}

#[test]
fn a_thread_goes_back_to_its_idle_core() {
    // `wake_affine_idle`: the waker is busy, the last core is idle.
    let mut rig = Rig::on(V6_18, equal(4));
    rig.busy(0);
    let thread = rig.sleeper(2);
    assert_eq!(rig.woken_from(thread, 0), 2);
}

#[test]
fn a_core_that_was_idle_when_an_interrupt_came_takes_the_thread() {
    // `wake_affine_idle`: the waking core is idle and shares the cache; the last one is busy.
    let mut rig = Rig::on(V6_18, equal(4));
    rig.busy(2);
    let thread = rig.sleeper(2);
    let id = rig.fair.id(thread);
    assert_eq!(rig.fair.affine_core(id, 0, 2), 0);
    // If both are idle it goes where it was.
    assert_eq!(rig.fair.affine_core(id, 0, 3), 3);
}

#[test]
fn with_another_cache_only_the_last_core_counts_as_idle() {
    let topology = machine(&[(2, 1024.0), (2, 1024.0)], Sees::Nothing, LastLevelCache::Cluster);
    let mut rig = Rig::on(V6_18, topology);
    let thread = rig.sleeper(2);
    let id = rig.fair.id(thread);
    assert_eq!(rig.fair.affine_core(id, 0, 2), 2);
}

#[test]
fn of_two_busy_cores_the_less_loaded_one_is_taken() {
    // `wake_affine_weight`: (1024 + 1024) x 100 against (load - 1024) x 108, with 100 + (117 - 100) / 2 = 108. 2048 x
    // 108 = 221184 is more than 204800; 1876 x 108 = 202608 is not.
    for (load, expected) in [(3072, 0), (2900, 1)] {
        let mut rig = Rig::on(V6_18, equal(4));
        for core in [0, 1] {
            rig.busy(core);
        }
        let thread = rig.sleeper(1);
        let id = rig.fair.id(thread);
        rig.set_core(0, 500, 1024);
        rig.set_core(1, 500, load);
        assert_eq!(rig.fair.affine_core(id, 0, 1), expected);
    }
}

#[test]
fn threads_with_many_partners_do_not_share_a_core() {
    // `wake_wide` with 4 cores behind one cache: both at least 4, the greater 4 times the other.
    let mut rig = Rig::on(V6_18, equal(4));
    let waker = rig.busy(0);
    let thread = rig.sleeper(1);
    let id = rig.fair.id(thread);
    for (flips, other, is_wide) in [(4, 16, true), (16, 4, true), (4, 15, false), (3, 100, false)] {
        (rig.of(waker).flips, rig.of(thread).flips) = (flips, other);
        assert_eq!(rig.fair.is_wide(id, 0), is_wide, "{flips} {other}");
    }
}

#[test]
fn partners_are_counted_and_forgotten() {
    // `record_wakee`: another one than the last time counts; halved after a second.
    let mut rig = Rig::on(V6_18, equal(4));
    let waker = rig.busy(0);
    let sleepers = [1, 2].map(|core| rig.sleeper(core));
    for index in [0, 1, 1, 0] {
        rig.woken_from(sleepers[index], 0);
    }
    assert_eq!(rig.of(waker).flips, 3);
    rig.pass(1_000 * MS + 1);
    rig.woken_from(sleepers[0], 0);
    assert_eq!(rig.of(waker).flips, 1);
}

#[test]
fn the_next_idle_core_is_found_from_the_last_one_on() {
    // `select_idle_cpu`: cores 1 and 2 are busy; from core 2 on core 3 comes first.
    let mut rig = Rig::on(V6_18, equal(4));
    for core in [1, 2] {
        rig.busy(core);
    }
    let thread = rig.sleeper(1);
    assert_eq!(rig.woken_from(thread, 1), 3);
}

#[test]
fn the_scan_stops_after_as_many_cores_as_are_worth_it() {
    // SIS_UTIL: nr_idle_scan + 1, counted down before each core is looked at.
    for (scan, expected) in [(4, 3), (2, 3), (1, 1), (0, 1)] {
        let mut rig = Rig::on(V6_18, equal(4));
        for core in [1, 2] {
            rig.busy(core);
        }
        let thread = rig.sleeper(1);
        rig.fair.domains.scan[0] = scan;
        assert_eq!(rig.woken_from(thread, 1), expected, "{scan}");
    }
}

#[test]
fn cores_that_are_not_allowed_do_not_count_for_the_scan() {
    let mut rig = Rig::on(V6_18, equal(4));
    for core in [1, 2] {
        rig.busy(core);
    }
    let thread = rig.add(0, Some(&[1, 3]));
    rig.of(thread).queue = 1;
    rig.of(thread).recent_core = 1;
    rig.fair.domains.scan[0] = 1;
    assert_eq!(rig.woken_from(thread, 1), 3);
}

#[test]
fn the_core_before_the_last_one_is_remembered() {
    // `recent_used_cpu`.
    let mut rig = Rig::on(V6_18, equal(4));
    rig.busy(1);
    let thread = rig.sleeper(1);
    rig.of(thread).recent_core = 0;
    assert_eq!(rig.woken_from(thread, 1), 0);
    assert_eq!(rig.of(thread).recent_core, 1);
}

#[test]
fn a_thread_goes_to_an_idle_core_where_it_fits() {
    // `select_idle_capacity`: 500 does not fit into 512.
    for (util, busy, expected) in [
        (100, &[][..], 0),
        (500, &[], 2),
        (500, &[2], 3),
        // It fits on no idle core: the greatest of them, of equals the first.
        (500, &[2, 3], 0),
        (100, &[0], 1),
    ] {
        let mut rig = Rig::on(V6_18, little_and_big());
        for &core in busy {
            rig.busy(core);
        }
        let thread = rig.sleeper(0);
        rig.set_util(thread, util);
        assert_eq!(rig.woken_from(thread, 0), expected, "{util} {busy:?}");
    }
}

#[test]
fn since_7_2_the_scan_for_capacity_stops_as_well() {
    // `select_idle_capacity` with SIS_UTIL: nr_idle_scan + 1, counted down before each core, the target first; without
    // any the target is taken. Big cores 2 and 3 are busy; 500 fits on no little one: of these the first is taken.
    for (kernel, scan, expected) in
        [(V6_18, 0, 0), (V7_3, 4, 0), (V7_3, 3, 0), (V7_3, 2, 2), (V7_3, 0, 2)]
    {
        let mut rig = Rig::on(kernel, little_and_big());
        for core in [2, 3] {
            rig.busy(core);
        }
        let thread = rig.sleeper(2);
        rig.set_util(thread, 500);
        let cache = rig.fair.domains.cache[2].unwrap();
        rig.fair.domains.scan[cache] = scan;
        assert_eq!(rig.woken_from(thread, 2), expected, "{kernel:?} {scan}");
    }
}

#[test]
fn priorities_of_hybrids_do_not_count_for_wake_ups() {
    // `select_idle_sibling` knows nothing of SD_ASYM_PACKING: the last core is idle, although an E-core.
    let topology = machine(&[(2, 560.0), (2, 1024.0)], Sees::Priorities, LastLevelCache::Machine);
    let mut rig = Rig::on(V6_18, topology);
    let thread = rig.sleeper(0);
    rig.set_util(thread, 900);
    assert_eq!(rig.woken_from(thread, 0), 0);
}

/// Cores 0 and 1 are fast, then come two modules of four. The waker is on a core of the second module; the woken thread
/// ran on a busy core of it, and before on some other one.
fn woken_in_a_module(kernel: Kernel, busy: &[usize], recent: usize) -> usize {
    let mut rig = Rig::on(kernel, hybrid(2));
    for &core in busy {
        rig.busy(core);
    }
    let thread = rig.sleeper(6);
    rig.of(thread).recent_core = recent as u16;
    rig.fair.domains.scan.fill(16);
    let id = rig.fair.id(thread);
    rig.fair.idle_sibling(&rig.sched, id, 6, 6)
}

#[test]
fn an_idle_core_is_sought_in_the_own_cluster_first() {
    // `select_idle_cpu` (since 6.8): the cores of the cluster from the target on, then the others behind the cache.
    assert_eq!(woken_in_a_module(V6_18, &[6, 7, 8], 6), 9);
    assert_eq!(woken_in_a_module(V6_18, &[6, 7, 8, 9], 6), 0);
    assert_eq!(woken_in_a_module(V6_18, &[6, 7, 8, 9, 0, 1], 6), 2);
}

#[test]
fn an_idle_core_of_another_cluster_waits_until_none_is_found() {
    // `recent_used_cpu` and `cpus_share_resources`: 1 is behind the same cache, but in no cluster with 6.
    assert_eq!(woken_in_a_module(V6_6, &[6], 1), 1);
    assert_eq!(woken_in_a_module(V6_18, &[6], 1), 7);
    assert_eq!(woken_in_a_module(V6_18, &[6], 8), 8);
}

#[test]
fn a_core_of_another_cluster_is_better_than_a_busy_one() {
    // The scan looks at too few cores (`nr_idle_scan`), and finds none.
    let mut rig = Rig::on(V6_18, hybrid(2));
    for core in [6, 7, 8, 9] {
        rig.busy(core);
    }
    let thread = rig.sleeper(6);
    rig.of(thread).recent_core = 1;
    rig.fair.domains.scan.fill(2);
    let id = rig.fair.id(thread);
    assert_eq!(rig.fair.idle_sibling(&rig.sched, id, 6, 6), 1);
}

/// 34.11: `sched_idle_cpu`, since 5.4: cores whose threads are all of class idle take others like idle ones.
#[test]
fn h34_11_a_core_with_threads_of_class_idle_counts_as_idle() {
    for kernel in Kernel::ALL {
        let mut rig = Rig::on(kernel, equal(4));
        rig.fair.domains.scan.fill(4);
        let hogs: Vec<ThreadId> = (0..4).map(|core| rig.busy(core)).collect();
        let thread = rig.sleeper(2);
        let set = |rig: &mut Rig, thread, class| {
            rig.sched.set_attrs(thread, ThreadAttrs { class, ..ThreadAttrs::default() });
            rig.fair.changed(&rig.sched, thread, rig.now_ns);
            rig.check();
        };
        set(&mut rig, hogs[3], SchedClass::Idle);
        let sees = kernel.version > 5.0;
        assert_eq!(rig.woken_from(thread, 0) == 3, sees, "{}", kernel.version);
        set(&mut rig, hogs[2], SchedClass::Idle);
        assert_eq!(rig.woken_from(thread, 0), 2, "{}: its last core", kernel.version);
        // Another thread beside the hog: the core is busy.
        rig.start(0, 3);
        set(&mut rig, hogs[2], SchedClass::Fair);
        assert_ne!(rig.woken_from(thread, 0), 3, "{}", kernel.version);
    }
}
