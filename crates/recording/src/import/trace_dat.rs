//! `trace.dat` of trace-cmd (trace-cmd.dat.v6(5), trace-cmd.dat.v7(5)), little-endian.

use std::io::Read;

use ampsched_model::InputError;
use flate2::read::ZlibDecoder;

use super::cursor::{Cursor, u16_at, u32_at, u64_at};
use super::event::{Context, Raw, Story, What};
use super::format::Decoder;
use super::pages::{Layout, Page};

/// The first bytes of a file.
pub const MAGIC: &[u8] = b"\x17\x08\x44tracing";

const OPTION_CPUSTAT: u16 = 2;
const OPTION_BUFFER: u16 = 3;
const OPTION_CLOCK: u16 = 4;
const OPTION_UNAME: u16 = 5;
const OPTION_TSC: u16 = 14;
const OPTION_HEADER: u16 = 16;
const OPTION_OWN: u16 = 17;
const OPTION_EVENTS: u16 = 18;
const OPTION_CMDLINES: u16 = 21;
/// Most sections of options (ours): against rings of them.
const SECTIONS_MAX: usize = 1000;
/// Bytes of a section's head.
const SECTION_HEAD: usize = 16;
const IS_COMPRESSED: u16 = 1;

/// Whether bytes are of this form.
pub fn is_form(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Reads a trace. Errors: it is damaged, of another version, big-endian, or compressed in a way that is not known.
pub fn read(file: &str, bytes: &[u8]) -> Result<Story, InputError> {
    let error = |message: String| InputError::new(file, "", message);
    let mut cursor = Cursor::new(bytes, MAGIC.len());
    let version = cursor.text().unwrap_or_default();
    let head = cursor.take(6).ok_or_else(|| error("ends in its head".to_owned()))?;
    if head[0] != 0 {
        return Err(error("is of a big-endian computer".to_owned()));
    }
    let page_bytes = u32_at(head, 2).unwrap_or_default() as usize;
    if !(64..=1 << 24).contains(&page_bytes) {
        return Err(error(format!("has pages of {page_bytes} bytes")));
    }
    let story = Story::of(bytes.len());
    let mut reader = Reader { story, page_bytes, ..Reader::default() };
    let read = match version.as_str() {
        "6" => reader.version_6(bytes, cursor),
        "7" => reader.version_7(file, bytes, cursor)?,
        _ => return Err(error(format!("is of version {version}, known are 6 and 7"))),
    };
    read.ok_or_else(|| error("is damaged: its parts do not fit".to_owned()))?;
    Ok(reader.finish())
}

/// Learns descriptions of events: how pages begin, the tracer's own events, and all others in their groups.
pub fn formats(cursor: &mut Cursor<'_>, decoder: &mut Decoder) -> Option<Layout> {
    let layout = header(cursor)?;
    own(cursor, decoder)?;
    groups(cursor, decoder)?;
    Some(layout)
}

fn header(cursor: &mut Cursor<'_>) -> Option<Layout> {
    let is_named = |name: Option<String>, wanted: &str| name.filter(|name| name == wanted);
    is_named(cursor.text(), "header_page")?;
    let layout = Layout::read(&cursor.long_text()?);
    is_named(cursor.text(), "header_event")?;
    cursor.long_text()?;
    Some(layout)
}

/// Descriptions of the tracer's own events, such as texts that programs write into the trace.
fn own(cursor: &mut Cursor<'_>, decoder: &mut Decoder) -> Option<()> {
    for _ in 0..cursor.u32()? {
        decoder.learn(&cursor.long_text()?);
    }
    Some(())
}

fn groups(cursor: &mut Cursor<'_>, decoder: &mut Decoder) -> Option<()> {
    for _ in 0..cursor.u32()? {
        cursor.text()?;
        for _ in 0..cursor.u32()? {
            decoder.learn(&cursor.long_text()?);
        }
    }
    Some(())
}

/// Pages of a core.
struct Pages<'a> {
    cpu: u16,
    bytes: std::borrow::Cow<'a, [u8]>,
    page_bytes: usize,
}

/// What time-stamp counters count, in ns: `(count * multiplier >> shift) + offset`.
#[derive(Clone, Copy)]
struct Tsc {
    multiplier: u64,
    shift: u32,
    offset_ns: u64,
}

#[derive(Default)]
struct Reader<'a> {
    story: Story,
    decoder: Decoder,
    layout: Layout,
    page_bytes: usize,
    pages: Vec<Pages<'a>>,
    clock: String,
    tsc: Option<Tsc>,
    overruns: u64,
    compression: String,
}

