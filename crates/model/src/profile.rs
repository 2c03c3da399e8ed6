//! Behaviour profiles: what a piece of code does, apart from the core that runs it.

/// How a piece of code behaves, per instruction, whichever core runs it.
///
/// Rates per 1,000 instructions (`_pki`, `_mpki`); shares are fractions of all instructions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// Name, such as `fft` or `dedup.compress`.
    pub name: String,
    /// Where the numbers come from.
    pub source: String,
    /// Micro-operations per instruction.
    pub uops_per_instruction: f64,
    /// Cycles per instruction of a 3-wide out-of-order core with perfect caches and branch prediction.
    pub cpi_core_big: f64,
    /// Cycles per instruction of a 2-wide in-order core with perfect caches and branch prediction.
    pub cpi_core_little: f64,
    /// Share of loads.
    pub load: f64,
    /// Share of stores.
    pub store: f64,
    /// Share of branches (conditional, indirect, calls, returns).
    pub branch: f64,
    /// Share of floating-point and SIMD operations.
    pub fp_simd: f64,
    /// Share of single-precision additions and multiplications.
    pub fp_single: f64,
    /// Share of double-precision additions and multiplications.
    pub fp_double: f64,
    /// Share of floating-point divisions and square roots.
    pub fp_div: f64,
    /// Share of integer multiplications and divisions.
    pub int_mul_div: f64,
    /// Branch mispredictions per 1,000 instructions.
    pub branch_mpki: f64,
    /// L1 instruction cache misses per 1,000 instructions.
    pub l1i_mpki: f64,
    /// L1 data cache misses per 1,000 instructions, loads and stores.
    pub l1d_mpki: f64,
    /// The part of `l1d_mpki` that stores cause.
    pub l1d_write_mpki: f64,
    /// Misses of a 512 KiB L2 per 1,000 instructions: loads, stores and instruction fetches.
    pub l2_512k_mpki: f64,
    /// The part of `l2_512k_mpki` that stores cause.
    pub l2_512k_write_mpki: f64,
    /// Misses of a 2 MiB L2 per 1,000 instructions: loads, stores and instruction fetches.
    pub l2_2m_mpki: f64,
    /// The part of `l2_2m_mpki` that stores cause.
    pub l2_2m_write_mpki: f64,
    /// Share of load misses that a perfect stride prefetcher would cover, 0..=1.
    pub prefetchable: f64,
    /// Independent operations per cycle (unit latency, unlimited width) within a window of 40.
    pub ilp_40: f64,
    /// Independent operations per cycle (unit latency, unlimited width) within a window of 128.
    pub ilp_128: f64,
    /// Share of loads whose first reader comes at most one instruction later.
    pub load_use_1: f64,
    /// Share of loads whose first reader comes at most three instructions later.
    pub load_use_3: f64,
    /// Measured big/little speed ratio at the machine's maximum frequencies that overrides the model
    /// on the slower classes, if the user stated one.
    pub measured_ratio: Option<f64>,
    /// How many times the cycles of the core model it takes, on every core, if the user stated it.
    pub cycles_factor: Option<f64>,
    /// What it uses again and again in KiB, if the user stated it: what has to get into caches after a migration.
    pub working_set_kib: Option<f64>,
}

/// Named profiles.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProfileLibrary {
    /// The profiles, in file order.
    pub profiles: Vec<Profile>,
}

impl ProfileLibrary {
    /// The profile of that name.
    pub fn find(&self, name: &str) -> Option<&Profile> {
        self.profiles.iter().find(|profile| profile.name == name)
    }
}
