//! The file of a recording, `.ampr`: blocks of compressed columns, each readable by itself.
//!
//! [`MAGIC`], then blocks: a letter, the length of the payload, its length unpacked (each a little-endian `u32`), the
//! CRC-32 of the payload, the payload (zlib). `H`: [`Info`] as JSON, first of all. `T`: threads as JSON, before their
//! events. `E`: events of one thread, columns of variable-length integers. `Z`: [`Info`] once more, complete, last of
//! all. A file without a `Z` was cut off: what is there counts.

use std::io::{self, Read, Write};

use ampsched_model::{Budget, InputError};
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use serde::{Deserialize, Serialize};

use crate::asks::Asks;
use crate::model::PRIO_MAX;
use crate::{Event, Info, Kind, Recording, Thread};

/// The first bytes of a file; the last but one is the version.
pub const MAGIC: [u8; 8] = *b"AMPREC1\n";
/// Most events of one block (ours): a cut-off recording loses at most so many of a thread.
const BLOCK_EVENTS: usize = 1 << 15;
/// Most bytes of a block, unpacked.
const BLOCK_BYTES_MAX: u32 = 1 << 24;
/// Most threads of a recording.
const THREADS_MAX: usize = 1 << 20;
const HEAD_BYTES: usize = 13;

/// A thread as its block tells it.
#[derive(Serialize, Deserialize)]
struct Row {
    name: String,
    process: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prio: Option<u8>,
    #[serde(default, skip_serializing_if = "Asks::is_none")]
    asks: Asks,
}

/// Writes a recording piece by piece.
pub struct Writer<W: Write> {
    out: W,
}

impl<W: Write> Writer<W> {
    /// Begins a file with what is known so far. Errors: of `out`.
    pub fn new(mut out: W, info: &Info) -> io::Result<Self> {
        out.write_all(&MAGIC)?;
        let mut writer = Self { out };
        writer.json(b'H', info)?;
        Ok(writer)
    }

    /// Adds threads; they are counted on from those that were added. Errors: of `out`.
    pub fn threads<'a>(&mut self, threads: impl Iterator<Item = &'a Thread>) -> io::Result<()> {
        let row = |thread: &Thread| {
            let Thread { process, prio, .. } = *thread;
            Row { name: thread.name.clone(), process, prio, asks: thread.asks.clone() }
        };
        let rows: Vec<Row> = threads.map(row).collect();
        self.json(b'T', &rows)
    }

    /// Adds events of a thread that was added, behind those that it has. Errors: of `out`.
    pub fn events(&mut self, thread: u32, events: &[Event]) -> io::Result<()> {
        for block in events.chunks(BLOCK_EVENTS) {
            self.block(b'E', &pack(thread, block))?;
        }
        Ok(())
    }

    /// Ends the file. Errors: of `out`.
    pub fn finish(mut self, info: &Info) -> io::Result<W> {
        self.json(b'Z', info)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn json(&mut self, letter: u8, value: &impl Serialize) -> io::Result<()> {
        let bytes = serde_json::to_vec(value)?;
        self.block(letter, &bytes)
    }

    fn block(&mut self, letter: u8, bytes: &[u8]) -> io::Result<()> {
        let mut packer = ZlibEncoder::new(Vec::new(), Compression::fast());
        packer.write_all(bytes)?;
        let payload = packer.finish()?;
        let mut head = vec![letter];
        for number in [payload.len() as u32, bytes.len() as u32, crc32fast::hash(&payload)] {
            head.extend(number.to_le_bytes());
        }
        self.out.write_all(&head)?;
        self.out.write_all(&payload)
    }
}

impl Recording {
    /// The bytes of its file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let write = || -> io::Result<Vec<u8>> {
            let mut writer = Writer::new(Vec::new(), &self.info)?;
            writer.threads(self.threads.iter())?;
            for (index, thread) in (0..).zip(&self.threads) {
                writer.events(index, &thread.events)?;
            }
            writer.finish(&self.info)
        };
        write().expect("memory takes everything")
    }
}

/// Reads a recording from the bytes of its file.
///
/// # Errors
/// It is no recording, of a later version, damaged, or takes too much memory; an end that is missing is none: what is
/// there is returned.
pub fn read(file: &str, bytes: &[u8]) -> Result<Recording, InputError> {
    Reader { file, bytes, at: MAGIC.len(), room: Budget::of(bytes.len()) }
        .recording()?
        .checked(file)
}

/// The blocks of a file.
struct Reader<'a> {
    file: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// Memory that is left.
    room: Budget,
}

