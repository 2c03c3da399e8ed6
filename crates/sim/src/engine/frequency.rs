//! Clock frequencies: requests, transitions, and what is left of the work of those who run.

use ampsched_model::{ClusterId, Ns};

use super::{Engine, Fallible, Happening};
use crate::SimError;

/// State of a cluster's clock.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    /// The operating point that was asked for last, without regard to the limit and the cap.
    wanted: usize,
    /// The highest operating point that the policy allows.
    limit: usize,
    /// The highest operating point that heat allows.
    cap: usize,
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
    /// At the highest of some operating points.
    pub fn new(opps: usize) -> Self {
        let residency_ns = vec![0; opps];
        Self {
            wanted: opps - 1,
            limit: opps - 1,
            cap: opps - 1,
            target: opps - 1,
            request: 0,
            residency_ns,
            since_ns: 0,
            changes: 0,
        }
    }

    /// Time at each operating point up to now.
    pub fn residency_ns(&self, opp: usize, now_ns: Ns) -> Vec<Ns> {
        let mut residency_ns = self.residency_ns.clone();
        residency_ns[opp] += now_ns - self.since_ns;
        residency_ns
    }

    /// The highest operating point that heat allows.
    pub fn cap(&self) -> usize {
        self.cap
    }

    /// Number of changes.
    pub fn changes(&self) -> u64 {
        self.changes
    }
}

impl Engine<'_> {
    /// Carries out the frequencies and limits that a plan asks for.
    pub(super) fn apply_frequencies(&mut self) -> Fallible {
        let requests: Vec<(ClusterId, u32)> = self.plan.drain_frequencies().collect();
        for (cluster, mhz) in requests {
            self.check_cluster(cluster, mhz)?;
            self.retire_governor(cluster);
            self.request_frequency(cluster, mhz);
        }
        let limits: Vec<(ClusterId, u32)> = self.plan.drain_limits().collect();
        for (cluster, mhz) in limits {
            self.check_cluster(cluster, mhz)?;
            let opps = &self.machine.clusters[cluster.index()].opps;
            let limit = opps.partition_point(|opp| opp.mhz <= mhz).saturating_sub(1);
            self.clocks[cluster.index()].limit = limit;
            self.go_to_target(cluster);
        }
        Ok(())
    }

    fn check_cluster(&self, cluster: ClusterId, mhz: u32) -> Fallible {
        if cluster.index() < self.clocks.len() {
            return Ok(());
        }
        let what = format!("asks for {mhz} MHz of cluster {}, which does not exist", cluster.0);
        Err(SimError::BadPolicy { policy: self.policy_name.clone(), what }.into())
    }

    /// Asks for the lowest operating point that is at least as fast, or the highest there is; it
    /// holds after the cluster's transition latency. Threads run on meanwhile.
    pub(super) fn request_frequency(&mut self, cluster: ClusterId, mhz: u32) {
        let opps = &self.machine.clusters[cluster.index()].opps;
        let wanted = opps.partition_point(|opp| opp.mhz < mhz).min(opps.len() - 1);
        self.clocks[cluster.index()].wanted = wanted;
        self.sched.set_wanted(cluster, opps[wanted].mhz);
        self.go_to_target(cluster);
    }

    /// Heat allows a cluster no more than that operating point.
    pub(super) fn cap_frequency(&mut self, cluster: ClusterId, cap: usize) {
        let clock = &mut self.clocks[cluster.index()];
        if std::mem::replace(&mut clock.cap, cap) != cap {
            self.governors_hear_limits(cluster);
        }
        self.go_to_target(cluster);
    }

    fn go_to_target(&mut self, cluster: ClusterId) {
        let clock = &mut self.clocks[cluster.index()];
        let target = clock.wanted.min(clock.limit).min(clock.cap);
        if target == clock.target {
            return;
        }
        clock.target = target;
        clock.request += 1;
        let request = clock.request;
        match self.machine.costs.frequency_switch_ns {
            0 => self.finish_transition(cluster, request),
            latency_ns => {
                self.push(self.now_ns + latency_ns, Happening::Frequency(cluster, request));
            }
        }
    }

    /// A transition is over: everybody on the cluster goes on at the new speed.
    pub(super) fn finish_transition(&mut self, cluster: ClusterId, request: u32) {
        let (target, current) = (self.clocks[cluster.index()].target, self.speeds.opp(cluster));
        if request != self.clocks[cluster.index()].request || target == current {
            return;
        }
        let cores = self.machine.clusters[cluster.index()].cores.clone();
        for &core in &cores {
            self.account(core);
        }
        let clock = &mut self.clocks[cluster.index()];
        clock.residency_ns[current] += self.now_ns - clock.since_ns;
        clock.since_ns = self.now_ns;
        clock.changes += 1;
        self.speeds.set_opp(&self.machine, cluster, target);
        let mhz = self.machine.clusters[cluster.index()].opps[target].mhz;
        self.sched.set_frequency(cluster, mhz, self.now_ns);
        if let Some(sampler) = &mut self.sampler {
            sampler.set_frequency(&self.machine, cluster, mhz);
        }
        if let Some(trace) = self.trace.as_deref_mut() {
            trace.frequency(cluster, mhz, self.now_ns);
        }
        for core in cores {
            let Some(thread) = self.sched.core(core).running else { continue };
            let rate = self.speeds.rate(self.threads[thread.index()].profile, cluster);
            let state = &mut self.cores[core.index()];
            state.instructions_per_ns = rate.instructions_per_ns;
            state.ns_per_instruction = rate.ns_per_instruction;
            self.arm(core, thread);
        }
        self.meter_cluster(cluster);
    }
}
