//! What a prediction costs: ns per prediction with the models of a file.
//!
//! ```text
//! predict_bench MODEL.json
//! ```

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use ampsched_predict::{Models, Predictor, SIMULATED, SIMULATED_COUNTERS};

const PREDICTIONS: u32 = 10_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("usage: predict_bench MODEL.json")?;
    let models = Models::parse(&file, &std::fs::read_to_string(&file)?)?;
    for model in &models.models {
        let predictor = Predictor::new(model, &SIMULATED_COUNTERS);
        let mut counts = [0.1; SIMULATED];
        let begin = Instant::now();
        let mut sum = 0.0;
        for step in 0..PREDICTIONS {
            counts[1] = 1.0 + f64::from(step % 7);
            sum += predictor.predict(black_box(&counts)).speedup;
        }
        let ns = begin.elapsed().as_secs_f64() * 1e9 / f64::from(PREDICTIONS);
        let core = model.core_type.as_deref().unwrap_or("any");
        println!(
            "{{\"core_type\": \"{core}\", \"features\": {}, \"ns\": {ns:.1}, \"mean\": {:.3}}}",
            model.features.len(),
            sum / f64::from(PREDICTIONS)
        );
    }
    Ok(())
}
