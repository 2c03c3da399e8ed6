//! Turns on the fast cores: equal time for threads with equal claims.

use std::cmp::Reverse;

use ampsched_model::{Ns, ThreadId};

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

    /// The runnable threads, the highest claim first. Of equal claims, those on a fast core come first
    /// until their turn is over, then those that have had least time there.
    pub fn order<C: Ord>(
        &mut self,
        view: &View,
        mut claim: impl FnMut(ThreadId) -> C,
    ) -> Vec<ThreadId> {
        let rotates = view.now_ns() >= self.due_ns;
        if rotates {
            self.due_ns = view.now_ns() + self.period_ns;
        }
        self.fast.update(view);
        let mut order: Vec<ThreadId> = view.runnable().collect();
        order.sort_by_cached_key(|&thread| {
            let stays = !rotates && seats::is_on_fast(view, thread);
            (Reverse(claim(thread)), !stays, self.fast.of(thread), thread)
        });
        order
    }
}
