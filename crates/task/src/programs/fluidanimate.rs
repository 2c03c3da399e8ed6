//! PARSEC fluidanimate.

use ampsched_policy::{ParamInfo, Params};

use super::support::{Reads, Weaver, Woven};
use super::{BARRIERS, TaskProgramInfo, whole};
use crate::Graph;

const RATIO: f64 = 3.32;

/// The program's row.
pub static INFO: TaskProgramInfo = TaskProgramInfo {
    name: "fluidanimate",
    summary: "fluid particles: 500 frames of eight stages over a grid in 32 blocks, 128,500 tasks",
    documentation: "\
**Structure.** A frame clears the cells, moves particles into the new grid, initialises, sums densities (two stages), sums forces, handles collisions and advances. A block of the stages that look at \
neighbouring cells (rebuild, densities, forces) waits for its neighbours of the stage before, every other block only for itself.

**Published.** 500 frames, 128,500 tasks (JPDC 2018, Table 1 and section 5.3), ratio 3.32 (Table 1). 128,500 tasks in 500 frames are 257: here eight stages in 32 blocks, and one task that starts the frame.

**Assumed.** That decomposition of 257, and that blocks lie in a row. The stages' shares of the work are recorded CPU times per phase of PARSEC 3.0 with 15,000 particles (this project's recording, the comments in \
`programs/fluidanimate.toml`); the spread within a stage is that of its phase between threads.",
    ratio: RATIO,
    params: &[
        ParamInfo::number("frames", 500.0, 1.0, 10_000.0, "frames (JPDC 2018, Table 1)"),
        ParamInfo::number("blocks", 32.0, 1.0, 4096.0, "blocks of the grid (128,500 tasks / 500 frames)"),
        BARRIERS,
    ],
    build,
};

/// Recorded CPU time in us per thread and frame, spread between threads, what a block reads.
const STAGES: [(&str, f64, f64, Reads); 8] = [
    ("clear", 67.5, 0.42, Reads::Same),
    ("rebuild", 190.7, 1.57, Reads::Neighbours),
    ("initialise", 27.7, 0.35, Reads::Same),
    ("densities", 2228.9, 0.50, Reads::Neighbours),
    ("densities2", 22.3, 0.35, Reads::Same),
    ("forces", 2550.2, 0.50, Reads::Neighbours),
    ("collisions", 61.7 + 26.4, 0.22, Reads::Same),
    ("advance", 50.8, 0.22, Reads::Same),
];
/// The phase that opens a frame, recorded.
const START: f64 = 4.7;

fn build(params: &Params) -> Woven<Graph> {
    let mut weaver = Weaver::new(params);
    for _ in 0..whole(params, "frames") {
        weaver.stage("frame", START, 1, Reads::All)?;
        for (kind, work, cv, reads) in STAGES {
            weaver.uneven_stage(kind, work, cv, whole(params, "blocks"), reads)?;
        }
    }
    Ok(weaver.finish(INFO.name, RATIO))
}
