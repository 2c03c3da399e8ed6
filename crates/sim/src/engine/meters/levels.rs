//! What powers are when clocks, voltages and temperatures change.

use ampsched_model::{ClusterId, Ns};

use super::{ASSUMED_C, AtReference, Doing, Meters, Site};

impl Meters {
    /// A cluster's frequency has changed: all its powers have.
    pub fn renew(&mut self, cluster: ClusterId, site: Site, now_ns: Ns) {
        if self.rail.as_mut().is_some_and(|rail| rail.adjust(site)) {
            return self.renew_rail(cluster, site, now_ns);
        }
        self.renew_cluster(cluster, site, now_ns);
    }

    /// The same for all clusters of the rail, whose voltage has changed, and the given one.
    #[cold]
    fn renew_rail(&mut self, cluster: ClusterId, site: Site, now_ns: Ns) {
        let on_rail = self.rail.as_ref().map_or(Vec::new(), |rail| rail.clusters.clone());
        let others = on_rail.into_iter().filter(|&other| other != cluster);
        for each in others.chain([cluster]) {
            self.renew_cluster(each, site, now_ns);
        }
    }

    fn renew_cluster(&mut self, cluster: ClusterId, site: Site, now_ns: Ns) {
        for &core in site.cores(cluster) {
            self.cores[core.index()].settle(&mut self.thread_pj, now_ns);
        }
        self.clusters[cluster.index()].settle(now_ns);
        self.renew_activities(cluster, site);
        self.relevel(cluster, site);
    }

    /// The powers of a cluster that is settled, at its present frequency and temperatures. Their sum is added up anew,
    /// so that the rounding errors of differences do not pile up.
    pub fn relevel(&mut self, cluster: ClusterId, site: Site) {
        let (power, opp) = (site.power(cluster), site.speeds.opp(cluster));
        let at_reference = self.leakage_at_reference(cluster, site);
        let heat = self.heat.as_ref();
        let mut total_mw = 0.0;
        // Cores that share a node of the thermal network are equally warm.
        let (mut warm_c, mut leakage_mw) = (f64::NAN, 0.0);
        for &core in site.cores(cluster) {
            let core_c = heat.map_or(ASSUMED_C, |heat| heat.core_c(core));
            if core_c != warm_c {
                warm_c = core_c;
                leakage_mw = at_reference.core_mw * power.core_leakage.temperature_factor(core_c);
            }
            let meter = &mut self.cores[core.index()];
            meter.leakage_mw = leakage_mw;
            meter.power_mw = meter.power_while_mw(meter.doing, power, opp);
            total_mw += meter.power_mw;
        }
        if self.siblings.is_some() {
            total_mw = self.share_cores(cluster, site);
        }
        let heat = self.heat.as_ref();
        let uncore_c = heat.map_or(ASSUMED_C, |heat| heat.uncore_c(cluster));
        let factor = power.uncore_leakage.temperature_factor(uncore_c);
        self.clusters[cluster.index()].leakage_mw = at_reference.uncore_mw * factor;
        let uncore_mw = self.uncore_mw(cluster, site);
        let meter = &mut self.clusters[cluster.index()];
        meter.uncore_mw = uncore_mw;
        meter.total_mw = total_mw + uncore_mw;
    }

    /// Activities follow the operating point, if that is another one than before.
    fn renew_activities(&mut self, cluster: ClusterId, site: Site) {
        let opp = site.speeds.opp(cluster);
        let (dynamic, uncore) = self.dynamic_factors(cluster, site);
        let meter = &mut self.clusters[cluster.index()];
        let was = (std::mem::replace(&mut meter.opp, opp), meter.dynamic);
        (meter.dynamic, meter.uncore) = (dynamic, uncore);
        if was == (opp, dynamic) {
            return;
        }
        for &core in site.cores(cluster) {
            match self.cores[core.index()].doing {
                Doing::Running { profile, .. } => {
                    let activity = self.activity(site, profile, cluster);
                    self.cores[core.index()].activity = activity * dynamic;
                }
                Doing::System if self.rail.is_some() => {
                    let stalled = site.power(cluster).activity.stalled;
                    self.cores[core.index()].activity = stalled * dynamic;
                }
                Doing::System | Doing::Idle { .. } => {}
            }
        }
    }

    /// What a shared rail does to the dynamic power of a cluster and of its uncore at its operating point.
    fn dynamic_factors(&self, cluster: ClusterId, site: Site) -> (f64, f64) {
        match self.rail.as_ref().filter(|rail| rail.supplies(cluster)) {
            Some(rail) => rail.factors(site, cluster, site.speeds.opp(cluster), rail.level),
            None => (1.0, 1.0),
        }
    }

    /// Leakage of a cluster's parts at its present voltage and the reference temperature, computed once for each
    /// operating point.
    fn leakage_at_reference(&mut self, cluster: ClusterId, site: Site) -> AtReference {
        let opp = site.speeds.opp(cluster);
        let power = site.power(cluster);
        if let Some(rail) = self.rail.as_ref().filter(|rail| rail.supplies(cluster)) {
            return AtReference {
                core_mw: power.core_leakage.power_at_reference_mw(rail.level.volt),
                uncore_mw: power.uncore_leakage.power_at_reference_mw(rail.level.volt),
            };
        }
        let known = &mut self.at_reference[self.columns[cluster.index()] + opp];
        *known.get_or_insert_with(|| {
            let volt = power.points[opp].volt;
            AtReference {
                core_mw: power.core_leakage.power_at_reference_mw(volt),
                uncore_mw: power.uncore_leakage.power_at_reference_mw(volt),
            }
        })
    }
}
