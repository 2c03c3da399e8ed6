//! The part of Perfetto's trace format that is written here.
//!
//! Field numbers are those of the official definitions (google/perfetto, `protos/perfetto/trace/`:
//! trace.proto, trace_packet.proto, clock_snapshot.proto, interned_data.proto, track_event/*.proto, ftrace/*.proto,
//! ps/process_tree.proto and system_info/cpu_info.proto).

use prost::{Enumeration, Message, Oneof};

/// Incremental state (interned names, deltas) starts here.
pub const SEQ_INCREMENTAL_STATE_CLEARED: u32 = 1;
/// The packet needs the incremental state of its sequence.
pub const SEQ_NEEDS_INCREMENTAL_STATE: u32 = 2;
/// Perfetto's default trace clock (`BUILTIN_CLOCK_BOOTTIME`), in ns.
pub const CLOCK_BOOTTIME: u32 = 6;
/// A clock of the sequence, whose timestamps are differences to the packet before (64..=127 are free to use).
pub const CLOCK_INCREMENTAL: u32 = 64;

/// A whole trace file (written packet by packet, so only read as a whole).
#[cfg(test)]
#[derive(Clone, PartialEq, Message)]
pub struct Trace {
    #[prost(message, repeated, tag = "1")]
    pub packet: Vec<TracePacket>,
}

/// One entry of a trace.
#[derive(Clone, PartialEq, Message)]
pub struct TracePacket {
    #[prost(message, optional, tag = "1")]
    pub ftrace_events: Option<FtraceEventBundle>,
    #[prost(message, optional, tag = "2")]
    pub process_tree: Option<ProcessTree>,
    #[prost(message, optional, tag = "6")]
    pub clock_snapshot: Option<ClockSnapshot>,
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    pub trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    pub track_event: Option<TrackEvent>,
    #[prost(message, optional, tag = "12")]
    pub interned_data: Option<InternedData>,
    #[prost(uint32, optional, tag = "13")]
    pub sequence_flags: Option<u32>,
    #[prost(message, optional, tag = "59")]
    pub trace_packet_defaults: Option<TracePacketDefaults>,
    #[prost(message, optional, tag = "60")]
    pub track_descriptor: Option<TrackDescriptor>,
    #[prost(message, optional, tag = "67")]
    pub cpu_info: Option<CpuInfo>,
}

/// Simultaneous readings of several clocks.
#[derive(Clone, PartialEq, Message)]
pub struct ClockSnapshot {
    #[prost(message, repeated, tag = "1")]
    pub clocks: Vec<Clock>,
}

/// Reading of a clock.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Clock {
    #[prost(uint32, optional, tag = "1")]
    pub clock_id: Option<u32>,
    #[prost(uint64, optional, tag = "2")]
    pub timestamp: Option<u64>,
    #[prost(bool, optional, tag = "3")]
    pub is_incremental: Option<bool>,
}

/// Values that hold for packets which do not state them.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct TracePacketDefaults {
    #[prost(uint32, optional, tag = "58")]
    pub timestamp_clock_id: Option<u32>,
}

/// Names by number.
#[derive(Clone, PartialEq, Message)]
pub struct InternedData {
    #[prost(message, repeated, tag = "2")]
    pub event_names: Vec<InternedName>,
    #[prost(message, repeated, tag = "3")]
    pub debug_annotation_names: Vec<InternedName>,
    #[prost(message, repeated, tag = "29")]
    pub debug_annotation_string_values: Vec<InternedName>,
}

/// `EventName`, `DebugAnnotationName` and `InternedString`, which have the same fields.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct InternedName {
    #[prost(uint64, optional, tag = "1")]
    pub iid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
}

/// A track: a line of the display.
#[derive(Clone, PartialEq, Message)]
pub struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    pub uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    #[prost(message, optional, tag = "3")]
    pub process: Option<ProcessDescriptor>,
    #[prost(message, optional, tag = "4")]
    pub thread: Option<ThreadDescriptor>,
    #[prost(uint64, optional, tag = "5")]
    pub parent_uuid: Option<u64>,
    #[prost(message, optional, tag = "8")]
    pub counter: Option<CounterDescriptor>,
    #[prost(enumeration = "ChildOrdering", optional, tag = "11")]
    pub child_ordering: Option<i32>,
    #[prost(int32, optional, tag = "12")]
    pub sibling_order_rank: Option<i32>,
}

