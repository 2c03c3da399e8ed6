//! Clock frequencies: requests, limits, transitions.
//!
//! A clock has these voices: what is *wanted*, by a governor or the policy; the policy's *limit*; the *cap* that heat
//! sets, or the machine's bounds; what *turbo* allows, less the *steps* that the power limit takes. The lowest of the
//! four is the *target*, which holds after the cluster's transition latency. Governors do not hear of the fourth, as in
//! Linux.

use ampsched_model::{Cluster, ClusterId, Machine, Ns};

use super::events::SimEvent;
use super::{Engine, Fallible};

/// State of a cluster's clock.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    /// The operating point that was asked for last, without regard to the limit and the cap.
    wanted: usize,
    /// The highest operating point that the policy allows.
    limit: usize,
    /// The highest operating point that heat allows.
    cap: usize,
    /// The highest operating point that the machine's bounds allow.
    bound: usize,
    /// The highest operating point with as many active cores as there are.
    turbo: usize,
    /// Operating points that the power limit takes from that.
    steps: usize,
    /// Where it goes, or is.
    target: usize,
    /// Counts requests: a transition that another request has overtaken is void.
    request: u32,
    /// Time at each operating point up to `since_ns`.
    residency_ns: Vec<Ns>,
    since_ns: Ns,
    changes: u64,
}

impl Clock {
    /// At the highest operating point that bounds allow.
    fn new(cluster: &Cluster) -> Self {
        let (opps, bound) = (cluster.opps.len(), cluster.highest_opp());
        let highest = opps - 1;
        Self {
            wanted: highest,
            limit: highest,
            cap: highest,
            bound,
            turbo: highest,
            steps: 0,
            target: bound,
            request: 0,
            residency_ns: vec![0; opps],
            since_ns: 0,
            changes: 0,
        }
    }

    /// Time at each operating point up to now, `opp` being the present one.
    pub fn residency_ns(&self, opp: usize, now_ns: Ns) -> Vec<Ns> {
        let mut residency_ns = self.residency_ns.clone();
        residency_ns[opp] += now_ns - self.since_ns;
        residency_ns
    }

    /// The highest operating point that heat and bounds allow.
    pub fn cap(&self) -> usize {
        self.cap.min(self.bound)
    }

    /// Number of changes.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Where it would go if the power limit took so many operating points.
    pub fn at_steps(&self, steps: usize) -> usize {
        self.wanted.min(self.limit).min(self.cap()).min(self.turbo.saturating_sub(steps))
    }

    /// Heads for what all voices allow. Returns the number of the request if that is another target than before.
    fn retarget(&mut self) -> Option<u32> {
        let target = self.at_steps(self.steps);
        if target == self.target {
            return None;
        }
        self.target = target;
        self.request += 1;
        Some(self.request)
    }

    /// The target is reached, coming from another operating point.
    fn arrive(&mut self, from: usize, now_ns: Ns) {
        self.residency_ns[from] += now_ns - self.since_ns;
        self.since_ns = now_ns;
        self.changes += 1;
    }
}

/// The clocks of all clusters.
pub(super) struct Clocks {
    all: Vec<Clock>,
}

impl Clocks {
    /// All at the highest frequency that their bounds allow.
    pub fn new(machine: &Machine) -> Self {
        Self { all: machine.clusters.iter().map(Clock::new).collect() }
    }

    /// All clusters, in ascending order.
    pub fn clusters(&self) -> impl Iterator<Item = ClusterId> + use<> {
        (0..self.all.len()).map(ClusterId::from)
    }

    /// A cluster's clock.
    pub fn of(&self, cluster: ClusterId) -> &Clock {
        &self.all[cluster.index()]
    }

    fn of_mut(&mut self, cluster: ClusterId) -> &mut Clock {
        &mut self.all[cluster.index()]
    }
}

