//! Random choices.

use std::ops::RangeInclusive;

use fastrand::Rng;

/// A source of random choices that follow from a seed and a number.
#[derive(Debug)]
pub struct Dice {
    rng: Rng,
}

impl Dice {
    /// The choices of one of many cases: neighbours have nothing in common.
    pub fn new(seed: u64, number: u64) -> Self {
        // SplitMix64's increment separates seeds, its generator the numbers (Steele et al., OOPSLA 2014).
        let mut first = Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let key = first.u64(..) ^ number.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        Self { rng: Rng::with_seed(key) }
    }

    /// Choices that follow from a text: what is added to it changes nothing that is chosen elsewhere.
    pub fn of_text(text: &str) -> Self {
        let number =
            text.bytes().fold(7, |sum: u64, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        Self::new(0, number)
    }

    /// A whole number out of a range.
    pub fn whole(&mut self, range: RangeInclusive<u64>) -> u64 {
        self.rng.u64(range)
    }

    /// An index into something of that length.
    ///
    /// # Panics
    /// If there is nothing.
    pub fn index(&mut self, len: usize) -> usize {
        self.rng.usize(..len)
    }

    /// True once in so many times.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.rng.u64(..times) == 0
    }

    /// One of several.
    ///
    /// # Panics
    /// If there is none.
    pub fn of<'a, T>(&mut self, these: &'a [T]) -> &'a T {
        &these[self.index(these.len())]
    }

    /// A number between two, evenly.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.rng.f64()
    }

    /// A number between two positive ones, evenly on a logarithmic scale.
    pub fn scale(&mut self, low: f64, high: f64) -> f64 {
        self.between(low.ln(), high.ln()).exp().clamp(low, high)
    }

    /// All bits.
    pub fn bits(&mut self) -> u64 {
        self.rng.u64(..)
    }
}
