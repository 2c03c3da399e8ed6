//! How long threads wait for a core after a wake-up, and whether their periods end in time.
//!
//! *Wake-up latency* and *period* are defined in `docs/reference/latency.md`; the live back end in the kernel measures
//! the first by the same definition (`crates/live/scx/bpf/scheduler/latency.h`).

use std::ops::AddAssign;

use ampsched_model::{Histogram, Ns, SchedClass, ThreadId};

use super::Engine;
use super::threads::WaitsFor;
use super::timers::NEVER;
use crate::Periods as PeriodSummary;

/// What is counted of one thread.
#[derive(Debug)]
pub(super) struct Timeliness {
    /// When it was woken, if it has not had a core since; else [`NEVER`].
    woken_ns: Ns,
    pub latency: Histogram,
    /// None: it has no periods.
    pub periods: Option<Box<Periods>>,
}

impl Default for Timeliness {
    fn default() -> Self {
        Self { woken_ns: NEVER, latency: Histogram::default(), periods: None }
    }
}

impl Timeliness {
    /// The thread was blocked and is runnable now.
    #[inline]
    pub fn wakes(&mut self, now_ns: Ns) {
        self.woken_ns = now_ns;
    }

    /// The thread gets a core.
    #[inline]
    pub fn gets_core(&mut self, now_ns: Ns) {
        if self.woken_ns != NEVER {
            self.latency.count(now_ns - self.woken_ns);
            self.woken_ns = NEVER;
        }
    }

    fn periods(&mut self) -> &mut Periods {
        self.periods.get_or_insert_default()
    }

    /// The thread ends, or the run does, before it has ended its period's work.
    pub fn stops(&mut self, now_ns: Ns) {
        if let Some(periods) = &mut self.periods {
            periods.stop(now_ns);
        }
    }
}

/// A period whose work has not ended.
#[derive(Clone, Copy, Debug)]
struct Present {
    begun_ns: Ns,
    due_ns: Ns,
}

/// The periods of a thread.
#[derive(Debug, Default)]
pub(super) struct Periods {
    /// Whether a timer begins them, not the wake-ups of a deadline thread.
    by_timer: bool,
    present: Option<Present>,
    ended_ns: Option<Ns>,
    /// From the beginning of a period to the end of its work.
    responses: Histogram,
    /// Between the ends of the work of successive periods.
    frames: Histogram,
    /// Time from the end of a period's work until it was due, of those in time.
    spare: Histogram,
    /// Of the others, how late they were.
    late: Histogram,
    slack_min_ns: i64,
}

impl Periods {
    /// A period begins at that time, and its work is due at another one.
    fn begin(&mut self, begun_ns: Ns, due_ns: Ns) {
        self.present = Some(Present { begun_ns, due_ns });
    }

    /// The work of the present period has ended.
    fn end(&mut self, now_ns: Ns) {
        let Some(present) = self.present.take() else { return };
        self.responses.count(now_ns.saturating_sub(present.begun_ns));
        if let Some(before_ns) = self.ended_ns.replace(now_ns) {
            self.frames.count(now_ns - before_ns);
        }
        self.settle(present.due_ns, now_ns);
    }

    /// Nothing more is done: a period whose work is overdue is missed.
    fn stop(&mut self, now_ns: Ns) {
        if let Some(present) = self.present.take().filter(|present| present.due_ns < now_ns) {
            self.settle(present.due_ns, now_ns);
        }
    }

    fn settle(&mut self, due_ns: Ns, now_ns: Ns) {
        let slack_ns = due_ns as i64 - now_ns as i64;
        let least_ns = if self.count() == 0 { slack_ns } else { self.slack_min_ns };
        self.slack_min_ns = least_ns.min(slack_ns);
        if slack_ns < 0 {
            self.late.count(slack_ns.unsigned_abs());
        } else {
            self.spare.count(slack_ns as Ns);
        }
    }

    fn count(&self) -> u64 {
        self.spare.len() + self.late.len()
    }

