//! Cache misses and what they cost.

use super::issue::window_ilp;
use super::{CoreParams, Pipeline};
use crate::Profile;

/// The sizes of L2 cache that the profiles were measured with, in KiB.
const L2_MEASURED_KIB: [f64; 2] = [512.0, 2048.0];
/// The size of the L1 caches that the profiles were measured with, in KiB.
const L1_MEASURED_KIB: f64 = 32.0;
/// Misses fall with a root of the cache's size: the square-root rule (Hartstein, Srinivasan, Puzak and
/// Emma, Computing Frontiers 2006). It stands in where nothing is measured.
const ROOT_RULE: f64 = 0.5;
/// Share of instruction misses that go to the next line, which every prefetcher foresees. One-block
/// lookahead removes 50 to 90 % of them (Smith, ACM Computing Surveys 14, 1982); the lower end.
const SEQUENTIAL_FETCH_SHARE: f64 = 0.5;

/// Misses per instruction on a core, before prefetching.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Misses {
    /// Instruction fetches that miss the L1.
    pub l1i: f64,
    /// Loads that miss the L1.
    pub l1d_read: f64,
    /// Stores that miss the L1.
    pub l1d_write: f64,
    /// Loads and fetches that miss the L2.
    pub l2_read: f64,
    /// Stores that miss the L2.
    pub l2_write: f64,
    /// Share of load misses that the prefetcher covers.
    pub covered: f64,
}

impl Misses {
    /// The misses of a profile in the caches of a core.
    pub fn of(profile: &Profile, core: &CoreParams) -> Misses {
        let l1d = (L1_MEASURED_KIB / core.l1d_kib).powf(ROOT_RULE) / 1000.0;
        let l1i = (L1_MEASURED_KIB / core.l1i_kib).powf(ROOT_RULE) / 1000.0 * profile.l1i_mpki;
        let l1d_read = l1d * (profile.l1d_mpki - profile.l1d_write_mpki);
        let l1d_write = l1d * profile.l1d_write_mpki;
        let at = |mpki_512k, mpki_2m| l2_mpki(mpki_512k, mpki_2m, core.l2_kib) / 1000.0;
        let l2_read = at(
            profile.l2_512k_mpki - profile.l2_512k_write_mpki,
            profile.l2_2m_mpki - profile.l2_2m_write_mpki,
        );
        let l2_write = at(profile.l2_512k_write_mpki, profile.l2_2m_write_mpki);
        Misses {
            l1i,
            l1d_read,
            l1d_write,
            // A larger L1 may leave fewer misses than the L2 was measured to have.
            l2_read: l2_read.min(l1d_read + l1i),
            l2_write: l2_write.min(l1d_write),
            covered: profile.prefetchable * core.prefetch_share,
        }
    }

    /// Loads and fetches that miss the L2 and that no prefetch foresaw.
    pub fn demand(&self) -> f64 {
        self.l2_read * (1.0 - self.covered)
    }
}

/// Misses of an L2 of a size: linear in the logarithm of the size between the two measured sizes;
/// beyond them a power law with the measured exponent, at most the square-root rule.
fn l2_mpki(mpki_512k: f64, mpki_2m: f64, kib: f64) -> f64 {
    let [small, large] = L2_MEASURED_KIB;
    let exponent = if mpki_2m > 0.0 {
        ((mpki_512k / mpki_2m).ln() / (large / small).ln()).clamp(0.0, ROOT_RULE)
    } else {
        ROOT_RULE
    };
    if kib < small {
        mpki_512k * (small / kib).powf(exponent)
    } else if kib > large {
        mpki_2m * (large / kib).powf(exponent)
    } else {
        let position = (kib / small).ln() / (large / small).ln();
        mpki_512k + (mpki_2m - mpki_512k) * position
    }
}

/// Cycles of fetches that missed the L1: the front end runs dry, on any core.
pub(super) fn fetch_cycles(misses: &Misses, core: &CoreParams) -> f64 {
    misses.l1i * (1.0 - SEQUENTIAL_FETCH_SHARE * core.prefetch_share) * core.l2_cycles
}

