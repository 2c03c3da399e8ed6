//! The bytes of threads: chunks of the file of all events.

use std::collections::BTreeMap;
use std::iter::Flatten;
use std::slice::ChunksExact;
use std::vec::IntoIter;

use ampsched_model::InputError;

const MAGIC: [u8; 8] = *b"AMPRAW2\n";
const CHUNK_BYTES: usize = 65536;
/// Of every chunk, before its slots.
const CHUNK_HEAD_BYTES: usize = 64;
/// Where the slots of a thread's first chunk begin.
const FIRST_SLOTS: usize = 1024;
const SLOT_BYTES: usize = 16;
/// The flag of an event that a reading follows.
const READING: u8 = 2;

/// Values of `kind` that only raw files have.
pub const CREATE_PROCESS: u8 = 64;
/// The end of a process is seen.
pub const JOIN_PROCESS: u8 = 65;
/// A reading; the time before it is the program's.
pub const ANCHOR: u8 = 66;
/// A reading; the time before it is the recorder's.
pub const OWN_TIME: u8 = 67;
/// Two ends of one stream are made.
pub const PAIR: u8 = 68;
/// This end of a stream has the connection that the detail names.
pub const CONNECTED: u8 = 69;
/// The same, at the server.
pub const ACCEPTED: u8 = 70;
/// A counter is raised, or a server is asked for a connection.
pub const ADD: u8 = 71;
/// It has waited for that.
pub const TAKE: u8 = 72;
/// It sends a signal.
pub const KILL: u8 = 73;
/// A try has failed.
pub const CONTENDED: u8 = 1;
/// Time without a core since the previous event passed inside the call.
pub const WAITED: u8 = 4;

/// A moment, or a stretch of time, by both clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pair {
    /// Of the processor, or ns.
    pub ticks: u64,
    /// Of the kernel.
    pub ns: u64,
}

/// The head of a thread's first chunk.
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// The process's number, from 0.
    pub process: u32,
    /// The thread's number in it.
    pub thread: u32,
    /// The process as the kernel has it.
    pub pid: u32,
    /// Its parent.
    pub parent_pid: u32,
    /// 1 + the number of the thread that created it, 0 if none is known.
    pub creator: u32,
    /// Whether its process has been recorded before, as another program.
    pub is_continued: bool,
    /// Its `pthread_t`.
    pub identity: u64,
    /// Events that there was no room for.
    pub lost_events: u64,
    /// Ticks of the recorder per event without and with a reading.
    pub costs: [u64; 2],
    /// CPU time of the recorder besides, in ns.
    pub own_ns: u64,
    /// The begin.
    pub begin: Pair,
    /// A moment near the end.
    pub last: Pair,
    /// A stretch of time before the begin.
    pub rate: Pair,
    /// Instructions, if they were counted.
    pub instructions: Option<u64>,
    /// Whether CPU time is told by ticks.
    pub has_ticks: bool,
    /// CPU time of a process's first thread until its program was loaded, in ns; all programs before are included.
    pub startup_ns: u64,
    /// When its process ended before it, and its CPU time in ns by then; 0 if it did not.
    pub stopped: Pair,
    /// Whether its end was seen.
    pub is_ended: bool,
    /// Whether CPU time was told by ticks from some moment on, as a sandbox kills for asking the kernel.
    pub is_sandboxed: bool,
    /// CPU time of the recorder in the very first program before the recording began, in ns.
    pub before_ns: u64,
    /// Its number in the kernel, 0 if that was not asked.
    pub tid: u32,
    /// The thread's name.
    pub name: String,
}

/// An event as it stands in the file.
#[derive(Clone, Copy, Debug)]
pub struct Raw {
    /// What it was.
    pub kind: u8,
    /// How.
    pub flags: u8,
    /// Ticks since the previous one.
    pub ticks: u64,
    /// The object.
    pub object: u32,
    /// The detail.
    pub aux: u32,
    /// CPU time of the thread so far in ns, and the core, if both were read.
    pub reading: Option<(u64, u32)>,
}

/// A thread.
pub struct RawThread<'a> {
    /// Its head.
    pub head: Head,
    /// Of each of its chunks.
    slots: Vec<&'a [u8]>,
}

impl<'a> RawThread<'a> {
    /// Its events.
    pub fn events(&self) -> Events<'a> {
        let chunks: Vec<_> =
            self.slots.iter().map(|slots| slots.chunks_exact(SLOT_BYTES)).collect();
        Events(chunks.into_iter().flatten())
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_ne_bytes(number)
}

