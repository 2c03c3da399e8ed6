//! What every form of a trace boils down to: scheduler events in the order of time.

use std::collections::{HashMap, HashSet};
use std::io::Read;

use ampsched_model::{Budget, CLAMP_MAX, InputError};

use super::interrupts;

/// Marks an event whose form does not say in which thread's context it happened: whoever runs on that core.
pub const WHOEVER_RUNS: u32 = u32::MAX;

/// A text that was seen before, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Name(u32);

/// Texts that occur again and again, each once.
#[derive(Clone, Debug)]
pub struct Names {
    texts: Vec<Box<str>>,
    numbers: HashMap<Box<str>, u32>,
}

impl Default for Names {
    fn default() -> Self {
        let mut names = Self { texts: Vec::new(), numbers: HashMap::new() };
        names.number("");
        names
    }
}

impl Names {
    /// The number of a text.
    pub fn number(&mut self, text: &str) -> Name {
        if let Some(&number) = self.numbers.get(text) {
            return Name(number);
        }
        let number = self.texts.len() as u32;
        self.texts.push(text.into());
        self.numbers.insert(text.into(), number);
        Name(number)
    }

    /// The text of a number.
    pub fn text(&self, name: Name) -> &str {
        self.texts.get(name.0 as usize).map_or("", |text| text)
    }
}

/// A priority that nobody has told.
pub const NO_PRIO: u8 = u8::MAX;
/// That of a thread with a deadline, which the kernel counts as -1.
pub const PRIO_DEADLINE: u8 = NO_PRIO - 1;
/// The lowest priority, nice 19 (include/linux/sched/prio.h).
const PRIO_MAX: i64 = 139;
/// Highest clock that is believed, in kHz (ours).
const KHZ_MAX: u32 = 20_000_000;

/// A priority as the kernel counts it: 0 to 99 real-time, 120 + nice, [`PRIO_DEADLINE`]. [`NO_PRIO`] for what is none.
pub fn prio(number: i64) -> u8 {
    match number {
        -1 => PRIO_DEADLINE,
        0..=PRIO_MAX => number as u8,
        _ => NO_PRIO,
    }
}

/// How a thread leaves its core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// It can go on: it has lost the core.
    Ready,
    /// It waits, for anything.
    Sleeps,
    /// It waits for a device or for a lock of the kernel, and no signal wakes it.
    WaitsForDevice,
    /// The same, of which the kernel has told that it is a device (`sched_blocked_reason`).
    WaitsForStorage,
    /// The same, of which the kernel has told that it is none.
    WaitsInKernel,
    /// It has ended.
    Dead,
}

impl Left {
    /// From the letters that the kernel prints: `R`, `R+`, `S`, `D`, `D|W`, `X`, `Z`.
    pub fn from_letters(letters: &str) -> Self {
        match letters.as_bytes().first() {
            None | Some(b'R') => Self::Ready,
            Some(b'D') => Self::WaitsForDevice,
            Some(b'X' | b'Z' | b'x') => Self::Dead,
            Some(_) => Self::Sleeps,
        }
    }

    /// From the number in the event (include/linux/sched.h): bits of states up to TASK_REPORT_MAX, none for ready. 0x40
    /// is TASK_DEAD up to Linux 4.13; since then threads of the kernel are parked in it, which are nobody's programs.
    pub fn from_number(state: u64) -> Self {
        match state & 0xff {
            0 => Self::Ready,
            bits if bits & 0x70 != 0 => Self::Dead,
            bits if bits & 2 != 0 => Self::WaitsForDevice,
            _ => Self::Sleeps,
        }
    }
}

/// In what an event happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// In the thread that the event names.
    Thread,
    /// In an interrupt, which has nothing to do with that thread.
    Interrupt,
    /// The form does not tell.
    Unknown,
}

