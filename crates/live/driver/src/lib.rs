//! A policy's slow plane on a system that another scheduler runs: the driver, with its mirror of what was seen; its
//! clock; what is known of programs beforehand; and what policies demand of the means by which they run.
//!
//! Architecture invariant: nothing here touches the system. Observations come in, decisions go out, so that the same
//! driver serves every back end and tests need neither threads nor a kernel.

mod demands;
mod dilation;
mod driver;
mod facts;
mod playback;

pub use demands::{
    Backend, Choices, Demand, KERNEL_CORES_MAX, crashes_verifier, demands, kernel_lacks,
    lacks_clocks, runnable_policies,
};
pub use dilation::Dilation;
pub use driver::{Decision, Driver, Observation};
pub use facts::{Facts, ProgramFacts};
