//! Members of a crew that cannot stand for one another: one waits for what a certain other one has done so far, as in
//! wavefronts, or takes what others of them have made, as the last stage of a pipeline.
//!
//! What threads take from a queue or a counter, any of them may take: whoever tells of something there, and whoever
//! waits for it, may change places. It is otherwise at objects that tell *one* thread's progress: as long as it has a
//! piece of work in hand it alone tells there, again and again with work in between, and never waits there, while
//! others look whether it has come far enough. And at a queue between stages: some only put in, others only take out.

use std::collections::{BTreeMap, BTreeSet};

use super::acts::Acts;
use super::crews::{Crew, WORK_SHARE_MIN};
use super::visits::{Visit, Visits};
use crate::{Event, Kind, Recording, Thread};

/// Fewest times in a row, with work in between, that one thread tells of its progress: fewer may be chance. If each of
/// two threads tells as often, a third of all tells are in rows so long.
const IN_A_ROW_MIN: usize = 4;
/// Of an object that tells progress, at least this share of all tells are in such rows.
const PROGRESS_SHARE_MIN: f64 = 0.75;
/// Less than this share of the mean work between two tells is none: several tell of one thing.
const PIECE_SHARE_MIN: f64 = 0.25;
/// Threads that come to an object less often may do only one thing there by chance.
const COMES_MIN: usize = 4;
/// Who puts in tells with at least this share of the times that it comes: not if somebody is known to be awake.
const PUTS_IN_SHARE_MIN: f64 = 0.9;

/// A thread comes to an object by which threads wait for one another: a condition with its mutex, or a semaphore.
struct Come {
    at_ns: u64,
    thread: u32,
    event: u32,
    tells: bool,
    waits: bool,
}

/// What comes to an object, by time.
type Comes = Vec<Come>;

/// Who tells, and who waits for that.
type Tie = (u32, u32);

/// The members that can stand for one another; none if there are fewer than two, or too little work is theirs.
pub(super) fn one_stage(recording: &Recording, acts: &Acts, crew: Crew) -> Option<Crew> {
    let ties = ties(recording, acts, &crew.members);
    if ties.is_empty() {
        return Some(crew);
    }
    let work = |thread: u32| recording.threads[thread as usize].work_ns();
    let (members, others) = untied(&crew.members, &ties, work);
    // Another stage is the same to all of them. If it is not, each one has its own place.
    let is_stage = |other: &u32| {
        is_one(members.iter().map(|member| ties.contains(&(*member, *other))))
            && is_one(members.iter().map(|member| ties.contains(&(*other, *member))))
    };
    let all: u64 = recording.threads.iter().map(Thread::work_ns).sum();
    let own: u64 = members.iter().map(|member| work(*member)).sum();
    let is_much = own as f64 >= WORK_SHARE_MIN * all as f64;
    let are_one = members.len() > 1 && is_much && others.iter().all(is_stage);
    are_one.then_some(Crew { members, ..crew })
}

/// Whether all of them are the same.
fn is_one(mut values: impl Iterator<Item = bool>) -> bool {
    let first = values.next();
    values.all(|value| Some(value) == first)
}

/// Members without ties, and the others: those with most ties, of such those that do least.
fn untied(
    members: &[u32],
    ties: &BTreeSet<Tie>,
    work: impl Fn(u32) -> u64,
) -> (Vec<u32>, Vec<u32>) {
    let (mut kept, mut others) = (members.to_vec(), Vec::new());
    loop {
        let partners = |one: u32| {
            let is_tied = |two: &&u32| ties.contains(&(one, **two)) || ties.contains(&(**two, one));
            kept.iter().filter(is_tied).count()
        };
        let key = |one: &u32| (partners(*one), std::cmp::Reverse(work(*one)));
        let most = kept.iter().copied().max_by_key(key).filter(|one| partners(*one) > 0);
        let Some(most) = most else { return (kept, others) };
        kept.retain(|one| *one != most);
        others.push(most);
    }
}