fn pair_at(bytes: &[u8], at: usize) -> Pair {
    Pair { ticks: u64_at(bytes, at), ns: u64_at(bytes, at + 8) }
}

/// How many threads could not be recorded, of the bytes of `control`.
///
/// # Errors
/// It is no such file, or of another version.
pub fn refused_threads(file: &str, control: &[u8]) -> Result<u32, InputError> {
    if control.len() < 16 || control[..6] != MAGIC[..6] {
        return Err(InputError::new(file, "", "is no file of a recorder"));
    }
    if control[..8] != MAGIC {
        let message = format!("is of version {}, known is 2", control[6] as char);
        return Err(
            InputError::new(file, "", message).with_hint("the version that wrote it reads it")
        );
    }
    Ok(u32_at(control, 12))
}

/// The threads of the file of all events. Chunks that nothing was written to, that are cut off, or that belong to no
/// thread whose head is complete, are left out.
pub fn threads<'a>(events: &'a [u8]) -> Vec<RawThread<'a>> {
    let mut chunks: Vec<_> = events.chunks_exact(CHUNK_BYTES).collect();
    let rest = &events[chunks.len() * CHUNK_BYTES..];
    if rest.len() >= CHUNK_HEAD_BYTES {
        chunks.push(rest);
    }
    let mut heads = BTreeMap::new();
    let mut followers: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for chunk in chunks {
        let (owner, sequence) = ((u32_at(chunk, 0), u32_at(chunk, 4)), u32_at(chunk, 8));
        if sequence > 0 {
            followers.entry(owner).or_default().push((sequence, &chunk[CHUNK_HEAD_BYTES..]));
        } else if chunk.len() >= FIRST_SLOTS && chunk[CHUNK_HEAD_BYTES..][..8] == MAGIC {
            heads.insert(owner, chunk);
        }
    }
    let thread = |(owner, chunk): ((u32, u32), &'a [u8])| {
        let mut rest = followers.remove(&owner).unwrap_or_default();
        rest.sort_by_key(|(sequence, _)| *sequence);
        let mut slots = vec![&chunk[FIRST_SLOTS..]];
        slots.extend(rest.into_iter().map(|(_, slots)| slots));
        RawThread { head: head(&chunk[CHUNK_HEAD_BYTES..FIRST_SLOTS]), slots }
    };
    heads.into_iter().map(thread).collect()
}

fn head(bytes: &[u8]) -> Head {
    let name = &bytes[144..160];
    let length = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    Head {
        process: u32_at(bytes, 8),
        thread: u32_at(bytes, 12),
        pid: u32_at(bytes, 16),
        parent_pid: u32_at(bytes, 20),
        creator: u32_at(bytes, 24),
        is_continued: u32_at(bytes, 28) != 0,
        identity: u64_at(bytes, 32),
        lost_events: u64_at(bytes, 40),
        costs: [u64_at(bytes, 48), u64_at(bytes, 56)],
        own_ns: u64_at(bytes, 64),
        begin: pair_at(bytes, 72),
        last: pair_at(bytes, 88),
        rate: pair_at(bytes, 104),
        instructions: (u32_at(bytes, 128) != 0).then(|| u64_at(bytes, 120)),
        has_ticks: u32_at(bytes, 136) != 0,
        startup_ns: u64::from(u32_at(bytes, 140)) * 1000,
        stopped: pair_at(bytes, 160),
        is_ended: u32_at(bytes, 132) != 0,
        is_sandboxed: u32_at(bytes, 176) != 0,
        before_ns: u64::from(u32_at(bytes, 180)) * 1000,
        tid: u32_at(bytes, 184),
        name: String::from_utf8_lossy(&name[..length]).into_owned(),
    }
}

/// The events of all chunks: where one is not full, the next one begins; the rest is empty.
pub struct Events<'a>(Flatten<IntoIter<ChunksExact<'a, u8>>>);

impl Iterator for Events<'_> {
    type Item = Raw;

    fn next(&mut self) -> Option<Raw> {
        let (slot, head) =
            self.0.by_ref().map(|slot| (slot, u64_at(slot, 0))).find(|slot| slot.1 != 0)?;
        let mut raw = Raw {
            kind: head as u8,
            flags: (head >> 8) as u8,
            ticks: head >> 16,
            object: u32_at(slot, 8),
            aux: u32_at(slot, 12),
            reading: None,
        };
        if raw.flags & READING != 0 {
            let reading = self.0.next()?;
            raw.reading = Some((u64_at(reading, 0), u64_at(reading, 8) as u32));
        }
        Some(raw)
    }
}
