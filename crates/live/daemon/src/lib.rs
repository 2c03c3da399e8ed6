//! The user-space back end: a policy's plan becomes affinities, nice values, frozen threads and limits of
//! cpufreq, on top of the kernel's own fair scheduler.
//!
//! Whatever is touched ([`Touch`]) is written into the session's journal first, so that it can be put back
//! ([`restore`]) by this process, by its guardian if this process is killed, or later from the file.

mod daemon;
mod freezer;
mod restore;
mod roster;
mod system;
mod touch;

pub use daemon::{Daemon, Outcome};
pub use freezer::{Freezer, WentOn, members};
pub use restore::{Restored, outstanding, restore};
pub use touch::{Cpus, Group, Hierarchy, Instance, OwnGroup, Touch};
