//! Time: what happens next, and when.
//!
//! Every core has one timer (its next completion or slice end) in a winner tree; everything else
//! (sleeps, I/O, epochs, balancing) is in one heap. Simultaneous events are ordered by class, heap before cores: first
//! what happens to threads, then what hardware does, then who looks; and within a class by the order in which they were
//! scheduled, or by core number. So a run is reproducible bit by bit, and does not depend on how often anybody looks.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use ampsched_model::{AppId, ClusterId, CoreId, Ns, ObjectId, ThreadId};

use super::timers::{CoreTimers, NEVER};
use crate::Interrupt;

/// What the heap holds. Of simultaneous ones those first that stand above.
#[derive(Clone, Copy, Debug)]
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
    /// A thread hears that its request is done.
    IoBack(ThreadId),
    /// The system does something of its own on a core: the number of that source of noise there.
    Noise(CoreId, u16),
    /// A cluster's clock has changed, as the given request wanted.
    Frequency(ClusterId, u32),
    /// A core has idled for long in the given stay.
    Deepen(CoreId, u32),
    /// Temperatures change.
    ThermalStep,
    /// A cluster's power sensor refreshes.
    PowerSample(ClusterId),
    /// What all clusters draw is compared with what they may.
    PowerLimit,
    /// The policy's slow plane runs.
    Epoch,
    /// Run queues are balanced.
    Balance,
    /// The tick of a fast plane of the policy's own.
    Tick,
    /// A cluster's governor may want to look, if it has not done so since the given look.
    GovernorTimer(ClusterId, u32),
    /// A deadline thread gets a new budget, if it has not been throttled anew since the given time.
    Replenish(ThreadId, u32),
    /// The server of a core's fair threads has something to do, as the given plan said.
    FairServer(CoreId, u32),
}

impl SimEvent {
    /// Its place among simultaneous events.
    fn class(self) -> u8 {
        match self {
            Self::AppStart(_) => 0,
            Self::ThreadStart(..) => 1,
            Self::AppStop(..) => 2,
            Self::Wake(_) => 3,
            Self::IoDone(..) | Self::IoBack(_) => 4,
            Self::Noise(..) => 5,
            Self::Frequency(..) => 6,
            Self::Deepen(..) => 7,
            Self::ThermalStep => 8,
            Self::PowerSample(_) => 9,
            Self::PowerLimit => 10,
            Self::Epoch => 11,
            Self::Balance => 12,
            Self::GovernorTimer(..) => 13,
            Self::Replenish(..) => 14,
            Self::FairServer(..) => 15,
            Self::Tick => 16,
        }
    }

    /// Whether it can make a thread runnable, or end one.
    fn moves_threads(self) -> bool {
        match self {
            Self::AppStart(_)
            | Self::ThreadStart(..)
            | Self::AppStop(..)
            | Self::Wake(_)
            | Self::IoDone(..)
            | Self::IoBack(_) => true,
            Self::Noise(..)
            | Self::Epoch
            | Self::Balance
            | Self::Tick
            | Self::Deepen(..)
            | Self::ThermalStep
            | Self::PowerSample(_)
            | Self::PowerLimit
            | Self::Frequency(..)
            | Self::GovernorTimer(..)
            // Who waits for a budget counts as ready.
            | Self::Replenish(..)
            | Self::FairServer(..) => false,
        }
    }
}

/// An event and when it happens.
#[derive(Clone, Copy, Debug)]
struct Scheduled {
    /// Its place in the order of time, class and serial number: 64, 8 and 56 bits, so that one comparison decides.
    place: u128,
    event: SimEvent,
}

impl Scheduled {
    fn new(at_ns: Ns, serial: u64, event: SimEvent) -> Self {
        let among_simultaneous = u64::from(event.class()) << SERIAL_BITS | serial;
        Self { place: u128::from(at_ns) << 64 | u128::from(among_simultaneous), event }
    }

    fn at_ns(&self) -> Ns {
        (self.place >> 64) as Ns
    }
}

/// Bits of serial numbers: at a billion events per s they last for two years of computing.
const SERIAL_BITS: u32 = 56;

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.place == other.place
    }
}

impl Eq for Scheduled {}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The first is the greatest, as a heap wants it.
impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> Ordering {
        other.place.cmp(&self.place)
    }
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
    heap: BinaryHeap<Scheduled>,
    /// The first entry of the heap is being handled and no longer counts. Its place is for the next one: most events
    /// lead to another one.
    taken: bool,
    serial: u64,
    /// Events in the heap that can make a thread runnable, or end one.
    pending: usize,
    /// Events until the engine looks up from its work.
    until_pause: u32,
    /// When it did so last, and events that it has handled at that very moment since it came.
    paused_ns: Ns,
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
            taken: false,
            serial: 0,
            pending: 0,
            until_pause: 1,
            paused_ns: 0,
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
        let scheduled = Scheduled::new(at_ns, self.serial, event);
        if std::mem::take(&mut self.taken) {
            *self.heap.peek_mut().expect("what was taken is still there") = scheduled;
        } else {
            self.heap.push(scheduled);
        }
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
        let heap_ns = self.heap.peek().map_or(NEVER, Scheduled::at_ns);
        Due { at_ns: core_ns.min(heap_ns), core, is_event: heap_ns <= core_ns }
    }

    /// Takes the first event out of the heap. When it is handled, [`Events::handled`] has to be called.
    pub fn take(&mut self) -> SimEvent {
        let Scheduled { event, .. } = *self.heap.peek().expect("the heap has a first entry");
        self.pending -= usize::from(event.moves_threads());
        self.taken = true;
        event
    }

    /// The event that was taken has been handled.
    #[inline]
    pub fn handled(&mut self) {
        if std::mem::take(&mut self.taken) {
            self.heap.pop();
        }
    }

    /// Goes on to a time.
    #[inline]
    pub fn go_on(&mut self, to_ns: Ns) {
        self.now_ns = to_ns;
    }

    /// An event is handled. Returns whether it is time for a [`pause`](Self::pause).
    #[inline]
    pub fn count(&mut self) -> bool {
        self.until_pause -= 1;
        self.until_pause == 0
    }

    /// The engine looks up from its work, and will do so again after some events. Returns about how many it has handled
    /// at the present moment.
    #[cold]
    pub fn pause(&mut self) -> u64 {
        let events = u64::from(Interrupt::EVENTS);
        self.handled_now = if self.now_ns > self.paused_ns { 0 } else { self.handled_now + events };
        (self.paused_ns, self.until_pause) = (self.now_ns, Interrupt::EVENTS);
        self.handled_now
    }
}
