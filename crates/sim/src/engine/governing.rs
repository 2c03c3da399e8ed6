//! Governors in the simulation: what they see of cores, when they look, how their answers are carried out.
//!
//! The number of active cores is heard of in the same places ([`Turbo`]), so a machine with turbo has this part, too.
//!
//! A governor looks after the first event on its cluster that its pace allows: a thread starts, stops or
//! wakes there, or a busy core's tick. Ticks of all cores coincide at multiples of the period. A policy
//! that sets the frequency of a cluster itself retires that cluster's governor, as a user does who writes
//! `userspace` into `scaling_governor`.

use ampsched_model::{ClusterId, CoreId, Ns};
use ampsched_policy::{
    ClusterSample, CoreSample, FrequencyDomain, Governor, Limits, LoadTracking, build_governor,
    find_governor,
};

use super::Engine;
use super::events::SimEvent;
use super::turbo::Turbo;
use crate::SimError;
use crate::governor::by_cluster;

/// Period of the tick if the policy's rules name none: 250 Hz, as for CFS's balancing here.
const TICK_NS: Ns = 4_000_000;

/// While cores are idle, what threads have left there decays, and a governor is called each time that this has
/// been brought up to date (fair.c, `update_blocked_averages`; nohz.next_blocked:
/// `LOAD_AVG_PERIOD`).
const BLOCKED_LOAD_NS: Ns = 32_000_000;

/// The governors of a run and what they are told.
pub(super) struct Governing {
    /// None: a cluster without a governor, or whose governor the policy has retired.
    clusters: Vec<Option<Governed>>,
    cores: Vec<Heard>,
    tick_ns: Ns,
    /// Some cluster's governor looks when the present event is over.
    some_look: bool,
    /// Some governor reads utilisation, and so the clamps of threads.
    reads_util: bool,
    /// None: clocks do not depend on how many cores are active.
    pub turbo: Option<Turbo>,
}

/// A cluster with a governor.
struct Governed {
    governor: Box<dyn Governor>,
    /// Greatest utilisation of a core at its last look; 0 if utilisation is not tracked.
    saw: u32,
    looked_ns: Ns,
    /// It looks when the present event is over.
    looks: bool,
    /// Counts looks: a timer that was set before the last one is void.
    look: u32,
}

/// What was scheduled on a core.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    /// Time with threads of a nice value above 0.
    nice_ns: Ns,
    io_wakeup: bool,
    /// Of the last event.
    at_ns: Ns,
    /// Whether it has been busy since.
    busy: bool,
    /// Longest time without an event or tick since the last look, up to the last event.
    quiet_ns: Ns,
}

impl Heard {
    /// Longest time without an event or tick since the last look, up to now.
    fn quiet_until(&self, now_ns: Ns, tick_ns: Ns) -> Ns {
        let since_ns = now_ns - self.at_ns;
        self.quiet_ns.max(if self.busy { since_ns.min(tick_ns) } else { since_ns })
    }
}

impl Governing {
    /// Time in which a core ran a thread of a nice value above 0.
    pub fn count_nice(&mut self, core: CoreId, ran_ns: Ns) {
        self.cores[core.index()].nice_ns += ran_ns;
    }
}

