//! PARSEC canneal.

use ampsched_policy::{ParamInfo, Params};

use super::support::{Reads, Weaver, Woven};
use super::{TaskProgramInfo, whole};
use crate::Graph;

const RATIO: f64 = 1.73;

/// The program's row.
pub static INFO: TaskProgramInfo = TaskProgramInfo {
    name: "canneal",
    summary: "simulated annealing: 6,000 temperature steps of swaps, a barrier after each",
    documentation: "\
**Structure.** In a temperature step all workers swap random elements without locks; then all meet, because the temperature falls for all. The task-based version keeps that barrier.

**Published.** 6,000 steps (JPDC 2018, Table 1), ratio 1.73 (Table 1).

**Assumed.** 16 blocks of swaps per step, with the spread between threads that a recording of PARSEC 3.0 shows (0.03). The serial reading of the net list before the first step is left out, as in the paper (parallel region only).",
    ratio: RATIO,
    params: &[
        ParamInfo::number("steps", 6000.0, 1.0, 100_000.0, "temperature steps (JPDC 2018, Table 1)"),
        ParamInfo::number("blocks", 16.0, 1.0, 4096.0, "blocks of swaps per step (assumed)"),
    ],
    build,
};

/// Spread of CPU time between recorded threads.
const CV: f64 = 0.03;

fn build(params: &Params) -> Woven<Graph> {
    let mut weaver = Weaver::with_barriers(true);
    for _ in 0..whole(params, "steps") {
        weaver.uneven_stage("swap", 1.0, CV, whole(params, "blocks"), Reads::All)?;
    }
    Ok(weaver.finish(INFO.name, RATIO))
}
