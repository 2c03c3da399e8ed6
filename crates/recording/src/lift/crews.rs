//! Crews: threads of one kind that share work by handing it out in some way that nothing else recognises.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::acts::Acts;
use super::node::Sym;
use crate::{Kind, Recording, Thread};

/// Two threads of a crew differ by less than this factor in their work.
pub(super) const WORK_FACTOR: f64 = 4.0;
/// And by less than this factor in their work per step: who has to wake others may be chance.
const STEP_FACTOR: f64 = 8.0;
/// But not if one thread has started both, and their work differs by less than this factor: the first one of a pool may
/// come to many locks of a runtime that is still busy with other things.
const SAME_WORK_FACTOR: f64 = 1.5;
/// Least cosine between the numbers of events of each kind of two threads of a crew.
const LIKE_COSINE_MIN: f64 = 0.9;
/// Fewest yields of a thread that looks for work.
const YIELDS_MIN: usize = 3;
/// So few calls of a thread tell nothing of it.
pub(super) const FEW_CALLS: usize = 2;
/// Least share of the program's work that a crew does.
pub(super) const WORK_SHARE_MIN: f64 = 0.3;
/// Threads that meet at barriers so often are no crew.
const BARRIERS_MIN: usize = 4;
/// Threads of several processes that take from one stream take so often at least.
const READS_MIN: usize = 2;
/// A member that got nothing to do has at most this share of the others' mean work.
const IDLE_SHARE_MAX: f64 = 0.05;

/// Threads that share work.
pub(super) struct Crew {
    /// Those that work, and those that had nothing to do.
    pub members: Vec<u32>,
    /// The thread that starts them.
    pub owner: u32,
}

/// What a thread is like.
struct Profile {
    thread: u32,
    work: f64,
    steps: f64,
    kinds: HashMap<Kind, f64>,
    /// Streams from which it takes.
    streams: HashSet<u32>,
    from_ns: u64,
    to_ns: u64,
}

/// The crew that does most of the work, if there is one.
pub(super) fn find(recording: &Recording, acts: &Acts) -> Option<Crew> {
    let all: f64 = recording.threads.iter().map(|thread| thread.work_ns() as f64).sum();
    let mut profiles: Vec<Profile> = (1..recording.threads.len() as u32)
        .filter(|thread| !meets_at_barriers(acts, *thread))
        .filter_map(|thread| profile(thread, &recording.threads[thread as usize]))
        .collect();
    profiles.sort_by(|one, two| two.work.total_cmp(&one.work));
    let crews: Vec<(u32, Vec<&Profile>)> =
        crews(recording, acts, &profiles).into_iter().filter(|(_, crew)| crew.len() > 1).collect();
    let most = crews.iter().max_by(|(_, one), (_, two)| work(one).total_cmp(&work(two)))?;
    // A crew that is started again and again hands out no jobs: each time there are as many threads as shares.
    let is_again = |(_, crew): &&(u32, Vec<&Profile>)| {
        is_alike(most.1[0], crew[0])
            && !most.1.iter().any(|one| crew.iter().any(|two| overlap(one, two)))
    };
    if crews.iter().any(|crew| is_again(&crew)) {
        return None;
    }
    let (owner, most) = most;
    let mut members: Vec<u32> = most.iter().map(|one| one.thread).collect();
    if work(most) < WORK_SHARE_MIN * all || !is_begun_once(recording, &members) {
        return None;
    }
    members.extend(idle(recording, acts, &profiles, &members));
    members.sort_unstable();
    Some(Crew { members, owner: *owner })
}

fn work(crew: &[&Profile]) -> f64 {
    crew.iter().map(|one| one.work).sum()
}

/// Threads that are alike and at the same time, of one process or taking from one stream, by who started them.
fn crews<'a>(
    recording: &Recording,
    acts: &Acts,
    profiles: &'a [Profile],
) -> Vec<(u32, Vec<&'a Profile>)> {
    let process = |thread: u32| recording.threads[thread as usize].process;
    let mut crews: Vec<(u32, Vec<&Profile>)> = Vec::new();
    for one in profiles {
        let Some(starter) = starter(acts, profiles, one) else { continue };
        let fits = |(owner, crew): &&mut (u32, Vec<&Profile>)| {
            *owner == starter
                && (is_alike(crew[0], one) || are_siblings(acts, crew[0], one))
                && crew.iter().all(|member| overlap(member, one))
                && (process(crew[0].thread) == process(one.thread)
                    || !crew[0].streams.is_disjoint(&one.streams))
        };
        match crews.iter_mut().find(fits) {
            Some((_, crew)) => crew.push(one),
            None => crews.push((starter, vec![one])),
        }
    }
    crews
}

/// Whether it meets others at barriers again and again, not only to begin and to end.
fn meets_at_barriers(acts: &Acts, thread: u32) -> bool {
    let at_barrier =
        |index: &usize| matches!(acts.sym(thread as usize, *index), Some(Sym::Barrier(_)));
    (0..acts.acts[thread as usize].len()).filter(at_barrier).count() >= BARRIERS_MIN
}

fn profile(thread: u32, recorded: &Thread) -> Option<Profile> {
    let (first, last) = (recorded.events.first()?, recorded.events.last()?);
    let mut kinds: HashMap<Kind, f64> = HashMap::new();
    for event in recorded.events.iter().filter(|event| tells_kind(event.kind)) {
        *kinds.entry(event.kind).or_default() += 1.0;
    }
    Some(Profile {
        thread,
        work: recorded.work_ns() as f64,
        steps: kinds.values().sum::<f64>(),
        kinds,
        streams: streams(recorded),
        from_ns: first.at_ns,
        to_ns: last.at_ns,
    })
}

