//! What other programs have measured, and models that were trained with it.

use std::sync::OnceLock;

use ampsched_predict::{Models, Predictor, Reading, SIMULATED_COUNTERS, parse_gem5, parse_perf};

use super::{Format, check_refusal, once, seeds};

/// Statistics of gem5 are long; what a reader has to tell apart is in the first lines.
const GEM5_MOST: usize = 12_000;

pub static GEM5: Format = Format {
    name: "gem5",
    seeds: || {
        static CELL: OnceLock<Vec<String>> = OnceLock::new();
        once(&CELL, || seeds::files("crates/predict/tests/gem5", ".txt", GEM5_MOST))
    },
    read: |text| read(parse_gem5("input", text)),
    most: GEM5_MOST,
    share: 3,
};
pub static PERF: Format = Format {
    name: "perf",
    seeds: || {
        vec![
            "1.5,S0-D0-C1,2,1000,,cycles,5,100.00,,\n1.5,CPU0,<not counted>,,cpu_core/cycles/,0,0.00,,\n,,,,,1.5,GHz\n".to_owned(),
            "# started on Mon\n\n1000,,cycles,5,100.00,2.1,GHz\n2000,,instructions:u,5,50.00,,\n".to_owned(),
            "{\"interval\" : 1.0, \"counter-value\" : \"10.0\", \"unit\" : \"\", \"event\" : \"cycles\", \"pcnt-running\" : 99.9}\n".to_owned(),
            "{\"cpu\" : \"3\", \"counter-value\" : \"<not supported>\", \"event\" : \"cpu_atom/instructions/\"}\n".to_owned(),
        ]
    },
    read: |text| read(parse_perf("input", text)),
    most: 2000,
    share: 4,
};
pub static MODEL: Format = Format {
    name: "model",
    seeds: || {
        static CELL: OnceLock<Vec<String>> = OnceLock::new();
        once(&CELL, || seeds::files("python/ampsched/data/models", ".json", 6000))
    },
    read: |text| match Models::parse("input.json", text) {
        Ok(models) => {
            for model in &models.models {
                let names: Vec<&str> = SIMULATED_COUNTERS.to_vec();
                let counts: Vec<f64> =
                    (0..names.len()).map(|place| 1e6 / (place + 1) as f64).collect();
                for counts in [counts.clone(), vec![0.0; names.len()], vec![f64::NAN; names.len()]]
                {
                    let told = Predictor::new(model, &names).predict(&counts);
                    assert!(told.speedup.is_finite() && told.speedup > 0.0, "{told:?}");
                }
            }
        }
        Err(error) => check_refusal("input.json", &error.to_string()),
    },
    most: 6000,
    share: 3,
};

fn read(result: Result<Vec<Reading<'_>>, ampsched_model::InputError>) {
    match result {
        Ok(readings) => {
            for reading in readings {
                assert!(reading.value.is_none_or(f64::is_finite), "{reading:?}");
                assert!((0.0..=1.0).contains(&reading.running_share), "{reading:?}");
            }
        }
        Err(error) => check_refusal("input", &error.to_string()),
    }
}