/// Cycles of loads that missed the L1. Stores wait in a buffer and cost nothing here.
pub(super) fn l2_cycles(
    pipeline: Pipeline,
    profile: &Profile,
    misses: &Misses,
    core: &CoreParams,
) -> f64 {
    misses.l1d_read * (1.0 - misses.covered) * exposed_l2_cycles(pipeline, profile, core)
}

/// Cycles that one load costs that missed the L1 and that no prefetch foresaw, behind its L1 latency.
fn exposed_l2_cycles(pipeline: Pipeline, profile: &Profile, core: &CoreParams) -> f64 {
    let exposed = match pipeline {
        // The core stalls at the first reader; readers further away find the data there.
        Pipeline::InOrder => profile.load_use_3,
        // The window fills while it waits; what remains lengthens the chains of the data flow.
        Pipeline::OutOfOrder => {
            let fill_cycles = core.window / core.width;
            let beyond_window = 1.0 - fill_cycles / core.l2_cycles;
            beyond_window.max(1.0 / window_ilp(profile, core.window)).min(1.0)
        }
    };
    core.l2_cycles * exposed
}

/// What one access costs that misses caches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MissCycles {
    /// Cycles of a load that misses the L1 and hits the L2.
    pub l2: f64,
    /// Cycles of a load that misses the L2, beside those.
    pub memory: f64,
    /// Cycles that a line from memory takes at least, as no more of them can be under way: what a store
    /// or a prefetched line costs.
    pub line: f64,
}

impl MissCycles {
    /// Every part is the mean of that part; 0 of none.
    pub fn mean(all: &[MissCycles]) -> MissCycles {
        let mean = |part: fn(&MissCycles) -> f64| {
            all.iter().map(part).sum::<f64>() / (all.len() as f64).max(1.0)
        };
        MissCycles {
            l2: mean(|each| each.l2),
            memory: mean(|each| each.memory),
            line: mean(|each| each.line),
        }
    }
}

/// What one access costs that misses caches, in code that behaves like a profile, on a core at a
/// frequency in MHz.
///
/// The parts of the core model for one miss instead of the profile's misses. What no prefetch foresaw.
pub fn miss_cycles(profile: &Profile, core: &CoreParams, mhz: f64) -> MissCycles {
    let latency_cycles = core.memory_ns * mhz / 1000.0;
    let demand = Misses::of(profile, core).demand();
    MissCycles {
        l2: core.cycles_factor * exposed_l2_cycles(core.pipeline, profile, core),
        memory: core.cycles_factor * latency_cycles / overlap(core.pipeline, profile, core, demand),
        line: core.cycles_factor * latency_cycles / core.mlp_max.max(1.0),
    }
}

/// Cycles of misses to memory: as long as the latency of what cannot overlap, and as long as the
/// outstanding misses need for all lines, prefetched and stored ones included.
pub(super) fn memory_cycles(
    pipeline: Pipeline,
    profile: &Profile,
    misses: &Misses,
    core: &CoreParams,
    mhz: f64,
) -> f64 {
    let latency_cycles = core.memory_ns * mhz / 1000.0;
    let demand = misses.demand();
    let latency_bound = demand * latency_cycles / overlap(pipeline, profile, core, demand);
    // Little's law: lines per time = outstanding lines / latency.
    let lines = misses.l2_read + misses.l2_write;
    let throughput_bound = lines * latency_cycles / core.mlp_max;
    latency_bound.max(throughput_bound)
}

/// How many demand misses are outstanding together, at least 1.
pub(super) fn overlap(
    pipeline: Pipeline,
    profile: &Profile,
    core: &CoreParams,
    demand: f64,
) -> f64 {
    let together = match pipeline {
        // Until its first reader a miss does not stall, and another may start.
        Pipeline::InOrder => 2.0 - profile.load_use_3,
        // The other misses in the window, but for those that depend on the first: of operations
        // in the window about one in ILP lies on the same chain.
        Pipeline::OutOfOrder => {
            let independent = 1.0 - 1.0 / window_ilp(profile, core.window);
            1.0 + core.window * demand * independent
        }
    };
    together.clamp(1.0, core.mlp_max.max(1.0))
}
