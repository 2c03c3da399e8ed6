//! Core type files: pipeline, caches and latencies of one kind of core.

use crate::reader::{Document, Table};
use crate::{CoreParams, InputError, Pipeline};

/// Keys of a core type file.
const KEYS: [&str; 20] = [
    "description",
    "source",
    "pipeline",
    "width",
    "window",
    "mispredict_cycles",
    "load_cycles",
    "fp_single_cycles",
    "fp_double_cycles",
    "fp_single_latency_cycles",
    "fp_double_latency_cycles",
    "simd_cycles",
    "simd_latency_cycles",
    "l1i_kib",
    "l1d_kib",
    "l2_kib",
    "l2_cycles",
    "memory_ns",
    "mlp_max",
    "prefetch_share",
];

/// Limits of an L2 cache in KiB, also for the `l2_kib` of a machine's cluster.
pub(crate) const L2_KIB: std::ops::RangeInclusive<f64> = 16.0..=1_048_576.0;

/// Limits of the cycles for which an operation occupies its units.
const OCCUPIED_CYCLES: std::ops::RangeInclusive<f64> = 0.05..=50.0;
/// Limits of the cycles until a result can be used.
const LATENCY_CYCLES: std::ops::RangeInclusive<f64> = 1.0..=100.0;

/// A kind of core.
#[derive(Clone, Debug, PartialEq)]
pub struct CoreType {
    /// One line for listings.
    pub description: String,
    /// Where the numbers come from.
    pub source: String,
    /// Parameters of the core model.
    pub params: CoreParams,
}

/// Parses a core type file.
///
/// # Errors
/// Invalid TOML, an unknown or missing key, a value of the wrong kind or out of its range.
pub fn parse_core_type(file: &str, text: &str) -> Result<CoreType, InputError> {
    let document = Document::parse(file, text)?;
    let root = document.root(&KEYS)?;
    Ok(CoreType {
        description: root.text_or("description", "")?,
        source: root.text_or("source", "")?,
        params: params(&root)?,
    })
}

fn params(root: &Table<'_>) -> Result<CoreParams, InputError> {
    let pipeline =
        match root.require("pipeline")?.word("pipeline", &["in-order", "out-of-order"])? {
            "in-order" => Pipeline::InOrder,
            _ => Pipeline::OutOfOrder,
        };
    let fp_single_cycles = root.number("fp_single_cycles", OCCUPIED_CYCLES)?;
    let fp_single_latency_cycles = root.number("fp_single_latency_cycles", LATENCY_CYCLES)?;
    Ok(CoreParams {
        pipeline,
        width: root.number("width", 1.0..=32.0)?,
        window: root.number("window", 1.0..=4096.0)?,
        mispredict_cycles: root.number("mispredict_cycles", 0.0..=100.0)?,
        load_cycles: root.number("load_cycles", 1.0..=20.0)?,
        fp_single_cycles,
        fp_double_cycles: root.number("fp_double_cycles", OCCUPIED_CYCLES)?,
        fp_single_latency_cycles,
        fp_double_latency_cycles: root.number("fp_double_latency_cycles", LATENCY_CYCLES)?,
        // On nearly all cores the same pipes do both.
        simd_cycles: root.number_or("simd_cycles", fp_single_cycles, OCCUPIED_CYCLES)?,
        simd_latency_cycles: root.number_or(
            "simd_latency_cycles",
            fp_single_latency_cycles,
            LATENCY_CYCLES,
        )?,
        l1i_kib: root.number("l1i_kib", 1.0..=4096.0)?,
        l1d_kib: root.number("l1d_kib", 1.0..=4096.0)?,
        l2_kib: root.number("l2_kib", L2_KIB)?,
        l2_cycles: root.number("l2_cycles", 1.0..=500.0)?,
        memory_ns: root.number("memory_ns", 1.0..=10_000.0)?,
        mlp_max: root.number("mlp_max", 1.0..=256.0)?,
        prefetch_share: root.number("prefetch_share", 0.0..=1.0)?,
        cycles_factor: 1.0,
    })
}
