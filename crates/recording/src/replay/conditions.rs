//! What waits for conditions are tied to.
//!
//! A condition is recognised as one of three: a *barrier* (all but one wait, the last one broadcasts, and who is last
//! changes), a *count* (a queue or a semaphore: sections that signal add, sections of threads that wait take), or else
//! a *flag*, whose waits are tied to the last signal before their end.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::build::{Action, Edge, Plan, Share};
use super::scan::{CondWait, Condition, Scan, Section};
use super::ties::{last_before, tie_counted};
use super::{Mark, Place};
use crate::{Kind, Recording};

/// Most by which takes and posts of a count may differ, as a share of the posts (ours).
const COUNT_ERROR_MAX: f64 = 0.05;
/// Most work between two parts of one wait, as a share of the first one's time (ours).
const LOOK_SHARE_MAX: f64 = 0.05;

/// Ties the waits of all conditions.
pub(super) fn tie_conditions(
    recording: &Recording,
    scan: &Scan,
    plan: &mut Plan,
    notes: &mut Vec<String>,
) {
    let mut kinds: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (name, condition) in &scan.conditions {
        let sections = condition.mutex.and_then(|mutex| scan.sections.get(&mutex));
        let sections = sections.map_or(&[][..], Vec::as_slice);
        let kind = tie_condition(*name, condition, sections, (recording, scan), plan);
        *kinds.entry(kind).or_default() += usize::from(!condition.waits.is_empty());
    }
    let found: Vec<String> = kinds
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|((one, many), count)| format!("{count} {}", if count == 1 { one } else { many }))
        .collect();
    if !found.is_empty() {
        notes.push(format!("conditions are replayed as {}", found.join(", ")));
    }
}

/// Ties the waits of a condition. Returns what it is: the word for one, and for several.
fn tie_condition(
    name: u32,
    condition: &Condition,
    sections: &[Section],
    (recording, scan): (&Recording, &Scan),
    plan: &mut Plan,
) -> (&'static str, &'static str) {
    if let Some(rounds) = rounds(condition) {
        let spans = Spans::of(sections);
        if rounds.iter().all(|round| spans.ends_at_once(round.broadcast.place, recording)) {
            meet(&rounds, &spans, scan, plan);
            return ("barrier", "barriers");
        }
    }
    if let Some(takes) = count(name, condition, sections) {
        let wait =
            |section: &&Section| section.waits.iter().find(|(waited, ..)| *waited == name).copied();
        for (_, begin, end) in takes.iter().filter_map(wait) {
            let mutex = condition.mutex;
            let wait = CondWait { begin, end, mutex, is_timed_out: false };
            release_meanwhile(&wait, scan, plan);
        }
        // What needed no wait takes where its section begins.
        let marks: Vec<Mark> = takes
            .iter()
            .map(|section| wait(section).map_or(section.lock, |(_, _, end)| end))
            .collect();
        tie_counted(&condition.signals, &marks, plan);
        return ("queue", "queues");
    }
    let mut signals = condition.signals.clone();
    signals.sort_unstable();
    // Waits of one thread stand in their order.
    let mut later: Option<(&CondWait, bool)> = None;
    for wait in condition.waits.iter().rev() {
        let goes_on = later.filter(|(next, _)| is_part(wait, next, recording));
        let is_told = match goes_on {
            Some((_, true)) => {
                release_meanwhile(wait, scan, plan);
                true
            }
            _ => flag(wait, &signals, scan, plan),
        };
        later = Some((wait, is_told));
    }
    ("flag", "flags")
}

/// Whether a wait whose time was over is followed at once by another one, so that what ends that one ends both: as who
/// waits for the lock of an interpreter looks up every 5 ms.
fn is_part(wait: &CondWait, next: &CondWait, recording: &Recording) -> bool {
    let (end, begin) = (wait.end.place, next.begin.place);
    let lasted_ns = wait.end.at_ns.saturating_sub(wait.begin.at_ns) as f64;
    let work_ns =
        recording.threads[begin.thread as usize].events[begin.event as usize].work_ns as f64;
    wait.is_timed_out
        && (begin.thread, begin.event) == (end.thread, end.event + 1)
        && work_ns <= LOOK_SHARE_MAX * lasted_ns
}

/// A wait that releases its mutex, is ended by the last signal, and takes the mutex again. Returns whether a signal
/// has ended it.
fn flag(wait: &CondWait, signals: &[Mark], scan: &Scan, plan: &mut Plan) -> bool {
    release_meanwhile(wait, scan, plan);
    let (since_ns, until_ns) = (wait.begin.at_ns, wait.end.at_ns);
    let cause = last_before(signals, until_ns).filter(|signal| signal.at_ns >= since_ns);
    let cause = cause.filter(|_| !wait.is_timed_out);
    match cause {
        Some(signal) => plan.tie(signal.place, wait.end.place),
        None => plan.act(wait.end.place, Action::Sleep { ns: until_ns.saturating_sub(since_ns) }),
    }
    cause.is_some()
}

fn release_meanwhile(wait: &CondWait, scan: &Scan, plan: &mut Plan) {
    let Some(mutex) = wait.mutex.filter(|mutex| is_shared(scan, *mutex)) else { return };
    plan.act(wait.begin.place, Action::Release { mutex });
    plan.act(wait.end.place, Action::Lock { mutex });
    plan.lock_times.insert(wait.end.place, wait.end.at_ns);
}

fn is_shared(scan: &Scan, mutex: u32) -> bool {
    scan.locks.get(&mutex).is_some_and(|lock| lock.threads.len() > 1)
}