impl Reader<'_> {
    fn error(&self, message: impl Into<String>) -> InputError {
        InputError::new(self.file, format!("byte {}", self.at), message)
    }

    fn recording(&mut self) -> Result<Recording, InputError> {
        let magic = self.bytes.get(..MAGIC.len()).unwrap_or_default();
        if magic.get(..6) != Some(&MAGIC[..6]) {
            return Err(InputError::new(self.file, "", "is no recording of ampsched"));
        }
        if magic != MAGIC {
            let message = format!("is of version {}, known is 1", magic[6] as char);
            let error = InputError::new(self.file, "", message);
            return Err(error.with_hint("a newer ampsched reads it"));
        }
        let mut found = Recording { is_cut_off: true, ..Recording::default() };
        let mut is_first = true;
        while let Some((letter, payload)) = self.block()? {
            match (letter, is_first) {
                (b'H', true) => found.info = self.json(&payload)?,
                (_, true) => return Err(self.error("the first block is no head")),
                (b'T', _) => self.threads(&payload, &mut found)?,
                (b'E', _) => self.unpack(&payload, &mut found)?,
                (b'Z', _) => {
                    found.info = self.json(&payload)?;
                    found.is_cut_off = false;
                    break;
                }
                _ => return Err(self.error(format!("unknown block {:?}", letter as char))),
            }
            is_first = false;
        }
        match is_first {
            true => Err(self.error("ends before its head")),
            false => Ok(found),
        }
    }

    /// The next block; none at the end, or if it is cut off.
    fn block(&mut self) -> Result<Option<(u8, Vec<u8>)>, InputError> {
        let Some(head) = self.bytes.get(self.at..self.at + HEAD_BYTES) else { return Ok(None) };
        let number = |place: usize| {
            u32::from_le_bytes([head[place], head[place + 1], head[place + 2], head[place + 3]])
        };
        let (packed, unpacked, sum) = (number(1), number(5), number(9));
        if unpacked > BLOCK_BYTES_MAX {
            return Err(
                self.error(format!("a block of {unpacked} bytes; most are {BLOCK_BYTES_MAX}"))
            );
        }
        if head[0] != b'E' {
            // Texts stay in memory, of events what is made of them.
            self.room.take::<u8>(self.file, unpacked as usize)?;
        }
        let start = self.at + HEAD_BYTES;
        let Some(payload) = self.bytes.get(start..start.saturating_add(packed as usize)) else {
            return Ok(None);
        };
        if crc32fast::hash(payload) != sum {
            return Err(self.error("is damaged: the checksum of a block is wrong"));
        }
        let mut bytes = Vec::with_capacity(unpacked as usize);
        let read = ZlibDecoder::new(payload).take(u64::from(unpacked) + 1).read_to_end(&mut bytes);
        if read.is_err() || bytes.len() != unpacked as usize {
            return Err(self.error("is damaged: a block cannot be unpacked"));
        }
        self.at = start + packed as usize;
        Ok(Some((head[0], bytes)))
    }

    fn json<'de, T: Deserialize<'de>>(&self, payload: &'de [u8]) -> Result<T, InputError> {
        serde_json::from_slice(payload).map_err(|error| self.error(error.to_string()))
    }

    fn threads(&mut self, payload: &[u8], found: &mut Recording) -> Result<(), InputError> {
        let rows: Vec<Row> = self.json(payload)?;
        if found.threads.len() + rows.len() > THREADS_MAX {
            return Err(self.error(format!("more than {THREADS_MAX} threads")));
        }
        self.room.take::<Thread>(self.file, rows.len())?;
        if let Some(prio) = rows.iter().filter_map(|row| row.prio).find(|&prio| prio > PRIO_MAX) {
            return Err(self.error(format!("a priority of {prio}; the greatest is {PRIO_MAX}")));
        }
        let thread = |row: Row| {
            let Row { name, process, prio, asks } = row;
            Thread { name, process, events: Vec::new(), prio, asks }
        };
        found.threads.extend(rows.into_iter().map(thread));
        Ok(())
    }

    fn unpack(&mut self, payload: &[u8], found: &mut Recording) -> Result<(), InputError> {
        let mut columns = Columns { bytes: payload };
        let broken = || self.error("is damaged: events do not fit their columns");
        let thread = columns.next().ok_or_else(broken)? as usize;
        let count = columns.next().ok_or_else(broken)? as usize;
        let threads = found.threads.len();
        let Some(thread) = found.threads.get_mut(thread) else {
            return Err(self.error(format!("events of thread {thread}, there are {threads}")));
        };
        if count > BLOCK_EVENTS {
            return Err(self.error(format!("{count} events in a block; most are {BLOCK_EVENTS}")));
        }
        self.room.take::<Event>(self.file, count)?;
        let broken = || self.error("is damaged: events do not fit their columns");
        let mut at_ns = 0;
        for _ in 0..count {
            let event = columns.event(&mut at_ns).ok_or_else(broken)?;
            thread.events.push(event);
        }
        Ok(())
    }
}

