//! Energy: piecewise constant power of cores and uncores, integrated where it changes.
//!
//! A core's power changes when it begins to run another behaviour, idles, idles more deeply, or its
//! cluster changes frequency; leakage follows the temperature, which is brought up to date once per
//! thermal period. Every meter is settled only when its own power changes, so the cost is a few
//! additions per event. Power in mW times time in ns is energy in pJ.

mod budget;
mod heat;
mod levels;
mod metering;
mod rail;
mod siblings;
mod without_threads;

use ampsched_model::{
    ClusterId, ClusterPower, CoreId, CoreState, Draw, Machine, Ns, Sensor, ThreadId,
};
use ampsched_policy::{Factor, FactorKind};

use self::budget::Budget;
use self::heat::Heat;
use self::rail::Rail;
use self::siblings::Siblings;
use super::speeds::Speeds;
use crate::{ClusterEnergy, SimError};

/// What powers follow from: the machine, and the operating points that its clusters are at.
#[derive(Clone, Copy)]
pub(super) struct Site<'a> {
    pub machine: &'a Machine,
    pub speeds: &'a Speeds,
}

impl<'a> Site<'a> {
    fn power(self, cluster: ClusterId) -> &'a ClusterPower {
        &self.machine.clusters[cluster.index()].power
    }

    fn cores(self, cluster: ClusterId) -> &'a [CoreId] {
        &self.machine.clusters[cluster.index()].cores
    }
}

/// What a core does, as far as its power is concerned.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Doing {
    Running {
        thread: ThreadId,
        profile: u32,
    },
    Idle {
        state: usize,
    },
    /// A kernel thread runs, of which nothing else is known.
    System,
}

/// What a core does and draws by it: the activity of that, at its operating point, and its leakage.
#[derive(Clone, Copy, Debug)]
struct Load {
    doing: Doing,
    activity: f64,
    leakage_mw: f64,
}

impl Load {
    /// Power of a core of one thread at an operating point.
    fn power_mw(self, power: &ClusterPower, opp: usize) -> f64 {
        let state = match self.doing {
            Doing::Idle { state } => CoreState::Idle(state),
            Doing::Running { .. } | Doing::System => CoreState::Running { activity: self.activity },
        };
        power.core_power_with_mw(opp, state, self.leakage_mw)
    }
}

/// The meter of a core.
#[derive(Clone, Debug)]
struct CoreMeter {
    cluster: ClusterId,
    doing: Doing,
    /// Activity of what it runs, at its cluster's operating point; times what a shared rail does to dynamic power.
    activity: f64,
    power_mw: f64,
    /// What leaks at the present voltage and temperature while it runs.
    leakage_mw: f64,
    since_ns: Ns,
    running_pj: f64,
    idle_pj: f64,
    /// Energy at the last thermal step.
    stepped_pj: f64,
    /// Counts stays in idle: a deepening that was planned for an earlier one is void.
    stay: u32,
}

impl CoreMeter {
    /// Power while the core does something at an operating point of its cluster, at its present activity and leakage.
    #[inline]
    fn power_while_mw(&self, doing: Doing, power: &ClusterPower, opp: usize) -> f64 {
        Load { doing, ..self.load() }.power_mw(power, opp)
    }

    #[inline]
    fn load(&self) -> Load {
        Load { doing: self.doing, activity: self.activity, leakage_mw: self.leakage_mw }
    }

    /// Energy used since the meter was last settled.
    #[inline]
    fn unsettled_pj(&self, now_ns: Ns) -> f64 {
        // Times are below 2^63: through a signed integer the conversion is one machine instruction.
        self.power_mw * (now_ns - self.since_ns) as i64 as f64
    }

    /// Adds what the core has used up to now to its accounts, and to that of the thread that it runs.
    #[inline]
    fn settle(&mut self, threads_pj: &mut [f64], now_ns: Ns) {
        let pj = self.unsettled_pj(now_ns);
        self.since_ns = now_ns;
        match self.doing {
            Doing::Idle { .. } => self.idle_pj += pj,
            Doing::System => self.running_pj += pj,
            Doing::Running { thread, .. } => {
                self.running_pj += pj;
                threads_pj[thread.index()] += pj;
            }
        }
    }
}

