//! The outcome of a finished simulation, after a last check of conservation.

use ampsched_model::{ClusterId, CoreId, Ns, ThreadId};

use super::Engine;
use super::apps::AppRun;
use super::meters::Meters;
use super::threads::Work;
use crate::{
    AppOutcome, ClusterOutcome, CoreOutcome, Outcome, SimError, ThreadOutcome, geometric_mean,
};

impl Engine<'_> {
    pub(super) fn outcome(self) -> Result<Outcome, SimError> {
        let threads: Vec<ThreadOutcome> =
            (0..self.threads.len()).map(|index| self.thread_outcome(index.into())).collect();
        let cores: Vec<CoreOutcome> = self.cores.ids().map(|id| self.core_outcome(id)).collect();
        self.check_conservation(&threads, &cores)?;
        let apps = self
            .apps
            .iter()
            .map(|app| AppOutcome {
                name: app.name.clone(),
                program: app.program.name.clone(),
                start_ns: app.start_ns,
                turnaround_ns: self.turnaround_ns(app),
                completions_ns: app.completions_ns.clone(),
                threads: app.threads,
            })
            .collect();
        let caveat = self.supervisor.caveat(&self.sched, self.setup.options.energy);
        let unheard = self.asked.caveat(&self.sched, self.clamps_clocks());
        let caveat = match (caveat, unheard) {
            (Some(caveat), Some(unheard)) => Some(format!("{caveat}; {unheard}")),
            (caveat, unheard) => caveat.or(unheard),
        };
        let clusters = self.clocks.clusters().map(|id| self.cluster_outcome(id)).collect();
        let board_mw = self.setup.machine.board.board_mw;
        let board_uj = (board_mw > 0.0).then(|| board_mw * self.events.now_ns() as f64 / 1e6);
        let mut counts = self.record.counts;
        counts.migrations = threads.iter().map(|thread| thread.migrations).sum();
        Ok(Outcome {
            machine: self.setup.machine.name,
            workload: self.setup.workload_name,
            policy: self.setup.policy_name,
            seed: self.setup.options.seed,
            noise: self.setup.options.noise.as_ref().map(|noise| noise.name.clone()),
            makespan_ns: self.events.now_ns(),
            apps,
            threads,
            cores,
            clusters,
            board_uj: self.meters.as_deref().and(board_uj),
            peak_c: self.meters.as_deref().and_then(Meters::peak_c),
            counts,
            caveat,
        })
    }

    fn core_outcome(&self, id: CoreId) -> CoreOutcome {
        let core = &self.cores[id];
        CoreOutcome {
            busy_ns: self.sched.core(id).busy_ns,
            overhead_ns: core.overhead_ns,
            idle_ns: core.idle_ns,
            noise_ns: core.noise_ns,
            interrupted_ns: core.interrupted_ns,
            switches: core.switches,
        }
    }

    fn cluster_outcome(&self, cluster: ClusterId) -> ClusterOutcome {
        let (clock, entry) =
            (self.clocks.of(cluster), &self.setup.machine.clusters[cluster.index()]);
        let times = clock.residency_ns(self.speeds.opp(cluster), self.events.now_ns());
        let residency = entry.opps.iter().map(|opp| opp.mhz).zip(times);
        ClusterOutcome {
            name: entry.name.clone(),
            residency: residency.filter(|&(_, ns)| ns > 0).collect(),
            frequency_changes: clock.changes(),
            energy: self
                .meters
                .as_deref()
                .map(|meters| meters.cluster_energy(cluster, &entry.cores)),
        }
    }

    /// The geometric mean of the completion times; up to now if there is none yet.
    fn turnaround_ns(&self, app: &AppRun) -> Ns {
        match app.completions_ns.as_slice() {
            [] => self.events.now_ns().saturating_sub(app.start_ns),
            [only] => *only,
            many => {
                let times: Vec<f64> = many.iter().map(|&ns| ns as f64).collect();
                geometric_mean(&times).round() as Ns
            }
        }
    }

    fn thread_outcome(&self, id: ThreadId) -> ThreadOutcome {
        let (thread, now_ns) = (&self.threads[id], self.events.now_ns());
        let stats = self.sched.stats_until(id, now_ns);
        let symmetric = self.sched.topology().class_count() == 1;
        let little_ns: Ns = if symmetric { 0 } else { stats.run_ns[0] };
        let live = self.sched.thread(id).state.is_live();
        let unfinished = if thread.work == Work::Instructions { thread.remaining } else { 0 };
        ThreadOutcome {
            app: thread.app.0,
            repetition: thread.repetition,
            name: thread.name.clone(),
            start_ns: thread.start_ns,
            end_ns: if live { now_ns } else { thread.end_ns },
            big_ns: stats.run_ns_total() - little_ns,
            little_ns,
            ready_ns: stats.ready_ns,
            ready_ns_max: stats.ready_ns_max,
            blocked_ns: stats.blocked_ns,
            blame_ns: self.sched.blame_ns(id),
            instructions: self.sched.instructions(id).iter().sum(),
            instructions_demanded: thread.demanded - unfinished,
            switches: stats.switches,
            voluntary: thread.voluntary,
            involuntary: thread.involuntary,
            spin_ns: thread.spun_ns,
            migrations: stats.migrations,
            energy_uj: self.meters.as_deref().map(|meters| meters.thread_uj(id)),
        }
    }

    /// Busy + idle time, and noise beside them, is cores x time, run time is busy time, and all demanded instructions,
    /// no more, have retired.
    fn check_conservation(
        &self,
        threads: &[ThreadOutcome],
        cores: &[CoreOutcome],
    ) -> Result<(), SimError> {
        let broken = |what: String| Err(SimError::Invariant { at_ns: self.events.now_ns(), what });
        for (index, core) in cores.iter().enumerate() {
            if core.busy_ns + core.idle_ns + core.noise_ns != self.events.now_ns() {
                return broken(format!(
                    "core {index}: {} ns busy + {} ns idle + {} ns noise is not {} ns",
                    core.busy_ns,
                    core.idle_ns,
                    core.noise_ns,
                    self.events.now_ns()
                ));
            }
        }
        let busy_ns: Ns = cores.iter().map(|core| core.busy_ns).sum();
        let run_ns: Ns = threads.iter().map(|thread| thread.big_ns + thread.little_ns).sum();
        if busy_ns != run_ns {
            return broken(format!(
                "cores were busy for {busy_ns} ns, threads ran for {run_ns} ns"
            ));
        }
        match threads.iter().find(|thread| thread.instructions != thread.instructions_demanded) {
            None => Ok(()),
            Some(thread) => broken(format!(
                "thread {} retired {} of {} instructions",
                thread.name, thread.instructions, thread.instructions_demanded
            )),
        }
    }
}
