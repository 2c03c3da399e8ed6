//! Threads as sequences of steps.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::acts::{Act, Acts};
use super::joins;
use super::mutexes;
use super::node::{Sample, Step, Sym};
use super::objects::{Objects, What};
use super::own;
use super::segment::Segment;
use crate::Recording;

/// The code of a thread.
pub(super) struct Code {
    pub thread: u32,
    pub parent: Option<u32>,
    pub steps: Vec<Step>,
}

/// The code of all threads that have events.
///
/// What threads of `literal` take out of queues and pools is their own work.
pub(super) fn build(
    recording: &Recording,
    acts: &Acts,
    objects: &mut Objects,
    literal: &HashSet<u32>,
) -> Vec<Code> {
    let mutexes = mutexes::objects(recording, acts, objects);
    let threads = (0..recording.threads.len() as u32)
        .filter(|thread| !recording.threads[*thread as usize].events.is_empty());
    let mut codes: Vec<Code> = threads
        .map(|thread| Code {
            thread,
            parent: acts.parent[thread as usize],
            steps: Walk::new(recording, acts, thread, &mutexes).run(),
        })
        .collect();
    let mut demoted = queues_in_circles(&codes);
    for queue in &demoted {
        objects.list[*queue as usize].what = What::Semaphore { initial: 0, fan: 1 };
        objects.note("A queue whose consumers also feed its producers is a semaphore.");
    }
    own::leave_pools(&mut codes, objects, literal);
    demoted.extend(own::leave_queues(&codes, objects, literal));
    for code in &mut codes {
        demote(&mut code.steps, &demoted);
        let steps = std::mem::take(&mut code.steps);
        code.steps = collapse(steps);
    }
    close(&mut codes);
    joins::join(&mut codes, objects);
    codes
}

/// Walks over the events of a thread.
struct Walk<'a> {
    recording: &'a Recording,
    acts: &'a Acts,
    thread: u32,
    mutexes: &'a HashMap<u32, Option<u32>>,
    segment: Segment,
    /// Work since the last visit of a mutex, in ns.
    gap: f64,
    /// The mutex that it is in, recorded and in the program, and the work since.
    inside: Option<(u32, u32, f64)>,
    steps: Vec<Step>,
}

impl<'a> Walk<'a> {
    fn new(
        recording: &'a Recording,
        acts: &'a Acts,
        thread: u32,
        mutexes: &'a HashMap<u32, Option<u32>>,
    ) -> Self {
        let segment = Segment::default();
        Self {
            recording,
            acts,
            thread,
            mutexes,
            segment,
            gap: 0.0,
            inside: None,
            steps: Vec::new(),
        }
    }

    fn run(mut self) -> Vec<Step> {
        let index = self.thread as usize;
        let mut extra = self.acts.extra[index].iter().peekable();
        for (at, event) in self.recording.threads[index].events.iter().enumerate() {
            self.work(self.acts.work_ns(index, at, event));
            let place = at as u32 * 2;
            while let Some((_, sym)) = extra.next_if(|(one, _)| *one <= place) {
                self.step(*sym, 0.0);
            }
            match self.acts.acts[index][at] {
                Act::Enter(mutex) => self.enter(mutex),
                Act::Leave(mutex) => self.leave(Some(mutex)),
                Act::Sym(sym) => {
                    // Until they have got their time, sleepers sleep; the rest of a wait is waiting for a core.
                    let is_timed = matches!(sym, Sym::Sleep | Sym::Io(_));
                    self.step(sym, if is_timed { event.wait_ns as f64 } else { 0.0 });
                }
                Act::None | Act::Chunk(_) => {}
            }
            while let Some((_, sym)) = extra.next_if(|(one, _)| *one <= place + 1) {
                self.step(*sym, 0.0);
            }
        }
        self.step(Sym::End, 0.0);
        self.steps
    }

    fn work(&mut self, work_ns: f64) {
        match &mut self.inside {
            Some((_, _, hold)) => *hold += work_ns,
            None => {
                self.segment.work += work_ns;
                self.gap += work_ns;
            }
        }
    }

    fn enter(&mut self, mutex: u32) {
        if let (None, Some(Some(object))) = (self.inside, self.mutexes.get(&mutex)) {
            self.inside = Some((mutex, *object, 0.0));
        }
    }

    /// Ends the visit of a mutex, or whatever visit there is.
    fn leave(&mut self, mutex: Option<u32>) {
        if let Some((one, object, hold)) = self.inside {
            if mutex.is_none_or(|mutex| mutex == one) {
                self.segment.unit(object).visit(self.gap, hold);
                self.gap = 0.0;
                self.inside = None;
            }
        }
    }

    fn step(&mut self, sym: Sym, time_ns: f64) {
        self.leave(None);
        self.gap = 0.0;
        let segment = std::mem::take(&mut self.segment);
        self.steps.push(Step::new(sym, Sample { thread: self.thread, segment, time_ns }));
    }
}

