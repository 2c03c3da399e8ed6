//! Reads back what was written, as a viewer would: names, times, slices, arrows, counters.

use std::collections::HashMap;
use std::io::{self, Write};

use ampsched_model::{
    ClassId, Cluster, CoreId, CoreParams, Costs, Machine, Ns, Opp, Pipeline, ThreadId,
};
use ampsched_policy::{DecidedBy, Reason, ReasonValue, RunState};
use prost::Message;

use super::proto::{self, CLOCK_INCREMENTAL, EventType, TrackDescriptor};
use super::{PerfettoTrace, SpanTrace};
use crate::{Decision, Trace, TraceThread, TurnEnd};

const CORE_PARAMS: CoreParams = CoreParams {
    pipeline: Pipeline::OutOfOrder,
    width: 3.0,
    window: 128.0,
    mispredict_cycles: 15.0,
    load_cycles: 4.0,
    fp_single_cycles: 1.0,
    fp_double_cycles: 1.0,
    fp_single_latency_cycles: 4.0,
    fp_double_latency_cycles: 4.0,
    simd_cycles: 0.5,
    simd_latency_cycles: 3.0,
    l1i_kib: 48.0,
    l1d_kib: 32.0,
    l2_kib: 2048.0,
    l2_cycles: 20.0,
    memory_ns: 80.0,
    mlp_max: 6.0,
    prefetch_share: 0.5,
};

fn machine() -> Machine {
    let cluster = |name: &str, class, mhz, cores: [u16; 2]| Cluster {
        shares_l2: false,
        sharing: ampsched_model::Sharing::NONE,
        name: name.to_owned(),
        class: ClassId(class),
        cores: cores.map(CoreId).to_vec(),
        core_type: format!("{name}-type"),
        params: CORE_PARAMS,
        opps: vec![Opp { mhz, volt: 1.0 }],
        power: Default::default(),
        costs: None,
    };
    Machine {
        name: "2B2S".to_owned(),
        description: String::new(),
        clusters: vec![cluster("big", 1, 2000, [0, 1]), cluster("little", 0, 1200, [2, 3])],
        costs: Costs::default(),
        thermal: None,
        board: ampsched_model::BoardPower::default(),
        kernel_view: ampsched_model::KernelView::default(),
        reference: None,
        memory: None,
    }
}

/// A slice or an instant (`end_ns == start_ns`) as a viewer shows it.
#[derive(Clone, Debug, PartialEq)]
struct Slice {
    track: u64,
    name: String,
    start_ns: Ns,
    end_ns: Option<Ns>,
    instructions: Option<u64>,
    /// Values such as `why.rule`, in their order.
    values: Vec<(String, String)>,
    flows_out: Vec<u64>,
    flows_in: Vec<u64>,
}

/// A trace as a viewer understands it.
#[derive(Default)]
struct Reader {
    tracks: HashMap<u64, TrackDescriptor>,
    names: HashMap<u64, String>,
    annotations: HashMap<u64, String>,
    texts: HashMap<u64, String>,
    slices: Vec<Slice>,
    /// Index of the open slice of a track.
    open: HashMap<u64, usize>,
    counters: Vec<(u64, i64, Ns)>,
    now_ns: Ns,
}

impl Reader {
    fn read(bytes: &[u8]) -> Self {
        let trace = proto::Trace::decode(bytes).expect("the trace is well-formed");
        let first = trace.packet.first().expect("a trace has packets");
        assert_eq!(
            first.trace_packet_defaults.unwrap().timestamp_clock_id,
            Some(CLOCK_INCREMENTAL)
        );
        assert_eq!(first.sequence_flags, Some(1), "the first packet starts the incremental state");
        let clocks = &first.clock_snapshot.as_ref().unwrap().clocks;
        assert!(
            clocks
                .iter()
                .any(|c| c.clock_id == Some(CLOCK_INCREMENTAL) && c.is_incremental == Some(true))
        );
        assert!(clocks.iter().any(|c| c.clock_id == Some(proto::CLOCK_BOOTTIME)));
        let mut reader = Self::default();
        for packet in trace.packet {
            reader.packet(packet);
        }
        reader
    }

