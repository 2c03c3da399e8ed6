//! The files of a zip archive (PKWARE's APPNOTE 6.3): stored or deflated, not encrypted, of one part, below 4 GiB.

use std::borrow::Cow;
use std::io::Read;

use ampsched_model::{Budget, InputError};
use flate2::read::DeflateDecoder;

use super::cursor::{u16_at, u32_at};

/// Bit of an entry's flags: it is encrypted.
const IS_ENCRYPTED: u16 = 1;

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
    for entry in entries(bytes).ok_or_else(damaged)? {
        room.take::<u8>(path, entry.unpacked)?;
        keep(&entry.name, &entry.unpack().map_err(|_| damaged())?, room)?;
    }
    Ok(())
}

/// The entries of an archive, in the order of its directory; none if it has no whole directory.
pub fn entries(bytes: &[u8]) -> Option<Vec<Entry<'_>>> {
    let (mut at, count) = directory(bytes)?;
    let mut found = Vec::new();
    for _ in 0..count {
        let entry = Entry::read(bytes, at)?;
        at = entry.next;
        found.push(entry);
    }
    Some(found)
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
pub struct Entry<'a> {
    /// The file's path, without what is not UTF-8 in it.
    pub name: String,
    flags: u16,
    method: u16,
    checksum: u32,
    data: &'a [u8],
    /// Bytes of the file.
    pub unpacked: usize,
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
            flags: u16_at(bytes, at + 8)?,
            method: u16_at(bytes, at + 10)?,
            checksum: u32_at(bytes, at + 16)?,
            data: bytes.get(data..data.checked_add(packed)?)?,
            unpacked: u32_at(bytes, at + 24)? as usize,
            next: at + 46 + lengths.iter().sum::<usize>(),
        })
    }

    /// The first bytes of the file, as many as `most`; fewer or none if they cannot be unpacked.
    pub fn head(&self, most: usize) -> Vec<u8> {
        match self.method {
            _ if self.flags & IS_ENCRYPTED != 0 => Vec::new(),
            0 => self.data[..self.data.len().min(most)].to_vec(),
            8 => {
                let mut out = Vec::new();
                // What a damaged part lacks is missing, and told when the whole is unpacked.
                let _ = DeflateDecoder::new(self.data).take(most as u64).read_to_end(&mut out);
                out
            }
            _ => Vec::new(),
        }
    }

    /// The bytes of the file. Errors: what is wrong if they are not as many as the entry promises.
    pub fn unpack(&self) -> Result<Cow<'a, [u8]>, String> {
        let damaged = || "is damaged: it cannot be unpacked".to_owned();
        let bytes: Cow<'a, [u8]> = match self.method {
            _ if self.flags & IS_ENCRYPTED != 0 => return Err("is encrypted".to_owned()),
            0 => self.data.into(),
            8 => {
                let mut out = Vec::new();
                let packed = DeflateDecoder::new(self.data);
                packed.take(self.unpacked as u64).read_to_end(&mut out).map_err(|_| damaged())?;
                out.into()
            }
            other => return Err(format!("is packed by method {other} of zip, known are 0 and 8")),
        };
        if bytes.len() == self.unpacked { Ok(bytes) } else { Err(damaged()) }
    }

    /// Whether these are the bytes that were packed, by their checksum.
    pub fn is_whole(&self, bytes: &[u8]) -> bool {
        crc32fast::hash(bytes) == self.checksum
    }
}
