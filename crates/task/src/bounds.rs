//! Lower bounds on the makespan of any schedule.

use crate::Problem;
use crate::ranks::upward_s;

/// Bounds in seconds; no schedule is shorter than either.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Longest path, each task at its cost on the class that executes it fastest, without communication.
    pub critical_path_s: f64,
    /// All work spread evenly over all workers: work / sum of the speeds.
    pub capacity_s: f64,
}

impl Bounds {
    /// The bounds of a problem.
    ///
    /// Capacity is a bound by linear programming duality: with weights `w` of the classes such that the sum
    /// of `w` over all workers is 1, the makespan is at least the mean over workers, weighted by `w`, of the
    /// time that they work, so at least the sum over tasks of the least `w x cost`. Weights in
    /// proportion to the speeds make that work / sum of the speeds where cost is work / speed, and stay
    /// valid where each class has its own costs.
    pub fn of(problem: &Problem<'_>) -> Self {
        let least = |costs_s: &[f64]| costs_s.iter().copied().fold(f64::INFINITY, f64::min);
        let paths_s = upward_s(problem.graph(), false, |task| least(problem.costs_s(task)));
        let workers = problem.workers();
        let total_speed = workers.total_speed();
        let weights: Vec<f64> =
            workers.classes().iter().map(|class| class.speed / total_speed).collect();
        let share_s = |costs_s: &[f64]| {
            let weighted = costs_s.iter().zip(&weights).map(|(cost_s, weight)| cost_s * weight);
            weighted.fold(f64::INFINITY, f64::min)
        };
        Self {
            critical_path_s: paths_s.into_iter().fold(0.0, f64::max),
            capacity_s: problem.graph().tasks().map(|task| share_s(problem.costs_s(task))).sum(),
        }
    }

    /// The greater of both.
    pub fn lower_s(&self) -> f64 {
        self.critical_path_s.max(self.capacity_s)
    }
}
