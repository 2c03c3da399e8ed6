//! Wakes one thread that waits.
//!
//! An `unpark` is never lost: it is kept until the thread waits the next time. The thread sets nothing before it parks,
//! so there is no moment between "nothing to do" and "asleep" in which one could pass unheard: `unpark` before `park`
//! makes `park` return.

use crate::sync::{AtomicBool, Ordering, Thread, current, park};

/// Wakes the thread that has created it.
#[derive(Debug)]
pub struct Parker {
    is_unparked: AtomicBool,
    thread: Thread,
}

impl Parker {
    /// A parker for the calling thread, which alone may wait for it.
    pub fn new() -> Self {
        Self { is_unparked: AtomicBool::new(false), thread: current() }
    }

    /// Ends the thread's wait, or its next one.
    pub fn unpark(&self) {
        // Release: what was written before is visible to the thread that hears it.
        self.is_unparked.store(true, Ordering::Release);
        self.thread.unpark();
    }

    /// Waits for an [`unpark`](Self::unpark): first awake, as long as `spin` returns true, then asleep.
    pub fn wait(&self, mut spin: impl FnMut() -> bool) {
        let (is_told, not) = (true, false);
        while self
            .is_unparked
            .compare_exchange(is_told, not, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            if !spin() {
                park();
            }
        }
    }
}
