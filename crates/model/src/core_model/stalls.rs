//! What a core's counters show of waiting for memory, and of what is near what in the code: the inputs of
//! PIE (Van Craeynest, Jaleel, Eeckhout, Narvaez and Emer, ISCA 2012) and of bias scheduling.

use super::memory::{Misses, overlap};
use super::{CoreParams, stack_and_pipeline};
use crate::{Cluster, Machine, Profile, machine_speed_ips};

/// The window in which operations were looked at when the profiles were measured, in operations; nothing
/// is known of what is further away.
const WINDOW_MEASURED: f64 = 128.0;

/// Stalls of a thread on a core and what predicts them on another.
///
/// Cycles by cause and misses are common PMU events, outstanding misses are on some cores (occupancy of
/// the miss queue). Distances between operations need the counters that PIE proposes; no core on the
/// market has them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StallCounters {
    /// Cycles per instruction without those of `cpi_memory`.
    pub cpi_base: f64,
    /// Cycles per instruction in which the core waits for memory behind its last cache.
    pub cpi_memory: f64,
    /// Loads and fetches per instruction that miss the last cache and that no prefetch foresaw.
    pub llc_mpi: f64,
    /// How many of these misses are outstanding together, at least 1.
    pub mlp: f64,
    /// Share of instructions whose nearest operand comes from the instruction before, from the one before
    /// that, and from the third before.
    pub dependence: [f64; 3],
    /// Mean number of instructions from a load to the first that reads its result, at least 1.
    pub load_use_distance: f64,
}

impl StallCounters {
    /// Cycles per instruction.
    pub fn cpi(&self) -> f64 {
        self.cpi_base + self.cpi_memory
    }

    /// Share of cycles in which the core waits for memory, 0..=1.
    pub fn memory_share(&self) -> f64 {
        self.cpi_memory / self.cpi()
    }

    /// The same with both kinds of cycles scaled to a total.
    #[must_use]
    fn with_cpi(self, cpi: f64) -> Self {
        let scale = cpi / self.cpi();
        Self { cpi_base: self.cpi_base * scale, cpi_memory: self.cpi_memory * scale, ..self }
    }
}

/// Stalls of a profile on a core at a frequency in MHz.
///
/// Dependences are known only between loads and their first readers; they stand in for all. Pure: the same
/// arguments give the same bits.
pub fn stall_counters(profile: &Profile, core: &CoreParams, mhz: f64) -> StallCounters {
    let (stack, pipeline) = stack_and_pipeline(profile, core, mhz);
    let demand = Misses::of(profile, core).demand();
    let (near, nearer) = (profile.load_use_3, profile.load_use_1);
    StallCounters {
        cpi_base: stack.total() - stack.memory,
        cpi_memory: stack.memory,
        llc_mpi: demand,
        mlp: overlap(pipeline, profile, core, demand),
        // How the second and the third share what is between them is not measured.
        dependence: [nearer, (near - nearer) / 2.0, (near - nearer) / 2.0],
        load_use_distance: mean_distance(near),
    }
}

/// Stalls of a profile on a cluster of a machine at a frequency in MHz, such that cycles agree with
/// [`machine_speed_ips`].
pub fn machine_stall_counters(
    profile: &Profile,
    machine: &Machine,
    cluster: &Cluster,
    mhz: f64,
) -> StallCounters {
    let cpi = mhz * 1e6 / machine_speed_ips(profile, machine, cluster, mhz);
    stall_counters(profile, &cluster.params, mhz).with_cpi(cpi)
}

/// Mean of a geometric distribution of distances, of which a share is at most 3.
fn mean_distance(within_3: f64) -> f64 {
    let next_also = (1.0 - within_3).max(0.0).cbrt();
    (1.0 / (1.0 - next_also)).min(WINDOW_MEASURED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_of_a_geometric_distribution() {
        assert_eq!(mean_distance(1.0), 1.0);
        // Half end at each instruction: 7 of 8 within 3, 2 on average.
        assert!((mean_distance(0.875) - 2.0).abs() < 1e-12);
        assert_eq!(mean_distance(0.0), WINDOW_MEASURED);
    }
}
