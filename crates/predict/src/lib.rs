//! From performance counters to the speed-up of a big core over a little one.
//!
//! ```text
//! gem5 stats.txt, perf stat -x/-j  ->  Reading  ->  (training, in Python)  ->  Models (JSON)
//! counts of a window  ->  Predictor  ->  Prediction { speedup, outside, origin }
//! ```
//!
//! Architecture invariant: this crate reads texts and numbers that are passed in; it opens no file, and
//! knows nothing of simulations or policies.

mod counter;
mod gem5;
mod model;
mod noise;
mod perf;
mod predictor;
mod reading;
mod simulated;

pub use counter::{COUNTERS, CounterInfo, Unit, counter_index};
pub use gem5::parse_gem5;
pub use model::{Feature, Model, Models, Node, Predicts, Regression};
pub use noise::{counter_cv, noise_factor};
pub use perf::{counter_of_event, parse_perf};
pub use predictor::{Origin, Prediction, Predictor};
pub use reading::Reading;
pub use simulated::{SIMULATED, SIMULATED_COUNTERS, counts_per_instruction};
