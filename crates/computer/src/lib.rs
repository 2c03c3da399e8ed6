//! What this computer is: its classes of cores, lists of CPUs, what its kernel can do, and the threads that run.
//!
//! Architecture invariant: nothing here changes the system. All that is read of it is read below a [`Root`], so
//! that tests can use a tree of files.

mod capabilities;
mod classes;
mod cores;
mod cpu_list;
mod procfs;
mod root;

pub use capabilities::{Capabilities, CgroupVersion, Delegation};
pub use classes::{ByHand, Evidence, detect_cores};
pub use cores::{CoreMap, Domain};
pub use cpu_list::{format_cpus, parse_cpus};
pub use procfs::{Proc, ThreadKey, ThreadStat};
pub use root::Root;
