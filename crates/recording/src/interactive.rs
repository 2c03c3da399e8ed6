//! Whether a recording is of an interactive program, and the period of its frames.
//!
//! An interactive program waits for the clock, for the display's next refresh (vsync) or for input, whatever its cores
//! are. It is told from the recording: frames are marked; or, of the path back from what ends last, through whom woke
//! whom, at least [`WAITING_MIN`] is waits that no recorded thread has ended, and there are [`WAITS_MIN`] of them or
//! more; or at least [`PERIODIC_MIN`] of the path is such waits of threads with a period.

use std::collections::{BTreeMap, HashSet};

use ampsched_model::{Distribution, Histogram};
use serde::Serialize;

use crate::import::Frames;
use crate::{Event, Kind, Recording, Thread, Wake};

/// Share of the path that must be waits for the clock or for outside (ours): advice on cores for what works less was
/// refused before.
pub const WAITING_MIN: f64 = 0.5;
/// Least number of such waits of all threads (ours): a few may be one program's `sleep`.
pub const WAITS_MIN: usize = 16;
/// The same share, of threads that have a period (ours): a game may work nearly always.
pub const PERIODIC_MIN: f64 = 0.1;
/// Shortest and longest period, in ns: displays refresh 20 to 200 times a second.
const PERIOD_NS: (u64, u64) = (5_000_000, 50_000_000);
/// By which part an interval may differ from the period (ours): timers' slack and interrupts take 0.1 to 0.3 ms.
const JITTER: f64 = 0.04;
/// Behind a wake-up, which of the next ones may come one period later (ours): others may come between.
const LAGS: usize = 3;
/// Share of wake-ups one period before another one, at least (ours).
const SHARE_MIN: f64 = 0.5;
/// Most of that share by chance, and how many standard deviations above it the share must be (ours). Of Poisson's
/// wake-ups up to 0.2 have one of the next three within the jitter of the densest place.
const CHANCE: (f64, f64) = (0.3, 5.0);

/// A thread that something outside or a timer wakes at near-equal intervals.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Period {
    /// The thread's place in the recording.
    pub thread: u32,
    /// Its name.
    pub name: String,
    /// The period, in ns.
    pub ns: u64,
    /// Wake-ups that are one period before or behind another one.
    pub wakes: usize,
}

/// Frames of a recording, each counted once: by the thread that ends it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FrameCount {
    /// From a frame's begin until it is due, in ns.
    pub period_ns: u64,
    /// The threads' names.
    pub threads: Vec<String>,
    /// Whether the program has marked them.
    pub marked: bool,
    /// How many there are.
    pub frames: usize,
    /// How many ended later than a period after they began.
    pub late: usize,
    /// From a frame's begin to its end; percentiles alone.
    pub times: Distribution,
    /// The same of each thread that ends some, those with the most late ones first.
    pub by_thread: Vec<ThreadFrames>,
}

/// Frames that one thread ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ThreadFrames {
    /// The thread's place in the recording.
    pub thread: u32,
    /// How many there are.
    pub frames: usize,
    /// How many were late.
    pub late: usize,
    /// The longest, in ns.
    pub longest_ns: u64,
    /// When that one ended, in ns since the recording's begin.
    pub longest_until_ns: u64,
}

/// What is known of an interactive recording.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Interactive {
    /// Share of the path that is waits for the clock or for outside, 0 to 1.
    pub waiting: f64,
    /// Threads that have a period, those with the most wake-ups first.
    pub periods: Vec<Period>,
    /// Frames, if there is a period.
    pub frames: Option<FrameCount>,
    /// The frames themselves.
    #[serde(skip)]
    pub(crate) turns: Vec<Turn>,
    /// Waits of threads that end at their period.
    #[serde(skip)]
    pub(crate) periodic: HashSet<(u32, u32)>,
}

/// A frame: behind which event of a thread it begins, and with which one it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    pub thread: u32,
    pub first: u32,
    pub last: u32,
    /// When it began, and when it ended, in ns since the recording's begin.
    pub begun_ns: u64,
    pub ended_ns: u64,
    /// How long after its begin it is due, in ns.
    pub period_ns: u64,
}