/// Members between which something is told one way only.
fn ties(recording: &Recording, acts: &Acts, members: &[u32]) -> BTreeSet<Tie> {
    let works: Vec<Vec<f64>> = recording.threads.iter().map(sums).collect();
    let is_member = |come: &Come| members.contains(&come.thread);
    let (mut checks, mut queues, mut owners) = (BTreeMap::new(), Vec::new(), BTreeSet::new());
    for comes in objects(recording, acts) {
        // Somebody waits for others; who never comes without telling keeps nobody from going on.
        if !comes.iter().any(|come| come.waits && is_member(come)) {
            continue;
        }
        let owner = owner(&comes, members);
        match progress(&comes, members, &works).filter(|_| owner.is_none()) {
            Some(found) => found.into_iter().for_each(|tie| *checks.entry(tie).or_default() += 1),
            None => queues.extend(sides(&comes, members)),
        }
        owners.extend(owner);
    }
    let often = checks.into_iter().filter(|(_, count): &(Tie, usize)| *count >= COMES_MIN);
    let mut found: BTreeSet<Tie> = often.map(|(tie, _)| tie).collect();
    found.extend(between_stages(&queues, &owners));
    found
}

/// Per event the work of its thread up to it, in ns.
fn sums(thread: &Thread) -> Vec<f64> {
    let mut sum = 0.0;
    let add = |event: &Event| {
        sum += event.work_ns as f64;
        sum
    };
    thread.events.iter().map(add).collect()
}

/// Conditions with their mutexes, and semaphores.
fn objects(recording: &Recording, acts: &Acts) -> Vec<Comes> {
    let visits = Visits::new(recording, acts);
    let mut found = Vec::new();
    for (mutex, all) in (0..).zip(&visits.by_mutex) {
        for condition in visits.conditions_of(mutex) {
            let come = |visit: &Visit| Come {
                at_ns: visit.end_ns,
                thread: visit.thread,
                event: visit.last,
                tells: [&visit.signals, &visit.broadcasts]
                    .iter()
                    .any(|all| all.contains(&condition)),
                waits: visit.waits.contains(&condition),
            };
            found.push(all.iter().map(come).collect());
        }
    }
    found.extend(semaphores(recording));
    found.iter_mut().for_each(|comes: &mut Comes| comes.sort_by_key(|come| come.at_ns));
    found
}

fn semaphores(recording: &Recording) -> impl Iterator<Item = Comes> {
    let mut found: BTreeMap<u32, Comes> = BTreeMap::new();
    for (thread, recorded) in (0..).zip(&recording.threads) {
        for (at, event) in (0..).zip(&recorded.events) {
            let (tells, waits) = (event.kind == Kind::SemPost, event.kind == Kind::SemWait);
            if tells || waits {
                let come = Come { at_ns: event.at_ns, thread, event: at, tells, waits };
                found.entry(event.object).or_default().push(come);
            }
        }
    }
    found.into_values()
}

/// If an object tells progress: which members have looked for that of which others, each time.
fn progress(comes: &[Come], members: &[u32], works: &[Vec<f64>]) -> Option<Vec<Tie>> {
    let mut found = Vec::new();
    let (mut in_rows, mut all) = (0, 0);
    for row in rows(comes) {
        let (tells, looks): (Vec<&Come>, Vec<&Come>) = row.iter().partition(|come| come.tells);
        all += tells.len();
        let Some(teller) = tells.first().map(|come| come.thread) else { continue };
        let is_other = |one: &u32| *one != teller && members.contains(one);
        let others = looks.iter().map(|come| come.thread).filter(is_other);
        let ties: Vec<Tie> = others.map(|other| (teller, other)).collect();
        let is_long = pieces(&tells, &works[teller as usize]) >= IN_A_ROW_MIN;
        if is_long && !ties.is_empty() && members.contains(&teller) {
            in_rows += tells.len();
            found.extend(ties);
        }
    }
    (in_rows > 0 && in_rows as f64 >= PROGRESS_SHARE_MIN * all as f64).then_some(found)
}