    fn packet(&mut self, packet: proto::TracePacket) {
        assert_eq!(packet.trusted_packet_sequence_id, Some(1));
        if let Some(data) = packet.interned_data {
            let new = |name: &proto::InternedName| (name.iid.unwrap(), name.name.clone().unwrap());
            for (iid, name) in data.event_names.iter().map(new) {
                assert!(self.names.insert(iid, name).is_none(), "number {iid} is given once");
            }
            self.annotations.extend(data.debug_annotation_names.iter().map(new));
            self.texts.extend(data.debug_annotation_string_values.iter().map(new));
        }
        if let Some(track) = packet.track_descriptor {
            if let Some(parent) = track.parent_uuid {
                assert!(self.tracks.contains_key(&parent), "the parent is described first");
            }
            assert!(
                self.tracks.insert(track.uuid.unwrap(), track).is_none(),
                "one description per track"
            );
        }
        if let Some(event) = packet.track_event {
            self.now_ns += packet.timestamp.expect("an event has a time");
            self.event(event);
        }
    }

    fn event(&mut self, event: proto::TrackEvent) {
        let track = event.track_uuid.unwrap();
        assert!(self.tracks.contains_key(&track), "track {track} is described before it is used");
        match event.r#type() {
            EventType::SliceBegin => {
                let index = self.add_slice(&event, None);
                assert!(
                    self.open.insert(track, index).is_none(),
                    "slices of a track do not overlap"
                );
            }
            EventType::SliceEnd => {
                let index = self.open.remove(&track).expect("an end has a beginning");
                self.slices[index].end_ns = Some(self.now_ns);
                let values = self.values("", &event.debug_annotations);
                let (instructions, values): (Vec<_>, Vec<_>) =
                    values.into_iter().partition(|(name, _)| name == "instructions");
                let slice = &mut self.slices[index];
                slice.instructions = instructions.first().map(|(_, count)| count.parse().unwrap());
                slice.values.extend(values);
            }
            EventType::Instant => {
                self.add_slice(&event, Some(self.now_ns));
            }
            EventType::Counter => {
                self.counters.push((track, event.counter_value.unwrap(), self.now_ns))
            }
            EventType::Unspecified => panic!("an event has a type"),
        }
    }

    /// Values as a viewer shows them, those of groups by a path.
    fn values(&self, group: &str, values: &[proto::DebugAnnotation]) -> Vec<(String, String)> {
        let mut shown = Vec::new();
        for value in values {
            let name = format!("{group}{}", self.annotations[&value.name_iid.unwrap()]);
            if !value.dict_entries.is_empty() {
                shown.extend(self.values(&format!("{name}."), &value.dict_entries));
                continue;
            }
            let text = value.string_value_iid.map(|iid| self.texts[&iid].clone());
            let text = text.or_else(|| value.uint_value.map(|number| number.to_string()));
            let text = text.or_else(|| value.int_value.map(|number| number.to_string()));
            let text = text.or_else(|| value.double_value.map(|number| number.to_string()));
            let text = text.or_else(|| value.string_value.clone());
            shown.push((name, text.expect("a value has a value")));
        }
        shown
    }

    fn add_slice(&mut self, event: &proto::TrackEvent, end_ns: Option<Ns>) -> usize {
        self.slices.push(Slice {
            track: event.track_uuid.unwrap(),
            name: self.names[&event.name_iid.unwrap()].clone(),
            start_ns: self.now_ns,
            end_ns,
            instructions: None,
            values: self.values("", &event.debug_annotations),
            flows_out: event.flow_ids.clone(),
            flows_in: event.terminating_flow_ids.clone(),
        });
        self.slices.len() - 1
    }

    /// Slices of the track of that name: (name, start, end).
    fn on(&self, title: &str) -> Vec<(&str, Ns, Ns)> {
        let track = self.track(title);
        let slices = self.slices.iter().filter(|slice| slice.track == track);
        slices
            .map(|slice| (slice.name.as_str(), slice.start_ns, slice.end_ns.expect("it ends")))
            .collect()
    }

    fn track(&self, title: &str) -> u64 {
        let is_title = |track: &&TrackDescriptor| {
            let thread = track.thread.as_ref().and_then(|thread| thread.thread_name.as_deref());
            track.name.as_deref().or(thread) == Some(title)
        };
        let track =
            self.tracks.values().find(is_title).unwrap_or_else(|| panic!("no track {title}"));
        track.uuid.unwrap()
    }

    /// Every arrow has one source, at most one target, and the target does not precede the source.
    fn check_flows(&self) -> usize {
        let mut sources = HashMap::new();
        for slice in &self.slices {
            for flow in &slice.flows_out {
                assert!(sources.insert(*flow, slice.start_ns).is_none(), "flow {flow} starts once");
            }
        }
        let count = sources.len();
        for slice in &self.slices {
            for flow in &slice.flows_in {
                let start_ns =
                    sources.remove(flow).expect("an arrow that ends has started, and ends once");
                assert!(start_ns <= slice.start_ns);
            }
        }
        count - sources.len()
    }
}

