//! PARSEC streamcluster.

use ampsched_policy::{ParamInfo, Params};

use super::support::{Reads, Weaver, Woven};
use super::{BARRIERS, TaskProgramInfo, whole};
use crate::Graph;

const RATIO: f64 = 3.48;

/// The program's row.
pub static INFO: TaskProgramInfo = TaskProgramInfo {
    name: "streamcluster",
    summary: "on-line clustering: five blocks of points, thousands of short gain evaluations each",
    documentation: "\
**Structure.** For every block of the stream, candidate centres are tried one after the other. A trial computes distances of all points in parallel, one task adds up and decides, and the points are assigned anew. The next trial \
needs the decision.

**Published.** Five blocks of 200,000 points (JPDC 2018, Table 1), ratio 3.48 (Table 1).

**Assumed.** 1,000 trials per block in 16 parts; the number depends on the data (a recording of PARSEC 3.0 with one block of 8,192 points has 22,807 barriers). Distances are nine tenths of a trial, the assignment one tenth, the decision nothing; parts are \
equal (recorded threads differ by 2 %).",
    ratio: RATIO,
    params: &[
        ParamInfo::number("blocks", 5.0, 1.0, 1000.0, "blocks of the stream (JPDC 2018, Table 1)"),
        ParamInfo::number("trials", 1000.0, 1.0, 1e5, "trials per block (assumed)"),
        ParamInfo::number("parts", 16.0, 1.0, 4096.0, "parts of the points (assumed)"),
        BARRIERS,
    ],
    build,
};

fn build(params: &Params) -> Woven<Graph> {
    let (trials, parts) =
        (whole(params, "blocks") * whole(params, "trials"), whole(params, "parts"));
    let mut weaver = Weaver::new(params);
    for _ in 0..trials {
        weaver.stage("distances", 0.9, parts, Reads::Same)?;
        weaver.stage("decide", 0.0, 1, Reads::All)?;
        weaver.stage("assign", 0.1, parts, Reads::All)?;
    }
    Ok(weaver.finish(INFO.name, RATIO))
}
