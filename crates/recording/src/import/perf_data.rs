//! `perf.data` with tracepoints, of perf or of Android's simpleperf, as a file or as what a pipe has carried
//! (tools/perf/Documentation/perf.data-file-format.txt, include/uapi/linux/perf_event.h), little-endian.

use ampsched_model::InputError;

use super::cursor::{Cursor, u32_at, u64_at};
use super::event::{Context, Raw, Story, What};
use super::format::Decoder;
use super::trace_dat;

const MAGIC: &[u8] = b"PERFILE2";
/// Bytes of the file's head; what a pipe has carried has one of 16.
const HEAD_BYTES: u64 = 104;

const RECORD_LOST: u32 = 2;
const RECORD_COMM: u32 = 3;
const RECORD_EXIT: u32 = 4;
const RECORD_FORK: u32 = 7;
const RECORD_SAMPLE: u32 = 9;
const RECORD_LOST_SAMPLES: u32 = 13;
const RECORD_ATTR: u32 = 64;
const RECORD_TRACING_DATA: u32 = 66;
const RECORD_COMPRESSED: u32 = 81;
const RECORD_COMPRESSED2: u32 = 83;
/// From here on records are simpleperf's (system/extras/simpleperf/record.h of Android): their sizes have 32 bits, and
/// what is longer than 64 KiB is split.
const SIMPLEPERF: u32 = 32768;
const RECORD_SPLIT: u32 = SIMPLEPERF + 4;
const RECORD_SPLIT_END: u32 = SIMPLEPERF + 5;
const RECORD_SIMPLEPERF_TRACING_DATA: u32 = SIMPLEPERF + 9;
/// Of a name: by executing a program.
const COMM_EXEC: u16 = 1 << 13;

/// An empty last block and room for a checksum: perf never ends the frame of zstd that it writes.
const FRAME_END: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];

const FEATURE_TRACING_DATA: u32 = 1;
const FEATURE_RELEASE: u32 = 4;
const FEATURE_COMMAND: u32 = 11;

const SAMPLE_IP: u64 = 1;
const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_TIME: u64 = 1 << 2;
const SAMPLE_ADDR: u64 = 1 << 3;
const SAMPLE_READ: u64 = 1 << 4;
const SAMPLE_CALLCHAIN: u64 = 1 << 5;
const SAMPLE_ID: u64 = 1 << 6;
const SAMPLE_CPU: u64 = 1 << 7;
const SAMPLE_PERIOD: u64 = 1 << 8;
const SAMPLE_STREAM_ID: u64 = 1 << 9;
const SAMPLE_RAW: u64 = 1 << 10;
const SAMPLE_IDENTIFIER: u64 = 1 << 16;
/// Bit of an attribute's flags: every record has time and core at its end.
const SAMPLE_ID_ALL: u64 = 1 << 18;

/// Whether bytes are of this form.
pub fn is_form(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// What samples consist of (`struct perf_event_attr`).
#[derive(Clone, Copy, Debug, Default)]
struct Attribute {
    sample_type: u64,
    read_format: u64,
    flags: u64,
}

impl Attribute {
    fn read(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            sample_type: u64_at(bytes, 24)?,
            read_format: u64_at(bytes, 32)?,
            flags: u64_at(bytes, 40)?,
        })
    }
}

/// Where and when a record was written.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    at_ns: u64,
    cpu: u16,
}

#[derive(Default)]
struct Reader {
    story: Story,
    decoder: Decoder,
    attribute: Attribute,
    packed: Vec<u8>,
    /// Parts of a record of simpleperf's, and whether one is being read: such parts are not split again.
    split: Vec<u8>,
    is_in_split: bool,
}

/// Reads a trace. Errors: its head is damaged, or it has no tracepoints.
pub fn read(file: &str, bytes: &[u8]) -> Result<Story, InputError> {
    let mut reader = Reader { story: Story::of(bytes.len()), ..Reader::default() };
    let damaged = || InputError::new(file, "", "is damaged: its head does not fit");
    let is_file = u64_at(bytes, 8).ok_or_else(damaged)? >= HEAD_BYTES;
    let records = if is_file { reader.head(bytes).ok_or_else(damaged)? } else { &bytes[16..] };
    reader.records(records);
    let mut packed = std::mem::take(&mut reader.packed);
    packed.extend(FRAME_END);
    if let Ok(unpacker) = ruzstd::decoding::StreamingDecoder::new(packed.as_slice()) {
        // What was cut off is missing, and no error.
        let (unpacked, _) = reader.story.unpack(unpacker);
        reader.records(&unpacked);
    }
    if reader.decoder.is_empty() {
        let error = InputError::new(file, "", "has no tracepoint of the scheduler");
        let hint = "record with perf sched record, or simpleperf record -a -e sched:sched_switch,sched:sched_waking";
        return Err(error.with_hint(hint));
    }
    Ok(reader.story)
}

