//! What each event means by itself.

use std::collections::HashMap;

use super::Level;
use super::node::Sym;
use super::objects::{Objects, What};
use crate::model::{IO_INTERRUPTED, IO_POLL};
use crate::{Event, Kind, Recording};

/// Shorter waits for input and output are left out.
pub(super) const IO_NS_MIN: u64 = 50_000;
/// A wait for input or output that takes this share of the recording waits for its end.
const WHOLE_SHARE: f64 = 0.9;

/// All work before an event is active waiting.
pub(super) const ALL: u64 = u64::MAX;

/// The meaning of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    None,
    /// Locks that recorded mutex.
    Enter(u32),
    Leave(u32),
    /// Takes from that recorded pool.
    Chunk(u32),
    Sym(Sym),
}

/// The meaning of all events.
pub(super) struct Acts {
    /// Per thread, per event.
    pub acts: Vec<Vec<Act>>,
    /// Per thread, per event: work before it that is active waiting, in ns; [`ALL`]: all of it.
    pub idle_ns: Vec<Vec<u64>>,
    /// Per thread, per event: it belongs to something that was recognised as a whole.
    pub is_known: Vec<Vec<bool>>,
    /// Per thread: steps that are added, by place: 2 x event before its own step, 2 x event + 1 behind it.
    pub extra: Vec<Vec<(u32, Sym)>>,
    /// Recorded mutexes; numbers by lock kind and hash.
    pub mutexes: Names,
    /// The thread that created a thread.
    pub parent: Vec<Option<u32>>,
}

/// Numbers for recorded objects.
#[derive(Debug, Default)]
pub(super) struct Names {
    numbers: HashMap<(u8, u32), u32>,
}

impl Names {
    /// The number of an object of a class.
    pub fn number(&mut self, class: u8, object: u32) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry((class, object)).or_insert(next)
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }
}

impl Acts {
    pub fn new(recording: &Recording, objects: &mut Objects, level: Level) -> Self {
        let acts = recording.threads.iter().map(|thread| vec![Act::None; thread.events.len()]);
        let idle_ns = recording.threads.iter().map(|thread| vec![0; thread.events.len()]);
        let is_known = recording.threads.iter().map(|thread| vec![false; thread.events.len()]);
        let mut found = Self {
            acts: acts.collect(),
            idle_ns: idle_ns.collect(),
            is_known: is_known.collect(),
            extra: vec![Vec::new(); recording.threads.len()],
            mutexes: Names::default(),
            parent: parents(recording),
        };
        let mut plain = Plain { objects, numbers: HashMap::new(), level };
        for thread in 0..recording.threads.len() {
            plain.thread(recording, thread as u32, &mut found);
        }
        found
    }

    /// Makes a range of events mean nothing, and its last one that step.
    pub fn replace(&mut self, thread: u32, first: u32, last: u32, sym: Option<Sym>) {
        let acts = &mut self.acts[thread as usize];
        acts[first as usize..=last as usize].fill(Act::None);
        acts[last as usize] = sym.map_or(Act::None, Act::Sym);
        self.is_known[thread as usize][first as usize..=last as usize].fill(true);
    }

    /// Adds a step before the step of an event.
    pub fn before(&mut self, thread: u32, event: u32, sym: Sym) {
        self.extra[thread as usize].push((event * 2, sym));
    }

    /// Adds a step behind the step of an event.
    pub fn behind(&mut self, thread: u32, event: u32, sym: Sym) {
        self.extra[thread as usize].push((event * 2 + 1, sym));
    }

    /// Work before an event without active waiting, in ns.
    pub fn work_ns(&self, thread: usize, at: usize, event: &Event) -> f64 {
        event.work_ns.saturating_sub(self.idle_ns[thread][at]) as f64
    }

    /// Brings added steps into their order.
    pub fn sort(&mut self) {
        self.extra.iter_mut().for_each(|list| list.sort_by_key(|(at, _)| *at));
    }

    /// The step that an event is.
    pub fn sym(&self, thread: usize, event: usize) -> Option<Sym> {
        match self.acts[thread][event] {
            Act::Sym(sym) => Some(sym),
            _ => None,
        }
    }
}

/// Whether the thread that was waited for has ended, as far as a kernel tells: a wait for one of several threads may
/// name another one, which then goes on to wait and to wake.
fn has_ended(recording: &Recording, join: &Event) -> bool {
    let events = &recording.threads[join.object as usize].events;
    let later = events.iter().rev().take_while(|event| event.at_ns > join.at_ns);
    !later.into_iter().any(|event| matches!(event.kind, Kind::Block | Kind::Wake))
}

/// Who created whom: the first that says so, without circles.
pub(super) fn parents(recording: &Recording) -> Vec<Option<u32>> {
    let count = recording.threads.len();
    let mut parent: Vec<Option<u32>> = vec![None; count];
    for (index, thread) in recording.threads.iter().enumerate() {
        for event in thread.events.iter().filter(|event| event.kind == Kind::Create) {
            let child = event.object as usize;
            if child == 0 || child >= count || parent[child].is_some() {
                continue;
            }
            let mut above = Some(index as u32);
            while let Some(at) = above.filter(|at| *at as usize != child) {
                above = parent[at as usize];
            }
            if above.is_none() {
                parent[child] = Some(index as u32);
            }
        }
    }
    parent
}

