//! Compression that stores equal parts once, as a pipeline: cut, find what is new, compress, write in order.
//!
//! Blocks are cut where a rolling hash of the content says so, so inserted bytes move no other cut. Tasks of one block
//! wait for each other, finding and writing also for those of the block before; everything else runs at the same time.

mod common;

use std::collections::HashMap;
use std::io::{Read, Write};
use std::process::ExitCode;

use ampsched_model::Draw;
use ampsched_taskrt::{Datum, Error, Runtime};
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use sha2::{Digest, Sha256};

const BLOCK: usize = 1 << 17;
/// A part ends where 12 bits of the rolling hash are zero: after 4 KiB on average.
const CUT_MASK: u64 = 0xfff << 40;
type Key = [u8; 32];

/// A part of a block: its key, and its bytes until they are known not to be new.
struct Part<'a> {
    key: Key,
    bytes: &'a [u8],
    is_new: bool,
    packed: Vec<u8>,
}

/// Cuts a block and names the parts by their content.
fn cut(block: &[u8]) -> Vec<Part<'_>> {
    let (mut parts, mut start, mut hash) = (Vec::new(), 0, 0_u64);
    for (place, &byte) in block.iter().enumerate() {
        // Gear hash (Xia et al., FAST 2014): old bytes are shifted out by themselves. The table is a multiplication.
        hash = (hash << 1).wrapping_add((u64::from(byte) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        if hash & CUT_MASK == 0 || place + 1 == block.len() {
            let bytes = &block[start..=place];
            let key = Sha256::digest(bytes).into();
            parts.push(Part { key, bytes, is_new: false, packed: Vec::new() });
            start = place + 1;
        }
    }
    parts
}

/// Marks parts that were not there before; `known` has the number of each part in the archive.
fn find(parts: &mut [Part<'_>], known: &mut HashMap<Key, u32>) {
    for part in parts {
        let next = known.len() as u32;
        part.is_new = *known.entry(part.key).or_insert(next) == next;
    }
}

fn compress(parts: &mut [Part<'_>]) {
    for part in parts.iter_mut().filter(|part| part.is_new) {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(part.bytes).expect("memory grows");
        part.packed = encoder.finish().expect("memory grows");
    }
}

/// Appends the parts of a block: a new one with its length and bytes, one that is there already with length 0 and its
/// key.
fn write(parts: &[Part<'_>], archive: &mut Vec<u8>) {
    for part in parts {
        archive.extend((part.packed.len() as u32).to_le_bytes());
        archive.extend(if part.is_new { &part.packed[..] } else { &part.key[..] });
    }
}

/// What was compressed.
fn unpacked(mut archive: &[u8]) -> Result<Vec<u8>, common::Failed> {
    let (mut parts, mut all) = (HashMap::<Key, Vec<u8>>::new(), Vec::new());
    while let Some((length, rest)) = archive.split_at_checked(4) {
        let length = u32::from_le_bytes(length.try_into()?) as usize;
        let (field, rest) = rest.split_at(if length == 0 { 32 } else { length });
        if length == 0 {
            all.extend(&parts[field]);
        } else {
            let mut bytes = Vec::new();
            ZlibDecoder::new(field).read_to_end(&mut bytes)?;
            all.extend(&bytes);
            parts.insert(Sha256::digest(&bytes).into(), bytes);
        }
        archive = rest;
    }
    Ok(all)
}

fn sequential(data: &[u8]) -> Vec<u8> {
    let (mut known, mut archive) = (HashMap::new(), Vec::new());
    for block in data.chunks(BLOCK) {
        let mut parts = cut(block);
        find(&mut parts, &mut known);
        compress(&mut parts);
        write(&parts, &mut archive);
    }
    archive
}

fn pipeline(runtime: &Runtime, data: &[u8]) -> Result<Vec<u8>, Error> {
    let (known, archive) = (Datum::new(HashMap::new()), Datum::new(Vec::new()));
    let blocks: Vec<(&[u8], Datum<Vec<Part<'_>>>)> =
        data.chunks(BLOCK).map(|block| (block, Datum::default())).collect();
    runtime.graph(|scope| {
        for (block, parts) in &blocks {
            scope.task("cut").writes(parts).run(|| *parts.write() = cut(block));
            let finding = scope.task("find").writes(parts).writes(&known);
            finding.run(|| find(&mut parts.write(), &mut known.write()));
            scope.task("compress").writes(parts).run(|| compress(&mut parts.write()));
            let writing = scope.task("write").reads(parts).writes(&archive);
            writing.run(|| write(&parts.read(), &mut archive.write()));
        }
    })?;
    Ok(archive.into_inner())
}

/// Bytes such as files have: words, and passages that come again.
fn data(bytes: usize) -> Vec<u8> {
    let mut random = Draw::new(3);
    let mut below = |limit: usize| (random.uniform() * limit as f64) as usize;
    let words: Vec<Vec<u8>> = (0..5000)
        .map(|_| (0..2 + below(9)).map(|_| b'a' + below(26) as u8).chain([b' ']).collect())
        .collect();
    let mut data = Vec::with_capacity(bytes + BLOCK);
    while data.len() < bytes {
        if data.len() > BLOCK && below(100) == 0 {
            let start = below(data.len() - BLOCK);
            data.extend_from_within(start..start + below(BLOCK));
        } else {
            (0..50).for_each(|_| data.extend(&words[below(words.len())]));
        }
    }
    data
}

fn main() -> ExitCode {
    common::main("dedup", 16_000_000, |example| {
        let data = data(example.size);
        let (expected, archive) =
            example.compare(|| sequential(&data), |runtime| pipeline(runtime, &data))?;
        assert!(archive == expected, "the same archive");
        assert!(unpacked(&archive)? == data, "what was compressed comes back");
        println!("{} bytes packed into {}", data.len(), archive.len());
        Ok(())
    })
}
