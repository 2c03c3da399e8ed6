//! How much slower threads have been than alone on a fast core.

use ampsched_model::{MAX_CLASSES, Ns, ThreadId};

use super::class_speeds;
use super::labels::Spread;
use super::speedup::Speedups;
use super::window::PerThread;
use crate::{ThreadStats, View};

/// A thread's counters when they were read last.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    run_ns: [Ns; MAX_CLASSES],
    ready_ns: Ns,
}

/// What a thread has done between two readings.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// Time in which it wanted to run.
    pub wanted_ns: f64,
    /// Time that the fastest cores would have needed for what it did on cores of each class.
    pub alone_ns: [f64; MAX_CLASSES],
}

impl Seen {
    /// Reads the counters anew, at speeds relative to the slowest class.
    pub fn since_last(
        &mut self,
        run_ns: &[Ns; MAX_CLASSES],
        ready_ns: Ns,
        speeds: &[f64; MAX_CLASSES],
        classes: usize,
    ) -> Done {
        let mut done =
            Done { wanted_ns: (ready_ns - self.ready_ns) as f64, alone_ns: [0.0; MAX_CLASSES] };
        for class in 0..classes {
            let ran_ns = (run_ns[class] - self.run_ns[class]) as f64;
            done.wanted_ns += ran_ns;
            done.alone_ns[class] = ran_ns * speeds[class] / speeds[classes - 1];
        }
        *self = Self { run_ns: *run_ns, ready_ns };
        done
    }
}

/// The progress of one thread.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    seen: Seen,
    /// Time in which it wanted to run.
    total_ns: f64,
    /// Time that the fastest cores would have needed for what it has done.
    alone_ns: f64,
}

impl Progress {
    /// Counts what has happened since the last call, at speeds relative to the slowest class.
    fn add(&mut self, stats: &ThreadStats, speeds: &[f64; MAX_CLASSES], classes: usize) {
        let done = self.seen.since_last(&stats.run_ns, stats.ready_ns, speeds, classes);
        self.total_ns += done.wanted_ns;
        for alone_ns in &done.alone_ns[..classes] {
            self.alone_ns += alone_ns;
        }
    }

    fn slowdown(&self) -> f64 {
        if self.alone_ns > 0.0 { self.total_ns / self.alone_ns } else { 1.0 }
    }
}

/// The slowdowns of all threads since their start.
///
/// S = T / (T_big + T_small / R) with R the predicted speed-up (Van Craeynest et al., PACT 2013). R may change: each
/// stretch of time counts with the value that held then. T is the time on cores and in run queues.
#[derive(Clone, Debug, Default)]
pub struct Slowdowns {
    threads: PerThread<Progress>,
}

impl Slowdowns {
    /// Reads the threads' counters.
    pub fn update(&mut self, view: &View, speedups: &mut Speedups) {
        let classes = view.topology().class_count();
        // Who has slept has neither run nor waited.
        for &thread in view.recent().iter() {
            let speeds = class_speeds(speedups.of(thread), classes);
            self.threads.slot(thread).add(view.stats(thread), &speeds, classes);
        }
    }

    /// A thread's slowdown; 1 if it has not run yet.
    pub fn of(&mut self, thread: ThreadId) -> f64 {
        self.threads.slot(thread).slowdown()
    }

    /// The runnable threads with their slowdowns.
    pub fn of_runnable(&mut self, view: &View) -> Vec<(f64, ThreadId)> {
        view.runnable().map(|thread| (self.of(thread), thread)).collect()
    }

    /// Fairness among the live threads: 1 - standard deviation / mean of their slowdowns; 1 if there are
    /// none.
    pub fn fairness(&mut self, view: &View) -> f64 {
        let slowdowns: Vec<f64> = view.threads().map(|thread| self.of(thread)).collect();
        let spread = Spread::of(&slowdowns);
        if spread.mean > 0.0 { 1.0 - spread.sigma / spread.mean } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Ns = 1_000_000;

    fn stats(fast_ms: Ns, slow_ms: Ns, ready_ms: Ns) -> ThreadStats {
        let mut stats = ThreadStats::default();
        stats.ready_ns = ready_ms * MS;
        stats.run_ns[..2].copy_from_slice(&[slow_ms * MS, fast_ms * MS]);
        stats
    }

    fn slowdown(speedup: f64, stats: &ThreadStats) -> f64 {
        let mut progress = Progress::default();
        progress.add(stats, &class_speeds(speedup, 2), 2);
        progress.slowdown()
    }

    /// Computed from the formula: A 60 + 40 ms, R = 2; B 20 + 80 ms, R = 3; C 40 + 60 ms, R = 1.2.
    #[test]
    fn slowdowns_are_those_of_the_formula() {
        for (speedup, fast_ms, slow_ms, expected) in
            [(2.0, 60, 40, 1.25), (3.0, 20, 80, 2.1429), (1.2, 40, 60, 1.1111)]
        {
            let ours = slowdown(speedup, &stats(fast_ms, slow_ms, 0));
            assert!((ours - expected).abs() < 5e-5, "{ours} {expected}");
        }
    }

    #[test]
    fn waiting_slows_down_and_nothing_does_not() {
        assert!((slowdown(2.0, &stats(60, 40, 20)) - 1.5).abs() < 1e-12);
        assert_eq!(slowdown(2.0, &stats(0, 0, 0)), 1.0);
    }

    #[test]
    fn each_stretch_counts_with_its_own_speedup() {
        let mut progress = Progress::default();
        progress.add(&stats(0, 100, 0), &class_speeds(4.0, 2), 2);
        progress.add(&stats(0, 200, 0), &class_speeds(1.0, 2), 2);
        // 200 ms for what takes 25 + 100 ms.
        assert!((progress.slowdown() - 1.6).abs() < 1e-12);
    }

    #[test]
    fn classes_between_count_what_they_bring() {
        let mut stats = ThreadStats::default();
        stats.run_ns[..3].copy_from_slice(&[40 * MS, 20 * MS, 10 * MS]);
        let mut progress = Progress::default();
        // Speeds 1, 2 and 4: 10 + 10 + 10 ms alone.
        progress.add(&stats, &class_speeds(4.0, 3), 3);
        assert!((progress.slowdown() - 70.0 / 30.0).abs() < 1e-12);
    }
}
