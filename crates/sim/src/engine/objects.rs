//! Synchronisation objects: who holds them, who waits, and who is blamed for the wait.
//!
//! A waiter of a mutex, semaphore or queue is woken to *try again* (as with a futex), so its program
//! counter still stands on the operation. Waiters of barriers, sleeps and devices have passed it.

use std::collections::VecDeque;
use std::sync::Arc;

use ampsched_model::{Ns, ObjectId, ObjectKind, ThreadId};
use ampsched_policy::{EnqueueKind, RunState};

use super::regions::{Loaded, RegionState};
use super::{Engine, Fallible, Happening, WaitsFor};
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
        busy: bool,
        requests: VecDeque<(ThreadId, Ns)>,
    },
    Timer {
        shared: bool,
        next_ns: Vec<(ThreadId, Ns)>,
    },
    Region(RegionState),
}

/// A pool that can be used again and again; a thread may be ahead of others by some uses.
#[derive(Debug)]
pub(super) struct Pool {
    total: u64,
    chunk: u64,
    participants: u32,
    /// Number of the oldest use in `uses`.
    first_use: u32,
    /// Next iteration, and threads that have seen the end, of each use in progress.
    uses: VecDeque<(u64, u32)>,
}

impl Pool {
    /// The next chunk of a use, or none: then the thread has seen the end of this use.
    pub fn take(&mut self, use_number: u32) -> Option<(u64, u64)> {
        let offset = (use_number - self.first_use) as usize;
        while self.uses.len() <= offset {
            self.uses.push_back((0, 0));
        }
        let (next, ended) = &mut self.uses[offset];
        if *next < self.total {
            let start = *next;
            *next = (start + self.chunk).min(self.total);
            return Some((start, *next));
        }
        *ended += 1;
        while self.uses.front().is_some_and(|&(_, ended)| ended >= self.participants) {
            self.uses.pop_front();
            self.first_use += 1;
        }
        None
    }
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
            ObjectKind::Pool { total, chunk, participants } => {
                Self::Pool(Pool { total, chunk, participants, first_use: 0, uses: VecDeque::new() })
            }
            ObjectKind::Device => Self::Device { busy: false, requests: VecDeque::new() },
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

impl Engine<'_> {
    /// Wakes a blocked thread; its wait is blamed on `waker`.
    pub(super) fn wake(&mut self, thread: ThreadId, waker: Option<ThreadId>) -> Fallible {
        // A thread of a stopped application may still stand in a waiting list.
        if self.sched.thread(thread).state != RunState::Blocked {
            return Ok(());
        }
        if let Some(waker) = waker {
            let waited_ns = self.now_ns - self.sched.thread(thread).since_ns;
            self.sched.blame(waker, waited_ns);
        }
        self.threads[thread.index()].waits_for = WaitsFor::Nothing;
        self.make_runnable(thread, EnqueueKind::Wake, waker)
    }

    pub(super) fn lock(&mut self, thread: ThreadId, mutex: ObjectId) -> Fallible<Attempt<()>> {
        let ObjectState::Mutex { owner, waiters } = &mut self.objects[mutex.index()] else {
            unreachable!("checked")
        };
        match *owner {
            None => {
                *owner = Some(thread);
                self.threads[thread.index()].held.push(mutex);
                Ok(Attempt::Done(()))
            }
            Some(holder) if holder == thread => Err(SimError::HeldAlready {
                thread: self.thread_name(thread),
                object: self.object_names[mutex.index()].clone(),
            }
            .into()),
            Some(_) => {
                waiters.push_back(thread);
                Ok(Attempt::MustWait)
            }
        }
    }

    pub(super) fn unlock(&mut self, thread: ThreadId, mutex: ObjectId) -> Fallible {
        let ObjectState::Mutex { owner, waiters } = &mut self.objects[mutex.index()] else {
            unreachable!("checked")
        };
        if *owner != Some(thread) {
            return Err(SimError::NotHeld {
                thread: self.thread_name(thread),
                object: self.object_names[mutex.index()].clone(),
            }
            .into());
        }
        *owner = None;
        let next = waiters.pop_front();
        let held = &mut self.threads[thread.index()].held;
        let position =
            held.iter().rposition(|&object| object == mutex).expect("the owner holds it");
        held.remove(position);
        self.wake_next(next, thread)
    }

    fn wake_next(&mut self, next: Option<ThreadId>, waker: ThreadId) -> Fallible {
        match next {
            Some(next) => self.wake(next, Some(waker)),
            None => Ok(()),
        }
    }

    pub(super) fn wait_condition(&mut self, thread: ThreadId, condition: ObjectId) {
        let ObjectState::Condition { waiters } = &mut self.objects[condition.index()] else {
            unreachable!("checked")
        };
        waiters.push_back(thread);
    }

    pub(super) fn signal(&mut self, waker: ThreadId, condition: ObjectId, all: bool) -> Fallible {
        loop {
            let ObjectState::Condition { waiters } = &mut self.objects[condition.index()] else {
                unreachable!("checked")
            };
            let Some(next) = waiters.pop_front() else { return Ok(()) };
            self.wake(next, Some(waker))?;
            if !all {
                return Ok(());
            }
        }
    }

