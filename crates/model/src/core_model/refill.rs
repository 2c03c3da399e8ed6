//! What it takes to get a working set into the caches of another core.

use super::demand::LINE_BYTES;
use super::miss_cycles;
use crate::{CoreParams, Ns, Profile};

/// Time that a thread loses after a migration until its caches are as full as before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refill {
    /// From a core of the same cluster: the L1 is filled from the L2.
    pub same_cluster_ns: Ns,
    /// From another cluster: the L2 is filled from memory, too.
    pub cross_cluster_ns: Ns,
}

/// What refilling takes on a core at a frequency in MHz; none if the profile's working set is not known.
///
/// Each line of a working set that fits into a cache misses it once, for the cost of a miss ([`miss_cycles`]): the cost
/// grows with the working set until that exceeds the cache, as Li, Ding and Shen measured ("Quantifying the cost of
/// context switch", ExpCS 2007). Of a greater one less is lost, as it missed before, too; see `lost_kib`. Lines that
/// prefetchers would foresee, instructions, and what a thread still finds where it was are not considered.
pub fn refill(profile: &Profile, core: &CoreParams, mhz: f64) -> Option<Refill> {
    let kib = profile.working_set_kib?;
    let miss = miss_cycles(profile, core, mhz);
    let lines = |cache_kib: f64| lost_kib(kib, cache_kib) * 1024.0 / LINE_BYTES;
    let l1_cycles = lines(core.l1d_kib) * miss.l2;
    let l2_cycles = lines(core.l2_kib) * miss.memory;
    let ns = |cycles: f64| (cycles * 1000.0 / mhz).round() as Ns;
    Some(Refill { same_cluster_ns: ns(l1_cycles), cross_cluster_ns: ns(l1_cycles + l2_cycles) })
}

/// How much of a working set misses an empty cache that would not miss a full one, both in KiB.
///
/// All of it if it fits. Else, if it is used at random: while `k` of `n` lines are in the cache, which holds `c`, a use
/// hits with probability `k / n` instead of `c / n`, and a miss adds one: the integral of `(c - k) / (n - k)` over `k`.
fn lost_kib(set_kib: f64, cache_kib: f64) -> f64 {
    let over_kib = set_kib - cache_kib;
    if over_kib <= 0.0 {
        return set_kib;
    }
    (cache_kib - over_kib * (set_kib / over_kib).ln()).clamp(0.0, cache_kib)
}
