//! The user-space back end: a policy's plan becomes affinities, nice values, frozen threads and limits of
//! cpufreq, on top of the kernel's own fair scheduler.
//!
//! Whatever is touched is written into a journal first ([`Journal`]), so that it can be put back ([`restore`])
//! by this process, by its guardian ([`Guardian`]) if this process is killed, or later from the file.

mod clocks;
mod freezer;
mod guardian;
mod journal;
mod observed;
mod restore;
mod roster;
mod session;
mod status;
mod system;

pub use freezer::Freezer;
pub use guardian::{Guardian, keep_watch};
pub use journal::{Journal, Touch};
pub use observed::{Account, Observed, Own, Scheduled, status_of};
pub use restore::{Restored, restore, restore_file};
pub use session::{Session, Setup, Summary};
pub use status::{CoreStatus, Status, ThreadStatus};
