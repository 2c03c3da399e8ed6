//! A parallel loop that is being executed.
//!
//! Every worker has a share of the iterations, at first in proportion to its speed at this very loop. It works its
//! share off from the front, in steps that last some microseconds. Who has finished takes from the back of the share
//! that would last longest, as much as makes both end at the same time by what has been measured. This is affinity
//! scheduling (Markatos, LeBlanc, IEEE TPDS 5(4), 1994), with shares weighted by speed as in weighted factoring (Hummel
//! et al., SPAA 1996).

use std::mem::forget;
use std::ops::{ControlFlow, Range};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use ampsched_task::WorkerId;

use crate::graph_job::Payload;
use crate::ranges::Share;
use crate::rates::RateId;

/// What a loop executes: some iterations one after the other. `Break` ends the loop.
pub type LoopBody<'a> = &'a (dyn Fn(Range<usize>) -> ControlFlow<()> + Sync);

/// How long a step should last. A step costs two changes of a word and a reading of the clock, about 50 ns on the
/// computers that we measured: a quarter of a percent. Nobody can take a step away from who has begun it, so it must
/// not be long either.
const STEP_NS: u64 = 20_000;
/// Shares count blocks of iterations with 32 bits; with fewer iterations than this a block is one.
const BLOCKS_MAX: usize = u32::MAX as usize;

/// An execution of some iterations; seconds are counted from the start of the runtime.
pub struct Step {
    /// The worker.
    pub worker: WorkerId,
    /// The iterations.
    pub range: Range<usize>,
    /// When it began.
    pub start: Instant,
    /// When it ended.
    pub end: Instant,
}

/// What a worker has done for a loop.
#[derive(Default)]
pub struct Done {
    /// Iterations.
    pub iterations: usize,
    /// Time for them.
    pub seconds: f64,
}

/// A parallel loop.
pub struct LoopJob {
    body: LoopBody<'static>,
    range: Range<usize>,
    /// Iterations per block.
    unit: usize,
    /// How fast the loop is executed from this place.
    pub site: RateId,
    shares: Box<[Share]>,
    /// Measured blocks per ns of each worker as bits of an f64; 0: not yet.
    measured: Box<[AtomicU64]>,
    /// Speed of each worker that is supposed until it has been measured, in any unit.
    supposed: Box<[f64]>,
    is_stopped: AtomicBool,
    panic: Mutex<Option<Payload>>,
    steps: Option<Mutex<Vec<Step>>>,
}

impl LoopJob {
    /// A loop without shares yet.
    pub fn new(
        body: LoopBody<'static>,
        range: Range<usize>,
        site: RateId,
        supposed: Box<[f64]>,
        is_recorded: bool,
    ) -> Self {
        Self {
            body,
            unit: range.len().div_ceil(BLOCKS_MAX).max(1),
            range,
            site,
            shares: supposed.iter().map(|_| Share::new(0..0)).collect(),
            measured: supposed.iter().map(|_| AtomicU64::new(0)).collect(),
            supposed,
            is_stopped: AtomicBool::new(false),
            panic: Mutex::new(None),
            steps: is_recorded.then(Mutex::default),
        }
    }

    /// Number of iterations.
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Gives each of these workers a share in proportion to its supposed speed; all to the first worker if there are
    /// none.
    pub fn deal(&self, members: &[WorkerId]) {
        let blocks = self.len().div_ceil(self.unit);
        let members = if members.is_empty() { &[WorkerId(0)] } else { members };
        let total: f64 = members.iter().map(|member| self.supposed[member.index()]).sum();
        let (mut start, mut sum) = (0_u32, 0.0);
        for (place, member) in members.iter().enumerate() {
            sum += self.supposed[member.index()];
            let is_last = place + 1 == members.len();
            let part = if is_last { 1.0 } else { sum / total };
            let end = ((part * blocks as f64).round() as u32).max(start);
            self.shares[member.index()].put(start..end);
            start = end;
        }
    }

    /// Whether some iterations have not been taken by anybody.
    pub fn has_more(&self) -> bool {
        !self.is_stopped() && self.shares.iter().any(|share| share.len() > 0)
    }

