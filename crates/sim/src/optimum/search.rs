//! The search through scripts.
//!
//! First with few departures from what looks best (limited discrepancy search: Harvey and Ginsberg, IJCAI 1995), which
//! finds good schedules soon; then through all, depth first. What is left of a run has a limit: if even that is no
//! better than the best schedule, nothing behind it is looked at. Nor is what comes after a state in which another run
//! has been at the same time.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use ampsched_model::{AppId, ClusterId, CoreId, Machine, Ns, ThreadId, Workload};
use ampsched_policy::{RunState, Sched};

use super::assign::{Assignment, Runnable};
use super::plane::Scripted;
use super::{Effort, Objective, Optimum, Stay};
use crate::bounds::{Progress, Remaining};
use crate::{Options, Outcome, SimError, simulate};

/// Departures from what looks best in the first part of the search.
const DEPARTURES_MAX: usize = 3;
/// What staying where it is is worth to a thread when options are put into order.
const STAYS: f64 = 1e-3;

/// A choice that a run has made.
#[derive(Clone, Copy, Debug)]
struct Choice {
    chosen: usize,
    options: usize,
}

/// All that two runs may differ in at one moment, if threads do one kind of work.
type State = Vec<u64>;

/// The course of one run.
pub(super) struct Course {
    remaining: Remaining,
    alone_ns: Vec<f64>,
    effort: Effort,
    script: Vec<usize>,
    choices: Vec<Choice>,
    /// Nothing better can come of it.
    is_cut: bool,
    best: f64,
    /// States that have been seen; none if they do not count.
    seen: Option<HashSet<State>>,
    /// By thread: application and number there.
    threads: Vec<(usize, usize)>,
    progress: Vec<Progress>,
    /// Cluster of each core.
    clusters: Vec<usize>,
    /// By core: who runs there, and since when.
    running_since: Vec<Option<(ThreadId, Ns)>>,
    /// By thread: time on each cluster, without its present stay.
    had_ns: Vec<Vec<Ns>>,
    timeline: Vec<Stay>,
}

impl Course {
    /// Begins anew by another script.
    fn begin(&mut self, script: Vec<usize>) {
        self.script = script;
        self.choices.clear();
        self.is_cut = false;
        self.threads.clear();
        self.progress = vec![Progress::default(); self.remaining.apps.len()];
        self.running_since = vec![None; self.clusters.len()];
        self.had_ns.clear();
        self.timeline.clear();
    }

    /// A thread exists.
    pub fn add(&mut self, app: AppId, thread: ThreadId) {
        debug_assert_eq!(self.threads.len(), thread.index(), "threads are numbered in order");
        let number = self.threads.iter().filter(|(other, _)| *other == app.index()).count();
        self.threads.push((app.index(), number));
        self.had_ns.push(vec![0; self.clusters.iter().max().map_or(0, |last| last + 1)]);
    }

    /// Time that a thread has had on each cluster.
    pub fn run_ns(&self, thread: ThreadId, now_ns: Ns) -> Vec<Ns> {
        let mut run_ns = self.had_ns[thread.index()].clone();
        for (running, &cluster) in self.running_since.iter().zip(&self.clusters) {
            run_ns[cluster] += match running {
                Some((other, from_ns)) if *other == thread => now_ns - from_ns,
                _ => 0,
            };
        }
        run_ns
    }

    /// Threads with the same number do the same.
    pub fn group(&self, thread: ThreadId) -> u32 {
        let (app, number) = self.threads[thread.index()];
        let known = &self.remaining.apps[app];
        match known.threads.get(number) {
            Some(thread) if known.is_simple => (app as u32) << 16 | thread.group,
            _ => u32::MAX - thread.0,
        }
    }

