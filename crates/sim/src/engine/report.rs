//! The outcome of a finished simulation, after a last check of conservation.

use ampsched_model::{ClassId, Cluster, ClusterId, CoreId, Histogram, Ns, ThreadId, class_name};

use super::Engine;
use super::apps::AppRun;
use super::meters::Meters;
use super::threads::Work;
use super::timeliness::Periods;
use crate::{
    AppOutcome, ClassOutcome, ClusterOutcome, CoreOutcome, Outcome, SimError, ThreadOutcome,
    Totals, geometric_mean,
};

impl Engine<'_> {
    pub(super) fn outcome(mut self) -> Result<Outcome, SimError> {
        for thread in self.sched.live_threads().collect::<Vec<_>>() {
            self.threads[thread].timeliness.stops(self.events.now_ns());
        }
        let threads: Vec<ThreadOutcome> =
            (0..self.threads.len()).map(|index| self.thread_outcome(index.into())).collect();
        let cores: Vec<CoreOutcome> = self.cores.ids().map(|id| self.core_outcome(id)).collect();
        self.check_conservation(&threads, &cores)?;
        let timely = self.timeliness_of_apps();
        let mut latency = Histogram::default();
        for (latencies, _) in &timely {
            latency += latencies;
        }
        let apps = self
            .apps
            .iter()
            .zip(&timely)
            .map(|(app, (latencies, periods))| AppOutcome {
                name: app.name.clone(),
                program: app.program.name.clone(),
                start_ns: app.start_ns,
                turnaround_ns: self.turnaround_ns(app),
                completions_ns: app.completions_ns.clone(),
                threads: app.threads,
                latency: latencies.into(),
                periods: periods.summary(),
            })
            .collect();
        let caveat = self.supervisor.caveat(&self.sched, self.setup.options.energy);
        let unheard = self.asked.caveat(&self.sched, self.clamps_clocks());
        let caveat = match (caveat, unheard) {
            (Some(caveat), Some(unheard)) => Some(format!("{caveat}; {unheard}")),
            (caveat, unheard) => caveat.or(unheard),
        };
        let clusters: Vec<ClusterOutcome> =
            self.clocks.clusters().map(|id| self.cluster_outcome(id, &cores)).collect();
        let board_mw = self.setup.machine.board.board_mw;
        let board_uj = (board_mw > 0.0).then(|| board_mw * self.events.now_ns() as f64 / 1e6);
        let board_uj = self.meters.as_deref().and(board_uj);
        let classes = self.class_outcomes(&clusters);
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
            latency: (&latency).into(),
            classes,
            totals: Totals::of(&threads, &cores, &clusters, board_uj),
            threads,
            cores,
            clusters,
            board_uj,
            peak_c: self.meters.as_deref().and_then(Meters::peak_c),
            counts,
            caveat,
            smt: smt(&self.setup.machine.clusters),
        })
    }

    /// Wake-up latencies and periods of each application's threads together, in all repetitions.
    fn timeliness_of_apps(&self) -> Vec<(Histogram, Periods)> {
        let mut apps: Vec<(Histogram, Periods)> = Vec::new();
        apps.resize_with(self.apps.iter().len(), Default::default);
        for thread in self.threads.iter() {
            let (latencies, periods) = &mut apps[thread.app.index()];
            *latencies += &thread.timeliness.latency;
            if let Some(own) = thread.timeliness.periods.as_deref() {
                *periods += own;
            }
        }
        apps
    }

    fn class_name(&self, class: ClassId) -> String {
        class_name(class.index(), self.setup.machine.class_count())
    }

    fn class_outcomes(&self, clusters: &[ClusterOutcome]) -> Vec<ClassOutcome> {
        let machine = &self.setup.machine;
        let class = |index| {
            let of_class = |&(number, _): &(usize, &ClusterOutcome)| {
                machine.clusters[number].class.index() == index
            };
            let own = || clusters.iter().enumerate().filter(of_class).map(|(_, cluster)| cluster);
            let energies: Option<Vec<f64>> =
                own().map(|cluster| Some(cluster.energy?.total_uj())).collect();
            ClassOutcome {
                name: class_name(index, machine.class_count()),
                clusters: own().map(|cluster| cluster.name.clone()).collect(),
                cores: own().map(|cluster| cluster.cores.len()).sum(),
                busy_ns: own().map(|cluster| cluster.busy_ns).sum(),
                idle_ns: own().map(|cluster| cluster.idle_ns).sum(),
                instructions: (0..self.threads.len())
                    .map(|thread| self.sched.instructions(thread.into())[index])
                    .sum(),
                energy_uj: energies.map(|energies| energies.iter().sum()),
            }
        };
        (0..machine.class_count()).map(class).collect()
    }

    fn core_outcome(&self, id: CoreId) -> CoreOutcome {
        let core = &self.cores[id];
        let cluster = &self.setup.machine.clusters[core.cluster.index()];
        let busy_ns = self.sched.core(id).busy_ns;
        let mut points = core.clone();
        points.leave_point(self.speeds.opp(core.cluster), busy_ns);
        let residency = cluster.opps.iter().map(|opp| opp.mhz).zip(points.busy_at_ns);
        CoreOutcome {
            core_class: self.class_name(cluster.class),
            cluster: cluster.name.clone(),
            residency: residency.filter(|&(_, ns)| ns > 0).collect(),
            busy_ns,
            overhead_ns: core.overhead_ns,
            idle_ns: core.idle_ns,
            noise_ns: core.noise_ns,
            interrupted_ns: core.interrupted_ns,
            switches: core.switches,
        }
    }

    fn cluster_outcome(&self, cluster: ClusterId, cores: &[CoreOutcome]) -> ClusterOutcome {
        let (clock, entry) =
            (self.clocks.of(cluster), &self.setup.machine.clusters[cluster.index()]);
        let times = clock.residency_ns(self.speeds.opp(cluster), self.events.now_ns());
        let residency = entry.opps.iter().map(|opp| opp.mhz).zip(times);
        let own = || entry.cores.iter().map(|core| &cores[core.index()]);
        ClusterOutcome {
            name: entry.name.clone(),
            core_class: self.class_name(entry.class),
            core_type: entry.core_type.clone(),
            cores: entry.cores.iter().map(|core| core.0).collect(),
            busy_ns: own().map(|core| core.busy_ns).sum(),
            idle_ns: own().map(|core| core.idle_ns).sum(),
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
        let live = self.sched.thread(id).state.is_live();
        let unfinished = if thread.work == Work::Instructions { thread.remaining } else { 0 };
        ThreadOutcome {
            app: thread.app.0,
            repetition: thread.repetition,
            name: thread.name.clone(),
            start_ns: thread.start_ns,
            end_ns: if live { now_ns } else { thread.end_ns },
            class_ns: stats.run_ns[..self.sched.topology().class_count()].to_vec(),
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
            latency: (&thread.timeliness.latency).into(),
            periods: thread.timeliness.periods.as_deref().and_then(Periods::summary),
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
        let run_ns: Ns = threads.iter().map(ThreadOutcome::run_ns).sum();
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

/// How the two threads of a core are modelled, by speed.
fn smt(clusters: &[Cluster]) -> Option<String> {
    let with_two = clusters.iter().filter_map(|cluster| {
        let speed = cluster.sharing.smt_speed.filter(|_| cluster.pairs().next().is_some())?;
        Some(format!("{} {speed:.2}", cluster.name))
    });
    let speeds: Vec<String> = with_two.collect();
    (!speeds.is_empty()).then(|| {
        let speeds = speeds.join(", ");
        format!(
            "each of two busy threads of a core (SMT) has a part of its speed, whatever they run: {speeds}"
        )
    })
}
