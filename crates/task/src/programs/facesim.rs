//! PARSEC facesim.

use ampsched_policy::{ParamInfo, Params};

use super::support::{Reads, Weaver, Woven};
use super::{BARRIERS, TaskProgramInfo, whole};
use crate::Graph;

const RATIO: f64 = 3.40;

/// The program's row.
pub static INFO: TaskProgramInfo = TaskProgramInfo {
    name: "facesim",
    summary: "face simulation: 100 frames of many short loops over a partitioned mesh",
    documentation: "\
**Structure.** A frame updates the positions, then solves a system by conjugate gradients: loops over the mesh's partitions that read neighbouring partitions, and scalar products in between, which need all of them.

**Published.** 100 frames (JPDC 2018, Table 1), ratio 3.40 (Table 1).

**Assumed.** All else: no recording of this program was at hand. 32 partitions in a row, 20 iterations per frame, a multiplication of nine tenths of an iteration and a scalar product of one tenth, an update as long as two iterations, and \
equal partitions. Take what this graph shows as an illustration of its structure.",
    ratio: RATIO,
    params: &[
        ParamInfo::number("frames", 100.0, 1.0, 10_000.0, "frames (JPDC 2018, Table 1)"),
        ParamInfo::number("iterations", 20.0, 1.0, 10_000.0, "solver iterations per frame (assumed)"),
        ParamInfo::number("blocks", 32.0, 1.0, 4096.0, "partitions of the mesh (assumed)"),
        BARRIERS,
    ],
    build,
};

fn build(params: &Params) -> Woven<Graph> {
    let blocks = whole(params, "blocks");
    let mut weaver = Weaver::new(params);
    for _ in 0..whole(params, "frames") {
        weaver.stage("update", 2.0, blocks, Reads::Neighbours)?;
        for _ in 0..whole(params, "iterations") {
            weaver.stage("multiply", 0.9, blocks, Reads::Neighbours)?;
            weaver.stage("product", 0.1, blocks, Reads::Same)?;
            weaver.stage("reduce", 0.0, 1, Reads::All)?;
        }
    }
    Ok(weaver.finish(INFO.name, RATIO))
}