fn ended(instructions: u64) -> TurnEnd<'static> {
    TurnEnd { instructions: Some(instructions), state: RunState::Ready, why: None }
}

fn introduce<W: Write>(
    trace: &mut PerfettoTrace<W>,
    id: u32,
    app: usize,
    app_name: &str,
    name: &str,
) {
    trace.thread(TraceThread { id: ThreadId(id), app, app_name, name });
}

/// Two applications; `a/main` wakes `b/work`, which runs on core 2 until the end.
fn small_trace() -> Reader {
    let mut bytes = Vec::new();
    let mut trace = PerfettoTrace::new(&mut bytes, &(&machine()).into()).unwrap();
    introduce(&mut trace, 0, 0, "a", "main");
    trace.wake(None, ThreadId(0), 0);
    trace.run(CoreId(0), ThreadId(0), None, 0);
    introduce(&mut trace, 1, 1, "b", "work");
    trace.wake(Some(ThreadId(0)), ThreadId(1), 3_000);
    trace.queue_len(CoreId(2), 1, 3_000);
    trace.run(CoreId(2), ThreadId(1), None, 3_500);
    trace.queue_len(CoreId(2), 0, 3_500);
    trace.queue_len(CoreId(2), 0, 3_600);
    trace.stop(CoreId(0), ThreadId(0), ended(12_345), 4_000);
    trace.run(CoreId(0), ThreadId(0), None, 4_000);
    trace.stop(CoreId(0), ThreadId(0), ended(1), 9_000_000_000);
    trace.finish().unwrap();
    Reader::read(&bytes)
}

#[test]
fn cores_and_threads_have_tracks_with_slices() {
    let reader = small_trace();
    assert_eq!(
        reader.on("core 0 big big-type 2000 MHz"),
        [("a/main", 0, 4_000), ("a/main", 4_000, 9_000_000_000)]
    );
    assert_eq!(reader.on("core 2 little little-type 1200 MHz"), [("b/work", 3_500, 9_000_000_000)]);
    assert_eq!(reader.on("work"), [("running on core 2", 3_500, 9_000_000_000)]);
    assert_eq!(
        reader.on("main"),
        [
            ("running on core 0", 0, 4_000),
            ("wakes b/work", 3_000, 3_000),
            ("running on core 0", 4_000, 9_000_000_000)
        ]
    );
    assert!(reader.open.is_empty(), "slices of threads that still run are ended");
}

#[test]
fn slices_tell_the_instructions() {
    let reader = small_trace();
    let instructions: Vec<_> =
        reader.slices.iter().filter_map(|slice| slice.instructions).collect();
    assert_eq!(instructions, [12_345, 1]);
}

#[test]
fn threads_are_grouped_by_application() {
    let reader = small_trace();
    for (thread, app, pid) in [("main", "a", 1), ("work", "b", 2)] {
        let track = &reader.tracks[&reader.track(thread)];
        let process = reader.tracks[&track.parent_uuid.unwrap()].process.clone().unwrap();
        assert_eq!((process.process_name.as_deref(), process.pid), (Some(app), Some(pid)));
        assert_eq!(track.thread.as_ref().unwrap().pid, Some(pid));
    }
    let tids: Vec<_> = ["main", "work"]
        .map(|t| reader.tracks[&reader.track(t)].thread.clone().unwrap().tid)
        .into();
    assert_eq!(tids, [Some(100_000), Some(100_001)]);
}

