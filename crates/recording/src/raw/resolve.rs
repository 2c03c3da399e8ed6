//! Who is who: numbers of the recorded system become indices of threads.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::children::{self, Child};
use super::read::{
    ACCEPTED, ADD, CONNECTED, CREATE_PROCESS, Head, JOIN_PROCESS, KILL, PAIR, RawThread, TAKE,
};
use super::signals::Signals;
use super::streams::{self, Ends};
use super::times::{Scale, Timed, timed};
use crate::model::{EXIT_BY_PROCESS, IO_OTHER};
use crate::{Core, Event, Info, Kind, Recording, Thread};

/// The threads by what names them.
struct Names {
    /// When each file's thread begins, in ns.
    begins_ns: Vec<u64>,
    /// Index in the recording of each file's thread.
    index: Vec<u32>,
    /// Index by process and number.
    numbers: BTreeMap<(u32, u32), u32>,
    /// First threads of processes, by process id, in the order of their begin.
    processes: BTreeMap<u32, Vec<u32>>,
    /// Files by process and hash of `pthread_t`, in the order of their begin.
    identities: BTreeMap<(u32, u32), Vec<usize>>,
}

/// As the recorder does it.
pub fn hash(address: u64) -> u32 {
    (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32 | 1
}

impl Names {
    /// `raw` is in the order of begin.
    fn new(raw: &[RawThread<'_>], scale: &Scale) -> Self {
        let begin_ns = |thread: &RawThread<'_>| scale.at_ns(thread.head.begin.ticks);
        let mut names = Self {
            begins_ns: raw.iter().map(begin_ns).collect(),
            index: Vec::new(),
            numbers: BTreeMap::new(),
            processes: BTreeMap::new(),
            identities: BTreeMap::new(),
        };
        let mut first = BTreeMap::new();
        let mut count = 0;
        for (file, RawThread { head, .. }) in raw.iter().enumerate() {
            let known = first.get(&head.process).filter(|_| head.is_continued);
            let index = known.copied().unwrap_or_else(|| {
                count += 1;
                count - 1
            });
            if let Entry::Vacant(place) = first.entry(head.process) {
                place.insert(index);
                names.processes.entry(head.pid).or_default().push(index);
            }
            names.index.push(index);
            names.numbers.insert((head.process, head.thread), index);
            let identity = (head.process, hash(head.identity));
            names.identities.entry(identity).or_default().push(file);
        }
        names
    }

    /// 1 + the first thread of the parent process, where nothing tells more: 0 if it was not recorded.
    fn parent(&self, head: &Head, index: u32) -> u32 {
        let is_first = self.processes.get(&head.pid).is_some_and(|all| all.contains(&index));
        let parents = self.processes.get(&head.parent_pid).filter(|_| is_first);
        parents.and_then(|all| all.last()).map_or(0, |parent| parent + 1)
    }

    /// Processes whose parents were recorded, in the order of their begin.
    fn children(&self, raw: &[RawThread<'_>]) -> Vec<Child> {
        let firsts = raw.iter().zip(&self.index).filter(|(thread, _)| !thread.head.is_continued);
        let parents = firsts.map(|(thread, index)| (*index, self.parent(&thread.head, *index)));
        let found = parents.filter_map(|(thread, parent)| {
            let parent = parent.checked_sub(1)?;
            (parent != thread).then_some(Child { thread, parent })
        });
        found.collect()
    }

    /// The thread that had this `pthread_t` last, when a call that ended then waited for it.
    fn joined(&self, process: u32, object: u32, at_ns: u64) -> Option<u32> {
        let files = self.identities.get(&(process, object))?;
        let is_before = |file: &&usize| self.begins_ns[**file] <= at_ns;
        files.iter().rev().find(is_before).map(|file| self.index[*file])
    }
}

/// The k-th process of an id is the k-th that was created, and waited for.
#[derive(Default)]
struct Seen(BTreeMap<u32, usize>);

impl Seen {
    fn next(&mut self, names: &Names, pid: u32) -> Option<u32> {
        let count = self.0.entry(pid).or_default();
        let found = names.processes.get(&pid)?.get(*count).copied();
        *count += usize::from(found.is_some());
        found
    }
}

/// What becomes of the events, one file after the other.
struct Resolver<'a> {
    cores: &'a [Core],
    names: Names,
    threads: Vec<Thread>,
    /// 1 + the index of the thread that created each, 0 if none is known.
    creators: Vec<u32>,
    /// CPU time of each at the end of its last file, in ns.
    used_ns: Vec<f64>,
    created: Seen,
    joined: Seen,
    ends: Ends,
    signals: Signals,
}

impl Resolver<'_> {
    /// Kind, object and detail of an event; none if it says nothing about what was recorded.
    fn resolve(&mut self, process: u32, index: u32, event: &Timed) -> Option<(Kind, u32, u32)> {
        let names = &self.names;
        let threads = |kind: Kind| move |child: u32| (kind, child, 0);
        match event.kind {
            CREATE_PROCESS => {
                let child = self.created.next(names, event.object)?;
                self.creators[child as usize] = index + 1;
                Some((Kind::Create, child, 0))
            }
            JOIN_PROCESS => self.joined.next(names, event.object).map(threads(Kind::Join)),
            PAIR | CONNECTED | ACCEPTED => {
                self.ends.note(event);
                None
            }
            ADD => Some((Kind::FutexWake, event.object, 1)),
            KILL => {
                let target = *names.processes.get(&event.object)?.last()?;
                Some((Kind::FutexWake, self.signals.note(target, event.at_ns), 1))
            }
            TAKE => {
                self.ends.taken.insert(event.object);
                Some((Kind::FutexWait, event.object, 0))
            }
            number => match Kind::from_number(number)? {
                Kind::Start => {
                    let is_first = self.threads[index as usize].events.is_empty();
                    is_first.then_some((Kind::Start, event.object, 0))
                }
                Kind::Create => {
                    let child = names.numbers.get(&(process, event.object)).copied();
                    child.map(threads(Kind::Create))
                }
                Kind::Join => {
                    names.joined(process, event.object, event.at_ns).map(threads(Kind::Join))
                }
                kind => Some((kind, event.object, event.aux)),
            },
        }
    }

    /// Adds the events of a file to those of its thread.
    fn add(&mut self, file: usize, raw: &RawThread<'_>, scale: &Scale) {
        let index = self.names.index[file];
        let head = &raw.head;
        let thread = &mut self.threads[index as usize];
        thread.events.reserve_exact(raw.events().count() + 1);
        thread.process = head.process;
        thread.name.clone_from(&head.name);
        if let Some(creator) = head.creator.checked_sub(1) {
            let creator = self.names.numbers.get(&(head.process, creator));
            self.creators[index as usize] = creator.map_or(0, |creator| creator + 1);
        }
        if !head.is_continued && self.creators[index as usize] == 0 {
            self.creators[index as usize] = self.names.parent(head, index);
        }
        // Loading its program; the very first one is over when the recording begins, see `add_ends`.
        let before_ns = if head.is_continued { self.used_ns[index as usize] } else { 0.0 };
        let startup_ns = if file > 0 { head.startup_ns as f64 - before_ns } else { 0.0 };
        let mut dropped_ns = startup_ns.max(0.0) as u64;
        let used_ns = timed(raw, scale, |event| {
            let resolved = self.resolve(head.process, index, &event);
            // It has waited for something that was not recorded, such as a static program.
            let waited = (event.wait_ns > 0).then_some((Kind::Io, 0, IO_OTHER));
            let Some(meaning) = resolved.or(waited) else {
                dropped_ns = dropped_ns.saturating_add(event.cpu_ns);
                return;
            };
            let event = self.finished(&event, dropped_ns, meaning);
            self.threads[index as usize].events.push(event);
            dropped_ns = 0;
        });
        self.used_ns[index as usize] = used_ns;
    }

    fn finished(&self, event: &Timed, dropped_ns: u64, meaning: (Kind, u32, u32)) -> Event {
        let (kind, object, aux) = meaning;
        let cpu_ns = event.cpu_ns.saturating_add(dropped_ns);
        let speed = self.cores.get(usize::from(event.core)).map_or(1.0, |core| core.speed);
        Event {
            kind,
            is_blocked: event.is_blocked,
            is_preempted: event.is_preempted,
            core: event.core,
            object,
            aux,
            at_ns: event.at_ns,
            cpu_ns,
            work_ns: if speed == 1.0 { cpu_ns } else { (cpu_ns as f64 * speed) as u64 },
            wait_ns: event.wait_ns,
        }
    }
}

/// Each thread's first event tells who created it.
fn tell_creators(threads: &mut [Thread], creators: &[u32]) {
    for (thread, creator) in threads.iter_mut().zip(creators) {
        let first = thread.events.first_mut();
        if let Some(start) = first.filter(|event| event.kind == Kind::Start) {
            start.aux = *creator;
        }
    }
}

/// The recording of these threads, which are in the order of their begin, and their numbers in the kernel.
///
/// `recorder_ns`: time that the recorder took of each, in ns.
pub fn recording(
    info: Info,
    raw: &[RawThread<'_>],
    scale: &Scale,
    recorder_ns: &[f64],
) -> (Recording, Vec<u32>) {
    let names = Names::new(raw, scale);
    let count = names.index.iter().max().map_or(0, |last| *last as usize + 1);
    let mut resolver = Resolver {
        cores: &info.cores,
        names,
        threads: vec![Thread::default(); count],
        creators: vec![0; count],
        used_ns: vec![0.0; count],
        created: Seen::default(),
        joined: Seen::default(),
        ends: Ends::default(),
        signals: Signals::default(),
    };
    for (file, thread) in raw.iter().enumerate() {
        resolver.add(file, thread, scale);
    }
    let Resolver { names, mut threads, mut creators, ends, signals, .. } = resolver;
    let mut info = completed(info, raw, &names, &mut threads);
    info.slowdown = slowdown(recorder_ns, &info);
    let family = names.children(raw);
    streams::explain_polls(&mut threads);
    children::await_ends(&mut threads, &family);
    signals.await_all(&mut threads);
    streams::resolve(&mut threads, &ends);
    children::add_creations(&mut threads, &mut creators, &family);
    let orphans = children::orphans(&threads, &creators);
    children::add_creations(&mut threads, &mut creators, &orphans);
    tell_creators(&mut threads, &creators);
    let mut tids = vec![0; threads.len()];
    for (thread, index) in raw.iter().zip(&names.index) {
        tids[*index as usize] = thread.head.tid;
    }
    (Recording { info, threads, is_cut_off: false }, tids)
}

/// Ends the threads that were not seen to end, and says what is known of the whole.
fn completed(mut info: Info, raw: &[RawThread<'_>], names: &Names, threads: &mut [Thread]) -> Info {
    let mut unseen = 0;
    let mut is_ended = vec![false; threads.len()];
    for (file, thread) in raw.iter().enumerate() {
        is_ended[names.index[file] as usize] |= thread.head.is_ended;
    }
    for (thread, is_ended) in threads.iter_mut().zip(is_ended) {
        let Some(last) = thread.events.last().copied() else { continue };
        if last.kind != Kind::Exit {
            unseen += usize::from(!is_ended);
            let at_ns = last.at_ns;
            let aux = if is_ended { 0 } else { EXIT_BY_PROCESS };
            let end = Event { core: last.core, aux, ..Event::new(Kind::Exit, at_ns, 0) };
            thread.events.push(end);
        }
    }
    let ends = threads.iter().filter_map(|thread| thread.events.last());
    info.wall_ns = ends.map(|event| event.at_ns).max().unwrap_or(0);
    let lost = raw.iter().map(|thread| thread.head.lost_events);
    info.lost_events = lost.fold(info.lost_events, u64::saturating_add);
    info.instructions = instructions(raw, names, threads.len());
    let mut tell = |is: bool, sentence: String| {
        if is {
            info.unknown.push(sentence);
        }
    };
    tell(info.instructions.is_empty(), "Instructions: no counter told them.".to_owned());
    tell(
        unseen > 0,
        format!("The last moments of threads that did not end by themselves: {unseen}."),
    );
    let lost = info.lost_events;
    tell(
        lost > 0,
        format!("Events without room, or in handlers of signals inside the recorder: {lost}."),
    );
    tell(
        raw.iter().any(|thread| thread.head.is_sandboxed),
        "CPU time in a sandbox, which may kill for asking the kernel: ticks told it.".to_owned(),
    );
    let is_slow = raw.iter().any(|thread| !thread.head.has_ticks);
    tell(
        is_slow,
        "Times without the recorder as exactly: CPU time was read at every event.".to_owned(),
    );
    info
}

/// By the thread of which the recorder took most, or by what it took of all cores if that is more.
fn slowdown(recorder_ns: &[f64], info: &Info) -> Option<f64> {
    let taken = recorder_ns.iter();
    let (most, sum) = taken.fold((0.0, 0.0), |(most, sum), ns| (f64::max(most, *ns), sum + ns));
    let taken_ns = f64::max(most, sum / info.cores.len().max(1) as f64);
    let wall_ns = info.wall_ns as f64;
    (wall_ns > taken_ns).then(|| wall_ns / (wall_ns - taken_ns))
}

/// Per thread, or none at all.
fn instructions(raw: &[RawThread<'_>], names: &Names, count: usize) -> Vec<u64> {
    let mut sums = vec![0; count];
    for (file, thread) in raw.iter().enumerate() {
        let Some(counted) = thread.head.instructions else { return Vec::new() };
        sums[names.index[file] as usize] += counted;
    }
    sums
}
