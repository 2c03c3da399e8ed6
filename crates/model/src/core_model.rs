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

/// Performance-counter rates per instruction and per cycle that a predictor would see.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CounterRates {
    /// Instructions per cycle.
    pub ipc: f64,
}

/// Cycles per instruction of a profile on a core at a frequency in MHz.
pub fn cycles_per_instruction(profile: &Profile, core: &CoreParams, mhz: f64) -> f64 {
    let _ = (profile, core, mhz);
    todo!()
}

/// Instructions per second of a profile on a core at a frequency in MHz.
pub fn speed_ips(profile: &Profile, core: &CoreParams, mhz: f64) -> f64 {
    mhz * 1e6 / cycles_per_instruction(profile, core, mhz)
}

/// Counter rates of a profile on a core at a frequency in MHz.
pub fn counters(profile: &Profile, core: &CoreParams, mhz: f64) -> CounterRates {
    CounterRates { ipc: 1.0 / cycles_per_instruction(profile, core, mhz) }
}
