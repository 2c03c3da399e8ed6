//! Synchronisation objects: who holds them and who waits.
//!
//! An operation says who is to be woken; waking is the caller's. A waiter of a mutex, semaphore or queue is woken to
//! *try again* (as with a futex), so its program counter still stands on the operation. Waiters of barriers, sleeps and
//! devices have passed it.

use std::collections::VecDeque;
use std::sync::Arc;

use ampsched_model::{App, Ns, Object, ObjectId, ObjectKind, ThreadId};

use super::pools::{Pool, Taker};
use super::regions::{Loaded, RegionState};
use crate::SimError;

/// State of an object.
pub(super) enum ObjectState {
    Mutex {
        owner: Option<ThreadId>,
        waiters: VecDeque<ThreadId>,
    },
    Condition {
        waiters: VecDeque<ThreadId>,
    },
    Barrier {
        parties: usize,
        waiting: Vec<ThreadId>,
    },
    Semaphore {
        count: u64,
        waiters: VecDeque<ThreadId>,
    },
    Queue {
        capacity: usize,
        items: VecDeque<u64>,
        /// Items ever pushed: the next one's number.
        pushed: u64,
        producers_left: u32,
        poppers: VecDeque<ThreadId>,
        pushers: VecDeque<ThreadId>,
    },
    Pool(Pool),
    Device {
        depth: u32,
        latency_ns: Ns,
        /// Requests in service, at most `depth`.
        busy: u32,
        requests: VecDeque<(ThreadId, Ns)>,
    },
    Timer {
        shared: bool,
        next_ns: Vec<(ThreadId, Ns)>,
    },
    Region(RegionState),
}

impl ObjectState {
    /// An object that nobody has used. Errors: a region whose graph or policy does not exist.
    pub fn new(kind: &ObjectKind) -> Result<Self, SimError> {
        Ok(match kind {
            ObjectKind::Region(region) => {
                Self::Region(RegionState::new(Arc::new(Loaded::new(region)?)))
            }
            kind => Self::plain(kind),
        })
    }

    /// As at first.
    pub fn reset(&mut self, kind: &ObjectKind) {
        match self {
            Self::Region(region) => region.reset(),
            state => *state = Self::plain(kind),
        }
    }

    fn plain(kind: &ObjectKind) -> Self {
        match *kind {
            ObjectKind::Mutex => Self::Mutex { owner: None, waiters: VecDeque::new() },
            ObjectKind::Condition => Self::Condition { waiters: VecDeque::new() },
            ObjectKind::Barrier { parties } => {
                Self::Barrier { parties: parties as usize, waiting: Vec::new() }
            }
            ObjectKind::Semaphore { initial } => {
                Self::Semaphore { count: initial.into(), waiters: VecDeque::new() }
            }
            ObjectKind::Queue { capacity, producers } => Self::Queue {
                capacity: capacity as usize,
                items: VecDeque::new(),
                pushed: 0,
                producers_left: producers,
                poppers: VecDeque::new(),
                pushers: VecDeque::new(),
            },
            ObjectKind::Pool { total, chunk, participants, schedule } => {
                Self::Pool(Pool::new(total, chunk, participants, schedule))
            }
            ObjectKind::Device { depth, latency_ns } => {
                Self::Device { depth, latency_ns, busy: 0, requests: VecDeque::new() }
            }
            ObjectKind::Timer { shared } => Self::Timer { shared, next_ns: Vec::new() },
            ObjectKind::Region(_) => unreachable!("regions are loaded"),
        }
    }
}

/// What became of an attempt to use an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt<T> {
    Done(T),
    MustWait,
}

/// How a thread can misuse a mutex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Misuse {
    /// It locks what it holds already.
    HeldAlready,
    /// It unlocks what it does not hold.
    NotHeld,
}

/// The state of an object of a certain kind. Programs are checked, so it has that kind.
macro_rules! state {
    ($objects:expr, $object:expr, $pattern:pat) => {
        let $pattern = &mut $objects.states[$object.index()] else { unreachable!("checked") };
    };
}

/// The objects of all applications, by number.
#[derive(Default)]
pub(super) struct Objects {
    states: Vec<ObjectState>,
    names: Vec<String>,
    /// Words for what they are.
    kinds: Vec<&'static str>,
    /// CPU time for which a thread that has to wait spins before it blocks; empty if nobody ever does.
    spin_ns: Vec<Ns>,
}

