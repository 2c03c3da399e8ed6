//! The core part: cycles with perfect caches and branch prediction.
//!
//! A profile brings the cycles of two reference cores, found by running measured control flow through
//! simple pipeline models. They are moved to another core by what differs between the cores.

use super::{CoreParams, Pipeline};
use crate::Profile;

/// What a core's issue and execution units bring to the core part.
pub(super) struct Engine {
    width: f64,
    pub(super) window: f64,
    load_cycles: f64,
    fp_single_cycles: f64,
    fp_double_cycles: f64,
    fp_single_latency_cycles: f64,
    fp_double_latency_cycles: f64,
}

/// The out-of-order core that `Profile::cpi_core_big` describes.
pub(super) const BIG: Engine = Engine {
    width: 3.0,
    window: 128.0,
    load_cycles: 4.0,
    fp_single_cycles: 0.5,
    fp_double_cycles: 0.5,
    fp_single_latency_cycles: 5.0,
    fp_double_latency_cycles: 5.0,
};
/// The in-order core that `Profile::cpi_core_little` describes.
const LITTLE: Engine = Engine {
    width: 2.0,
    window: 1.0,
    load_cycles: 3.0,
    fp_single_cycles: 0.5,
    fp_double_cycles: 0.5,
    fp_single_latency_cycles: 4.0,
    fp_double_latency_cycles: 4.0,
};
/// Share of dependence stalls that a compiler hides by scheduling for an in-order core.
///
/// The reference ran unscheduled x86 code. Hennessy and Patterson (Computer Architecture: A
/// Quantitative Approach, 1990, on pipelining) count the loads that stall a simple pipeline without and
/// with scheduling: TeX 65 and 25 %, Spice 42 and 14 %, GCC 54 and 31 %; so 91 of 161 are hidden.
const SCHEDULED_SHARE: f64 = 91.0 / 161.0;

/// Cycles per instruction with perfect caches and branch prediction.
pub(super) fn core_cycles(pipeline: Pipeline, profile: &Profile, core: &CoreParams) -> f64 {
    let engine = Engine::of(core);
    match pipeline {
        Pipeline::OutOfOrder => engine.out_of_order(profile),
        Pipeline::InOrder => engine.in_order(profile),
    }
}

/// Operations per cycle that the data flow allows within a window, at unit latency.
///
/// A power law through the two measured windows: parallelism grows about as a root of the window
/// (Michaud, Seznec and Jourdan, PACT 1999).
pub(super) fn window_ilp(profile: &Profile, window: f64) -> f64 {
    let exponent = (profile.ilp_128 / profile.ilp_40).ln() / (128.0_f64 / 40.0).ln();
    let exponent = exponent.clamp(0.0, 1.0);
    (profile.ilp_128 * (window / 128.0).powf(exponent)).max(1.0)
}

impl Engine {
    pub(super) fn of(core: &CoreParams) -> Engine {
        Engine {
            width: core.width,
            window: core.window,
            load_cycles: core.load_cycles,
            fp_single_cycles: core.fp_single_cycles,
            fp_double_cycles: core.fp_double_cycles,
            fp_single_latency_cycles: core.fp_single_latency_cycles,
            fp_double_latency_cycles: core.fp_double_latency_cycles,
        }
    }

    /// Issue slots, data flow and floating-point units together: more than the tightest of the
    /// three, less than their sum.
    pub(super) fn bounds(&self, profile: &Profile) -> f64 {
        let data_flow = self.latency(profile) / window_ilp(profile, self.window);
        (self.slots(profile).powi(2) + data_flow.powi(2) + self.fp_units(profile).powi(2)).sqrt()
    }

    /// The reference's cycles, times how much tighter this core's bounds are.
    fn out_of_order(&self, profile: &Profile) -> f64 {
        let moved = profile.cpi_core_big * self.bounds(profile) / BIG.bounds(profile);
        moved.max(self.busy(profile))
    }

    /// What keeps the units busy, and the stalls that a compiler leaves.
    fn in_order(&self, profile: &Profile) -> f64 {
        self.busy(profile) + self.visible_stalls(profile)
    }

    /// Stall cycles per instruction that a compiler leaves, in order.
    pub(super) fn visible_stalls(&self, profile: &Profile) -> f64 {
        let stalls = self.dependence_stalls(profile);
        // A stall is hidden by moving work into it, so no more can be hidden than there is work.
        let hidden = (SCHEDULED_SHARE * stalls).min(self.busy(profile));
        stalls - hidden
    }

    /// Cycles that issue or the floating-point units are busy, whichever is longer.
    fn busy(&self, profile: &Profile) -> f64 {
        self.slots(profile).max(self.fp_units(profile))
    }

    /// Cycles of issue per instruction.
    pub(super) fn slots(&self, profile: &Profile) -> f64 {
        profile.uops_per_instruction / self.width
    }

    /// Cycles of the floating-point units per instruction.
    pub(super) fn fp_units(&self, profile: &Profile) -> f64 {
        profile.fp_single * self.fp_single_cycles + profile.fp_double * self.fp_double_cycles
    }

    /// Mean latency of an instruction in cycles.
    pub(super) fn latency(&self, profile: &Profile) -> f64 {
        1.0 + profile.load * (self.load_cycles - 1.0)
            + profile.fp_single * (self.fp_single_latency_cycles - 1.0)
            + profile.fp_double * (self.fp_double_latency_cycles - 1.0)
    }

    /// Stall cycles of unscheduled code in order: the reference's, corrected by latencies that differ.
    fn dependence_stalls(&self, profile: &Profile) -> f64 {
        let walked = (profile.cpi_core_little - LITTLE.busy(profile)).max(0.0);
        let loads = (self.load_cycles - LITTLE.load_cycles) * profile.load * profile.load_use_1;
        let fp_single =
            (self.fp_single_latency_cycles - LITTLE.fp_single_latency_cycles) * profile.fp_single;
        let fp_double =
            (self.fp_double_latency_cycles - LITTLE.fp_double_latency_cycles) * profile.fp_double;
        // How far results of arithmetic are from their reader is not measured; loads stand in.
        (walked + loads + (fp_single + fp_double) * profile.load_use_3).max(0.0)
    }
}
