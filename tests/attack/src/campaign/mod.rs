//! Random simulations, judged from outside.
//!
//! A *scene* is a machine, a workload and a way to run it. Several policies with random legal parameters run it, each
//! twice: first watched by a trace, then in a batch on several processors. Everything that is told must add up; the
//! second run must tell the same bits; the trace must tell the same as the results; and policies may change when work
//! is done, but not how much.

mod judge;
mod machines;
mod mechanisms;
mod programs;
mod record;
mod scene;
mod settings;

pub use scene::{Failure, Report, Scene};
