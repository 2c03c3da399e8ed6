//! Where a thread goes that starts (`sched_balance_find_dst_cpu`).

use super::*;

impl Rig {
    /// Where a new thread of nice 0 goes that core 0 creates.
    fn started_from(&mut self, waker: Option<usize>) -> usize {
        let thread = self.add(0, None);
        let waker = waker.map(CoreId::from);
        self.fair.place(&self.sched, thread, EnqueueKind::Fork, waker, self.now_ns).index()
    }

    /// Each core runs a thread, and has that load.
    fn load(&mut self, loads: &[u64]) {
        for (core, &load) in loads.iter().enumerate() {
            self.start(0, core);
            self.choose(core);
            self.set_core(core, 1024, load);
        }
    }
}

fn two_caches() -> Topology {
    machine(&[(2, 1024.0), (2, 1024.0)], Sees::Nothing, LastLevelCache::Cluster)
}

#[test]
fn of_idle_cores_the_least_used_one_is_taken_of_equals_the_first() {
    // `update_pick_idlest`: idle CPUs, then utilisation.
    let mut rig = Rig::on(V6_18, equal(4));
    rig.start(0, 0);
    rig.choose(0);
    assert_eq!(rig.started_from(Some(0)), 1);
    rig.set_core(1, 100, 0);
    assert_eq!(rig.started_from(Some(0)), 2);
    rig.set_core(2, 99, 0);
    rig.set_core(3, 98, 0);
    assert_eq!(rig.started_from(Some(0)), 3);
}

#[test]
fn the_creating_core_keeps_the_thread_if_it_is_idle() {
    // `sched_balance_find_dst_group`: local.idle_cpus >= idlest.idle_cpus.
    assert_eq!(Rig::on(V6_18, equal(4)).started_from(Some(2)), 2);
}

#[test]
fn somebody_on_the_first_core_starts_a_program() {
    // The host does not say who: it counts as running there.
    assert_eq!(Rig::on(V6_18, equal(4)).started_from(None), 1);
}

#[test]
fn the_cache_with_most_idle_cores_comes_first_then_the_core_that_fell_idle_last() {
    // `sched_balance_find_dst_group_cpu`: latest_idle_timestamp.
    let mut rig = Rig::on(V6_18, two_caches());
    rig.start(0, 0);
    rig.choose(0);
    for (core, since_ns) in [(2, 5), (3, 9)] {
        rig.fair.cores[core].idle_since_ns = Some(since_ns);
    }
    assert_eq!(rig.started_from(Some(0)), 3);
    rig.fair.cores[2].idle_since_ns = Some(10);
    assert_eq!(rig.started_from(Some(0)), 2);
}

#[test]
fn of_busy_cores_the_least_loaded_one_is_taken_if_it_is_worth_it() {
    // `sched_balance_find_dst_group`: stays up to 1024 x 17 / 100 = 174 more, or 17 %: 100 x 1100 <= 117 x 1024.
    for (local, expected) in [(2048, 1), (1190, 0), (1199, 1)] {
        let mut rig = Rig::on(V6_18, equal(2));
        rig.load(&[local, 1024]);
        assert_eq!(rig.started_from(Some(0)), expected, "{local}");
    }
}

#[test]
fn a_group_of_a_better_type_is_taken() {
    // Fully busy here, capacity to spare there.
    let mut rig = Rig::on(V6_18, equal(2));
    rig.load(&[1024, 4096]);
    rig.set_core(1, 500, 4096);
    assert_eq!(rig.started_from(Some(0)), 1);
}

#[test]
fn what_may_use_few_cores_goes_to_one_of_them() {
    let mut rig = Rig::on(V6_18, two_caches());
    let thread = rig.add(0, Some(&[1]));
    assert_eq!(rig.place(thread, EnqueueKind::Fork, 2), 1);
}
