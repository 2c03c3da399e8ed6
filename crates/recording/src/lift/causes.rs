//! Ties waits that nothing else explains to what ended them, by a semaphore for each pair of threads.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use super::Level;
use super::acts::{Act, Acts, IO_NS_MIN};
use super::node::Sym;
use super::objects::{Objects, What};
use super::rounds::{self, Edge};
use crate::replay::{Place, StreamWaits, in_order, stream_waits};
use crate::{Event, Kind, Recording, Wake};

/// Something that ends waits.
#[derive(Clone, Copy)]
struct Signal {
    at_ns: u64,
    thread: u32,
    event: u32,
    /// How many waits it can still end.
    left: u32,
}

/// Kinds of things that are waited for, so that hashes are not mixed up.
type Key = (u8, u32);
const CONDITION: u8 = 0;
const FUTEX: u8 = 1;
const THREAD: u8 = 2;

/// A wait.
struct Wait {
    key: Key,
    thread: u32,
    event: u32,
    from_ns: u64,
    to_ns: u64,
    /// The only thread that can have ended it.
    by: Option<u32>,
}

/// Ties waits for conditions and futexes, and those that the kernel told, to their ends.
pub(super) fn tie(recording: &Recording, acts: &mut Acts, objects: &mut Objects, level: Level) {
    let mut signals: HashMap<Key, Vec<Signal>> = HashMap::new();
    let mut waits = Vec::new();
    for (thread, recorded) in (0..).zip(&recording.threads) {
        let mut begin_ns = 0;
        for (at, event) in (0..).zip(&recorded.events) {
            if event.kind == Kind::CondWait {
                begin_ns = event.at_ns;
            }
            let (one, place) = (thread as usize, at as usize);
            if acts.acts[one][place] != Act::None || acts.is_known[one][place] {
                continue;
            }
            if let Some((key, left)) = signal(event, thread) {
                let signal = Signal { at_ns: event.at_ns, thread, event: at, left };
                signals.entry(key).or_default().push(signal);
            }
            if let Some(wait) = wait(event, thread, at, begin_ns, acts, objects) {
                waits.push(wait);
            }
        }
    }
    signals.values_mut().for_each(|list| list.sort_by_key(|signal| signal.at_ns));
    waits.sort_by_key(|wait| (wait.to_ns, wait.thread, wait.event));
    let mut edges: Vec<Edge> =
        waits.iter().filter_map(|wait| edge(wait, recording, &mut signals)).collect();
    let mut streams = stream_waits(recording);
    drop_circles(recording, &mut edges, &mut streams.ties);
    let edges = match level {
        Level::Full => rounds::recognise(recording, edges, acts, objects),
        _ => edges,
    };
    for edge in edges {
        let semaphore = objects.pair(edge.waker, edge.waiter);
        acts.acts[edge.waiter as usize][edge.event as usize] = Act::Sym(Sym::SemWait(semaphore));
        acts.behind(edge.waker, edge.at, Sym::SemPost(semaphore));
    }
    tie_streams(recording, streams, acts, objects);
    initial_counts(recording, acts, objects);
}

/// Leaves out what would have threads wait for one another in a circle.
fn drop_circles(recording: &Recording, edges: &mut Vec<Edge>, streams: &mut Vec<(Place, Place)>) {
    let tie_of = |edge: &Edge| {
        let (from, to) = ((edge.waker, edge.at), (edge.waiter, edge.event));
        [from, to].map(|(thread, event)| Place { thread, event }).into()
    };
    let ties = edges.iter().map(tie_of).chain(streams.iter().copied());
    let kept: HashSet<(Place, Place)> = in_order(recording, ties.collect()).into_iter().collect();
    edges.retain(|edge| kept.contains(&tie_of(edge)));
    streams.retain(|tie| kept.contains(tie));
}

/// Ties reads to who wrote, and writes to who made room; waits that nothing recorded explains are sleeps.
fn tie_streams(
    recording: &Recording,
    StreamWaits { ties, unknown }: StreamWaits,
    acts: &mut Acts,
    objects: &mut Objects,
) {
    for Place { thread, event } in unknown {
        let wait_ns = recording.threads[thread as usize].events[event as usize].wait_ns;
        if wait_ns >= IO_NS_MIN {
            acts.acts[thread as usize][event as usize] = Act::Sym(Sym::Sleep);
        }
    }
    for (from, to) in ties {
        let semaphore = objects.pair(from.thread, to.thread);
        acts.acts[to.thread as usize][to.event as usize] = Act::Sym(Sym::SemWait(semaphore));
        acts.behind(from.thread, from.event, Sym::SemPost(semaphore));
    }
}

fn signal(event: &Event, thread: u32) -> Option<(Key, u32)> {
    match event.kind {
        Kind::Signal => Some(((CONDITION, event.object), 1)),
        Kind::Broadcast => Some(((CONDITION, event.object), u32::MAX)),
        Kind::FutexWake => Some(((FUTEX, event.object), event.aux.max(1))),
        Kind::Wake if event.object != thread => Some(((THREAD, event.object), 1)),
        _ => None,
    }
}

