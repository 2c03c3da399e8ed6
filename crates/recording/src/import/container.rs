//! What traces are packed in, one in another: gzip, zstd, zip, zlib, base64, UTF-16, `atrace`, pages and JSON.
//!
//! All that a file holds is looked at; of several traces the one with the scheduler's events is read. What is packed is
//! unpacked within the memory that the file may take. Base64 is taken apart here, for no crate of the project brings it
//! and its 20 lines are fewer than what a dependency asks for.

use std::borrow::Cow;
use std::io::Read;
use std::ops::Range;

use ampsched_model::{Budget, InputError};
use flate2::read::{MultiGzDecoder, ZlibDecoder};
use serde::Deserialize;
use serde_json::Value;

use super::event::{Story, What};
use super::kind::{self, Kind};
use super::page::Block;
use super::{FORMS, ftrace_text, lacking, page, perf_data, perf_script, perfetto, process_list};
use super::{trace_dat, zip};

/// Most that one thing is packed in another (ours): a bugreport in a zip, gzip in base64 in a page in it.
const DEPTH_MAX: u32 = 6;
/// Most bytes of first parts of members of archives that are looked at (ours): members may share their bytes.
const LOOKED_MAX: usize = 512 << 20;
/// Most members of a container whose names an error lists (ours).
const LISTED_MAX: usize = 12;

/// A trace in a file.
struct Found<'a> {
    /// Where in the file it is; empty if it is the file.
    name: String,
    kind: Kind,
    /// What it stood in, if that is a form of its own.
    form: Option<&'static str>,
    bytes: Cow<'a, [u8]>,
    /// What was lost when it was unpacked.
    losses: Vec<String>,
}

impl Found<'_> {
    /// The form's name and what the trace tells.
    fn read(&self, file: &str) -> Result<(&'static str, Story), InputError> {
        let (form, story) = match self.kind {
            Kind::PerfData => ("perf-data", perf_data::read(file, &self.bytes)),
            Kind::TraceDat => ("trace-cmd", trace_dat::read(file, &self.bytes)),
            Kind::Perfetto => ("perfetto", perfetto::read(file, &self.bytes)),
            Kind::PerfScript => ("perf-script", perf_script::read(file, &self.bytes)),
            _ => ("ftrace", Ok(ftrace_text::read(&self.bytes))),
        };
        let named = |error: InputError| match error.key.is_empty() {
            true => InputError { key: self.name.clone(), ..error },
            false => error,
        };
        let mut story = story.and_then(|story| story.checked(file)).map_err(named)?;
        story.unknown.extend(self.losses.iter().cloned());
        Ok((self.form.unwrap_or(form), story))
    }
}

/// The form's name and what the trace in a file tells.
///
/// Errors: no form fits, or what fits is damaged; there are several traces, or it takes more memory than a file may.
pub fn story(file: &str, bytes: &[u8]) -> Result<(&'static str, Story), InputError> {
    let mut finder = Finder { file, room: Budget::of(bytes.len()), ..Finder::default() };
    finder.look(Cow::Borrowed(bytes), &Place::default())?;
    let (form, mut story) = finder.choose()?;
    for list in &finder.lists {
        process_list::tell(&mut story, list);
    }
    Ok((form, story))
}

/// Where in a file something is.
#[derive(Clone, Debug, Default)]
struct Place {
    name: String,
    depth: u32,
    form: Option<&'static str>,
    losses: Vec<String>,
}

impl Place {
    /// One layer in.
    fn inside(&self) -> Self {
        Self { depth: self.depth + 1, ..self.clone() }
    }

    /// A member of it.
    fn member(&self, name: &str) -> Self {
        let name = match self.name.as_str() {
            "" => name.to_owned(),
            outer => format!("{outer}/{name}"),
        };
        Self { name, ..self.inside() }
    }

    fn of_form(self, form: &'static str) -> Self {
        Self { form: Some(form), ..self }
    }
}

/// Looks for traces in a file.
#[derive(Default)]
struct Finder<'a> {
    file: &'a str,
    room: Budget,
    found: Vec<Found<'a>>,
    /// Lists of processes.
    lists: Vec<String>,
    /// Members that are no traces, and why if something is wrong with them.
    others: Vec<String>,
    /// Bytes of first parts of members that were looked at.
    looked: usize,
}

impl<'a> Finder<'a> {
    fn error(&self, place: &Place, message: impl Into<String>) -> InputError {
        InputError::new(self.file, place.name.clone(), message)
    }

