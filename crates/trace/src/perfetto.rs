//! Traces in Perfetto's protobuf format, for <https://ui.perfetto.dev> and its trace processor.
//!
//! Who runs where is told as Linux's kernel tells it (`kernel.rs`), so Perfetto shows its own tracks of CPUs, states of
//! threads, wakers and frequencies, and fills its tables `sched`, `thread_state` and so on. Cores are CPUs,
//! applications are processes.
//!
//! What kernels do not tell is told as track events: each turn is a slice of its thread's track that is named by why
//! the thread was chosen, with the values that counted and why the turn came to its end; other decisions are instants
//! there. Run queues and the power of clusters are counters.
//!
//! The file is written as time goes. It is kept small by interned names, by timestamps that
//! are differences to the packet before, by small track numbers, and by writing a counter only when it
//! changes; a turn costs about 200 bytes.

mod kernel;
mod packets;
mod proto;
mod reasons;
mod spans;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::{self, Write};

use ampsched_model::{ClusterId, CoreId, Machine, NoiseKind, Ns, ThreadId};
use ampsched_policy::{Reason, Rules};

use crate::{Decision, SystemIds, Trace, TraceThread, TurnEnd};
use kernel::Kernel;
use packets::{Interned, PacketWriter, track};
use proto::{
    ChildOrdering, CounterDescriptor, Cpu, CpuInfo, DebugAnnotation, EventType, ProcessDescriptor,
    ThreadDescriptor, TrackDescriptor, TrackEvent,
};
pub use spans::SpanTrace;

/// Number in the trace of the first thread that has none of a system; a process has that of its first thread, as in
/// Linux. Below are the kernel's own.
const FIRST_TID: i32 = 1000;

/// A [`Trace`] that writes a Perfetto trace file.
///
/// An I/O error stops the writing and is returned by [`PerfettoTrace::finish`].
#[derive(Debug)]
pub struct PerfettoTrace<W: Write> {
    packets: PacketWriter<W>,
    kernel: Kernel,
    /// Tracks of processes by their numbers.
    processes: BTreeMap<i32, u64>,
    /// Number of each application's process, if no system gives one, once it has a thread.
    apps: Vec<Option<i32>>,
    cores: Vec<CoreTrack>,
    clusters: Vec<ClusterTrack>,
    threads: Vec<ThreadTrack>,
    /// The rules whose words the reasons use.
    rules: Option<Rules>,
}

/// What a trace says of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceMachine {
    /// Its name.
    pub name: String,
    /// Its cores, by their numbers.
    pub cores: Vec<TraceCore>,
    /// Names of its clusters.
    pub clusters: Vec<String>,
}

/// What a trace says of a core.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceCore {
    /// What is said of it besides its number, such as `big cortex-a57 2000 MHz`.
    pub about: String,
    /// Its number as a CPU.
    pub cpu: u32,
    /// Its cluster, if it has one.
    pub cluster: Option<ClusterId>,
}

impl From<&Machine> for TraceMachine {
    fn from(machine: &Machine) -> Self {
        let core = |core: CoreId| {
            let cluster = machine.cluster_of(core);
            let of = &machine.clusters[cluster.index()];
            TraceCore {
                about: format!("{} {} {} MHz", of.name, of.core_type, of.max_mhz()),
                cpu: core.0.into(),
                cluster: Some(cluster),
            }
        };
        Self {
            name: machine.name.clone(),
            cores: (0..machine.cores()).map(CoreId::from).map(core).collect(),
            clusters: machine.clusters.iter().map(|cluster| cluster.name.clone()).collect(),
        }
    }
}

#[derive(Debug)]
struct CoreTrack {
    /// The counter of its queue.
    counter: u64,
    queue_len: Option<usize>,
}

#[derive(Debug)]
struct ClusterTrack {
    name: String,
    cores: Vec<usize>,
    /// The counter of its power, once that is known.
    power: Option<u64>,
}

#[derive(Clone, Debug, Default)]
struct ThreadTrack {
    track: u64,
    tid: i32,
    /// `app/thread`.
    name: String,
    /// The core on which it ran last.
    core: usize,
    /// When it left that.
    left_ns: Option<Ns>,
    /// Whether a turn with a reason is open.
    in_turn: bool,
}

