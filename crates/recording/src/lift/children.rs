//! A program that starts others one after the other, some at a time, as `make -j` does: what they do becomes jobs of as
//! many threads as there were at a time.

use super::acts;
use crate::model::{IO_READ, IO_STORAGE, IO_WRITE};
use crate::{Event, Kind, Recording, Thread, Wake};

/// Least number of started programs.
const COUNT_MIN: usize = 8;
/// Least number of started programs per place.
const TURNS_MIN: usize = 2;
/// Least share of the work that they do.
const WORK_SHARE_MIN: f64 = 0.3;
/// Objects that are in no recording's way: the condition at which places wait, and the one that they signal.
const BEGINS: u32 = u32::MAX;
const ENDS: u32 = u32::MAX - 1;

/// A program that was started, with all that it started itself.
struct Child {
    from_ns: u64,
    to_ns: u64,
    cpu_ns: u64,
    work_ns: u64,
    /// Waiting for devices.
    io_ns: u64,
}

/// The recording with a thread for each place in which programs ran one after the other; none if it has no such
/// programs.
pub(super) fn as_threads(recording: &Recording) -> Option<Recording> {
    let first = recording.threads.first()?;
    let stays: Vec<bool> =
        recording.threads.iter().map(|thread| thread.process == first.process).collect();
    let owner = owner(recording, &stays)?;
    let mut children = children(recording, &stays);
    children.sort_by_key(|child| (child.from_ns, child.to_ns));
    let work_ns = children.iter().fold(0, |sum: u64, child| sum.saturating_add(child.work_ns));
    let all_ns =
        recording.threads.iter().fold(0, |sum: u64, thread| sum.saturating_add(thread.work_ns()));
    let places = places(children);
    let count: usize = places.iter().map(Vec::len).sum();
    if places.len() < 2
        || count < COUNT_MIN.max(TURNS_MIN * places.len())
        || (work_ns as f64) < WORK_SHARE_MIN * all_ns as f64
    {
        return None;
    }
    Some(rewritten(recording, &stays, owner, &places))
}

/// The thread of the first process that starts most programs.
fn owner(recording: &Recording, stays: &[bool]) -> Option<usize> {
    let starts = |thread: &Thread| {
        let is_start = |event: &&Event| {
            event.kind == Kind::Create && stays.get(event.object as usize) == Some(&false)
        };
        thread.events.iter().filter(is_start).count()
    };
    let counts = recording.threads.iter().enumerate().filter(|(index, _)| stays[*index]);
    let counts = counts.map(|(index, thread)| (starts(thread), index));
    counts
        .filter(|(count, _)| *count > 0)
        .max_by_key(|(count, index)| (*count, usize::MAX - index))
        .map(|(_, index)| index)
}

/// What those did whom the first process started, each with all below it.
fn children(recording: &Recording, stays: &[bool]) -> Vec<Child> {
    let parents = acts::parents(recording);
    let top = |index: usize| {
        let mut at = index;
        while let Some(parent) =
            parents[at].map(|parent| parent as usize).filter(|parent| !stays[*parent])
        {
            at = parent;
        }
        at
    };
    let mut found: Vec<Option<Child>> = recording.threads.iter().map(|_| None).collect();
    for (index, thread) in recording.threads.iter().enumerate().filter(|(index, _)| !stays[*index])
    {
        let Some(last) = thread.events.last() else { continue };
        let is_transfer = |event: &&Event| {
            event.kind == Kind::Io && matches!(event.aux, IO_READ | IO_WRITE | IO_STORAGE)
        };
        let reads = thread.events.iter().filter(is_transfer);
        let io_ns = reads.fold(0, |sum: u64, event| sum.saturating_add(event.wait_ns));
        let (from_ns, to_ns) = (thread.begin_ns(), last.at_ns);
        let child = found[top(index)].get_or_insert(Child {
            from_ns,
            to_ns,
            cpu_ns: 0,
            work_ns: 0,
            io_ns: 0,
        });
        child.from_ns = child.from_ns.min(from_ns);
        child.to_ns = child.to_ns.max(to_ns);
        child.cpu_ns = child.cpu_ns.saturating_add(thread.cpu_ns());
        child.work_ns = child.work_ns.saturating_add(thread.work_ns());
        child.io_ns = child.io_ns.saturating_add(io_ns);
    }
    found.into_iter().flatten().collect()
}

