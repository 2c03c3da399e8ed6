//! Energy: piecewise constant power of cores and uncores, integrated where it changes.
//!
//! A core's power changes when it begins to run another behaviour, idles, idles more deeply, or its
//! cluster changes frequency; leakage follows the temperature, which is brought up to date once per
//! thermal period. Every meter is settled only when its own power changes, so the cost is a few
//! additions per event. Power in mW times time in ns is energy in pJ.

mod heat;

use ampsched_model::{
    ClusterId, ClusterPower, CoreId, CoreState, Draw, Machine, Ns, Profile, Sensor, ThreadId,
};
use ampsched_policy::{Factor, FactorKind, RunState};

use self::heat::Heat;
use super::{Engine, Happening};
use crate::{ClusterEnergy, SimError};

/// What a core does, as far as its power is concerned.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Doing {
    Running { thread: ThreadId, profile: u32 },
    Idle { state: usize },
}

/// The meter of a core.
#[derive(Clone, Debug)]
struct CoreMeter {
    doing: Doing,
    power_mw: f64,
    /// Of that, what does not depend on what it runs.
    leakage_mw: f64,
    since_ns: Ns,
    running_pj: f64,
    idle_pj: f64,
    /// Energy at the last thermal step.
    stepped_pj: f64,
    /// Counts stays in idle: a deepening that was planned for an earlier one is void.
    stay: u32,
}

/// The meters of a cluster.
#[derive(Clone, Debug)]
struct ClusterMeter {
    uncore_mw: f64,
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

/// Everything that energy accounting keeps.
pub(super) struct Energy {
    cores: Vec<CoreMeter>,
    clusters: Vec<ClusterMeter>,
    thread_pj: Vec<f64>,
    /// Energy and run time of each thread when its power was last told.
    told: Vec<(f64, Ns)>,
    /// Activity of each profile (rows) at each operating point of each cluster; NaN: not computed yet.
    activities: Vec<f64>,
    /// First column of each cluster, and the number of columns.
    columns: Vec<usize>,
    heat: Option<Heat>,
}

/// Temperature of machines without a thermal description: leakage is that at the reference.
const ASSUMED_C: f64 = 50.0;

impl Energy {
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
        let core = CoreMeter {
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
            uncore_mw: 0.0,
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
            cores: vec![core; machine.cores()],
            clusters: vec![cluster; machine.clusters.len()],
            thread_pj: Vec::new(),
            told: Vec::new(),
            activities: Vec::new(),
            columns,
            heat: Heat::new(machine)?,
        })
    }

    fn core_c(&self, core: CoreId) -> f64 {
        self.heat.as_ref().map_or(ASSUMED_C, |heat| heat.core_c(core))
    }

    fn uncore_c(&self, cluster: ClusterId) -> f64 {
        self.heat.as_ref().map_or(ASSUMED_C, |heat| heat.uncore_c(cluster))
    }

    /// Activity of a profile at an operating point, computed once.
    fn activity(
        &mut self,
        machine: &Machine,
        profile: Option<&Profile>,
        number: u32,
        cluster: ClusterId,
        opp: usize,
    ) -> f64 {
        // A program that computes nothing only clocks.
        let Some(profile) = profile else {
            return machine.clusters[cluster.index()].power.activity.stalled;
        };
        let width = self.columns[self.columns.len() - 1];
        let index = number as usize * width + self.columns[cluster.index()] + opp;
        if self.activities.len() <= index {
            self.activities.resize((number as usize + 1) * width, f64::NAN);
        }
        if self.activities[index].is_nan() {
            let entry = &machine.clusters[cluster.index()];
            let mhz = f64::from(entry.opps[opp].mhz);
            self.activities[index] = entry.power.activity.of(profile, &entry.params, mhz);
        }
        self.activities[index]
    }

    /// Adds what a core has used up to now to its accounts.
    #[inline]
    fn settle_core(&mut self, core: CoreId, now_ns: Ns) {
        let meter = &mut self.cores[core.index()];
        let pj = meter.power_mw * (now_ns - meter.since_ns) as f64;
        meter.since_ns = now_ns;
        match meter.doing {
            Doing::Idle { .. } => meter.idle_pj += pj,
            Doing::Running { thread, .. } => {
                meter.running_pj += pj;
                self.thread_pj[thread.index()] += pj;
            }
        }
    }

    #[inline]
    fn settle_uncore(&mut self, cluster: ClusterId, now_ns: Ns) {
        let meter = &mut self.clusters[cluster.index()];
        meter.uncore_pj += meter.uncore_mw * (now_ns - meter.uncore_since_ns) as f64;
        meter.uncore_since_ns = now_ns;
    }

    /// The power of a part of a cluster changes by some mW.
    #[inline]
    fn change_total(&mut self, cluster: ClusterId, by_mw: f64, now_ns: Ns) {
        let meter = &mut self.clusters[cluster.index()];
        meter.total_pj += meter.total_mw * (now_ns - meter.total_since_ns) as f64;
        meter.total_since_ns = now_ns;
        meter.total_mw += by_mw;
    }

    /// The shallowest idle state of a cluster's cores; none while one runs.
    fn shallowest(&self, cores: &[CoreId]) -> Option<usize> {
        let states = cores.iter().map(|core| match self.cores[core.index()].doing {
            Doing::Running { .. } => None,
            Doing::Idle { state } => Some(state),
        });
        states.min_by_key(|state| state.map_or(0, |state| state + 1)).flatten()
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
}

