//! The shared library that a recorded program loads first (`LD_PRELOAD`).
//!
//! It is written in C, in the folder `c`, and stands here as bytes: whoever records writes them to a file.

/// The library, an ELF file for this computer's kind of processor.
pub const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libampsched-preload.so"));
