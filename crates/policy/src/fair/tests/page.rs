//! The table of generations on the page `docs/explanation/linux.md`.

use super::super::kernel::{Balancing, Order, Parity, Pressure};
use super::*;

fn yes(holds: bool) -> String {
    if holds { "yes" } else { "-" }.to_owned()
}

fn us(ns: Ns) -> String {
    (ns / 1_000).to_string()
}

/// A row for each kind of difference between Linux's own generations.
fn table() -> String {
    type Cell = fn(&Kernel) -> String;
    let is_cfs = |kernel: &Kernel| kernel.order == Order::Cfs;
    let rows: [(&str, Cell); 25] = [
        ("order of queues", |kernel| match kernel.order {
            Order::Cfs => "CFS".to_owned(),
            Order::Eevdf => "EEVDF".to_owned(),
        }),
        ("slice before scaling, us (`base_slice`, `min_granularity`)", |kernel| {
            us(kernel.base_slice_ns)
        }),
        ("latency, us", |kernel| us(kernel.latency_ns)),
        ("wake-up granularity, us", |kernel| us(kernel.wakeup_granularity_ns)),
        ("delayed departure (`DELAY_DEQUEUE`)", |kernel| yes(kernel.delays_dequeue)),
        (
            "moved threads keep deadlines (`PLACE_REL_DEADLINE`)",
            |kernel| yes(kernel.keeps_deadline),
        ),
        ("shorter slices interrupt (`PREEMPT_SHORT`)", |kernel| yes(kernel.preempts_for_short)),
        ("protection by the shortest request", |kernel| {
            yes(kernel.parity == Parity::ShortestRequest)
        }),
        ("slices of threads' own", |kernel| yes(kernel.takes_slices)),
        ("lazy preemption (`PREEMPT_LAZY`)", |kernel| yes(kernel.preempts_lazily)),
        ("exact ends of requests (`HRTICK`; not on Arm)", |kernel| yes(kernel.hrtick)),
        ("balancing by types of groups", |kernel| yes(kernel.balancing == Balancing::ByGroupType)),
        ("busy cores balance more rarely by (`busy_factor`)", |kernel| {
            kernel.busy_factor.to_string()
        }),
        ("tolerated imbalance between caches, % (within: 17)", |kernel| {
            assert_eq!(kernel.imbalance_pct, 117);
            (kernel.imbalance_pct_package - 100).to_string()
        }),
        ("scan for idle cores by utilisation (`SIS_UTIL`)", |kernel| yes(kernel.scans_by_util)),
        ("capacities are known (Arm)", |kernel| yes(kernel.knows_capacities)),
        ("placement by capacities (`SD_ASYM_CPUCAPACITY`)", |kernel| yes(kernel.asymmetric)),
        (
            "that scan by utilisation, too (since 7.2)",
            |kernel| yes(kernel.scans_capacities_by_util),
        ),
        ("clusters within a cache first (`sched_cluster_active`)", |kernel| {
            yes(kernel.prefers_cluster)
        }),
        ("threads spread over unequal clusters", |kernel| yes(kernel.spreads_unequal)),
        ("placement by energy", |kernel| yes(kernel.energy_aware)),
        ("cores of class idle take others (`sched_idle_cpu`)", |kernel| yes(kernel.sees_idlers)),
        ("estimates as of the last tick (6.14 to 7.1.4)", |kernel| yes(kernel.estimates_early)),
        ("searches of idle cores by success (`NI_RANDOM`)", |kernel| yes(kernel.draws_newidle)),
        ("what throttling takes", |kernel| match kernel.pressure {
            Pressure::Ignored => "-".to_owned(),
            Pressure::Averaged => "average".to_owned(),
            Pressure::Exact => "all".to_owned(),
        }),
    ];
    let line = |name: &str, cells: Vec<String>| format!("| {name} | {} |\n", cells.join(" | "));
    let own = || Kernel::ALL.iter().filter(|kernel| kernel.version > 0.0);
    let names = own().map(|kernel| kernel.name.to_owned()).collect();
    let mut text = line("", names).replace("|  |", "| |") + "|---|---|---|---|---|---|---|\n";
    for (name, cell) in rows {
        // Constants of CFS mean nothing since.
        let of_cfs = name.starts_with("latency") || name.starts_with("wake-up");
        let cell =
            |kernel: &Kernel| if of_cfs && !is_cfs(kernel) { "-".to_owned() } else { cell(kernel) };
        text += &line(name, own().map(cell).collect());
    }
    text
}

#[test]
fn the_page_says_which_generation_has_what() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/explanation/linux.md");
    let page = std::fs::read_to_string(page).expect("the page is in the repository");
    let table = table();
    assert!(page.contains(&table), "the page should have:\n{table}");
}
