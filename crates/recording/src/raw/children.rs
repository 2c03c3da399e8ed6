//! What the library cannot see of children: who created those of `vfork`, and waits that their ends have ended.
//!
//! A child of `vfork` shares its parent's memory until it executes its program, which is all that is recorded of it.

use std::collections::BTreeMap;

use crate::model::{IO_INTERRUPTED, Kind};
use crate::{Event, Thread};

/// A process that a recorded one has created, or a thread of a process that nobody has seen create it.
#[derive(Clone, Copy, Debug)]
pub struct Child {
    /// Its first thread.
    pub thread: u32,
    /// The first thread of its parent, or of its process.
    pub parent: u32,
}

/// From the end of a child until its parent's wait has ended for it, in ns at most (ours): the parent needs a core
/// first.
const NOTICED_NS: u64 = 100_000_000;

/// The end of a child. The order is that by process and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct End {
    /// The parent's process.
    parent: u32,
    at_ns: u64,
    begin_ns: u64,
    /// The child's first thread.
    child: u32,
}

impl End {
    fn of(child: Child, threads: &[Thread]) -> Option<Self> {
        let (thread, parent) = (&threads[child.thread as usize], &threads[child.parent as usize]);
        let at_ns = thread.events.last()?.at_ns;
        let begin_ns = thread.begin_ns();
        Some(Self { parent: parent.process, at_ns, begin_ns, child: child.thread })
    }
}

/// Makes waits that the end of a child has ended wait for that child, each child ending one wait.
pub fn await_ends(threads: &mut [Thread], children: &[Child]) {
    let mut ends: Vec<End> = children.iter().filter_map(|child| End::of(*child, threads)).collect();
    ends.sort_unstable();
    for thread in threads {
        let process = thread.process;
        let is_wait = |event: &&mut Event| event.kind == Kind::Io && event.aux == IO_INTERRUPTED;
        for wait in thread.events.iter_mut().filter(is_wait) {
            let since_ns = wait.waits_from_ns();
            let until =
                ends.partition_point(|end| (end.parent, end.at_ns) <= (process, wait.at_ns));
            let last = ends[..until].last().filter(|end| {
                let is_inside = end.parent == process && since_ns <= end.at_ns;
                is_inside && (since_ns <= end.begin_ns || wait.at_ns - end.at_ns <= NOTICED_NS)
            });
            if let Some(end) = last {
                (wait.kind, wait.object, wait.aux) = (Kind::Join, end.child, 0);
                ends.remove(until - 1);
            }
        }
    }
}

/// Has children created by a thread of their parent that nobody has seen create them: by the one that waits for them,
/// else by one that ran when they began, else by the first. Tells each child who it was.
pub fn add_creations(threads: &mut [Thread], creators: &mut [u32], children: &[Child]) {
    let mut is_created = vec![false; threads.len()];
    for event in threads.iter().flat_map(|thread| &thread.events) {
        if let (Kind::Create, Some(seen)) = (event.kind, is_created.get_mut(event.object as usize))
        {
            *seen = true;
        }
    }
    for child in children.iter().filter(|child| !is_created[child.thread as usize]) {
        let at_ns = threads[child.thread as usize].begin_ns();
        let creator = creator_of(threads, *child, at_ns);
        creators[child.thread as usize] = creator + 1;
        insert(&mut threads[creator as usize].events, child.thread, at_ns);
    }
}

/// Threads that their processes have got unseen: by libraries that began before the recorder did.
pub fn orphans(threads: &[Thread], creators: &[u32]) -> Vec<Child> {
    let mut firsts: BTreeMap<u32, u32> = BTreeMap::new();
    let mut found = Vec::new();
    for ((index, thread), creator) in (0..).zip(threads).zip(creators) {
        let parent = *firsts.entry(thread.process).or_insert(index);
        if *creator == 0 && parent != index {
            found.push(Child { thread: index, parent });
        }
    }
    found
}

/// Index of the thread of a child's parent that has created it, as far as can be told.
fn creator_of(threads: &[Thread], child: Child, at_ns: u64) -> u32 {
    let process = threads[child.parent as usize].process;
    let family = || {
        let all = (0u32..).zip(threads);
        // Threads are in the order of their begin.
        all.filter(move |(index, thread)| thread.process == process && *index < child.thread)
    };
    let waits = |thread: &Thread| {
        let mut events = thread.events.iter();
        events.any(|event| event.kind == Kind::Join && event.object == child.thread)
    };
    let runs = |thread: &Thread| {
        let next = thread.events.iter().find(|event| event.at_ns >= at_ns);
        thread.begin_ns() <= at_ns && next.is_some_and(|next| at_ns < next.waits_from_ns())
    };
    let found = family().find(|(_, thread)| waits(thread));
    found
        .or_else(|| family().find(|(_, thread)| runs(thread)))
        .map_or(child.parent, |found| found.0)
}

/// Inserts the creation of a child, before the wait during which it began if there is one.
fn insert(events: &mut Vec<Event>, child: u32, at_ns: u64) {
    // Between the thread's first event and its last.
    let behind = events.partition_point(|event| event.at_ns <= at_ns);
    let index = behind.clamp(1, events.len().saturating_sub(1).max(1));
    let Some(next) = events.get(index).copied() else { return };
    let before_ns = events[index - 1].at_ns;
    let created_ns = at_ns.clamp(before_ns, next.waits_from_ns().max(before_ns));
    let is_all = created_ns == next.waits_from_ns();
    let cpu_ns = if is_all { next.cpu_ns } else { next.cpu_ns.min(created_ns - before_ns) };
    let share = if next.cpu_ns > 0 { cpu_ns as f64 / next.cpu_ns as f64 } else { 0.0 };
    let work_ns = (next.work_ns as f64 * share) as u64;
    let mut creation = Event::new(Kind::Create, created_ns, work_ns);
    (creation.cpu_ns, creation.object, creation.core) = (cpu_ns, child, next.core);
    events[index].cpu_ns -= cpu_ns;
    events[index].work_ns -= work_ns;
    events.insert(index, creation);
}
