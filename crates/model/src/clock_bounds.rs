//! Bounds of clusters' clocks, as `scaling_min_freq` and `scaling_max_freq` set them.

use crate::{Cluster, Opp};

/// Bounds of a cluster's clock, both operating points of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockBounds {
    /// Lowest frequency in MHz.
    pub min_mhz: u32,
    /// Highest frequency in MHz.
    pub max_mhz: u32,
}

/// Bounds between which a clock of a traced machine was held: a recording's word to who replays it there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeldClock {
    /// Kind of the cores, such as `cortex-a55`; empty if not known.
    pub kind: String,
    /// How many cores have that clock.
    pub cores: usize,
    /// Lowest frequency in kHz, if it is known.
    pub min_khz: Option<u32>,
    /// Highest frequency in kHz, if it is known.
    pub max_khz: Option<u32>,
}

impl Cluster {
    /// The highest operating point that its bounds allow, as an index.
    pub fn highest_opp(&self) -> usize {
        let highest_mhz = self.bounds.map_or(u32::MAX, |bounds| bounds.max_mhz);
        self.opps.partition_point(|opp| opp.mhz <= highest_mhz).saturating_sub(1)
    }

    /// Bounds the clock: to the lowest operating point that is not below `min_mhz` and the highest that is not above
    /// `max_mhz` (drivers/cpufreq/cpufreq.c, `cpufreq_set_policy`: `CPUFREQ_RELATION_L` and `CPUFREQ_RELATION_H`).
    ///
    /// Points below are gone: nobody can go there, and energy models begin where the clock does (kernel/power/
    /// energy_model.c since 6.13, `min_perf_state`). Points above stay, as capacities are those at the highest.
    pub(crate) fn bound(
        &mut self,
        min_mhz: Option<u32>,
        max_mhz: Option<u32>,
    ) -> Result<(), String> {
        let first = min_mhz.map_or(0, |mhz| self.opps.partition_point(|opp| opp.mhz < mhz));
        let end =
            max_mhz.map_or(self.opps.len(), |mhz| self.opps.partition_point(|opp| opp.mhz <= mhz));
        if first >= end {
            let points: Vec<String> = self.opps.iter().map(|opp| opp.mhz.to_string()).collect();
            return Err(format!(
                "cluster {} has no frequency{}{}: they are {} MHz",
                self.name,
                min_mhz.map_or(String::new(), |mhz| format!(" from {mhz} MHz on")),
                max_mhz.map_or(String::new(), |mhz| format!(" up to {mhz} MHz")),
                points.join(", ")
            ));
        }
        let mhz = |opp: &Opp| opp.mhz;
        self.bounds = Some(ClockBounds {
            min_mhz: mhz(&self.opps[first]),
            max_mhz: mhz(&self.opps[end - 1]),
        });
        self.opps.drain(..first);
        let power = &mut self.power;
        power.points.drain(..first.min(power.points.len()));
        power.energy_model.drain(..first.min(power.energy_model.len()));
        Ok(())
    }
}
