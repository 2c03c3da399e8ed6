//! Who stands out: spreads of a factor over threads, and labels that do not flicker.

/// Mean and population standard deviation of some values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub sigma: f64,
}

impl Spread {
    /// Of values; zeros if there are none.
    pub fn of(values: &[f64]) -> Self {
        let count = values.len().max(1) as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
        Self { mean, sigma: variance.sqrt() }
    }

    /// Whether all values are alike but for rounding.
    pub fn is_flat(&self) -> bool {
        self.sigma <= 1e-9 * self.mean.abs()
    }

    /// Standard deviations above the mean; 0 if all values are alike.
    pub fn z(&self, value: f64) -> f64 {
        if self.is_flat() { 0.0 } else { (value - self.mean) / self.sigma }
    }
}

/// How much faster than others a thread gets on a big core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpeedLabel {
    /// Clearly more.
    High,
    /// Neither, or unknown.
    #[default]
    Normal,
    /// Clearly less.
    Low,
}

/// Where the labels of speed-up begin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LabelRule {
    /// `High` from the mean plus this many standard deviations.
    pub high_sigma: f64,
    /// `Low` up to the mean minus this many.
    pub low_sigma: f64,
    /// No labels if standard deviation / mean is less.
    pub min_cv: f64,
    /// Instead of by deviations: the upper and the lower third.
    pub terciles: bool,
}

/// The speed-ups at which labels begin, in one window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    high: f64,
    low: f64,
}

impl LabelRule {
    /// The limits among threads with these speed-ups (the order of which is not kept).
    pub fn limits(&self, speedups: &mut [f64]) -> Limits {
        let spread = Spread::of(speedups);
        if spread.is_flat() || spread.sigma < self.min_cv * spread.mean {
            return Limits { high: f64::INFINITY, low: f64::NEG_INFINITY };
        }
        if self.terciles {
            return outer_thirds(speedups);
        }
        Limits {
            high: spread.mean + self.high_sigma * spread.sigma,
            low: spread.mean - self.low_sigma * spread.sigma,
        }
    }
}

fn outer_thirds(speedups: &mut [f64]) -> Limits {
    speedups.sort_by(f64::total_cmp);
    let last = speedups.len() - 1;
    Limits { high: speedups[last - last / 3], low: speedups[last / 3] }
}

impl Limits {
    /// The label of a speed-up. One that is on both limits gets none.
    pub fn label(&self, speedup: f64) -> SpeedLabel {
        match (speedup >= self.high, speedup <= self.low) {
            (true, false) => SpeedLabel::High,
            (false, true) => SpeedLabel::Low,
            (true, true) | (false, false) => SpeedLabel::Normal,
        }
    }
}

/// A label that changes only after some windows in a row have asked for the same change.
#[derive(Clone, Copy, Debug, Default)]
pub struct Steady<T> {
    current: Option<T>,
    next: Option<T>,
    windows: u32,
}

impl<T: Copy + Eq> Steady<T> {
    /// Takes a window's label; the first one holds at once, later ones after `needed` windows.
    pub fn update(&mut self, seen: T, needed: u32) -> T {
        let Some(current) = self.current else {
            self.current = Some(seen);
            return seen;
        };
        if seen == current {
            self.next = None;
            return current;
        }
        self.windows = if self.next == Some(seen) { self.windows + 1 } else { 1 };
        self.next = Some(seen);
        if self.windows < needed {
            return current;
        }
        self.current = Some(seen);
        self.next = None;
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLAB: LabelRule =
        LabelRule { high_sigma: 0.5, low_sigma: 0.5, min_cv: 0.03, terciles: false };

    #[test]
    fn z_scores_of_two_and_two() {
        let spread = Spread::of(&[3.0, 3.0, 1.2, 1.2]);
        assert!((spread.mean - 2.1).abs() < 1e-12 && (spread.sigma - 0.9).abs() < 1e-12);
        assert!((spread.z(3.0) - 1.0).abs() < 1e-12 && (spread.z(1.2) + 1.0).abs() < 1e-12);
    }

    #[test]
    fn equal_values_have_no_scores() {
        assert_eq!(Spread::of(&[0.1 + 0.2, 0.3]).z(0.1 + 0.2), 0.0);
        assert_eq!(Spread::of(&[0.0, 0.0]).z(0.0), 0.0);
        assert_eq!(Spread::of(&[]), Spread::default());
    }

    #[test]
    fn labels_begin_half_a_deviation_from_the_mean() {
        // Mean 2, sigma 1: high from 2.5, low up to 1.5.
        let limits = COLAB.limits(&mut [1.0, 3.0, 1.0, 3.0]);
        let labels = [2.5, 2.49, 1.51, 1.5].map(|s| limits.label(s));
        assert_eq!(
            labels,
            [SpeedLabel::High, SpeedLabel::Normal, SpeedLabel::Normal, SpeedLabel::Low]
        );
    }

    #[test]
    fn no_labels_within_three_percent() {
        let limits = COLAB.limits(&mut [1.98, 2.02]);
        assert_eq!(limits.label(2.02), SpeedLabel::Normal);
        let limits = COLAB.limits(&mut [1.9, 2.1]);
        assert_eq!(limits.label(2.1), SpeedLabel::High);
    }

    #[test]
    fn outer_thirds_get_labels() {
        let rule = LabelRule { terciles: true, ..COLAB };
        let limits = rule.limits(&mut [1.2, 3.0, 2.0, 1.0, 2.9, 2.1]);
        let labels = [1.2, 2.0, 2.1, 2.9].map(|s| limits.label(s));
        assert_eq!(
            labels,
            [SpeedLabel::Low, SpeedLabel::Normal, SpeedLabel::Normal, SpeedLabel::High]
        );
        // The middle value is on both limits.
        let limits = rule.limits(&mut [2.0, 2.0, 2.0, 2.0, 5.0]);
        assert_eq!([2.0, 5.0].map(|s| limits.label(s)), [SpeedLabel::Normal, SpeedLabel::High]);
    }

    #[test]
    fn a_label_changes_after_two_windows_in_a_row() {
        let mut label = Steady::default();
        let seen = ['a', 'b', 'a', 'b', 'c', 'b', 'b', 'a'];
        let held = seen.map(|seen| label.update(seen, 2));
        assert_eq!(held, ['a', 'a', 'a', 'a', 'a', 'a', 'b', 'b']);
        assert_eq!(label.update('a', 2), 'a');
        assert_eq!(label.update('z', 1), 'z');
    }
}