impl Engine<'_> {
    /// Starts the meters: every core is idle.
    pub(super) fn start_meters(&mut self) {
        if self.energy.is_none() {
            return;
        }
        let clusters = 0..self.machine.clusters.len();
        for cluster in clusters.map(ClusterId::from) {
            self.meter_cluster(cluster);
            if let Some(sensor) = self.power_sensor(cluster) {
                self.push(sensor.period_ns, Happening::PowerSample(cluster));
            }
        }
        for core in 0..self.cores.len() {
            self.plan_deepening(CoreId::from(core));
        }
        if let Some(period_ns) = self.thermal_period_ns() {
            self.push(period_ns, Happening::ThermalStep);
        }
    }

    fn power_sensor(&self, cluster: ClusterId) -> Option<Sensor> {
        self.machine.clusters[cluster.index()].power.sensor
    }

    /// A thread exists.
    pub(super) fn meter_thread(&mut self) {
        if let Some(energy) = self.energy.as_deref_mut() {
            energy.thread_pj.push(0.0);
            energy.told.push((0.0, 0));
        }
    }

    /// Mean power in mW of a thread while it ran since this was last asked; none if it did not run, or
    /// nothing is accounted. Its run time must be up to date.
    pub(super) fn thread_power_mw(&mut self, thread: ThreadId) -> Option<f64> {
        let run_ns = self.sched.stats(thread).run_ns_total();
        let state = self.sched.thread(thread);
        let energy = self.energy.as_deref_mut()?;
        if state.state == RunState::Running {
            energy.settle_core(state.core, self.now_ns);
        }
        let now = (energy.thread_pj[thread.index()], run_ns);
        let before = std::mem::replace(&mut energy.told[thread.index()], now);
        (run_ns > before.1).then(|| (now.0 - before.0) / (run_ns - before.1) as f64)
    }

    /// A core runs a thread, or goes on with another behaviour.
    #[inline]
    pub(super) fn meter_running(&mut self, core: CoreId, thread: ThreadId, profile: u32) {
        let Some(energy) = self.energy.as_deref_mut() else { return };
        match energy.cores[core.index()].doing {
            // Mostly threads of one program take turns: nothing changes but who pays.
            Doing::Running { profile: same, .. } if same == profile => {
                energy.settle_core(core, self.now_ns);
                energy.cores[core.index()].doing = Doing::Running { thread, profile };
            }
            Doing::Running { .. } | Doing::Idle { .. } => {
                self.meter(core, Doing::Running { thread, profile });
            }
        }
    }

    /// A core has nothing to run.
    #[inline]
    pub(super) fn meter_idle(&mut self, core: CoreId) {
        let Some(energy) = self.energy.as_deref() else { return };
        if let Doing::Running { .. } = energy.cores[core.index()].doing {
            self.meter(core, Doing::Idle { state: 0 });
            self.plan_deepening(core);
        }
    }

    /// A core does something else from now on.
    fn meter(&mut self, core: CoreId, doing: Doing) {
        let cluster = self.cores[core.index()].cluster;
        let opp = self.speeds.opp(cluster);
        let now_ns = self.now_ns;
        let Some(energy) = self.energy.as_deref_mut() else { return };
        energy.settle_core(core, now_ns);
        let power: &ClusterPower = &self.machine.clusters[cluster.index()].power;
        let power_mw = match doing {
            Doing::Idle { state } => {
                power.core_power_mw(opp, CoreState::Idle(state), energy.core_c(core))
            }
            Doing::Running { profile, .. } => {
                let known = self.speeds.profile(profile);
                let activity = energy.activity(&self.machine, known, profile, cluster, opp);
                activity * power.points[opp].core_mw + energy.cores[core.index()].leakage_mw
            }
        };
        let meter = &mut energy.cores[core.index()];
        let was_running = matches!(meter.doing, Doing::Running { .. });
        let is_running = matches!(doing, Doing::Running { .. });
        let by_mw = power_mw - meter.power_mw;
        meter.doing = doing;
        meter.power_mw = power_mw;
        if by_mw != 0.0 {
            energy.change_total(cluster, by_mw, now_ns);
        }
        if was_running != is_running {
            energy.cores[core.index()].stay += 1;
        }
        if !(was_running && is_running) {
            self.meter_uncore(cluster);
        }
    }

    /// The uncore's power may have changed.
    fn meter_uncore(&mut self, cluster: ClusterId) {
        let opp = self.speeds.opp(cluster);
        let now_ns = self.now_ns;
        let entry = &self.machine.clusters[cluster.index()];
        let Some(energy) = self.energy.as_deref_mut() else { return };
        let (idle, celsius) = (energy.shallowest(&entry.cores), energy.uncore_c(cluster));
        let uncore_mw = entry.power.uncore_power_mw(opp, idle, celsius);
        let meter = &energy.clusters[cluster.index()];
        let by_mw = uncore_mw - meter.uncore_mw;
        if by_mw != 0.0 {
            energy.settle_uncore(cluster, now_ns);
            energy.clusters[cluster.index()].uncore_mw = uncore_mw;
            energy.change_total(cluster, by_mw, now_ns);
        }
    }

    /// A cluster's frequency, or the temperature, has changed: all its powers have.
    pub(super) fn meter_cluster(&mut self, cluster: ClusterId) {
        let Some(energy) = self.energy.as_deref() else { return };
        let cores = self.machine.clusters[cluster.index()].cores.clone();
        let doing: Vec<Doing> = cores.iter().map(|core| energy.cores[core.index()].doing).collect();
        for (core, doing) in cores.into_iter().zip(doing) {
            self.update_leakage(core);
            self.meter(core, doing);
        }
        self.meter_uncore(cluster);
        self.sum_up_anew(cluster);
    }

    /// Leakage of a core that runs, at the present voltage and temperature.
    fn update_leakage(&mut self, core: CoreId) {
        let cluster = self.cores[core.index()].cluster;
        let opp = self.speeds.opp(cluster);
        let Some(energy) = self.energy.as_deref_mut() else { return };
        let power = &self.machine.clusters[cluster.index()].power;
        let still = CoreState::Running { activity: 0.0 };
        let leakage_mw = power.core_power_mw(opp, still, energy.core_c(core));
        energy.cores[core.index()].leakage_mw = leakage_mw;
    }

    /// Differences of powers leave rounding errors behind; the sum itself has none.
    fn sum_up_anew(&mut self, cluster: ClusterId) {
        let now_ns = self.now_ns;
        let Some(energy) = self.energy.as_deref_mut() else { return };
        energy.change_total(cluster, 0.0, now_ns);
        let cores = &self.machine.clusters[cluster.index()].cores;
        let sum: f64 = cores.iter().map(|core| energy.cores[core.index()].power_mw).sum();
        let meter = &mut energy.clusters[cluster.index()];
        meter.total_mw = sum + meter.uncore_mw;
    }

    fn plan_deepening(&mut self, core: CoreId) {
        let cluster = self.cores[core.index()].cluster;
        let Some(energy) = self.energy.as_deref() else { return };
        let meter = &energy.cores[core.index()];
        let Doing::Idle { state } = meter.doing else { return };
        let states = &self.machine.clusters[cluster.index()].power.idle_states;
        let (Some(present), Some(next)) = (states.get(state), states.get(state + 1)) else {
            return;
        };
        // A core goes deeper when it has idled for as long as the deeper state needs to pay off.
        let wait_ns = next.min_residency_ns.saturating_sub(present.min_residency_ns);
        let deepening = Happening::Deepen(core, meter.stay);
        self.push(self.now_ns + wait_ns, deepening);
    }

    /// A core has idled long enough for the next idle state.
    pub(super) fn deepen(&mut self, core: CoreId, stay: u32) {
        let Some(energy) = self.energy.as_deref() else { return };
        let meter = &energy.cores[core.index()];
        let Doing::Idle { state } = meter.doing else { return };
        if meter.stay == stay {
            self.meter(core, Doing::Idle { state: state + 1 });
            self.plan_deepening(core);
        }
    }

    /// A power sensor refreshes: mean power since its last sample.
    pub(super) fn sample_power(&mut self, cluster: ClusterId) {
        let Some(sensor) = self.power_sensor(cluster) else { return };
        let (now_ns, seed) = (self.now_ns, self.options.seed);
        let Some(energy) = self.energy.as_deref_mut() else { return };
        energy.change_total(cluster, 0.0, now_ns);
        let meter = &mut energy.clusters[cluster.index()];
        let mean_mw = (meter.total_pj - meter.sampled_pj) / sensor.period_ns as f64;
        meter.sampled_pj = meter.total_pj;
        meter.samples += 1;
        let random = Draw::new(seed).child(POWER_SENSORS).child(cluster.0.into());
        let value = sensor.reading(mean_mw, meter.samples, &random);
        let factor = Factor { value, kind: FactorKind::Measured, at_ns: now_ns };
        self.sched.set_power(cluster, factor);
        self.push(now_ns + sensor.period_ns, Happening::PowerSample(cluster));
    }

    /// Brings all meters up to now.
    pub(super) fn settle_all(&mut self) {
        let now_ns = self.now_ns;
        let Some(energy) = self.energy.as_deref_mut() else { return };
        for core in 0..self.cores.len() {
            energy.settle_core(CoreId::from(core), now_ns);
        }
        for cluster in (0..self.clocks.len()).map(ClusterId::from) {
            energy.settle_uncore(cluster, now_ns);
            energy.change_total(cluster, 0.0, now_ns);
        }
    }
}

/// Stream of random numbers, apart from those of programs (which begin with a letter's code).
const POWER_SENSORS: u64 = (1 << 40) + 1;
