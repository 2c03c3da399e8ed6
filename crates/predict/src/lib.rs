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
mod perf;
mod reading;

pub use counter::{COUNTERS, CounterInfo, Unit, counter_index};
pub use gem5::parse_gem5;
pub use perf::parse_perf;
pub use reading::Reading;
