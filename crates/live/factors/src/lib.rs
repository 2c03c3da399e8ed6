//! What policies want to know of threads, measured on this computer.
//!
//! Architecture invariant: nothing here knows a policy, or what is done with what is measured.

mod blame;
mod counters;
#[cfg(test)]
mod fake;
mod instruments;
mod power;
mod speedups;
mod trace_instance;

pub use blame::Blame;
pub use counters::{
    Counters, Encoding, Perf, PerfGroup, Pmu, PmuCounts, PmuPlan, Source, Survey, Times, WANTED,
};
pub use instruments::Instruments;
pub use power::{Covers, Energy, Sensor, SensorSurvey, Sensors};
pub use speedups::Speedups;
pub use trace_instance::FutexTrace;
