//! Linux's `userspace` governor.

use super::domain::{Round, in_khz};
use super::{ClusterSample, FrequencyDomain, Governor, GovernorInfo, Pace};
use crate::ParamInfo;

/// The registry's row.
pub static INFO: GovernorInfo = GovernorInfo {
    name: "userspace",
    summary: "one frequency that the user chooses",
    source: "Linux 6.6 drivers/cpufreq/cpufreq_userspace.c, Documentation/admin-guide/pm/cpufreq.rst",
    documentation: "\
**Purpose.** Experiments at a fixed frequency, as the papers on big.LITTLE boards make them.

**Algorithm.** The lowest frequency that is not below `mhz`, or the highest if none is; within the limits, and back at `mhz` when they allow it again. \
Without `mhz` the cluster keeps the frequency that it has.

**Constants.** `CPUFREQ_RELATION_L` (`cpufreq_set`).

**Example.** 200, 300 ... 1400 MHz and `mhz=850`: 900 MHz. `mhz=2000`: 1400 MHz.

**Limits.** One number for all clusters that the governor is used for.",
    params: &[ParamInfo::number(
        "mhz",
        0.0,
        0.0,
        100_000.0,
        "frequency (scaling_setspeed); 0 = the present one",
    )],
    conflict: |_| None,
    reads_util: false,
    build: |params, domain| {
        let mhz = params.whole("mhz");
        Box::new(Userspace { domain: domain.clone(), mhz: (mhz > 0).then_some(mhz) })
    },
};

/// The `userspace` governor.
struct Userspace {
    domain: FrequencyDomain,
    mhz: Option<u32>,
}

impl Governor for Userspace {
    fn pace(&self) -> Option<Pace> {
        None
    }

    fn next_mhz(&mut self, sample: &ClusterSample) -> u32 {
        let mhz = *self.mhz.get_or_insert(sample.mhz);
        self.domain.resolve(in_khz(mhz), Round::Up, sample.limits)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Cluster;

    #[test]
    fn the_chosen_frequency_holds_within_the_limits() {
        for (governor, expected) in
            [("userspace:mhz=850", 900), ("userspace:mhz=2000", 1400), ("userspace", 1400)]
        {
            let mut cluster = Cluster::little(governor);
            assert_eq!(cluster.start(), expected, "{governor}");
            cluster.limit(300, 700);
            assert_eq!(cluster.look(10.0, &[100.0]), 700, "{governor}");
            cluster.limit(200, 1400);
            assert_eq!(cluster.look(10.0, &[0.0]), expected, "{governor}");
        }
    }
}
