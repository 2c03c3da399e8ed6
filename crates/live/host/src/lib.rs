//! What a live back end needs whatever its means are: the machine's classes of cores, what the kernel can
//! do, the threads of programs, and the driver that runs a policy's slow plane on what is seen of them.
//!
//! Architecture invariant: nothing here changes the system. All that is read of it is read below a [`Root`], so
//! that tests can use a tree of files.

mod capabilities;
mod classes;
mod cores;
mod cpu_list;
mod demands;
mod dilation;
mod driver;
mod facts;
mod playback;
mod procfs;
mod root;

pub use capabilities::{Capabilities, CgroupVersion, Delegation};
pub use classes::{ByHand, Evidence, detect_cores};
pub use cores::{CoreMap, Domain};
pub use cpu_list::{format_cpus, parse_cpus};
pub use demands::{Backend, Demand, demands, kernel_lacks, runnable_policies};
pub use dilation::Dilation;
pub use driver::{Decision, Driver, Observation};
pub use facts::{Facts, ProgramFacts};
pub use procfs::{Proc, ThreadKey, ThreadStat};
pub use root::Root;
