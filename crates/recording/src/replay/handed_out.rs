//! Work that is handed out while it is done: who is free takes the next chunk or task of OpenMP, and a process that
//! runs several programs at a time starts the next one as soon as any of them ends.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::Place;
use super::build::{Action, Edge, Plan, Share};
use crate::{Kind, Recording, Thread, Wake};

/// Where chunks are taken: the process, its region, and how many barriers its threads have passed since its begin.
type Loop = (u32, u32, u32);

/// Instead of the barriers: where a thread has ended its share and waits for the others, it takes tasks.
const AT_THE_END: u32 = u32::MAX;

/// Chunks or tasks that a thread took one after the other, or a share in which it took none.
#[derive(Clone, Copy, Debug)]
struct Run {
    thread: u32,
    /// The first one's event, or the begin of the share.
    from: u32,
    /// The event up to which there is work of the last one.
    to: u32,
    chunks: u32,
}

impl Run {
    fn places(&self) -> (Place, Place) {
        let Self { thread, from, to, .. } = *self;
        (Place { thread, event: from }, Place { thread, event: to })
    }
}

/// Chunks of a loop, and tasks of a region, are taken by all of its threads piece by piece. Where a thread does
/// anything else between two of them, each stays with who took it. Returns in how many loops.
pub(super) fn share_chunks(recording: &Recording, plan: &mut Plan) -> usize {
    let mut loops: BTreeMap<Loop, Vec<Run>> = BTreeMap::new();
    for (thread, recorded) in (0..).zip(&recording.threads) {
        for (which, run) in runs(thread, recorded) {
            loops.entry(which).or_default().push(run);
        }
    }
    let mut shared = 0;
    for (number, runs) in (0..).zip(loops.into_values()) {
        let threads: HashSet<u32> = runs.iter().map(|run| run.thread).collect();
        let chunks = runs.iter().map(|run| run.chunks).sum();
        if chunks == 0 || threads.len() < runs.len() {
            continue;
        }
        shared += 1;
        for (from, mut to) in runs.iter().map(Run::places) {
            // Behind its last task a worker waits: how long that task was is not known.
            if plan.spins.contains(&to) {
                to.event -= 1;
            }
            if from < to {
                plan.chunks.insert(from, Edge::Begin);
                plan.chunks.insert(to, Edge::End(Share::Loop { number, chunks }));
            }
        }
    }
    shared
}

/// What a thread took, and shares of regions without barriers in which it took nothing.
fn runs(thread: u32, recorded: &Thread) -> Vec<(Loop, Run)> {
    let mut found = Vec::new();
    let mut which: Option<Loop> = None;
    // Where its share of the region has begun, as long as it has taken nothing there.
    let mut idle_from: Option<u32> = None;
    let mut open: Option<Run> = None;
    for (event, what) in (0..).zip(&recorded.events) {
        if what.kind == Kind::OmpChunk {
            idle_from = None;
            let run = open.get_or_insert(Run { thread, from: event, to: event, chunks: 0 });
            run.chunks += 1;
            continue;
        }
        if let (Some(run), Some(which)) = (open.take(), which) {
            found.push((which, Run { to: event, ..run }));
        }
        match (what.kind, which) {
            (Kind::OmpBegin, _) => {
                which = Some((recorded.process, what.object, 0));
                idle_from = Some(event);
            }
            (Kind::OmpBarrier, Some((process, region, barriers))) => {
                which = Some((process, region, barriers.saturating_add(1)));
                idle_from = None;
            }
            (Kind::OmpEnd, Some((process, region, barriers))) => {
                if let Some(from) = idle_from.take() {
                    let run = Run { thread, from, to: event, chunks: 0 };
                    found.push(((process, region, barriers), run));
                }
                which = Some((process, region, AT_THE_END));
            }
            (Kind::OmpJoin, _) => which = None,
            _ => {}
        }
    }
    found
}

/// Waits of a process that runs several programs at a time, by who waits.
#[derive(Debug, Default)]
pub(super) struct Starters {
    /// Waits that are not for that very program.
    waits: HashSet<Place>,
    actions: Vec<(Place, Action)>,
    ties: Vec<(Place, Place)>,
}

impl Starters {
    /// Whether this wait for the end of a program is for that of any.
    pub fn waits_for_any(&self, wait: Place) -> bool {
        self.waits.contains(&wait)
    }

