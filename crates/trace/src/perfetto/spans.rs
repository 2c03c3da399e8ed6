//! Plain tracks of spans with arrows between them, as of a task graph's workers.

use std::io::{self, Write};

use ampsched_model::Ns;

use super::packets::{Interned, PacketWriter, track};
use super::proto::{ChildOrdering, EventType, TrackDescriptor, TrackEvent};

/// A trace of tracks under one title; each track has one span after another.
#[derive(Debug)]
pub struct SpanTrace<W: Write> {
    packets: PacketWriter<W>,
    tracks: Vec<u64>,
}

impl<W: Write> SpanTrace<W> {
    /// Starts a trace with named tracks, in their order.
    pub fn new(writer: W, title: String, tracks: impl IntoIterator<Item = String>) -> Self {
        let mut packets = PacketWriter::new(writer);
        let group = packets.new_uuid();
        let child_ordering = Some(ChildOrdering::Explicit as i32);
        packets.describe(TrackDescriptor { child_ordering, ..track(group, Some(title)) });
        let mut described = Vec::new();
        for (rank, name) in (0..).zip(tracks) {
            let uuid = packets.new_uuid();
            packets.describe(TrackDescriptor {
                parent_uuid: Some(group),
                sibling_order_rank: Some(rank),
                ..track(uuid, Some(name))
            });
            described.push(uuid);
        }
        Self { packets, tracks: described }
    }

    /// A span begins; arrows of these numbers start at it, and one may end there. Times never decrease.
    pub fn begin(
        &mut self,
        track: usize,
        name: String,
        outgoing: Vec<u64>,
        incoming: Option<u64>,
        at_ns: Ns,
    ) {
        let begin = TrackEvent {
            name_iid: Some(self.packets.intern(Interned::Event, name)),
            flow_ids: outgoing,
            terminating_flow_ids: incoming.into_iter().collect(),
            ..TrackEvent::default()
        };
        self.packets.event(EventType::SliceBegin, self.tracks[track], begin, at_ns);
    }

    /// The span of a track ends.
    pub fn end(&mut self, track: usize, at_ns: Ns) {
        self.packets.event(EventType::SliceEnd, self.tracks[track], TrackEvent::default(), at_ns);
    }

    /// Completes the file. Errors: the first one of the writer; the file is incomplete then.
    pub fn finish(self) -> io::Result<()> {
        self.packets.finish()
    }
}
