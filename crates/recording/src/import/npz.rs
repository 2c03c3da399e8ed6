//! Columns of numpy: recordings of pthread programs as `NAME.npz` or `NAME.npz.zst` beside `NAME.json`.
//!
//! Of thread T there are the arrays `tT_t` (its first event, ns), `tT_dt` (ns since its event before), `tT_cpu`,
//! `tT_wait` (both ns), `tT_obj`, `tT_kf` (kind, and flags from bit 8 on) and `tT_aux`.

use std::collections::HashMap;
use std::io::Read;

use ampsched_model::{Budget, InputError};
use serde_json::Value;

use super::{Options, zip};
use crate::{Core, Event, Info, Kind, Recording, Thread, UNKNOWN_CORE};

const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// CPU time that exceeds wall time by more than that is the recorder, which has emptied its buffer.
const FLUSH_NS: u64 = 5000;

/// Whether bytes are of this form.
pub fn is_form(bytes: &[u8]) -> bool {
    bytes.starts_with(&ZSTD) || bytes.starts_with(b"PK\x03\x04")
}

/// Reads a recording.
pub fn recording(file: &str, bytes: &[u8], options: &Options) -> Result<Recording, InputError> {
    let error = |message: &str| InputError::new(file, "", message);
    let mut room = Budget::of(bytes.len());
    let unpacked;
    let archive = if bytes.starts_with(&ZSTD) {
        unpacked = unpack(file, bytes, &mut room)?;
        &unpacked
    } else {
        bytes
    };
    let mut arrays = HashMap::new();
    zip::files(file, archive, &mut room, |name, bytes, room| {
        let (width, data) = array(bytes).ok_or_else(|| {
            InputError::new(file, name, "is no array of whole numbers in one dimension")
        })?;
        room.take::<u64>(file, data.len() / width)?;
        if name.ends_with("_kf.npy") {
            room.take::<Event>(file, data.len() / width)?;
        }
        arrays.insert(name.trim_end_matches(".npy").to_owned(), numbers(width, data));
        Ok(())
    })?;
    let count = (0..).take_while(|thread| arrays.contains_key(&format!("t{thread}_kf"))).count();
    if count == 0 {
        return Err(error("has no array t0_kf of events"));
    }
    let mut unmatched = 0;
    let columns: Result<Vec<Columns<'_>>, InputError> =
        (0..count).map(|thread| Columns::of(file, &arrays, thread)).collect();
    let columns = columns?;
    let objects = Objects::of(&columns);
    let threads: Vec<Thread> = (0..)
        .zip(&columns)
        .map(|(index, columns)| {
            let events = columns.events(index, &objects, &mut unmatched);
            let name = if index == 0 { "main".to_owned() } else { format!("thread {index}") };
            Thread { name, events, ..Thread::default() }
        })
        .collect();
    let info = info(file, options, &threads, unmatched)?;
    Ok(Recording { info, threads, is_cut_off: false })
}

fn unpack(file: &str, bytes: &[u8], room: &mut Budget) -> Result<Vec<u8>, InputError> {
    let read = || -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let reader = ruzstd::decoding::StreamingDecoder::new(bytes).ok()?;
        reader.take(room.left() as u64 + 1).read_to_end(&mut out).ok()?;
        Some(out)
    };
    let damaged = || InputError::new(file, "", "is damaged: it cannot be unpacked");
    let out = read().ok_or_else(damaged)?;
    room.take::<u8>(file, out.len())?;
    Ok(out)
}

/// Width and bytes of the numbers of a `.npy` (numpy.lib.format, versions 1 to 3): unsigned, little-endian.
fn array(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let rest = bytes.strip_prefix(b"\x93NUMPY")?;
    let (start, length) = match rest.first()? {
        1 => (4, usize::from(u16::from_le_bytes([*rest.get(2)?, *rest.get(3)?]))),
        2 | 3 => (
            6,
            u32::from_le_bytes([*rest.get(2)?, *rest.get(3)?, *rest.get(4)?, *rest.get(5)?])
                as usize,
        ),
        _ => return None,
    };
    let header = std::str::from_utf8(rest.get(start..start + length)?).ok()?;
    let data = rest.get(start + length..)?;
    let kind = header.split_once("'descr':")?.1.split('\'').nth(1)?;
    let width = match kind {
        "|u1" | "<u1" | "|b1" => 1,
        "<u2" => 2,
        "<u4" => 4,
        "<u8" => 8,
        _ => return None,
    };
    if header.contains("'fortran_order': True") || data.len() % width != 0 {
        return None;
    }
    Some((width, data))
}

fn numbers(width: usize, data: &[u8]) -> Vec<u64> {
    let number = |chunk: &[u8]| {
        chunk.iter().rev().fold(0, |number: u64, &byte| (number << 8) | u64::from(byte))
    };
    data.chunks_exact(width).map(number).collect()
}

/// The arrays of a thread.
struct Columns<'a> {
    first_ns: u64,
    wall: &'a [u64],
    cpu: &'a [u64],
    wait: &'a [u64],
    object: &'a [u64],
    kind: &'a [u64],
    aux: &'a [u64],
}

