//! The program of an application: objects, threads and code, ready to be executed.
//!
//! A program is what the TOML program language and every importer produce. Its code is a flat list
//! of [`Op`]s with explicit jumps, so an engine needs only a program counter and a small loop stack
//! per thread.

use std::sync::Arc;

use crate::{
    Amount, Cluster, CodePtr, CoreId, CoreSet, HeldClock, Ns, ObjectId, Profile, ProfileId,
    RecordedCores, SchedAttrs, SchedClass, Schedule, TaskGroup,
};

/// What a synchronisation object is.
#[derive(Clone, Debug, PartialEq)]
pub enum ObjectKind {
    /// Futex-like lock: the uncontended path is free, a woken waiter competes again.
    Mutex,
    /// Condition variable.
    Condition,
    /// Barrier for `parties` threads; reusable.
    Barrier {
        /// Threads that must arrive.
        parties: u32,
    },
    /// Counting semaphore.
    Semaphore {
        /// Initial count.
        initial: u32,
    },
    /// Bounded queue of items. It is closed when `producers` `Close` operations have been executed;
    /// a pop from a closed, empty queue ends the consumer's loop.
    Queue {
        /// Most items that it holds.
        capacity: u32,
        /// `Close` operations that close it.
        producers: u32,
    },
    /// Shared loop counter (dynamic loop, task pool): hands out iterations `0..total` in chunks.
    /// It starts anew when every participant has seen its end, so it can stand inside a loop.
    Pool {
        /// Iterations per use.
        total: u64,
        /// Iterations handed out at once.
        chunk: u64,
        /// Threads that take part.
        participants: u32,
        /// Who gets how many at once.
        schedule: Schedule,
    },
    /// I/O device: requests are served in order of arrival.
    Device {
        /// Requests that it serves at the same time.
        depth: u32,
        /// Time that passes for each request beside its service, in ns; it does not occupy the device.
        latency_ns: Ns,
    },
    /// Periodic timer (rt-app `timer`): remembers its next expiry, per thread unless `shared`.
    Timer {
        /// Whether all threads share one next expiry.
        shared: bool,
    },
    /// Parallel region: threads execute the tasks of a graph until all have ended.
    Region(Region),
}

/// A parallel region: a task graph, and the task policy that feeds the threads that work on it.
///
/// This crate knows neither task graphs nor their policies: the names are resolved by the crate that runs the program.
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    /// Where it is declared, `FILE:LINE: KEY`, for messages.
    pub place: String,
    /// A task program with parameters, such as `fluidanimate:frames=50`, or the path of a file.
    pub graph: String,
    /// The file's text, if `graph` is a path.
    pub text: Option<Arc<str>>,
    /// Task policy with parameters, such as `cats:steal=1`.
    pub policy: String,
    /// Threads that work on it at the same time.
    pub workers: u32,
    /// How long a task of work 1 takes on the machine's fastest core at its highest frequency.
    pub work_ns: f64,
    /// The same for taking a task from something that workers share.
    pub grab_ns: f64,
    /// The same for creating a task.
    pub create_ns: f64,
    /// Whether a thread creates the tasks one by one; else all are there from the start.
    pub is_lazy: bool,
    /// Most tasks that have been created and have not ended; one more its creator executes itself.
    pub window: Option<u32>,
}

/// A named synchronisation object.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// Name, for messages and traces.
    pub name: String,
    /// What it is.
    pub kind: ObjectKind,
    /// CPU time for which a thread that has to wait for it spins before it blocks.
    pub spin_ns: Ns,
}

impl Object {
    /// An object at which threads block at once.
    pub fn new(name: String, kind: ObjectKind) -> Self {
        Self { name, kind, spin_ns: 0 }
    }
}

impl ObjectKind {
    /// The word for it in files, messages and reports.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Mutex => "mutex",
            Self::Condition => "condition",
            Self::Barrier { .. } => "barrier",
            Self::Semaphore { .. } => "semaphore",
            Self::Queue { .. } => "queue",
            Self::Pool { .. } => "pool",
            Self::Device { .. } => "device",
            Self::Timer { .. } => "timer",
            Self::Region(_) => "region",
        }
    }
}