impl<W: Write> PerfettoTrace<W> {
    /// Starts a trace of a run on a machine. Errors: those of the writer.
    pub fn new(writer: W, machine: &TraceMachine) -> io::Result<Self> {
        let clusters = machine.clusters.iter().enumerate().map(|(index, name)| {
            let cores = machine.cores.iter().enumerate();
            let own = cores.filter(|(_, core)| core.cluster == Some(ClusterId(index as u8)));
            let cores = own.map(|(core, _)| core).collect();
            ClusterTrack { name: name.clone(), cores, power: None }
        });
        let mut trace = Self {
            packets: PacketWriter::new(writer),
            kernel: Kernel::new(machine.cores.iter().map(|core| core.cpu)),
            processes: BTreeMap::new(),
            apps: Vec::new(),
            cores: Vec::new(),
            clusters: clusters.collect(),
            threads: Vec::new(),
            rules: None,
        };
        trace.describe_cores(machine);
        trace.packets.check()?;
        Ok(trace)
    }

    /// Ends the turns of threads that still run, at the time of the last event, and completes the file.
    ///
    /// Errors: the first one of the writer since the start; the file is incomplete then.
    pub fn finish(mut self) -> io::Result<()> {
        let last_ns = self.packets.last_ns();
        for thread in 0..self.threads.len() {
            self.end_turn(thread, Vec::new(), last_ns);
        }
        self.kernel.finish(&mut self.packets);
        self.packets.finish()
    }

    fn describe_cores(&mut self, machine: &TraceMachine) {
        // CPUs that the machine leaves out have no words.
        let mut cpus = Vec::new();
        for core in &machine.cores {
            cpus.resize(cpus.len().max(core.cpu as usize + 1), Cpu::default());
            cpus[core.cpu as usize].processor = Some(core.about.clone());
        }
        self.packets.cpu_info(CpuInfo { cpus });
        let group = self.packets.new_uuid();
        let name = format!("Cores of {}", machine.name);
        let ordering = Some(ChildOrdering::Explicit as i32);
        self.packets
            .describe(TrackDescriptor { child_ordering: ordering, ..track(group, Some(name)) });
        for (core, TraceCore { about, .. }) in machine.cores.iter().enumerate() {
            let counter = self.packets.new_uuid();
            self.packets.describe(TrackDescriptor {
                parent_uuid: Some(group),
                sibling_order_rank: Some(core as i32),
                counter: Some(CounterDescriptor { unit_name: Some("threads".to_owned()) }),
                ..track(counter, Some(format!("core {core} ({about}) run queue")))
            });
            self.cores.push(CoreTrack { counter, queue_len: None });
        }
    }

    /// The number of a thread's process and its own.
    fn ids(&mut self, thread: &TraceThread) -> SystemIds {
        if let Some(ids) = thread.ids {
            return ids;
        }
        let tid = FIRST_TID + thread.id.0 as i32;
        if self.apps.len() <= thread.app {
            self.apps.resize(thread.app + 1, None);
        }
        SystemIds { pid: *self.apps[thread.app].get_or_insert(tid), tid }
    }

    /// The track of a process and whether it is new.
    fn process_track(&mut self, pid: i32, name: &str) -> (u64, bool) {
        if let Some(&uuid) = self.processes.get(&pid) {
            return (uuid, false);
        }
        let uuid = self.packets.new_uuid();
        self.processes.insert(pid, uuid);
        let process = ProcessDescriptor { pid: Some(pid), process_name: Some(name.to_owned()) };
        self.packets.describe(TrackDescriptor { process: Some(process), ..track(uuid, None) });
        (uuid, true)
    }

    /// The counter of a cluster's power, described when it is first known.
    fn power_track(&mut self, cluster: ClusterId) -> u64 {
        let cluster = &mut self.clusters[cluster.index()];
        *cluster.power.get_or_insert_with(|| {
            let uuid = self.packets.new_uuid();
            let counter = CounterDescriptor { unit_name: Some("mW".to_owned()) };
            let name = Some(format!("{} power", cluster.name));
            self.packets.describe(TrackDescriptor { counter: Some(counter), ..track(uuid, name) });
            uuid
        })
    }

    /// Ends the slice of a turn, if one is open.
    fn end_turn(&mut self, thread: usize, values: Vec<DebugAnnotation>, at_ns: Ns) {
        let thread = &mut self.threads[thread];
        if std::mem::take(&mut thread.in_turn) {
            let end = TrackEvent { debug_annotations: values, ..TrackEvent::default() };
            self.packets.event(EventType::SliceEnd, thread.track, end, at_ns);
        }
    }
}

impl<W: Write> Trace for PerfettoTrace<W> {
    fn rules(&mut self, rules: &Rules) {
        self.rules = Some(rules.clone());
    }

