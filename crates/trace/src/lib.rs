//! Traces of schedules in Perfetto's format: of simulations, of task graphs and of live systems alike.
//!
//! Architecture invariant: nothing here knows who schedules, or what time it is.

mod perfetto;
mod trace;

pub use perfetto::{PerfettoTrace, SpanTrace, TraceMachine};
pub use trace::{Trace, TraceThread};