impl Turn {
    fn is_late(&self) -> bool {
        self.ended_ns > self.begun_ns.saturating_add(self.period_ns)
    }

    fn length_ns(&self) -> u64 {
        self.ended_ns.saturating_sub(self.begun_ns)
    }
}

/// Whether a wait was ended by a timer or by something outside, as the kernel tells it. Many traces tell only that no
/// thread was seen to end it (`sched_wakeup` on an idle core).
pub(crate) fn is_of_clock(event: &Event) -> bool {
    event.kind == Kind::Block
        && event.wait_ns > 0
        && !matches!(Wake::from_aux(event.aux), Wake::Thread(_))
}

/// When an event's wait was over: when its thread was woken, as far as that is known.
pub(crate) fn over_ns(thread: &Thread, event: usize) -> u64 {
    let what = &thread.events[event];
    let before = event.checked_sub(1).and_then(|before| thread.events.get(before));
    match before.filter(|_| !what.is_preempted) {
        // It had run on since the event before until it was blocked.
        Some(before) => {
            let blocked_ns = before.at_ns.saturating_add(what.cpu_ns);
            blocked_ns.saturating_add(what.wait_ns).min(what.at_ns)
        }
        None => what.at_ns,
    }
}

/// What is known of a recording's interaction; none if it is not interactive.
pub fn interactive(recording: &Recording) -> Option<Interactive> {
    let threads = &recording.threads;
    if !threads.iter().any(|thread| thread.events.iter().any(is_of_clock)) {
        return None;
    }
    let mut periodic = HashSet::new();
    let mut periods = Vec::new();
    let mut count = 0;
    for (thread, recorded) in (0..).zip(threads) {
        let waits: Vec<u32> = (0..)
            .zip(&recorded.events)
            .filter(|(_, event)| is_of_clock(event))
            .map(|(at, _)| at)
            .collect();
        let times: Vec<u64> = waits.iter().map(|&at| over_ns(recorded, at as usize)).collect();
        count += waits.len();
        let Some((ns, hits)) = period(&times) else { continue };
        periodic.extend(hits.iter().map(|&hit| (thread, waits[hit])));
        periods.push(Period { thread, name: recorded.name.clone(), ns, wakes: hits.len() });
    }
    // Audio and sensors have periods, too.
    periods.sort_by_key(|period| (!is_of_display(period.ns), std::cmp::Reverse(period.wakes)));
    let path = Path::back(recording);
    let own = periods.iter().filter_map(|period| path.by_thread.get(&period.thread));
    let of_periods = own.fold(0, |sum: u64, ns| sum.saturating_add(*ns));
    let waiting = path.share(path.waits_ns);
    let is_waiting = waiting >= WAITING_MIN && count >= WAITS_MIN;
    let is_marked = !recording.info.frames.is_empty();
    if !is_marked && !is_waiting && path.share(of_periods) < PERIODIC_MIN {
        return None;
    }
    let turns = if is_marked {
        marked_turns(recording, frame_period(&recording.info.frames, &periods))
    } else {
        let has_display = periods.first().is_some_and(|period| is_of_display(period.ns));
        let counted = periods.iter().filter(|period| !has_display || is_of_display(period.ns));
        counted.flat_map(|period| unmarked_turns(recording, period, &periodic)).collect()
    };
    let frames = frame_count(recording, &turns, is_marked);
    Some(Interactive { waiting, periods, frames, turns, periodic })
}

/// Rates of displays, in Hz.
const DISPLAYS_HZ: [f64; 7] = [30.0, 48.0, 60.0, 72.0, 90.0, 120.0, 144.0];

/// Whether a period is a display's, within 1 %.
fn is_of_display(period_ns: u64) -> bool {
    DISPLAYS_HZ.iter().any(|hz| (period_ns as f64 * hz / 1e9 - 1.0).abs() <= 0.01)
}