impl Engine<'_> {
    /// Starts the governors and tracks the load if a governor or the policy reads it.
    pub(super) fn start_governors(&mut self) -> Result<(), SimError> {
        let specs = self.setup.options.governors.clone();
        let chosen = by_cluster(&specs, &self.setup.machine)?;
        let bad =
            |error: ampsched_policy::PolicyError| SimError::BadGovernor { what: error.to_string() };
        let (mut tracking, mut reads_util) = (None, false);
        for spec in chosen.iter().flatten() {
            if find_governor(&spec.name).map_err(bad)?.reads_util {
                reads_util = true;
                tracking =
                    self.supervisor.needs.load_tracking.is_none().then_some(LoadTracking::ByWork);
            }
        }
        if let Some(how) = tracking {
            self.sched.track_load(how);
        }
        let turbo = Turbo::new(&self.setup.machine);
        if turbo.is_none() && chosen.iter().all(Option::is_none) {
            return Ok(());
        }
        let tick_ns = self.sched.rules().tick_ns.unwrap_or(TICK_NS);
        let mut clusters = Vec::new();
        for (index, spec) in chosen.into_iter().enumerate() {
            let domain = self.frequency_domain(ClusterId::from(index), tick_ns);
            let build = |name: &str, params: &[_]| build_governor(name, params, &domain);
            let governor = spec.map(|spec| build(&spec.name, &spec.params)).transpose();
            let governed =
                |governor| Governed { governor, saw: 0, looked_ns: 0, looks: true, look: 0 };
            clusters.push(governor.map_err(bad)?.map(governed));
        }
        let cores = vec![Heard::default(); self.cores.len()];
        let some_look = true;
        let governing = Governing { clusters, cores, tick_ns, some_look, reads_util, turbo };
        self.governing = Some(Box::new(governing));
        self.let_governors_look();
        Ok(())
    }

    fn frequency_domain(&self, cluster: ClusterId, tick_ns: Ns) -> FrequencyDomain {
        let entry = &self.setup.machine.clusters[cluster.index()];
        FrequencyDomain {
            freqs_mhz: entry.opps.iter().map(|opp| opp.mhz).collect(),
            cores: entry.cores.len(),
            capacity: self.sched.util_max(entry.cores[0]),
            transition_ns: self.setup.machine.costs.frequency_switch_ns,
            tick_ns,
        }
    }

    /// A thread starts, stops or wakes on a core: its governor may want to look.
    #[inline]
    pub(super) fn governors_hear(&mut self, core: CoreId) {
        if self.governing.is_some() {
            self.hear(core);
        }
    }

    #[inline(never)]
    fn hear(&mut self, core: CoreId) {
        let now_ns = self.events.now_ns();
        let cluster = self.cores[core].cluster;
        let busy = !self.sched.is_free(core);
        let Some(governing) = self.governing.as_deref_mut() else { return };
        let heard = &mut governing.cores[core.index()];
        heard.quiet_ns = heard.quiet_until(now_ns, governing.tick_ns);
        heard.at_ns = now_ns;
        heard.busy = busy;
        if let Some(turbo) = &mut governing.turbo {
            turbo.note(core);
        }
        let Some(governed) = &mut governing.clusters[cluster.index()] else { return };
        let due = |gap_ns| now_ns >= governed.looked_ns + gap_ns;
        if governed.governor.pace().is_some_and(|pace| due(pace.gap_ns)) {
            governed.looks = true;
            governing.some_look = true;
        }
    }

    /// A thread has come back to a core from waiting for a device.
    pub(super) fn governors_hear_io(&mut self, core: CoreId) {
        if let Some(governing) = self.governing.as_deref_mut() {
            governing.cores[core.index()].io_wakeup = true;
        }
    }

    /// What a cluster may use has changed: its governor looks at once.
    pub(super) fn governors_hear_limits(&mut self, cluster: ClusterId) {
        let Some(governing) = self.governing.as_deref_mut() else { return };
        if let Some(governed) = &mut governing.clusters[cluster.index()] {
            governed.looks = true;
            governing.some_look = true;
        }
    }

    /// The policy sets a cluster's frequency itself from now on.
    pub(super) fn retire_governor(&mut self, cluster: ClusterId) {
        if let Some(governing) = self.governing.as_deref_mut() {
            governing.clusters[cluster.index()] = None;
        }
    }

    /// Those governors look that want to; the event before must be over.
    #[inline]
    pub(super) fn let_governors_look(&mut self) {
        if self.governing.is_some() {
            self.look_all();
        }
    }

    #[inline(never)]
    fn look_all(&mut self) {
        self.settle_turbo();
        let Some(governing) = self.governing.as_deref_mut() else { return };
        if !std::mem::take(&mut governing.some_look) {
            return;
        }
        for cluster in self.clocks.clusters() {
            self.look_if_due(cluster);
        }
    }

    fn look_if_due(&mut self, cluster: ClusterId) {
        for core in self.setup.machine.clusters[cluster.index()].cores.clone() {
            self.account(core);
        }
        // Out of its place, so that the engine can be asked meanwhile.
        let Some(mut governing) = self.governing.take() else { return };
        let mut wanted_mhz = None;
        if let Some(governed) = governing.clusters[cluster.index()].as_mut().filter(|it| it.looks) {
            wanted_mhz =
                Some(self.look(cluster, governed, &mut governing.cores, governing.tick_ns));
        }
        self.governing = Some(governing);
        if let Some(mhz) = wanted_mhz {
            self.request_frequency(cluster, mhz);
        }
    }

    /// What a governor answers to the present state of its cluster, in MHz; its next look is planned. The
    /// cores must be accounted up to now.
    fn look(
        &mut self,
        cluster: ClusterId,
        governed: &mut Governed,
        heard: &mut [Heard],
        tick_ns: Ns,
    ) -> u32 {
        let now_ns = self.events.now_ns();
        let cores = self.setup.machine.clusters[cluster.index()].cores.clone();
        let mut samples = Vec::with_capacity(cores.len());
        for core in cores {
            let heard = &mut heard[core.index()];
            let own = self.supervisor.fast.as_deref_mut().and_then(|fast| fast.util(core, now_ns));
            let util = own.unwrap_or_else(|| self.sched.core_util_boosted(core, now_ns));
            samples.push(CoreSample {
                busy_ns: self.sched.core(core).busy_ns + self.cores[core].noise_ns,
                nice_ns: heard.nice_ns,
                iowait_ns: self.cores[core].iowait_ns,
                util: self.clamped_util(core, util),
                io_wakeup: std::mem::take(&mut heard.io_wakeup),
                quiet_ns: heard.quiet_until(now_ns, tick_ns),
            });
            heard.quiet_ns = 0;
            heard.at_ns = now_ns;
        }
        let mhz = self.sched.frequency_mhz(cluster);
        let sample = ClusterSample { now_ns, mhz, limits: self.limits(cluster), cores: &samples };
        let wanted_mhz = governed.governor.next_mhz(&sample);
        governed.saw = samples.iter().map(|core| core.util).max().unwrap_or(0);
        governed.looks = false;
        governed.looked_ns = now_ns;
        governed.look += 1;
        if let Some(pace) = governed.governor.pace() {
            let tick = (now_ns + pace.gap_ns).max(now_ns + 1).div_ceil(tick_ns);
            self.events.schedule(tick * tick_ns, SimEvent::GovernorTimer(cluster, governed.look));
        }
        wanted_mhz
    }

    /// A core's utilisation within the clamps of the threads there; a real-time thread asks for all of it.
    fn clamped_util(&self, core: CoreId, util: u32) -> u32 {
        if !self.asked.any() {
            return util;
        }
        let above = self.realtime.as_deref().into_iter().flat_map(|it| it.ready());
        let here = above.filter(|&thread| self.sched.thread(thread).core == core);
        self.sched.clamped_util(core, util, here)
    }

    /// Whether some governor reads utilisation, and so the clamps of threads.
    pub(super) fn clamps_clocks(&self) -> bool {
        self.governing.as_deref().is_some_and(|governing| governing.reads_util)
    }

    fn limits(&self, cluster: ClusterId) -> Limits {
        let opps = &self.setup.machine.clusters[cluster.index()].opps;
        Limits { min_mhz: opps[0].mhz, max_mhz: opps[self.clocks.of(cluster).cap()].mhz }
    }

    /// No event has made a governor look since its gap is over: it looks if a core's tick calls it, or if
    /// its cluster has been idle for long.
    pub(super) fn governor_timer(&mut self, cluster: ClusterId, look: u32) {
        let now_ns = self.events.now_ns();
        let cores = &self.setup.machine.clusters[cluster.index()].cores;
        let busy = cores.iter().any(|&core| !self.sched.is_free(core));
        let Some(governing) = self.governing.as_deref_mut() else { return };
        let Some(governed) = &mut governing.clusters[cluster.index()] else { return };
        let pace = governed.governor.pace().filter(|_| governed.look == look);
        let Some(pace) = pace else { return };
        let decays = (governed.saw > 0).then_some(BLOCKED_LOAD_NS);
        let idle_due_ns = pace.idle_gap_ns.or(decays).map(|gap_ns| governed.looked_ns + gap_ns);
        if busy || idle_due_ns.is_some_and(|due_ns| now_ns >= due_ns) {
            governed.looks = true;
            governing.some_look = true;
        } else if let Some(due_ns) = idle_due_ns {
            self.events.schedule(due_ns, SimEvent::GovernorTimer(cluster, look));
        }
    }
}
