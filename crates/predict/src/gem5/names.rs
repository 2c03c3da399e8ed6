//! What gem5's versions call the counters of the vocabulary.
//!
//! Read off files of gem5 from 2010 to 2025 (M5 2.0 to gem5 25). A name is what follows the path of the
//! core or cache. Where several stand in a row, the first that a file has counts.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::caches::Level;
use crate::counter_index;

/// To whom a statistic belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// A core.
    Core,
    /// A cache of that level.
    Cache(Level),
    /// A memory controller.
    Memory,
}

/// What a native name stands for.
#[derive(Clone, Copy, Debug)]
pub struct Meaning {
    /// To whom it belongs.
    pub scope: Scope,
    /// Counter, by its place in the vocabulary.
    pub counter: usize,
    /// The least of those that a dump has is used; equal ones are added up.
    pub preference: usize,
}

/// Native names of cores' statistics.
#[rustfmt::skip]
const CORE: &[(&str, &[&str])] = &[
    // Out-of-order cores leave NOPs out of `committedInsts`, in-order ones count them.
    ("instructions", &["commit.committedInsts", "commit.commitCommittedInsts", "commit.COM:count", "commitStats0.numInsts", "committedInsts", "thread_0.numInsts"]),
    ("operations", &["commit.committedOps", "commitStats0.numOps", "committedOps", "thread_0.numOps"]),
    ("cycles", &["numCycles"]),
    ("idle_cycles", &["idleCycles"]),
    ("branches", &["commit.branches", "commit.COM:branches", "commitStats0.committedControl::IsControl", "committedControl_0::IsControl", "branchPred.committed_0::total", "comBranches"]),
    ("branches_executed", &["iew.exec_branches", "iew.EXEC:branches", "executeStats0.numBranches"]),
    ("branch_mispredicts", &["commit.branchMispredicts", "execution_unit.mispredicted"]),
    ("branch_mispredicts_executed", &["iew.branchMispredicts"]),
    ("bp_lookups", &["branchPred.lookups", "branchPred.lookups_0::total", "BPredUnit.lookups"]),
    ("bp_cond_predicted", &["branchPred.condPredicted", "BPredUnit.condPredicted"]),
    ("bp_cond_incorrect", &["branchPred.condIncorrect", "BPredUnit.condIncorrect"]),
    ("bp_btb_lookups", &["branchPred.BTBLookups", "branchPred.btb.lookups::total", "BPredUnit.BTBLookups"]),
    ("bp_btb_hits", &["branchPred.BTBHits", "BPredUnit.BTBHits"]),
    ("bp_ras_used", &["branchPred.usedRAS", "branchPred.RASUsed", "branchPred.ras.used", "BPredUnit.usedRAS"]),
    ("bp_ras_incorrect", &["branchPred.RASInCorrect", "branchPred.RASIncorrect", "branchPred.ras.incorrect", "BPredUnit.RASInCorrect"]),
    ("bp_indirect_misses", &["branchPred.indirectMisses", "branchPred.indirectBranchPred.misses"]),
    ("int_regfile_reads", &["int_regfile_reads", "executeStats0.numIntRegReads", "intRegfileReads", "regfile_manager.intRegFileReads"]),
    ("int_regfile_writes", &["int_regfile_writes", "executeStats0.numIntRegWrites", "intRegfileWrites", "regfile_manager.intRegFileWrites"]),
    ("fp_regfile_reads", &["fp_regfile_reads", "executeStats0.numFpRegReads", "fpRegfileReads", "regfile_manager.floatRegFileReads"]),
    ("fp_regfile_writes", &["fp_regfile_writes", "executeStats0.numFpRegWrites", "fpRegfileWrites", "regfile_manager.floatRegFileWrites"]),
    ("cc_regfile_reads", &["cc_regfile_reads", "executeStats0.numCCRegReads", "ccRegfileReads"]),
    ("cc_regfile_writes", &["cc_regfile_writes", "executeStats0.numCCRegWrites", "ccRegfileWrites"]),
    ("misc_regfile_reads", &["misc_regfile_reads", "executeStats0.numMiscRegReads", "miscRegfileReads"]),
    ("fetch_insts", &["fetch.Insts", "fetch.insts", "fetchStats0.numInsts"]),
    ("fetch_branches", &["fetch.Branches", "fetch.branches", "fetchStats0.numBranches", "bac.branches"]),
    ("fetch_cycles", &["fetch.Cycles", "fetch.cycles", "fetch.status::running"]),
    ("fetch_icache_stall_cycles", &["fetch.icacheStallCycles", "fetchStats0.icacheStallCycles", "fetch.status::icacheWaitResponse"]),
    ("fetch_icache_retry_stall_cycles", &["fetch.IcacheWaitRetryStallCycles", "fetch.icacheWaitRetryStallCycles", "fetch.status::icacheWaitRetry"]),
    ("fetch_squash_cycles", &["fetch.SquashCycles", "fetch.squashCycles", "fetch.status::squashing"]),
    ("fetch_misc_stall_cycles", &["fetch.MiscStallCycles", "fetch.miscStallCycles"]),
    ("decode_idle_cycles", &["decode.IdleCycles", "decode.idleCycles", "decode.DECODE:IdleCycles", "decode.status::Idle"]),
    ("decode_blocked_cycles", &["decode.BlockedCycles", "decode.blockedCycles", "decode.DECODE:BlockedCycles", "decode.status::Blocked"]),
    ("decode_run_cycles", &["decode.RunCycles", "decode.runCycles", "decode.DECODE:RunCycles", "decode.status::Running"]),
    ("rename_idle_cycles", &["rename.IdleCycles", "rename.idleCycles", "rename.RENAME:IdleCycles", "rename.status::Idle"]),
    ("rename_block_cycles", &["rename.BlockCycles", "rename.blockCycles", "rename.RENAME:BlockCycles", "rename.status::Blocked"]),
    ("rename_serialize_stall_cycles", &["rename.serializeStallCycles", "rename.RENAME:serializeStallCycles", "rename.status::SerializeStall"]),
    ("rename_rob_full_events", &["rename.ROBFullEvents", "rename.RENAME:ROBFullEvents"]),
    ("rename_iq_full_events", &["rename.IQFullEvents", "rename.RENAME:IQFullEvents"]),
    ("rename_lq_full_events", &["rename.LQFullEvents"]),
    ("rename_sq_full_events", &["rename.SQFullEvents"]),
    ("rename_reg_full_events", &["rename.FullRegisterEvents", "rename.fullRegistersEvents", "rename.RENAME:FullRegisterEvents"]),
    ("iew_iq_full_events", &["iew.iewIQFullEvents", "iew.iqFullEvents"]),
    ("iew_lsq_full_events", &["iew.iewLSQFullEvents", "iew.lsqFullEvents"]),
    ("iew_mem_order_violations", &["iew.memOrderViolationEvents"]),
    ("insts_issued", &["iq.iqInstsIssued", "instsIssued", "iq.ISSUE:FU_type_0::total"]),
    ("insts_executed", &["iew.iewExecutedInsts", "executeStats0.numInsts"]),
    ("squashed_insts_commit", &["commit.commitSquashedInsts"]),
    ("discarded_ops", &["discardedOps", "executeStats0.numDiscardedOps", "numDiscardedOps"]),
    ("fu_busy", &["iq.fu_busy_cnt", "fuBusy", "iq.ISSUE:fu_busy_cnt"]),
    ("rob_reads", &["rob.rob_reads", "rob.reads"]),
    ("rob_writes", &["rob.rob_writes", "rob.writes"]),
    ("lsq_forw_loads", &["iew.lsq.thread0.forwLoads", "iew.lsq.thread.0.forwLoads", "lsq0.forwLoads"]),
    ("loads", &["commit.loads", "commit.COM:loads", "commitStats0.numLoadInsts", "comLoads"]),
    ("stores", &["commitStats0.numStoreInsts", "comStores"]),
    ("function_calls", &["commit.function_calls", "commit.functionCalls", "commitStats0.functionCalls", "commitStats0.committedControl::IsCall"]),
    ("dtlb_misses", &["dtb.misses", "mmu.dtb.misses", "dtb.data_misses"]),
    ("itlb_misses", &["itb.misses", "mmu.itb.misses", "itb.fetch_misses"]),
];

