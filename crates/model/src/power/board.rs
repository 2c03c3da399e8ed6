//! Power of a machine beyond its clusters, and regulators that clusters share.

use crate::Ns;

/// What a machine states of its power as a whole. [`Default`]: nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BoardPower {
    /// Constant power of what is no cluster (memory, regulators, storage, fan) in mW.
    pub board_mw: f64,
    /// Names of the clusters that one regulator supplies: each runs at the highest voltage that any of them asks for.
    /// Empty: each has a regulator of its own. In a part of a machine names may be left of clusters that are not.
    pub shared_rail: Vec<String>,
    /// Whether the uncores of these clusters have the highest clock of them (a DynamIQ shared unit).
    pub shared_clock: bool,
    /// What all clusters together may draw; none: as much as they like.
    pub limit: Option<PowerLimit>,
}

/// Running average power limit (RAPL) of all clusters together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerLimit {
    /// What they may draw on average (PL1), in mW.
    pub pl1_mw: f64,
    /// What they may draw while the average is below that (PL2), in mW; at least as much.
    pub pl2_mw: f64,
    /// Time constant of the exponentially weighted average in ns.
    pub tau_ns: Ns,
}
