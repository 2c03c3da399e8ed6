//! Placing by estimated energy: energy-aware scheduling of mainline Linux.

use std::cmp::{Ordering, Reverse};

use ampsched_model::{CoreId, Ns, ThreadId};

use super::{Fit, RunState, Sched};
use crate::{ClusterInfo, Witness};

/// Fixed-point 1.0 of [`CostPoint::cost`].
const COST_ONE: f64 = (1 << 20) as f64;
/// Fixed-point 1.0 of the hysteresis.
const HYSTERESIS_ONE: u64 = 1024;

/// An operating point of a cluster as energy is estimated, in whole numbers as in Linux (energy_model.c,
/// `em_compute_costs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostPoint {
    /// Work per time there, 1 to 1024, rounded down.
    pub capacity: u32,
    /// Power / capacity, in 2^-20 mW.
    pub cost: u64,
}

/// The operating points of a cluster, slowest first; none if its powers are not known.
pub fn cost_points(cluster: &ClusterInfo) -> Vec<CostPoint> {
    let points = cluster.energy_model.iter().filter(|_| cluster.has_energy_model());
    let cost = |power_mw: f64, capacity: f64| (power_mw / capacity * COST_ONE).round() as u64;
    points
        .map(|point| CostPoint {
            capacity: point.capacity as u32,
            cost: cost(point.power_mw, point.capacity),
        })
        .collect()
}

/// Energy of a cluster per time (`em_cpu_energy`) if its busiest core uses `most` and all together `sum`: of the lowest
/// operating point that has a quarter more than `most`, as the governor adds it (`sugov_effective_cpu_perf`), or what
/// is within reach.
pub(crate) fn energy(points: &[CostPoint], most: u64, sum: u64, reach: u64) -> u64 {
    let wanted = (most + most / 4).min(reach);
    let enough = points.iter().find(|point| u64::from(point.capacity) >= wanted);
    enough.or(points.last()).map_or(0, |point| point.cost * sum)
}

/// A cluster, and what is used of it without a thread for which a core is sought.
struct Estimate<'a> {
    points: &'a [CostPoint],
    capacity: u32,
    /// Utilisation of the thread.
    util: u32,
    /// The greatest utilisation of a core, and the sum.
    most: u32,
    sum: u32,
}

impl Estimate<'_> {
    /// Without the thread.
    fn before(&self) -> u64 {
        energy(self.points, self.most.into(), self.sum.into(), u64::MAX)
    }

    /// What the thread adds on a core of which so much is used, where it fits.
    fn added(&self, used: u32) -> u64 {
        let with = (used + self.util).min(self.capacity);
        let (most, sum) = (self.most.max(with), self.sum - used + with);
        // Where a faster point costs less per work, more use costs less in all.
        energy(self.points, most.into(), sum.into(), u64::MAX).saturating_sub(self.before())
    }
}

/// A core, how well it takes the thread, and what the thread adds to the energy there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Added {
    pub core: CoreId,
    pub fit: Fit,
    pub capacity: u64,
    pub energy: u64,
}

impl Added {
    /// Whether the thread is better off here: where it fits better, of slow cores on the greater one, else where it
    /// costs less.
    pub fn is_better(&self, other: &Added) -> bool {
        match (self.fit.cmp(&other.fit), self.fit) {
            (Ordering::Equal, Fit::Slow) => self.capacity > other.capacity,
            (Ordering::Equal, _) => self.energy < other.energy,
            (order, _) => order == Ordering::Greater,
        }
    }
}

/// The core to which the thread goes, of the best one, its previous one, if it may stay there, and the energy of all
/// without it. (A little saving is not worth a migration.)
fn choose(best: Added, stay: Option<Added>, total: u64, hysteresis: u32) -> CoreId {
    let Some(stay) = stay else { return best.core };
    let costs_little = stay.energy * HYSTERESIS_ONE
        <= best.energy * HYSTERESIS_ONE + (stay.energy + total) * u64::from(hysteresis);
    let are_well = [best, stay].iter().all(|core| core.fit == Fit::Well);
    if (are_well && costs_little) || !best.is_better(&stay) { stay.core } else { best.core }
}

