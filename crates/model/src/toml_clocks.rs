//! Machine files: turbo, what leaving idle states takes, and the way of a cluster to the memory.

use std::ops::RangeInclusive;

use crate::limits::CORES_MAX;
use crate::reader::Table;
use crate::{ClusterPower, InputError, Opp};

/// What a cluster's own way to the memory adds, up to 10 us.
pub(crate) const EXTRA_NS: RangeInclusive<f64> = 0.0..=10_000.0;

/// The highest clock with 1, 2, ... active cores: operating points from the highest down.
pub(crate) fn turbo_mhz(table: &Table<'_>, opps: &[Opp]) -> Result<Vec<u32>, InputError> {
    let Some(list) = table.get("turbo_mhz") else { return Ok(Vec::new()) };
    let mut ladder: Vec<u32> = Vec::new();
    for node in list.list()? {
        let mhz = node.whole(1..=10_000)? as u32;
        let is_point = opps.iter().any(|opp| opp.mhz == mhz);
        let error = match ladder.last() {
            _ if !is_point => format!("{mhz} MHz is no operating point of the cluster"),
            None if opps.last().is_some_and(|opp| opp.mhz != mhz) => {
                format!("{mhz} MHz with one active core, below the highest operating point")
            }
            Some(fewer) if mhz > *fewer => {
                format!("{mhz} MHz after {fewer} MHz, more active cores are never faster")
            }
            _ => {
                ladder.push(mhz);
                continue;
            }
        };
        let hint = "state the highest clock with 1, 2, ... active cores, each one of opps";
        return Err(node.spot.error(error).with_hint(hint));
    }
    if ladder.is_empty() {
        return Err(list.spot.error("no frequency, at least 1 is needed"));
    }
    if ladder.len() > CORES_MAX as usize {
        return Err(list.spot.error(format!("{} frequencies, at most {CORES_MAX}", ladder.len())));
    }
    Ok(ladder)
}

/// Leaving idle states costs time only where a cluster states how much.
pub(crate) fn check_exits<'a>(
    root: &Table<'_>,
    mut powers: impl Iterator<Item = &'a ClusterPower>,
) -> Result<(), InputError> {
    let Some(node) = root.require("costs")?.any_table()?.get("idle_exit") else { return Ok(()) };
    let mut states = powers.by_ref().flat_map(|power| &power.idle_states);
    if !node.boolean()? || states.any(|state| state.exit_ns > 0) {
        return Ok(());
    }
    let error = node.spot.error("no idle state states how long leaving it takes");
    Err(error.with_hint("state exit_us in idle_states of a cluster"))
}
