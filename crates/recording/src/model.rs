//! What a recording says.

use std::collections::BTreeMap;

use ampsched_model::{HeldClock, InputError, RecordedCores, SchedClass};
use serde::{Deserialize, Serialize};

use crate::Merged;
use crate::asks::{self, Asks, Group};

/// Declares [`Kind`] with its numbers and words, once.
macro_rules! kinds {
    ($($(#[doc = $meaning:literal])+ $name:ident = $number:literal, $word:literal;)+) => {
        /// What a thread did. The numbers are those of the file.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Kind {
            $($(#[doc = $meaning])+ $name = $number,)+
        }

        impl Kind {
            /// All kinds in the order of their numbers.
            pub const ALL: &[Kind] = &[$(Kind::$name),+];

            /// The kind of that number.
            pub fn from_number(number: u8) -> Option<Self> {
                match number {
                    $($number => Some(Kind::$name),)+
                    _ => None,
                }
            }

            /// The word for tables and messages.
            pub fn word(self) -> &'static str {
                match self {
                    $(Kind::$name => $word,)+
                }
            }
        }
    };
}

kinds! {
    /// The thread begins. `aux`: 1 + the thread that created it, 0 if nobody did.
    Start = 1, "start";
    /// The thread ends. `aux`: 1 if the end of its process has ended it.
    Exit = 2, "exit";
    /// It creates a thread. `object`: that thread's index.
    Create = 3, "create";
    /// It waits for the end of a thread, or of a process. `object`: that thread's index.
    Join = 4, "join";
    /// It acquires a mutex. `aux`: 2 by trylock.
    Lock = 5, "lock";
    /// A trylock fails.
    TryFail = 6, "trylock failed";
    /// It releases a mutex.
    Unlock = 7, "unlock";
    /// It begins to wait for a condition and releases the mutex. `aux`: the mutex, if known.
    CondWait = 8, "wait for condition";
    /// It returns from that wait, the mutex acquired. `aux`: 1 if the time was over.
    CondWake = 9, "woken by condition";
    /// It signals a condition.
    Signal = 10, "signal";
    /// It broadcasts a condition.
    Broadcast = 11, "broadcast";
    /// It leaves a barrier. `aux`: 1 for the thread that is told to be the serial one.
    Barrier = 12, "barrier";
    /// It takes from a semaphore.
    SemWait = 13, "wait for semaphore";
    /// It adds to a semaphore.
    SemPost = 14, "post";
    /// It acquires a lock for reading.
    ReadLock = 15, "lock for reading";
    /// It acquires a lock for writing.
    WriteLock = 16, "lock for writing";
    /// It releases a lock for reading or writing.
    RwUnlock = 17, "unlock readers and writers";
    /// It acquires a spin lock.
    SpinLock = 18, "spin lock";
    /// It releases a spin lock.
    SpinUnlock = 19, "spin unlock";
    /// It begins a parallel region of OpenMP.
    OmpFork = 20, "begin parallel region";
    /// It has ended a parallel region of OpenMP.
    OmpJoin = 21, "end parallel region";
    /// It begins its share of a parallel region.
    OmpBegin = 22, "begin share of region";
    /// It ends its share of a parallel region.
    OmpEnd = 23, "end share of region";
    /// It leaves a barrier of OpenMP.
    OmpBarrier = 24, "barrier of region";
    /// It enters a critical section of OpenMP.
    OmpCritical = 25, "critical";
    /// It leaves a critical section of OpenMP.
    OmpCriticalEnd = 26, "critical end";
    /// It returns from waiting at a futex that the program uses itself, for a counter (eventfd), or for a connection.
    /// `aux`: the error number, 0 if woken.
    FutexWait = 27, "futex wait";
    /// It wakes threads that wait there. `aux`: how many were woken.
    FutexWake = 28, "futex wake";
    /// It has slept. `aux`: 1 if until a time, so that who comes late sleeps less; 2 if until a timer's next period.
    Sleep = 29, "sleep";
    /// It yields.
    Yield = 30, "yield";
    /// A barrier is made. `aux`: its parties.
    BarrierInit = 31, "make barrier";
    /// It returns from input or output. `aux`: how, from `IO_READ` to `IO_STORAGE`.
    Io = 32, "input or output";
    /// As the kernel tells it: this thread wakes a blocked one. `object`: that thread's index.
    Wake = 33, "wake";
    /// As the kernel tells it: it has been blocked. `aux`: what woke it, see [`Wake`]. `object`: the futex it waited
    /// at, 0 if none is known.
    Block = 34, "block";
    /// It takes a chunk of a dynamic loop or a task of OpenMP. `aux`: iterations.
    OmpChunk = 35, "take chunk";
    /// It has read from a pipe or a connection, both of whose ends were recorded. `object`: the stream. `aux`: bytes;
    /// 0 if it has waited until there is something.
    Read = 36, "read from stream";
    /// It writes to such a stream. `aux`: bytes, which can be read from now on; 0 if it has waited for room.
    Write = 37, "write to stream";
}

/// Detail of [`Kind::Exit`]: the end of its process has ended it.
pub const EXIT_BY_PROCESS: u32 = 1;
/// Detail of [`Kind::Sleep`]: until a time.
pub const SLEEP_UNTIL: u32 = 1;
/// Detail of [`Kind::Sleep`]: until the next period of a timer that goes on by itself.
pub const SLEEP_PERIOD: u32 = 2;
/// Details of [`Kind::Io`]: it has read, it has written, or it has waited for several files.
pub const IO_READ: u32 = 0;
/// See [`IO_READ`].
pub const IO_WRITE: u32 = 1;
/// See [`IO_READ`].
pub const IO_POLL: u32 = 2;
/// Detail of [`Kind::Io`]: neither reading, writing nor polling.
pub const IO_OTHER: u32 = 3;
/// Detail of [`Kind::Io`]: perhaps the end of a child has ended the wait. It was ended by a signal or by the end of a
/// pipe, or the call has waited for a child that it had created itself.
pub const IO_INTERRUPTED: u32 = 4;
/// Detail of [`Kind::Io`]: it has waited for a disk, or a file there.
pub const IO_STORAGE: u32 = 5;

/// The core of an event if nobody has told it.
pub const UNKNOWN_CORE: u16 = u16::MAX;

/// One thing that a thread did. Times are those of the computer that recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// What it was.
    pub kind: Kind,
    /// Whether the thread had to block in it.
    pub is_blocked: bool,
    /// Whether the thread lost its core since its previous event.
    pub is_preempted: bool,
    /// The core on which it happened, or [`UNKNOWN_CORE`].
    pub core: u16,
    /// The object: a hash of its address, or what the kind says.
    pub object: u32,
    /// A detail that the kind explains.
    pub aux: u32,
    /// When it ended, in ns since the recording's begin.
    pub at_ns: u64,
    /// CPU time of the thread since its previous event, without blocking, losing the core and the recorder, in ns.
    pub cpu_ns: u64,
    /// How long that would have taken on the recording computer's fastest core, in ns.
    pub work_ns: u64,
    /// Time inside the call in which the thread did not run, in ns; of [`Kind::Block`] until it was woken.
    pub wait_ns: u64,
}

impl Event {
    /// An event of which nothing else is known, with so much CPU time before it, on a fastest core.
    pub fn new(kind: Kind, at_ns: u64, work_ns: u64) -> Self {
        Self {
            kind,
            is_blocked: false,
            is_preempted: false,
            core: UNKNOWN_CORE,
            object: 0,
            aux: 0,
            at_ns,
            cpu_ns: work_ns,
            work_ns,
            wait_ns: 0,
        }
    }

    /// When the wait inside the call began, in ns: when the event was, if there was none.
    pub fn waits_from_ns(&self) -> u64 {
        self.at_ns.saturating_sub(self.wait_ns)
    }
}

/// What ended a [`Kind::Block`]: the values of `aux`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// Nobody knows: the wake-up was not recorded.
    Unknown,
    /// Something outside of the recorded threads: a device, another program.
    Outside,
    /// A timer of the thread's own.
    Timer,
    /// A recorded thread, by its index.
    Thread(u32),
}

