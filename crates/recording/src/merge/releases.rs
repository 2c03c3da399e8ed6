//! What the library knows of who has ended a wait.

use std::collections::HashMap;

use crate::{Event, Kind, Thread};

/// From a call that lets others go on until it is noted, or the other way round, in ns (ours).
const NOTED_NS: u64 = 1_000_000;

/// When which thread has let others go on, by object.
pub struct Releases(HashMap<u32, Vec<(u64, u32)>>);

impl Releases {
    /// Of the objects at which somebody has waited.
    pub fn of(threads: &[Thread]) -> Self {
        let mut found: HashMap<u32, Vec<(u64, u32)>> = HashMap::new();
        for event in threads.iter().flat_map(|thread| &thread.events) {
            if event.wait_ns > 0 && is_compared(event) {
                found.entry(event.object).or_default();
            }
        }
        for (index, thread) in (0..).zip(threads) {
            for event in thread.events.iter().filter(|event| releases(event)) {
                if let Some(list) = found.get_mut(&event.object) {
                    list.push((event.at_ns, index));
                }
            }
        }
        found.values_mut().for_each(|list| list.sort_unstable());
        Self(found)
    }

    fn between(&self, object: u32, from_ns: u64, until_ns: u64) -> &[(u64, u32)] {
        let Some(list) = self.0.get(&object) else { return &[] };
        let first = list.partition_point(|(at_ns, _)| *at_ns < from_ns);
        let behind = list.partition_point(|(at_ns, _)| *at_ns <= until_ns);
        &list[first..behind.max(first)]
    }

    /// Whether the library does not know what has ended a wait of a thread.
    pub fn is_open(&self, thread: u32, wait: &Event) -> bool {
        match wait.kind {
            Kind::Io => true,
            Kind::FutexWait if wait.aux == 0 => {
                let during = self.between(wait.object, wait.waits_from_ns(), wait.at_ns);
                during.iter().all(|(_, by)| *by == thread)
            }
            _ => false,
        }
    }

    /// Whether a thread has let others go on that wait as this one did; none if the library knows no cause.
    pub fn agrees(&self, wait: &Event, waker: u32) -> Option<bool> {
        if !is_compared(wait) {
            return None;
        }
        if wait.kind == Kind::Join {
            return Some(wait.object == waker);
        }
        let from_ns = wait.waits_from_ns().saturating_sub(NOTED_NS);
        let during = self.between(wait.object, from_ns, wait.at_ns.saturating_add(NOTED_NS));
        Some(during.iter().any(|(_, by)| *by == waker))
    }
}

fn is_compared(wait: &Event) -> bool {
    match wait.kind {
        Kind::Lock | Kind::SemWait | Kind::ReadLock | Kind::WriteLock => true,
        Kind::Barrier | Kind::Read | Kind::Write | Kind::Join => true,
        Kind::FutexWait => wait.aux == 0,
        _ => false,
    }
}

fn releases(event: &Event) -> bool {
    match event.kind {
        Kind::Unlock | Kind::RwUnlock | Kind::SemPost | Kind::Barrier => true,
        Kind::FutexWake | Kind::Read | Kind::Write => event.aux > 0,
        // It gives its mutex back.
        _ => false,
    }
}
