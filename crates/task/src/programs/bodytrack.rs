//! PARSEC bodytrack.

use ampsched_policy::{ParamInfo, Params};

use super::support::{Reads, Weaver, Woven};
use super::{BARRIERS, TaskProgramInfo, whole};
use crate::Graph;

const RATIO: f64 = 4.16;

/// The program's row.
pub static INFO: TaskProgramInfo = TaskProgramInfo {
    name: "bodytrack",
    summary: "body tracking: images, then five annealing layers of particle weights per frame",
    documentation: "\
**Structure.** A frame loads four images, filters them in three passes, then weighs particles in five annealing layers, each with a new set of particles, and writes its estimate. Loading and filtering belong to the frame's images \
only, so they overlap with the layers of the frame before; layers and the estimates follow each other. With `barriers` a frame begins when the one before has been written.

**Published.** 4,000 particles, five layers (JPDC 2018, Table 1), ratio 4.16 (Table 1). The number of frames is unreadable in the paper; 261 is PARSEC's native input.

**Assumed.** 32 blocks per parallel stage. Works are recorded CPU times of PARSEC 3.0 with 10,000 particles (this project's recording, the comments in `programs/bodytrack.toml`), weights and samples scaled to 4,000.",
    ratio: RATIO,
    params: &[
        ParamInfo::number("frames", 261.0, 1.0, 10_000.0, "frames (PARSEC native: 261)"),
        ParamInfo::number("blocks", 32.0, 1.0, 4096.0, "blocks per parallel stage (assumed)"),
        BARRIERS,
    ],
    build,
};

/// Particles of the paper's input over those of the recorded one.
const PARTICLES: f64 = 4000.0 / 10_000.0;
const LAYERS: usize = 5;
/// Recorded CPU times per frame in ms: all four images, all five layers.
const LOAD: f64 = 4.24;
const PASSES: [(&str, f64, f64); 3] =
    [("edges", 6.8, 0.15), ("rows", 4.86, 0.05), ("columns", 4.95, 0.15)];
const MODEL: f64 = 10.6;
const WEIGHTS: f64 = 498.0 / LAYERS as f64 * PARTICLES;
const RESAMPLE: f64 = 10.7 / LAYERS as f64 * PARTICLES;
const SAMPLES: f64 = 43.4 / LAYERS as f64 * PARTICLES;
const LAST_WEIGHTS: f64 = 97.4 * PARTICLES;
const WRITE: f64 = 13.1;

fn build(params: &Params) -> Woven<Graph> {
    let (blocks, barriers) = (whole(params, "blocks"), params.flag("barriers"));
    let mut weaver = Weaver::new(params);
    let (mut loaded, mut written): (Option<u32>, Option<u32>) = (None, None);
    for _ in 0..whole(params, "frames") {
        loaded = Some(images(&mut weaver, blocks, if barriers { written } else { loaded })?);
        weaver.stage("model", MODEL, 1, Reads::All)?;
        if let (Some(before), false) = (written, barriers) {
            weaver.wait_for(before)?;
        }
        for _ in 0..LAYERS {
            weaver.uneven_stage("weights", WEIGHTS, 0.59, blocks, Reads::All)?;
            weaver.stage("resample", RESAMPLE, 1, Reads::All)?;
            weaver.uneven_stage("samples", SAMPLES, 0.64, blocks, Reads::All)?;
        }
        weaver.uneven_stage("weights", LAST_WEIGHTS, 0.13, blocks, Reads::All)?;
        weaver.stage("write", WRITE, 1, Reads::All)?;
        written = weaver.last_task();
    }
    Ok(weaver.finish(INFO.name, RATIO))
}

/// Loads and filters the images of a frame; returns the task that has loaded them.
fn images(weaver: &mut Weaver, blocks: usize, before: Option<u32>) -> Woven<u32> {
    weaver.restart(before);
    weaver.stage("load", LOAD, 1, Reads::Same)?;
    let loaded = weaver.last_task().expect("a stage has a task");
    for (kind, work, cv) in PASSES {
        weaver.uneven_stage(kind, work, cv, blocks, Reads::Neighbours)?;
    }
    Ok(loaded)
}
