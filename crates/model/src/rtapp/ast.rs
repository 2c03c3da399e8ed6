//! What an rt-app file says, with names not yet looked up.

use crate::reader::Spot;
use crate::{Calibration, CoreId, CoreSet, Ns, SchedClass};

/// How often a phase or the phases of a task are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    /// `loop: -1`.
    Forever,
    /// `loop: N`.
    Times(u32),
}

impl Repeat {
    /// Whether there is a second round.
    pub fn is_loop(self) -> bool {
        self != Repeat::Times(1)
    }
}

/// A member of `tasks`.
#[derive(Clone, Debug)]
pub(super) struct Task {
    /// Name, unique in the file.
    pub name: String,
    /// Where it stands.
    pub spot: Spot,
    /// Threads that start with the program.
    pub instances: u32,
    /// Start delay and where it stands.
    pub delay: Option<(u32, Spot)>,
    /// How it is scheduled.
    pub attrs: Attrs,
    /// CPUs that it may use.
    pub cpus: Option<CoreSet>,
    /// How often all phases are executed.
    pub repeat: Repeat,
    /// Phases; at least one.
    pub phases: Vec<Phase>,
}

impl Task {
    /// The events of all phases.
    pub fn events(&self) -> impl Iterator<Item = &Event> {
        self.phases.iter().flat_map(|phase| &phase.events)
    }

    /// Whether it ever is of another class than the usual one.
    pub fn has_classes(&self) -> bool {
        let later = self.phases.iter().filter_map(|phase| phase.change.class);
        later.chain([self.attrs.class]).any(|class| class != SchedClass::Fair)
    }

    /// Whether it ever has a slice of its own.
    pub fn has_slices(&self) -> bool {
        let later = self.phases.iter().filter_map(|phase| phase.change.slice_ns);
        later.chain([self.attrs.slice_ns]).any(|slice_ns| slice_ns > 0)
    }
}

/// A phase of a task.
#[derive(Clone, Debug)]
pub(super) struct Phase {
    /// Where it stands.
    pub spot: Spot,
    /// How often it is executed before the next phase.
    pub repeat: Repeat,
    /// CPUs during the phase; the task's if absent.
    pub cpus: Option<CoreSet>,
    /// What changes about its scheduling from this phase on.
    pub change: Change,
    /// Events; at least one.
    pub events: Vec<Event>,
}

/// How a thread is scheduled at its start.
#[derive(Clone, Debug, Default)]
pub(super) struct Attrs {
    /// Scheduling class.
    pub class: SchedClass,
    /// Nice value.
    pub nice: i8,
    /// Slice of its own; 0: the usual one.
    pub slice_ns: Ns,
    /// Clamps of its utilisation, least and greatest.
    pub uclamp: [Option<u16>; 2],
    /// Path of its group.
    pub group: Option<String>,
}

/// What a phase changes of that; what is absent stays.
#[derive(Clone, Debug, Default)]
pub(super) struct Change {
    /// Scheduling class.
    pub class: Option<SchedClass>,
    /// Nice value.
    pub nice: Option<i8>,
    /// Slice of its own; 0: the usual one.
    pub slice_ns: Option<Ns>,
    /// Clamps of its utilisation, least and greatest.
    pub uclamp: [Option<u16>; 2],
    /// Path of its group.
    pub group: Option<String>,
}

/// Something that a thread does.
#[derive(Clone, Debug)]
pub(super) struct Event {
    /// Where it stands.
    pub spot: Spot,
    /// What it is.
    pub kind: EventKind,
}

/// The events of rt-app. Times are in microseconds, names are those of the file.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum EventKind {
    Run(u32),
    Runtime(u32),
    Sleep(u32),
    /// Bytes written to the thread's memory buffer.
    Mem(u32),
    /// Bytes written to the I/O device.
    IoRun(u32),
    Timer {
        name: String,
        period_us: u32,
        absolute: bool,
    },
    Lock(String),
    Unlock(String),
    Wait {
        condition: String,
        mutex: String,
    },
    /// `holds`: whether the thread holds the mutex already, which only the order of events tells.
    Sync {
        condition: String,
        mutex: String,
        holds: bool,
    },
    Signal(String),
    Broadcast(String),
    Barrier(String),
    SemPost(String),
    SemWait(String),
    Suspend(String),
    Resume(String),
    Yield,
    Fork(String),
}

/// What the `global` object says.
#[derive(Clone, Debug)]
pub(super) struct Global {
    /// Time after which the program stops.
    pub duration_s: Option<u32>,
    /// Policy of threads that name none.
    pub default_policy: Option<Policy>,
    /// What `run` is calibrated with; the fastest core if a loop time is stated, which says nothing of this machine.
    pub calibration: Calibration,
    /// Size of a thread's memory buffer in bytes.
    pub mem_buffer_bytes: u32,
    /// Path of the I/O device.
    pub io_device: String,
    /// What is honoured differently, one line each.
    pub notes: Vec<String>,
}

impl Default for Global {
    fn default() -> Self {
        Self {
            duration_s: None,
            default_policy: None,
            calibration: Calibration::Core(CoreId(0)),
            mem_buffer_bytes: 4 << 20,
            io_device: "/dev/null".to_owned(),
            notes: Vec::new(),
        }
    }
}

/// Scheduling policies that rt-app knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    Other,
    Batch,
    Idle,
    Fifo,
    RoundRobin,
    Deadline,
}

impl Policy {
    /// The policies and their names.
    pub const NAMES: [(&'static str, Policy); 6] = [
        ("SCHED_OTHER", Policy::Other),
        ("SCHED_BATCH", Policy::Batch),
        ("SCHED_IDLE", Policy::Idle),
        ("SCHED_FIFO", Policy::Fifo),
        ("SCHED_RR", Policy::RoundRobin),
        ("SCHED_DEADLINE", Policy::Deadline),
    ];

    /// The policy's name.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, policy)| *policy == self).map_or("", |(name, _)| name)
    }
}
