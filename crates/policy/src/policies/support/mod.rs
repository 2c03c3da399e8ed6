//! What several policies compute: windows over counters, spreads, labels, speeds by class, shares of
//! fast cores.

pub mod busy;
pub mod claims;
pub mod labels;
pub mod progress;
pub mod ranking;
pub mod rating;
pub mod rotation;
pub mod rounds;
pub mod seat_policy;
pub mod seats;
pub mod share_policy;
pub mod shares;
pub mod speedup;
pub mod uniformity;
pub mod usage;
pub mod window;

use ampsched_model::{MAX_CLASSES, ThreadId};

use crate::{Change, FactorKind, Plan, View, plan::to_fixed};

/// A thread's predicted speed-up, unless nothing is known.
pub fn known_speedup(view: &View, thread: ThreadId) -> Option<f64> {
    let factor = view.factors(thread).speedup;
    (factor.kind != FactorKind::Missing).then_some(factor.value)
}

/// Speed on each class relative to the slowest, for a thread that is `speedup` times as fast on the
/// fastest class; classes between are interpolated geometrically.
///
/// COLAB knows two kinds of core. On a machine with more, each step up is taken to gain the same
/// factor: with three classes and a speed-up of 4, the middle one counts 2.
#[inline]
pub fn class_speeds(speedup: f64, classes: usize) -> [f64; MAX_CLASSES] {
    let mut speeds = [1.0; MAX_CLASSES];
    let Some(fastest) = classes.checked_sub(1).filter(|&fastest| fastest > 0) else {
        return speeds;
    };
    for (class, speed) in speeds.iter_mut().enumerate().take(fastest).skip(1) {
        *speed = speedup.powf(class as f64 / fastest as f64);
    }
    speeds[fastest] = speedup;
    speeds
}

/// Tells the fast plane a thread's speeds if they differ from what it knows.
pub fn plan_speeds(view: &View, plan: &mut Plan, thread: ThreadId, speedup: f64) {
    let classes = view.topology().class_count();
    if classes == 1 {
        return;
    }
    let speeds = class_speeds(speedup, classes);
    if view.plan(thread).speed != speeds.map(to_fixed) {
        plan.set(thread, Change::Speed(speeds));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_between_are_interpolated_geometrically() {
        assert_eq!(class_speeds(3.0, 2)[..2], [1.0, 3.0]);
        let three = class_speeds(4.0, 3);
        assert!((three[1] - 2.0).abs() < 1e-12 && (three[2] - 4.0).abs() < 1e-12);
        assert_eq!(class_speeds(3.0, 1), [1.0; MAX_CLASSES]);
    }
}