    /// Adds the traces in bytes. Errors: they are of no form, or damaged.
    fn look(&mut self, bytes: Cow<'a, [u8]>, place: &Place) -> Result<(), InputError> {
        if place.depth > DEPTH_MAX {
            return Err(self.error(place, format!("is packed more than {DEPTH_MAX} times over")));
        }
        let bytes = match bytes.starts_with(b"\xef\xbb\xbf") {
            true => part(&bytes, 3..bytes.len()),
            false => bytes,
        };
        match kind::of(&bytes, true) {
            Some(Kind::Gzip) => self.packed("gzip", MultiGzDecoder::new(&*bytes), place),
            Some(Kind::Zlib) => self.packed("zlib", ZlibDecoder::new(&*bytes), place),
            Some(Kind::Zstd) => self.zstd(&bytes, place),
            Some(Kind::Zip) => self.archive(&bytes, place),
            Some(Kind::Base64) => match of_base64(&bytes) {
                Some(inner) => self.unpacked(inner, &place.inside()),
                None => Err(self.error(place, "is damaged: its base64 has other letters in it")),
            },
            Some(Kind::Utf16) => self.unpacked(of_utf16(&bytes).into_bytes(), &place.inside()),
            Some(Kind::Page) => self.page(bytes, place),
            Some(Kind::Json) => self.json(&bytes, place),
            Some(Kind::Atrace(start)) => self.atrace(bytes, start, place),
            Some(Kind::Refused(why)) => Err(self.error(place, why)),
            Some(kind) => {
                let Place { name, form, losses, .. } = place.clone();
                self.found.push(Found { name, kind, form, bytes, losses });
                Ok(())
            }
            None => Err(self.no_form(&bytes, place)),
        }
    }

    fn no_form(&self, bytes: &[u8], place: &Place) -> InputError {
        if let Some((message, hint)) = lacking::of_text(bytes) {
            return self.error(place, message).with_hint(hint);
        }
        let forms: Vec<&str> = FORMS.iter().map(|(_, what)| *what).collect();
        self.error(place, "is no trace of a form that is read").with_hint(forms.join("; "))
    }

    /// Looks at what was unpacked, if there is room for it.
    fn unpacked(&mut self, bytes: Vec<u8>, place: &Place) -> Result<(), InputError> {
        self.room.take::<u8>(self.file, bytes.len())?;
        self.look(Cow::Owned(bytes), place)
    }

    /// Looks at what something is unpacked to: of what is cut off, up to there.
    fn packed(&mut self, by: &str, packed: impl Read, place: &Place) -> Result<(), InputError> {
        let mut bytes = Vec::new();
        let is_whole = packed.take(self.room.left() as u64 + 1).read_to_end(&mut bytes).is_ok();
        self.unpacked_by(by, bytes, is_whole, place)
    }

    /// The same of frames of zstd, one behind the other.
    fn zstd(&mut self, mut packed: &[u8], place: &Place) -> Result<(), InputError> {
        let (mut bytes, mut is_whole, left) = (Vec::new(), true, self.room.left());
        while is_whole && !packed.is_empty() && bytes.len() <= left {
            let most = (left + 1 - bytes.len()) as u64;
            is_whole = ruzstd::decoding::StreamingDecoder::new(&mut packed)
                .is_ok_and(|frame| frame.take(most).read_to_end(&mut bytes).is_ok());
        }
        self.unpacked_by("zstd", bytes, is_whole, place)
    }

    fn unpacked_by(
        &mut self,
        by: &str,
        bytes: Vec<u8>,
        is_whole: bool,
        place: &Place,
    ) -> Result<(), InputError> {
        let mut inside = place.inside();
        if !is_whole && bytes.is_empty() {
            return Err(self.error(place, format!("is damaged: {by} cannot unpack it")));
        }
        if !is_whole {
            let size = bytes.len();
            inside.losses.push(format!("what follows {size} bytes, where {by} finds damage"));
        }
        self.unpacked(bytes, &inside)
    }