    /// Whether it was told to stop.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// What a body has panicked with.
    pub fn take_panic(&self) -> Option<Payload> {
        self.panic.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The executions, if they were recorded.
    pub fn take_steps(&self) -> Option<Vec<Step>> {
        let steps = self.steps.as_ref()?;
        Some(std::mem::take(&mut *steps.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Executes iterations until there are none left that nobody has taken.
    pub fn help(&self, worker: WorkerId) -> Done {
        let mut done = Done::default();
        // Whatever the body has left half done is reached by nobody: the panic goes on in the caller of the loop.
        let work = AssertUnwindSafe(|| self.work(worker, &mut done));
        if let Err(payload) = catch_unwind(work) {
            self.is_stopped.store(true, Ordering::Relaxed);
            let mut first = self.panic.lock().unwrap_or_else(PoisonError::into_inner);
            match *first {
                None => *first = Some(payload),
                Some(_) => forget(payload), // see `Payload`
            }
        }
        done
    }

    fn work(&self, worker: WorkerId, done: &mut Done) {
        let (mut step, mut blocks, mut ns) = (1_u32, 0_u64, 0_u64);
        let mut start = Instant::now();
        while !self.is_stopped() {
            let taken = self.take(worker, step);
            if taken.is_empty() {
                break;
            }
            let range = self.iterations(&taken);
            let flow = (self.body)(range.clone());
            let end = Instant::now();
            let step_ns = (end - start).as_nanos() as u64;
            blocks += u64::from(taken.end - taken.start);
            ns += step_ns;
            done.iterations += range.len();
            done.seconds = ns as f64 / 1e9;
            let speed = blocks as f64 / ns.max(1) as f64;
            self.measured[worker.index()].store(speed.to_bits(), Ordering::Relaxed);
            if let Some(steps) = &self.steps {
                let mut steps = steps.lock().unwrap_or_else(PoisonError::into_inner);
                steps.push(Step { worker, range, start, end });
            }
            if flow.is_break() {
                self.is_stopped.store(true, Ordering::Relaxed);
            }
            step = next_step(step, step_ns);
            start = end;
        }
    }

    /// The iterations of some blocks.
    fn iterations(&self, blocks: &Range<u32>) -> Range<usize> {
        let start = self.range.start + blocks.start as usize * self.unit;
        // The last block may be a part only, and end behind the greatest number there is.
        let iterations = (blocks.end - blocks.start) as usize * self.unit;
        start..start.saturating_add(iterations).min(self.range.end)
    }

    /// Up to `step` blocks: from the worker's own share, or else from another one's, of which the rest becomes its own.
    fn take(&self, worker: WorkerId, step: u32) -> Range<u32> {
        let own = &self.shares[worker.index()];
        let taken = own.take_front(step);
        if !taken.is_empty() {
            return taken;
        }
        while let Some(victim) = self.latest(worker) {
            let (mine, theirs) = (self.speed(worker), self.speed(victim));
            let part = mine / (mine + theirs);
            let part_of = |left: u32| ((f64::from(left) * part).round() as u32).max(1);
            let stolen = self.shares[victim.index()].take_back(part_of);
            if !stolen.is_empty() {
                let middle = stolen.start + step.min(stolen.end - stolen.start);
                own.put(middle..stolen.end);
                return stolen.start..middle;
            }
        }
        0..0
    }

    /// The other worker whose share would last longest.
    fn latest(&self, worker: WorkerId) -> Option<WorkerId> {
        let others = (0..self.shares.len()).map(WorkerId::from).filter(|&other| other != worker);
        let left = others.map(|other| (other, self.shares[other.index()].len()));
        let lasting = left.filter(|(_, left)| *left > 0).map(|(other, left)| {
            let duration = f64::from(left) / self.speed(other);
            (other, duration)
        });
        lasting.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(other, _)| other)
    }

    /// Speed of a worker at this loop: measured, or else supposed, in the unit of the measured ones.
    fn speed(&self, worker: WorkerId) -> f64 {
        let of = |place: usize| f64::from_bits(self.measured[place].load(Ordering::Relaxed));
        let own = of(worker.index());
        if own > 0.0 {
            return own;
        }
        let scale = (0..self.measured.len())
            .find_map(|place| (of(place) > 0.0).then(|| of(place) / self.supposed[place]));
        self.supposed[worker.index()] * scale.unwrap_or(1.0)
    }
}

/// Length of the next step: twice or half as long if the last one was far from what it should last.
fn next_step(step: u32, step_ns: u64) -> u32 {
    if step_ns < STEP_NS / 2 {
        step.saturating_mul(2)
    } else if step_ns > 2 * STEP_NS {
        (step / 2).max(1)
    } else {
        step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_from_both_ends_and_none_twice() {
        let share = Share::new(10..20);
        assert_eq!(share.take_front(3), 10..13);
        assert_eq!(share.take_back(|left| left / 2), 17..20);
        assert_eq!(share.len(), 4);
        assert_eq!(share.take_back(|_| 9), 13..17);
        assert!(share.take_front(1).is_empty() && share.take_back(|_| 1).is_empty());
        share.put(0..u32::MAX);
        assert_eq!(share.take_front(u32::MAX), 0..u32::MAX);
    }
}
