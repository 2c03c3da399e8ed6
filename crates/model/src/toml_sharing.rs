//! What cores use together: `[memory]` of a machine file, and keys of its clusters.

use std::ops::RangeInclusive;

use crate::reader::Table;
use crate::{InputError, Memory, Sharing};

/// Keys of a cluster.
pub(crate) const CLUSTER_KEYS: [&str; 4] =
    ["bandwidth_mb_s", "l2_contention", "threads_per_core", "smt_speed"];

/// From a microcontroller's memory to tens of channels.
const MB_S: RangeInclusive<f64> = 1.0..=1e7;
/// A server has some tens.
const CHANNELS: RangeInclusive<i64> = 1..=256;
/// Two siblings do at least what one alone does, and at most twice that.
const SMT_SPEED: RangeInclusive<f64> = 0.5..=1.0;

/// What the memory carries, if `[memory]` states it.
pub(crate) fn memory(root: &Table<'_>) -> Result<Option<Memory>, InputError> {
    let Some(node) = root.get("memory") else { return Ok(None) };
    let table = node.table(&["bandwidth_mb_s", "channels"])?;
    Ok(Some(Memory {
        mb_s: table.number("bandwidth_mb_s", MB_S)?,
        channels: table.get("channels").map_or(Ok(1), |node| node.whole(CHANNELS))? as u32,
    }))
}

/// What the cores of a cluster share.
pub(crate) fn sharing(table: &Table<'_>, cores: usize) -> Result<Sharing, InputError> {
    let sharing = Sharing {
        cores,
        l2: table.get("l2_contention").map_or(Ok(false), |node| node.boolean())?,
        port_mb_s: table.get("bandwidth_mb_s").map(|node| node.number(MB_S)).transpose()?,
        smt_speed: smt_speed(table, cores)?,
    };
    Ok(if sharing.is_any() { sharing } else { Sharing::NONE })
}

fn smt_speed(table: &Table<'_>, cores: usize) -> Result<Option<f64>, InputError> {
    let speed = table.get("smt_speed");
    let threads = table.get("threads_per_core");
    let per_core = threads.as_ref().map_or(Ok(1), |node| node.whole(1..=2))?;
    match (speed, threads) {
        (Some(speed), _) if per_core == 1 => {
            let hint = "cores 2i and 2i+1 are then threads of one core";
            Err(speed
                .spot
                .error("a core has one thread, threads_per_core = 2 is needed")
                .with_hint(hint))
        }
        (None, Some(threads)) if per_core == 2 => {
            Err(threads.spot.error("key \"smt_speed\" is missing").with_hint(
                "the speed of each of two busy threads of a core, relative to alone: 0.5 to 1",
            ))
        }
        (_, Some(threads)) if per_core == 2 && cores % 2 == 1 => {
            Err(threads.spot.error(format!("{cores} cores are not pairs of threads of one core")))
        }
        (Some(speed), _) => speed.number(SMT_SPEED).map(Some),
        (None, _) => Ok(None),
    }
}