impl<'a> Columns<'a> {
    fn of(
        file: &str,
        arrays: &'a HashMap<String, Vec<u64>>,
        thread: usize,
    ) -> Result<Self, InputError> {
        let column = |name: &str| {
            let key = format!("t{thread}_{name}");
            arrays
                .get(&key)
                .map(Vec::as_slice)
                .ok_or_else(|| InputError::new(file, key, "is missing"))
        };
        let kind = column("kf")?;
        let same = |name: &str| {
            let found = column(name)?;
            if found.len() != kind.len() {
                let message =
                    format!("has {} entries, t{thread}_kf has {}", found.len(), kind.len());
                return Err(InputError::new(file, format!("t{thread}_{name}"), message));
            }
            Ok(found)
        };
        for &number in kind {
            if Kind::from_number(number as u8).is_none() {
                let message = format!("{} is no kind of an event", number as u8);
                return Err(InputError::new(file, format!("t{thread}_kf"), message));
            }
        }
        Ok(Self {
            first_ns: column("t")?.first().copied().unwrap_or_default(),
            wall: same("dt")?,
            cpu: same("cpu")?,
            wait: same("wait")?,
            object: same("obj")?,
            aux: same("aux")?,
            kind,
        })
    }

    fn kind(&self, place: usize) -> Kind {
        Kind::from_number(self.kind[place] as u8).expect("kinds were checked")
    }

    fn events(&self, thread: u32, objects: &Objects, unmatched: &mut u64) -> Vec<Event> {
        let mut at_ns = self.first_ns;
        let mut found = Vec::with_capacity(self.kind.len());
        let mut carried_ns = 0_u64;
        for place in 0..self.kind.len() {
            at_ns = at_ns.saturating_add(self.wall[place]);
            let kind = self.kind(place);
            let object = self.object[place] as u32;
            let cpu_ns = carried_ns.saturating_add(self.cpu_ns(place));
            let object = match kind {
                Kind::Start => Some(0),
                Kind::Create => objects.created.get(&object).copied(),
                Kind::Join => objects.joined.get(&object).copied(),
                _ => Some(object),
            };
            let Some(object) = object else {
                *unmatched += 1;
                carried_ns = cpu_ns;
                continue;
            };
            carried_ns = 0;
            let is_start = kind == Kind::Start;
            let aux = match (is_start, thread) {
                (true, 0) => 0,
                (true, _) => (self.aux[place] as u32).saturating_add(1),
                _ => self.aux[place] as u32,
            };
            found.push(Event {
                kind,
                is_blocked: self.kind[place] >> 8 & 1 == 1,
                is_preempted: self.kind[place] >> 9 & 1 == 1,
                core: UNKNOWN_CORE,
                object,
                aux,
                at_ns,
                cpu_ns,
                work_ns: cpu_ns,
                wait_ns: if is_start { 0 } else { self.wait[place] },
            });
        }
        if let Some(last) = found.last_mut() {
            last.cpu_ns = last.cpu_ns.saturating_add(carried_ns);
            last.work_ns = last.cpu_ns;
        }
        found
    }

    /// CPU time without the recorder's own work, which its wall clock leaves out but its CPU clock does not. The first
    /// event has no wall time before it.
    fn cpu_ns(&self, place: usize) -> u64 {
        let (cpu_ns, wall_ns) = (self.cpu[place], self.wall[place]);
        let is_flush = place > 0 && cpu_ns > wall_ns.saturating_add(FLUSH_NS);
        if is_flush { wall_ns } else { cpu_ns }
    }
}

/// Threads by what names them: tags of creations, and hashes of what `pthread_self` returns.
#[derive(Default)]
struct Objects {
    created: HashMap<u32, u32>,
    joined: HashMap<u32, u32>,
}

impl Objects {
    fn of(columns: &[Columns<'_>]) -> Self {
        let mut objects = Self::default();
        for (index, columns) in (0..).zip(columns) {
            for place in (0..columns.kind.len()).filter(|&place| columns.kind(place) == Kind::Start)
            {
                objects.created.insert(columns.object[place] as u32, index);
                objects.joined.insert(columns.wait[place] as u32, index);
            }
        }
        objects
    }
}

fn info(
    file: &str,
    options: &Options,
    threads: &[Thread],
    unmatched: u64,
) -> Result<Info, InputError> {
    let beside: Value = match options.beside.is_empty() {
        true => Value::Null,
        false => serde_json::from_str(&options.beside)
            .map_err(|error| InputError::new(file, "the .json beside it", error.to_string()))?,
    };
    let text = |key: &str| beside.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let ends = threads.iter().filter_map(|thread| thread.events.last());
    let stem = file.rsplit('/').next().unwrap_or_default();
    let stem = stem.trim_end_matches(".zst").trim_end_matches(".npz").to_owned();
    let name = text("name");
    let mut unknown = vec![
        "on which core each event happened, and how fast cores were: work is CPU time".to_owned(),
        "blocks that are no call of the program's own, and who ended them".to_owned(),
    ];
    if unmatched > 0 {
        unknown.push(format!(
            "which threads {unmatched} creations or joins mean: nobody has their number"
        ));
    }
    unknown.extend(options.unknown.iter().cloned());
    let coalesced = text("coalesced");
    if !matches!(coalesced.as_str(), "" | "lossless") {
        unknown.push(format!(
            "locks that nobody waited for, for the recording is thinned: {coalesced}"
        ));
    }
    let command: Vec<String> = match options.command.is_empty() {
        true => text("cmd").split_whitespace().map(str::to_owned).collect(),
        false => options.command.clone(),
    };
    let speed = |_| Core { speed: 1.0, kind: String::new() };
    Ok(Info {
        name: if name.is_empty() { stem } else { name },
        command,
        recorder: if options.recorder.is_empty() {
            "npz".to_owned()
        } else {
            options.recorder.clone()
        },
        cores: (0..options.speeds.len()).map(speed).collect(),
        kernel: options.kernel.clone(),
        wall_ns: ends.map(|event| event.at_ns).max().unwrap_or_default(),
        slowdown: options.slowdown,
        lost_events: beside.get("dropped_events").and_then(Value::as_u64).unwrap_or_default(),
        exit_code: options.exit_code,
        instructions: Vec::new(),
        unknown,
        ..Info::default()
    })
}
