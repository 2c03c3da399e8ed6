//! Where simulated policies get their factors from: the truth, the truth spoilt, or nothing.

use ampsched_model::{Draw, Ns, ThreadId};
use ampsched_policy::{Factor, FactorKind};

/// How a policy learns a thread's speed-up between the slowest and the fastest cores.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
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
    /// The same value for every thread.
    Constant(f64),
    /// Nothing is known.
    Missing,
}

impl FactorSource {
    /// The factor of a thread whose true value is `truth`; `last` is what it was before.
    pub fn speedup(
        &self,
        seed: u64,
        thread: ThreadId,
        truth: f64,
        last: &Factor,
        now_ns: Ns,
    ) -> Factor {
        let factor = |value, kind| Factor { value, kind, at_ns: now_ns };
        match *self {
            Self::Oracle => factor(truth, FactorKind::Oracle),
            Self::Constant(value) => factor(value, FactorKind::Predicted),
            Self::Missing => Factor::default(),
            Self::Noisy { stale_ns, .. }
                if last.kind != FactorKind::Missing && now_ns < last.at_ns + stale_ns =>
            {
                *last
            }
            Self::Noisy { cv, .. } => {
                let mut random = Draw::new(seed).child(u64::from(thread.0)).child(now_ns);
                let variance = (1.0 + cv * cv).ln();
                let error = (variance.sqrt() * random.normal() - variance / 2.0).exp();
                factor((truth * error).max(0.01), FactorKind::Predicted)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_has_the_stated_spread_and_keeps_stale_values() {
        let source = FactorSource::Noisy { cv: 0.2, stale_ns: 100 };
        let draws: Vec<f64> = (0..4000)
            .map(|t| source.speedup(1, ThreadId(t), 2.0, &Factor::default(), 0).value)
            .collect();
        let mean = draws.iter().sum::<f64>() / 4000.0;
        let cv = (draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 4000.0).sqrt() / mean;
        assert!((mean - 2.0).abs() < 0.03 && (cv - 0.2).abs() < 0.02, "{mean} {cv}");
        let first = source.speedup(1, ThreadId(0), 2.0, &Factor::default(), 0);
        assert_eq!(source.speedup(1, ThreadId(0), 3.0, &first, 99), first);
        assert_ne!(source.speedup(1, ThreadId(0), 3.0, &first, 100), first);
    }

    #[test]
    fn oracle_and_constant_say_what_they_are() {
        let none = Factor::default();
        assert_eq!(
            FactorSource::Oracle.speedup(1, ThreadId(0), 2.5, &none, 7).kind,
            FactorKind::Oracle
        );
        assert_eq!(FactorSource::Constant(1.5).speedup(1, ThreadId(0), 2.5, &none, 7).value, 1.5);
        assert_eq!(FactorSource::Missing.speedup(1, ThreadId(0), 2.5, &none, 7), none);
    }
}