/// The meters of a cluster.
#[derive(Clone, Debug)]
struct ClusterMeter {
    /// The operating point for which the activities of its cores hold.
    opp: usize,
    /// Factor of dynamic power at that point, as the rail may have another voltage; 1 without a shared rail.
    dynamic: f64,
    /// The same of the uncore, whose clock the rail's clusters may share.
    uncore: f64,
    uncore_mw: f64,
    /// Leakage of the uncore at the present voltage and temperature.
    leakage_mw: f64,
    uncore_since_ns: Ns,
    uncore_pj: f64,
    stepped_pj: f64,
    /// What a power sensor would integrate: the sum of all parts, settled when any of them changes.
    total_mw: f64,
    total_since_ns: Ns,
    total_pj: f64,
    /// The sum at the last sample of the power sensor.
    sampled_pj: f64,
    samples: u64,
    throttled_ns: Ns,
}

impl ClusterMeter {
    /// Adds what the uncore has used up to now to its account.
    #[inline]
    fn settle_uncore(&mut self, now_ns: Ns) {
        self.uncore_pj += self.uncore_mw * (now_ns - self.uncore_since_ns) as i64 as f64;
        self.uncore_since_ns = now_ns;
    }

    /// Brings all its accounts up to now, but those of its cores.
    #[inline]
    fn settle(&mut self, now_ns: Ns) {
        self.settle_uncore(now_ns);
        self.change_total(0.0, now_ns);
    }

    /// The power of a part changes by some mW.
    #[inline]
    fn change_total(&mut self, by_mw: f64, now_ns: Ns) {
        self.total_pj += self.total_mw * (now_ns - self.total_since_ns) as i64 as f64;
        self.total_since_ns = now_ns;
        self.total_mw += by_mw;
    }
}

/// Leakage of a core and of the uncore at some voltage and the reference temperature.
#[derive(Clone, Copy, Debug)]
struct AtReference {
    core_mw: f64,
    uncore_mw: f64,
}

/// The meters of all cores, clusters and threads.
pub(super) struct Meters {
    cores: Vec<CoreMeter>,
    clusters: Vec<ClusterMeter>,
    thread_pj: Vec<f64>,
    /// Energy and run time of each thread when its power was last told.
    told: Vec<(f64, Ns)>,
    /// Activity of each profile (rows) at each operating point of each cluster; NaN: not computed yet.
    activities: Vec<f64>,
    /// Leakage at each operating point of each cluster; none: not computed yet.
    at_reference: Vec<Option<AtReference>>,
    /// First column of each cluster, and the number of columns.
    columns: Vec<usize>,
    heat: Option<Heat>,
    /// None: each cluster has a regulator of its own.
    rail: Option<Rail>,
    /// None: every core has one thread.
    siblings: Option<Siblings>,
    /// None: the clusters may draw as much as they like.
    budget: Option<Budget>,
}

/// Temperature of machines without a thermal description: leakage is that at the reference.
const ASSUMED_C: f64 = 50.0;

impl Meters {
    /// All cores idle.
    ///
    /// Errors: nothing is known of the power of a cluster.
    pub fn new(machine: &Machine) -> Result<Self, SimError> {
        for cluster in &machine.clusters {
            if !cluster.power.is_known() {
                let (machine, cluster) = (machine.name.clone(), cluster.name.clone());
                return Err(SimError::NoPower { machine, cluster });
            }
        }
        let mut columns = vec![0];
        for cluster in &machine.clusters {
            columns.push(columns[columns.len() - 1] + cluster.opps.len());
        }
        let most_steps = machine.clusters.iter().map(|cluster| cluster.opps.len() - 1).max();
        let most_steps = most_steps.unwrap_or(0);
        let core = |cluster: ClusterId| CoreMeter {
            cluster,
            activity: 0.0,
            doing: Doing::Idle { state: 0 },
            power_mw: 0.0,
            leakage_mw: 0.0,
            since_ns: 0,
            running_pj: 0.0,
            idle_pj: 0.0,
            stepped_pj: 0.0,
            stay: 0,
        };
        let cluster = ClusterMeter {
            opp: usize::MAX,
            dynamic: 1.0,
            uncore: 1.0,
            uncore_mw: 0.0,
            leakage_mw: 0.0,
            uncore_since_ns: 0,
            uncore_pj: 0.0,
            stepped_pj: 0.0,
            total_mw: 0.0,
            total_since_ns: 0,
            total_pj: 0.0,
            sampled_pj: 0.0,
            samples: 0,
            throttled_ns: 0,
        };
        Ok(Self {
            cores: (0..machine.cores()).map(|id| core(machine.cluster_of(id.into()))).collect(),
            clusters: vec![cluster; machine.clusters.len()],
            thread_pj: Vec::new(),
            told: Vec::new(),
            activities: Vec::new(),
            at_reference: vec![None; columns[columns.len() - 1]],
            columns,
            heat: Heat::new(machine)?,
            rail: Rail::of(machine),
            siblings: Siblings::of(machine),
            budget: machine.board.limit.map(|limit| Budget::new(limit, most_steps)),
        })
    }

