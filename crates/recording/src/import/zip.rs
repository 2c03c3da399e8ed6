//! The files of a zip archive (PKWARE's APPNOTE 6.3): stored or deflated, not encrypted, of one part.

use std::io::Read;

use flate2::read::DeflateDecoder;

use super::cursor::{u16_at, u32_at};

/// Most bytes of all files, unpacked (ours): a hundred times the largest recording that we have.
const BYTES_MAX: u64 = 1 << 32;

/// Most bytes that so many are unpacked to (ours): a thousand times as many, as much as deflate can do.
pub fn most(packed: usize) -> u64 {
    (packed as u64).saturating_mul(1000).clamp(1 << 24, BYTES_MAX)
}

/// Names and bytes of an archive's files; none if it is no archive or damaged.
pub fn files(bytes: &[u8]) -> Option<Vec<(String, Vec<u8>)>> {
    let end = (0..=bytes.len().checked_sub(22)?)
        .rev()
        .take(1 << 16)
        .find(|&at| bytes[at..].starts_with(b"PK\x05\x06"))?;
    let count = u16_at(bytes, end + 10)?;
    let mut at = u32_at(bytes, end + 16)? as usize;
    let mut found = Vec::new();
    let mut left = most(bytes.len());
    for _ in 0..count {
        let (file, next) = file(bytes, at, &mut left)?;
        found.push(file);
        at = next;
    }
    Some(found)
}

/// The file of an entry of the directory, and where the next entry is.
fn file(bytes: &[u8], at: usize, left: &mut u64) -> Option<((String, Vec<u8>), usize)> {
    if !bytes.get(at..)?.starts_with(b"PK\x01\x02") {
        return None;
    }
    let method = u16_at(bytes, at + 10)?;
    let (packed, unpacked) = (u32_at(bytes, at + 20)? as usize, u64::from(u32_at(bytes, at + 24)?));
    let lengths = [u16_at(bytes, at + 28)?, u16_at(bytes, at + 30)?, u16_at(bytes, at + 32)?]
        .map(usize::from);
    let start = u32_at(bytes, at + 42)? as usize;
    let name = bytes.get(at + 46..at + 46 + lengths[0])?;
    let data = start
        + 30
        + usize::from(u16_at(bytes, start + 26)?)
        + usize::from(u16_at(bytes, start + 28)?);
    let data = bytes.get(data..data.checked_add(packed)?)?;
    *left = left.checked_sub(unpacked)?;
    let mut out = Vec::new();
    match method {
        0 => out.extend_from_slice(data),
        8 => {
            DeflateDecoder::new(data).take(unpacked).read_to_end(&mut out).ok()?;
        }
        _ => return None,
    }
    let name = String::from_utf8_lossy(name).into_owned();
    (out.len() as u64 == unpacked).then_some(((name, out), at + 46 + lengths.iter().sum::<usize>()))
}
