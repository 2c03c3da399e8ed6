//! The greatest values have the fast cores, but nobody changes places for little.

use ampsched_model::ThreadId;

use super::window::PerThread;

/// Who holds a fast core.
#[derive(Clone, Debug, Default)]
pub struct Ranking {
    holds: PerThread<bool>,
}

impl Ranking {
    /// The threads in order of their values, the greatest first; a newcomer's value must exceed a holder's
    /// by the part `hysteresis`. From now on the first `fast_cores` are the holders. Ties: the
    /// first in the list, so that lists by program let one that starts anew keep its place beside its equals.
    pub fn order(
        &mut self,
        mut values: Vec<(f64, ThreadId)>,
        hysteresis: f64,
        fast_cores: usize,
    ) -> Vec<ThreadId> {
        for (value, thread) in &mut values {
            if *self.holds.slot(*thread) {
                *value *= 1.0 + hysteresis;
            }
        }
        values.sort_by(|a, b| b.0.total_cmp(&a.0));
        let order: Vec<ThreadId> = values.into_iter().map(|(_, thread)| thread).collect();
        for (place, &thread) in order.iter().enumerate() {
            *self.holds.slot(thread) = place < fast_cores;
        }
        order
    }
}
