//! Nice values and weights.

use ampsched_model::Ns;

/// Linux's weights of nice -20 to 19 (kernel/sched/core.c, `sched_prio_to_weight`): each step is
/// about 10 % of CPU time between two threads.
const WEIGHTS: [u32; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904,
    3906, 3121, 2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87,
    70, 56, 45, 36, 29, 23, 18, 15,
];

/// The weight of nice 0, of which virtual run time is run time.
pub(crate) const WEIGHT_ONE: u64 = 1024;

/// The weight of a nice value, cut to -20..=19.
pub fn nice_to_weight(nice: i32) -> u32 {
    WEIGHTS[(nice.clamp(-20, 19) + 20) as usize]
}

/// Run time in virtual run time.
#[inline]
pub(crate) fn to_virtual(ns: Ns, weight: u32) -> Ns {
    if u64::from(weight) == WEIGHT_ONE { ns } else { ns * WEIGHT_ONE / u64::from(weight) }
}

/// Virtual run time in run time, rounded up.
#[inline]
pub(crate) fn to_real(virtual_ns: Ns, weight: u32) -> Ns {
    if u64::from(weight) == WEIGHT_ONE {
        virtual_ns
    } else {
        (virtual_ns * u64::from(weight)).div_ceil(WEIGHT_ONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_linux_s() {
        assert_eq!([-21, -20, 0, 5, 19, 20].map(nice_to_weight), [88761, 88761, 1024, 335, 15, 15]);
    }
}
