//! Who used which object when: the events of all threads sorted by object.

use std::collections::{BTreeMap, HashSet};

use super::{Mark, Place};
use crate::{Kind, Recording};

/// A wait for a condition, from its call to its return.
#[derive(Clone, Copy, Debug)]
pub(super) struct CondWait {
    /// The call.
    pub begin: Mark,
    /// The return.
    pub end: Mark,
    /// The mutex that was released meanwhile.
    pub mutex: Option<u32>,
    /// Whether the time was over.
    pub is_timed_out: bool,
}

/// From the acquisition of a mutex to its release.
#[derive(Clone, Debug)]
pub(super) struct Section {
    pub lock: Mark,
    pub unlock: Mark,
    /// Conditions that it waited for: the first call, the last return.
    pub waits: Vec<(u32, Mark, Mark)>,
    /// Conditions that it signalled.
    pub signals: Vec<u32>,
}

/// What concerns one condition.
#[derive(Debug, Default)]
pub(super) struct Condition {
    /// The mutex that its waiters held.
    pub mutex: Option<u32>,
    pub waits: Vec<CondWait>,
    /// Signals and broadcasts.
    pub signals: Vec<Mark>,
    /// Places of those that are broadcasts.
    pub broadcasts: HashSet<Place>,
}

/// Something that is counted: what adds and what takes.
#[derive(Debug, Default)]
pub(super) struct Counted {
    pub posts: Vec<Mark>,
    /// What takes, and since when it has waited.
    pub takes: Vec<(Mark, u64)>,
}

/// A lock, as its acquisitions and releases.
#[derive(Debug, Default)]
pub(super) struct Lock {
    /// Threads that use it.
    pub threads: HashSet<u32>,
    /// Acquisitions, in order of threads.
    pub locked: Vec<Mark>,
    /// The release of each acquisition.
    pub unlocked: Vec<Mark>,
}

/// All of it.
#[derive(Debug, Default)]
pub(super) struct Scan {
    pub locks: BTreeMap<u32, Lock>,
    pub conditions: BTreeMap<u32, Condition>,
    /// By mutex that conditions go with.
    pub sections: BTreeMap<u32, Vec<Section>>,
    pub semaphores: BTreeMap<u32, Counted>,
    pub futexes: BTreeMap<u32, Counted>,
    /// Locks for reading and writing: releases, and acquisitions that blocked.
    pub rwlocks: BTreeMap<u32, Counted>,
    /// Barriers of threads and of teams of OpenMP.
    pub barriers: BTreeMap<u32, Arrivals>,
}

/// Who arrived at a barrier when.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    /// When it was made, and for how many.
    pub made: Vec<(u64, u32)>,
    pub marks: Vec<Mark>,
}

/// What one thread holds at a moment.
struct Held {
    object: u32,
    depth: u32,
    lock: Mark,
    waits: Vec<(u32, Mark, Mark)>,
    signals: Vec<u32>,
}

/// Sorts a recording's events by object. What does not fit (a release without an acquisition) is left out and noted.
pub(super) fn scan(recording: &Recording, notes: &mut Vec<String>) -> Scan {
    let mut found = Scan::default();
    let mut misfits = 0;
    for (thread, recorded) in (0..).zip(&recording.threads) {
        let mut walk = Walk { held: Vec::new(), waiting: None, misfits: 0 };
        for (event, what) in (0..).zip(&recorded.events) {
            let mark = Mark { at_ns: what.at_ns, place: Place { thread, event } };
            walk.step(&mut found, mark, what);
        }
        if let Some(last) = recorded.events.last() {
            let event = recorded.events.len() as u32 - 1;
            let mark = Mark { at_ns: last.at_ns, place: Place { thread, event } };
            while let Some(held) = walk.held.pop() {
                found.end_section(held, mark);
            }
        }
        misfits += walk.misfits;
    }
    if misfits > 0 {
        notes.push(format!(
            "{misfits} releases of locks that were not recorded as held are left out"
        ));
    }
    found.sections.retain(|mutex, _| {
        found.conditions.values().any(|condition| condition.mutex == Some(*mutex))
    });
    found
}

/// The way along one thread.
struct Walk {
    held: Vec<Held>,
    /// The wait for a condition that has begun.
    waiting: Option<(u32, Option<u32>, Mark)>,
    misfits: usize,
}

