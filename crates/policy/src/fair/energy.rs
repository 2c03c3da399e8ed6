//! Where a waking thread costs the least energy
//! (fair.c 6.18, `find_energy_efficient_cpu`; include/linux/energy_model.h, `em_cpu_energy`).

use ampsched_model::CoreId;

use super::Fair;
use super::state::EntityId;
use crate::sched::{Added, Fit, energy};
use crate::{CostPoint, Sched, Topology, cost_points};

/// Cores of one clock, with what they cost (`struct perf_domain`).
#[derive(Clone, Debug)]
pub(super) struct PerfDomain {
    cores: Vec<usize>,
    points: Vec<CostPoint>,
}

/// A core, how well it takes a thread, and what it then has to spare.
#[derive(Clone, Copy)]
struct Room {
    core: usize,
    fit: Fit,
    left: u64,
}

impl PerfDomain {
    /// Those of a machine; none unless all of its clusters have an energy model.
    pub fn all(topology: &Topology) -> Vec<PerfDomain> {
        let of = |cluster: &crate::ClusterInfo| PerfDomain {
            cores: cluster.cores.iter().map(|core| core.index()).collect(),
            points: cost_points(cluster),
        };
        let all: Vec<_> = topology.clusters().iter().map(of).collect();
        if all.iter().all(|domain| !domain.points.is_empty()) { all } else { Vec::new() }
    }
}

impl Fair {
    /// Whether threads are placed by energy at all (`sched_energy_enabled`).
    pub(super) fn uses_energy(&self) -> bool {
        self.kernel.energy_aware && self.domains.is_asymmetric && !self.perf_domains.is_empty()
    }

    /// The core for a waking thread; none: energy says nothing.
    pub(super) fn cheapest_core(
        &mut self,
        sched: &Sched,
        id: EntityId,
        last: usize,
    ) -> Option<usize> {
        self.sync(id);
        let asymmetric = self.domains.asymmetric[last]?;
        if self.util_of(id) == 0 && self.clamps(id).0 == 0 {
            return Some(last);
        }
        let (mut best, mut stay): (Option<Added>, Option<Added>) = (None, None);
        for number in 0..self.perf_domains.len() {
            let (roomiest, previous) = self.candidates_in(sched, number, id, last, asymmetric);
            if roomiest.is_none() && previous.is_none() {
                continue;
            }
            let base = self.energy_with(number, id, None);
            if let Some(room) = previous {
                stay = Some(self.added(number, id, room, base)?);
            }
            let is_roomier = |room: &Room| previous.is_none_or(|last| room.left > last.left);
            let Some(room) = roomiest.filter(is_roomier) else { continue };
            // A worse one is not even reckoned with.
            if best.is_some_and(|best: Added| room.fit < best.fit) {
                continue;
            }
            let added = self.added(number, id, room, base)?;
            if best.is_none_or(|best| added.is_better(&best)) {
                best = Some(added);
            }
        }
        match (best, stay) {
            (Some(best), Some(stay)) if !best.is_better(&stay) => Some(last),
            (Some(best), _) => Some(best.core.index()),
            (None, _) => Some(last),
        }
    }

    /// Of the cores of a cluster where a thread fits, the one with most to spare, and its last one.
    fn candidates_in(
        &self,
        sched: &Sched,
        domain: usize,
        id: EntityId,
        last: usize,
        asymmetric: usize,
    ) -> (Option<Room>, Option<Room>) {
        let clamps = self.clamps(id);
        let (mut roomiest, mut previous): (Option<Room>, Option<Room>) = (None, None);
        for &core in &self.perf_domains[domain].cores {
            let is_reached = self.domains.all[asymmetric].cores.contains(&core);
            if !is_reached || !self.may_move(sched, id, core) {
                continue;
            }
            let (with, own) = (self.util_with(core, id), &self.cores[core]);
            let fit = Fit::on(with, clamps, own.capacities());
            let room = Room { core, fit, left: own.capacity.saturating_sub(with) };
            if fit == Fit::Not {
                continue;
            }
            if core == last {
                previous = Some(room);
            } else if roomiest.is_none_or(|best| (fit, room.left) > (best.fit, best.left)) {
                roomiest = Some(room);
            }
        }
        (roomiest, previous)
    }

