//! Inference: counts of a window in, speed-up out. No allocation, no more than some tens of ns.

use ampsched_model::limits::FEATURES_MAX;

use crate::model::{Model, Node, Predicts, Regression};

/// Where a prediction comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The model.
    Model,
    /// The machine's capacity ratio, because counters are missing.
    CapacityRatio,
}

/// A predicted speed-up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Speed on the fastest cores / speed on the slowest.
    pub speedup: f64,
    /// How far the worst feature lies outside of what training saw, as a share of the width of the
    /// training range; 0 within.
    pub outside: f64,
    /// Where it comes from.
    pub origin: Origin,
}

/// A feature bound to places in the caller's counts.
#[derive(Clone, Debug)]
struct Input {
    /// Place of the count; none if the source does not have it.
    count: Option<usize>,
    per: Option<usize>,
    mean: f64,
    inverse_scale: f64,
    low: f64,
    high: f64,
    /// 1 / width of the training range.
    inverse_width: f64,
    when_missing: f64,
}

/// A model bound to the order in which a source gives its counts.
#[derive(Clone, Debug)]
pub struct Predictor {
    inputs: Vec<Input>,
    regression: Regression,
    predicts: Predicts,
    low: f64,
    high: f64,
    capacity_ratio: f64,
}

impl Predictor {
    /// Binds a model to counts that come in the order of `names`.
    pub fn new(model: &Model, names: &[&str]) -> Self {
        let place = |wanted: &str| names.iter().position(|name| *name == wanted);
        let inputs = model.features.iter().map(|feature| {
            let [low, high] = feature.range.unwrap_or([f64::NEG_INFINITY, f64::INFINITY]);
            Input {
                count: place(&feature.count),
                per: place(&feature.per),
                mean: feature.mean,
                inverse_scale: 1.0 / feature.scale,
                low,
                high,
                inverse_width: 1.0 / (high - low).max(f64::MIN_POSITIVE),
                when_missing: feature.when_missing.unwrap_or(f64::NAN),
            }
        });
        let [low, high] = model.speedup_range.unwrap_or([0.01, 100.0]);
        Self {
            inputs: inputs.collect(),
            regression: model.regression.clone(),
            predicts: model.predicts,
            low,
            high,
            capacity_ratio: model.capacity_ratio,
        }
    }

    /// Predicts from the counts of a window, in the order that the predictor was bound to. A count that
    /// is missing is NaN.
    pub fn predict(&self, counts: &[f64]) -> Prediction {
        let mut features = [0.0; FEATURES_MAX];
        let mut outside: f64 = 0.0;
        for (feature, input) in features.iter_mut().zip(&self.inputs) {
            let value = input.value(counts);
            if !value.is_finite() {
                return self.fallback();
            }
            let beyond = (input.low - value).max(value - input.high).max(0.0);
            // A range of no width is left by any other value.
            outside = outside.max((beyond * input.inverse_width).min(1e9));
            *feature = (value - input.mean) * input.inverse_scale;
        }
        let result = self.regression.apply(&features[..self.inputs.len()]);
        let speedup = match self.predicts {
            Predicts::Speedup => result,
            // A slow-down of 0 or less cannot be: as fast as was ever seen.
            Predicts::Slowdown if result <= 0.0 => self.high,
            Predicts::Slowdown => 1.0 / result,
            Predicts::LogSpeedup => result.exp(),
        };
        if speedup.is_nan() {
            return self.fallback();
        }
        Prediction { speedup: speedup.clamp(self.low, self.high), outside, origin: Origin::Model }
    }

    /// What is said of a thread whose counters are missing.
    pub fn fallback(&self) -> Prediction {
        Prediction { speedup: self.capacity_ratio, outside: 0.0, origin: Origin::CapacityRatio }
    }
}

impl Input {
    #[inline]
    fn value(&self, counts: &[f64]) -> f64 {
        let count = |place: Option<usize>| {
            place.and_then(|place| counts.get(place)).copied().unwrap_or(f64::NAN)
        };
        let value = count(self.count) / count(self.per);
        if value.is_nan() { self.when_missing } else { value }
    }
}

impl Regression {
    #[inline]
    fn apply(&self, features: &[f64]) -> f64 {
        match self {
            Self::Linear { intercept, coefficients } => {
                intercept + features.iter().zip(coefficients).map(|(x, c)| x * c).sum::<f64>()
            }
            Self::Trees { intercept, trees } => {
                intercept + trees.iter().map(|tree| walk(tree, features)).sum::<f64>()
            }
        }
    }
}

fn walk(tree: &[Node], features: &[f64]) -> f64 {
    let mut at = 0;
    loop {
        match tree[at] {
            Node::Leaf { value } => return value,
            Node::Split { feature, threshold, left, right } => {
                at = if features[feature] <= threshold { left } else { right };
            }
        }
    }
}
