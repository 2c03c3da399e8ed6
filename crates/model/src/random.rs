//! Counter-based random numbers: a draw depends only on a key and a counter, never on who asks when.
//!
//! The key of a stream names what the numbers belong to (seed, application, thread or item). So the
//! work of item 17 is the same whichever thread takes it and whichever policy runs: comparisons
//! between policies use common random numbers.

/// A stream of random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draw {
    key: u64,
    counter: u64,
}

impl Draw {
    /// The stream of a key.
    pub fn new(key: u64) -> Self {
        Self { key, counter: 0 }
    }

    /// The stream that belongs to part `part` of what this stream belongs to.
    ///
    /// Depends on the key only, not on how many numbers were drawn.
    #[must_use]
    pub fn child(&self, part: u64) -> Self {
        Self::new(mix(self.key ^ mix(part.wrapping_add(0x9e37_79b9_7f4a_7c15))))
    }

    /// The next 64 random bits (SplitMix64: Steele, Lea, Flood, OOPSLA 2014).
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.counter = self.counter.wrapping_add(1);
        mix(self.key.wrapping_add(self.counter.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// Uniform in `[0, 1)`.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Standard normal (Box-Muller, one of the pair).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Amount, Dist};

    /// Mean and coefficient of variation of 20,000 draws.
    fn moments(amount: &Amount) -> (f64, f64) {
        let mut random = Draw::new(7);
        let draws: Vec<f64> = (0..20_000).map(|_| amount.draw(&mut random) as f64).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / draws.len() as f64;
        (mean, variance.sqrt() / mean)
    }

    #[test]
    fn distributions_have_the_stated_moments() {
        let cases = [
            (Amount { mean: 5e5, dist: Dist::Uniform { low: 0.0, high: 1e6 } }, 1.0 / 3f64.sqrt()),
            (Amount { mean: 5e5, dist: Dist::Normal { cv: 0.2 } }, 0.2),
            (Amount { mean: 5e5, dist: Dist::LogNormal { cv: 0.8 } }, 0.8),
            (Amount { mean: 5e5, dist: Dist::Exponential }, 1.0),
            (Amount { mean: 5e5, dist: Dist::Quantiles(vec![0.0, 5e5, 1e6]) }, 1.0 / 3f64.sqrt()),
            (Amount::constant(5e5), 0.0),
        ];
        for (amount, cv) in cases {
            let (mean, observed_cv) = moments(&amount);
            assert!((mean / 5e5 - 1.0).abs() < 0.03, "{amount:?}: mean {mean}");
            assert!((observed_cv - cv).abs() < 0.03, "{amount:?}: cv {observed_cv}");
        }
    }

    #[test]
    fn child_streams_do_not_depend_on_earlier_draws() {
        let fresh = Draw::new(1);
        let mut used = fresh;
        used.bits();
        assert_eq!(fresh.child(3), used.child(3));
        assert_ne!(fresh.child(3), fresh.child(4));
    }
}
