//! What bytes are, by their content.

use super::{ftrace_text, page, perf_data, perf_script, perfetto, text, trace_dat};

/// Bytes that are looked at as a whole to tell what they are (ours): a first line of a trace that has one stands there.
pub const LOOK_BYTES: usize = 1 << 16;

/// What can be packed, and what packs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Gzip,
    Zstd,
    Zip,
    /// A stream of zlib.
    Zlib,
    /// Base64 of one of the above.
    Base64,
    /// Text in UTF-16, as PowerShell writes what a program prints.
    Utf16,
    /// A page of HTML.
    Page,
    /// JSON of Catapult.
    Json,
    /// Output of atrace; the trace begins there.
    Atrace(usize),
    Ftrace,
    PerfScript,
    PerfData,
    TraceDat,
    Perfetto,
    /// Of a form that is known and not read.
    Refused(&'static str),
}

/// What begins with what.
const MAGIC: &[(&[u8], Kind)] = &[
    (b"\x1f\x8b", Kind::Gzip),
    (b"\x28\xb5\x2f\xfd", Kind::Zstd),
    (b"PK\x03\x04", Kind::Zip),
    (b"PK\x05\x06", Kind::Zip),
    (b"H4sI", Kind::Base64),
    (b"\xff\xfe", Kind::Utf16),
    (b"\xfe\xff", Kind::Utf16),
    (b"\xfd7zXZ\0", Kind::Refused("is packed by xz: unpack it first")),
    (b"BZh", Kind::Refused("is packed by bzip2: unpack it first")),
    (b"7z\xbc\xaf\x27\x1c", Kind::Refused("is packed by 7-Zip: unpack it first")),
    (b"\x04\x22\x4d\x18", Kind::Refused("is packed by lz4: unpack it first")),
    (
        b"SIMPLEPERF",
        Kind::Refused("is a report of simpleperf, without events: import its perf.data"),
    ),
    (b"2ELIFREP", Kind::Refused("is a perf.data of a big-endian computer")),
];

/// What bytes are; none if nothing that is known. `is_all`: look for a line of a trace beyond [`LOOK_BYTES`] too.
pub fn of(bytes: &[u8], is_all: bool) -> Option<Kind> {
    let head = &bytes[..bytes.len().min(LOOK_BYTES)];
    let begin = head.trim_ascii_start();
    if let Some((_, kind)) = MAGIC.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Some(*kind);
    }
    if perf_data::is_form(bytes) {
        return Some(Kind::PerfData);
    }
    if trace_dat::is_form(bytes) {
        return Some(Kind::TraceDat);
    }
    if page::is_form(head) {
        return Some(Kind::Page);
    }
    if let [b'{', rest @ ..] = begin {
        if matches!(rest.trim_ascii_start().first(), Some(b'"' | b'}')) {
            return Some(Kind::Json);
        }
    }
    if let Some(start) = atrace(head) {
        return Some(Kind::Atrace(start));
    }
    if head.get(257..262) == Some(b"ustar") {
        return Some(Kind::Refused("is a tar archive: unpack it first"));
    }
    if let Some(form) = text_form(head) {
        return Some(form);
    }
    if is_zlib(bytes) {
        return Some(Kind::Zlib);
    }
    if is_zlib_in_base64(begin) {
        return Some(Kind::Base64);
    }
    // No text begins with a length; and a text that begins with an empty line is no message.
    if perfetto::is_form(bytes) && head.iter().any(|byte| *byte < b'\t') {
        return Some(Kind::Perfetto);
    }
    if !is_all || head.contains(&0) {
        return None;
    }
    let is_line = |line: &&[u8]| line.len() < 4096 && text_form(line).is_some();
    let line = bytes.split(|&byte| byte == b'\n').find(is_line)?;
    let start = line.as_ptr() as usize - bytes.as_ptr() as usize;
    text_form(&bytes[start..bytes.len().min(start + LOOK_BYTES)])
}

/// Of which form most lines of a text are; none if it is no text, or no line is of one.
fn text_form(bytes: &[u8]) -> Option<Kind> {
    let lines = text::first_lines(bytes)?;
    let (ftrace, perf) = (ftrace_text::matches(&lines), perf_script::matches(&lines));
    match ftrace + perf {
        0 => None,
        _ if ftrace >= perf => Some(Kind::Ftrace),
        _ => Some(Kind::PerfScript),
    }
}

/// Whether the first two bytes are one of the heads that zlib makes (RFC 1950), by how hard it tried.
fn is_zlib(bytes: &[u8]) -> bool {
    matches!(bytes, [0x78, 0x01 | 0x5e | 0x9c | 0xda, ..])
}

/// Whether a text is base64 that begins with a head of zlib.
fn is_zlib_in_base64(begin: &[u8]) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_=\r\n".contains(byte);
    matches!(begin, [b'e', b'A' | b'F' | b'J' | b'N', ..])
        && begin.len() > 16
        && begin.iter().take(64).all(is_letter)
}

/// Where a trace begins behind the line `TRACE:`, which nothing but what `atrace` says stands before.
fn atrace(head: &[u8]) -> Option<usize> {
    let mut lines = head[..head.len().min(4096)].split_inclusive(|&byte| byte == b'\n');
    let mut at = 0;
    lines.find_map(|line| {
        at += line.len();
        (line.trim_ascii() == b"TRACE:" && line.ends_with(b"\n")).then_some(at)
    })
}