/// Statistics that are added up.
#[rustfmt::skip]
const SUMS: &[(&str, &[&str])] = &[
    ("dtlb_misses", &["mmu.dtb.rdMisses", "mmu.dtb.wrMisses", "dtb.rdMisses", "dtb.wrMisses"]),
    ("itlb_misses", &["mmu.itb.rdMisses", "mmu.itb.wrMisses", "itb.rdMisses", "itb.wrMisses"]),
];

/// Preference of sums and of vectors of classes: behind the names in `CORE`, of which a counter has at most six.
const AFTER_CORE: usize = 6;

/// Vectors of committed operations by class, as versions call them.
const CLASS_VECTORS: [&str; 5] = [
    "commit.op_class_0",
    "commit.committedInstType_0",
    "commitStats0.committedInstType",
    "op_class_0",
    "committedInstType_0",
];

/// Classes of operations that are added up.
#[rustfmt::skip]
const CLASSES: &[(&str, &[&str])] = &[
    ("op_int_alu", &["IntAlu"]),
    ("op_int_mult", &["IntMult"]),
    ("op_int_div", &["IntDiv"]),
    ("int_mul_div_ops", &["IntMult", "IntDiv"]),
    ("fp_ops", &["FloatAdd", "FloatCmp", "FloatCvt", "FloatMult", "FloatMultAcc", "FloatDiv", "FloatMisc", "FloatSqrt"]),
    // Versions without a count of committed loads and stores have these classes.
    ("loads", &["MemRead", "FloatMemRead"]),
    ("stores", &["MemWrite", "FloatMemWrite"]),
];

