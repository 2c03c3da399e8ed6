//! The files of a zip archive (PKWARE's APPNOTE 6.3): stored or deflated, not encrypted, of one part.

use std::borrow::Cow;
use std::io::Read;

use ampsched_model::{Budget, InputError};
use flate2::read::DeflateDecoder;

use super::cursor::{u16_at, u32_at};

/// Names and bytes of an archive's files, which are given to `keep` one by one.
///
/// Errors: it is no archive, or damaged; `room` is too small for what a file is unpacked to.
pub fn files(
    path: &str,
    bytes: &[u8],
    room: &mut Budget,
    mut keep: impl FnMut(&str, &[u8], &mut Budget) -> Result<(), InputError>,
) -> Result<(), InputError> {
    let damaged = || InputError::new(path, "", "is no archive of numpy arrays, or damaged");
    let (mut at, count) = directory(bytes).ok_or_else(damaged)?;
    for _ in 0..count {
        let entry = Entry::read(bytes, at).ok_or_else(damaged)?;
        room.take::<u8>(path, entry.unpacked)?;
        keep(&entry.name, &entry.unpack().ok_or_else(damaged)?, room)?;
        at = entry.next;
    }
    Ok(())
}

/// Where the directory of an archive begins, and how many entries it has.
fn directory(bytes: &[u8]) -> Option<(usize, u16)> {
    let end = (0..=bytes.len().checked_sub(22)?)
        .rev()
        .take(1 << 16)
        .find(|&at| bytes[at..].starts_with(b"PK\x05\x06"))?;
    Some((u32_at(bytes, end + 16)? as usize, u16_at(bytes, end + 10)?))
}

/// An entry of the directory.
struct Entry<'a> {
    name: String,
    method: u16,
    data: &'a [u8],
    /// Bytes of the file.
    unpacked: usize,
    /// Where the next entry is.
    next: usize,
}

impl<'a> Entry<'a> {
    fn read(bytes: &'a [u8], at: usize) -> Option<Self> {
        if !bytes.get(at..)?.starts_with(b"PK\x01\x02") {
            return None;
        }
        let packed = u32_at(bytes, at + 20)? as usize;
        let lengths = [u16_at(bytes, at + 28)?, u16_at(bytes, at + 30)?, u16_at(bytes, at + 32)?]
            .map(usize::from);
        let start = u32_at(bytes, at + 42)? as usize;
        let name = bytes.get(at + 46..at + 46 + lengths[0])?;
        let data = start
            + 30
            + usize::from(u16_at(bytes, start + 26)?)
            + usize::from(u16_at(bytes, start + 28)?);
        Some(Self {
            name: String::from_utf8_lossy(name).into_owned(),
            method: u16_at(bytes, at + 10)?,
            data: bytes.get(data..data.checked_add(packed)?)?,
            unpacked: u32_at(bytes, at + 24)? as usize,
            next: at + 46 + lengths.iter().sum::<usize>(),
        })
    }

    /// The bytes of the file; none if they are not those that the entry promises.
    fn unpack(&self) -> Option<Cow<'a, [u8]>> {
        let bytes: Cow<'a, [u8]> = match self.method {
            0 => self.data.into(),
            8 => {
                let mut out = Vec::new();
                let packed = DeflateDecoder::new(self.data);
                packed.take(self.unpacked as u64).read_to_end(&mut out).ok()?;
                out.into()
            }
            _ => return None,
        };
        (bytes.len() == self.unpacked).then_some(bytes)
    }
}
