//! PARSEC swaptions.

use ampsched_policy::{ParamInfo, Params};

use super::support::{Reads, Weaver, Woven};
use super::{TaskProgramInfo, whole};
use crate::Graph;

const RATIO: f64 = 2.78;

/// The program's row.
pub static INFO: TaskProgramInfo = TaskProgramInfo {
    name: "swaptions",
    summary: "Monte-Carlo prices of 128 independent swaptions, 128 coarse tasks",
    documentation: "\
**Structure.** Every swaption is simulated by itself; there is one parallel region without dependences.

**Published.** 128 tasks (JPDC 2018, section 5.3), ratio 2.78 (Table 1).

**Assumed.** Equal swaptions: recorded threads of equal counts of swaptions differ by half a percent (this project's recording of PARSEC 3.0).",
    ratio: RATIO,
    params: &[ParamInfo::number("swaptions", 128.0, 1.0, 1e6, "swaptions (PARSEC native: 128)")],
    build,
};

fn build(params: &Params) -> Woven<Graph> {
    let mut weaver = Weaver::with_barriers(false);
    weaver.stage("simulate", 1.0, whole(params, "swaptions"), Reads::All)?;
    Ok(weaver.finish(INFO.name, RATIO))
}