/// Queues that are fed, directly or not, by those who consume them; and those whose takes are mixed with others'.
fn queues_in_circles(codes: &[Code]) -> HashSet<u32> {
    let mut edges: HashSet<(u32, u32)> = HashSet::new();
    let mut consumers: HashMap<u32, usize> = HashMap::new();
    let mut mixed = HashSet::new();
    for code in codes {
        let mut pops: Vec<(u32, usize, usize)> = Vec::new();
        let mut pushes = BTreeSet::new();
        for (at, step) in code.steps.iter().enumerate() {
            match step.sym {
                Sym::Pop(queue) => match pops.iter_mut().find(|(one, _, _)| *one == queue) {
                    Some((_, _, last)) => *last = at,
                    None => pops.push((queue, at, at)),
                },
                Sym::Push(queue) => {
                    pushes.insert(queue);
                }
                _ => {}
            }
        }
        for (number, (queue, first, _)) in pops.iter().enumerate() {
            *consumers.entry(*queue).or_default() += 1;
            edges.extend(pushes.iter().map(|push| (*queue, *push)));
            if pops[..number].iter().any(|(_, _, last)| last > first) {
                mixed.insert(*queue);
            }
        }
    }
    // Queues from which one comes back: by repeated extension of the ways.
    let mut ways = edges;
    loop {
        let further: HashSet<(u32, u32)> = ways
            .iter()
            .flat_map(|(from, by)| {
                let next = ways.iter().filter(move |(one, _)| one == by);
                next.map(move |(_, to)| (*from, *to))
            })
            .collect();
        let before = ways.len();
        ways.extend(further);
        if ways.len() == before {
            break;
        }
    }
    let circle: Vec<u32> = ways.iter().filter(|(a, b)| a == b).map(|(a, _)| *a).collect();
    let single: Vec<u32> = circle.iter().filter(|queue| consumers[*queue] == 1).copied().collect();
    mixed.extend(if single.is_empty() { circle } else { single });
    mixed
}

/// Makes takes and puts of these queues waits and posts.
fn demote(steps: &mut Vec<Step>, demoted: &HashSet<u32>) {
    let mut carried = Segment::default();
    steps.retain_mut(|step| {
        let is_out = matches!(
            step.sym, Sym::PopEnd(queue) | Sym::Close(queue) if demoted.contains(&queue)
        );
        if is_out {
            carried.add(&step.samples[0].segment);
            return false;
        }
        step.samples[0].segment.add(&std::mem::take(&mut carried));
        step.sym = match step.sym {
            Sym::Push(queue) if demoted.contains(&queue) => Sym::SemPost(queue),
            Sym::Pop(queue) if demoted.contains(&queue) => Sym::SemWait(queue),
            sym => sym,
        };
        true
    });
}

/// Makes one step of all takes from a queue or a pool; what lies between them is the work on items.
fn collapse(steps: Vec<Step>) -> Vec<Step> {
    let mut found = Vec::new();
    let mut rest = steps.into_iter().peekable();
    while let Some(step) = rest.next() {
        let (sym, end) = match step.sym {
            Sym::Take(pool) | Sym::TakeEnd(pool) => (Sym::Dynamic(pool), Sym::TakeEnd(pool)),
            Sym::Pop(queue) | Sym::PopEnd(queue) => (Sym::Each(queue), Sym::PopEnd(queue)),
            _ => {
                found.push(step);
                continue;
            }
        };
        let again = step.sym;
        let mut each = Step { sym, ..step };
        if again != end {
            let tail: Vec<Step> = rest.by_ref().collect();
            let (mut items, left) = items(tail, again, end);
            let (starts, ends) = lives(&mut items, each.samples[0].thread);
            found.extend(starts);
            each.items = items.into_iter().map(|item| collapse(without_closes(item))).collect();
            rest = ends.into_iter().chain(left).collect::<Vec<_>>().into_iter().peekable();
        }
        found.push(each);
    }
    found
}

/// Takes starts and ends of threads out of items: how many there are does not depend on the items.
fn lives(items: &mut [Vec<Step>], thread: u32) -> (Vec<Step>, Vec<Step>) {
    let (mut starts, mut ends) = (Vec::new(), Vec::new());
    for item in items {
        let mut out: HashSet<usize> = HashSet::new();
        for (at, step) in item.iter().enumerate() {
            let list = match step.sym {
                Sym::Fork(_) => &mut starts,
                Sym::Join(_) => &mut ends,
                _ => continue,
            };
            let sample = Sample { thread, segment: Segment::default(), time_ns: 0.0 };
            list.push(Step::new(step.sym, sample));
            out.insert(at);
        }
        remove(item, &out);
    }
    (starts, ends)
}

/// Steps without ends of pushes: no item ends them.
fn without_closes(mut steps: Vec<Step>) -> Vec<Step> {
    let is_close = |place: &usize| matches!(steps[*place].sym, Sym::Close(_));
    let out: HashSet<usize> = (0..steps.len()).filter(is_close).collect();
    remove(&mut steps, &out);
    steps
}