/// SIMD classes; floating-point SIMD is counted here, not in `fp_ops`.
#[rustfmt::skip]
const SIMD: &[&str] = &[
    "SimdAdd", "SimdAddAcc", "SimdAlu", "SimdCmp", "SimdCvt", "SimdMisc", "SimdMult", "SimdMultAcc", "SimdMatMultAcc",
    "SimdShift", "SimdShiftAcc", "SimdDiv", "SimdSqrt", "SimdFloatAdd", "SimdFloatAlu", "SimdFloatCmp", "SimdFloatCvt",
    "SimdFloatDiv", "SimdFloatMisc", "SimdFloatMult", "SimdFloatMultAcc", "SimdFloatMatMultAcc", "SimdFloatSqrt",
    "SimdReduceAdd", "SimdReduceAlu", "SimdReduceCmp", "SimdFloatReduceAdd", "SimdFloatReduceCmp", "SimdAes", "SimdAesMix",
    "SimdSha1Hash", "SimdSha1Hash2", "SimdSha256Hash", "SimdSha256Hash2", "SimdShaSigma2", "SimdShaSigma3", "SimdPredAlu",
    "SimdExt", "SimdFloatExt", "SimdConfig",
];

/// Native names of caches' statistics by what follows the level in the counter's name.
#[rustfmt::skip]
const CACHE: &[(&str, &[&str])] = &[
    ("accesses", &["overall_accesses::total", "overallAccesses::total", "overall_accesses"]),
    ("misses", &["overall_misses::total", "overallMisses::total", "overall_misses"]),
    ("read_accesses", &["ReadReq_accesses::total", "ReadReq.accesses::total", "ReadReq_accesses"]),
    ("read_misses", &["ReadReq_misses::total", "ReadReq.misses::total", "ReadReq_misses"]),
    ("write_accesses", &["WriteReq_accesses::total", "WriteReq.accesses::total", "WriteReq_accesses"]),
    ("write_misses", &["WriteReq_misses::total", "WriteReq.misses::total", "WriteReq_misses"]),
    ("mshr_misses", &["overall_mshr_misses::total", "overallMshrMisses::total", "overall_mshr_misses"]),
    ("writebacks", &["writebacks::total", "writebacks"]),
    ("miss_latency_ticks", &["overall_miss_latency::total", "overallMissLatency::total", "overall_miss_latency"]),
    ("tags_in_use", &["tags.tagsinuse", "tags.tagsInUse"]),
];

