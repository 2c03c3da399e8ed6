//! The lock-free parts under loom, which tries every order in which their threads' steps can be interleaved.
//!
//! The sources are compiled a second time here, against loom's primitives instead of the standard library's.

#[path = "../src/parker.rs"]
mod parker;
#[path = "../src/ranges.rs"]
#[allow(dead_code)]
mod ranges;

mod sync {
    use loom::sync::{Arc, Condvar, Mutex};

    pub use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    loom::thread_local! {
        static TOKEN: Arc<(Mutex<bool>, Condvar)> = Arc::new((Mutex::new(false), Condvar::new()));
    }

    /// `std::thread::Thread` as its documentation has it: a token that `unpark` makes and `park` takes. Loom's own
    /// (0.7) also wakes threads that wait for something else, and reports a deadlock then.
    #[derive(Debug)]
    pub struct Thread(Arc<(Mutex<bool>, Condvar)>);

    impl Thread {
        pub fn unpark(&self) {
            let mut is_there = self.0.0.lock().unwrap();
            *is_there = true;
            self.0.1.notify_one();
        }
    }

    pub fn current() -> Thread {
        Thread(TOKEN.with(Arc::clone))
    }

    pub fn park() {
        let token = TOKEN.with(Arc::clone);
        let mut is_there = token.0.lock().unwrap();
        while !*is_there {
            is_there = token.1.wait(is_there).unwrap();
        }
        *is_there = false;
    }
}

use std::ops::Range;

use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;

use parker::Parker;
use ranges::Share;

/// Three threads take minutes with any number of pre-emptions per run; loom's authors advise 2 or 3.
fn bounded() -> loom::model::Builder {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model
}

#[test]
fn an_unpark_is_never_lost() {
    loom::model(|| {
        let given = Arc::new(AtomicUsize::new(0));
        let parker = Arc::new(Parker::new());
        let waker = {
            let (given, parker) = (Arc::clone(&given), Arc::clone(&parker));
            thread::spawn(move || {
                given.store(1, Ordering::Relaxed);
                parker.unpark();
            })
        };
        // Would block for ever, which loom reports, if the unpark could be missed.
        parker.wait(|| false);
        assert_eq!(given.load(Ordering::Relaxed), 1, "what was written before is seen");
        waker.join().unwrap();
    });
}

#[test]
fn two_unparks_end_at_least_one_wait_and_harm_no_later_one() {
    bounded().check(|| {
        let given = Arc::new(Mutex::new(0));
        let parker = Arc::new(Parker::new());
        let ringers: Vec<_> = (0..2)
            .map(|_| {
                let (given, parker) = (Arc::clone(&given), Arc::clone(&parker));
                thread::spawn(move || {
                    *given.lock().unwrap() += 1;
                    parker.unpark();
                })
            })
            .collect();
        // As workers do: look, wait, look again.
        while *given.lock().unwrap() < 2 {
            parker.wait(|| false);
        }
        ringers.into_iter().for_each(|waker| waker.join().unwrap());
    });
}

/// Marks iterations as executed and checks that nobody has executed them before.
fn execute(executed: &[AtomicUsize], range: Range<u32>) {
    for iteration in range {
        assert_eq!(executed[iteration as usize].fetch_add(1, Ordering::Relaxed), 0);
    }
}

/// What a worker of a loop does, in steps of one: its own share, then half of the other's.
fn work(own: &Share, other: &Share, executed: &[AtomicUsize]) {
    loop {
        let mut taken = own.take_front(1);
        if taken.is_empty() {
            let stolen = other.take_back(|left| left.div_ceil(2));
            if stolen.is_empty() {
                return;
            }
            own.put(stolen.start + 1..stolen.end);
            taken = stolen.start..stolen.start + 1;
        }
        execute(executed, taken);
    }
}

#[test]
fn every_iteration_is_taken_once_by_owner_or_thief() {
    loom::model(|| {
        let shares = Arc::new([Share::new(0..3), Share::new(3..3)]);
        let executed: Arc<Vec<AtomicUsize>> =
            Arc::new((0..3).map(|_| AtomicUsize::new(0)).collect());
        let thief = {
            let (shares, executed) = (Arc::clone(&shares), Arc::clone(&executed));
            thread::spawn(move || work(&shares[1], &shares[0], &executed))
        };
        work(&shares[0], &shares[1], &executed);
        thief.join().unwrap();
        assert!(executed.iter().all(|count| count.load(Ordering::Relaxed) == 1));
    });
}

#[test]
fn two_thieves_share_what_the_owner_leaves() {
    bounded().check(|| {
        let share = Arc::new(Share::new(0..3));
        let executed: Arc<Vec<AtomicUsize>> =
            Arc::new((0..3).map(|_| AtomicUsize::new(0)).collect());
        let thieves: Vec<_> = (0..2)
            .map(|_| {
                let (share, executed) = (Arc::clone(&share), Arc::clone(&executed));
                thread::spawn(move || execute(&executed, share.take_back(|left| left.div_ceil(2))))
            })
            .collect();
        execute(&executed, share.take_front(1));
        thieves.into_iter().for_each(|thief| thief.join().unwrap());
        execute(&executed, share.take_front(3));
        assert!(executed.iter().all(|count| count.load(Ordering::Relaxed) == 1));
    });
}