#[test]
fn an_arrow_leads_from_the_waker_to_the_woken() {
    let reader = small_trace();
    assert_eq!(reader.check_flows(), 1);
    let source = reader.slices.iter().find(|slice| !slice.flows_out.is_empty()).unwrap();
    let target = reader.slices.iter().find(|slice| slice.flows_in == source.flows_out).unwrap();
    assert_eq!((source.track, source.start_ns), (reader.track("main"), 3_000));
    assert_eq!((target.track, target.start_ns), (reader.track("work"), 3_500));
}

#[test]
fn queue_lengths_are_written_when_they_change() {
    let reader = small_trace();
    let counter = reader.track("core 2 run queue");
    assert!(reader.tracks[&counter].counter.is_some());
    assert_eq!(reader.counters, [(counter, 1, 3_000), (counter, 0, 3_500)]);
}

#[test]
fn a_thread_woken_twice_before_it_runs_has_one_arrow() {
    let mut bytes = Vec::new();
    let mut trace = PerfettoTrace::new(&mut bytes, &(&machine()).into()).unwrap();
    introduce(&mut trace, 0, 0, "a", "x");
    introduce(&mut trace, 1, 0, "a", "y");
    trace.wake(Some(ThreadId(0)), ThreadId(1), 10);
    trace.wake(Some(ThreadId(0)), ThreadId(1), 20);
    trace.run(CoreId(0), ThreadId(1), None, 30);
    trace.stop(CoreId(0), ThreadId(1), ended(0), 40);
    trace.wake(Some(ThreadId(0)), ThreadId(1), 50);
    trace.run(CoreId(1), ThreadId(1), None, 60);
    trace.finish().unwrap();
    let reader = Reader::read(&bytes);
    assert_eq!(reader.check_flows(), 2);
    assert_eq!(reader.on("x"), [("wakes a/y", 10, 10), ("wakes a/y", 50, 50)]);
}

/// A slice with its counter changes and a wake-up must stay so small that 10 s of 20 threads that
/// switch every 0.5 ms on 4 cores (80,000 slices) fit into 50 MB several times.
#[test]
fn a_slice_costs_about_a_hundred_bytes() {
    let mut bytes = Vec::new();
    let mut trace = PerfettoTrace::new(&mut bytes, &(&machine()).into()).unwrap();
    for thread in 0..20 {
        introduce(&mut trace, thread, thread as usize / 5, "application", "worker");
    }
    let slices = 10_000;
    for slice in 0..slices {
        let (core, thread, at_ns) =
            (CoreId((slice % 4) as u16), ThreadId(slice % 20), 500_000 * u64::from(slice));
        trace.wake(Some(ThreadId((slice + 1) % 20)), thread, at_ns);
        trace.queue_len(core, 4, at_ns);
        trace.run(core, thread, None, at_ns + 1_000);
        trace.queue_len(core, 3, at_ns + 1_000);
        trace.stop(core, thread, ended(1_500_000), at_ns + 400_000);
    }
    trace.finish().unwrap();
    assert_eq!(Reader::read(&bytes).check_flows(), slices as usize);
    let per_slice = bytes.len() / slices as usize;
    assert!((80..=170).contains(&per_slice), "{per_slice} bytes per slice");
}