/// What a thread asks for, as an event tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Another priority, see [`prio`].
    Priority(u8),
    /// The CPUs that it may use, a bit each, the lowest that of CPU 0.
    Cpus(u32),
    /// Least and greatest utilisation, 0 to 1024.
    Clamps(u16, u16),
    /// The group to which it is moved in the hierarchy of a number (`cgroup_attach_task`).
    Group { hierarchy: u32, path: Name },
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A core goes from one thread to another; 0 is nobody. `prios`: of both, [`NO_PRIO`] if not told.
    Switch { from: u32, from_name: Name, left: Left, to: u32, to_name: Name, prios: [u8; 2] },
    /// A thread is woken. `is_late`: seen when it is put into a queue, which may be on another core.
    Waking { woken: u32, name: Name, is_late: bool },
    /// A thread is created, by the thread of the event or by `parent`. `is_thread`: in the same process, if known.
    New { parent: Option<u32>, child: u32, name: Name, is_thread: Option<bool> },
    /// A process executes another program; its thread was `old_tid`.
    Exec { tid: u32, old_tid: u32, file: Name },
    /// A thread has another name.
    Rename { tid: u32, name: Name },
    /// A thread ends.
    Exit { tid: u32 },
    /// A thread enters a call that may wait: of a futex at an address, or for a time.
    CallEnter { futex: Option<u64> },
    /// It leaves that call.
    CallExit,
    /// It leaves that call because its time was over.
    TimedOut,
    /// A timer of high resolution goes off on this core.
    TimerBegin,
    /// That timer's function has returned.
    TimerEnd,
    /// An interrupt, or what it has put off (softirq), begins on this core.
    InterruptBegin,
    /// It ends.
    InterruptEnd,
    /// Events are missing before this one, on this core.
    Lost { events: u64 },
    /// A core has another clock, in kHz (`cpu_frequency`).
    Frequency { cpu: u16, khz: u32 },
    /// The bounds of a core's clock are others, in kHz (`cpu_frequency_limits`).
    FrequencyLimits { cpu: u16, min_khz: u32, max_khz: u32 },
    /// A core goes into an idle state, or leaves it (`cpu_idle`).
    Idle { cpu: u16, state: Option<u32> },
    /// A thread asks for something from now on.
    Asks { tid: u32, ask: Ask },
    /// A core is taken away from all threads, by hot-plug or isolation, or given back.
    Away { cpu: u16, is_away: bool },
    /// These are the cores that are isolated now, a bit each.
    Isolated { cpus: u32 },
    /// Why a thread is blocked that no signal wakes (`sched_blocked_reason`).
    BlockedReason { tid: u32, is_storage: bool },
    /// A thread begins a slice of its own marking (`B|PID|NAME` of `print` or `tracing_mark_write`).
    SliceBegin { name: Name },
    /// It ends the innermost one.
    SliceEnd,
}

impl What {
    /// A core's clock of 0 (off) to 20 GHz; none if it is no number of a core or no clock.
    pub fn frequency(cpu: u64, khz: u64) -> Option<Self> {
        let khz = u32::try_from(khz).ok().filter(|&khz| khz <= KHZ_MAX)?;
        Some(Self::Frequency { cpu: u16::try_from(cpu).ok()?, khz })
    }

    /// Bounds of a core's clock, in the same way.
    pub fn limits(cpu: u64, min_khz: u64, max_khz: u64) -> Option<Self> {
        let khz = |khz| u32::try_from(khz).ok().filter(|&khz| khz <= KHZ_MAX);
        let (min_khz, max_khz) = (khz(min_khz)?, khz(max_khz)?);
        Some(Self::FrequencyLimits { cpu: u16::try_from(cpu).ok()?, min_khz, max_khz })
    }

    /// An idle state of a core; the kernel's -1 is the end of one.
    pub fn idle(cpu: u64, state: u64) -> Option<Self> {
        let state = u32::try_from(state).ok()?;
        let state = Some(state).filter(|&state| state != u32::MAX);
        Some(Self::Idle { cpu: u16::try_from(cpu).ok()?, state })
    }

    /// A priority that a thread has from now on.
    pub fn priority(tid: u32, prio: u8) -> Self {
        Self::Asks { tid, ask: Ask::Priority(prio) }
    }

