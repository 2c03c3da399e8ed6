//! When meters change, and what follows from that: sensors, deepening idleness, heat and throttling.

use ampsched_model::{ClusterId, CoreId, Ns, Sensor, ThreadId};
use ampsched_policy::RunState;

use super::{Meters, Site};
use crate::SimError;
use crate::engine::events::SimEvent;
use crate::engine::{Engine, Fallible};

impl Engine<'_> {
    /// The meters, if there are any, and what powers follow from.
    #[inline]
    fn metering(&mut self) -> Option<(&mut Meters, Site<'_>)> {
        let meters = self.meters.as_deref_mut()?;
        Some((meters, Site { machine: &self.setup.machine, speeds: &self.speeds }))
    }

    /// Starts the meters, if energy is accounted for: every core is idle.
    ///
    /// Errors: nothing is known of the power of a cluster.
    pub(in crate::engine) fn start_meters(&mut self) -> Result<(), SimError> {
        if !self.setup.options.energy {
            return Ok(());
        }
        let meters = Meters::new(&self.setup.machine)?;
        let thermal_period_ns = meters.thermal_period_ns();
        self.meters = Some(Box::new(meters));
        for cluster in self.clocks.clusters() {
            self.meter_cluster(cluster);
            if let Some(sensor) = self.power_sensor(cluster) {
                self.events.schedule(sensor.period_ns, SimEvent::PowerSample(cluster));
            }
        }
        for core in self.cores.ids() {
            self.plan_deepening(core);
        }
        self.start_budget();
        if let Some(period_ns) = thermal_period_ns {
            self.events.schedule(period_ns, SimEvent::ThermalStep);
        }
        Ok(())
    }

    fn power_sensor(&self, cluster: ClusterId) -> Option<Sensor> {
        self.setup.machine.clusters[cluster.index()].power.sensor
    }

    /// A thread exists.
    pub(in crate::engine) fn meter_thread(&mut self) {
        if let Some(meters) = self.meters.as_deref_mut() {
            meters.add_thread();
        }
    }

    /// Mean power in mW of a thread while it ran since this was last asked; none if it did not run, or
    /// nothing is accounted. Its run time must be up to date.
    pub(in crate::engine) fn thread_power_mw(&mut self, thread: ThreadId) -> Option<f64> {
        let run_ns = self.sched.stats(thread).run_ns_total();
        let state = self.sched.thread(thread);
        let on = (state.state == RunState::Running).then_some(state.core);
        let meters = self.meters.as_deref_mut()?;
        meters.thread_power_mw(thread, on, run_ns, self.events.now_ns())
    }

    /// A core runs a thread, or goes on with another behaviour.
    #[inline]
    pub(in crate::engine) fn meter_running(
        &mut self,
        core: CoreId,
        thread: ThreadId,
        profile: u32,
    ) {
        if self.meters.is_some() {
            self.meter_run(core, thread, profile);
        }
    }

    #[inline(never)]
    fn meter_run(&mut self, core: CoreId, thread: ThreadId, profile: u32) {
        let now_ns = self.events.now_ns();
        if let Some((meters, site)) = self.metering() {
            meters.run(core, thread, profile, site, now_ns);
            self.tell_power_of(core);
        }
    }

    /// A core has nothing to run.
    #[inline]
    pub(in crate::engine) fn meter_idle(&mut self, core: CoreId) {
        let now_ns = self.events.now_ns();
        let Some((meters, site)) = self.metering() else { return };
        if meters.rest(core, site, now_ns) {
            self.plan_deepening(core);
        }
        self.tell_power_of(core);
    }

    /// A kernel thread runs on a core.
    pub(in crate::engine) fn meter_system(&mut self, core: CoreId) {
        let now_ns = self.events.now_ns();
        if let Some((meters, site)) = self.metering() {
            meters.run_system(core, site, now_ns);
            self.tell_power_of(core);
        }
    }

    /// An interrupt wakes an idle core.
    pub(in crate::engine) fn meter_interrupt(&mut self, core: CoreId) {
        let now_ns = self.events.now_ns();
        let Some((meters, site)) = self.metering() else { return };
        meters.disturb(core, site, now_ns);
        self.plan_deepening(core);
        self.tell_power_of(core);
    }

    /// A cluster's frequency has changed.
    pub(in crate::engine) fn meter_cluster(&mut self, cluster: ClusterId) {
        let now_ns = self.events.now_ns();
        if let Some((meters, site)) = self.metering() {
            meters.renew(cluster, site, now_ns);
            self.tell_power(cluster);
        }
    }

    #[inline]
    fn tell_power_of(&mut self, core: CoreId) {
        if self.record.watch.is_some() {
            self.tell_power(self.setup.machine.cluster_of(core));
        }
    }

    /// A trace hears what a cluster draws from now on, if that is another power than before.
    #[cold]
    fn tell_power(&mut self, cluster: ClusterId) {
        let (Some(watch), Some(meters)) = (&mut self.record.watch, &self.meters) else { return };
        let mw = meters.total_mw(cluster);
        watch.power(cluster, mw, self.events.now_ns());
    }

    fn plan_deepening(&mut self, core: CoreId) {
        let now_ns = self.events.now_ns();
        let Some((meters, site)) = self.metering() else { return };
        if let Some((wait_ns, stay)) = meters.next_deepening(core, site) {
            self.events.schedule(now_ns + wait_ns, SimEvent::Deepen(core, stay));
        }
    }

    /// A core has idled long enough for the next idle state.
    pub(in crate::engine) fn deepen(&mut self, core: CoreId, stay: u32) {
        let now_ns = self.events.now_ns();
        let Some((meters, site)) = self.metering() else { return };
        if meters.deepen(core, stay, site, now_ns) {
            self.plan_deepening(core);
        }
        self.tell_power_of(core);
    }

    /// A power sensor refreshes.
    pub(in crate::engine) fn sample_power(&mut self, cluster: ClusterId) {
        let Some(sensor) = self.power_sensor(cluster) else { return };
        let Some(meters) = self.meters.as_deref_mut() else { return };
        let now_ns = self.events.now_ns();
        let shown = meters.sample(cluster, sensor, self.setup.options.seed, now_ns);
        self.sched.set_power(cluster, shown);
        self.events.schedule(now_ns + sensor.period_ns, SimEvent::PowerSample(cluster));
    }

    /// Brings all meters up to now.
    pub(in crate::engine) fn settle_meters(&mut self) {
        if let Some(meters) = self.meters.as_deref_mut() {
            meters.settle(self.events.now_ns());
        }
    }

    /// A thermal period is over: temperatures, leakage, throttling, sensors.
    ///
    /// Errors: leakage and temperature drive each other up without end.
    pub(in crate::engine) fn thermal_step(&mut self) -> Fallible {
        let now_ns = self.events.now_ns();
        let Some(meters) = self.meters.as_deref_mut() else { return Ok(()) };
        let Some(period_ns) = meters.thermal_period_ns() else { return Ok(()) };
        if meters.heat_up(now_ns) {
            let machine = self.setup.machine.name.clone();
            return Err(SimError::ThermalRunaway { machine, at_ns: now_ns }.into());
        }
        let site = Site { machine: &self.setup.machine, speeds: &self.speeds };
        for cluster in self.clocks.clusters() {
            meters.relevel(cluster, site);
        }
        for cluster in self.clocks.clusters() {
            self.tell_power(cluster);
        }
        if self.supervisor.needs.sensors {
            self.read_temperatures();
        }
        self.throttle(period_ns);
        self.events.schedule(now_ns + period_ns, SimEvent::ThermalStep);
        Ok(())
    }

    /// What temperature sensors show now goes to the policy: per cluster the hottest.
    fn read_temperatures(&mut self) {
        let (now_ns, seed) = (self.events.now_ns(), self.setup.options.seed);
        let Some(meters) = self.meters.as_deref() else { return };
        for cluster in self.clocks.clusters() {
            let cores = &self.setup.machine.clusters[cluster.index()].cores;
            if let Some(shown) = meters.shown_c(cluster, cores, seed, now_ns) {
                self.sched.set_temperature(cluster, shown);
            }
        }
    }

    /// Caps frequencies for the heat, and counts the time for which a cap holds.
    fn throttle(&mut self, period_ns: Ns) {
        let now_ns = self.events.now_ns();
        let Some(meters) = self.meters.as_deref_mut() else { return };
        if !meters.check_heat(now_ns) {
            return;
        }
        for cluster in self.clocks.clusters() {
            let opps = self.setup.machine.clusters[cluster.index()].opps.len();
            let Some(meters) = self.meters.as_deref_mut() else { return };
            if let Some(cap) = meters.cap(cluster, opps, period_ns) {
                self.cap_frequency(cluster, cap);
            }
        }
    }
}
