//! What a trace records, of a simulation or of a live system.

use ampsched_model::{ClusterId, CoreId, Ns, ThreadId};

/// A thread as a trace introduces it.
#[derive(Clone, Copy, Debug)]
pub struct TraceThread<'a> {
    /// Identifier.
    pub id: ThreadId,
    /// Application's number.
    pub app: usize,
    /// Application's name.
    pub app_name: &'a str,
    /// Thread's name within the application.
    pub name: &'a str,
}

/// A recorder of what happens; all times in ns since the start, never decreasing.
pub trait Trace {
    /// A thread has been created.
    fn thread(&mut self, thread: TraceThread);
    /// A thread is put on a core.
    fn run(&mut self, core: CoreId, thread: ThreadId, at_ns: Ns);
    /// A thread is taken off a core after retiring `instructions` there.
    fn stop(&mut self, core: CoreId, thread: ThreadId, instructions: u64, at_ns: Ns);
    /// A thread became runnable; `waker` is the thread that caused it, if one did.
    fn wake(&mut self, waker: Option<ThreadId>, woken: ThreadId, at_ns: Ns);
    /// A policy has decided something about a thread, such as `to big cores`.
    fn decided(&mut self, thread: ThreadId, what: &str, at_ns: Ns);
    /// A cluster runs at another frequency from now on.
    fn frequency(&mut self, cluster: ClusterId, mhz: u32, at_ns: Ns);
    /// Waiting threads in the queue of a core.
    fn queue_len(&mut self, core: CoreId, len: usize, at_ns: Ns);
}