    /// A thread is on a core.
    pub fn start(&mut self, thread: ThreadId, core: CoreId, now_ns: Ns) {
        let on_another = |at: &Option<(ThreadId, Ns)>| at.is_some_and(|(other, _)| other == thread);
        if let Some(other) = self.running_since.iter().position(on_another) {
            self.leave(CoreId::from(other), now_ns);
        }
        self.leave(core, now_ns);
        self.running_since[core.index()] = Some((thread, now_ns));
    }

    /// Whoever is on a core is so no more.
    pub fn leave(&mut self, core: CoreId, now_ns: Ns) {
        let Some((thread, from_ns)) = self.running_since[core.index()].take() else { return };
        self.had_ns[thread.index()][self.clusters[core.index()]] += now_ns - from_ns;
        if now_ns > from_ns {
            let (core, thread) = (u32::from(core.0), thread.0);
            self.timeline.push(Stay { core, thread, from_ns, to_ns: now_ns });
        }
    }

    /// What is chosen at this moment.
    pub fn choose(
        &mut self,
        sched: &Sched,
        threads: &[Runnable],
        mut options: Vec<Assignment>,
        now_ns: Ns,
    ) -> Assignment {
        if options.len() == 1 {
            return options.remove(0);
        }
        self.look(sched, now_ns);
        let place = self.choices.len();
        let chosen = self.script.get(place).copied();
        if chosen.is_none() && !self.is_cut {
            self.is_cut = self.is_hopeless(now_ns) || self.was_seen(sched, now_ns);
        }
        let mut scored: Vec<(f64, Assignment)> = options
            .into_iter()
            .map(|option| (self.score(sched, threads, &option), option))
            .collect();
        scored.sort_by(|one, other| other.0.total_cmp(&one.0));
        let chosen = chosen.unwrap_or(0);
        if !self.is_cut {
            self.choices.push(Choice { chosen, options: scored.len() });
        }
        scored.swap_remove(chosen).1
    }

    /// Notes how far everybody is.
    fn look(&mut self, sched: &Sched, now_ns: Ns) {
        for progress in &mut self.progress {
            progress.run_ns.clear();
        }
        let mut ends: Vec<Option<Ns>> = vec![Some(0); self.progress.len()];
        for (index, &(app, _)) in self.threads.iter().enumerate() {
            let thread = ThreadId::from(index);
            let run_ns = self.run_ns(thread, now_ns);
            self.progress[app].run_ns.push(run_ns);
            let state = sched.thread(thread);
            ends[app] = match state.state {
                RunState::Exited => ends[app].map(|end_ns| end_ns.max(state.since_ns)),
                _ => None,
            };
        }
        for (progress, (app, end_ns)) in self.progress.iter_mut().zip(ends.iter().enumerate()) {
            let exists = self.threads.iter().any(|(of, _)| *of == app);
            progress.ended_ns = end_ns.filter(|_| exists);
        }
    }

    /// Whether what is left cannot make it better than the best.
    fn is_hopeless(&self, now_ns: Ns) -> bool {
        let least = match self.effort.objective {
            Objective::Makespan => self.remaining.makespan_ns(now_ns, &self.progress),
            _ => self.remaining.least_sum(now_ns, &self.progress, &|app, ns| self.part(app, ns)),
        };
        least >= self.best - self.effort.tolerance * self.best.abs()
    }

    /// An application's part of the objective, which is to be small.
    fn part(&self, app: usize, turnaround_ns: f64) -> f64 {
        match self.effort.objective {
            Objective::HStp => -self.alone_ns[app] / turnaround_ns.max(1.0),
            _ => turnaround_ns / self.alone_ns[app],
        }
    }

    fn was_seen(&mut self, sched: &Sched, now_ns: Ns) -> bool {
        if self.seen.is_none() || self.remaining.apps.iter().any(|app| !app.is_simple) {
            return false;
        }
        let state = self.state(sched, now_ns);
        !self.seen.as_mut().is_some_and(|seen| seen.insert(state))
    }

