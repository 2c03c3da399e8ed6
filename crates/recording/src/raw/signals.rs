//! Signals: who goes on with one has waited for who has sent it.

use crate::model::IO_INTERRUPTED;
use crate::{Event, Kind, Thread};

/// A signal that a recorded thread has sent to a recorded process.
#[derive(Clone, Copy, Debug)]
struct Sent {
    /// What ties it to a wait: differs for all signals.
    object: u32,
    /// The first thread of the process that gets it.
    target: u32,
    at_ns: u64,
}

/// All signals that were sent.
#[derive(Debug, Default)]
pub struct Signals(Vec<Sent>);

impl Signals {
    /// Adds one; returns what ties it to a wait.
    pub fn note(&mut self, target: u32, at_ns: u64) -> u32 {
        let object = super::resolve::hash(self.0.len() as u64 + 1);
        self.0.push(Sent { object, target, at_ns });
        object
    }

    /// Makes waits that signals have ended wait for these: of each process the first that ends after a signal was sent,
    /// if it had begun before. What comes while nobody waits ties nobody.
    pub fn await_all(mut self, threads: &mut [Thread]) {
        self.0.sort_by_key(|sent| sent.at_ns);
        for sent in self.0 {
            let process = threads[sent.target as usize].process;
            let of_process = threads.iter_mut().filter(|thread| thread.process == process);
            let waits = of_process.filter_map(|thread| interrupted(&mut thread.events, sent.at_ns));
            if let Some(wait) = waits.min_by_key(|wait| wait.at_ns) {
                (wait.kind, wait.object, wait.aux) = (Kind::FutexWait, sent.object, 0);
            }
        }
    }
}

/// What a thread was waiting in at a time, if something unknown has ended that early.
fn interrupted(events: &mut [Event], at_ns: u64) -> Option<&mut Event> {
    let first = events.partition_point(|event| event.at_ns < at_ns);
    let is_wait = |event: &Event| event.kind == Kind::Io && event.aux == IO_INTERRUPTED;
    events.get_mut(first).filter(|event| is_wait(event) && event.waits_from_ns() <= at_ns)
}