/// The words of the kinds of objects at which threads may spin before they block.
pub const SPINNABLE: [&str; 6] = ["mutex", "condition", "barrier", "semaphore", "queue", "region"];

/// Longest that a thread may spin before it blocks, in us: as good as for ever.
pub const SPIN_US_MAX: f64 = 1e9;

/// How a periodic timer behaves when its expiry has passed already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerMode {
    /// Do not sleep; the next expiry is counted from the missed one.
    Relative,
    /// Do not sleep; the next expiry is the next multiple of the period from the start.
    Absolute,
}

/// One step of a thread.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Retire an amount of instructions that behave like `profile`.
    Compute {
        /// Instructions.
        instructions: Amount,
        /// Behaviour.
        profile: ProfileId,
    },
    /// Retire the instructions that take an amount of time (ns) on the core of the program's
    /// [`Calibration`] at its highest frequency (rt-app `run`; for users who know times but no
    /// instruction counts).
    Run {
        /// Time on that core in ns.
        reference_ns: Amount,
        /// Behaviour.
        profile: ProfileId,
    },
    /// Use the core for an amount of CPU time (ns), however fast the core is (rt-app `runtime`).
    Occupy {
        /// CPU time in ns.
        cpu_ns: Amount,
        /// Behaviour, which says how many instructions retire meanwhile.
        profile: ProfileId,
    },
    /// Acquire a mutex.
    Lock(ObjectId),
    /// Release a mutex; only its holder may.
    Unlock(ObjectId),
    /// Acquire one of `count` mutexes from `first` on, chosen at random.
    LockOneOf {
        /// First mutex of the array.
        first: ObjectId,
        /// Length of the array.
        count: u32,
    },
    /// Release the mutex of the array that the thread acquired last.
    UnlockOneOf {
        /// First mutex of the array.
        first: ObjectId,
        /// Length of the array.
        count: u32,
    },
    /// Release the mutex, wait for a signal, acquire the mutex again.
    Wait {
        /// Condition variable.
        condition: ObjectId,
        /// Mutex, held by the caller.
        mutex: ObjectId,
    },
    /// Wake one waiter of a condition (lost if none waits).
    Signal(ObjectId),
    /// Wake all waiters of a condition.
    Broadcast(ObjectId),
    /// rt-app `sync`: signal the condition, then wait for it, in one step under the mutex.
    SignalAndWait {
        /// Condition variable.
        condition: ObjectId,
        /// Mutex, not held by the caller.
        mutex: ObjectId,
    },
    /// Arrive at a barrier and wait for the others.
    Barrier(ObjectId),
    /// Take one from a semaphore, waiting if it is 0.
    SemWait(ObjectId),
    /// Add one to a semaphore.
    SemPost(ObjectId),
    /// Put an item into a queue, waiting while it is full.
    Push(ObjectId),
    /// Take an item from a queue, waiting while it is empty; if it is closed and empty, jump to `end`.
    /// Until the matching `ItemEnd` random amounts depend on the item, not on the thread.
    Pop {
        /// The queue.
        queue: ObjectId,
        /// Where to go on when the queue has ended.
        end: CodePtr,
    },
    /// End of the work on an item: jump back to the `Pop` or `Take` at `again`.
    ItemEnd {
        /// The `Pop` or `Take`.
        again: CodePtr,
    },
    /// Declare that this producer of a queue has finished.
    Close(ObjectId),
    /// Take the next iteration from a pool, or jump to `end` if none is left.
    /// Until the matching `ItemEnd` random amounts depend on the iteration, not on the thread.
    Take {
        /// The pool.
        pool: ObjectId,
        /// Where to go on when the pool is exhausted.
        end: CodePtr,
    },
    /// Work on a region: execute tasks that its policy hands out, until all tasks have ended.
    Tasks {
        /// The region.
        region: ObjectId,
        /// How tasks behave.
        profile: ProfileId,
    },
    /// Create all tasks of a region, one by one.
    Create {
        /// The region.
        region: ObjectId,
        /// How the code behaves that creates them.
        profile: ProfileId,
    },
    /// Repeat the code up to the matching `LoopEnd`; if the count is 0 jump to `end`.
    /// A count of `u64::MAX` repeats for ever.
    Loop {
        /// Iterations.
        count: Amount,
        /// Behind the matching `LoopEnd`.
        end: CodePtr,
    },
    /// End of a loop body: jump back to `start` (the first operation of the body) or go on.
    LoopEnd {
        /// First operation of the body.
        start: CodePtr,
    },
    /// Start an instance of a thread specification; it is a child of this thread.
    Fork {
        /// Index into [`Program::threads`].
        thread: u32,
    },
    /// Wait until all children of this thread have exited.
    Join,
    /// Sleep for an amount of time (ns).
    Sleep(Amount),
    /// Sleep until a time, in ns since the program's begin; go on at once if it has passed.
    SleepUntil {
        /// When.
        at_ns: Ns,
    },
    /// The work of the present period has ended, if there is one; the next period begins, unless it has no length.
    Period {
        /// When it begins, in ns since the program's begin.
        begun_ns: Ns,
        /// How long after that its work is due, in ns; 0: none begins.
        length_ns: Ns,
    },
    /// Sleep until the timer's next expiry, `period_ns` after the previous one.
    TimerWait {
        /// Timer object.
        timer: ObjectId,
        /// Period in ns.
        period_ns: Ns,
        /// What a missed expiry does.
        mode: TimerMode,
    },
    /// Occupy a device for an amount of time (ns), waiting for its turn; the core is free meanwhile.
    Io {
        /// Device object.
        device: ObjectId,
        /// Service time in ns.
        service_ns: Amount,
    },
    /// Give up the core, staying runnable.
    Yield,
    /// Block until another thread resumes this thread specification.
    Suspend,
    /// Resume the suspended instances of a thread specification.
    Resume {
        /// Index into [`Program::threads`].
        thread: u32,
    },
    /// Change the cores that the thread may use.
    SetAffinity(CoreSet),
    /// Change the nice value, -20..=19.
    SetNice(i8),
    /// Change the scheduling class.
    SetClass(SchedClass),
    /// Change the length of its slices while it is fair, in ns; 0: as the policy says.
    SetSlice(Ns),
    /// Change the utilisation clamps, 0 to 1024; what is absent stays.
    SetUclamp {
        /// Least utilisation.
        min: Option<u16>,
        /// Greatest utilisation.
        max: Option<u16>,
    },
    /// Go to another group, an index into [`Program::groups`]; none: the root group.
    SetGroup(Option<u16>),
    /// End the thread. Every thread's code ends with it.
    Exit,
}