    fn thread(&mut self, thread: TraceThread) {
        let SystemIds { pid, tid } = self.ids(&thread);
        let (process, is_new) = self.process_track(pid, thread.app_name);
        let app_name = is_new.then_some(thread.app_name);
        self.kernel.introduce(&mut self.packets, (pid, app_name), (tid, thread.name));
        let uuid = self.packets.new_uuid();
        let descriptor = ThreadDescriptor {
            pid: Some(pid),
            tid: Some(tid.into()),
            thread_name: Some(thread.name.to_owned()),
        };
        self.packets.describe(TrackDescriptor {
            parent_uuid: Some(process),
            thread: Some(descriptor),
            ..track(uuid, None)
        });
        if self.threads.len() <= thread.id.index() {
            self.threads.resize(thread.id.index() + 1, ThreadTrack::default());
        }
        let name = format!("{}/{}", thread.app_name, thread.name);
        self.threads[thread.id.index()] =
            ThreadTrack { track: uuid, tid, name, ..ThreadTrack::default() };
    }

    fn run(&mut self, core: CoreId, thread: ThreadId, why: Option<&Reason>, at_ns: Ns) {
        let track = &mut self.threads[thread.index()];
        let from = std::mem::replace(&mut track.core, core.index());
        if track.left_ns == Some(at_ns) && from != track.core {
            self.kernel.migrates(track.tid, from, track.core, at_ns);
        }
        self.kernel.runs(core.index(), track.tid, at_ns);
        self.kernel.write_full(&mut self.packets, core.index());
        let Some(why) = why else { return };
        track.in_turn = true;
        let track = track.track;
        let turn = TrackEvent {
            name_iid: Some(self.packets.intern(Interned::Event, why.because)),
            debug_annotations: self.values_of("why", Some(why)),
            ..TrackEvent::default()
        };
        self.packets.event(EventType::SliceBegin, track, turn, at_ns);
    }

    fn stop(&mut self, core: CoreId, thread: ThreadId, end: TurnEnd, at_ns: Ns) {
        self.kernel.stops(core.index(), end.state, at_ns);
        self.threads[thread.index()].left_ns = Some(at_ns);
        if !self.threads[thread.index()].in_turn {
            return;
        }
        let mut values = self.values_of("end", end.why);
        if let Some(instructions) = end.instructions {
            values.push(DebugAnnotation {
                name_iid: Some(self.packets.intern(Interned::Value, "instructions")),
                uint_value: Some(instructions),
                ..DebugAnnotation::default()
            });
        }
        self.end_turn(thread.index(), values, at_ns);
    }

    fn wake(&mut self, waker: Option<ThreadId>, woken: ThreadId, core: Option<CoreId>, at_ns: Ns) {
        let waker = waker.map(|waker| self.threads[waker.index()].tid);
        let woken = &self.threads[woken.index()];
        let to = core.map_or(woken.core, CoreId::index);
        let left_now = (woken.left_ns == Some(at_ns)).then_some(woken.core);
        self.kernel.wakes(waker, woken.tid, (left_now, to), at_ns);
    }

    fn queue_len(&mut self, core: CoreId, len: usize, at_ns: Ns) {
        let track = &mut self.cores[core.index()];
        if track.queue_len.replace(len) == Some(len) {
            return;
        }
        let (uuid, value) = (
            track.counter,
            TrackEvent { counter_value: Some(len as i64), ..TrackEvent::default() },
        );
        self.packets.event(EventType::Counter, uuid, value, at_ns);
    }

    fn decided(&mut self, thread: ThreadId, decision: Decision, why: Option<&Reason>, at_ns: Ns) {
        let name = self.words_of(decision);
        let instant = TrackEvent {
            name_iid: Some(self.packets.intern(Interned::Event, name)),
            debug_annotations: self.values_of("why", why),
            ..TrackEvent::default()
        };
        let track = self.threads[thread.index()].track;
        self.packets.event(EventType::Instant, track, instant, at_ns);
    }

    fn noise(&mut self, core: CoreId, kind: NoiseKind, name: &str, takes_ns: Ns, at_ns: Ns) {
        let core = core.index();
        match kind {
            NoiseKind::Interrupt => self.kernel.interrupt(core, name, takes_ns, at_ns),
            NoiseKind::Thread => self.kernel.takes(&mut self.packets, core, name, at_ns),
        }
    }

    fn system_ends(&mut self, core: CoreId, at_ns: Ns) {
        self.kernel.gives_back(core.index(), at_ns);
    }

    fn frequency(&mut self, cluster: ClusterId, mhz: u32, at_ns: Ns) {
        for &core in &self.clusters[cluster.index()].cores {
            self.kernel.frequency(core, mhz, at_ns);
        }
    }

    fn power(&mut self, cluster: ClusterId, mw: f64, at_ns: Ns) {
        let uuid = self.power_track(cluster);
        let value = TrackEvent { double_counter_value: Some(mw), ..TrackEvent::default() };
        self.packets.event(EventType::Counter, uuid, value, at_ns);
    }
}
