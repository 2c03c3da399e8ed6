//! The power limit of all clusters together, as RAPL: a running average against PL1, the moment against PL2.
//!
//! Every period the average follows what has been used, `A += (M - A) (1 - e^(-period / tau))` for a mean power M.
//! While there is *room*, the clusters may draw PL2 together; from when the average would pass PL1 they are *held* to
//! PL1, until it has fallen below [`ROOM`] of that. What they would draw with other clocks follows from the power
//! model, so the law is: every cluster loses the same number of operating points, the fewest with which power fits.
//! Power that changes within a period is taken at its mean if that is more than at the moment. While the average is
//! above PL1, no operating point comes back.

use ampsched_model::{ClusterId, Ns, PowerLimit};

use super::{ASSUMED_C, Doing, Load, Meters, Site};
use crate::engine::Engine;
use crate::engine::events::SimEvent;

/// How often it is looked at: the counters of RAPL are renewed about every millisecond (Intel SDM volume 3B, "RAPL
/// interfaces").
const PERIOD_NS: Ns = 1_000_000;
/// Part of PL1 below which there is room again (ours).
const ROOM: f64 = 0.98;

/// Where the clusters are with regard to their limit.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    limit: PowerLimit,
    average_mw: f64,
    is_held: bool,
    /// Operating points that every cluster has lost.
    steps: usize,
    most_steps: usize,
    /// Energy of all clusters when it was looked at last.
    used_pj: f64,
}

impl Budget {
    /// There is room.
    pub fn new(limit: PowerLimit, most_steps: usize) -> Self {
        Self { limit, average_mw: 0.0, is_held: false, steps: 0, most_steps, used_pj: 0.0 }
    }

    /// A period is over with that mean power. Returns what may be drawn from now on.
    fn renew(&mut self, mean_mw: f64) -> f64 {
        let PowerLimit { pl1_mw, pl2_mw, tau_ns } = self.limit;
        let part = -(-(PERIOD_NS as f64) / tau_ns as f64).exp_m1();
        self.average_mw += (mean_mw - self.average_mw) * part;
        // If it went on like this for another period.
        let next_mw = self.average_mw + (mean_mw - self.average_mw) * part;
        if self.is_held {
            self.is_held = self.average_mw >= ROOM * pl1_mw;
        } else {
            self.is_held = next_mw > pl1_mw;
        }
        if self.is_held { pl1_mw } else { pl2_mw }
    }

    /// How many operating points to take, if that many would draw `at_steps` at the moment: the fewest from the present
    /// number on with which power fits.
    fn decide(
        &self,
        mean_mw: f64,
        allowed_mw: f64,
        mut at_steps: impl FnMut(usize) -> f64,
    ) -> usize {
        let now_mw = at_steps(self.steps);
        let scale = if now_mw > 0.0 { (mean_mw / now_mw).max(1.0) } else { 1.0 };
        let mut fits = |steps: usize| scale * at_steps(steps) <= allowed_mw;
        let mut steps = self.steps;
        if scale * now_mw > allowed_mw {
            while steps < self.most_steps && !fits(steps) {
                steps += 1;
            }
        } else if self.average_mw <= self.limit.pl1_mw {
            while steps > 0 && fits(steps - 1) {
                steps -= 1;
            }
        }
        steps
    }
}

impl Meters {
    /// The average begins with what idle clusters draw.
    fn start_budget(&mut self) -> bool {
        let idle_mw = self.clusters.iter().map(|meter| meter.total_mw).sum();
        let Some(budget) = self.budget.as_mut() else { return false };
        budget.average_mw = idle_mw;
        true
    }

    /// How many operating points every cluster loses from now on; `opp_at` tells the operating point of a cluster that
    /// has lost some.
    fn renew_budget(
        &mut self,
        site: Site,
        opp_at: impl Fn(ClusterId, usize) -> usize,
        now_ns: Ns,
    ) -> Option<usize> {
        let mut used_pj = 0.0;
        for meter in &mut self.clusters {
            meter.change_total(0.0, now_ns);
            used_pj += meter.total_pj;
        }
        let mut budget = self.budget.take()?;
        let mean_mw =
            (used_pj - std::mem::replace(&mut budget.used_pj, used_pj)) / PERIOD_NS as f64;
        let allowed_mw = budget.renew(mean_mw);
        let steps = budget.decide(mean_mw, allowed_mw, |steps| {
            self.would_draw_mw(site, |cluster| opp_at(cluster, steps))
        });
        for (number, meter) in self.clusters.iter_mut().enumerate().filter(|_| steps > 0) {
            let (id, opps) = (ClusterId::from(number), site.machine.clusters[number].opps.len());
            // Heat counts for itself.
            if !self.heat.as_ref().is_some_and(|heat| heat.caps(id, opps)) {
                meter.throttled_ns += PERIOD_NS;
            }
        }
        budget.steps = steps;
        self.budget = Some(budget);
        Some(steps)
    }