/// Whose object it is, if one member alone ever waits there, for several others: not that of who tells.
fn owner(comes: &[Come], members: &[u32]) -> Option<u32> {
    let own = comes.iter().filter(|come| members.contains(&come.thread));
    let (tells, looks): (Vec<&Come>, Vec<&Come>) = own.partition(|come| come.tells);
    let threads =
        |comes: Vec<&Come>| comes.iter().map(|come| come.thread).collect::<BTreeSet<u32>>();
    let looks = threads(looks);
    looks.first().copied().filter(|_| looks.len() == 1 && threads(tells).len() > 1)
}

/// Cuts what comes where another thread tells than before, or the one that told comes for something else.
fn rows(comes: &[Come]) -> Vec<&[Come]> {
    let mut found = Vec::new();
    let (mut from, mut teller) = (0, None);
    for (at, come) in comes.iter().enumerate() {
        let is_other = match teller {
            Some(teller) => come.tells != (come.thread == teller),
            None => false,
        };
        if is_other {
            found.push(&comes[from..at]);
            (from, teller) = (at, None);
        }
        if come.tells {
            teller = Some(come.thread);
        }
    }
    found.push(&comes[from..]);
    found
}

/// How many pieces of work a thread has told of.
fn pieces(tells: &[&Come], works: &[f64]) -> usize {
    let at = |come: &&Come| works[come.event as usize];
    let (Some(first), Some(last)) = (tells.first().map(at), tells.last().map(at)) else { return 0 };
    let least = (PIECE_SHARE_MIN * (last - first) / tells.len() as f64).max(1.0);
    let (mut count, mut told) = (1, first);
    for work in tells.iter().map(at) {
        if work - told >= least {
            (count, told) = (count + 1, work);
        }
    }
    count
}

/// Members that only put in at an object, and members that only take out.
struct Sides {
    put_in: Vec<u32>,
    take_out: Vec<u32>,
}

/// The sides of an object to which members come; none if one of them does both, or comes rarely.
fn sides(comes: &[Come], members: &[u32]) -> Option<Sides> {
    let mut counts: BTreeMap<u32, (usize, usize)> = BTreeMap::new();
    for come in comes.iter().filter(|come| members.contains(&come.thread)) {
        let (tells, all) = counts.entry(come.thread).or_default();
        *tells += usize::from(come.tells);
        *all += 1;
    }
    let mut found = Sides { put_in: Vec::new(), take_out: Vec::new() };
    for (thread, (tells, all)) in counts {
        let is_sure = all >= COMES_MIN;
        if is_sure && tells as f64 >= PUTS_IN_SHARE_MIN * all as f64 {
            found.put_in.push(thread);
        } else if is_sure && tells == 0 {
            found.take_out.push(thread);
        } else {
            return None;
        }
    }
    (!found.put_in.is_empty() && !found.take_out.is_empty()).then_some(found)
}

/// Ties between stages. Where each waits at an object of its own and is told there by the others, they are no stages:
/// so threads sleep that have nothing to do.
fn between_stages(queues: &[Sides], owners: &BTreeSet<u32>) -> Vec<Tie> {
    let is_sleep = |sides: &&Sides| {
        sides.take_out.len() == 1 && sides.put_in.iter().all(|one| owners.contains(one))
    };
    let stages = queues.iter().filter(|sides| !is_sleep(sides));
    let pairs = |sides: &Sides| {
        let Sides { put_in, take_out } = sides;
        let with = |one: &u32| take_out.iter().map(|two| (*one, *two)).collect::<Vec<Tie>>();
        put_in.iter().flat_map(with).collect::<Vec<Tie>>()
    };
    stages.flat_map(pairs).collect()
}
