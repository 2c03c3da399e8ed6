//! The counters of the simulator's core model.

use ampsched_model::CounterRates;

/// Number of simulated counters.
pub const SIMULATED: usize = 16;

/// Names of the simulated counters in the vocabulary, in the order of [`counts_per_instruction`].
pub const SIMULATED_COUNTERS: [&str; SIMULATED] = [
    "instructions",
    "cycles",
    "loads",
    "stores",
    "branches",
    "fp_simd_ops",
    "int_mul_div_ops",
    "branch_mispredicts",
    "l1i_misses",
    "l1d_misses",
    "l2_accesses",
    "l2_misses",
    "stall_branch_cycles",
    "stall_fetch_cycles",
    "stall_l2_cycles",
    "stall_memory_cycles",
];

/// Counts per instruction from the rates of a profile on a core.
///
/// `cycles_per_instruction` may differ from the model's if the workload states a measured ratio: the
/// shares of stalled cycles stay, their number follows.
pub fn counts_per_instruction(
    rates: &CounterRates,
    cycles_per_instruction: f64,
) -> [f64; SIMULATED] {
    let cycles = cycles_per_instruction;
    [
        1.0,
        cycles,
        rates.load_pki / 1000.0,
        rates.store_pki / 1000.0,
        rates.branch_pki / 1000.0,
        rates.fp_simd_pki / 1000.0,
        rates.int_mul_div_pki / 1000.0,
        rates.branch_mpki / 1000.0,
        rates.l1i_mpki / 1000.0,
        rates.l1d_mpki / 1000.0,
        rates.l2_access_pki / 1000.0,
        rates.l2_mpki / 1000.0,
        rates.stall_branch_share * cycles,
        rates.stall_fetch_share * cycles,
        rates.stall_l2_share * cycles,
        rates.stall_memory_share * cycles,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter_index;

    #[test]
    fn every_counter_is_in_the_vocabulary() {
        for name in SIMULATED_COUNTERS {
            assert!(counter_index(name).is_some(), "{name}");
        }
    }

    #[test]
    fn counts_follow_the_rates() {
        let rates = CounterRates {
            ipc: 0.5,
            load_pki: 250.0,
            stall_memory_share: 0.25,
            ..CounterRates::default()
        };
        let counts = counts_per_instruction(&rates, 4.0);
        let count =
            |name| counts[SIMULATED_COUNTERS.iter().position(|known| *known == name).unwrap()];
        assert_eq!((count("instructions"), count("cycles")), (1.0, 4.0));
        assert_eq!((count("loads"), count("stall_memory_cycles")), (0.25, 1.0));
    }
}
