//! What the library and the kernel have recorded of the same run, as one recording.
//!
//! The library knows which lock, pipe or file a thread waits for, the kernel which thread has ended any wait, and when.
//! So waits of which the library knows the cause stay as they are. Others are tied to the thread that the kernel has
//! seen to wake, waits that no call of the library shows are added, and so are threads that did not load it.

mod releases;
#[cfg(test)]
mod tests;
mod waits;
mod weave;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use crate::model::EXIT_BY_PROCESS;
use crate::{Event, Kind, Recording, Thread, Wake};
use waits::{Cause, Changes};

/// Beginning and ending take at most that long, in ns (ours): library and kernel see them at different moments.
const SKEW_NS: u64 = 1_000_000;
/// Share of the waits that both know from which on differing wakers are told (ours).
const DISAGREED_MIN: f64 = 0.05;

/// A recording by a clock that others have, too.
#[derive(Clone, Debug, Default)]
pub struct Clocked {
    /// The recording.
    pub recording: Recording,
    /// The number of each thread in the kernel, 0 if it is not known.
    pub tids: Vec<u32>,
    /// The recording's time 0, in ns of `CLOCK_MONOTONIC`.
    pub origin_ns: u64,
}

/// What came of two recordings of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Merged {
    /// Waits without a known cause that are tied to a thread now.
    pub tied: u64,
    /// Waits outside of the library's calls.
    pub added: u64,
    /// Threads that did not load the library.
    pub threads: u64,
    /// Waits of which both name the same thread as the cause.
    pub agreed: u64,
    /// Waits of which they name different ones.
    pub disagreed: u64,
    /// Events that the kernel had no room for.
    pub lost_events: u64,
}

/// The same run as two have seen it. Times are the library's.
struct Both {
    library: Vec<Thread>,
    kernel: Vec<Thread>,
    /// Of each thread of the library its index in the kernel's recording.
    twins: Vec<Option<u32>>,
    /// Of each thread of the kernel's recording its index in the merged one.
    places: Vec<u32>,
    /// Of each thread that only the kernel has seen its index there, in the order of places.
    strangers: Vec<u32>,
    /// When threads have woken others, by indices in the kernel's recording.
    wakes: HashMap<(u32, u32), Vec<u64>>,
}

/// One recording of two. Without events of the kernel it is the library's.
pub fn merge(library: Clocked, kernel: Clocked) -> Recording {
    let mut recording = library.recording;
    let lost_events = kernel.recording.info.lost_events;
    let groups = kernel.recording.info.groups.clone();
    if kernel.recording.threads.is_empty() {
        return recording;
    }
    let threads = std::mem::take(&mut recording.threads);
    let shifted = shifted(kernel.recording.threads, kernel.origin_ns, library.origin_ns);
    let twins = twins(&threads, &library.tids, &shifted, &kernel.tids);
    let both = Both::new(threads, shifted, twins);
    let (threads, mut merged) = both.merged();
    merged.lost_events = lost_events;
    recording.threads = threads;
    let info = &mut recording.info;
    let ends = recording.threads.iter().filter_map(|thread| thread.events.last());
    info.wall_ns = ends.map(|end| end.at_ns).fold(info.wall_ns, u64::max);
    if !info.instructions.is_empty() {
        info.instructions.resize(recording.threads.len(), 0);
    }
    info.unknown.extend(merged.doubts());
    info.groups = groups;
    info.merged = Some(merged);
    recording
}

