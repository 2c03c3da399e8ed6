//! Threads that only watch: they sleep again and again, hardly work, and nobody waits for what they do, so they last as
//! long as their process does, whatever that takes on another machine.
//!
//! JVMs, Go-like runtimes and servers have such threads: watchdogs, samplers, timers of statistics. Replayed literally
//! they would sleep as often as in the recording, and no machine could be faster than that. They become daemon threads
//! that repeat their recorded rounds for ever.
//!
//! Nothing recorded tells a thread that only watches from one that sleeps several times and then ends the program by a
//! plain store that others see. It is taken as one that watches.

use std::collections::{BTreeMap, BTreeSet};

use super::Place;
use super::build::{Action, Plan};
use super::ties::FUTEX_TIMED_OUT;
use crate::model::EXIT_BY_PROCESS;
use crate::{Event, Kind, Recording, Thread, Wake};

/// Most work of all threads that only watch, as a share of the recording's (ours): those that wake up every millisecond
/// have a few percent, in an interpreter nearly this.
const WORK_SHARE_MAX: f64 = 0.1;
/// Least share of a thread's waiting that is waiting for a clock (ours).
const CLOCK_SHARE_MIN: f64 = 0.5;
/// Longest that others may have waited for it while it slept, as a share of its sleep (ours): who takes the lock of an
/// interpreter for a moment may be late with it.
const HOLDS_UP_SHARE_MAX: f64 = 0.25;
/// Most that its process may have gone on without it, beside two of its longest sleeps: as a share of the process's
/// time, or of its work (ours).
const END_SHARE_MAX: f64 = 0.1;
/// Most that it may have done after its last sleep, as a share of its process's other work (ours): that is left out.
const TAIL_SHARE_MAX: f64 = 0.02;
/// Fewest sleeps of a thread that has ended by itself: fewer may be what it was for (ours).
const SLEEPS_MIN: usize = 3;

/// Makes daemon threads of those that only watch, and says so.
pub(super) fn settle(recording: &Recording, plan: &mut Plan, notes: &mut Vec<String>) {
    let found = find(recording, plan);
    if found.is_empty() {
        return;
    }
    let is_watching = |place: &Place| found.contains_key(&place.thread);
    plan.ties.retain(|(from, to)| !is_watching(from) && !is_watching(to));
    plan.actions.retain(|(place, _)| !is_watching(place));
    for (thread, life) in &found {
        let at = |event: usize| Place { thread: *thread, event: event as u32 };
        plan.act(at(life.first), Action::Repeat);
        plan.act(at(life.last), Action::EndRepeat);
        for event in life.first + 1..=life.last {
            let ns = recording.threads[*thread as usize].events[event].wait_ns;
            if ns > 0 {
                plan.act(at(event), Action::Sleep { ns });
            }
        }
    }
    notes.push(match found.len() {
        1 => "1 thread only watches: it ends with its program".to_owned(),
        count => format!("{count} threads only watch: they end with their program"),
    });
    plan.watching = found.into_keys().collect();
}

/// What becomes of those whom a thread wakes that only watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// They wait for it: it does not only watch.
    Waits,
    /// They go on without it, as in a replay.
    GoesOn,
}

/// What the events of a thread tell that may watch.
struct Life {
    /// Behind this event its rounds begin, and with the last one they end.
    first: usize,
    last: usize,
    longest_ns: u64,
    /// From when to when it slept.
    sleeps: Vec<(u64, u64)>,
    end_ns: u64,
    work_ns: u64,
    /// Work after its last sleep.
    tail_ns: u64,
}

