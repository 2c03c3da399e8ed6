//! The one place where lifetimes are hidden: bodies of tasks and loops may borrow from the caller's stack.
//!
//! The caller's side of the bargain is the same for all: it does not return before no worker can reach the body any
//! more. `scope`, `graph` and the loops keep it by [`Shared::wait`](crate::shared::Shared::wait), which returns only
//! when every body has been executed or will never be, and by dropping the finished graph, with the bodies that were
//! not executed, before they return.
#![allow(unsafe_code)]

use std::mem::transmute;
use std::ops::Range;
use std::slice;

use ampsched_task::TaskId;

use crate::graph_job::{Each, Once};
use crate::loop_job::LoopBody;

/// # Safety
/// The result must have been called or dropped before `'a` ends.
pub unsafe fn once<'a>(body: Box<dyn FnOnce() + Send + 'a>) -> Once {
    // SAFETY: only the lifetime changes; the caller answers for it.
    unsafe { transmute::<Box<dyn FnOnce() + Send + 'a>, Once>(body) }
}

/// # Safety
/// The result must not be called after `'a` has ended.
pub unsafe fn each<'a>(body: &'a (dyn Fn(TaskId) + Sync + 'a)) -> Each {
    // SAFETY: only the lifetime changes; the caller answers for it.
    unsafe { transmute::<&'a (dyn Fn(TaskId) + Sync + 'a), Each>(body) }
}

/// # Safety
/// The result must not be called after `'a` has ended.
pub unsafe fn loop_body<'a>(body: LoopBody<'a>) -> LoopBody<'static> {
    // SAFETY: only the lifetime changes; the caller answers for it.
    unsafe { transmute::<LoopBody<'a>, LoopBody<'static>>(body) }
}

/// A slice of which several threads may have different parts at the same time.
pub struct Parts<T> {
    start: *mut T,
    len: usize,
}

// SAFETY: a part is a `&mut [T]`, which may be sent if T may; `part` hands out no other access.
unsafe impl<T: Send> Sync for Parts<T> {}

impl<T> Parts<T> {
    /// All of a slice, which must not be used otherwise as long as parts are.
    pub fn new(slice: &mut [T]) -> Self {
        Self { start: slice.as_mut_ptr(), len: slice.len() }
    }

    /// A part.
    ///
    /// # Safety
    /// The slice still exists, and no other part of it that is in use overlaps this one.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn part(&self, range: Range<usize>) -> &mut [T] {
        assert!(range.start <= range.end && range.end <= self.len, "a part lies within the slice");
        // SAFETY: within the slice; exclusive, as the caller promises.
        unsafe { slice::from_raw_parts_mut(self.start.add(range.start), range.len()) }
    }
}