    /// Arrives at a barrier; the last one wakes the others and goes on.
    pub(super) fn arrive(&mut self, thread: ThreadId, barrier: ObjectId) -> Fallible<Attempt<()>> {
        let ObjectState::Barrier { parties, waiting } = &mut self.objects[barrier.index()] else {
            unreachable!("checked")
        };
        if waiting.len() + 1 < *parties {
            waiting.push(thread);
            return Ok(Attempt::MustWait);
        }
        for other in std::mem::take(waiting) {
            self.wake(other, Some(thread))?;
        }
        Ok(Attempt::Done(()))
    }

    pub(super) fn sem_wait(&mut self, thread: ThreadId, semaphore: ObjectId) -> Attempt<()> {
        let ObjectState::Semaphore { count, waiters } = &mut self.objects[semaphore.index()] else {
            unreachable!("checked")
        };
        if *count == 0 {
            waiters.push_back(thread);
            return Attempt::MustWait;
        }
        *count -= 1;
        Attempt::Done(())
    }

    pub(super) fn sem_post(&mut self, thread: ThreadId, semaphore: ObjectId) -> Fallible {
        let ObjectState::Semaphore { count, waiters } = &mut self.objects[semaphore.index()] else {
            unreachable!("checked")
        };
        *count += 1;
        let next = waiters.pop_front();
        self.wake_next(next, thread)
    }

    pub(super) fn push_item(&mut self, thread: ThreadId, queue: ObjectId) -> Fallible<Attempt<()>> {
        let ObjectState::Queue { capacity, items, pushed, poppers, pushers, .. } =
            &mut self.objects[queue.index()]
        else {
            unreachable!("checked")
        };
        if items.len() >= *capacity {
            pushers.push_back(thread);
            return Ok(Attempt::MustWait);
        }
        items.push_back(*pushed);
        *pushed += 1;
        let next = poppers.pop_front();
        self.wake_next(next, thread)?;
        Ok(Attempt::Done(()))
    }

    /// Takes an item's number; none if the queue has ended.
    pub(super) fn pop_item(
        &mut self,
        thread: ThreadId,
        queue: ObjectId,
    ) -> Fallible<Attempt<Option<u64>>> {
        let ObjectState::Queue { items, producers_left, poppers, pushers, .. } =
            &mut self.objects[queue.index()]
        else {
            unreachable!("checked")
        };
        let Some(item) = items.pop_front() else {
            if *producers_left == 0 {
                return Ok(Attempt::Done(None));
            }
            poppers.push_back(thread);
            return Ok(Attempt::MustWait);
        };
        let next = pushers.pop_front();
        self.wake_next(next, thread)?;
        Ok(Attempt::Done(Some(item)))
    }

    pub(super) fn close(&mut self, thread: ThreadId, queue: ObjectId) -> Fallible {
        let ObjectState::Queue { producers_left, poppers, .. } = &mut self.objects[queue.index()]
        else {
            unreachable!("checked")
        };
        *producers_left = producers_left.saturating_sub(1);
        if *producers_left > 0 {
            return Ok(());
        }
        for popper in std::mem::take(poppers) {
            self.wake(popper, Some(thread))?;
        }
        Ok(())
    }

    /// The next iterations of a pool's use.
    pub(super) fn take_chunk(&mut self, pool: ObjectId, use_number: u32) -> Option<(u64, u64)> {
        let ObjectState::Pool(pool) = &mut self.objects[pool.index()] else {
            unreachable!("checked")
        };
        pool.take(use_number)
    }

    /// Asks a device for service; the thread blocks until it is done.
    pub(super) fn request(&mut self, thread: ThreadId, device: ObjectId, service_ns: Ns) {
        let core = self.sched.thread(thread).core;
        self.threads[thread.index()].io_core = Some(core);
        self.cores[core.index()].waiting_io += 1;
        let ObjectState::Device { busy, requests } = &mut self.objects[device.index()] else {
            unreachable!("checked")
        };
        self.pending += 1;
        if *busy {
            requests.push_back((thread, service_ns));
            return;
        }
        *busy = true;
        self.push(self.now_ns + service_ns, Happening::IoDone(device, thread));
    }

    /// A thread does not wait for a device any more. Returns whether it did.
    pub(super) fn end_io_wait(&mut self, thread: ThreadId) -> bool {
        let Some(core) = self.threads[thread.index()].io_core.take() else { return false };
        self.account(core);
        self.cores[core.index()].waiting_io -= 1;
        true
    }

    /// A device is free: serve the next request.
    pub(super) fn next_request(&mut self, device: ObjectId) {
        let ObjectState::Device { busy, requests } = &mut self.objects[device.index()] else {
            unreachable!("checked")
        };
        match requests.pop_front() {
            Some((thread, service_ns)) => {
                self.push(self.now_ns + service_ns, Happening::IoDone(device, thread))
            }
            None => *busy = false,
        }
    }

    /// A timer's next expiry for a thread; `missed` says what an expiry in the past becomes.
    pub(super) fn next_expiry(
        &mut self,
        thread: ThreadId,
        timer: ObjectId,
        period_ns: Ns,
        rebase: bool,
    ) -> Ns {
        let now_ns = self.now_ns;
        let ObjectState::Timer { shared, next_ns } = &mut self.objects[timer.index()] else {
            unreachable!("checked")
        };
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
