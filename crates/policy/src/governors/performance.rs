//! Linux's `performance` governor.

use super::{ClusterSample, Governor, GovernorInfo, Pace};

/// The registry's row.
pub static INFO: GovernorInfo = GovernorInfo {
    name: "performance",
    summary: "always the highest frequency that is allowed",
    source: "Linux 6.6 drivers/cpufreq/cpufreq_performance.c, Documentation/admin-guide/pm/cpufreq.rst",
    documentation: "\
**Purpose.** The best performance that the chip can hold, whatever it costs; the yardstick for the others.

**Algorithm.** The highest frequency within the limits, asked for once and whenever the limits change.

**Constants.** None.

**Example.** 200 to 1400 MHz: 1400 MHz. While a thermal limit allows 1000 MHz: 1000 MHz.

**Limits.** None of its own.",
    params: &[],
    conflict: |_| None,
    reads_util: false,
    build: |_, _| Box::new(Performance),
};

/// The `performance` governor.
struct Performance;

impl Governor for Performance {
    fn pace(&self) -> Option<Pace> {
        None
    }

    fn next_mhz(&mut self, sample: &ClusterSample) -> u32 {
        sample.limits.max_mhz
    }
}
