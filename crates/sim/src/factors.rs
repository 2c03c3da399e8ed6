//! Where simulated policies get their factors from: the truth, the truth spoilt, or nothing.

use std::sync::Arc;

use ampsched_model::{Draw, Ns, ThreadId};
use ampsched_policy::{Factor, FactorKind, Sched, SpeedupSampler};
use ampsched_predict::{Models, noise_factor};

/// Speed-ups that trained models predict from performance counters.
#[derive(Clone, Debug, PartialEq)]
pub struct Predicted {
    /// The models; a kind of core that has none gets the capacity ratio.
    pub models: Arc<Models>,
    /// Coefficient of variation of every count, apart from what events add that take turns.
    pub counter_cv: f64,
    /// How long a prediction is kept before counters are read again.
    pub stale_ns: Ns,
}

/// How a policy learns a thread's speed-up between the slowest and the fastest cores.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum FactorSource {
    /// The truth at this moment.
    #[default]
    Oracle,
    /// The truth as it was up to `stale_ns` ago, times a log-normal error of coefficient of variation
    /// `cv`, drawn anew at each refresh.
    Noisy {
        /// Standard deviation / mean of the error.
        cv: f64,
        /// How long a value is kept before it is refreshed.
        stale_ns: Ns,
    },
    /// What the thread has shown on both kinds of core, looked at every `interval_ns`; nothing is known
    /// of a thread before it has run on both.
    Sampled {
        /// Sampling interval.
        interval_ns: Ns,
    },
    /// What models predict from performance counters.
    Predicted(Predicted),
    /// The same value for every thread.
    Constant(f64),
    /// Nothing is known.
    Missing,
}

/// Everything that a source may look at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evidence<'a> {
    /// The run's seed.
    pub seed: u64,
    /// Which thread.
    pub thread: ThreadId,
    /// Its true speed-up at this moment.
    pub truth: f64,
    /// Its counters.
    pub sched: &'a Sched,
    /// The time.
    pub now_ns: Ns,
}

/// A source with what it remembers.
#[derive(Clone, Debug)]
pub(crate) struct FactorService {
    source: FactorSource,
    /// When each thread is looked at next, and what was seen.
    samplers: Vec<(Ns, SpeedupSampler)>,
}

impl FactorService {
    /// Without memory.
    pub fn new(source: FactorSource) -> Self {
        Self { source, samplers: Vec::new() }
    }