/// The period of times in ascending order, in ns, and the places of those that are one period before or behind another
/// one; none if there is none.
///
/// The densest place of the distances between a time and its next [`LAGS`] ones is tried, and of several as dense ones
/// the shortest, as multiples are as dense.
pub(crate) fn period(times: &[u64]) -> Option<(u64, Vec<usize>)> {
    let pairs = (0..times.len())
        .flat_map(|at| (at + 1..times.len().min(at + 1 + LAGS)).map(move |next| (at, next)));
    let distance = |(at, next): (usize, usize)| times[next].saturating_sub(times[at]);
    let mut distances: Vec<u64> =
        pairs.clone().map(distance).filter(|ns| (PERIOD_NS.0..=PERIOD_NS.1).contains(ns)).collect();
    distances.sort_unstable();
    let end = |from: usize| {
        let until = distances[from] as f64 * (1.0 + 2.0 * JITTER);
        distances.partition_point(|&ns| ns as f64 <= until)
    };
    let ends: Vec<usize> = (0..distances.len()).map(end).collect();
    let count = |from: usize| ends[from] - from;
    let most = (0..distances.len()).map(count).max()?;
    let first = (0..distances.len()).find(|&from| 10 * count(from) >= 9 * most)?;
    let best = (first..ends[first]).max_by_key(|&from| (count(from), std::cmp::Reverse(from)))?;
    let ns = distances[best + count(best) / 2];
    let mut is_hit = vec![false; times.len()];
    let mut before = HashSet::new();
    for (at, next) in pairs {
        if distance((at, next)).abs_diff(ns) as f64 <= JITTER * ns as f64 {
            before.insert(at);
            (is_hit[at], is_hit[next]) = (true, true);
        }
    }
    let tried = times.len().saturating_sub(1).max(1) as f64;
    let (chance, deviations) = CHANCE;
    let least = chance + deviations * (chance * (1.0 - chance) / tried).sqrt();
    let hits = (0..times.len()).filter(|&at| is_hit[at]).collect();
    (before.len() as f64 / tried >= least.max(SHARE_MIN)).then_some((ns, hits))
}

/// The frames' period: that of marked frames' begins, else that of the thread with the most wake-ups.
fn frame_period(frames: &[Frames], periods: &[Period]) -> Option<u64> {
    let begins = |frames: &Frames| frames.spans.iter().map(|span| span.0).collect::<Vec<_>>();
    let own = frames.iter().filter_map(|frames| period(&begins(frames)));
    let own = own.max_by_key(|(_, hits)| hits.len()).map(|(ns, _)| ns);
    own.or_else(|| periods.first().map(|period| period.ns))
}

/// The frames of a thread without marks: from a wait that ends at its period to the next wait for the clock.
fn unmarked_turns(
    recording: &Recording,
    period: &Period,
    periodic: &HashSet<(u32, u32)>,
) -> Vec<Turn> {
    let thread = period.thread;
    let recorded = &recording.threads[thread as usize];
    let mut found = Vec::new();
    let mut begun: Option<u32> = None;
    for (at, event) in (0..).zip(&recorded.events) {
        let is_periodic = periodic.contains(&(thread, at));
        if !is_periodic && !is_tied(event) {
            continue;
        }
        found.extend(begun.map(|first| turn(recorded, period.ns, (thread, first, at))));
        begun = is_periodic.then_some(at);
    }
    found
}

fn turn(recorded: &Thread, period_ns: u64, (thread, first, last): (u32, u32, u32)) -> Turn {
    let end = &recorded.events[last as usize];
    let began_ns = over_ns(recorded, first as usize);
    // It ends where its last wait begins.
    let ended_ns = over_ns(recorded, last as usize).saturating_sub(end.wait_ns).max(began_ns);
    Turn { thread, first, last, begun_ns: began_ns, ended_ns, period_ns }
}

/// Shortest wait of no period that is for the clock or input, in ns (ours): what others answer takes less, and as long
/// as it took.
pub(crate) const TIED_NS_MIN: u64 = 2_000_000;

