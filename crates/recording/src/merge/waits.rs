//! Which waits the kernel explains, and which it adds.

use std::collections::{BTreeMap, BTreeSet};

use super::releases::Releases;
use super::{Both, Merged, SKEW_NS};
use crate::model::{EXIT_BY_PROCESS, IO_STORAGE, SLEEP_UNTIL};
use crate::{Event, Kind, Wake};

/// Waits outside of the library's calls that no recorded thread has ended count from this length on, in ns: as input
/// and output does in the library.
const OTHERS_NS_MIN: u64 = 20_000;
/// A wait inside a call may be so much longer by the kernel's clock, in ns (ours).
const ROUNDED_NS: u64 = 1_000;

/// What has ended a wait, by places in the merged recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A thread, at a time.
    Wake(u32, u64),
    /// The end of a thread.
    End(u32),
    /// No recorded thread: the kernel's event tells what.
    Kept,
    /// A recorded thread, but not by anything that was recorded of it.
    Unknown,
}

impl Cause {
    fn thread(self) -> Option<u32> {
        match self {
            Self::Wake(thread, _) | Self::End(thread) => Some(thread),
            Self::Kept | Self::Unknown => None,
        }
    }
}

/// The kernel's wait with its cause by places.
pub fn explained(wait: &Event, cause: Cause) -> Event {
    let (kind, object, aux) = match cause {
        Cause::Wake(thread, _) => (Kind::Block, wait.object, Wake::Thread(thread).to_aux()),
        Cause::End(thread) => (Kind::Join, thread, 0),
        Cause::Kept => (wait.kind, wait.object, wait.aux),
        Cause::Unknown => (Kind::Block, 0, Wake::Unknown.to_aux()),
    };
    Event { kind, object, aux, is_blocked: true, ..*wait }
}

/// What becomes other than the library has it.
#[derive(Debug, Default)]
pub struct Changes {
    /// By thread: new events, each with the index of the library's event behind it.
    pub added: BTreeMap<u32, Vec<(usize, Event)>>,
    /// Thread, index, and what stands there now.
    pub changed: Vec<(u32, usize, Event)>,
    /// Wake-ups that waits are tied to: who has woken whom, when.
    pub wakes: BTreeSet<(u32, u32, u64)>,
    /// The counts.
    pub merged: Merged,
}

impl Changes {
    /// All that the kernel knows of waits of the library's threads.
    pub(super) fn of(both: &Both) -> Self {
        let releases = Releases::of(&both.library);
        let mut found = Self::default();
        for (thread, twin) in (0..).zip(&both.twins) {
            if let Some(twin) = twin {
                found.add(both, &releases, thread, *twin);
            }
        }
        found
    }

    /// A wait is tied to its cause.
    pub fn note_wake(&mut self, woken: u32, cause: Cause) {
        if let Cause::Wake(waker, at_ns) = cause {
            self.wakes.insert((waker, woken, at_ns));
        }
    }

    fn add(&mut self, both: &Both, releases: &Releases, thread: u32, twin: u32) {
        let is_wait = |event: &&Event| {
            event.wait_ns > 0 && matches!(event.kind, Kind::Block | Kind::Join | Kind::Io)
        };
        let of_twin = &both.kernel[twin as usize].events;
        let mut waits: Vec<Event> = of_twin.iter().filter(is_wait).copied().collect();
        let ends = both.library[thread as usize].events.last().zip(of_twin.last());
        let is_ended = |last: &Event| {
            ends.is_some_and(|(end, seen)| {
                end.aux == EXIT_BY_PROCESS && seen.at_ns.saturating_sub(last.at_ns) <= SKEW_NS
            })
        };
        if waits.last().is_some_and(is_ended) {
            // Who ends its process wakes it to end, too: it has waited for something else.
            waits.pop();
        }
        let mut from = 0;
        let mut walk = Walk { both, releases, thread, twin, changes: self };
        for (index, event) in both.library[thread as usize].events.iter().enumerate() {
            // Clocks differ a little: what was half over by then has ended before.
            let is_before =
                |wait: &Event| wait.at_ns.saturating_sub(wait.wait_ns / 2) < event.at_ns;
            let behind = from + waits[from..].partition_point(is_before);
            let inside = behind - inside(&waits[from..behind], event);
            if index > 0 {
                walk.add_hidden(index, event, &waits[from..inside]);
                walk.explain(index, event, &waits[inside..behind]);
            }
            from = behind;
        }
    }
}

