//! How alike programs fare: 1 - standard deviation / mean, in its four published readings.

use super::labels::Spread;

/// What is compared, and which standard deviation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uniformity {
    /// Of slowdowns; divided by n. HFEE's text (IEEE TC 2020, section 3), which does not say by what.
    SlowdownPopulation,
    /// Of slowdowns; divided by n - 1.
    SlowdownSample,
    /// Of progress, 1 / slowdown; divided by n (Kim and Huh, IEEE TC 2018: their tool).
    ProgressPopulation,
    /// Of progress; divided by n - 1 (HFEE's published scripts).
    ProgressSample,
}

impl Uniformity {
    /// By its number as a parameter: 0 to 3 in the order above.
    pub fn numbered(number: f64) -> Self {
        match number as u8 {
            0 => Self::SlowdownPopulation,
            1 => Self::SlowdownSample,
            2 => Self::ProgressPopulation,
            _ => Self::ProgressSample,
        }
    }

    /// Of programs with such slowdowns (> 0); 1 for fewer than two.
    pub fn of(self, slowdowns: &[f64]) -> f64 {
        let count = slowdowns.len();
        if count < 2 {
            return 1.0;
        }
        let progress: Vec<f64>;
        let (values, sample) = match self {
            Self::SlowdownPopulation => (slowdowns, false),
            Self::SlowdownSample => (slowdowns, true),
            Self::ProgressPopulation | Self::ProgressSample => {
                progress = slowdowns.iter().map(|slowdown| 1.0 / slowdown).collect();
                (&progress[..], self == Self::ProgressSample)
            }
        };
        let spread = Spread::of(values);
        let freedom = if sample { (count - 1) as f64 } else { count as f64 };
        1.0 - spread.sigma * (count as f64 / freedom).sqrt() / spread.mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_four_readings_differ() {
        let values = [0.0, 1.0, 2.0, 3.0]
            .map(|number| Uniformity::numbered(number).of(&[1.2, 1.4, 1.6, 2.0]));
        for (value, expected) in values.into_iter().zip([0.8092, 0.7796, 0.8174, 0.7891]) {
            assert!((value - expected).abs() < 5e-5, "{value} {expected}");
        }
    }

    #[test]
    fn one_program_is_like_itself() {
        assert_eq!(Uniformity::SlowdownSample.of(&[3.0]), 1.0);
        assert_eq!(Uniformity::ProgressSample.of(&[2.0, 2.0]), 1.0);
    }
}