    fn core_c(&self, core: CoreId) -> f64 {
        self.heat.as_ref().map_or(ASSUMED_C, |heat| heat.core_c(core))
    }

    /// Activity of a profile on a cluster at its operating point, computed once for each.
    fn activity(&mut self, site: Site, profile: u32, cluster: ClusterId) -> f64 {
        self.activity_at(site, profile, cluster, site.speeds.opp(cluster))
    }

    /// The same at another operating point.
    fn activity_at(&mut self, site: Site, profile: u32, cluster: ClusterId, opp: usize) -> f64 {
        let activity = &site.power(cluster).activity;
        // A program that computes nothing only clocks.
        let Some(known) = site.speeds.profile(profile) else { return activity.stalled };
        let width = self.columns[self.columns.len() - 1];
        let index = profile as usize * width + self.columns[cluster.index()] + opp;
        if self.activities.len() <= index {
            self.activities.resize((profile as usize + 1) * width, f64::NAN);
        }
        if self.activities[index].is_nan() {
            let entry = &site.machine.clusters[cluster.index()];
            let mhz = f64::from(entry.opps[opp].mhz);
            self.activities[index] = activity.of(known, &entry.params, mhz);
        }
        self.activities[index]
    }

    /// The shallowest idle state of a cluster's cores; none while one runs.
    #[inline]
    fn shallowest(&self, cores: &[CoreId]) -> Option<usize> {
        let mut shallowest = usize::MAX;
        for core in cores {
            match self.cores[core.index()].doing {
                Doing::Running { .. } | Doing::System => return None,
                Doing::Idle { state } => shallowest = shallowest.min(state),
            }
        }
        Some(shallowest)
    }

    /// Energy of a thread so far, without what has not been settled.
    pub fn thread_uj(&self, thread: ThreadId) -> f64 {
        self.thread_pj.get(thread.index()).copied().unwrap_or(0.0) / 1e6
    }

    /// Energy of a cluster.
    pub fn cluster_energy(&self, cluster: ClusterId, cores: &[CoreId]) -> ClusterEnergy {
        let meter = &self.clusters[cluster.index()];
        let sum = |part: fn(&CoreMeter) -> f64| -> f64 {
            cores.iter().map(|core| part(&self.cores[core.index()])).sum()
        };
        let nodes = self.heat.as_ref();
        ClusterEnergy {
            running_uj: sum(|meter| meter.running_pj) / 1e6,
            idle_uj: sum(|meter| meter.idle_pj) / 1e6,
            uncore_uj: meter.uncore_pj / 1e6,
            sensor_uj: meter.total_pj / 1e6,
            throttled_ns: meter.throttled_ns,
            temperature_c: nodes.map(|_| self.hottest_core_c(cores)),
        }
    }

    fn hottest_core_c(&self, cores: &[CoreId]) -> f64 {
        cores.iter().map(|&core| self.core_c(core)).fold(f64::NEG_INFINITY, f64::max)
    }

    /// Highest temperature of any core so far.
    pub fn peak_c(&self) -> Option<f64> {
        self.heat.as_ref().map(Heat::hottest_c)
    }

    /// A thread exists.
    pub fn add_thread(&mut self) {
        self.thread_pj.push(0.0);
        self.told.push((0.0, 0));
    }

    /// Mean power in mW of a thread while it ran since this was last asked; none if it did not run. `on` is the core on
    /// which it runs now; its run time must be up to date.
    pub fn thread_power_mw(
        &mut self,
        thread: ThreadId,
        on: Option<CoreId>,
        run_ns: Ns,
        now_ns: Ns,
    ) -> Option<f64> {
        let unsettled_pj = on.map_or(0.0, |core| self.cores[core.index()].unsettled_pj(now_ns));
        let now = (self.thread_pj[thread.index()] + unsettled_pj, run_ns);
        let before = std::mem::replace(&mut self.told[thread.index()], now);
        (run_ns > before.1).then(|| (now.0 - before.0) / (run_ns - before.1) as f64)
    }

