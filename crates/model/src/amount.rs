//! Random amounts of work, time and iterations.

use crate::Draw;

/// How an amount is distributed.
#[derive(Clone, Debug, PartialEq)]
pub enum Dist {
    /// Always the mean.
    Constant,
    /// Uniform over `[low, high]`.
    Uniform {
        /// Smallest value.
        low: f64,
        /// Largest value.
        high: f64,
    },
    /// Normal, cut off at 0, with coefficient of variation `cv`.
    Normal {
        /// Standard deviation / mean.
        cv: f64,
    },
    /// Log-normal with coefficient of variation `cv` (of the amount, not of its logarithm).
    LogNormal {
        /// Standard deviation / mean.
        cv: f64,
    },
    /// Exponential.
    Exponential,
    /// Piecewise linear inverse distribution function through equally spaced quantiles
    /// (first = minimum, last = maximum); at least two, ascending.
    Quantiles(Vec<f64>),
}

/// A random, non-negative amount: instructions, nanoseconds or iterations, by context.
#[derive(Clone, Debug, PartialEq)]
pub struct Amount {
    /// The mean (for `Uniform` and `Quantiles` implied by them and kept consistent by the parser).
    pub mean: f64,
    /// The distribution around the mean.
    pub dist: Dist,
}

impl Amount {
    /// An amount that does not vary.
    pub fn constant(mean: f64) -> Self {
        Self { mean, dist: Dist::Constant }
    }

    /// As many times as much.
    #[must_use]
    pub fn times(&self, factor: f64) -> Self {
        let dist = match &self.dist {
            Dist::Uniform { low, high } => Dist::Uniform { low: low * factor, high: high * factor },
            Dist::Quantiles(points) => {
                Dist::Quantiles(points.iter().map(|point| point * factor).collect())
            }
            relative => relative.clone(),
        };
        Self { mean: self.mean * factor, dist }
    }

    /// What every draw yields, if it does not vary.
    pub fn always(&self) -> Option<u64> {
        (self.dist == Dist::Constant).then_some(self.mean as u64)
    }

    /// No draw yields less.
    pub fn least(&self) -> u64 {
        let least = match &self.dist {
            Dist::Constant => return self.mean as u64,
            Dist::Uniform { low, .. } => *low,
            Dist::Quantiles(points) => points.first().copied().unwrap_or(0.0),
            Dist::Normal { .. } | Dist::LogNormal { .. } | Dist::Exponential => 0.0,
        };
        least.max(0.0).round() as u64
    }

    /// A draw, rounded to the nearest whole number.
    #[inline]
    pub fn draw(&self, random: &mut Draw) -> u64 {
        match self.dist {
            Dist::Constant => self.mean as u64,
            _ => self.sample(random).max(0.0).round() as u64,
        }
    }

    fn sample(&self, random: &mut Draw) -> f64 {
        match &self.dist {
            Dist::Constant => self.mean,
            Dist::Uniform { low, high } => low + (high - low) * random.uniform(),
            Dist::Normal { cv } => self.mean * (1.0 + cv * random.normal()),
            Dist::LogNormal { cv } => {
                // For X = exp(m + s Z): mean = exp(m + s^2/2), cv^2 = exp(s^2) - 1.
                let variance = (1.0 + cv * cv).ln();
                self.mean * (variance.sqrt() * random.normal() - variance / 2.0).exp()
            }
            Dist::Exponential => -self.mean * (1.0 - random.uniform()).ln(),
            Dist::Quantiles(points) => {
                let position = random.uniform() * (points.len() - 1) as f64;
                let below = (position as usize).min(points.len() - 2);
                points[below] + (points[below + 1] - points[below]) * (position - below as f64)
            }
        }
    }
}
