//! What other cores can slow down: time in memory apart from the rest, and the lines that go there.

use super::memory::Misses;
use super::{CoreParams, cpi_stack};
use crate::Profile;

/// Bytes of a cache line, on all cores that are modelled.
pub const LINE_BYTES: f64 = 64.0;

/// What a profile asks of the memory, per instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MemoryDemand {
    /// Cycles apart from those of `memory_cycles`.
    pub base_cycles: f64,
    /// Cycles of waiting for memory while nobody else uses it; as many times as long is the latency, as many times
    /// more there are.
    pub memory_cycles: f64,
    /// Lines that are brought into the L2.
    pub fills: f64,
    /// Lines that go between L2 and memory: those that are brought, and those that leave because a store brought and
    /// changed them. Lines that a load brought and a store changed later count once: the core model does not know them.
    pub lines: f64,
}

/// What a profile asks of the memory on a core at a frequency in MHz; cycles add up to those of [`cpi_stack`].
pub fn memory_demand(profile: &Profile, core: &CoreParams, mhz: f64) -> MemoryDemand {
    let stack = cpi_stack(profile, core, mhz);
    let misses = Misses::of(profile, core);
    MemoryDemand {
        base_cycles: stack.total() - stack.memory,
        memory_cycles: stack.memory,
        fills: misses.l2_read + misses.l2_write,
        lines: misses.l2_read + 2.0 * misses.l2_write,
    }
}
