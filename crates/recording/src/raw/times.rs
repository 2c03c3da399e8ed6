//! Ticks become ns, and the kernel's readings CPU time of every stretch between two events.

use super::read::{ANCHOR, CONTENDED, OWN_TIME, Pair, Raw, RawThread, WAITED};
use crate::model::EXIT_BY_PROCESS;
use crate::{Kind, UNKNOWN_CORE};

/// Less than this without a core is no waiting: clocks are read one after the other, in ns.
const OFF_CORE_NS: f64 = 1000.0;
/// The recorder's time after an event is a mean: what is less is owed by what follows, up to so many events' time.
/// Without a limit, a mean that is too high would take the work of whole loops.
const OWED_EVENTS: f64 = 16.0;
/// A stretch of time of two clocks that is too short to compare them, in ns.
const SHORT_NS: u64 = 1_000_000;

/// What a tick is.
pub struct Scale {
    begin_ticks: u64,
    ns_per_tick: f64,
}

impl Scale {
    /// By the longest stretch of time that was measured by both clocks.
    pub fn of(threads: &[RawThread<'_>]) -> Self {
        let begins = threads.iter().map(|thread| thread.head.begin);
        let first = begins.clone().min_by_key(|pair| pair.ticks).unwrap_or_default();
        let moments = begins.chain(threads.iter().map(|thread| thread.head.last));
        let last = moments.max_by_key(|pair| pair.ticks).unwrap_or_default();
        let whole = Pair {
            ticks: last.ticks.saturating_sub(first.ticks),
            ns: last.ns.saturating_sub(first.ns),
        };
        let rates = threads.iter().map(|thread| thread.head.rate);
        let measured = rates.max_by_key(|pair| pair.ns).unwrap_or_default();
        let used = if whole.ns >= SHORT_NS || measured.ns == 0 { whole } else { measured };
        let is_usable = used.ticks > 0 && used.ns > 0;
        let ns_per_tick = if is_usable { used.ns as f64 / used.ticks as f64 } else { 1.0 };
        Self { begin_ticks: first.ticks, ns_per_tick }
    }

    /// A stretch of time in ns.
    pub fn ns(&self, ticks: u64) -> f64 {
        ticks as f64 * self.ns_per_tick
    }

    /// A moment in ns since the recording's begin.
    pub fn at_ns(&self, ticks: u64) -> u64 {
        self.ns(ticks.saturating_sub(self.begin_ticks)) as u64
    }
}

/// An event with its times, in ns; see [`Event`](crate::Event).
#[derive(Clone, Copy, Debug)]
pub struct Timed {
    /// A number of [`Kind`](crate::Kind), or one that only raw files have.
    pub kind: u8,
    /// The object as it stands in the file.
    pub object: u32,
    /// The detail as it stands in the file.
    pub aux: u32,
    /// Whether the thread had to block.
    pub is_blocked: bool,
    /// Whether the thread lost its core before.
    pub is_preempted: bool,
    /// Where.
    pub core: u16,
    /// When it ended.
    pub at_ns: u64,
    /// CPU time before it.
    pub cpu_ns: u64,
    /// Time inside it without a core.
    pub wait_ns: u64,
}

/// What is known of a thread's time at one of its events.
struct Clock<'a> {
    scale: &'a Scale,
    /// The recorder's time after an event without and with a reading.
    costs_ns: [f64; 2],
    at_ticks: u64,
    /// The last reading, and ns by ticks since then.
    read_ns: f64,
    since_ns: f64,
    /// The recorder's time after the last event; none before the first one, when the thread is being made.
    cost_ns: Option<f64>,
    /// Of stretches that no event of the program has ended yet; negative: owed.
    carried_ns: f64,
    is_preempted: bool,
    core: u16,
    /// The last event: the next one may still correct it.
    last: Option<Timed>,
}

