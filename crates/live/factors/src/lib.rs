//! What policies want to know of threads, measured on this computer.
//!
//! Architecture invariant: nothing here knows a policy, or what is done with what is measured.

mod blame;
mod trace_instance;

pub use blame::Blame;
pub use trace_instance::FutexTrace;
