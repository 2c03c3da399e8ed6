//! What everything but conditions is tied to.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::build::{Action, Edge, Plan, Share};
use super::handed_out::Starters;
use super::scan::{Arrivals, Counted, Lock, Scan};
use super::streams::tie_streams;
use super::{Mark, Place};
use crate::model::{SLEEP_PERIOD, SLEEP_UNTIL};
use crate::{Event, Kind, Recording, Wake};

/// Detail of a futex's wait whose time was over (Linux's `ETIMEDOUT`).
pub(super) const FUTEX_TIMED_OUT: u32 = 110;

/// Ties everything but conditions.
pub(super) fn tie_all(recording: &Recording, scan: &Scan, starters: &Starters, plan: &mut Plan) {
    tie_threads(recording, starters, plan);
    tie_wakes(recording, starters, plan);
    tie_regions(recording, plan);
    tie_streams(recording, plan);
    for (mutex, lock) in &scan.locks {
        take_locks(*mutex, lock, plan);
    }
    for counted in scan.semaphores.values() {
        tie_counted(&counted.posts, &marks(counted), plan);
    }
    for counted in scan.futexes.values().chain(scan.rwlocks.values()) {
        tie_to_last(counted, plan);
    }
    for arrivals in scan.barriers.values() {
        arrive(arrivals, plan);
    }
}

/// All events, thread by thread.
pub(super) fn events(recording: &Recording) -> impl Iterator<Item = (Place, &Event)> {
    (0..).zip(&recording.threads).flat_map(|(thread, recorded)| {
        (0..).zip(&recorded.events).map(move |(event, what)| (Place { thread, event }, what))
    })
}

fn mark(place: Place, event: &Event) -> Mark {
    Mark { at_ns: event.at_ns, place }
}

/// Threads are started by who created them and waited for by who joined them; sleeps and input stay as long.
fn tie_threads(recording: &Recording, starters: &Starters, plan: &mut Plan) {
    let count = recording.threads.len() as u32;
    let mut creations: BTreeMap<u32, (u32, Place)> = BTreeMap::new();
    let mut slept_until: HashMap<u32, u64> = HashMap::new();
    let is_periodic: Vec<bool> =
        recording.threads.iter().map(|thread| keeps_period(&thread.events)).collect();
    for (place, event) in events(recording) {
        if let Some(action) = own_action(place.thread, event, &is_periodic, &mut slept_until) {
            plan.act(place, action);
        }
        let other = event.object;
        if other >= count || other == place.thread {
            continue;
        }
        match event.kind {
            Kind::Create => drop(creations.entry(other).or_insert((place.thread, place))),
            Kind::Join if !starters.waits_for_any(place) => {
                let of_other = &recording.threads[other as usize];
                if of_other.ends_by(event.at_ns) {
                    let end = Place { thread: other, event: of_other.events.len() as u32 - 1 };
                    plan.tie(end, place);
                }
            }
            _ => {}
        }
    }
    let mut reached: Vec<u32> =
        (0..count).filter(|thread| !creations.contains_key(thread)).collect();
    let mut children: HashMap<u32, Vec<(u32, Place)>> = HashMap::new();
    for (thread, (creator, place)) in creations {
        children.entry(creator).or_default().push((thread, place));
    }
    // Whom nobody can have started, as its creators are its descendants, starts by itself.
    while let Some(creator) = reached.pop() {
        for (thread, place) in children.remove(&creator).unwrap_or_default() {
            plan.act(place, Action::Fork { thread });
            plan.forked.insert(thread);
            reached.push(thread);
        }
    }
}

/// What a thread does by itself at an event, whatever others do.
fn own_action(
    thread: u32,
    event: &Event,
    is_periodic: &[bool],
    slept_until: &mut HashMap<u32, u64>,
) -> Option<Action> {
    match event.kind {
        Kind::Sleep
            if event.aux == SLEEP_PERIOD
                || (event.aux == SLEEP_UNTIL && is_periodic[thread as usize]) =>
        {
            let before_ns = slept_until.insert(thread, event.at_ns);
            let ns =
                before_ns.map_or(event.wait_ns, |before_ns| event.at_ns.saturating_sub(before_ns));
            Some(Action::SleepUntil { ns })
        }
        Kind::Sleep | Kind::Io if event.wait_ns > 0 => Some(Action::Sleep { ns: event.wait_ns }),
        Kind::FutexWait if event.aux == FUTEX_TIMED_OUT => {
            Some(Action::Sleep { ns: event.wait_ns })
        }
        Kind::Yield => Some(Action::Yield),
        _ => None,
    }
}