impl Objects {
    /// Adds an application's objects; returns the number of the first. Errors: see [`ObjectState::new`].
    pub fn add(&mut self, app: &App) -> Result<u32, SimError> {
        let base = self.states.len() as u32;
        for object in &app.program.objects {
            if object.spin_ns > 0 {
                self.spin_ns.resize(self.states.len(), 0);
                self.spin_ns.push(object.spin_ns);
            }
            self.states.push(ObjectState::new(&object.kind)?);
            self.names.push(format!("{}/{}", app.name, object.name));
            self.kinds.push(object.kind.word());
        }
        Ok(base)
    }

    /// Makes the objects from number `base` on as they were at first.
    pub fn reset(&mut self, base: u32, objects: &[Object]) {
        for (state, object) in self.states[base as usize..].iter_mut().zip(objects) {
            state.reset(&object.kind);
        }
    }

    /// The name of an object for the user, its application's before it.
    pub fn name(&self, object: ObjectId) -> &str {
        &self.names[object.index()]
    }

    /// Whether threads spin at some object before they block.
    pub fn have_spinners(&self) -> bool {
        !self.spin_ns.is_empty()
    }

    /// CPU time for which a thread that has to wait for an object spins before it blocks.
    #[inline]
    pub fn spin_ns(&self, object: ObjectId) -> Ns {
        self.spin_ns.get(object.index()).copied().unwrap_or(0)
    }

    /// Of those that wait for a mutex, a semaphore or a queue, the first that satisfies a predicate becomes the
    /// first of all.
    pub fn prefer(&mut self, object: ObjectId, is_preferred: impl Fn(ThreadId) -> bool) {
        let prefer = |waiters: &mut VecDeque<ThreadId>| {
            let place = waiters.iter().position(|&thread| is_preferred(thread));
            if let Some(thread) = place.and_then(|place| waiters.remove(place)) {
                waiters.push_front(thread);
            }
        };
        match &mut self.states[object.index()] {
            ObjectState::Mutex { waiters, .. } | ObjectState::Semaphore { waiters, .. } => {
                prefer(waiters);
            }
            ObjectState::Queue { poppers, pushers, .. } => {
                prefer(poppers);
                prefer(pushers);
            }
            _ => {}
        }
    }

