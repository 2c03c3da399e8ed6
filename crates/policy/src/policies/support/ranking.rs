//! The greatest values have the fast cores, but nobody changes places for little.

use std::cmp::Reverse;

use ampsched_model::ThreadId;

use super::claims::{Bids, Low, least};
use super::window::PerThread;

/// A value and the place in the list.
pub type Place = (Reverse<Low>, usize);

/// Who holds a fast core.
#[derive(Clone, Debug, Default)]
pub struct Ranking {
    holds: PerThread<bool>,
}

impl Ranking {
    /// The claims of threads by their values, the greatest first; a newcomer's value must exceed a holder's
    /// by the part `hysteresis`. From now on the first `fast_cores` are the holders. Ties: the
    /// first in the list, so that lists by program let one that starts anew keep its place beside its equals.
    pub fn claims(
        &mut self,
        values: Vec<(f64, ThreadId)>,
        hysteresis: f64,
        fast_cores: usize,
    ) -> Bids<Place> {
        let claim = |(place, (value, thread))| {
            let holds = std::mem::take(self.holds.slot(thread));
            let value = if holds { value * (1.0 + hysteresis) } else { value };
            ((Reverse(Low(value)), place), thread)
        };
        let claims: Bids<Place> = values.into_iter().enumerate().map(claim).collect();
        for (_, thread) in least(claims.iter().copied(), fast_cores, |_| true) {
            *self.holds.slot(thread) = true;
        }
        claims
    }
}
