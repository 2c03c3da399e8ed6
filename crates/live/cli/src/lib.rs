//! What the programs that run policies share: arguments, policies as text, the command, counters, signals.

pub mod args;
pub mod command;
pub mod instruments;
pub mod policy_text;
pub mod signals;