/// A writer that is full after some bytes.
struct Full {
    left: usize,
}

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.left {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "disk full"));
        }
        self.left -= bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_error_of_the_writer_is_returned_at_the_end() {
    for left in [0, 100_000] {
        let mut trace = PerfettoTrace::new(Full { left }, &(&machine()).into()).unwrap();
        introduce(&mut trace, 0, 0, "a", "main");
        for slice in 0..20_000 {
            trace.run(CoreId(0), ThreadId(0), None, 10 * slice);
            trace.stop(CoreId(0), ThreadId(0), ended(slice), 10 * slice + 5);
        }
        let error = trace.finish().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}

#[test]
fn spans_have_a_track_each_and_arrows() {
    let mut bytes = Vec::new();
    let names = ["worker 0", "worker 1"].map(str::to_owned);
    let mut trace = SpanTrace::new(&mut bytes, "Workers".to_owned(), names);
    trace.begin(0, "a".to_owned(), vec![7], None, 0);
    trace.begin(1, "b".to_owned(), vec![], None, 0);
    trace.end(0, 20);
    trace.end(1, 20);
    trace.begin(0, "c".to_owned(), vec![], Some(7), 20);
    trace.end(0, 30);
    trace.finish().unwrap();
    let reader = Reader::read(&bytes);
    assert_eq!(reader.on("worker 0"), [("a", 0, 20), ("c", 20, 30)]);
    assert_eq!(reader.on("worker 1"), [("b", 0, 20)]);
    assert_eq!(reader.check_flows(), 1);
}

#[test]
fn decisions_are_instants_of_their_thread() {
    let mut bytes = Vec::new();
    let mut trace = PerfettoTrace::new(&mut bytes, &(&machine()).into()).unwrap();
    introduce(&mut trace, 0, 0, "a", "main");
    for (change, at_ns) in [("to big cores", 5), ("to little cores", 9), ("to big cores", 12)] {
        trace.decided(ThreadId(0), Decision::Planned(change), None, at_ns);
    }
    trace.finish().unwrap();
    let (big, little) = ("to big cores", "to little cores");
    assert_eq!(Reader::read(&bytes).on("main"), [(big, 5, 5), (little, 9, 9), (big, 12, 12)]);
}

/// The values of the slice or instant that begins then on a track.
fn values_at<'a>(reader: &'a Reader, title: &str, start_ns: Ns) -> Vec<(&'a str, &'a str)> {
    let track = reader.track(title);
    let mut slices = reader.slices.iter();
    let slice = slices.find(|slice| slice.track == track && slice.start_ns == start_ns).unwrap();
    slice.values.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

#[test]
fn a_slice_tells_why_it_began_and_why_it_ended() {
    let mut bytes = Vec::new();
    let mut trace = PerfettoTrace::new(&mut bytes, &(&machine()).into()).unwrap();
    introduce(&mut trace, 0, 0, "a", "main");
    introduce(&mut trace, 1, 0, "a", "next");
    let loads = ReasonValue::Loads(vec![(CoreId(0), 1024), (CoreId(2), 0)]);
    let placed = Reason::new(DecidedBy::Allocator, "its previous core, which is idle")
        .with("loads", loads)
        .core("previous_core", CoreId(2));
    trace.decided(ThreadId(0), Decision::Placed(CoreId(2)), Some(&placed), 10);
    let chosen = Reason::new(DecidedBy::Order, "it comes first in the queue")
        .with("vruntime_ns", ReasonValue::Ns(-5))
        .count("waiting", 2_u64)
        .thread("first", ThreadId(1))
        .real("gain", 1.5);
    trace.run(CoreId(2), ThreadId(0), Some(&chosen), 20);
    let over = Reason::new(DecidedBy::Slice, "its slice is over").ns("slice_ns", 30);
    let end = TurnEnd { instructions: Some(7), state: RunState::Ready, why: Some(&over) };
    trace.stop(CoreId(2), ThreadId(0), end, 50);
    let interrupts = Decision::Interrupts { running: ThreadId(0), core: CoreId(2), yes: true };
    trace.decided(ThreadId(1), interrupts, None, 60);
    trace.finish().unwrap();
    let reader = Reader::read(&bytes);
    assert_eq!(reader.on("main"), [("put on core 2", 10, 10), ("running on core 2", 20, 50)]);
    assert_eq!(reader.on("next"), [("interrupts a/main", 60, 60)]);
    assert_eq!(
        values_at(&reader, "main", 10),
        [
            ("why.rule", "allocator"),
            ("why.because", "its previous core, which is idle"),
            ("why.loads", "0: 1024, 2: 0"),
            ("why.previous_core", "2"),
        ]
    );
    let slice = [
        ("why.rule", "order"),
        ("why.because", "it comes first in the queue"),
        ("why.vruntime_ns", "-5"),
        ("why.waiting", "2"),
        ("why.first", "a/next"),
        ("why.gain", "1.5"),
        ("end.rule", "slice"),
        ("end.because", "its slice is over"),
        ("end.slice_ns", "30"),
    ];
    assert_eq!(values_at(&reader, "main", 20), slice);
    assert_eq!(values_at(&reader, "core 2 little little-type 1200 MHz", 20), slice);
}
