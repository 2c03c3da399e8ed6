//! Trained models, as JSON.
//!
//! ```text
//! { "format": "ampsched-speedup-1", "name": "...", "provenance": {...},
//!   "models": [ { "core_type": "cortex-a53", "mhz": 1200, "predicts": "slowdown", "features": [...],
//!                 "regression": { "kind": "linear", "intercept": 1, "coefficients": [...] },
//!                 "speedup_range": [1.6, 5.2], "capacity_ratio": 2.5, "running_share": 1, "errors": {...} } ] }
//! ```
//!
//! A feature is a count divided by another one, standardised. A model is for the counters of one kind
//! of core and predicts how much faster the thread is on the machine's fastest cores than on its slowest.

use ampsched_model::limits::{FEATURES_MAX, NODES_MAX};
use ampsched_model::{InputError, suggest};
use serde::Deserialize;
use serde_json::Value;

use crate::{COUNTERS, counter_index};

/// What the files say they are.
const FORMAT: &str = "ampsched-speedup-1";

/// Models of one machine or pair of cores: one per kind of core whose counters are read.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Models {
    /// Format and its version.
    format: String,
    /// Name.
    pub name: String,
    /// Where it comes from, for people.
    #[serde(default)]
    pub provenance: Value,
    /// The models.
    pub models: Vec<Model>,
}

/// What a regression's result is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Predicts {
    /// The speed-up.
    Speedup,
    /// Its inverse.
    Slowdown,
    /// Its natural logarithm.
    LogSpeedup,
}

/// A model for the counters of one kind of core.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Type of the cores that the counters are read on; any if not given.
    #[serde(default)]
    pub core_type: Option<String>,
    /// Their frequency in MHz; any if not given.
    #[serde(default)]
    pub mhz: Option<f64>,
    /// What the regression yields.
    pub predicts: Predicts,
    /// Its inputs.
    pub features: Vec<Feature>,
    /// The regression.
    pub regression: Regression,
    /// Least and greatest speed-up in training; predictions are kept within.
    #[serde(default)]
    pub speedup_range: Option<[f64; 2]>,
    /// Speed of the fastest cores / speed of the slowest, of a mean program: what is said of a thread
    /// whose counters are missing.
    pub capacity_ratio: f64,
    /// Share of the time in which each event is counted, because more events are needed than the core
    /// has counters; 1 if they fit.
    #[serde(default = "one")]
    pub running_share: f64,
    /// Errors in cross-validation, for people.
    #[serde(default)]
    pub errors: Value,
}

/// An input: a count per another one.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Feature {
    /// Counter.
    pub count: String,
    /// What it is divided by, such as `instructions`.
    pub per: String,
    /// Mean in training.
    #[serde(default)]
    pub mean: f64,
    /// Standard deviation in training.
    #[serde(default = "one")]
    pub scale: f64,
    /// Least and greatest value in training; unknown if not given.
    #[serde(default)]
    pub range: Option<[f64; 2]>,
    /// The value where a source does not have the counter; if not given, such a source cannot be used.
    #[serde(default)]
    pub when_missing: Option<f64>,
}

/// How features become the result.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Regression {
    /// Intercept + sum of coefficient x feature.
    Linear {
        /// Intercept.
        intercept: f64,
        /// One per feature.
        coefficients: Vec<f64>,
    },
    /// Intercept + sum of the trees' values.
    Trees {
        /// Intercept.
        intercept: f64,
        /// The trees.
        trees: Vec<Vec<Node>>,
    },
}

/// A node of a tree; the first is the root, children stand behind their parent.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Node {
    /// A decision: `left` if the feature is at most the threshold, else `right`.
    Split {
        /// Number of the feature.
        feature: usize,
        /// Threshold of the standardised feature.
        threshold: f64,
        /// Next node.
        left: usize,
        /// Next node.
        right: usize,
    },
    /// A result.
    Leaf {
        /// What the tree adds.
        value: f64,
    },
}

fn one() -> f64 {
    1.0
}

