//! Puts events between those of a thread, which keeps its CPU time.

use crate::{Event, Kind};

/// How much a thread has run by when, as the kernel tells it.
pub struct Ran(Vec<(u64, u64)>);

impl Ran {
    /// By a thread's events: between two of them it has run first, and then lost its core or waited.
    pub fn of(events: &[Event]) -> Self {
        let mut sum_ns = 0_u64;
        let point = |event: &Event| {
            sum_ns = sum_ns.saturating_add(event.cpu_ns);
            (event.at_ns, sum_ns)
        };
        Self(events.iter().map(point).collect())
    }

    /// CPU time by then, in ns.
    pub fn by(&self, at_ns: u64) -> u64 {
        let behind = self.0.partition_point(|(point_ns, _)| *point_ns <= at_ns);
        let (since_ns, sum_ns) = behind.checked_sub(1).map_or((0, 0), |last| self.0[last]);
        let most_ns = self.0.get(behind).map_or(sum_ns, |next| next.1);
        sum_ns.saturating_add(at_ns - since_ns).min(most_ns)
    }
}

/// Adds events, each before that of the index beside it, and gives them their shares of the CPU time up to there.
pub fn weave(events: &mut Vec<Event>, mut added: Vec<(usize, Event)>, ran: &Ran) {
    added.sort_by_key(|(index, event)| (*index, event.at_ns));
    let mut added = added.into_iter().peekable();
    let mut woven: Vec<Event> = Vec::with_capacity(events.len() + added.len());
    for (index, mut event) in events.drain(..).enumerate() {
        let begin_ns = woven.last().map_or(0, |before| before.at_ns);
        let (cpu_ns, work_ns) = (event.cpu_ns, event.work_ns);
        let done_ns = ran.by(begin_ns);
        let all_ns = ran.by(event.at_ns).saturating_sub(done_ns);
        while let Some((_, mut new)) = added.next_if(|(place, _)| *place == index) {
            let before_ns = woven.last().map_or(0, |before| before.at_ns);
            let latest_ns = match new.kind {
                Kind::Wake | Kind::Create => event.waits_from_ns(),
                _ => event.at_ns,
            };
            new.at_ns = new.at_ns.min(latest_ns).max(before_ns);
            event.wait_ns = event.wait_ns.min(event.at_ns.saturating_sub(new.at_ns));
            new.core = event.core;
            let part = ran.by(new.at_ns).saturating_sub(done_ns) as f64 / all_ns.max(1) as f64;
            let part = part.min(1.0);
            let left = |all: u64, rest: u64| rest.min(all - (all as f64 * part) as u64);
            let (cpu_left_ns, work_left_ns) =
                (left(cpu_ns, event.cpu_ns), left(work_ns, event.work_ns));
            (new.cpu_ns, new.work_ns) = (event.cpu_ns - cpu_left_ns, event.work_ns - work_left_ns);
            (event.cpu_ns, event.work_ns) = (cpu_left_ns, work_left_ns);
            woven.push(new);
        }
        woven.push(event);
    }
    *events = woven;
}

/// Leaves out events that are not wanted; their CPU time belongs to what follows.
pub fn keep(events: &mut Vec<Event>, is_wanted: impl Fn(&Event) -> bool) {
    let (mut cpu_ns, mut work_ns) = (0_u64, 0_u64);
    events.retain_mut(|event| {
        event.cpu_ns = event.cpu_ns.saturating_add(std::mem::take(&mut cpu_ns));
        event.work_ns = event.work_ns.saturating_add(std::mem::take(&mut work_ns));
        let is_kept = is_wanted(event);
        if !is_kept {
            (cpu_ns, work_ns) = (event.cpu_ns, event.work_ns);
        }
        is_kept
    });
}
