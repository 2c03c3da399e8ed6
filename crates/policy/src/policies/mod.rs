//! One file per policy.

pub mod cfs;
pub mod pinned;
pub mod rr;