/// Whether sleeps until a time keep a period, so that who comes late sleeps less: their ends are at least as regular as
/// their lengths. Else the time was chosen at the call, as Python's `time.sleep` does it, and they only last as long.
fn keeps_period(events: &[Event]) -> bool {
    let sleeps = events.iter().filter(|event| event.kind == Kind::Sleep);
    let (ends, lengths): (Vec<u64>, Vec<u64>) = sleeps
        .filter(|event| event.aux == SLEEP_UNTIL)
        .map(|event| (event.at_ns, event.wait_ns))
        .unzip();
    let gaps: Vec<u64> = ends.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    // Two sleeps tell nothing of that.
    ends.len() > 2 && spread(&gaps) <= spread(lengths.get(1..).unwrap_or_default())
}

fn median(lengths: &[u64]) -> u64 {
    let mut sorted = lengths.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or(0)
}

/// Mean distance from the median.
fn spread(lengths: &[u64]) -> f64 {
    let median = median(lengths);
    let sum: f64 = lengths.iter().map(|length| length.abs_diff(median) as f64).sum();
    sum / lengths.len().max(1) as f64
}

/// What a kernel has told: a blocked thread waits for the wake-up that ended it, or as long as it waited.
fn tie_wakes(recording: &Recording, starters: &Starters, plan: &mut Plan) {
    let mut wakes: HashMap<(u32, u32), Vec<Mark>> = HashMap::new();
    for (place, event) in events(recording) {
        if event.kind == Kind::Wake {
            wakes.entry((place.thread, event.object)).or_default().push(mark(place, event));
        }
    }
    let blocks = events(recording).filter(|(_, event)| event.kind == Kind::Block);
    for (place, event) in blocks.filter(|(place, _)| !starters.waits_for_any(*place)) {
        let by = match Wake::from_aux(event.aux) {
            Wake::Thread(waker) => wakes.get(&(waker, place.thread)),
            _ => None,
        };
        let last = by.and_then(|marks| last_before(marks, event.at_ns));
        match last {
            Some(wake) => plan.tie(wake.place, place),
            None if event.wait_ns > 0 => plan.act(place, Action::Sleep { ns: event.wait_ns }),
            None => {}
        }
    }
}

/// The last of ascending marks that is not later than a time.
pub(super) fn last_before(marks: &[Mark], at_ns: u64) -> Option<Mark> {
    marks[..marks.partition_point(|mark| mark.at_ns <= at_ns)].last().copied()
}

/// Shares of a parallel region begin after its fork and end before its join; what a waiting worker does is no work.
fn tie_regions(recording: &Recording, plan: &mut Plan) {
    let mut shares: BTreeMap<u32, Vec<(Mark, Kind)>> = BTreeMap::new();
    let mut regions: Vec<(u32, Mark, Mark)> = Vec::new();
    for (thread, recorded) in (0..).zip(&recording.threads) {
        let mut open: Vec<(u32, Mark)> = Vec::new();
        for (event, what) in (0..).zip(&recorded.events) {
            let here = mark(Place { thread, event }, what);
            match what.kind {
                Kind::OmpFork => open.push((what.object, here)),
                Kind::OmpJoin => {
                    if let Some((region, fork)) = open.pop() {
                        regions.push((region, fork, here));
                    }
                }
                Kind::OmpBegin | Kind::OmpEnd => {
                    shares.entry(what.object).or_default().push((here, what.kind));
                    if what.kind == Kind::OmpBegin && open.is_empty() {
                        plan.spins.insert(here.place);
                    }
                }
                _ => {}
            }
        }
    }
    for list in shares.values_mut() {
        list.sort_unstable();
    }
    for (number, (region, fork, join)) in (0..).zip(regions) {
        let Some(list) = shares.get(&region) else { continue };
        let from = list.partition_point(|(mark, _)| mark.at_ns < fork.at_ns);
        let inside = list[from..].iter().take_while(|(mark, _)| mark.at_ns <= join.at_ns);
        for (share, kind) in inside {
            if *kind == Kind::OmpBegin {
                plan.tie(fork.place, share.place);
                plan.shares.insert(share.place, Edge::Begin);
            } else {
                plan.tie(share.place, join.place);
                plan.shares.insert(share.place, Edge::End(Share::Region(number)));
            }
        }
    }
}