impl Clock<'_> {
    /// Goes on to an event; returns the one before, which is final.
    fn add(&mut self, raw: Raw) -> Option<Timed> {
        let passed_ns = self.scale.ns(raw.ticks);
        self.at_ticks = self.at_ticks.saturating_add(raw.ticks);
        let used_ns = self.used_ns(&raw, passed_ns);
        let off_ns = passed_ns - used_ns;
        let is_read = raw.reading.is_some();
        let cost_ns = self.cost_ns.replace(self.costs_ns[usize::from(is_read)]);
        let is_waiting = raw.flags & WAITED != 0;
        let mut is_off = false;
        if let Some(cost_ns) = cost_ns.filter(|_| raw.kind != OWN_TIME) {
            // What has been taken back from the last event is not owed as well.
            let own_ns = if is_taken_back(used_ns) { 0.0 } else { used_ns };
            let owed_max_ns = OWED_EVENTS * self.costs_ns[0];
            self.carried_ns = (self.carried_ns + own_ns - cost_ns).max(-owed_max_ns);
            is_off = is_read && off_ns >= OFF_CORE_NS;
            self.is_preempted |= is_off && !is_waiting;
        }
        if raw.kind == ANCHOR || raw.kind == OWN_TIME {
            return None;
        }
        let has_waited = is_off && is_waiting;
        let cpu_ns = self.carried_ns.max(0.0);
        self.carried_ns -= cpu_ns;
        self.last.replace(Timed {
            kind: raw.kind,
            object: raw.object,
            aux: raw.aux,
            is_blocked: raw.flags & CONTENDED != 0 || has_waited,
            is_preempted: std::mem::take(&mut self.is_preempted),
            core: self.core,
            at_ns: self.scale.at_ns(self.at_ticks),
            cpu_ns: cpu_ns.round() as u64,
            wait_ns: if has_waited { off_ns.round() as u64 } else { 0 },
        })
    }

    /// CPU time before an event, the recorder's included.
    fn used_ns(&mut self, raw: &Raw, passed_ns: f64) -> f64 {
        let Some((read_ns, core)) = raw.reading else {
            self.since_ns += passed_ns;
            return passed_ns;
        };
        let used_ns = read_ns as f64 - self.read_ns - self.since_ns;
        if is_taken_back(used_ns) {
            self.take_back(-used_ns);
        }
        self.read_ns = read_ns as f64;
        self.since_ns = 0.0;
        self.core = u16::try_from(core).unwrap_or(UNKNOWN_CORE);
        used_ns
    }

    /// The end of a thread that still ran at the end of its process.
    fn stop(&mut self, stopped: Pair) -> Option<Timed> {
        let is_open = self.last.is_some_and(|last| last.kind != Kind::Exit as u8);
        if is_open && stopped.ticks > self.at_ticks {
            let ticks = stopped.ticks - self.at_ticks;
            let reading = Some((stopped.ns, u32::MAX));
            let (kind, flags, object, aux) = (Kind::Exit as u8, 0, 0, EXIT_BY_PROCESS);
            return self.add(Raw { kind, flags, ticks, object, aux, reading });
        }
        None
    }

    /// The kernel tells less than the ticks did: the last event was just being noted when the thread lost its core.
    fn take_back(&mut self, too_much_ns: f64) {
        if let Some(last) = self.last.as_mut() {
            last.cpu_ns = last.cpu_ns.saturating_sub(too_much_ns as u64);
        }
    }
}

/// Whether CPU time before an event is so far below zero that the event before has too much.
fn is_taken_back(used_ns: f64) -> bool {
    used_ns <= -OFF_CORE_NS
}

/// Hands over the events of a thread with their times. Returns its CPU time then, in ns, the recorder's included.
pub fn timed(thread: &RawThread<'_>, scale: &Scale, mut take: impl FnMut(Timed)) -> f64 {
    let mut clock = Clock {
        scale,
        costs_ns: thread.head.costs.map(|ticks| scale.ns(ticks)),
        at_ticks: thread.head.begin.ticks,
        read_ns: 0.0,
        since_ns: 0.0,
        cost_ns: None,
        carried_ns: 0.0,
        is_preempted: false,
        core: UNKNOWN_CORE,
        last: None,
    };
    let mut events = thread.events().peekable();
    while let Some(mut raw) = events.next() {
        if raw.kind == Kind::Exit as u8 && events.peek().is_some() {
            raw.kind = ANCHOR; // destructors of the thread's data have done something yet
        }
        if let Some(event) = clock.add(raw) {
            take(event);
        }
    }
    let before = clock.stop(thread.head.stopped);
    before.into_iter().chain(clock.last).for_each(take);
    clock.read_ns + clock.since_ns
}

/// Time that the recorder took of a thread, in ns.
pub fn recorder_ns(thread: &RawThread<'_>, scale: &Scale) -> f64 {
    let [fast_ticks, slow_ticks] = thread.head.costs;
    let cost = |raw: Raw| if raw.reading.is_some() { slow_ticks } else { fast_ticks };
    scale.ns(thread.events().map(cost).sum()) + thread.head.own_ns as f64
}
