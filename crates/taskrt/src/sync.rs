//! The primitives that the lock-free parts are written against; the loom test puts its own in their place.

pub use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
pub use std::thread::{Thread, current, park};
