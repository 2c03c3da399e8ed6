//! What reads and writes of pipes and connections are tied to: who reads waits for who has written those bytes, who
//! writes waits for room.

use std::collections::{BTreeMap, HashMap};

use super::Place;
use super::build::{Action, Plan};
use super::ties::events;
use crate::{Kind, Recording};

/// How much a pipe holds, in bytes (pipe(7), since Linux 2.6.11); a stream that was seen to hold more holds that.
const CAPACITY_BYTES: u64 = 65_536;

/// A read or a write.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    at_ns: u64,
    place: Place,
    wait_ns: u64,
    bytes: u64,
    /// Bytes of all transfers of that kind up to its end.
    end: u64,
}

/// All that is read of a stream and written to it, in the order of time.
#[derive(Debug, Default)]
struct Stream {
    reads: Vec<Transfer>,
    writes: Vec<Transfer>,
}

/// Waits of reads and writes.
pub(crate) struct StreamWaits {
    /// From who wrote, or made room, to who waited for that.
    pub ties: Vec<(Place, Place)>,
    /// Those that nothing recorded explains.
    pub unknown: Vec<Place>,
}

/// What reads and writes have waited for.
pub(crate) fn stream_waits(recording: &Recording) -> StreamWaits {
    let mut plan = Plan::default();
    tie_streams(recording, &mut plan);
    let unknown = plan.actions.iter().map(|(place, _)| *place).collect();
    StreamWaits { ties: plan.take_ties(recording), unknown }
}

/// Ties all reads and writes.
pub(super) fn tie_streams(recording: &Recording, plan: &mut Plan) {
    let mut streams: BTreeMap<u32, Stream> = BTreeMap::new();
    for (place, event) in events(recording) {
        let (at_ns, wait_ns, bytes) = (event.at_ns, event.wait_ns, u64::from(event.aux));
        let transfer = Transfer { at_ns, place, wait_ns, bytes, end: 0 };
        match event.kind {
            Kind::Read => streams.entry(event.object).or_default().reads.push(transfer),
            Kind::Write => streams.entry(event.object).or_default().writes.push(transfer),
            _ => {}
        }
    }
    for mut stream in streams.into_values() {
        add_up(&mut stream.reads);
        add_up(&mut stream.writes);
        stream.tie_reads(plan);
        stream.tie_writes(plan);
    }
}

fn add_up(transfers: &mut [Transfer]) {
    transfers.sort_unstable_by_key(|transfer| (transfer.at_ns, transfer.place));
    let mut end = 0;
    for transfer in transfers {
        end += transfer.bytes;
        transfer.end = end;
    }
}

/// The first of these that ends at or behind a byte.
fn reaching(transfers: &[Transfer], byte: u64) -> Option<&Transfer> {
    transfers.get(transfers.partition_point(|transfer| transfer.end < byte))
}

/// Those up to a time.
fn until(transfers: &[Transfer], at_ns: u64) -> &[Transfer] {
    &transfers[..transfers.partition_point(|transfer| transfer.at_ns <= at_ns)]
}

fn wait_as_long(transfer: &Transfer, plan: &mut Plan) {
    if transfer.wait_ns > 0 {
        plan.act(transfer.place, Action::Sleep { ns: transfer.wait_ns });
    }
}

impl Stream {
    /// A reader waits until the last of the bytes is there; one that only waits for something, until the next one is.
    fn tie_reads(&self, plan: &mut Plan) {
        for read in &self.reads {
            let byte = read.end + u64::from(read.bytes == 0);
            let since_ns = read.at_ns.saturating_sub(read.wait_ns);
            // If something was there before, who only waits for something has waited for something else.
            let is_cause = |write: &&Transfer| read.bytes > 0 || write.at_ns >= since_ns;
            let found = reaching(&self.writes, byte).filter(|write| write.at_ns <= read.at_ns);
            // What was noted a moment too late comes with the write before.
            let last = || until(&self.writes, read.at_ns).last();
            match found.or_else(last).filter(is_cause) {
                Some(write) => plan.tie(write.place, read.place),
                None => wait_as_long(read, plan),
            }
        }
    }

    /// A writer waits until there is room for the last byte, but never for what comes later in the recording: of
    /// a long write, the first bytes are read before the last ones are written. A wait although there seems to be room
    /// was for the last read meanwhile, as a stream may hold less; without one, the thread had lost its core.
    fn tie_writes(&self, plan: &mut Plan) {
        let capacity = self.capacity();
        for write in &self.writes {
            let byte = write.end.checked_sub(capacity).filter(|byte| *byte > 0);
            let since_ns = write.at_ns.saturating_sub(write.wait_ns);
            let meanwhile = |read: &&Transfer| write.wait_ns > 0 && read.at_ns >= since_ns;
            let made_room = byte.and_then(|byte| reaching(&self.reads, byte));
            let made_room = made_room.filter(|read| read.at_ns <= write.at_ns);
            let last = || until(&self.reads, write.at_ns).last().filter(meanwhile);
            match made_room.or_else(last) {
                Some(read) => plan.tie(read.place, write.place),
                None if byte.is_some() => wait_as_long(write, plan),
                None => {}
            }
        }
    }

    /// The most that it was seen to hold without a wait.
    fn capacity(&self) -> u64 {
        let mut most = CAPACITY_BYTES;
        let mut next_bytes: HashMap<u32, u64> = HashMap::new();
        for write in self.writes.iter().rev() {
            // Behind a write that had to wait for room stands its wait, of no bytes.
            let next = next_bytes.insert(write.place.thread, write.bytes);
            if next.is_none_or(|bytes| bytes > 0) {
                let taken = until(&self.reads, write.at_ns).last().map_or(0, |read| read.end);
                most = most.max(write.end.saturating_sub(taken));
            }
        }
        most
    }
}
