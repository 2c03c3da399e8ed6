//! What the programs that run policies share: arguments, policies as text, the command, counters, signals, and what a
//! session leaves for others to see.

pub mod args;
pub mod command;
pub mod instruments;
pub mod live_trace;
pub mod policy_text;
pub mod record;
pub mod run_dir;
pub mod signals;
