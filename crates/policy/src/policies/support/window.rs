//! Exponential windows over counters that only grow.

use ampsched_model::{Ns, ThreadId};

use crate::{AffinityId, View};

/// A value per thread, made when first asked for.
#[derive(Clone, Debug, Default)]
pub struct PerThread<T> {
    values: Vec<T>,
}

impl<T: Clone + Default> PerThread<T> {
    /// The values of all threads for which one was asked.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.values.iter()
    }

    /// The thread's value, if one was asked for.
    pub fn get(&self, thread: ThreadId) -> Option<&T> {
        self.values.get(thread.index())
    }

    /// The thread's value.
    pub fn slot(&mut self, thread: ThreadId) -> &mut T {
        if self.values.len() <= thread.index() {
            self.values.resize(thread.index() + 1, T::default());
        }
        &mut self.values[thread.index()]
    }
}

/// A value per set of cores, made when first asked for.
#[derive(Clone, Debug, Default)]
pub struct PerAffinity<T> {
    values: Vec<T>,
}

impl<T: Clone + Default> PerAffinity<T> {
    /// The set's value.
    pub fn slot(&mut self, set: AffinityId) -> &mut T {
        let index = usize::from(set.0);
        if self.values.len() <= index {
            self.values.resize(index + 1, T::default());
        }
        &mut self.values[index]
    }
}

/// What a growing counter gained lately: each window's gain counts `keep` times less in the next.
#[derive(Clone, Copy, Debug, Default)]
pub struct Windowed {
    seen: f64,
    value: f64,
}

impl Windowed {
    /// Ends a window at the counter's present value; returns the weighted gain.
    ///
    /// `keep` is what remains of the past, 0..=1; with 1 the result is the counter itself.
    pub fn update(&mut self, counter: f64, keep: f64) -> f64 {
        self.value = keep * self.value + (counter - self.seen);
        self.seen = counter;
        self.value
    }

    /// The result of the last update.
    pub fn value(&self) -> f64 {
        self.value
    }
}

/// What a growing counter of each thread gained lately.
#[derive(Clone, Debug, Default)]
pub struct Windows {
    gains: PerThread<Windowed>,
    /// Threads whose gains fade, in ascending order: all whose gain is not 0.
    fading: Vec<ThreadId>,
}

impl Windows {
    /// Ends a window of all threads; `recent` are those that have not slept ([`View::recent`]), and of them or those
    /// whose gains fade `counter` is asked. Returns both, in ascending order: of the others the gain is 0 and stays so.
    pub fn update(
        &mut self,
        view: &View,
        recent: &[ThreadId],
        keep: f64,
        counter: impl Fn(ThreadId) -> f64,
    ) -> Vec<ThreadId> {
        let mut concerned = [recent, &self.fading].concat();
        // Two ascending runs, which such a sort joins.
        concerned.sort();
        concerned.dedup();
        concerned.retain(|&thread| view.state(thread).is_live());
        self.fading.clear();
        for &thread in &concerned {
            if self.gains.slot(thread).update(counter(thread), keep) != 0.0 {
                self.fading.push(thread);
            }
        }
        concerned
    }

    /// A thread's gain as of the last window.
    pub fn value(&mut self, thread: ThreadId) -> f64 {
        self.gains.slot(thread).value()
    }
}

/// What remains after `elapsed_ns` if `decay` remains after `period_ns`.
pub fn keep_after(elapsed_ns: Ns, decay: f64, period_ns: Ns) -> f64 {
    decay.powf(elapsed_ns as f64 / period_ns as f64)
}

/// Which threads were runnable at some time of the present window.
///
/// Policies judge these and not only the threads that are runnable at the very end of a window: a
/// thread that takes a lock a thousand times per second is as likely blocked as not at that moment.
#[derive(Clone, Debug, Default)]
pub struct Activity {
    run_ns: PerThread<Ns>,
}

impl Activity {
    /// Ends the window: the threads that ran in it or are runnable now, in ascending order. It is a policy's epoch.
    pub fn end_window(&mut self, view: &View) -> Vec<ThreadId> {
        self.end_window_of(view, &view.recent())
    }

    /// The same with the threads that there have been in it ([`View::recent`]).
    pub fn end_window_of(&mut self, view: &View, recent: &[ThreadId]) -> Vec<ThreadId> {
        let mut ran = |thread: ThreadId| {
            let run_ns = view.stats(thread).run_ns_total();
            let before_ns = std::mem::replace(self.run_ns.slot(thread), run_ns);
            run_ns > before_ns
        };
        let is_active = |&thread: &ThreadId| ran(thread) || view.state(thread).is_runnable();
        recent.iter().copied().filter(is_active).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_gains_fade() {
        let mut blame = Windowed::default();
        assert_eq!(blame.update(100.0, 0.9), 100.0);
        assert_eq!(blame.update(100.0, 0.9), 90.0);
        assert_eq!(blame.update(130.0, 0.9), 111.0);
        assert_eq!(blame.value(), 111.0);
    }

    #[test]
    fn without_decay_it_is_the_counter() {
        let mut blame = Windowed::default();
        for counter in [5.0, 5.0, 17.0] {
            assert_eq!(blame.update(counter, 1.0), counter);
        }
    }

    #[test]
    fn decay_follows_the_length_of_the_window() {
        let tenth = keep_after(40_000_000, 0.9, 10_000_000);
        assert!((tenth - 0.6561).abs() < 1e-12);
        assert_eq!(keep_after(10_000_000, 0.0, 10_000_000), 0.0);
    }
}