impl Wake {
    /// From the field of an event.
    pub fn from_aux(aux: u32) -> Self {
        match aux {
            0 => Wake::Unknown,
            1 => Wake::Outside,
            2 => Wake::Timer,
            thread => Wake::Thread(thread - 3),
        }
    }

    /// For the field of an event.
    pub fn to_aux(self) -> u32 {
        match self {
            Wake::Unknown => 0,
            Wake::Outside => 1,
            Wake::Timer => 2,
            Wake::Thread(thread) => thread + 3,
        }
    }
}

/// Priorities from here on are not real-time.
pub(crate) const PRIO_FAIR: u8 = 100;
/// Nice 0.
pub(crate) const PRIO_USUAL: u8 = 120;
/// Nice 19.
pub(crate) const PRIO_MAX: u8 = 139;

/// A recorded thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Thread {
    /// Its name, as the kernel has it; may be empty.
    pub name: String,
    /// Its process, counted from 0.
    pub process: u32,
    /// Its events in their order.
    pub events: Vec<Event>,
    /// Its priority as the kernel counts it, 0 to 99 real-time, 120 + nice; none if it is 120 or nobody knows.
    pub prio: Option<u8>,
    /// What it asks for beside that.
    pub asks: Asks,
}

impl Thread {
    /// Its nice value and its class.
    pub fn scheduled(&self) -> (i8, SchedClass) {
        let (nice, told) = self.of_prio();
        (nice, self.asks.policy.map_or(told, |policy| policy.class(told)))
    }

