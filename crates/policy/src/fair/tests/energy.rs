//! Placing by energy: the worked example of `eas`.

use super::*;
use crate::sched::by_energy::tests::clusters;

/// Cores with their energy models: (170, 50) (341, 150) (512, 300) and (341, 400) (768, 1000) (1024, 1700).
pub(super) fn board() -> Topology {
    let view = KernelView { sees: Sees::Capacities, last_level_cache: LastLevelCache::Machine };
    Topology::from_clusters(clusters().to_vec()).seen_as(view)
}

/// Utilisations of 400, 100, 600 and 500, and a sleeping thread that ran on some core, whose it is a part of.
fn example(kernel: Kernel, util: u64, last: usize) -> (Rig, ThreadId) {
    let mut rig = Rig::on(kernel, board());
    for (core, others) in [400, 100, 600, 500].into_iter().enumerate() {
        rig.set_core(core, others + if core == last { util } else { 0 }, 0);
    }
    let thread = rig.add(0, None);
    rig.set_util(thread, util);
    rig.of(thread).queue = last as u32;
    rig.of(thread).is_attached = true;
    (rig, thread)
}

/// In mW.
fn hundredths(energy: u64) -> f64 {
    (energy as f64 / f64::from(1 << 20) * 100.0).round() / 100.0
}

#[test]
fn energies_are_those_of_the_worked_example() {
    // `compute_energy`: at 1.25 x 400 the third point of the little cores, 500 x 300 / 512; at 1.25 x 600 the second
    // of the big ones, 1100 x 1000 / 768; with the thread 700 x 300 / 512 and, at 1.25 x 700, 1300 x 1700 / 1024.
    let (rig, thread) = example(V6_18, 200, 3);
    let id = rig.fair.id(thread);
    let energy = |domain, on| hundredths(rig.fair.energy_with(domain, id, on));
    assert_eq!([energy(0, None), energy(1, None)], [292.97, 1432.29]);
    assert_eq!([energy(0, Some(1)), energy(1, Some(3))], [410.16, 2158.20]);
}

#[test]
fn waiting_counts_for_the_clock_and_what_a_thread_adds_is_the_same_everywhere() {
    // `cpu_util` with `boost`: threads waited there 300 of 1024, with the thread 350; 1.25 x 350 = 437 takes the third
    // point, (100 + 50) x 300 / 512. Without, 1.25 x 300 = 375, so 100 x 300 / 512; but 1.25 x 100 only the first.
    let (mut rig, thread) = example(V6_18, 50, 3);
    let id = rig.fair.id(thread);
    rig.set_core(0, 0, 0);
    let energy = |rig: &Rig, on| hundredths(rig.fair.energy_with(0, id, on));
    assert_eq!([energy(&rig, None), energy(&rig, Some(1))], [29.41, 65.98]);
    rig.fair.queues[1].pelt = Pelt::of_sums(0, 0, 300 * 46_718, 100 * 46_718);
    assert_eq!([energy(&rig, None), energy(&rig, Some(1))], [58.59, 87.89]);
    // `eenv_task_busy_time`: max(50, 200) is added, though the core then uses max(100 + 50, 0 + 200) = 200.
    rig.of(thread).estimate.on_sleep(&averages(200, 1), 1024);
    assert_eq!(energy(&rig, Some(1)), 175.78);
}

#[test]
fn a_thread_goes_where_it_costs_least() {
    // `find_energy_efficient_cpu`: 117.19 on the second little core, 725.91 on its last one.
    let (mut rig, thread) = example(V6_18, 200, 3);
    assert_eq!(rig.place(thread, EnqueueKind::Wake, 3), 1);
    assert_eq!(rig.fair.because, "it costs the least energy there");
    // There it stays: 400 + 200 does not fit into 512, and big cores cost more.
    let (mut rig, thread) = example(V6_18, 200, 1);
    assert_eq!(rig.place(thread, EnqueueKind::Wake, 1), 1);
}

#[test]
fn a_thread_that_fits_on_no_little_core_goes_to_a_big_one() {
    // 100 + 310 does not fit into 512; 500 + 310 fits into 1024, 600 + 310 does not.
    let (mut rig, thread) = example(V6_18, 310, 1);
    assert_eq!(rig.place(thread, EnqueueKind::Wake, 1), 3);
}

#[test]
fn a_thread_without_utilisation_stays() {
    let (mut rig, thread) = example(V6_18, 0, 2);
    assert_eq!(rig.place(thread, EnqueueKind::Wake, 3), 2);
}

#[test]
fn energy_does_not_count_once_a_core_is_over_utilised() {
    // `is_rd_overutilized`: then the last core is taken, which is idle and where it fits.
    let (mut rig, thread) = example(V6_18, 200, 3);
    rig.fair.root.is_overutilised = true;
    assert_eq!(rig.place(thread, EnqueueKind::Wake, 3), 3);
}

#[test]
fn averages_and_estimates_are_added_each_for_itself() {
    // `cpu_util`: max(100 + 50, 0 + 200) = 200 on the second core, not 100 + 200.
    let (mut rig, thread) = example(V6_18, 50, 3);
    let id = rig.fair.id(thread);
    let slept = averages(200, 1);
    rig.of(thread).estimate.on_sleep(&slept, 1024);
    assert_eq!(rig.fair.util_of(id), 200);
    assert_eq!(rig.fair.util_with(1, id), 200);
}

#[test]
fn without_powers_or_before_5_0_nothing_is_placed_by_energy() {
    assert!(!Rig::on(V6_18, little_and_big()).fair.uses_energy());
    assert!(!Rig::on(V3_16, board()).fair.uses_energy());
    assert!(Rig::on(V6_6, board()).fair.uses_energy());
}
