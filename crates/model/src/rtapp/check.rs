//! Follows the events of each thread in order: which mutexes it holds, whether time passes.

use std::collections::BTreeSet;

use super::ast::{Event, EventKind, Phase, Repeat, Task};
use super::survey::Survey;
use crate::InputError;
use crate::reader::{Spot, quoted};

/// Checks the order of a task's events, and tells each `sync` whether it holds its mutex.
///
/// There are no conditions, only loops, so the mutexes held are known at every event: a loop must
/// leave them as it found them, or its next round would block for ever.
pub(super) fn check(task: &mut Task, survey: &Survey) -> Result<(), InputError> {
    let mut flow = Flow { held: BTreeSet::new(), changed: BTreeSet::new() };
    let mut ends = true;
    for phase in &mut task.phases {
        if !ends {
            return Err(phase.spot.error("is never reached, the phase before it has no end"));
        }
        ends = flow.phase(phase, survey)?;
    }
    if !ends {
        return Ok(());
    }
    if let Some(mutex) = flow.held.first() {
        let when = if task.repeat.is_loop() { "is repeated" } else { "ends" };
        return Err(task.spot.error(format!("{when} while mutex {} is locked", quoted(mutex))));
    }
    if task.repeat == Repeat::Forever && !task.events().any(|event| takes_time(event, survey)) {
        return Err(endless(&task.spot));
    }
    Ok(())
}

fn endless(spot: &Spot) -> InputError {
    spot.error("is repeated without end, but no time passes in it")
        .with_hint("add an event that runs, sleeps or waits, or a \"loop\" count")
}

/// Whether an event may take time.
fn takes_time(event: &Event, survey: &Survey) -> bool {
    match &event.kind {
        EventKind::Run(amount)
        | EventKind::Runtime(amount)
        | EventKind::Sleep(amount)
        | EventKind::Mem(amount)
        | EventKind::IoRun(amount)
        | EventKind::Timer { period_us: amount, .. } => *amount > 0,
        EventKind::Wait { .. }
        | EventKind::Sync { .. }
        | EventKind::Suspend(_)
        | EventKind::SemWait(_) => true,
        EventKind::Barrier(name) => survey.parties(name) > 1,
        _ => false,
    }
}

struct Flow {
    /// Mutexes that the thread holds.
    held: BTreeSet<String>,
    /// Mutexes that it holds and did not hold at the begin of the phase, or the other way round.
    changed: BTreeSet<String>,
}

impl Flow {
    /// Follows a phase; the answer is whether it ends.
    fn phase(&mut self, phase: &mut Phase, survey: &Survey) -> Result<bool, InputError> {
        self.changed.clear();
        for event in &mut phase.events {
            self.event(event)?;
        }
        if phase.repeat.is_loop() {
            if let Some(mutex) = self.changed.first() {
                return Err(phase.spot.error(self.unbalanced(mutex)));
            }
        }
        if phase.repeat != Repeat::Forever {
            return Ok(true);
        }
        if !phase.events.iter().any(|event| takes_time(event, survey)) {
            return Err(endless(&phase.spot));
        }
        Ok(false)
    }

    fn unbalanced(&self, mutex: &String) -> String {
        if self.held.contains(mutex) {
            format!("mutex {} is still locked when the phase is repeated", quoted(mutex))
        } else {
            let name = quoted(mutex);
            format!("mutex {name}, locked before, is not locked when the phase is repeated")
        }
    }

    fn event(&mut self, event: &mut Event) -> Result<(), InputError> {
        let spot = &event.spot;
        match &mut event.kind {
            EventKind::Lock(mutex) => {
                self.require_free(mutex, spot)?;
                self.change(mutex);
            }
            EventKind::Unlock(mutex) => {
                self.require_held(mutex, spot)?;
                self.change(mutex);
            }
            EventKind::Wait { mutex, .. } => self.require_held(mutex, spot)?,
            EventKind::Sync { mutex, holds, .. } => *holds = self.held.contains(mutex),
            EventKind::Suspend(name) | EventKind::Resume(name) => {
                let hint = "suspend and resume lock the mutex of their name for a moment";
                self.require_free(name, spot).map_err(|error| error.with_hint(hint))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Locks or unlocks a mutex.
    fn change(&mut self, mutex: &str) {
        for set in [&mut self.held, &mut self.changed] {
            if !set.remove(mutex) {
                set.insert(mutex.to_owned());
            }
        }
    }

    fn require_held(&self, mutex: &str, spot: &Spot) -> Result<(), InputError> {
        if self.held.contains(mutex) {
            return Ok(());
        }
        let name = quoted(mutex);
        let error = spot.error(format!("mutex {name} is not locked by this thread here"));
        Err(error.with_hint(format!("lock it before: \"lock\" : {name}")))
    }

    fn require_free(&self, mutex: &str, spot: &Spot) -> Result<(), InputError> {
        if !self.held.contains(mutex) {
            return Ok(());
        }
        Err(spot.error(format!(
            "mutex {} is locked by this thread already, it would wait for itself",
            quoted(mutex)
        )))
    }
}