    /// The word for what an object is, for the user.
    pub fn kind(&self, object: ObjectId) -> &'static str {
        self.kinds[object.index()]
    }

    /// An object's state.
    pub fn state(&self, object: ObjectId) -> &ObjectState {
        &self.states[object.index()]
    }

    /// A region's state.
    pub fn region(&mut self, region: ObjectId) -> &mut RegionState {
        state!(self, region, ObjectState::Region(state));
        state
    }

    /// Locks a mutex for a thread that holds some, or lets it wait.
    pub fn lock(
        &mut self,
        thread: ThreadId,
        held: &mut Vec<ObjectId>,
        mutex: ObjectId,
    ) -> Result<Attempt<()>, Misuse> {
        state!(self, mutex, ObjectState::Mutex { owner, waiters });
        match *owner {
            None => {
                *owner = Some(thread);
                held.push(mutex);
                Ok(Attempt::Done(()))
            }
            Some(holder) if holder == thread => Err(Misuse::HeldAlready),
            Some(_) => {
                waiters.push_back(thread);
                Ok(Attempt::MustWait)
            }
        }
    }

    /// Unlocks a mutex; returns whom to wake.
    pub fn unlock(
        &mut self,
        thread: ThreadId,
        held: &mut Vec<ObjectId>,
        mutex: ObjectId,
    ) -> Result<Option<ThreadId>, Misuse> {
        state!(self, mutex, ObjectState::Mutex { owner, waiters });
        if *owner != Some(thread) {
            return Err(Misuse::NotHeld);
        }
        *owner = None;
        let position =
            held.iter().rposition(|&object| object == mutex).expect("the owner holds it");
        held.remove(position);
        Ok(waiters.pop_front())
    }

    /// Waits for a condition.
    pub fn wait_condition(&mut self, thread: ThreadId, condition: ObjectId) {
        state!(self, condition, ObjectState::Condition { waiters });
        waiters.push_back(thread);
    }

    /// Signals a condition; returns whom to wake.
    pub fn signal(&mut self, condition: ObjectId) -> Option<ThreadId> {
        state!(self, condition, ObjectState::Condition { waiters });
        waiters.pop_front()
    }

    /// Arrives at a barrier; the last one gets those whom it is to wake, and goes on.
    pub fn arrive(&mut self, thread: ThreadId, barrier: ObjectId) -> Attempt<Vec<ThreadId>> {
        state!(self, barrier, ObjectState::Barrier { parties, waiting });
        if waiting.len() + 1 < *parties {
            waiting.push(thread);
            return Attempt::MustWait;
        }
        Attempt::Done(std::mem::take(waiting))
    }

    /// Takes one from a semaphore, or lets a thread wait.
    pub fn sem_wait(&mut self, thread: ThreadId, semaphore: ObjectId) -> Attempt<()> {
        state!(self, semaphore, ObjectState::Semaphore { count, waiters });
        if *count == 0 {
            waiters.push_back(thread);
            return Attempt::MustWait;
        }
        *count -= 1;
        Attempt::Done(())
    }

    /// Adds one to a semaphore; returns whom to wake.
    pub fn sem_post(&mut self, semaphore: ObjectId) -> Option<ThreadId> {
        state!(self, semaphore, ObjectState::Semaphore { count, waiters });
        *count += 1;
        waiters.pop_front()
    }

    /// Pushes an item, or lets a thread wait; yields whom to wake.
    pub fn push_item(&mut self, thread: ThreadId, queue: ObjectId) -> Attempt<Option<ThreadId>> {
        state!(self, queue, ObjectState::Queue { capacity, items, pushed, poppers, pushers, .. });
        if items.len() >= *capacity {
            pushers.push_back(thread);
            return Attempt::MustWait;
        }
        items.push_back(*pushed);
        *pushed += 1;
        Attempt::Done(poppers.pop_front())
    }

    /// Takes an item's number, none if the queue has ended, or lets a thread wait; yields whom to wake, too.
    pub fn pop_item(
        &mut self,
        thread: ThreadId,
        queue: ObjectId,
    ) -> Attempt<(Option<u64>, Option<ThreadId>)> {
        state!(self, queue, ObjectState::Queue { items, producers_left, poppers, pushers, .. });
        match items.pop_front() {
            Some(item) => Attempt::Done((Some(item), pushers.pop_front())),
            None if *producers_left == 0 => Attempt::Done((None, None)),
            None => {
                poppers.push_back(thread);
                Attempt::MustWait
            }
        }
    }

    /// One producer of a queue has ended; returns whom to wake.
    pub fn close(&mut self, queue: ObjectId) -> VecDeque<ThreadId> {
        state!(self, queue, ObjectState::Queue { producers_left, poppers, .. });
        *producers_left = producers_left.saturating_sub(1);
        if *producers_left > 0 { VecDeque::new() } else { std::mem::take(poppers) }
    }

    /// The next iterations of a pool's use.
    pub fn take_chunk(
        &mut self,
        pool: ObjectId,
        use_number: u32,
        taker: Taker,
    ) -> Option<(u64, u64)> {
        state!(self, pool, ObjectState::Pool(pool));
        pool.take(use_number, taker)
    }

    /// Asks a device for service. Returns whether that begins at once.
    pub fn request(&mut self, thread: ThreadId, device: ObjectId, service_ns: Ns) -> bool {
        state!(self, device, ObjectState::Device { depth, busy, requests, .. });
        if busy == depth {
            requests.push_back((thread, service_ns));
            return false;
        }
        *busy += 1;
        true
    }

    /// A device has finished a request: whom it serves next, and for how long.
    pub fn next_request(&mut self, device: ObjectId) -> Option<(ThreadId, Ns)> {
        state!(self, device, ObjectState::Device { busy, requests, .. });
        let next = requests.pop_front();
        *busy -= u32::from(next.is_none());
        next
    }

    /// Whether an object is a mutex.
    pub fn is_mutex(&self, object: ObjectId) -> bool {
        matches!(self.states[object.index()], ObjectState::Mutex { .. })
    }

    /// Time that passes for each request of a device beside its service.
    pub fn latency_ns(&mut self, device: ObjectId) -> Ns {
        state!(self, device, ObjectState::Device { latency_ns, .. });
        *latency_ns
    }

    /// A timer's next expiry for a thread; with `rebase` the one after an expiry in the past counts from now.
    pub fn next_expiry(
        &mut self,
        thread: ThreadId,
        timer: ObjectId,
        period_ns: Ns,
        rebase: bool,
        now_ns: Ns,
    ) -> Ns {
        state!(self, timer, ObjectState::Timer { shared, next_ns });
        let key = if *shared { ThreadId(0) } else { thread };
        let position = next_ns.iter().position(|&(owner, _)| owner == key).unwrap_or_else(|| {
            next_ns.push((key, now_ns));
            next_ns.len() - 1
        });
        let entry = &mut next_ns[position].1;
        *entry += period_ns;
        let expiry_ns = *entry;
        if expiry_ns < now_ns && rebase {
            *entry = now_ns;
        }
        expiry_ns
    }
}