/// A thread, or a group of equal threads, of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadSpec {
    /// Name, for messages and traces; instances of a group are called `name.0`, `name.1`, ...
    pub name: String,
    /// First operation.
    pub entry: CodePtr,
    /// Instances that start with the program; 0 for specifications that are only forked.
    pub count: u32,
    /// Nice value, -20..=19.
    pub nice: i8,
    /// Cores that it may use; all if absent.
    pub affinity: Option<CoreSet>,
    /// Delay of its start after the program's.
    pub start_ns: Ns,
    /// Class, slice, clamps and group.
    pub attrs: SchedAttrs,
    /// Whether it ends, wherever it is, when all threads of its process have ended that are no daemon threads.
    pub is_daemon: bool,
    /// The process of the program that it belongs to, from 0 on; the workload language knows only one.
    pub process: u32,
}

/// The core on which work that is stated in time ([`Op::Run`]) takes that time, at its highest frequency.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Calibration {
    /// The machine's fastest ([`Machine::fastest`](crate::Machine::fastest)).
    #[default]
    Fastest,
    /// The core of that number.
    Core(CoreId),
    /// A core of that kind, whatever the machine: what a number has become
    /// ([`Workload::renumbered`](crate::Workload::renumbered)).
    Kind(Box<Cluster>),
}