/// In which order a track's children are displayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub enum ChildOrdering {
    /// As the viewer likes.
    Unknown = 0,
    /// By [`TrackDescriptor::sibling_order_rank`].
    Explicit = 3,
}

/// A process, which groups threads.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ProcessDescriptor {
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    #[prost(string, optional, tag = "6")]
    pub process_name: Option<String>,
}

/// A thread of a process.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ThreadDescriptor {
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    #[prost(int64, optional, tag = "2")]
    pub tid: Option<i64>,
    #[prost(string, optional, tag = "5")]
    pub thread_name: Option<String>,
}

/// A track of numbers.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct CounterDescriptor {
    #[prost(string, optional, tag = "6")]
    pub unit_name: Option<String>,
}

/// What happens on a track.
#[derive(Clone, PartialEq, Message)]
pub struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    pub debug_annotations: Vec<DebugAnnotation>,
    #[prost(enumeration = "EventType", optional, tag = "9")]
    pub r#type: Option<i32>,
    #[prost(uint64, optional, tag = "10")]
    pub name_iid: Option<u64>,
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
    #[prost(int64, optional, tag = "30")]
    pub counter_value: Option<i64>,
    #[prost(double, optional, tag = "44")]
    pub double_counter_value: Option<f64>,
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub flow_ids: Vec<u64>,
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    pub terminating_flow_ids: Vec<u64>,
}

/// Kind of a [`TrackEvent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub enum EventType {
    /// Not stated.
    Unspecified = 0,
    /// A slice begins.
    SliceBegin = 1,
    /// The slice that began last on the track ends.
    SliceEnd = 2,
    /// A moment.
    Instant = 3,
    /// A value of a counter.
    Counter = 4,
}

/// A named value, or several in a group, that is shown with an event.
#[derive(Clone, PartialEq, Message)]
pub struct DebugAnnotation {
    #[prost(uint64, optional, tag = "1")]
    pub name_iid: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    pub uint_value: Option<u64>,
    #[prost(int64, optional, tag = "4")]
    pub int_value: Option<i64>,
    #[prost(double, optional, tag = "5")]
    pub double_value: Option<f64>,
    #[prost(string, optional, tag = "6")]
    pub string_value: Option<String>,
    #[prost(message, repeated, tag = "11")]
    pub dict_entries: Vec<DebugAnnotation>,
    #[prost(uint64, optional, tag = "17")]
    pub string_value_iid: Option<u64>,
}

/// Processes and threads as the system numbers them.
#[derive(Clone, PartialEq, Message)]
pub struct ProcessTree {
    #[prost(message, repeated, tag = "1")]
    pub processes: Vec<Process>,
    #[prost(message, repeated, tag = "2")]
    pub threads: Vec<ProcessThread>,
}

/// A process of a [`ProcessTree`].
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Process {
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    #[prost(string, repeated, tag = "3")]
    pub cmdline: Vec<String>,
}

/// A thread of a [`ProcessTree`].
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ProcessThread {
    #[prost(int32, optional, tag = "1")]
    pub tid: Option<i32>,
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    #[prost(int32, optional, tag = "3")]
    pub tgid: Option<i32>,
}

/// What is known of the CPUs, in the order of their numbers.
#[derive(Clone, PartialEq, Message)]
pub struct CpuInfo {
    #[prost(message, repeated, tag = "1")]
    pub cpus: Vec<Cpu>,
}

/// A CPU of [`CpuInfo`].
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Cpu {
    #[prost(string, optional, tag = "1")]
    pub processor: Option<String>,
}

/// What a CPU's buffer of the kernel's function tracer has kept.
#[derive(Clone, PartialEq, Message)]
pub struct FtraceEventBundle {
    #[prost(uint32, optional, tag = "1")]
    pub cpu: Option<u32>,
    #[prost(message, repeated, tag = "2")]
    pub event: Vec<FtraceEvent>,
}

