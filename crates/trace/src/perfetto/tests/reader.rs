//! A trace as a viewer understands it.

use std::collections::{BTreeMap, HashMap};

use ampsched_model::Ns;
use prost::Message;

use super::super::proto::{
    self, CLOCK_INCREMENTAL, EventType, Ftrace, FtraceEvent, TrackDescriptor,
};

/// A slice or an instant (`end_ns == start_ns`) as a viewer shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    pub track: u64,
    pub name: String,
    pub start_ns: Ns,
    pub end_ns: Option<Ns>,
    pub instructions: Option<u64>,
    /// Values such as `why.rule`, in their order.
    pub values: Vec<(String, String)>,
    pub flows_out: Vec<u64>,
    pub flows_in: Vec<u64>,
}

/// Who has a CPU, from when to when, and in which state he leaves it.
pub type Turn = (i32, Ns, Ns, i64);

/// A trace as a viewer understands it.
#[derive(Default)]
pub struct Reader {
    pub tracks: HashMap<u64, TrackDescriptor>,
    pub names: HashMap<u64, String>,
    pub annotations: HashMap<u64, String>,
    pub texts: HashMap<u64, String>,
    pub slices: Vec<Slice>,
    /// Index of the open slice of a track.
    pub open: HashMap<u64, usize>,
    pub counters: Vec<(u64, f64, Ns)>,
    pub now_ns: Ns,
    /// Events of each CPU in the order of their times, those of one time in the order of the file.
    pub cpus: BTreeMap<u32, Vec<FtraceEvent>>,
    /// Name and process of threads by number.
    pub system: BTreeMap<i32, (String, i32)>,
    /// Names of processes by number.
    pub processes: BTreeMap<i32, String>,
}

impl Reader {
    pub fn read(bytes: &[u8]) -> Self {
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
        for events in reader.cpus.values_mut() {
            events.sort_by_key(|event| event.timestamp);
        }
        reader
    }

    pub fn events(&self, cpu: u32) -> impl Iterator<Item = (Ns, u32, &Ftrace)> {
        let told = |event: &'_ FtraceEvent| (event.timestamp.unwrap(), event.pid.unwrap());
        self.cpus[&cpu].iter().map(move |event| {
            let (at_ns, pid) = told(event);
            (at_ns, pid, event.event.as_ref().unwrap())
        })
    }

    /// The turns of all but the idle thread on a CPU; each begins with whom the one before has named.
    pub fn turns(&self, cpu: u32) -> Vec<Turn> {
        let (mut on, mut turns) = (Some((0, 0)), Vec::new());
        for (at_ns, _, event) in self.events(cpu) {
            let Ftrace::SchedSwitch(switch) = event else { continue };
            let (from, from_ns) = on.replace((switch.next_pid.unwrap(), at_ns)).unwrap();
            assert_eq!(switch.prev_pid, Some(from), "CPU {cpu} at {at_ns}");
            if from != 0 {
                turns.push((from, from_ns, at_ns, switch.prev_state.unwrap()));
            }
        }
        assert_eq!(on.map(|(pid, _)| pid), Some(0), "all turns of CPU {cpu} end");
        turns
    }

    /// Wake-ups kept with a CPU: when, by whom, of whom, where it goes.
    pub fn wakings(&self, cpu: u32) -> Vec<(Ns, u32, i32, i32)> {
        let waking = |(at_ns, waker, event): (Ns, u32, &Ftrace)| match event {
            Ftrace::SchedWaking(waking) => {
                Some((at_ns, waker, waking.pid.unwrap(), waking.target_cpu.unwrap()))
            }
            _ => None,
        };
        self.events(cpu).filter_map(waking).collect()
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
        if let Some(bundle) = packet.ftrace_events {
            self.cpus.entry(bundle.cpu.unwrap()).or_default().extend(bundle.event);
        }
        if let Some(tree) = packet.process_tree {
            self.processes.extend(
                tree.processes.into_iter().map(|it| (it.pid.unwrap(), it.cmdline[0].clone())),
            );
            self.system.extend(
                tree.threads
                    .into_iter()
                    .map(|it| (it.tid.unwrap(), (it.name.unwrap(), it.tgid.unwrap()))),
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
                let value = event.counter_value.map(|value| value as f64);
                let value = value.or(event.double_counter_value).unwrap();
                self.counters.push((track, value, self.now_ns))
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
    pub fn on(&self, title: &str) -> Vec<(&str, Ns, Ns)> {
        let track = self.track(title);
        let slices = self.slices.iter().filter(|slice| slice.track == track);
        slices
            .map(|slice| (slice.name.as_str(), slice.start_ns, slice.end_ns.expect("it ends")))
            .collect()
    }

    pub fn track(&self, title: &str) -> u64 {
        let is_title = |track: &&TrackDescriptor| {
            let thread = track.thread.as_ref().and_then(|thread| thread.thread_name.as_deref());
            track.name.as_deref().or(thread) == Some(title)
        };
        let track =
            self.tracks.values().find(is_title).unwrap_or_else(|| panic!("no track {title}"));
        track.uuid.unwrap()
    }

    /// Every arrow has one source, at most one target, and the target does not precede the source.
    pub fn check_flows(&self) -> usize {
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