impl Models {
    /// Reads a model file.
    ///
    /// Errors: no JSON, an unknown key, counter or format, a number out of range, lengths that differ.
    pub fn parse(file: &str, text: &str) -> Result<Self, InputError> {
        let models: Self = serde_json::from_str(text).map_err(|error| {
            let message = error.to_string();
            let reason = message.split(" at line ").next().unwrap_or(&message);
            InputError::new(file, "", reason).at_line(error.line().max(1))
        })?;
        if models.format != FORMAT {
            let message = format!("\"{}\" is not \"{FORMAT}\"", models.format);
            return Err(InputError::new(file, "format", message));
        }
        if models.models.is_empty() {
            return Err(InputError::new(file, "models", "has no model"));
        }
        for (index, model) in models.models.iter().enumerate() {
            model.check().map_err(|(key, message)| {
                InputError::new(file, format!("models[{index}].{key}"), message)
            })?;
        }
        Ok(models)
    }

    /// The model for the counters of a kind of core at a frequency.
    pub fn for_core(&self, core_type: &str, mhz: f64) -> Option<&Model> {
        self.models.iter().find(|model| {
            model.core_type.as_deref().is_none_or(|known| known == core_type)
                && model.mhz.is_none_or(|known| known == mhz)
        })
    }
}

/// What is wrong with a model: key, message.
type Flaw = (String, String);

impl Model {
    fn check(&self) -> Result<(), Flaw> {
        within("capacity_ratio", self.capacity_ratio, 0.01, 100.0)?;
        within("running_share", self.running_share, 0.001, 1.0)?;
        if let Some(range) = self.speedup_range {
            ascending("speedup_range", range)?;
            within("speedup_range[0]", range[0], 0.01, 100.0)?;
            within("speedup_range[1]", range[1], 0.01, 100.0)?;
        }
        if self.features.len() > FEATURES_MAX {
            let message = format!("{} features, at most {FEATURES_MAX}", self.features.len());
            return Err(("features".into(), message));
        }
        for (index, feature) in self.features.iter().enumerate() {
            feature
                .check()
                .map_err(|(key, message)| (format!("features[{index}].{key}"), message))?;
        }
        self.regression.check(self.features.len()).map_err(|message| ("regression".into(), message))
    }
}

impl Feature {
    fn check(&self) -> Result<(), Flaw> {
        for (key, name) in [("count", &self.count), ("per", &self.per)] {
            if counter_index(name).is_none() {
                let hint = suggest(name, COUNTERS.iter().map(|counter| counter.name));
                return Err((key.into(), format!("\"{name}\" is no counter ({hint})")));
            }
        }
        within("scale", self.scale, f64::MIN_POSITIVE, f64::MAX)?;
        self.range.map_or(Ok(()), |range| ascending("range", range))
    }
}

fn within(key: &str, value: f64, low: f64, high: f64) -> Result<(), Flaw> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err((key.into(), format!("{value} is not within {low} to {high}")))
}

fn ascending(key: &str, [low, high]: [f64; 2]) -> Result<(), Flaw> {
    if low <= high {
        return Ok(());
    }
    Err((key.into(), format!("{low} is above {high}")))
}

impl Regression {
    fn check(&self, features: usize) -> Result<(), String> {
        match self {
            Self::Linear { coefficients, .. } if coefficients.len() != features => {
                Err(format!("{} coefficients for {features} features", coefficients.len()))
            }
            Self::Linear { .. } => Ok(()),
            Self::Trees { trees, .. } => {
                let nodes: usize = trees.iter().map(Vec::len).sum();
                if nodes > NODES_MAX {
                    return Err(format!("{nodes} nodes, at most {NODES_MAX}"));
                }
                trees.iter().try_for_each(|tree| check_tree(tree, features))
            }
        }
    }
}

/// Children behind their parents: every walk from the root ends.
fn check_tree(tree: &[Node], features: usize) -> Result<(), String> {
    if tree.is_empty() {
        return Err("a tree without nodes".into());
    }
    for (index, node) in tree.iter().enumerate() {
        if let Node::Split { feature, left, right, .. } = *node {
            let behind = |child: usize| child > index && child < tree.len();
            if feature >= features || !behind(left) || !behind(right) {
                return Err(format!("node {index} names a feature or a child that is not there"));
            }
        }
    }
    Ok(())
}