impl Life {
    /// None of a thread that does more than to work, to wait and to use locks, or that waits rather for others.
    fn of(thread: &Thread) -> Option<Self> {
        let events = &thread.events;
        let sleeps: Vec<usize> = (0..events.len()).filter(|at| is_sleep(&events[*at])).collect();
        let (first, last) = (sleeps.first()?.saturating_sub(1), *sleeps.last()?);
        if first == last || events.iter().any(|event| concerns_others(event.kind)) {
            return None;
        }
        let clock_ns =
            sleeps.iter().fold(0, |sum: u64, at| sum.saturating_add(events[*at].wait_ns));
        let [.., before, end] = &events[..] else { return None };
        // What the end of its process has ended did nothing behind its last call.
        let is_cut = end.kind == Kind::Exit
            && (end.aux == EXIT_BY_PROCESS || (end.at_ns == before.at_ns && end.cpu_ns == 0));
        let is_waiting_for_clocks = clock_ns as f64 >= CLOCK_SHARE_MIN * thread.wait_ns() as f64;
        (is_waiting_for_clocks && (is_cut || sleeps.len() >= SLEEPS_MIN)).then_some(Self {
            first,
            last,
            longest_ns: sleeps.iter().map(|at| events[*at].wait_ns).max().unwrap_or(0),
            sleeps: sleeps
                .iter()
                .map(|at| (events[*at].waits_from_ns(), events[*at].at_ns))
                .collect(),
            end_ns: end.at_ns,
            work_ns: thread.work_ns(),
            tail_ns: events[last + 1..]
                .iter()
                .fold(0, |sum, event| sum.saturating_add(event.work_ns)),
        })
    }
}

/// A wait that its time has ended.
fn is_sleep(event: &Event) -> bool {
    event.wait_ns > 0
        && match event.kind {
            Kind::Sleep => true,
            Kind::CondWake => event.aux == 1,
            Kind::FutexWait => event.aux == FUTEX_TIMED_OUT,
            Kind::Block => Wake::from_aux(event.aux) == Wake::Timer,
            _ => false,
        }
}

/// Whether who does it has a part in what its program does, whoever waits for it.
fn concerns_others(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Create
            | Kind::Join
            | Kind::Barrier
            | Kind::BarrierInit
            | Kind::OmpFork
            | Kind::OmpJoin
            | Kind::OmpBegin
            | Kind::OmpEnd
            | Kind::OmpBarrier
            | Kind::OmpChunk
    )
}

/// Who waited for a thread.
#[derive(Default)]
struct Ties {
    /// Others wait for it, and it for others, this many times.
    out: usize,
    back: usize,
    /// Time that others waited, until it did something before its last sleep, while it slept.
    held_up_ns: u64,
    /// The longest wait for what it did behind that, such as for its end.
    end_ns: u64,
    /// Most sleeps that it began during such a wait.
    late: usize,
}

/// The threads that only watch.
fn find(recording: &Recording, plan: &Plan) -> BTreeMap<u32, Life> {
    let threads = &recording.threads;
    let mut firsts: BTreeMap<u32, u32> = BTreeMap::new();
    for (index, thread) in (0..).zip(threads) {
        firsts.entry(thread.process).or_insert(index);
    }
    let may_watch = (0..).zip(threads).filter(|(index, thread)| firsts[&thread.process] != *index);
    let mut lives: BTreeMap<u32, Life> =
        may_watch.filter_map(|(index, thread)| Some((index, Life::of(thread)?))).collect();
    let ties = ties(recording, plan, &lives);
    lives.retain(|thread, life| {
        !ties[thread].matter(life) && !sleeps_with_lock(*thread, life, plan)
    });
    let others = others(threads, &lives);
    lives.retain(|thread, life| {
        others[&threads[*thread as usize].process].end_with(life, &ties[thread])
    });
    leave_workers(recording, &mut lives);
    lives
}

