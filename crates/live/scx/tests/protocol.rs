//! A model of who locks what in the kernel's scheduler (`bpf/lock.h`, `bpf/calls.h`): loom tries all orders.
//!
//! Locks are loom's; a full barrier, which each locking and unlocking in BPF is, is a fence. What is read without a
//! lock is an atomic word, read in no particular order.

use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, fence};
use loom::sync::{Arc, Mutex, MutexGuard};
use loom::thread;

const RELAXED: Ordering = Ordering::Relaxed;

/// What a queue's lock guards: how many of the two threads are in it.
type Queue = Mutex<u32>;

/// One thread in one of two queues.
struct Books {
    queues: [Queue; 2],
    /// The queue of its core, to be changed by whoever holds both locks.
    queue: AtomicUsize,
    /// `dequeued`: it is in no queue. Guarded by the lock of its queue.
    is_out: AtomicBool,
}

enum Locked<'a> {
    One(MutexGuard<'a, u32>),
    /// The lower first.
    Two(MutexGuard<'a, u32>, MutexGuard<'a, u32>),
}

impl Books {
    fn new() -> Self {
        Self {
            queues: [Mutex::new(1), Mutex::new(0)],
            queue: AtomicUsize::new(0),
            is_out: AtomicBool::new(false),
        }
    }

    /// `lock_both`
    fn lock_both(&self, a: usize, b: usize) -> Locked<'_> {
        let low = self.queues[a.min(b)].lock().unwrap();
        if a == b { Locked::One(low) } else { Locked::Two(low, self.queues[1].lock().unwrap()) }
    }

    /// `lock_thread_and`
    fn lock_thread_and(&self, other: usize) -> (Locked<'_>, usize) {
        loop {
            let own = self.queue.load(RELAXED);
            let locked = self.lock_both(own, other);
            if self.queue.load(RELAXED) == own {
                return (locked, own);
            }
            drop(locked);
            thread::yield_now();
        }
    }

    /// `move_to`: from where it waits to another queue.
    fn move_to(&self, target: usize) {
        let (mut locked, own) = self.lock_thread_and(target);
        if own != target && !self.is_out.load(RELAXED) {
            self.take(&mut locked, own);
            self.put(&mut locked, target);
        }
    }

    /// `relocate`: out of its queue, and, when a place for it has been chosen, into another one.
    fn relocate(&self, target: usize) {
        let (mut locked, own) = self.lock_thread_and(self.queue.load(RELAXED));
        let leaves = !self.is_out.load(RELAXED) && matches!(locked, Locked::One(_));
        if leaves {
            self.take(&mut locked, own);
            self.is_out.store(true, RELAXED);
        }
        drop(locked);
        if !leaves {
            return;
        }
        let (mut locked, _) = self.lock_thread_and(target);
        if self.is_out.load(RELAXED) {
            self.is_out.store(false, RELAXED);
            self.put(&mut locked, target);
        }
    }

    fn count<'a>(locked: &'a mut Locked<'_>, queue: usize) -> &'a mut u32 {
        match locked {
            Locked::One(only) => only,
            Locked::Two(low, high) => [low, high][queue],
        }
    }

    fn take(&self, locked: &mut Locked<'_>, queue: usize) {
        let count = Self::count(locked, queue);
        assert_eq!(*count, 1, "it waits there");
        *count = 0;
    }

    fn put(&self, locked: &mut Locked<'_>, queue: usize) {
        let count = Self::count(locked, queue);
        assert_eq!(*count, 0, "it waits nowhere else");
        *count = 1;
        self.queue.store(queue, RELAXED);
    }

    fn check(&self) {
        let counts = [0, 1].map(|queue| *self.queues[queue].lock().unwrap());
        assert_eq!(counts.iter().sum::<u32>(), 1, "it is in one queue: {counts:?}");
        assert_eq!(counts[self.queue.load(RELAXED)], 1, "it is where its core says");
        assert!(!self.is_out.load(RELAXED));
    }
}

/// Two or three CPUs do something with the thread at the same time.
fn at_once(actions: &'static [fn(&Books)]) {
    loom::model(|| {
        let books = Arc::new(Books::new());
        let cpus: Vec<_> = actions[1..]
            .iter()
            .map(|action| {
                let books = books.clone();
                thread::spawn(move || action(&books))
            })
            .collect();
        actions[0](&books);
        for cpu in cpus {
            cpu.join().unwrap();
        }
        books.check();
    });
}

#[test]
fn a_thread_is_in_one_place_whoever_moves_it() {
    at_once(&[|books| books.move_to(1), |books| books.move_to(1)]);
    at_once(&[|books| books.move_to(1), |books| books.move_to(0)]);
    at_once(&[|books| books.relocate(1), |books| books.move_to(1)]);
    at_once(&[|books| books.relocate(0), |books| books.move_to(1)]);
    at_once(&[|books| books.relocate(1), |books| books.relocate(0)]);
}

#[test]
fn three_who_move_a_thread_do_not_wait_for_each_other_for_ever() {
    at_once(&[|books| books.move_to(1), |books| books.move_to(0), |books| books.move_to(1)]);
}

/// A core that idles, and a thread that comes to wait in another queue.
struct Idling {
    idle: AtomicBool,
    need_resched: AtomicBool,
    waiting: AtomicU32,
    kicks: AtomicU32,
}

impl Idling {
    fn new(looks: bool) -> Self {
        Self {
            idle: AtomicBool::new(false),
            need_resched: AtomicBool::new(looks),
            waiting: AtomicU32::new(0),
            kicks: AtomicU32::new(0),
        }
    }

    /// Somebody takes, or gives back, a lock.
    fn lock_or_unlock() {
        fence(Ordering::SeqCst);
    }

    /// `look`: whether it has found the thread.
    fn look(&self) -> bool {
        self.need_resched.store(false, RELAXED);
        Self::lock_or_unlock();
        self.waiting.load(RELAXED) > 0
    }

    /// `dequeue_thread`, of the thread that ran here, and `pick_next`.
    fn becomes_idle(&self) -> bool {
        self.idle.store(true, RELAXED);
        Self::lock_or_unlock();
        self.look()
    }

    /// `make_runnable`, and `collect`
    fn wake_somebody(&self) {
        self.waiting.store(1, RELAXED);
        Self::lock_or_unlock();
        if self.idle.load(RELAXED) && !self.need_resched.load(RELAXED) {
            self.need_resched.store(true, RELAXED);
            self.kicks.fetch_add(1, RELAXED);
        }
    }
}

/// `need_resched`: the core has been told to look before, and has not got that far.
fn no_thread_waits_beside_an_idle_core(looks: bool) {
    loom::model(move || {
        let core = Arc::new(Idling::new(looks));
        let waker = core.clone();
        let waking = thread::spawn(move || waker.wake_somebody());
        let has_found = core.becomes_idle();
        waking.join().unwrap();
        let is_told = core.kicks.load(RELAXED) > 0;
        assert!(has_found || is_told, "a thread waits, and nobody has told the core");
    });
}

#[test]
fn a_core_that_goes_idle_sees_who_waits_or_is_told() {
    no_thread_waits_beside_an_idle_core(false);
    no_thread_waits_beside_an_idle_core(true);
}
