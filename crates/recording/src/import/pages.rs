//! Pages of the kernel's ring buffer (include/linux/ring_buffer.h, kernel/trace/ring_buffer.c), little-endian.

use super::cursor::{u32_at, u64_at};

/// How pages begin: what `events/header_page` tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of the word that says how full a page is: 4 or 8.
    pub commit_bytes: usize,
    /// Where events begin.
    pub data_offset: usize,
}

impl Default for Layout {
    fn default() -> Self {
        Self { commit_bytes: 8, data_offset: 16 }
    }
}

impl Layout {
    /// From the text of `events/header_page`; that of 64-bit kernels if it tells nothing.
    pub fn read(text: &str) -> Self {
        let number = |line: &str, key: &str| -> Option<usize> {
            line.split(';').find_map(|part| part.trim().strip_prefix(key))?.parse().ok()
        };
        let mut layout = Self::default();
        for line in text.lines() {
            if line.contains(" commit;") {
                layout.commit_bytes = number(line, "size:").unwrap_or(8).clamp(4, 8);
            } else if line.contains(" data;") {
                layout.data_offset = number(line, "offset:").unwrap_or(16).clamp(12, 64);
            }
        }
        layout
    }
}

/// Bits of the commit word: events are missing before this page, and how many stands behind its data.
const MISSED: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;
/// Which bits say how full it is.
const FILLED: u64 = (1 << 20) - 1;

const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// Bits of a time in the first word of an event.
const DELTA_BITS: u32 = 27;
/// A time of its own has that many bits; those above are the page's.
const STAMP_BITS: u32 = 59;

/// What a page tells: first its time and the number of events that are missing before it, then its events.
pub struct Page<'a> {
    data: &'a [u8],
    at: usize,
    now: u64,
    /// Events that are missing before it.
    pub lost_events: u64,
}

impl<'a> Page<'a> {
    /// A page; none if it is too short.
    pub fn new(bytes: &'a [u8], layout: Layout) -> Option<Self> {
        let now = u64_at(bytes, 0)?;
        let commit = match layout.commit_bytes {
            8 => u64_at(bytes, 8)?,
            _ => u64::from(u32_at(bytes, 8)?),
        };
        let rest = bytes.get(layout.data_offset..)?;
        let filled = ((commit & FILLED) as usize).min(rest.len());
        let lost_events = match (commit & MISSED != 0, commit & MISSED_STORED != 0) {
            (false, _) => 0,
            // It is not told how many; at least one.
            (true, false) => 1,
            (true, true) if layout.commit_bytes == 8 => u64_at(rest, filled).unwrap_or(1),
            (true, true) => u32_at(rest, filled).map_or(1, u64::from),
        };
        Some(Self { data: &rest[..filled], at: 0, now, lost_events })
    }

    /// The time of its begin, in units of the trace's clock.
    pub fn begin(&self) -> u64 {
        self.now
    }
}

impl<'a> Iterator for Page<'a> {
    type Item = (u64, &'a [u8]);

    /// The next event's time and bytes.
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let word = u32_at(self.data, self.at)?;
            let (kind, delta) = (word & 31, u64::from(word >> 5));
            let body = self.at + 4;
            match kind {
                PADDING if delta == 0 => return None,
                PADDING => {
                    self.now = self.now.wrapping_add(delta);
                    let length = u32_at(self.data, body)? as usize;
                    self.at = body.checked_add(length.max(4))?;
                }
                TIME_EXTEND => {
                    let high = u64::from(u32_at(self.data, body)?) << DELTA_BITS;
                    self.now = self.now.wrapping_add(high | delta);
                    self.at = body + 4;
                }
                TIME_STAMP => {
                    let high = u64::from(u32_at(self.data, body)?) << DELTA_BITS;
                    self.now = (self.now >> STAMP_BITS << STAMP_BITS) | high | delta;
                    self.at = body + 4;
                }
                _ => {
                    self.now = self.now.wrapping_add(delta);
                    let (start, length) = match kind {
                        0 => (body + 4, (u32_at(self.data, body)? as usize).checked_sub(4)?),
                        words => (body, words as usize * 4),
                    };
                    let bytes = self.data.get(start..start.checked_add(length)?)?;
                    self.at = start + length.next_multiple_of(4);
                    return Some((self.now, bytes));
                }
            }
        }
    }
}
