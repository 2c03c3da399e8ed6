//! Linux's `powersave` governor.

use super::{ClusterSample, Governor, GovernorInfo, Pace};

/// The registry's row.
pub static INFO: GovernorInfo = GovernorInfo {
    name: "powersave",
    summary: "always the lowest frequency that is allowed",
    source: "Linux 6.6 drivers/cpufreq/cpufreq_powersave.c, Documentation/admin-guide/pm/cpufreq.rst",
    documentation: "\
**Purpose.** The least power while running. Work takes longer, so it need not be the least energy.

**Algorithm.** The lowest frequency within the limits, asked for once and whenever the limits change.

**Constants.** None.

**Example.** 200 to 1400 MHz: 200 MHz.

**Limits.** None of its own.",
    params: &[],
    conflict: |_| None,
    reads_util: false,
    build: |_, _| Box::new(Powersave),
};

/// The `powersave` governor.
struct Powersave;

impl Governor for Powersave {
    fn pace(&self) -> Option<Pace> {
        None
    }

    fn next_mhz(&mut self, sample: &ClusterSample) -> u32 {
        sample.limits.min_mhz
    }
}