impl Walk {
    fn step(&mut self, found: &mut Scan, mark: Mark, what: &crate::Event) {
        let object = what.object;
        let since_ns = what.at_ns.saturating_sub(what.wait_ns);
        match what.kind {
            Kind::Lock | Kind::SpinLock | Kind::OmpCritical => self.lock(object, mark),
            Kind::Unlock | Kind::SpinUnlock | Kind::OmpCriticalEnd => {
                self.unlock(found, object, mark);
            }
            Kind::CondWait => self.wait(found, object, what.aux, mark),
            Kind::CondWake => self.wake(found, object, what.aux == 1, mark),
            Kind::Signal | Kind::Broadcast => {
                let condition = found.conditions.entry(object).or_default();
                condition.signals.push(mark);
                if what.kind == Kind::Broadcast {
                    condition.broadcasts.insert(mark.place);
                }
                for held in &mut self.held {
                    held.signals.push(object);
                }
            }
            Kind::SemPost => found.semaphores.entry(object).or_default().posts.push(mark),
            Kind::SemWait => {
                found.semaphores.entry(object).or_default().takes.push((mark, since_ns));
            }
            Kind::FutexWake if what.aux > 0 => {
                found.futexes.entry(object).or_default().posts.push(mark);
            }
            Kind::FutexWait if what.aux == 0 => {
                found.futexes.entry(object).or_default().takes.push((mark, since_ns));
            }
            Kind::RwUnlock => found.rwlocks.entry(object).or_default().posts.push(mark),
            Kind::ReadLock | Kind::WriteLock if what.is_blocked => {
                found.rwlocks.entry(object).or_default().takes.push((mark, since_ns));
            }
            Kind::BarrierInit => {
                found.barriers.entry(object).or_default().made.push((mark.at_ns, what.aux));
            }
            Kind::Barrier | Kind::OmpBarrier => {
                found.barriers.entry(object).or_default().marks.push(mark);
            }
            _ => {}
        }
    }

    fn lock(&mut self, object: u32, mark: Mark) {
        match self.held.iter_mut().find(|held| held.object == object) {
            Some(held) => held.depth += 1,
            None => {
                let (waits, signals) = (Vec::new(), Vec::new());
                self.held.push(Held { object, depth: 1, lock: mark, waits, signals });
            }
        }
    }

    fn unlock(&mut self, found: &mut Scan, object: u32, mark: Mark) {
        let Some(place) = self.held.iter().position(|held| held.object == object) else {
            self.misfits += 1;
            return;
        };
        self.held[place].depth -= 1;
        if self.held[place].depth == 0 {
            let held = self.held.remove(place);
            found.end_section(held, mark);
        }
    }

    fn wait(&mut self, found: &mut Scan, object: u32, mutex: u32, mark: Mark) {
        let stated = self.held.iter().rposition(|held| held.object == mutex);
        let held = stated.or(self.held.len().checked_sub(1));
        let mutex = held.map(|held| self.held[held].object);
        let condition = found.conditions.entry(object).or_default();
        condition.mutex = condition.mutex.or(mutex);
        if let Some(held) = held {
            let waits = &mut self.held[held].waits;
            if waits.iter().all(|(waited, ..)| *waited != object) {
                waits.push((object, mark, mark));
            }
        }
        self.waiting = Some((object, mutex, mark));
    }

    fn wake(&mut self, found: &mut Scan, object: u32, is_timed_out: bool, end: Mark) {
        let Some((_, mutex, begin)) = self.waiting.take().filter(|wait| wait.0 == object) else {
            self.misfits += 1;
            return;
        };
        for (waited, _, last) in self.held.iter_mut().flat_map(|held| &mut held.waits) {
            *last = if *waited == object { end } else { *last };
        }
        let condition = found.conditions.entry(object).or_default();
        condition.waits.push(CondWait { begin, end, mutex, is_timed_out });
    }
}

impl Scan {
    fn end_section(&mut self, held: Held, unlock: Mark) {
        let lock = self.locks.entry(held.object).or_default();
        lock.threads.insert(unlock.place.thread);
        lock.locked.push(held.lock);
        lock.unlocked.push(unlock);
        let section = Section { lock: held.lock, unlock, waits: held.waits, signals: held.signals };
        self.sections.entry(held.object).or_default().push(section);
    }
}