    /// What all clusters would draw now at other operating points.
    fn would_draw_mw(&mut self, site: Site, opp_of: impl Fn(ClusterId) -> usize) -> f64 {
        let level = self.rail.as_ref().map(|rail| rail.would_have(site, &opp_of));
        let mut sum_mw = 0.0;
        for cluster in (0..self.clusters.len()).map(ClusterId::from) {
            let opp = opp_of(cluster);
            let rail = self.rail.as_ref().zip(level).filter(|(rail, _)| rail.supplies(cluster));
            let (volt, factors) = match rail {
                Some((rail, level)) => (level.volt, rail.factors(site, cluster, opp, level)),
                None => (site.power(cluster).points[opp].volt, (1.0, 1.0)),
            };
            sum_mw += self.cluster_would_draw_mw(cluster, site, opp, volt, factors);
        }
        sum_mw
    }

    /// What a cluster would draw now at an operating point and a voltage, with factors of its dynamic power and of that
    /// of its uncore.
    fn cluster_would_draw_mw(
        &mut self,
        cluster: ClusterId,
        site: Site,
        opp: usize,
        volt: f64,
        (dynamic, uncore): (f64, f64),
    ) -> f64 {
        let power = site.power(cluster);
        let reference_mw = power.core_leakage.power_at_reference_mw(volt);
        let mut loads = Vec::with_capacity(site.cores(cluster).len());
        for &core in site.cores(cluster) {
            let doing = self.cores[core.index()].doing;
            let activity = match doing {
                Doing::Running { profile, .. } => self.activity_at(site, profile, cluster, opp),
                Doing::System => power.activity.stalled,
                Doing::Idle { .. } => 0.0,
            };
            let warmth = power.core_leakage.temperature_factor(self.core_c(core));
            let leakage_mw = reference_mw * warmth;
            loads.push(Load { doing, activity: activity * dynamic, leakage_mw });
        }
        let cores_mw: f64 = self.shares_mw(cluster, site, opp, dynamic, &loads).sum();
        let uncore_c = self.heat.as_ref().map_or(ASSUMED_C, |heat| heat.uncore_c(cluster));
        let leakage_mw = power.uncore_leakage.power_at_reference_mw(volt)
            * power.uncore_leakage.temperature_factor(uncore_c);
        let more_mw = (uncore - 1.0) * power.points[opp].uncore_mw;
        let idle = self.shallowest(site.cores(cluster));
        cores_mw + power.uncore_power_with_mw(opp, idle, leakage_mw + more_mw)
    }
}

impl Engine<'_> {
    /// Starts to look at the limit, if there is one.
    pub(super) fn start_budget(&mut self) {
        if self.meters.as_deref_mut().is_some_and(Meters::start_budget) {
            self.events.schedule(PERIOD_NS, SimEvent::PowerLimit);
        }
    }

    /// A period is over: clocks follow the limit.
    pub(in crate::engine) fn check_budget(&mut self) {
        let now_ns = self.events.now_ns();
        let site = Site { machine: &self.setup.machine, speeds: &self.speeds };
        let clocks = &self.clocks;
        let opp_at = |cluster: ClusterId, steps: usize| clocks.of(cluster).at_steps(steps);
        let Some(meters) = self.meters.as_deref_mut() else { return };
        if let Some(steps) = meters.renew_budget(site, opp_at, now_ns) {
            self.take_steps(steps);
        }
        self.events.schedule(now_ns + PERIOD_NS, SimEvent::PowerLimit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: PowerLimit =
        PowerLimit { pl1_mw: 65_000.0, pl2_mw: 219_000.0, tau_ns: 28_000_000_000 };

    #[test]
    fn the_average_reaches_pl1_when_it_should() {
        // From 5 W at 219 W: 28 s x ln((219 - 5) / (219 - 65)) = 9.212 s.
        let mut budget = Budget::new(LIMIT, 30);
        budget.average_mw = 5_000.0;
        let periods = (0..).take_while(|_| budget.renew(219_000.0) == LIMIT.pl2_mw).count();
        assert!((9_208..=9_214).contains(&periods), "{periods} ms");
        assert!(budget.average_mw <= LIMIT.pl1_mw);
    }

    #[test]
    fn there_is_room_again_below_a_part_of_pl1() {
        // From 65 W at 55 W until 63.7 W: 28 s x ln(10 / 8.7) = 3.8993 s.
        let mut budget = Budget::new(LIMIT, 30);
        (budget.average_mw, budget.is_held) = (65_000.0, true);
        let periods = (0..).take_while(|_| budget.renew(55_000.0) == LIMIT.pl1_mw).count();
        assert!((3_898..=3_900).contains(&periods), "{periods} ms");
    }

    #[test]
    fn the_fewest_steps_are_taken_that_fit() {
        let mut budget = Budget::new(LIMIT, 30);
        let watts = |steps: usize| 250_000.0 - 10_000.0 * steps as f64;
        assert_eq!(budget.decide(100_000.0, 219_000.0, watts), 4); // 210 W
        budget.steps = 4;
        assert_eq!(budget.decide(210_000.0, 219_000.0, watts), 4);
        assert_eq!(budget.decide(210_000.0, 250_000.0, watts), 0);
        // The mean was a tenth above what is drawn now: 220 W would be 242.
        assert_eq!(budget.decide(231_000.0, 235_000.0, watts), 4);
        // Above PL1 on average nothing comes back, and 31 steps there are not.
        budget.average_mw = 65_001.0;
        assert_eq!(budget.decide(50_000.0, 250_000.0, watts), 4);
        assert_eq!(budget.decide(210_000.0, 100.0, |_| 210_000.0), 30);
    }
}
