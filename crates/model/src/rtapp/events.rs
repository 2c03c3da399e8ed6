//! The events of a phase.

use super::ast::{Event, EventKind};
use super::read::{Entry, Field};
use crate::InputError;

/// Largest number that rt-app reads.
const INT_MAX: i64 = i32::MAX as i64;

/// The events.
pub(super) const EVENTS: [&str; 19] = [
    "run", "runtime", "sleep", "timer", "lock", "unlock", "wait", "signal", "broad", "sync",
    "barrier", "suspend", "resume", "mem", "iorun", "yield", "fork", "sem_post", "sem_wait",
];

/// The event that a key means: its name, or its name and a number (`run`, `run0`, `run12`).
pub(super) fn base(key: &str) -> Option<&'static str> {
    let name = key.trim_end_matches(|c: char| c.is_ascii_digit());
    EVENTS.iter().find(|event| **event == name).copied()
}

/// Reads an event of the task of that name (as written, before names are made unique).
pub(super) fn event(entry: &Entry, task: &str) -> Result<Event, InputError> {
    let name = base(entry.key).unwrap_or(entry.key);
    let kind = match name {
        "suspend" => EventKind::Suspend(suspended(entry, task)?),
        _ => kind(name, &entry.field()?)?,
    };
    Ok(Event { spot: entry.spot.clone(), kind })
}

fn kind(name: &str, field: &Field) -> Result<EventKind, InputError> {
    let number = || field.whole(0..=INT_MAX).map(|number| number as u32);
    let named = || field.name().map(str::to_owned);
    Ok(match name {
        "run" => EventKind::Run(number()?),
        "runtime" => EventKind::Runtime(number()?),
        "sleep" => EventKind::Sleep(number()?),
        "mem" => EventKind::Mem(number()?),
        "iorun" => EventKind::IoRun(number()?),
        "lock" => EventKind::Lock(named()?),
        "unlock" => EventKind::Unlock(named()?),
        "signal" => EventKind::Signal(named()?),
        "broad" => EventKind::Broadcast(named()?),
        "barrier" => EventKind::Barrier(named()?),
        "resume" => EventKind::Resume(named()?),
        "fork" => EventKind::Fork(named()?),
        "sem_post" => EventKind::SemPost(named()?),
        "sem_wait" => EventKind::SemWait(named()?),
        "timer" => timer(field)?,
        "wait" => {
            let (condition, mutex) = wait(field)?;
            EventKind::Wait { condition, mutex }
        }
        "sync" => {
            let (condition, mutex) = wait(field)?;
            EventKind::Sync { condition, mutex, holds: false }
        }
        _ => {
            // Its text may be anything, also empty.
            field.text()?;
            EventKind::Yield
        }
    })
}

/// Without a name it is the thread's, which workgen would fill in.
fn suspended(entry: &Entry, task: &str) -> Result<String, InputError> {
    if entry.is_bare() {
        return Ok(task.to_owned());
    }
    match entry.field()?.text()? {
        "" => Ok(task.to_owned()),
        name => Ok(name.to_owned()),
    }
}

fn timer(field: &Field) -> Result<EventKind, InputError> {
    let (mut name, mut period_us, mut absolute) = (None, None, false);
    for setting in field.settings(&["ref", "period", "mode"])? {
        let value = setting.field()?;
        match setting.key {
            "ref" => name = Some(value.name()?.to_owned()),
            "period" => period_us = Some(value.whole(0..=INT_MAX)? as u32),
            _ => absolute = mode(&value)?,
        }
    }
    let missing = |key: &str| field.spot.error(format!("key \"{key}\" is missing"));
    let name =
        name.ok_or_else(|| missing("ref").with_hint("\"unique\" is a timer of the thread's own"))?;
    let period_us = period_us.ok_or_else(|| missing("period"))?;
    Ok(EventKind::Timer { name, period_us, absolute })
}

/// Whether the mode is absolute.
fn mode(field: &Field) -> Result<bool, InputError> {
    match field.text()? {
        "absolute" => Ok(true),
        "relative" => Ok(false),
        other => Err(field.spot.unknown("mode", other, ["relative", "absolute"])),
    }
}

/// Condition and mutex of `wait` and `sync`.
fn wait(field: &Field) -> Result<(String, String), InputError> {
    let (mut condition, mut mutex) = (None, None);
    for setting in field.settings(&["ref", "mutex"])? {
        let name = setting.field()?.name()?.to_owned();
        match setting.key {
            "ref" => condition = Some(name),
            _ => mutex = Some(name),
        }
    }
    let missing = |key: &str| field.spot.error(format!("key \"{key}\" is missing"));
    Ok((condition.ok_or_else(|| missing("ref"))?, mutex.ok_or_else(|| missing("mutex"))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_with_numbers_are_the_same_event() {
        assert_eq!(base("run"), Some("run"));
        assert_eq!(base("run0"), Some("run"));
        assert_eq!(base("runtime12"), Some("runtime"));
        assert_eq!((base("run_0"), base("runner"), base("12"), base("")), (None, None, None, None));
    }
}
