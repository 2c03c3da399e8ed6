//! Interactive programs: their waits for the clock, the display and input end when they ended, however fast cores are.
//!
//! A faster core does not shift when a frame begins; on a slower one it begins late. What a timer or something outside
//! has ended waits until that time, apart from waits shorter than 2 ms at no period, which are answers to what the
//! thread has asked for and stay as long. Frames are periods of the simulation: due one period after they began.

use std::collections::HashSet;

use super::Place;
use super::build::{Action, Plan};
use crate::interactive::{Interactive, is_tied, over_ns};
use crate::{Kind, Recording};

/// Ties waits to the clock and marks frames, and says so.
pub(super) fn tie(
    recording: &Recording,
    found: &Interactive,
    plan: &mut Plan,
    notes: &mut Vec<String>,
) {
    let mut tied = 0;
    for (place, action) in &mut plan.actions {
        let thread = &recording.threads[place.thread as usize];
        let event = &thread.events[place.event as usize];
        let is_periodic = found.periodic.contains(&(place.thread, place.event));
        let is_sleep = matches!(action, Action::Sleep { .. }) && event.kind == Kind::Block;
        if is_sleep && (is_periodic || is_tied(event)) {
            *action = Action::Until { at_ns: over_ns(thread, place.event as usize) };
            tied += 1;
        }
    }
    notes.push(format!("interactive: {tied} waits for the clock or outside end when they ended"));
    let Some(frames) = &found.frames else { return };
    let mut ends: HashSet<Place> = HashSet::new();
    for turn in &found.turns {
        let at = |event| Place { thread: turn.thread, event };
        plan.act(
            at(turn.first),
            Action::BeginFrame { begun_ns: turn.begun_ns, period_ns: turn.period_ns },
        );
        if ends.insert(at(turn.last)) {
            plan.act(at(turn.last), Action::EndFrame);
        }
    }
    notes.push(format!(
        "{} frames are due {:.1} ms after they begin",
        frames.frames,
        frames.period_ns as f64 / 1e6
    ));
}