const BLOCKED: u64 = 1;
const PREEMPTED: u64 = 2;
const HAS_AUX: u64 = 4;
const HAS_WAIT: u64 = 8;
const HAS_WORK: u64 = 16;
const HAS_CORE: u64 = 32;

/// Events as numbers: kind and what is stated, then what is; a time by the one before it, work by the CPU time.
fn pack(thread: u32, events: &[Event]) -> Vec<u8> {
    let mut out = Vec::with_capacity(events.len() * 8);
    put(&mut out, u64::from(thread));
    put(&mut out, events.len() as u64);
    let mut at_ns = 0;
    for event in events {
        let flag = |is: bool, bit: u64| if is { bit } else { 0 };
        let flags = flag(event.is_blocked, BLOCKED)
            | flag(event.is_preempted, PREEMPTED)
            | flag(event.aux != 0, HAS_AUX)
            | flag(event.wait_ns != 0, HAS_WAIT)
            | flag(event.work_ns != event.cpu_ns, HAS_WORK)
            | flag(event.core != crate::UNKNOWN_CORE, HAS_CORE);
        out.push(event.kind as u8);
        out.push(flags as u8);
        // Times do not go back within a thread; a recorder's clock that does stands still here.
        put(&mut out, event.at_ns.saturating_sub(at_ns));
        at_ns = at_ns.max(event.at_ns);
        put(&mut out, u64::from(event.object));
        put(&mut out, event.cpu_ns);
        let optional = [
            (HAS_AUX, u64::from(event.aux)),
            (HAS_WAIT, event.wait_ns),
            (HAS_WORK, event.work_ns),
            (HAS_CORE, u64::from(event.core)),
        ];
        for (_, value) in optional.into_iter().filter(|(bit, _)| flags & bit != 0) {
            put(&mut out, value);
        }
    }
    out
}

fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

struct Columns<'a> {
    bytes: &'a [u8],
}