/// Streams from which a thread takes more than once.
fn streams(thread: &Thread) -> HashSet<u32> {
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    for event in thread.events.iter().filter(|event| event.kind == Kind::Read && event.aux > 0) {
        *counts.entry(event.object).or_default() += 1;
    }
    counts.into_iter().filter(|(_, count)| *count >= READS_MIN).map(|(stream, _)| stream).collect()
}

/// Whether several processes take from one stream.
pub(super) fn are_of_processes(recording: &Recording) -> bool {
    let mut processes: HashMap<u32, u32> = HashMap::new();
    recording.threads.iter().any(|thread| {
        let first = |stream| *processes.entry(stream).or_insert(thread.process);
        streams(thread).into_iter().map(first).any(|process| process != thread.process)
    })
}

/// Whether a thread yields its core again and again.
pub(super) fn looks_for_work(thread: &Thread) -> bool {
    thread.events.iter().filter(|event| event.kind == Kind::Yield).count() >= YIELDS_MIN
}

/// Whether the number of such events tells what a thread is: how often it waits is chance.
pub(super) fn tells_kind(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Lock
            | Kind::Signal
            | Kind::Broadcast
            | Kind::SemPost
            | Kind::SemWait
            | Kind::WriteLock
            | Kind::SpinLock
            | Kind::Read
            | Kind::Write
    )
}

pub(super) fn is_near(one: f64, two: f64, factor: f64) -> bool {
    one <= factor * two && two <= factor * one
}

/// Whether two threads that one has started do as much, in calls of the same kinds.
fn are_siblings(acts: &Acts, one: &Profile, two: &Profile) -> bool {
    let parent = |profile: &Profile| acts.parent[profile.thread as usize];
    one.work > 0.0
        && parent(one) == parent(two)
        && is_near(one.work, two.work, SAME_WORK_FACTOR)
        && cosine(&one.kinds, &two.kinds) >= LIKE_COSINE_MIN
}

fn is_alike(one: &Profile, two: &Profile) -> bool {
    let each = |profile: &Profile| profile.work / (profile.steps + 1.0);
    one.work > 0.0
        && is_near(one.work, two.work, WORK_FACTOR)
        && is_near(each(one), each(two), STEP_FACTOR)
        && cosine(&one.kinds, &two.kinds) >= LIKE_COSINE_MIN
}

fn cosine(one: &HashMap<Kind, f64>, two: &HashMap<Kind, f64>) -> f64 {
    let length =
        |kinds: &HashMap<Kind, f64>| kinds.values().map(|count| count * count).sum::<f64>();
    let product: f64 = one.iter().map(|(kind, count)| count * two.get(kind).unwrap_or(&0.0)).sum();
    match length(one) * length(two) {
        0.0 => {
            f64::from(u8::from(one.values().chain(two.values()).sum::<f64>() <= FEW_CALLS as f64))
        }
        squares => product / squares.sqrt(),
    }
}

fn overlap(one: &Profile, two: &Profile) -> bool {
    one.from_ns < two.to_ns && two.from_ns < one.to_ns
}

/// The nearest thread above that is not alike: who started the crew that this one may belong to.
fn starter(acts: &Acts, profiles: &[Profile], one: &Profile) -> Option<u32> {
    let mut above = acts.parent[one.thread as usize];
    let alike =
        |thread: u32| profiles.iter().any(|other| other.thread == thread && is_alike(other, one));
    while let Some(parent) = above.filter(|parent| alike(*parent)) {
        above = acts.parent[parent as usize];
    }
    above
}

/// Whether all of them are there before one of them ends: no thread takes the place of another.
fn is_begun_once(recording: &Recording, members: &[u32]) -> bool {
    let events = |thread: &u32| &recording.threads[*thread as usize].events;
    let last_begin = members.iter().map(|thread| events(thread)[0].at_ns).max();
    let first_end =
        members.iter().filter_map(|thread| events(thread).last()).map(|event| event.at_ns);
    last_begin < first_end.min()
}

/// Threads created by the same one that only wait where the crew does: there was nothing left for them.
fn idle(recording: &Recording, acts: &Acts, profiles: &[Profile], members: &[u32]) -> Vec<u32> {
    let mut used: BTreeMap<u32, HashSet<(Kind, u32)>> = BTreeMap::new();
    members.iter().for_each(|thread| {
        used.insert(*thread, objects(&recording.threads[*thread as usize]));
    });
    let work = |thread: u32| recording.threads[thread as usize].work_ns() as f64;
    let mean = members.iter().map(|thread| work(*thread)).sum::<f64>() / members.len() as f64;
    let is_idle = |profile: &&Profile| {
        let thread = profile.thread;
        let own = objects(&recording.threads[thread as usize]);
        !members.contains(&thread)
            && profile.work <= IDLE_SHARE_MAX * mean
            && acts.parent[thread as usize] == acts.parent[members[0] as usize]
            && own.iter().any(|(kind, _)| *kind == Kind::CondWait)
            && used.values().all(|objects| own.is_subset(objects))
    };
    profiles.iter().filter(is_idle).map(|profile| profile.thread).collect()
}

fn objects(thread: &Thread) -> HashSet<(Kind, u32)> {
    let events = thread.events.iter();
    let kinds = events.filter(|event| tells_kind(event.kind) || event.kind == Kind::CondWait);
    kinds.map(|event| (event.kind, event.object)).collect()
}
