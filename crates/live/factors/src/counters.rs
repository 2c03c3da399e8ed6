//! Hardware counters of single threads.
//!
//! Each thread has its groups on every PMU of the machine, because it may run on any of them; a group only counts
//! while the thread runs on the CPUs of its PMU. What does not fit into one group takes turns with it, and is scaled
//! up by the share of the time in which it was counted.

mod perf;
mod plan;
mod pmu;

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use ampsched_model::Ns;
use rustix::io::Errno;

pub use perf::{Perf, PerfGroup};
pub use plan::{PmuPlan, Survey, WANTED};
pub use pmu::{Encoding, Pmu};

/// How long a group has been switched on while its thread ran, and for how much of that it was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Time in which its thread ran, on whatever CPU, in ns.
    pub enabled_ns: Ns,
    /// Time in which it was counted, in ns.
    pub running_ns: Ns,
}

/// Who counts: the kernel, or a test.
pub trait Source {
    /// Events that are counted at the same time.
    type Group;

    /// Counts events of a thread from now on. Errors: as of `perf_event_open`.
    fn open(&mut self, tid: i32, events: &[Encoding]) -> io::Result<Self::Group>;

    /// What a group has counted so far, in the order of its events; works after the thread's end, too.
    fn read(&mut self, group: &mut Self::Group, counts: &mut [u64]) -> io::Result<Times>;

    /// Whether events are really counted together on a CPU. Errors: they cannot be opened together.
    fn try_out(&mut self, cpu: usize, events: &[Encoding]) -> io::Result<bool>;

    /// Most files that counters may take.
    fn files_max(&self) -> usize;

    /// Lets more files be opened; whether that was possible.
    fn raise_limit(&mut self) -> bool;
}

/// What a thread has done on one PMU since the last reading.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PmuCounts {
    /// By the names of [`Counters::names`]; NaN where the PMU does not count it.
    pub counts: Vec<f64>,
    /// Time on the CPUs of the PMU, in ns.
    pub ran_ns: f64,
}

/// An opened group and what it had counted at the last reading.
struct Opened<G> {
    group: G,
    /// Place in the plan.
    pmu: usize,
    /// Place among the PMU's groups.
    index: usize,
    before: Vec<u64>,
    times: Times,
}

/// The counters of all threads that are followed.
pub struct Counters<S: Source> {
    source: S,
    plans: Vec<PmuPlan>,
    names: Vec<&'static str>,
    threads: BTreeMap<i32, Vec<Opened<S::Group>>>,
    /// Files that one thread takes: one per event.
    files_per_thread: usize,
    /// Threads for which there were no files left.
    waiting: BTreeSet<i32>,
    found: Vec<PmuCounts>,
    now: Vec<u64>,
}

impl<S: Source> Counters<S> {
    /// Counts what a survey has found countable; nobody is followed yet.
    pub fn new(source: S, survey: &Survey) -> Self {
        let plans = survey.pmus.clone();
        let names: BTreeSet<&'static str> =
            plans.iter().flat_map(|plan| plan.groups.iter().flatten()).map(|e| e.counter).collect();
        let names: Vec<&'static str> = names.into_iter().collect();
        let blank = PmuCounts { counts: vec![f64::NAN; names.len()], ran_ns: 0.0 };
        let files_per_thread =
            plans.iter().flat_map(|plan| &plan.groups).map(Vec::len).sum::<usize>();
        let largest = plans.iter().flat_map(|plan| &plan.groups).map(Vec::len).max();
        Self {
            source,
            found: vec![blank; plans.len()],
            now: vec![0; largest.unwrap_or(0)],
            plans,
            names,
            files_per_thread,
            threads: BTreeMap::new(),
            waiting: BTreeSet::new(),
        }
    }

    /// What is counted, in the order of [`PmuCounts::counts`].
    pub fn names(&self) -> &[&'static str] {
        &self.names
    }

    /// The PMUs, in the order of the readings.
    pub fn pmus(&self) -> impl Iterator<Item = &Pmu> {
        self.plans.iter().map(|plan| &plan.pmu)
    }