/// Has threads whose ends the library has not seen, as those of a killed process, end where the kernel saw it. Returns
/// the CPU time of threads that only the kernel has seen, in ns. To be done before what is known from outside is added.
pub(crate) fn see_ends(library: &mut Clocked, kernel: &Clocked) -> u64 {
    let threads = kernel.recording.threads.clone();
    let shifted = shifted(threads, kernel.origin_ns, library.origin_ns);
    let of_library = &mut library.recording.threads;
    let twins = twins(of_library, &library.tids, &shifted, &kernel.tids);
    let mut is_unseen = vec![true; shifted.len()];
    for (thread, twin) in of_library.iter_mut().zip(twins) {
        let Some(twin) = twin else { continue };
        is_unseen[twin as usize] = false;
        let of_kernel = &shifted[twin as usize].events;
        let (Some(end), Some(seen)) = (thread.events.last_mut(), of_kernel.last()) else {
            continue;
        };
        if end.kind == Kind::Exit && end.aux == EXIT_BY_PROCESS && seen.at_ns > end.at_ns {
            let ran = weave::Ran::of(of_kernel);
            let cpu_ns = ran.by(seen.at_ns).saturating_sub(ran.by(end.at_ns));
            end.cpu_ns = end.cpu_ns.saturating_add(cpu_ns);
            end.work_ns = end.work_ns.saturating_add(cpu_ns);
            end.at_ns = seen.at_ns;
        }
    }
    let ends = of_library.iter().filter_map(|thread| thread.events.last());
    library.recording.info.wall_ns = ends.map(|end| end.at_ns).max().unwrap_or(0);
    let unseen = shifted.iter().zip(is_unseen).filter(|(_, is_unseen)| *is_unseen);
    unseen.fold(0, |sum, (thread, _)| sum.saturating_add(thread.cpu_ns()))
}

/// The kernel's threads in the library's time.
fn shifted(mut threads: Vec<Thread>, from_ns: u64, to_ns: u64) -> Vec<Thread> {
    for event in threads.iter_mut().flat_map(|thread| &mut thread.events) {
        event.at_ns = event.at_ns.saturating_add(from_ns).saturating_sub(to_ns);
    }
    threads
}

/// Of each thread of the library the kernel's that had its number last, when it began.
fn twins(
    library: &[Thread],
    library_tids: &[u32],
    kernel: &[Thread],
    kernel_tids: &[u32],
) -> Vec<Option<u32>> {
    let mut by_tid: HashMap<u32, Vec<(u64, u32)>> = HashMap::new();
    for ((index, thread), tid) in (0..).zip(kernel).zip(kernel_tids) {
        let begin_ns = thread.events.first().map_or(u64::MAX, |first| first.at_ns);
        by_tid.entry(*tid).or_default().push((begin_ns, index));
    }
    by_tid.values_mut().for_each(|list| list.sort_unstable());
    let find = |(thread, tid): (&Thread, &u32)| {
        let list = by_tid.get(tid).filter(|_| *tid != 0)?;
        let begin_ns = thread.begin_ns().saturating_add(SKEW_NS);
        list[..list.partition_point(|(at_ns, _)| *at_ns <= begin_ns)].last().map(|last| last.1)
    };
    let mut is_taken = vec![false; kernel.len()];
    let found = library.iter().zip(library_tids).map(find);
    found
        .map(|twin| twin.filter(|twin| !std::mem::replace(&mut is_taken[*twin as usize], true)))
        .collect()
}

impl Both {
    fn new(library: Vec<Thread>, kernel: Vec<Thread>, twins: Vec<Option<u32>>) -> Self {
        let mut places = vec![u32::MAX; kernel.len()];
        for (thread, twin) in (0..).zip(&twins) {
            if let Some(twin) = twin {
                places[*twin as usize] = thread;
            }
        }
        let mut strangers = Vec::new();
        for (index, place) in (0..).zip(&mut places).filter(|(_, place)| **place == u32::MAX) {
            *place = (library.len() + strangers.len()) as u32;
            strangers.push(index);
        }
        let mut wakes: HashMap<(u32, u32), Vec<u64>> = HashMap::new();
        for (waker, thread) in (0..).zip(&kernel) {
            for event in thread.events.iter().filter(|event| event.kind == Kind::Wake) {
                wakes.entry((waker, event.object)).or_default().push(event.at_ns);
            }
        }
        Self { library, kernel, twins, places, strangers, wakes }
    }