impl<'a> Reader<'a> {
    fn version_6(&mut self, bytes: &'a [u8], mut cursor: Cursor<'a>) -> Option<()> {
        self.layout = formats(&mut cursor, &mut self.decoder)?;
        for _ in ["kernel's symbols", "formats of prints"] {
            let length = cursor.u32()? as usize;
            cursor.take(length)?;
        }
        let names = cursor.long_text()?;
        self.names(&names);
        let cpus = cursor.u32()?;
        let mut word = cursor.take(10)?;
        if word == b"options  \0" {
            loop {
                let option = cursor.u16()?;
                if option == 0 {
                    break;
                }
                let length = cursor.u32()? as usize;
                let data = cursor.take(length)?;
                self.option(option, data);
            }
            word = cursor.take(10)?;
        }
        if word != b"flyrecord\0" {
            return None;
        }
        for cpu in 0..cpus {
            let (start, size) = (cursor.u64()?, cursor.u64()?);
            let (start, size) = (usize::try_from(start).ok()?, usize::try_from(size).ok()?);
            let bytes = bytes.get(start..start.checked_add(size)?)?.into();
            self.pages.push(Pages {
                cpu: u16::try_from(cpu).ok()?,
                bytes,
                page_bytes: self.page_bytes,
            });
        }
        Some(())
    }

    /// None: it is damaged.
    fn version_7(
        &mut self,
        file: &str,
        bytes: &'a [u8],
        mut cursor: Cursor<'a>,
    ) -> Result<Option<()>, InputError> {
        self.compression = cursor.text().unwrap_or_default();
        if !["none", "zlib", "zstd"].contains(&self.compression.as_str()) {
            let message =
                format!("is compressed by {:?}, known are zlib and zstd", self.compression);
            return Err(InputError::new(file, "", message));
        }
        Ok(self.sections(bytes, cursor))
    }

    fn sections(&mut self, bytes: &'a [u8], mut cursor: Cursor<'a>) -> Option<()> {
        cursor.text()?;
        let mut at = usize::try_from(cursor.u64()?).ok()?;
        let mut options: Vec<(u16, Vec<u8>)> = Vec::new();
        for _ in 0..SECTIONS_MAX {
            let section = self.section(bytes, at)?;
            let mut cursor = Cursor::new(&section, 0);
            at = loop {
                let (option, length) = (cursor.u16()?, cursor.u32()? as usize);
                let data = cursor.take(length)?;
                if option == 0 {
                    break usize::try_from(u64_at(data, 0)?).ok()?;
                }
                options.push((option, data.to_vec()));
            };
            if at == 0 {
                break;
            }
        }
        for (option, data) in &options {
            match *option {
                OPTION_BUFFER => self.buffer(bytes, data)?,
                OPTION_HEADER | OPTION_OWN | OPTION_EVENTS | OPTION_CMDLINES => {
                    let section = self.section(bytes, usize::try_from(u64_at(data, 0)?).ok()?)?;
                    let mut cursor = Cursor::new(&section, 0);
                    match *option {
                        OPTION_HEADER => self.layout = header(&mut cursor)?,
                        OPTION_OWN => own(&mut cursor, &mut self.decoder)?,
                        OPTION_EVENTS => groups(&mut cursor, &mut self.decoder)?,
                        _ => {
                            let names = cursor.long_text()?;
                            self.names(&names);
                        }
                    }
                }
                _ => self.option(*option, data),
            }
        }
        Some(())
    }