    /// A core runs a thread, or goes on with another behaviour.
    #[inline]
    pub fn run(&mut self, core: CoreId, thread: ThreadId, profile: u32, site: Site, now_ns: Ns) {
        let meter = &mut self.cores[core.index()];
        let pj = meter.unsettled_pj(now_ns);
        match &mut meter.doing {
            // Mostly threads of one program take turns: nothing changes but who pays.
            Doing::Running { thread: payer, profile: same } if *same == profile => {
                meter.since_ns = now_ns;
                meter.running_pj += pj;
                let payer = std::mem::replace(payer, thread);
                self.thread_pj[payer.index()] += pj;
            }
            Doing::Running { .. } | Doing::Idle { .. } | Doing::System => {
                self.set(core, Doing::Running { thread, profile }, site, now_ns);
            }
        }
    }

    /// A core does something else from now on.
    fn set(&mut self, core: CoreId, doing: Doing, site: Site, now_ns: Ns) {
        let meter = &mut self.cores[core.index()];
        meter.settle(&mut self.thread_pj, now_ns);
        let cluster = meter.cluster;
        match doing {
            Doing::Running { profile, .. } => {
                let dynamic = self.clusters[cluster.index()].dynamic;
                self.cores[core.index()].activity = self.activity(site, profile, cluster) * dynamic;
            }
            Doing::System => {
                let dynamic = self.clusters[cluster.index()].dynamic;
                self.cores[core.index()].activity = site.power(cluster).activity.stalled * dynamic;
            }
            Doing::Idle { .. } => {}
        }
        let meter = &mut self.cores[core.index()];
        let power_mw = meter.power_while_mw(doing, site.power(cluster), site.speeds.opp(cluster));
        let was_running = !matches!(meter.doing, Doing::Idle { .. });
        let is_running = !matches!(doing, Doing::Idle { .. });
        let by_mw = power_mw - meter.power_mw;
        meter.doing = doing;
        meter.power_mw = power_mw;
        meter.stay += u32::from(was_running != is_running);
        if by_mw != 0.0 {
            self.clusters[cluster.index()].change_total(by_mw, now_ns);
        }
        if !(was_running && is_running) {
            self.set_uncore(cluster, site, now_ns);
        }
        if self.siblings.is_some() {
            self.share_core(core, site, now_ns);
        }
    }

    /// What a cluster draws now: its cores and its uncore.
    pub fn total_mw(&self, cluster: ClusterId) -> f64 {
        self.clusters[cluster.index()].total_mw
    }

    /// Power of a cluster's uncore, at its present leakage.
    #[inline(always)]
    fn uncore_mw(&self, cluster: ClusterId, site: Site) -> f64 {
        let idle = self.shallowest(site.cores(cluster));
        let meter = &self.clusters[cluster.index()];
        let (power, opp) = (site.power(cluster), site.speeds.opp(cluster));
        // What a shared rail adds to dynamic power is left in idle states as leakage is.
        let more_mw = (meter.uncore - 1.0) * power.points[opp].uncore_mw;
        power.uncore_power_with_mw(opp, idle, meter.leakage_mw + more_mw)
    }

    /// The uncore's power may have changed.
    fn set_uncore(&mut self, cluster: ClusterId, site: Site, now_ns: Ns) {
        let uncore_mw = self.uncore_mw(cluster, site);
        let meter = &mut self.clusters[cluster.index()];
        let by_mw = uncore_mw - meter.uncore_mw;
        if by_mw != 0.0 {
            meter.settle_uncore(now_ns);
            meter.uncore_mw = uncore_mw;
            meter.change_total(by_mw, now_ns);
        }
    }

    /// A power sensor refreshes: mean power since its last sample.
    pub fn sample(&mut self, cluster: ClusterId, sensor: Sensor, seed: u64, now_ns: Ns) -> Factor {
        let meter = &mut self.clusters[cluster.index()];
        meter.change_total(0.0, now_ns);
        let mean_mw = (meter.total_pj - meter.sampled_pj) / sensor.period_ns as f64;
        meter.sampled_pj = meter.total_pj;
        meter.samples += 1;
        let random = Draw::new(seed).child(POWER_SENSORS).child(cluster.0.into());
        let value = sensor.reading(mean_mw, meter.samples, &random);
        Factor { value, kind: FactorKind::Measured, at_ns: now_ns }
    }

    /// Brings all meters up to now.
    pub fn settle(&mut self, now_ns: Ns) {
        for meter in &mut self.cores {
            meter.settle(&mut self.thread_pj, now_ns);
        }
        for meter in &mut self.clusters {
            meter.settle(now_ns);
        }
    }
}

/// Stream of random numbers, apart from those of programs (which begin with a letter's code).
const POWER_SENSORS: u64 = (1 << 40) + 1;