    /// What a thread adds to the energy of a cluster on a core; none: averages contradict each other.
    fn added(&self, domain: usize, id: EntityId, room: Room, base: u64) -> Option<Added> {
        let Room { core, fit, .. } = room;
        let energy = self.energy_with(domain, id, Some(core)).checked_sub(base)?;
        let capacity = self.cores[core].reach();
        Some(Added { core: CoreId::from(core), fit, capacity, energy })
    }

    /// Energy per time of the clusters of some cores if a thread goes to one of them, by demands: of the lowest
    /// operating points that are enough (msm-4.14: `calc_sg_energy`, `group_max_util`; what idle cores cost is left
    /// out).
    pub(super) fn energy_by_demand(
        &self,
        cores: &[usize],
        id: EntityId,
        on: usize,
        wakes: bool,
    ) -> u64 {
        let (need, boosted) = (self.demand_of(id), self.clamped_demand(id));
        let is_asked = |domain: &&PerfDomain| domain.cores.iter().any(|core| cores.contains(core));
        let of = |domain: &PerfDomain| {
            let (mut most, mut sum) = (0, 0);
            for &core in &domain.cores {
                let others = self.others_on(core, id, wakes);
                let (with, added) = if core == on { (boosted, need) } else { (0, 0) };
                most = most.max(others + with);
                sum += (others + added).min(self.cores[core].capacity_max);
            }
            let enough = domain.points.iter().find(|point| u64::from(point.capacity) >= most);
            enough.or(domain.points.last()).map_or(0, |point| point.cost * sum)
        };
        self.perf_domains.iter().filter(is_asked).map(of).sum()
    }

    /// The utilisation of a core with a thread there (`cpu_util`).
    pub(super) fn util_with(&self, core: usize, id: EntityId) -> u64 {
        let entity = &self.entities[id as usize];
        let (util, estimates) = self.parts_without(core, id);
        let with = (util + entity.pelt.util_avg()).max(estimates + entity.estimate.util());
        u64::from(with).min(self.cores[core].capacity_max)
    }

    /// The utilisation of a core as the governor sees it, which counts waiting, too, if a sleeping thread wakes up on
    /// some core (`cpu_util` with `boost`); none: nowhere.
    fn boosted_with(&self, core: usize, id: EntityId, on: Option<usize>) -> u64 {
        let (entity, queue) = (&self.entities[id as usize], &self.queues[core]);
        let (mut util, mut runnable) = (queue.pelt.util_avg(), queue.pelt.runnable_avg());
        let mut estimates = queue.estimates;
        let (was_here, is_here) = (self.core_of(id) == core, on == Some(core));
        if is_here && !was_here {
            util += entity.pelt.util_avg();
            runnable += entity.pelt.runnable_avg();
        } else if was_here && !is_here {
            util = util.saturating_sub(entity.pelt.util_avg());
            runnable = runnable.saturating_sub(entity.pelt.runnable_avg());
        }
        if is_here {
            estimates += entity.estimate.util();
        }
        u64::from(util.max(runnable).max(estimates)).min(self.cores[core].capacity_max)
    }

    /// Energy per time of a cluster if a sleeping thread wakes up on some core; none: elsewhere (`compute_energy`,
    /// `eenv_pd_busy_time`, `eenv_pd_max_util`). What the thread adds is the same on each core. No core does more than
    /// it can reach.
    pub(super) fn energy_with(&self, domain: usize, id: EntityId, on: Option<usize>) -> u64 {
        let domain = &self.perf_domains[domain];
        let (mut most, mut sum, mut capacity, mut reach) = (0, 0, 0, 0);
        for &core in &domain.cores {
            most = most.max(self.boosted_with(core, id, on));
            sum += self.util_without(core, id);
            reach = self.cores[core].reach();
            capacity += reach;
        }
        let sum = sum.min(capacity) + on.map_or(0, |_| self.util_of(id));
        energy(&domain.points, most, sum.min(capacity), reach)
    }
}