/// How many of a stretch's waits, the last ones, were inside the call that ends it.
fn inside(waits: &[Event], event: &Event) -> usize {
    let mut left_ns = event.wait_ns;
    let is_inside = |wait: &&Event| {
        let fits = wait.wait_ns <= left_ns.saturating_add(ROUNDED_NS);
        let is_it = event.wait_ns > 0 && (fits || wait.at_ns > event.waits_from_ns());
        left_ns = left_ns.saturating_sub(wait.wait_ns);
        is_it
    };
    waits.iter().rev().take_while(is_inside).count()
}

/// The way along one thread.
struct Walk<'a> {
    both: &'a Both,
    releases: &'a Releases,
    thread: u32,
    /// Its index in the kernel's recording.
    twin: u32,
    changes: &'a mut Changes,
}

impl Walk<'_> {
    /// Adds waits that no call of the library shows, before its event.
    fn add_hidden(&mut self, index: usize, event: &Event, waits: &[Event]) {
        for wait in waits {
            let cause = self.both.cause(self.twin, wait, wait.at_ns.min(event.at_ns));
            let is_kept = cause == Cause::Kept && wait.wait_ns >= OTHERS_NS_MIN;
            if cause.thread().is_some() || is_kept {
                self.insert(index, wait, cause);
                self.changes.merged.added += 1;
            }
        }
    }

    fn insert(&mut self, index: usize, wait: &Event, cause: Cause) {
        let added = (index, Event { cpu_ns: 0, work_ns: 0, ..explained(wait, cause) });
        self.changes.added.entry(self.thread).or_default().push(added);
        self.changes.note_wake(self.thread, cause);
    }

    /// Tells the cause of a wait that the library cannot explain, and the length of one that stays as long.
    fn explain(&mut self, index: usize, event: &Event, waits: &[Event]) {
        let Some((last, before)) = waits.split_last() else { return };
        let until_ns = |wait: &Event| wait.at_ns.min(event.at_ns);
        let cause = |wait, until_ns| self.both.cause(self.twin, wait, until_ns);
        let mut causes: Vec<Cause> =
            before.iter().map(|wait| cause(wait, until_ns(wait))).collect();
        let cause = cause(last, event.at_ns);
        causes.push(cause);
        let is_tied = causes.iter().any(|cause| cause.thread().is_some());
        if is_tied && self.releases.is_open(self.thread, event) {
            before.iter().zip(&causes).for_each(|(wait, cause)| self.insert(index, wait, *cause));
            let Event { kind, object, aux, .. } = explained(last, cause);
            let explained = Event { kind, object, aux, wait_ns: last.wait_ns, ..*event };
            self.changes.changed.push((self.thread, index, explained));
            self.changes.note_wake(self.thread, cause);
            self.changes.merged.tied += 1;
            return;
        }
        let compared = cause.thread().and_then(|waker| self.releases.agrees(event, waker));
        self.changes.merged.agreed += u64::from(compared == Some(true));
        self.changes.merged.disagreed += u64::from(compared == Some(false));
        let sum_ns = waits.iter().fold(0, |sum: u64, wait| sum.saturating_add(wait.wait_ns));
        let is_kept = match event.kind {
            Kind::Io => true,
            Kind::Sleep => event.aux < SLEEP_UNTIL,
            _ => false,
        };
        if is_kept {
            // From the wake-up on it has waited for a core.
            let wait_ns = sum_ns.min(event.wait_ns);
            let is_disk = event.kind == Kind::Io && last.kind == Kind::Io;
            let aux = if is_disk { IO_STORAGE } else { event.aux };
            self.changes.changed.push((self.thread, index, Event { wait_ns, aux, ..*event }));
        }
    }
}