    fn of_prio(&self) -> (i8, SchedClass) {
        match self.prio.unwrap_or(PRIO_USUAL) {
            prio if prio < PRIO_FAIR => {
                let priority = (PRIO_FAIR - 1 - prio).max(1);
                (0, SchedClass::Fifo { priority })
            }
            prio => {
                ((i16::from(prio.min(PRIO_MAX)) - i16::from(PRIO_USUAL)) as i8, SchedClass::Fair)
            }
        }
    }

    /// When it began, in ns: before what it did up to its first event.
    pub fn begin_ns(&self) -> u64 {
        let before =
            |first: &Event| first.at_ns.saturating_sub(first.wait_ns).saturating_sub(first.cpu_ns);
        self.events.first().map_or(0, before)
    }

    /// Whether it has done its last thing by then.
    pub fn ends_by(&self, at_ns: u64) -> bool {
        self.events.last().is_some_and(|last| last.at_ns <= at_ns)
    }

    /// CPU time, in ns.
    pub fn cpu_ns(&self) -> u64 {
        self.sum(|event| event.cpu_ns)
    }

    /// What its CPU time would have been on the fastest core, in ns.
    pub fn work_ns(&self) -> u64 {
        self.sum(|event| event.work_ns)
    }

    /// Time that it was blocked, in ns.
    pub fn wait_ns(&self) -> u64 {
        self.sum(|event| event.wait_ns)
    }

    /// A damaged file may say anything: what is more than there can be stays the most.
    fn sum(&self, of: impl Fn(&Event) -> u64) -> u64 {
        self.events.iter().fold(0, |sum, event| sum.saturating_add(of(event)))
    }
}

/// A core of the computer that recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Core {
    /// Its speed by that of the fastest, above 0 to 1.
    pub speed: f64,
    /// Its kind, such as `cortex-a57`; empty if not known.
    #[serde(default)]
    pub kind: String,
}

/// Limits of a clock that were in force.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldLimits {
    /// Lowest frequency in kHz.
    pub min_khz: u32,
    /// Highest frequency in kHz.
    pub max_khz: u32,
    /// Share of the recording in which they were, 0 to 1.
    pub share: f64,
}

/// What a trace tells of one clock of the traced machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TracedClock {
    /// The cores that have it.
    pub cores: Vec<u16>,
    /// The limits that were in force for longer than any others (`cpu_frequency_limits`), if any were told.
    pub limits: Option<HeldLimits>,
    /// Lowest and highest frequency in kHz that it had (`cpu_frequency`), if any was told.
    pub seen_khz: Option<(u32, u32)>,
}

impl TracedClock {
    /// What a replay keeps: the limits; if none were told, the lowest frequency that was seen. The highest seen is no
    /// limit, as nobody may have wanted more.
    pub fn held(&self, cores: &[Core]) -> HeldClock {
        let kind = self.cores.first().and_then(|&core| cores.get(usize::from(core)));
        HeldClock {
            kind: kind.map_or(String::new(), |core| core.kind.clone()),
            cores: self.cores.len(),
            min_khz: self.limits.map(|it| it.min_khz).or(self.seen_khz.map(|(lowest, _)| lowest)),
            max_khz: self.limits.map(|it| it.max_khz),
        }
    }
}

