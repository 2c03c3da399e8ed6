//! What schedulers do and why: as Perfetto traces of simulations, task graphs and live systems, and as the story of one
//! thread.
//!
//! Architecture invariant: nothing here knows who schedules, or what time it is.

mod explain;
mod perfetto;
mod trace;
mod turns;

pub use explain::{ExplainError, Explainer, Explanation, Question, Step, StepValue};
pub use perfetto::{PerfettoTrace, SpanTrace, TraceCore, TraceMachine};
pub use trace::{Decision, SystemIds, Trace, TraceThread, TurnEnd};
pub use turns::{TurnThread, Turns};
