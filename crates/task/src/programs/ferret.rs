//! PARSEC ferret.

use ampsched_policy::{ParamInfo, Params};

use super::support::{Weaver, Woven};
use super::{TaskProgramInfo, whole};
use crate::Graph;

const RATIO: f64 = 3.59;

/// The program's row.
pub static INFO: TaskProgramInfo = TaskProgramInfo {
    name: "ferret",
    summary: "image search: 3,500 queries through six stages, of which the first and the last are serial",
    documentation: "\
**Structure.** A query is loaded, segmented, its features are extracted, candidates are looked up and ranked, and the result is written. Loading follows loading and writing writing; everything else is independent between queries.

**Published.** 3,500 queries (JPDC 2018, Table 1), ratio 3.59 (Table 1).

**Assumed.** One task per query and stage. CPU times per item and their spread are recorded ones of PARSEC 3.0 with 400 queries (this project's measurement, the comments in `programs/ferret.toml`).",
    ratio: RATIO,
    params: &[ParamInfo::number("queries", 3500.0, 1.0, 1e6, "queries (JPDC 2018, Table 1)")],
    build,
};

/// Kind, recorded mean in us, coefficient of variation.
const STAGES: [(&str, f64, f64); 6] = [
    ("load", 632.3, 0.07),
    ("segment", 1383.6, 0.14),
    ("extract", 204.4, 0.10),
    ("vectorise", 3527.2, 0.44),
    ("rank", 17313.1, 0.87),
    ("write", 37.0, 0.37),
];

fn build(params: &Params) -> Woven<Graph> {
    let mut weaver = Weaver::with_barriers(false);
    // Tasks of the query before, for the serial stages.
    let mut before = [None; STAGES.len()];
    for _ in 0..whole(params, "queries") {
        let mut last = None;
        for (stage, (kind, mean, cv)) in STAGES.into_iter().enumerate() {
            let work = weaver.amount(mean, cv);
            let task = weaver.task(kind, work)?;
            let is_serial = stage == 0 || stage == STAGES.len() - 1;
            let waits = [last, before[stage].filter(|_| is_serial)];
            waits.into_iter().flatten().try_for_each(|from| weaver.link(from, task))?;
            (last, before[stage]) = (Some(task), Some(task));
        }
    }
    Ok(weaver.finish(INFO.name, RATIO))
}