impl Engine<'_> {
    /// Carries out the frequencies and limits that a plan asks for.
    pub(super) fn apply_frequencies(&mut self) -> Fallible {
        let requests: Vec<(ClusterId, u32)> = self.supervisor.plan.drain_frequencies().collect();
        for (cluster, mhz) in requests {
            self.check_cluster(cluster, mhz)?;
            self.retire_governor(cluster);
            self.request_frequency(cluster, mhz);
        }
        let limits: Vec<(ClusterId, u32)> = self.supervisor.plan.drain_limits().collect();
        for (cluster, mhz) in limits {
            self.check_cluster(cluster, mhz)?;
            let opps = &self.setup.machine.clusters[cluster.index()].opps;
            let limit = opps.partition_point(|opp| opp.mhz <= mhz).saturating_sub(1);
            self.clocks.of_mut(cluster).limit = limit;
            self.go_to_target(cluster);
        }
        Ok(())
    }

    fn check_cluster(&self, cluster: ClusterId, mhz: u32) -> Fallible {
        if cluster.index() < self.clocks.all.len() {
            return Ok(());
        }
        let what = format!("asks for {mhz} MHz of cluster {}, which does not exist", cluster.0);
        Err(self.setup.bad_policy(what))
    }

    /// Asks for the lowest operating point that is at least as fast, or the highest there is; it
    /// holds after the cluster's transition latency. Threads run on meanwhile.
    pub(super) fn request_frequency(&mut self, cluster: ClusterId, mhz: u32) {
        let opps = &self.setup.machine.clusters[cluster.index()].opps;
        let wanted = opps.partition_point(|opp| opp.mhz < mhz).min(opps.len() - 1);
        self.clocks.of_mut(cluster).wanted = wanted;
        self.sched.set_wanted(cluster, opps[wanted].mhz);
        self.go_to_target(cluster);
    }

    /// Heat allows a cluster no more than that operating point.
    pub(super) fn cap_frequency(&mut self, cluster: ClusterId, cap: usize) {
        if std::mem::replace(&mut self.clocks.of_mut(cluster).cap, cap) != cap {
            self.tell_cap(cluster);
            self.governors_hear_limits(cluster);
        }
        self.go_to_target(cluster);
    }

    /// The scheduler hears what a cluster may reach.
    fn tell_cap(&mut self, cluster: ClusterId) {
        let cap = self.clocks.of(cluster).cap();
        self.sched.set_cap(cluster, self.setup.machine.clusters[cluster.index()].opps[cap].mhz);
        self.fast_capped(cluster);
    }

    /// Bounds of the machine's clocks hold from the begin on: whoever has taken the highest frequency for the present
    /// one hears of it. It hears of bounds as of heat.
    pub(super) fn hold_bounds(&mut self) {
        for cluster in self.clocks.clusters() {
            let entry = &self.setup.machine.clusters[cluster.index()];
            let mhz = entry.opps[entry.highest_opp()].mhz;
            if mhz < entry.max_mhz() {
                self.tell_cap(cluster);
                self.sched.set_frequency(cluster, mhz, 0);
                self.fast_clocked(cluster);
                self.supervisor.hear_frequency(&self.setup.machine, cluster, mhz);
            }
        }
    }

    /// As many cores are active as allow a cluster that operating point.
    pub(super) fn turbo_allows(&mut self, cluster: ClusterId, highest: usize) {
        self.clocks.of_mut(cluster).turbo = highest;
        self.go_to_target(cluster);
    }

    /// The power limit takes so many operating points from every cluster.
    pub(super) fn take_steps(&mut self, steps: usize) {
        for cluster in self.clocks.clusters() {
            self.clocks.of_mut(cluster).steps = steps;
            self.go_to_target(cluster);
        }
    }

    fn go_to_target(&mut self, cluster: ClusterId) {
        let Some(request) = self.clocks.of_mut(cluster).retarget() else { return };
        match self.setup.machine.costs.frequency_switch_ns {
            0 => self.finish_transition(cluster, request),
            latency_ns => {
                let at_ns = self.events.now_ns() + latency_ns;
                self.events.schedule(at_ns, SimEvent::Frequency(cluster, request));
            }
        }
    }

    /// A trace hears at which frequencies the clusters begin.
    pub(super) fn tell_clocks(&mut self) {
        let Some(watch) = &mut self.record.watch else { return };
        for (index, cluster) in self.setup.machine.clusters.iter().enumerate() {
            let id = ClusterId::from(index);
            watch.trace.frequency(id, cluster.opps[self.speeds.opp(id)].mhz, 0);
        }
    }

    /// A transition is over: everybody on the cluster goes on at the new speed.
    pub(super) fn finish_transition(&mut self, cluster: ClusterId, request: u32) {
        let current = self.speeds.opp(cluster);
        let clock = self.clocks.of(cluster);
        let target = clock.target;
        if request != clock.request || target == current {
            return;
        }
        let cores = self.setup.machine.clusters[cluster.index()].cores.clone();
        for &core in &cores {
            self.account(core);
            self.cores[core].leave_point(current, self.sched.core(core).busy_ns);
        }
        let now_ns = self.events.now_ns();
        self.clocks.of_mut(cluster).arrive(current, now_ns);
        self.speeds.set_opp(&self.setup.machine, cluster, target);
        let mhz = self.setup.machine.clusters[cluster.index()].opps[target].mhz;
        self.sched.set_frequency(cluster, mhz, now_ns);
        self.fast_clocked(cluster);
        self.supervisor.hear_frequency(&self.setup.machine, cluster, mhz);
        if let Some(watch) = &mut self.record.watch {
            watch.trace.frequency(cluster, mhz, now_ns);
        }
        for core in cores {
            let Some(thread) = self.sched.current(core) else { continue };
            let entry = &self.threads[thread];
            self.cores[core].set_work(entry, self.speeds.rate(entry.profile, cluster));
            self.pace_budget(core);
            self.arm(core);
        }
        self.forget_speeds(cluster);
        self.meter_cluster(cluster);
    }
}