impl Sched {
    /// [`crate::Allocator::ByEnergy`].
    pub(super) fn place_by_energy(
        &self,
        thread: ThreadId,
        waker: Option<CoreId>,
        hysteresis: u32,
        now_ns: Ns,
        witness: impl Witness,
    ) -> CoreId {
        let Some(core) = self.cheapest(thread, hysteresis, now_ns) else {
            return self.place_wake_affine(thread, waker, witness);
        };
        let previous = self.thread(thread).core;
        witness.because(|| {
            let because = match core == previous {
                true => "its previous core: no other saves enough energy",
                false => "the core where it costs the least energy",
            };
            let reason = self.why_placed(because, thread).core("previous_core", previous);
            reason.count("util", self.util_of(thread, now_ns))
        });
        core
    }

    /// The core for a thread that wakes up; none if it is to be placed as without energies.
    fn cheapest(&self, thread: ThreadId, hysteresis: u32, now_ns: Ns) -> Option<CoreId> {
        let is_new = self.thread(thread).state == RunState::New;
        if is_new || !self.knows_energy() || self.some_overutilised(now_ns) {
            return None;
        }
        let previous = Some(self.thread(thread).core).filter(|&core| self.allows(thread, core));
        let util = self.util_of(thread, now_ns);
        // Where it fits is asked with its clamps, what it costs without (fair.c, `util_fits_cpu`, `compute_energy`).
        let (min, max) = self.uclamp(thread);
        let clamps = (u64::from(min), u64::from(max));
        if util == 0 && min == 0 {
            return previous;
        }
        let (mut best, mut stay, mut total): (Option<Added>, Option<Added>, _) = (None, None, 0);
        for (cluster, points) in self.topology.clusters().iter().zip(&self.costs) {
            let used = |core: CoreId| self.core_util_without(core, thread, now_ns);
            let utils: Vec<(u32, CoreId)> =
                cluster.cores.iter().map(|&core| (used(core), core)).collect();
            let capacity = cluster.capacity();
            let most = utils.iter().map(|&(used, _)| used).max().unwrap_or(0);
            let sum = utils.iter().map(|&(used, _)| used).sum();
            let estimate = Estimate { points, capacity, util, most, sum };
            total += estimate.before();
            let fit = |used: u32| Fit::of(u64::from(used + util), clamps, capacity.into());
            let fitting = utils
                .iter()
                .filter(|&&(used, core)| self.allows(thread, core) && fit(used) > Fit::Not);
            let added = |&(used, core): &(u32, CoreId)| {
                let (fit, energy) = (fit(used), estimate.added(used));
                Added { core, fit, capacity: capacity.into(), energy }
            };
            let there = fitting.clone().find(|&&(_, core)| Some(core) == previous);
            stay = stay.or(there.map(added));
            // Where it fits best, the one with the most capacity to spare.
            let found = fitting.min_by_key(|&&(used, _)| (Reverse(fit(used)), used)).map(added);
            let is_better = |found: &Added| best.is_none_or(|best| found.is_better(&best));
            best = found.filter(is_better).or(best);
        }
        best.map(|best| choose(best, stay, total, hysteresis)).or(previous)
    }

