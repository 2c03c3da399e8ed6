//! Packets of a trace file: numbers of tracks and names, timestamps relative to the packet before.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};

use ampsched_model::Ns;
use prost::Message;

use super::proto::{
    CLOCK_BOOTTIME, CLOCK_INCREMENTAL, Clock, ClockSnapshot, CpuInfo, EventType, FtraceEvent,
    FtraceEventBundle, InternedData, InternedName, ProcessTree, SEQ_INCREMENTAL_STATE_CLEARED,
    SEQ_NEEDS_INCREMENTAL_STATE, TracePacket, TracePacketDefaults, TrackDescriptor, TrackEvent,
};

/// All packets are of one sequence, so that timestamps and names are relative to one state.
const SEQUENCE: u32 = 1;
/// Key of the field `Trace.packet`: field 1, length-delimited.
const PACKET_KEY: u8 = 1 << 3 | 2;

/// What a text that is written once and then named by a number stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Interned {
    /// The name of events.
    Event,
    /// The name of a value.
    Value,
    /// A value that is a text.
    Text,
}

/// Writes packets; the first I/O error stops it and is kept.
#[derive(Debug)]
pub struct PacketWriter<W: Write> {
    out: BufWriter<W>,
    error: Option<io::Error>,
    buffer: Vec<u8>,
    /// Time of the packet before, to which the next one's timestamp is relative.
    last_ns: Ns,
    next_uuid: u64,
    /// Numbers of the texts that have one.
    interned: BTreeMap<(Interned, String), u64>,
}

impl<W: Write> PacketWriter<W> {
    /// Starts a file.
    pub fn new(writer: W) -> Self {
        let mut packets = Self {
            out: BufWriter::with_capacity(1 << 16, writer),
            error: None,
            buffer: Vec::new(),
            last_ns: 0,
            next_uuid: 1,
            interned: BTreeMap::new(),
        };
        packets.write(start_of_sequence());
        packets
    }

    /// The first error of the writer since the start, if there was one.
    pub fn check(&mut self) -> io::Result<()> {
        self.error.take().map_or(Ok(()), Err)
    }

    /// Completes the file. Errors: the first one of the writer; the file is incomplete then.
    pub fn finish(mut self) -> io::Result<()> {
        self.check()?;
        self.out.flush()
    }

    /// Time of the last event.
    pub fn last_ns(&self) -> Ns {
        self.last_ns
    }

    /// A number for a new track.
    pub fn new_uuid(&mut self) -> u64 {
        self.next_uuid += 1;
        self.next_uuid - 1
    }

    /// The number of a text.
    pub fn intern(&mut self, kind: Interned, text: impl Into<String>) -> u64 {
        let key = (kind, text.into());
        if let Some(&iid) = self.interned.get(&key) {
            return iid;
        }
        let iid = self.interned.len() as u64 + 1;
        let named = vec![InternedName { iid: Some(iid), name: Some(key.1.clone()) }];
        let mut data = InternedData::default();
        match kind {
            Interned::Event => data.event_names = named,
            Interned::Value => data.debug_annotation_names = named,
            Interned::Text => data.debug_annotation_string_values = named,
        }
        self.write(TracePacket {
            interned_data: Some(data),
            sequence_flags: Some(SEQ_NEEDS_INCREMENTAL_STATE),
            ..TracePacket::default()
        });
        self.interned.insert(key, iid);
        iid
    }

    /// Describes a track.
    pub fn describe(&mut self, track_descriptor: TrackDescriptor) {
        self.write(TracePacket {
            track_descriptor: Some(track_descriptor),
            ..TracePacket::default()
        });
    }

    /// Writes an event of a track; times never decrease.
    pub fn event(&mut self, kind: EventType, track: u64, event: TrackEvent, at_ns: Ns) {
        debug_assert!(at_ns >= self.last_ns, "time never decreases");
        let elapsed_ns = at_ns - self.last_ns;
        self.last_ns = at_ns;
        self.write(TracePacket {
            timestamp: Some(elapsed_ns),
            track_event: Some(TrackEvent {
                r#type: Some(kind as i32),
                track_uuid: Some(track),
                ..event
            }),
            sequence_flags: Some(SEQ_NEEDS_INCREMENTAL_STATE),
            ..TracePacket::default()
        });
    }

    /// Tells what the CPUs are.
    pub fn cpu_info(&mut self, cpu_info: CpuInfo) {
        self.write(TracePacket { cpu_info: Some(cpu_info), ..TracePacket::default() });
    }

    /// Tells of processes and threads.
    pub fn process_tree(&mut self, process_tree: ProcessTree) {
        self.write(TracePacket { process_tree: Some(process_tree), ..TracePacket::default() });
    }

    /// Writes events of a CPU's buffer, in their order there.
    pub fn bundle(&mut self, cpu: u32, event: Vec<FtraceEvent>) {
        let bundle = FtraceEventBundle { cpu: Some(cpu), event };
        self.write(TracePacket { ftrace_events: Some(bundle), ..TracePacket::default() });
    }

    fn write(&mut self, packet: TracePacket) {
        if self.error.is_some() {
            return;
        }
        let packet = TracePacket { trusted_packet_sequence_id: Some(SEQUENCE), ..packet };
        self.buffer.clear();
        self.buffer.push(PACKET_KEY);
        packet.encode_length_delimited(&mut self.buffer).expect("a vector grows");
        self.error = self.out.write_all(&self.buffer).err();
    }
}

/// The first packet: the clock whose readings are differences.
fn start_of_sequence() -> TracePacket {
    let clock = |clock_id, is_incremental| Clock {
        clock_id: Some(clock_id),
        timestamp: Some(0),
        is_incremental,
    };
    let clocks = vec![clock(CLOCK_BOOTTIME, None), clock(CLOCK_INCREMENTAL, Some(true))];
    TracePacket {
        clock_snapshot: Some(ClockSnapshot { clocks }),
        sequence_flags: Some(SEQ_INCREMENTAL_STATE_CLEARED),
        trace_packet_defaults: Some(TracePacketDefaults {
            timestamp_clock_id: Some(CLOCK_INCREMENTAL),
        }),
        ..TracePacket::default()
    }
}

/// A track of that number.
pub fn track(uuid: u64, name: Option<String>) -> TrackDescriptor {
    TrackDescriptor { uuid: Some(uuid), name, ..TrackDescriptor::default() }
}