    /// The median of the slack, by nearest rank: the latest first, then those with the least to spare.
    fn slack_p50_ns(&self) -> i64 {
        let (rank, missed) = (self.count().div_ceil(2), self.late.len());
        match rank.checked_sub(missed + 1) {
            Some(others) => self.spare.at_rank_ns(others + 1) as i64,
            None => -(self.late.at_rank_ns(missed - rank + 1) as i64),
        }
    }

    /// For the results; none if there was no period.
    pub fn summary(&self) -> Option<PeriodSummary> {
        (self.count() > 0).then(|| PeriodSummary {
            count: self.count(),
            missed: self.late.len(),
            slack_p50_ns: self.slack_p50_ns(),
            slack_min_ns: self.slack_min_ns,
            response: (&self.responses).into(),
            frame: (&self.frames).into(),
        })
    }
}

/// Those of several threads together.
impl AddAssign<&Periods> for Periods {
    fn add_assign(&mut self, other: &Periods) {
        if other.count() == 0 {
            return;
        }
        self.slack_min_ns = match self.count() {
            0 => other.slack_min_ns,
            _ => self.slack_min_ns.min(other.slack_min_ns),
        };
        self.responses += &other.responses;
        self.frames += &other.frames;
        self.spare += &other.spare;
        self.late += &other.late;
    }
}

impl Engine<'_> {
    /// A thread waits for a timer: the work of its period has ended, and the next one of that length begins then. A
    /// wait of no length only sets the timer.
    pub(super) fn end_period(&mut self, thread: ThreadId, next_ns: Ns, period_ns: Ns) {
        let relative_ns = self.deadline_ns(thread).unwrap_or(period_ns);
        let periods = self.threads[thread].timeliness.periods();
        periods.by_timer = true;
        if period_ns == 0 {
            return;
        }
        periods.end(self.events.now_ns());
        periods.begin(next_ns, next_ns + relative_ns);
    }

    /// A thread has ended its present period's work; unless it has no length, the next one begins, or began, so long
    /// after the application's begin.
    pub(super) fn next_period(&mut self, thread: ThreadId, begun_ns: Ns, length_ns: Ns) {
        let began_ns = self.apps[self.threads[thread].app].began_ns;
        let begun_ns = began_ns.saturating_add(begun_ns);
        let now_ns = self.events.now_ns();
        let periods = self.threads[thread].timeliness.periods();
        periods.by_timer = true;
        periods.end(now_ns);
        if length_ns > 0 {
            periods.begin(begun_ns, begun_ns.saturating_add(length_ns));
        }
    }

    /// A thread that begins its work, if it is a deadline thread: a period begins.
    pub(super) fn begin_job(&mut self, thread: ThreadId, begun_ns: Ns) {
        let Some(relative_ns) = self.deadline_ns(thread) else { return };
        let periods = self.threads[thread].timeliness.periods();
        if !periods.by_timer && periods.present.is_none() {
            periods.begin(begun_ns, begun_ns + relative_ns);
        }
    }

    /// A thread waits, or yields, if it is a deadline thread: its work has ended, unless it only waits for a mutex.
    pub(super) fn end_job(&mut self, thread: ThreadId) {
        if self.deadline_ns(thread).is_none() {
            return;
        }
        let entry = &mut self.threads[thread];
        let waits_for_mutex = match entry.waits_for {
            WaitsFor::Object(object) => self.objects.is_mutex(object),
            _ => false,
        };
        let periods = entry.timeliness.periods.as_deref_mut();
        if let Some(periods) = periods.filter(|periods| !periods.by_timer && !waits_for_mutex) {
            periods.end(self.events.now_ns());
        }
    }

    /// The relative deadline of a thread, if it has one.
    fn deadline_ns(&self, thread: ThreadId) -> Option<Ns> {
        if !self.has_realtime() {
            return None;
        }
        match self.sched.attrs(thread).class {
            SchedClass::Deadline { deadline_ns, .. } => Some(deadline_ns),
            _ => None,
        }
    }
}