    /// Looks at the members of a zip archive: at those of which the first bytes are known, and if none is a trace, at
    /// all texts.
    fn archive(&mut self, bytes: &[u8], place: &Place) -> Result<(), InputError> {
        let Some(entries) = zip::entries(bytes) else {
            let message = "is a damaged zip archive: its list of members is missing or wrong";
            return Err(self.error(place, message).with_hint("was it cut off? copy it once more"));
        };
        let before = self.found.len();
        for is_all in [false, true] {
            self.others.clear();
            for entry in entries.iter().filter(|entry| !entry.name.ends_with('/')) {
                let inside = place.member(&entry.name);
                let head = entry.head(kind::LOOK_BYTES);
                self.looked += head.len();
                if self.looked > LOOKED_MAX {
                    let message = "is a zip archive of too many members to look at all";
                    return Err(self.error(place, message).with_hint("unpack the trace"));
                }
                let is_known = kind::of(&head, false).is_some();
                let is_long_text = is_all && entry.unpacked > head.len() && !head.contains(&0);
                let looked = match is_known || is_long_text || head.is_empty() {
                    true => self.member(entry, &inside),
                    false => Err(String::new()),
                };
                if let Err(why) = looked {
                    self.others.push(format!("{} {why}", inside.name).trim_end().to_owned());
                }
            }
            if self.found.len() > before {
                return Ok(());
            }
        }
        let hint = match self.others.is_empty() {
            true => "it has no members".to_owned(),
            false => format!("it has {}", listed(&self.others)),
        };
        Err(self
            .error(place, "is a zip archive without a trace of a form that is read")
            .with_hint(hint))
    }

    /// Errors: what is wrong with it.
    fn member(&mut self, entry: &zip::Entry<'_>, inside: &Place) -> Result<(), String> {
        if entry.unpacked == 0 {
            return Err("(empty)".to_owned());
        }
        let said = |error: InputError| format!("({})", error.message);
        self.room.take::<u8>(self.file, entry.unpacked).map_err(said)?;
        let bytes = entry.unpack().map_err(|why| format!("({why})"))?;
        if !entry.is_whole(&bytes) {
            return Err("(is damaged: its checksum is another)".to_owned());
        }
        self.look(Cow::Owned(bytes.into_owned()), inside).map_err(said)
    }

    /// Looks at the blocks of a page.
    fn page(&mut self, bytes: Cow<'a, [u8]>, place: &Place) -> Result<(), InputError> {
        let (blocks, is_whole) = page::blocks(&bytes);
        let mut inside = place.inside().of_form("systrace");
        if !is_whole {
            inside.losses.push("what follows the end of the page, which is cut off".to_owned());
        }
        let (before, count) = (self.found.len(), blocks.len());
        let mut damage = None;
        for (number, block) in (1..).zip(blocks) {
            let block = match block {
                Block::Data(range) => part(&bytes, trimmed(&bytes, range)),
                Block::Text(text) => Cow::Owned(text),
            };
            let place = Place { name: format!("block {number}"), ..inside.clone() };
            if block.is_empty() || self.is_list(&block) {
                continue;
            }
            let is_known = kind::of(&block, false).is_some();
            let looked = self.look(block, &place);
            damage = damage.or(looked.err().filter(|_| is_known));
        }
        if self.found.len() > before {
            return Ok(());
        }
        let message =
            format!("is a page without a trace of the kernel: none in its {count} blocks of data");
        Err(damage.unwrap_or_else(|| self.error(place, message)))
    }

