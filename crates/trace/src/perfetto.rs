//! Traces in Perfetto's protobuf format, for <https://ui.perfetto.dev>.
//!
//! Every core has a track with slices named `app/thread` and a counter of its run queue's length;
//! every application is a process whose threads have tracks with slices `running on core N`.
//! A wake-up is an instant on the waker's track with an arrow to the woken thread's next slice.
//! Kernel threads are slices `system: NAME` of their core, interrupts instants there.
//! Why a thread runs, and why its turn ended, are values of the slice; other decisions are instants on its track.
//!
//! The file is written as time goes. It is kept small by interned names, by timestamps that
//! are differences to the packet before, by small track numbers, and by writing a counter only when it
//! changes; a slice costs about 100 bytes.

mod packets;
mod proto;
mod reasons;
mod spans;
#[cfg(test)]
mod tests;

use std::io::{self, Write};

use ampsched_model::{ClusterId, CoreId, Machine, NoiseKind, Ns, ThreadId};
use ampsched_policy::{Reason, Rules};

use crate::{Decision, Trace, TraceThread, TurnEnd};
use packets::{Interned, PacketWriter, track};
use proto::{
    ChildOrdering, CounterDescriptor, DebugAnnotation, EventType, ProcessDescriptor,
    ThreadDescriptor, TrackDescriptor, TrackEvent,
};
pub use spans::SpanTrace;

/// Thread numbers start here, apart from process numbers: equal ones would make a "main thread".
const FIRST_TID: i64 = 100_000;

/// A [`Trace`] that writes a Perfetto trace file.
///
/// An I/O error stops the writing and is returned by [`PerfettoTrace::finish`].
#[derive(Debug)]
pub struct PerfettoTrace<W: Write> {
    packets: PacketWriter<W>,
    next_flow: u64,
    /// Track of each application, by its number, once it has a thread.
    apps: Vec<Option<u64>>,
    cores: Vec<CoreTrack>,
    /// Name of each cluster, and the counter of its frequency once that has changed.
    clusters: Vec<(String, Option<u64>)>,
    threads: Vec<ThreadTrack>,
    /// The rules whose words the reasons use.
    rules: Option<Rules>,
}

/// What a trace says of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceMachine {
    /// Its name.
    pub name: String,
    /// What is said of each core besides its number, such as `big cortex-a57 2000 MHz`.
    pub cores: Vec<String>,
    /// Names of its clusters.
    pub clusters: Vec<String>,
}

impl From<&Machine> for TraceMachine {
    fn from(machine: &Machine) -> Self {
        let title = |core| {
            let cluster = &machine.clusters[machine.cluster_of(core).index()];
            format!("{} {} {} MHz", cluster.name, cluster.core_type, cluster.max_mhz())
        };
        Self {
            name: machine.name.clone(),
            cores: (0..machine.cores()).map(CoreId::from).map(title).collect(),
            clusters: machine.clusters.iter().map(|cluster| cluster.name.clone()).collect(),
        }
    }
}

#[derive(Debug)]
struct CoreTrack {
    slices: u64,
    counter: u64,
    /// Name `running on core N`.
    running_iid: u64,
    running: Option<ThreadId>,
    /// Whether a slice of the system's is open.
    is_taken: bool,
    queue_len: Option<usize>,
}

#[derive(Clone, Debug, Default)]
struct ThreadTrack {
    slices: u64,
    /// `app/thread`.
    name: String,
    /// That as the name of events.
    name_iid: u64,
    /// Name `wakes app/thread`.
    wakes_iid: u64,
    /// Arrow from its waker, which ends at its next slice.
    flow: Option<u64>,
}