/// Whether a wait ends at the time at which it ended, though its thread has no period there.
pub(crate) fn is_tied(event: &Event) -> bool {
    is_of_clock(event) && event.wait_ns >= TIED_NS_MIN
}

/// Frames by their marks: from the wait before a slice to the first event behind it. One that a second thread of the
/// process goes on with (`DrawFrame`) ends there, and not in the first.
fn marked_turns(recording: &Recording, period_ns: Option<u64>) -> Vec<Turn> {
    let Some(period_ns) = period_ns else { return Vec::new() };
    let mut own: Vec<(bool, Turn)> = Vec::new();
    for frames in &recording.info.frames {
        let Some(recorded) = recording.threads.get(frames.thread as usize) else { continue };
        let is_second = frames.marker.starts_with("DrawFrame");
        let mut turns: Vec<Turn> = Vec::new();
        for &(since_ns, until_ns) in &frames.spans {
            let events = &recorded.events;
            let before = events.partition_point(|event| event.at_ns <= since_ns);
            let Some(first) = events[..before].iter().rposition(|event| event.wait_ns > 0) else {
                continue;
            };
            let behind = events.partition_point(|event| event.at_ns < until_ns).max(first + 1);
            let Some(last) = events.get(behind).map(|_| behind as u32) else { continue };
            let found = turn(recorded, period_ns, (frames.thread, first as u32, last));
            match turns.last_mut().filter(|turn| turn.last > found.first) {
                Some(turn) => (turn.last, turn.ended_ns) = (found.last, found.ended_ns),
                None => turns.push(found),
            }
        }
        own.extend(turns.into_iter().map(|turn| (is_second, turn)));
    }
    let process = |turn: &Turn| recording.threads[turn.thread as usize].process;
    let mut firsts: BTreeMap<(u32, u64), usize> = BTreeMap::new();
    for (at, (_, turn)) in own.iter().enumerate().filter(|(_, (is_second, _))| !is_second) {
        firsts.insert((process(turn), turn.begun_ns), at);
    }
    let mut goes_on = HashSet::new();
    for (_, turn) in own.iter_mut().filter(|(is_second, _)| *is_second) {
        let of_process = firsts.range((process(turn), 0)..=(process(turn), turn.begun_ns));
        if let Some((&(_, begun_ns), &first)) = of_process.last() {
            turn.begun_ns = begun_ns;
            goes_on.insert(first);
        }
    }
    own.iter()
        .enumerate()
        .filter(|(at, _)| !goes_on.contains(at))
        .map(|(_, (_, turn))| *turn)
        .collect()
}

/// The period told is that of the first frames.
fn frame_count(recording: &Recording, turns: &[Turn], marked: bool) -> Option<FrameCount> {
    let period_ns = turns.first()?.period_ns;
    let mut threads: Vec<String> = Vec::new();
    let mut times = Histogram::default();
    let mut by_thread: BTreeMap<u32, ThreadFrames> = BTreeMap::new();
    for turn in turns {
        let name = &recording.threads[turn.thread as usize].name;
        if !threads.contains(name) {
            threads.push(name.clone());
        }
        times.count(turn.length_ns());
        let own = by_thread.entry(turn.thread).or_default();
        own.thread = turn.thread;
        own.frames += 1;
        own.late += usize::from(turn.is_late());
        if turn.length_ns() >= own.longest_ns {
            (own.longest_ns, own.longest_until_ns) = (turn.length_ns(), turn.ended_ns);
        }
    }
    let mut times = Distribution::from(&times);
    times.drop_histogram();
    let mut by_thread: Vec<ThreadFrames> = by_thread.into_values().collect();
    by_thread.sort_by_key(|own| (std::cmp::Reverse((own.late, own.longest_ns)), own.thread));
    let late = turns.iter().filter(|turn| turn.is_late()).count();
    Some(FrameCount { period_ns, threads, marked, frames: turns.len(), late, times, by_thread })
}