/// A round of a barrier: who broadcast, and whose waits that ended.
struct Round {
    broadcast: Mark,
    waits: Vec<CondWait>,
}

/// The rounds of a condition that is a barrier: broadcasts end the waits of always the same threads, the broadcaster
/// among them, who also waits in other rounds.
fn rounds(condition: &Condition) -> Option<Vec<Round>> {
    let mut waits = condition.waits.clone();
    if waits.iter().any(|wait| wait.is_timed_out) || waits.is_empty() {
        return None;
    }
    waits.sort_unstable_by_key(|wait| wait.begin);
    let mut broadcasts: Vec<Mark> = condition
        .signals
        .iter()
        .filter(|signal| condition.broadcasts.contains(&signal.place))
        .copied()
        .collect();
    broadcasts.sort_unstable();
    let mut rounds: Vec<Round> = Vec::new();
    let mut rest = waits.as_slice();
    for broadcast in broadcasts {
        let (ended, later) =
            rest.split_at(rest.partition_point(|wait| wait.begin.at_ns <= broadcast.at_ns));
        rest = later;
        if ended.iter().any(|wait| wait.end.at_ns < broadcast.at_ns) {
            return None;
        }
        if !ended.is_empty() {
            rounds.push(Round { broadcast, waits: ended.to_vec() });
        }
    }
    let team = |round: &Round| -> HashSet<u32> {
        let waiters = round.waits.iter().map(|wait| wait.begin.place.thread);
        waiters.chain([round.broadcast.place.thread]).collect()
    };
    let first = team(rounds.first()?);
    let is_equal = |round: &Round| round.waits.len() + 1 == first.len() && team(round) == first;
    let waiters: HashSet<u32> = waits.iter().map(|wait| wait.begin.place.thread).collect();
    let all_wait = rounds.iter().all(|round| waiters.contains(&round.broadcast.place.thread));
    (rest.is_empty() && all_wait && rounds.iter().all(is_equal)).then_some(rounds)
}

/// From where to where threads hold a mutex.
struct Spans(HashMap<u32, Vec<(Place, Place)>>);

impl Spans {
    fn of(sections: &[Section]) -> Self {
        let mut spans: HashMap<u32, Vec<(Place, Place)>> = HashMap::new();
        for section in sections {
            let thread = section.lock.place.thread;
            spans.entry(thread).or_default().push((section.lock.place, section.unlock.place));
        }
        Self(spans)
    }

    /// That of a thread that a place is in; the place alone if there is none.
    fn around(&self, place: Place) -> (Place, Place) {
        let of_thread = self.0.get(&place.thread).map_or(&[][..], Vec::as_slice);
        let until = of_thread.partition_point(|(lock, _)| *lock <= place);
        let last = of_thread[..until].last().filter(|(_, unlock)| *unlock >= place);
        last.copied().unwrap_or((place, place))
    }

    /// Whether a thread waits for nothing from a place on until it has released the mutex.
    fn ends_at_once(&self, place: Place, recording: &Recording) -> bool {
        let events = &recording.threads[place.thread as usize].events;
        let behind = &events[place.event as usize + 1..=self.around(place).1.event as usize];
        behind.iter().all(|event| {
            use Kind::{Broadcast, SemPost, Signal, TryFail, Unlock};
            matches!(event.kind, Unlock | Signal | Broadcast | SemPost | TryFail)
        })
    }
}

/// Makes a barrier of a condition. The last one arrives when it has released the mutex.
fn meet(rounds: &[Round], spans: &Spans, scan: &Scan, plan: &mut Plan) {
    let parties = rounds[0].waits.len() as u32 + 1;
    let barrier = plan.barrier(parties);
    for (number, round) in (0..).zip(rounds) {
        let edge = Edge::End(Share::Round { barrier, round: number });
        for wait in &round.waits {
            release_meanwhile(wait, scan, plan);
            plan.act(wait.end.place, Action::Arrive { barrier });
            plan.shares.insert(spans.around(wait.begin.place).0, edge);
        }
        let (lock, unlock) = spans.around(round.broadcast.place);
        plan.act(unlock, Action::ArriveAfter { barrier });
        plan.shares.insert(lock, edge);
    }
}

/// The sections that take from a condition that counts; none if they do not match what is posted.
fn count<'a>(
    name: u32,
    condition: &Condition,
    sections: &'a [Section],
) -> Option<Vec<&'a Section>> {
    let is_other = |wait: &CondWait| wait.is_timed_out || wait.mutex != condition.mutex;
    if condition.waits.iter().any(is_other) {
        return None;
    }
    let waiters: HashSet<u32> =
        condition.waits.iter().map(|wait| wait.begin.place.thread).collect();
    let of_waiters = sections.iter().filter(|section| {
        waiters.contains(&section.lock.place.thread) && !section.signals.contains(&name)
    });
    let mut takes: Vec<&Section> = of_waiters.collect();
    takes.sort_unstable_by_key(|section| section.unlock);
    let posts = condition.signals.len();
    if takes.len() > posts {
        without_last(&mut takes);
    }
    let difference = takes.len().abs_diff(posts) as f64;
    let most = COUNT_ERROR_MAX * posts as f64 + waiters.len() as f64;
    (posts > 1 && difference <= most).then_some(takes)
}

/// Leaves the last section of each thread out: it found the end, not an item.
fn without_last(takes: &mut Vec<&Section>) {
    let mut seen = HashSet::new();
    let is_earlier = |section: &&Section| !seen.insert(section.lock.place.thread);
    let flags: Vec<bool> = takes.iter().rev().map(is_earlier).collect();
    let mut flags = flags.into_iter().rev();
    takes.retain(|_| flags.next().unwrap_or(true));
}