    /// Whether bytes are a list of processes, which is kept.
    fn is_list(&mut self, bytes: &[u8]) -> bool {
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4096)]);
        let is_list = process_list::is_form(&text);
        if is_list {
            self.lists.push(String::from_utf8_lossy(bytes).into_owned());
        }
        is_list
    }

    /// Looks at the kernel's part of JSON.
    fn json(&mut self, bytes: &[u8], place: &Place) -> Result<(), InputError> {
        let json: Json = serde_json::from_slice(bytes)
            .map_err(|error| self.error(place, format!("is damaged JSON: {error}")))?;
        if let Some(Value::String(list)) = json.list {
            self.is_list(list.as_bytes());
        }
        let Some(Value::String(trace)) = json.trace else {
            let message = "is JSON without a trace of the kernel (systemTraceEvents)";
            return Err(self.error(place, message));
        };
        self.unpacked(trace.into_bytes(), &place.inside().of_form("systrace"))
    }

    /// Looks at what `atrace` has written behind its mark: text, or zlib's, in which a terminal may have changed ends
    /// of lines.
    fn atrace(
        &mut self,
        bytes: Cow<'a, [u8]>,
        start: usize,
        place: &Place,
    ) -> Result<(), InputError> {
        let inside = place.inside().of_form("atrace");
        let ending: &[u8] = match &bytes[..start] {
            [.., b'\r', b'\r', b'\n'] => b"\r\r\n",
            [.., b'\r', b'\n'] => b"\r\n",
            _ => b"\n",
        };
        let rest = bytes.len() - start - bytes[start..].trim_ascii_start().len();
        let data = part(&bytes, start + rest..bytes.len());
        if ending.len() == 1 || kind::of(&data, false) != Some(Kind::Zlib) {
            return match data.is_empty() {
                true => Err(self.error(place, "ends where its trace would begin")),
                false => self.look(data, &inside),
            };
        }
        let mut mended = Vec::with_capacity(data.len());
        let mut rest = &*data;
        while let [first, after @ ..] = rest {
            let is_end = rest.starts_with(ending);
            mended.push(if is_end { b'\n' } else { *first });
            rest = if is_end { &rest[ending.len()..] } else { after };
        }
        self.unpacked(mended, &inside)
    }

    /// Reads the trace, or of several the one with switches. Errors: there is no such one, or more than one.
    fn choose(&mut self) -> Result<(&'static str, Story), InputError> {
        let found = std::mem::take(&mut self.found);
        if let [one] = found.as_slice() {
            return one.read(self.file);
        }
        let names = |found: &mut dyn Iterator<Item = &Found<'_>>| {
            listed(&found.map(|found| found.name.clone()).collect::<Vec<_>>())
        };
        let (mut read, mut with_switches): (Vec<_>, Vec<usize>) = (Vec::new(), Vec::new());
        for (index, found) in found.iter().enumerate() {
            let Ok((form, story)) = found.read(self.file) else { continue };
            if story.events.iter().any(|raw| matches!(raw.what, What::Switch { .. })) {
                with_switches.push(index);
                read = vec![(form, story)];
            }
        }
        let (message, named) = match (with_switches.len(), read.pop()) {
            (1, Some(one)) => return Ok(one),
            (0, _) => {
                let message =
                    "has several traces, and none has events of a core that goes to another thread";
                (message.to_owned(), names(&mut found.iter()))
            }
            (count, _) => {
                let chosen = names(&mut with_switches.iter().map(|&index| &found[index]));
                (format!("has {count} traces of the scheduler"), chosen)
            }
        };
        let hint = format!("unpack the one that you mean: {named}");
        Err(InputError::new(self.file, "", message).with_hint(hint))
    }
}

/// What is read of JSON.
#[derive(Deserialize)]
struct Json {
    #[serde(rename = "systemTraceEvents")]
    trace: Option<Value>,
    #[serde(rename = "androidProcessDump")]
    list: Option<Value>,
}

/// A part of bytes, which is copied only if these are nobody else's.
fn part<'a>(bytes: &Cow<'a, [u8]>, range: Range<usize>) -> Cow<'a, [u8]> {
    match bytes {
        Cow::Borrowed(bytes) => Cow::Borrowed(&bytes[range]),
        Cow::Owned(bytes) => Cow::Owned(bytes[range].to_vec()),
    }
}

/// A range without the white space around what stands there.
fn trimmed(bytes: &[u8], range: Range<usize>) -> Range<usize> {
    let text = &bytes[range.clone()];
    let start = range.start + text.len() - text.trim_ascii_start().len();
    start..start + bytes[start..range.end].trim_ascii_end().len()
}

/// Names with commas between, and how many more there are.
fn listed(names: &[String]) -> String {
    let first: Vec<&str> = names.iter().take(LISTED_MAX).map(String::as_str).collect();
    let more = names.len() - first.len();
    if more > 0 { format!("{} and {more} more", first.join(", ")) } else { first.join(", ") }
}

/// Whether bytes stand at a place, whatever the case of their letters.
pub fn is_at(bytes: &[u8], at: usize, wanted: &[u8]) -> bool {
    let found = bytes.get(at..at.saturating_add(wanted.len()));
    found.is_some_and(|found| found.eq_ignore_ascii_case(wanted))
}

/// What base64 (RFC 4648) stands for, white space in it aside; none if it has other letters.
fn of_base64(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0_u32);
    for &letter in text.trim_ascii_end() {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b'=' | b'\r' | b'\n' | b' ' | b'\t' => continue,
            _ => return None,
        };
        (bits, count) = ((bits << 6 | u32::from(value)) & 0xff_ffff, count + 6);
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    Some(out)
}

/// Text in UTF-16 with its mark, little- or big-endian.
fn of_utf16(bytes: &[u8]) -> String {
    let is_big = bytes.starts_with(b"\xfe\xff");
    let unit = |pair: &[u8]| match is_big {
        true => u16::from_be_bytes([pair[0], pair[1]]),
        false => u16::from_le_bytes([pair[0], pair[1]]),
    };
    let units = bytes[2..].chunks_exact(2).map(unit);
    char::decode_utf16(units).map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}
