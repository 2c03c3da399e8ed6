//! The frequencies of a cluster and how to choose one.

use std::ops::Range;

use ampsched_model::Ns;

/// Cores that share a clock: what a governor knows of them beforehand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrequencyDomain {
    /// Frequencies in MHz, ascending; at least one.
    pub freqs_mhz: Vec<u32>,
    /// Number of cores.
    pub cores: usize,
    /// Capacity of each core at the highest frequency, 1 to 1024; 1024 is the machine's fastest core.
    pub capacity: u32,
    /// How long a change of the frequency takes in ns; 0 if not known.
    pub transition_ns: Ns,
    /// Period of the scheduler's tick in ns.
    pub tick_ns: Ns,
}

/// Least and greatest allowed frequency, both of the domain (`scaling_min_freq`, `scaling_max_freq`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Least allowed frequency in MHz.
    pub min_mhz: u32,
    /// Greatest allowed frequency in MHz.
    pub max_mhz: u32,
}

/// Which frequency stands for a wanted one that the cluster does not have (include/linux/cpufreq.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Round {
    /// The lowest that is not below (`CPUFREQ_RELATION_L`).
    Up,
    /// The highest that is not above (`CPUFREQ_RELATION_H`).
    Down,
    /// The nearest, of two the lower (`CPUFREQ_RELATION_C`).
    Nearest,
}

/// Longest and default delay between two changes (Linux 6.6, drivers/cpufreq/cpufreq.c,
/// `cpufreq_policy_transition_delay_us`).
const DELAY_NS_MAX: Ns = 10_000_000;
const DELAY_NS_DEFAULT: Ns = 1_000_000;
/// The delay in latencies (`LATENCY_MULTIPLIER`).
const LATENCIES: Ns = 1000;

impl FrequencyDomain {
    /// Lowest frequency in MHz.
    pub fn min_mhz(&self) -> u32 {
        self.freqs_mhz[0]
    }

    /// Highest frequency in MHz.
    pub fn max_mhz(&self) -> u32 {
        self.freqs_mhz[self.freqs_mhz.len() - 1]
    }

    /// All frequencies allowed.
    pub fn limits(&self) -> Limits {
        Limits { min_mhz: self.min_mhz(), max_mhz: self.max_mhz() }
    }

    /// How long governors wait by default from one change to the next: 1000 times as long as a change
    /// takes, at most 10 ms; 1 ms if that is not known (`cpufreq_policy_transition_delay_us`, Linux 4.14 to
    /// 6.8; before, there was no upper limit; later it is 2 ms, and since 6.12 the delay is one and a half
    /// times as long as a change takes).
    pub fn transition_delay_ns(&self) -> Ns {
        match self.transition_ns / 1000 * 1000 {
            0 => DELAY_NS_DEFAULT,
            latency_ns => (latency_ns * LATENCIES).min(DELAY_NS_MAX),
        }
    }

    /// The allowed frequency in MHz for a wanted one in kHz. Governors count in kHz, as the kernel does, so
    /// that they round alike.
    pub(super) fn resolve(&self, khz: u64, round: Round, limits: Limits) -> u32 {
        let allowed = &self.freqs_mhz[self.allowed(limits)];
        let above = allowed.partition_point(|&mhz| in_khz(mhz) < khz);
        let not_below = allowed[above.min(allowed.len() - 1)];
        let not_above = match allowed.get(above) {
            Some(&mhz) if in_khz(mhz) == khz => mhz,
            _ => allowed[above.saturating_sub(1)],
        };
        match round {
            Round::Up => not_below,
            Round::Down => not_above,
            Round::Nearest if in_khz(not_below).abs_diff(khz) < in_khz(not_above).abs_diff(khz) => {
                not_below
            }
            Round::Nearest => not_above,
        }
    }

    /// The present frequency, or the nearest to it that the limits allow.
    pub(super) fn keep(&self, mhz: u32, limits: Limits) -> u32 {
        self.resolve(in_khz(mhz), Round::Nearest, limits)
    }

    /// Positions of the frequencies within the limits: at least one.
    fn allowed(&self, limits: Limits) -> Range<usize> {
        let first = self.freqs_mhz.partition_point(|&mhz| mhz < limits.min_mhz);
        let first = first.min(self.freqs_mhz.len() - 1);
        let end = self.freqs_mhz.partition_point(|&mhz| mhz <= limits.max_mhz);
        first..end.max(first + 1)
    }
}

/// MHz in kHz.
pub(super) fn in_khz(mhz: u32) -> u64 {
    u64::from(mhz) * 1000
}

#[cfg(test)]
mod tests {
    use super::super::testing::domain;
    use super::*;

    fn resolve(khz: u64, min_mhz: u32, max_mhz: u32) -> [u32; 3] {
        let limits = Limits { min_mhz, max_mhz };
        let domain = domain(&[200, 300, 500, 1000], 1);
        [Round::Up, Round::Down, Round::Nearest].map(|round| domain.resolve(khz, round, limits))
    }

    #[test]
    fn a_wanted_frequency_is_rounded_up_down_or_to_the_nearest() {
        assert_eq!(resolve(300_000, 200, 1000), [300, 300, 300]);
        assert_eq!(resolve(300_001, 200, 1000), [500, 300, 300]);
        assert_eq!(resolve(400_000, 200, 1000), [500, 300, 300], "the lower of two");
        assert_eq!(resolve(400_001, 200, 1000), [500, 300, 500]);
        assert_eq!(resolve(0, 200, 1000), [200, 200, 200]);
        assert_eq!(resolve(u64::MAX, 200, 1000), [1000, 1000, 1000]);
    }

    #[test]
    fn limits_come_first() {
        assert_eq!(resolve(1_000_000, 300, 500), [500, 500, 500]);
        assert_eq!(resolve(0, 300, 500), [300, 300, 300]);
        assert_eq!(resolve(450_000, 300, 300), [300, 300, 300]);
        assert_eq!(resolve(450_000, 2000, 100), [1000, 1000, 1000], "limits that allow nothing");
    }

    #[test]
    fn the_delay_between_changes_follows_from_the_latency() {
        let delay_us = |transition_ns| {
            FrequencyDomain { transition_ns, ..domain(&[1000], 1) }.transition_delay_ns() / 1000
        };
        assert_eq!(
            [0, 999, 1_000, 5_500, 100_000].map(delay_us),
            [1_000, 1_000, 1_000, 5_000, 10_000]
        );
    }
}