/// Lists of children of which each begins when the one before has ended; whoever has done least takes the next one.
fn places(children: Vec<Child>) -> Vec<Vec<Child>> {
    let mut places: Vec<Vec<Child>> = Vec::new();
    for child in children {
        let is_free = |place: &&mut Vec<Child>| place[place.len() - 1].to_ns <= child.from_ns;
        let work_ns = |place: &&mut Vec<Child>| {
            place.iter().fold(0, |sum: u64, child| sum.saturating_add(child.work_ns))
        };
        match places.iter_mut().filter(is_free).min_by_key(work_ns) {
            Some(place) => place.push(child),
            None => places.push(vec![child]),
        }
    }
    places
}

fn rewritten(
    recording: &Recording,
    stays: &[bool],
    owner: usize,
    places: &[Vec<Child>],
) -> Recording {
    let mut next = 0;
    let new: Vec<Option<u32>> =
        stays.iter().map(|stays| stays.then(|| (next, next += 1).0)).collect();
    let starter = new[owner].unwrap_or(0);
    let mut threads = Vec::new();
    for (index, thread) in recording.threads.iter().enumerate().filter(|(index, _)| stays[*index]) {
        let mut events = Vec::with_capacity(thread.events.len());
        thread.events.iter().for_each(|event| outer(event, &new, &mut events));
        if index == owner {
            let first = thread.events.iter().position(|event| is_of(event, Kind::Create, &new));
            let at_ns = first.map_or(0, |at| thread.events[at].at_ns);
            let at = events.partition_point(|event| event.at_ns < at_ns);
            let creates = (next..).take(places.len());
            let creates =
                creates.map(|child| Event { object: child, ..Event::new(Kind::Create, at_ns, 0) });
            events.splice(at..at, creates);
        }
        threads.push(Thread { events, ..thread.clone() });
    }
    let process = recording.threads[owner].process;
    threads.extend(places.iter().map(|place| worker(place, process, starter)));
    Recording { info: recording.info.clone(), threads, is_cut_off: recording.is_cut_off }
}

fn is_of(event: &Event, kind: Kind, new: &[Option<u32>]) -> bool {
    event.kind == kind && matches!(new.get(event.object as usize), Some(None))
}

/// An event of the process that stays: who started programs signals that there is something to do.
fn outer(event: &Event, new: &[Option<u32>], events: &mut Vec<Event>) {
    let of = |index: u32| new.get(index as usize).copied().flatten();
    let mut event = *event;
    match event.kind {
        Kind::Create if is_of(&event, Kind::Create, new) => {
            (event.kind, event.object) = (Kind::Signal, BEGINS);
        }
        Kind::Create | Kind::Join | Kind::Wake if of(event.object).is_some() => {
            event.object = of(event.object).unwrap_or(event.object);
        }
        Kind::Join => return ended(event, events),
        Kind::Wake => event.kind = Kind::Yield,
        Kind::Block => {
            if let Wake::Thread(by) = Wake::from_aux(event.aux) {
                let Some(by) = of(by) else { return ended(event, events) };
                event.aux = Wake::Thread(by).to_aux();
            }
        }
        Kind::Start => {
            let parent = event.aux.checked_sub(1).and_then(of);
            event.aux = parent.map_or(0, |parent| parent + 1);
        }
        _ => {}
    }
    events.push(event);
}

/// A wait for the end of a program.
fn ended(event: Event, events: &mut Vec<Event>) {
    let came_ns = event.at_ns.saturating_sub(event.wait_ns);
    let wait =
        Event { kind: Kind::CondWait, object: ENDS, aux: 0, at_ns: came_ns, wait_ns: 0, ..event };
    let wake = Event { kind: Kind::CondWake, object: ENDS, aux: 0, cpu_ns: 0, work_ns: 0, ..event };
    events.extend([wait, wake]);
}

/// A thread that does what the programs in one place did.
fn worker(place: &[Child], process: u32, starter: u32) -> Thread {
    let new = |kind, object, at_ns| Event { object, ..Event::new(kind, at_ns, 0) };
    let begin_ns = place[0].from_ns;
    let mut events = vec![Event { aux: starter + 1, ..new(Kind::Start, 0, begin_ns) }];
    let mut free_ns = begin_ns;
    for child in place {
        if free_ns > begin_ns {
            let wait_ns = child.from_ns.saturating_sub(free_ns);
            events.push(new(Kind::CondWait, BEGINS, free_ns));
            let wake = new(Kind::CondWake, BEGINS, child.from_ns);
            events.push(Event { wait_ns, is_blocked: true, ..wake });
        }
        let Child { to_ns, cpu_ns, work_ns, io_ns, .. } = *child;
        events.push(Event { cpu_ns, work_ns, wait_ns: io_ns, ..new(Kind::Io, 0, to_ns) });
        events.push(new(Kind::Signal, ENDS, to_ns));
        free_ns = to_ns;
    }
    events.push(new(Kind::Exit, 0, free_ns));
    Thread { process, events, ..Thread::default() }
}
