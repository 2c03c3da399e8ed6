//! A share of a loop's iterations that its owner works off from the front while others take from the back.
//!
//! Both bounds stand in one word, so every change is one compare-and-swap. The word is the whole state: whoever finds
//! the same bounds again may take the same iterations, so it does no harm if they were away in between.

use std::ops::Range;

use crate::sync::{AtomicU64, Ordering};

/// A share; alone in its cache lines, because its owner changes it at every step (128 bytes: processors fetch lines in
/// pairs).
#[derive(Debug)]
#[repr(align(128))]
pub struct Share(AtomicU64);

fn packed(range: &Range<u32>) -> u64 {
    u64::from(range.start) << 32 | u64::from(range.end)
}

fn unpacked(word: u64) -> Range<u32> {
    (word >> 32) as u32..word as u32
}

impl Share {
    /// A share of these iterations.
    pub fn new(range: Range<u32>) -> Self {
        Self(AtomicU64::new(packed(&range)))
    }

    /// Iterations that nobody has taken.
    pub fn len(&self) -> u32 {
        let range = unpacked(self.0.load(Ordering::Relaxed));
        range.end - range.start
    }

    /// Fills the share, which must be empty; only its owner may do so.
    pub fn put(&self, range: Range<u32>) {
        debug_assert_eq!(self.len(), 0);
        self.0.store(packed(&range), Ordering::Release);
    }

    /// Takes up to `most` iterations from the front.
    pub fn take_front(&self, most: u32) -> Range<u32> {
        self.take(|range| {
            let middle = range.start + most.min(range.end - range.start);
            (range.start..middle, middle..range.end)
        })
    }

    /// Takes as many iterations from the back as `count` says of those that are left, at most all.
    pub fn take_back(&self, count: impl Fn(u32) -> u32) -> Range<u32> {
        self.take(|range| {
            let left = range.end - range.start;
            let middle = range.end - count(left).min(left);
            (middle..range.end, range.start..middle)
        })
    }

    /// Splits the share into a part that is taken and one that stays.
    fn take(&self, split: impl Fn(&Range<u32>) -> (Range<u32>, Range<u32>)) -> Range<u32> {
        let mut word = self.0.load(Ordering::Acquire);
        loop {
            let range = unpacked(word);
            let (taken, stays) = split(&range);
            if taken.is_empty() {
                return taken;
            }
            let stays = packed(&stays);
            match self.0.compare_exchange_weak(word, stays, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return taken,
                Err(other) => word = other,
            }
        }
    }
}
