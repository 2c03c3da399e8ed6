//! The table that the interpreter writes, read while it goes on: who has changed, and what cores do.
#![allow(unsafe_code)] // Memory is shared with the interpreter.

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{Ordering, fence};

use crate::layout::{Core, Queue, Sched, Thread};

/// Bytes in which memory comes to a table inside the kernel.
pub const PAGE: usize = 4096;

/// Size in bytes of a table for a given number of threads: the state, the threads, and a mark for each.
pub fn bytes(threads_max: u32) -> usize {
    marks_at(threads_max) + (threads_max as usize).next_multiple_of(size_of::<u64>())
}

/// Where the marks begin, in bytes: on a page of their own, as there may be no memory for threads yet.
pub fn marks_at(threads_max: u32) -> usize {
    (size_of::<Sched>() + threads_max as usize * size_of::<Thread>()).next_multiple_of(PAGE)
}

/// For how many threads there is memory in the pages that the state needs, of which the last is its own only in part.
pub fn slots_beside_state() -> u32 {
    let state = size_of::<Sched>();
    ((state.next_multiple_of(PAGE) - state) / size_of::<Thread>()) as u32
}

/// Capacity in threads for a given buffer size in bytes.
pub fn threads_within(bytes: usize) -> u32 {
    let left = bytes.saturating_sub(size_of::<Sched>() + 2 * PAGE);
    (left / (size_of::<Thread>() + 1)) as u32
}

/// What cores and queues do.
#[derive(Clone, Debug, Default)]
pub struct Cores {
    /// In the order of the topology.
    pub cores: Vec<Core>,
    /// By the number that a core has of its queue.
    pub queues: Vec<Queue>,
}

/// Finds those threads of a table that have changed, while its interpreter goes on.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Slots that were marked at the last look, in ascending order.
    before: Vec<u32>,
    /// The same of the present look.
    now: Vec<u32>,
    /// How many slots are read at each look though they are not marked.
    in_turn: u32,
    /// The first of them.
    next: u32,
}

impl Changes {
    /// Nobody has looked yet. At each look some slots are read in turn though they are not marked: whatever comes
    /// between a mark and the change, what is known of a thread is right again some time later.
    pub fn new(in_turn: u32) -> Self {
        Self { in_turn, ..Self::default() }
    }

    /// The slots of the first `count` whose turn it is.
    fn take_turn(&mut self, count: u32) -> Range<u32> {
        let first = if self.next < count { self.next } else { 0 };
        self.next = first.saturating_add(self.in_turn).min(count);
        first..self.next
    }

    /// Copies each thread that has changed since the last call, by its slot, in ascending order; fields may be of
    /// slightly different moments. A thread that has changed is there at the next call, too: by then all is in memory
    /// that was on its way. Slots that nobody uses any more count as threads that have changed. Some threads are among
    /// them that have not changed.
    ///
    /// # Safety
    ///
    /// There is a table, initialised and [`bytes`] long. Only the interpreter uses it meanwhile.
    pub unsafe fn read(&mut self, table: NonNull<Sched>, changed: &mut Vec<(u32, Thread)>) {
        changed.clear();
        // SAFETY: as above.
        let threads: *const Thread = unsafe { table.as_ptr().add(1).cast() };
        // SAFETY: as above.
        unsafe { self.take_marks_off(table) };
        // What a thread had done when it was marked is seen from here on.
        fence(Ordering::SeqCst);
        // SAFETY: as above.
        let count = unsafe { (&raw const (*table.as_ptr()).thread_count).read_volatile() };
        let in_turn: Vec<u32> = self.take_turn(count).collect();
        let marked: Vec<u32> = either(&self.before, &self.now).collect();
        for slot in either(&marked, &in_turn) {
            // SAFETY: only slots below `thread_count` are among them, and every pattern of bits is a `Thread`.
            changed.push((slot, unsafe { threads.add(slot as usize).read_volatile() }));
        }
        std::mem::swap(&mut self.before, &mut self.now);
    }

    /// Collects the slots that are marked.
    ///
    /// # Safety
    ///
    /// As for [`Changes::read`].
    unsafe fn take_marks_off(&mut self, table: NonNull<Sched>) {
        const WORD: usize = size_of::<u64>();
        self.now.clear();
        // SAFETY: the marks of `thread_count` threads are within the table, which has whole words of them. The
        // interpreter writes single bytes, and so does this.
        unsafe {
            let state = table.as_ptr();
            let count = (&raw const (*state).thread_count).read_volatile() as usize;
            let marks_at = (&raw const (*state).marks_at).read_volatile() as usize;
            let marks = state.cast::<u8>().add(marks_at);
            for first in (0..count).step_by(WORD) {
                if marks.add(first).cast::<u64>().read_volatile() == 0 {
                    continue;
                }
                for slot in first..(first + WORD).min(count) {
                    if marks.add(slot).read_volatile() != 0 {
                        marks.add(slot).write_volatile(0);
                        self.now.push(slot as u32);
                    }
                }
            }
        }
    }
}

/// The numbers in either of two ascending lists, in ascending order, each once.
fn either<'a>(a: &'a [u32], b: &'a [u32]) -> impl Iterator<Item = u32> + use<'a> {
    let (mut a, mut b) = (a.iter().copied().peekable(), b.iter().copied().peekable());
    std::iter::from_fn(move || {
        let next = match (a.peek(), b.peek()) {
            (Some(&one), Some(&other)) => one.min(other),
            (one, other) => *one.or(other)?,
        };
        a.next_if_eq(&next);
        b.next_if_eq(&next);
        Some(next)
    })
}

impl Cores {
    /// Copies what cores and queues do; fields may be of slightly different moments.
    ///
    /// # Safety
    ///
    /// As for [`Changes::read`].
    pub unsafe fn read(&mut self, table: NonNull<Sched>) {
        self.cores.clear();
        self.queues.clear();
        // SAFETY: the buffer has that many, and every pattern of bits is a `Core` or a `Queue`.
        unsafe {
            let state = table.as_ptr();
            let core_count = (&raw const (*state).core_count).read_volatile() as usize;
            let queue_count = (&raw const (*state).queue_count).read_volatile() as usize;
            let cores: *const Core = (&raw const (*state).cores).cast();
            let queues: *const Queue = (&raw const (*state).queues).cast();
            self.cores.extend((0..core_count).map(|core| cores.add(core).read_volatile()));
            self.queues.extend((0..queue_count).map(|queue| queues.add(queue).read_volatile()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_slot_has_its_turn() {
        let mut changes = Changes::new(3);
        let turns: Vec<Range<u32>> = (0..4).map(|_| changes.take_turn(7)).collect();
        assert_eq!(turns, [0..3, 3..6, 6..7, 0..3]);
        assert_eq!((changes.take_turn(2), changes.take_turn(0)), (0..2, 0..0));
        assert_eq!(Changes::new(0).take_turn(7), 0..0);
    }

    #[test]
    fn lists_are_joined_in_order() {
        let joined = |a: &[u32], b: &[u32]| either(a, b).collect::<Vec<u32>>();
        assert_eq!(joined(&[1, 3, 4], &[2, 3, 9]), [1, 2, 3, 4, 9]);
        assert_eq!(joined(&[], &[5]), [5]);
        assert_eq!(joined(&[0, 7], &[]), [0, 7]);
        assert_eq!(joined(&[], &[]), [0; 0]);
    }
}
