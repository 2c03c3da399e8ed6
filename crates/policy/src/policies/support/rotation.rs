//! Turns on the fast cores: equal time for threads with equal claims.

use std::cmp::Reverse;

use ampsched_model::{Ns, ThreadId};

use super::claims::Bids;
use super::seats::{self, FastTime};
use crate::{ParamInfo, Params, View};

/// How long a turn lasts.
pub const ROTATE: ParamInfo = ParamInfo::number(
    "rotate_ms",
    200.0,
    0.1,
    100_000.0,
    "period of rotation (ours; the period of Prop-SP's sampling)",
);

/// Rank, whether it does not stay on a fast core, and time that it has had there.
pub type Turn<R> = (Reverse<R>, bool, Ns);

/// Whose turn it is.
#[derive(Clone, Debug)]
pub struct Rotation {
    period_ns: Ns,
    due_ns: Ns,
    fast: FastTime,
}

impl Rotation {
    /// Turns of [`ROTATE`].
    pub fn new(params: &Params) -> Self {
        Self { period_ns: params.ms(ROTATE.name), due_ns: 0, fast: FastTime::default() }
    }

    /// The claims of the runnable threads, the highest rank first. Of equal ranks, those on a fast core come first
    /// until their turn is over, then those that have had least time there.
    pub fn claims<R: Ord>(
        &mut self,
        view: &View,
        mut rank: impl FnMut(ThreadId) -> R,
    ) -> Bids<Turn<R>> {
        let rotates = view.now_ns() >= self.due_ns;
        if rotates {
            self.due_ns = view.now_ns() + self.period_ns;
        }
        self.fast.update(view);
        let claim = |thread| {
            let stays = !rotates && seats::is_on_fast(view, thread);
            ((Reverse(rank(thread)), !stays, self.fast.of(thread)), thread)
        };
        view.runnable().map(claim).collect()
    }
}