impl Columns<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*first)
    }

    fn next(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn event(&mut self, at_ns: &mut u64) -> Option<Event> {
        let kind = Kind::from_number(self.byte()?)?;
        let flags = u64::from(self.byte()?);
        *at_ns = at_ns.checked_add(self.next()?)?;
        let object = u32::try_from(self.next()?).ok()?;
        let cpu_ns = self.next()?;
        let aux = self.optional(flags & HAS_AUX, 0)?;
        let wait_ns = self.optional(flags & HAS_WAIT, 0)?;
        let work_ns = self.optional(flags & HAS_WORK, cpu_ns)?;
        let core = self.optional(flags & HAS_CORE, u64::from(crate::UNKNOWN_CORE))?;
        Some(Event {
            kind,
            is_blocked: flags & BLOCKED != 0,
            is_preempted: flags & PREEMPTED != 0,
            core: u16::try_from(core).ok()?,
            object,
            aux: u32::try_from(aux).ok()?,
            at_ns: *at_ns,
            cpu_ns,
            work_ns,
            wait_ns,
        })
    }

    fn optional(&mut self, bit: u64, otherwise: u64) -> Option<u64> {
        if bit != 0 { self.next() } else { Some(otherwise) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::TIME_NS_MAX;

    fn event() -> impl Strategy<Value = Event> {
        let number = prop_oneof![Just(0), 0..200u64, any::<u32>().prop_map(u64::from)];
        let fields =
            (0..Kind::ALL.len(), any::<[bool; 2]>(), any::<u16>(), any::<u32>(), any::<u32>());
        (fields, [number.clone(), number.clone(), number.clone(), number]).prop_map(
            |(
                (kind, [is_blocked, is_preempted], core, object, aux),
                [at_ns, cpu_ns, work_ns, wait_ns],
            )| {
                let kind = Kind::ALL[kind];
                Event {
                    kind,
                    is_blocked,
                    is_preempted,
                    core,
                    object,
                    aux,
                    at_ns,
                    cpu_ns,
                    work_ns,
                    wait_ns,
                }
            },
        )
    }

    fn asks() -> Asks {
        let (policy, cpus) = (Some(crate::Policy::Rr), Some(vec![0, 3]));
        Asks { policy, cpus, uclamp_min: Some(7), uclamp_max: None, group: Some(0) }
    }

    fn recording() -> impl Strategy<Value = Recording> {
        let thread = proptest::collection::vec(event(), 0..40).prop_map(|mut events| {
            events.sort_by_key(|event| event.at_ns);
            Thread { name: "t".to_owned(), process: 1, events, prio: Some(49), asks: asks() }
        });
        proptest::collection::vec(thread, 0..4).prop_map(|threads| {
            let group =
                crate::Group { path: "/a".to_owned(), shares: Some(2), ..Default::default() };
            let groups = vec![group];
            let info = Info { name: "p".to_owned(), exit_code: Some(3), groups, ..Info::default() };
            Recording { info, threads, is_cut_off: false }
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(recording in recording()) {
            prop_assert_eq!(read("r.ampr", &recording.to_bytes()).unwrap(), recording);
        }

        #[test]
        fn a_cut_file_is_read_up_to_there(recording in recording(), share in 0.0..1.0f64) {
            let bytes = recording.to_bytes();
            let length = (share * bytes.len() as f64) as usize;
            match read("r.ampr", &bytes[..length]) {
                Ok(found) => {
                    prop_assert!(found.is_cut_off);
                    for (part, whole) in found.threads.iter().zip(&recording.threads) {
                        prop_assert!(whole.events.starts_with(&part.events));
                    }
                }
                Err(error) => prop_assert!(error.to_string().starts_with("r.ampr"), "{}", error),
            }
        }

        #[test]
        fn a_damaged_file_is_an_error_or_another_recording(
            recording in recording(), place in any::<prop::sample::Index>(), bit in 0..8u32,
        ) {
            let mut bytes = recording.to_bytes();
            let place = place.index(bytes.len());
            bytes[place] ^= 1 << bit;
            if let Err(error) = read("r.ampr", &bytes) {
                prop_assert!(error.to_string().starts_with("r.ampr"), "{}", error);
            }
        }
    }

    /// Events that are all alike need a thousandth of their room in a file.
    #[test]
    fn h34_07_a_small_file_takes_no_more_memory_than_its_length_allows() {
        let start = Event {
            kind: Kind::Start,
            is_blocked: false,
            is_preempted: false,
            core: 0,
            object: 0,
            aux: 0,
            at_ns: 0,
            cpu_ns: 0,
            work_ns: 0,
            wait_ns: 0,
        };
        let many = |blocks: usize| {
            let mut writer = Writer::new(Vec::new(), &Info::default()).unwrap();
            writer.threads([Thread::default()].iter()).unwrap();
            let block = vec![start; BLOCK_EVENTS];
            (0..blocks).for_each(|_| writer.events(0, &block).unwrap());
            read("r.ampr", &writer.finish(&Info::default()).unwrap())
        };
        assert_eq!(many(20).unwrap().events(), 20 * BLOCK_EVENTS);
        let error = many(200).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.starts_with("r.ampr: takes more than 256 MiB of memory, "), "{error}");
    }

    #[test]
    fn foreign_files_are_named() {
        let error = |bytes: &[u8]| read("x", bytes).unwrap_err().to_string();
        assert_eq!(error(b""), "x: is no recording of ampsched");
        assert_eq!(error(b"PERFILE2 and more"), "x: is no recording of ampsched");
        assert!(error(b"AMPREC9\n").starts_with("x: is of version 9, known is 1"));
        assert_eq!(error(b"AMPREC1\n"), "x: byte 8: ends before its head");
        let mut huge = b"AMPREC1\nH".to_vec();
        huge.extend([0, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0]);
        assert_eq!(error(&huge), "x: byte 8: a block of 4294967295 bytes; most are 16777216");
    }

    #[test]
    fn no_time_is_longer_than_an_engine_can_add() {
        let read_with = |at_ns, work_ns| {
            let events = vec![Event::new(Kind::Exit, at_ns, work_ns)];
            let thread = Thread { events, ..Thread::default() };
            let recording = Recording { threads: vec![thread], ..Recording::default() };
            read("x", &recording.to_bytes())
        };
        assert!(read_with(TIME_NS_MAX, TIME_NS_MAX).is_ok());
        for (at_ns, work_ns) in [(TIME_NS_MAX + 1, 0), (0, TIME_NS_MAX + 1), (u64::MAX, u64::MAX)] {
            let error = read_with(at_ns, work_ns).unwrap_err().to_string();
            assert!(error.starts_with("x: thread 0: a time of "), "{error}");
        }
    }

    #[test]
    fn an_event_takes_few_bytes() {
        let lock = |index: u64| {
            let kind = if index % 2 == 0 { Kind::Lock } else { Kind::Unlock };
            let object = 0x1234_5678 + (index as u32 % 100) * 64;
            Event { object, ..Event::new(kind, index * 4321 + index % 997, 4000 + index % 997) }
        };
        let thread = Thread { events: (0..100_000).map(lock).collect(), ..Thread::default() };
        let recording = Recording { threads: vec![thread], ..Recording::default() };
        let bytes = recording.to_bytes().len() as f64 / 1e5;
        assert!(bytes < 8.0, "{bytes}");
    }
}