impl<W: Write> PerfettoTrace<W> {
    /// Starts a trace of a run on a machine. Errors: those of the writer.
    pub fn new(writer: W, machine: &TraceMachine) -> io::Result<Self> {
        let clusters = machine.clusters.iter().map(|cluster| (cluster.clone(), None));
        let mut trace = Self {
            packets: PacketWriter::new(writer),
            next_flow: 1,
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

    /// Ends the slices of threads that still run, at the time of the last event, and completes the file.
    ///
    /// Errors: the first one of the writer since the start; the file is incomplete then.
    pub fn finish(mut self) -> io::Result<()> {
        for core in 0..self.cores.len() {
            self.system_ends(CoreId::from(core), self.packets.last_ns());
            if let Some(thread) = self.cores[core].running.take() {
                let last_ns = self.packets.last_ns();
                self.slice_end(self.cores[core].slices, Vec::new(), last_ns);
                self.slice_end(self.threads[thread.index()].slices, Vec::new(), last_ns);
            }
        }
        self.packets.finish()
    }

    fn describe_cores(&mut self, machine: &TraceMachine) {
        let group = self.packets.new_uuid();
        let name = format!("Cores of {}", machine.name);
        let ordering = Some(ChildOrdering::Explicit as i32);
        self.packets
            .describe(TrackDescriptor { child_ordering: ordering, ..track(group, Some(name)) });
        for (core, about) in machine.cores.iter().enumerate() {
            let core = CoreId::from(core);
            let title = format!("core {} {about}", core.0);
            let core_track = CoreTrack {
                slices: self.packets.new_uuid(),
                counter: self.packets.new_uuid(),
                running_iid: self
                    .packets
                    .intern(Interned::Event, format!("running on core {}", core.0)),
                running: None,
                is_taken: false,
                queue_len: None,
            };
            self.describe_child(group, core_track.slices, title, 2 * i32::from(core.0), None);
            let title = format!("core {} run queue", core.0);
            let counter = CounterDescriptor { unit_name: Some("threads".to_owned()) };
            self.describe_child(
                group,
                core_track.counter,
                title,
                2 * i32::from(core.0) + 1,
                Some(counter),
            );
            self.cores.push(core_track);
        }
    }

    fn describe_child(
        &mut self,
        parent: u64,
        uuid: u64,
        name: String,
        rank: i32,
        counter: Option<CounterDescriptor>,
    ) {
        self.packets.describe(TrackDescriptor {
            parent_uuid: Some(parent),
            sibling_order_rank: Some(rank),
            counter,
            ..track(uuid, Some(name))
        });
    }

    /// The track of an application, described when it is first needed.
    fn app_track(&mut self, thread: &TraceThread) -> u64 {
        if self.apps.len() <= thread.app {
            self.apps.resize(thread.app + 1, None);
        }
        if let Some(uuid) = self.apps[thread.app] {
            return uuid;
        }
        let uuid = self.packets.new_uuid();
        self.apps[thread.app] = Some(uuid);
        let process = ProcessDescriptor {
            pid: Some(pid(thread.app)),
            process_name: Some(thread.app_name.to_owned()),
        };
        self.packets.describe(TrackDescriptor { process: Some(process), ..track(uuid, None) });
        uuid
    }

    /// The counter of a cluster's frequency, described when it first changes.
    fn frequency_track(&mut self, cluster: ClusterId) -> u64 {
        let index = cluster.index();
        if let Some(uuid) = self.clusters[index].1 {
            return uuid;
        }
        let uuid = self.packets.new_uuid();
        self.clusters[index].1 = Some(uuid);
        let name = format!("{} frequency", self.clusters[index].0);
        let counter = CounterDescriptor { unit_name: Some("MHz".to_owned()) };
        self.packets
            .describe(TrackDescriptor { counter: Some(counter), ..track(uuid, Some(name)) });
        uuid
    }

    fn slice_end(&mut self, track: u64, values: Vec<DebugAnnotation>, at_ns: Ns) {
        let end = TrackEvent { debug_annotations: values, ..TrackEvent::default() };
        self.packets.event(EventType::SliceEnd, track, end, at_ns);
    }
}

impl<W: Write> Trace for PerfettoTrace<W> {
    fn rules(&mut self, rules: &Rules) {
        self.rules = Some(rules.clone());
    }

    fn thread(&mut self, thread: TraceThread) {
        let process = self.app_track(&thread);
        let descriptor = ThreadDescriptor {
            pid: Some(pid(thread.app)),
            tid: Some(FIRST_TID + i64::from(thread.id.0)),
            thread_name: Some(thread.name.to_owned()),
        };
        let uuid = self.packets.new_uuid();
        self.packets.describe(TrackDescriptor {
            parent_uuid: Some(process),
            thread: Some(descriptor),
            ..track(uuid, None)
        });
        let name = format!("{}/{}", thread.app_name, thread.name);
        let wakes_iid = self.packets.intern(Interned::Event, format!("wakes {name}"));
        let name_iid = self.packets.intern(Interned::Event, name.as_str());
        if self.threads.len() <= thread.id.index() {
            self.threads.resize(thread.id.index() + 1, ThreadTrack::default());
        }
        self.threads[thread.id.index()] =
            ThreadTrack { slices: uuid, name, name_iid, wakes_iid, flow: None };
    }

    fn run(&mut self, core: CoreId, thread: ThreadId, why: Option<&Reason>, at_ns: Ns) {
        let why = self.values_of("why", why);
        let (core_track, thread_track) =
            (&mut self.cores[core.index()], &mut self.threads[thread.index()]);
        core_track.running = Some(thread);
        let on_core = TrackEvent {
            name_iid: Some(thread_track.name_iid),
            debug_annotations: why.clone(),
            ..TrackEvent::default()
        };
        let on_thread = TrackEvent {
            name_iid: Some(core_track.running_iid),
            terminating_flow_ids: thread_track.flow.take().into_iter().collect(),
            debug_annotations: why,
            ..TrackEvent::default()
        };
        let (core_uuid, thread_uuid) = (core_track.slices, thread_track.slices);
        self.packets.event(EventType::SliceBegin, core_uuid, on_core, at_ns);
        self.packets.event(EventType::SliceBegin, thread_uuid, on_thread, at_ns);
    }

    fn stop(&mut self, core: CoreId, thread: ThreadId, end: TurnEnd, at_ns: Ns) {
        self.cores[core.index()].running = None;
        let ended = self.values_of("end", end.why);
        let mut on_core = ended.clone();
        if let Some(instructions) = end.instructions {
            on_core.push(DebugAnnotation {
                name_iid: Some(self.packets.intern(Interned::Value, "instructions")),
                uint_value: Some(instructions),
                ..DebugAnnotation::default()
            });
        }
        self.slice_end(self.cores[core.index()].slices, on_core, at_ns);
        self.slice_end(self.threads[thread.index()].slices, ended, at_ns);
    }

    fn wake(&mut self, waker: Option<ThreadId>, woken: ThreadId, at_ns: Ns) {
        let Some(waker) = waker else { return };
        let flow = self.next_flow;
        let woken_track = &mut self.threads[woken.index()];
        // Queued a second time before it ran: the first cause stands.
        if woken_track.flow.is_some() {
            return;
        }
        self.next_flow += 1;
        woken_track.flow = Some(flow);
        let wakes = TrackEvent {
            name_iid: Some(woken_track.wakes_iid),
            flow_ids: vec![flow],
            ..TrackEvent::default()
        };
        self.packets.event(EventType::Instant, self.threads[waker.index()].slices, wakes, at_ns);
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
        let track = self.threads[thread.index()].slices;
        self.packets.event(EventType::Instant, track, instant, at_ns);
    }

    fn noise(&mut self, core: CoreId, kind: NoiseKind, name: &str, takes_ns: Ns, at_ns: Ns) {
        let name = match kind {
            NoiseKind::Interrupt => format!("interrupt: {name}"),
            NoiseKind::Thread => format!("system: {name}"),
        };
        let takes = DebugAnnotation {
            name_iid: Some(self.packets.intern(Interned::Value, "takes_ns")),
            uint_value: Some(takes_ns),
            ..DebugAnnotation::default()
        };
        let happens = TrackEvent {
            name_iid: Some(self.packets.intern(Interned::Event, name)),
            debug_annotations: vec![takes],
            ..TrackEvent::default()
        };
        let track = &mut self.cores[core.index()];
        // Until the thread that runs there has been taken off, its slice is open: the system's begins behind it.
        let instant = kind == NoiseKind::Interrupt || std::mem::replace(&mut track.is_taken, true);
        let event = if instant { EventType::Instant } else { EventType::SliceBegin };
        let track = track.slices;
        self.packets.event(event, track, happens, at_ns);
    }

    fn system_ends(&mut self, core: CoreId, at_ns: Ns) {
        let track = &mut self.cores[core.index()];
        if std::mem::take(&mut track.is_taken) {
            let slices = track.slices;
            self.slice_end(slices, Vec::new(), at_ns);
        }
    }

    fn frequency(&mut self, cluster: ClusterId, mhz: u32, at_ns: Ns) {
        let uuid = self.frequency_track(cluster);
        let value = TrackEvent { counter_value: Some(mhz.into()), ..TrackEvent::default() };
        self.packets.event(EventType::Counter, uuid, value, at_ns);
    }
}

/// Process number of an application; 0 would be the idle process.
fn pid(app: usize) -> i32 {
    app as i32 + 1
}
