//! Deterministic discrete-event simulator of threads on unequal cores.
//!
//! Architecture invariant: one simulation is single-threaded and bit-reproducible from machine,
//! workload, policy with parameters, and seed. Parallelism is across simulations ([`run_batch`]).

mod batch;
mod bounds;
mod engine;
mod error;
mod explain;
mod factors;
mod governor;
mod interrupt;
mod metrics;
mod offline;
mod optimum;
mod outcome;
mod schedule_trace;
mod streams;
mod tasks;

pub use ampsched_trace::{
    Decision, ExplainError, Explanation, PerfettoTrace, Question, Step, StepValue, Trace,
    TraceCore, TraceMachine, TraceThread, TurnEnd, Turns,
};
pub use batch::{Job, JobError, run_batch};
pub use bounds::Limits;
pub use engine::{Options, Overhead, simulate, simulate_with};
pub use error::SimError;
pub use explain::{NoExplanation, explain};
pub use factors::{FactorSource, Predicted};
pub use governor::GovernorSpec;
pub use interrupt::Interrupt;
pub use metrics::{AppTimes, Comparison, compare, geometric_mean};
pub use offline::{AloneFacts, OfflineFacts, offline_facts};
pub use optimum::{Effort, Objective, Optimum, OptimumError, Stay, optimum};
pub use outcome::{
    AppOutcome, ClassOutcome, ClusterEnergy, ClusterOutcome, CoreOutcome, Counts, Outcome, Periods,
    ThreadOutcome, Totals,
};
pub use schedule_trace::write_schedule;
pub use tasks::{TaskError, run_task_policy, run_tasks};