/// What is known of a recording as a whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Info {
    /// The program's name.
    pub name: String,
    /// What was executed.
    pub command: Vec<String>,
    /// Who recorded: `preload`, `system`, `both`, or the form that was imported.
    pub recorder: String,
    /// The cores that the program could run on.
    pub cores: Vec<Core>,
    /// The clocks of the machine that was traced, in the order of its clusters; empty if nothing is known of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clocks: Vec<TracedClock>,
    /// The exact machine that it ran on, as `--machine` names it; empty if it was a real computer.
    pub machine: String,
    /// (CPU time on only the slowest kind of `machine`'s cores) / (the same on the fastest), if it was measured.
    pub speedup: Option<f64>,
    /// Core types of a real computer's fastest kind and of its slowest, if `speedup` is theirs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub speedup_kinds: Vec<String>,
    /// From the return of a call that wakes a thread until that thread runs, in ns, measured when recording.
    pub wakeup_ns: Option<u64>,
    /// Release of the kernel that scheduled, if known.
    pub kernel: String,
    /// From the first event to the last, in ns.
    pub wall_ns: u64,
    /// Length of the window, in ns, if the program ran before and went on: then it has no begin, end or exit code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_ns: Option<u64>,
    /// Estimated (time with the recorder) / (time without), if known.
    pub slowdown: Option<f64>,
    /// Share of the CPUs' time that other programs and the hypervisor took meanwhile, 0 to 1, if it was measured.
    pub foreign: Option<f64>,
    /// Events that the recorder had no room for.
    pub lost_events: u64,
    /// How the program ended: exit code, or 128 + the signal's number.
    pub exit_code: Option<i32>,
    /// Instructions per thread where counters told them; empty if none did.
    pub instructions: Vec<u64>,
    /// Frames that threads have marked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub frames: Vec<crate::import::Frames>,
    /// What was counted of the whole program by counters of the processor: by core type and counter.
    pub counters: BTreeMap<String, BTreeMap<String, f64>>,
    /// What came of the library and the kernel, if both have recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merged: Option<Merged>,
    /// Groups in which threads share CPU time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Group>,
    /// What this recording could not know, a sentence each.
    pub unknown: Vec<String>,
}

/// A recorded run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// What is known of it as a whole.
    pub info: Info,
    /// Its threads; the first one is that of the program's begin.
    pub threads: Vec<Thread>,
    /// Whether it ends where the recorder was cut off, so that only a part is there.
    pub is_cut_off: bool,
}

/// Longest time that a recording can tell, in ns: two years.
pub(crate) const TIME_NS_MAX: u64 = 1 << 56;

impl Recording {
    /// The same, if an engine can add up its times and give its threads what they ask for.
    ///
    /// # Errors
    /// A time is longer than two years, or threads ask for what there is not, as only a damaged file has it.
    pub(crate) fn checked(self, file: &str) -> Result<Self, InputError> {
        for (index, thread) in self.threads.iter().enumerate() {
            let times = |event: &Event| [event.at_ns, event.cpu_ns, event.work_ns, event.wait_ns];
            let longest = thread.events.iter().flat_map(times).max().unwrap_or(0);
            if longest > TIME_NS_MAX {
                let message = format!("a time of {longest} ns; the longest is {TIME_NS_MAX}");
                return Err(InputError::new(file, format!("thread {index}"), message));
            }
        }
        match asks::flaw(&self.info, &self.threads) {
            None => Ok(self),
            Some(flaw) => Err(InputError::new(file, "threads", flaw)),
        }
    }

    /// The CPUs that threads' masks name, if any has a mask.
    pub(crate) fn recorded_cores(&self) -> Option<RecordedCores> {
        let has_masks = self.threads.iter().any(|thread| thread.asks.cpus.is_some());
        let cores = || self.info.cores.iter().map(|core| (core.kind.clone(), core.speed));
        has_masks.then(|| RecordedCores(cores().collect()))
    }

    /// Number of events of all threads.
    pub fn events(&self) -> usize {
        self.threads.iter().map(|thread| thread.events.len()).sum()
    }

    /// CPU time of all threads, in ns.
    pub fn cpu_ns(&self) -> u64 {
        self.threads.iter().fold(0, |sum: u64, thread| sum.saturating_add(thread.cpu_ns()))
    }

    /// How often threads blocked.
    pub fn blocks(&self) -> usize {
        let events = self.threads.iter().flat_map(|thread| &thread.events);
        events.filter(|event| event.is_blocked || event.kind == Kind::Block).count()
    }

    /// Time that threads were blocked, in ns: in all, and with a cause that is known. Of input and output it is
    /// only that of disks: who else has written what was waited for may be a person or a thread.
    pub fn blocked_ns(&self) -> (u64, u64) {
        let mut sums: (u64, u64) = (0, 0);
        for event in self.threads.iter().flat_map(|thread| &thread.events) {
            sums.0 = sums.0.saturating_add(event.wait_ns);
            let is_known = match event.kind {
                Kind::Io => event.aux == IO_STORAGE,
                Kind::Block => !matches!(Wake::from_aux(event.aux), Wake::Unknown | Wake::Outside),
                _ => true,
            };
            sums.1 = sums.1.saturating_add(if is_known { event.wait_ns } else { 0 });
        }
        sums
    }
}