    /// Counts a thread from now on. If there are no files left it waits until others have ended, which is no
    /// error. Errors: the thread has ended, or this process may not.
    pub fn follow(&mut self, tid: i32) -> io::Result<()> {
        match self.open(tid) {
            Ok(groups) => {
                self.waiting.remove(&tid);
                self.threads.insert(tid, groups);
                Ok(())
            }
            Err(error) if has_no_files_left(&error) => {
                self.waiting.insert(tid);
                Ok(())
            }
            Err(error) => {
                self.waiting.remove(&tid);
                Err(error)
            }
        }
    }

    fn open(&mut self, tid: i32) -> io::Result<Vec<Opened<S::Group>>> {
        let files = (self.threads.len() + 1) * self.files_per_thread;
        // The limit is raised late, when the command has been started, which would inherit it.
        while files > self.source.files_max() {
            if !self.source.raise_limit() {
                return Err(Errno::MFILE.into());
            }
        }
        let mut opened = Vec::new();
        for (pmu, plan) in self.plans.iter().enumerate() {
            for (index, events) in plan.groups.iter().enumerate() {
                let group = self.source.open(tid, events)?;
                let (before, times) = (vec![0; events.len()], Times::default());
                opened.push(Opened { group, pmu, index, before, times });
            }
        }
        Ok(opened)
    }

    /// Counts a thread no longer; one that waits for files takes its place.
    pub fn forget(&mut self, tid: i32) {
        self.waiting.remove(&tid);
        if self.threads.remove(&tid).is_some() {
            while let Some(&next) = self.waiting.first() {
                // One that has ended meanwhile, or may not be counted, makes place for the next.
                if self.follow(next).is_ok() {
                    break;
                }
            }
        }
    }

    /// Threads that are counted.
    pub fn followed(&self) -> usize {
        self.threads.len()
    }

    /// Threads that are not counted because there are no files left.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// What a thread has done on each PMU since the last reading; none if it is not counted.
    /// Errors: a group cannot be read; the thread is not counted any longer.
    pub fn read(&mut self, tid: i32) -> io::Result<Option<&[PmuCounts]>> {
        let Some(groups) = self.threads.get_mut(&tid) else { return Ok(None) };
        for counts in &mut self.found {
            counts.counts.fill(f64::NAN);
            counts.ran_ns = 0.0;
        }
        let mut enabled_ns = 0;
        for opened in groups.iter_mut() {
            let events = &self.plans[opened.pmu].groups[opened.index];
            let now = &mut self.now[..events.len()];
            let times = match self.source.read(&mut opened.group, now) {
                Ok(times) => times,
                Err(error) => {
                    self.threads.remove(&tid);
                    return Err(error);
                }
            };
            enabled_ns = enabled_ns.max(times.enabled_ns.saturating_sub(opened.times.enabled_ns));
            let ran_ns = times.running_ns.saturating_sub(opened.times.running_ns) as f64;
            opened.times = times;
            let found = &mut self.found[opened.pmu];
            found.ran_ns += ran_ns;
            for ((event, before), now) in events.iter().zip(&mut opened.before).zip(now) {
                let column = self.names.iter().position(|name| *name == event.counter);
                let count = now.saturating_sub(std::mem::replace(before, *now)) as f64;
                // Per ns for now.
                found.counts[column.expect("names are those of all events")] = count / ran_ns;
            }
        }
        scale(&mut self.found, enabled_ns as f64);
        Ok(Some(&self.found))
    }
}

/// Shares the time in which a thread ran among the PMUs, in proportion to the times in which their groups were
/// counted (groups of one PMU take turns, so theirs add up), and makes counts of rates.
///
/// The kernel's own ratio, enabled to running, will not do: enabled is a group also while its thread runs on CPUs of
/// another PMU.
fn scale(found: &mut [PmuCounts], enabled_ns: f64) {
    let counted_ns: f64 = found.iter().map(|pmu| pmu.ran_ns).sum();
    let factor = if counted_ns > 0.0 { enabled_ns / counted_ns } else { 0.0 };
    for pmu in found {
        pmu.ran_ns *= factor;
        for count in &mut pmu.counts {
            // Rates of groups whose turn never came are not known.
            *count = if count.is_finite() { *count * pmu.ran_ns } else { f64::NAN };
        }
    }
}

/// EMFILE (this process) and ENFILE (the system).
fn has_no_files_left(error: &io::Error) -> bool {
    let code = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(code, Some(Errno::MFILE | Errno::NFILE))
}

#[cfg(test)]
mod tests;
