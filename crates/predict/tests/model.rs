//! Model files and what they predict.

use ampsched_predict::{Models, Origin, Predictor};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const LINEAR: &str = r#"{
  "format": "ampsched-speedup-1", "name": "pair",
  "models": [
    { "core_type": "little", "mhz": 1000, "predicts": "slowdown", "capacity_ratio": 2.5, "speedup_range": [1.2, 5],
      "features": [
        { "count": "l2_misses", "per": "instructions", "mean": 0.01, "scale": 0.005, "range": [0, 0.02] },
        { "count": "instructions", "per": "cycles", "mean": 0.5, "scale": 0.25, "range": [0.1, 1.1] }
      ],
      "regression": { "kind": "linear", "intercept": 0.5, "coefficients": [0.1, -0.05] } },
    { "predicts": "speedup", "capacity_ratio": 2,
      "features": [ { "count": "branches", "per": "instructions", "when_missing": 0 } ],
      "regression": { "kind": "trees", "intercept": 1, "trees": [
        [ { "feature": 0, "threshold": 0.1, "left": 1, "right": 2 }, { "value": 1 }, { "value": 2 } ],
        [ { "value": 0.5 } ] ] } }
  ]
}"#;
const NAMES: [&str; 3] = ["instructions", "cycles", "l2_misses"];

fn parse(text: &str) -> Models {
    Models::parse("m.json", text).unwrap()
}

#[test]
fn a_linear_model_by_hand() {
    let models = parse(LINEAR);
    let predictor = Predictor::new(models.for_core("little", 1000.0).unwrap(), &NAMES);
    // Features (0.02 - 0.01) / 0.005 = 2 and (0.75 - 0.5) / 0.25 = 1: 0.5 + 0.2 - 0.05 = 0.65.
    let prediction = predictor.predict(&[1500.0, 2000.0, 30.0]);
    assert!((prediction.speedup - 1.0 / 0.65).abs() < 1e-12);
    assert_eq!((prediction.outside, prediction.origin), (0.0, Origin::Model));
    // 0.03 misses lie half a range above the training range; the result is kept within 1.2 to 5.
    let outside = predictor.predict(&[1000.0, 1000.0, 30.0]);
    assert!((outside.outside - 0.5).abs() < 1e-12, "{outside:?}");
    assert_eq!(predictor.predict(&[1000.0, 1000.0, 1000.0]).speedup, 1.2);
}

#[test]
fn a_model_of_the_logarithm_by_hand() {
    let models = parse(&LINEAR.replace("\"slowdown\"", "\"log_speedup\""));
    let predictor = Predictor::new(models.for_core("little", 1000.0).unwrap(), &NAMES);
    // The features are 2 and 1, as above: exp(0.65).
    let prediction = predictor.predict(&[1500.0, 2000.0, 30.0]);
    assert!((prediction.speedup - 0.65_f64.exp()).abs() < 1e-12);
    // Beyond what exp can take, and below: kept within 1.2 to 5.
    assert_eq!(predictor.predict(&[1.0, 1.0, 1e6]).speedup, 5.0);
    assert_eq!(predictor.predict(&[1e6, 1.0, 0.0]).speedup, 1.2);
}

#[test]
fn missing_counters_give_the_capacity_ratio() {
    let models = parse(LINEAR);
    let model = models.for_core("little", 1000.0).unwrap();
    for counts in [[f64::NAN, 1.0, 1.0], [0.0, 0.0, 0.0], [1.0, 1.0, f64::NAN]] {
        let prediction = Predictor::new(model, &NAMES).predict(&counts);
        assert_eq!((prediction.speedup, prediction.origin), (2.5, Origin::CapacityRatio));
    }
    let without_misses = Predictor::new(model, &NAMES[..2]);
    assert_eq!(without_misses.predict(&[1.0, 1.0]).origin, Origin::CapacityRatio);
}

#[test]
fn trees_add_up_and_missing_counters_may_have_a_value() {
    let models = parse(LINEAR);
    let model = models.for_core("other", 1.0).unwrap();
    let predict = |counts: &[f64]| {
        Predictor::new(model, &["instructions", "branches"]).predict(counts).speedup
    };
    assert_eq!(predict(&[100.0, 10.0]), 2.5);
    assert_eq!(predict(&[100.0, 11.0]), 3.5);
    assert_eq!(Predictor::new(model, &["instructions"]).predict(&[100.0]).speedup, 2.5);
}

#[test]
fn models_are_found_by_core_and_frequency() {
    let models = parse(LINEAR);
    assert_eq!(models.for_core("little", 1000.0).unwrap().capacity_ratio, 2.5);
    assert_eq!(models.for_core("little", 900.0).unwrap().capacity_ratio, 2.0);
}

#[test]
fn every_error_names_the_place() {
    for (from, to, expected) in [
        (
            "speedup-1",
            "speedup-9",
            "m.json: format: \"ampsched-speedup-9\" is not \"ampsched-speedup-1\"",
        ),
        (
            "\"l2_misses\"",
            "\"l2_mises\"",
            "m.json: models[0].features[0].count: \"l2_mises\" is no counter (did you mean \"l2_misses\"?)",
        ),
        (
            "\"scale\": 0.005",
            "\"scale\": 0",
            "m.json: models[0].features[0].scale: 0 is not within",
        ),
        ("[0, 0.02]", "[1, 0.02]", "m.json: models[0].features[0].range: 1 is above 0.02"),
        ("[0.1, -0.05]", "[0.1]", "m.json: models[0].regression: 1 coefficients for 2 features"),
        (
            "\"capacity_ratio\": 2.5",
            "\"capacity_ratio\": 0",
            "m.json: models[0].capacity_ratio: 0 is not within 0.01 to 100",
        ),
        (
            "\"left\": 1",
            "\"left\": 0",
            "m.json: models[1].regression: node 0 names a feature or a child that is not there",
        ),
        ("\"capacity_ratio\": 2,", "\"capacity\": 2,", "m.json:10: unknown field `capacity`"),
        ("\"models\": [", "\"models\": ", "m.json:"),
    ] {
        let error = Models::parse("m.json", &LINEAR.replace(from, to)).unwrap_err().to_string();
        assert!(error.starts_with(expected) && !error.contains('\n'), "{error}");
    }
    let empty = "{ \"format\": \"ampsched-speedup-1\", \"name\": \"x\", \"models\": [] }";
    assert_eq!(Models::parse("f", empty).unwrap_err().to_string(), "f: models: has no model");
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn any_counts_give_a_speedup_within_the_range(
        counts in prop::array::uniform3(prop::num::f64::ANY),
        predicts in prop::sample::select(vec!["slowdown", "speedup", "log_speedup"]),
    ) {
        let models = parse(&LINEAR.replacen("slowdown", predicts, 1));
        let prediction = Predictor::new(&models.models[0], &NAMES).predict(&counts);
        prop_assert!((1.2..=5.0).contains(&prediction.speedup), "{counts:?} {prediction:?}");
        prop_assert!(prediction.outside >= 0.0 && prediction.outside.is_finite());
    }
}