/// The work on items up to the end of the takes, and what follows.
fn items(tail: Vec<Step>, again: Sym, end: Sym) -> (Vec<Vec<Step>>, Vec<Step>) {
    let is_end = tail.iter().position(|step| step.sym == end);
    let last_again = tail.iter().rposition(|step| step.sym == again);
    let mut done: Vec<Vec<Step>> = Vec::new();
    let mut item = Vec::new();
    let mut rest = tail.into_iter().enumerate();
    for (at, mut step) in rest.by_ref() {
        if step.sym == again || step.sym == end {
            let is_last = step.sym == end;
            step.sym = Sym::End;
            item.push(step);
            done.push(std::mem::take(&mut item));
            if is_last {
                break;
            }
            continue;
        }
        let is_open = is_end.is_none() && last_again.is_none_or(|last| at > last);
        if is_open && !continues(&item, &step, done.first()) {
            if !item.is_empty() || done.is_empty() {
                done.push(std::mem::take(&mut item));
            }
            let left = std::iter::once(step).chain(rest.map(|(_, step)| step)).collect();
            return (done, left);
        }
        item.push(step);
    }
    if !item.is_empty() {
        done.push(item);
    }
    (done, rest.map(|(_, step)| step).collect())
}

/// Whether a step belongs to the last item, whose end nothing tells: as it is in the first one.
fn continues(item: &[Step], step: &Step, first: Option<&Vec<Step>>) -> bool {
    let Some(first) = first else { return !matches!(step.sym, Sym::End | Sym::Barrier(_)) };
    step.sym != Sym::End && first.get(item.len()).is_some_and(|like| like.sym == step.sym)
}

/// Adds the end of each queue's pushes behind the last of them.
fn close(codes: &mut [Code]) {
    codes.iter_mut().for_each(|code| flush(&mut code.steps));
    let mut closed_behind: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for code in codes.iter() {
        for step in &code.steps {
            if let Sym::Each(queue) = step.sym {
                closed_behind.entry(queue).or_default().extend(pushes(step));
            }
        }
    }
    for code in codes {
        let mut last: BTreeMap<u32, usize> = BTreeMap::new();
        for (at, step) in code.steps.iter().enumerate() {
            let as_others = match step.sym {
                Sym::Each(queue) => closed_behind[&queue].clone(),
                _ => BTreeSet::new(),
            };
            for queue in pushes(step).into_iter().chain(as_others) {
                last.insert(queue, at);
            }
        }
        let mut ends: Vec<(usize, u32)> = last.into_iter().map(|(queue, at)| (at, queue)).collect();
        ends.sort_unstable();
        for (at, queue) in ends.into_iter().rev() {
            if !closes_behind(&mut code.steps, at, queue) {
                let segment = Segment::default();
                let sample = Sample { thread: code.thread, segment, time_ns: 0.0 };
                code.steps.insert(at + 1, Step::new(Sym::Close(queue), sample));
            }
        }
    }
}

/// Whether a queue is closed behind that step, once; closing it before makes no sense, and is left out.
fn closes_behind(steps: &mut Vec<Step>, at: usize, queue: u32) -> bool {
    let places = (0..steps.len()).filter(|place| steps[*place].sym == Sym::Close(queue));
    let mut places: Vec<usize> = places.collect();
    let is_closed = places.last().is_some_and(|last| *last > at);
    if is_closed {
        places.pop();
    }
    // What is taken out before `at` would move it.
    let out: HashSet<usize> = places.into_iter().filter(|place| *place > at).collect();
    remove(steps, &out);
    is_closed
}

/// What is pushed when the items have ended was collected while they were there: it belongs to the last of them.
fn flush(steps: &mut Vec<Step>) {
    let mut at = 0;
    while at < steps.len() {
        let mut next = at + 1;
        while matches!(steps[at].sym, Sym::Each(_)) && !steps[at].items.is_empty() {
            match steps.get(next).map(|step| step.sym) {
                Some(Sym::Close(_)) => next += 1,
                Some(Sym::Push(_)) => {
                    let push = steps.remove(next);
                    if let Some(item) = steps[at].items.last_mut() {
                        let place = item.len().saturating_sub(1);
                        item.insert(place, push);
                    }
                }
                _ => break,
            }
        }
        at += 1;
    }
}

/// Queues into which a step pushes, its items included.
fn pushes(step: &Step) -> BTreeSet<u32> {
    let mut found: BTreeSet<u32> = step.items.iter().flatten().flat_map(pushes).collect();
    if let Sym::Push(queue) = step.sym {
        found.insert(queue);
    }
    found
}

/// Removes steps; their work comes before the next one.
pub(super) fn remove(steps: &mut Vec<Step>, out: &HashSet<usize>) {
    let mut carried = Segment::default();
    let mut at = 0;
    steps.retain_mut(|step| {
        at += 1;
        if out.contains(&(at - 1)) {
            carried.add(&step.samples[0].segment);
            return false;
        }
        step.samples[0].segment.add(&std::mem::take(&mut carried));
        true
    });
}
