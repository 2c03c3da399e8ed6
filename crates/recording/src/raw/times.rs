//! Ticks become ns, and the kernel's readings CPU time of every stretch between two events.

use super::read::{ANCHOR, CONTENDED, OWN_TIME, Pair, Raw, RawThread, WAITED};
use crate::UNKNOWN_CORE;

/// Less than this without a core is no waiting: clocks are read one after the other, in ns.
const OFF_CORE_NS: f64 = 1000.0;
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
#[derive(Default)]
struct Clock {
    at_ticks: u64,
    /// The last reading, and ns by ticks since then.
    read_ns: f64,
    since_ns: f64,
    /// The recorder's time after the last event.
    cost_ns: f64,
    /// Of stretches that no event of the program has ended yet.
    carried_ns: f64,
    is_preempted: bool,
    core: u16,
}

/// The events of a thread with their times.
pub fn timed(thread: &RawThread<'_>, scale: &Scale) -> Vec<Timed> {
    let head = &thread.head;
    let [fast_ns, slow_ns, _] = head.costs.map(|ticks| scale.ns(ticks));
    let mut clock = Clock { at_ticks: head.begin.ticks, core: UNKNOWN_CORE, ..Clock::default() };
    let mut found: Vec<Timed> = Vec::new();
    for (index, raw) in thread.events().enumerate() {
        let passed_ns = scale.ns(raw.ticks);
        clock.at_ticks = clock.at_ticks.saturating_add(raw.ticks);
        let mut used_ns = passed_ns;
        if let Some((read_ns, core)) = raw.reading {
            used_ns = read_ns as f64 - clock.read_ns - clock.since_ns;
            clock.read_ns = read_ns as f64;
            take_back(&mut found, -used_ns);
            clock.since_ns = 0.0;
            clock.core = u16::try_from(core).unwrap_or(UNKNOWN_CORE);
        } else {
            clock.since_ns += passed_ns;
        }
        // Before its first event, a thread is being made; what the recorder took for itself is not the program's.
        let is_program = index > 0 && raw.kind != OWN_TIME;
        let off_ns = passed_ns - used_ns;
        if is_program {
            clock.carried_ns += (used_ns - clock.cost_ns).max(0.0);
        }
        clock.cost_ns = if raw.reading.is_some() { slow_ns } else { fast_ns };
        let is_off = is_program && raw.reading.is_some() && off_ns >= OFF_CORE_NS;
        let waited = raw.flags & WAITED != 0;
        clock.is_preempted |= is_off && !waited;
        if raw.kind == ANCHOR || raw.kind == OWN_TIME {
            continue;
        }
        found.push(Timed {
            kind: raw.kind,
            object: raw.object,
            aux: raw.aux,
            is_blocked: raw.flags & CONTENDED != 0 || (is_off && waited),
            is_preempted: clock.is_preempted,
            core: clock.core,
            at_ns: scale.at_ns(clock.at_ticks),
            cpu_ns: clock.carried_ns.round() as u64,
            wait_ns: if is_off && waited { off_ns.round() as u64 } else { 0 },
        });
        clock.carried_ns = 0.0;
        clock.is_preempted = false;
    }
    found
}

/// The kernel tells less than the ticks did: the last event was just being noted when the thread lost its core.
fn take_back(found: &mut [Timed], too_much_ns: f64) {
    if let Some(last) = found.last_mut().filter(|_| too_much_ns >= OFF_CORE_NS) {
        last.cpu_ns = last.cpu_ns.saturating_sub(too_much_ns as u64);
    }
}

/// Time that the recorder took of a thread, in ns.
pub fn recorder_ns(thread: &RawThread<'_>, scale: &Scale) -> f64 {
    let [fast_ticks, slow_ticks, own_ticks] = thread.head.costs;
    let cost = |raw: Raw| if raw.reading.is_some() { slow_ticks } else { fast_ticks };
    scale.ns(thread.events().map(cost).sum::<u64>() + own_ticks)
}