fn wait(
    event: &Event,
    thread: u32,
    at: u32,
    begin_ns: u64,
    acts: &mut Acts,
    objects: &mut Objects,
) -> Option<Wait> {
    let from_ns = event.at_ns.saturating_sub(event.wait_ns);
    let new = |key, from_ns, by| Wait { key, thread, event: at, from_ns, to_ns: event.at_ns, by };
    match event.kind {
        Kind::CondWake if event.aux != 1 => {
            Some(new((CONDITION, event.object), begin_ns.min(from_ns), None))
        }
        Kind::CondWake if event.aux == 1 && event.wait_ns > 0 => {
            acts.acts[thread as usize][at as usize] = Act::Sym(Sym::Sleep);
            None
        }
        Kind::FutexWait if event.aux == 0 && event.is_blocked => {
            Some(new((FUTEX, event.object), from_ns, None))
        }
        Kind::Block => match Wake::from_aux(event.aux) {
            Wake::Thread(by) => Some(new((THREAD, thread), from_ns, Some(by))),
            _ if event.wait_ns > 0 => {
                objects.note("Waits that no recorded thread ended are sleeps of the same length.");
                acts.acts[thread as usize][at as usize] = Act::Sym(Sym::Sleep);
                None
            }
            _ => None,
        },
        _ => None,
    }
}

/// What ended a wait.
fn edge(
    wait: &Wait,
    recording: &Recording,
    signals: &mut HashMap<Key, Vec<Signal>>,
) -> Option<Edge> {
    let mut found = None;
    if let Some(list) = signals.get_mut(&wait.key) {
        let end = list.partition_point(|signal| signal.at_ns <= wait.to_ns);
        for signal in list[..end].iter_mut().rev().take(1000) {
            let is_right = wait.by.is_none_or(|by| by == signal.thread);
            if signal.at_ns < wait.from_ns {
                break;
            }
            if signal.left > 0 && signal.thread != wait.thread && is_right {
                signal.left -= 1;
                found = Some((signal.thread, signal.event));
                break;
            }
        }
    }
    let found = found.or_else(|| where_it_was(wait, recording));
    let (waker, at) = found?;
    let (waiter, event) = (wait.thread, wait.event);
    Some(Edge { waker, at, waiter, event, from_ns: wait.from_ns })
}

/// The event of the waker before the end of the wait, if the waker is known but not its event.
fn where_it_was(wait: &Wait, recording: &Recording) -> Option<(u32, u32)> {
    let by = wait.by.filter(|by| *by != wait.thread)?;
    let events = &recording.threads.get(by as usize)?.events;
    let end = events.partition_point(|event| event.at_ns <= wait.to_ns);
    Some((by, end.checked_sub(1)? as u32))
}

/// When a semaphore's count changes, by whom and by how much.
type Change = (u64, usize, i64);

/// Semaphores begin with what is taken before it is posted.
fn initial_counts(recording: &Recording, acts: &Acts, objects: &mut Objects) {
    let mut changes: HashMap<u32, Vec<Change>> = HashMap::new();
    for (thread, recorded) in recording.threads.iter().enumerate() {
        for (at, event) in recorded.events.iter().enumerate() {
            match acts.sym(thread, at) {
                Some(Sym::SemPost(one)) => {
                    let posts = i64::from(objects.fan(one));
                    // A waiter may be noted before the post that woke it, but no post before what its thread did.
                    let before_ns = at.checked_sub(1).map_or(0, |at| recorded.events[at].at_ns);
                    let at_ns = event.at_ns.saturating_sub(event.wait_ns).max(before_ns);
                    changes.entry(one).or_default().push((at_ns, thread, posts));
                }
                Some(Sym::SemWait(one)) => {
                    changes.entry(one).or_default().push((event.at_ns, thread, -1));
                }
                _ => {}
            }
        }
    }
    for (semaphore, mut list) in changes {
        let object = &mut objects.list[semaphore as usize];
        let What::Semaphore { initial, fan: 1 } = &mut object.what else { continue };
        if object.is_literal {
            continue;
        }
        list.sort_by_key(|(at_ns, ..)| *at_ns);
        *initial = (-least_count(&list)) as u32;
    }
}

/// The least that a count comes to that begins with 0. Of changes at one time, posts come first, but none before what
/// its thread has taken.
fn least_count(changes: &[Change]) -> i64 {
    let (mut count, mut least) = (0, 0);
    for at_once in changes.chunk_by(|one, two| one.0 == two.0) {
        let mut threads: BTreeMap<usize, VecDeque<i64>> = BTreeMap::new();
        for (_, thread, change) in at_once {
            threads.entry(*thread).or_default().push_back(*change);
        }
        for _ in at_once {
            let next = threads.values_mut().filter(|own| !own.is_empty()).max_by_key(|own| own[0]);
            count += next.and_then(VecDeque::pop_front).unwrap_or(0);
            least = least.min(count);
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_changes_at_one_time_no_post_comes_before_what_its_thread_takes() {
        assert_eq!(least_count(&[(5, 0, -1), (5, 0, 1)]), -1);
        assert_eq!(least_count(&[(5, 0, -1), (5, 1, 1)]), 0);
        assert_eq!(least_count(&[(5, 0, -1), (5, 0, 1), (5, 1, -1), (5, 1, 1), (5, 2, 1)]), 0);
        assert_eq!(least_count(&[(1, 0, -1), (2, 1, -1), (2, 0, 1), (3, 0, -1)]), -2);
    }
}