    /// Clamps of a thread, 0 to 1024.
    pub fn clamps(tid: u32, min: u64, max: u64) -> Option<Self> {
        let clamp = |clamp| u16::try_from(clamp).ok().filter(|&clamp| clamp <= CLAMP_MAX);
        Some(Self::Asks { tid, ask: Ask::Clamps(clamp(min)?, clamp(max)?) })
    }

    /// A thread is moved to a group.
    pub fn attach(tid: u32, hierarchy: u32, path: Name) -> Self {
        Self::Asks { tid, ask: Ask::Group { hierarchy, path } }
    }

    /// Whether it is about cores and threads, wherever it was told: nothing follows for who runs there.
    pub fn is_remark(self) -> bool {
        matches!(
            self,
            Self::Frequency { .. }
                | Self::FrequencyLimits { .. }
                | Self::Idle { .. }
                | Self::Asks { .. }
                | Self::Away { .. }
                | Self::Isolated { .. }
                | Self::BlockedReason { .. }
        )
    }
}

/// Something that a kernel has told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw {
    /// When, by the trace's clock, in ns.
    pub at_ns: u64,
    /// Where.
    pub cpu: u16,
    /// The thread whose turn it was there, 0 for none, or [`WHOEVER_RUNS`].
    pub tid: u32,
    /// In what.
    pub context: Context,
    /// What.
    pub what: What,
}

/// All that a trace has told.
#[derive(Debug, Default)]
pub struct Story {
    /// Events, in any order.
    pub events: Vec<Raw>,
    /// Memory that is left for more.
    room: Budget,
    /// Why something had no room, if something had none.
    overflow: Option<InputError>,
    /// Texts of the events.
    pub names: Names,
    /// Processes of threads that the form states beside its events.
    pub processes: HashMap<u32, u32>,
    /// Names of threads that the form states beside its events.
    pub thread_names: HashMap<u32, Name>,
    /// Names of processes that the form states: those of apps, of which the kernel keeps 15 bytes.
    pub process_names: HashMap<u32, Name>,
    /// Processes that the form states to be of users that Android makes for apps.
    pub apps: HashSet<u32>,
    /// Events by their names, where the form tells these: also those that are passed over.
    pub met: HashMap<Name, u64>,
    /// The first event that looked like one of ours and could not be read.
    pub first_unreadable: String,
    /// Threads that the form states to be the kernel's own.
    pub of_kernel: HashSet<u32>,
    /// Events that the recorder had no room for, beside [`What::Lost`].
    pub lost_events: u64,
    /// Release of the kernel, if told.
    pub kernel: String,
    /// What was executed, if told.
    pub command: Vec<String>,
    /// Lines or records that looked like events of ours and could not be read.
    pub unreadable: u64,
    /// What this form cannot know.
    pub unknown: Vec<String>,
}

impl Story {
    /// Nothing yet, of a trace of so many bytes.
    pub fn of(bytes: usize) -> Self {
        Self { room: Budget::of(bytes), ..Self::default() }
    }

    /// Adds an event.
    pub fn push(&mut self, event: Raw) {
        match self.room.take::<Raw>("", 1) {
            Ok(()) => self.events.push(event),
            Err(error) => self.overflow = Some(error),
        }
    }

    /// Puts the events into the order of time, and says which wake-ups interrupts did.
    pub fn sort(&mut self) {
        self.events.sort_by_key(|raw| raw.at_ns);
        interrupts::settle(&mut self.events);
    }

    /// What a part of the trace is unpacked to, and whether all of it could be.
    pub fn unpack(&mut self, packed: impl Read) -> (Vec<u8>, bool) {
        let (mut bytes, left) = (Vec::new(), self.room.left());
        let read = packed.take(left as u64 + 1).read_to_end(&mut bytes);
        if let Err(error) = self.room.take::<u8>("", bytes.len()) {
            self.overflow = Some(error);
            bytes.clear();
        }
        (bytes, read.is_ok())
    }

    /// The same. Errors: it takes more memory than a file may.
    pub fn checked(self, file: &str) -> Result<Self, InputError> {
        match self.overflow {
            None => Ok(self),
            Some(error) => Err(InputError { file: file.to_owned(), ..error }),
        }
    }
}
