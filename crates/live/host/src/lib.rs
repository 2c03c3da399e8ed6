//! What a live back end needs whatever its means are: the threads of programs, the driver that runs a policy's slow
//! plane on what is seen of them, and what policies demand of the means.
//!
//! Architecture invariant: nothing here changes the system.

mod demands;
mod dilation;
mod driver;
mod facts;
mod playback;
mod scope;

pub use demands::{Backend, Demand, demands, kernel_lacks, runnable_policies};
pub use dilation::Dilation;
pub use driver::{Decision, Driver, Sighting};
pub use facts::{Facts, ProgramFacts};
pub use scope::{FoundThread, Scope};
