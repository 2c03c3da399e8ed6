//! What an instruction of each kind costs on a core: the core part of the model, shared out.
//!
//! A machine that executes instructions one by one cannot know how far an instruction is from its
//! readers. So what typical code loses to dependences is shared out among the kinds by how long their
//! results take; branches that are mispredicted and caches that miss are no part of it.

use super::issue::{BIG, Engine, window_ilp};
use super::{CoreParams, Pipeline};
use crate::Profile;

/// Cycles per instruction of each kind, with perfect caches and branch prediction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct KindCycles {
    /// Arithmetic, logic and moves of integers.
    pub integer: f64,
    /// Loads and stores, as many of each as in the code.
    pub memory: f64,
    /// Branches, calls and returns.
    pub branch: f64,
    /// Floating-point arithmetic: the mean of single and double precision.
    pub float: f64,
    /// Integer arithmetic on vectors of 128 bits.
    pub simd: f64,
}

impl KindCycles {
    /// Every part is the mean of that part; 0 of none.
    pub fn mean(all: &[KindCycles]) -> KindCycles {
        let mean = |part: fn(&KindCycles) -> f64| {
            all.iter().map(part).sum::<f64>() / (all.len() as f64).max(1.0)
        };
        KindCycles {
            integer: mean(|each| each.integer),
            memory: mean(|each| each.memory),
            branch: mean(|each| each.branch),
            float: mean(|each| each.float),
            simd: mean(|each| each.simd),
        }
    }
}

/// What instructions of each kind cost on a core in code that behaves like a profile.
///
/// An instruction takes its issue slot, or longer if its units are occupied longer. What is added
/// depends on how the core issues:
///
/// * out of order, `F = sqrt(slots² + data flow² + units²)` of the core part is shared out by Euler's
///   theorem: F is the sum over all instructions of their own slot, latency / ILP and units, each times
///   what F grows with it;
/// * in order, the stalls that a compiler leaves are shared out by how much longer a result takes than
///   an issue slot. Branches and stores have no result that is waited for.
///
/// So instructions in the profile's proportions cost the core part of that profile, unless they are
/// bound by units. Pure, in cycles.
pub fn kind_cycles(profile: &Profile, core: &CoreParams) -> KindCycles {
    let engine = Engine::of(core);
    let slot = engine.slots(profile);
    let kinds = kinds(profile, core);
    let waits: f64 = kinds.iter().map(|kind| kind.share * kind.wait(slot)).sum();
    let stall_per_wait = if waits > 0.0 { engine.visible_stalls(profile) / waits } else { 0.0 };
    let [integer, memory, branch, float, simd] = kinds.map(|kind| {
        let busy = slot.max(kind.unit_cycles);
        let cycles = match core.pipeline {
            Pipeline::OutOfOrder => engine.marginal_cycles(profile, &kind).max(busy),
            Pipeline::InOrder => busy + stall_per_wait * kind.wait(slot),
        };
        cycles * core.cycles_factor
    });
    KindCycles { integer, memory, branch, float, simd }
}

/// A kind of instruction on a core.
struct KindOf {
    /// Its share of all instructions.
    share: f64,
    /// Cycles for which it occupies units of which there are few.
    unit_cycles: f64,
    /// Cycles until its result can be used.
    latency_cycles: f64,
    /// Share of them that have a result for which others wait.
    has_result: f64,
}

impl KindOf {
    /// By how many cycles its readers wait longer than for their slot, if they come next.
    fn wait(&self, slot: f64) -> f64 {
        self.has_result * (self.latency_cycles - slot).max(0.0)
    }
}

fn kinds(profile: &Profile, core: &CoreParams) -> [KindOf; 5] {
    let memory = profile.load + profile.store;
    let loads = if memory > 0.0 { profile.load / memory } else { 1.0 };
    let float = profile.fp_single + profile.fp_double + profile.fp_div;
    let simd = (profile.fp_simd - float).max(0.0);
    let integer = (1.0 - memory - profile.branch - float - simd).max(0.0);
    let mean = |single: f64, double: f64| (single + double) / 2.0;
    let kind = |share, unit_cycles, latency_cycles, has_result| KindOf {
        share,
        unit_cycles,
        latency_cycles,
        has_result,
    };
    [
        kind(integer, 0.0, 1.0, 1.0),
        kind(memory, 0.0, core.load_cycles, loads),
        kind(profile.branch, 0.0, 1.0, 0.0),
        kind(
            float,
            mean(core.fp_single_cycles, core.fp_double_cycles),
            mean(core.fp_single_latency_cycles, core.fp_double_latency_cycles),
            1.0,
        ),
        kind(simd, core.simd_cycles, core.simd_latency_cycles, 1.0),
    ]
}

impl Engine {
    /// By how much the core part of a profile grows with an instruction of a kind, out of order.
    fn marginal_cycles(&self, profile: &Profile, kind: &KindOf) -> f64 {
        let ilp = window_ilp(profile, self.window);
        let latency = 1.0 + kind.has_result * (kind.latency_cycles - 1.0);
        let own = [self.slots(profile), latency / ilp, kind.unit_cycles];
        let all = [self.slots(profile), self.latency(profile) / ilp, self.fp_units(profile)];
        let grown: f64 = own.iter().zip(&all).map(|(own, all)| own * all).sum();
        let scale = profile.cpi_core_big / BIG.bounds(profile);
        scale * grown / self.bounds(profile)
    }
}
