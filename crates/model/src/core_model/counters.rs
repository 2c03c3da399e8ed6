//! Performance counters that a profile leaves on a core: what a predictor of speed reads.

use super::memory::Misses;
use super::{CoreParams, cpi_stack};
use crate::Profile;

/// Performance-counter rates: per cycle, per instruction, per 1,000 instructions (`_pki`, `_mpki`) or
/// as a share of cycles.
///
/// Counters see demand accesses: misses that the prefetcher covers are not counted, as on real cores
/// where they are a separate event.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CounterRates {
    /// Instructions per cycle.
    pub ipc: f64,
    /// Loads per 1,000 instructions.
    pub load_pki: f64,
    /// Stores per 1,000 instructions.
    pub store_pki: f64,
    /// Branches per 1,000 instructions.
    pub branch_pki: f64,
    /// Floating-point and SIMD operations per 1,000 instructions.
    pub fp_simd_pki: f64,
    /// Integer multiplications and divisions per 1,000 instructions.
    pub int_mul_div_pki: f64,
    /// Mispredicted branches per 1,000 instructions.
    pub branch_mpki: f64,
    /// L1 instruction cache misses per 1,000 instructions.
    pub l1i_mpki: f64,
    /// L1 data cache misses per 1,000 instructions, loads and stores.
    pub l1d_mpki: f64,
    /// L2 accesses per 1,000 instructions: misses of both L1 caches.
    pub l2_access_pki: f64,
    /// L2 misses per 1,000 instructions.
    pub l2_mpki: f64,
    /// Share of cycles lost by mispredicted branches.
    pub stall_branch_share: f64,
    /// Share of cycles in which the front end waits for instructions.
    pub stall_fetch_share: f64,
    /// Share of cycles in which the core waits for data from the L2.
    pub stall_l2_share: f64,
    /// Share of cycles in which the core waits for memory.
    pub stall_memory_share: f64,
}

/// Counter rates of a profile on a core at a frequency in MHz.
///
/// Pure: a simulator multiplies them by the instructions that a thread retired.
pub fn counters(profile: &Profile, core: &CoreParams, mhz: f64) -> CounterRates {
    let stack = cpi_stack(profile, core, mhz);
    let cpi = stack.total();
    let misses = Misses::of(profile, core);
    let demanded = 1.0 - misses.covered;
    let l1d_mpki = 1000.0 * (misses.l1d_read * demanded + misses.l1d_write);
    let l1i_mpki = 1000.0 * misses.l1i;
    CounterRates {
        ipc: 1.0 / cpi,
        load_pki: 1000.0 * profile.load,
        store_pki: 1000.0 * profile.store,
        branch_pki: 1000.0 * profile.branch,
        fp_simd_pki: 1000.0 * profile.fp_simd,
        int_mul_div_pki: 1000.0 * profile.int_mul_div,
        branch_mpki: profile.branch_mpki,
        l1i_mpki,
        l1d_mpki,
        l2_access_pki: l1i_mpki + l1d_mpki,
        l2_mpki: 1000.0 * (misses.l2_read * demanded + misses.l2_write),
        stall_branch_share: stack.branch / cpi,
        stall_fetch_share: stack.fetch / cpi,
        stall_l2_share: stack.l2 / cpi,
        stall_memory_share: stack.memory / cpi,
    }
}