    fn state(&self, sched: &Sched, now_ns: Ns) -> State {
        let mut threads: Vec<(u32, Vec<u64>)> = (0..self.threads.len())
            .map(|index| {
                let thread = ThreadId::from(index);
                let (stats, state) = (sched.stats(thread), sched.thread(thread));
                let mut all = self.run_ns(thread, now_ns);
                all.extend([
                    stats.switches,
                    stats.migrations,
                    state.state as u64,
                    state.ran_on.map_or(u64::MAX, |core| core.0.into()),
                    // Who has waited longest comes first; ends count as they are.
                    if state.state.is_runnable() { 0 } else { state.since_ns },
                ]);
                (self.group(thread), all)
            })
            .collect();
        threads.sort_unstable();
        let numbers = threads.into_iter().flat_map(|(group, all)| [vec![group.into()], all]);
        [now_ns].into_iter().chain(numbers.flatten()).collect()
    }

    /// How good an option looks: speed for those whose ends are nearest for what they weigh.
    fn score(&self, sched: &Sched, threads: &[Runnable], option: &Assignment) -> f64 {
        let pairs = threads.iter().zip(option);
        let gain = |(runnable, place): (&Runnable, &Option<ClusterId>)| {
            let Some(cluster) = place else { return 0.0 };
            let (app, number) = self.threads[runnable.thread.index()];
            let (known, progress) = (&self.remaining.apps[app], &self.progress[app]);
            let Some(thread) = known.threads.get(number) else { return 0.0 };
            let left_ns = known.left_ns(number, progress).max(1.0);
            let all_ns = (0..known.threads.len()).map(|other| known.left_ns(other, progress));
            let weight = match self.effort.objective {
                Objective::Makespan => left_ns,
                _ => left_ns / (self.alone_ns[app] * all_ns.sum::<f64>().max(1.0).powi(2)) * 1e12,
            };
            let last = runnable.alike.place.map(|core| sched.topology().core(core).cluster);
            let stays = if last == Some(*cluster) { 1.0 + STAYS } else { 1.0 };
            weight * thread.speed[cluster.index()] * stays
        };
        pairs.map(gain).sum()
    }

    /// The objective's value of a run, which is to be small.
    fn cost(&self, outcome: &Outcome) -> f64 {
        match self.effort.objective {
            Objective::Makespan => outcome.makespan_ns as f64,
            _ => {
                let apps = outcome.apps.iter().enumerate();
                apps.map(|(number, app)| self.part(number, app.turnaround_ns as f64)).sum()
            }
        }
    }
}

/// The search.
pub(super) struct Search<'a> {
    machine: &'a Machine,
    workload: &'a Workload,
    options: Options,
    effort: Effort,
    course: Arc<Mutex<Course>>,
    simulations: u32,
    best_script: Vec<usize>,
}

impl<'a> Search<'a> {
    pub fn new(
        machine: &'a Machine,
        workload: &'a Workload,
        options: &Options,
        alone_ns: &[f64],
        effort: Effort,
        remaining: Remaining,
    ) -> Self {
        let course = Course {
            remaining,
            alone_ns: alone_ns.to_vec(),
            effort,
            script: Vec::new(),
            choices: Vec::new(),
            is_cut: false,
            best: f64::INFINITY,
            seen: None,
            threads: Vec::new(),
            progress: Vec::new(),
            clusters: (0..machine.cores())
                .map(|core| machine.cluster_of(CoreId::from(core)).index())
                .collect(),
            running_since: Vec::new(),
            had_ns: Vec::new(),
            timeline: Vec::new(),
        };
        Self {
            machine,
            workload,
            options: options.clone(),
            effort,
            course: Arc::new(Mutex::new(course)),
            simulations: 0,
            best_script: Vec::new(),
        }
    }

    /// Searches; `limit` is that of the objective.
    pub fn run(mut self, limit: f64) -> Result<Optimum, SimError> {
        let half = self.effort.simulations / 2;
        for departures in 0..=DEPARTURES_MAX {
            self.explore(departures, half.max(1))?;
        }
        self.with(|course| course.seen = Some(HashSet::new()));
        let proven = self.explore(usize::MAX, self.effort.simulations)?;
        self.finish(limit, proven)
    }

