//! The vocabulary: what counters are called, whatever their source.

/// What a counter's values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Events.
    Count,
    /// Cycles of the core's clock.
    Cycles,
    /// Time in gem5's ticks.
    Ticks,
    /// Time in ns.
    Ns,
}

impl Unit {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Cycles => "cycles",
            Self::Ticks => "ticks",
            Self::Ns => "ns",
        }
    }
}

/// A counter of the vocabulary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterInfo {
    /// Name.
    pub name: &'static str,
    /// Unit.
    pub unit: Unit,
    /// What it counts.
    pub help: &'static str,
}

const fn count(name: &'static str, help: &'static str) -> CounterInfo {
    CounterInfo { name, unit: Unit::Count, help }
}

const fn cycles(name: &'static str, help: &'static str) -> CounterInfo {
    CounterInfo { name, unit: Unit::Cycles, help }
}

/// All counters of the vocabulary.
///
/// A source provides some of them. Two sources may count the same thing differently (a speculative look-up, a
/// committed branch): models are trained and used on the counters of one kind of core.
pub static COUNTERS: &[CounterInfo] = &[
    count("instructions", "committed instructions, NOPs included"),
    count("operations", "committed micro-operations"),
    cycles("cycles", "cycles in which the core was on"),
    cycles(
        "idle_cycles",
        "cycles in which nothing was in the pipeline or the core waited for interrupts",
    ),
    CounterInfo { name: "task_clock_ns", unit: Unit::Ns, help: "CPU time" },
    count("branches", "committed branches"),
    count("branches_executed", "executed branches"),
    count("branch_mispredicts", "mispredicted branches found at commit"),
    count("branch_mispredicts_executed", "mispredicted branches found at execution"),
    count("bp_lookups", "look-ups of the branch predictor"),
    count("bp_cond_predicted", "predicted conditional branches"),
    count("bp_cond_incorrect", "wrongly predicted conditional branches"),
    count("bp_btb_lookups", "look-ups of the branch target buffer"),
    count("bp_btb_hits", "hits of the branch target buffer"),
    count("bp_ras_used", "predictions by the return stack"),
    count("bp_ras_incorrect", "wrong predictions by the return stack"),
    count("bp_indirect_misses", "misses of the indirect branch predictor"),
    count("int_regfile_reads", "reads of the integer register file"),
    count("int_regfile_writes", "writes of the integer register file"),
    count("fp_regfile_reads", "reads of the floating-point register file"),
    count("fp_regfile_writes", "writes of the floating-point register file"),
    count("cc_regfile_reads", "reads of the condition-code register file"),
    count("cc_regfile_writes", "writes of the condition-code register file"),
    count("misc_regfile_reads", "reads of the miscellaneous register file"),
    count("fetch_insts", "fetched instructions"),
    count("fetch_branches", "fetched branches"),
    cycles("fetch_cycles", "cycles in which fetch was active"),
    cycles(
        "fetch_icache_stall_cycles",
        "cycles in which fetch waited for the L1 instruction cache",
    ),
    cycles(
        "fetch_icache_retry_stall_cycles",
        "cycles in which fetch waited to retry an access of the L1 instruction cache",
    ),
    cycles("fetch_squash_cycles", "cycles in which fetch squashed"),
    cycles("fetch_misc_stall_cycles", "cycles in which fetch waited for something else"),
    cycles("decode_idle_cycles", "cycles in which decode was idle"),
    cycles("decode_blocked_cycles", "cycles in which decode was blocked"),
    cycles("decode_run_cycles", "cycles in which decode ran"),
    cycles("rename_idle_cycles", "cycles in which rename was idle"),
    cycles("rename_block_cycles", "cycles in which rename was blocked"),
    cycles(
        "rename_serialize_stall_cycles",
        "cycles in which rename waited for a serialising instruction",
    ),
    count("rename_rob_full_events", "times that rename found the reorder buffer full"),
    count("rename_iq_full_events", "times that rename found the issue queue full"),
    count("rename_lq_full_events", "times that rename found the load queue full"),
    count("rename_sq_full_events", "times that rename found the store queue full"),
    count("rename_reg_full_events", "times that rename found no free register"),
    count("iew_iq_full_events", "times that dispatch found the issue queue full"),
    count("iew_lsq_full_events", "times that dispatch found the load-store queue full"),
    count("iew_mem_order_violations", "memory order violations"),
    count("insts_issued", "issued instructions"),
    count("insts_executed", "executed instructions"),
    count("squashed_insts_commit", "squashed instructions skipped by commit"),
    count("discarded_ops", "discarded operations of an in-order core"),
    count("fu_busy", "times that a functional unit was busy"),
    count("rob_reads", "reads of the reorder buffer"),
    count("rob_writes", "writes of the reorder buffer"),
    count("lsq_forw_loads", "loads served by a store in the queue"),
    count("loads", "committed loads"),
    count("stores", "committed stores"),
    count("fp_ops", "scalar floating-point operations"),
    count("simd_ops", "SIMD operations"),
    count("fp_simd_ops", "floating-point and SIMD operations together"),
    count("op_int_alu", "integer operations of one cycle"),
    count("op_int_mult", "integer multiplications"),
    count("op_int_div", "integer divisions"),
    count("int_mul_div_ops", "integer multiplications and divisions together"),
    count("function_calls", "function calls"),
    count("l1i_accesses", "accesses of the L1 instruction cache"),
    count("l1i_misses", "misses of the L1 instruction cache"),
    count("l1d_accesses", "accesses of the L1 data cache"),
    count("l1d_misses", "misses of the L1 data cache"),
    count("l1d_read_accesses", "loads that accessed the L1 data cache"),
    count("l1d_read_misses", "loads that missed the L1 data cache"),
    count("l1d_write_accesses", "stores that accessed the L1 data cache"),
    count("l1d_write_misses", "stores that missed the L1 data cache"),
    count("l1d_mshr_misses", "misses of the L1 data cache that went on to the next level"),
    count("l1d_writebacks", "lines written back by the L1 data cache"),
    CounterInfo {
        name: "l1d_miss_latency_ticks",
        unit: Unit::Ticks,
        help: "sum of the latencies of all misses of the L1 data cache",
    },
    count("l1d_tags_in_use", "lines in use in the L1 data cache, on average"),
    count("l2_accesses", "accesses of the L2 cache"),
    count("l2_misses", "misses of the L2 cache"),
    CounterInfo {
        name: "l2_miss_latency_ticks",
        unit: Unit::Ticks,
        help: "sum of the latencies of all misses of the L2 cache",
    },
    count("l3_accesses", "accesses of the L3 cache"),
    count("l3_misses", "misses of the L3 cache"),
    count("llc_accesses", "accesses of the last cache before memory"),
    count("llc_misses", "misses of the last cache before memory"),
    count("dtlb_misses", "misses of the data TLB"),
    count("itlb_misses", "misses of the instruction TLB"),
    count("mem_reads", "reads of memory, in bursts or lines"),
    count("mem_writes", "writes of memory, in bursts or lines"),
    cycles("stall_branch_cycles", "cycles lost by mispredicted branches"),
    cycles("stall_fetch_cycles", "cycles in which the front end waited for instructions"),
    cycles("stall_backend_cycles", "cycles in which the back end accepted nothing"),
    cycles("stall_l2_cycles", "cycles in which the core waited for data from the L2"),
    cycles("stall_memory_cycles", "cycles in which the core waited for memory"),
    count("context_switches", "context switches"),
    count("migrations", "migrations to another core"),
    count("page_faults", "page faults"),
];

/// Place of a counter in the vocabulary.
pub fn counter_index(name: &str) -> Option<usize> {
    COUNTERS.iter().position(|counter| counter.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_end_in_their_unit() {
        for (index, counter) in COUNTERS.iter().enumerate() {
            assert_eq!(counter_index(counter.name), Some(index));
            let suffix = match counter.unit {
                Unit::Count => continue,
                unit => unit.name(),
            };
            assert!(counter.name.ends_with(suffix), "{} is in {suffix}", counter.name);
        }
    }
}