    /// The speed-up of a thread; `last` is what it was before.
    pub fn speedup(&mut self, evidence: Evidence, last: &Factor) -> Factor {
        let Evidence { seed, thread, truth, now_ns, .. } = evidence;
        let factor = |value, kind| Factor { value, kind, at_ns: now_ns };
        match self.source {
            FactorSource::Oracle => factor(truth, FactorKind::Oracle),
            FactorSource::Constant(value) => factor(value, FactorKind::Predicted),
            // Predictions need counters, which the engine has; here they are missing.
            FactorSource::Missing | FactorSource::Predicted(_) => Factor::default(),
            FactorSource::Noisy { stale_ns, .. }
                if last.kind != FactorKind::Missing && now_ns < last.at_ns + stale_ns =>
            {
                *last
            }
            FactorSource::Noisy { cv, .. } => {
                let mut random = Draw::new(seed).child(u64::from(thread.0)).child(now_ns);
                let error = noise_factor(cv, &mut random);
                factor((truth * error).max(0.01), FactorKind::Predicted)
            }
            FactorSource::Sampled { interval_ns } => {
                if self.samplers.len() <= thread.index() {
                    let new = (now_ns + interval_ns, SpeedupSampler::default());
                    self.samplers.resize(thread.index() + 1, new);
                }
                let (due_ns, sampler) = &mut self.samplers[thread.index()];
                if now_ns < *due_ns {
                    return *last;
                }
                *due_ns = now_ns + interval_ns;
                let sched = evidence.sched;
                sampler.update(&sched.stats(thread).run_ns, sched.instructions(thread));
                let known = sampler.speedup().map(|value| factor(value, FactorKind::Measured));
                known.unwrap_or_default()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ampsched_model::{AppId, ClassId, CoreId};
    use ampsched_policy::{ClusterInfo, EnqueueKind, Rules, RunState, Topology};

    use super::*;

    fn speedup(
        source: &FactorSource,
        thread: u32,
        truth: f64,
        last: &Factor,
        now_ns: Ns,
    ) -> Factor {
        let sched = &two_cores();
        let evidence = Evidence { seed: 1, thread: ThreadId(thread), truth, sched, now_ns };
        FactorService::new(source.clone()).speedup(evidence, last)
    }

    #[test]
    fn noise_has_the_stated_spread_and_keeps_stale_values() {
        let source = FactorSource::Noisy { cv: 0.2, stale_ns: 100 };
        let none = Factor::default();
        let draws: Vec<f64> =
            (0..4000).map(|thread| speedup(&source, thread, 2.0, &none, 0).value).collect();
        let mean = draws.iter().sum::<f64>() / 4000.0;
        let cv = (draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 4000.0).sqrt() / mean;
        assert!((mean - 2.0).abs() < 0.03 && (cv - 0.2).abs() < 0.02, "{mean} {cv}");
        let first = speedup(&source, 0, 2.0, &none, 0);
        assert_eq!(speedup(&source, 0, 3.0, &first, 99), first);
        assert_ne!(speedup(&source, 0, 3.0, &first, 100), first);
    }

    #[test]
    fn oracle_and_constant_say_what_they_are() {
        let none = Factor::default();
        assert_eq!(speedup(&FactorSource::Oracle, 0, 2.5, &none, 7).kind, FactorKind::Oracle);
        assert_eq!(speedup(&FactorSource::Constant(1.5), 0, 2.5, &none, 7).value, 1.5);
        assert_eq!(speedup(&FactorSource::Missing, 0, 2.5, &none, 7), none);
    }

    /// A system of a slow and a fast core.
    fn two_cores() -> Sched {
        let cluster = |class: u8| ClusterInfo {
            shares_l2: false,
            class: ClassId(class),
            cores: vec![CoreId(class.into())],
            freqs_mhz: vec![1000],
            design: None,
            energy_model: Vec::new(),
        };
        Sched::new(Topology::from_clusters(vec![cluster(0), cluster(1)]), Rules::default())
    }

    #[test]
    fn samples_are_taken_once_per_interval() {
        let mut service = FactorService::new(FactorSource::Sampled { interval_ns: 100 });
        let mut sched = two_cores();
        let thread = sched.add(AppId(0), 1024, None);
        let run = |sched: &mut Sched, core: u16, instructions| {
            sched.enqueue(thread, CoreId(core), EnqueueKind::Wake, 0);
            sched.start(CoreId(core), thread, 0);
            sched.charge(CoreId(core), 2_000_000, instructions);
            sched.stop(CoreId(core), RunState::Blocked, 0);
        };
        let mut look = |sched: &Sched, last: &Factor, now_ns| {
            service.speedup(Evidence { seed: 1, thread, truth: 9.0, sched, now_ns }, last)
        };
        assert_eq!(look(&sched, &Factor::default(), 0), Factor::default());
        run(&mut sched, 0, 1_000_000);
        run(&mut sched, 1, 3_000_000);
        assert_eq!(look(&sched, &Factor::default(), 99), Factor::default());
        let first = look(&sched, &Factor::default(), 100);
        assert_eq!(first, Factor { value: 3.0, kind: FactorKind::Measured, at_ns: 100 });
        run(&mut sched, 0, 1_000_000);
        run(&mut sched, 1, 1_000_000);
        assert_eq!(look(&sched, &first, 199), first);
        assert_eq!(look(&sched, &first, 200).value, 2.0);
    }
}