    /// Hands over what they do. Returns how many programs are waited for so.
    pub fn act(self, plan: &mut Plan) -> usize {
        let programs = self.ties.len();
        self.actions.into_iter().for_each(|(place, action)| plan.act(place, action));
        self.ties.into_iter().for_each(|(from, to)| plan.tie(from, to));
        programs
    }
}

/// Threads that start programs while others of theirs run, as `make -j` and `xargs -P` do: what they wait for before
/// that is the end of any of them. Until no more is started, they wait for as many ends as they had waited for, and
/// never run more programs at a time; in the end for all.
pub(super) fn starters(recording: &Recording) -> Starters {
    let mut found = Starters::default();
    let mut counter = 0;
    for (thread, recorded) in (0..).zip(&recording.threads) {
        for batch in batches(recording, recorded) {
            if batch.hands_out() {
                batch.write(recording, thread, counter, &mut found);
                counter += 1;
            }
        }
    }
    found
}

/// What a thread does with programs that it starts, from when it has none until it has none again.
#[derive(Debug, Default)]
struct Batch {
    steps: Vec<(u32, Step)>,
    children: BTreeSet<u32>,
    most: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Start,
    /// It has seen that one has ended, and whether it has waited for that.
    End {
        has_waited: bool,
        /// Where the kernel tells of that wait.
        block: Option<u32>,
    },
}

fn batches(recording: &Recording, recorded: &Thread) -> Vec<Batch> {
    let has_ended = |child: u32, at_ns: u64| {
        let child = recording.threads.get(child as usize);
        child
            .filter(|child| child.process != recorded.process)
            .is_some_and(|child| child.ends_by(at_ns))
    };
    // Programs whose ends it sees: clocks that differ make some seem to end later.
    let joins = recorded.events.iter().filter(|event| event.kind == Kind::Join);
    let joined: HashSet<u32> = joins
        .filter(|event| has_ended(event.object, event.at_ns))
        .map(|event| event.object)
        .collect();
    let mut found = Vec::new();
    let mut batch = Batch::default();
    let mut running: HashSet<u32> = HashSet::new();
    let mut woken_by: Option<u32> = None;
    for (place, event) in (0..).zip(&recorded.events) {
        let child = event.object;
        let last_waker = woken_by.take();
        match event.kind {
            Kind::Create if joined.contains(&child) => {
                running.insert(child);
                batch.children.insert(child);
                batch.most = batch.most.max(running.len());
                batch.steps.push((place, Step::Start));
            }
            Kind::Join if has_ended(child, event.at_ns) && running.remove(&child) => {
                let block = last_waker.filter(|waker| *waker == child).map(|_| place - 1);
                let has_waited = event.wait_ns > 0 || block.is_some();
                batch.steps.push((place, Step::End { has_waited, block }));
                if running.is_empty() {
                    found.push(std::mem::take(&mut batch));
                }
            }
            Kind::Block => {
                if let Wake::Thread(waker) = Wake::from_aux(event.aux) {
                    woken_by = Some(waker);
                }
            }
            _ => {}
        }
    }
    found
}

impl Batch {
    /// Whether it starts one after another has ended, while a third one runs.
    fn hands_out(&self) -> bool {
        let first_end = self.steps.iter().position(|(_, step)| *step != Step::Start);
        let last_start = self.steps.iter().rposition(|(_, step)| *step == Step::Start);
        self.most > 1 && first_end < last_start
    }

    fn write(&self, recording: &Recording, thread: u32, counter: u32, found: &mut Starters) {
        let (mut started, mut ended, mut needed, mut taken) = (0_usize, 0, 0, 0);
        for (event, step) in &self.steps {
            let place = Place { thread, event: *event };
            match step {
                Step::Start => {
                    started += 1;
                    needed = needed.max(started.saturating_sub(self.most));
                }
                Step::End { has_waited, block } => {
                    ended += 1;
                    found.waits.insert(place);
                    found.waits.extend(block.map(|event| Place { thread, event }));
                    // One that had ended by itself was not waited for.
                    if *has_waited {
                        needed = ended;
                    }
                }
            }
            for _ in taken..needed {
                found.actions.push((place, Action::TakeEnd { counter }));
            }
            taken = taken.max(needed);
        }
        let Some((last, _)) = self.steps.last() else { return };
        for child in &self.children {
            let events = &recording.threads[*child as usize].events;
            let end = Place { thread: *child, event: events.len() as u32 - 1 };
            found.actions.push((end, Action::CountEnd { counter }));
            found.ties.push((end, Place { thread, event: *last }));
        }
    }
}
