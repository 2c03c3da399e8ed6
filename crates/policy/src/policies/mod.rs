//! One file per policy.

pub mod cfs;
pub mod colab;
pub mod colab_collaboration_only;
pub mod eevdf;
pub mod pinned;
pub mod rr;
mod support;
pub mod wash;
pub mod wash_orig;