fn ties(recording: &Recording, plan: &Plan, lives: &BTreeMap<u32, Life>) -> BTreeMap<u32, Ties> {
    let mut found: BTreeMap<u32, Ties> = lives.keys().map(|one| (*one, Ties::default())).collect();
    for (from, to) in &plan.ties {
        if let Some(ties) = found.get_mut(&to.thread) {
            ties.back += 1;
        }
        let Some(ties) = found.get_mut(&from.thread) else { continue };
        let (life, wait) = (
            &lives[&from.thread],
            &recording.threads[to.thread as usize].events[to.event as usize],
        );
        let (since_ns, until_ns) = (wait.waits_from_ns(), wait.at_ns);
        if from.event as usize > life.last {
            ties.end_ns = ties.end_ns.max(wait.wait_ns);
            let began = life.sleeps.iter().rev().take_while(|(begin_ns, _)| *begin_ns >= since_ns);
            ties.late = ties.late.max(began.count());
        } else {
            ties.out += 1;
            ties.held_up_ns = ties.held_up_ns.saturating_add(life.slept_ns(since_ns, until_ns));
        }
    }
    found
}

impl Life {
    /// How long it slept within a time.
    fn slept_ns(&self, since_ns: u64, until_ns: u64) -> u64 {
        let first = self.sleeps.partition_point(|(_, end_ns)| *end_ns <= since_ns);
        let within = self.sleeps[first..].iter().take_while(|(begin_ns, _)| *begin_ns < until_ns);
        let both = within.map(|(begin_ns, end_ns)| {
            (*end_ns).min(until_ns).saturating_sub((*begin_ns).max(since_ns))
        });
        both.fold(0, u64::saturating_add)
    }
}

impl Ties {
    /// Whether others wait for what a thread does. Who hands a lock to and fro also waits for others about as often.
    fn matter(&self, life: &Life) -> bool {
        let slept_ns = life.slept_ns(0, u64::MAX) as f64;
        self.out > 2 * self.back + 1 || self.held_up_ns as f64 > HOLDS_UP_SHARE_MAX * slept_ns
    }
}

/// Whether a thread sleeps while it has a lock that others take.
fn sleeps_with_lock(thread: u32, life: &Life, plan: &Plan) -> bool {
    let mut own: Vec<(Place, Action)> =
        plan.actions.iter().filter(|(place, _)| place.thread == thread).copied().collect();
    own.sort_unstable();
    let mut held: i64 = 0;
    let inside = |place: &Place| place.event as usize > life.first;
    own.iter().any(|(place, action)| {
        held += match action {
            Action::Lock { .. } => 1,
            Action::Unlock { .. } | Action::Release { .. } => -1,
            _ => 0,
        };
        held > 0
            && inside(place)
            && matches!(action, Action::Sleep { .. } | Action::SleepUntil { .. })
    })
}

/// What the threads of a process do that do not watch.
#[derive(Default)]
struct Others<'a> {
    threads: Vec<&'a Thread>,
    begin_ns: u64,
    end_ns: u64,
}

impl Others<'_> {
    /// Whether a thread ended with them: they hardly went on without it, and who waited for its end had not to wait for
    /// more than the sleep in which it was.
    fn end_with(&self, life: &Life, ties: &Ties) -> bool {
        let lasted_ns = self.end_ns.saturating_sub(self.begin_ns) as f64;
        let most_ns = 2.0 * life.longest_ns as f64 + END_SHARE_MAX * lasted_ns;
        let is_soon = self.end_ns.abs_diff(life.end_ns) as f64 <= most_ns;
        let is_told =
            ties.late == 0 || (ties.late == 1 && ties.end_ns as f64 <= END_SHARE_MAX * lasted_ns);
        let is_done = life.tail_ns as f64 <= TAIL_SHARE_MAX * self.work_ns(0);
        is_told
            && is_done
            && (is_soon || self.work_ns(life.end_ns) <= END_SHARE_MAX * self.work_ns(0))
    }

    /// Work since a time.
    fn work_ns(&self, since_ns: u64) -> f64 {
        let events = self.threads.iter().flat_map(|thread| &thread.events);
        events.filter(|event| event.at_ns >= since_ns).map(|event| event.work_ns as f64).sum()
    }
}

