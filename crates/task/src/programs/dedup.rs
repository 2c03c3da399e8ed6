//! PARSEC dedup.

use ampsched_policy::{ParamInfo, Params};

use super::support::{Weaver, Woven};
use super::{TaskProgramInfo, whole};
use crate::Graph;

const RATIO: f64 = 2.67;

/// The program's row.
pub static INFO: TaskProgramInfo = TaskProgramInfo {
    name: "dedup",
    summary: "compression with deduplication: 168 coarse chunks, refined, compressed in batches, written in order",
    documentation: "\
**Structure.** The input is cut into coarse chunks one after the other. Each is refined into fine chunks; batches of them are looked up and, if new, compressed; the results of a chunk are written when those of the chunk before have been.

**Published.** 351 MB of input (JPDC 2018, Table 1), ratio 2.67 (Table 1).

**Assumed.** 22 coarse chunks per 46 MB and 43 batches of 20 fine chunks in each are those of this project's recording of PARSEC 3.0, as are CPU times and spreads (the comments in `programs/dedup.toml`). Input and output take CPU time only; the paper calls them \
variable.",
    ratio: RATIO,
    params: &[
        ParamInfo::number("chunks", 168.0, 1.0, 100_000.0, "coarse chunks (351 MB, 22 per 46 MB)"),
        ParamInfo::number("batches", 43.0, 1.0, 1000.0, "batches per chunk (850 fine chunks / 20)"),
    ],
    build,
};

/// Recorded CPU times per coarse chunk in us: totals of the stages / 22 chunks.
const FRAGMENT: f64 = 101_000.0 / 22.0;
const REFINE: (f64, f64) = (5927.8, 0.31);
const LOOK_UP: f64 = 80_600.0 / 22.0;
const COMPRESS: (f64, f64) = (1_968_900.0 / 22.0, 0.28);
const WRITE: f64 = 97_600.0 / 22.0;

fn build(params: &Params) -> Woven<Graph> {
    let batches = whole(params, "batches");
    let mut weaver = Weaver::with_barriers(false);
    let (mut cut, mut written): (Option<u32>, Option<u32>) = (None, None);
    for _ in 0..whole(params, "chunks") {
        let fragment = weaver.task("fragment", FRAGMENT)?;
        cut.into_iter().try_for_each(|before| weaver.link(before, fragment))?;
        let work = weaver.amount(REFINE.0, REFINE.1);
        let refine = weaver.task("refine", work)?;
        weaver.link(fragment, refine)?;
        let write =
            (0..batches).map(|_| batch(&mut weaver, refine, batches)).collect::<Woven<Vec<_>>>()?;
        let out = weaver.task("write", WRITE)?;
        written.into_iter().chain(write).try_for_each(|before| weaver.link(before, out))?;
        (cut, written) = (Some(fragment), Some(out));
    }
    Ok(weaver.finish(INFO.name, RATIO))
}

/// Looks a batch up and compresses it; returns the task that ends it.
fn batch(weaver: &mut Weaver, refine: u32, batches: usize) -> Woven<u32> {
    let look_up = weaver.task("look up", LOOK_UP / batches as f64)?;
    weaver.link(refine, look_up)?;
    let work = weaver.amount(COMPRESS.0 / batches as f64, COMPRESS.1);
    let compress = weaver.task("compress", work)?;
    weaver.link(look_up, compress)?;
    Ok(compress)
}
