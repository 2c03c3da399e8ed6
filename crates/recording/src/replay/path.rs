//! The critical path of a replay: when it ends at the earliest, whatever machine executes it.
//!
//! Every thread has a core of full speed of its own, waking takes no time, and mutexes, whose order no tie holds, are
//! free. So nothing begins before its cause and nothing waits for anything else; as all waits that are left end no
//! earlier if their causes come later, no execution on cores of that speed is over before.

use std::collections::{BTreeMap, HashMap, VecDeque};

use ampsched_model::{ObjectId, ObjectKind, Op, Program, TimerMode};

use super::build::Action;
use crate::model::IO_STORAGE;
use crate::{Event, Kind, Wake};

/// What the time along a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Work: it shrinks as cores get faster.
    Work,
    /// Sleep, or the time until a timer.
    Clock,
    /// Waits for disks: what serves them takes as long on any cores.
    Device,
    /// Other input and output, and what else something outside of the recording has ended: networks, people.
    Outside,
    /// Waits of which nobody has seen the end's cause.
    Unknown,
    /// Until a thread begins that no recorded one has started.
    Start,
}

impl Part {
    /// All of them, each at the place of its number.
    pub const ALL: [Self; 6] =
        [Self::Work, Self::Clock, Self::Device, Self::Outside, Self::Unknown, Self::Start];

    /// The word for it in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Clock => "clock",
            Self::Device => "device",
            Self::Outside => "outside",
            Self::Unknown => "unknown",
            Self::Start => "start",
        }
    }

    /// What a wait is that keeps its length in a replay; none if the action is no such wait.
    pub(super) fn of(action: Action, event: &Event) -> Option<Self> {
        if !matches!(
            action,
            Action::Sleep { .. } | Action::SleepUntil { .. } | Action::Until { .. }
        ) {
            return None;
        }
        Some(match (event.kind, Wake::from_aux(event.aux)) {
            (Kind::Sleep, _) | (Kind::Block, Wake::Timer) => Self::Clock,
            (Kind::CondWake, _) if event.aux == 1 => Self::Clock,
            (Kind::Io, _) if event.aux == IO_STORAGE => Self::Device,
            (Kind::Io | Kind::Read | Kind::Write, _) | (Kind::Block, Wake::Outside) => {
                Self::Outside
            }
            _ => Self::Unknown,
        })
    }
}

/// A path from the begin: its time in ns, by what it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Path {
    parts: [f64; Part::ALL.len()],
}

impl Path {
    /// All of it, in ns.
    pub fn ns(&self) -> f64 {
        self.parts.iter().sum()
    }

    /// What it consists of, in ns.
    pub fn parts(&self) -> impl Iterator<Item = (Part, f64)> {
        Part::ALL.into_iter().zip(self.parts)
    }

    fn add(&mut self, part: Part, ns: f64) {
        self.parts[part as usize] += ns;
    }

    /// The longer one.
    fn later(self, other: Self) -> Self {
        if other.ns() > self.ns() { other } else { self }
    }
}

/// The longest path through a replay on cores that are `speed` times as fast. `waits` says what the waits at these
/// places of the code are.
pub(super) fn longest(program: &Program, waits: &BTreeMap<u32, Part>, speed: f64) -> Path {
    let mut walk = Walk::new(program, waits, speed);
    while let Some(thread) = walk.ready.pop() {
        walk.follow(thread);
    }
    walk.longest
}

/// A thread: where it is, and how it came there.
#[derive(Clone, Copy, Debug, Default)]
struct Front {
    pc: usize,
    path: Path,
}

struct Walk<'a> {
    program: &'a Program,
    waits: &'a BTreeMap<u32, Part>,
    speed: f64,
    fronts: Vec<Front>,
    /// Threads that go on.
    ready: Vec<usize>,
    /// How what was posted and not taken came about.
    posts: HashMap<ObjectId, VecDeque<Path>>,
    /// Threads that wait at a semaphore or barrier.
    waiting: HashMap<ObjectId, Vec<usize>>,
    /// Until when threads have slept last at their timers.
    expiries: HashMap<ObjectId, Path>,
    longest: Path,
}