/// Meanings that need nothing but the event and its thread's past.
struct Plain<'a> {
    objects: &'a mut Objects,
    /// Objects by class and hash.
    numbers: HashMap<(u8, u32), u32>,
    level: Level,
}

const SEMAPHORES: u8 = 1;
const DEVICES: u8 = 2;
const REGIONS: u8 = 3;

impl Plain<'_> {
    fn thread(&mut self, recording: &Recording, index: u32, found: &mut Acts) {
        let mut reading: HashMap<u32, u32> = HashMap::new();
        let mut forked = vec![false; recording.threads.len()];
        let is_omp_worker = |event: &Event| event.kind == Kind::OmpFork;
        let is_master = recording.threads[index as usize].events.iter().any(is_omp_worker);
        let mut is_in_region = false;
        let whole_ns = ((recording.info.wall_ns as f64 * WHOLE_SHARE) as u64).max(IO_NS_MIN);
        let events = &recording.threads[index as usize].events;
        for (at, event) in events.iter().enumerate() {
            let mutex =
                |found: &mut Acts| found.mutexes.number(lock_class(event.kind), event.object);
            let act = match event.kind {
                Kind::Create => {
                    let child = event.object as usize;
                    let is_own = found.parent.get(child).copied().flatten() == Some(index);
                    if is_own && !std::mem::replace(&mut forked[child], true) {
                        Act::Sym(Sym::Fork(event.object))
                    } else {
                        Act::None
                    }
                }
                Kind::Join => match found.parent.get(event.object as usize).copied().flatten() {
                    Some(parent) if parent == index && has_ended(recording, event) => {
                        Act::Sym(Sym::Join(event.object))
                    }
                    _ => Act::None,
                },
                _ if self.level == Level::Work => Act::None,
                Kind::Lock | Kind::SpinLock | Kind::WriteLock | Kind::OmpCritical => {
                    Act::Enter(mutex(found))
                }
                Kind::Unlock | Kind::SpinUnlock | Kind::OmpCriticalEnd => Act::Leave(mutex(found)),
                Kind::ReadLock => {
                    *reading.entry(event.object).or_default() += 1;
                    self.objects.note("Readers of locks for readers and writers do not wait.");
                    Act::None
                }
                Kind::RwUnlock => {
                    match reading.get_mut(&event.object).filter(|count| **count > 0) {
                        Some(count) => {
                            *count -= 1;
                            Act::None
                        }
                        None => Act::Leave(mutex(found)),
                    }
                }
                Kind::SemWait => Act::Sym(Sym::SemWait(self.semaphore(event.object))),
                Kind::SemPost => Act::Sym(Sym::SemPost(self.semaphore(event.object))),
                Kind::Sleep if event.wait_ns > 0 => Act::Sym(Sym::Sleep),
                Kind::Io if event.wait_ns >= whole_ns => {
                    self.objects
                        .note("Waits that are nearly as long as the recording are left out.");
                    Act::None
                }
                // Who polls, or waits for a signal, waits for others, at no device.
                Kind::Io
                    if event.wait_ns >= IO_NS_MIN
                        && (IO_POLL..=IO_INTERRUPTED).contains(&event.aux) =>
                {
                    Act::Sym(Sym::Sleep)
                }
                Kind::Io if event.wait_ns >= IO_NS_MIN => {
                    let device = || (What::Device, "input or output");
                    Act::Sym(Sym::Io(self.object(DEVICES, 0, device)))
                }
                Kind::OmpChunk => Act::Chunk(event.object),
                Kind::OmpBegin => {
                    // Until it begins a worker waits actively; the one that forked goes on at once.
                    if !is_master && !is_in_region {
                        found.idle_ns[index as usize][at] = ALL;
                    }
                    is_in_region = true;
                    Act::Sym(Sym::Barrier(self.region()))
                }
                Kind::OmpEnd | Kind::OmpBarrier => {
                    is_in_region &= event.kind != Kind::OmpEnd;
                    Act::Sym(Sym::Barrier(self.region()))
                }
                _ => Act::None,
            };
            found.acts[index as usize][at] = act;
        }
    }

    fn object(&mut self, class: u8, hash: u32, what: impl FnOnce() -> (What, &'static str)) -> u32 {
        if let Some(number) = self.numbers.get(&(class, hash)) {
            return *number;
        }
        let (what, was) = what();
        let number = self.objects.add(what, was);
        self.numbers.insert((class, hash), number);
        number
    }

    fn semaphore(&mut self, hash: u32) -> u32 {
        let what = || (What::Semaphore { initial: 0, fan: 1 }, "semaphore");
        self.object(SEMAPHORES, hash, what)
    }

    fn region(&mut self) -> u32 {
        self.object(REGIONS, 0, || (What::Barrier, "begin and end of parallel regions"))
    }
}

/// Kinds of locks whose hashes must not be mixed up.
fn lock_class(kind: Kind) -> u8 {
    match kind {
        Kind::SpinLock | Kind::SpinUnlock => 1,
        Kind::WriteLock | Kind::RwUnlock => 2,
        Kind::OmpCritical | Kind::OmpCriticalEnd => 3,
        _ => 0,
    }
}
