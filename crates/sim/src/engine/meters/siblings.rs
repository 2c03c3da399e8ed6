//! Cores of two threads (SMT): who pays for what.
//!
//! A core leaks once. While one of its threads is busy, it pays for all; the other one draws nothing. While both are,
//! each works at the stated part of its speed, so what switches beyond the clock (`stalled` of the activity law) is
//! that part of what it would be alone; leakage and clock are halved: `C V^2 f (stalled + speed ((a1 - stalled) + (a2 -
//! stalled))) + leakage`. A core idles as deeply as the shallower one of its threads; each pays for half of that.

use ampsched_model::{ClusterId, ClusterPower, CoreId, CoreState, Machine, Ns};

use super::{Doing, Load, Meters, Site};

/// The other thread of each core, and the speed of each while both are busy.
pub(super) struct Siblings(Vec<Option<(CoreId, f64)>>);

impl Siblings {
    /// None if every core has one thread.
    pub fn of(machine: &Machine) -> Option<Self> {
        let mut all = vec![None; machine.cores()];
        for cluster in &machine.clusters {
            let Some(speed) = cluster.sharing.smt_speed else { continue };
            for (place, core) in cluster.cores.iter().enumerate() {
                all[core.index()] =
                    cluster.sibling(place).map(|other| (cluster.cores[other], speed));
            }
        }
        all.iter().any(Option::is_some).then_some(Self(all))
    }
}

impl Load {
    /// What a thread of a core draws beside another one, if it works at that speed while both are busy; `stalled` is
    /// the activity of a core that only clocks.
    fn beside_mw(
        self,
        other: Self,
        speed: f64,
        stalled: f64,
        power: &ClusterPower,
        opp: usize,
    ) -> f64 {
        match (self.doing, other.doing) {
            (Doing::Idle { state }, Doing::Idle { state: others }) => {
                let state = CoreState::Idle(state.min(others));
                power.core_power_with_mw(opp, state, self.leakage_mw) / 2.0
            }
            (Doing::Idle { .. }, _) => 0.0,
            (_, Doing::Idle { .. }) => self.power_mw(power, opp),
            _ => {
                let activity = stalled / 2.0 + speed * (self.activity - stalled).max(0.0);
                let running = CoreState::Running { activity };
                power.core_power_with_mw(opp, running, self.leakage_mw / 2.0)
            }
        }
    }
}

impl Meters {
    /// What the cores of a cluster draw at an operating point and factor of dynamic power, by place.
    pub(super) fn shares_mw(
        &self,
        cluster: ClusterId,
        site: Site,
        opp: usize,
        dynamic: f64,
        loads: &[Load],
    ) -> impl Iterator<Item = f64> {
        let entry = &site.machine.clusters[cluster.index()];
        let stalled = entry.power.activity.stalled * dynamic;
        let siblings = entry.sharing.smt_speed.filter(|_| self.siblings.is_some());
        loads.iter().enumerate().map(move |(place, load)| {
            match siblings.and_then(|speed| Some((speed, loads[entry.sibling(place)?]))) {
                None => load.power_mw(&entry.power, opp),
                Some((speed, other)) => load.beside_mw(other, speed, stalled, &entry.power, opp),
            }
        })
    }

    /// A core does something else, and its meter is settled: it and its sibling draw something else.
    #[cold]
    pub(super) fn share_core(&mut self, core: CoreId, site: Site, now_ns: Ns) {
        let other = self.siblings.as_ref().and_then(|siblings| siblings.0[core.index()]);
        let Some((other, speed)) = other else { return };
        self.cores[other.index()].settle(&mut self.thread_pj, now_ns);
        let cluster = self.cores[core.index()].cluster;
        let (opp, power) = (site.speeds.opp(cluster), site.power(cluster));
        let stalled = power.activity.stalled * self.clusters[cluster.index()].dynamic;
        for (own, beside) in [(core, other), (other, core)] {
            let beside = self.cores[beside.index()].load();
            let meter = &mut self.cores[own.index()];
            let power_mw = meter.load().beside_mw(beside, speed, stalled, power, opp);
            let by_mw = power_mw - std::mem::replace(&mut meter.power_mw, power_mw);
            self.clusters[cluster.index()].change_total(by_mw, now_ns);
        }
    }

    /// The powers of a cluster's cores, whose meters are settled and know their leakage. Returns their sum.
    #[cold]
    pub(super) fn share_cores(&mut self, cluster: ClusterId, site: Site) -> f64 {
        let (opp, dynamic) = (site.speeds.opp(cluster), self.clusters[cluster.index()].dynamic);
        let cores = site.cores(cluster);
        let loads: Vec<Load> = cores.iter().map(|core| self.cores[core.index()].load()).collect();
        let shares: Vec<f64> = self.shares_mw(cluster, site, opp, dynamic, &loads).collect();
        for (core, power_mw) in cores.iter().zip(&shares) {
            self.cores[core.index()].power_mw = *power_mw;
        }
        shares.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use ampsched_model::{IdleState, PowerPoint, Remaining, ThreadId};

    use super::*;

    fn state(core_mw: f64, share: f64) -> IdleState {
        let core = Remaining { constant_mw: core_mw, share };
        let (name, uncore) = ("s".to_owned(), Remaining::default());
        IdleState { name, core, uncore, entry_ns: 0, exit_ns: 0, min_residency_ns: 0 }
    }

    fn load(doing: Doing, activity: f64) -> Load {
        Load { doing, activity, leakage_mw: 20.0 }
    }

    #[test]
    fn two_threads_share_what_a_core_draws() {
        let power = ClusterPower {
            points: vec![PowerPoint { volt: 1.0, core_mw: 1000.0, uncore_mw: 0.0 }],
            idle_states: vec![state(2.0, 1.0), state(1.0, 0.25)],
            ..ClusterPower::default()
        };
        let runs = |activity| load(Doing::Running { thread: ThreadId(0), profile: 0 }, activity);
        let idles = |state| load(Doing::Idle { state }, 0.0);
        let beside = |own: Load, other| own.beside_mw(other, 0.6, 0.3, &power, 0);
        let cases = [
            (runs(0.8), idles(1), 820.0),
            (idles(1), runs(0.8), 0.0),
            // 0.3 / 2 + 0.6 x 0.5, and half of the leakage.
            (runs(0.8), runs(0.4), 460.0),
            // 0.3 / 2 + 0.6 x 0.1
            (runs(0.4), runs(0.8), 220.0),
            (load(Doing::System, 0.3), runs(0.8), 160.0),
            // (2 + 20) / 2 each while one of them is not in the deeper state; then (1 + 5) / 2.
            (idles(1), idles(0), 11.0),
            (idles(0), idles(1), 11.0),
            (idles(1), idles(1), 3.0),
        ];
        for (own, other, expected_mw) in cases {
            let mw = beside(own, other);
            assert!((mw - expected_mw).abs() < 1e-9, "{own:?} {other:?}: {mw}, not {expected_mw}");
        }
    }
}