/// One event; `pid` is the number of the thread in whose context it happened.
#[derive(Clone, PartialEq, Message)]
pub struct FtraceEvent {
    #[prost(uint64, optional, tag = "1")]
    pub timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "2")]
    pub pid: Option<u32>,
    #[prost(oneof = "Ftrace", tags = "4, 11, 13, 20, 36, 37, 240, 491")]
    pub event: Option<Ftrace>,
}

/// The kinds of events.
#[derive(Clone, PartialEq, Eq, Oneof)]
pub enum Ftrace {
    /// A CPU goes from one thread to another.
    #[prost(message, tag = "4")]
    SchedSwitch(SchedSwitch),
    /// A CPU's frequency is another one, in kHz.
    #[prost(message, tag = "11")]
    CpuFrequency(CpuState),
    /// A CPU enters an idle state, or leaves it ([`NOT_IDLE`]).
    #[prost(message, tag = "13")]
    CpuIdle(CpuState),
    /// Somebody wakes a thread.
    #[prost(message, tag = "20")]
    SchedWaking(SchedWaking),
    /// An interrupt begins.
    #[prost(message, tag = "36")]
    IrqHandlerEntry(IrqEntry),
    /// It ends.
    #[prost(message, tag = "37")]
    IrqHandlerExit(IrqExit),
    /// A thread goes from one CPU to another.
    #[prost(message, tag = "491")]
    SchedMigrateTask(SchedMigrateTask),
    /// A thread is gone.
    #[prost(message, tag = "240")]
    SchedProcessFree(ProcessFree),
}

/// The state of [`Ftrace::CpuIdle`] that ends idleness.
pub const NOT_IDLE: u32 = u32::MAX;

/// `SchedSwitchFtraceEvent`.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct SchedSwitch {
    #[prost(string, optional, tag = "1")]
    pub prev_comm: Option<String>,
    #[prost(int32, optional, tag = "2")]
    pub prev_pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub prev_prio: Option<i32>,
    #[prost(int64, optional, tag = "4")]
    pub prev_state: Option<i64>,
    #[prost(string, optional, tag = "5")]
    pub next_comm: Option<String>,
    #[prost(int32, optional, tag = "6")]
    pub next_pid: Option<i32>,
    #[prost(int32, optional, tag = "7")]
    pub next_prio: Option<i32>,
}

/// `SchedWakingFtraceEvent`.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct SchedWaking {
    #[prost(string, optional, tag = "1")]
    pub comm: Option<String>,
    #[prost(int32, optional, tag = "2")]
    pub pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub prio: Option<i32>,
    #[prost(int32, optional, tag = "4")]
    pub success: Option<i32>,
    #[prost(int32, optional, tag = "5")]
    pub target_cpu: Option<i32>,
}

/// `SchedMigrateTaskFtraceEvent`.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct SchedMigrateTask {
    #[prost(string, optional, tag = "1")]
    pub comm: Option<String>,
    #[prost(int32, optional, tag = "2")]
    pub pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub prio: Option<i32>,
    #[prost(int32, optional, tag = "4")]
    pub orig_cpu: Option<i32>,
    #[prost(int32, optional, tag = "5")]
    pub dest_cpu: Option<i32>,
}

/// `CpuFrequencyFtraceEvent` and `CpuIdleFtraceEvent`, which have the same fields.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct CpuState {
    #[prost(uint32, optional, tag = "1")]
    pub state: Option<u32>,
    #[prost(uint32, optional, tag = "2")]
    pub cpu_id: Option<u32>,
}

/// `IrqHandlerEntryFtraceEvent`.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct IrqEntry {
    #[prost(int32, optional, tag = "1")]
    pub irq: Option<i32>,
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
}

/// `IrqHandlerExitFtraceEvent`.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct IrqExit {
    #[prost(int32, optional, tag = "1")]
    pub irq: Option<i32>,
    #[prost(int32, optional, tag = "2")]
    pub ret: Option<i32>,
}

/// `SchedProcessFreeFtraceEvent`.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ProcessFree {
    #[prost(string, optional, tag = "1")]
    pub comm: Option<String>,
    #[prost(int32, optional, tag = "2")]
    pub pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub prio: Option<i32>,
}