/// A program, ready to be executed.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// Name.
    pub name: String,
    /// One line for listings.
    pub description: String,
    /// Behaviour profiles that the code refers to.
    pub profiles: Vec<Profile>,
    /// Synchronisation objects.
    pub objects: Vec<Object>,
    /// Threads.
    pub threads: Vec<ThreadSpec>,
    /// Groups that threads are in at some time, or that are stated.
    pub groups: Vec<TaskGroup>,
    /// Code of all threads.
    pub code: Vec<Op>,
    /// Time after which the whole program stops (rt-app `duration`), if it does not end by itself.
    pub duration_ns: Option<Ns>,
    /// (Instructions per joule on the fastest kind of core) / (the same on the slowest), both at their
    /// highest frequencies, if it was measured; else it is what the machine's power model says.
    pub energy_ratio: Option<f64>,
    /// Where work that is stated in time takes that time.
    pub calibration: Calibration,
    /// Of what was traced: the clocks of the traced machine, in the order of its clusters. Empty: nothing is known.
    pub held_clocks: Vec<HeldClock>,
    /// The CPUs that sets of cores name, if they are those of a computer that recorded the program: see
    /// [`Workload::placed_on`](crate::Workload::placed_on).
    pub recorded_cores: Option<RecordedCores>,
}

impl Program {
    /// Threads that start with the program (forked ones come on top).
    pub fn initial_threads(&self) -> u32 {
        self.threads.iter().map(|thread| thread.count).sum()
    }

    /// The same program with as many times as much work in each step and each task; waits, and how often something
    /// happens, stay as they are.
    #[must_use]
    pub fn with_work(&self, factor: f64) -> Program {
        let mut program = self.clone();
        for op in &mut program.code {
            if let Op::Compute { instructions: amount, .. }
            | Op::Run { reference_ns: amount, .. }
            | Op::Occupy { cpu_ns: amount, .. } = op
            {
                *amount = amount.times(factor);
            }
        }
        for object in &mut program.objects {
            if let ObjectKind::Region(region) = &mut object.kind {
                region.work_ns *= factor;
            }
        }
        program
    }

    /// The same program with threads that spin before they block: at each object of a kind, for so much CPU time.
    ///
    /// Kinds are words of [`SPINNABLE`]; objects of other kinds keep what they have.
    #[must_use]
    pub fn spinning(&self, kinds: &[(&str, Ns)]) -> Program {
        let mut program = self.clone();
        for object in &mut program.objects {
            let word = object.kind.word();
            let stated = kinds.iter().find(|(kind, _)| *kind == word);
            object.spin_ns = stated.map_or(object.spin_ns, |(_, spin_ns)| *spin_ns);
        }
        program
    }

    /// The same program with other stated ratios of speeds: what exceeds 1 is multiplied by the factor.
    #[must_use]
    pub fn with_net_ratios(&self, factor: f64) -> Program {
        let mut program = self.clone();
        for profile in &mut program.profiles {
            profile.measured_ratio =
                profile.measured_ratio.map(|ratio| 1.0 + (ratio - 1.0) * factor);
        }
        program
    }

    /// The same program whose regions are worked on under another task policy, such as `cats:steal=1`.
    #[must_use]
    pub fn with_task_policy(&self, policy: &str) -> Program {
        let mut program = self.clone();
        for object in &mut program.objects {
            if let ObjectKind::Region(region) = &mut object.kind {
                policy.clone_into(&mut region.policy);
            }
        }
        program
    }

    /// The greatest nice value that one of its threads may get, without its application's.
    pub fn greatest_nice(&self) -> i8 {
        let at_first = self.threads.iter().map(|thread| thread.nice);
        let later = self.code.iter().filter_map(|op| match op {
            Op::SetNice(nice) => Some(*nice),
            _ => None,
        });
        at_first.chain(later).max().unwrap_or(0)
    }

    /// The classes that its threads have at some time: at their start, then in the order of the code.
    pub fn classes(&self) -> impl Iterator<Item = SchedClass> + '_ {
        let at_first = self.threads.iter().map(|thread| thread.attrs.class);
        let later = self.code.iter().filter_map(|op| match op {
            Op::SetClass(class) => Some(*class),
            _ => None,
        });
        at_first.chain(later)
    }
}
