//! Whether anybody gets anything done: slices may be too short for the costs of switching, of which some are known only
//! when it comes to it, and some policies decide on slices in code of their own.

use ampsched_model::Ns;

use super::{Engine, Fallible};
use crate::SimError;

/// Pauses between two looks: some milliseconds.
const LOOK_PAUSES: u32 = 64;

/// What has been done until some moment.
#[derive(Clone, Copy, Debug, Default)]
struct Done {
    at_ns: Ns,
    /// Time that threads have had cores.
    busy_ns: Ns,
    /// The part of it that was spent on switching to them.
    overhead_ns: Ns,
    /// Turns that ended before the thread had been switched to.
    fruitless: u64,
}

/// What is known of progress.
#[derive(Debug, Default)]
pub(super) struct Progress {
    fruitless: u64,
    pauses: u32,
    last: Done,
}

impl Progress {
    /// A turn ends before its thread has been switched to.
    #[cold]
    pub fn end_fruitless_turn(&mut self) {
        self.fruitless += 1;
    }
}

impl Engine<'_> {
    /// In a pause: fails if for long nothing has been done but to switch from thread to thread.
    pub(super) fn check_progress(&mut self) -> Fallible {
        self.progress.pauses += 1;
        if self.progress.pauses < LOOK_PAUSES {
            return Ok(());
        }
        self.progress.pauses = 0;
        self.check_daemons()?;
        let now = Done {
            at_ns: self.events.now_ns(),
            busy_ns: self.cores.ids().map(|core| self.sched.core(core).busy_ns).sum(),
            overhead_ns: self.cores.ids().map(|core| self.cores[core].overhead_ns).sum(),
            fruitless: self.progress.fruitless,
        };
        let last = std::mem::replace(&mut self.progress.last, now);
        let only_switching = now.busy_ns - last.busy_ns == now.overhead_ns - last.overhead_ns;
        if only_switching && now.fruitless > last.fruitless {
            let policy = self.setup.policy_name.clone();
            let (from_ns, at_ns) = (last.at_ns, now.at_ns);
            return Err(SimError::OnlySwitching { policy, from_ns, at_ns }.into());
        }
        Ok(())
    }
}
