//! What every execution of a recording's replay must obey, told from the recording and not from the replay's code.

use std::collections::{BTreeMap, HashSet};

use super::path::{Path, longest};
use super::{Options, Place, replay};
use crate::{Kind, Recording, Thread, Wake};

/// How a thread depends on another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bond {
    /// It begins when the other one has done so much work.
    Created,
    /// It has so much work left when the other one has ended.
    Joined,
    /// From the other one's begin until its own end so much work is done: that one's until it wakes this one, and this
    /// one's from then on.
    Woken,
}

impl Bond {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Joined => "joined",
            Self::Woken => "woken",
        }
    }
}

/// That a thread can do something only when another one has done something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    /// How they depend on each other.
    pub bond: Bond,
    /// Who comes first.
    pub cause: u32,
    /// Who comes later.
    pub effect: u32,
    /// Work between them that takes as long as it takes on a core of full speed at least, in ns.
    pub work_ns: u64,
}

/// What every execution must obey.
#[derive(Clone, Debug)]
pub struct Laws {
    /// Work of each thread on a fastest core, without that by which it only waits actively, in ns; none of a daemon
    /// thread, which goes on as long as its process.
    pub work_ns: Vec<Option<u64>>,
    /// Who can do nothing before whom: of each two threads and kind the strictest.
    pub causes: Vec<Cause>,
    /// The critical path at each of the speeds.
    pub paths: Vec<Path>,
}

/// The laws of a recording's replay, with its critical paths on cores that are so many times as fast.
pub fn laws(recording: &Recording, speeds: &[f64]) -> Laws {
    let replay = replay(recording, &Options::default());
    let sums: Vec<Vec<u64>> =
        (0..).zip(&recording.threads).map(|(index, of)| sums(index, of, &replay.spins)).collect();
    let paths = speeds.iter().map(|speed| longest(&replay.program, &replay.waits, *speed));
    let specs = &replay.program.threads;
    let is_daemon = |thread: u32| specs.get(thread as usize).is_some_and(|spec| spec.is_daemon);
    let work_ns = |thread: u32| (!is_daemon(thread)).then(|| all(&sums, thread));
    let mut causes = causes(recording, &sums);
    causes.retain(|cause| !is_daemon(cause.cause) && !is_daemon(cause.effect));
    Laws { work_ns: (0..sums.len() as u32).map(work_ns).collect(), causes, paths: paths.collect() }
}

/// Work of a thread up to each of its events, that before the event included.
fn sums(index: u32, thread: &Thread, spins: &HashSet<Place>) -> Vec<u64> {
    let mut sum_ns: u64 = 0;
    let sum = |(event, what): (u32, &crate::Event)| {
        if !spins.contains(&Place { thread: index, event }) {
            sum_ns = sum_ns.saturating_add(what.work_ns);
        }
        sum_ns
    };
    (0..).zip(&thread.events).map(sum).collect()
}

/// Who can do nothing before whom.
fn causes(recording: &Recording, sums: &[Vec<u64>]) -> Vec<Cause> {
    let mut found = Found::default();
    let threads = &recording.threads;
    let mut is_created = vec![false; threads.len()];
    let mut wakes: BTreeMap<(u32, u32), Vec<(u64, u64)>> = BTreeMap::new();
    for (index, thread) in (0u32..).zip(threads) {
        for (event, done_ns) in thread.events.iter().zip(&sums[index as usize]) {
            let other = event.object as usize;
            if other >= threads.len() || other == index as usize {
                continue;
            }
            match event.kind {
                Kind::Create if !is_created[other] => {
                    is_created[other] = true;
                    found.add(Bond::Created, index, event.object, *done_ns);
                }
                Kind::Join if threads[other].ends_by(event.at_ns) => {
                    let left_ns = all(sums, index) - done_ns;
                    found.add(Bond::Joined, event.object, index, left_ns);
                }
                Kind::Wake => {
                    let marks = wakes.entry((index, event.object)).or_default();
                    marks.push((event.at_ns, *done_ns));
                }
                _ => {}
            }
        }
    }
    for (index, thread) in (0u32..).zip(threads) {
        if !is_created[index as usize] {
            found.add_creator(recording, sums, index);
        }
        for (event, done_ns) in thread.events.iter().zip(&sums[index as usize]) {
            let Some(waker) = waker(event) else { continue };
            let Some(marks) = wakes.get(&(waker, index)) else { continue };
            let until = marks.partition_point(|(at_ns, _)| *at_ns <= event.at_ns);
            if let Some((_, before_ns)) = marks[..until].last() {
                let work_ns = before_ns.saturating_add(all(sums, index) - done_ns);
                found.add(Bond::Woken, waker, index, work_ns);
            }
        }
    }
    found.causes()
}

/// All work of a thread, in ns.
fn all(sums: &[Vec<u64>], thread: u32) -> u64 {
    sums[thread as usize].last().copied().unwrap_or(0)
}

/// Who has ended a wait, as the kernel tells it.
fn waker(event: &crate::Event) -> Option<u32> {
    match Wake::from_aux(event.aux) {
        Wake::Thread(waker) if event.kind == Kind::Block => Some(waker),
        _ => None,
    }
}

/// The strictest cause of each two threads and kind.
#[derive(Default)]
struct Found(BTreeMap<(Bond, u32, u32), u64>);

impl Found {
    fn add(&mut self, bond: Bond, cause: u32, effect: u32, work_ns: u64) {
        let most_ns = self.0.entry((bond, cause, effect)).or_default();
        *most_ns = work_ns.max(*most_ns);
    }

    /// A thread whose creation was not recorded, though its creator is known: that one had done what it had done when
    /// the thread began.
    fn add_creator(&mut self, recording: &Recording, sums: &[Vec<u64>], thread: u32) {
        let own = &recording.threads[thread as usize];
        let Some(first) = own.events.first().filter(|first| first.kind == Kind::Start) else {
            return;
        };
        let Some(creator) = first.aux.checked_sub(1).filter(|creator| *creator != thread) else {
            return;
        };
        let Some(of_creator) = recording.threads.get(creator as usize) else { return };
        let begin_ns = own.begin_ns();
        let until = of_creator.events.partition_point(|event| event.at_ns <= begin_ns);
        let done_ns = sums[creator as usize][..until].last().copied().unwrap_or(0);
        self.add(Bond::Created, creator, thread, done_ns);
    }

    fn causes(self) -> Vec<Cause> {
        let cause = |((bond, cause, effect), work_ns)| Cause { bond, cause, effect, work_ns };
        self.0.into_iter().map(cause).collect()
    }
}
