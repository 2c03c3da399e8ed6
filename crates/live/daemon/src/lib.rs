//! The user-space back end: a policy's plan becomes affinities, nice values, frozen threads and limits of
//! cpufreq, on top of the kernel's own fair scheduler.
//!
//! Whatever is touched is written into a journal first ([`Journal`]), so that it can be put back ([`restore`])
//! by this process, by its guardian if this process is killed, or later from the file.

mod clocks;
mod daemon;
mod freezer;
mod journal;
mod restore;
mod roster;
mod system;

pub use daemon::{Daemon, Outcome};
pub use freezer::Freezer;
pub use journal::{Journal, Touch};
pub use restore::{Restored, restore, restore_file};
