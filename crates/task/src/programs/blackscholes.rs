//! PARSEC blackscholes.

use ampsched_policy::{ParamInfo, Params};

use super::support::{Reads, Weaver, Woven};
use super::{BARRIERS, TaskProgramInfo, whole};
use crate::Graph;

const RATIO: f64 = 2.18;

/// The program's row.
pub static INFO: TaskProgramInfo = TaskProgramInfo {
    name: "blackscholes",
    summary: "option prices: 100 runs over the same options in 64 blocks, 6,400 tasks",
    documentation: "\
**Structure.** PARSEC prices all options 100 times (`NUM_RUNS`); a block of a run follows the same block of the run before.

**Published.** 6,400 tasks (JPDC 2018, section 5.3), ratio 2.18 (Table 1). 6,400 tasks in 100 runs are 64 blocks.

**Assumed.** Equal blocks: the formula has no branch that depends on the option.",
    ratio: RATIO,
    params: &[
        ParamInfo::number("runs", 100.0, 1.0, 10_000.0, "runs over all options (PARSEC: 100)"),
        ParamInfo::number("blocks", 64.0, 1.0, 100_000.0, "blocks of options (6,400 tasks / runs)"),
        BARRIERS,
    ],
    build,
};

fn build(params: &Params) -> Woven<Graph> {
    let mut weaver = Weaver::new(params);
    for _ in 0..whole(params, "runs") {
        weaver.stage("price", 1.0, whole(params, "blocks"), Reads::Same)?;
    }
    Ok(weaver.finish(INFO.name, RATIO))
}