    /// The content of a section, unpacked.
    fn section(&mut self, bytes: &'a [u8], at: usize) -> Option<std::borrow::Cow<'a, [u8]>> {
        let flags = u16_at(bytes, at.checked_add(2)?)?;
        let size = usize::try_from(u64_at(bytes, at.checked_add(8)?)?).ok()?;
        let start = at.checked_add(SECTION_HEAD)?;
        let data = bytes.get(start..start.checked_add(size)?)?;
        match flags & IS_COMPRESSED {
            0 => Some(data.into()),
            _ => self.unpack(&mut Cursor::new(data, 0)).map(Into::into),
        }
    }

    /// What is packed next: its length, that unpacked, its bytes.
    fn unpack(&mut self, cursor: &mut Cursor<'_>) -> Option<Vec<u8>> {
        let (packed, unpacked) = (cursor.u32()? as usize, u64::from(cursor.u32()?));
        let data = cursor.take(packed)?;
        let (out, is_whole) = match self.compression.as_str() {
            "zlib" => self.story.unpack(ZlibDecoder::new(data).take(unpacked)),
            "zstd" => {
                let reader = ruzstd::decoding::StreamingDecoder::new(data).ok()?;
                self.story.unpack(reader.take(unpacked))
            }
            _ => return None,
        };
        is_whole.then_some(out)
    }

    fn buffer(&mut self, bytes: &'a [u8], option: &[u8]) -> Option<()> {
        let mut cursor = Cursor::new(option, 0);
        let start = usize::try_from(cursor.u64()?).ok()?;
        let name = cursor.text()?;
        let clock = cursor.text()?;
        if !name.is_empty() && !self.pages.is_empty() {
            self.story
                .unknown
                .push(format!("events of the trace's instance {name}, which are left out"));
            return Some(());
        }
        self.clock = clock;
        let is_packed = u16_at(bytes, start.checked_add(2)?)? & IS_COMPRESSED != 0;
        let page_bytes = cursor.u32()? as usize;
        for _ in 0..cursor.u32()? {
            let cpu = u16::try_from(cursor.u32()?).ok()?;
            let start = usize::try_from(cursor.u64()?).ok()?;
            let size = usize::try_from(cursor.u64()?).ok()?;
            let is_packed = is_packed && size > 0;
            // The word with the number of chunks does not count.
            let size = size.checked_add(if is_packed { 4 } else { 0 })?;
            let data = bytes.get(start..start.checked_add(size)?)?;
            let bytes = match is_packed {
                true => self.chunks(data)?.into(),
                false => data.into(),
            };
            self.pages.push(Pages { cpu, bytes, page_bytes: page_bytes.max(64) });
        }
        Some(())
    }

    fn chunks(&mut self, data: &[u8]) -> Option<Vec<u8>> {
        let mut cursor = Cursor::new(data, 0);
        let mut out = Vec::new();
        for _ in 0..cursor.u32()? {
            out.extend(self.unpack(&mut cursor)?);
        }
        Some(out)
    }

    fn option(&mut self, option: u16, data: &[u8]) {
        let text = || String::from_utf8_lossy(data).trim_end_matches('\0').to_owned();
        match option {
            OPTION_CPUSTAT => {
                let overruns = text()
                    .lines()
                    .find_map(|line| line.strip_prefix("overrun: ")?.trim().parse().ok());
                self.overruns = self.overruns.saturating_add(overruns.unwrap_or(0_u64));
            }
            OPTION_UNAME => {
                self.story.kernel = text().split_whitespace().nth(2).unwrap_or_default().to_owned()
            }
            OPTION_CLOCK if self.clock.is_empty() => self.clock = chosen_clock(&text()),
            OPTION_TSC if data.len() >= 16 => {
                self.tsc = Some(Tsc {
                    multiplier: u64::from(u32_at(data, 0).unwrap_or(1)),
                    shift: u32_at(data, 4).unwrap_or(0).min(63),
                    offset_ns: u64_at(data, 8).unwrap_or(0),
                });
            }
            _ => {}
        }
    }

    /// Lines of a thread and its name.
    fn names(&mut self, text: &str) {
        for (tid, name) in
            text.trim_end_matches('\0').lines().filter_map(|line| line.split_once(' '))
        {
            if let Ok(tid) = tid.parse() {
                let name = self.story.names.number(name);
                self.story.thread_names.insert(tid, name);
            }
        }
    }

    fn finish(mut self) -> Story {
        for pages in std::mem::take(&mut self.pages) {
            for page in pages.bytes.chunks(pages.page_bytes) {
                self.page(pages.cpu, page);
            }
        }
        let is_ns = !["uptime", "counter", "x86-tsc", "ppc-tb"].contains(&self.clock.as_str());
        if !is_ns && self.tsc.is_none() {
            let clock = &self.clock;
            self.story
                .unknown
                .push(format!("times in ns: the clock was {clock}, its units are taken for ns"));
        }
        let has_said = self.story.events.iter().any(|raw| matches!(raw.what, What::Lost { .. }));
        self.story.lost_events = if has_said { 0 } else { self.overruns };
        self.story
    }

    fn page(&mut self, cpu: u16, bytes: &[u8]) {
        let tsc = self.tsc.filter(|_| self.clock == "x86-tsc");
        tell_page(&self.decoder, &mut self.story, self.layout, cpu, bytes, |units| match tsc {
            None => units,
            Some(Tsc { multiplier, shift, offset_ns }) => {
                let ns = ((u128::from(units) * u128::from(multiplier)) >> shift) as u64;
                ns.wrapping_add(offset_ns)
            }
        });
    }
}

/// Adds the events of a page of a core to a story. `ns`: time of the trace's clock.
pub fn tell_page(
    decoder: &Decoder,
    story: &mut Story,
    layout: Layout,
    cpu: u16,
    bytes: &[u8],
    ns: impl Fn(u64) -> u64,
) {
    let Some(page) = Page::new(bytes, layout) else { return };
    if page.lost_events > 0 {
        let what = What::Lost { events: page.lost_events };
        let at_ns = ns(page.begin());
        story.push(Raw { at_ns, cpu, tid: 0, context: Context::Thread, what });
    }
    for (at, event) in page {
        decoder.tell(story, ns(at), cpu, event);
    }
}

/// Of `[local] global counter` the one in brackets.
fn chosen_clock(text: &str) -> String {
    let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    chosen.map_or(text, |(clock, _)| clock).trim().to_owned()
}
