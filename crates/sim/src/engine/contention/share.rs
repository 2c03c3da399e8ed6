//! What a profile does on a core that has only a share of an L2, and how threads share one.
//!
//! An L2 that replaces the least recently used line holds what was used within a window of time, the same for everybody
//! who uses it: each thread has there the lines that it touches within that window, its *footprint*, and the window is
//! as long as the footprints fill the cache (Denning and Schwartz, CACM 15, 1972; Xiang, Bao, Ding and Gao, PACT 2011,
//! and Xiang, Ding, Luo and Bao, ASPLOS 2013, who compose the caches of programs that run together in this way). A
//! footprint of `s` lines grows by one line whenever a cache of `s` lines would miss: so misses by size, which a
//! profile has, tell it.

use ampsched_model::{CoreParams, LINE_BYTES, Profile, cycles_per_instruction, memory_demand};

use super::queue::Demand;
use crate::engine::speeds::Rate;

/// A thread with a window of some length: its share of the L2, and what it asks of the memory then.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cell {
    /// Share of the L2, 0..=1.
    pub share: f64,
    pub demand: Demand,
}

/// What a profile does on a cluster at an operating point, by the length of the window.
pub(super) struct Row {
    /// With the whole L2.
    pub whole: Demand,
    /// By window, none if the L2 is not shared.
    pub cells: Box<[Cell]>,
}

/// Windows: from 2^6 ns, in steps of a quarter of an octave, to 2^40 ns.
const WINDOWS: usize = 137;
const FIRST_WINDOW: f64 = 6.0;
const WINDOWS_PER_OCTAVE: f64 = 4.0;
/// Sizes for which the core model is asked: from the whole L2 down, in steps of half an octave, to 1/256.
const SIZES: usize = 17;
const SIZES_PER_OCTAVE: f64 = 2.0;
const LINES_PER_KIB: f64 = 1024.0 / LINE_BYTES;
/// Whoever misses less often has, for any purpose, all it needs.
const FILLS_MIN: f64 = 1e-9;

/// Where and how fast a profile runs.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub profile: &'a Profile,
    pub core: &'a CoreParams,
    pub mhz: f64,
    /// Its speed alone.
    pub alone: Rate,
}

impl Place<'_> {
    /// What it does with an L2 of a size, and the lines that it brings in per instruction.
    fn with_l2(self, l2_kib: f64) -> (Demand, f64) {
        let modelled_cycles = cycles_per_instruction(self.profile, self.core, self.mhz);
        // What the workload or the tick make of the model's speed holds for all of it.
        let ns_per_cycle = self.alone.ns_per_instruction / modelled_cycles;
        let asked = memory_demand(self.profile, &CoreParams { l2_kib, ..*self.core }, self.mhz);
        let per_wait = if self.core.memory_ns > 0.0 {
            asked.memory_cycles * ns_per_cycle / self.core.memory_ns
        } else {
            asked.fills / self.core.mlp_max.max(1.0)
        };
        let ns = (asked.base_cycles + asked.memory_cycles) * ns_per_cycle;
        (Demand { ns, per_wait, lines: asked.lines }, asked.fills)
    }
}

impl Row {
    /// A row for cores that have the L2 to themselves, or share it.
    pub fn new(place: Place<'_>, shares_l2: bool) -> Self {
        let (whole, _) = place.with_l2(place.core.l2_kib);
        let cells = if shares_l2 { cells(place) } else { Box::default() };
        Self { whole, cells }
    }

    /// A program that computes nothing.
    pub fn idle() -> Self {
        let whole = Demand { ns: 1.0, per_wait: 0.0, lines: 0.0 };
        Self { whole, cells: vec![Cell { share: 0.0, demand: whole }; WINDOWS].into() }
    }
}

/// One size of cache: its logarithm, that of the window that fills it, and what is done with it.
type Size = (f64, f64, Demand);

fn cells(place: Place<'_>) -> Box<[Cell]> {
    let sizes = sizes(place);
    let cell = |window| {
        let log_ns = FIRST_WINDOW + window as f64 / WINDOWS_PER_OCTAVE;
        let above = sizes.partition_point(|(_, fills_at, _)| *fills_at <= log_ns);
        if above == 0 {
            // Hardly anything yet: as much as it could touch.
            let (log_share, fills_at, demand) = sizes[0];
            return Cell { share: (log_share + log_ns - fills_at).exp2(), demand };
        }
        let (log_share, from, demand) = sizes[above - 1];
        let Some(&(next_share, to, next)) = sizes.get(above) else {
            return Cell { share: 1.0, demand };
        };
        let part = (log_ns - from) / (to - from);
        Cell { share: mix(log_share, next_share, part).exp2(), demand: demand.mix(next, part) }
    };
    (0..WINDOWS).map(cell).collect()
}

/// From the smallest size to the whole L2.
fn sizes(place: Place<'_>) -> Vec<Size> {
    let mut sizes: Vec<Size> = Vec::with_capacity(SIZES);
    // Lines, their reciprocal rate and the instructions that bring them in.
    let (mut lines_before, mut per_line_before, mut instructions) = (0.0, 0.0, 0.0);
    for step in (0..SIZES).rev() {
        let log_share = -(step as f64) / SIZES_PER_OCTAVE;
        let l2_kib = place.core.l2_kib * log_share.exp2();
        let (demand, fills) = place.with_l2(l2_kib);
        let (lines, per_line) = (l2_kib * LINES_PER_KIB, 1.0 / fills.max(FILLS_MIN));
        let mean = if sizes.is_empty() { per_line } else { (per_line + per_line_before) / 2.0 };
        instructions += (lines - lines_before) * mean;
        (lines_before, per_line_before) = (lines, per_line);
        let before = sizes.last().map_or(f64::MIN, |size| size.1);
        sizes.push((log_share, (instructions * demand.ns).log2().max(before + 1e-6), demand));
    }
    sizes
}

