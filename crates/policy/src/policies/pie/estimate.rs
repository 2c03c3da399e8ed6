//! PIE's formulas: cycles per instruction on another kind of core, from counters on this one.

use ampsched_model::{Pipeline, StallCounters};

use crate::CoreDesign;

/// A kind of core at its clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Core {
    pub design: CoreDesign,
    pub mhz: f64,
}

/// Predicted speed on `to` relative to that on `from`, where the counters were read.
pub fn relative_speed(counters: &StallCounters, from: Core, to: Core) -> f64 {
    (counters.cpi() / from.mhz) / (cpi_on(counters, from, to) / to.mhz)
}

/// Cycles per instruction on `to`: CPI_base + CPI_memory x MLP here / MLP there.
///
/// The paper's cores have equal clocks. Here memory takes the same time whatever the clock, so its cycles
/// grow with it; and a core of the same design differs in nothing else.
fn cpi_on(counters: &StallCounters, from: Core, to: Core) -> f64 {
    let memory = counters.cpi_memory * to.mhz / from.mhz;
    if from.design == to.design {
        return counters.cpi_base + memory;
    }
    let mlp_here = counters.mlp.max(1.0);
    base_cpi(counters, to.design) + memory * mlp_here / mlp(counters, to.design)
}

/// Out of order, misses within the reorder window are outstanding together; in order, those that come before
/// the first reader of the first one (stall on use). At least 1.
fn mlp(counters: &StallCounters, design: CoreDesign) -> f64 {
    let reach = match design.pipeline {
        Pipeline::OutOfOrder => design.window,
        Pipeline::InOrder => counters.load_use_distance,
    };
    (counters.llc_mpi * reach).max(1.0)
}

/// Out of order, every slot is used; in order, as many as there are instructions that do not depend on
/// one another.
fn base_cpi(counters: &StallCounters, design: CoreDesign) -> f64 {
    match design.pipeline {
        Pipeline::OutOfOrder => 1.0 / design.width,
        Pipeline::InOrder => {
            1.0 / independent(counters.dependence, design.width.round().max(1.0) as usize)
        }
    }
}

/// Mean number of instructions that an in-order core of a width issues per cycle.
///
/// Exactly i are issued if the next depends on one of them, that is, if its distance is at most i, and
/// none before did: P(i) = (1 - D(1)) ... (1 - D(i - 1)) D(i) with D(i) the share of distances up to i. The full
/// width has what remains (ours: the paper's sum need not be 1).
fn independent(dependence: [f64; 3], width: usize) -> f64 {
    let (mut issued, mut remaining, mut within) = (0.0, 1.0, 0.0);
    for i in 1..width {
        within += dependence.get(i - 1).copied().unwrap_or(0.0);
        issued += i as f64 * remaining * within;
        remaining *= 1.0 - within;
    }
    issued + width as f64 * remaining
}

#[cfg(test)]
mod tests {
    use super::*;

    const BIG: CoreDesign =
        CoreDesign { pipeline: Pipeline::OutOfOrder, width: 4.0, window: 128.0 };
    const SMALL: CoreDesign = CoreDesign { pipeline: Pipeline::InOrder, width: 2.0, window: 1.0 };

    fn at(design: CoreDesign, mhz: f64) -> Core {
        Core { design, mhz }
    }

    /// A small core with CPI 2.0.
    fn on_small() -> StallCounters {
        StallCounters {
            cpi_base: 1.1,
            cpi_memory: 0.9,
            llc_mpi: 0.02,
            mlp: 1.3,
            dependence: [0.4, 0.2, 0.1],
            load_use_distance: 10.0,
        }
    }

    /// CPI 0.25 + 0.9 x 1.3 / 2.56, computed from the formulas.
    #[test]
    fn big_from_small() {
        let speedup = relative_speed(&on_small(), at(SMALL, 1000.0), at(BIG, 1000.0));
        assert!((speedup - 2.8287).abs() < 1e-4, "{speedup}");
    }

    #[test]
    fn small_from_big() {
        let on_big = StallCounters { cpi_base: 0.5, cpi_memory: 0.4, mlp: 2.56, ..on_small() };
        // Two wide: 0.4 x 1 + 0.6 x 2 = 1.6 per cycle; MLP 0.02 x 10 counts 1: CPI 0.625 + 0.4 x 2.56.
        let speed = relative_speed(&on_big, at(BIG, 1000.0), at(SMALL, 1000.0));
        assert!((speed - 0.9 / 1.649).abs() < 1e-12, "{speed}");
        // Far readers let misses overlap: MLP 2.
        let far = StallCounters { load_use_distance: 100.0, ..on_big };
        let speed = relative_speed(&far, at(BIG, 1000.0), at(SMALL, 1000.0));
        assert!((speed - 0.9 / (0.625 + 0.512)).abs() < 1e-12, "{speed}");
    }

    #[test]
    fn wider_cores_find_less() {
        let issued = [1, 2, 3, 4, 5].map(|width| independent([0.4, 0.2, 0.1], width));
        // P = 0.4, 0.6 x 0.6, 0.6 x 0.4 x 0.7 and the rest, 0.072; wider, of the rest 0.7 stop at 4.
        let expected = [1.0, 1.6, 1.84, 1.912, 1.912 + 0.072 * 0.3];
        for (ours, expected) in issued.iter().zip(expected) {
            assert!((ours - expected).abs() < 1e-12, "{ours} {expected}");
        }
        assert_eq!(independent([0.0; 3], 4), 4.0);
        assert_eq!(independent([1.0, 0.0, 0.0], 4), 1.0);
    }

    #[test]
    fn clocks_stretch_memory_only() {
        let speed = relative_speed(&on_small(), at(SMALL, 1000.0), at(SMALL, 2000.0));
        assert!((speed - 2.0 * 2.0 / (1.1 + 1.8)).abs() < 1e-12, "{speed}");
        assert_eq!(relative_speed(&on_small(), at(SMALL, 700.0), at(SMALL, 700.0)), 1.0);
        // 0.25 + 2 x 0.457 cycles at twice the clock.
        let speed = relative_speed(&on_small(), at(SMALL, 1000.0), at(BIG, 2000.0));
        assert!((speed - 4.0 / (0.25 + 1.8 * 1.3 / 2.56)).abs() < 1e-12, "{speed}");
    }

    #[test]
    fn without_misses_nothing_divides_by_zero() {
        let none = StallCounters { cpi_memory: 0.0, llc_mpi: 0.0, mlp: 1.0, ..on_small() };
        let speedup = relative_speed(&none, at(SMALL, 1000.0), at(BIG, 1000.0));
        assert!((speedup - 4.4).abs() < 1e-12, "{speedup}");
    }
}
