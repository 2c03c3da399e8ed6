//! One file per policy.

pub mod a_dwrr;
pub mod acfs;
pub mod amps;
pub mod camp;
pub mod cfs;
pub mod colab;
pub mod colab_collaboration_only;
pub mod eevdf;
pub mod equal_progress;
pub mod guaranteed_fairness;
pub mod hfee;
pub mod hsp;
pub mod max_fair;
pub mod max_perf;
pub mod min_fair;
pub mod min_fair_hfee;
pub mod pie;
pub mod pinned;
pub mod prop_sp;
pub mod rr;
pub mod rr_amp;
pub mod similarity;
mod support;
pub mod uniformity;
pub mod wash;
pub mod wash_orig;
