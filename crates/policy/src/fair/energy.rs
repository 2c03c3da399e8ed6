//! Where a waking thread costs the least energy
//! (fair.c 6.18, `find_energy_efficient_cpu`; include/linux/energy_model.h, `em_cpu_energy`).

use super::Fair;
use super::state::EntityId;
use crate::sched::energy;
use crate::{CostPoint, Sched, Topology, cost_points};

/// Cores of one clock, with what they cost (`struct perf_domain`).
#[derive(Clone, Debug)]
pub(super) struct PerfDomain {
    cores: Vec<usize>,
    points: Vec<CostPoint>,
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
        let (clamp_min, clamp_max) = self.clamps(id);
        let util = self.util_of(id);
        if util == 0 && clamp_min == 0 {
            return Some(last);
        }
        let (mut best, mut best_delta) = (None, u64::MAX);
        let (mut last_delta, mut last_fits) = (u64::MAX, false);
        for number in 0..self.perf_domains.len() {
            let domain = &self.perf_domains[number];
            let (mut roomiest, mut room): (Option<usize>, u64) = (None, 0);
            let mut last_room: Option<u64> = None;
            for &core in &domain.cores {
                let is_reached = self.domains.all[asymmetric].cores.contains(&core);
                if !is_reached || !self.may_move(sched, id, core) {
                    continue;
                }
                let with = self.util_with(core, id);
                let clamped = with.clamp(clamp_min, clamp_max.max(clamp_min));
                if !self.fits_util(clamped, clamp_max, core) {
                    continue;
                }
                let left = self.cores[core].capacity_max.saturating_sub(with);
                if core == last {
                    last_room = Some(left);
                } else if roomiest.is_none() || left > room {
                    (roomiest, room) = (Some(core), left);
                }
            }
            if roomiest.is_none() && last_room.is_none() {
                continue;
            }
            let base = self.energy_with(number, id, None);
            if last_room.is_some() {
                last_fits = true;
                let energy = self.energy_with(number, id, Some(last));
                last_delta = energy.checked_sub(base)?;
                best_delta = best_delta.min(last_delta);
            }
            let Some(core) = roomiest.filter(|_| last_room.is_none_or(|last| room > last)) else {
                continue;
            };
            let energy = self.energy_with(number, id, Some(core));
            let delta = energy.checked_sub(base)?;
            if (best.is_some() || last_fits) && delta >= best_delta {
                continue;
            }
            (best, best_delta) = (Some(core), delta);
        }
        match best {
            Some(core) if !last_fits || best_delta < last_delta => Some(core),
            _ => Some(last),
        }
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
    /// `eenv_pd_busy_time`, `eenv_pd_max_util`). What the thread adds is the same on each core.
    pub(super) fn energy_with(&self, domain: usize, id: EntityId, on: Option<usize>) -> u64 {
        let domain = &self.perf_domains[domain];
        let (mut most, mut sum, mut capacity) = (0, 0, 0);
        for &core in &domain.cores {
            most = most.max(self.boosted_with(core, id, on));
            sum += self.util_without(core, id);
            capacity += self.cores[core].capacity_max;
        }
        let sum = sum.min(capacity) + on.map_or(0, |_| self.util_of(id));
        energy(&domain.points, most, sum.min(capacity))
    }
}
