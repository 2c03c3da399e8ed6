//! How the code of rt-app's own loops behaves.

use crate::Profile;

/// Instructions that write one byte of a buffer: 64 bytes take 4, two stores of 32 bytes (or one that
/// clears a cache line and its address), a count and a branch, as in glibc's memset for AArch64.
pub(super) const INSTRUCTIONS_PER_BYTE: f64 = 1.0 / 16.0;
/// Cache lines of 64 bytes that 1,000 instructions of that loop write.
const LINES_PKI: f64 = 250.0;
/// Sizes of the caches that profiles are measured with, in bytes.
const L1_BYTES: u32 = 32 << 10;
const L2_SMALL_BYTES: u32 = 512 << 10;
const L2_LARGE_BYTES: u32 = 2 << 20;

/// The loop that `run` and `runtime` execute: four calls of `ldexp` whose results overflow.
///
/// The mix was counted with valgrind 3.19 (lackey, cachegrind) as the difference between runs of 4,000
/// and of 44,000 loops of rt-app 1.0 on x86-64: 191 instructions a loop, of them 40 loads, 4 stores and
/// 53 branches, no miss and no misprediction. The two cycle counts are chosen so that the core model
/// gives what rt-app measured on a Juno board: 138 ns a loop on a Cortex-A57 at 1.1 GHz and 356 ns on a
/// Cortex-A53 at 850 MHz (the calibration values in the documentation of Arm's LISA, mean of four).
pub fn run_loop() -> Profile {
    Profile {
        name: "rt-app.run".to_owned(),
        source: "rt-app 1.0's loop: mix counted with valgrind, cycles from its calibration on a Juno board"
            .to_owned(),
        uops_per_instruction: 1.0837,
        cpi_core_big: 0.795,
        cpi_core_little: 2.12,
        load: 0.2094,
        store: 0.0209,
        branch: 0.2775,
        fp_simd: 0.2937,
        fp_double: 0.0209,
        ilp_40: 7.11,
        ilp_128: 18.9,
        load_use_1: 0.5,
        load_use_3: 1.0,
        ..Profile::default()
    }
}

/// The loop that `mem` executes, on a buffer of a given size in bytes, which is written again and again.
///
/// A cache that is smaller than them misses every line (least recently used, in order), one that is
/// larger none. Stores of 16 bytes a cycle bound both kinds of core: one cycle an instruction, which the
/// core model gives for an in-order core that is stated with 1.5, as it lets half of the stalls be hidden.
pub(super) fn memory_writer(footprint_bytes: u32) -> Profile {
    let lines = |cache_bytes: u32| if footprint_bytes > cache_bytes { LINES_PKI } else { 0.0 };
    let (l1, small, large) = (lines(L1_BYTES), lines(L2_SMALL_BYTES), lines(L2_LARGE_BYTES));
    Profile {
        name: format!("rt-app.mem.{}", footprint_name(footprint_bytes)),
        source: "instructions of glibc's memset for AArch64; misses of an in-order sweep"
            .to_owned(),
        uops_per_instruction: 1.0,
        cpi_core_big: 1.0,
        cpi_core_little: 1.5,
        store: 0.5,
        branch: 0.25,
        l1d_mpki: l1,
        l1d_write_mpki: l1,
        l2_512k_mpki: small,
        l2_512k_write_mpki: small,
        l2_2m_mpki: large,
        l2_2m_write_mpki: large,
        prefetchable: 1.0,
        ilp_40: 4.0,
        ilp_128: 4.0,
        ..Profile::default()
    }
}

/// The smallest cache that a footprint fits into.
fn footprint_name(footprint_bytes: u32) -> &'static str {
    let caches = [(L1_BYTES, "l1"), (L2_SMALL_BYTES, "l2-512k"), (L2_LARGE_BYTES, "l2-2m")];
    let fits = caches.iter().find(|(bytes, _)| footprint_bytes <= *bytes);
    fits.map_or("memory", |(_, name)| name)
}
