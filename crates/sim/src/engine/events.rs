//! Time: what happens next, and when.
//!
//! Every core has one timer (its next completion or slice end) in a winner tree; everything else
//! (sleeps, I/O, epochs, balancing) is in one heap. Simultaneous events are ordered by class, heap before cores: first
//! what happens to threads, then what hardware does, then who looks; and within a class by the order in which they were
//! scheduled, or by core number. So a run is reproducible bit by bit, and does not depend on how often anybody looks.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ampsched_model::{AppId, ClusterId, CoreId, Ns, ObjectId, ThreadId};

use super::timers::{CoreTimers, NEVER};

/// What the heap holds. Of simultaneous ones those first that stand above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SimEvent {
    /// An application starts.
    AppStart(AppId),
    /// A thread with a start delay starts: application, its repetition, specification, instance.
    ThreadStart(AppId, u32, u32, u32),
    /// The duration of an application's repetition is over.
    AppStop(AppId, u32),
    /// A sleeping thread wakes.
    Wake(ThreadId),
    /// A device has finished a request of a thread.
    IoDone(ObjectId, ThreadId),
    /// A cluster's clock has changed, as the given request wanted.
    Frequency(ClusterId, u32),
    /// A core has idled for long in the given stay.
    Deepen(CoreId, u32),
    /// Temperatures change.
    ThermalStep,
    /// A cluster's power sensor refreshes.
    PowerSample(ClusterId),
    /// The policy's slow plane runs.
    Epoch,
    /// Run queues are balanced.
    Balance,
    /// A cluster's governor may want to look, if it has not done so since the given look.
    GovernorTimer(ClusterId, u32),
}

impl SimEvent {
    /// Its place among simultaneous events.
    fn class(self) -> u8 {
        match self {
            Self::AppStart(_) => 0,
            Self::ThreadStart(..) => 1,
            Self::AppStop(..) => 2,
            Self::Wake(_) => 3,
            Self::IoDone(..) => 4,
            Self::Frequency(..) => 5,
            Self::Deepen(..) => 6,
            Self::ThermalStep => 7,
            Self::PowerSample(_) => 8,
            Self::Epoch => 9,
            Self::Balance => 10,
            Self::GovernorTimer(..) => 11,
        }
    }

    /// Whether it can make a thread runnable, or end one.
    fn moves_threads(self) -> bool {
        match self {
            Self::AppStart(_)
            | Self::ThreadStart(..)
            | Self::AppStop(..)
            | Self::Wake(_)
            | Self::IoDone(..) => true,
            Self::Epoch
            | Self::Balance
            | Self::Deepen(..)
            | Self::ThermalStep
            | Self::PowerSample(_)
            | Self::Frequency(..)
            | Self::GovernorTimer(..) => false,
        }
    }
}

/// An event and when it happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Scheduled {
    at_ns: Ns,
    class: u8,
    serial: u64,
    event: SimEvent,
}

/// What is due first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    /// When; [`NEVER`] if nothing is.
    pub at_ns: Ns,
    /// The core whose timer it is.
    pub core: CoreId,
    /// It is not that timer but an event of the heap.
    pub is_event: bool,
}

/// The present and the future.
pub(super) struct Events {
    now_ns: Ns,
    /// When each core is due.
    pub timers: CoreTimers,
    /// All idle cores look for work by then, as far as is known.
    pub idle_look_ns: Ns,
    heap: BinaryHeap<Reverse<Scheduled>>,
    serial: u64,
    /// Events in the heap that can make a thread runnable, or end one.
    pending: usize,
    /// Events handled at the present moment.
    handled_now: u64,
}

impl Events {
    /// Time 0 of a machine with so many cores; nothing is due.
    pub fn new(cores: usize) -> Self {
        Self {
            now_ns: 0,
            timers: CoreTimers::new(cores),
            idle_look_ns: NEVER,
            heap: BinaryHeap::new(),
            serial: 0,
            pending: 0,
            handled_now: 0,
        }
    }

    /// The present.
    #[inline]
    pub fn now_ns(&self) -> Ns {
        self.now_ns
    }

    /// Lets an event happen at a time.
    pub fn schedule(&mut self, at_ns: Ns, event: SimEvent) {
        self.serial += 1;
        self.pending += usize::from(event.moves_threads());
        let (class, serial) = (event.class(), self.serial);
        self.heap.push(Reverse(Scheduled { at_ns, class, serial, event }));
    }

    /// Whether an event is to come that can make a thread runnable, or end one.
    #[inline]
    pub fn may_move_threads(&self) -> bool {
        self.pending > 0
    }

    /// What is due first.
    #[inline]
    pub fn first(&self) -> Due {
        let (core, core_ns) = self.timers.first();
        let heap_ns = self.heap.peek().map_or(NEVER, |Reverse(first)| first.at_ns);
        Due { at_ns: core_ns.min(heap_ns), core, is_event: heap_ns <= core_ns }
    }

    /// Takes the first event out of the heap.
    pub fn pop(&mut self) -> SimEvent {
        let Reverse(Scheduled { event, .. }) = self.heap.pop().expect("the heap has a first entry");
        self.pending -= usize::from(event.moves_threads());
        event
    }

    /// Goes on to a time. Returns the number of events before that at the same time.
    #[inline]
    pub fn go_on(&mut self, to_ns: Ns) -> u64 {
        self.handled_now = if to_ns > self.now_ns { 0 } else { self.handled_now + 1 };
        self.now_ns = to_ns;
        self.handled_now
    }
}