fn mix(from: f64, to: f64, part: f64) -> f64 {
    from + (to - from) * part
}

impl Demand {
    fn mix(self, to: Self, part: f64) -> Self {
        Self {
            ns: mix(self.ns, to.ns, part),
            per_wait: mix(self.per_wait, to.per_wait, part),
            lines: mix(self.lines, to.lines, part),
        }
    }
}

/// The window of an L2 that some threads share.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    below: usize,
    part: f64,
}

impl Window {
    /// The window in which the footprints of threads fill the L2, or the longest one; `near` is where it may be.
    pub fn filling<'a>(rows: impl Iterator<Item = &'a Row> + Clone, near: Self) -> Self {
        let filled = |window: usize| rows.clone().map(|row| row.cells[window].share).sum::<f64>();
        let (mut below, mut above) = (near.below, near.below + 1);
        let (mut from, mut to) = (filled(below), filled(above));
        if from > 1.0 || to <= 1.0 {
            (below, above) = if from > 1.0 { (0, below) } else { (above, WINDOWS - 1) };
            if filled(above) <= 1.0 {
                return Self { below: WINDOWS - 2, part: 1.0 };
            }
            while above - below > 1 {
                let middle = usize::midpoint(below, above);
                let end = if filled(middle) <= 1.0 { &mut below } else { &mut above };
                *end = middle;
            }
            (from, to) = (filled(below), filled(above));
        }
        Self { below, part: ((1.0 - from) / (to - from)).clamp(0.0, 1.0) }
    }

    /// What a thread does in it.
    pub fn demand(self, row: &Row) -> Demand {
        row.cells[self.below].demand.mix(row.cells[self.below + 1].demand, self.part)
    }

    /// Its share of the L2.
    #[cfg(test)]
    fn share(self, row: &Row) -> f64 {
        mix(row.cells[self.below].share, row.cells[self.below + 1].share, self.part)
    }
}

#[cfg(test)]
mod tests {
    use ampsched_model::{Pipeline, Profile};

    use super::*;

    /// In order, one cycle of 1 ns per instruction, 100 ns per miss, 2 MiB.
    fn core() -> CoreParams {
        CoreParams {
            pipeline: Pipeline::InOrder,
            width: 1.0,
            window: 1.0,
            mispredict_cycles: 0.0,
            load_cycles: 1.0,
            fp_single_cycles: 1.0,
            fp_double_cycles: 1.0,
            fp_single_latency_cycles: 1.0,
            fp_double_latency_cycles: 1.0,
            simd_cycles: 1.0,
            simd_latency_cycles: 1.0,
            l1i_kib: 32.0,
            l1d_kib: 32.0,
            l2_kib: 2048.0,
            l2_cycles: 0.0,
            memory_ns: 100.0,
            mlp_max: 1.0,
            prefetch_share: 0.0,
            cycles_factor: 1.0,
        }
    }

    fn row(small: f64, large: f64) -> Row {
        let profile = Profile {
            cpi_core_little: 1.0,
            l1d_mpki: 200.0,
            l2_512k_mpki: small,
            l2_2m_mpki: large,
            ..Profile::default()
        };
        let ns_per_instruction = cycles_per_instruction(&profile, &core(), 1000.0);
        let alone = Rate::new(1.0 / ns_per_instruction);
        Row::new(Place { profile: &profile, core: &core(), mhz: 1000.0, alone }, true)
    }

    #[test]
    fn footprints_grow_with_the_window() {
        for row in [row(40.0, 10.0), row(1.0, 0.0), row(0.0, 0.0)] {
            for pair in row.cells.windows(2) {
                assert!(pair[0].share <= pair[1].share && pair[1].share <= 1.0);
                assert!(pair[0].demand.ns >= pair[1].demand.ns - 1e-12);
            }
        }
    }

    #[test]
    fn shares_fill_the_cache() {
        let rows = [row(40.0, 10.0), row(4.0, 1.0), row(20.0, 20.0), row(40.0, 10.0)];
        let window = Window::filling(rows.iter(), Window::default());
        let shares: Vec<f64> = rows.iter().map(|row| window.share(row)).collect();
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        assert_eq!(shares[0], shares[3]);
        assert!(shares[1] < shares[2] && shares[2] < shares[0], "{shares:?}");
    }

    #[test]
    fn who_misses_nothing_needs_nothing() {
        let (none, some) = (row(0.0, 0.0), row(40.0, 10.0));
        let window = Window::filling([&none, &some].into_iter(), Window::default());
        assert!(window.share(&none) < 0.02);
        assert!((window.demand(&some).ns / some.whole.ns - 1.0).abs() < 0.01);
    }

    #[test]
    fn half_of_the_window_is_half_of_a_stream() {
        // A stream misses always, so its footprint is in proportion to the window.
        let stream = row(50.0, 50.0);
        let cells = &stream.cells;
        let place = cells.partition_point(|cell| cell.share < 0.1);
        assert!((cells[place + 4].share / cells[place].share - 2.0).abs() < 1e-3);
    }
}
