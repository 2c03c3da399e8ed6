//! What happens to threads, as the interpreter reports it and policies are told.

use ampsched_model::{CoreId, ThreadId};

/// Something that happened to a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It exists now; not yet placed.
    Added(ThreadId),
    /// It became runnable, woken by another thread or by a timer or device.
    Woken(ThreadId, Option<ThreadId>),
    /// It waits for an object, a timer or a device.
    Blocked(ThreadId),
    /// It was put on a core.
    Started(ThreadId, CoreId),
    /// It was taken off a core, still runnable.
    Stopped(ThreadId, CoreId),
    /// It has ended.
    Exited(ThreadId),
}