/// The path back from what ends last.
#[derive(Default)]
struct Path {
    ns: u64,
    /// Waits for the clock or outside, and the time before a thread that no recorded one has started, in ns.
    waits_ns: u64,
    /// Such waits of each thread, in ns.
    by_thread: BTreeMap<u32, u64>,
}

impl Path {
    fn back(recording: &Recording) -> Self {
        let threads = &recording.threads;
        let end_ns =
            |thread: &u32| threads[*thread as usize].events.last().map_or(0, |event| event.at_ns);
        let Some(mut thread) = (0..threads.len() as u32).max_by_key(end_ns) else {
            return Self::default();
        };
        let mut found = Self { ns: end_ns(&thread), ..Self::default() };
        let mut next = threads[thread as usize].events.len();
        // Clocks of cores may differ, so that it might go to and fro.
        for _ in 0..recording.events() {
            let Some(at) = next.checked_sub(1) else { break };
            let event = &threads[thread as usize].events[at];
            next = at;
            let cause = match (event.kind, Wake::from_aux(event.aux)) {
                (Kind::Block, Wake::Thread(waker)) => Some(waker),
                (Kind::Join, _) => Some(event.object),
                (Kind::Start, _) => event.aux.checked_sub(1),
                _ => None,
            };
            if event.kind == Kind::Start && cause.is_none() {
                found.waits_ns = found.waits_ns.saturating_add(event.at_ns);
            }
            if is_of_clock(event) {
                found.waits_ns = found.waits_ns.saturating_add(event.wait_ns);
                let own_ns = found.by_thread.entry(thread).or_default();
                *own_ns = own_ns.saturating_add(event.wait_ns);
            } else if let Some(cause) =
                cause.filter(|&cause| cause != thread && (cause as usize) < threads.len())
            {
                thread = cause;
                next = threads[cause as usize]
                    .events
                    .partition_point(|other| other.at_ns <= event.at_ns);
            }
        }
        found
    }

    fn share(&self, ns: u64) -> f64 {
        (ns as f64 / self.ns.max(1) as f64).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The next number of a simple generator, 0 to 1 (Numerical Recipes' constants).
    fn random(state: &mut u64) -> f64 {
        *state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn poisson(seed: u64, mean_ms: f64, count: usize) -> Vec<u64> {
        let (mut state, mut at_ns) = (seed, 0.0);
        let mut next = || {
            at_ns -= mean_ms * 1e6 * (1.0 - random(&mut state)).ln();
            at_ns as u64
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn random_wake_ups_hardly_ever_have_a_period() {
        let mut found = 0;
        for seed in 0..1_500_u64 {
            let (mean_ms, count) =
                ([2.0, 5.0, 12.0, 17.0, 40.0][seed as usize % 5], 12 + seed as usize % 300);
            found += usize::from(period(&poisson(seed * 7919 + 1, mean_ms, count)).is_some());
        }
        assert!(found <= 3, "{found} of 1500");
        assert_eq!(period(&[]), None);
        assert_eq!(period(&[1, 2]), None);
        assert_eq!(period(&[5; 100]), None);
    }

    #[test]
    fn vsync_is_found_beside_jitter_gaps_and_other_wake_ups() {
        for (hz, seed) in [(60.0, 1_u64), (90.0, 2), (120.0, 3), (60.03, 4)] {
            let (mut state, period_ns) = (seed, 1e9 / hz);
            let mut times = Vec::new();
            for number in 0..240 {
                // Nothing to draw for 0.4 of the time; every third frame something else wakes it.
                if number % 50 < 20 {
                    continue;
                }
                let at_ns = number as f64 * period_ns;
                times.push((at_ns + 150_000.0 * random(&mut state)) as u64);
                if number % 3 == 0 {
                    times.push((at_ns + (0.2 + 0.6 * random(&mut state)) * period_ns) as u64);
                }
            }
            let (found_ns, hits) = period(&times).unwrap_or_else(|| panic!("{hz} Hz"));
            assert!((found_ns as f64 / period_ns - 1.0).abs() < 0.01, "{hz} Hz: {found_ns} ns");
            assert!(hits.len() >= 140, "{}", hits.len());
        }
    }
}
