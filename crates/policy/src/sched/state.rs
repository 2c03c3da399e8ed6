//! What the interpreter knows of threads and cores.

use ampsched_model::{AppId, ClassId, CoreId, MAX_CLASSES, Ns, ThreadId};

choice! {
    /// Where a thread is in its life.
    pub enum RunState as "state" {
        /// Not started.
        New as "new" => {}
        /// Waiting in a run queue.
        Ready as "ready" => {}
        /// On a core.
        Running as "running" => {}
        /// Waiting for an object, a timer or a device.
        Blocked as "blocked" => {}
        /// It could run but is held back by the plan.
        Held as "held" => {}
        /// Ended.
        Exited as "exited" => {}
    }
}

#[allow(clippy::derivable_impls)] // The enum is declared by the table of words.
impl Default for RunState {
    fn default() -> Self {
        Self::New
    }
}

impl RunState {
    /// Started and not exited.
    pub fn is_live(self) -> bool {
        matches!(self, Self::Ready | Self::Running | Self::Blocked | Self::Held)
    }

    /// Running or waiting for a core.
    pub fn is_runnable(self) -> bool {
        matches!(self, Self::Ready | Self::Running)
    }
}

/// Scheduling state of a thread.
#[derive(Clone, Debug, Default)]
pub struct ThreadState {
    /// Where it is in its life.
    pub state: RunState,
    /// Its application.
    pub app: AppId,
    /// The core on which it runs, waits or last ran.
    pub core: CoreId,
    /// The core on which it runs or last ran; none if it never has.
    pub ran_on: Option<CoreId>,
    /// Virtual run time in ns, relative to its queue.
    pub vruntime: Ns,
    /// Virtual deadline in ns (EEVDF).
    pub deadline: Ns,
    /// Since when it is in its state.
    pub since_ns: Ns,
    /// Mean virtual run time of its queue minus its own when it left it (EEVDF).
    pub(super) lag: i64,
    /// Whether it is ready, but in no queue.
    pub(super) is_aside: bool,
    /// Whether it is of a class above the policy's, which does not see it.
    pub(super) is_above: bool,
}

/// What a thread has used and suffered since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadStats {
    /// Time on cores of each class, switching included.
    pub run_ns: [Ns; MAX_CLASSES],
    /// Time in run queues.
    pub ready_ns: Ns,
    /// Longest single stay in a run queue.
    pub ready_ns_max: Ns,
    /// Time blocked.
    pub blocked_ns: Ns,
    /// Times that it was put on a core after another thread had used it.
    pub switches: u64,
    /// Times that it was put on another core than before.
    pub migrations: u64,
    /// When it last changed cores.
    pub migrated_at_ns: Ns,
    /// Instructions retired on cores of each class. Policies read them through the [`crate::View`].
    pub(super) instructions: [u64; MAX_CLASSES],
    /// Time that other threads have waited for this one; a policy's factor.
    pub(super) blame_ns: Ns,
}

impl ThreadStats {
    /// Time on cores in total.
    pub fn run_ns_total(&self) -> Ns {
        self.run_ns.iter().sum()
    }

    #[inline]
    pub(super) fn count_wait(&mut self, waited_ns: Ns) {
        self.ready_ns += waited_ns;
        self.ready_ns_max = self.ready_ns_max.max(waited_ns);
    }

    /// A stay in a state has ended; running is accounted for elsewhere.
    #[inline]
    pub(super) fn count_stay(&mut self, state: RunState, stay_ns: Ns) {
        match state {
            RunState::Ready | RunState::Held => self.count_wait(stay_ns),
            RunState::Blocked => self.blocked_ns += stay_ns,
            RunState::New | RunState::Running | RunState::Exited => {}
        }
    }
}

/// Scheduling state of a core.
#[derive(Clone, Debug, Default)]
pub struct CoreState {
    /// The thread of the policy's that runs on it.
    pub running: Option<ThreadId>,
    /// The thread of a class above the policy's that occupies it instead, if any.
    pub above: Option<ThreadId>,
    /// Since when that thread runs (slices are counted from here), or since when it is occupied or idle.
    pub since_ns: Ns,
    /// The thread that ran last.
    pub last: Option<ThreadId>,
    /// Time that it has spent with threads, switching included.
    pub busy_ns: Ns,
    /// The part of it that threads of classes above the policy's have had.
    pub(super) above_ns: Ns,
    /// Time that the running thread has been charged for since it was started, or its pace last changed.
    pub(super) turn_ns: Ns,
    /// What of its virtual run time that was.
    pub(super) turn_virtual_ns: Ns,
    /// Its queue.
    pub(super) queue: u16,
    /// Its speed class, as in the topology (kept where the other fields are looked up).
    pub(super) class: ClassId,
    /// Whether the system has it for itself.
    pub(super) is_taken: bool,
    /// Time that the system had it for itself, or kept it from idling.
    pub(super) taken_ns: Ns,
}

choice! {
    /// How a thread comes into a run queue.
    pub enum EnqueueKind as "enqueue" {
        /// It has just been created.
        Fork as "fork" => {}
        /// It was blocked.
        Wake as "wake" => {}
        /// It was running and has lost the core.
        Requeue as "requeue" => {}
    }
}

/// What a core does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// Run this waiting thread.
    Run(ThreadId),
    /// Interrupt this thread, which runs on a slower core, and run it here.
    Pull(ThreadId),
    /// Nothing to do; ask again at that time if nothing has happened before.
    Idle {
        /// Time in ns.
        recheck_ns: Option<Ns>,
    },
}