    /// Whether the library has recorded the thread at that place.
    fn is_of_library(&self, place: u32) -> bool {
        (place as usize) < self.library.len()
    }

    fn merged(self) -> (Vec<Thread>, Merged) {
        let mut changes = Changes::of(&self);
        let mut merged = changes.merged;
        let mut strangers = self.strangers(&mut changes);
        merged.threads = strangers.len() as u64;
        let ran: Vec<_> = self
            .twins
            .iter()
            .map(|twin| twin.map(|twin| weave::Ran::of(&self.kernel[twin as usize].events)))
            .collect();
        let Changes { mut added, changed, wakes, .. } = changes;
        let mut threads = self.library;
        for (thread, twin) in threads.iter_mut().zip(&self.twins) {
            // The library has not seen names that threads got later and still had when their process ended.
            let Some(twin) = twin.map(|twin| &self.kernel[twin as usize]) else { continue };
            if !twin.name.is_empty() {
                thread.name.clone_from(&twin.name);
            }
            thread.prio = twin.prio;
            thread.asks.clone_from(&twin.asks);
        }
        for (thread, event, what) in changed {
            threads[thread as usize].events[event] = what;
        }
        for (waker, woken, at_ns) in wakes {
            if let Some(thread) = threads.get(waker as usize) {
                let wake = Event { object: woken, ..Event::new(Kind::Wake, at_ns, 0) };
                added.entry(waker).or_default().push((place_of(thread, at_ns), wake));
            }
        }
        for (thread, added) in added {
            if let Some(ran) = &ran[thread as usize] {
                weave::weave(&mut threads[thread as usize].events, added, ran);
            }
        }
        threads.append(&mut strangers);
        (threads, merged)
    }

    /// Threads that only the kernel has seen, in the order of their places.
    fn strangers(&self, changes: &mut Changes) -> Vec<Thread> {
        let mut processes = self.processes();
        let mut next = self.library.iter().map(|thread| thread.process + 1).max().unwrap_or(0);
        let is_created = self.created();
        let mut found = Vec::new();
        for &index in &self.strangers {
            let thread = &self.kernel[index as usize];
            let process = *processes.entry(thread.process).or_insert_with(|| {
                next += 1;
                next - 1
            });
            let events = thread.events.iter().map(|event| self.placed(index, event, changes));
            let events = events.collect();
            let asks = thread.asks.clone();
            found.push(Thread {
                name: thread.name.clone(),
                process,
                events,
                prio: thread.prio,
                asks,
            });
        }
        for (place, thread) in (self.library.len() as u32..).zip(&mut found) {
            weave::keep(&mut thread.events, |event| match event.kind {
                Kind::Wake => changes.wakes.contains(&(place, event.object, event.at_ns)),
                Kind::Create => !is_created.contains(&event.object),
                _ => true,
            });
        }
        self.create_strangers(changes);
        found
    }

    /// An event that only the kernel has seen, with threads by their places.
    fn placed(&self, thread: u32, event: &Event, changes: &mut Changes) -> Event {
        let mut placed = *event;
        let place = |index: u32| self.places.get(index as usize).copied();
        match event.kind {
            Kind::Wake | Kind::Create => placed.object = place(event.object).unwrap_or(u32::MAX),
            Kind::Start => {
                placed.aux = event.aux.checked_sub(1).and_then(place).map_or(0, |place| place + 1);
            }
            Kind::Block | Kind::Join => {
                let cause = self.cause(thread, event, event.at_ns);
                changes.note_wake(self.places[thread as usize], cause);
                placed = waits::explained(event, cause);
            }
            _ => {}
        }
        placed
    }

