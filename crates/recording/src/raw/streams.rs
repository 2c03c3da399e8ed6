//! Pipes and connections: which ends belong together, and what waits at them have waited for.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::read::{CONNECTED, PAIR};
use super::times::Timed;
use crate::model::{IO_INTERRUPTED, IO_OTHER, IO_POLL, IO_READ, IO_WRITE};
use crate::{Event, Kind, Thread};

/// Numbers of descriptors tell what they are, as in the recorder.
const FILE_KINDS: u32 = 8;
/// A socket's number, by [`FILE_KINDS`].
const SOCKET: u32 = 4;
/// A timer's number (timerfd).
const TIMER: u32 = 6;
/// The number of what signals are read at (signalfd).
const SIGNALS: u32 = 7;
/// A write may be noted by so much later than it was read, in ns (ours): where a call has done both.
const LATE_NS: u64 = 1_000_000;

/// What raw files tell of ends of streams.
#[derive(Debug, Default)]
pub struct Ends {
    pairs: Vec<(u32, u32)>,
    /// When each end has got a connection, by what names it at both ends: at the client, and at the server.
    connections: BTreeMap<u32, [Vec<(u64, u32)>; 2]>,
    /// Counters and addresses of servers that somebody has waited for.
    pub taken: HashSet<u32>,
}

impl Ends {
    /// Adds an event of the kinds [`PAIR`], [`CONNECTED`] or [`ACCEPTED`](super::read::ACCEPTED).
    pub fn note(&mut self, event: &Timed) {
        if event.kind == PAIR {
            self.pairs.push((event.object, event.aux));
        } else {
            let sides = self.connections.entry(event.aux).or_default();
            sides[usize::from(event.kind != CONNECTED)].push((event.at_ns, event.object));
        }
    }

    /// The other end of each socket. Connections of one name are accepted in the order in which they were asked for.
    fn peers(&self) -> HashMap<u32, u32> {
        let mut pairs = self.pairs.clone();
        for sides in self.connections.values() {
            let mut sides = sides.clone();
            sides.iter_mut().for_each(|side| side.sort_unstable());
            let [clients, servers] = sides;
            pairs.extend(clients.iter().zip(&servers).map(|(client, server)| (client.1, server.1)));
        }
        pairs.into_iter().flat_map(|(one, other)| [(one, other), (other, one)]).collect()
    }
}

/// Names streams by the end that is read, and finds out for which of them reads and writes were seen completely; what
/// happens at others is input and output with somebody outside.
pub fn resolve(threads: &mut [Thread], ends: &Ends) {
    let peers = ends.peers();
    for event in all(threads) {
        let is_transfer = matches!(event.kind, Kind::Read | Kind::Write);
        if is_transfer && event.object % FILE_KINDS == SOCKET && !peers.contains_key(&event.object)
        {
            // Its other end is outside; what is read there is not what is written.
            let outside = if event.kind == Kind::Read { IO_READ } else { IO_WRITE };
            (event.kind, event.aux) = (Kind::Io, outside);
        }
        if event.kind == Kind::Write {
            event.object = peers.get(&event.object).copied().unwrap_or(event.object);
        }
    }
    await_closing(threads);
    let known = complete(threads);
    let added: HashSet<u32> = all(threads)
        .filter(|event| event.kind == Kind::FutexWake)
        .map(|event| event.object)
        .collect();
    for event in all(threads) {
        let outside = match event.kind {
            Kind::Read if !known.contains(&event.object) => IO_READ,
            Kind::Write if !known.contains(&event.object) => IO_WRITE,
            Kind::FutexWait
                if ends.taken.contains(&event.object) && !added.contains(&event.object) =>
            {
                IO_OTHER
            }
            _ => continue,
        };
        (event.kind, event.aux) = (Kind::Io, outside);
    }
    threads.iter_mut().for_each(|thread| drop_silent(&mut thread.events));
}

/// Input and output with somebody outside that has not waited says nothing: its time belongs to what follows.
fn drop_silent(events: &mut Vec<Event>) {
    let (mut cpu_ns, mut work_ns, mut is_preempted) = (0u64, 0u64, false);
    events.retain_mut(|event| {
        event.cpu_ns = event.cpu_ns.saturating_add(std::mem::take(&mut cpu_ns));
        event.work_ns = event.work_ns.saturating_add(std::mem::take(&mut work_ns));
        event.is_preempted |= std::mem::take(&mut is_preempted);
        let is_silent = event.kind == Kind::Io && event.wait_ns == 0;
        if is_silent {
            (cpu_ns, work_ns, is_preempted) = (event.cpu_ns, event.work_ns, event.is_preempted);
        }
        !is_silent
    });
}

fn all(threads: &mut [Thread]) -> impl Iterator<Item = &mut Event> {
    threads.iter_mut().flat_map(|thread| &mut thread.events)
}

/// A wait for several files has waited for what the thread does next with one of them, unless it waits again before,
/// other than for a lock. To be done before what interrupted waits have waited for is looked for.
pub fn explain_polls(threads: &mut [Thread]) {
    let ends_ns = ends_ns(threads);
    threads.iter_mut().for_each(|thread| explain_polls_of(&mut thread.events, &ends_ns));
}

