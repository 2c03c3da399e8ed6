//! Recordings of programs that ran: what each thread did, what it waited for and who woke it.
//!
//! Pure: whoever owns the files hands over their bytes. A recording comes from a recorder of ours or from an importer
//! of somebody else's trace, and becomes a [`Program`](ampsched_model::Program) that an engine executes.

mod asks;
mod file;
pub mod import;
mod interactive;
pub mod lift;
mod merge;
mod model;
mod raw;
mod replay;

pub use asks::{Asks, Group, Policy};
pub use file::{MAGIC, Writer, read};
pub use interactive::{FrameCount, Interactive, Period, ThreadFrames, interactive};
pub use merge::{Clocked, Merged, merge};
pub use model::{
    Core, Event, HeldLimits, Info, Kind, Recording, Thread, TracedClock, UNKNOWN_CORE, Wake,
};
pub use raw::{Whole, from_raw, from_raw_and_pages};
pub use replay::{
    Bond, Cause, Laws, Options, Part, Path, Replay, Replayed, Sharing, TYPICAL_PROFILE, laws,
    replay,
};
