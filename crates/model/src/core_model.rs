//! The core model: how fast a profile runs on a core type at a frequency.

use crate::Profile;

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
    /// Instructions decoded per cycle.
    pub width: f64,
    /// Reorder window in micro-operations (1 for an in-order core).
    pub window: f64,
    /// Cycles lost by a branch misprediction.
    pub mispredict_cycles: f64,
    /// Cycles from a load that hits the L1 data cache to the first instruction that can use it.
    pub load_cycles: f64,
    /// Cycles for which a double-precision addition or multiplication occupies its unit (1 if pipelined).
    pub fp_double_cycles: f64,
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
}

/// Where the cycles of an instruction go.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpiStack {
    /// Issue, dependences and execution with perfect caches and branch prediction.
    pub core: f64,
    /// Refilling the pipeline after mispredicted branches.
    pub branch: f64,
    /// Instruction fetch that missed the L1 instruction cache and hit the L2.
    pub fetch: f64,
    /// Data that missed the L1 and hit the L2.
    pub l2: f64,
    /// Data and instructions that missed the L2.
    pub memory: f64,
}

impl CpiStack {
    /// Cycles per instruction.
    pub fn total(&self) -> f64 {
        self.core + self.branch + self.fetch + self.l2 + self.memory
    }
}

/// Performance-counter rates per instruction and per cycle that a predictor would see.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CounterRates {
    /// Instructions per cycle.
    pub ipc: f64,
}

/// The sizes of L2 cache that the profiles were measured with, in KiB.
const L2_MEASURED_KIB: [f64; 2] = [512.0, 2048.0];
/// Window and width of the core that `Profile::cpi_core_big` describes.
const REFERENCE_WIDTH: f64 = 3.0;
/// Width of the core that `Profile::cpi_core_little` describes.
const REFERENCE_WIDTH_IN_ORDER: f64 = 2.0;
/// The L1 sizes that the profiles were measured with, in KiB.
const L1_MEASURED_KIB: f64 = 32.0;

/// Cycles per instruction of a profile on a core at a frequency in MHz, by cause.
pub fn cpi_stack(profile: &Profile, core: &CoreParams, mhz: f64) -> CpiStack {
    let (misses, writes) = l2_misses(profile, core.l2_kib);
    let l1d = profile.l1d_mpki * l1_scale(core.l1d_kib) / 1000.0;
    let l1d_reads = (l1d - profile.l1d_write_mpki * l1_scale(core.l1d_kib) / 1000.0).max(0.0);
    let l1i = profile.l1i_mpki * l1_scale(core.l1i_kib) / 1000.0;
    let covered = profile.prefetchable * core.prefetch_share;
    let demand = (misses - writes) * (1.0 - covered);
    let overlap = overlap(profile, core, demand);
    let memory_cycles = core.memory_ns * mhz / 1000.0;
    let latency_bound = demand * memory_cycles / overlap;
    let bandwidth_bound = misses * memory_cycles / core.mlp_max.max(1.0);
    CpiStack {
        core: core_cpi(profile, core),
        branch: profile.branch_mpki / 1000.0 * core.mispredict_cycles,
        fetch: l1i * core.l2_cycles,
        l2: (l1d_reads * (1.0 - covered) - demand).max(0.0) * core.l2_cycles * exposed(core),
        memory: latency_bound.max(bandwidth_bound),
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

/// Counter rates of a profile on a core at a frequency in MHz.
pub fn counters(profile: &Profile, core: &CoreParams, mhz: f64) -> CounterRates {
    CounterRates { ipc: 1.0 / cycles_per_instruction(profile, core, mhz) }
}

/// Cycles with perfect caches and branch prediction.
fn core_cpi(profile: &Profile, core: &CoreParams) -> f64 {
    match core.pipeline {
        Pipeline::OutOfOrder => profile.cpi_core_big * REFERENCE_WIDTH / core.width,
        Pipeline::InOrder => {
            profile.cpi_core_little * (REFERENCE_WIDTH_IN_ORDER / core.width).max(1.0)
        }
    }
}

/// Misses per instruction of an L2 of a size, all and those of stores.
fn l2_misses(profile: &Profile, kib: f64) -> (f64, f64) {
    let [small, large] = L2_MEASURED_KIB;
    let at = ((kib / small).ln() / (large / small).ln()).clamp(0.0, 1.0);
    let mix = |from: f64, to: f64| (from + (to - from) * at) / 1000.0;
    (
        mix(profile.l2_512k_mpki, profile.l2_2m_mpki),
        mix(profile.l2_512k_write_mpki, profile.l2_2m_write_mpki),
    )
}

/// The square-root rule of cache misses.
fn l1_scale(kib: f64) -> f64 {
    (L1_MEASURED_KIB / kib).sqrt()
}

/// Share of the latency of an L2 hit that the core cannot hide.
fn exposed(core: &CoreParams) -> f64 {
    match core.pipeline {
        Pipeline::InOrder => 1.0,
        Pipeline::OutOfOrder => 1.0 / core.width,
    }
}

/// How many misses are outstanding together.
fn overlap(profile: &Profile, core: &CoreParams, misses: f64) -> f64 {
    let independent = (1.0 - 1.0 / profile.ilp_128.max(1.0)).max(0.0);
    (1.0 + core.window * misses * independent).min(core.mlp_max.max(1.0))
}