/// When each thread ends.
fn ends_ns(threads: &[Thread]) -> Vec<u64> {
    threads.iter().map(|thread| thread.events.last().map_or(0, |last| last.at_ns)).collect()
}

fn explain_polls_of(events: &mut [Event], ends_ns: &[u64]) {
    // What comes next and may have ended a wait.
    let mut next: Option<usize> = None;
    for place in (0..events.len()).rev() {
        let event = events[place];
        let is_poll = event.kind == Kind::Io && event.aux == IO_POLL && event.wait_ns > 0;
        if let Some(cause) = next.filter(|_| is_poll) {
            explain(events, place, cause, ends_ns);
        }
        let waits = event.wait_ns > 0 && !matches!(event.kind, Kind::Lock | Kind::CondWake);
        if !waits && may_end_a_wait(&event) {
            next = Some(place);
        } else if waits || event.kind == Kind::Sleep {
            next = None;
        }
    }
}

/// Whether a poll may have waited until this was possible.
fn may_end_a_wait(event: &Event) -> bool {
    match event.kind {
        Kind::Read | Kind::Write => event.aux > 0,
        Kind::FutexWait | Kind::Join => true,
        Kind::Sleep => event.object % FILE_KINDS == TIMER,
        Kind::Io => event.aux == IO_INTERRUPTED && event.object % FILE_KINDS == SIGNALS,
        _ => false,
    }
}

/// Makes of a poll a wait for what has ended it; not for the end of somebody who had ended before.
fn explain(events: &mut [Event], poll: usize, cause: usize, ends_ns: &[u64]) {
    let (waited, ended) = (events[poll], events[cause]);
    if ended.kind == Kind::Join {
        let inside = waited.waits_from_ns()..=waited.at_ns;
        if !ends_ns.get(ended.object as usize).is_some_and(|end_ns| inside.contains(end_ns)) {
            return;
        }
    }
    let aux = if matches!(ended.kind, Kind::Sleep | Kind::Io) { ended.aux } else { 0 };
    events[poll] = Event { kind: ended.kind, object: ended.object, aux, ..waited };
    if ended.kind == Kind::Sleep {
        // One wait for a timer is one sleep.
        (events[cause].kind, events[cause].aux) = (Kind::Io, IO_OTHER);
    }
}

/// The end of what can be read comes with the end of the last thread that has written it; a poll finds it as it finds
/// bytes, but nobody has written any meanwhile.
fn await_closing(threads: &mut [Thread]) {
    let mut last_writes: HashMap<u32, (u64, u32)> = HashMap::new();
    for (index, thread) in (0..).zip(threads.iter()) {
        for event in thread.events.iter().filter(|event| event.kind == Kind::Write) {
            let last = last_writes.entry(event.object).or_default();
            *last = (*last).max((event.at_ns, index));
        }
    }
    let ends_ns = ends_ns(threads);
    for (index, thread) in (0..).zip(threads) {
        for event in &mut thread.events {
            let Some((written_ns, writer)) = last_writes.get(&event.object).copied() else {
                continue;
            };
            let inside = event.waits_from_ns()..=event.at_ns;
            let is_end = match event.kind {
                Kind::Io => event.aux == IO_INTERRUPTED,
                Kind::Read => event.aux == 0 && written_ns < *inside.start(),
                _ => false,
            };
            if is_end && writer != index && inside.contains(&ends_ns[writer as usize]) {
                (event.kind, event.object, event.aux) = (Kind::Join, writer, 0);
            } else if is_end && event.kind == Kind::Io && inside.contains(&written_ns) {
                // It was closed behind what was written.
                (event.kind, event.aux) = (Kind::Read, 0);
            }
        }
    }
}

/// Streams of which nothing was read before it was written.
fn complete(threads: &[Thread]) -> HashSet<u32> {
    // By stream: when, whether it is a read (behind writes of the same time), and bytes.
    let mut flows: HashMap<u32, Vec<(u64, bool, u64)>> = HashMap::new();
    for event in threads.iter().flat_map(|thread| &thread.events) {
        if matches!(event.kind, Kind::Read | Kind::Write) {
            let is_read = event.kind == Kind::Read;
            let flow = flows.entry(event.object).or_default();
            let late_ns = if is_read { LATE_NS } else { 0 };
            flow.push((event.at_ns.saturating_add(late_ns), is_read, u64::from(event.aux)));
        }
    }
    let is_complete = |flow: &mut Vec<(u64, bool, u64)>| {
        flow.sort_unstable();
        let mut inside: i64 = 0;
        let falls_short = flow.iter().any(|(_, is_read, bytes)| {
            inside += if *is_read { -(*bytes as i64) } else { *bytes as i64 };
            inside < 0
        });
        // Who only waits for something has read nothing.
        let is_read = flow.iter().any(|(_, is_read, bytes)| *is_read && *bytes > 0);
        !falls_short && is_read && flow.iter().any(|entry| !entry.1)
    };
    flows
        .into_iter()
        .filter_map(|(stream, mut flow)| is_complete(&mut flow).then_some(stream))
        .collect()
}