    /// Whether the powers of all clusters are known.
    fn knows_energy(&self) -> bool {
        !self.costs.is_empty() && self.costs.iter().all(|points| !points.is_empty())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use ampsched_model::{ClassId, EnergyPoint};

    use super::*;
    use crate::sched::fits;

    fn cluster(class: u8, cores: [u16; 2], points: [(f64, f64); 3]) -> ClusterInfo {
        let point = |(capacity, power_mw)| EnergyPoint { mhz: 0, capacity, power_mw };
        ClusterInfo {
            shares_l2: false,
            class: ClassId(class),
            cores: cores.map(CoreId).to_vec(),
            freqs_mhz: vec![1, 2, 3],
            design: None,
            energy_model: points.map(point).to_vec(),
        }
    }

    /// The worked example's little and big cluster: capacities, and what busy cores draw in mW.
    pub(crate) fn clusters() -> [ClusterInfo; 2] {
        let little = cluster(0, [0, 1], [(170.0, 50.0), (341.0, 150.0), (512.0, 300.0)]);
        let big = cluster(1, [2, 3], [(341.0, 400.0), (768.0, 1000.0), (1024.0, 1700.0)]);
        [little, big]
    }

    fn points() -> [Vec<CostPoint>; 2] {
        clusters().map(|cluster| cost_points(&cluster))
    }

    fn added(core: CoreId, energy: u64) -> Added {
        Added { core, fit: Fit::Well, capacity: 1024, energy }
    }

    #[test]
    fn h34_11_what_is_asked_for_counts_before_energy() {
        let slow = |core, capacity| Added { fit: Fit::Slow, capacity, ..added(CoreId(core), 1) };
        let well = added(CoreId(3), 50);
        for hysteresis in [0, 1024] {
            let choose = |best, stay| choose(best, Some(stay), 100, hysteresis);
            assert_eq!(choose(well, slow(0, 512)), CoreId(3));
            assert_eq!(choose(slow(2, 1024), slow(0, 512)), CoreId(2));
            assert_eq!(choose(slow(1, 512), slow(0, 512)), CoreId(0));
        }
    }

    /// In mW.
    fn hundredths(energy: u64) -> f64 {
        (energy as f64 / COST_ONE * 100.0).round() / 100.0
    }

    #[test]
    fn energies_are_those_of_the_worked_example() {
        let [little, big] = points();
        let little = Estimate { points: &little, capacity: 512, util: 200, most: 400, sum: 500 };
        let big = Estimate { points: &big, capacity: 1024, util: 200, most: 600, sum: 1100 };
        assert_eq!([&little, &big].map(|of| hundredths(of.before())), [292.97, 1432.29]);
        assert!(!fits(400_u32 + 200, 512_u32), "600 does not fit into 512");
        assert_eq!(hundredths(little.before() + little.added(100)), 410.16);
        assert_eq!(hundredths(little.added(100)), 117.19);
        assert_eq!(hundredths(big.before() + big.added(500)), 2158.20);
        assert_eq!(hundredths(big.added(500)), 725.91);
        let total = little.before() + big.before();
        let (best, stay) = (added(CoreId(1), little.added(100)), added(CoreId(3), big.added(500)));
        let choose =
            |thousandths| choose(best, Some(stay), total, (1.024 * f64::from(thousandths)) as u32);
        assert_eq!(choose(62), CoreId(1));
        // 608.72 / 2451.17 = 0.2483.
        assert_eq!([choose(247), choose(250)], [CoreId(1), CoreId(3)]);
    }

    #[test]
    fn of_equal_cores_the_previous_one_even_if_any_saving_counts() {
        let (best, stay) = (added(CoreId(0), 7), added(CoreId(1), 7));
        assert_eq!(choose(best, Some(stay), 100, 0), CoreId(1));
        assert_eq!(choose(best, None, 100, 0), CoreId(0));
    }

    #[test]
    fn a_thread_adds_at_least_nothing_where_faster_points_cost_less() {
        let points = [(100, 9), (1024, 1)].map(|(capacity, cost)| CostPoint { capacity, cost });
        let estimate = Estimate { points: &points, capacity: 1024, util: 50, most: 70, sum: 70 };
        assert_eq!((estimate.before(), estimate.added(70)), (630, 0));
    }

    #[test]
    fn without_powers_nothing_is_known() {
        assert_eq!(cost_points(&cluster(0, [0, 1], [(1.0, 0.0); 3])), []);
    }
}
