//! Waits for the ends of threads: of all children at once, or by a semaphore.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::items::{Code, remove};
use super::node::{Sample, Step, Sym};
use super::objects::{Objects, What};
use super::segment::Segment;

/// Children that do the same differ by less than this factor in their work, or each is waited for by itself.
const WORK_FACTOR: f64 = 4.0;

/// Waits of a thread that follow each other, by place.
struct Run {
    code: usize,
    places: Vec<usize>,
    /// Whether no child is left.
    is_all: bool,
}

/// Makes waits for ends what they are in a program. Children of one thread that do the same are waited for by their
/// number, as soon as one of them is waited for while others go on.
pub(super) fn join(codes: &mut [Code], objects: &mut Objects) {
    let kinds = kinds(codes);
    let runs = runs(codes);
    let kind = |step: &Step| match step.sym {
        Sym::Join(child) => kinds.get(&child).copied(),
        _ => None,
    };
    let mut semaphores: BTreeMap<usize, (u32, usize)> = BTreeMap::new();
    for run in runs.iter().filter(|run| !run.is_all) {
        let steps = run.places.iter().map(|place| &codes[run.code].steps[*place]);
        for kind in steps.filter_map(kind) {
            let what = What::Semaphore { initial: 0, fan: 1 };
            semaphores.entry(kind).or_insert_with(|| (objects.add(what, ""), 0));
        }
    }
    for run in &runs {
        let steps = &mut codes[run.code].steps;
        for place in &run.places {
            let semaphore = kind(&steps[*place]).and_then(|kind| semaphores.get_mut(&kind));
            if let Some((semaphore, count)) = semaphore {
                *count += 1;
                steps[*place].sym = Sym::SemWait(*semaphore);
                // These waits are alike whatever is done between them.
                steps[*place].hint = Some(0.0);
            }
        }
        let rest = run.places.iter().rev().find(|at| matches!(steps[**at].sym, Sym::Join(_)));
        if let Some(last) = rest.filter(|_| run.is_all) {
            steps[*last].sym = Sym::JoinAll;
        }
    }
    for code in codes.iter_mut() {
        let is_out = |place: &usize| matches!(code.steps[*place].sym, Sym::Join(_));
        let out: HashSet<usize> = (0..code.steps.len()).filter(is_out).collect();
        remove(&mut code.steps, &out);
        let semaphore = kinds.get(&code.thread).and_then(|kind| semaphores.get(kind));
        if let Some((semaphore, _)) = semaphore {
            tell_the_end(code, *semaphore);
        }
    }
    for (semaphore, count) in semaphores.values() {
        objects.list[*semaphore as usize].was = format!("end of {count} threads");
    }
}

/// Posts a semaphore at the end of a thread.
fn tell_the_end(code: &mut Code, semaphore: u32) {
    let sample = Sample { thread: code.thread, segment: Segment::default(), time_ns: 0.0 };
    let end = code.steps.len() - 1;
    let mut post = Step::new(Sym::SemPost(semaphore), sample);
    std::mem::swap(&mut post.samples[0].segment, &mut code.steps[end].samples[0].segment);
    code.steps.insert(end, post);
}

/// Waits for children that run, each at its first time.
fn runs(codes: &[Code]) -> Vec<Run> {
    let mut found = Vec::new();
    for (number, code) in codes.iter().enumerate() {
        let mut open: BTreeSet<u32> = BTreeSet::new();
        let mut places: Vec<usize> = Vec::new();
        for (at, step) in code.steps.iter().enumerate() {
            match step.sym {
                Sym::Fork(child) => {
                    open.insert(child);
                }
                Sym::Join(child) if open.remove(&child) => places.push(at),
                _ => {}
            }
            let next = code.steps.get(at + 1).map(|step| step.sym);
            if !places.is_empty() && !matches!(next, Some(Sym::Join(_))) {
                let places = std::mem::take(&mut places);
                found.push(Run { code: number, places, is_all: open.is_empty() });
            }
        }
    }
    found
}

/// The kind of each thread: children of one thread that do the same are of one kind.
fn kinds(codes: &[Code]) -> HashMap<u32, usize> {
    type Key = (Option<u32>, u64);
    let mut alike: BTreeMap<Key, Vec<(u32, f64)>> = BTreeMap::new();
    for code in codes {
        let mut hasher = DefaultHasher::new();
        code.steps.iter().for_each(|step| step.sym.hash(&mut hasher));
        let work = code.steps.iter().map(Step::work).sum();
        alike.entry((code.parent, hasher.finish())).or_default().push((code.thread, work));
    }
    let mut found = HashMap::new();
    let mut next = 0;
    for threads in alike.into_values() {
        let least = threads.iter().map(|(_, work)| *work).fold(f64::INFINITY, f64::min);
        let is_one = threads.iter().all(|(_, work)| *work <= WORK_FACTOR * least);
        for (thread, _) in threads {
            found.insert(thread, next);
            next += usize::from(!is_one);
        }
        next += usize::from(is_one);
    }
    found
}
