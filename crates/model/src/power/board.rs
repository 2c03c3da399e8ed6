//! Power of a machine beyond its clusters, and regulators that clusters share.

/// What a machine states of its power as a whole. [`Default`]: nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BoardPower {
    /// Constant power of what is no cluster (memory, regulators, storage, fan) in mW.
    pub board_mw: f64,
    /// Names of the clusters that one regulator supplies: each runs at the highest voltage that any of them asks for.
    /// Empty: each has a regulator of its own. In a part of a machine names may be left of clusters that are not.
    pub shared_rail: Vec<String>,
}
