//! What perf's events are in the vocabulary.

use crate::counter_index;

/// An event's PMU and its counter in the vocabulary, if it has one.
pub struct Event<'a> {
    /// PMU, such as `cpu_atom`; empty for the default one.
    pub pmu: &'a str,
    /// Place in the vocabulary.
    pub counter: Option<usize>,
}

/// Generic events of the kernel (perf-list(1)) and the architectural events of Armv8 (Arm ARM, D12, by the
/// names that Linux gives them in sysfs).
#[rustfmt::skip]
const EVENTS: &[(&str, &str)] = &[
    ("instructions", "instructions"), ("inst_retired", "instructions"), ("inst_retired.any", "instructions"),
    ("cycles", "cycles"), ("cpu-cycles", "cycles"), ("cpu_cycles", "cycles"), ("cpu_clk_unhalted.thread", "cycles"), ("cpu_clk_unhalted.core", "cycles"),
    ("task-clock", "task_clock_ns"),
    ("branches", "branches"), ("branch-instructions", "branches"), ("br_retired", "branches"),
    ("branch-misses", "branch_mispredicts"), ("br_mis_pred_retired", "branch_mispredicts"), ("br_mis_pred", "branch_mispredicts_executed"), ("br_pred", "bp_lookups"),
    ("l1-icache-loads", "l1i_accesses"), ("l1i_cache", "l1i_accesses"), ("l1-icache-load-misses", "l1i_misses"), ("l1i_cache_refill", "l1i_misses"),
    ("l1-dcache-loads", "l1d_read_accesses"), ("l1-dcache-load-misses", "l1d_read_misses"),
    ("l1-dcache-stores", "l1d_write_accesses"), ("l1-dcache-store-misses", "l1d_write_misses"),
    ("l1d_cache", "l1d_accesses"), ("l1d_cache_refill", "l1d_misses"), ("l1d_cache_wb", "l1d_writebacks"),
    ("l2d_cache", "l2_accesses"), ("l2d_cache_refill", "l2_misses"), ("l3d_cache", "l3_accesses"), ("l3d_cache_refill", "l3_misses"),
    ("cache-references", "llc_accesses"), ("cache-misses", "llc_misses"), ("llc-loads", "llc_accesses"), ("llc-load-misses", "llc_misses"),
    ("dtlb-load-misses", "dtlb_misses"), ("l1d_tlb_refill", "dtlb_misses"), ("itlb-load-misses", "itlb_misses"), ("l1i_tlb_refill", "itlb_misses"),
    ("ld_retired", "loads"), ("mem-loads", "loads"), ("st_retired", "stores"), ("mem-stores", "stores"),
    ("stalled-cycles-frontend", "stall_fetch_cycles"), ("stall_frontend", "stall_fetch_cycles"),
    ("stalled-cycles-backend", "stall_backend_cycles"), ("stall_backend", "stall_backend_cycles"), ("stall_backend_mem", "stall_memory_cycles"),
    ("context-switches", "context_switches"), ("cs", "context_switches"), ("cpu-migrations", "migrations"), ("migrations", "migrations"), ("page-faults", "page_faults"), ("faults", "page_faults"),
];

/// Looks up an event such as `cycles:u`, `cpu_core/cycles/`, `armv8_cortex_a53/inst_retired/u`.
pub fn parse(event: &str) -> Event<'_> {
    let (pmu, name) = match event.split_once('/') {
        Some((pmu, rest)) => (pmu, rest.split('/').next().unwrap_or(rest)),
        None => ("", event.split(':').next().unwrap_or(event)),
    };
    Event { pmu, counter: counter_of_event(name).and_then(counter_index) }
}

/// The counter of the vocabulary that an event of perf or of a PMU's folder in sysfs counts, such as
/// `l2d_cache_refill`.
pub fn counter_of_event(name: &str) -> Option<&'static str> {
    let found = EVENTS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map(|&(_, counter)| counter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_has_a_counter() {
        for (event, counter) in EVENTS {
            assert!(counter_index(counter).is_some(), "{event} is {counter}");
            assert_eq!(*event, event.to_ascii_lowercase());
        }
    }

    #[test]
    fn modifiers_and_pmus_are_taken_off() {
        for (event, pmu, counter) in [
            ("cycles:u", "", Some("cycles")),
            ("cpu_core/cycles/", "cpu_core", Some("cycles")),
            ("armv8_cortex_a53/inst_retired/u", "armv8_cortex_a53", Some("instructions")),
            ("L1-dcache-load-misses", "", Some("l1d_read_misses")),
            ("cpu_core/event=0x3c,umask=0x0/", "cpu_core", None),
        ] {
            let parsed = parse(event);
            assert_eq!(
                (parsed.pmu, parsed.counter),
                (pmu, counter.and_then(counter_index)),
                "{event}"
            );
        }
    }
}