    /// Has threads of the library create those that only the kernel has seen.
    fn create_strangers(&self, changes: &mut Changes) {
        for (thread, twin) in (0..).zip(&self.twins) {
            let events = twin.map_or(&[][..], |twin| &self.kernel[twin as usize].events);
            for creation in events.iter().filter(|event| event.kind == Kind::Create) {
                let object = self.places[creation.object as usize];
                if !self.is_of_library(object) {
                    let event = Event { object, ..Event::new(Kind::Create, creation.at_ns, 0) };
                    let place = place_of(&self.library[thread as usize], creation.at_ns);
                    changes.added.entry(thread).or_default().push((place, event));
                }
            }
        }
    }

    /// Threads of the library of which it has seen who created them.
    fn created(&self) -> BTreeSet<u32> {
        let events = self.library.iter().flat_map(|thread| &thread.events);
        let creations = events.filter(|event| event.kind == Kind::Create);
        creations.map(|event| event.object).collect()
    }

    /// The library's number of each process of the kernel's recording, where it has one.
    fn processes(&self) -> BTreeMap<u32, u32> {
        let pairs = self.library.iter().zip(&self.twins);
        let pair = |(thread, twin): (&Thread, &Option<u32>)| {
            twin.map(|twin| (self.kernel[twin as usize].process, thread.process))
        };
        pairs.filter_map(pair).collect()
    }

    /// What has ended a wait of a thread of the kernel's recording, if that is to be tied to an event at that time.
    fn cause(&self, thread: u32, wait: &Event, until_ns: u64) -> Cause {
        let waker = match (wait.kind, Wake::from_aux(wait.aux)) {
            (Kind::Join, _) => wait.object,
            (Kind::Block, Wake::Thread(waker)) => waker,
            _ => return Cause::Kept,
        };
        let place = self.places[waker as usize];
        if wait.kind == Kind::Join && self.ends_by(place, until_ns) {
            return Cause::End(place);
        }
        // Who ends wakes who waits for it, and may still be there when that one goes on.
        let marks = self.wakes.get(&(waker, thread)).map_or(&[][..], |marks| marks);
        let Some(&at_ns) = marks[..marks.partition_point(|at_ns| *at_ns <= wait.at_ns)].last()
        else {
            return Cause::Unknown;
        };
        if !self.is_of_library(place) {
            return Cause::Wake(place, at_ns);
        }
        let events = &self.library[place as usize].events;
        let begin_ns = events.first().map_or(u64::MAX, |first| first.at_ns);
        let end_ns = events.last().map_or(0, |last| last.at_ns);
        match () {
            () if at_ns < begin_ns => Cause::Unknown,
            () if at_ns < end_ns && at_ns <= until_ns => Cause::Wake(place, at_ns),
            () if end_ns <= until_ns => Cause::End(place),
            () => Cause::Unknown,
        }
    }

    fn ends_by(&self, place: u32, at_ns: u64) -> bool {
        let stranger = |place: usize| &self.kernel[self.strangers[place] as usize];
        let place = place as usize;
        let of_library = self.library.get(place);
        of_library.unwrap_or_else(|| stranger(place - self.library.len())).ends_by(at_ns)
    }
}

/// Where a new event of a thread has its place: never before its begin, or behind its end.
fn place_of(thread: &Thread, at_ns: u64) -> usize {
    let behind = thread.events.partition_point(|event| event.at_ns <= at_ns);
    behind.clamp(1, thread.events.len().saturating_sub(1).max(1))
}

impl Merged {
    /// What is not known for sure, a sentence each.
    fn doubts(&self) -> Vec<String> {
        let mut found = Vec::new();
        let both = self.agreed + self.disagreed;
        if self.disagreed as f64 > both as f64 * DISAGREED_MIN {
            let wakers = "Waits of which library and kernel name different threads as the cause";
            found.push(format!("{wakers}: {} of {both}; the library's count.", self.disagreed));
        }
        if self.threads > 0 {
            let locks = "Locks that blocked nobody, of threads that did not load the library";
            found.push(format!("{locks}: {} threads.", self.threads));
        }
        if self.lost_events > 0 {
            let text = "Causes that the kernel had no room to tell: it has lost events";
            found.push(format!("{text}: {}.", self.lost_events));
        }
        found
    }
}
