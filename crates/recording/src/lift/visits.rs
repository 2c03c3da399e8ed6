//! Visits of mutexes: from a lock to its unlock, with what happens to conditions inside.

use std::collections::HashMap;

use super::acts::{Act, Acts};
use crate::{Event, Kind, Recording};

/// `aux` of a lock that was got by trying.
const BY_TRYING: u32 = 2;

/// A thread has a mutex from one event to another.
#[derive(Clone, Debug)]
pub(super) struct Visit {
    pub thread: u32,
    pub first: u32,
    pub last: u32,
    /// When the thread came; it may have waited for the mutex.
    pub start_ns: u64,
    pub end_ns: u64,
    pub waits: Vec<u32>,
    pub signals: Vec<u32>,
    pub broadcasts: Vec<u32>,
    /// Whether the thread comes again at once, by trying.
    pub is_again: bool,
}

/// Visits by mutex, each list by thread and then by time.
pub(super) struct Visits {
    pub by_mutex: Vec<Vec<Visit>>,
    /// The mutex with which a condition is used.
    pub mutex_of: HashMap<u32, u32>,
}

impl Visits {
    pub fn new(recording: &Recording, acts: &Acts) -> Self {
        let mut found =
            Self { by_mutex: vec![Vec::new(); acts.mutexes.len()], mutex_of: HashMap::new() };
        for thread in 0..recording.threads.len() {
            found.conditions(&recording.threads[thread].events, &acts.acts[thread]);
        }
        for thread in 0..recording.threads.len() {
            let events = &recording.threads[thread].events;
            Scan::new(thread as u32, events, &acts.acts[thread], &mut found).run();
        }
        found
    }

    /// The conditions that are used with a mutex, in order.
    pub fn conditions_of(&self, mutex: u32) -> Vec<u32> {
        let own = self.mutex_of.iter().filter(|(_, of)| **of == mutex);
        let mut found: Vec<u32> = own.map(|(condition, _)| *condition).collect();
        found.sort_unstable();
        found
    }

    /// Which mutex is held where a condition is waited for.
    fn conditions(&mut self, events: &[Event], acts: &[Act]) {
        let mut held: Vec<u32> = Vec::new();
        for (event, act) in events.iter().zip(acts) {
            match act {
                Act::Enter(mutex) => held.push(*mutex),
                Act::Leave(mutex) => release(&mut held, *mutex),
                _ if event.kind == Kind::CondWait => {
                    if let Some(mutex) = held.last() {
                        self.mutex_of.entry(event.object).or_insert(*mutex);
                    }
                }
                _ => {}
            }
        }
    }
}

fn release(held: &mut Vec<u32>, mutex: u32) {
    if let Some(at) = held.iter().rposition(|one| *one == mutex) {
        held.remove(at);
    }
}

/// Finds the visits of a thread.
struct Scan<'a> {
    thread: u32,
    events: &'a [Event],
    acts: &'a [Act],
    found: &'a mut Visits,
    open: Vec<(u32, Visit)>,
    /// The last visit that has ended, and the event after which nothing else but failed tries happened.
    previous: Option<(u32, usize)>,
}

impl<'a> Scan<'a> {
    fn new(thread: u32, events: &'a [Event], acts: &'a [Act], found: &'a mut Visits) -> Self {
        Self { thread, events, acts, found, open: Vec::new(), previous: None }
    }

    fn run(mut self) {
        for (at, event) in self.events.iter().enumerate() {
            match self.acts[at] {
                Act::Enter(mutex) => self.enter(at, event, mutex),
                Act::Leave(mutex) => self.leave(at, event, mutex),
                _ => self.other(at, event),
            }
        }
        for (mutex, mut visit) in std::mem::take(&mut self.open) {
            visit.last = self.events.len() as u32 - 1;
            visit.end_ns = self.events.last().map_or(0, |event| event.at_ns);
            self.found.by_mutex[mutex as usize].push(visit);
        }
    }

    fn enter(&mut self, at: usize, event: &Event, mutex: u32) {
        let is_again = event.aux == BY_TRYING
            && self.previous.is_some_and(|(one, last)| one == mutex && last + 1 == at);
        let mut start_ns = event.at_ns.saturating_sub(event.wait_ns);
        if event.aux == BY_TRYING {
            // It may have tried for long: since whatever it did before.
            let before = self.events[..at].iter().rfind(|event| event.kind != Kind::TryFail);
            start_ns = before.map_or(start_ns, |event| event.at_ns);
        }
        let at = at as u32;
        let visit = Visit {
            thread: self.thread,
            first: at,
            last: at,
            start_ns,
            end_ns: event.at_ns,
            waits: Vec::new(),
            signals: Vec::new(),
            broadcasts: Vec::new(),
            is_again,
        };
        self.open.push((mutex, visit));
    }

    fn leave(&mut self, at: usize, event: &Event, mutex: u32) {
        let Some(place) = self.open.iter().rposition(|(one, _)| *one == mutex) else { return };
        let (_, mut visit) = self.open.remove(place);
        visit.last = at as u32;
        visit.end_ns = event.at_ns;
        self.found.by_mutex[mutex as usize].push(visit);
        self.previous = Some((mutex, at));
    }

    fn other(&mut self, at: usize, event: &Event) {
        match event.kind {
            Kind::TryFail => {
                if let Some((_, last)) = &mut self.previous {
                    *last = if *last + 1 == at { at } else { *last };
                }
            }
            Kind::CondWait | Kind::CondWake | Kind::Signal | Kind::Broadcast => {
                self.condition(at, event);
            }
            _ => {}
        }
    }

    fn condition(&mut self, at: usize, event: &Event) {
        let Some(mutex) = self.found.mutex_of.get(&event.object).copied() else { return };
        let open = self.open.iter_mut().rev().find(|(one, _)| *one == mutex);
        let visit = match open {
            Some((_, visit)) => visit,
            // Signalled just behind the unlock.
            None => {
                if self.previous != Some((mutex, at.wrapping_sub(1))) {
                    return;
                }
                self.previous = Some((mutex, at));
                let Some(visit) = self.found.by_mutex[mutex as usize].last_mut() else { return };
                visit.last = at as u32;
                visit
            }
        };
        match event.kind {
            Kind::CondWait => visit.waits.push(event.object),
            Kind::Signal => visit.signals.push(event.object),
            Kind::Broadcast => visit.broadcasts.push(event.object),
            _ => {}
        }
    }
}
