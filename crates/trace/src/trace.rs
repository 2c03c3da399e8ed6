//! What a trace records, of a simulation or of a live system.

use ampsched_model::{ClusterId, CoreId, NoiseKind, Ns, ThreadId};
use ampsched_policy::{Reason, Rules, RunState};

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
    /// Its numbers in an operating system, if it is one's.
    pub ids: Option<SystemIds>,
}

/// The numbers of a thread in an operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemIds {
    /// That of its process.
    pub pid: i32,
    /// Its own.
    pub tid: i32,
}

/// How a thread's turn on a core ended.
#[derive(Clone, Copy, Debug)]
pub struct TurnEnd<'a> {
    /// Instructions that it retired there, if that is known.
    pub instructions: Option<u64>,
    /// What becomes of it.
    pub state: RunState,
    /// Why, if it is known.
    pub why: Option<&'a Reason>,
}

/// What is decided about a thread apart from its turns on cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision<'a> {
    /// It is put into the queue of a core, because it starts, wakes or has to move.
    Placed(CoreId),
    /// It waits in another queue from now on.
    Moved {
        /// A core of the queue that it leaves.
        from: CoreId,
        /// A core of the queue to which it comes.
        to: CoreId,
    },
    /// Whether it, just woken, interrupts the thread that runs on its core.
    Interrupts {
        /// The other thread.
        running: ThreadId,
        /// The core.
        core: CoreId,
        /// Whether it does.
        yes: bool,
    },
    /// The plan changes, in these words, such as `to big cores`.
    Planned(&'a str),
    /// The plan holds it back.
    Held,
    /// It is ended from outside.
    Ended,
    /// A core that looked for a thread did not choose it. Only of the thread that the trace asks about.
    PassedOver(CoreId),
}

/// A recorder of what happens; all times in ns since the start, never decreasing.
///
/// A reason is absent where nobody can know it, as of what a kernel does by itself.
pub trait Trace {
    /// The rules whose words the reasons use.
    fn rules(&mut self, _rules: &Rules) {}
    /// The thread of which the trace wants to know why cores passed it over.
    fn asks_about(&self) -> Option<ThreadId> {
        None
    }
    /// A thread has been created.
    fn thread(&mut self, thread: TraceThread);
    /// A thread is put on a core.
    fn run(&mut self, core: CoreId, thread: ThreadId, why: Option<&Reason>, at_ns: Ns);
    /// A thread is taken off a core.
    fn stop(&mut self, core: CoreId, thread: ThreadId, end: TurnEnd, at_ns: Ns);
    /// A thread became runnable and is put into the queue of a core, if that is known; `waker` is the thread that
    /// caused it, if one did.
    fn wake(&mut self, waker: Option<ThreadId>, woken: ThreadId, core: Option<CoreId>, at_ns: Ns);
    /// Something is decided about a thread.
    fn decided(&mut self, thread: ThreadId, decision: Decision, why: Option<&Reason>, at_ns: Ns);
    /// A cluster runs at another frequency from now on; at the start, at this one.
    fn frequency(&mut self, cluster: ClusterId, mhz: u32, at_ns: Ns);
    /// A cluster, its cores and what they share, draws another power from now on.
    fn power(&mut self, _cluster: ClusterId, _mw: f64, _at_ns: Ns) {}
    /// The system does something of its own on a core, which takes some time. A kernel thread has the core until
    /// [`Trace::system_ends`].
    fn noise(&mut self, _core: CoreId, _kind: NoiseKind, _name: &str, _takes_ns: Ns, _at_ns: Ns) {}
    /// The system gives a core back.
    fn system_ends(&mut self, _core: CoreId, _at_ns: Ns) {}
    /// Waiting threads in the queue of a core.
    fn queue_len(&mut self, core: CoreId, len: usize, at_ns: Ns);
}
