//! Wakes one thread that waits.
//!
//! A ring is never lost: it is kept until the thread waits the next time. The thread sets nothing before it parks, so there
//! is no moment between "nothing to do" and "asleep" in which a ring could pass unheard: `unpark` before `park` makes `park` return.

use crate::sync::{AtomicBool, Ordering, Thread, current, park};

/// Wakes the thread that has created it.
#[derive(Debug)]
pub struct Bell {
    rung: AtomicBool,
    thread: Thread,
}

impl Bell {
    /// A bell for the calling thread, which alone may wait for it.
    pub fn new() -> Self {
        Self { rung: AtomicBool::new(false), thread: current() }
    }

    /// Ends the thread's wait, or its next one.
    pub fn ring(&self) {
        // Release: what was written before is visible to the thread that hears it.
        self.rung.store(true, Ordering::Release);
        self.thread.unpark();
    }

    /// Waits for a ring: first awake, as long as `spin` returns true, then asleep.
    pub fn wait(&self, mut spin: impl FnMut() -> bool) {
        let (is_rung, not) = (true, false);
        while self
            .rung
            .compare_exchange(is_rung, not, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            if !spin() {
                park();
            }
        }
    }
}