/// The threads of each process that do not watch.
fn others<'a>(threads: &'a [Thread], lives: &BTreeMap<u32, Life>) -> BTreeMap<u32, Others<'a>> {
    let mut found: BTreeMap<u32, Others<'a>> = BTreeMap::new();
    for (_, thread) in (0..).zip(threads).filter(|(index, _)| !lives.contains_key(index)) {
        let others = found
            .entry(thread.process)
            .or_insert(Others { begin_ns: u64::MAX, ..Others::default() });
        let end_ns = thread.events.last().map_or(0, |last| last.at_ns);
        others.begin_ns = others.begin_ns.min(thread.begin_ns());
        others.end_ns = others.end_ns.max(end_ns);
        others.threads.push(thread);
    }
    found
}

/// Leaves those with the most work out, until the rest is no notable share.
fn leave_workers(recording: &Recording, lives: &mut BTreeMap<u32, Life>) {
    let all_ns = recording.threads.iter().map(|thread| thread.work_ns() as f64).sum::<f64>();
    let mut works: Vec<(u64, u32)> =
        lives.iter().map(|(thread, life)| (life.work_ns, *thread)).collect();
    works.sort_unstable();
    let mut sum_ns = 0.0;
    for (work_ns, thread) in works {
        sum_ns += work_ns as f64;
        if sum_ns > WORK_SHARE_MAX * all_ns {
            lives.remove(&thread);
        }
    }
}

/// The number of each thread's process in the program: 0 for all without threads that watch.
pub(super) fn processes(recording: &Recording, plan: &Plan) -> Vec<u32> {
    let mut numbers: BTreeMap<u32, u32> = BTreeMap::new();
    for thread in &plan.watching {
        let next = numbers.len() as u32 + 1;
        numbers.entry(recording.threads[*thread as usize].process).or_insert(next);
    }
    let number = |thread: &Thread| numbers.get(&thread.process).copied().unwrap_or(0);
    recording.threads.iter().map(number).collect()
}

/// See [`super::with_plain_watchdogs`].
pub(super) fn plain(
    recording: &Recording,
    plan: &Plan,
    woken: Woken,
) -> Option<(Recording, BTreeSet<u32>)> {
    let mut found = find(recording, plan);
    let kind =
        |place: &Place| recording.threads[place.thread as usize].events[place.event as usize].kind;
    for (from, to) in &plan.ties {
        if woken == Woken::Waits && kind(to) != Kind::Join {
            found.remove(&from.thread);
        }
    }
    if found.is_empty() {
        return None;
    }
    let mut plain = recording.clone();
    for event in plain.threads.iter_mut().flat_map(|thread| &mut thread.events) {
        let ended_by = match event.kind {
            Kind::Join => Some(event.object),
            Kind::Block => match Wake::from_aux(event.aux) {
                Wake::Thread(waker) => Some(waker),
                _ => None,
            },
            _ => None,
        };
        if ended_by.is_some_and(|thread| found.contains_key(&thread)) {
            (event.kind, event.wait_ns) = (Kind::Yield, 0);
        }
    }
    for (thread, life) in &found {
        let events = &mut plain.threads[*thread as usize].events;
        *events = sleeps(events, life.last);
    }
    Some((plain, found.into_keys().collect()))
}

/// The begin and the waits up to an event, as sleeps, and the end.
fn sleeps(events: &[Event], last: usize) -> Vec<Event> {
    let mut found: Vec<Event> = Vec::new();
    let (mut cpu_ns, mut work_ns): (u64, u64) = (0, 0);
    for event in &events[..=last] {
        cpu_ns = cpu_ns.saturating_add(event.cpu_ns);
        work_ns = work_ns.saturating_add(event.work_ns);
        if event.kind == Kind::Start || event.wait_ns > 0 {
            let kind = if event.kind == Kind::Start { Kind::Start } else { Kind::Sleep };
            found.push(Event { kind, aux: 0, cpu_ns, work_ns, ..*event });
            (cpu_ns, work_ns) = (0, 0);
        }
    }
    found.extend(events.last().map(|end| Event { cpu_ns: 0, work_ns: 0, ..*end }));
    found
}