impl Reader {
    /// Reads the head and what it points to, apart from the records, which are returned.
    fn head<'a>(&mut self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let section = |at: usize| -> Option<&'a [u8]> {
            let start = usize::try_from(u64_at(bytes, at)?).ok()?;
            let size = usize::try_from(u64_at(bytes, at + 8)?).ok()?;
            bytes.get(start..start.checked_add(size)?)
        };
        let attribute_bytes = usize::try_from(u64_at(bytes, 16)?).ok()?.max(48);
        section(24)?
            .chunks(attribute_bytes)
            .filter_map(Attribute::read)
            .for_each(|each| self.attribute(each));
        let start = usize::try_from(u64_at(bytes, 40)?).ok()?;
        let size = usize::try_from(u64_at(bytes, 48)?).ok()?;
        let end = start.checked_add(size)?;
        // A recorder that was killed has not written how much there is.
        let records =
            if size == 0 { bytes.get(start..)? } else { bytes.get(start..end.min(bytes.len()))? };
        let features = u64_at(bytes, 72)?;
        let mut at = end;
        for feature in (0..64).filter(|bit| features >> bit & 1 == 1) {
            if let Some(data) = section(at) {
                self.feature(feature, data);
            }
            at = at.checked_add(16)?;
        }
        Some(records)
    }

    /// Takes the attribute of the tracepoints; that of other events, which only count, says nothing.
    fn attribute(&mut self, attribute: Attribute) {
        if self.attribute.sample_type & SAMPLE_RAW == 0 {
            self.attribute = attribute;
        }
    }

    fn feature(&mut self, feature: u32, data: &[u8]) {
        let mut cursor = Cursor::new(data, 0);
        match feature {
            FEATURE_TRACING_DATA => self.formats(data),
            FEATURE_RELEASE => self.story.kernel = text(&mut cursor).unwrap_or_default(),
            FEATURE_COMMAND => {
                let count = cursor.u32().unwrap_or_default();
                self.story.command = (0..count).map_while(|_| text(&mut cursor)).collect();
            }
            _ => {}
        }
    }

    fn formats(&mut self, data: &[u8]) {
        let mut cursor = Cursor::new(data, trace_dat::MAGIC.len());
        // Version, order of bytes, size of long, size of pages.
        let is_headed = cursor.text().is_some() && cursor.take(6).is_some();
        if is_headed {
            trace_dat::formats(&mut cursor, &mut self.decoder);
        }
    }

    fn records(&mut self, bytes: &[u8]) {
        let mut at = 0;
        while let (Some(kind), Some(word)) = (u32_at(bytes, at), u32_at(bytes, at + 4)) {
            let (misc, size) = match kind {
                SIMPLEPERF.. => (0, (word.rotate_right(16)) as usize),
                _ => (word as u16, (word >> 16) as usize),
            };
            let Some(body) = bytes.get(at + 8..at + size.max(8)) else { return };
            if size < 8 {
                self.story.unreadable += 1;
                return;
            }
            at += size;
            match kind {
                RECORD_TRACING_DATA => {
                    let length = u32_at(body, 0).unwrap_or_default() as usize;
                    let Some(data) = bytes.get(at..at + length) else { return };
                    self.formats(data);
                    at += length;
                }
                RECORD_SPLIT => self.split.extend_from_slice(body),
                RECORD_SPLIT_END if self.is_in_split => self.story.unreadable += 1,
                RECORD_SPLIT_END => {
                    let whole = std::mem::take(&mut self.split);
                    self.is_in_split = true;
                    self.records(&whole);
                    self.is_in_split = false;
                }
                RECORD_SIMPLEPERF_TRACING_DATA => {
                    let length = u32_at(body, 0).unwrap_or_default() as usize;
                    let data = body.get(4..).unwrap_or_default();
                    self.formats(&data[..length.min(data.len())]);
                }
                RECORD_COMPRESSED => self.packed.extend_from_slice(body),
                RECORD_COMPRESSED2 => {
                    let length = u64_at(body, 0).unwrap_or_default() as usize;
                    let data = body.get(8..).unwrap_or_default();
                    self.packed.extend_from_slice(&data[..length.min(data.len())]);
                }
                _ => {
                    self.record(kind, misc, body);
                }
            }
        }
    }

    /// A record; none if it is too short.
    fn record(&mut self, kind: u32, misc: u16, body: &[u8]) -> Option<()> {
        let read = match kind {
            RECORD_ATTR => Attribute::read(body).map(|attribute| self.attribute(attribute)),
            RECORD_SAMPLE => self.sample(body),
            RECORD_COMM => self.comm(misc, body),
            RECORD_FORK | RECORD_EXIT => self.fork_or_exit(kind == RECORD_FORK, body),
            RECORD_LOST => u64_at(body, 8).map(|events| self.lose(events, body)),
            RECORD_LOST_SAMPLES => u64_at(body, 0).map(|events| self.lose(events, body)),
            _ => Some(()),
        };
        self.story.unreadable += u64::from(read.is_none());
        read
    }

    fn lose(&mut self, events: u64, body: &[u8]) {
        let place = self.place(body).unwrap_or_default();
        self.push(place, 0, What::Lost { events });
    }

    fn push(&mut self, place: Place, tid: u32, what: What) {
        let Place { at_ns, cpu } = place;
        self.story.push(Raw { at_ns, cpu, tid, context: Context::Thread, what });
    }

    /// Time and core at the end of a record that is no sample.
    fn place(&self, body: &[u8]) -> Option<Place> {
        let kind = self.attribute.sample_type;
        if self.attribute.flags & SAMPLE_ID_ALL == 0 {
            return None;
        }
        let parts =
            [SAMPLE_TID, SAMPLE_TIME, SAMPLE_ID, SAMPLE_STREAM_ID, SAMPLE_CPU, SAMPLE_IDENTIFIER];
        let size = parts.iter().filter(|&&part| kind & part != 0).count() * 8;
        let mut at = body.len().checked_sub(size)?;
        let mut place = Place::default();
        for part in parts.into_iter().filter(|part| kind & part != 0) {
            match part {
                SAMPLE_TIME => place.at_ns = u64_at(body, at)?,
                SAMPLE_CPU => place.cpu = u16::try_from(u32_at(body, at)?).ok()?,
                _ => {}
            }
            at += 8;
        }
        Some(place)
    }

    fn comm(&mut self, misc: u16, body: &[u8]) -> Option<()> {
        let (process, tid) = (u32_at(body, 0)?, u32_at(body, 4)?);
        let name = Cursor::new(body, 8).text()?;
        let name = self.story.names.number(&name);
        self.story.processes.insert(tid, process);
        match self.place(body).filter(|place| place.at_ns > 0) {
            Some(place) if misc & COMM_EXEC != 0 => {
                self.push(place, tid, What::Exec { tid, old_tid: tid, file: name });
                self.push(place, tid, What::Rename { tid, name });
            }
            Some(place) => self.push(place, tid, What::Rename { tid, name }),
            None => {
                self.story.thread_names.insert(tid, name);
            }
        }
        Some(())
    }

    fn fork_or_exit(&mut self, is_fork: bool, body: &[u8]) -> Option<()> {
        let (process, parent_process) = (u32_at(body, 0)?, u32_at(body, 4)?);
        let (tid, parent) = (u32_at(body, 8)?, u32_at(body, 12)?);
        let at_ns = u64_at(body, 16)?;
        self.story.processes.insert(tid, process);
        let place = self.place(body).filter(|_| at_ns > 0);
        let Some(place) = place else { return Some(()) };
        let name = self.story.names.number("");
        let is_thread = Some(process == parent_process);
        let (tid, what) = match is_fork {
            true => (parent, What::New { parent: Some(parent), child: tid, name, is_thread }),
            false => (tid, What::Exit { tid }),
        };
        self.push(Place { at_ns, ..place }, tid, what);
        Some(())
    }

    fn sample(&mut self, body: &[u8]) -> Option<()> {
        let kind = self.attribute.sample_type;
        let mut cursor = Cursor::new(body, 0);
        let has = |part: u64| kind & part != 0;
        let mut place = Place::default();
        for _ in [SAMPLE_IDENTIFIER, SAMPLE_IP].into_iter().filter(|&part| has(part)) {
            cursor.u64()?;
        }
        if has(SAMPLE_TID) {
            let (process, tid) = (cursor.u32()?, cursor.u32()?);
            if tid != 0 && tid != u32::MAX {
                self.story.processes.insert(tid, process);
            }
        }
        if has(SAMPLE_TIME) {
            place.at_ns = cursor.u64()?;
        }
        for _ in [SAMPLE_ADDR, SAMPLE_ID, SAMPLE_STREAM_ID].into_iter().filter(|&part| has(part)) {
            cursor.u64()?;
        }
        if has(SAMPLE_CPU) {
            place.cpu = u16::try_from(cursor.u64()? as u32).ok()?;
        }
        if has(SAMPLE_PERIOD) {
            cursor.u64()?;
        }
        if has(SAMPLE_READ) {
            self.skip_values(&mut cursor)?;
        }
        if has(SAMPLE_CALLCHAIN) {
            let count = usize::try_from(cursor.u64()?).ok()?;
            cursor.take(count.checked_mul(8)?)?;
        }
        if has(SAMPLE_RAW) {
            let size = cursor.u32()? as usize;
            let data = cursor.take(size)?;
            self.decoder.tell(&mut self.story, place.at_ns, place.cpu, data);
        }
        Some(())
    }

    fn skip_values(&self, cursor: &mut Cursor<'_>) -> Option<()> {
        let format = self.attribute.read_format;
        let bits = |mask: u64| (format & mask).count_ones() as usize;
        // PERF_FORMAT_GROUP: a number of counters; each has a value, and an identity and losses if asked for.
        let (count, times) = match format & 8 {
            0 => (1, bits(1 | 2)),
            _ => (usize::try_from(cursor.u64()?).ok()?, bits(1 | 2)),
        };
        let words = count.checked_mul(1 + bits(4 | 16))?.checked_add(times)?;
        cursor.take(words.checked_mul(8)?).map(|_| ())
    }
}

/// A text of a length of four bytes before it, filled up with zeros.
fn text(cursor: &mut Cursor<'_>) -> Option<String> {
    let length = cursor.u32()? as usize;
    let bytes = cursor.take(length)?;
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    Some(String::from_utf8_lossy(text).into_owned())
}
