//! The core model: how fast a profile runs on a core type at a frequency.
//!
//! Cycles per instruction are a sum of parts (interval analysis: Karkhanis and Smith, ISCA 2004;
//! Eyerman, Eeckhout, Karkhanis and Smith, ACM TOCS 27, 2009):
//!
//! ```text
//! CPI = core + branch + fetch + l2 + memory
//! ```
//!
//! All parts but the last are cycles whatever the frequency; memory takes the same time in ns, so its
//! cycles grow with the frequency. Nothing here is fitted to a published ratio of speeds; the
//! explanation with every assumption, and the comparison with published ratios, is in
//! `docs/explanation/core-model.md`.

mod counters;
mod demand;
mod issue;
mod kinds;
mod machine_speed;
mod memory;
mod refill;
mod stalls;

pub use counters::{CounterRates, counters};
pub use demand::{LINE_BYTES, MemoryDemand, memory_demand};
pub use kinds::{KindCycles, kind_cycles};
pub use machine_speed::machine_speed_ips;
pub use memory::{MissCycles, miss_cycles};
pub use refill::{Refill, refill};
pub use stalls::{StallCounters, machine_stall_counters, stall_counters};

use crate::Profile;
use memory::Misses;

/// How a core issues instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pipeline {
    /// In program order; a load's consumer stalls it.
    InOrder,
    /// Out of order within a window.
    OutOfOrder,
}

/// Parameters of a core type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoreParams {
    /// How it issues instructions.
    pub pipeline: Pipeline,
    /// Instructions issued per cycle at most; for a core that pairs only some instructions, the average
    /// over what it can pair.
    pub width: f64,
    /// Reorder window in micro-operations (1 for an in-order core).
    pub window: f64,
    /// Cycles lost by a branch misprediction whose operands are ready.
    pub mispredict_cycles: f64,
    /// Cycles from a load that hits the L1 data cache to the first instruction that can use it.
    pub load_cycles: f64,
    /// Cycles for which a single-precision addition or multiplication occupies the floating-point
    /// units, averaged over both and divided by the number of units (0.5: two pipelined units).
    pub fp_single_cycles: f64,
    /// The same for double precision.
    pub fp_double_cycles: f64,
    /// Cycles until the result of a single-precision addition or multiplication can be used.
    pub fp_single_latency_cycles: f64,
    /// The same for double precision.
    pub fp_double_latency_cycles: f64,
    /// Cycles for which a basic integer operation on 128-bit vectors occupies the SIMD units, divided by
    /// the number of units.
    pub simd_cycles: f64,
    /// Cycles until its result can be used.
    pub simd_latency_cycles: f64,
    /// L1 instruction cache in KiB.
    pub l1i_kib: f64,
    /// L1 data cache in KiB.
    pub l1d_kib: f64,
    /// L2 cache of the cluster in KiB.
    pub l2_kib: f64,
    /// L2 hit latency in cycles.
    pub l2_cycles: f64,
    /// Memory latency behind the L2 in ns, whatever the core's frequency.
    pub memory_ns: f64,
    /// Most outstanding misses.
    pub mlp_max: f64,
    /// Share of prefetchable misses that the prefetcher covers, 0..=1.
    pub prefetch_share: f64,
    /// How many times as long everything takes, memory included; 1: as the other parameters have it. It is 1 over the
    /// `relative_speed` of a machine's cluster, so one factor holds for every program at every frequency.
    pub cycles_factor: f64,
}

/// Where the cycles of an instruction go.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpiStack {
    /// Issue, dependences and execution with perfect caches and branch prediction.
    pub core: f64,
    /// Waiting for mispredicted branches and refilling the pipeline behind them.
    pub branch: f64,
    /// Instruction fetch that missed the L1 instruction cache.
    pub fetch: f64,
    /// Data that missed the L1.
    pub l2: f64,
    /// Data and instructions that missed the L2.
    pub memory: f64,
}

impl CpiStack {
    /// Cycles per instruction.
    pub fn total(&self) -> f64 {
        self.core + self.branch + self.fetch + self.l2 + self.memory
    }

    /// Every part as many times.
    #[must_use]
    fn times(self, factor: f64) -> Self {
        Self {
            core: self.core * factor,
            branch: self.branch * factor,
            fetch: self.fetch * factor,
            l2: self.l2 * factor,
            memory: self.memory * factor,
        }
    }
}

/// Cycles per instruction of a profile on a core at a frequency in MHz, by cause.
///
/// Valid for profiles and parameters that the parsers accept, and a positive frequency. Pure: the same
/// arguments give the same bits.
pub fn cpi_stack(profile: &Profile, core: &CoreParams, mhz: f64) -> CpiStack {
    stack_and_pipeline(profile, core, mhz).0
}

/// The stack, and how the core issues in effect.
fn stack_and_pipeline(profile: &Profile, core: &CoreParams, mhz: f64) -> (CpiStack, Pipeline) {
    let in_order = stack_as(Pipeline::InOrder, profile, core, mhz);
    if core.pipeline == Pipeline::InOrder {
        return (in_order, Pipeline::InOrder);
    }
    // A window too small to help leaves a core that runs in order.
    let out_of_order = stack_as(Pipeline::OutOfOrder, profile, core, mhz);
    if out_of_order.total() <= in_order.total() {
        (out_of_order, Pipeline::OutOfOrder)
    } else {
        (in_order, Pipeline::InOrder)
    }
}

/// Cycles per instruction of a profile on a core at a frequency in MHz.
pub fn cycles_per_instruction(profile: &Profile, core: &CoreParams, mhz: f64) -> f64 {
    cpi_stack(profile, core, mhz).total()
}

/// Instructions per second of a profile on a core at a frequency in MHz.
pub fn speed_ips(profile: &Profile, core: &CoreParams, mhz: f64) -> f64 {
    mhz * 1e6 / cycles_per_instruction(profile, core, mhz)
}

/// The stack if the core issued in the given way.
fn stack_as(pipeline: Pipeline, profile: &Profile, core: &CoreParams, mhz: f64) -> CpiStack {
    let misses = Misses::of(profile, core);
    let modelled = CpiStack {
        core: issue::core_cycles(pipeline, profile, core),
        branch: profile.branch_mpki / 1000.0 * branch_cycles(pipeline, core),
        fetch: memory::fetch_cycles(&misses, core),
        l2: memory::l2_cycles(pipeline, profile, &misses, core),
        memory: memory::memory_cycles(pipeline, profile, &misses, core, mhz),
    };
    modelled.times(profile.cycles_factor.unwrap_or(1.0) * core.cycles_factor)
}

/// Cycles that a misprediction costs.
///
/// Out of order, the branch also waits for its operand after dispatch, most often a load just before
/// it (Eyerman, Smith and Eeckhout, ISPASS 2006: the penalty is the front end's length plus the
/// resolution of the branch). In order, that wait is already a stall of the core part.
fn branch_cycles(pipeline: Pipeline, core: &CoreParams) -> f64 {
    match pipeline {
        Pipeline::InOrder => core.mispredict_cycles,
        Pipeline::OutOfOrder => core.mispredict_cycles + core.load_cycles,
    }
}