/// Native names of memory controllers' statistics.
const MEMORY: &[(&str, &[&str])] = &[
    ("mem_reads", &["num_reads::total", "dram.numReads::total"]),
    ("mem_writes", &["num_writes::total", "dram.numWrites::total"]),
];

/// All native names.
pub struct Names {
    /// By name; a cache's statistic has one meaning per level.
    known: HashMap<String, Vec<Meaning>>,
    /// Most dots in any of them.
    dots: usize,
}

impl Names {
    /// The table, made once.
    pub fn shared() -> &'static Self {
        static NAMES: OnceLock<Names> = OnceLock::new();
        NAMES.get_or_init(Self::new)
    }

    /// What a native name stands for; nothing for most.
    #[inline]
    pub fn of(&self, name: &str) -> &[Meaning] {
        self.known.get(name).map_or(&[], Vec::as_slice)
    }

    /// The dots at which a path may divide into a component and a known name, from left to right.
    pub fn divisions<'p>(&self, path: &'p str) -> impl Iterator<Item = usize> + use<'p> {
        let first = path.rmatch_indices('.').nth(self.dots).map_or(0, |(dot, _)| dot);
        path[first..].match_indices('.').map(move |(dot, _)| first + dot)
    }

    fn new() -> Self {
        let mut names = Self { known: HashMap::new(), dots: 0 };
        for (counter, natives) in CORE {
            names.add_all(Scope::Core, counter, natives);
        }
        let levels =
            [(Level::L1i, "l1i"), (Level::L1d, "l1d"), (Level::L2, "l2"), (Level::L3, "l3")];
        for (level, prefix) in levels {
            for (part, natives) in CACHE {
                names.add_all(Scope::Cache(level), &format!("{prefix}_{part}"), natives);
            }
        }
        for (counter, natives) in MEMORY {
            names.add_all(Scope::Memory, counter, natives);
        }
        for (counter, natives) in SUMS {
            for native in *natives {
                names.add(Scope::Core, counter, (*native).to_owned(), AFTER_CORE);
            }
        }
        names.add_classes();
        names
    }

    fn add_classes(&mut self) {
        let fp: &[&str] = CLASSES.iter().find(|row| row.0 == "fp_ops").map_or(&[], |row| row.1);
        let fp_simd: Vec<&str> = fp.iter().chain(SIMD).copied().collect();
        let sums = [("simd_ops", SIMD), ("fp_simd_ops", fp_simd.as_slice())];
        for (counter, classes) in CLASSES.iter().copied().chain(sums) {
            for (preference, vector) in CLASS_VECTORS.iter().enumerate() {
                for class in classes {
                    let native = format!("{vector}::{class}");
                    self.add(Scope::Core, counter, native, AFTER_CORE + preference);
                }
            }
        }
    }

    fn add_all(&mut self, scope: Scope, counter: &str, natives: &[&str]) {
        for (preference, native) in natives.iter().enumerate() {
            self.add(scope, counter, (*native).to_owned(), preference);
        }
    }

    /// A counter that the vocabulary does not have at this level is not read.
    fn add(&mut self, scope: Scope, counter: &str, native: String, preference: usize) {
        if let Some(counter) = counter_index(counter) {
            self.dots = self.dots.max(native.matches('.').count());
            self.known.entry(native).or_default().push(Meaning { scope, counter, preference });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_a_core_or_memory_is_in_the_vocabulary() {
        for (counter, _) in CORE.iter().chain(SUMS).chain(CLASSES).chain(MEMORY) {
            assert!(counter_index(counter).is_some(), "{counter}");
        }
        assert!(CORE.iter().all(|(_, natives)| natives.len() <= AFTER_CORE));
    }
}