    /// Runs all scripts with so many departures at most; returns whether none was left out.
    fn explore(&mut self, departures: usize, simulations: u32) -> Result<bool, SimError> {
        let mut script = Some(Vec::new());
        while let Some(next) = script {
            if self.simulations >= simulations {
                return Ok(false);
            }
            let outcome = self.simulate(next)?;
            self.simulations += 1;
            let (better, following) = self.with(|course| {
                let cost = course.cost(&outcome);
                let is_better = cost < course.best;
                course.best = course.best.min(cost);
                let made = || course.choices.iter().map(|choice| choice.chosen).collect();
                (is_better.then(made), following(&course.choices, departures))
            });
            self.best_script = better.unwrap_or_else(|| std::mem::take(&mut self.best_script));
            script = following;
        }
        Ok(true)
    }

    fn simulate(&self, script: Vec<usize>) -> Result<Outcome, SimError> {
        if self.options.interrupt.is_wanted() {
            return Err(SimError::Interrupted);
        }
        self.with(|course| course.begin(script));
        let (course, quantum_ns) = (Arc::clone(&self.course), self.effort.quantum_ns);
        let policy = Box::new(Scripted { course, quantum_ns });
        simulate(self.machine, self.workload, "optimum", policy, &self.options)
    }

    /// The best one once more.
    fn finish(mut self, limit: f64, proven: bool) -> Result<Optimum, SimError> {
        let script = std::mem::take(&mut self.best_script);
        // Nothing is left out now.
        let best = self.with(|course| {
            course.seen = None;
            std::mem::replace(&mut course.best, f64::INFINITY)
        });
        let outcome = self.simulate(script)?;
        let apps = outcome.apps.len() as f64;
        let (timeline, choices) = self.with(|course| {
            debug_assert_eq!(course.cost(&outcome), best, "a script is the same whenever it runs");
            let departed = course.choices.len();
            (std::mem::take(&mut course.timeline), departed)
        });
        let (value, reaches) = match self.effort.objective {
            Objective::HAntt => (best / apps, best / apps * (1.0 - self.effort.tolerance) <= limit),
            Objective::HStp => (-best, -best * (1.0 + self.effort.tolerance) >= limit),
            Objective::Makespan => (best, best * (1.0 - self.effort.tolerance) <= limit),
        };
        let timeline = merged(timeline);
        let proven = proven || reaches;
        Ok(Optimum {
            value,
            limit,
            proven,
            simulations: self.simulations,
            choices,
            outcome,
            timeline,
        })
    }

    fn with<T>(&self, does: impl FnOnce(&mut Course) -> T) -> T {
        does(&mut self.course.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Stays by core and time; one that was only looked at in between is one.
fn merged(mut stays: Vec<Stay>) -> Vec<Stay> {
    stays.sort_by_key(|stay| (stay.core, stay.from_ns));
    stays.dedup_by(|next, stay| {
        let goes_on =
            (stay.core, stay.thread, stay.to_ns) == (next.core, next.thread, next.from_ns);
        stay.to_ns = if goes_on { next.to_ns } else { stay.to_ns };
        goes_on
    });
    stays
}

/// The next script, depth first, with so many departures at most.
fn following(choices: &[Choice], departures: usize) -> Option<Vec<usize>> {
    let departs = |choice: &&Choice| choice.chosen > 0;
    (0..choices.len()).rev().find_map(|place| {
        let Choice { chosen, options } = choices[place];
        let before = choices[..place].iter().filter(departs).count();
        (chosen + 1 < options && before < departures).then(|| {
            let kept = choices[..place].iter().map(|choice| choice.chosen);
            kept.chain([chosen + 1]).collect()
        })
    })
}