impl<'a> Walk<'a> {
    fn new(program: &'a Program, waits: &'a BTreeMap<u32, Part>, speed: f64) -> Self {
        let front = |thread: &ampsched_model::ThreadSpec| {
            let mut front = Front { pc: thread.entry.index(), path: Path::default() };
            front.path.add(Part::Start, thread.start_ns as f64);
            front
        };
        let fronts = program.threads.iter().map(front).collect();
        let begins = |thread: &usize| {
            program.threads[*thread].count > 0 && !program.threads[*thread].is_daemon
        };
        Self {
            program,
            waits,
            speed,
            fronts,
            ready: (0..program.threads.len()).filter(begins).collect(),
            posts: HashMap::new(),
            waiting: HashMap::new(),
            expiries: HashMap::new(),
            longest: Path::default(),
        }
    }

    /// Follows a thread until it waits or ends.
    fn follow(&mut self, thread: usize) {
        loop {
            let pc = self.fronts[thread].pc;
            let part = self.waits.get(&(pc as u32)).copied().unwrap_or(Part::Unknown);
            let path = &mut self.fronts[thread].path;
            match &self.program.code[pc] {
                Op::Run { reference_ns, .. } => {
                    path.add(Part::Work, reference_ns.mean / self.speed)
                }
                Op::Sleep(amount) => path.add(part, amount.mean),
                Op::SleepUntil { at_ns } => path.add(part, (*at_ns as f64 - path.ns()).max(0.0)),
                Op::TimerWait { timer, period_ns, mode: TimerMode::Absolute } => {
                    let expiry = self.expiries.entry(*timer).or_insert(*path);
                    expiry.add(part, *period_ns as f64);
                    *path = path.later(*expiry);
                }
                Op::SemPost(semaphore) => self.post(thread, *semaphore),
                Op::SemWait(semaphore) if !self.takes(thread, *semaphore) => return,
                Op::Barrier(barrier) if !self.passes(thread, *barrier) => return,
                Op::Fork { thread: child } => self.fork(thread, *child as usize),
                Op::Exit => {
                    self.longest = self.longest.later(self.fronts[thread].path);
                    return;
                }
                // Mutexes, yielding, and whatever a replay may consist of besides, cost nothing here.
                _ => {}
            }
            self.fronts[thread].pc += 1;
        }
    }

    /// Daemon threads end with the others, which never wait for them.
    fn fork(&mut self, thread: usize, child: usize) {
        if self.program.threads[child].is_daemon {
            return;
        }
        self.fronts[child].path = self.fronts[thread].path;
        self.ready.push(child);
    }

    fn post(&mut self, thread: usize, semaphore: ObjectId) {
        self.posts.entry(semaphore).or_default().push_back(self.fronts[thread].path);
        self.ready.extend(self.waiting.entry(semaphore).or_default().pop());
    }

    /// Whether a thread finds something at a semaphore. If not, it comes again.
    fn takes(&mut self, thread: usize, semaphore: ObjectId) -> bool {
        let Some(post) = self.posts.get_mut(&semaphore).and_then(VecDeque::pop_front) else {
            self.waiting.entry(semaphore).or_default().push(thread);
            return false;
        };
        self.fronts[thread].path = self.fronts[thread].path.later(post);
        true
    }

    /// Whether a thread is the last one that a barrier has waited for. The others go on with it.
    fn passes(&mut self, thread: usize, barrier: ObjectId) -> bool {
        let ObjectKind::Barrier { parties } = self.program.objects[barrier.index()].kind else {
            return true;
        };
        let met = self.waiting.entry(barrier).or_default();
        met.push(thread);
        if met.len() < parties as usize {
            return false;
        }
        let met = std::mem::take(met);
        let last =
            met.iter().map(|each| self.fronts[*each].path).fold(Path::default(), Path::later);
        for each in met {
            self.fronts[each].path = last;
            if each != thread {
                self.fronts[each].pc += 1;
                self.ready.push(each);
            }
        }
        true
    }
}
