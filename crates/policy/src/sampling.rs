//! Speed-ups from observation: instructions per time on fast and on slow cores.

use ampsched_model::{MAX_CLASSES, Ns};

/// Estimates a thread's speed-up from what it retired on each kind of core.
///
/// As in Kim & Huh's tool `fairamp` (IEEE TC 2018): a kind of core counts in an interval if the thread has
/// run there for at least 1.2 ms (4 % of the scheduling round of 30 ms); an interval whose speeds
/// contradict what can be, fast < slow or fast > 4 x slow, is dropped; the first five samples are
/// averaged, later ones count 0.3 against 0.7 for the past. Fast are all classes but the slowest.
#[derive(Clone, Debug, Default)]
pub struct SpeedupSampler {
    slow: Speed,
    fast: Speed,
}

/// Run time on a kind of core that makes a sample.
const LEAST_RUN_NS: Ns = 1_200_000;
/// Samples that are averaged.
const AVERAGED: u32 = 5;
/// Weight of a later sample.
const NEW_WEIGHT: f64 = 0.3;
/// Greatest speed-up that is believed.
const SPEEDUP_MAX: f64 = 4.0;

/// Speed on one kind of core.
#[derive(Clone, Copy, Debug, Default)]
struct Speed {
    samples: u32,
    /// Instructions per ns.
    mean: f64,
    seen_ns: Ns,
    seen_instructions: u64,
}

impl Speed {
    /// Ends an interval; the speed in it if the thread has run long enough.
    fn sample(&mut self, run_ns: Ns, instructions: u64) -> Option<f64> {
        let ran_ns = run_ns - self.seen_ns;
        let retired = instructions - self.seen_instructions;
        if ran_ns < LEAST_RUN_NS {
            // The next interval goes on from here.
            return None;
        }
        (self.seen_ns, self.seen_instructions) = (run_ns, instructions);
        Some(retired as f64 / ran_ns as f64)
    }

    fn known(&self) -> Option<f64> {
        (self.samples > 0).then_some(self.mean)
    }

    fn learn(&mut self, sample: f64) {
        self.samples += 1;
        let weight =
            if self.samples <= AVERAGED { f64::from(self.samples).recip() } else { NEW_WEIGHT };
        self.mean += weight * (sample - self.mean);
    }
}

impl SpeedupSampler {
    /// Ends an interval at the counters' present values.
    pub fn update(&mut self, run_ns: &[Ns; MAX_CLASSES], instructions: &[u64; MAX_CLASSES]) {
        let slow = self.slow.sample(run_ns[0], instructions[0]);
        let fast = self.fast.sample(run_ns[1..].iter().sum(), instructions[1..].iter().sum());
        let (slow_now, fast_now) = (slow.or(self.slow.known()), fast.or(self.fast.known()));
        let believed = match (slow_now, fast_now) {
            (Some(slow), Some(fast)) => fast >= slow && fast <= SPEEDUP_MAX * slow,
            _ => true,
        };
        if !believed {
            return;
        }
        if let Some(slow) = slow {
            self.slow.learn(slow);
        }
        if let Some(fast) = fast {
            self.fast.learn(fast);
        }
    }

    /// The speed-up, at least 1; none before the thread has run on both kinds of core.
    pub fn speedup(&self) -> Option<f64> {
        let (slow, fast) = (self.slow.known()?, self.fast.known()?);
        (slow > 0.0).then(|| (fast / slow).max(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Ns = 1_000_000;

    /// Run times and instructions by class.
    type Done = ([Ns; MAX_CLASSES], [u64; MAX_CLASSES]);

    /// Runs for some ms at some instructions per us on a class.
    fn run(done: &mut Done, class: usize, ms: f64, per_us: u64) {
        done.0[class] += (ms * MS as f64) as Ns;
        done.1[class] += (ms * 1000.0) as u64 * per_us;
    }

    fn sampled(intervals: &[(f64, u64, f64, u64)]) -> Option<f64> {
        let (mut sampler, mut done) = (SpeedupSampler::default(), Done::default());
        for &(slow_ms, slow, fast_ms, fast) in intervals {
            run(&mut done, 0, slow_ms, slow);
            run(&mut done, 1, fast_ms, fast);
            sampler.update(&done.0, &done.1);
        }
        sampler.speedup()
    }

    #[test]
    fn both_kinds_of_core_are_needed_and_long_enough() {
        assert_eq!(sampled(&[(100.0, 1000, 0.0, 0)]), None);
        assert_eq!(sampled(&[(100.0, 1000, 1.1, 2000)]), None);
        assert_eq!(sampled(&[(100.0, 1000, 1.1, 2000), (100.0, 1000, 0.2, 2000)]), Some(2.0));
        assert_eq!(sampled(&[(100.0, 1000, 0.0, 0), (0.0, 0, 100.0, 3000)]), Some(3.0));
    }

    #[test]
    fn five_samples_are_averaged_and_later_ones_count_less() {
        let at = |fast| (10.0, 1000, 10.0, fast);
        assert_eq!(sampled(&[at(2000), at(3000)]), Some(2.5));
        let five = [1000, 2000, 3000, 2000, 2000].map(at);
        assert_eq!(sampled(&five), Some(2.0));
        let six = sampled(&[&five[..], &[at(3000)]].concat()).unwrap();
        assert!((six - 2.3).abs() < 1e-12, "{six}");
    }

    #[test]
    fn what_cannot_be_is_dropped() {
        let at = |fast| (10.0, 1000, 10.0, fast);
        assert_eq!(sampled(&[at(2000), at(900), at(4100)]), Some(2.0));
        assert_eq!(sampled(&[at(2000), at(4000)]), Some(3.0));
    }
}
