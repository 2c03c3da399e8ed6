//! What this computer is: its classes and kinds of cores, lists of CPUs, what its kernel can do, and the threads that
//! run.
//!
//! Architecture invariant: nothing here changes the system. All that is read of it is read below a [`Root`], so
//! that tests can use a tree of files.

mod by_hand;
mod capabilities;
mod cgroups;
mod classes;
mod cores;
mod cpu_list;
mod domains;
mod energy;
mod kinds;
pub mod path_page;
mod pmus;
mod procfs;
mod root;
mod wakeup;

pub use by_hand::ByHand;
pub use capabilities::{Capabilities, Cpufreq, LOAD_SCHEDULER, RIGHTS, Right};
pub use cgroups::{CgroupVersion, Delegation, Mounts, Place, below};
pub use classes::{CpuClass, CpuClasses, Evidence, online_cpus};
pub use cores::{CoreMap, Domain};
pub use cpu_list::{format_cpus, parse_cpus, parse_cpus_once};
pub use domains::detect_cores;
pub use energy::{EnergyModels, PowerPoint};
pub use kinds::{CoreKind, core_kinds};
pub use pmus::CorePmu;
pub use procfs::{Proc, ThreadKey, ThreadStat, boot_id, is_gone, unless_gone};
pub use root::Root;
pub use wakeup::wakeup_ns;