/// Threads compete for a mutex as they did; one of a single thread vanishes.
fn take_locks(mutex: u32, lock: &Lock, plan: &mut Plan) {
    if lock.threads.len() < 2 {
        return;
    }
    for (locked, unlocked) in lock.locked.iter().zip(&lock.unlocked) {
        plan.act(locked.place, Action::Lock { mutex });
        plan.act(unlocked.place, Action::Unlock { mutex });
        plan.lock_times.insert(locked.place, locked.at_ns);
    }
}

fn marks(counted: &Counted) -> Vec<Mark> {
    counted.takes.iter().map(|(mark, _)| *mark).collect()
}

/// Ties what takes to what adds, first come, first served. What was there at the beginning is what it needs to never
/// fall short in the recorded order.
pub(super) fn tie_counted(posts: &[Mark], takes: &[Mark], plan: &mut Plan) {
    let (mut posts, mut takes) = (posts.to_vec(), takes.to_vec());
    posts.sort_unstable();
    takes.sort_unstable();
    let initial = shortage(&posts, &takes);
    for (take, post) in takes.iter().skip(initial).zip(&posts) {
        plan.tie(post.place, take.place);
    }
}

/// How far what was taken was ahead of what was added at most.
fn shortage(posts: &[Mark], takes: &[Mark]) -> usize {
    let missing = |(taken, take): (usize, &Mark)| {
        let added = posts.partition_point(|post| post.at_ns <= take.at_ns);
        (taken + 1).saturating_sub(added)
    };
    takes.iter().enumerate().map(missing).max().unwrap_or(0)
}

/// Ties a wait to the last thing that can have ended it; a wait that nothing recorded has ended lasts as long.
fn tie_to_last(counted: &Counted, plan: &mut Plan) {
    let mut posts = counted.posts.clone();
    posts.sort_unstable();
    for (take, since_ns) in &counted.takes {
        let until = posts.partition_point(|post| post.at_ns <= take.at_ns);
        let others = posts[..until].iter().rev();
        let mut meanwhile = others.take_while(|post| post.at_ns >= *since_ns);
        match meanwhile.find(|post| post.place.thread != take.place.thread) {
            Some(post) => plan.tie(post.place, take.place),
            None if take.at_ns > *since_ns => {
                plan.act(take.place, Action::Sleep { ns: take.at_ns - since_ns });
            }
            None => {}
        }
    }
}

/// Barriers stay barriers where every thread arrives equally often, or as often as there are parties.
fn arrive(arrivals: &Arrivals, plan: &mut Plan) {
    let mut marks = arrivals.marks.clone();
    marks.sort_unstable();
    let mut made = arrivals.made.clone();
    made.sort_unstable();
    let mut rest = marks.as_slice();
    for (index, (_, parties)) in made.iter().enumerate() {
        let until = made.get(index + 1).map_or(u64::MAX, |next| next.0);
        let (now, later) = rest.split_at(rest.partition_point(|mark| mark.at_ns < until));
        rest = later;
        meet(now, Some(*parties), plan);
    }
    meet(rest, None, plan);
}

fn meet(marks: &[Mark], parties: Option<u32>, plan: &mut Plan) {
    let threads: HashSet<u32> = marks.iter().map(|mark| mark.place.thread).collect();
    let parties = parties.unwrap_or(threads.len() as u32);
    if parties < 2 {
        return;
    }
    let whole = marks.len() - marks.len() % parties as usize;
    let barrier = plan.barrier(parties);
    for (number, mark) in (0..).zip(&marks[..whole]) {
        plan.act(mark.place, Action::Arrive { barrier });
        let share = Share::Round { barrier, round: number / parties };
        plan.shares.insert(mark.place, Edge::End(share));
    }
}
